package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// geminiServer answers streamGenerateContent, and keeps what it was asked.
type geminiServer struct {
	*httptest.Server
	path, query, key string
	body             map[string]any
	raw              []byte
}

func newGeminiServer(t *testing.T, answer func(http.ResponseWriter, *http.Request)) (*geminiServer, Model) {
	t.Helper()
	s := &geminiServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.path, s.query, s.key = r.URL.Path, r.URL.RawQuery, r.Header.Get("x-goog-api-key")
		s.raw, _ = io.ReadAll(r.Body)
		s.body = nil
		if err := json.Unmarshal(s.raw, &s.body); err != nil {
			t.Errorf("the request is no JSON: %v", err)
		}
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s, NewGemini(Endpoint{
		Provider: "gemini", Model: "gemini-3.6-flash", BaseURL: s.URL, Key: func() string { return "key-canary-123" }, KeyEnv: "GEMINI_API_KEY",
		Limits: Limits{Window: 1 << 20, Output: 4096, Images: true, Efforts: []string{"low", "high"}, Price: Price{Input: 2, Output: 10, CacheRead: 0.5, CacheWrite: 2}},
	})
}

// bytewise sends text a byte at a time.
func bytewise(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range len(text) {
		_, _ = io.WriteString(w, text[i:i+1])
		w.(http.Flusher).Flush()
	}
}

func sseOf(values ...string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString("data: " + v + "\r\n\r\n")
	}
	return b.String()
}

// heard is a reply put together.
type heard struct {
	Text, Thought string
	States        []string
	Calls         []Call
	Notices       []string
	Usage         *Usage
	Stop          Stop
	Err           error
}

func hear(ctx context.Context, m Model, r Request) heard {
	var h heard
	for c, err := range m.Generate(ctx, r) {
		if err != nil {
			h.Err = err
			break
		}
		h.Text += c.Text
		h.Thought += c.Thought
		if c.State != nil {
			h.States = append(h.States, string(c.State))
		}
		if c.Call != nil {
			h.Calls = append(h.Calls, *c.Call)
		}
		if c.Notice != "" {
			h.Notices = append(h.Notices, c.Notice)
		}
		if c.Usage != nil {
			h.Usage = c.Usage
		}
		if c.Stop != "" {
			h.Stop = c.Stop
		}
	}
	return h
}

func say(text string) Request {
	return Request{Messages: []Message{{Role: User, Turn: 1, Parts: []Part{{Text: text}}}}}
}

// A reply with everything, as the API streams it; the Japanese is split at every
// byte. R124.
func TestGeminiStream(t *testing.T) {
	s, m := newGeminiServer(t, func(w http.ResponseWriter, _ *http.Request) {
		bytewise(w, sseOf(
			`{"candidates":[{"content":{"parts":[{"text":"**Looking** at ","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":1000,"totalTokenCount":1040,"thoughtsTokenCount":40},"modelVersion":"gemini-3.6-flash","responseId":"x"}`,
			`{"candidates":[{"content":{"parts":[{"text":"it.","thought":true}],"role":"model"},"index":0}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"日本語の"}],"role":"model"},"index":0}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"返事。","thoughtSignature":"c2lnMQ=="}],"role":"model"},"index":0}]}`,
			`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read_file","args":{"path":"go.mod"}},"thoughtSignature":"c2lnMg=="},{"functionCall":{"id":"abc","name":"list_dir"}}],"role":"model"},"index":0}]}`,
			`{"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":600,"candidatesTokenCount":60,"thoughtsTokenCount":40,"toolUsePromptTokenCount":0,"totalTokenCount":1100}}`,
		))
	})
	h := hear(t.Context(), m, say("hi"))
	want := heard{
		Text: "日本語の返事。", Thought: "**Looking** at it.", States: []string{`{"thoughtSignature":"c2lnMQ=="}`},
		Calls: []Call{
			{Name: "read_file", Args: json.RawMessage(`{"path":"go.mod"}`), State: json.RawMessage(`{"thoughtSignature":"c2lnMg=="}`)},
			{Name: "list_dir", Args: json.RawMessage(`{}`), State: json.RawMessage(`{"callId":"abc"}`)},
		},
		Usage: &Usage{Input: 1000, Output: 100, CacheRead: 600, Cost: (400*2 + 600*0.5 + 100*10) / 1e6, Window: 1 << 20},
		Stop:  StopEnd,
	}
	if d := cmp.Diff(want, h); d != "" {
		t.Error(d)
	}
	if s.path != "/v1beta/models/gemini-3.6-flash:streamGenerateContent" || s.query != "alt=sse" || s.key != "key-canary-123" {
		t.Error(s.path, s.query, s.key)
	}
	if m.Name() != "gemini/gemini-3.6-flash" || m.Limits().Output != 4096 {
		t.Error(m.Name(), m.Limits())
	}
}

// What came with thoughts and calls goes back where it came from, and results
// stand right behind their calls in one content.
func TestGeminiRequest(t *testing.T) {
	s, m := newGeminiServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, sseOf(`{"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`))
	})
	r := Request{
		System: "Be brief.", Effort: "high", Session: "s",
		Messages: []Message{
			{Role: Assistant, Turn: 1, Parts: []Part{{Text: "earlier"}}},
			{Role: User, Turn: 2, Parts: []Part{{Text: "look"}, {Image: &Image{"image/png", []byte("png")}}, {Image: &Image{"image/gif", []byte("gif")}}}},
			{Role: Assistant, Turn: 2, Parts: []Part{
				{Thought: &Thought{Text: "hm", State: json.RawMessage(`{"thoughtSignature":"c2lnMQ=="}`)}},
				{Thought: &Thought{Text: "unsigned"}},
				{Text: "I look."},
				{Call: &Call{ID: "1", Name: "a", Args: json.RawMessage(`{"x":1}`), State: json.RawMessage(`{"thoughtSignature":"c2lnMg==","callId":"theirs"}`)}},
				{Call: &Call{ID: "2", Name: "b", Args: json.RawMessage(`{}`)}},
			}},
			{Role: ToolRole, Turn: 2, Parts: []Part{
				{Result: &Result{ID: "1", Name: "a", Text: "fine", Images: []Image{{"image/jpeg", []byte("jpg")}}}},
				{Result: &Result{ID: "2", Name: "b", Text: "broken", Failed: true}},
			}},
			{Role: User, Turn: 2, Parts: []Part{{Text: "also this"}}},
			{Role: Assistant, Turn: 2, Parts: []Part{{Call: &Call{ID: "3", Name: "a", Args: json.RawMessage(`{}`), State: json.RawMessage(`{"type":"thinking","signature":"of another provider"}`)}}}},
			{Role: ToolRole, Turn: 2, Parts: []Part{{Result: &Result{ID: "3", Name: "a"}}}},
		},
		Tools: []Tool{
			{"a", "does a", json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`)},
			{"b", "does b", json.RawMessage(`{"type":"object","properties":{}}`)},
		},
	}
	if err := Check(r.Messages); err != nil {
		t.Fatal(err)
	}
	if h := hear(t.Context(), m, r); h.Err != nil || h.Text != "ok" {
		t.Fatal(h)
	}
	want := `{"systemInstruction":{"parts":[{"text":"Be brief."}]},
"contents":[
 {"role":"user","parts":[{"text":"(The conversation begins here.)"}]},
 {"role":"model","parts":[{"text":"earlier"}]},
 {"role":"user","parts":[{"text":"look"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}},{"text":"[an image, image/gif, 1 KB: this model cannot see it]"}]},
 {"role":"model","parts":[{"text":"","thoughtSignature":"c2lnMQ=="},{"text":"I look."},
   {"thoughtSignature":"c2lnMg==","functionCall":{"id":"theirs","name":"a","args":{"x":1}}},{"functionCall":{"name":"b","args":{}}}]},
 {"role":"user","parts":[{"functionResponse":{"id":"theirs","name":"a","response":{"output":"fine"}}},{"functionResponse":{"name":"b","response":{"error":"broken"}}},
   {"text":"Image in the result of a:"},{"inlineData":{"mimeType":"image/jpeg","data":"anBn"}},{"text":"also this"}]},
 {"role":"model","parts":[{"thoughtSignature":"skip_thought_signature_validator","functionCall":{"name":"a","args":{}}}]},
 {"role":"user","parts":[{"functionResponse":{"name":"a","response":{"output":""}}}]}],
"tools":[{"functionDeclarations":[
 {"name":"a","description":"does a","parametersJsonSchema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}},
 {"name":"b","description":"does b"}]}],
"generationConfig":{"maxOutputTokens":4096,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}}`
	var w map[string]any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(w, s.body); d != "" {
		t.Error(d)
	}
}

func TestGeminiThinking(t *testing.T) {
	some := Limits{Efforts: []string{"low"}}
	for _, c := range []struct {
		name   string
		limits Limits
		effort string
		want   string
	}{
		{"gemini-3.6-flash", Limits{}, "", `{"includeThoughts":true}`},
		{"gemini-3.6-flash", some, "low", `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		{"gemini-3.6-flash", some, "nonsense", `{"includeThoughts":true}`},
		{"gemini-2.5-pro", Limits{}, "", `{"includeThoughts":true}`},
		{"gemini-2.5-pro", Limits{}, "low", `{"includeThoughts":true,"thinkingBudget":1024}`},
		{"gemini-2.5-flash", Limits{}, "none", `{"thinkingBudget":0}`},
		{"gemini-2.0-flash", Limits{}, "low", `null`},
		{"gemma", some, "low", `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
	} {
		raw, err := json.Marshal(geminiThinks(c.name, c.limits, c.effort))
		if err != nil || string(raw) != c.want {
			t.Errorf("%s %q: %s", c.name, c.effort, raw)
		}
	}
}

func TestGeminiEnds(t *testing.T) {
	for finish, want := range map[string]Stop{
		"STOP": StopEnd, "MAX_TOKENS": StopMaxTokens, "SAFETY": StopRefusal, "PROHIBITED_CONTENT": StopRefusal, "RECITATION": StopRefusal, "SOMETHING_NEW": StopRefusal,
	} {
		_, m := newGeminiServer(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, sseOf(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, `{"candidates":[{"finishReason":"`+finish+`"}]}`))
		})
		if h := hear(t.Context(), m, say("x")); h.Err != nil || h.Stop != want || h.Text != "a" {
			t.Errorf("%s: %+v", finish, h)
		}
	}
	_, m := newGeminiServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, sseOf(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":5}}`))
	})
	if h := hear(t.Context(), m, say("x")); h.Err != nil || h.Stop != StopRefusal || len(h.Notices) != 1 || !strings.Contains(h.Notices[0], "PROHIBITED_CONTENT") {
		t.Errorf("blocked: %+v", h)
	}
}

func TestGeminiFaults(t *testing.T) {
	status := func(code int, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json; charset=UTF-8")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	stream := func(text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	const a = `{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`
	for _, c := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		kind   Kind
		wait   string
	}{
		{"bad key", status(400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`), KindKey, "0s"},
		{"no right", status(403, `{"error":{"code":403,"message":"Permission denied","status":"PERMISSION_DENIED"}}`), KindKey, "0s"},
		{"no model", status(404, `{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}`), KindModel, "0s"},
		{"too long", status(400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`), KindOverflow, "0s"},
		{"a minute's limit", status(429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateContentInputTokensPerModelPerMinute-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`), KindRate, "34s"},
		{"a day's limit", status(429, `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"41s"}]}}`), KindQuota, "41s"},
		{"overloaded", status(503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`), KindOverload, "0s"},
		{"a list", status(500, `[{"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}]`), KindOverload, "0s"},
		{"bad request", status(400, `{"error":{"code":400,"message":"Unknown name \"x\"","status":"INVALID_ARGUMENT"}}`), KindRequest, "0s"},
		{"key echoed", status(400, `{"error":{"code":400,"message":"key-canary-123 is odd","status":"INVALID_ARGUMENT"}}`), KindRequest, "0s"},
		{"error in mid-stream", stream(sseOf(a, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`)), KindOverload, "0s"},
		{"no end", stream(sseOf(a)), KindCut, "0s"},
		{"nothing", stream(""), KindCut, "0s"},
		{"half an event", stream(sseOf(a) + `data: {"candidates":[{"con`), KindCut, "0s"},
		{"garbage", stream("data: <html>key-canary-123\n\n"), KindCut, "0s"},
		{"malformed call", stream(sseOf(`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(key-canary-123"}]}`)), KindCut, "0s"},
		{"reset", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, sseOf(a))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, KindCut, "0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, m := newGeminiServer(t, c.answer)
			h := hear(t.Context(), m, say("x"))
			var fault *Error
			if !errors.As(h.Err, &fault) || fault.Kind != c.kind || fault.RetryAfter.String() != c.wait || fault.Mend == "" {
				t.Errorf("%+v %#v", h, fault)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", h.Err, fault, fault.Err), "canary") {
				t.Error("the key is shown:", h.Err)
			}
		})
	}
}

// A server that does not stream answers with one value, or a list.
func TestGeminiWhole(t *testing.T) {
	one := `{"candidates":[{"content":{"parts":[{"text":"hello"}]},"finishReason":"STOP"}]}`
	for _, body := range []string{one, "[" + one + "]", `[{"candidates":[{"content":{"parts":[{"text":"hel"}]}}]},` + strings.Replace(one, "hello", "lo", 1) + "]"} {
		_, m := newGeminiServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
		})
		if h := hear(t.Context(), m, say("x")); h.Err != nil || h.Text != "hello" || h.Stop != StopEnd {
			t.Errorf("%s: %+v", body, h)
		}
	}
}

func TestGeminiWithoutKey(t *testing.T) {
	m := NewGemini(Endpoint{Provider: "gemini", Model: "g", BaseURL: "http://127.0.0.1:1", KeyEnv: "GEMINI_API_KEY"})
	var fault *Error
	if h := hear(t.Context(), m, say("x")); !errors.As(h.Err, &fault) || fault.Kind != KindKey || !strings.Contains(fault.Mend, "GEMINI_API_KEY") {
		t.Error(h.Err)
	}
}

func TestGeminiCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, m := newGeminiServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, sseOf(`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	var got error
	for c, err := range m.Generate(ctx, say("x")) {
		if c.Text == "a" {
			cancel()
		}
		got = err
	}
	if !errors.Is(got, context.Canceled) {
		t.Error(got)
	}
}
