package tool

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gladhand"
)

// Limits of a question.
const (
	maxQuestion = 4 << 10 // bytes
	maxOptions  = 20
	maxOption   = 200 // bytes
	maxAnswer   = 64 << 10
)

//go:embed ask_user.md
var askUserText string

//go:embed ask_user.json
var askUserSchema []byte

type askUser struct{}

type askUserArgs struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

func (askUser) Spec() Spec {
	return Spec{Name: "ask_user", Description: askUserText, Schema: askUserSchema, Kind: "other"}
}

func (askUser) Title(args json.RawMessage) string {
	var a askUserArgs
	peek(args, &a)
	return "Ask: " + oneLine(a.Question, 100)
}

func (t askUser) Prepare(_ context.Context, env *Env, args json.RawMessage) (*Call, error) {
	var a askUserArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	if env.Turn == nil {
		return nil, errNoTurn
	}
	return &Call{
		Title:  t.Title(args),
		Action: gladhand.Action{Tool: "ask_user", Effect: gladhand.EffectNone},
		Digest: func() (string, error) { return digest("ask_user", string(args)), nil },
		Run: func(ctx context.Context, _ *Output) (Result, error) {
			content, reason, err := env.Turn.Elicit(ctx, a.form())
			if err != nil {
				return Result{}, err
			}
			return answered(content, reason), nil
		},
	}, nil
}

// answered is what the model is told. A client may send anything.
func answered(content json.RawMessage, reason string) Result {
	if len(content) == 0 {
		return Result{Text: cmp.Or(reason, "There was no answer."), Failed: true}
	}
	var answer struct {
		Answer *string `json:"answer"`
	}
	switch err := json.Unmarshal(content, &answer); {
	case err != nil || answer.Answer == nil: // no field of ours
		return Result{Text: "The answer is not of the form that was asked for: " + Cut(clean(content), maxAnswer)}
	case strings.TrimSpace(*answer.Answer) == "":
		return Result{Text: "The answer is empty."}
	}
	// It may be none of the options, where a client lets people write what they like.
	return Result{Text: Cut(clean([]byte(*answer.Answer)), maxAnswer)}
}

func (a *askUserArgs) check() error {
	switch {
	case strings.TrimSpace(a.Question) == "":
		return errors.New(`argument "question" is missing`)
	case len(a.Question) > maxQuestion:
		return fmt.Errorf("the question is over %d bytes", maxQuestion)
	case len(a.Options) == 1 || len(a.Options) > maxOptions:
		return fmt.Errorf("give 2 to %d options, or none for a free answer", maxOptions)
	}
	for i, o := range a.Options {
		if o == "" || len(o) > maxOption || slices.Contains(a.Options[:i], o) {
			return fmt.Errorf("options[%d] is empty, over %d bytes or there twice", i, maxOption)
		}
	}
	return nil
}

// form is ACP's elicitation/create with one field.
func (a *askUserArgs) form() json.RawMessage {
	field := map[string]any{"type": "string", "title": "Answer"}
	if len(a.Options) > 0 {
		field["enum"] = a.Options
	}
	form, err := json.Marshal(map[string]any{
		"mode": "form", "message": a.Question,
		"requestedSchema": map[string]any{
			"type": "object", "properties": map[string]any{"answer": field}, "required": []string{"answer"},
		},
	})
	if err != nil {
		panic(err) // of strings alone
	}
	return form
}
