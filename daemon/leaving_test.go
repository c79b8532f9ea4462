package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/acp/acptest"
	"gladhand/rpc"
)

// lockedBuffer is a log that goroutines may write at once.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// broken is a connection whose other end is not there any more, as a write finds
// out first.
type broken struct {
	io.ReadWriteCloser
	gone *atomic.Bool
}

func (b broken) Write(p []byte) (int, error) {
	if b.gone.Load() {
		return 0, syscall.EPIPE
	}
	return b.ReadWriteCloser.Write(p)
}

// dialBroken is dial over a connection that breaks.
func (h *house) dialBroken(who gladhand.Identity, gone *atomic.Bool) *peer {
	h.t.Helper()
	ours, theirs := rpc.Pipe()
	p := &peer{t: h.t, version: 1, rwc: ours, checker: acptest.New(1)}
	p.cond = sync.NewCond(&p.mu)
	served := make(chan struct{})
	go func() { defer close(served); h.Serve(context.Background(), broken{theirs, gone}, who) }()
	go p.read()
	h.t.Cleanup(func() { ours.Close(); <-served })
	return p
}

// A client that goes away while much is written to it, with a prompt unanswered,
// is nothing that the log should call an error.
func TestLeavingIsNoError(t *testing.T) {
	left := make(chan struct{})
	h := newHouse(t, func(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
		for i := range 200 {
			if i == 20 {
				<-left
			}
			if err := t.Emit(ctx, acp.MessageChunk("m-"+string(t.Prompt().ID), fmt.Sprint(i, " "))); err != nil {
				return "", err
			}
		}
		return gladhand.StopEndTurn, nil
	})
	var log lockedBuffer
	h.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for range 20 {
		var gone atomic.Bool
		ana := h.dialBroken(human("ana"), &gone)
		ana.call("initialize", `{"protocolVersion":1,"clientCapabilities":{}}`)
		bo := h.connect(2, human("bo"))
		id := ana.newSession(h.cwd)
		bo.load(id, h.cwd)
		ana.send("session/prompt", promptParams(id, "go"))
		ana.update(acp.TagAgentChunk, 0)
		gone.Store(true)
		left <- struct{}{}
		bo.find("the end", 0, func(m message) bool { return bytes.Contains(m.Params, []byte(`"end_turn"`)) })
	}
	if s := log.String(); s != "" {
		t.Errorf("the log says\n%s", s)
	}
}
