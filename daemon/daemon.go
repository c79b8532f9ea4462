package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/user"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gladhand"
	"gladhand/config"
	"gladhand/proc"
	"gladhand/rpc"
	"gladhand/session"
	"gladhand/store"
)

// Limits of the local endpoint that are no settings.
const (
	InitializeTimeout = 30 * time.Second
	// Linger is how long what a client asked before it closed its end may still be
	// answered: a first session may wait for a look at the models there are.
	Linger        = 5 * time.Second
	FrameBudget   = 128 << 20 // bytes of unfinished frames over 64 KiB, all connections
	acceptBackoff = 50 * time.Millisecond
)

// Options are what a daemon is made of.
type Options struct {
	Place proc.Place
	// Config is the path of the settings file.
	Config  string
	Version string
	// Log receives the daemon's log; nil discards. LogFile is where it goes to, for
	// log/query; empty for none.
	Log     *slog.Logger
	LogFile string
	// NewAgent makes a session's agent. Models are what sessions may choose from.
	// Agents are the names NewAgent knows, the default first.
	NewAgent func(context.Context, gladhand.SessionInfo) (session.Agent, error)
	Models   session.Models
	Agents   []string
	// CheckServers reports what is wrong with MCP servers that a client passes, ACP's
	// mcpServers; nil takes none.
	CheckServers func(json.RawMessage) error
	// Configured is told the settings when the daemon begins, and after each change.
	Configured func(config.Settings)
}

// Daemon is a running daemon.
type Daemon struct {
	opts    Options
	log     *slog.Logger
	store   *store.Store
	host    *session.Host
	config  *config.File
	started time.Time
	budget  *rpc.Budget
	user    string
	stop    chan time.Duration // how long running turns may go on
	streams streams

	mu      sync.Mutex
	conns   map[*conn]bool
	count   atomic.Int64
	warned  atomic.Bool // the connection limit was reported
	serving sync.WaitGroup
}

// Run opens the data directory, listens, and serves until ctx ends or a client
// asks it to stop; then running turns may go on for a while, everything is
// stored, and Run returns nil. Errors before it listens are *gladhand.Error: a
// directory that cannot be used, a newer database, another daemon.
func Run(ctx context.Context, o Options) error {
	d, l, err := open(ctx, o)
	if err != nil {
		return err
	}
	d.log.Info("listening", "endpoint", o.Place.Endpoint, "version", o.Version, "pid", os.Getpid())
	go d.accept(l)
	if err := d.host.Recover(ctx); err != nil {
		d.log.Error("looking for interrupted sessions", "err", err)
	}
	drain := d.settings().Stop.Drain
	select {
	case <-ctx.Done():
	case drain = <-d.stop:
	}
	return d.shutdown(l, drain)
}

func open(ctx context.Context, o Options) (*Daemon, net.Listener, error) {
	if err := proc.PrepareDir(o.Place.DataDir); err != nil {
		return nil, nil, err
	}
	cfg, err := config.Open(o.Config)
	if err != nil {
		return nil, nil, err
	}
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	l, err := proc.Listen(o.Place)
	if err != nil {
		return nil, nil, err
	}
	st, err := store.Open(ctx, o.Place.DataDir, store.Options{Log: log})
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	d := New(st, cfg, o)
	return d, l, nil
}

// configured tells whoever made the daemon what the settings are.
func (d *Daemon) configured() {
	if d.opts.Configured != nil {
		d.opts.Configured(d.settings())
	}
}

// New returns a daemon over an open store, for callers that bring their own
// connections: see [Daemon.Serve].
func New(st *store.Store, cfg *config.File, o Options) *Daemon {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	set := cfg.Settings()
	d := &Daemon{
		opts: o, log: log, store: st, config: cfg, started: time.Now(),
		budget: rpc.NewBudget(FrameBudget), user: userName(),
		stop: make(chan time.Duration, 1), conns: map[*conn]bool{},
	}
	d.configured()
	d.host = session.NewHost(st, session.Options{
		NewAgent: o.NewAgent, Models: o.Models, Log: log,
		Knows:    d.knows,
		Effort:   func() string { return d.settings().Effort },
		QueueMax: set.Queue.Max, AskExpiry: set.Asks.Expiry,
	})
	return d
}

func (d *Daemon) knows(agent string) bool {
	for _, a := range d.opts.Agents {
		if a == agent {
			return true
		}
	}
	return len(d.opts.Agents) == 0
}

func (d *Daemon) settings() config.Settings { return d.config.Settings() }

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "user " + strconv.Itoa(os.Getuid())
}

// accept serves connections until the listener is closed.
func (d *Daemon) accept(l net.Listener) {
	failing := false // said once, however long it lasts
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			failing = false
			d.serving.Go(func() { d.admit(c) })
		case errors.Is(err, net.ErrClosed):
			return
		default:
			if !failing {
				d.log.Warn("connections cannot be accepted for now", "err", err)
			}
			failing = true
			time.Sleep(acceptBackoff)
		}
	}
}

// admit looks who is there, and serves the connection.
func (d *Daemon) admit(c net.Conn) {
	peer, err := proc.Peer(c)
	if err != nil || !proc.SameUser(peer) {
		d.log.Warn("a connection of another user was refused", "uid", peer.UID, "pid", peer.PID, "err", err)
		c.Close()
		return
	}
	limit := d.settings().Limits.Connections
	if n := d.count.Add(1); n > int64(limit) {
		d.refuse(c, limit)
		d.count.Add(-1)
		return
	}
	defer d.count.Add(-1)
	d.Serve(context.Background(), c, gladhand.Identity{Kind: gladhand.Human, Name: d.user, Rights: gladhand.Owner})
}

// refuse answers a connection over the limit with one error, and ends it.
func (d *Daemon) refuse(c net.Conn, limit int) {
	if d.warned.CompareAndSwap(false, true) {
		d.log.Warn("the limit of connections is reached; further ones are refused", "limit", limit)
	}
	rc := rpc.New(c, rpc.Options{})
	rc.Refuse(gladhand.Errorf(gladhand.CodeLimit, gladhand.ReasonConnectionLimit,
		"%d connections are open; close one, or raise limits.connections", limit).With("limit", limit))
}

// Serve serves one connection, which may be any byte stream, for a client with
// this identity, and returns when it has ended. Who is calling was settled by
// the caller; the client's id is made here.
func (d *Daemon) Serve(ctx context.Context, rwc io.ReadWriteCloser, who gladhand.Identity) {
	who.Client = gladhand.ClientID(gladhand.NewID())
	c := &conn{d: d, who: who, feeds: map[gladhand.SessionID]*feed{}, log: d.log.With("client", who.Client)}
	c.rpc = rpc.New(rwc, rpc.Options{
		Handler: c.handle,
		Limits:  rpc.Limits{FirstFrame: InitializeTimeout, Linger: Linger, Budget: d.budget},
		Log:     c.log,
	})
	d.mu.Lock()
	d.conns[c] = true
	d.mu.Unlock()
	err := c.rpc.Run(ctx)
	c.leave()
	d.mu.Lock()
	delete(d.conns, c)
	d.mu.Unlock()
	c.log.Debug("connection ended", "err", err)
}

// shutdown stops taking connections, lets running turns go on for drain, stores
// everything, and ends every connection.
func (d *Daemon) shutdown(l net.Listener, drain time.Duration) error {
	d.log.Info("stopping", "drain", drain)
	errs := []error{l.Close()}
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	errs = append(errs, d.host.Shutdown(ctx))
	d.mu.Lock()
	conns := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	d.mu.Unlock()
	flush, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	for _, c := range conns {
		c.finish(flush)
	}
	d.serving.Wait()
	errs = append(errs, d.store.Close())
	d.log.Info("stopped")
	return errors.Join(errs...)
}

// status is what `status` and `health` answer.
func (d *Daemon) status() gladhand.StatusResult {
	n := d.host.Counts()
	r := gladhand.StatusResult{
		Version: d.opts.Version, Protocol: []int{1, 2}, PID: os.Getpid(),
		Endpoint: d.opts.Place.Endpoint, DataDir: d.opts.Place.DataDir, Config: d.opts.Config,
		StartedAt: d.started.UTC().Format(time.RFC3339),
		Sessions:  n.Sessions, Running: n.Running, Asks: n.Asks, Clients: int(d.count.Load()), Store: "ok",
	}
	if err := d.store.Health(); err != nil {
		r.Store = err.Error()
	}
	return r
}

func meta(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("our own types marshal: %v", err))
	}
	return raw
}
