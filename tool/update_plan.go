package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"gladhand"
)

// Limits of a plan.
const (
	maxPlan      = 50   // steps
	maxPlanEntry = 1000 // bytes of one
)

//go:embed update_plan.md
var updatePlanText string

//go:embed update_plan.json
var updatePlanSchema []byte

type updatePlan struct{}

type updatePlanArgs struct {
	Entries []PlanEntry `json:"entries"`
}

func (updatePlan) Spec() Spec {
	return Spec{Name: "update_plan", Description: updatePlanText, Schema: updatePlanSchema, Kind: "think"}
}

func (updatePlan) Title(json.RawMessage) string { return "Update the plan" }

func (t updatePlan) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	var a updatePlanArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if len(a.Entries) > maxPlan {
		return nil, fmt.Errorf("a plan has at most %d entries, and this has %d", maxPlan, len(a.Entries))
	}
	done, now := 0, 0
	for i := range a.Entries {
		e := &a.Entries[i]
		if err := checkEntry(e, i); err != nil {
			return nil, err
		}
		switch e.Status {
		case "completed":
			done++
		case "in_progress":
			now++
		}
	}
	if env.Turn == nil {
		return nil, errNoTurn
	}
	return &Call{
		Title:  t.Title(args),
		Action: gladhand.Action{Tool: "update_plan", Effect: gladhand.EffectNone},
		Digest: func() (string, error) { return digest("update_plan", string(args)), nil },
		Run: func(ctx context.Context, _ *Output) (Result, error) {
			if err := env.Turn.Plan(ctx, a.Entries); err != nil {
				return Result{}, err
			}
			text := fmt.Sprintf("The plan is shown: %d of %d done.", done, len(a.Entries))
			if now > 1 {
				text += fmt.Sprintf(" %d steps are in progress; people can follow best when it is one.", now)
			}
			return Result{Text: text}, nil
		},
	}, nil
}

// errNoTurn says that a tool needs people, and there are none.
var errNoTurn = errors.New("this is not possible here: nobody sees it")

func checkEntry(e *PlanEntry, i int) error {
	if e.Priority == "" {
		e.Priority = "medium"
	}
	if e.Status == "" {
		e.Status = "pending"
	}
	switch {
	case e.Content == "":
		return fmt.Errorf("entries[%d].content is missing", i)
	case len(e.Content) > maxPlanEntry:
		return fmt.Errorf("entries[%d].content is over %d bytes", i, maxPlanEntry)
	case e.Priority != "high" && e.Priority != "medium" && e.Priority != "low":
		return fmt.Errorf("entries[%d].priority is high, medium or low, not %q", i, e.Priority)
	case e.Status != "pending" && e.Status != "in_progress" && e.Status != "completed":
		return fmt.Errorf("entries[%d].status is pending, in_progress or completed, not %q", i, e.Status)
	}
	return nil
}
