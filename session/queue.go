package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// queue is the prompts of a session that wait, in the order in which they run.
// The session's mutex guards it.
type queue struct {
	items  []*queued
	paused bool
	held   bool // the daemon is stopping: nothing new starts
}

// placeStep is the distance between two places, so that a prompt can be put
// between two others by storing only itself.
const placeStep = 1 << 32

// queued is a prompt that waits, or joined or started the running turn.
type queued struct {
	gladhand.Prompt
	place  int64
	stored bool // committed: it may run
	// withdrawn is who cancelled it before it was stored; it never runs.
	withdrawn *gladhand.Identity
	// waiters are callers who sent the same id again before it was stored.
	waiters []func(gladhand.Receipt, error)
}

// fill takes the prompts that wait in the store.
func (q *queue) fill(waiting []store.Waiting) {
	for _, w := range waiting {
		q.items = append(q.items, &queued{Prompt: w.Prompt, place: w.Place, stored: true})
	}
}

func (q *queue) waiting() int { return len(q.items) }

func (q *queue) prompts() []gladhand.Prompt {
	ps := []gladhand.Prompt{}
	for _, it := range q.items {
		if it.stored {
			ps = append(ps, it.Prompt)
		}
	}
	return ps
}

func (q *queue) find(id gladhand.PromptID) (int, *queued) {
	for i, it := range q.items {
		if it.ID == id {
			return i, it
		}
	}
	return -1, nil
}

func (q *queue) remove(it *queued) bool {
	i := slices.Index(q.items, it)
	if i < 0 {
		return false
	}
	q.items = slices.Delete(q.items, i, i+1)
	return true
}

// put adds a prompt: an interrupt at the head, a steer at the head behind other
// steers, the rest at the end.
func (q *queue) put(it *queued) {
	i := len(q.items)
	switch it.Delivery {
	case gladhand.Interrupt:
		i = 0
	case gladhand.Steer:
		for i = 0; i < len(q.items) && q.items[i].Delivery == gladhand.Steer; i++ {
		}
	}
	q.insert(i, it)
}

// insert puts it at index i and gives it a place between its neighbours.
func (q *queue) insert(i int, it *queued) {
	switch n := len(q.items); {
	case n == 0:
		it.place = 0
	case i == 0:
		it.place = q.items[0].place - placeStep
	case i == n:
		it.place = q.items[n-1].place + placeStep
	default:
		before, behind := q.items[i-1].place, q.items[i].place
		it.place = before + (behind-before)/2
	}
	q.items = slices.Insert(q.items, i, it)
}

// Send puts a prompt in and calls done once: with its receipt when it is stored,
// or with the error that kept it out. done must not block. Send itself does not
// wait, and prompts are queued in the order of the calls.
//
// p needs Content; ID and Delivery may be empty. An id known in this session gets
// the first prompt's receipt, with other content CodeConflict. Other errors:
// CodeForbidden, CodeInvalidParams, CodeQueueFull, ReasonGone, ReasonDiskFull.
func (s *Session) Send(who gladhand.Identity, p gladhand.Prompt, done func(gladhand.Receipt, error)) {
	if err := checkPrompt(who, &p); err != nil {
		done(gladhand.Receipt{}, err)
		return
	}
	p.Session, p.By, p.State, p.At = s.id, who, gladhand.PromptStored, time.Now()
	s.mu.Lock()
	defer s.log.unlock()
	switch {
	case s.gone != nil || s.ending != nil:
		err := cmp.Or(s.gone, s.ending)
		s.log.later(func() { done(gladhand.Receipt{}, err) })
	case s.known(p, done):
	case s.queue.waiting() >= s.opts.QueueMax:
		err := gladhand.Errorf(gladhand.CodeQueueFull, gladhand.ReasonQueueFull,
			"%d prompts wait already; wait for one to run, drop one, or raise queue.max", s.opts.QueueMax).With("limit", s.opts.QueueMax)
		s.log.later(func() { done(gladhand.Receipt{}, err) })
	default:
		s.accept(p, done)
	}
}

func checkPrompt(who gladhand.Identity, p *gladhand.Prompt) error {
	if err := who.May(gladhand.Prompting); err != nil {
		return err
	}
	if p.ID == "" {
		p.ID = gladhand.PromptID(gladhand.NewID())
	}
	if !gladhand.ValidID(string(p.ID)) {
		return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid,
			"a prompt id is 1 to 100 characters of letters, digits, '_', '-' and '.'")
	}
	switch p.Delivery {
	case "":
		p.Delivery = gladhand.Queue
	case gladhand.Queue, gladhand.Steer, gladhand.Interrupt:
	default:
		return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "delivery is queue, steer or interrupt, not %q", p.Delivery)
	}
	if len(p.Content) > PromptMax {
		return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid,
			"a prompt may have %d bytes, and this has %d; name a file instead of sending it", PromptMax, len(p.Content)).With("limit", PromptMax)
	}
	if err := acp.ValidatePrompt(p.Content); err != nil {
		return err
	}
	return checkCommand(p.Content)
}

// known handles a prompt whose id is in memory already; mu is held.
func (s *Session) known(p gladhand.Prompt, done func(gladhand.Receipt, error)) bool {
	_, it := s.queue.find(p.ID)
	if it == nil && s.turn != nil {
		it = s.turn.joined(p.ID)
	}
	if it == nil {
		return false
	}
	if !bytes.Equal(it.Content, p.Content) {
		s.log.later(func() { done(gladhand.Receipt{}, errOtherText(p.ID)) })
		return true
	}
	if !it.stored {
		it.waiters = append(it.waiters, done)
		return true
	}
	r := s.receipt(it)
	s.log.later(func() { done(r, nil) })
	return true
}

func errOtherText(id gladhand.PromptID) error {
	return gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonConflict,
		"the prompt id %s was used before, with other text; send it under a new id", id)
}

// accept files a new prompt; mu is held.
func (s *Session) accept(p gladhand.Prompt, done func(gladhand.Receipt, error)) {
	it := &queued{Prompt: p, waiters: []func(gladhand.Receipt, error){done}}
	s.queue.put(it)
	pos, _ := s.queue.find(p.ID)
	by := p.By
	ev := s.own(&by, gladhand.TagPrompt, gladhand.PromptUpdate{
		SessionUpdate: gladhand.TagPrompt, PromptID: p.ID, State: p.State, Delivery: p.Delivery,
		Position: pos + 1, Prompt: p.Content,
	})
	ev.Turn = 0
	s.log.append(&op{
		revert: true,
		with: func(tx *store.Tx) error {
			row := it.Prompt
			row.Seq = ev.First
			return tx.PutPrompt(row, it.place)
		},
		done: func(err error) { s.accepted(it, ev.First, err) },
	}, ev)
}

// accepted is the store's word about a new prompt; mu is held.
func (s *Session) accepted(it *queued, seq gladhand.Seq, err error) {
	waiters := it.waiters
	it.waiters = nil
	if err != nil {
		s.queue.remove(it)
		s.kick() // it may have stood at the head
		if errors.Is(err, store.ErrExists) {
			s.log.later(func() { go s.repeated(it.Prompt, waiters) })
			return
		}
		s.log.later(func() { tell(waiters, gladhand.Receipt{}, err) })
		return
	}
	it.stored, it.Seq = true, seq
	r := s.receipt(it)
	s.log.later(func() { tell(waiters, r, nil) })
	switch {
	case it.withdrawn != nil:
		s.drop(it, it.withdrawn, "cancelled by "+it.withdrawn.Display())
	case it.Delivery == gladhand.Interrupt && s.turn != nil:
		s.cancelTurn(&it.By) // not before: one that is refused, or known, interrupts nothing
	}
	s.kick()
}

func tell(waiters []func(gladhand.Receipt, error), r gladhand.Receipt, err error) {
	for _, w := range waiters {
		w(r, err)
	}
}

// repeated answers for a prompt whose id the store had already.
func (s *Session) repeated(p gladhand.Prompt, waiters []func(gladhand.Receipt, error)) {
	r, err := s.Receipt(context.Background(), p.ID)
	if err == nil {
		var first gladhand.Prompt
		if first, err = s.store.Prompt(context.Background(), s.id, p.ID); err == nil && !bytes.Equal(first.Content, p.Content) {
			err = errOtherText(p.ID)
		}
	}
	tell(waiters, r, err)
}

// receipt says where a prompt stands; mu is held.
func (s *Session) receipt(it *queued) gladhand.Receipt {
	pos, _ := s.queue.find(it.ID)
	return gladhand.Receipt{Prompt: it.ID, State: it.State, Outcome: it.Outcome, Position: pos + 1, Seq: it.Seq}
}

// Receipt says what became of a prompt. Errors: CodeNotFound, the store's.
func (s *Session) Receipt(ctx context.Context, id gladhand.PromptID) (gladhand.Receipt, error) {
	s.mu.Lock()
	_, it := s.queue.find(id)
	if it == nil && s.turn != nil {
		it = s.turn.joined(id)
	}
	if it != nil && it.stored {
		defer s.mu.Unlock()
		return s.receipt(it), nil
	}
	s.mu.Unlock()
	p, err := s.store.Prompt(ctx, s.id, id)
	if err != nil {
		return gladhand.Receipt{}, err
	}
	return gladhand.Receipt{Prompt: p.ID, State: p.State, Outcome: p.Outcome, Seq: p.Seq}, nil
}

// Queue lists the waiting prompts. It needs the right to observe.
func (s *Session) Queue(who gladhand.Identity) (ps []gladhand.Prompt, paused bool, err error) {
	if err := who.May(gladhand.Observe); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.prompts(), s.queue.paused, nil
}

// Drop takes a waiting prompt out of the queue: its sender's own with the right
// to prompt, anybody's with the right to manage.
func (s *Session) Drop(who gladhand.Identity, id gladhand.PromptID) error {
	return s.change(who, id, func(it *queued) {
		s.drop(it, &who, "dropped by "+who.Display())
	})
}

// Move puts a waiting prompt at a position, from 1; beyond the end is the end.
func (s *Session) Move(who gladhand.Identity, id gladhand.PromptID, position int) error {
	if position < 1 {
		return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "positions in the queue count from 1")
	}
	return s.change(who, id, func(it *queued) {
		s.queue.remove(it)
		i := min(position-1, len(s.queue.items))
		s.queue.insert(i, it)
		row, place := it.Prompt, it.place
		s.emit(&op{with: func(tx *store.Tx) error { return tx.SetPrompt(row, place) }}, &who, gladhand.TagPrompt, gladhand.PromptUpdate{
			SessionUpdate: gladhand.TagPrompt, PromptID: id, State: it.State, Delivery: it.Delivery, Position: i + 1,
		})
	})
}

// change runs f on a waiting prompt that who may change.
func (s *Session) change(who gladhand.Identity, id gladhand.PromptID, f func(*queued)) error {
	if err := who.May(gladhand.Prompting); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.log.unlock()
	if s.gone != nil {
		return s.gone
	}
	_, it := s.queue.find(id)
	if it == nil || !it.stored {
		return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonNotFound, "no waiting prompt has the id %s", id)
	}
	if it.By.Client != who.Client {
		if err := who.May(gladhand.Manage); err != nil {
			return err
		}
	}
	f(it)
	return nil
}

// withdraw drops a waiting prompt, or has it dropped as soon as it is stored; mu
// is held.
func (s *Session) withdraw(it *queued, who *gladhand.Identity) {
	if it.stored {
		s.drop(it, who, "cancelled by "+who.Display())
		return
	}
	it.withdrawn = who
}

// drop ends a waiting prompt without a turn; mu is held.
func (s *Session) drop(it *queued, who *gladhand.Identity, reason string) {
	s.queue.remove(it)
	it.State, it.Outcome = gladhand.PromptDone, gladhand.Cancelled
	row, place := it.Prompt, it.place
	ev := s.own(who, gladhand.TagPrompt, gladhand.PromptUpdate{
		SessionUpdate: gladhand.TagPrompt, PromptID: it.ID, State: it.State, Outcome: it.Outcome, Reason: reason,
	})
	ev.Turn = 0
	s.log.append(&op{with: func(tx *store.Tx) error { return tx.SetPrompt(row, place) }}, ev)
}

// Pause stops the queue: what waits goes on waiting, what runs runs on.
func (s *Session) Pause(who gladhand.Identity, paused bool) error {
	if err := who.May(gladhand.Configure); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.log.unlock()
	if s.gone != nil {
		return s.gone
	}
	if s.queue.paused == paused {
		return nil
	}
	s.queue.paused, s.row.Paused = paused, paused
	state := "resumed"
	if paused {
		state = "paused"
	}
	s.emit(&op{with: s.put()}, &who, gladhand.TagQueue, gladhand.QueueUpdate{SessionUpdate: gladhand.TagQueue, State: state})
	s.kick()
	return nil
}
