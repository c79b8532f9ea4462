package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gladhand"
	"gladhand/client"
)

// readTime is how long a question stands before an answer that allows something
// counts: a key that was hit for something else must not allow what nobody read.
// Denying counts at once.
const readTime = 500 * time.Millisecond

// prompter puts a session's open questions on the screen, one after the other,
// and takes the answers that are typed. It is used by one goroutine.
type prompter struct {
	s *screen
	// answer sends an answer; it must not wait.
	answer func(gladhand.Ask, gladhand.AnswerParams)
	// flush drops what was typed and not yet read.
	flush func()
	// canAnswer is false when there is nobody to ask: questions are only shown.
	canAnswer bool

	open    []gladhand.Ask // the first is the one that is asked
	shownAt time.Time
	told    map[gladhand.AskID]bool // answered from here
}

func newPrompter(s *screen, canAnswer bool, flush func()) *prompter {
	return &prompter{s: s, canAnswer: canAnswer, flush: flush, told: map[gladhand.AskID]bool{}}
}

// asking reports whether the next line typed is an answer.
func (p *prompter) asking() bool { return p.canAnswer && len(p.open) > 0 }

// reset takes what a snapshot says is open; what is new is asked.
func (p *prompter) reset(asks []gladhand.Ask) {
	was := p.open
	p.open = slices.DeleteFunc(slices.Clone(p.open), func(a gladhand.Ask) bool { return !has(asks, a.ID) })
	if len(was) > 0 && (len(p.open) == 0 || p.open[0].ID != was[0].ID) {
		p.s.line(p.s.st.dim("(that question is settled)"))
		p.ask()
	}
	for _, a := range asks {
		p.add(a)
	}
}

func has(asks []gladhand.Ask, id gladhand.AskID) bool {
	return slices.ContainsFunc(asks, func(a gladhand.Ask) bool { return a.ID == id })
}

// add notes an open question, and asks it when it is the only one.
func (p *prompter) add(a gladhand.Ask) {
	if has(p.open, a.ID) {
		return
	}
	p.open = append(p.open, a)
	if len(p.open) == 1 {
		p.ask()
	}
}

// ask puts the first open question.
func (p *prompter) ask() {
	if len(p.open) == 0 {
		return
	}
	a := p.open[0]
	for i, line := range askText(a) {
		if i == 0 {
			line = p.s.st.ask("? ") + p.s.st.bold(line)
		}
		p.s.line(line)
	}
	if !p.canAnswer {
		return
	}
	if p.flush != nil {
		p.flush()
	}
	p.s.line(keysText(a))
	p.shownAt = time.Now()
}

// settled clears a question that was settled, here or elsewhere.
func (p *prompter) settled(u client.Update) {
	var v gladhand.AnswerUpdate
	if u.Decode(&v) != nil {
		return
	}
	i := slices.IndexFunc(p.open, func(a gladhand.Ask) bool { return a.ID == v.AskID })
	if i < 0 {
		return
	}
	p.open = slices.Delete(p.open, i, i+1)
	if !p.told[v.AskID] || v.Settled != gladhand.SettledAnswered {
		p.s.line(p.s.st.dim("(" + settledText(v, u.Meta.By) + ")"))
	}
	if i == 0 {
		p.ask()
	}
}

// settledText says how a question ended.
func settledText(v gladhand.AnswerUpdate, by *gladhand.Identity) string {
	who := ""
	if by != nil {
		who = " by " + oneLine(by.Display())
	}
	what := "denied"
	switch {
	case len(v.Content) > 0:
		what = oneLine(string(v.Content))
	case allows(v.OptionKind):
		what = "allowed"
	}
	why := ""
	if v.Reason != "" {
		why = ": " + oneLine(v.Reason)
	}
	switch v.Settled {
	case gladhand.SettledAnswered:
		return "answered" + who + ": " + what + why
	case gladhand.SettledByRule:
		return "allowed by what was always allowed" + who
	case gladhand.SettledCancelled:
		return "withdrawn" + why
	case gladhand.SettledExpired:
		return "denied: nobody answered in time"
	}
	return "denied" + who + why
}

func allows(k gladhand.OptionKind) bool { return k == gladhand.AllowOnce || k == gladhand.AllowAlways }

// typed takes a line that was typed while a question was open.
func (p *prompter) typed(l typedLine) {
	a := p.open[0]
	if f, ok := formOf(a); ok {
		content, ok := f.fill(l.text)
		if !ok {
			p.s.line(f.hint())
			return
		}
		p.told[a.ID] = true
		p.answer(a, gladhand.AnswerParams{SessionID: a.Session, AskID: a.ID, Content: content, Digest: a.Digest})
		return
	}
	opt, reason, ok := choose(a, l.text)
	if !ok {
		p.s.line("type one of: " + keysText(a))
		return
	}
	if allows(opt.Kind) && l.at.Sub(p.shownAt) < readTime {
		p.s.line("that was typed before the question could be read, and does not count; " + keysText(a))
		return
	}
	p.told[a.ID] = true
	p.answer(a, gladhand.AnswerParams{SessionID: a.Session, AskID: a.ID, OptionID: opt.ID, Reason: reason, Digest: a.Digest})
}

// keys are what one types for the kinds of option.
var keys = map[gladhand.OptionKind]string{
	gladhand.AllowOnce: "y", gladhand.AllowAlways: "a", gladhand.RejectOnce: "n", gladhand.RejectAlways: "never",
}

// keysText lists what may be typed: "[y] Allow  [n] Deny".
func keysText(a gladhand.Ask) string {
	if f, ok := formOf(a); ok {
		return f.hint()
	}
	var parts []string
	seen := map[string]bool{}
	for _, o := range a.Options {
		key := keys[o.Kind]
		if key == "" || seen[key] {
			key = o.ID
		}
		seen[key] = true
		parts = append(parts, "["+oneLine(key)+"] "+oneLine(o.Name))
	}
	return strings.Join(parts, "  ")
}

// choose finds the option that a line names: a key, a word, or an option's id.
// What follows a denial is its reason.
func choose(a gladhand.Ask, text string) (opt gladhand.Option, reason string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	for _, o := range a.Options {
		if o.ID == word {
			return o, deny(o, rest), rest == "" || !allows(o.Kind)
		}
	}
	var kind gladhand.OptionKind
	switch strings.ToLower(strings.TrimRight(word, ",.:;!")) {
	case "y", "yes", "allow", "ok":
		kind = gladhand.AllowOnce
	case "a", "always":
		kind = gladhand.AllowAlways
	case "n", "no", "deny":
		kind = gladhand.RejectOnce
	case "never":
		kind = gladhand.RejectAlways
	default:
		return opt, "", false
	}
	if allows(kind) && rest != "" {
		return opt, "", false // "yes but …" is no yes
	}
	for _, o := range a.Options {
		if o.Kind == kind {
			return o, deny(o, rest), true
		}
	}
	return opt, "", false
}

func deny(o gladhand.Option, rest string) string {
	if allows(o.Kind) {
		return ""
	}
	return strings.TrimSpace(rest)
}

// askText is a question as people see it: what is about to happen, in full, on
// lines of its own.
func askText(a gladhand.Ask) []string {
	text := []string{cut(oneLine(a.Title), 200)}
	if f, ok := formOf(a); ok {
		return append(text, f.text()...)
	}
	var v struct {
		Kind    string          `json:"kind"`
		Input   json.RawMessage `json:"rawInput"`
		Content []struct {
			Type    string  `json:"type"`
			Path    string  `json:"path"`
			OldText *string `json:"oldText"`
			NewText string  `json:"newText"`
		} `json:"content"`
		Locations []struct {
			Path string `json:"path"`
		} `json:"locations"`
	}
	if json.Unmarshal(a.ToolCall, &v) != nil {
		return text
	}
	var in struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(v.Input, &in) == nil && in.Command != "" {
		text = append(text, "    $ "+oneLine(in.Command))
	}
	diffs := 0
	for _, c := range v.Content {
		if c.Type == "diff" {
			diffs++
			text = append(text, shortDiff(c.Path, c.OldText, c.NewText)...)
		}
	}
	if diffs == 0 && in.Command == "" {
		for _, l := range v.Locations {
			text = append(text, "    "+oneLine(l.Path))
		}
	}
	return text
}

// answerWith returns a prompter's answer func: it sends in the background, and
// says what came of it through say.
func answerWith(ctx context.Context, c *client.Client, say func(string)) func(gladhand.Ask, gladhand.AnswerParams) {
	return func(_ gladhand.Ask, p gladhand.AnswerParams) {
		go func() {
			r, err := c.Answer(ctx, p)
			switch {
			case err != nil:
				say("the answer was not taken: " + oneLine(err.Error()))
			case r.Status == gladhand.AnswerAlready && r.By != nil:
				say("somebody was faster: " + oneLine(r.By.Display()))
			case r.Status == gladhand.AnswerAlready, r.Status == gladhand.AnswerExpired, r.Status == gladhand.AnswerUnknown:
				say("too late: that question is settled")
			}
		}()
	}
}
