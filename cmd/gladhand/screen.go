package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"gladhand"
	"gladhand/acp"
	"gladhand/client"
)

// screen writes a session's updates as lines of text, in the order they come. It
// is used by one goroutine.
type screen struct {
	out  io.Writer // what the agent says
	note io.Writer // everything beside it
	same bool      // both are seen in one place
	st   style
	// verbose shows thoughts, tool output, and clients that come and go.
	verbose bool
	// own are the prompts that were typed here: they stand on the screen already.
	own map[gladhand.PromptID]bool

	// marker is printed when the screen waits for input; "" for none.
	marker string
	atMark bool

	mid   bool   // out is in the middle of a line
	msg   string // the message that it is the middle, or end, of
	tools map[string]*toolLine
}

// toolLine is what is known of a tool call.
type toolLine struct {
	Title  string `json:"title"`
	Kind   string `json:"kind"`
	Status string `json:"status"`
	begun  bool
}

func newScreen(a *app, both bool) *screen {
	s := &screen{out: a.out, note: a.err, verbose: a.verbose, st: styleFor(a.err), own: map[gladhand.PromptID]bool{}, tools: map[string]*toolLine{}}
	if both {
		s.note, s.same, s.st = a.out, true, styleFor(a.out)
	} else {
		s.same = isTerminal(a.out) && isTerminal(a.err)
	}
	return s
}

// show writes one update of the session. Questions, and what ends a turn, are
// the caller's.
func (s *screen) show(u client.Update) {
	switch u.Tag {
	case acp.TagAgentChunk:
		text, of := textOf(u)
		s.text(text, of)
	case acp.TagThoughtChunk:
		if text, _ := textOf(u); s.verbose && text != "" {
			s.line(s.st.dim(indent(lines(text), "  ")))
		}
	case acp.TagUserChunk:
		s.user(u)
	case acp.TagToolCall, acp.TagToolCallUpdate:
		s.tool(u)
	case acp.TagPlan:
		s.plan(u)
	case acp.TagCurrentMode:
		var v struct {
			Mode string `json:"currentModeId"`
		}
		if u.Decode(&v) == nil {
			s.line(s.st.dim("mode: " + oneLine(v.Mode)))
		}
	case acp.TagCompaction:
		s.compaction(u)
	case gladhand.TagClient:
		s.client(u)
	case gladhand.TagQueue:
		var v gladhand.QueueUpdate
		if u.Decode(&v) == nil {
			s.line(s.st.dim("the queue was " + oneLine(v.State) + by(u)))
		}
	case gladhand.TagPrompt:
		s.prompt(u)
	case gladhand.TagInterrupted:
		var v gladhand.InterruptedUpdate
		if u.Decode(&v) == nil {
			s.line(s.st.red(oneLine(v.Text)))
		}
	case acp.TagNotice:
		var v struct{ Title, Description string }
		if u.Decode(&v) == nil {
			s.line(oneLine(strings.TrimSpace(v.Title + " " + v.Description)))
		}
	}
}

// compaction tells that the model is given less of the session from here on.
func (s *screen) compaction(u client.Update) {
	var v struct{ Status, Error string }
	if u.Decode(&v) != nil {
		return
	}
	switch v.Status {
	case "completed":
		s.line(s.st.dim("the context was shortened; the session's history is whole"))
	case "failed":
		s.line(s.st.red("the context could not be shortened: " + oneLine(v.Error)))
	}
}

// text goes on with a message, or begins one.
func (s *screen) text(text, of string) {
	if text == "" {
		return
	}
	s.clearMark()
	if of != s.msg && s.mid {
		s.put("\n")
	}
	s.msg = of
	s.put(lines(text))
}

func (s *screen) put(text string) {
	_, _ = io.WriteString(s.out, text) // nobody is left to be told
	s.mid = !strings.HasSuffix(text, "\n")
}

// line writes a line beside the text.
func (s *screen) line(text string) {
	s.clearMark()
	if s.mid && s.same {
		s.put("\n")
	}
	_, _ = io.WriteString(s.note, text+"\n")
}

// end finishes the text's last line.
func (s *screen) end() {
	if s.mid {
		s.put("\n")
	}
}

// mark shows that input is waited for.
func (s *screen) mark() {
	if s.marker != "" && !s.atMark {
		s.end()
		_, _ = io.WriteString(s.out, s.marker)
		s.atMark = true
	}
}

// clearMark takes the marker away; what was typed behind it stays typed.
func (s *screen) clearMark() {
	if s.atMark {
		_, _ = io.WriteString(s.out, "\r\x1b[K")
		s.atMark = false
	}
}

// typed notes that a line of input ended the marker's line.
func (s *screen) typed() { s.atMark = false }

func (s *screen) user(u client.Update) {
	text, of := textOf(u)
	if s.own[gladhand.PromptID(of)] {
		return
	}
	name := "somebody"
	if u.Meta.By != nil {
		name = oneLine(u.Meta.By.Display())
	}
	s.line(s.st.bold(name+":") + " " + indent(lines(text), "  ")[len("  "):])
}

func (s *screen) tool(u client.Update) {
	var v struct {
		ID      string          `json:"toolCallId"`
		Title   *string         `json:"title"`
		Kind    *string         `json:"kind"`
		Status  string          `json:"status"`
		Content json.RawMessage `json:"content"`
	}
	if u.Decode(&v) != nil {
		return
	}
	t := s.tools[v.ID]
	if t == nil {
		t = &toolLine{}
		s.tools[v.ID] = t
	}
	if v.Title != nil {
		t.Title = *v.Title
	}
	if v.Kind != nil {
		t.Kind = *v.Kind
	}
	if v.Status == "" || v.Status == t.Status {
		return
	}
	t.Status = v.Status
	title := oneLine(or(t.Title, "a tool"))
	switch v.Status {
	case "in_progress":
		t.begun = true
		s.line(s.st.dim("• " + title))
	case "completed":
		if !t.begun {
			s.line(s.st.dim("• " + title))
		}
	case "failed", "cancelled":
		why := cut(firstLine(toolText(v.Content)), 160)
		if why != "" {
			why = ": " + why
		}
		s.line(s.st.red("✗ ") + title + why)
	default:
		return
	}
	if v.Status == "completed" || v.Status == "failed" {
		delete(s.tools, v.ID)
		if s.verbose {
			if text := strings.TrimRight(toolText(v.Content), "\n"); text != "" {
				s.line(s.st.dim(indent(lines(text), "    ")))
			}
		}
	}
}

func (s *screen) plan(u client.Update) {
	var v struct {
		Entries []acp.PlanEntry `json:"entries"`
	}
	if u.Decode(&v) != nil {
		return
	}
	for _, e := range v.Entries {
		box := map[string]string{"completed": "[x]", "in_progress": "[>]"}[e.Status]
		s.line(s.st.dim("  " + or(box, "[ ]") + " " + oneLine(e.Content)))
	}
}

func (s *screen) client(u client.Update) {
	var v gladhand.ClientUpdate
	if !s.verbose || u.Decode(&v) != nil {
		return
	}
	s.line(s.st.dim(oneLine(v.Client.Display() + " " + v.State)))
}

// prompt tells what became of a prompt outside a turn.
func (s *screen) prompt(u client.Update) {
	var v gladhand.PromptUpdate
	if u.Decode(&v) != nil {
		return
	}
	switch {
	case v.State == gladhand.PromptStored && v.Position > 1 && u.Meta.By != nil && !s.own[v.PromptID]:
		s.line(s.st.dim(fmt.Sprintf("%s queued a prompt (position %d)", oneLine(u.Meta.By.Display()), v.Position)))
	case v.State == gladhand.PromptDone:
		s.line(s.st.dim("a waiting prompt was dropped" + by(u)))
	}
}

// by says who caused an update: " by ana (zed)".
func by(u client.Update) string {
	if u.Meta.By == nil {
		return ""
	}
	return " by " + oneLine(u.Meta.By.Display())
}

// turnEnd says how a turn ended; "" when it ended as one wishes.
func turnEnd(t gladhand.TurnUpdate) string {
	switch t.StopReason {
	case gladhand.StopEndTurn:
		return ""
	case gladhand.StopCancelled:
		return "cancelled"
	case gladhand.StopMaxTokens:
		return "stopped: the answer reached the model's limit of length"
	case gladhand.StopMaxRequests:
		return "stopped before it was done; the agent said why"
	case gladhand.StopRefusal:
		return "stopped: the model refuses"
	}
	if t.Error != nil {
		return "failed: " + oneLine(t.Error.Message)
	}
	return "ended: " + oneLine(string(t.StopReason))
}

// textOf is the text of a message's update, and the message it belongs to.
func textOf(u client.Update) (text, of string) {
	var v struct {
		Content   json.RawMessage `json:"content"`
		MessageID string          `json:"messageId"`
	}
	if u.Tag != acp.TagAgentChunk && u.Tag != acp.TagUserChunk && u.Tag != acp.TagThoughtChunk || u.Decode(&v) != nil {
		return "", ""
	}
	return acp.Text(v.Content), or(v.MessageID, u.Tag)
}

// toolText is the text in a tool call's content.
func toolText(content json.RawMessage) string {
	var items []struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(content, &items) != nil {
		return ""
	}
	var parts []string
	for _, it := range items {
		if it.Type == "content" {
			parts = append(parts, acp.Text(it.Content))
		}
	}
	return strings.Join(parts, "\n")
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return oneLine(strings.TrimRight(first, "\r"))
}

// indent puts a prefix before every line.
func indent(text, prefix string) string {
	return prefix + strings.ReplaceAll(text, "\n", "\n"+prefix)
}
