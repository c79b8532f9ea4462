package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp/acptest"
)

// Two lines pasted into socat, one by one: initialize and status.
func TestSocat(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("socat connects to sockets; Windows has a pipe")
	}
	if _, err := exec.LookPath("socat"); err != nil {
		t.Skip("socat is not installed")
	}
	version, err := exec.Command("socat", "-V").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	ends := []string{"-"}
	if strings.Contains(string(version), "#define WITH_READLINE") {
		ends = append(ends, "READLINE")
	}
	h := newHome(t)
	h.gladhand("daemon", "start")
	for _, end := range ends {
		paste(t, h, end)
	}
}

func paste(t *testing.T, h *home, end string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	socket := filepath.Join(h.data, "daemon.sock")
	cmd := h.start(ctx, "socat", end, "UNIX-CONNECT:"+socket)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, checker := bufio.NewReader(out), acptest.New(0)
	var answer struct {
		ID     int
		Error  json.RawMessage
		Result struct {
			gladhand.StatusResult
			ProtocolVersion int
		}
	}
	for i, frame := range []string{
		`{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1},"id":1}`,
		`{"jsonrpc":"2.0","method":"status","params":{},"id":2}`,
	} {
		checker.Check(t, acptest.Client, []byte(frame))
		if _, err := io.WriteString(in, frame+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		for err == nil && strings.TrimSpace(line) == frame { // READLINE's echo
			line, err = lines.ReadString('\n')
		}
		if err != nil {
			t.Fatalf("after %s: %v", frame, err)
		}
		checker.Check(t, acptest.Agent, []byte(line))
		if err := json.Unmarshal([]byte(line), &answer); err != nil || answer.ID != i+1 || answer.Error != nil {
			t.Fatalf("%s was answered %s (%v)", frame, line, err)
		}
	}
	if answer.Result.ProtocolVersion != 1 || answer.Result.Endpoint != socket || answer.Result.Store != "ok" || answer.Result.Clients < 1 {
		t.Errorf("the answers were %+v", answer.Result)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("socat %s: %v", end, err)
	}
}
