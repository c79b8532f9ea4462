package daemon

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
)

func TestInitializeFirst(t *testing.T) {
	h := newHouse(t, hello)
	p := h.dial(1, human("ana"))
	if err := p.fails("status", `{}`); err.Code != int(gladhand.CodeInitializeFirst) {
		t.Fatalf("before initialize: %v", err)
	}
	if err := p.fails("initialize", `{"protocolVersion":0}`); err.Code != int(gladhand.CodeVersion) || !strings.Contains(string(err.Data), `"supported":[1,2]`) {
		t.Fatalf("version 0: %v %s", err, err.Data)
	}
	var res struct {
		Meta struct {
			Gladhand gladhand.HandshakeMeta `json:"gladhand"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(p.call("initialize", `{"protocolVersion":1}`), &res); err != nil {
		t.Fatal(err)
	}
	m := res.Meta.Gladhand
	if m.Rights != gladhand.Owner || m.Name != "ana" || m.ClientID == "" || len(m.Methods) < 30 {
		t.Fatalf("handshake %+v", m)
	}
	p.call("status", `{}`)
}

// Every row of the table answers, on either version, with something other than
// an internal error, whatever the parameters.
func TestEveryMethodAnswers(t *testing.T) {
	for version := 1; version <= 2; version++ {
		h := newHouse(t, hello)
		p := h.connect(version, human("ana"))
		id := p.newSession(h.cwd)
		for _, name := range methodNames(version) {
			if name == gladhand.MethodStop {
				continue
			}
			for _, params := range []string{`{}`, `{"sessionId":"nobody"}`, fmt.Sprintf(`{"sessionId":%q}`, id), `[]`} {
				p.mu.Lock()
				p.next++
				rid := fmt.Sprint(p.next)
				p.mu.Unlock()
				// By hand: these frames are wrong on purpose, the schemas would say so.
				fmt.Fprintf(p.rwc, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`+"\n", rid, name, params)
				m, _ := p.response(rid)
				if m.Error != nil && m.Error.Code == int(gladhand.CodeInternal) {
					t.Errorf("%s %s: %v", name, params, m.Error)
				}
			}
			if name == acp.MethodSessionDelete || name == gladhand.MethodKill || name == acp.MethodSessionClose {
				id = p.newSession(h.cwd)
			}
		}
	}
}

// R002, R004: everything of a turn stands before the response that ends it.
func TestUpdatesStandBeforeTheResponse(t *testing.T) {
	h := newHouse(t, hello)
	p := h.connect(1, human("ana"))
	id := p.newSession(h.cwd)
	for range 20 {
		from := p.count()
		m, at := p.response(p.send("session/prompt", promptParams(id, "hi")))
		if m.Error != nil || string(m.Result) != `{"stopReason":"end_turn"}` {
			t.Fatalf("the prompt's response: %s %v", m.Result, m.Error)
		}
		text := ""
		for _, m := range p.all()[from:at] {
			if tagOf(m) == acp.TagAgentChunk {
				text += chunkText(t, m)
			}
			if tagOf(m) == acp.TagUserChunk {
				t.Fatal("a v1 sender got its own prompt back")
			}
		}
		if text != "hello from here" {
			t.Fatalf("before the response there was %q", text)
		}
	}
}

func chunkText(t *testing.T, m message) string {
	var v struct {
		Update struct {
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"update"`
	}
	if err := json.Unmarshal(m.Params, &v); err != nil {
		t.Fatal(err)
	}
	return v.Update.Content.Text
}

// v2: the response means inserted, the end is a state.
func TestPromptOnV2(t *testing.T) {
	h := newHouse(t, hello)
	p := h.connect(2, human("ana"))
	id := p.newSession(h.cwd)
	m, _ := p.response(p.send("session/prompt", promptParams(id, "hi")))
	var res struct {
		MessageID string `json:"messageId"`
	}
	if err := json.Unmarshal(m.Result, &res); err != nil || res.MessageID == "" {
		t.Fatalf("the prompt's response: %s %v", m.Result, m.Error)
	}
	user, _ := p.update(acp.TagUserChunk, 0)
	if !strings.Contains(string(user.Params), res.MessageID) {
		t.Fatalf("the message is %s, the response says %s", user.Params, res.MessageID)
	}
	_, at := p.update(acp.TagAgentChunk, 0)
	p.find("idle", at, func(m message) bool {
		return tagOf(m) == "state_update" && strings.Contains(string(m.Params), `"idle"`)
	})
}

// A second client sees the first one's prompt and the answer, live and when it
// loads later, on either version.
func TestSecondClient(t *testing.T) {
	h := newHouse(t, hello)
	ana := h.connect(1, human("ana"))
	id := ana.newSession(h.cwd)
	bo := h.connect(1, human("bo"))
	bo.load(id, h.cwd)
	v2 := h.connect(2, human("cy"))
	v2.load(id, h.cwd)
	ana.call("session/prompt", promptParams(id, "hi"))
	for _, p := range []*peer{bo, v2} {
		m, at := p.update(acp.TagUserChunk, 0)
		if chunkText(t, m) != "hi" || !strings.Contains(string(m.Params), `"name":"ana"`) {
			t.Fatalf("the prompt reached another client as %s", m.Params)
		}
		text := ""
		for !strings.HasSuffix(text, "here") {
			m, at = p.update(acp.TagAgentChunk, at+1)
			text += chunkText(t, m)
		}
		if text != "hello from here" {
			t.Fatalf("the answer reached another client as %q", text)
		}
	}
	late := h.connect(1, human("di"))
	late.load(id, h.cwd)
	text := ""
	for _, m := range late.all() {
		if tagOf(m) == acp.TagAgentChunk {
			text += chunkText(t, m)
		}
	}
	if text != "hello from here" {
		t.Fatalf("before the load's response there was %q", text)
	}
}

func TestAskIsAnsweredOnceAndClearedEverywhere(t *testing.T) {
	effects := make(chan string, 10)
	h := newHouse(t, asking(effects))
	ana := h.connect(1, human("ana"))
	id := ana.newSession(h.cwd)
	bo := h.connect(2, human("bo"))
	bo.load(id, h.cwd)
	cli := h.connect(1, human("cy"))
	cli.call(gladhand.MethodAttach, fmt.Sprintf(`{"sessionId":%q,"after":0}`, id))
	prompt := ana.send("session/prompt", promptParams(id, "hi"))
	a, _ := ana.request("session/request_permission", 0)
	b, _ := bo.request("session/request_permission", 0)
	u, _ := cli.update(gladhand.TagAsk, 0)
	var ask struct{ Update gladhand.AskUpdate }
	if err := json.Unmarshal(u.Params, &ask); err != nil {
		t.Fatal(err)
	}
	late := h.connect(1, human("di"))
	late.load(id, h.cwd)
	l, _ := late.request("session/request_permission", 0)

	bo.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, b.ID))
	<-effects
	for _, w := range []struct {
		p  *peer
		id json.RawMessage
	}{{ana, a.ID}, {late, l.ID}} {
		w.p.find("the withdrawal", 0, func(m message) bool {
			return m.Method == "$/cancel_request" && strings.Contains(string(m.Params), string(w.id))
		})
		w.p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"no"}}}`, w.id)) // late, harmless
	}
	ended, _ := cli.update(gladhand.TagAnswer, 0)
	if !strings.Contains(string(ended.Params), `"name":"bo"`) {
		t.Fatalf("the answer's event is %s", ended.Params)
	}
	res := cli.call(gladhand.MethodAnswer, fmt.Sprintf(`{"sessionId":%q,"askId":%q,"optionId":"no"}`, id, ask.Update.ID))
	if !strings.Contains(string(res), `"already_answered"`) || !strings.Contains(string(res), `"bo"`) {
		t.Fatalf("a late answer was told %s", res)
	}
	if m, _ := ana.response(prompt); m.Error != nil {
		t.Fatal(m.Error)
	}
	if len(effects) != 0 {
		t.Fatal("a second effect")
	}
}

// A client that cannot or will not answer only withdraws itself; from the last
// one it denies. R029.
func TestDismissingClients(t *testing.T) {
	effects := make(chan string, 10)
	h := newHouse(t, asking(effects))
	ana := h.connect(1, human("ana"))
	id := ana.newSession(h.cwd)
	bo := h.connect(1, human("bo"))
	bo.load(id, h.cwd)
	prompt := ana.send("session/prompt", promptParams(id, "hi"))
	a, _ := ana.request("session/request_permission", 0)
	b, _ := bo.request("session/request_permission", 0)
	ana.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, a.ID))
	if asks := bo.call(gladhand.MethodAsks, `{}`); !strings.Contains(string(asks), `"askId"`) {
		t.Fatalf("the ask is gone with its first client: %s", asks)
	}
	bo.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"cancelled"}}}`, b.ID))
	if m, _ := ana.response(prompt); string(m.Result) != `{"stopReason":"end_turn"}` {
		t.Fatalf("the prompt: %s %v", m.Result, m.Error)
	}
	if len(effects) != 0 {
		t.Fatal("the effect happened though nobody allowed it")
	}
}

// A connection's end detaches: the turn goes on, and its ask waits for others.
func TestLeavingInMidTurn(t *testing.T) {
	effects := make(chan string, 10)
	h := newHouse(t, asking(effects))
	ana := h.connect(1, human("ana"))
	id := ana.newSession(h.cwd)
	ana.send("session/prompt", promptParams(id, "hi"))
	ana.request("session/request_permission", 0)
	ana.rwc.Close()
	bo := h.connect(1, human("bo"))
	bo.load(id, h.cwd)
	b, _ := bo.request("session/request_permission", 0)
	bo.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, b.ID))
	<-effects
	bo.call("session/resume", fmt.Sprintf(`{"sessionId":%q,"cwd":%q}`, id, h.cwd))
}

// session/cancel reaches the turn of its session alone, and the prompt's answer
// says cancelled.
func TestCancelReachesOneSession(t *testing.T) {
	effects := make(chan string, 10)
	h := newHouse(t, asking(effects))
	p := h.connect(1, human("ana"))
	one, two := p.newSession(h.cwd), p.newSession(h.cwd)
	p1 := p.send("session/prompt", promptParams(one, "hi"))
	p2 := p.send("session/prompt", promptParams(two, "hi"))
	ask := func(id string) message {
		m, _ := p.find("an ask in "+id, 0, func(m message) bool {
			return m.Method == "session/request_permission" && strings.Contains(string(m.Params), id)
		})
		return m
	}
	ask(one)
	second := ask(two)
	p.notify("session/cancel", fmt.Sprintf(`{"sessionId":%q}`, one))
	if m, _ := p.response(p1); string(m.Result) != `{"stopReason":"cancelled"}` {
		t.Fatalf("the cancelled prompt: %s %v", m.Result, m.Error)
	}
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`, second.ID))
	if m, _ := p.response(p2); string(m.Result) != `{"stopReason":"end_turn"}` {
		t.Fatalf("the other session's prompt: %s %v", m.Result, m.Error)
	}
	if got := <-effects; len(effects) != 0 || !strings.HasPrefix(got, "t-") {
		t.Fatal("more than one effect")
	}
}

// $/cancel_request of a prompt is a cancel of that prompt.
func TestCancelRequestOfAPrompt(t *testing.T) {
	h := newHouse(t, asking(make(chan string, 1)))
	p := h.connect(1, human("ana"))
	id := p.newSession(h.cwd)
	first := p.send("session/prompt", promptParams(id, "hi"))
	p.request("session/request_permission", 0)
	second := p.send("session/prompt", promptParams(id, "hi"))
	p.call(gladhand.MethodQueueList, fmt.Sprintf(`{"sessionId":%q}`, id))
	p.notify("$/cancel_request", fmt.Sprintf(`{"requestId":%s}`, second))
	if m, _ := p.response(second); string(m.Result) != `{"stopReason":"cancelled"}` {
		t.Fatalf("the waiting prompt: %s %v", m.Result, m.Error)
	}
	p.notify("$/cancel_request", fmt.Sprintf(`{"requestId":%s}`, first))
	if m, _ := p.response(first); string(m.Result) != `{"stopReason":"cancelled"}` {
		t.Fatalf("the running prompt: %s %v", m.Result, m.Error)
	}
}

func TestCloseKillDelete(t *testing.T) {
	h := newHouse(t, hello)
	p := h.connect(1, human("ana"))
	one, two, three := p.newSession(h.cwd), p.newSession(h.cwd), p.newSession(h.cwd)
	for _, id := range []string{one, two, three} {
		p.call("session/prompt", promptParams(id, "hi"))
	}
	p.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, one))
	p.call("session/kill", fmt.Sprintf(`{"sessionId":%q}`, two))
	p.call("session/delete", fmt.Sprintf(`{"sessionId":%q}`, three))
	p.load(one, h.cwd)
	p.call("session/prompt", promptParams(one, "again"))
	if err := p.fails("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, two, h.cwd)); !strings.Contains(string(err.Data), `"gone"`) {
		t.Fatalf("loading a killed session: %v %s", err, err.Data)
	}
	if err := p.fails("session/load", fmt.Sprintf(`{"sessionId":%q,"cwd":%q,"mcpServers":[]}`, three, h.cwd)); err.Code != int(gladhand.CodeNotFound) {
		t.Fatalf("loading a deleted session: %v", err)
	}
	if res := p.call(gladhand.MethodEvents, fmt.Sprintf(`{"sessionId":%q,"after":0}`, two)); !strings.Contains(string(res), "hello") {
		t.Fatalf("a killed session's history: %s", res)
	}
}

// A client of ours is told why nothing more comes, behind the last update.
func TestGone(t *testing.T) {
	h := newHouse(t, hello)
	ana, bo := h.connect(1, human("ana")), h.connect(1, human("bo"))
	id := ana.newSession(h.cwd)
	bo.call(gladhand.MethodAttach, fmt.Sprintf(`{"sessionId":%q}`, id))
	ana.call("session/prompt", promptParams(id, "hi"))
	ana.call("session/kill", fmt.Sprintf(`{"sessionId":%q}`, id))
	_, at := bo.update(gladhand.TagTurnEnd, 0)
	m, _ := bo.find("the end", at, func(m message) bool { return m.Method == gladhand.MethodGone })
	if !strings.Contains(string(m.Params), `"reason":"gone"`) || !strings.Contains(string(m.Params), "killed") {
		t.Fatalf("told %s", m.Params)
	}
}

// Closing with others attached only detaches the caller.
func TestCloseWithOthersAttached(t *testing.T) {
	h := newHouse(t, hello)
	ana := h.connect(1, human("ana"))
	id := ana.newSession(h.cwd)
	bo := h.connect(1, human("bo"))
	bo.load(id, h.cwd)
	if res := ana.call("session/close", fmt.Sprintf(`{"sessionId":%q}`, id)); !strings.Contains(string(res), `"detached":true`) {
		t.Fatalf("close: %s", res)
	}
	bo.call("session/prompt", promptParams(id, "hi"))
	if err := ana.fails("session/prompt", promptParams(id, "hi")); err.Code != int(gladhand.CodeUnowned) {
		t.Fatalf("prompting after close: %v", err)
	}
}

// _gladhand/attach: cursors, spans without gap or repeat, and errors.
func TestAttachIsACursor(t *testing.T) {
	h := newHouse(t, hello)
	ana := h.connect(1, human("ana"))
	id := ana.newSession(h.cwd)
	for range 3 {
		ana.call("session/prompt", promptParams(id, "hi"))
	}
	whole := h.connect(1, human("bo"))
	whole.call(gladhand.MethodAttach, fmt.Sprintf(`{"sessionId":%q}`, id))
	whole.find("the third end", 0, func(m message) bool {
		return tagOf(m) == gladhand.TagTurnEnd && strings.Contains(string(m.Params), `"turn":3`)
	})
	at := gladhand.Seq(0)
	for _, m := range whole.all() {
		if m.Method != "session/update" {
			continue
		}
		u := metaOf(t, m)
		if u.From != at+1 || u.To < u.From {
			t.Fatalf("%d..%d behind %d", u.From, u.To, at)
		}
		at = u.To
	}
	err := whole.fails(gladhand.MethodAttach, fmt.Sprintf(`{"sessionId":%q,"after":100000}`, id))
	if err.Code != int(gladhand.CodeInvalidParams) {
		t.Fatalf("a cursor beyond the log: %v", err)
	}
	part := h.connect(2, human("cy"))
	part.call(gladhand.MethodAttach, fmt.Sprintf(`{"sessionId":%q,"after":%d}`, id, at-2))
	m, _ := part.find("an update", 0, func(m message) bool { return m.Method == "session/update" })
	if u := metaOf(t, m); u.From != at-1 {
		t.Fatalf("behind %d came %d", at-2, u.From)
	}
}

func metaOf(t *testing.T, m message) gladhand.UpdateMeta {
	t.Helper()
	var v struct {
		Meta struct {
			Gladhand gladhand.UpdateMeta `json:"gladhand"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &v); err != nil {
		t.Fatal(err)
	}
	return v.Meta.Gladhand
}
