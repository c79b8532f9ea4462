package acp

import (
	"encoding/json"

	"gladhand"
)

// Empty is the result of methods that return nothing.
var Empty = json.RawMessage("{}")

// SessionState is what a client is told of a session it opened.
type SessionState struct {
	Options []ConfigOption
	// Modes go to v1 only; v2 has an option of category mode.
	Modes *Modes
	// Meta is "gladhand" in the result's _meta; left out when nil.
	Meta json.RawMessage
}

// NewResult makes session/new's result.
func NewResult(version int, id gladhand.SessionID, s SessionState) json.RawMessage {
	var o object
	o.str("sessionId", string(id))
	return s.json(version, &o)
}

// LoadResult makes session/load's and session/resume's result.
func LoadResult(version int, s SessionState) json.RawMessage { return s.json(version, &object{}) }

func (s SessionState) json(version int, o *object) json.RawMessage {
	if version == V1 && s.Modes != nil {
		o.raw("modes", ModeState(*s.Modes))
	}
	o.raw("configOptions", ConfigOptions(version, s.Options))
	if s.Meta != nil {
		o.raw("_meta", wrapMeta(s.Meta))
	}
	return o.json()
}

// SetOptionResult makes session/set_config_option's result: all options.
func SetOptionResult(version int, options []ConfigOption) json.RawMessage {
	var o object
	o.raw("configOptions", ConfigOptions(version, options))
	return o.json()
}

// ListResult makes session/list's result, the same in both versions. next is the
// cursor of the following page, empty on the last. What ACP has no place for is in
// each session's _meta.gladhand.
func ListResult(sessions []gladhand.SessionInfo, next string) json.RawMessage {
	items := make([][]byte, len(sessions))
	for i, s := range sessions {
		var o object
		o.str("sessionId", string(s.ID))
		o.str("cwd", s.Cwd)
		o.maybe("title", s.Title)
		o.maybe("updatedAt", s.Updated)
		if meta, err := json.Marshal(s); err == nil {
			o.raw("_meta", wrapMeta(meta))
		}
		items[i] = o.json()
	}
	var o object
	o.raw("sessions", array(items...))
	o.maybe("nextCursor", next)
	return o.json()
}

// PromptEnded makes v1's result of session/prompt: the turn ended. v1 has no word
// for [gladhand.StopError]; a turn that failed is an error there.
func PromptEnded(stop gladhand.StopReason) json.RawMessage {
	var o object
	o.str("stopReason", string(stop))
	return o.json()
}

// PromptInserted makes v2's result of session/prompt: the message was inserted.
func PromptInserted(messageID string) json.RawMessage {
	var o object
	o.str("messageId", messageID)
	return o.json()
}
