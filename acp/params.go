package acp

import (
	"encoding/json"
	"errors"
	"path/filepath"

	jsonv2 "github.com/go-json-experiment/json"

	"gladhand"
)

// SessionParams are those of session/close, session/delete and session/cancel.
type SessionParams struct {
	SessionID gladhand.SessionID `json:"sessionId"`
	Meta      json.RawMessage    `json:"_meta"`
}

// NewParams are those of session/new.
type NewParams struct {
	Cwd        string          `json:"cwd"`
	MCPServers json.RawMessage `json:"mcpServers"` // an array, as it came
	Dirs       []string        `json:"additionalDirectories"`
	Meta       json.RawMessage `json:"_meta"`
}

// LoadParams are those of session/load and session/resume.
type LoadParams struct {
	SessionID  gladhand.SessionID `json:"sessionId"`
	Cwd        string             `json:"cwd"`
	MCPServers json.RawMessage    `json:"mcpServers"`
	Dirs       []string           `json:"additionalDirectories"`
	// ReplayFrom is v2's; see Replays.
	ReplayFrom *ReplayFrom     `json:"replayFrom"`
	Meta       json.RawMessage `json:"_meta"`
}

// ReplayFrom says from where v2 wants a session's history.
type ReplayFrom struct {
	Type string `json:"type"`
}

// ListParams are those of session/list.
type ListParams struct {
	Cwd    string          `json:"cwd"`    // empty for all
	Cursor string          `json:"cursor"` // empty for the first page
	Meta   json.RawMessage `json:"_meta"`
}

// PromptParams are those of session/prompt.
type PromptParams struct {
	SessionID gladhand.SessionID `json:"sessionId"`
	Prompt    json.RawMessage    `json:"prompt"` // content blocks, as they came
	Meta      json.RawMessage    `json:"_meta"`
}

// SetModeParams are those of session/set_mode.
type SetModeParams struct {
	SessionID gladhand.SessionID `json:"sessionId"`
	ModeID    string             `json:"modeId"`
}

// SetOptionParams are those of session/set_config_option.
type SetOptionParams struct {
	SessionID gladhand.SessionID `json:"sessionId"`
	ConfigID  string             `json:"configId"`
	Raw       json.RawMessage    `json:"value"`
	// Value is what was chosen; "true" or "false" for an option that is on or off.
	Value string `json:"-"`
}

// CancelRequestParams are those of $/cancel_request. The id is a JSON value, as it
// came.
type CancelRequestParams struct {
	RequestID json.RawMessage `json:"requestId"`
}

// ToolCallParams are those of v2's tool_call/cancel.
type ToolCallParams struct {
	SessionID  gladhand.SessionID `json:"sessionId"`
	ToolCallID string             `json:"toolCallId"`
}

// ParseSession reads parameters that name a session.
func ParseSession(params json.RawMessage) (SessionParams, error) {
	var p SessionParams
	err := decode(params, &p)
	if err == nil {
		err = needSession(p.SessionID)
	}
	return p, err
}

// ParseNew reads session/new's parameters: cwd must be an absolute path.
func ParseNew(params json.RawMessage) (NewParams, error) {
	var p NewParams
	err := decode(params, &p)
	if err == nil {
		err = checkPlace(p.Cwd, p.MCPServers, p.Dirs)
	}
	return p, err
}

// ParseLoad reads session/load's and session/resume's parameters.
func ParseLoad(params json.RawMessage) (LoadParams, error) {
	var p LoadParams
	err := decode(params, &p)
	if err == nil {
		err = needSession(p.SessionID)
	}
	if err == nil {
		err = checkPlace(p.Cwd, p.MCPServers, p.Dirs)
	}
	if err == nil && p.ReplayFrom != nil && p.ReplayFrom.Type != "start" {
		err = invalid("a session can be replayed from its start only, not from %q", p.ReplayFrom.Type)
	}
	return p, err
}

// Replays reports whether v2's session/resume asks for the history.
func (p LoadParams) Replays() bool { return p.ReplayFrom != nil }

// ParseList reads session/list's parameters, which may be absent.
func ParseList(params json.RawMessage) (ListParams, error) {
	var p ListParams
	if len(params) == 0 {
		return p, nil
	}
	return p, decode(params, &p)
}

// ParsePrompt reads session/prompt's parameters and checks the content.
func ParsePrompt(params json.RawMessage) (PromptParams, error) {
	var p PromptParams
	err := decode(params, &p)
	if err == nil {
		err = needSession(p.SessionID)
	}
	if err == nil {
		err = ValidatePrompt(p.Prompt)
	}
	return p, err
}

// ParseSetMode reads session/set_mode's parameters.
func ParseSetMode(params json.RawMessage) (SetModeParams, error) {
	var p SetModeParams
	err := decode(params, &p)
	if err == nil {
		err = needSession(p.SessionID)
	}
	if err == nil && p.ModeID == "" {
		err = invalid("modeId is missing")
	}
	return p, err
}

// ParseSetOption reads session/set_config_option's parameters, of both versions.
func ParseSetOption(params json.RawMessage) (SetOptionParams, error) {
	var p SetOptionParams
	err := decode(params, &p)
	if err == nil {
		err = needSession(p.SessionID)
	}
	if err != nil {
		return p, err
	}
	if p.ConfigID == "" {
		return p, invalid("configId is missing")
	}
	s, isString := str(p.Raw)
	switch {
	case isString:
		p.Value = s
	case string(p.Raw) == "true", string(p.Raw) == "false":
		p.Value = string(p.Raw)
	default:
		return p, invalid("the value of %q must be a string, true or false", p.ConfigID)
	}
	return p, nil
}

// ParseCancelRequest reads $/cancel_request's parameters.
func ParseCancelRequest(params json.RawMessage) (CancelRequestParams, error) {
	var p CancelRequestParams
	err := decode(params, &p)
	if err == nil && len(p.RequestID) == 0 {
		err = invalid("requestId is missing")
	}
	return p, err
}

// ParseToolCall reads tool_call/cancel's parameters.
func ParseToolCall(params json.RawMessage) (ToolCallParams, error) {
	var p ToolCallParams
	err := decode(params, &p)
	if err == nil {
		err = needSession(p.SessionID)
	}
	if err == nil && p.ToolCallID == "" {
		err = invalid("toolCallId is missing")
	}
	return p, err
}

func needSession(id gladhand.SessionID) error {
	if id == "" {
		return invalid("sessionId is missing")
	}
	return nil
}

func checkPlace(cwd string, servers json.RawMessage, dirs []string) error {
	if !filepath.IsAbs(cwd) {
		return invalid("cwd must be an absolute path, not %q", cwd)
	}
	for _, d := range dirs {
		if !filepath.IsAbs(d) {
			return invalid("additionalDirectories must be absolute paths, not %q", d)
		}
	}
	if !isNull(servers) && !isArray(servers) {
		return invalid("mcpServers must be an array")
	}
	return nil
}

// decode reads parameters into a view: strictly, but passing over members that the
// view does not have.
func decode(params json.RawMessage, into any) error {
	if !isObject(params) {
		return invalid("the parameters must be an object")
	}
	if err := jsonv2.Unmarshal(params, into); err != nil {
		var semantic *jsonv2.SemanticError
		if errors.As(err, &semantic) && semantic.JSONPointer != "" {
			return invalid("%s has the wrong type", semantic.JSONPointer[1:])
		}
		return invalid("the parameters are not valid")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return gladhand.Errorf(gladhand.CodeInvalidParams, gladhand.ReasonInvalid, format, args...)
}
