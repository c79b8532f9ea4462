package acp

import (
	"encoding/json"
	"strings"

	"gladhand"
)

// form says how the text of an update is found.
type form uint8

const (
	formNone    form = iota
	formChunk        // content is one block
	formMessage      // content is an array of blocks; one block of text has a place
	formData         // data is base64
)

// kind is how updates of a tag are filed. The key of a plan_update is inside its
// plan.
type kind struct {
	class gladhand.Class
	sort  string // what an ID begins with
	key   string // the member that ends it
	form  form
	// ends is the member that makes a Fact of an update that has it: the start or
	// the end of something.
	ends string
}

// kinds holds every tag of both versions; what is not in it is a Fact without ID.
var kinds = map[string]kind{
	TagUserChunk:           {gladhand.Append, "user_message:", "messageId", formChunk, ""},
	TagAgentChunk:          {gladhand.Append, "agent_message:", "messageId", formChunk, ""},
	TagThoughtChunk:        {gladhand.Append, "agent_thought:", "messageId", formChunk, ""},
	TagSessionMessageChunk: {gladhand.Append, "session_message:", "messageId", formChunk, ""},
	TagCompactionChunk:     {gladhand.Append, "compaction:", "compactionId", formChunk, ""},
	TagToolChunk:           {gladhand.Append, "tool:", "toolCallId", formNone, ""},
	TagTerminalChunk:       {gladhand.Append, "terminal:", "terminalId", formData, ""},

	TagUserMessage:    {gladhand.Replace, "user_message:", "messageId", formMessage, ""},
	TagAgentMessage:   {gladhand.Replace, "agent_message:", "messageId", formMessage, ""},
	TagAgentThought:   {gladhand.Replace, "agent_thought:", "messageId", formMessage, ""},
	TagSessionMessage: {gladhand.Replace, "session_message:", "messageId", formMessage, ""},

	TagToolCall:       {gladhand.Fact, "tool:", "toolCallId", formNone, ""},
	TagToolCallUpdate: {gladhand.Replace, "tool:", "toolCallId", formNone, "status"},
	TagTerminal:       {gladhand.Replace, "terminal:", "terminalId", formNone, "exitStatus"},
	TagCompaction:     {gladhand.Fact, "compaction:", "compactionId", formNone, ""},
	TagSubagent:       {gladhand.Replace, "subagent:", "sessionId", formNone, "state"},

	TagPlan:         {gladhand.Replace, "plan", "", formNone, ""},
	TagPlanUpdate:   {gladhand.Replace, "plan:", "planId", formNone, ""},
	TagPlanRemoved:  {gladhand.Fact, "plan:", "planId", formNone, ""},
	TagCommands:     {gladhand.Replace, "commands", "", formNone, ""},
	TagCurrentMode:  {gladhand.Replace, "mode", "", formNone, ""},
	TagConfigOption: {gladhand.Replace, "config", "", formNone, ""},
	TagSessionInfo:  {gladhand.Replace, "info", "", formNone, ""},
	TagUsage:        {gladhand.Replace, "usage", "", formNone, ""},

	TagNotice: {gladhand.Fact, "", "", formNone, ""},
	TagState:  {gladhand.Fact, "", "", formNone, ""},
}

// ownPrefix begins the tags of our own updates.
const ownPrefix = "_gladhand_"

// Describe reads an ACP update object of the given version just far enough to
// file it: a new [gladhand.Event] with Class, Version, Tag, ID, Update (which
// shares update's bytes) and Text set.
//
//   - A message chunk without a messageId has an ID that ends in ":"; see [Unnamed].
//   - A chunk that is not text has no Text, and never merges. So has an item of a
//     tool call's content: two items are not the same as one longer one.
//   - A tool call update that sets a status is a Fact: a start, a pause or an end.
//   - Our own "_gladhand_…" updates are Facts of Version 0.
//   - An update whose tag is not known, or whose id is missing, is a Fact without
//     ID: it stays in order, is stored before it is shown, and never merges.
//
// What is no JSON object with a string "sessionUpdate", or has duplicate names
// or invalid UTF-8, is an error of [gladhand.CodeInvalidParams].
func Describe(version int, update json.RawMessage) (*gladhand.Event, error) {
	if !valid(update) {
		return nil, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonMalformed, "this update is not valid JSON")
	}
	var room [16]member
	members := room[:0]
	tag := ""
	if !eachMember(update, func(m member) bool {
		if string(m.name) == "sessionUpdate" {
			tag, _ = str(update[m.val.Start:m.val.End])
		}
		members = append(members, m)
		return true
	}) || tag == "" {
		return nil, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "an update must be an object with a sessionUpdate")
	}
	e := &gladhand.Event{Class: gladhand.Fact, Version: uint8(version), Tag: tag, Update: update}
	if strings.HasPrefix(tag, ownPrefix) {
		e.Version = 0
		return e, nil
	}
	k, known := kinds[tag]
	if !known {
		return e, nil
	}
	id, ok := identify(update, members, tag, k)
	if !ok {
		return e, nil
	}
	e.ID, e.Class = id, k.class
	if k.ends != "" && !isNull(among(update, members, k.ends)) {
		e.Class = gladhand.Fact
	}
	e.Text = textOf(update, members, k.form)
	return e, nil
}

// identify makes the ID of an update. An id may be missing from a message chunk
// of v1 only.
func identify(update []byte, members []member, tag string, k kind) (string, bool) {
	if k.key == "" {
		return k.sort, true
	}
	val := among(update, members, k.key)
	if tag == TagPlanUpdate {
		val = get(among(update, members, "plan"), k.key)
	}
	id, ok := str(val)
	if !ok {
		unnamed := k.form == formChunk && k.key == "messageId" && isNull(val)
		return k.sort, unnamed
	}
	return k.sort + id, true
}

// among is get over members that were found already.
func among(b []byte, members []member, name string) []byte {
	for _, m := range members {
		if string(m.name) == name {
			return b[m.val.Start:m.val.End]
		}
	}
	return nil
}

// textOf finds the text of an update; the zero Span when it has none. A place
// that is found never starts at 0, so an empty text and no text differ.
func textOf(update []byte, members []member, f form) gladhand.Span {
	name := "content"
	if f == formData {
		name = "data"
	}
	if f == formNone {
		return gladhand.Span{}
	}
	for _, m := range members {
		if string(m.name) != name {
			continue
		}
		val := update[m.val.Start:m.val.End]
		switch f {
		case formChunk:
			return shift(blockText(val), m.val.Start)
		case formMessage:
			return shift(onlyBlockText(val), m.val.Start)
		case formData:
			if len(val) >= 2 && val[0] == '"' && wholeBase64(val[1:len(val)-1]) {
				return gladhand.Span{Start: m.val.Start + 1, End: m.val.End - 1}
			}
		}
	}
	return gladhand.Span{}
}

func shift(s gladhand.Span, by int) gladhand.Span {
	if s == (gladhand.Span{}) {
		return s
	}
	return gladhand.Span{Start: s.Start + by, End: s.End + by}
}

// blockText finds the inside of the text of a content block of type text.
func blockText(block []byte) gladhand.Span {
	var at gladhand.Span
	text := false
	eachMember(block, func(m member) bool {
		val := block[m.val.Start:m.val.End]
		switch string(m.name) {
		case "type":
			text = string(val) == `"text"`
		case "text":
			if val[0] == '"' {
				at = gladhand.Span{Start: m.val.Start + 1, End: m.val.End - 1}
			}
		}
		return true
	})
	if !text {
		return gladhand.Span{}
	}
	return at
}

// onlyBlockText is blockText of an array's only item.
func onlyBlockText(blocks []byte) gladhand.Span {
	var at gladhand.Span
	n := 0
	if !eachItem(blocks, func(s gladhand.Span) bool {
		n++
		at = shift(blockText(blocks[s.Start:s.End]), s.Start)
		return n < 2
	}) || n != 1 {
		return gladhand.Span{}
	}
	return at
}

// wholeBase64 reports whether b is base64 in whole quanta, which is what makes
// two of them one when they are joined.
func wholeBase64(b []byte) bool {
	if len(b)%4 != 0 {
		return false
	}
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/':
		case c == '=' && i >= len(b)-2:
		default:
			return false
		}
	}
	return true
}

// Unnamed reports whether e belongs to a message that has no id of its own. The
// session then names it by the number that opened it: e.ID += "#" + the number.
// A new message opens when the sort changes or anything else came between.
func Unnamed(e *gladhand.Event) bool {
	return e.Class == gladhand.Append && strings.HasSuffix(e.ID, ":") && kinds[e.Tag].key == "messageId"
}

// hasText reports whether e's Text was found.
func hasText(e *gladhand.Event) bool {
	return e.Text.Start > 0 && e.Text.Start <= e.Text.End && e.Text.End <= len(e.Update)
}

// idOf is what follows the sort in an event's ID.
func idOf(e *gladhand.Event) string {
	_, id, _ := strings.Cut(e.ID, ":")
	return id
}
