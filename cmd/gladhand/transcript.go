package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"gladhand"
	"gladhand/acp"
	"gladhand/client"
)

// transcript prints a session as Markdown: who said what, and what was done.
func (a *app) transcript(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
	r, err := c.Show(ctx, id)
	if err != nil {
		return err
	}
	a.print("# %s\n", oneLine(or(r.Snapshot.Session.Title, string(id))))
	m := markdown{a: a, calls: map[string]*callLog{}}
	err = eachUpdate(ctx, c, r.Snapshot.Session.ID, func(u client.Update) bool {
		m.add(u)
		return true
	})
	m.flush()
	return err
}

// markdown collects what belongs together, since messages and tool calls come
// in pieces.
type markdown struct {
	a     *app
	of    string // the message that text is of
	who   string
	text  strings.Builder
	calls map[string]*callLog
}

// callLog is what became of a tool call.
type callLog struct {
	Title   string          `json:"title"`
	Status  string          `json:"status"`
	Content json.RawMessage `json:"content"`
}

func (m *markdown) add(u client.Update) {
	switch u.Tag {
	case acp.TagUserChunk:
		who := "user"
		if u.Meta.By != nil {
			who = u.Meta.By.Display()
		}
		m.piece(u, who)
	case acp.TagAgentChunk:
		m.piece(u, "agent")
	case acp.TagToolCall, acp.TagToolCallUpdate:
		m.call(u)
	case gladhand.TagTurnEnd:
		m.flush()
		var v gladhand.TurnUpdate
		if u.Decode(&v) == nil {
			if text := turnEnd(v); text != "" {
				m.a.print("*%s*\n", text)
			}
		}
	case gladhand.TagAnswer:
		var v gladhand.AnswerUpdate
		if u.Decode(&v) == nil {
			m.flush()
			m.a.print("*%s*\n", settledText(v, u.Meta.By))
		}
	case gladhand.TagInterrupted:
		var v gladhand.InterruptedUpdate
		if u.Decode(&v) == nil {
			m.flush()
			m.a.print("*%s*\n", oneLine(v.Text))
		}
	}
}

func (m *markdown) piece(u client.Update, who string) {
	text, of := textOf(u)
	if of != m.of || who != m.who {
		m.flush()
		m.of, m.who = of, who
	}
	m.text.WriteString(text)
}

// flush prints the message that was collected.
func (m *markdown) flush() {
	if text := strings.TrimSpace(m.text.String()); text != "" {
		m.a.print("**%s:** %s\n", oneLine(m.who), lines(text))
	}
	m.text.Reset()
	m.of = ""
}

func (m *markdown) call(u client.Update) {
	var v struct {
		ID string `json:"toolCallId"`
		callLog
	}
	if u.Decode(&v) != nil {
		return
	}
	l := m.calls[v.ID]
	if l == nil {
		l = &callLog{}
		m.calls[v.ID] = l
	}
	l.Title, l.Status = or(v.Title, l.Title), or(v.Status, l.Status)
	if v.Content != nil {
		l.Content = v.Content
	}
	if l.Status != "completed" && l.Status != "failed" {
		return
	}
	delete(m.calls, v.ID)
	m.flush()
	m.a.print("- %s (%s)\n", oneLine(or(l.Title, "a tool")), oneLine(l.Status))
	if text := strings.TrimRight(toolText(l.Content), "\n"); text != "" {
		fence := fenceFor(text)
		m.a.print("%s\n%s\n%s\n", fence, lines(text), fence)
	}
}

// fenceFor is a code fence that the text does not have.
func fenceFor(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence
}

// changes prints the changes that tool calls made to files, in their order.
func (a *app) changes(ctx context.Context, c *client.Client, id gladhand.SessionID) error {
	type change struct {
		Path string  `json:"path"`
		Old  *string `json:"oldText"`
		New  string  `json:"newText"`
	}
	type item struct {
		Type string `json:"type"`
		change
	}
	pending := map[string][]item{}
	any := false
	var failed error
	err := eachUpdate(ctx, c, id, func(u client.Update) bool {
		var v struct {
			ID      string          `json:"toolCallId"`
			Status  string          `json:"status"`
			Content json.RawMessage `json:"content"`
		}
		if u.Tag != acp.TagToolCall && u.Tag != acp.TagToolCallUpdate || u.Decode(&v) != nil {
			return true
		}
		if v.Content != nil {
			var items []item
			if json.Unmarshal(v.Content, &items) == nil {
				items = slices.DeleteFunc(items, func(it item) bool { return it.Type != "diff" })
				if len(items) > 0 {
					pending[v.ID] = items
				}
			}
		}
		switch v.Status {
		case "completed":
			for _, it := range pending[v.ID] {
				any = true
				if a.json {
					failed = a.emit(it.change)
				} else {
					a.print("%s", strings.TrimRight(unified(it.Path, it.Old, it.New), "\n"))
				}
			}
			delete(pending, v.ID)
		case "failed":
			delete(pending, v.ID)
		}
		return failed == nil
	})
	if err == nil && failed == nil && !any && !a.json {
		a.note("this session changed no files")
	}
	if err == nil {
		err = failed
	}
	return err
}
