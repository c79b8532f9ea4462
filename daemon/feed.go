package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
	"gladhand/session"
)

// feedOptions say how a connection is attached to a session.
type feedOptions struct {
	after    int64 // the cursor; −1 the tail
	own      bool  // by _gladhand/attach: our own updates, and asks as updates
	observer bool
	noAnswer bool
	label    string
	task     string
}

// feed is one session on one connection: everything that is written for that
// session is written by its run, as its cursor passes the log.
type feed struct {
	c       *conn
	s       *session.Session
	a       *session.Attachment
	key     frameKey // what frames depend on, for this reader
	out     outlet   // used by run alone
	since   gladhand.Seq
	replay  gladhand.Seq // numbers up to here are history
	snap    gladhand.Snapshot
	live    bool                  // the history is written; used by run alone
	opened  map[gladhand.Seq]bool // tool calls whose start was written late; by run alone
	onLive  func()                // answers a load or resume; nil for what needs none
	cancel  context.CancelFunc
	ctx     context.Context
	done    chan struct{}
	mu      sync.Mutex // guards prompts and asks; no other lock is taken under it
	prompts map[gladhand.PromptID]*rpc.Request
	asks    map[gladhand.AskID]*rpc.Pending
}

func newFeed(c *conn, s *session.Session, a *session.Attachment, how feedOptions, snap gladhand.Snapshot) *feed {
	f := &feed{
		c: c, s: s, a: a, since: a.At(), replay: snap.Session.Seq, snap: snap,
		key:    frameKey{version: int8(c.version), own: how.own, optIns: c.caps.OptIns},
		opened: map[gladhand.Seq]bool{}, done: make(chan struct{}),
		prompts: map[gladhand.PromptID]*rpc.Request{}, asks: map[gladhand.AskID]*rpc.Pending{},
	}
	f.out = outlet{at: a.At(), told: a.At(), enc: encoder{s: s.ID(), key: f.key, history: f.replay}}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

// run writes the session until the feed ends, the session is gone, or the
// connection fails.
func (f *feed) run() {
	defer close(f.done)
	if f.since >= f.replay {
		f.goLive()
	}
	for {
		write := f.follow
		if !f.live {
			write = f.history
		}
		if err := write(); err != nil {
			f.gone(err)
			return
		}
	}
}

// follow writes what comes, together with all live readers of this kind that are
// about as far.
func (f *feed) follow() error {
	o := &f.out
	st := f.c.d.streams.join(f.s, f.key, f.a.Cursor, o.at, o.told)
	defer st.leave()
	for {
		o.clear()
		var err error
		if o.parts, err = st.next(f.ctx, f.a.Cursor, o.at, o.parts); err != nil || len(o.parts) == 0 {
			return err
		}
		if err := f.write(o.parts); err != nil {
			return err
		}
		runtime.Gosched() // all go on together, and none far ahead
	}
}

// history writes a page of what was there before the feed.
func (f *feed) history() error {
	items, err := f.a.Next(f.ctx)
	if err != nil {
		return err
	}
	o := &f.out
	for some := range slices.Chunk(items, historyItems) {
		o.clear()
		o.enc.told = o.told
		o.parts = o.enc.parts(o.parts, o.at, some)
		if err := f.write(o.parts); err != nil {
			return err
		}
	}
	o.clear()
	return nil
}

// goLive is what follows the history: the state, which v2 must be told between
// the history and the response to a resume, whether something runs or not; that
// response; and the questions that are open.
func (f *feed) goLive() {
	f.live = true
	if f.onLive != nil && f.key.version == acp.V2 {
		state := acp.Idle("", nil)
		switch {
		case len(f.snap.Asks) > 0:
			state = acp.RequiresAction()
		case f.snap.Turn != 0:
			state = acp.Running()
		}
		if err := f.c.rpc.Send(f.ctx, frame(f.s.ID(), state, gladhand.UpdateMeta{From: f.out.told + 1, To: f.out.told})); err != nil {
			return
		}
	}
	f.answerLoad()
	if f.key.own {
		return
	}
	f.sayCommands()
	for _, ask := range f.snap.Asks {
		f.request(ask)
	}
}

// sayCommands tells which slash commands there are. They belong to the daemon and
// not to the session's history, so they are in no log.
func (f *feed) sayCommands() {
	update := session.CommandsUpdate(int(f.key.version))
	_ = f.c.rpc.Send(f.ctx, frame(f.s.ID(), update, gladhand.UpdateMeta{From: f.out.told + 1, To: f.out.told}))
}

// answerLoad answers the load or resume that made the feed, once.
func (f *feed) answerLoad() {
	if f.onLive != nil {
		f.onLive()
		f.onLive = nil
	}
}

// write writes what parts mean to this client.
func (f *feed) write(parts []*part) error {
	for _, p := range parts {
		if p.from > f.out.at {
			return fmt.Errorf("the session's log has a gap: %d follows %d", p.from+1, f.out.at)
		}
		if err := f.pass(p); err != nil {
			return err
		}
		f.out.at = p.to
		if !f.live && p.to >= f.replay {
			if err := f.flush(); err != nil {
				return err
			}
			f.goLive()
		}
	}
	return f.flush()
}

// pass puts a part's frames out, and does what its event asks for.
func (f *feed) pass(p *part) error {
	o := &f.out
	frames, tells := p.frames, p.tells
	if p.told != o.told { // it saw less than others
		frames, tells = o.again(p)
	}
	if p.plain {
		o.put(tells, frames...)
		return nil
	}
	ev := p.items[0].Event
	if !f.echo(ev) {
		if err := f.openTool(ev); err != nil {
			return err
		}
		o.put(tells, frames...)
	}
	if ev.Version != 0 || p.to <= f.replay {
		return nil
	}
	err := f.flush()
	f.act(ev)
	return err
}

// flush hands what was put out to the connection.
func (f *feed) flush() error {
	o := &f.out
	if len(o.batch) == 0 {
		return nil
	}
	err := f.c.rpc.Send(f.ctx, o.batch...)
	clear(o.batch)
	o.batch = o.batch[:0]
	return err
}

// echo reports whether the event is the client's own prompt, which ACP v1 does
// not want back.
func (f *feed) echo(ev *gladhand.Event) bool {
	return !f.key.own && f.key.version == acp.V1 && f.live &&
		ev.Tag == acp.TagUserChunk && ev.By != nil && ev.By.Client == f.a.Who.Client
}

// openTool writes the start of a tool call to a client that was not there for it.
func (f *feed) openTool(ev *gladhand.Event) error {
	opens := ev.Opens
	if opens == 0 || opens > f.since || opens == ev.First || f.opened[opens] || f.key.version != acp.V1 {
		return nil
	}
	if ev.Tag != acp.TagToolCallUpdate && ev.Tag != acp.TagToolChunk {
		return nil
	}
	f.opened[opens] = true
	start, err := f.s.EventAt(f.ctx, opens)
	if err != nil {
		if gladhand.CodeOf(err) == gladhand.CodeNotFound {
			return nil // the client sees an update of what it does not know
		}
		return err
	}
	o := &f.out
	m := gladhand.UpdateMeta{From: o.told + 1, To: o.told, Turn: ev.Turn, By: start.By, Part: true}
	o.put(o.told, frame(f.s.ID(), acp.OpenToolCall(start, acp.V1), m))
	return nil
}

// act does what an event asks for besides being shown.
func (f *feed) act(ev *gladhand.Event) {
	switch ev.Tag {
	case gladhand.TagTurnStart:
		f.inserted(view[gladhand.TurnUpdate](ev).Prompts...)
	case gladhand.TagPrompt:
		f.promptChanged(view[gladhand.PromptUpdate](ev))
	case gladhand.TagTurnEnd:
		f.ended(view[gladhand.TurnUpdate](ev))
	case gladhand.TagAsk:
		if !f.key.own {
			f.request(view[gladhand.AskUpdate](ev).Ask)
		}
	case gladhand.TagAnswer:
		f.withdraw(view[gladhand.AnswerUpdate](ev).AskID)
	}
}

// take returns the request that waits for a prompt, once.
func (f *feed) take(id gladhand.PromptID) *rpc.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.prompts[id]
	delete(f.prompts, id)
	return r
}

// inserted answers v2's prompts when they become part of the conversation.
func (f *feed) inserted(ids ...gladhand.PromptID) {
	if f.key.version != acp.V2 {
		return
	}
	for _, id := range ids {
		if r := f.take(id); r != nil {
			r.Reply(acp.PromptInserted(string(id)))
		}
	}
}

func (f *feed) promptChanged(p gladhand.PromptUpdate) {
	switch p.State {
	case gladhand.PromptStarted:
		f.inserted(p.PromptID)
	case gladhand.PromptDone:
		if r := f.take(p.PromptID); r != nil {
			f.cancelled(r, p.Reason)
		}
	}
}

// cancelled answers a prompt that never ran.
func (f *feed) cancelled(r *rpc.Request, reason string) {
	if f.key.version == acp.V1 {
		r.Reply(acp.PromptEnded(gladhand.StopCancelled))
		return
	}
	r.Fail(gladhand.Errorf(gladhand.CodeCancelled, "", "the prompt was %s", reason))
}

// ended answers v1's prompts when their turn ends.
func (f *feed) ended(t gladhand.TurnUpdate) {
	for _, id := range t.Prompts {
		r := f.take(id)
		switch {
		case r == nil:
		case t.Error != nil:
			r.Fail(gladhand.FromWire(int(t.Error.Code), t.Error.Message, t.Error.Data))
		default:
			r.Reply(acp.PromptEnded(t.StopReason))
		}
	}
}

// request puts an ask to the client.
func (f *feed) request(ask gladhand.Ask) {
	if f.a.NoAnswer || !f.a.Who.Rights.Has(gladhand.Answering) {
		return
	}
	name, params := acp.MethodRequestPermission, json.RawMessage(nil)
	switch {
	case ask.Elicitation == nil:
		params = acp.PermissionParams(int(f.key.version), ask)
	case f.c.caps.Form:
		name, params = acp.MethodElicitationCreate, acp.ElicitationParams(ask)
	default:
		f.s.Decline(f.a, ask.ID)
		return
	}
	p, err := f.c.rpc.Start(name, params)
	if err != nil {
		return // the connection has ended
	}
	f.mu.Lock()
	f.asks[ask.ID] = p
	f.mu.Unlock()
	p.Then(func(result json.RawMessage, err error) { f.answered(ask, result, err) })
}

// answered takes a client's answer; it runs on the read loop.
func (f *feed) answered(ask gladhand.Ask, result json.RawMessage, err error) {
	if errors.Is(err, rpc.ErrClosed) || f.ctx.Err() != nil {
		return // leaving is not answering
	}
	var ans gladhand.Answer
	no := err != nil
	if !no && ask.Elicitation == nil {
		ans.Option, no, err = acp.ParsePermission(result)
	} else if !no {
		var action string
		action, ans.Content, err = acp.ParseElicitation(result)
		no = action == "cancel"
	}
	if no || err != nil {
		if err != nil {
			f.c.log.Info("a client does not answer a question", "ask", ask.ID, "err", err)
		}
		f.s.Decline(f.a, ask.ID)
		return
	}
	ans.Digest = ask.Digest
	f.s.Answer(f.a.Who, ask.ID, ans, func(_ gladhand.AnswerResult, err error) {
		if err != nil {
			f.c.log.Warn("a client's answer was not taken", "ask", ask.ID, "err", err)
			f.s.Decline(f.a, ask.ID)
		}
	})
}

// withdraw clears a settled ask from the client's screen.
func (f *feed) withdraw(id gladhand.AskID) {
	f.snap.Asks = slices.DeleteFunc(f.snap.Asks, func(a gladhand.Ask) bool { return a.ID == id })
	f.mu.Lock()
	p := f.asks[id]
	delete(f.asks, id)
	f.mu.Unlock()
	if p != nil {
		p.Cancel()
	}
}

// gone answers what is still open when the feed cannot go on.
func (f *feed) gone(err error) {
	f.answerLoad()
	if f.ctx.Err() != nil {
		return // somebody else took over, or nobody is there
	}
	f.mu.Lock()
	prompts := f.prompts
	f.prompts = map[gladhand.PromptID]*rpc.Request{}
	f.mu.Unlock()
	if !errors.Is(err, rpc.ErrClosed) { // else nobody hears it
		for _, r := range prompts {
			r.Fail(err)
		}
		f.sayGone(err)
	}
	f.c.mu.Lock()
	if f.c.feeds[f.s.ID()] == f {
		delete(f.c.feeds, f.s.ID())
	}
	f.c.mu.Unlock()
	f.s.Detach(f.a)
}

// sayGone tells a client of ours that nothing more will come.
func (f *feed) sayGone(err error) {
	var e *gladhand.Error
	if !f.key.own {
		return
	}
	if !errors.As(err, &e) {
		f.c.log.Error("a session cannot be read", "session", f.s.ID(), "err", err)
		e = gladhand.Errorf(gladhand.CodeInternal, gladhand.ReasonUnavailable, "the session cannot be read; `gladhand daemon logs` says why")
	}
	p := gladhand.GoneParams{SessionID: f.s.ID(), Error: *e.TurnError()}
	if err := f.c.rpc.Notify(f.ctx, gladhand.MethodGone, p); err != nil {
		f.c.log.Debug("a client was not told that its session is gone", "err", err)
	}
}

// end stops the feed, waits for its last write, and withdraws its questions. It
// returns the prompts that are not answered yet.
func (f *feed) end() map[gladhand.PromptID]*rpc.Request {
	f.cancel()
	f.mu.Lock()
	asks, prompts := f.asks, f.prompts
	f.asks, f.prompts = map[gladhand.AskID]*rpc.Pending{}, map[gladhand.PromptID]*rpc.Request{}
	f.mu.Unlock()
	for _, p := range asks {
		p.Cancel()
	}
	<-f.done
	return prompts
}

// inherit takes over the prompts of the feed before.
func (f *feed) inherit(prompts map[gladhand.PromptID]*rpc.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, r := range prompts {
		f.prompts[id] = r
	}
}
