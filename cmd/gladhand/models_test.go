package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/zalando/go-keyring"

	"gladhand/config"
)

// docCommands are the commands in a document's shell blocks that can be run here:
// those that need neither a keyring nor a model.
func docCommands(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			if strings.HasPrefix(line, "gladhand config ") || strings.HasPrefix(line, "export ") || strings.TrimSpace(line) == "gladhand models" {
				out.WriteString(line)
			}
		}
	}
	if strings.Count(out.String(), "\n") < 5 {
		t.Fatalf("%s has no commands", path)
	}
	return out.String()
}

// The scripts of testdata/models run against servers of models.
func TestModelScripts(t *testing.T) {
	commands := docCommands(t, "../../docs/models.md")
	testscript.Run(t, testscript.Params{
		Dir: "testdata/models",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("GLADHAND_DATA_DIR", filepath.Join(env.WorkDir, "d"))
			env.Setenv("NO_COLOR", "1")
			gone := httptest.NewServer(http.NotFoundHandler())
			env.Setenv("OLLAMA_HOST", gone.URL) // nobody, also where an Ollama runs
			gone.Close()
			env.Defer(func() { stopDaemon(t, filepath.Join(env.WorkDir, "d")) })
			for _, dir := range []string{"home", "d"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o700); err != nil {
					return err
				}
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "models.sh"), []byte(commands), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"linejson": cmdLineJSON,
			"exit":     cmdExit,
			"server":   cmdServer,
		},
	})
}

// cmdServer starts a server of models and sets a variable to its address: server
// NAME compatible|ollama.
func cmdServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: server NAME compatible|ollama")
	}
	mux := http.NewServeMux()
	say := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	switch args[1] {
	case "compatible":
		mux.Handle("GET /v1/models", say(`{"data":[{"id":"tiny","context_length":4096},{"id":"other"}]}`))
		mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer right-key" {
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided: `+r.Header.Get("Authorization")+`","code":"invalid_api_key"}}`)
				return
			}
			_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hello from tiny.\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		})
	case "ollama":
		mux.Handle("GET /api/tags", say(`{"models":[{"name":"llava:7b","digest":"a"},{"name":"qwen3:latest","digest":"b"}]}`))
		mux.HandleFunc("POST /api/show", func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			can := `"completion","vision"`
			if bytes.Contains(raw, []byte("qwen3")) {
				can = `"completion","tools"`
			}
			_, _ = io.WriteString(w, `{"capabilities":[`+can+`],"model_info":{"x.context_length":40960}}`)
		})
		mux.Handle("POST /api/chat", say(`{"message":{"content":"Hello from Ollama."},"done":false}`+"\n"+`{"done":true,"done_reason":"stop","prompt_eval_count":1,"eval_count":1}`+"\n"))
	default:
		ts.Fatalf("no server %q", args[1])
	}
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}

// inProcess runs a command as a person would, with input, and returns what it
// printed.
func inProcess(t *testing.T, input string, args ...string) (code int, out string) {
	t.Helper()
	dir := t.TempDir()
	in, err := os.Create(filepath.Join(dir, "in"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := in.WriteString(input); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	w, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	code = run(args, in, w, w)
	text, err := os.ReadFile(w.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, string(text)
}

func TestKeyIsKept(t *testing.T) {
	keyring.MockInit()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "mock") // there is a keyring
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GLADHAND_MODEL", "GLADHAND_CONFIG", "GLADHAND_SOCKET"} {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	t.Setenv("GLADHAND_DATA_DIR", dir)
	t.Setenv("OLLAMA_HOST", "http://127.0.0.1:1")
	const canary = "sk-canary-42"
	check := func(code, want int, out, says string) {
		t.Helper()
		if code != want || !strings.Contains(out, says) || strings.Contains(out, canary) {
			t.Errorf("%d %q, want %d …%s…", code, out, want, says)
		}
	}
	code, out := inProcess(t, canary+"\n", "models", "key", "anthropic")
	check(code, 0, out, "in the keyring")
	if key, err := keyring.Get("gladhand", "anthropic"); key != canary {
		t.Error(key, err)
	}
	f, err := config.Open(filepath.Join(dir, "config.jsonc"))
	if err != nil || f.Settings().Providers["anthropic"].Key.Reveal() != "keyring:" {
		t.Errorf("%v %+v", err, f.Settings().Providers)
	}
	code, out = inProcess(t, "", "models")
	check(code, 0, out, "anthropic  ready, key from the keyring")
	check(code, 0, out, "* anthropic/")
	d := &examination{a: &app{}}
	d.keyring(t.Context(), f.Settings())
	if len(d.found) != 1 || d.found[0].State != "ok" {
		t.Error(d.found)
	}

	for input, says := range map[string]string{"": "no key was given", "two words": "no key", strings.Repeat("x", 3000): "no key"} {
		code, out = inProcess(t, input, "models", "key", "anthropic")
		check(code, 2, out, says)
	}
	code, out = inProcess(t, canary, "models", "key", "antropic")
	check(code, 2, out, "did you mean anthropic?")
	code, out = inProcess(t, canary, "models", "key", "offline")
	check(code, 2, out, "no provider")

	code, out = inProcess(t, "", "models", "key", "anthropic", "--delete", "--json")
	check(code, 0, out, `"stored":false`)
	if !json.Valid([]byte(out)) {
		t.Error(out)
	}
	code, out = inProcess(t, "", "models", "key", "anthropic", "--delete")
	check(code, 1, out, "has no key")
	code, out = inProcess(t, "", "models")
	check(code, 0, out, "anthropic  not ready: no key")

	keyring.MockInitWithError(io.ErrUnexpectedEOF)
	code, out = inProcess(t, canary, "models", "key", "anthropic")
	check(code, 6, out, "set ANTHROPIC_API_KEY")
	if text, _ := os.ReadFile(filepath.Join(dir, "config.jsonc")); strings.Contains(string(text), canary) || strings.Contains(string(text), "keyring:") {
		t.Errorf("%s", text)
	}
}

// What the document shows of a settings file is one.
func TestModelsDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```jsonc\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	for _, b := range blocks {
		if err := config.Validate([]byte(b[1])); err != nil {
			t.Errorf("%v in:\n%s", err, b[1])
		}
	}
	if len(blocks) < 3 {
		t.Error("where are the examples?")
	}
}
