package acp

import (
	"encoding/json"

	"gladhand"
)

// onlyPlan names v1's plan, of which a session has one, among v2's.
const onlyPlan = "plan"

// planToV2 makes an identified plan of v1's only one.
func planToV2(e *gladhand.Event) []json.RawMessage {
	entries := get(e.Update, "entries")
	return one(rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionUpdate":
			return name, quote(TagPlanUpdate)
		case "entries", "plan":
			return name, nil
		}
		return name, val
	}, func(o *object) {
		var plan object
		plan.str("type", "items")
		plan.str("planId", onlyPlan)
		if !isArray(entries) {
			entries = []byte("[]")
		}
		plan.raw("entries", entries)
		o.raw("plan", plan.json())
	}))
}

// planToV1 sets v1's only plan to the one that changed. What is no list of items
// becomes one item.
func planToV1(e *gladhand.Event) []json.RawMessage {
	plan := get(e.Update, "plan")
	var entries []byte
	switch t := getStr(plan, "type"); t {
	case "items":
		entries = mapItems(get(plan, "entries"), entryToV1)
	case "markdown":
		entries = array(entry(getStr(plan, "content")))
	case "file":
		entries = array(entry(getStr(plan, "uri")))
	default:
		entries = array(entry("[" + t + "]"))
	}
	if !isArray(entries) {
		entries = []byte("[]")
	}
	return one(planV1(e.Update, entries))
}

// planRemovedToV1 empties v1's only plan.
func planRemovedToV1(e *gladhand.Event) []json.RawMessage {
	return one(planV1(e.Update, []byte("[]")))
}

func planV1(update, entries []byte) json.RawMessage {
	return rewrite(update, func(name string, val []byte) (string, []byte) {
		switch name {
		case "sessionUpdate":
			return name, quote(TagPlan)
		case "plan":
			return "entries", entries
		case "entries": // no member of v2's
			return name, nil
		}
		return name, val
	}, func(o *object) {
		if !o.has("entries") {
			o.raw("entries", entries)
		}
	})
}

func entry(content string) []byte {
	var o object
	o.str("content", content)
	o.str("priority", "medium")
	o.str("status", "in_progress")
	return o.json()
}

// entryToV1 maps the words that v1 has not: what was cancelled is over, and what
// is not known has not begun.
func entryToV1(item []byte) [][]byte {
	return [][]byte{rewrite(item, func(name string, val []byte) (string, []byte) {
		s, _ := str(val)
		switch {
		case name == "priority" && s != "high" && s != "medium" && s != "low":
			return name, []byte(`"medium"`)
		case name == "status" && s == "cancelled":
			return name, []byte(`"completed"`)
		case name == "status" && s != "pending" && s != "in_progress" && s != "completed":
			return name, []byte(`"pending"`)
		}
		return name, val
	}, nil)}
}

// commandsToV2 adds the types that v2 requires.
func commandsToV2(e *gladhand.Event) []json.RawMessage {
	return one(mapMember(e.Update, "availableCommands", CommandsToV2))
}

// CommandsToV2 maps an array of v1's available commands.
func CommandsToV2(commands []byte) []byte {
	return mapItems(commands, func(c []byte) [][]byte {
		return [][]byte{withType(mapMember(c, "input", func(in []byte) []byte { return withType(in, "text") }), "command")}
	})
}

// commandsToV1 takes the types off, and leaves out commands of a type v1 has not.
func commandsToV1(e *gladhand.Event) []json.RawMessage {
	return one(mapMember(e.Update, "availableCommands", func(commands []byte) []byte {
		return mapItems(commands, func(c []byte) [][]byte {
			if getStr(c, "type") != "command" {
				return nil
			}
			return [][]byte{rewrite(c, func(name string, val []byte) (string, []byte) {
				switch {
				case name == "type":
					return name, nil
				case name == "input" && isObject(val):
					if getStr(val, "type") != "text" {
						return name, nil
					}
					return name, without(val, "type")
				}
				return name, val
			}, nil)}
		})
	}))
}

// modeToV2 tells v2, which has no modes, in a custom update.
func modeToV2(e *gladhand.Event) []json.RawMessage {
	return one(rewrite(e.Update, setTag(tagCustomMode), nil))
}

// configToV2 renames ids.
func configToV2(e *gladhand.Event) []json.RawMessage {
	return one(mapMember(e.Update, "configOptions", ConfigOptionsToV2))
}

// ConfigOptionsToV2 maps an array of v1's configuration options.
func ConfigOptionsToV2(options []byte) []byte {
	return mapItems(options, func(o []byte) [][]byte {
		return [][]byte{renameOption(o, "id", "configId", "group", "groupId")}
	})
}

// configToV1 renames ids, and leaves out options of a type that v1 has not.
func configToV1(e *gladhand.Event) []json.RawMessage {
	return one(mapMember(e.Update, "configOptions", ConfigOptionsToV1))
}

// ConfigOptionsToV1 maps an array of v2's configuration options.
func ConfigOptionsToV1(options []byte) []byte {
	return mapItems(options, func(o []byte) [][]byte {
		if t := getStr(o, "type"); t != "select" && t != "boolean" {
			return nil
		}
		return [][]byte{renameOption(o, "configId", "id", "groupId", "group")}
	})
}

func renameOption(option []byte, id, newID, group, newGroup string) []byte {
	return rewrite(option, func(name string, val []byte) (string, []byte) {
		switch name {
		case id:
			return newID, val
		case newID:
			return name, nil
		case "options":
			return name, mapItems(val, func(g []byte) [][]byte {
				if get(g, group) == nil {
					return [][]byte{g}
				}
				return [][]byte{rewrite(g, func(name string, val []byte) (string, []byte) {
					switch name {
					case group:
						return newGroup, val
					case newGroup:
						return name, nil
					}
					return name, val
				}, nil)}
			})
		}
		return name, val
	}, nil)
}

// mapMember maps one member of an object.
func mapMember(b []byte, member string, f func([]byte) []byte) json.RawMessage {
	return rewrite(b, func(name string, val []byte) (string, []byte) {
		if name == member {
			return name, f(val)
		}
		return name, val
	}, nil)
}

// withType adds a type to an object that has none.
func withType(b []byte, t string) []byte {
	if !isObject(b) || get(b, "type") != nil {
		return b
	}
	return rewrite(b, same, func(o *object) { o.str("type", t) })
}

// without leaves a member out.
func without(b []byte, member string) []byte {
	return rewrite(b, func(name string, val []byte) (string, []byte) {
		if name == member {
			return name, nil
		}
		return name, val
	}, nil)
}
