package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gladhand"

	"pgregory.net/rapid"
)

// anyHistory draws a conversation that [Check] accepts: with text that is blank,
// ids and names of all sorts, thoughts of all providers, roles repeated, and an
// end anywhere.
func anyHistory(t *rapid.T) []Message {
	text := rapid.SampledFrom([]string{"hello", " ", "\n\t", "a\x00b", "日本語", "x\xffy", "  led and trailed \n", "{\"name\":\"f\"}"})
	image := rapid.SampledFrom([]Image{{"image/png", []byte("\x89PNG")}, {"image/jpeg", []byte{0xff, 0xd8}}})
	state := rapid.SampledFrom([]string{
		"", `{"type":"thinking","thinking":"t","signature":"c2ln"}`, `{"type":"redacted_thinking","data":"ZGF0YQ=="}`,
		`{"field":"reasoning_content"}`, `{"field":"reasoning","details":[{"type":"reasoning.text","text":"t"}]}`,
		`{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gA"}`, `{"signature":"c2ln"}`, `null`, `7`, `[]`,
	})
	name := rapid.SampledFrom([]string{"read_file", "mcp__server__tool", "with.dots/and spaces", strings.Repeat("long", 30), "日本"})
	args := rapid.SampledFrom([]string{`{}`, `{"path":"x"}`, `{"a":{"b":[1,"<>"]}}`, " {\n}"})
	ids := 0
	id := func() string {
		ids++
		return fmt.Sprintf(rapid.SampledFrom([]string{"call_%d", "call:%d/ü", "%d", strings.Repeat("long", 20) + "%d"}).Draw(t, "id"), ids)
	}
	raw := func(s string) json.RawMessage {
		if s == "" {
			return nil
		}
		return json.RawMessage(s)
	}
	var list []Message
	for turn := gladhand.TurnID(1); len(list) < 12 && rapid.IntRange(0, 9).Draw(t, "more") > 0; turn += gladhand.TurnID(rapid.IntRange(0, 1).Draw(t, "turn")) {
		m := Message{Role: User, Turn: turn}
		if rapid.Bool().Draw(t, "assistant") {
			m.Role = Assistant
		}
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			kind := rapid.SampledFrom([]string{"text", "other"}).Draw(t, "part")
			switch {
			case kind == "text":
				m.Parts = append(m.Parts, Part{Text: text.Draw(t, "text")})
			case m.Role == User:
				i := image.Draw(t, "image")
				m.Parts = append(m.Parts, Part{Image: &i})
			case rapid.Bool().Draw(t, "thought"):
				m.Parts = append(m.Parts, Part{Thought: &Thought{rapid.SampledFrom([]string{"", "hm"}).Draw(t, "hm"), raw(state.Draw(t, "state"))}})
			default:
				m.Parts = append(m.Parts, Part{Call: &Call{id(), name.Draw(t, "name"), raw(args.Draw(t, "args")), raw(state.Draw(t, "state"))}})
			}
		}
		list = append(list, m)
		results := Message{Role: ToolRole, Turn: turn}
		for _, p := range m.Parts {
			if p.Call == nil {
				continue
			}
			r := &Result{ID: p.Call.ID, Name: p.Call.Name, Failed: rapid.Bool().Draw(t, "failed"), Text: rapid.SampledFrom([]string{"", " ", "out", "x\xff"}).Draw(t, "out")}
			for range rapid.IntRange(0, 2).Draw(t, "images") {
				r.Images = append(r.Images, image.Draw(t, "image"))
			}
			results.Parts = append(results.Parts, Part{Result: r})
		}
		if len(results.Parts) > 0 {
			list = append(list, results)
		}
	}
	if err := Check(list); err != nil {
		t.Fatalf("the generator is wrong: %v", err)
	}
	return list
}

// anyRequest draws a request around a history.
func anyRequest(t *rapid.T) Request {
	r := Request{
		System:   rapid.SampledFrom([]string{"", " ", "Be brief."}).Draw(t, "system"),
		Messages: anyHistory(t),
		Effort:   rapid.SampledFrom([]string{"", "low", "high", "nonsense"}).Draw(t, "effort"),
		Session:  rapid.SampledFrom([]string{"", "s-1"}).Draw(t, "session"),
	}
	if rapid.Bool().Draw(t, "tools") {
		r.Tools = someTools
	}
	return r
}

// judges hold a request's body against the rules of its provider.
var judges = map[string]func(body []byte, l Limits) error{
	"anthropic": judgeAnthropic, "chat": judgeChat, "responses": judgeResponses,
}

// Any history gives a request that its provider takes.
func TestAnyHistory(t *testing.T) {
	for provider, open := range makers {
		t.Run(provider, func(t *testing.T) {
			w := newWire(t, func(rw http.ResponseWriter, _ *http.Request) { stream(rw, transcript(t, provider, "hello")) })
			rapid.Check(t, func(rt *rapid.T) {
				e := w.endpoint()
				e.Model = rapid.SampledFrom([]string{"claude-opus-5-5", "claude-sonnet-4-5", "gpt-x"}).Draw(rt, "model")
				e.Limits.Images = rapid.Bool().Draw(rt, "sees")
				e.Limits.Efforts = rapid.SampledFrom([][]string{nil, {"low", "high"}}).Draw(rt, "efforts")
				e.Limits.Output = rapid.SampledFrom([]int{0, 1000, 64_000}).Draw(rt, "output")
				if _, err := trace(t.Context(), open(e), anyRequest(rt)); err != nil {
					rt.Fatal(err)
				}
				if err := judges[provider]([]byte(w.asked()), e.Limits); err != nil {
					rt.Fatalf("%v\n%s", err, w.asked())
				}
			})
		})
	}
}

var (
	wireWord   = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	chatWord   = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)
	notBlank   = func(s string) bool { return strings.TrimSpace(s) != "" }
	isImageURL = regexp.MustCompile(`^data:image/(png|jpeg);base64,[A-Za-z0-9+/]+=*$`).MatchString
)

type judged struct {
	Type, Text, Role, ID, Name, Signature, Thinking, Data string
	ToolUseID                                             string `json:"tool_use_id"`
	IsError                                               bool   `json:"is_error"`
	Input                                                 json.RawMessage
	Content                                               []judged
	CacheControl                                          *struct{ Type string } `json:"cache_control"`
	Source                                                *struct {
		Type, Data string
		MediaType  string `json:"media_type"`
	}
	InputSchema json.RawMessage `json:"input_schema"`
}

// judgeAnthropic knows the rules of the Messages API.
func judgeAnthropic(body []byte, l Limits) error {
	var q struct {
		Model     string
		MaxTokens int `json:"max_tokens"`
		System    []judged
		Messages  []judged
		Tools     []judged
		Thinking  *struct {
			Type   string
			Budget int `json:"budget_tokens"`
		}
		Stream bool
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	if q.MaxTokens < 1 || !q.Stream || len(q.Messages) == 0 {
		return errors.New("no max_tokens, no stream or no messages")
	}
	marks := 0
	text := func(b judged) error {
		if b.Type == "text" && !notBlank(b.Text) {
			return errors.New("text content blocks must contain non-whitespace text")
		}
		if b.CacheControl != nil {
			marks++
		}
		if b.Type == "image" && (b.Source == nil || b.Source.Data == "" || !strings.HasPrefix(b.Source.MediaType, "image/") || !l.Images) {
			return errors.New("an image that is none, or not seen")
		}
		return nil
	}
	for _, s := range q.System {
		if err := text(s); err != nil {
			return err
		}
	}
	declared := map[string]bool{}
	for _, t := range q.Tools {
		if !wireWord.MatchString(t.Name) || declared[t.Name] || !isObject(t.InputSchema) {
			return fmt.Errorf("tool %q", t.Name)
		}
		declared[t.Name] = true
		if t.CacheControl != nil {
			marks++
		}
	}
	var open []string
	role := "assistant"
	for i, m := range q.Messages {
		if m.Role == role || len(m.Content) == 0 {
			return fmt.Errorf("message %d: roles must alternate from user, content may not be empty", i)
		}
		role = m.Role
		results := 0
		for n, b := range m.Content {
			if err := text(b); err != nil {
				return fmt.Errorf("message %d: %w", i, err)
			}
			switch b.Type {
			case "tool_use":
				if role != "assistant" || !wireWord.MatchString(b.ID) || !wireWord.MatchString(b.Name) || !isObject(b.Input) || slices.Contains(open, b.ID) {
					return fmt.Errorf("message %d: tool_use %q %q %s", i, b.ID, b.Name, b.Input)
				}
				if !declared[b.Name] && len(declared) == 0 {
					return errors.New("requests with tool_use blocks must define tools")
				}
				open = append(open, b.ID)
			case "tool_result":
				if n != results || role != "user" || !slices.Contains(open, b.ToolUseID) || len(b.Content) == 0 {
					return fmt.Errorf("message %d: tool_result %q is misplaced or empty", i, b.ToolUseID)
				}
				results++
				for _, c := range b.Content {
					if err := text(c); err != nil || b.IsError && c.Type != "text" {
						return fmt.Errorf("message %d: a result: %v", i, err)
					}
				}
			case "thinking", "redacted_thinking":
				if role != "assistant" || b.Signature == "" && b.Data == "" || n == len(m.Content)-1 {
					return fmt.Errorf("message %d: a thought without its state, or at the end", i)
				}
			case "text", "image":
			default:
				return fmt.Errorf("message %d: a block of type %q", i, b.Type)
			}
		}
		if role == "user" && results != len(open) {
			return fmt.Errorf("message %d: tool_use ids were found without tool_result blocks immediately after", i)
		}
		if role == "user" {
			open = nil
		}
	}
	if role != "user" {
		return errors.New("the conversation must end with a user message")
	}
	if th := q.Thinking; th != nil && th.Type == "enabled" {
		if th.Budget < 1024 || th.Budget >= q.MaxTokens {
			return fmt.Errorf("a budget of %d of %d", th.Budget, q.MaxTokens)
		}
		if n := len(q.Messages); n > 1 && q.Messages[n-1].Content[0].Type == "tool_result" && !strings.HasSuffix(q.Messages[n-2].Content[0].Type, "thinking") {
			return errors.New("when thinking is enabled, a final assistant message must start with a thinking block")
		}
	}
	if marks > 4 {
		return fmt.Errorf("%d cache breakpoints", marks)
	}
	return nil
}

// judgeChat knows the rules of chat completions, those of the strictest servers.
func judgeChat(body []byte, l Limits) error {
	var q struct {
		Messages []struct {
			Role      string
			Content   any
			ToolCalls []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
			ToolCallID string `json:"tool_call_id"`
		}
	}
	var members map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(body, &q), json.Unmarshal(body, &members)); err != nil {
		return err
	}
	for k := range members {
		if !slices.Contains([]string{"model", "messages", "tools", "stream", "stream_options", "max_tokens", "reasoning_effort"}, k) {
			return fmt.Errorf("servers do not know %q", k)
		}
	}
	if string(members["stream"]) != "true" || len(q.Messages) == 0 {
		return errors.New("no stream or no messages")
	}
	var open []string
	last := ""
	for i, m := range q.Messages {
		switch c := m.Content.(type) {
		case string:
			if !notBlank(c) {
				return fmt.Errorf("message %d is blank", i)
			}
		case []any:
			if m.Role != "user" || len(c) == 0 {
				return fmt.Errorf("message %d: parts of %s", i, m.Role)
			}
			for _, p := range c {
				p, _ := p.(map[string]any)
				u, _ := p["image_url"].(map[string]any)
				s, _ := p["text"].(string)
				url, _ := u["url"].(string)
				if p["type"] == "text" && !notBlank(s) || p["type"] == "image_url" && (!isImageURL(url) || !l.Images) {
					return fmt.Errorf("message %d: part %v", i, p)
				}
			}
		default:
			if len(m.ToolCalls) == 0 {
				return fmt.Errorf("message %d has no content", i)
			}
		}
		switch {
		case len(open) > 0 && m.Role != "tool":
			return fmt.Errorf("message %d: calls must be followed by their results", i)
		case m.Role == "system" && i > 0, m.Role == last && m.Role != "tool", m.Role == "assistant" && (last == "" || last == "system"):
			return fmt.Errorf("message %d: %s after %s", i, m.Role, last)
		case m.Role == "tool":
			if len(open) == 0 || m.ToolCallID != open[0] {
				return fmt.Errorf("message %d: result %q", i, m.ToolCallID)
			}
			open = open[1:]
		}
		for _, c := range m.ToolCalls {
			if !chatWord.MatchString(c.ID) || !wireWord.MatchString(c.Function.Name) || !isObject(json.RawMessage(c.Function.Arguments)) || c.Type != "function" || slices.Contains(open, c.ID) {
				return fmt.Errorf("message %d: call %+v", i, c)
			}
			open = append(open, c.ID)
		}
		last = m.Role
	}
	if last != "user" && last != "tool" || len(open) > 0 {
		return fmt.Errorf("it ends with %s", last)
	}
	return nil
}

// judgeResponses knows the rules of the responses API.
func judgeResponses(body []byte, l Limits) error {
	var q struct {
		Input []struct {
			Type, Role, Name, Arguments string
			CallID                      string `json:"call_id"`
			Encrypted                   string `json:"encrypted_content"`
			Output                      any
			Content                     []struct {
				Type, Text string
				ImageURL   string `json:"image_url"`
			}
		}
		Store   *bool
		Include []string
		Tools   []struct {
			Strict *bool
			Name   string
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return err
	}
	if q.Store == nil || *q.Store || len(q.Input) == 0 {
		return errors.New("it is stored, or there is no input")
	}
	for _, t := range q.Tools {
		if t.Strict == nil || *t.Strict || t.Name == "" {
			return fmt.Errorf("tool %+v is strict", t)
		}
	}
	var open []string
	for i, it := range q.Input {
		if it.Type == "reasoning" {
			if it.Encrypted == "" || i == len(q.Input)-1 {
				return fmt.Errorf("item %d: reasoning without its content or what follows", i)
			}
			if next := q.Input[i+1]; next.Type != "reasoning" && next.Type != "function_call" && next.Role != "assistant" {
				return fmt.Errorf("item %d of type 'reasoning' was provided without its required following item", i)
			}
			continue
		}
		for _, c := range it.Content {
			if c.Type == "input_image" && (!isImageURL(c.ImageURL) || !l.Images) || c.Type != "input_image" && !notBlank(c.Text) || (it.Role == "assistant") != (c.Type == "output_text") {
				return fmt.Errorf("item %d: %+v", i, c)
			}
		}
		switch it.Type {
		case "message":
			if len(it.Content) == 0 || len(open) > 0 && it.Role == "user" {
				return fmt.Errorf("item %d: an empty message, or one in front of results", i)
			}
		case "function_call":
			if !wireWord.MatchString(it.CallID) || !wireWord.MatchString(it.Name) || !isObject(json.RawMessage(it.Arguments)) || slices.Contains(open, it.CallID) {
				return fmt.Errorf("item %d: %+v", i, it)
			}
			open = append(open, it.CallID)
		case "function_call_output":
			n := slices.Index(open, it.CallID)
			if n < 0 || it.Output == nil || it.Output == "" {
				return fmt.Errorf("item %d: output %q of %q", i, it.Output, it.CallID)
			}
			open = slices.Delete(open, n, n+1)
		default:
			return fmt.Errorf("item %d of type %q", i, it.Type)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("no tool output found for function call %s", open[0])
	}
	return nil
}
