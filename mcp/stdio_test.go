package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gladhand"
	"gladhand/policy"
	"gladhand/tool"
)

func TestCall(t *testing.T) {
	dir, _ := filepath.EvalSymlinks(t.TempDir())
	s, _ := start(t, quick, Options{Dir: dir, Environ: []string{"PATH=" + os.Getenv("PATH"), "SEEN=yes"}}, stdioServer(t, "serve", nil))
	if r := must(t, s, "echo", `{"b":1,"a":[9007199254740993]}`); r.Text != `{"b":1,"a":[9007199254740993]}` || r.Failed {
		t.Errorf("echo gave %+v", r)
	}
	if r := must(t, s, "fail", `{}`); r.Text != "it did not work" || !r.Failed {
		t.Errorf("fail gave %+v", r)
	}
	if r := must(t, s, "pid", `{}`); !strings.HasSuffix(r.Text, " "+dir) {
		t.Errorf("it runs in %s, not in %s", r.Text, dir)
	}
	if _, _, err := call(t.Context(), t, s, "error", `{}`); err == nil || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), canary) {
		t.Errorf("error gave %v", err)
	}
	// The environment is what was given, and nothing of ours.
	t.Setenv("ANTHROPIC_API_KEY", "ours")
	env := must(t, s, "env", `{}`).Text
	if !strings.Contains(env, "SEEN=yes") || !strings.Contains(env, "SECRET="+canary) || strings.Contains(env, "ANTHROPIC") || strings.Contains(env, "HOME=") {
		t.Errorf("the environment is\n%s", env)
	}
	if r := must(t, s, "roots", `{}`); r.Text != fileURI(dir) {
		t.Errorf("the root is %q", r.Text)
	}
	for _, name := range []string{"sample", "elicit"} {
		if r := must(t, s, name, `{}`); !strings.Contains(r.Text, "not support") {
			t.Errorf("%s gave %q", name, r.Text)
		}
	}
	st := s.Status()
	if len(st) != 1 || st[0].State != Ready || st[0].Tools != 17 || st[0].Why != "" {
		t.Errorf("the status is %+v", st)
	}
}

func TestResult(t *testing.T) {
	t.Parallel()
	s, _ := start(t, quick, Options{}, stdioServer(t, "serve", nil))
	r := must(t, s, "rich", `{}`)
	want := `a text
[an image, image/png, ` + fmt.Sprint(len(pngImage())) + ` bytes]
[an image of 14 bytes that is no valid PNG, JPEG, GIF or WebP: not shown]
[an image of 6 bytes that is no valid PNG, JPEG, GIF or WebP: not shown]
[audio, audio/wav, 4 bytes: not shown]
[link to a link: file:///x]
[file:///y]
inside
[file:///z: application/zip, 2 bytes: not shown]`
	if r.Text != want {
		t.Errorf("the text is\n%s", r.Text)
	}
	if len(r.Images) != 1 || r.Images[0].MIME != "image/png" || string(r.Images[0].Data) != string(pngImage()) {
		t.Errorf("the images are %v", r.Images)
	}
	if fmt.Sprintf("%s", r.Raw) != `{"n":1}` {
		t.Errorf("raw is %s", r.Raw)
	}
	// Bounded: a long answer is cut, and a longer one than a message may be ends
	// the server.
	for _, n := range []int{tool.MaxResult - 256, tool.MaxResult, 1 << 20} {
		r := must(t, s, "huge", fmt.Sprintf(`{"N":%d}`, n))
		if cut := strings.Contains(r.Text, "left out"); len(r.Text) > tool.MaxResult || cut != (n > tool.MaxResult-256) {
			t.Errorf("%d bytes became %d (cut: %v)", n, len(r.Text), cut)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	s, _ := start(t, quick, Options{}, stdioServer(t, "serve", nil))
	r, out, err := call(t.Context(), t, s, "progress", `{}`)
	if err != nil || r.Text != "done" {
		t.Fatal(r, err)
	}
	if got := out.Text(1000); got != "step [31m (1/3)\nstep [31m (2/3)\nstep [31m (3/3)\n" {
		t.Errorf("the progress is %q", got)
	}
}

// A server that floods with notifications costs no memory, and its answer comes
// behind them all.
func TestFloodOfNotifications(t *testing.T) {
	s, _ := start(t, quick, Options{}, stdioServer(t, "serve", nil))
	must(t, s, "echo", `{}`)
	before := heap()
	for _, n := range []int{100, 10_000} {
		if r := must(t, s, "flood", fmt.Sprintf(`{"N":%d}`, n)); r.Text != "flooded" {
			t.Errorf("flood gave %q", r.Text)
		}
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("memory grew from %d to %d bytes", before, after)
	}
}

// What is printed where it does not belong does no harm: on standard output it is
// passed over, on standard error it is read and forgotten.
func TestNoise(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"banner", "noisy"} {
		s, _ := start(t, quick, Options{}, stdioServer(t, mode, nil))
		if r := must(t, s, "echo", `{"x":1}`); r.Text != `{"x":1}` {
			t.Errorf("%s: %+v", mode, r)
		}
		if mode == "noisy" {
			p := s.peers[0]
			until(t, "all of it was read", func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.conn.stdio.tail.last() == "quiet"
			})
		}
	}
}

// Servers that misbehave from the start are failed with a text, and none of them
// keeps the others from working.
func TestServersThatFail(t *testing.T) {
	t.Parallel()
	tm := quick
	tm.start = 5 * time.Second
	good := stdioServer(t, "serve", nil)
	missing := Server{Name: "missing", Command: "no-such-program-4711"}
	both := Server{Name: "both", Command: "x", URL: gladhand.NewSecret("http://localhost")}
	s, said := start(t, tm, Options{},
		stdioServer(t, "garbage", nil), stdioServer(t, "chatter", nil), stdioServer(t, "silent", nil), stdioServer(t, "dead", nil),
		stdioServer(t, "asking", nil), stdioServer(t, "deaf", nil), stdioServer(t, "pages", nil), missing, both, good)
	if r := must(t, s, "echo", `{}`); r.Text != "{}" {
		t.Errorf("the good one gave %+v", r)
	}
	want := map[string]string{
		"garbage": "a message over 4 MiB",
		"chatter": "no MCP messages",
		"deaf":    "did not list its tools: it did not answer within 5s",
		"silent":  "did not answer within 5s",
		"dead":    "exit status 3: cannot find " + gladhand.Masked,
		"asking":  "asked more than 64 questions",
		"missing": `no program "no-such-program-4711"`,
		"both":    "needs a command or a url",
	}
	until(t, "all have failed", func() bool {
		n := 0
		for _, st := range s.Status() {
			if why, ok := want[st.Name]; ok && st.State == Failed && strings.Contains(st.Why, why) {
				n++
			}
		}
		return n == len(want)
	})
	for name, why := range want {
		until(t, "people were told of "+name, func() bool { return strings.Contains(said.text(), why) })
	}
}

// A failed server is tried again with the next prompt.
func TestSecondTry(t *testing.T) {
	t.Parallel()
	s, _ := start(t, quick, Options{}, stdioServer(t, "flaky", map[string]string{"MARK": filepath.Join(t.TempDir(), "mark")}))
	if tools := s.Tools(t.Context()); len(tools) != 0 {
		t.Fatalf("%d tools at once", len(tools))
	}
	until(t, "it is ready", func() bool { return s.Status()[0].State == Ready })
	must(t, s, "echo", `{}`)
}

// One that dies in mid-call is said to, the call is not repeated, and the
// next one starts it again, three times.
func TestDeath(t *testing.T) {
	t.Parallel()
	s, said := start(t, quick, Options{}, stdioServer(t, "serve", nil))
	pids := map[string]bool{}
	for i := range 1 + maxRestarts {
		pid := must(t, s, "pid", `{}`).Text
		if pids[pid] {
			t.Fatal("the process is the same")
		}
		pids[pid] = true
		_, _, err := call(t.Context(), t, s, "die", `{}`)
		if err == nil || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "effect of the call is unknown") || strings.Contains(err.Error(), canary) {
			t.Fatalf("death %d gave %v", i, err)
		}
		until(t, "it is known", func() bool { return s.Status()[0].State != Ready })
	}
	if st := s.Status()[0]; st.State != Failed || !strings.Contains(st.Why, "exit status 7") {
		t.Errorf("the status is %+v", st)
	}
	if tools := s.Tools(t.Context()); len(tools) != 0 {
		t.Errorf("%d tools are still offered", len(tools))
	}
	for _, want := range []string{"It is started again when it is used", "was started again (3 of 3 times)", "It is not tried again"} {
		until(t, "people were told "+want, func() bool { return strings.Contains(said.text(), want) })
	}
}

// A message that is too long ends the server, with a text.
func TestTooLong(t *testing.T) {
	t.Parallel()
	s, _ := start(t, quick, Options{}, stdioServer(t, "serve", nil))
	_, _, err := call(t.Context(), t, s, "huge", fmt.Sprintf(`{"N":%d}`, 5<<20))
	if err == nil || !strings.Contains(err.Error(), "a message over 4 MiB") {
		t.Fatal(err)
	}
	must(t, s, "echo", `{}`) // and it comes back
}

// Cancelling returns at once, whether the server heeds it or not, and tells it.
func TestCancel(t *testing.T) {
	t.Parallel()
	s, _ := start(t, quick, Options{}, stdioServer(t, "serve", nil))
	for _, name := range []string{"hang", "ignore"} {
		ctx, cancel := context.WithCancel(t.Context())
		c, err := find(t, s, name).Prepare(ctx, &tool.Env{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		out := tool.NewOutput(1000, "")
		done := make(chan error, 1)
		go func() {
			_, err := c.Run(ctx, out)
			done <- err
		}()
		<-out.Changed() // it runs
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	until(t, "the server was told", func() bool { return must(t, s, "cancelled", `{}`).Text == "1" })
}

// A server that takes no more input holds nothing up: neither calls that are
// cancelled or late, nor the end.
func TestDeaf(t *testing.T) {
	t.Parallel()
	cfg := stdioServer(t, "serve", nil)
	s, _ := start(t, quick, Options{}, cfg)
	must(t, s, "echo", `{}`)
	p := s.peers[0]
	p.mu.Lock()
	c := p.conn
	p.mu.Unlock()
	c.stdio.writes <- struct{}{} // as if a write never came back
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := call(ctx, t, s, "echo", `{}`)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	cfg := stdioServer(t, "serve", nil)
	cfg.Timeout = 100 * time.Millisecond
	s, _ := start(t, quick, Options{}, cfg)
	_, _, err := call(t.Context(), t, s, "hang", `{}`)
	if err == nil || !strings.Contains(err.Error(), "did not answer within 100ms") {
		t.Fatal(err)
	}
	until(t, "the server was told", func() bool {
		r, _, err := call(t.Context(), t, s, "cancelled", `{}`)
		return err == nil && r.Text == "1"
	})
}

// A server that speaks only the newest protocol is spoken to.
func TestNewest(t *testing.T) {
	t.Parallel()
	s, _ := start(t, quick, Options{}, stdioServer(t, "newest", nil))
	if r := must(t, s, "echo", `{}`); r.Text != "{}" {
		t.Error(r)
	}
	if r, _, err := call(t.Context(), t, s, "elicit", `{}`); err == nil && !strings.Contains(r.Text, "not support") {
		t.Errorf("elicit gave %q", r.Text)
	}
	must(t, s, "change", `{}`)
	until(t, "the change was seen", func() bool { return has(s, "added") && !has(s, "echo") })
}

func has(s *Set, name string) bool {
	for _, x := range s.Tools(context.Background()) {
		if strings.HasSuffix(x.Spec().Name, "__"+name) {
			return true
		}
	}
	return false
}

// A list that changes is read again; a tool that is gone is not called, nor one
// that is not what was allowed.
func TestListChanged(t *testing.T) {
	t.Parallel()
	s, _ := start(t, quick, Options{}, stdioServer(t, "serve", nil))
	echo := find(t, s, "echo")
	c, err := echo.Prepare(t.Context(), &tool.Env{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Digest(); err != nil {
		t.Fatal(err)
	}
	must(t, s, "change", `{}`)
	until(t, "the change was seen", func() bool { return has(s, "added") && !has(s, "echo") })
	if _, err := c.Digest(); err == nil {
		t.Error("a tool that is gone has a digest")
	}
	if _, err := c.Run(t.Context(), tool.NewOutput(100, "")); err == nil || !strings.Contains(err.Error(), "not done") {
		t.Errorf("a tool that is gone was called: %v", err)
	}
	if _, err := echo.Prepare(t.Context(), &tool.Env{}, nil); err == nil {
		t.Error("a tool that is gone was prepared")
	}
}

// What is asked: everything, bound to the server as it is started.
func TestAction(t *testing.T) {
	t.Parallel()
	other := stdioServer(t, "serve", nil)
	other.Args = []string{"other"}
	s, _ := start(t, quick, Options{}, stdioServer(t, "serve", nil), other)
	var rules, digests []string
	for _, x := range s.Tools(t.Context()) {
		if !strings.HasSuffix(x.Spec().Name, "__echo") {
			continue
		}
		for _, args := range []string{`{}`, `{"a":1}`} {
			c, err := x.Prepare(t.Context(), &tool.Env{}, []byte(args))
			if err != nil {
				t.Fatal(err)
			}
			d := policy.Decide(policy.Settings{Workspace: s.o.Dir}, c.Action)
			if d.Outcome != policy.Ask || d.Rule == "" || !strings.Contains(d.Reason, `MCP server "serve", not confined`) {
				t.Errorf("decided %+v", d)
			}
			digest, err := c.Digest()
			if err != nil {
				t.Fatal(err)
			}
			rules, digests = append(rules, d.Rule), append(digests, digest)
		}
	}
	if len(rules) != 4 || rules[0] != rules[1] || rules[2] != rules[3] || rules[0] == rules[2] {
		t.Errorf("the rules are %q", rules)
	}
	seen := map[string]bool{}
	for _, d := range digests {
		seen[d] = true
	}
	if len(seen) != 4 {
		t.Errorf("the digests are %q", digests)
	}
	for _, bad := range []string{`[]`, `{"a":1,"a":2}`, `{`, `"x"`} {
		if _, err := find(t, s, "echo").Prepare(t.Context(), &tool.Env{}, []byte(bad)); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// Whatever a server answers, the process lives, the call ends, and what comes of
// it is valid.
func TestHostile(t *testing.T) {
	t.Parallel()
	cfg := stdioServer(t, "hostile", nil)
	cfg.Timeout = 3 * time.Second
	s, said := start(t, quick, Options{}, cfg)
	for i := range hostile {
		r, _, err := call(t.Context(), t, s, fmt.Sprintf("h%d", i), `{}`)
		if err != nil && strings.Contains(err.Error(), "did not answer") {
			t.Errorf("%d: %.100s hung", i, hostile[i])
		}
		if !utf8.ValidString(r.Text) || err == nil && r.Text == "" {
			t.Errorf("%d gave %q", i, r.Text)
		}
		t.Logf("%d %.100s: %.60q, %v", i, hostile[i], r.Text, err)
	}
	if st := s.Status()[0]; st.State != Ready {
		t.Errorf("%+v\n%s", st, said.text())
	}
}
