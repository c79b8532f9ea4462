package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeOllama is a server over real HTTP that is as helpful as the real one: what
// does not fit into num_ctx it drops from the front, in silence, and a reply that
// comes to its limit ends in the middle of a tool call.
type fakeOllama struct {
	*httptest.Server
	t   *testing.T
	old bool // knows neither truncate nor capabilities

	mu     sync.Mutex
	models []fakeModel
	reply  func(w http.ResponseWriter, r *http.Request)
	chats  []ollamaRequest
	seen   []string // what was left of the prompt, for each chat
	shows  int
	auth   string
}

type fakeModel struct {
	name, family string
	can          []string
	window       int
	template     string
}

// fakeTokens is the fake's tokenizer: three and a half bytes of Latin text each,
// one character of anything else.
func fakeTokens(s string) int {
	latin, other := 0, 0
	for _, r := range s {
		if r < 0x80 {
			latin++
		} else {
			other++
		}
	}
	return latin*2/7 + other
}

func newFakeOllama(t *testing.T, models ...fakeModel) *fakeOllama {
	t.Helper()
	f := &fakeOllama{t: t, models: models}
	f.reply = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, ndjson(`{"message":{"role":"assistant","content":"ok"},"done":false}`, `{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":10,"eval_count":2}`))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/tags", f.tags)
	mux.HandleFunc("POST /api/show", f.show)
	mux.HandleFunc("POST /api/chat", f.chat)
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	return f
}

func ndjson(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

func (f *fakeOllama) find(name string) (fakeModel, bool) {
	i := slices.IndexFunc(f.models, func(m fakeModel) bool { return m.name == name })
	if i < 0 {
		return fakeModel{}, false
	}
	return f.models[i], true
}

func (f *fakeOllama) tags(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.auth = r.Header.Get("Authorization")
	var list []map[string]any
	for _, m := range f.models {
		list = append(list, map[string]any{"name": m.name, "model": m.name, "digest": "sha-" + m.name, "size": 1, "details": map[string]any{"family": m.family}})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"models": list})
}

func (f *fakeOllama) show(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shows++
	var in struct{ Model string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	m, ok := f.find(in.Model)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		_, _ = fmt.Fprintf(w, `{"error":"model '%s' not found"}`, in.Model)
		return
	}
	out := map[string]any{
		"template": m.template, "details": map[string]any{"family": m.family},
		"model_info": map[string]any{"general.architecture": m.family, m.family + ".context_length": m.window, m.family + ".embedding_length": 4096},
	}
	if !f.old {
		out["capabilities"] = m.can
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (f *fakeOllama) chat(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	raw, _ := io.ReadAll(r.Body)
	var in ollamaRequest
	var loose struct {
		Options  map[string]any `json:"options"`
		Truncate *bool          `json:"truncate"`
	}
	if json.Unmarshal(raw, &in) != nil || json.Unmarshal(raw, &loose) != nil {
		f.t.Errorf("the request makes no sense: %s", raw)
	}
	f.chats = append(f.chats, in)
	m, ok := f.find(in.Model)
	reply := f.reply
	refuse := func(status int, format string, args ...any) {
		f.mu.Unlock()
		w.WriteHeader(status)
		body, _ := json.Marshal(map[string]string{"error": fmt.Sprintf(format, args...)})
		_, _ = w.Write(body)
	}
	switch {
	case !ok:
		refuse(404, "model '%s' not found", in.Model)
		return
	case len(in.Tools) > 0 && !slices.Contains(m.can, "tools"):
		refuse(400, "registry.ollama.ai/library/%s does not support tools", in.Model)
		return
	case in.Think != nil && !slices.Contains(m.can, "thinking"):
		refuse(400, "%q does not support thinking", in.Model)
		return
	}
	size := 4096 // the real one's default, when nobody says
	if n, ok := loose.Options["num_ctx"].(float64); ok {
		size = min(int(n), m.window)
	}
	prompt := f.fit(in, size)
	if n := f.count(in); prompt == nil || n > size {
		if !f.old && loose.Truncate != nil && !*loose.Truncate {
			refuse(400, `{"error":{"code":400,"message":"request (%d tokens) exceeds the available context size (%d tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":%d,"n_ctx":%d}}`, n, size, n, size)
			return
		}
		if prompt == nil {
			refuse(500, "no user query found in messages")
			return
		}
	}
	f.seen = append(f.seen, strings.Join(prompt, "\n"))
	f.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-ndjson")
	reply(w, r)
}

func (f *fakeOllama) count(in ollamaRequest) int {
	n := 0
	for _, m := range in.Messages {
		calls, _ := json.Marshal(m.Calls)
		n += 5 + fakeTokens(m.Content+m.Thinking) + fakeTokens(string(calls)) + 1500*len(m.Images)
	}
	if in.Tools != nil {
		tools, _ := json.Marshal(in.Tools)
		n += fakeTokens(string(tools))
	}
	return n
}

// fit drops the oldest messages but the system's until the rest fits; nil when no
// user's is left.
func (f *fakeOllama) fit(in ollamaRequest, size int) []string {
	for f.count(in) > size {
		i := slices.IndexFunc(in.Messages, func(m ollamaMessage) bool { return m.Role != "system" })
		if i < 0 {
			return nil
		}
		in.Messages = slices.Delete(slices.Clone(in.Messages), i, i+1)
	}
	var texts []string
	user := false
	for _, m := range in.Messages {
		user = user || m.Role == "user"
		texts = append(texts, m.Role+": "+m.Content)
	}
	if !user {
		return nil
	}
	return texts
}

func (f *fakeOllama) last() ollamaRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.chats[len(f.chats)-1]
}

func (f *fakeOllama) model(name string) Model {
	return NewOllama(Endpoint{Provider: "ollama", Model: name, BaseURL: f.URL})
}

var (
	qwen  = fakeModel{"qwen3:latest", "qwen3", []string{"completion", "tools", "thinking"}, 40960, ""}
	llava = fakeModel{"llava:7b", "llama", []string{"completion", "vision"}, 32768, ""}
	oss   = fakeModel{"gpt-oss:20b", "gptoss", []string{"completion", "tools", "thinking"}, 131072, ""}
	tools = []Tool{{"read_file", "reads", json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}, {"now", "tells the time", nil}}
)

func TestOllamaStream(t *testing.T) {
	f := newFakeOllama(t, qwen)
	f.reply = func(w http.ResponseWriter, _ *http.Request) {
		bytewise(w, ndjson( // R124
			`{"model":"qwen3","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","thinking":"Ich überlege"},"done":false}`,
			`{"message":{"role":"assistant","content":"","thinking":", 日本語"},"done":false}`,
			`{"message":{"role":"assistant","content":"Gleich: "},"done":false}`,
			`{"message":{"role":"assistant","content":"日本"},"done":false}`,
			`{"message":{"role":"assistant","content":"","tool_calls":[{"id":"call_x","function":{"index":0,"name":"read_file","arguments":{"path":"go.mod"}}},{"function":{"name":"now","arguments":null}}]},"done":false}`,
			`{"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"now","arguments":"{\"a\":1}"}}]},"done":false}`,
			`{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":1,"load_duration":1,"prompt_eval_count":1234,"prompt_eval_duration":1,"eval_count":56,"eval_duration":1}`,
		))
	}
	m := f.model("qwen3")
	r := say("hi")
	r.Tools = tools
	h := hear(t.Context(), m, r)
	want := heard{
		Text: "Gleich: 日本", Thought: "Ich überlege, 日本語",
		Calls: []Call{{Name: "read_file", Args: json.RawMessage(`{"path":"go.mod"}`)}, {Name: "now", Args: json.RawMessage(`{}`)}, {Name: "now", Args: json.RawMessage(`{"a":1}`)}},
		Usage: &Usage{Input: 1234, Output: 56, Window: 40960}, Stop: StopEnd,
	}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	if m.Name() != "ollama/qwen3:latest" || m.Limits().Window != 40960 {
		t.Error(m.Name(), m.Limits())
	}
	hear(t.Context(), m, r)
	if f.shows != 1 {
		t.Errorf("asked %d times what it can do", f.shows)
	}
}

func TestOllamaRequest(t *testing.T) {
	f := newFakeOllama(t, qwen, llava, oss)
	pic := Image{"image/png", []byte("png")}
	r := Request{
		System: "Be brief.", Tools: tools,
		Messages: []Message{
			{Role: User, Turn: 1, Parts: []Part{{Text: "look"}, {Text: "here"}, {Image: &pic}}},
			{Role: Assistant, Turn: 1, Parts: []Part{{Thought: &Thought{Text: "hm"}}, {Text: "I "}, {Text: "look."}, {Call: &Call{ID: "1", Name: "read_file", Args: json.RawMessage(`{"path":"a"}`)}}, {Call: &Call{ID: "2", Name: "now", Args: json.RawMessage(`{}`)}}}},
			{Role: ToolRole, Turn: 1, Parts: []Part{{Result: &Result{ID: "1", Name: "read_file", Text: "text", Images: []Image{pic}}}, {Result: &Result{ID: "2", Name: "now", Text: "late", Failed: true}}}},
		},
	}
	if err := Check(r.Messages); err != nil {
		t.Fatal(err)
	}
	sent := func(m Model) string {
		t.Helper()
		if h := hear(t.Context(), m, r); h.Err != nil {
			t.Fatal(h.Err)
		}
		raw, _ := json.Marshal(f.last())
		return string(raw)
	}
	const schemas = `"tools":[{"type":"function","function":{"name":"read_file","description":"reads","parameters":{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}}},` +
		`{"type":"function","function":{"name":"now","description":"tells the time","parameters":{"properties":{},"type":"object"}}}],`
	const middle = `{"role":"assistant","content":"I look.","thinking":"hm","tool_calls":[{"function":{"name":"read_file","arguments":{"path":"a"}}},{"function":{"name":"now","arguments":{}}}]},`
	const rest = `"stream":true,"truncate":false,"shift":false,"keep_alive":"30m","options":{"num_ctx":8192}}`
	const blind = `[an image, image/png, 1 KB: this model cannot see it]`
	for name, want := range map[string]string{
		"qwen3": `{"model":"qwen3:latest","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"look\n\nhere\n\n` + blind + `"},` + middle +
			`{"role":"tool","content":"text\n\n` + blind + `","tool_name":"read_file"},{"role":"tool","content":"Error: late","tool_name":"now"}],` + schemas + `"think":true,` + rest,
		"llava:7b": `{"model":"llava:7b","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"look\n\nhere","images":["cG5n"]},` + middle +
			`{"role":"tool","content":"text","tool_name":"read_file"},{"role":"tool","content":"Error: late","tool_name":"now"},` +
			`{"role":"user","content":"Image in the result of read_file.","images":["cG5n"]}],` + rest, // it has no tools
		"gpt-oss:20b": `{"model":"gpt-oss:20b","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"look\n\nhere\n\n` + blind + `"},` + middle +
			`{"role":"tool","content":"text\n\n` + blind + `","tool_name":"read_file"},{"role":"tool","content":"Error: late","tool_name":"now"}],` + schemas + rest,
	} {
		if d := cmp.Diff(want, sent(f.model(name))); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	for _, c := range []struct {
		name, effort string
		want         any
		efforts      []string
	}{
		{"qwen3", "none", false, []string{"none", "high"}},
		{"qwen3", "high", true, []string{"none", "high"}},
		{"gpt-oss:20b", "low", "low", []string{"low", "medium", "high"}},
		{"gpt-oss:20b", "none", nil, []string{"low", "medium", "high"}},
		{"llava:7b", "high", nil, nil},
	} {
		r.Effort = c.effort
		m := f.model(c.name)
		sent(m)
		if got := f.last().Think; got != c.want || !slices.Equal(m.Limits().Efforts, c.efforts) {
			t.Errorf("%s %s: %v %v", c.name, c.effort, got, m.Limits().Efforts)
		}
	}
}

// R193: a context is always asked for, and the whole request fits into it; what
// cannot fit is refused before it is sent. Old servers and new ones.
func TestOllamaContextIsNeverCut(t *testing.T) {
	for _, old := range []bool{false, true} {
		small := fakeModel{"small:latest", "llama", []string{"completion", "tools"}, 24000, "{{ .Tools }}"}
		f := newFakeOllama(t, small)
		f.old = old
		rng := rand.New(rand.NewPCG(1, 2))
		words := []string{"func main() { return } ", "the quick brown fox ", "日本語のテキスト", "\t\tif err != nil {\n", "0x7fff ", "für ärgerliche Übungen ", "🙂"}
		refused, large := 0, 0
		for i := range 40 {
			var r Request
			r.System, r.Tools = "You are a test.", tools
			total := rng.IntN(30000)
			first := fmt.Sprintf("FIRST-%d ", rng.IntN(1e6))
			text := first
			some := words
			if i < 3*len(words) { // of one kind, near where the next power of two is needed
				some, total = words[i%len(words):][:1], []int{4000, 12200, 19800}[i/len(words)]
			}
			for n := 0; n < total; {
				more := strings.Repeat(some[rng.IntN(len(some))], 1+rng.IntN(40))
				n += fakeTokens(more)
				text += more
			}
			r.Messages = []Message{{Role: User, Turn: 1, Parts: []Part{{Text: text}}}, {Role: Assistant, Turn: 1, Parts: []Part{{Text: "yes"}}}, {Role: User, Turn: 2, Parts: []Part{{Text: "go on"}}}}
			before := len(f.chats)
			h := hear(t.Context(), f.model("small"), r)
			if h.Err != nil {
				var fault *Error
				if !errors.As(h.Err, &fault) || fault.Kind != KindOverflow || len(f.chats) != before {
					t.Fatalf("%v, %d sent", h.Err, len(f.chats)-before)
				}
				refused++
				continue
			}
			size := f.last().Options.Context
			if !strings.Contains(f.seen[len(f.seen)-1], first) || size < f.count(f.last()) {
				t.Fatalf("the server lost the beginning of %d tokens with a context of %d", fakeTokens(text), size)
			}
			if size > small.window || size < ollamaLeast || size&(size-1) != 0 && size != small.window {
				t.Fatalf("a context of %d", size)
			}
			if size > ollamaLeast {
				large++
			}
		}
		if refused == 0 || refused > 28 || large == 0 {
			t.Errorf("%d refused, %d large", refused, large)
		}
	}
}

func TestOllamaRoom(t *testing.T) {
	for _, c := range []struct{ n, output, most, want int }{
		{1, 0, 131072, 8192},
		{4096, 0, 131072, 8192},
		{4097, 0, 131072, 16384},
		{100_000, 0, 131072, 131072},
		{126_976, 0, 131072, 131072},
		{126_977, 0, 131072, 0}, // no room for a reply
		{5000, 100, 131072, 8192},
		{8093, 100, 131072, 16384},
		{1000, 0, 2048, 2048},
		{1537, 0, 2048, 0},
		{20000, 0, 24000, 0},
		{19000, 0, 24000, 24000},
	} {
		if got := ollamaRoom(c.n, c.output, c.most); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A context does not shrink: the model would be loaded anew each time.
func TestOllamaContextStays(t *testing.T) {
	f := newFakeOllama(t, oss)
	m := f.model("gpt-oss:20b")
	for i, n := range []int{10, 60000, 10} {
		if h := hear(t.Context(), m, say(strings.Repeat("a", n))); h.Err != nil {
			t.Fatal(h.Err)
		}
		if got, want := f.last().Options.Context, []int{8192, 32768, 32768}[i]; got != want {
			t.Errorf("%d: %d", i, got)
		}
	}
	// The settings' window bounds it.
	bounded := NewOllama(Endpoint{Provider: "ollama", Model: "gpt-oss:20b", BaseURL: f.URL, Limits: Limits{Window: 16384}})
	if h := hear(t.Context(), bounded, say(strings.Repeat("a", 30000))); h.Err != nil || f.last().Options.Context != 16384 || bounded.Limits().Window != 16384 {
		t.Error(h.Err, f.last().Options)
	}
	var fault *Error
	if h := hear(t.Context(), bounded, say(strings.Repeat("a", 60000))); !errors.As(h.Err, &fault) || fault.Kind != KindOverflow {
		t.Error(h.Err)
	}
}

// A server that did not say what its models can do is believed when it refuses.
func TestOllamaLearns(t *testing.T) {
	f := newFakeOllama(t, fakeModel{"old:latest", "llama", []string{"completion"}, 8192, "{{ if .Tools }}"})
	f.old = true
	m := f.model("old")
	r := say("x")
	r.Tools = tools
	for range 2 {
		if h := hear(t.Context(), m, r); h.Err != nil || h.Text != "ok" {
			t.Fatal(h)
		}
	}
	var with []int
	for _, c := range f.chats {
		with = append(with, len(c.Tools))
	}
	if !slices.Equal(with, []int{2, 0, 0}) {
		t.Error(with)
	}
}

func TestOllamaFaults(t *testing.T) {
	lines := func(text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	refuse := func(status int, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	const a = `{"message":{"role":"assistant","content":"a"},"done":false}`
	for _, c := range []struct {
		name  string
		reply func(http.ResponseWriter, *http.Request)
		kind  Kind
		says  string
	}{
		{"error line", lines(ndjson(a, `{"error":"an error was encountered while running the model: CUDA error"}`)), KindOverload, "CUDA"},
		{"not found in mid-stream", lines(ndjson(`{"error":"model 'qwen3:latest' not found, try pulling it first"}`)), KindModel, "ollama pull qwen3:latest"},
		{"no end", lines(ndjson(a)), KindCut, ""},
		{"nothing", lines(""), KindCut, ""},
		{"half a line", lines(ndjson(a) + `{"message":{"con`), KindCut, ""},
		{"garbage", lines(ndjson(a, "<html>")), KindCut, ""},
		{"a call as text", lines(ndjson(`{"message":{"content":"<tool_call>\n{\"name\": \"read_file\", \"arguments\": {\"path\": \"x\"}}\n</tool_call>"},"done":false}`, `{"done":true,"done_reason":"stop"}`)), KindCut, "as text"}, // R196
		{"memory", refuse(500, `{"error":"model requires more system memory (20.1 GiB) than is available (7.5 GiB)"}`), KindRequest, "smaller model"},
		{"busy", refuse(503, `{"error":"server busy, please try again. maximum pending requests exceeded"}`), KindOverload, ""},
		{"too long", refuse(400, `{"error":"{\"error\":{\"code\":400,\"message\":\"request (8889 tokens) exceeds the available context size (4096 tokens), try increasing it\",\"type\":\"exceed_context_size_error\"}}"}`), KindOverflow, "/compact"},
		{"reset", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, ndjson(a))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, KindCut, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFakeOllama(t, qwen)
			f.reply = c.reply
			r := say("x")
			r.Tools = tools
			h := hear(t.Context(), f.model("qwen3"), r)
			var fault *Error
			if !errors.As(h.Err, &fault) || fault.Kind != c.kind || fault.Mend == "" || !strings.Contains(h.Err.Error(), c.says) {
				t.Errorf("%v %+v", h.Err, fault)
			}
			if len(h.Calls) > 0 {
				t.Error("something is to be run:", h.Calls)
			}
		})
	}
	f := newFakeOllama(t)
	var fault *Error
	if h := hear(t.Context(), f.model("nosuch"), say("x")); !errors.As(h.Err, &fault) || fault.Kind != KindModel || !strings.Contains(fault.Mend, "ollama pull nosuch:latest") {
		t.Error(h.Err)
	}
	f.Close()
	if h := hear(t.Context(), f.model("nosuch"), say("x")); !errors.As(h.Err, &fault) || fault.Kind != KindOffline || !strings.Contains(fault.Text, "is Ollama running?") {
		t.Error(h.Err)
	}
}

// A reply that comes to its limit in the middle of a tool call: the server gives
// the half as text, and says why it stopped.
func TestOllamaCutCall(t *testing.T) {
	f := newFakeOllama(t, qwen)
	f.reply = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, ndjson(`{"message":{"content":"{\"name\": \"read_file\", \"arguments\": {\"pa"},"done":false}`, `{"message":{"content":""},"done":true,"done_reason":"length","prompt_eval_count":9,"eval_count":4}`))
	}
	r := say("x")
	r.Tools = tools
	if h := hear(t.Context(), f.model("qwen3"), r); h.Err != nil || h.Stop != StopMaxTokens || h.Calls != nil {
		t.Errorf("%+v", h)
	}
}

func TestOllamaCancel(t *testing.T) {
	f := newFakeOllama(t, qwen)
	f.reply = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, ndjson(`{"message":{"content":"a"},"done":false}`))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got error
	for c, err := range f.model("qwen3").Generate(ctx, say("x")) {
		if c.Text == "a" {
			cancel()
		}
		got = err
	}
	if !errors.Is(got, context.Canceled) {
		t.Error(got)
	}
}

func TestOllamaHost(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "http://127.0.0.1:11434",
		"0.0.0.0":                    "http://127.0.0.1:11434",
		"0.0.0.0:1234":               "http://127.0.0.1:1234",
		":1234":                      "http://127.0.0.1:1234",
		"box":                        "http://box:11434",
		"box:80":                     "http://box",
		"http://box":                 "http://box",
		"https://box/ollama/":        "https://box/ollama",
		"https://box:8443":           "https://box:8443",
		"http://127.0.0.1:11434":     "http://127.0.0.1:11434",
		"[::1]:11434":                "http://[::1]:11434",
		"http://[::1]":               "http://[::1]",
		"[::]":                       "http://127.0.0.1:11434",
		"  'http://localhost:11434'": "http://localhost:11434",
	} {
		if got := ollamaHost(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}
