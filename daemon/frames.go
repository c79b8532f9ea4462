package daemon

import (
	"encoding/json"
	"strconv"
	"sync"

	"gladhand"
	"gladhand/acp"
	"gladhand/session"
)

// A frame is a session/update as it goes onto the wire. Readers at the same
// cursor get the same *Event from the session, so what one reader made of it
// serves all: nothing is encoded per client.

// frameKey is everything that a frame depends on.
type frameKey struct {
	ev      *gladhand.Event
	from    gladhand.Seq
	version int8
	own     bool // the reader used _gladhand/attach
	replay  bool
	optIns  acp.OptIns
}

// frameCache keeps the newest frames. The zero value is ready.
type frameCache struct {
	mu     sync.RWMutex
	frames map[frameKey][][]byte
	bytes  int
}

const framesKept = 1 << 20 // bytes

// of returns the frames that it is to a reader; none when it shows nothing.
func (fc *frameCache) of(s gladhand.SessionID, it session.Item, key frameKey) [][]byte {
	key.ev, key.from = it.Event, it.From
	fc.mu.RLock()
	frames, ok := fc.frames[key]
	fc.mu.RUnlock()
	if ok {
		return frames
	}
	frames = encode(s, it, key)
	fc.mu.Lock()
	if fc.frames == nil || fc.bytes >= framesKept {
		fc.frames, fc.bytes = map[frameKey][][]byte{}, 0
	}
	fc.frames[key] = frames
	fc.bytes += 64 + len(it.Event.Update)
	for _, f := range frames {
		fc.bytes += len(f)
	}
	fc.mu.Unlock()
	return frames
}

func encode(s gladhand.SessionID, it session.Item, key frameKey) [][]byte {
	updates := project(it.Event, key)
	frames := make([][]byte, 0, len(updates))
	for i, u := range updates {
		frames = append(frames, frame(s, u, updateMeta(it, key.replay, i < len(updates)-1)))
	}
	return frames
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
	b := make([]byte, 0, len(update)+220)
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
