package agent

import (
	"context"
	"encoding/json"

	"gladhand"
	"gladhand/acp"
	"gladhand/tool"
)

// Plan implements [tool.Turn].
func (r *run) Plan(ctx context.Context, entries []tool.PlanEntry) error {
	list := make([]acp.PlanEntry, len(entries))
	for i, e := range entries {
		list[i] = acp.PlanEntry(e)
	}
	return r.emit(ctx, acp.Plan(list))
}

// Elicit implements [tool.Turn].
func (r *run) Elicit(ctx context.Context, form json.RawMessage) (answer json.RawMessage, reason string, err error) {
	var f struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(form, &f); err != nil {
		return nil, "", err
	}
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	v, err := r.t.Ask(ctx, gladhand.Ask{Title: f.Message, Elicitation: form})
	switch {
	case err != nil:
		return nil, "", err
	case v.Settled == gladhand.SettledCancelled:
		return nil, "", errCancelled
	case v.Allowed() && len(v.Answer.Content) > 0:
		return v.Answer.Content, "", nil
	case v.Settled == gladhand.SettledExpired:
		return nil, "Nobody answered in time.", nil
	case v.Settled == gladhand.SettledDenied:
		return nil, "Nobody is there who could answer.", nil
	case v.Answer.Reason != "":
		return nil, "The person did not answer: " + v.Answer.Reason, nil
	}
	return nil, "The person chose not to answer.", nil
}
