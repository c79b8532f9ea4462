package acp

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"gladhand"
)

// OpenToolCall makes the update that a reader of version to needs before it is
// shown later updates of a tool call whose start it missed: a `tool_call` in v1, a
// full `tool_call_update` in v2. opens is the event that opened the call. It is
// nil when opens is not about a tool call or a terminal.
func OpenToolCall(opens *gladhand.Event, to int) json.RawMessage {
	switch kinds[opens.Tag].sort {
	case "tool:", "terminal:":
	default:
		return nil
	}
	if to == V1 && opens.Version == V1 {
		return asToolCall(opens.Update)
	}
	first := *opens
	first.First = first.Opens
	updates := Project(&first, to)
	if len(updates) == 0 {
		return nil
	}
	if to == V1 {
		return asToolCall(updates[0])
	}
	return updates[0]
}

// asToolCall makes a v1 tool_call of a v1 tool call update.
func asToolCall(update json.RawMessage) json.RawMessage {
	title := ""
	return rewrite(update, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionUpdate":
			return name, quote(TagToolCall)
		case "title":
			if title, _ = str(val); title == "" {
				return name, nil
			}
		case "kind", "status", "content", "locations":
			if isNull(val) {
				return name, nil
			}
		}
		return name, val
	}, func(o *object) {
		if title == "" {
			o.str("title", titleFor(update))
		}
	})
}

// titleFor is what a tool call is called that has no title.
func titleFor(update []byte) string {
	for _, name := range []string{"name", "kind"} {
		if s := getStr(update, name); s != "" {
			return s
		}
	}
	return "Tool call"
}

// toolToV2 makes v2's upsert of both of v1's. A null leaves things alone in v1
// and clears them in v2, so it is left out.
func toolToV2(e *gladhand.Event) []json.RawMessage {
	return one(rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionUpdate":
			return name, quote(TagToolCallUpdate)
		case "title", "name", "kind", "status", "content", "locations", "rawInput", "rawOutput":
			if isNull(val) {
				return name, nil
			}
		}
		if name == "content" {
			return name, contentToV2(val)
		}
		return name, val
	}, nil))
}

// toolToV1 makes a tool_call of the event that opens the call, else a
// tool_call_update. What v2 clears by null v1 can only set to its default.
func toolToV1(e *gladhand.Event) []json.RawMessage {
	u := rewrite(e.Update, toolMemberToV1, nil)
	if opens(e) {
		u = asToolCall(u)
	}
	return one(u)
}

// opens reports whether e is shown from the number that opened its ID.
func opens(e *gladhand.Event) bool { return e.Opens == e.First }

func toolMemberToV1(name string, val []byte) (string, []byte) {
	null := isNull(val)
	switch name {
	case "kind":
		return name, kindToV1(val)
	case "status":
		return name, statusToV1(val)
	case "title":
		if null {
			return name, []byte(`""`)
		}
	case "name":
		if null {
			return name, nil
		}
	case "locations":
		if null {
			return name, []byte("[]")
		}
	case "content":
		if null {
			return name, []byte("[]")
		}
		return name, contentToV1(val)
	}
	return name, val
}

func kindToV1(val []byte) []byte {
	switch s, _ := str(val); s {
	case "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other":
		return val
	}
	return []byte(`"other"`)
}

func statusToV1(val []byte) []byte {
	switch s, _ := str(val); {
	case isNull(val):
		return []byte(`"pending"`)
	case s == "pending", s == "in_progress", s == "completed", s == "failed":
		return val
	case s == "cancelled":
		return []byte(`"failed"`)
	}
	return []byte(`"in_progress"`) // as v2 says of a status one does not know
}

// toolChunkToV1 sets the whole content: what was held before, and the item.
func toolChunkToV1(e *gladhand.Event) []json.RawMessage {
	items := contentItems(get(e.Update, "content"))
	all := make([]byte, 0, len(e.Prior)+len(items)+3)
	all = append(all, '[')
	all = append(all, e.Prior...)
	if len(e.Prior) > 0 && len(items) > 0 {
		all = append(all, ',')
	}
	all = append(append(all, items...), ']')
	u := rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionUpdate":
			return name, quote(TagToolCallUpdate)
		case "content":
			return name, all
		}
		return name, val
	}, nil)
	if opens(e) {
		u = asToolCall(u)
	}
	return one(u)
}

// contentItems is one v2 item of a tool call's content as v1 items, without
// brackets.
func contentItems(item []byte) []byte {
	if !isObject(item) {
		return nil
	}
	return inside(array(itemToV1(item)...))
}

// contentToV1 maps the content of a tool call, an array of items.
func contentToV1(content []byte) []byte { return mapItems(content, itemToV1) }

func itemToV1(item []byte) [][]byte {
	switch t := getStr(item, "type"); t {
	case "content":
		return [][]byte{rewrite(item, func(name string, val []byte) (string, []byte) {
			if name == "content" {
				return name, blockToV1(val)
			}
			return name, val
		}, nil)}
	case "diff":
		return diffToV1(item)
	case "terminal":
		return [][]byte{contentItem("[terminal " + getStr(item, "terminalId") + "]")}
	case "":
		return [][]byte{item}
	default:
		return [][]byte{contentItem("[" + t + "]")}
	}
}

// contentItem is text as an item of a tool call's content.
func contentItem(text string) []byte {
	var o object
	o.str("type", "content")
	o.raw("content", textBlock(text))
	return o.json()
}

// contentToV2 maps the content of a v1 tool call.
func contentToV2(content []byte) []byte {
	return mapItems(content, func(item []byte) [][]byte {
		if getStr(item, "type") == "diff" {
			return [][]byte{diffToV2(item)}
		}
		return [][]byte{item}
	})
}

// A terminal of the agent's, which v1 has not, is a tool call of its own there.
func terminalCall(e *gladhand.Event) []byte { return quote(e.ID) }

// terminalToV1 makes a tool call, or an update of it, of a terminal's state.
func terminalToV1(e *gladhand.Event) []json.RawMessage {
	status, title := "", ""
	first := opens(e)
	u := rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionUpdate":
			return name, quote(TagToolCallUpdate)
		case "terminalId":
			return "toolCallId", terminalCall(e)
		case "command":
			title, _ = str(val)
			return name, nil
		case "output":
			return "content", outputToV1(val)
		case "exitStatus":
			status = exitToV1(val)
		case "toolCallId", "content", "title", "status", "kind": // no members of v2's
			return name, nil
		}
		return name, val
	}, func(o *object) {
		if status == "" && first {
			status = "in_progress"
		}
		if title == "" && first {
			title = "Terminal"
		}
		o.maybe("title", title)
		o.maybe("status", status)
		if first {
			o.str("kind", "execute")
		}
	})
	if first {
		u = asToolCall(u)
	}
	return one(u)
}

func exitToV1(val []byte) string {
	if isNull(val) {
		return ""
	}
	if code := string(get(val, "exitCode")); code == "0" {
		return "completed"
	}
	return "failed"
}

// outputToV1 is a snapshot of a terminal's output as a tool call's content.
func outputToV1(val []byte) []byte {
	text := decodeOutput(getStr(val, "data"))
	if text == "" {
		return []byte("[]")
	}
	return array(contentItem(text))
}

// terminalChunkToV1 tells what a terminal printed in the way v1 agents do: v1's
// content can only be replaced, so the addition goes in _meta.terminal_output.
func terminalChunkToV1(e *gladhand.Event) []json.RawMessage {
	var out, meta object
	out.str("terminal_id", idOf(e))
	out.str("data", decodeOutput(getStr(e.Update, "data")))
	given := get(e.Update, "_meta")
	if isObject(given) {
		eachMember(given, func(m member) bool {
			if string(m.name) != "terminal_output" {
				meta.raw(string(m.name), given[m.val.Start:m.val.End])
			}
			return true
		})
	}
	meta.raw("terminal_output", out.json())
	u := rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionUpdate":
			return name, quote(TagToolCallUpdate)
		case "terminalId":
			return "toolCallId", terminalCall(e)
		case "data", "_meta", "toolCallId", "title", "status", "kind":
			return name, nil
		}
		return name, val
	}, func(o *object) {
		if opens(e) {
			o.str("title", "Terminal")
			o.str("kind", "execute")
			o.str("status", "in_progress")
		}
		o.raw("_meta", meta.json())
	})
	if opens(e) {
		u = asToolCall(u)
	}
	return one(u)
}

// decodeOutput reads base64, as much of it as is right.
func decodeOutput(data string) string {
	b, _ := base64.StdEncoding.DecodeString(data)
	return strings.ToValidUTF8(string(b), "\uFFFD")
}
