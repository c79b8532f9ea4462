package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"gladhand"
	"gladhand/tool"
)

const (
	// startLimit is how long a server may take to answer and to list its tools.
	startLimit = 30 * time.Second
	// startWait is how long the first turn waits for servers that still start.
	startWait = 5 * time.Second
	// maxRestarts is how often a server is started again in a session.
	maxRestarts = 3
	// maxTools is how many tools the servers of a session have together.
	maxTools = 512
)

// times are what tests shorten.
type times struct {
	start, wait time.Duration
	grace       time.Duration // between the end of a server's input, a signal and the kill
	backoff     time.Duration // before the first restart; doubles
	debounce    time.Duration // between a change of tools and looking at them
	gap         time.Duration // between two such looks
	patience    time.Duration // for a stream to begin
}

var standard = times{
	start: startLimit, wait: startWait, grace: 2 * time.Second, backoff: time.Second,
	debounce: 50 * time.Millisecond, gap: time.Second, patience: 5 * time.Second,
}

// Options are what the servers of a session share. Only Dir is required.
type Options struct {
	// Dir is the workspace, absolute: where servers run, and the root they see.
	Dir string
	// Environ is what stdio servers get beside their own variables, without our
	// secrets; nil is a few variables that programs need to run at all.
	Environ []string
	// HTTP is copied for the servers with an address: proxies, CAs. Its Timeout
	// and cookies are not used. Nil is Go's default.
	HTTP *http.Client
	// Reveal finds the text of a reference, and gives up when its context ends; nil
	// knows "env:NAME".
	Reveal func(context.Context, gladhand.Secret) (string, error)
	// Notice is told, a line at a time, what people in the session should know. It
	// must not wait and not call the Set. Nil is nobody.
	Notice func(text string)
	// Log is for the rest; nil discards.
	Log *slog.Logger
	// Version is ours, as servers are told.
	Version string
}

// Set is the servers of one session. Its methods may be called from any
// goroutine.
type Set struct {
	o     Options
	t     times
	peers []*peer

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // goroutines of peers
	start  time.Time

	mu     sync.Mutex
	closed bool
	over   bool // it was said that there are too many tools
}

// State is how a server is.
type State string

// The states.
const (
	Starting State = "starting"
	Ready    State = "ready"
	// Gone is a server that ended and is started again on its next use.
	Gone State = "gone"
	// Failed is one that could not be started, or ended too often.
	Failed State = "failed"
)

// Status is how a server is, for people.
type Status struct {
	Name  string
	State State
	// Tools is how many tools it offers.
	Tools int
	// Why says what is wrong; empty when nothing is. It holds no secrets.
	Why string
}

// Open starts the servers in the background and returns at once. More than 64
// are failed, not started. Close the set to end them.
func Open(servers []Server, o Options) *Set { return open(servers, o, standard) }

func open(servers []Server, o Options, t times) *Set {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Environ == nil {
		o.Environ = bareEnv()
	}
	if o.Version == "" {
		o.Version = "0"
	}
	if o.Reveal == nil {
		o.Reveal = fromEnvironment
	}
	s := &Set{o: o, t: t, start: time.Now()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	taken := map[string]bool{}
	for i, cfg := range servers {
		p := newPeer(s, cfg, taken)
		s.peers = append(s.peers, p)
		err := cfg.check()
		if err == nil && i >= maxServers {
			err = fmt.Errorf("a session has at most %d servers", maxServers)
		}
		p.open(err)
	}
	return s
}

// Tools are the tools of the servers that are ready, or that will be started
// again when they are used; at most 512. In the first 5 s of a set it waits for
// servers that still start, and not after that. Servers that failed are tried
// again in the background, as far as that is allowed.
func (s *Set) Tools(ctx context.Context) []tool.Tool {
	late := time.NewTimer(s.t.wait - time.Since(s.start))
	defer late.Stop()
	for _, p := range s.peers {
		select {
		case <-p.first:
			continue
		default:
		}
		select {
		case <-p.first:
			continue
		case <-ctx.Done():
		case <-late.C:
		}
		break
	}
	var out []tool.Tool
	left := 0
	for _, p := range s.peers {
		for _, e := range p.offered() {
			if len(out) == maxTools {
				left++
				continue
			}
			out = append(out, served{p, e})
		}
	}
	if left > 0 && s.firstOver() {
		s.say(fmt.Sprintf("The MCP servers have %d tools, of which %d are offered to the model. Leave out servers that are not needed.", maxTools+left, maxTools))
	}
	return out
}

func (s *Set) firstOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.over
	s.over = true
	return first
}

// Status says how each server is, in the order they were given.
func (s *Set) Status() []Status {
	out := make([]Status, 0, len(s.peers))
	for _, p := range s.peers {
		out = append(out, p.status())
	}
	return out
}

// Close ends all servers and waits for that: their input ends, after 2 s a signal
// follows, after 2 s more they are killed with what they started. Calls under way
// fail. It may be called more than once.
func (s *Set) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	return nil
}

// run runs f in a goroutine that Close waits for; not after Close.
func (s *Set) run(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Go(f)
	return true
}

func (s *Set) say(text string) {
	s.o.Log.Info(text)
	if s.o.Notice != nil && s.ctx.Err() == nil {
		s.o.Notice(text)
	}
}

// fromEnvironment is Options.Reveal's default.
func fromEnvironment(_ context.Context, v gladhand.Secret) (string, error) {
	switch kind, name := v.Reference(); kind {
	case "env":
		if text, ok := os.LookupEnv(name); ok {
			return text, nil
		}
		return "", fmt.Errorf("the variable %s is not set", name)
	case "":
		return v.Reveal(), nil
	}
	return "", errors.New("no keyring can be used here")
}

// bareEnv is what programs need to run at all.
func bareEnv() []string {
	names := []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}
	if runtime.GOOS == "windows" {
		names = []string{
			"PATH", "PATHEXT", "SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "APPDATA", "LOCALAPPDATA", "PROGRAMFILES",
			"HOMEDRIVE", "HOMEPATH", "USERPROFILE", "USERNAME", "TEMP", "TMP",
		}
	}
	var env []string
	for _, n := range names {
		if v, ok := os.LookupEnv(n); ok {
			env = append(env, n+"="+v)
		}
	}
	return slices.Clip(env)
}
