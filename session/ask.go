package session

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"gladhand"
	"gladhand/store"
)

// openAsk is an ask that is not settled. The session's mutex guards it.
type openAsk struct {
	gladhand.Ask
	turn    *turn
	shown   bool // committed: it may be answered
	closing bool // an answer is on its way to the store
	by      *gladhand.Identity
	verdict chan gladhand.Verdict
	// losers are callers who answered while another answer was on its way.
	losers []func()
	expiry *time.Timer // armed while nobody is there who may answer
}

func (a *openAsk) open() bool { return a.shown && !a.closing }

// settledAsks remembers how the newest asks ended, so that a late answer is told
// without a look into the store.
type settledAsks struct {
	order []gladhand.AskID
	how   map[gladhand.AskID]settledAsk
}

type settledAsk struct {
	how gladhand.Settled
	by  *gladhand.Identity
}

const settledKept = 64

func (m *settledAsks) add(id gladhand.AskID, how gladhand.Settled, by *gladhand.Identity) {
	if m.how == nil {
		m.how = map[gladhand.AskID]settledAsk{}
	}
	m.how[id] = settledAsk{how, by}
	m.order = append(m.order, id)
	if len(m.order) > settledKept {
		delete(m.how, m.order[0])
		m.order = m.order[1:]
	}
}

// Ask implements [gladhand.Turn].
func (t *turn) Ask(ctx context.Context, ask gladhand.Ask) (gladhand.Verdict, error) {
	s := t.s
	s.mu.Lock()
	if err := t.live(); err != nil {
		s.mu.Unlock()
		return gladhand.Verdict{}, err
	}
	if s.remembers(ask.Rule) {
		s.mu.Unlock()
		return gladhand.Verdict{Settled: gladhand.SettledByRule, Kind: gladhand.AllowAlways}, nil
	}
	ask.ID, ask.Session, ask.Turn, ask.At = gladhand.AskID(gladhand.NewID()), s.id, t.id, time.Now()
	a := &openAsk{Ask: ask, turn: t, verdict: make(chan gladhand.Verdict, 1)}
	s.asks[ask.ID] = a
	commit := make(chan error, 1)
	s.emit(&op{
		revert: true,
		with:   func(tx *store.Tx) error { return tx.PutAsk(ask) },
		done: func(err error) {
			if err != nil {
				delete(s.asks, ask.ID)
			} else if s.asks[ask.ID] == a {
				a.shown = true
				s.attend(a)
			}
			commit <- err
		},
	}, nil, gladhand.TagAsk, gladhand.AskUpdate{SessionUpdate: gladhand.TagAsk, Ask: ask})
	s.log.unlock()
	if err := t.await(ctx, commit); err != nil {
		return gladhand.Verdict{}, err
	}
	select {
	case v := <-a.verdict:
		s.mu.Lock()
		defer s.mu.Unlock()
		return v, t.live()
	case <-t.ctx.Done():
		return gladhand.Verdict{}, errTurnOver
	case <-ctx.Done():
		s.mu.Lock()
		defer s.log.unlock()
		s.settle(a, gladhand.SettledCancelled, gladhand.Answer{}, nil)
		return gladhand.Verdict{}, t.gaveUp(ctx)
	}
}

// remembers reports whether an "always" was given for the rule; mu is held.
func (s *Session) remembers(rule string) bool {
	return rule != "" && slices.Contains(s.rules(), rule)
}

func (s *Session) rules() []string {
	var rules []string
	if len(s.row.Rules) > 0 {
		if err := json.Unmarshal(s.row.Rules, &rules); err != nil {
			s.slog.Error("the remembered rules cannot be read, and are not used", "err", err)
		}
	}
	return rules
}

// Answer settles an ask, and calls done once with what became of it; done must
// not block. The first valid answer wins: it is stored, becomes an event and the
// verdict; whoever answers later is told who did. Errors, which leave the ask
// open: CodeForbidden, CodeInvalidParams (no such option), CodeConflict (the
// digest is not that of the ask), the store's.
func (s *Session) Answer(who gladhand.Identity, id gladhand.AskID, ans gladhand.Answer, done func(gladhand.AnswerResult, error)) {
	if err := who.May(gladhand.Answering); err != nil {
		done(gladhand.AnswerResult{}, err)
		return
	}
	s.mu.Lock()
	defer s.log.unlock()
	a := s.asks[id]
	switch {
	case a == nil || !a.shown:
		s.answeredLate(id, done)
	case a.closing:
		a.losers = append(a.losers, func() { s.Answer(who, id, ans, done) })
	default:
		if err := a.check(ans); err != nil {
			s.log.later(func() { done(gladhand.AnswerResult{}, err) })
			return
		}
		s.answer(a, ans, &who, done)
	}
}

// check reports whether ans is a valid answer to a.
func (a *openAsk) check(ans gladhand.Answer) error {
	if ans.Digest != "" && ans.Digest != a.Digest {
		return gladhand.Errorf(gladhand.CodeConflict, gladhand.ReasonConflict, "this answer is for something else than what is asked now; look again")
	}
	if len(a.Options) == 0 || a.option(ans.Option) != nil {
		return nil
	}
	ids := make([]string, 0, len(a.Options))
	for _, o := range a.Options {
		ids = append(ids, o.ID)
	}
	return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "%q is none of the options", ans.Option).With("options", ids)
}

func (a *openAsk) option(id string) *gladhand.Option {
	for i := range a.Options {
		if a.Options[i].ID == id {
			return &a.Options[i]
		}
	}
	return nil
}

// answeredLate answers for an ask that is not open; mu is held.
func (s *Session) answeredLate(id gladhand.AskID, done func(gladhand.AnswerResult, error)) {
	if got, ok := s.settled.how[id]; ok {
		s.log.later(func() { done(lateResult(got.how, got.by), nil) })
		return
	}
	go func() {
		how, by, err := s.store.AskState(context.Background(), s.id, id)
		if gladhand.CodeOf(err) == gladhand.CodeNotFound {
			done(gladhand.AnswerResult{Status: gladhand.AnswerUnknown}, nil)
			return
		}
		done(lateResult(how, by), err)
	}()
}

func lateResult(how gladhand.Settled, by *gladhand.Identity) gladhand.AnswerResult {
	if how == gladhand.SettledAnswered || how == gladhand.SettledByRule {
		return gladhand.AnswerResult{Status: gladhand.AnswerAlready, By: by}
	}
	return gladhand.AnswerResult{Status: gladhand.AnswerExpired, By: by}
}

// answer stores a valid answer; mu is held. The verdict is given when the
// answer is committed; a failed commit opens the ask again.
func (s *Session) answer(a *openAsk, ans gladhand.Answer, by *gladhand.Identity, done func(gladhand.AnswerResult, error)) {
	a.closing, a.by = true, by
	kind := a.verdictKind(ans)
	before, put := s.row.Rules, (func(*store.Tx) error)(nil)
	if kind == gladhand.AllowAlways && a.Rule != "" && !s.remembers(a.Rule) {
		s.row.Rules = withRule(s.rules(), a.Rule)
		put = s.put()
	}
	o := s.settleOp(a, gladhand.SettledAnswered, ans, by)
	if settle := o.with; put != nil {
		o.with = func(tx *store.Tx) error { return errors.Join(settle(tx), put(tx)) }
	}
	o.revert = true
	o.done = func(err error) {
		if err != nil {
			a.closing, a.by = false, nil
			if put != nil {
				s.row.Rules = before
			}
			s.log.later(func() { done(gladhand.AnswerResult{}, err) })
			if a.turn.live() != nil {
				s.settle(a, gladhand.SettledCancelled, gladhand.Answer{}, nil)
			}
		} else {
			s.finish(a, gladhand.Verdict{Settled: gladhand.SettledAnswered, Answer: ans, Kind: kind, By: by})
			s.log.later(func() { done(gladhand.AnswerResult{Status: gladhand.AnswerAccepted, By: by}, nil) })
			if put != nil {
				s.applyRule(a.Rule, by)
			}
		}
		for _, again := range a.losers {
			s.log.later(again)
		}
		a.losers = nil
	}
	s.emitSettled(o, a, gladhand.SettledAnswered, ans, by)
}

func (a *openAsk) verdictKind(ans gladhand.Answer) gladhand.OptionKind {
	if o := a.option(ans.Option); o != nil {
		return o.Kind
	}
	if a.Elicitation != nil && ans.Content != nil {
		return gladhand.AllowOnce
	}
	return gladhand.RejectOnce
}

func withRule(rules []string, rule string) json.RawMessage {
	raw, err := json.Marshal(append(rules, rule))
	if err != nil {
		panic(err) // strings marshal
	}
	return raw
}

// applyRule settles every open ask that a new "always" covers; mu is held.
func (s *Session) applyRule(rule string, by *gladhand.Identity) {
	for _, a := range s.asks {
		if a.open() && a.Rule == rule {
			s.settle(a, gladhand.SettledByRule, gladhand.Answer{}, by)
		}
	}
}

// settle ends an ask without an answer to it, at once; mu is held. The store is
// told, and nobody waits for it.
func (s *Session) settle(a *openAsk, how gladhand.Settled, ans gladhand.Answer, by *gladhand.Identity) {
	if a.closing || s.asks[a.ID] != a {
		return // its answer is on the way, and will be its verdict
	}
	kind := gladhand.RejectOnce
	if how == gladhand.SettledByRule {
		kind = gladhand.AllowAlways
	}
	s.emitSettled(s.settleOp(a, how, ans, by), a, how, ans, by)
	s.finish(a, gladhand.Verdict{Settled: how, Answer: ans, Kind: kind, By: by})
}

func (s *Session) settleOp(a *openAsk, how gladhand.Settled, ans gladhand.Answer, by *gladhand.Identity) *op {
	return &op{with: func(tx *store.Tx) error { return tx.SettleAsk(s.id, a.ID, how, ans, by) }}
}

func (s *Session) emitSettled(o *op, a *openAsk, how gladhand.Settled, ans gladhand.Answer, by *gladhand.Identity) {
	u := gladhand.AnswerUpdate{
		SessionUpdate: gladhand.TagAnswer, AskID: a.ID, Settled: how,
		OptionID: ans.Option, Content: ans.Content, Reason: ans.Reason,
	}
	if how == gladhand.SettledAnswered {
		u.OptionKind = a.verdictKind(ans)
	}
	ev := s.own(by, gladhand.TagAnswer, u)
	ev.Turn = a.Turn
	s.log.append(o, ev)
}

// finish takes an ask out and hands its verdict over; mu is held.
func (s *Session) finish(a *openAsk, v gladhand.Verdict) {
	if a.expiry != nil {
		a.expiry.Stop()
	}
	delete(s.asks, a.ID)
	s.settled.add(a.ID, v.Settled, v.By)
	a.verdict <- v
}

// Decline says that a client will not answer an ask: its answer was "cancelled",
// an error, or it does not know the question. From the last client able to
// answer, that denies.
func (s *Session) Decline(c *Attachment, id gladhand.AskID) {
	s.mu.Lock()
	defer s.log.unlock()
	a := s.asks[id]
	if a == nil || c.declined[id] || s.clients[c.Who.Client] != c {
		return
	}
	c.declined[id] = true
	if a.shown && c.mayAnswer() && s.answerers(a) == 0 {
		by := c.Who
		s.settle(a, gladhand.SettledDenied, gladhand.Answer{Reason: "dismissed by the last client that could answer"}, &by)
	}
}

func (c *Attachment) mayAnswer() bool { return !c.NoAnswer && c.Who.Rights.Has(gladhand.Answering) }

// answerers counts the attached clients that may still answer; mu is held.
func (s *Session) answerers(a *openAsk) int {
	n := 0
	for _, c := range s.clients {
		if c.mayAnswer() && !c.declined[a.ID] {
			n++
		}
	}
	return n
}

// attendance looks at every open ask again after a client came or left; mu is
// held.
func (s *Session) attendance() {
	for _, a := range s.asks {
		if a.open() {
			s.attend(a)
		}
	}
}

// attend lets an ask wait without a limit while somebody may answer it, for
// AskExpiry while nobody is there, and not at all when its sender said that
// nobody will come; mu is held.
func (s *Session) attend(a *openAsk) {
	if s.answerers(a) > 0 {
		if a.expiry != nil {
			a.expiry.Stop()
			a.expiry = nil
		}
		return
	}
	sender := s.clients[a.turn.prompts[0].By.Client]
	if sender != nil && sender.NoAnswer {
		s.settle(a, gladhand.SettledDenied, gladhand.Answer{Reason: "nobody is attached who could answer"}, nil)
		return
	}
	if a.expiry == nil {
		a.expiry = time.AfterFunc(s.opts.AskExpiry, func() { s.expire(a) })
	}
}

func (s *Session) expire(a *openAsk) {
	s.mu.Lock()
	defer s.log.unlock()
	if a.open() && a.expiry != nil {
		s.settle(a, gladhand.SettledExpired, gladhand.Answer{Reason: "nobody answered in " + s.opts.AskExpiry.String()}, nil)
	}
}

// Asks lists the open asks that who may answer.
func (s *Session) Asks(who gladhand.Identity) []gladhand.Ask {
	if !who.Rights.Has(gladhand.Answering) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot().Asks
}
