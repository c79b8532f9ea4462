package client

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"gladhand"
	"gladhand/rpc"
)

func TestHello(t *testing.T) {
	f := newFake(t, nil)
	c := f.client(Options{Label: "zed", Version: "v9"})
	h := c.Handshake()
	if h.PID != 7 || h.ClientID != "c1" || h.Name != "ana" || h.Rights != gladhand.Observe {
		t.Errorf("handshake %+v", h)
	}
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	sent := gladhand.Errorf(gladhand.CodeQueueFull, gladhand.ReasonQueueFull, "16 prompts wait").With("limit", 16)
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodSend: func(_ *fake, _ *rpc.Conn, r *rpc.Request) { r.Fail(sent) },
	})
	_, err := f.client(Options{}).Send(t.Context(), gladhand.SendParams{SessionID: "s1", Prompt: json.RawMessage(`[]`)})
	var e *gladhand.Error
	if !errors.As(err, &e) || e.Code != sent.Code || e.Reason != sent.Reason || e.Message != sent.Message || e.Data["limit"] != 16.0 {
		t.Errorf("got %#v", err)
	}
}

// R211: a prompt whose answer was lost is sent again under the same id.
func TestSendIsRepeatedUnderItsID(t *testing.T) {
	var ids []gladhand.PromptID
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodSend: func(_ *fake, c *rpc.Conn, r *rpc.Request) {
			ids = append(ids, params[gladhand.SendParams](t, r).PromptID)
			if len(ids) < 3 {
				c.Close()
				return
			}
			r.Reply(gladhand.Receipt{Prompt: ids[0], State: gladhand.PromptStored, Seq: 4})
		},
	})
	r, err := f.client(Options{}).Send(t.Context(), gladhand.SendParams{SessionID: "s1", Prompt: json.RawMessage(`[]`)})
	if err != nil || r.Seq != 4 {
		t.Fatalf("%v %v", r, err)
	}
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[1] || ids[1] != ids[2] {
		t.Errorf("ids %v", ids)
	}
}

func TestWhatIsNotSafeToRepeatIsNotRepeated(t *testing.T) {
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodKill: func(_ *fake, c *rpc.Conn, _ *rpc.Request) { c.Close() },
	})
	c := f.client(Options{})
	if err := c.Kill(t.Context(), "s1"); gladhand.ReasonOf(err) != gladhand.ReasonUnavailable {
		t.Errorf("got %v", err)
	}
	if n := f.count(gladhand.MethodKill); n != 1 {
		t.Errorf("called %d times", n)
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	started := make(chan struct{})
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodStatus: func(*fake, *rpc.Conn, *rpc.Request) { close(started) },
	})
	c := f.client(Options{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	if _, err := c.Status(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The daemon may ask an ACP client things; we answer through calls of our own.
func TestRequestsOfTheDaemonAreRefused(t *testing.T) {
	f := newFake(t, nil)
	f.client(Options{})
	err := f.last().Call(t.Context(), "session/request_permission", struct{}{}, nil)
	var e *rpc.Error
	if !errors.As(err, &e) || e.Code != rpc.CodeNoMethod {
		t.Errorf("got %v", err)
	}
}

func TestClosedClient(t *testing.T) {
	f := newFake(t, map[string]func(*fake, *rpc.Conn, *rpc.Request){
		gladhand.MethodAttach: logged(t, 0, func() int { return 1 }),
	})
	c := f.client(Options{})
	a, err := c.Attach(t.Context(), gladhand.AttachParams{SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan error, 1)
	go func() { _, err := a.Next(context.Background()); next <- err }()
	c.Close()
	if err := <-next; gladhand.ReasonOf(err) != gladhand.ReasonUnavailable {
		t.Errorf("Next: %v", err)
	}
	if _, err := c.Status(t.Context()); gladhand.ReasonOf(err) != gladhand.ReasonUnavailable {
		t.Errorf("Status: %v", err)
	}
}

func TestTagOf(t *testing.T) {
	for in, want := range map[string]string{
		`{"sessionUpdate":"plan","entries":[]}`:      "plan",
		`{"entries":[],"sessionUpdate":"plan"}`:      "plan",
		`{ "sessionUpdate" : "plan" }`:               "plan",
		`{"sessionUpdate":"pl\u0061n"}`:              "plan",
		`{"x":{"sessionUpdate":"no"}}`:               "",
		`{"sessionUpdate":7}`:                        "",
		`{"sessionUpdate":"_gladhand_ask","a":"\""}`: "_gladhand_ask",
	} {
		if got := tagOf(json.RawMessage(in)); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}
