package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/store"
)

// cancelGrace is how long an agent may take to return from a cancelled turn.
// One that takes longer is given up: the turn ends, and the next one gets a
// fresh agent.
const cancelGrace = 5 * time.Second

// retryBegin is how long the runner waits when the start of a turn could not be
// stored.
const retryBegin = time.Second

// turn is the running turn; it implements [gladhand.Turn]. The session's mutex
// guards it.
type turn struct {
	s      *Session
	id     gladhand.TurnID
	ctx    context.Context
	cancel context.CancelFunc
	// prompts are the one that started the turn, then those that joined it.
	prompts   []*queued
	message   string // ids that the turn's start opened
	thought   string
	cancelled bool
	ended     bool
	open      map[string]bool // tool calls begun and not ended
	begun     chan error
}

// kick starts the runner when something can run; mu is held.
func (s *Session) kick() {
	if !s.runner && s.next() != nil {
		s.runner = true
		go s.run()
	}
}

// next is the prompt to run now, or nil; mu is held.
func (s *Session) next() *queued {
	if s.gone != nil || s.queue.paused || s.queue.held || len(s.queue.items) == 0 || !s.queue.items[0].stored {
		return nil
	}
	return s.queue.items[0]
}

// run is the runner: one turn after the other while there is something to run.
func (s *Session) run() {
	waits := false // the store does not take the turn's start
	for {
		s.mu.Lock()
		it := s.next()
		if it == nil {
			s.runner = false
			s.idle.fire()
			s.log.unlock()
			return
		}
		t := s.begin(it)
		s.log.unlock()
		if err := <-t.begun; err != nil {
			if !waits { // once, not with each try: the disk may be full
				s.slog.Warn("a turn could not be stored, and waits", "turn", t.id, "err", err)
			}
			waits = true
			t.cancel()
			select {
			case <-time.After(retryBegin):
			case <-s.opts.stopping:
			}
			continue
		}
		waits = false
		reason, err := s.drive(t)
		s.end(t, reason, err)
	}
}

// begin takes a prompt out of the queue and appends the start of its turn; mu is
// held. The turn has begun when that is committed.
func (s *Session) begin(it *queued) *turn {
	s.queue.remove(it)
	s.row.Turn++
	t := &turn{s: s, id: s.row.Turn, prompts: []*queued{it}, open: map[string]bool{}, begun: make(chan error, 1), message: gladhand.NewID(), thought: gladhand.NewID()}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	s.turn = t
	s.row.Running = t.id
	s.log.tail.max = tailRunning
	it.State, it.Turn = gladhand.PromptStarted, t.id
	row, place, put := it.Prompt, it.place, s.put()
	events := []*gladhand.Event{s.own(&it.By, gladhand.TagTurnStart, gladhand.TurnUpdate{
		SessionUpdate: gladhand.TagTurnStart, Turn: t.id, Prompts: []gladhand.PromptID{it.ID}, Command: commandOf(it.Content),
		Opens: t.opens(),
	})}
	s.log.append(&op{
		revert: true,
		with:   func(tx *store.Tx) error { return errors.Join(tx.SetPrompt(row, place), put(tx)) },
		done: func(err error) {
			if err != nil {
				s.unbegin(t)
			}
			t.begun <- err
		},
	}, append(events, s.userChunks(it)...)...)
	for _, id := range t.opens() {
		s.log.opens[id] = events[0].First
	}
	return t
}

// opens are the messages that the turn's start opens, as the log names them.
func (t *turn) opens() []string {
	return []string{"agent_message:" + t.message, "agent_thought:" + t.thought}
}

func commandOf(content json.RawMessage) string {
	name, _, _ := acp.ParseCommand(content)
	return name
}

// unbegin puts everything back to before the turn; mu is held.
func (s *Session) unbegin(t *turn) {
	it := t.prompts[0]
	it.State, it.Turn = gladhand.PromptStored, 0
	s.queue.items = slices.Insert(s.queue.items, 0, it)
	s.row.Turn--
	s.row.Running = 0
	s.turn = nil
	if t.cancelled {
		s.drop(it, nil, "cancelled before it began")
	}
}

// userChunks are the events that put a prompt into the transcript: one a block,
// each a fact, so that blocks stay what they were.
func (s *Session) userChunks(it *queued) []*gladhand.Event {
	var blocks []json.RawMessage
	if err := json.Unmarshal(it.Content, &blocks); err != nil {
		panic(err) // validated when it came
	}
	events := make([]*gladhand.Event, 0, len(blocks))
	for _, b := range blocks {
		ev, err := acp.Describe(1, acp.UserChunk(string(it.ID), b))
		if err != nil {
			s.slog.Error("a prompt's block cannot be filed", "err", err)
			continue
		}
		by := it.By
		ev.Class, ev.Turn, ev.By, ev.At = gladhand.Fact, s.turn.id, &by, time.Now()
		events = append(events, ev)
	}
	return events
}

// drive has the agent run the turn, and waits for it.
func (s *Session) drive(t *turn) (gladhand.StopReason, error) {
	type result struct {
		reason gladhand.StopReason
		err    error
	}
	run, close := func() (gladhand.StopReason, error) { return "", nil }, func() error { return nil }
	if name, args, ok := acp.ParseCommand(t.prompts[0].Content); ok {
		run = func() (gladhand.StopReason, error) { return t.command(name, args) }
	} else {
		agent, err := s.agentFor(t.ctx)
		if err != nil {
			return "", err
		}
		run, close = func() (gladhand.StopReason, error) { return agent.Run(t.ctx, t) }, agent.Close
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				s.slog.Error("the agent panicked", "panic", p, "stack", string(debug.Stack()))
				done <- result{err: fmt.Errorf("the agent panicked: %v", p)}
			}
		}()
		reason, err := run()
		done <- result{reason, err}
	}()
	select {
	case r := <-done:
		return r.reason, r.err
	case <-t.ctx.Done():
	}
	select {
	case r := <-done:
		return r.reason, r.err
	case <-time.After(cancelGrace):
	}
	s.slog.Error("the agent does not end its cancelled turn, and is replaced", "turn", t.id)
	s.mu.Lock()
	s.agent = nil
	s.mu.Unlock()
	go func() {
		<-done
		if err := close(); err != nil {
			s.slog.Warn("closing the replaced agent", "err", err)
		}
	}()
	return gladhand.StopCancelled, nil
}

// agentFor returns the session's agent, made on first use.
func (s *Session) agentFor(ctx context.Context) (Agent, error) {
	s.mu.Lock()
	agent, info := s.agent, s.row.Info
	s.mu.Unlock()
	if agent != nil {
		return agent, nil
	}
	agent, err := s.opts.NewAgent(ctx, info)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.agent = agent
	servers := s.servers
	s.mu.Unlock()
	if u, ok := agent.(ServerUser); ok && servers != nil {
		u.UseServers(servers)
	}
	return agent, nil
}

// end is the turn's last event, exactly one.
func (s *Session) end(t *turn, reason gladhand.StopReason, err error) {
	s.mu.Lock()
	defer s.log.unlock()
	t.ended = true
	t.cancel()
	update := gladhand.TurnUpdate{SessionUpdate: gladhand.TagTurnEnd, Turn: t.id, StopReason: reason}
	outcome := gladhand.Completed
	switch {
	case t.cancelled:
		update.StopReason, outcome = gladhand.StopCancelled, gladhand.Cancelled
	case err != nil:
		update.StopReason, outcome = gladhand.StopError, gladhand.Failed
		update.Error = s.turnError(err)
	case reason == gladhand.StopCancelled:
		outcome = gladhand.Cancelled
	case reason == "":
		update.StopReason = gladhand.StopEndTurn
	}
	s.settleTurn(t)
	why := "The turn ended before this did; its effect is unknown."
	if t.cancelled {
		why = "Cancelled."
	}
	events := s.closeTools(t.open, t.id, why)
	s.row.Running = 0
	put := s.put()
	var rows []queued
	for _, it := range t.prompts {
		it.State, it.Outcome = gladhand.PromptDone, outcome
		rows = append(rows, *it)
		update.Prompts = append(update.Prompts, it.ID)
	}
	events = append(events, s.own(nil, gladhand.TagTurnEnd, update))
	s.log.append(&op{with: func(tx *store.Tx) error {
		for _, it := range rows {
			if err := tx.SetPrompt(it.Prompt, it.place); err != nil {
				return err
			}
		}
		return put(tx)
	}}, events...)
	s.turn = nil
	s.log.endTurn()
}

// closeTools are the events that end the tool calls an agent left open.
func (s *Session) closeTools(open map[string]bool, id gladhand.TurnID, why string) []*gladhand.Event {
	var events []*gladhand.Event
	for _, call := range slices.Sorted(keys(open)) {
		ev, err := acp.Describe(1, acp.ToolUpdate(acp.ToolState{ID: call, Status: "failed", Content: []json.RawMessage{acp.ContentText(why)}}))
		if err != nil {
			panic(err)
		}
		ev.Turn, ev.At = id, time.Now()
		events = append(events, ev)
	}
	return events
}

func keys[K comparable, V any](m map[K]V) iter.Seq[K] {
	return func(yield func(K) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// turnError is what people are told of an agent's failure.
func (s *Session) turnError(err error) *gladhand.TurnError {
	var e *gladhand.Error
	if errors.As(err, &e) {
		return e.TurnError()
	}
	s.slog.Error("the agent failed", "err", err)
	return &gladhand.TurnError{Code: gladhand.CodeInternal, Message: "The agent failed; `gladhand daemon logs` says why."}
}

// Cancel ends the running turn and the caller's own waiting prompts; other
// clients' waiting prompts stay. It never waits for the store or the agent.
func (s *Session) Cancel(who gladhand.Identity) error {
	if err := who.May(gladhand.Prompting); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.log.unlock()
	for _, it := range slices.Clone(s.queue.items) {
		if it.By.Client == who.Client {
			s.withdraw(it, &who)
		}
	}
	if t := s.turn; t != nil && (who.Rights.Has(gladhand.Observe) || t.prompts[0].By.Client == who.Client) {
		s.cancelTurn(&who)
	}
	return nil
}

// CancelPrompt takes back one of the caller's own prompts: a waiting one is
// dropped, the one that started the running turn cancels it.
func (s *Session) CancelPrompt(who gladhand.Identity, id gladhand.PromptID) {
	s.mu.Lock()
	defer s.log.unlock()
	_, it := s.queue.find(id)
	switch {
	case it != nil && it.By.Client == who.Client:
		s.withdraw(it, &who)
	case s.turn != nil && s.turn.prompts[0].ID == id && s.turn.prompts[0].By.Client == who.Client:
		s.cancelTurn(&who)
	}
}

// cancelTurn makes the running turn a cancelled one; mu is held.
func (s *Session) cancelTurn(by *gladhand.Identity) {
	t := s.turn
	if t.cancelled || t.ended {
		return
	}
	t.cancelled = true
	t.cancel()
	for _, a := range s.asks {
		if a.turn == t {
			s.settle(a, gladhand.SettledCancelled, gladhand.Answer{}, by)
		}
	}
}

// settleTurn settles what a turn left open when it ended; mu is held.
func (s *Session) settleTurn(t *turn) {
	for _, a := range s.asks {
		if a.turn == t {
			s.settle(a, gladhand.SettledCancelled, gladhand.Answer{}, nil)
		}
	}
}

// joined finds a prompt of the turn; mu is held.
func (t *turn) joined(id gladhand.PromptID) *queued {
	for _, it := range t.prompts {
		if it.ID == id {
			return it
		}
	}
	return nil
}

var errTurnOver = gladhand.Errorf(gladhand.CodeCancelled, "", "the turn is over")

// live returns nil while the turn may still do something; mu is held.
func (t *turn) live() error {
	if t.cancelled || t.ended {
		return errTurnOver
	}
	return nil
}

// ID implements [gladhand.Turn].
func (t *turn) ID() gladhand.TurnID { return t.id }

// Opened implements [gladhand.Turn].
func (t *turn) Opened() (message, thought string) { return t.message, t.thought }

// Info implements [gladhand.Turn].
func (t *turn) Info() gladhand.SessionInfo { return t.s.Info() }

// Prompt implements [gladhand.Turn].
func (t *turn) Prompt() gladhand.Prompt {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.prompts[0].Prompt
}

// Steered implements [gladhand.Turn].
func (t *turn) Steered(ctx context.Context) ([]gladhand.Prompt, error) {
	s := t.s
	s.mu.Lock()
	if err := t.live(); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	var ps []gladhand.Prompt
	var waits []chan error
	for len(s.queue.items) > 0 {
		it := s.queue.items[0]
		if it.Delivery != gladhand.Steer || !it.stored {
			break
		}
		waits = append(waits, t.join(it))
		ps = append(ps, it.Prompt)
	}
	s.log.unlock()
	for _, w := range waits {
		if err := t.await(ctx, w); err != nil {
			return nil, err
		}
	}
	return ps, nil
}

// join makes a waiting prompt part of the turn; mu is held.
func (t *turn) join(it *queued) chan error {
	s := t.s
	s.queue.remove(it)
	it.State, it.Turn = gladhand.PromptStarted, t.id
	t.prompts = append(t.prompts, it)
	row, place := it.Prompt, it.place
	events := append([]*gladhand.Event{s.own(&it.By, gladhand.TagPrompt, gladhand.PromptUpdate{
		SessionUpdate: gladhand.TagPrompt, PromptID: it.ID, State: it.State, Delivery: it.Delivery,
	})}, s.userChunks(it)...)
	wait := make(chan error, 1)
	s.log.append(&op{
		with: func(tx *store.Tx) error { return tx.SetPrompt(row, place) },
		done: func(err error) { wait <- err },
	}, events...)
	return wait
}

// await waits for a commit, and then looks whether the turn is still alive.
func (t *turn) await(ctx context.Context, commit <-chan error) error {
	select {
	case err := <-commit:
		if err != nil {
			return err
		}
	case <-t.ctx.Done():
		return errTurnOver
	case <-ctx.Done():
		return t.gaveUp(ctx)
	}
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	return t.live()
}

// gaveUp is the error of a caller whose ctx ended: the turn's end comes first,
// since it usually is why.
func (t *turn) gaveUp(ctx context.Context) error {
	if t.ctx.Err() != nil {
		return errTurnOver
	}
	return ctx.Err()
}

// Emit implements [gladhand.Turn].
func (t *turn) Emit(ctx context.Context, update json.RawMessage) error {
	return t.emit(ctx, acp.V1, update)
}

func (t *turn) emit(ctx context.Context, version int, update json.RawMessage) error {
	return t.file(ctx, version, update, nil)
}

// file puts an update into the log. With also, it is a fact, and also is part of
// its commit.
func (t *turn) file(ctx context.Context, version int, update json.RawMessage, also func(*store.Tx, *gladhand.Event) error) error {
	if len(update) > EventMax {
		return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid,
			"an update may have %d bytes, and this has %d", EventMax, len(update)).With("limit", EventMax)
	}
	ev, err := acp.Describe(version, update)
	if err != nil {
		return err
	}
	s := t.s
	if err := t.backpressure(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	if err := t.live(); err != nil {
		s.mu.Unlock()
		return err
	}
	ev.Turn, ev.At = t.id, time.Now()
	starts, opened := t.track(ev)
	if ev.Tag == acp.TagSessionInfo || also != nil {
		ev.Class = gladhand.Fact // it changes more than the log
	}
	if ev.Class != gladhand.Fact {
		s.log.append(nil, ev)
		s.log.unlock()
		return nil
	}
	wait := make(chan error, 1)
	o := &op{revert: starts || also != nil, done: func(err error) {
		if err != nil && opened != "" {
			delete(t.open, opened) // it never was in the log, so nothing ends it
		}
		wait <- err
	}}
	if title, ok := titleOf(ev); ok {
		s.row.Info.Title = title
		o.with = s.put()
	}
	if also != nil {
		o.with = func(tx *store.Tx) error { return also(tx, ev) }
	}
	s.log.append(o, ev)
	s.log.unlock()
	return t.await(ctx, wait)
}

// Snapshot implements [gladhand.Turn].
func (t *turn) Snapshot(ctx context.Context) (*gladhand.ContextSnapshot, error) {
	return t.s.store.Snapshot(ctx, t.s.id)
}

// Reduce implements [gladhand.Turn].
func (t *turn) Reduce(ctx context.Context, data []byte, update json.RawMessage) error {
	if len(data) > gladhand.SnapshotMax {
		return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid,
			"a context may have %d bytes, and this has %d", gladhand.SnapshotMax, len(data)).With("limit", gladhand.SnapshotMax)
	}
	return t.file(ctx, acp.V1, update, func(tx *store.Tx, ev *gladhand.Event) error {
		return tx.PutSnapshot(t.s.id, gladhand.ContextSnapshot{Covers: ev.Last, Data: data})
	})
}

// track keeps the tool calls that are open; it reports whether the event is a
// step towards an effect, which must not happen when it cannot be stored, and
// which call it opened, if it did.
func (t *turn) track(ev *gladhand.Event) (starts bool, opened string) {
	call, status, ok := toolStatus(ev)
	if !ok {
		return false, ""
	}
	if toolEnded(status) {
		delete(t.open, call)
		return false, ""
	}
	if !t.open[call] {
		opened = call
	}
	t.open[call] = true
	return true, opened
}

// titleOf reads the title that a session_info_update sets.
func titleOf(ev *gladhand.Event) (string, bool) {
	if ev.Tag != acp.TagSessionInfo {
		return "", false
	}
	var v struct {
		Title *string `json:"title"`
	}
	if json.Unmarshal(ev.Update, &v) != nil || v.Title == nil {
		return "", false
	}
	return *v.Title, true
}

// toolStatus reads which tool call an event is about, and the status it sets.
func toolStatus(ev *gladhand.Event) (call, status string, ok bool) {
	if !strings.HasPrefix(ev.ID, "tool:") || ev.Class == gladhand.Append {
		return "", "", false
	}
	var v struct {
		ToolCallID string `json:"toolCallId"`
		Status     string `json:"status"`
	}
	if json.Unmarshal(ev.Update, &v) != nil {
		return "", "", false
	}
	return v.ToolCallID, v.Status, true
}

func toolEnded(status string) bool {
	return status == "completed" || status == "failed" || status == "cancelled"
}

// backpressure waits while too much is unsaved.
func (t *turn) backpressure(ctx context.Context) error {
	for {
		wait := t.s.log.quota.over()
		t.s.mu.Lock()
		if t.s.log.unsaved >= UnsavedSession {
			wait = t.s.log.room.wait()
			t.s.log.flush()
		}
		t.s.log.unlock()
		if wait == nil {
			return nil
		}
		select {
		case <-wait:
		case <-t.ctx.Done():
			return errTurnOver
		case <-ctx.Done():
			return t.gaveUp(ctx)
		}
	}
}

// History implements [gladhand.Turn].
func (t *turn) History(ctx context.Context, after gladhand.Seq) iter.Seq2[*gladhand.Event, error] {
	return func(yield func(*gladhand.Event, error) bool) {
		c := t.s.cursor(after)
		for {
			items, err := c.Poll(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(items) == 0 {
				return
			}
			for _, it := range items {
				if !yield(it.Event, nil) {
					return
				}
			}
		}
	}
}
