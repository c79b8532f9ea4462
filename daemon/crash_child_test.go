//go:build unix

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/proc"
	"gladhand/session"
)

// roleEnv makes this test binary a daemon of the data directory it names, so
// that there is one to kill.
const roleEnv = "GLADHAND_CRASH_DAEMON"

// effectsName is the file, in the workspace, to which the scripted agent's tool
// appends the id of its prompt: one line an effect.
const effectsName = "effects.txt"

func TestMain(m *testing.M) {
	if dir := os.Getenv(roleEnv); dir != "" {
		os.Exit(crashDaemon(dir))
	}
	code := m.Run()
	if builtBinary.dir != "" {
		_ = os.RemoveAll(builtBinary.dir)
	}
	os.Exit(code)
}

// crashDaemon is a daemon as `gladhand daemon` runs it, with a scripted agent.
func crashDaemon(dir string) int {
	go func() { // whoever started us is gone: so are we
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(9)
	}()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	place, err := proc.Locate(dir, "", func(string) string { return "" })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	err = Run(ctx, Options{
		Place: place, Config: filepath.Join(dir, "config.jsonc"), Version: "test",
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		NewAgent: func(_ context.Context, in gladhand.SessionInfo) (session.Agent, error) {
			return agentFunc(scripted), nil
		},
		Models: session.Fixed{{ID: "scripted"}}, Agents: []string{"gladhand"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// The points of a scripted turn at which "die at …" in a prompt kills the daemon.
var steps = []string{"begin", "text", "pending", "started", "effect", "completed", "end"}

// scripted does what the prompt's first word says: "work" is text, a tool call
// with one effect, text; "ask" is the same, when it is allowed; "hold" goes on
// until it is cancelled; "say" is text alone.
func scripted(ctx context.Context, t gladhand.Turn) (gladhand.StopReason, error) {
	p := t.Prompt()
	var blocks []struct{ Text string }
	if err := json.Unmarshal(p.Content, &blocks); err != nil {
		return "", err
	}
	a := &actor{ctx: ctx, t: t, id: string(p.ID), text: blocks[0].Text}
	a.at("begin")
	word, _, _ := strings.Cut(a.text, " ")
	switch word {
	case "say":
		a.say("one ", "two ", "three ")
	case "hold":
		a.say("holding ", "on ", "for ever.")
		if a.err == nil {
			<-ctx.Done()
		}
		return gladhand.StopCancelled, nil
	default:
		a.work(word == "ask")
	}
	a.at("end")
	if gladhand.CodeOf(a.err) == gladhand.CodeCancelled || errors.Is(a.err, context.Canceled) {
		return gladhand.StopCancelled, nil
	}
	return gladhand.StopEndTurn, a.err
}

// actor plays one turn; after its first error it does nothing more.
type actor struct {
	ctx      context.Context
	t        gladhand.Turn
	id, text string
	err      error
}

func (a *actor) at(step string) {
	if strings.Contains(a.text, "die at "+step+".") {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (a *actor) emit(update json.RawMessage) {
	if a.err == nil {
		a.err = a.t.Emit(a.ctx, update)
	}
}

func (a *actor) say(words ...string) {
	for _, w := range words {
		a.emit(acp.MessageChunk("m-"+a.id, w))
	}
}

func (a *actor) work(ask bool) {
	a.say("I ", "shall ", "do ", a.id, ". ")
	a.at("text")
	call := acp.ToolState{ID: "t-" + a.id, Title: "Append a line", Kind: "execute", Status: "pending"}
	a.emit(acp.ToolCall(call))
	a.at("pending")
	if ask && a.err == nil && !a.allowed(call) {
		return
	}
	a.emit(acp.ToolUpdate(acp.ToolState{ID: call.ID, Status: "in_progress"}))
	a.at("started")
	if a.err != nil {
		return
	}
	a.err = effect(filepath.Join(a.t.Info().Cwd, effectsName), a.id)
	a.at("effect")
	a.emit(acp.ToolUpdate(acp.ToolState{ID: call.ID, Status: "completed", Content: []json.RawMessage{acp.ContentText("appended")}}))
	a.at("completed")
	a.say("Done ", "with ", a.id, ".")
}

// allowed asks, and ends the call when the answer is no.
func (a *actor) allowed(call acp.ToolState) bool {
	v, err := a.t.Ask(a.ctx, gladhand.Ask{
		Title: "Append?", ToolCall: acp.AskedToolCall(call), Digest: "d-" + a.id,
		Options: []gladhand.Option{
			{ID: "yes", Name: "Allow", Kind: gladhand.AllowOnce},
			{ID: "no", Name: "Deny", Kind: gladhand.RejectOnce},
		},
	})
	a.err = err
	if err == nil && !v.Allowed() {
		a.emit(acp.ToolUpdate(acp.ToolState{ID: call.ID, Status: "failed"}))
	}
	return err == nil && v.Allowed()
}

func effect(path, id string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(id + "\n")
	return errors.Join(err, f.Close())
}
