package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/*/*.want and the golden requests anew")

func transcript(t *testing.T, provider, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", provider, name+".sse"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// golden compares got with a file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", path, diff)
	}
}

var someTools = []Tool{
	{Name: "read_file", Description: "Reads a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
	{Name: "list_dir", Description: "Lists a directory."},
	{Name: "write_file", Description: "Writes <a> file."},
}

func withTools() Request {
	r := hello()
	r.Tools = someTools
	return r
}

// ending is how a reply ended, for people who read a golden file.
func ending(err error) string {
	var f *Error
	if !errors.As(err, &f) {
		return ""
	}
	return fmt.Sprintf("error %s (%d): %v\n", f.Kind, f.Status, f)
}

// Replies as the providers' documentation has them, over HTTP: whole, and a byte
// at a time.
func TestTranscripts(t *testing.T) {
	for name, open := range makers {
		files, err := filepath.Glob("testdata/" + name + "/*.sse")
		if err != nil || len(files) < 10 {
			t.Fatal(files, err)
		}
		whole, _ := filepath.Glob("testdata/" + name + "/*.json")
		for _, file := range append(files, whole...) {
			if strings.Contains(file, "request") {
				continue
			}
			t.Run(file, func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				var slow atomic.Bool
				w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
					switch {
					case strings.HasSuffix(file, ".json"):
						rw.Header().Set("Content-Type", "application/json; charset=utf-8")
						_, _ = rw.Write(text)
					case slow.Load():
						for i := range text {
							stream(rw, string(text[i:i+1]))
						}
					default:
						stream(rw, string(text))
					}
				})
				e := w.endpoint()
				e.Limits.Price = Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}
				got, err := trace(t.Context(), open(e), withTools())
				got += ending(err)
				golden(t, strings.TrimSuffix(strings.TrimSuffix(file, ".sse"), ".json")+".want", got)
				slow.Store(true)
				again, err := trace(t.Context(), open(e), withTools())
				if again += ending(err); again != got {
					t.Errorf("a byte at a time:\n%s", again)
				}
			})
		}
	}
}

// R124: a reply in Japanese, split at every byte. TestSSE splits everything else.
func TestSplitEverywhere(t *testing.T) {
	for name, open := range makers {
		text := transcript(t, name, "cjk")
		var at atomic.Int64
		w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
			stream(rw, text[:at.Load()])
			stream(rw, text[at.Load():])
		})
		m := open(w.endpoint())
		begin := strings.Index(text, "日")
		for cut := begin - 10; cut < begin+200; cut++ {
			at.Store(int64(cut))
			if got, err := trace(t.Context(), m, hello()); err != nil || !strings.HasPrefix(got, `text "日本語の返事、😀。"`) {
				t.Fatalf("%s at %d: %s, %v", name, cut, got, err)
			}
		}
	}
}

// A reply that ends or breaks anywhere is an error unless it was whole: what came
// of the text stands, and no call comes of it that was not finished.
func TestCutEverywhere(t *testing.T) {
	for name, open := range makers {
		text := transcript(t, name, "tools")
		var at atomic.Int64
		w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
			cut := int(at.Load())
			stream(rw, text[:cut])
			if cut%2 == 0 && cut < len(text) {
				panic(http.ErrAbortHandler) // resets the connection
			}
		})
		m := open(w.endpoint())
		at.Store(int64(len(text)))
		whole, err := trace(t.Context(), m, withTools())
		if err != nil || strings.Count(whole, "call ") != 2 {
			t.Fatal(whole, err)
		}
		ok := 0
		for cut := 0; cut < len(text); cut += 5 {
			at.Store(int64(cut))
			got, err := trace(t.Context(), m, withTools())
			var f *Error
			switch {
			case err == nil:
				ok++
				if strings.Count(got, "call ") != 2 || !strings.Contains(got, "stop end") {
					t.Fatalf("%s cut at %d of %d is taken for whole:\n%s", name, cut, len(text), got)
				}
			case !errors.As(err, &f) || !f.Kind.Retryable():
				t.Fatalf("%s cut at %d: %v", name, cut, err)
			case strings.Contains(got, "call "):
				t.Fatalf("%s cut at %d: a call in spite of %v:\n%s", name, cut, err, got)
			}
		}
		if ok > 60 { // behind the reason why it stops
			t.Errorf("%s: %d ends are taken for the end", name, ok)
		}
	}
}

// The requests, as they go out.
func TestRequests(t *testing.T) {
	state := map[string]string{
		"anthropic": `{"type":"thinking","thinking":"a <b>","signature":"c2ln"}`,
		"chat":      `{"field":"reasoning_content","details":[{"type":"reasoning.encrypted","data":"x"}]}`,
		"responses": `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gA<A"}`,
	}
	png := Image{MIME: "image/png", Data: []byte("\x89PNG")}
	for name, open := range makers {
		w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) { stream(rw, transcript(t, name, "hello")) })
		e := w.endpoint()
		e.Model = "claude-opus-5-5"
		e.Limits.Efforts = []string{"low", "high"}
		r := Request{System: "Be brief.", Tools: someTools, Effort: "high", Session: "s-1", Messages: []Message{
			{Role: User, Turn: 1, Parts: []Part{{Text: "look at <this>"}, {Image: &png}}},
			{Role: Assistant, Turn: 1, Parts: []Part{
				{Thought: &Thought{Text: "a <b>", State: json.RawMessage(state[name])}},
				{Text: "I look."},
				{Call: &Call{ID: "call:1", Name: "read_file", Args: json.RawMessage(`{"path":"x"}`)}},
				{Call: &Call{ID: "call-2", Name: "mcp.server/list things", Args: json.RawMessage(`{}`)}},
			}},
			{Role: ToolRole, Turn: 1, Parts: []Part{
				{Result: &Result{ID: "call:1", Name: "read_file", Text: "the text", Images: []Image{png}}},
				{Result: &Result{ID: "call-2", Name: "mcp.server/list things", Failed: true}},
			}},
			{Role: User, Turn: 1, Parts: []Part{{Text: "steered"}}},
			{Role: User, Turn: 1, Parts: []Part{{Text: "twice"}}},
		}}
		if err := Check(r.Messages); err != nil {
			t.Fatal(err)
		}
		for i, variant := range []string{"request", "request-blind"} {
			if i == 1 {
				e.Limits = Limits{}
				e.Model = "claude-3-7-sonnet-20250219"
				r.Tools = nil
			}
			if _, err := trace(t.Context(), open(e), r); err != nil {
				t.Fatal(err)
			}
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, []byte(w.asked()), "", "  "); err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/"+name+"/"+variant+".golden", pretty.String()+"\n")
		}
		h := w.heads[0]
		switch name {
		case "anthropic":
			if h.Get("X-Api-Key") != canary || h.Get("Anthropic-Version") != anthropicVersion || w.paths[0] != "/v1/messages" {
				t.Errorf("%s %v", w.paths[0], h)
			}
		default:
			if h.Get("Authorization") != "Bearer "+canary {
				t.Errorf("%v", h)
			}
		}
	}
}
