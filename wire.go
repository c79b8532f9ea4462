package gladhand

import "encoding/json"

// The names of our own methods. ACP's are in package acp; the method table in
// package daemon is the only list of what is served.
const (
	MethodStatus         = "status"
	MethodHealth         = "health"
	MethodKill           = "session/kill"
	MethodConfigGet      = "config/get"
	MethodConfigSet      = "config/set"
	MethodConfigList     = "config/list"
	MethodConfigValidate = "config/validate"
	MethodAttach         = "_gladhand/attach"
	MethodDetach         = "_gladhand/detach"
	MethodGone           = "_gladhand/gone" // a notification of the daemon's: GoneParams
	MethodEvents         = "_gladhand/events"
	MethodSend           = "_gladhand/send"
	MethodAnswer         = "_gladhand/answer"
	MethodAsks           = "_gladhand/asks"
	MethodQueueList      = "_gladhand/queue/list"
	MethodQueueDrop      = "_gladhand/queue/drop"
	MethodQueueMove      = "_gladhand/queue/move"
	MethodQueuePause     = "_gladhand/queue/pause"
	MethodQueueResume    = "_gladhand/queue/resume"
	MethodShow           = "_gladhand/show"
	MethodSessions       = "_gladhand/sessions"
	MethodCancel         = "_gladhand/cancel"
	MethodStop           = "_gladhand/stop"
	MethodLogQuery       = "log/query"
)

// HandshakeMeta is "gladhand" in the _meta of initialize's result.
type HandshakeMeta struct {
	Version  string   `json:"version"`
	PID      int      `json:"pid"`
	Endpoint string   `json:"endpoint"`
	Methods  []string `json:"methods"`
	ClientID ClientID `json:"clientId"`
	Rights   Rights   `json:"rights"`
	// Name is how the daemon stamps this client.
	Name string `json:"name"`
}

// ClientMeta is "gladhand" in the _meta of initialize's parameters.
type ClientMeta struct {
	// Version of the client, so that a skew can be explained.
	Version string `json:"version,omitempty"`
	// Label is what the client calls itself.
	Label string `json:"label,omitempty"`
}

// UpdateMeta is "gladhand" in the _meta of session/update's parameters: the
// numbers that the update covers. A client has everything when each From is its
// last To + 1. Several updates may cover one span; all but the last then have
// Part set.
type UpdateMeta struct {
	From   Seq       `json:"from"`
	To     Seq       `json:"to"`
	Turn   TurnID    `json:"turn,omitempty"`
	By     *Identity `json:"by,omitempty"`
	Replay bool      `json:"replay,omitempty"`
	Part   bool      `json:"part,omitempty"`
}

// NewSessionMeta is "gladhand" in the _meta of session/new's parameters: what
// ACP has no place for.
type NewSessionMeta struct {
	Agent   string `json:"agent,omitempty"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Profile string `json:"profile,omitempty"`
	Yes     bool   `json:"yes,omitempty"`
	// OneShot marks a session that a `run` made; it is kept with the session. That
	// nobody can answer there is another thing: AttachParams.NoAnswer.
	OneShot bool `json:"oneShot,omitempty"`
}

// The roles of an attach.
const (
	RoleController = "controller" // with the connection's rights (the default)
	RoleObserver   = "observer"   // observe only
)

// AttachParams are those of _gladhand/attach.
type AttachParams struct {
	SessionID SessionID `json:"sessionId"`
	// After is the cursor: nil from the start, −1 the tail, beyond the log an
	// error of CodeInvalidParams.
	After *int64 `json:"after,omitempty"`
	Role  string `json:"role,omitempty"`
	// Name is a label for this client, Task what an agent was asked.
	Name string `json:"name,omitempty"`
	Task string `json:"task,omitempty"`
	// NoAnswer says that nobody sits at this client who could answer an ask.
	NoAnswer bool `json:"noAnswer,omitempty"`
}

// AttachResult is that of _gladhand/attach. Updates behind the cursor follow it.
type AttachResult struct {
	// Seq is the number the snapshot speaks of.
	Seq      Seq      `json:"seq"`
	Snapshot Snapshot `json:"snapshot"`
}

// Snapshot is the state of a session as of a number; never its transcript.
type Snapshot struct {
	Session SessionInfo     `json:"session"`
	Turn    TurnID          `json:"turn,omitempty"` // the running one
	Options json.RawMessage `json:"configOptions,omitempty"`
	Queue   []Prompt        `json:"queue"`
	Paused  bool            `json:"paused,omitempty"`
	Asks    []Ask           `json:"asks"`
	Clients []Identity      `json:"clients"`
}

// GoneParams are those of _gladhand/gone, which ends an attach behind its last
// update: the session was closed, killed or deleted, or cannot be read. Reason
// unavailable means that only this daemon ends; the session is in the next one.
type GoneParams struct {
	SessionID SessionID `json:"sessionId"`
	Error     TurnError `json:"error"`
}

// SessionParams name a session.
type SessionParams struct {
	SessionID SessionID `json:"sessionId"`
}

// EventsParams are those of _gladhand/events.
type EventsParams struct {
	SessionID SessionID `json:"sessionId"`
	After     Seq       `json:"after"`
	Limit     int       `json:"limit,omitempty"` // 1 … 1000, default 200
}

// EventsResult is a page of the log. Next is the cursor for the following page.
type EventsResult struct {
	Updates []LoggedUpdate `json:"updates"`
	Next    Seq            `json:"next"`
	More    bool           `json:"more"`
}

// LoggedUpdate is an update with the numbers it covers.
type LoggedUpdate struct {
	Update json.RawMessage `json:"update"`
	Meta   UpdateMeta      `json:"meta"`
	At     string          `json:"at"`
}

// SendParams are those of _gladhand/send.
type SendParams struct {
	SessionID SessionID       `json:"sessionId"`
	PromptID  PromptID        `json:"promptId,omitempty"`
	Prompt    json.RawMessage `json:"prompt"`
	Delivery  Delivery        `json:"delivery,omitempty"`
}

// AnswerParams are those of _gladhand/answer.
type AnswerParams struct {
	SessionID SessionID       `json:"sessionId"`
	AskID     AskID           `json:"askId"`
	OptionID  string          `json:"optionId,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	Reason    string          `json:"reason,omitempty"`
	Digest    string          `json:"digest,omitempty"`
}

// AnswerResult is that of _gladhand/answer.
type AnswerResult struct {
	Status AnswerStatus `json:"status"`
	By     *Identity    `json:"by,omitempty"`
}

// AsksResult is that of _gladhand/asks.
type AsksResult struct {
	Asks []Ask `json:"asks"`
}

// SessionsParams are those of _gladhand/sessions.
type SessionsParams struct {
	All bool   `json:"all,omitempty"` // closed and killed ones too
	Cwd string `json:"cwd,omitempty"`
}

// SessionsResult is that of _gladhand/sessions, most recently active first.
type SessionsResult struct {
	Sessions []SessionInfo `json:"sessions"`
}

// ShowResult is that of _gladhand/show.
type ShowResult struct {
	Snapshot Snapshot `json:"snapshot"`
	// Files are the paths that edits of this session touched, sorted.
	Files []string `json:"files"`
}

// QueueListResult is that of _gladhand/queue/list.
type QueueListResult struct {
	Paused bool     `json:"paused"`
	Queue  []Prompt `json:"queue"`
}

// QueueItemParams are those of _gladhand/queue/drop and move. Position counts from 1.
type QueueItemParams struct {
	SessionID SessionID `json:"sessionId"`
	PromptID  PromptID  `json:"promptId"`
	Position  int       `json:"position,omitempty"`
}

// StopParams are those of _gladhand/stop.
type StopParams struct {
	// DrainMS is how long running turns may go on, default 5,000.
	DrainMS int `json:"drainMs,omitempty"`
}

// StatusResult is that of status and health.
type StatusResult struct {
	Version   string `json:"version"`
	Protocol  []int  `json:"protocol"`
	PID       int    `json:"pid"`
	Endpoint  string `json:"endpoint"`
	DataDir   string `json:"dataDir"`
	Config    string `json:"config"`
	StartedAt string `json:"startedAt"`
	Sessions  int    `json:"sessions"` // open ones
	Running   int    `json:"running"`
	Clients   int    `json:"clients"`
	Asks      int    `json:"asks"`
	// Store says "ok", or why nothing can be stored.
	Store string `json:"store"`
}

// ConfigProp names one setting; Value is any JSON.
type ConfigProp struct {
	Prop  string          `json:"prop"`
	Value json.RawMessage `json:"value,omitempty"`
}

// PromptUpdate is the update TagPrompt.
type PromptUpdate struct {
	SessionUpdate string          `json:"sessionUpdate"`
	PromptID      PromptID        `json:"promptId"`
	State         PromptState     `json:"state"`
	Outcome       Outcome         `json:"outcome,omitempty"`
	Delivery      Delivery        `json:"delivery,omitempty"`
	Position      int             `json:"position,omitempty"`
	Prompt        json.RawMessage `json:"prompt,omitempty"`
	Reason        string          `json:"reason,omitempty"`
}

// TurnUpdate is the update TagTurnStart and TagTurnEnd. It is a turn's first
// and last event.
type TurnUpdate struct {
	SessionUpdate string     `json:"sessionUpdate"`
	Turn          TurnID     `json:"turn"`
	Prompts       []PromptID `json:"promptIds"` // the one that started it first, then those that joined
	StopReason    StopReason `json:"stopReason,omitempty"`
	// Opens, at a turn's start, are messages ("agent_message:ID") whose text may be
	// shown before it is stored: after a crash they are set to what was stored.
	Opens []string `json:"opens,omitempty"`
	// Command is the slash command that the turn is: no agent or model sees it.
	Command string `json:"command,omitempty"`
	// Error says why, in plain words, when StopReason is error.
	Error *TurnError `json:"error,omitempty"`
}

// TurnError is why a turn failed: the members of a JSON-RPC error.
type TurnError struct {
	Code    Code            `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// AskUpdate is the update TagAsk.
type AskUpdate struct {
	SessionUpdate string `json:"sessionUpdate"`
	Ask
}

// AnswerUpdate is the update TagAnswer: the ask is settled.
type AnswerUpdate struct {
	SessionUpdate string          `json:"sessionUpdate"`
	AskID         AskID           `json:"askId"`
	Settled       Settled         `json:"settled"`
	OptionID      string          `json:"optionId,omitempty"`
	OptionKind    OptionKind      `json:"kind,omitempty"`
	Content       json.RawMessage `json:"content,omitempty"`
	Reason        string          `json:"reason,omitempty"`
}

// ClientUpdate is the update TagClient.
type ClientUpdate struct {
	SessionUpdate string   `json:"sessionUpdate"`
	Client        Identity `json:"client"`
	State         string   `json:"state"` // joined, left
}

// QueueUpdate is the update TagQueue.
type QueueUpdate struct {
	SessionUpdate string `json:"sessionUpdate"`
	State         string `json:"state"` // paused, resumed
}

// InterruptedUpdate is the update TagInterrupted. It spans the numbers that
// were given out and lost. It is for people; no model sees it.
type InterruptedUpdate struct {
	SessionUpdate string `json:"sessionUpdate"`
	Text          string `json:"text"`
}
