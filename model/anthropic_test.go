package model

import (
	"encoding/json"
	"testing"
	"time"
)

func TestAdaptive(t *testing.T) {
	for id, want := range map[string]bool{
		"claude-opus-4-6": true, "claude-sonnet-4-6": true, "claude-opus-5-5": true, "claude-haiku-5": true, "claude-mythos-preview": true,
		"anthropic/claude-opus-4.7": true, "claude-opus-4-6@20260101": true, "claude-opus-5-20270101": true,
		"claude-opus-4-5-20251101": false, "claude-opus-4-20250514": false, "claude-haiku-4-5": false, "claude-3-7-sonnet-20250219": false,
		"claude-3-5-haiku-latest": false, "claude-instant": false, "claude-v2": false, "kimi-k2": false, "": false,
	} {
		if got := adaptive(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

func TestThinking(t *testing.T) {
	thought := Part{Thought: &Thought{Text: "t", State: json.RawMessage(`{"type":"thinking","thinking":"t","signature":"c2ln"}`)}}
	call := Part{Call: &Call{ID: "1", Name: "f", Args: json.RawMessage(`{}`)}}
	loop := func(parts ...Part) Request {
		r := hello()
		r.Messages = append(r.Messages, Message{Role: Assistant, Parts: parts}, Message{Role: ToolRole, Parts: []Part{{Result: &Result{ID: "1", Name: "f"}}}})
		return r
	}
	for _, c := range []struct {
		name, model, effort string
		efforts             []string
		output              int
		r                   Request
		want                string
	}{
		{"adaptive", "claude-opus-5-5", "high", []string{"low", "high"}, 0, hello(), `{"type":"adaptive","display":"summarized"} {"effort":"high"}`},
		{"adaptive by itself", "claude-opus-5-5", "", []string{"low", "high"}, 0, hello(), `{"type":"adaptive","display":"summarized"} null`},
		{"an effort it does not know", "claude-opus-5-5", "max", []string{"low", "high"}, 0, hello(), `{"type":"adaptive","display":"summarized"} null`},
		{"adaptive in the loop", "claude-opus-5-5", "high", []string{"low", "high"}, 0, loop(call), `{"type":"adaptive","display":"summarized"} {"effort":"high"}`},
		{"a model that does not think", "claude-opus-5-5", "high", nil, 0, hello(), `null null`},
		{"a budget", "claude-haiku-4-5", "high", []string{"high"}, 64_000, hello(), `{"type":"enabled","budget_tokens":20000} null`},
		{"a small budget", "claude-haiku-4-5", "high", []string{"high"}, 4000, hello(), `{"type":"enabled","budget_tokens":2000} null`},
		{"no room", "claude-haiku-4-5", "high", []string{"high"}, 2000, hello(), `null null`},
		{"none asked for", "claude-haiku-4-5", "", []string{"high"}, 64_000, hello(), `null null`},
		{"in the loop with a thought", "claude-haiku-4-5", "high", []string{"high"}, 64_000, loop(thought, call), `{"type":"enabled","budget_tokens":20000} null`},
		{"in the loop without", "claude-haiku-4-5", "high", []string{"high"}, 64_000, loop(call), `null null`},
		{"another vendor's", "kimi-k2", "low", []string{"low"}, 64_000, hello(), `{"type":"enabled","budget_tokens":4096} null`},
	} {
		a := &anthropic{Endpoint{Model: c.model, Limits: Limits{Efforts: c.efforts, Output: c.output}}}
		c.r.Effort = c.effort
		q := a.request(c.r)
		think, _ := json.Marshal(q.Thinking)
		out, _ := json.Marshal(q.Output)
		if got := string(think) + " " + string(out); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// A thought that is not shown may take as long as a reply's beginning; behind it
// silence counts again.
func TestHiddenThoughtIsNoStall(t *testing.T) {
	e := &Endpoint{Idle: time.Second, First: time.Minute}
	in := &reply{e: e}
	s := &anthropicReply{e: e, in: in, blocks: map[int]*anthropicBlock{}, yield: func(Chunk, error) bool { return true }}
	for _, c := range []struct {
		data string
		want time.Duration
	}{
		{`{"type":"message_start","message":{}}`, time.Second},
		{`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`, time.Minute},
		{`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}`, time.Minute},
		{`{"type":"content_block_stop","index":0}`, time.Second},
		{`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}`, time.Second},
	} {
		in.patience = e.Idle // as next leaves it
		var ev anthropicEvent
		if err := json.Unmarshal([]byte(c.data), &ev); err != nil {
			t.Fatal(err)
		}
		if _, err := s.event(ev.Type, &ev, []byte(c.data)); err != nil || in.patience != c.want {
			t.Errorf("%s: %v, %v", c.data, in.patience, err)
		}
	}
}

func TestBill(t *testing.T) {
	l := Limits{Window: 1000, Price: Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}
	u := l.bill(Usage{Input: 1_000_000, Output: 100_000, CacheRead: 500_000, CacheWrite: 200_000})
	if want := 0.3*3 + 0.1*15 + 0.5*0.3 + 0.2*3.75; u.Cost < want-1e-9 || u.Cost > want+1e-9 || u.Window != 1000 {
		t.Errorf("%+v, want %v", u, want)
	}
	l.Price.CacheRead, l.Price.CacheWrite = 0, 0
	if u := l.bill(Usage{Input: 1_000_000, CacheRead: 500_000}); u.Cost != 3 {
		t.Errorf("%+v", u)
	}
}

// What is left of the window bounds a reply.
func TestOutput(t *testing.T) {
	long := Request{System: string(make([]byte, 300_000))}
	for _, c := range []struct {
		l    Limits
		r    Request
		want int
	}{
		{Limits{}, long, 0},
		{Limits{Output: 5000}, long, 5000},
		{Limits{Output: 64_000, Window: 200_000}, hello(), 64_000},
		{Limits{Output: 64_000, Window: 130_000}, long, 30_000},
		{Limits{Output: 64_000, Window: 50_000}, long, 2048},
		{Limits{Output: 1000, Window: 50_000}, long, 1000},
	} {
		if got := c.l.output(c.r); got != c.want {
			t.Errorf("%+v: %d, want %d", c.l, got, c.want)
		}
	}
}
