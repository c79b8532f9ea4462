package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// load brings a stored session into memory, and brings what a crash left open to
// its end: see reconcile.
func (h *Host) load(ctx context.Context, id gladhand.SessionID) (*Session, error) {
	row, err := h.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := h.usable(row); err != nil {
		return nil, err
	}
	last, err := h.store.LastSeq(ctx, id)
	if err != nil {
		return nil, err
	}
	waiting, err := h.store.Waiting(ctx, id)
	if err != nil {
		return nil, err
	}
	s := newSession(h, row, last)
	s.queue.fill(waiting)
	s.row.Info.State = gladhand.StateIdle
	if row.Running == 0 && row.Info.State == gladhand.StateIdle {
		return s, nil
	}
	if err := s.reconcile(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Peek returns a session to look at: the live one, else one that is not
// registered and must not be attached to or changed. A closed session stays
// closed.
func (h *Host) Peek(ctx context.Context, id gladhand.SessionID) (*Session, error) {
	if s := h.Live(id); s != nil {
		return s, nil
	}
	row, err := h.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	last, err := h.store.LastSeq(ctx, id)
	if err != nil {
		return nil, err
	}
	waiting, err := h.store.Waiting(ctx, id)
	if err != nil {
		return nil, err
	}
	s := newSession(h, row, last)
	s.queue.fill(waiting)
	return s, nil
}

// usable says why a stored session cannot be opened, or nil.
func (h *Host) usable(row store.Session) error {
	switch {
	case row.Info.State == gladhand.StateKilled:
		return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonGone, "session %s was killed and never runs again; its history is kept", row.Info.ID)
	case row.Format != Format:
		return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonUnsupported,
			"session %s was written in format %d, and this version knows format %d; use a newer gladhand", row.Info.ID, row.Format, Format)
	case !h.opts.Knows(row.Info.Agent):
		return gladhand.Errorf(gladhand.CodeNotFound, gladhand.ReasonUnsupported,
			"session %s belongs to the agent %q, which this version does not know", row.Info.ID, row.Info.Agent)
	}
	return nil
}

// reconcile ends, in one commit, what the daemon's end interrupted: an event
// spans the numbers that were given out and lost, every message of that turn is
// set to its stored text, every open tool call, ask and prompt is closed as
// interrupted, and the turn gets its end. Nothing of it runs again. A clean
// session is left as it is.
func (s *Session) reconcile(ctx context.Context) error {
	if s.row.Running == 0 {
		return s.store.Commit(ctx, s.put())
	}
	turn := s.row.Running
	open, err := s.leftOpen(ctx, turn)
	if err != nil {
		return err
	}
	prompts, err := s.store.Unfinished(ctx, s.id)
	if err != nil {
		return err
	}
	asks, err := s.store.OpenAsks(ctx, s.id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.log.unlock()
	gap := s.own(nil, gladhand.TagInterrupted, gladhand.InterruptedUpdate{
		SessionUpdate: gladhand.TagInterrupted,
		Text: "The daemon ended in the middle of this turn. What the turn did last is unknown, it is not run again, " +
			"and some text that was shown may be missing below.",
	})
	gap.Last = gap.First + gladhand.SeqJump - 1
	events := []*gladhand.Event{gap}
	events = append(events, open.messages...)
	events = append(events, s.closeTools(open.tools, turn, "Interrupted: the daemon ended while this ran. Its effect is unknown.")...)
	for _, a := range asks {
		events = append(events, s.own(nil, gladhand.TagAnswer, gladhand.AnswerUpdate{
			SessionUpdate: gladhand.TagAnswer, AskID: a.ID, Settled: gladhand.SettledCancelled, Reason: "the daemon ended",
		}))
	}
	end := gladhand.TurnUpdate{
		SessionUpdate: gladhand.TagTurnEnd, Turn: turn, StopReason: gladhand.StopError, Prompts: []gladhand.PromptID{},
		Error: &gladhand.TurnError{Code: gladhand.CodeInternal, Message: "Interrupted: the daemon ended in mid-turn. Its effect is unknown."},
	}
	for i := range prompts {
		prompts[i].State = gladhand.PromptInterrupted
		end.Prompts = append(end.Prompts, prompts[i].ID)
	}
	events = append(events, s.own(nil, gladhand.TagTurnEnd, end))
	for _, ev := range events {
		ev.Turn, ev.At = turn, time.Now()
	}
	s.row.Running = 0
	put := s.put()
	done := make(chan error, 1)
	s.log.append(&op{
		revert: true,
		with: func(tx *store.Tx) error {
			for _, p := range prompts {
				if err := tx.SetPrompt(p, 0); err != nil {
					return err
				}
			}
			for _, a := range asks {
				if err := tx.SettleAsk(s.id, a.ID, gladhand.SettledCancelled, gladhand.Answer{}, nil); err != nil {
					return err
				}
			}
			return put(tx)
		},
		done: func(err error) { done <- err },
	}, events...)
	s.log.endTurn()
	s.log.unlock()
	err = <-done
	s.mu.Lock()
	return err
}

// leftOpen is what a turn had not finished.
type leftOpen struct {
	messages []*gladhand.Event // each sets a message to its stored text
	tools    map[string]bool
}

// leftOpen reads the stored events of a turn.
func (s *Session) leftOpen(ctx context.Context, turn gladhand.TurnID) (leftOpen, error) {
	left := leftOpen{tools: map[string]bool{}}
	var texts restated
	var after gladhand.Seq
	for {
		events, err := s.store.Events(ctx, s.id, after, pageBytes)
		if err != nil || len(events) == 0 {
			left.messages = texts.events()
			return left, err
		}
		for _, ev := range events {
			after = ev.Last
			if ev.Turn != turn {
				continue
			}
			texts.note(ev)
			if call, status, ok := toolStatus(ev); ok {
				left.tools[call] = true
				if toolEnded(status) {
					delete(left.tools, call)
				}
			}
		}
	}
}

// restated gathers the stored text of a turn's messages.
type restated struct {
	ids  []string
	text map[string][]byte // raw: the inside of a JSON string
}

func (r *restated) note(ev *gladhand.Event) {
	if ev.Tag == gladhand.TagTurnStart {
		var u gladhand.TurnUpdate
		if json.Unmarshal(ev.Update, &u) == nil {
			r.ids = append(r.ids, u.Opens...)
		}
		return
	}
	sort, id, _ := strings.Cut(ev.ID, ":")
	if sort != "agent_message" && sort != "agent_thought" || id == "" || ev.Text.Len() == 0 {
		return
	}
	if r.text == nil {
		r.text = map[string][]byte{}
	}
	if !slices.Contains(r.ids, ev.ID) {
		r.ids = append(r.ids, ev.ID)
	}
	text := ev.Update[ev.Text.Start:ev.Text.End]
	if ev.Class == gladhand.Append {
		text = append(r.text[ev.ID], text...)
	}
	r.text[ev.ID] = slices.Clone(text)
}

// events are v2 message updates that set each message to its stored text. All of
// it was shown before, so that a v1 reader gets nothing.
func (r *restated) events() []*gladhand.Event {
	var events []*gladhand.Event
	for _, full := range r.ids {
		sort, id, _ := strings.Cut(full, ":")
		name, err := json.Marshal(id)
		if err != nil {
			panic(err)
		}
		content := ""
		if text := r.text[full]; len(text) > 0 {
			content = `{"type":"text","text":"` + string(text) + `"}`
		}
		raw := fmt.Appendf(nil, `{"sessionUpdate":%q,"messageId":%s,"content":[%s]}`, sort, name, content)
		ev, err := acp.Describe(2, raw)
		if err != nil {
			panic(err) // built here
		}
		ev.Base = ev.Text.Len()
		events = append(events, ev)
	}
	return events
}
