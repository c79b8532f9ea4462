package store

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"gladhand"
)

// An event's row is three columns, since reading a column costs more than
// decoding it ourselves: where it stands, the head, and the update's bytes.
// The head is
//
//	1 byte    format, headFormat
//	4 bytes   CRC-32C of position, rest of the head, and update; little endian
//	varints   last−first, first−opens, turn
//	2 bytes   class, version
//	tag       1 byte, its index in knownTags; 0: a string follows
//	string    id
//	varints   start and length of the text, base, time in µs
//	varints   number of lens + 1 (0: nil), then each
//	string    who caused it, as JSON; empty for the agent
//	string    what a projection must know of earlier events of the id
//
// A string is its length as a varint, then its bytes.
const headFormat = 1

// seqBits is how many low bits of a position hold the first number. A session
// can have 68 billion numbers, a database 134 million sessions.
const (
	seqBits = 36
	maxSeq  = 1<<seqBits - 1
	maxKey  = 1<<(63-seqBits) - 1
)

func position(key int64, seq gladhand.Seq) int64 { return key<<seqBits | int64(seq) }

func firstOf(pos int64) gladhand.Seq { return gladhand.Seq(pos & maxSeq) }

// knownTags are written as their index. Append only: the indexes are on disks.
var knownTags = []string{
	"",
	"user_message_chunk", "agent_message_chunk", "agent_thought_chunk",
	"tool_call", "tool_call_update", "tool_call_content_chunk", "plan", "plan_update", "plan_removed",
	"user_message", "agent_message", "agent_thought", "state_update",
	"available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "usage_update",
	gladhand.TagPrompt, gladhand.TagTurnStart, gladhand.TagTurnEnd, gladhand.TagAsk, gladhand.TagAnswer,
	gladhand.TagClient, gladhand.TagQueue, gladhand.TagInterrupted,
}

var tagIndex = func() map[string]byte {
	m := make(map[string]byte, len(knownTags))
	for i, t := range knownTags[1:] {
		m[t] = byte(i + 1)
	}
	return m
}()

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errDamaged = errors.New("damaged")

// checkEvent refuses what could not be read back as it is.
func checkEvent(e *gladhand.Event) error {
	switch {
	case e.First == 0 || e.Last < e.First || e.Last > maxSeq:
		return fmt.Errorf("event covers %d..%d", e.First, e.Last)
	case e.Text.Start < 0 || e.Text.End < e.Text.Start || e.Text.End > len(e.Update):
		return fmt.Errorf("event %d: text at %d..%d of %d bytes", e.First, e.Text.Start, e.Text.End, len(e.Update))
	}
	return nil
}

// appendHead appends e's head to b. by is e.By as JSON.
func appendHead(b []byte, pos int64, e *gladhand.Event, by []byte) []byte {
	start := len(b)
	b = append(b, headFormat, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(e.Last-e.First))
	b = binary.AppendVarint(b, int64(e.First)-int64(e.Opens))
	b = binary.AppendUvarint(b, uint64(e.Turn))
	tag := tagIndex[e.Tag]
	b = append(b, byte(e.Class), e.Version, tag)
	if tag == 0 {
		b = appendString(b, e.Tag)
	}
	b = appendString(b, e.ID)
	b = binary.AppendUvarint(b, uint64(e.Text.Start))
	b = binary.AppendUvarint(b, uint64(e.Text.Len()))
	b = binary.AppendVarint(b, int64(e.Base))
	b = binary.AppendVarint(b, e.At.UnixMicro())
	if e.Lens == nil {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(len(e.Lens))+1)
		for _, l := range e.Lens {
			b = binary.AppendUvarint(b, uint64(l))
		}
	}
	b = appendString(b, by)
	b = appendString(b, e.Prior)
	binary.LittleEndian.PutUint32(b[start+1:], sum(pos, b[start+5:], e.Update))
	return b
}

func appendString[T ~string | ~[]byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func sum(pos int64, head, update []byte) uint32 {
	var p [8]byte
	binary.LittleEndian.PutUint64(p[:], uint64(pos))
	crc := crc32.Update(0, castagnoli, p[:])
	crc = crc32.Update(crc, castagnoli, head)
	return crc32.Update(crc, castagnoli, update)
}

// decoder decodes heads, sharing the strings and identities that neighbours
// have in common. Not safe for concurrent use.
type decoder struct {
	id     string
	byJSON string
	by     *gladhand.Identity
}

// decode fills e from a row. e keeps update, and nothing of head.
func (d *decoder) decode(e *gladhand.Event, pos int64, head, update []byte) error {
	if len(head) < 5 || binary.LittleEndian.Uint32(head[1:]) != sum(pos, head[5:], update) {
		return errDamaged
	}
	if head[0] != headFormat {
		return fmt.Errorf("event of format %d", head[0])
	}
	r := reader{b: head[5:]}
	e.First = firstOf(pos)
	e.Last = e.First + gladhand.Seq(r.uvarint())
	e.Opens = gladhand.Seq(int64(e.First) - r.varint())
	e.Turn = gladhand.TurnID(r.uvarint())
	e.Class = gladhand.Class(r.byte())
	e.Version = r.byte()
	switch tag := int(r.byte()); {
	case tag == 0:
		e.Tag = string(r.string())
	case tag < len(knownTags):
		e.Tag = knownTags[tag]
	default:
		return fmt.Errorf("event with tag number %d", tag)
	}
	if id := r.string(); string(id) != d.id {
		d.id = string(id)
	}
	e.ID = d.id
	e.Text.Start = int(r.uvarint())
	e.Text.End = e.Text.Start + int(r.uvarint())
	e.Base = int(r.varint())
	e.At = time.UnixMicro(r.varint()).UTC()
	e.Lens = r.lens()
	by := r.string()
	prior := r.string()
	if r.bad {
		return errDamaged
	}
	e.Prior = nil
	if len(prior) > 0 {
		e.Prior = bytes.Clone(prior)
	}
	e.Update = update
	return d.setBy(e, by)
}

func (d *decoder) setBy(e *gladhand.Event, by []byte) error {
	if len(by) == 0 {
		e.By = nil
		return nil
	}
	if string(by) != d.byJSON {
		id, err := decodeIdentity(by)
		if err != nil {
			return err
		}
		d.by, d.byJSON = id, string(by)
	}
	e.By = d.by
	return nil
}

// reader takes a head apart. After a read beyond the end bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

func (r *reader) string() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	s := r.b[:n]
	r.b = r.b[n:]
	return s
}

func (r *reader) lens() []uint32 {
	n := r.uvarint()
	if n == 0 || n-1 > uint64(len(r.b)) {
		r.bad = r.bad || n != 0
		return nil
	}
	lens := make([]uint32, n-1)
	for i := range lens {
		lens[i] = uint32(r.uvarint())
	}
	return lens
}

// storedIdentity is an identity with its rights, which no wire carries.
type storedIdentity struct {
	gladhand.Identity
	Rights uint8 `json:"rights,omitempty"`
}

func encodeIdentity(id gladhand.Identity) ([]byte, error) {
	return json.Marshal(storedIdentity{id, uint8(id.Rights)})
}

func decodeIdentity(b []byte) (*gladhand.Identity, error) {
	var s storedIdentity
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	s.Identity.Rights = gladhand.Rights(s.Rights)
	return &s.Identity, nil
}
