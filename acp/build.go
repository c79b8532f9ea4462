package acp

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"gladhand"
)

// The builders below make updates of v1, the version the built-in agent speaks,
// unless they say otherwise. They never fail: text that is not UTF-8 has its bad
// bytes replaced.

// MessageChunk is text of the agent's. An empty messageID is left out.
func MessageChunk(messageID, text string) json.RawMessage {
	return textChunk(TagAgentChunk, messageID, text)
}

// ThoughtChunk is text of the agent's reasoning.
func ThoughtChunk(messageID, text string) json.RawMessage {
	return textChunk(TagThoughtChunk, messageID, text)
}

// UserChunk is one content block of a user's message, the bytes as they came.
func UserChunk(messageID string, block json.RawMessage) json.RawMessage {
	return blockChunk(TagUserChunk, messageID, block)
}

// UserChunks is a whole prompt, an array of content blocks, as one chunk a block.
func UserChunks(messageID string, prompt json.RawMessage) []json.RawMessage {
	var chunks []json.RawMessage
	eachItem(prompt, func(s gladhand.Span) bool {
		chunks = append(chunks, UserChunk(messageID, prompt[s.Start:s.End]))
		return true
	})
	return chunks
}

func textChunk(tag, messageID, text string) json.RawMessage {
	return blockChunk(tag, messageID, textBlock(text))
}

func blockChunk(tag, messageID string, block []byte) json.RawMessage {
	var o object
	o.str("sessionUpdate", tag)
	o.raw("content", block)
	o.maybe("messageId", messageID)
	return o.json()
}

// TextContent is an array of one block of text: a prompt.
func TextContent(text string) json.RawMessage { return array(textBlock(text)) }

// ToolState is a tool call or a change of it. Only ID is required; for [ToolCall]
// Title too. What is empty is left out, so in an update it stays as it was.
type ToolState struct {
	ID     string
	Name   string // the tool's own name: read_file
	Title  string // for people: Read go.mod
	Kind   string // read, edit, delete, move, search, execute, think, fetch, switch_mode, other
	Status string // pending, in_progress, completed, failed
	// Content replaces what was shown; see ContentText and ContentDiff. An empty,
	// non-nil slice clears it.
	Content   []json.RawMessage
	Locations []Location
	RawInput  json.RawMessage
	RawOutput json.RawMessage
	Meta      json.RawMessage
}

// Location is a place in a file, an absolute path and a line from 1, 0 for none.
type Location struct {
	Path string
	Line int
}

// ToolCall announces a tool call. Without a status it is in_progress.
func ToolCall(t ToolState) json.RawMessage {
	if t.Status == "" {
		t.Status = "in_progress"
	}
	if t.Title == "" {
		t.Title = t.Name
	}
	if t.Title == "" {
		t.Title = "Tool call"
	}
	return t.json(TagToolCall)
}

// ToolUpdate changes a tool call.
func ToolUpdate(t ToolState) json.RawMessage { return t.json(TagToolCallUpdate) }

// AskedToolCall is a tool call as an ask shows it: [gladhand.Ask].ToolCall.
func AskedToolCall(t ToolState) json.RawMessage { return t.json("") }

func (t ToolState) json(tag string) json.RawMessage {
	var o object
	o.maybe("sessionUpdate", tag)
	o.str("toolCallId", t.ID)
	o.maybe("name", t.Name)
	o.maybe("title", t.Title)
	o.maybe("kind", t.Kind)
	o.maybe("status", t.Status)
	if t.Content != nil {
		items := make([][]byte, len(t.Content))
		for i, c := range t.Content {
			items[i] = c
		}
		o.raw("content", array(items...))
	}
	if t.Locations != nil {
		items := make([][]byte, len(t.Locations))
		for i, l := range t.Locations {
			var loc object
			loc.str("path", l.Path)
			if l.Line > 0 {
				loc.int("line", int64(l.Line))
			}
			items[i] = loc.json()
		}
		o.raw("locations", array(items...))
	}
	o.maybeRaw("rawInput", t.RawInput)
	o.maybeRaw("rawOutput", t.RawOutput)
	o.maybeRaw("_meta", t.Meta)
	return o.json()
}

// ContentText is text as an item of a tool call's content.
func ContentText(text string) json.RawMessage { return contentItem(text) }

// ContentImage is a picture as an item of a tool call's content.
func ContentImage(mime string, data []byte) json.RawMessage {
	var img, o object
	img.str("type", "image")
	img.str("mimeType", mime)
	img.str("data", base64.StdEncoding.EncodeToString(data))
	o.str("type", "content")
	o.raw("content", img.json())
	return o.json()
}

// ContentDiff is a changed file as an item of a tool call's content. A nil oldText
// means that the file is new.
func ContentDiff(path string, oldText *string, newText string) json.RawMessage {
	var o object
	o.str("type", "diff")
	o.str("path", path)
	if oldText != nil {
		o.str("oldText", *oldText)
	}
	o.str("newText", newText)
	return o.json()
}

// PlanEntry is one item of a plan.
type PlanEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"` // high, medium, low; medium when empty
	Status   string `json:"status"`   // pending, in_progress, completed; pending when empty
}

// Plan sets the whole plan.
func Plan(entries []PlanEntry) json.RawMessage {
	items := make([][]byte, len(entries))
	for i, e := range entries {
		var o object
		o.str("content", e.Content)
		o.str("priority", or(e.Priority, "medium"))
		o.str("status", or(e.Status, "pending"))
		items[i] = o.json()
	}
	var o object
	o.str("sessionUpdate", TagPlan)
	o.raw("entries", array(items...))
	return o.json()
}

// UsageState is how much of its context a model uses, in tokens, and what the session
// has cost so far, in US dollars. Meta is "gladhand" in the update's _meta, left out
// when nil.
type UsageState struct {
	Used, Size int
	Cost       float64
	Meta       json.RawMessage
}

// Usage tells a [UsageState].
func Usage(u UsageState) json.RawMessage {
	var o object
	o.str("sessionUpdate", TagUsage)
	o.int("used", int64(u.Used))
	o.int("size", int64(u.Size))
	if u.Cost > 0 {
		var c object
		c.raw("amount", strconv.AppendFloat(nil, u.Cost, 'f', -1, 64))
		c.str("currency", "USD")
		o.raw("cost", c.json())
	}
	if u.Meta != nil {
		o.raw("_meta", wrapMeta(u.Meta))
	}
	return o.json()
}

// Compaction tells of a shortened context: status is in_progress, completed or
// failed, why the reason of a failure, summary what the model now has in place of
// the older part, left out when empty.
func Compaction(id, status, summary, why string) json.RawMessage {
	var o object
	o.str("sessionUpdate", TagCompaction)
	o.str("compactionId", id)
	o.str("status", status)
	if summary != "" {
		o.raw("summary", TextContent(summary))
	}
	o.maybe("error", why)
	return o.json()
}

// Command is a slash command, its name without the slash. Hint says what may follow
// it; empty when nothing may.
type Command struct{ Name, Description, Hint string }

// AvailableCommands lists the slash commands, in the shape of the version.
func AvailableCommands(version int, list []Command) json.RawMessage {
	items := make([][]byte, len(list))
	for i, c := range list {
		var o object
		o.str("name", c.Name)
		o.str("description", c.Description)
		if c.Hint != "" {
			var in object
			in.str("hint", c.Hint)
			o.raw("input", in.json())
		}
		items[i] = o.json()
	}
	var o object
	o.str("sessionUpdate", TagCommands)
	commands := array(items...)
	if version == V2 {
		commands = CommandsToV2(commands)
	}
	o.raw("availableCommands", commands)
	return o.json()
}

// SessionTitle tells the session's title; an empty one clears it.
func SessionTitle(title string) json.RawMessage {
	var o object
	o.str("sessionUpdate", TagSessionInfo)
	if title == "" {
		o.raw("title", []byte("null"))
	} else {
		o.str("title", title)
	}
	return o.json()
}

// ConfigUpdate tells all configuration options.
func ConfigUpdate(options []ConfigOption) json.RawMessage {
	var o object
	o.str("sessionUpdate", TagConfigOption)
	o.raw("configOptions", ConfigOptions(V1, options))
	return o.json()
}

// CurrentMode tells the session's mode.
func CurrentMode(modeID string) json.RawMessage {
	var o object
	o.str("sessionUpdate", TagCurrentMode)
	o.str("currentModeId", modeID)
	return o.json()
}

// Notice is news for the user, of both versions: severity info, warning or error, a
// title that is not empty, and a description that may be.
func Notice(severity, title, description string) json.RawMessage {
	var o object
	o.str("sessionUpdate", TagNotice)
	o.str("severity", severity)
	o.str("title", title)
	o.maybe("description", description)
	return o.json()
}

// Running is v2's state update when a turn starts or goes on after an ask.
func Running() json.RawMessage { return state("running").json() }

// RequiresAction is v2's state update when a turn waits for an answer.
func RequiresAction() json.RawMessage { return state("requires_action").json() }

// Idle is v2's state update when a turn has ended; why is for [gladhand.StopError].
// With no reason it says only that nothing runs.
func Idle(stop gladhand.StopReason, why *gladhand.TurnError) json.RawMessage {
	o := state("idle")
	o.maybe("stopReason", string(stop))
	if stop == gladhand.StopError && why != nil {
		var e object
		e.int("code", int64(why.Code))
		e.str("message", why.Message)
		e.maybeRaw("data", why.Data)
		o.raw("error", e.json())
	}
	return o.json()
}

func state(s string) *object {
	o := &object{}
	o.str("sessionUpdate", TagState)
	o.str("state", s)
	return o
}

// UpdateParams are the parameters of session/update. meta is "gladhand" in their
// _meta, left out when nil.
func UpdateParams(id gladhand.SessionID, update, meta json.RawMessage) json.RawMessage {
	o := object{b: make([]byte, 0, len(update)+len(meta)+len(id)+64)}
	o.b = append(o.b, '{')
	o.b = append(o.b, `"sessionId":`...)
	o.b = appendString(o.b, string(id))
	o.b = append(append(o.b, `,"update":`...), update...)
	if meta != nil {
		o.b = append(append(append(o.b, `,"_meta":{"gladhand":`...), meta...), '}')
	}
	return append(o.b, '}')
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
