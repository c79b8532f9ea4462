// Package model is what the agent loop needs of a language model, and the
// models themselves.
//
// A [Model] takes a [Request] (system text, the conversation, the tools) and
// streams [Chunk]s:
//
//	for chunk, err := range m.Generate(ctx, req) {
//		if err != nil { return err } // the last one
//		fmt.Print(chunk.Text)
//	}
//
// A model never runs anything. It asks for tool calls; the loop runs them and
// gives their results in the next request.
//
// A conversation is a list of messages. After an assistant message with calls
// comes one message of [ToolRole] with exactly one result for each call, in
// order; [Check] holds that. Message.Turn groups messages by the turn they
// belong to.
//
// [Offline] is the model inside the binary: rules, no network, no key. Hosted ones
// are behind an [Endpoint], spoken to over net/http: a file a provider for what it
// says, one for what it is asked (anthropic.go, anthropic_request.go). http.go is
// how all of them are reached, fault_http.go what their errors mean, [Retrying]
// tries again.
package model

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"gladhand"
)

// Model is a language model. Its methods are safe for concurrent use.
type Model interface {
	// Name is what people see and choose it by: "offline", "anthropic/claude-x".
	Name() string
	// Limits are what is known of the model without asking anybody.
	Limits() Limits
	// Generate streams one reply. It ends at once when ctx does, with ctx's
	// error. A yielded error is the last, a [*Error] unless it is ctx's; the
	// chunks before it stand.
	Generate(ctx context.Context, r Request) iter.Seq2[Chunk, error]
}

// Limits are what a model can take. A zero number is unknown.
type Limits struct {
	// Window is how many tokens a request and its reply may have together,
	// Output how many of them the reply.
	Window, Output int
	// Images says that it sees images; others are told in words that one is there.
	Images bool
	// Efforts are the values of Request.Effort it knows, from the least; nil: none.
	Efforts []string
	// Price is what its tokens cost.
	Price Price
}

// Price is US dollars for a million tokens; zero is free or unknown.
type Price struct{ Input, Output, CacheRead, CacheWrite float64 }

// Request is what a reply is generated from. Models treat it as immutable.
type Request struct {
	System   string
	Messages []Message
	Tools    []Tool
	// Effort is how hard the model should think, one of Limits.Efforts; empty is
	// the model's own choice, and so is a value it does not know.
	Effort string
	// Session groups requests with a common beginning, for providers that cache
	// by a key. It says nothing about a person.
	Session string
}

// Tool is a tool as a model sees it.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object.
	Schema json.RawMessage
}

// Role says who speaks.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role  Role
	Turn  gladhand.TurnID
	Parts []Part
}

// Part is one part of a message. Exactly one field is set.
type Part struct {
	Text    string
	Image   *Image
	Thought *Thought
	Call    *Call
	Result  *Result
}

// Image is a picture in a message of [User] or in a [Result].
type Image struct {
	MIME string // image/png, image/jpeg, image/gif or image/webp
	Data []byte
}

// Thought is what a model thought before it went on, in a message of
// [Assistant]. The loop gives it back within the turn, to the model it came from.
type Thought struct {
	Text string
	// State is what the provider wants back with it, of a shape only it knows.
	State json.RawMessage
}

// Call is a tool call that the model asks for.
type Call struct {
	// ID is unique in the conversation; the loop gives it.
	ID   string
	Name string
	// Args are as the model wrote them, in a [Chunk] perhaps malformed. In a
	// [Request] they are always a JSON object.
	Args json.RawMessage
	// State is like a Thought's.
	State json.RawMessage
}

// Result is what came of a call.
type Result struct {
	ID     string
	Name   string
	Text   string
	Images []Image
	Failed bool
}

// Chunk is a piece of a reply. Any number of fields may be set.
type Chunk struct {
	Text string
	// Thought is text of the thought that goes on; State ends it, and alone
	// is a thought without text.
	Thought string
	State   json.RawMessage
	// Call is a complete call; its ID is ignored.
	Call *Call
	// Notice is for people: why there is a wait, for instance. It is no part of
	// the reply.
	Notice string
	Usage  *Usage
	// Stop, in the last chunk, says why the reply ended; empty is StopEnd.
	Stop Stop
}

// Usage is what a reply took, in tokens. A later one in the same reply replaces
// an earlier one.
type Usage struct {
	// Input counts all of the request, CacheRead and CacheWrite the parts of it
	// that were read from and written to the provider's cache. Output counts all
	// of the reply, thoughts too.
	Input, Output         int
	CacheRead, CacheWrite int
	// Cost is in US dollars; 0 when it is free or unknown.
	Cost float64
	// Window is the size of the context window; 0 when unknown.
	Window int
}

// Stop is why a reply ended.
type Stop string

// The reasons.
const (
	StopEnd       Stop = "end"
	StopMaxTokens Stop = "max_tokens"
	StopRefusal   Stop = "refusal"
)

// Text is m's text parts joined.
func (m Message) Text() string {
	var s string
	for _, p := range m.Parts {
		s += p.Text
	}
	return s
}

// Check returns an error when a provider could refuse the conversation: an
// empty message, a call without its result right behind it, a result without
// its call, an id used twice, or arguments that are no JSON object.
func Check(messages []Message) error {
	seen := map[string]bool{}
	var open []*Call
	for i, m := range messages {
		if len(m.Parts) == 0 {
			return fmt.Errorf("message %d (%s) is empty", i, m.Role)
		}
		if len(open) > 0 && m.Role != ToolRole {
			return fmt.Errorf("message %d (%s): call %s has no result", i, m.Role, open[0].ID)
		}
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				if m.Role != Assistant || seen[p.Call.ID] || p.Call.ID == "" || p.Call.Name == "" {
					return fmt.Errorf("message %d (%s): call %q is misplaced, nameless or repeated", i, m.Role, p.Call.ID)
				}
				var object map[string]json.RawMessage
				if json.Unmarshal(p.Call.Args, &object) != nil || object == nil {
					return fmt.Errorf("message %d: the arguments of call %s are no object", i, p.Call.ID)
				}
				seen[p.Call.ID] = true
				open = append(open, p.Call)
			case p.Result != nil:
				if m.Role != ToolRole || len(open) == 0 || open[0].ID != p.Result.ID || open[0].Name != p.Result.Name {
					return fmt.Errorf("message %d (%s): result %q answers no call", i, m.Role, p.Result.ID)
				}
				open = open[1:]
			case m.Role == ToolRole, p.Text == "" && p.Image == nil && p.Thought == nil:
				return fmt.Errorf("message %d (%s): an empty part, or text among results", i, m.Role)
			case p.Image != nil && m.Role != User, p.Thought != nil && m.Role != Assistant:
				return fmt.Errorf("message %d (%s): an image or a thought that is not its", i, m.Role)
			}
		}
		if m.Role == ToolRole && len(open) > 0 {
			return fmt.Errorf("message %d: call %s has no result", i, open[0].ID)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("call %s has no result", open[0].ID)
	}
	return nil
}
