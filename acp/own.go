package acp

import (
	"bytes"
	"encoding/json"
	"strconv"

	"gladhand"
)

// ProjectOwn gives one of our own updates (Version 0) to a client that knows plain
// ACP only. Of all of them only the interruption is shown, since nothing in ACP
// says it: as a notice in v2, and in v1 when the client opted into notices, else
// as a message of the agent's.
func ProjectOwn(e *gladhand.Event, to int, notices bool) []json.RawMessage {
	if e.Tag != gladhand.TagInterrupted {
		return nil
	}
	text := getStr(e.Update, "text")
	if text == "" {
		text = "The daemon ended in the middle of this turn. What it was doing may or may not have happened."
	}
	if to == V2 || notices {
		return one(Notice("warning", text, ""))
	}
	return one(MessageChunk("interrupted-"+strconv.FormatUint(uint64(e.First), 10), text))
}

// OptIns are what a v1 client is sent only when it asked for it.
type OptIns struct {
	Notices    bool // session.notices
	Compaction bool // session.compaction
	Booleans   bool // session.configOptions.boolean: options that are on or off
	Plans      bool // plan: plan_update and plan_removed
	Subagents  bool // subagents: subagent_update and session_message(_chunk)
}

// Fit makes of e's updates for a v1 client what it may be sent: without the opt-in
// a notice becomes a message of the agent's, an identified plan becomes the only
// plan, and the rest is left out. The argument is not changed; it is returned when
// all of it may be sent. v2 needs none of this.
func Fit(e *gladhand.Event, updates []json.RawMessage, in OptIns) []json.RawMessage {
	switch e.Tag {
	case TagNotice:
		if !in.Notices {
			return one(noticeAsMessage(e))
		}
	case TagCompaction, TagCompactionChunk:
		if !in.Compaction {
			return nil
		}
	case TagSubagent, TagSessionMessage, TagSessionMessageChunk:
		if !in.Subagents {
			return nil
		}
	case TagConfigOption:
		if !in.Booleans {
			return withoutBooleans(updates)
		}
	case TagPlanUpdate:
		if !in.Plans && e.Version == V1 {
			return planToV1(e)
		}
	case TagPlanRemoved:
		if !in.Plans && e.Version == V1 {
			return planRemovedToV1(e)
		}
	}
	return updates
}

func noticeAsMessage(e *gladhand.Event) json.RawMessage {
	text := getStr(e.Update, "title")
	if d := getStr(e.Update, "description"); d != "" {
		text += "\n" + d
	}
	return MessageChunk("notice-"+strconv.FormatUint(uint64(e.First), 10), text)
}

func withoutBooleans(updates []json.RawMessage) []json.RawMessage {
	fit := make([]json.RawMessage, len(updates))
	for i, u := range updates {
		fit[i] = u
		if bytes.Contains(u, []byte(`"boolean"`)) {
			fit[i] = mapMember(u, "configOptions", WithoutBooleans)
		}
	}
	return fit
}

// WithoutBooleans leaves out of an array of options those that are on or off.
func WithoutBooleans(options []byte) []byte {
	return mapItems(options, func(o []byte) [][]byte {
		if getStr(o, "type") == "boolean" {
			return nil
		}
		return [][]byte{o}
	})
}
