package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
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
