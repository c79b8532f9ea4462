package acp

import (
	"hash/crc64"
	"strconv"

	"gladhand"
)

// Shown remembers, for the events of one log in their order, what a projection
// must know of those before. The zero value is ready. It keeps a few words for
// each message that v2 updates touch, and up to 64 KiB for each open tool call
// whose content came in chunks; nothing for v1 updates, which need nothing. It is
// not safe for concurrent use. Call End when a turn ends.
type Shown struct {
	messages map[string]*shownMessage
	tools    map[string][]byte
}

// shownMessage is what readers have of a message.
type shownMessage struct {
	n   int    // bytes of raw text
	sum uint64 // of that text
	// whole is false when the text is not all there is, or is not known.
	whole bool
	// alias ends the id under which v1 readers see the message now.
	alias []byte
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// Note sets Base and Prior of an event that was numbered (First and Opens) and
// is about to be appended, and remembers it. Call it once for every event.
func (s *Shown) Note(e *gladhand.Event) {
	if e.Version != V2 {
		return
	}
	k := kinds[e.Tag]
	switch {
	case k.sort == "tool:":
		s.noteTool(e)
	case k.key == "messageId" && k.sort != "session_message:": // v1 can replace that one
		s.noteMessage(e)
	}
}

// End forgets what was open in a turn that ended. A later update of one of its
// messages shows it anew to v1 readers; what was shown anew before stays known.
func (s *Shown) End() {
	s.tools = nil
	for id, m := range s.messages {
		if m.alias == nil {
			delete(s.messages, id)
		}
	}
}

func (s *Shown) noteMessage(e *gladhand.Event) {
	m := s.messages[e.ID]
	if m == nil {
		m = &shownMessage{whole: e.Opens == e.First || e.Opens == 0}
		if s.messages == nil {
			s.messages = map[string]*shownMessage{}
		}
		s.messages[e.ID] = m
	}
	if e.Class == gladhand.Append {
		e.Prior = m.alias
		m.append(e)
		return
	}
	content := get(e.Update, "content")
	if content == nil { // leaves the text alone
		e.Prior = m.alias
		e.Base = m.n
		return
	}
	m.replace(e, content)
}

func (m *shownMessage) append(e *gladhand.Event) {
	if !hasText(e) {
		m.whole = false
		return
	}
	m.n += e.Text.Len()
	m.sum = crc64.Update(m.sum, crcTable, e.Update[e.Text.Start:e.Text.End])
}

func (m *shownMessage) replace(e *gladhand.Event, content []byte) {
	text := e.Update[e.Text.Start:e.Text.End]
	fresh := m.whole && m.n == 0
	extends := m.whole && hasText(e) && len(text) >= m.n && crc64.Checksum(text[:m.n], crcTable) == m.sum
	switch {
	case fresh || extends:
		e.Base = m.n
	default:
		e.Base = -1
		m.alias = strconv.AppendUint([]byte{'~'}, uint64(e.First), 10)
	}
	e.Prior = m.alias
	*m = shownMessage{whole: true, alias: m.alias}
	if hasText(e) {
		m.append(e)
	} else {
		m.whole = isNull(content) || string(content) == "[]"
	}
}

// noteTool keeps what v1 must be told again with each chunk of a tool call's
// content, since it can only replace all of it.
func (s *Shown) noteTool(e *gladhand.Event) {
	if e.ID == "" {
		return
	}
	held := s.tools[e.ID]
	if e.Tag == TagToolChunk {
		e.Prior = held[:len(held):len(held)]
		held = holdMore(held, contentItems(get(e.Update, "content")))
	} else if content := get(e.Update, "content"); content != nil {
		held = holdMore(nil, inside(contentToV1(content)))
	}
	switch getStr(e.Update, "status") {
	case "completed", "failed", "cancelled":
		held = nil
	}
	if len(held) == 0 {
		delete(s.tools, e.ID)
		return
	}
	if s.tools == nil {
		s.tools = map[string][]byte{}
	}
	s.tools[e.ID] = held
}

// heldLimit is how much of a tool call's earlier content v1 is told again.
const heldLimit = 64 << 10

// holdMore appends the items to those held. It never changes bytes that were
// given out: a slice that grows keeps its prefix, one that is cut is new.
func holdMore(held, items []byte) []byte {
	if len(items) == 0 {
		return held
	}
	if len(held)+len(items) > heldLimit {
		return append([]byte(nil), items...)
	}
	if len(held) > 0 {
		held = append(held, ',')
	}
	return append(held, items...)
}

// inside is what stands between an array's brackets.
func inside(b []byte) []byte {
	if len(b) < 2 || b[0] != '[' {
		return nil
	}
	return b[1 : len(b)-1]
}
