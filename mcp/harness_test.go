package mcp

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gladhand"
	"gladhand/tool"
)

// canary is in the environment and the headers of servers, and may be in nothing
// that we say.
const canary = "canary-4711-secret"

// quick are times that a test can wait for.
var quick = times{
	start: 20 * time.Second, wait: 20 * time.Second, grace: 300 * time.Millisecond, backoff: time.Millisecond,
	debounce: time.Millisecond, gap: time.Millisecond, patience: 300 * time.Millisecond,
}

// record keeps what people and the log were told.
type record struct {
	mu  sync.Mutex
	all []string
}

func (r *record) Write(p []byte) (int, error) {
	r.add(string(p))
	return len(p), nil
}

func (r *record) add(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, s)
}

func (r *record) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.all, "\n")
}

// stdioServer is the test binary as a server in a mode.
func stdioServer(t *testing.T, mode string, env map[string]string) Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{modeVariable: mode, "SECRET": canary}
	maps.Copy(all, env)
	s := Server{Name: mode, Command: exe, Env: map[string]gladhand.Secret{}, Timeout: 30 * time.Second}
	for k, v := range all {
		s.Env[k] = gladhand.PartlySecret(v, gladhand.Masked)
	}
	return s
}

// start opens servers; everything said is checked for secrets at the end.
func start(t *testing.T, tm times, o Options, servers ...Server) (*Set, *record) {
	t.Helper()
	said := &record{}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	o.Notice = said.add
	o.Log = slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := open(servers, o, tm)
	t.Cleanup(func() {
		for _, st := range s.Status() {
			said.add(st.Why)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if text := said.text(); strings.Contains(text, canary) {
			t.Errorf("a secret was told:\n%s", text)
		}
	})
	return s, said
}

// until polls a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(30 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatal("not so after 30 s: " + what)
		}
	}
}

// find returns the tool of that name of the first server that has it.
func find(t *testing.T, s *Set, name string) tool.Tool {
	t.Helper()
	tools := s.Tools(t.Context())
	for _, x := range tools {
		if strings.HasSuffix(x.Spec().Name, "__"+name) {
			return x
		}
	}
	t.Fatalf("no tool %q among %d; %+v", name, len(tools), s.Status())
	return nil
}

// call prepares and runs a tool.
func call(ctx context.Context, t *testing.T, s *Set, name, args string) (tool.Result, *tool.Output, error) {
	t.Helper()
	c, err := find(t, s, name).Prepare(ctx, &tool.Env{}, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	out := tool.NewOutput(tool.MaxResult, "")
	r, err := c.Run(ctx, out)
	return r, out, err
}

// must is call for what goes well.
func must(t *testing.T, s *Set, name, args string) tool.Result {
	t.Helper()
	r, _, err := call(t.Context(), t, s, name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// heap is the memory in use after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var _ io.Writer = (*record)(nil)
