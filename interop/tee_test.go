package interop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gladhand/acp"
	"gladhand/acp/acptest"
)

// What a record's lines begin with: who sent the frame behind it.
const (
	fromClient = string(acptest.Client) + " "
	fromAgent  = string(acptest.Agent) + " "
)

// tee is the gladhand that clients start: the real one, with every line of either
// direction written down before it is passed on, so that a response stands behind
// its request.
func tee() int {
	cmd := exec.Command(os.Getenv("INTEROP_BINARY"), os.Args[1:]...)
	cmd.Stderr = os.Stderr
	record, err := os.CreateTemp(os.Getenv("INTEROP_RECORD"), "connection-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, "tee:", err)
		return 1
	}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		fmt.Fprintln(os.Stderr, "tee:", err)
		return 1
	}
	var mu sync.Mutex
	pass := func(prefix string, to io.Writer, from io.Reader) {
		r := bufio.NewReader(from)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				mu.Lock()
				fmt.Fprintf(record, "%s%s\n", prefix, strings.TrimSuffix(line, "\n"))
				mu.Unlock()
				if _, err := io.WriteString(to, line); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go func() {
		pass(fromClient, in, os.Stdin)
		in.Close()
	}()
	pass(fromAgent, os.Stdout, out)
	if err := cmd.Wait(); err != nil {
		return max(cmd.ProcessState.ExitCode(), 1)
	}
	return 0
}

// line is one of a record.
type line struct {
	from   acptest.Direction
	frame  []byte
	ID     json.RawMessage
	Result json.RawMessage
	Method string
	Params struct {
		notification
		ProtocolVersion int
	}
}

// records returns what was written down, a list for each connection.
func records(t *testing.T, dir string) [][]line {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "connection-*"))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]line
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var lines []line
		for whole := range strings.Lines(string(text)) {
			if !strings.HasSuffix(whole, "\n") {
				break // the end of a tee that was killed
			}
			who, frame, _ := strings.Cut(whole, " ")
			l := line{from: acptest.Direction(who), frame: []byte(frame)}
			if err := json.Unmarshal(l.frame, &l); err != nil {
				t.Errorf("%v in %s", err, frame)
			}
			lines = append(lines, l)
		}
		all = append(all, lines)
	}
	return all
}

// checkRecords holds everything that was said against the protocol's schemas, and
// what a client was told when it opened a session against its order.
func checkRecords(t *testing.T, dir string) {
	t.Helper()
	sent := map[acptest.Direction]int{}
	all := records(t, dir)
	for _, lines := range all {
		checker := acptest.New(0)
		for _, l := range lines {
			sent[l.from]++
			checker.Check(t, l.from, l.frame)
		}
		checkOpened(t, lines)
	}
	if len(all) > 0 && (sent[acptest.Agent] == 0 || sent[acptest.Client] == 0) {
		t.Error("a direction was not recorded")
	}
	t.Logf("%d connections: the schemas accept all %d frames from the agent and %d from clients", len(all), sent[acptest.Agent], sent[acptest.Client])
}

// checkOpened checks the order of what follows a session/load or resume: history,
// v2's state, the response, and no more history.
func checkOpened(t *testing.T, lines []line) {
	t.Helper()
	version := 0
	asked := map[string]string{} // ids of what opened a session
	last := line{}
	for _, l := range lines {
		switch id := string(l.ID); {
		case l.from == acptest.Client && l.Method == acp.MethodInitialize:
			version = l.Params.ProtocolVersion
		case l.from == acptest.Client && (l.Method == acp.MethodSessionLoad || l.Method == acp.MethodSessionResume):
			asked[id] = l.Method
		case l.from == acptest.Client:
		case l.Method == "" && asked[id] != "" && l.Result != nil:
			if version == acp.V2 && last.Params.Update.State == "" {
				t.Errorf("before the response to %s came no state but %s", asked[id], last.frame)
			}
			delete(asked, id)
		case l.Method == acp.MethodUpdate:
			if last = l; l.Params.Meta.Gladhand.Replay && len(asked) == 0 {
				t.Errorf("history behind the response: %s", l.frame)
			}
		}
	}
}

// called counts a client's calls of a method, over all records.
func called(t *testing.T, dir, method string) int {
	t.Helper()
	n := 0
	for _, lines := range records(t, dir) {
		for _, l := range lines {
			if l.from == acptest.Client && l.Method == method {
				n++
			}
		}
	}
	return n
}
