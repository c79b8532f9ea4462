package model

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// R196: a tool call in a reply's text is found; an answer about tool calls is not
// taken for one.
func TestWritesCall(t *testing.T) {
	for text, want := range map[string]bool{
		`{"name":"read_file","arguments":{"path":"x"}}</tool_call>`:                           true,
		`I look. {"name": "read", "arguments": {"path": "x"}}` + "\n</tool_call>\n":           true,
		"<tool_call>\n{\"name\":\"x\",\"arguments\":{}}\n</tool_call>":                        true,
		"<tool_call><function=read_file><parameter=path>x</parameter></function></tool_call>": true,
		"ok\n<function=read_file>{\"path\":\"x\"}</function>":                                 true,
		"<tool_call>{\"name\":\"read_file\",\"arguments\":{\"path\":\"x\"}}":                  true,
		`[TOOL_CALLS][{"name":"read_file","arguments":{"path":"x"}}]`:                         true,
		`{"name":"read_file","arguments":{"path":"x"}}`:                                       true,
		`{"name":"read_file","parameters":{}}`:                                                true,
		`{"type":"function","function":{"name":"read_file","arguments":"{}"}}`:                true,
		"```json\n{\"name\":\"list_dir\",\"arguments\":{}}\n```":                              true,
		"<function_calls><invoke name=\"list_dir\"></invoke></function_calls>":                true,
		"<|tool_calls_section_begin|><|tool_call_begin|>x<|tool_calls_section_end|>":          true,

		"":                                       false,
		"Hello.":                                 false,
		`{"name":"gladhand","version":1}`:        false,
		`{"name":"unknown_tool","arguments":{}}`: false,
		`{"name":"read_file"}`:                   false,
		"Qwen ends its calls with `</tool_call>`, which the template removes.":                                             false,
		"A call looks like this:\n```\n<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>\n```":              false,
		"A call looks like this:\n```\n<tool_call>{\"name\":\"read_file\",\"arguments\":{}}</tool_call>\n```\nand is run.": false,
		"The closing tag is </tool_call>":                             false,
		"Use <tool_call> to begin":                                    false,
		"See package.json: {\"name\":\"read_file\",\"arguments\":{}}": false,
	} {
		if got := writesCall(text, someTools); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if writesCall(`{"name":"read_file","arguments":{}}</tool_call>`, nil) {
		t.Error("a call without tools")
	}
}

func FuzzWritesCall(f *testing.F) {
	f.Add(`<tool_call>{"name":"read_file","arguments":{"a":{"b":{}}}}</tool_call>`)
	f.Fuzz(func(_ *testing.T, text string) { writesCall(text, someTools) })
}

// What a server does not take is left out from then on, and the request made
// again at once.
func TestManners(t *testing.T) {
	for _, c := range []struct {
		api, refusal, field string
		official            bool
	}{
		{"chat", "Unknown field: stream_options", "stream_options", false},
		{"chat", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens", false},
		{"chat", "Unrecognized request argument supplied: reasoning_effort", "reasoning_effort", false},
		{"responses", "Your organization must be verified to generate reasoning summaries.", "summary", false},
		{"responses", "Encrypted content is not supported with this model.", "include", false},
		{"responses", "Unknown parameter: 'prompt_cache_key'", "prompt_cache_key", false},
	} {
		w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {})
		w.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			w.mu.Lock()
			w.bodies = append(w.bodies, string(b))
			w.mu.Unlock()
			if strings.Contains(string(b), `"`+c.field+`"`) {
				rw.WriteHeader(400)
				raw, _ := json.Marshal(map[string]any{"error": map[string]string{"message": c.refusal}})
				_, _ = rw.Write(raw)
				return
			}
			stream(rw, transcript(t, c.api, "hello"))
		})
		e := w.endpoint()
		e.Limits.Efforts = []string{"high"}
		m := makers[c.api](e)
		r := hello()
		r.Effort, r.Session = "high", "s"
		for range 2 {
			if _, err := trace(t.Context(), m, r); err != nil {
				t.Errorf("%q: %v", c.refusal, err)
			}
		}
		if n := w.times(); n != 3 {
			t.Errorf("%q: %d requests", c.refusal, n)
		}
	}
	// A server that is never content is not asked for ever.
	w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(400)
		_, _ = io.WriteString(rw, `{"error":{"message":"stream_options max_completion_tokens reasoning_effort after role 'tool' no"}}`)
	})
	var f *Error
	if _, err := trace(t.Context(), NewOpenAIChat(w.endpoint()), hello()); !errors.As(err, &f) || f.Kind != KindRequest || w.times() > 8 {
		t.Errorf("%v after %d requests", err, w.times())
	}
}

// A word of the assistant stands between results and the user where a server's
// template wants it.
func TestBridge(t *testing.T) {
	w := newWire(t, nil)
	w.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var q struct{ Messages []struct{ Role string } }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		for i, m := range q.Messages {
			if i > 0 && m.Role == "user" && q.Messages[i-1].Role == "tool" {
				rw.WriteHeader(400)
				_, _ = io.WriteString(rw, `{"object":"error","message":"Unexpected role 'user' after role 'tool'","type":"invalid_request_error"}`)
				return
			}
		}
		stream(rw, transcript(t, "chat", "hello"))
	})
	r := hello()
	r.Messages = append(r.Messages,
		Message{Role: Assistant, Parts: []Part{{Call: &Call{ID: "1", Name: "f", Args: json.RawMessage(`{}`)}}}},
		Message{Role: ToolRole, Parts: []Part{{Result: &Result{ID: "1", Name: "f"}}}},
		Message{Role: User, Parts: []Part{{Text: "and now?"}}})
	if _, err := trace(t.Context(), NewOpenAIChat(w.endpoint()), r); err != nil {
		t.Error(err)
	}
}

// api.openai.com is sent what only it takes.
func TestOfficialOpenAI(t *testing.T) {
	r := hello()
	r.Session = "s"
	o := &openaiChat{e: Endpoint{Model: "gpt-x", Limits: Limits{Output: 100}}}
	q := o.request(r)
	if q.MaxCompletionTokens != 100 || q.MaxTokens != 0 || q.PromptCacheKey != "s" {
		t.Errorf("%+v", q)
	}
	o.e.BaseURL = "https://api.openai.com.evil.example/v1"
	if q := o.request(r); q.MaxTokens != 100 || q.PromptCacheKey != "" {
		t.Errorf("%+v", q)
	}
}
