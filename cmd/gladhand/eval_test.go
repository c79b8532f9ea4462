package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gladhand/eval"
)

// `gladhand eval` with the real binary and a real daemon: with the offline model,
// and with a model that a tape plays. See testdata/eval.
func TestEval(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the tasks need go")
	}
	deck := newTapes(t)
	server := httptest.NewServer(deck)
	t.Cleanup(server.Close)
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "eval"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("GLADHAND_DATA_DIR", filepath.Join(env.WorkDir, "d"))
			env.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
			for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "GLADHAND_SOCKET", "GLADHAND_CONFIG", "GLADHAND_LOG", "HTTP_PROXY", "http_proxy"} {
				env.Setenv(name, "")
			}
			env.Setenv("NO_COLOR", "1")
			env.Setenv("GLADHAND_BIN", filepath.SplitList(env.Getenv("PATH"))[0]) // where gladhand is, and go is not
			env.Defer(func() { stopDaemon(t, filepath.Join(env.WorkDir, "d")) })
			settings := fmt.Sprintf(`{"providers": {"recorded": {"kind": "openai-chat", "url": %q, "key": "x",
				"models": [{"id": "tape", "window": 100000, "price": {"input": 3, "output": 15}},
					{"id": "stuck", "window": 100000}]}}}`, server.URL+"/v1")
			if err := os.WriteFile(filepath.Join(env.WorkDir, "settings.jsonc"), []byte(settings), 0o600); err != nil {
				return err
			}
			return os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"linejson": cmdLineJSON, "exit": cmdExit, "waitfor": cmdWaitFor,
		},
	})
	t.Cleanup(deck.played) // the scripts are parallel, and end before this
}

// tapes is an OpenAI-compatible server that plays recorded replies: the tape is
// found by the task's prompt, the place in it by how many replies there were.
type tapes struct {
	t      *testing.T
	byText map[string]tape

	mu    sync.Mutex
	count map[string]int // replies played
}

type tape struct {
	name    string
	Replies []struct {
		// Expect is what the last message must have in it.
		Expect string            `json:"expect"`
		Chunks []json.RawMessage `json:"chunks"`
	} `json:"replies"`
}

func newTapes(t *testing.T) *tapes {
	s := &tapes{t: t, byText: map[string]tape{}, count: map[string]int{}}
	tasks, err := eval.Tasks()
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join("testdata", "eval", task.Name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		tp := tape{name: task.Name}
		if err := json.Unmarshal(text, &tp); err != nil {
			t.Fatalf("%s: %v", task.Name, err)
		}
		s.byText[task.Prompt] = tp
	}
	return s
}

// played checks that each tape was played to its end, if any was.
func (s *tapes) played() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, tp := range s.byText {
		if len(s.count) > 0 && s.count[tp.name] < len(tp.Replies) {
			s.t.Errorf("%s: %d of %d replies were played", tp.name, s.count[tp.name], len(tp.Replies))
		}
	}
}

// errStuck is the reply of a model that never says anything.
var errStuck = errors.New("stuck")

// chatRequest is what of a request matters here.
type chatRequest struct {
	Model    string `json:"model"`
	Stream   bool   `json:"stream"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func (s *tapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models") {
		fmt.Fprint(w, `{"object":"list","data":[{"id":"tape","object":"model"},{"id":"stuck","object":"model"}]}`)
		return
	}
	chunks, err := s.reply(r)
	if errors.Is(err, errStuck) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	if err != nil {
		s.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": err.Error(), "type": "invalid_request_error"}})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, c := range chunks {
		fmt.Fprintf(w, "data: %s\n\n", c)
		w.(http.Flusher).Flush()
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (s *tapes) reply(r *http.Request) ([]json.RawMessage, error) {
	var req chatRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return nil, err
	}
	if req.Model == "stuck" {
		return nil, errStuck
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/chat/completions" || req.Model != "tape" || !req.Stream || r.Header.Get("Authorization") != "Bearer x" {
		return nil, fmt.Errorf("an unexpected request for %q", req.Model)
	}
	replies := 0
	var prompt string
	for _, m := range req.Messages {
		switch {
		case m.Role == "assistant":
			replies++
		case m.Role == "user" && prompt == "":
			prompt = contentText(m.Content)
		}
	}
	tp, ok := s.byText[prompt]
	if !ok || replies >= len(tp.Replies) {
		return nil, fmt.Errorf("there is no tape for %q behind %d replies", prompt, replies)
	}
	next := tp.Replies[replies]
	if last := contentText(req.Messages[len(req.Messages)-1].Content); !strings.Contains(last, next.Expect) {
		return nil, fmt.Errorf("%s, reply %d: %q is not in %q", tp.name, replies, next.Expect, last)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[tp.name]++
	return next.Chunks, nil
}

// contentText is a message's text: a string, or parts.
func contentText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// An unknown task is a mistake that names those there are; what was skipped has not
// failed.
func TestEvalTasks(t *testing.T) {
	e := &evaluation{only: []string{"merge", "config"}}
	tasks, err := e.tasks()
	if err != nil || len(tasks) != 2 {
		t.Fatal(tasks, err)
	}
	e.only = []string{"nonsense"}
	var own *exitError
	if _, err := e.tasks(); !errors.As(err, &own) || own.code != exitUsage || !strings.Contains(err.Error(), "fix-test") {
		t.Error(err)
	}
	s := e.summary([]eval.Result{{Outcome: eval.Passed, Steps: 2, Tokens: &eval.Tokens{Total: 5}}, {Outcome: eval.Skipped}, {Outcome: eval.Failed, Steps: 1}}, 3, 0)
	if got := []int{s.Passed, s.Failed, s.Skipped, s.Steps, s.Tokens}; !slices.Equal(got, []int{1, 1, 1, 3, 5}) {
		t.Error(got)
	}
}
