package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
)

// An editor that goes away in mid-turn, in whichever order its pipes end, leaves
// no complaint behind: gladhand acp ends quietly, and the turn goes on.
func TestEditorLeaves(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, first := range []string{"input", "output"} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := h.start(ctx, binary, "acp")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
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
		lines := bufio.NewReader(out)
		until := func(part string) string {
			t.Helper()
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Fatalf("waiting for %s: %v", part, err)
				}
				if strings.Contains(line, part) {
					return line
				}
			}
		}
		write := func(format string, args ...any) {
			t.Helper()
			if _, err := fmt.Fprintf(in, format+"\n", args...); err != nil {
				t.Fatal(err)
			}
		}
		write(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"protocolVersion":1,"clientCapabilities":{}}}`, acp.MethodInitialize)
		write(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{"cwd":%q,"mcpServers":[]}}`, acp.MethodSessionNew, h.cwd)
		_, id, _ := strings.Cut(until(`"sessionId"`), `"sessionId":"`)
		id, _, _ = strings.Cut(id, `"`)
		write(`{"jsonrpc":"2.0","id":3,"method":%q,"params":{"sessionId":%q,"prompt":[{"type":"text","text":"count to 500 slowly"}]}}`, acp.MethodSessionPrompt, id)
		until(`" 3"`)
		ends := map[string]io.Closer{"input": in, "output": out}
		if err := ends[first].Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
			t.Errorf("after its %s ended, gladhand acp said %v: %s", first, err, stderr.String())
		}
		await(t, "the session has no client and goes on", func() bool {
			for _, s := range h.sessions() {
				if string(s.ID) == id {
					return s.State == gladhand.StateRunning && s.Clients == 0
				}
			}
			return false
		})
		h.gladhand("cancel", id)
	}
}
