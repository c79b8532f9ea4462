package acp

import (
	"encoding/json"
	"strconv"

	"gladhand"
)

// Project gives e as update objects of version to, 1 or 2, in order. e may have
// been cut by [gladhand.Event.After]. Where to is e's own version, or e is one of
// ours (Version 0), that is the bytes as they came; else it is the projection of
// docs/projection.md, which depends on e alone. No update means that a reader of
// that version is shown nothing. What is not known passes as it is.
func Project(e *gladhand.Event, to int) []json.RawMessage {
	if int(e.Version) == to || e.Version == 0 {
		return []json.RawMessage{e.Update}
	}
	table := toV1
	if to == V2 {
		table = toV2
	}
	if f, ok := table[e.Tag]; ok {
		return f(e)
	}
	return []json.RawMessage{e.Update}
}

// projection makes the updates of the other version.
type projection func(*gladhand.Event) []json.RawMessage

// toV2 is what differs from v1; what is not in it is the same in v2.
var toV2 = map[string]projection{
	TagUserChunk:      chunkToV2,
	TagAgentChunk:     chunkToV2,
	TagThoughtChunk:   chunkToV2,
	TagToolCall:       toolToV2,
	TagToolCallUpdate: toolToV2,
	TagPlan:           planToV2,
	TagCommands:       commandsToV2,
	TagCurrentMode:    modeToV2,
	TagConfigOption:   configToV2,
}

// toV1 is what differs from v2; what is not in it is the same in v1.
var toV1 = map[string]projection{
	TagUserChunk:           chunkToV1,
	TagAgentChunk:          chunkToV1,
	TagThoughtChunk:        chunkToV1,
	TagSessionMessageChunk: chunkToV1,
	TagCompactionChunk:     chunkToV1,
	TagUserMessage:         messageToV1(TagUserChunk),
	TagAgentMessage:        messageToV1(TagAgentChunk),
	TagAgentThought:        messageToV1(TagThoughtChunk),
	TagSessionMessage:      sessionMessageToV1,
	TagCompaction:          compactionToV1,
	TagToolCallUpdate:      toolToV1,
	TagToolChunk:           toolChunkToV1,
	TagTerminal:            terminalToV1,
	TagTerminalChunk:       terminalChunkToV1,
	TagPlanUpdate:          planToV1,
	TagPlanRemoved:         planRemovedToV1,
	TagCommands:            commandsToV1,
	TagConfigOption:        configToV1,
	TagState:               func(*gladhand.Event) []json.RawMessage { return nil },
}

func one(b json.RawMessage) []json.RawMessage { return []json.RawMessage{b} }

// same keeps a member.
func same(name string, val []byte) (string, []byte) { return name, val }

// setTag is a rewrite that changes the tag only.
func setTag(tag string) func(string, []byte) (string, []byte) {
	return func(name string, val []byte) (string, []byte) {
		if name == "sessionUpdate" {
			return name, quote(tag)
		}
		return name, val
	}
}

// messageID is the id under which readers of the other version see e's message.
func messageID(e *gladhand.Event) string {
	id := idOf(e)
	if id == "" {
		opens := e.Opens
		if opens == 0 {
			opens = e.First
		}
		id = "#" + strconv.FormatUint(uint64(opens), 10)
	}
	return id + string(e.Prior)
}

// chunkToV2 gives a chunk the id that v2 requires.
func chunkToV2(e *gladhand.Event) []json.RawMessage {
	if _, ok := str(get(e.Update, "messageId")); ok {
		return one(e.Update)
	}
	return one(rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		if name == "messageId" {
			return name, nil
		}
		return name, val
	}, func(o *object) { o.str("messageId", messageID(e)) }))
}

// chunkToV1 puts a chunk under the id that v1 readers see, and replaces a block
// of a type that v1 has not by text that names it.
func chunkToV1(e *gladhand.Event) []json.RawMessage {
	return one(rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		switch {
		case name == "messageId" && len(e.Prior) > 0:
			return name, quote(messageID(e))
		case name == "content":
			return name, blockToV1(val)
		}
		return name, val
	}, nil))
}

// messageToV1 makes chunks of a message that v2 sets as a whole: of what it adds
// to the text that was shown, else of all of it, under an id of its own.
func messageToV1(tag string) projection {
	return func(e *gladhand.Event) []json.RawMessage {
		content := get(e.Update, "content")
		if !isArray(content) {
			return nil
		}
		var chunks []json.RawMessage
		chunk := func(block []byte) {
			chunks = append(chunks, rewrite(e.Update, func(name string, val []byte) (string, []byte) {
				switch name {
				case "sessionUpdate":
					return name, quote(tag)
				case "messageId":
					return name, quote(messageID(e))
				case "content":
					return name, block
				}
				return name, val
			}, nil))
		}
		if text := onlyBlockText(content); text.Start > 0 {
			if skip := max(e.Base, 0); skip < text.Len() {
				chunk(cutBlock(content, text, skip))
			}
			return chunks
		}
		eachItem(content, func(s gladhand.Span) bool {
			chunk(blockToV1(content[s.Start:s.End]))
			return true
		})
		return chunks
	}
}

// cutBlock is the only block of a message without the first bytes of its text.
func cutBlock(content []byte, text gladhand.Span, skip int) []byte {
	block := skipSpace(content, 1)
	end, _ := skipValue(content, block)
	out := make([]byte, 0, end-block)
	out = append(out, content[block:text.Start]...)
	return append(out, content[text.Start+skip:end]...)
}

// blocksToV1 is blockToV1 for each of an array.
func blocksToV1(blocks []byte) []byte {
	return mapItems(blocks, func(b []byte) [][]byte { return [][]byte{blockToV1(b)} })
}

// blockToV1 replaces a content block of a type that v1 has not.
func blockToV1(block []byte) []byte {
	switch t := getStr(block, "type"); t {
	case "text", "image", "audio", "resource_link", "resource":
		return block
	case "":
		return block
	default:
		return textBlock("[" + t + "]")
	}
}

func textBlock(text string) []byte {
	var o object
	o.str("type", "text")
	o.str("text", text)
	return o.json()
}

// sessionMessageToV1 is the same shape in both, but for the blocks.
func sessionMessageToV1(e *gladhand.Event) []json.RawMessage {
	return one(rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		if name == "content" {
			return name, blocksToV1(val)
		}
		return name, val
	}, nil))
}

// compactionToV1 is the same shape in both, but for the blocks.
func compactionToV1(e *gladhand.Event) []json.RawMessage {
	return one(rewrite(e.Update, func(name string, val []byte) (string, []byte) {
		if name == "summary" {
			return name, blocksToV1(val)
		}
		return name, val
	}, nil))
}
