package daemon

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"gladhand"
	"gladhand/rpc"
)

// A client that asks for many pages before it reads any gets them all, made when
// there is room for them: neither memory nor the connection is lost over it.
func TestPagesWaitForTheirReader(t *testing.T) {
	const pages, size = 100, 256 << 10
	h := newHouse(t, func(context.Context, gladhand.Turn) (gladhand.StopReason, error) {
		return gladhand.StopEndTurn, nil
	})
	p := h.connect(1, human("ana"))
	s := p.newSession(h.cwd)
	p.call("_gladhand/attach", fmt.Sprintf(`{"sessionId":%q}`, s))
	p.call("_gladhand/send", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, s, strings.Repeat("x", size)))
	p.update(gladhand.TagTurnEnd, 0)

	ours, theirs := rpc.Pipe()
	served := make(chan struct{})
	go func() { defer close(served); h.Serve(context.Background(), theirs, human("bo")) }()
	defer func() { ours.Close(); <-served }()
	var ask strings.Builder
	ask.WriteString(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":1}}` + "\n")
	for i := range pages {
		fmt.Fprintf(&ask, `{"jsonrpc":"2.0","id":%d,"method":"_gladhand/events","params":{"sessionId":%q}}`+"\n", i, s)
	}
	if _, err := io.WriteString(ours, ask.String()); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(ours)
	for got := 0; got <= pages; got++ {
		line, err := r.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%d of %d pages, then %v", got-1, pages, err)
		}
		if bytes.Contains(line[:min(len(line), 100)], []byte(`"error"`)) {
			t.Fatalf("page %d: %s", got, line)
		}
	}
}
