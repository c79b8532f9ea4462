package daemon

import (
	"encoding/json"
	"strconv"

	"gladhand"
	"gladhand/acp"
	"gladhand/session"
)

// A frame is a session/update as it goes onto the wire.

// frameKey is everything that a frame depends on, besides the event and the
// numbers.
type frameKey struct {
	version int8
	own     bool // the reader used _gladhand/attach
	replay  bool
	optIns  acp.OptIns
}

// encoder makes what events are to one reader, or to all that are at one place.
type encoder struct {
	s       gladhand.SessionID
	key     frameKey     // but for replay
	history gladhand.Seq // numbers up to here are replayed
	told    gladhand.Seq // the last number that a frame named
	// room is where frames are put, one behind the other, and size how much is about
	// to come. Who needs earlier frames no more may empty it.
	room []byte
	size int
}

const (
	roomBytes = 64 << 10 // the most that is kept to be used again
	partBytes = 64 << 10 // about
	metaBytes = 256      // about; what a frame has around its update
)

// parts appends to dst what items, which follow the number from, are to a reader.
// A part ends where the history does.
func (e *encoder) parts(dst []*part, from gladhand.Seq, items []session.Item) []*part {
	e.size = 0
	for _, it := range items {
		e.size += len(it.Event.Update) + metaBytes
	}
	var p *part
	first := 0
	for i, it := range items {
		simple := plain(it.Event)
		if p == nil || !simple || !p.plain || p.bytes >= partBytes || p.from < e.history && p.to >= e.history {
			p, first = &part{from: from, told: e.told, plain: simple}, i
			dst = append(dst, p)
		}
		n := len(p.frames)
		p.frames = e.encode(p.frames, it)
		for _, f := range p.frames[n:] {
			p.bytes += len(f)
		}
		p.items = items[first : i+1]
		p.to, p.tells = it.To, e.told
		from = it.To
	}
	return dst
}

// encode appends the frames of one event to dst. What shows nothing is absorbed
// into the span of the next that does.
func (e *encoder) encode(dst [][]byte, it session.Item) [][]byte {
	key := e.key
	key.replay = it.To <= e.history
	updates := project(it.Event, key)
	for i, u := range updates {
		dst = append(dst, e.frame(u, gladhand.UpdateMeta{
			From: e.told + 1, To: it.To, Turn: it.Event.Turn, By: it.Event.By, Replay: key.replay, Part: i < len(updates)-1,
		}))
	}
	if len(updates) > 0 {
		e.told = it.To
	}
	return dst
}

func (e *encoder) frame(update json.RawMessage, m gladhand.UpdateMeta) []byte {
	if size := len(update) + metaBytes; cap(e.room)-len(e.room) < size {
		e.room = make([]byte, 0, max(min(e.size, roomBytes), size))
	}
	n := len(e.room)
	e.size -= len(update) + metaBytes
	e.room = appendFrame(e.room, e.s, update, m)
	return e.room[n:len(e.room):len(e.room)]
}

// plain reports whether an event is nothing but frames to every live reader: see
// feed.echo, feed.openTool and feed.act.
func plain(ev *gladhand.Event) bool {
	switch ev.Tag {
	case acp.TagUserChunk, acp.TagToolCallUpdate, acp.TagToolChunk:
		return false
	}
	return ev.Version != 0
}

// project is what an event shows to a reader.
func project(ev *gladhand.Event, key frameKey) []json.RawMessage {
	to := int(key.version)
	switch {
	case ev.Version == 0 && key.own:
		return []json.RawMessage{ev.Update}
	case ev.Version == 0 && to == acp.V2 && !key.replay:
		return append(stateUpdate(ev), acp.ProjectOwn(ev, to, true)...)
	case ev.Version == 0:
		return acp.ProjectOwn(ev, to, key.optIns.Notices)
	case key.own:
		return acp.Project(ev, to)
	case to == acp.V1:
		return acp.Fit(ev, acp.Project(ev, to), key.optIns)
	}
	return acp.Project(ev, to)
}

// stateUpdate is what v2 says of a turn's start and end and of an open question.
func stateUpdate(ev *gladhand.Event) []json.RawMessage {
	switch ev.Tag {
	case gladhand.TagTurnStart, gladhand.TagAnswer:
		return []json.RawMessage{acp.Running()}
	case gladhand.TagAsk:
		return []json.RawMessage{acp.RequiresAction()}
	case gladhand.TagTurnEnd:
		t := view[gladhand.TurnUpdate](ev)
		return []json.RawMessage{acp.Idle(t.StopReason, t.Error)}
	}
	return nil
}

// view decodes one of our own updates.
func view[T any](ev *gladhand.Event) (t T) {
	if err := json.Unmarshal(ev.Update, &t); err != nil {
		panic("an update of ours does not decode: " + err.Error())
	}
	return t
}

func updateMeta(it session.Item, replay, part bool) gladhand.UpdateMeta {
	return gladhand.UpdateMeta{From: it.From, To: it.To, Turn: it.Event.Turn, By: it.Event.By, Replay: replay, Part: part}
}

// frame builds a session/update by hand: the update's bytes go in as they are.
func frame(s gladhand.SessionID, update json.RawMessage, m gladhand.UpdateMeta) []byte {
	return appendFrame(make([]byte, 0, len(update)+220), s, update, m)
}

func appendFrame(b []byte, s gladhand.SessionID, update json.RawMessage, m gladhand.UpdateMeta) []byte {
	b = append(b, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"`...)
	b = append(b, s...) // ours: letters and digits
	b = append(b, `","update":`...)
	b = append(b, update...)
	b = append(b, `,"_meta":{"gladhand":{"from":`...)
	b = strconv.AppendUint(b, uint64(m.From), 10)
	b = append(b, `,"to":`...)
	b = strconv.AppendUint(b, uint64(m.To), 10)
	if m.Turn != 0 {
		b = append(b, `,"turn":`...)
		b = strconv.AppendUint(b, uint64(m.Turn), 10)
	}
	if m.By != nil {
		b = append(b, `,"by":`...)
		b = append(b, meta(m.By)...)
	}
	if m.Replay {
		b = append(b, `,"replay":true`...)
	}
	if m.Part {
		b = append(b, `,"part":true`...)
	}
	return append(b, `}}}}`...)
}
