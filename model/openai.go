package model

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
)

// Where OpenAI is.
const (
	openaiURL  = "https://api.openai.com/v1"
	openaiHost = "api.openai.com"
)

// openaiAuth sends a key as OpenAI and all servers that are like it want it.
func openaiAuth(key string) func(http.Header) {
	return func(h http.Header) {
		if key != "" {
			h.Set("Authorization", "Bearer "+key)
		}
	}
}

// manners are what a server turned out not to take. They are learnt from its
// refusals and kept as long as the model: servers that are like OpenAI's differ.
type manners struct {
	noStreamOptions, noEffort, noSummary, noCacheKey, noInclude, swapMax, bridge, noState atomic.Bool
}

// learn reports whether err told something new, so that the request should be
// made again at once.
func (m *manners) learn(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Status != http.StatusBadRequest && e.Status != http.StatusUnprocessableEntity {
		return false
	}
	text := strings.ToLower(e.Text)
	for _, lesson := range []struct {
		word string
		flag *atomic.Bool
	}{
		{"stream_options", &m.noStreamOptions},
		{"reasoning.summary", &m.noSummary},
		{"reasoning summar", &m.noSummary},
		{"reasoning.encrypted_content", &m.noInclude},
		{"encrypted content is not supported", &m.noInclude},
		{"reasoning_effort", &m.noEffort},
		{"reasoning.effort", &m.noEffort},
		{"prompt_cache_key", &m.noCacheKey},
		{"max_completion_tokens", &m.swapMax},
		{"max_tokens' is not supported", &m.swapMax},
		{"after role 'tool'", &m.bridge},
		{"reasoning_details", &m.noState},
	} {
		if strings.Contains(text, lesson.word) && lesson.flag.CompareAndSwap(false, true) {
			return true
		}
	}
	return false
}

// openaiTool is a tool as chat completions have it; the responses API has what is
// in Function at the top.
type openaiTool struct {
	Type     string          `json:"type"`
	Function *openaiFunction `json:"function"`
}

type openaiFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}
