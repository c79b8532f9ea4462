package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"gladhand"
	"gladhand/acp"
	"gladhand/acp/acptest"
)

// people are a turn with somebody there.
type people struct {
	plan   []PlanEntry
	form   json.RawMessage
	answer json.RawMessage
	reason string
}

func (p *people) Plan(_ context.Context, entries []PlanEntry) error {
	p.plan = entries
	return nil
}

func (p *people) Elicit(_ context.Context, form json.RawMessage) (json.RawMessage, string, error) {
	p.form = form
	return p.answer, p.reason, nil
}

func TestUpdatePlan(t *testing.T) {
	e, p := testEnv(t), &people{}
	entry := map[string]any{"content": "look"}
	if _, err := e.prepare(t, "update_plan", map[string]any{"entries": []any{entry}}); err == nil {
		t.Error("a plan was shown to nobody")
	}
	e.Turn = p
	r := e.must(t, "update_plan", map[string]any{"entries": []any{entry, map[string]any{"content": "do", "status": "completed", "priority": "high"}}})
	if r.Text != "The plan is shown: 1 of 2 done." || len(p.plan) != 2 || p.plan[0] != (PlanEntry{"look", "medium", "pending"}) {
		t.Errorf("%q, %+v", r.Text, p.plan)
	}
	working := map[string]any{"content": "do", "status": "in_progress"}
	if r := e.must(t, "update_plan", map[string]any{"entries": []any{working, working}}); !strings.Contains(r.Text, "2 steps are in progress") || len(p.plan) != 2 {
		t.Errorf("%q", r.Text) // it is advice, not an error
	}
	full := make([]any, maxPlan)
	for i := range full {
		full[i] = entry
	}
	e.must(t, "update_plan", map[string]any{"entries": full})
	e.must(t, "update_plan", map[string]any{"entries": []any{map[string]any{"content": strings.Repeat("x", maxPlanEntry)}}})
	for _, bad := range []any{
		append(full, entry),
		[]any{map[string]any{"content": ""}},
		[]any{map[string]any{"content": "x", "status": "cancelled"}},
		[]any{map[string]any{"content": "x", "priority": "urgent"}},
		[]any{map[string]any{"content": strings.Repeat("x", maxPlanEntry+1)}},
	} {
		if _, err := e.prepare(t, "update_plan", map[string]any{"entries": bad}); err == nil {
			t.Errorf("%.60v was accepted", bad)
		}
	}
}

func TestAskUser(t *testing.T) {
	e, p := testEnv(t), &people{answer: json.RawMessage(`{"answer":"blue"}`)}
	if _, err := e.prepare(t, "ask_user", map[string]any{"question": "Which?"}); err == nil {
		t.Error("nobody was asked")
	}
	e.Turn = p
	r := e.must(t, "ask_user", map[string]any{"question": "Which?", "options": []string{"red", "blue"}})
	if r.Text != "blue" || r.Failed {
		t.Errorf("%+v", r)
	}
	const want = `{"message":"Which?","mode":"form","requestedSchema":{"properties":{"answer":{"enum":["red","blue"],"title":"Answer","type":"string"}},"required":["answer"],"type":"object"}}`
	if string(p.form) != want {
		t.Errorf("the form is %s", p.form)
	}
	for answer, want := range map[string]string{
		`{"answer":"green"}`: "green", `{"answer":" "}`: "The answer is empty.",
		`{"answer":3}`: `The answer is not of the form that was asked for: {"answer":3}`, `{}`: "The answer is not of the form that was asked for: {}",
		`{"answer":"red","more":1}`: "red",
	} {
		p.answer = json.RawMessage(answer)
		if r := e.must(t, "ask_user", map[string]any{"question": "Which?", "options": []string{"red", "blue"}}); r.Text != want || r.Failed {
			t.Errorf("%s: %+v", answer, r)
		}
	}
	p.answer = json.RawMessage(`{"answer":"whatever\nI like"}`)
	if r := e.must(t, "ask_user", map[string]any{"question": "Which?"}); r.Text != "whatever\nI like" {
		t.Errorf("%+v", r)
	}
	// The protocol's own schemas judge the form.
	for v := 1; v <= 2; v++ {
		for _, a := range []askUserArgs{{Question: "Which?"}, {Question: "W\"ch?\n", Options: []string{"red", "blü\"e"}}} {
			k := acptest.New(v)
			params := acp.ElicitationParams(gladhand.Ask{ID: "a", Session: "s1", Elicitation: a.form()})
			k.Check(t, acptest.Agent, []byte(`{"jsonrpc":"2.0","id":"gh-1","method":"elicitation/create","params":`+string(params)+`}`))
			k.Check(t, acptest.Client, []byte(`{"jsonrpc":"2.0","id":"gh-1","result":{"action":"accept","content":{"answer":"red"}}}`))
		}
	}
	p.answer, p.reason = nil, "Nobody is there who could answer."
	if r, err := e.do(t, "ask_user", map[string]any{"question": "Which?"}); err != nil || !r.Failed || r.Text != p.reason {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []map[string]any{
		{"question": " "},
		{"question": "x", "options": []string{"a"}},
		{"question": "x", "options": []string{"a", "a"}},
		{"question": "x", "options": []string{"a", ""}},
		{"question": strings.Repeat("x", maxQuestion+1)},
		{"question": "x", "options": make([]string, maxOptions+1)},
	} {
		if _, err := e.prepare(t, "ask_user", bad); err == nil {
			t.Errorf("%.60v was accepted", bad)
		}
	}
}
