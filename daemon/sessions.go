package daemon

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"time"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
	"gladhand/session"
)

// state is what a client that opened a session is told of it.
func state(s *session.Session) acp.SessionState {
	in := s.Info()
	modes := acp.Modes{Current: in.Mode}
	for _, m := range session.Modes() {
		modes.Available = append(modes.Available, acp.Mode{ID: m.ID, Name: m.Name, Description: m.Description})
	}
	return acp.SessionState{Options: s.Options(), Modes: &modes}
}

func sessionNew(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	p, err := acp.ParseNew(r.Params)
	if err != nil {
		return nil, err
	}
	if err := noDirs(p.Dirs); err != nil {
		return nil, err
	}
	if err := c.checkServers(p.MCPServers); err != nil {
		return nil, err
	}
	var m gladhand.NewSessionMeta
	if raw := acp.Meta(p.Meta, "gladhand"); raw != nil {
		if err := rpc.DecodeParams(raw, &m); err != nil {
			return nil, err
		}
	}
	set := c.d.settings()
	m.Agent, m.Model = or(m.Agent, set.Agent), or(m.Model, set.Model)
	m.Mode, m.Profile = or(m.Mode, set.Mode), or(m.Profile, set.Profile)
	s, err := c.d.host.Create(ctx, c.identity(), p.Cwd, m)
	if err != nil {
		return nil, err
	}
	if err := s.UseServers(c.identity(), p.MCPServers); err != nil {
		return nil, err
	}
	err = c.attach(s, feedOptions{after: 0}, func(*feed, gladhand.Snapshot) {
		r.Reply(acp.NewResult(c.version, s.ID(), state(s)))
	})
	return nil, later(err)
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// later turns the success of a call that answered already into errLater.
func later(err error) error {
	if err == nil {
		return errLater
	}
	return err
}

func noDirs(dirs []string) error {
	if len(dirs) == 0 {
		return nil
	}
	return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonUnsupported, "additionalDirectories are not supported yet; open a session in each directory")
}

// checkServers looks at the MCP servers that a client passes, before anything is made
// or opened for it.
func (c *conn) checkServers(servers json.RawMessage) error {
	var list []json.RawMessage
	if json.Unmarshal(servers, &list) != nil || len(list) == 0 {
		return nil
	}
	if c.d.opts.CheckServers == nil {
		c.log.Warn("a client passed MCP servers, which are not used here", "count", len(list))
		return nil
	}
	return c.d.opts.CheckServers(servers)
}

// openFor brings a session into memory for ACP's load and resume; cwd must be its.
func openFor(c *conn, ctx context.Context, params json.RawMessage) (*session.Session, acp.LoadParams, error) {
	p, err := acp.ParseLoad(params)
	if err != nil {
		return nil, p, err
	}
	if err := noDirs(p.Dirs); err != nil {
		return nil, p, err
	}
	if err := c.checkServers(p.MCPServers); err != nil {
		return nil, p, err
	}
	s, err := c.d.host.Open(ctx, p.SessionID)
	if err != nil {
		return nil, p, err
	}
	cwd, err := filepath.EvalSymlinks(p.Cwd)
	if err != nil || cwd != s.Info().Cwd {
		return nil, p, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "session %s belongs to %s, not to %s", p.SessionID, s.Info().Cwd, p.Cwd)
	}
	return s, p, s.UseServers(c.identity(), p.MCPServers)
}

func sessionLoad(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	s, _, err := openFor(c, ctx, r.Params)
	if err != nil {
		return nil, err
	}
	return nil, later(c.replay(s, r, 0))
}

// replay attaches behind a number; the feed answers when the history from there
// is written.
func (c *conn) replay(s *session.Session, r *rpc.Request, after int64) error {
	return c.attach(s, feedOptions{after: after}, func(f *feed, _ gladhand.Snapshot) {
		f.onLive = func() { r.Reply(acp.LoadResult(c.version, state(s))) }
	})
}

func sessionResume(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	s, p, err := openFor(c, ctx, r.Params)
	if err != nil {
		return nil, err
	}
	after := int64(-1)
	if c.version == acp.V2 && p.Replays() {
		after = 0
	}
	return nil, later(c.replay(s, r, after))
}

const listPage = 100

func sessionList(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	p, err := acp.ParseList(r.Params)
	if err != nil {
		return nil, err
	}
	start := 0
	if p.Cursor != "" {
		if start, err = strconv.Atoi(p.Cursor); err != nil || start < 0 {
			return nil, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "the cursor is not one that session/list gave")
		}
	}
	all, err := c.d.host.List(ctx, c.identity(), p.Cwd, true)
	if err != nil {
		return nil, err
	}
	var page []gladhand.SessionInfo
	next := ""
	for i, in := range all {
		if in.State == gladhand.StateKilled || i < start {
			continue
		}
		if len(page) == listPage {
			next = strconv.Itoa(i)
			break
		}
		page = append(page, in)
	}
	return acp.ListResult(page, next), nil
}

// named reads parameters that name a session, by its id or the beginning of one.
func named(c *conn, ctx context.Context, r *rpc.Request) (gladhand.SessionID, error) {
	p, err := acp.ParseSession(r.Params)
	if err != nil {
		return "", err
	}
	return c.d.host.Find(ctx, string(p.SessionID))
}

func sessionClose(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	id, err := named(c, ctx, r)
	if err != nil {
		return nil, err
	}
	detached, err := c.d.host.Close(ctx, c.identity(), id)
	if err != nil {
		return nil, err
	}
	c.detach(id)
	return meta(map[string]any{"_meta": map[string]any{"gladhand": map[string]bool{"detached": detached}}}), nil
}

func sessionDelete(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	return end(c, ctx, r, c.d.host.Delete)
}

func sessionKill(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	return end(c, ctx, r, c.d.host.Kill)
}

func end(c *conn, ctx context.Context, r *rpc.Request, f func(context.Context, gladhand.Identity, gladhand.SessionID) error) (any, error) {
	id, err := named(c, ctx, r)
	if err != nil {
		return nil, err
	}
	if err := f(ctx, c.identity(), id); err != nil {
		return nil, err
	}
	return acp.Empty, nil
}

func setMode(c *conn, _ context.Context, r *rpc.Request) (any, error) {
	p, err := acp.ParseSetMode(r.Params)
	if err != nil {
		return nil, err
	}
	f, err := c.feed(p.SessionID)
	if err != nil {
		return nil, err
	}
	if _, err := f.s.SetOption(f.a.Who, session.OptionMode, p.ModeID); err != nil {
		return nil, err
	}
	return acp.Empty, nil
}

func setConfigOption(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	p, err := acp.ParseSetOption(r.Params)
	if err != nil {
		return nil, err
	}
	s, err := c.session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	options, err := s.SetOption(c.attached(s.ID()), p.ConfigID, p.Value)
	if err != nil {
		return nil, err
	}
	return acp.SetOptionResult(c.version, options), nil
}

// session finds a session by its id or the beginning of one, and opens it.
func (c *conn) session(ctx context.Context, id gladhand.SessionID) (*session.Session, error) {
	full, err := c.d.host.Find(ctx, string(id))
	if err != nil {
		return nil, err
	}
	return c.d.host.Open(ctx, full)
}

func attach(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	var p gladhand.AttachParams
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	how := feedOptions{own: true, noAnswer: p.NoAnswer, label: p.Name, task: p.Task}
	switch p.Role {
	case "", gladhand.RoleController:
	case gladhand.RoleObserver:
		how.observer = true
	default:
		return nil, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "role is controller or observer, not %q", p.Role)
	}
	if p.After != nil {
		how.after = *p.After
	}
	s, err := c.session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	return nil, later(c.attach(s, how, func(_ *feed, snap gladhand.Snapshot) {
		r.Reply(gladhand.AttachResult{Seq: snap.Session.Seq, Snapshot: snap})
	}))
}

func detach(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	id, err := named(c, ctx, r)
	if err != nil {
		return nil, err
	}
	c.detach(id)
	return acp.Empty, nil
}

func sessions(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	var p gladhand.SessionsParams
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	list, err := c.d.host.List(ctx, c.identity(), p.Cwd, p.All)
	return gladhand.SessionsResult{Sessions: list}, err
}

func show(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	s, err := c.peek(ctx, r)
	if err != nil {
		return nil, err
	}
	snap, err := s.Snapshot(c.identity())
	if err != nil {
		return nil, err
	}
	files, err := s.Files(ctx, c.identity())
	return gladhand.ShowResult{Snapshot: snap, Files: files}, err
}

// peek finds a session to look at, without opening a closed one.
func (c *conn) peek(ctx context.Context, r *rpc.Request) (*session.Session, error) {
	id, err := named(c, ctx, r)
	if err != nil {
		return nil, err
	}
	return c.d.host.Peek(ctx, id)
}

const (
	eventsDefault = 200
	eventsMax     = 1000
	eventsBytes   = 2 << 20 // of updates in one page: large results page
)

func events(c *conn, ctx context.Context, r *rpc.Request) (any, error) {
	var p gladhand.EventsParams
	if err := rpc.DecodeParams(r.Params, &p); err != nil {
		return nil, err
	}
	if p.Limit == 0 {
		p.Limit = eventsDefault
	}
	if p.Limit < 1 || p.Limit > eventsMax {
		return nil, gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, "limit must be 1 to %d", eventsMax)
	}
	id, err := c.d.host.Find(ctx, string(p.SessionID))
	if err != nil {
		return nil, err
	}
	s, err := c.d.host.Peek(ctx, id)
	if err != nil {
		return nil, err
	}
	items, next, more, err := s.Events(ctx, c.identity(), p.After, p.Limit)
	if err != nil {
		return nil, err
	}
	res := gladhand.EventsResult{Updates: []gladhand.LoggedUpdate{}, Next: next, More: more}
	size := 0
	for i, it := range items {
		if size > eventsBytes {
			res.Next, res.More = items[i-1].To, true
			break
		}
		updates := project(it.Event, frameKey{version: int8(c.version), own: true})
		for n, u := range updates {
			size += len(u)
			res.Updates = append(res.Updates, gladhand.LoggedUpdate{
				Update: u, Meta: updateMeta(it, true, n < len(updates)-1), At: it.Event.At.UTC().Format(time.RFC3339Nano),
			})
		}
	}
	return res, nil
}
