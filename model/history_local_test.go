package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Any history gives a request that Gemini takes.
func TestAnyHistoryGemini(t *testing.T) {
	s, _ := newGeminiServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, sseOf(`{"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`))
	})
	rapid.Check(t, func(rt *rapid.T) {
		e := Endpoint{
			Provider: "gemini", BaseURL: s.URL,
			Model: rapid.SampledFrom([]string{"gemini-3.6-flash", "gemini-2.5-pro", "gemma"}).Draw(rt, "model"),
			Limits: Limits{
				Images:  rapid.Bool().Draw(rt, "sees"),
				Efforts: rapid.SampledFrom([][]string{nil, {"low", "high"}}).Draw(rt, "efforts"),
				Output:  rapid.SampledFrom([]int{0, 1000}).Draw(rt, "output"),
			},
		}
		if h := hear(t.Context(), NewGemini(e), anyRequest(rt)); h.Err != nil {
			rt.Fatal(h.Err)
		}
		if err := judgeGemini(s.raw, e); err != nil {
			rt.Fatalf("%v\n%s", err, s.raw)
		}
	})
}

var geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)

// judgeGemini knows the rules of generateContent.
func judgeGemini(body []byte, e Endpoint) error {
	var q geminiRequest
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	if q.System != nil && (len(q.System.Parts) != 1 || blank(*q.System.Parts[0].Text)) {
		return errors.New("an empty system instruction")
	}
	role := "model"
	var open []geminiCall
	for i, c := range q.Contents {
		if c.Role == role || c.Role != "user" && c.Role != "model" || len(c.Parts) == 0 {
			return fmt.Errorf("content %d: %s after %s, with %d parts", i, c.Role, role, len(c.Parts))
		}
		role = c.Role
		var results []geminiResult
		calls := open
		open = nil
		for n, p := range c.Parts {
			data := 0
			if p.Text != nil {
				data++
				if blank(*p.Text) && p.Signature == "" {
					return fmt.Errorf("content %d: blank text", i)
				}
			}
			if p.Image != nil {
				data++
				if role != "user" || !e.Limits.Images || len(p.Image.Data) == 0 || p.Image.MIME == "" {
					return fmt.Errorf("content %d: an image", i)
				}
			}
			if p.Call != nil {
				data++
				if role != "model" || !geminiName.MatchString(p.Call.Name) || !isObject(p.Call.Args) {
					return fmt.Errorf("content %d: call %+v", i, p.Call)
				}
				open = append(open, *p.Call)
			}
			if p.Result != nil {
				data++
				if role != "user" || n != len(results) || len(p.Result.Response) != 1 {
					return fmt.Errorf("content %d: result %+v", i, p.Result)
				}
				results = append(results, *p.Result)
			}
			if data != 1 || p.Signature != "" && role != "model" || p.Thought {
				return fmt.Errorf("content %d, part %d: required oneof field 'data' must have one initialized field", i, n)
			}
		}
		if len(results) != len(calls) {
			return fmt.Errorf("content %d: the number of function response parts must equal that of the function call parts", i)
		}
		for n, r := range results {
			if r.Name != calls[n].Name || r.ID != calls[n].ID {
				return fmt.Errorf("content %d: %+v answers %+v", i, r, calls[n])
			}
		}
	}
	if role != "user" || len(open) > 0 {
		return errors.New("multiturn requests must end with a user role")
	}
	for _, t := range q.Tools {
		for _, f := range t.Functions {
			if !geminiName.MatchString(f.Name) {
				return fmt.Errorf("tool %q", f.Name)
			}
		}
	}
	return nil
}

// Any history gives a request that Ollama's templates can show.
func TestAnyHistoryOllama(t *testing.T) {
	f := newFakeOllama(t, qwen, fakeModel{"qwen-vl:latest", "qwen3", []string{"completion", "vision"}, 40960, ""})
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"qwen3", "qwen-vl"}).Draw(rt, "model")
		if h := hear(t.Context(), f.model(name), anyRequest(rt)); h.Err != nil {
			rt.Fatal(h.Err)
		}
		if err := judgeOllama(f.last(), name == "qwen-vl"); err != nil {
			rt.Fatalf("%v\n%+v", err, f.last())
		}
	})
}

func judgeOllama(q ollamaRequest, sees bool) error {
	if len(q.Messages) == 0 || q.Options.Context < ollamaLeast || !q.Stream {
		return errors.New("no messages, no context or no stream")
	}
	var open []string
	for i, m := range q.Messages {
		switch {
		case len(open) > 0 && m.Role != "tool":
			return fmt.Errorf("message %d: a call without its result", i)
		case m.Role == "system":
			if i > 0 || blank(m.Content) {
				return fmt.Errorf("message %d: system", i)
			}
		case m.Role == "tool":
			if len(open) == 0 || open[0] != m.ToolName {
				return fmt.Errorf("message %d: result of %s", i, m.ToolName)
			}
			open = open[1:]
		case m.Role == "assistant":
			if blank(m.Content) && len(m.Calls) == 0 {
				return fmt.Errorf("message %d is empty", i)
			}
			for _, c := range m.Calls {
				if !wireWord.MatchString(c.Function.Name) || !isObject(c.Function.Args) {
					return fmt.Errorf("message %d: call %+v", i, c)
				}
				open = append(open, c.Function.Name)
			}
		case m.Role != "user":
			return fmt.Errorf("message %d: role %q", i, m.Role)
		}
		if len(m.Images) > 0 && (!sees || m.Role != "user" || slices.ContainsFunc(m.Images, func(b []byte) bool { return len(b) == 0 })) {
			return fmt.Errorf("message %d: images", i)
		}
	}
	if last := q.Messages[len(q.Messages)-1].Role; last != "user" && last != "tool" || len(open) > 0 {
		return fmt.Errorf("it ends with %s", last)
	}
	return nil
}
