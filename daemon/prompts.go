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

// cancel is session/cancel for callers who want to know, and need not be attached.
func cancel(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	p, err := acp.ParseSession(r.Params)
	if err != nil {
		return nil, err
	}
	if s := c.d.host.Live(p.SessionID); s != nil {
		return acp.Empty, s.Cancel(c.attached(p.SessionID))
	}
	go func() {
		id, err := c.d.host.Find(ctx, string(p.SessionID))
		if err == nil {
			if s := c.d.host.Live(id); s != nil {
				err = s.Cancel(c.attached(id))
			}
		}
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(acp.Empty)
	}()
	return nil, errLater
}

// send is our own prompt: answered when it is stored.
func send(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	var p gladhand.SendParams
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	prompt := gladhand.Prompt{ID: p.PromptID, Content: p.Prompt, Delivery: p.Delivery}
	done := func(rec gladhand.Receipt, err error) {
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(rec)
	}
	if s := c.d.host.Live(p.SessionID); s != nil {
		s.Send(c.attached(p.SessionID), prompt, done)
		return nil, errLater
	}
	go func() {
		s, err := c.session(ctx, p.SessionID)
		if err != nil {
			r.Fail(err)
			return
		}
		s.Send(c.attached(s.ID()), prompt, done)
	}()
	return nil, errLater
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

// answer settles an ask of a session that is open; one that is not has none.
func answer(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	var p gladhand.AnswerParams
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	ans := gladhand.Answer{Option: p.OptionID, Content: p.Content, Reason: p.Reason, Digest: p.Digest}
	done := func(res gladhand.AnswerResult, err error) {
		if err != nil {
			r.Fail(err)
			return
		}
		r.Reply(res)
	}
	if s := c.d.host.Live(p.SessionID); s != nil {
		s.Answer(c.attached(p.SessionID), p.AskID, ans, done)
		return nil, errLater
	}
	go func() {
		s, err := c.session(ctx, p.SessionID)
		if err != nil {
			r.Fail(err)
			return
		}
		s.Answer(c.attached(s.ID()), p.AskID, ans, done)
	}()
	return nil, errLater
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
