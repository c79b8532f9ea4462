package model

import (
	"errors"
	"slices"
	"strings"
)

// maxPlan is how many steps a plan has at most.
const maxPlan = 50

// planEntry is one of update_plan's.
type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// planPrefix takes what begins a plan off a text; do says that it is carried out
// too.
func planPrefix(text string) (rest string, do, ok bool) {
	if len(text) < 4 {
		return "", false, false
	}
	for _, p := range []struct {
		words string
		do    bool
	}{
		{"plan and do", true},
		{"plan, then do", true},
		{"plan then do", true},
		{"plan and carry out", true},
		{"make a plan and do it", true},
		{"make a plan and do", true},
		{"make a plan and carry it out", true},
		{"make a plan and follow it", true},
		{"make a plan", false},
		{"make me a plan", false},
		{"write a plan", false},
		{"write me a plan", false},
		{"create a plan", false},
		{"update the plan", false},
		{"plan", false},
		{"plna", false},
		{"paln", false},
		{"pland", false},
	} {
		rest, found := cutFold(text, p.words)
		if !found || rest != "" && !strings.ContainsAny(rest[:1], " :\n") {
			continue
		}
		rest = strings.TrimLeft(rest, " :")
		for _, to := range []string{"to ", "for ", "how to ", "with the steps ", "with "} {
			rest = strings.TrimLeft(strings.TrimPrefix(rest, to), " :")
		}
		return rest, p.do, true
	}
	return "", false, false
}

func parsePlan(clause string) step {
	rest, do, _ := planPrefix(clause)
	items := planItems(rest, do)
	switch {
	case len(items) == 0:
		return says("Tell me the steps: “plan: read go.mod; run go test ./...”. With “plan and do: …” I carry them out too.")
	case len(items) > maxPlan:
		return says("That is a plan of %d steps; I keep at most %d.", len(items), maxPlan)
	case !do:
		return func(c *chat) error {
			if err := c.plan(items, 0, false); err != nil {
				return err
			}
			return c.say("The plan has %s. “plan and do: …” has me carry one out.", count(len(items), "step", "steps"))
		}
	}
	steps, unclear := planSteps(items)
	if unclear != "" {
		return says("I do not know how to do “%s”, so I began nothing; “help” says what I know.", begin(unclear))
	}
	return func(c *chat) error {
		for i, s := range steps {
			if err := c.plan(items, i, true); err != nil {
				return err
			}
			c.failed = false
			err := s(c)
			switch {
			case err == nil && c.failed && i+1 < len(steps):
				err = c.drop("So I stopped here: %d of %d steps are done.", i, len(items))
			case err == nil && c.failed:
				err = errDrop
			}
			if errors.Is(err, errDrop) { // what failed is still to do
				return errors.Join(c.plan(items, i, false), errDrop)
			}
			if err != nil {
				return err
			}
		}
		if err := c.plan(items, len(items), false); err != nil {
			return err
		}
		return c.say("All %s of the plan are done.", count(len(items), "step", "steps"))
	}
}

// planSteps are the steps of a plan's items, or the first request that is not
// understood.
func planSteps(items []string) (steps []step, unclear string) {
	var clauses []string
	var ends []int
	for _, it := range items {
		clauses = append(clauses, split(tidy(it))...)
		ends = append(ends, len(clauses))
	}
	all := stepsOf(clauses)
	if i := slices.IndexFunc(all, func(s step) bool { return s == nil }); i >= 0 {
		return nil, clauses[i]
	}
	from := 0
	for _, end := range ends {
		part := all[from:end]
		steps = append(steps, func(c *chat) error {
			for _, s := range part {
				if err := s(c); err != nil || c.failed {
					return err
				}
			}
			return nil
		})
		from = end
	}
	return steps, ""
}

// plan shows the plan with the first done steps done, and the next one begun.
func (c *chat) plan(items []string, done int, begun bool) error {
	entries := make([]planEntry, len(items))
	for i, it := range items {
		entries[i] = planEntry{Content: capitalize(it), Priority: "medium", Status: "pending"}
		if i < done {
			entries[i].Status = "completed"
		} else if i == done && begun {
			entries[i].Status = "in_progress"
		}
	}
	r, err := c.call("update_plan", map[string]any{"entries": entries})
	if err != nil {
		return err
	}
	if r.Failed {
		return c.refused("set the plan", r)
	}
	return nil
}

// planItems are the steps that a plan lists: lines, between semicolons, or one
// request after the other.
func planItems(text string, do bool) []string {
	var parts []string
	switch {
	case strings.Contains(text, "\n"):
		for line := range strings.Lines(text) {
			line = strings.TrimLeft(strings.TrimSpace(line), "-*•")
			if word, rest := cutWord(line); strings.TrimLeft(word, "0123456789") == "." || strings.TrimLeft(word, "0123456789") == ")" {
				line = rest
			}
			parts = append(parts, line)
		}
	case strings.Contains(text, ";"):
		for rest, more := text, true; more; {
			var part string
			part, rest, more = cutOutside(rest, ";", false)
			parts = append(parts, part)
		}
	default:
		if parts = split(tidy(text)); len(parts) == 1 && !do {
			parts = strings.Split(text, ", ")
		}
	}
	var items []string
	for _, p := range parts {
		if p = tidyClause(p); p != "" {
			items = append(items, p)
		}
	}
	return items
}

func capitalize(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return string(s[0]-32) + s[1:]
}

// question is what people are asked.
type question struct {
	text    string
	options []string
	noun    string // what the answer is called afterwards, "answer" for one without a name
}

// questionIn reads "ask me …".
func questionIn(clause string) (q question, ok bool) {
	rest, found := cutFold(tidy(clause), "ask ")
	who := skip(rest, "me", "us", "the user", "the person", "people")
	if !found || who == rest {
		return q, false
	}
	q.noun = "answer"
	rest = who
	for _, p := range []string{"for ", "about ", "to give ", "to type ", "to enter "} {
		if what, is := cutFold(rest, p); is {
			thing := skip(what, "a", "an", "the", "my", "your", "another", "new")
			thing, list, _ := cutOutside(thing, ":", false)
			if thing = unquote(thing); thing == "" {
				return q, false
			}
			q.noun, q.options = thing, optionsOf(list)
			q.text = "Which " + thing + "?"
			return q, true
		}
	}
	for _, p := range []string{"whether ", "if "} {
		if what, is := cutFold(rest, p); is && what != "" {
			q.text, q.options = capitalize(strings.TrimRight(what, "?"))+"?", []string{"yes", "no"}
			return q, true
		}
	}
	for _, p := range []string{"to choose between ", "to choose from ", "to choose ", "to pick ", "to choose one of "} {
		if what, is := cutFold(rest, p); is {
			q.text, q.options = "Which one?", optionsOf(what)
			return q, len(q.options) > 1
		}
	}
	text, list, colon := cutOutside(strings.TrimLeft(rest, ": "), ":", false)
	if colon {
		q.options = optionsOf(list)
	}
	if text = unquote(text); text == "" {
		return q, false
	}
	q.text = capitalize(strings.TrimRight(text, "?")) + "?"
	if word, what := cutWord(text); strings.EqualFold(word, "which") || strings.EqualFold(word, "what") {
		if noun, _ := cutWord(strings.TrimRight(what, "?")); noun != "" {
			q.noun = strings.ToLower(noun)
		}
	}
	return q, true
}

// optionsOf are the choices in "red, green or blue".
func optionsOf(list string) []string {
	var out []string
	for part := range strings.SplitSeq(strings.NewReplacer(" or ", ",", " and ", ",", ";", ",").Replace(list), ",") {
		if part = unquote(strings.Trim(part, " ?.")); part != "" && !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

func parseQuestion(clause string) step {
	q, ok := questionIn(clause)
	if !ok {
		return nil
	}
	args := map[string]any{"question": q.text}
	if q.options != nil {
		args["options"] = q.options
	}
	return func(c *chat) error {
		r, err := c.call("ask_user", args)
		if err != nil {
			return err
		}
		if answer := strings.TrimRight(r.Text, "\n"); !r.Failed && answer != "" {
			c.answer = answer
			return c.say("You said %s.", tick(begin(answer)))
		}
		if strings.HasPrefix(r.Text, "The person") || strings.HasPrefix(r.Text, "Nobody") {
			return c.drop("I have no answer. %s", strings.TrimSpace(r.Text))
		}
		return c.refused("ask that", r)
	}
}

// cutAnswer cuts a clause around the word that stands for an answer: "it", "the
// answer", or what was asked for.
func cutAnswer(clause, noun string) (before, after string, ok bool) {
	for _, word := range []string{"the " + noun, "that " + noun, "this " + noun, "the answer", "my answer", "it", "that"} {
		text := " " + clause + " "
		if i := strings.Index(strings.ToLower(text), " "+strings.ToLower(word)+" "); i >= 0 && len(strings.ToLower(text)) == len(text) {
			return strings.TrimSpace(text[:i]), strings.TrimSpace(text[i+len(word)+2:]), true
		}
	}
	return "", "", false
}

// withAnswer is the step of a clause with the answer put in, as quoted text: what
// people answer is never read as a request.
func withAnswer(before, after string, quiet bool) step {
	return func(c *chat) error {
		for _, quote := range []string{`"`, "`", "'"} {
			if strings.Contains(c.answer, quote) {
				continue
			}
			clause := strings.TrimSpace(before + " " + quote + c.answer + quote + " " + after)
			if s := parseClause(clause, quiet); s != nil {
				return s(c)
			}
			return leftOut([]string{clause})(c)
		}
		return c.drop("I cannot put an answer with all three sorts of quotes into a request.")
	}
}
