package daemon

import (
	"context"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
	"gladhand/session"
)

// sessionPrompt is ACP's prompt. It runs on the read loop, so that prompts queue
// in the order in which they came; the feed answers.
func sessionPrompt(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	p, err := acp.ParsePrompt(r.Params)
	if err != nil {
		return nil, err
	}
	f, err := c.feed(p.SessionID)
	if err != nil {
		return nil, err
	}
	id := gladhand.PromptID(gladhand.NewID())
	f.mu.Lock()
	f.prompts[id] = r
	f.mu.Unlock()
	f.s.Send(f.a.Who, gladhand.Prompt{ID: id, Content: p.Prompt}, func(_ gladhand.Receipt, err error) {
		if err == nil {
			return
		}
		if r := f.take(id); r != nil {
			r.Fail(err)
		}
	})
	context.AfterFunc(r.Context(), func() {
		if r.Cancelled() {
			f.s.CancelPrompt(f.a.Who, id)
		}
	})
	return nil, errLater
}

func sessionCancel(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	p, err := acp.ParseSession(r.Params)
	if err != nil {
		return nil, err
	}
	f, err := c.feed(p.SessionID)
	if err != nil {
		return nil, err
	}
	return acp.Empty, f.s.Cancel(f.a.Who)
}

// with runs f on a session as the caller attached to it: at once when the session
// is open, so that what a client sends in a row stays in a row; else when it has
// been opened.
func (c *conn) with(ctx context.Context, r *rpc.Request, id gladhand.SessionID, f func(*session.Session, gladhand.Identity)) error {
	if s := c.d.host.Live(id); s != nil {
		f(s, c.attached(id))
		return errLater
	}
	go func() {
		s, err := c.session(ctx, id)
		if err != nil {
			r.Fail(err)
			return
		}
		f(s, c.attached(s.ID()))
	}()
	return errLater
}

// attached is the connection's identity in a session: as it attached, so that an
// observer stays one.
func (c *conn) attached(id gladhand.SessionID) gladhand.Identity {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.feeds[id]; f != nil {
		return f.a.Who
	}
	return c.who
}

// reply answers a request with what a call of package session ended with.
func reply[T any](r *rpc.Request) func(T, error) {
	return func(result T, err error) {
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(result)
	}
}

// cancel is session/cancel for callers who want to know, and need not be attached.
func cancel(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	p, err := acp.ParseSession(r.Params)
	if err != nil {
		return nil, err
	}
	return nil, c.with(ctx, r, p.SessionID, func(s *session.Session, who gladhand.Identity) {
		reply[any](r)(acp.Empty, s.Cancel(who))
	})
}

// send is our own prompt: answered when it is stored.
func send(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	var p gladhand.SendParams
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	return nil, c.with(ctx, r, p.SessionID, func(s *session.Session, who gladhand.Identity) {
		s.Send(who, gladhand.Prompt{ID: p.PromptID, Content: p.Prompt, Delivery: p.Delivery}, reply[gladhand.Receipt](r))
	})
}

// answer settles an ask.
func answer(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	var p gladhand.AnswerParams
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	ans := gladhand.Answer{Option: p.OptionID, Content: p.Content, Reason: p.Reason, Digest: p.Digest}
	return nil, c.with(ctx, r, p.SessionID, func(s *session.Session, who gladhand.Identity) {
		s.Answer(who, p.AskID, ans, reply[gladhand.AnswerResult](r))
	})
}

func asks(c *conn, _ context.Context, _ *rpc.Request) (any, error) {
	who := c.identity()
	if err := who.May(gladhand.Answering); err != nil {
		return nil, err
	}
	return gladhand.AsksResult{Asks: c.d.host.Asks(who)}, nil
}

func queueList(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	s, err := c.peek(ctx, r)
	if err != nil {
		return nil, err
	}
	ps, paused, err := s.Queue(c.identity())
	return gladhand.QueueListResult{Paused: paused, Queue: ps}, err
}

// queueItem runs f on a waiting prompt's session.
func queueItem(c *conn, ctx context.Context, r *rpc.Request, f func(*session.Session, gladhand.Identity, gladhand.QueueItemParams) error) (any, error) {
	var p gladhand.QueueItemParams
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	s, err := c.session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	return acp.Empty, f(s, c.attached(s.ID()), p)
}

func queueDrop(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	return queueItem(c, ctx, r, func(s *session.Session, who gladhand.Identity, p gladhand.QueueItemParams) error {
		return s.Drop(who, p.PromptID)
	})
}

func queueMove(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	return queueItem(c, ctx, r, func(s *session.Session, who gladhand.Identity, p gladhand.QueueItemParams) error {
		return s.Move(who, p.PromptID, p.Position)
	})
}

func queuePause(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	return pause(c, ctx, r, true)
}

func queueResume(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	return pause(c, ctx, r, false)
}

func pause(c *conn, ctx context.Context, r *rpc.Request, paused bool) (any, error) {
	p, err := acp.ParseSession(r.Params)
	if err != nil {
		return nil, err
	}
	s, err := c.session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	return acp.Empty, s.Pause(c.attached(s.ID()), paused)
}
