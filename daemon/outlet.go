package daemon

import "gladhand"

// outlet is how far a feed has come, and what it is about to write. Its run alone
// uses it.
type outlet struct {
	at    gladhand.Seq // everything up to here was passed
	told  gladhand.Seq // the last number that a frame to this client named
	enc   encoder      // for what no others read
	parts []*part      // what is being passed
	batch [][]byte     // what was passed and not handed to the connection
}

// historyItems is how many events of the history a feed encodes at a time.
const historyItems = 128

// put adds frames that name the numbers up to tells.
func (o *outlet) put(tells gladhand.Seq, frames ...[]byte) {
	o.batch = append(o.batch, frames...)
	o.told = tells
}

// again is a part's frames for a reader that was told of less.
func (o *outlet) again(p *part) (frames [][]byte, tells gladhand.Seq) {
	o.enc.told = o.told
	for _, it := range p.items {
		frames = o.enc.encode(frames, it)
	}
	return frames, o.enc.told
}

// clear lets go of what was passed.
func (o *outlet) clear() {
	clear(o.parts)
	o.parts = o.parts[:0]
	if o.enc.room = o.enc.room[:0]; cap(o.enc.room) > roomBytes {
		o.enc.room = nil
	}
}
