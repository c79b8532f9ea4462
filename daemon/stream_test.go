package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
)

const pieces = 3000 // of a flood: 2 MB, far more than a stream keeps and a pipe holds

// floodText is the piece of a flood that has a number; all pieces differ.
func floodText(i int) string { return fmt.Sprintf("%05d %s;", i, strings.Repeat("x", 600)) }

// flooding emits the pieces, of two messages in turn, so that no two merge, and with
// something to look at now and then.
func flooding() agentFunc {
	return func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		for i := range pieces {
			if i%997 == 500 {
				if err := t.Emit(ctx, acp.ToolCall(acp.ToolState{ID: fmt.Sprint("t", i), Title: "A tool", Status: "completed"})); err != nil {
					return "", err
				}
			}
			if err := t.Emit(ctx, acp.MessageChunk([]string{"a", "b"}[i%2], floodText(i))); err != nil {
				return "", err
			}
		}
		return gladhand.StopEndTurn, nil
	}
}

// follower is a client that reads lines, and may stop reading for a while.
type follower struct {
	name    string
	prompts bool            // it waits for its response, too
	stops   int             // it stops reading at this piece, 0 for never …
	until   <-chan struct{} // … until this closes
	next    int             // the piece it waits for
	last    gladhand.Seq
	tools   int
	r       *bufio.Reader
}

// read reads all pieces.
func (f *follower) read() error {
	for {
		line, err := f.r.ReadBytes('\n')
		if err != nil {
			return err
		}
		var m struct {
			Method string
			Result json.RawMessage
			Params struct {
				Update struct {
					SessionUpdate string
					Content       struct{ Text string }
				}
				Meta struct{ Gladhand gladhand.UpdateMeta } `json:"_meta"`
			}
		}
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		if m.Method != acp.MethodUpdate {
			if strings.Contains(string(m.Result), `"stopReason"`) {
				return nil // the response to the prompt, behind everything
			}
			continue
		}
		u, meta := m.Params.Update, m.Params.Meta.Gladhand
		if meta.From != f.last+1 && f.last != 0 {
			return fmt.Errorf("behind number %d came %s", f.last, line)
		}
		f.last = meta.To
		switch u.SessionUpdate {
		case acp.TagToolCall, acp.TagToolCallUpdate:
			f.tools++
		case acp.TagAgentChunk:
			if u.Content.Text != floodText(f.next) {
				return fmt.Errorf("in place of piece %d came %.120s", f.next, line)
			}
			if f.next++; f.next == f.stops {
				<-f.until
			}
			if f.next == pieces && !f.prompts {
				return nil
			}
		}
	}
}

// Readers of every kind, some of them so slow that what is kept for all has gone
// on without them, get every piece once, in order, with no number missing.
func TestReadersShareWhatIsRead(t *testing.T) {
	h := newHouse(t, flooding())
	id := h.connect(1, human("maker")).newSession(h.cwd)
	first := make(chan struct{})
	var list []*follower
	var conns []io.Closer
	join := func(name, hello, attach string, stops int) io.ReadWriteCloser {
		ours, theirs := rpc.Pipe()
		served := make(chan struct{})
		go func() { defer close(served); h.Serve(context.Background(), theirs, human(name)) }()
		t.Cleanup(func() { ours.Close(); <-served })
		f := &follower{name: name, prompts: name == "prompter", stops: stops, until: first, r: bufio.NewReader(ours)}
		for i, line := range []string{hello, attach} {
			if _, err := fmt.Fprintf(ours, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", i, line); err != nil {
				t.Fatal(err)
			}
			for { // what is shown before the answer does not matter here
				answer, err := f.r.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(answer, `"error"`) {
					t.Fatal(answer)
				}
				if strings.Contains(answer, fmt.Sprintf(`"id":%d`, i)) {
					break
				}
			}
		}
		list, conns = append(list, f), append(conns, ours)
		return ours
	}
	v1 := `"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"v1","version":"0"},"clientCapabilities":{}}`
	v2 := `"method":"initialize","params":{"protocolVersion":2,"info":{"name":"v2","version":"0"},"capabilities":{}}`
	own := fmt.Sprintf(`"method":"_gladhand/attach","params":{"sessionId":%q,"after":-1}`, id)
	load := fmt.Sprintf(`"method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, id, h.cwd)
	resume := fmt.Sprintf(`"method":"session/resume","params":{"sessionId":%q,"cwd":%q}`, id, h.cwd)
	join("fast", v1, own, 0)
	for i := range 3 {
		join(fmt.Sprint("own ", i), v1, own, 0)
		join(fmt.Sprint("slow own ", i), v1, own, 1+i*500)
		join(fmt.Sprint("slow v2 ", i), v2, resume, 100+i*200)
	}
	join("v2", v2, resume, 0)
	join("slow v1", v1, load, 700)
	prompter := join("prompter", v1, load, 0)
	if _, err := fmt.Fprintf(prompter, `{"jsonrpc":"2.0","id":9,"method":"session/prompt","params":%s}`+"\n", promptParams(id, "go")); err != nil {
		t.Fatal(err)
	}
	type result struct {
		f   *follower
		err error
	}
	done := make(chan result)
	for _, f := range list {
		go func() { done <- result{f, f.read()} }()
	}
	for range list {
		r := <-done
		if r.f.name == "fast" || r.err != nil {
			select {
			case <-first:
			default:
				close(first)
			}
		}
		if r.err != nil {
			t.Errorf("%s: %v", r.f.name, r.err)
			for _, c := range conns { // or the others wait for what was lost
				c.Close()
			}
		} else if r.f.next != pieces || r.f.tools != pieces/997 {
			t.Errorf("%s got %d of %d pieces and %d of %d tools", r.f.name, r.f.next, pieces, r.f.tools, pieces/997)
		}
	}
	h.streams.mu.Lock()
	defer h.streams.mu.Unlock()
	for _, list := range h.streams.open {
		for _, st := range list {
			st.mu.Lock()
			if st.bytes > 2*streamKept {
				t.Errorf("a stream keeps %d bytes", st.bytes)
			}
			st.mu.Unlock()
		}
	}
}
