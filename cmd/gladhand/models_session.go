package main

import (
	"errors"
	"strings"

	"gladhand"
	"gladhand/model"
	"gladhand/session"
)

// The most models that a session offers to choose from: a provider may have
// hundreds. Every other one can still be chosen by its name.
const (
	choicesEach = 30
	choicesMost = 100
)

// choices are the models of a registry as sessions choose from them. It implements
// [session.Models], and does not wait.
type choices struct{ *model.Registry }

// Choices implements [session.Models].
func (c choices) Choices() []session.Choice {
	start := c.Default()
	first := session.Choice{ID: start, Name: start} // the settings may name one that is not there
	var list []session.Choice
	each := map[string]int{}
	for _, m := range c.Models() {
		switch {
		case m.ID == start:
			first = choice(m)
		case !m.Ready, m.NoTools, m.ID != offlineModel && (each[m.Provider] >= choicesEach || len(list) >= choicesMost):
		default:
			each[m.Provider]++
			list = append(list, choice(m))
		}
	}
	return append([]session.Choice{first}, list...)
}

func choice(m model.Info) session.Choice {
	if m.ID == offlineModel {
		return session.Choice{ID: m.ID, Name: m.Name, Description: "Inside the binary: plain requests, no key and no network"}
	}
	var about []string
	if n := tokenCount(m.Limits.Window); n != "" {
		about = append(about, n+" tokens")
	}
	if p := priceText(m.Limits.Price); p != "" {
		about = append(about, p)
	}
	return session.Choice{ID: m.ID, Name: m.Name, Description: strings.Join(about, "; ")}
}

// Efforts implements [session.Models].
func (c choices) Efforts(id string) []string {
	for _, m := range c.Models() {
		if m.ID == id {
			return m.Limits.Efforts
		}
	}
	return nil
}

// Find implements [session.Models].
func (c choices) Find(name string) (string, error) {
	id, err := c.Registry.Find(name)
	return id, modelError(name, err)
}

// modelError is why a model cannot be chosen, as it crosses the wire.
func modelError(name string, err error) error {
	var fault *model.Error
	if !errors.As(err, &fault) {
		return err
	}
	text := fault.Text
	if fault.Mend != "" {
		text += ". " + fault.Mend
	}
	if fault.Kind == model.KindModel {
		return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "no model %q: %s", name, text)
	}
	return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonUnavailable, "model %q: %s", name, text).With("kind", fault.Kind)
}
