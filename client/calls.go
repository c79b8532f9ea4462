package client

import (
	"context"
	"encoding/json"

	"gladhand"
	"gladhand/acp"
)

// NewSession makes a session in cwd, which must be absolute, and returns its id.
// The client is then also attached to it as a stock ACP client; Attach makes
// that an attachment of ours.
func (c *Client) NewSession(ctx context.Context, cwd string, m gladhand.NewSessionMeta) (gladhand.SessionID, error) {
	type ours struct {
		Gladhand gladhand.NewSessionMeta `json:"gladhand"`
	}
	params := struct {
		Cwd     string `json:"cwd"`
		Servers []any  `json:"mcpServers"`
		Meta    ours   `json:"_meta"`
	}{Cwd: cwd, Servers: []any{}, Meta: ours{m}}
	var result struct {
		SessionID gladhand.SessionID `json:"sessionId"`
	}
	err := c.Call(ctx, acp.MethodSessionNew, params, &result)
	return result.SessionID, err
}

// Send puts a prompt into a session and returns when it is stored. Without an id
// it gets one; so a lost connection never makes it run twice.
func (c *Client) Send(ctx context.Context, p gladhand.SendParams) (gladhand.Receipt, error) {
	if p.PromptID == "" {
		p.PromptID = gladhand.PromptID(gladhand.NewID())
	}
	var r gladhand.Receipt
	err := c.callAgain(ctx, gladhand.MethodSend, p, &r)
	return r, err
}

// Answer answers an ask. That somebody else was first is no error: see the
// result's status.
func (c *Client) Answer(ctx context.Context, p gladhand.AnswerParams) (gladhand.AnswerResult, error) {
	var r gladhand.AnswerResult
	err := c.callAgain(ctx, gladhand.MethodAnswer, p, &r)
	return r, err
}

// Asks lists the open asks of all sessions.
func (c *Client) Asks(ctx context.Context) ([]gladhand.Ask, error) {
	var r gladhand.AsksResult
	err := c.callAgain(ctx, gladhand.MethodAsks, struct{}{}, &r)
	return r.Asks, err
}

// Sessions lists sessions, the most recently active first.
func (c *Client) Sessions(ctx context.Context, p gladhand.SessionsParams) ([]gladhand.SessionInfo, error) {
	var r gladhand.SessionsResult
	err := c.callAgain(ctx, gladhand.MethodSessions, p, &r)
	return r.Sessions, err
}

// Show tells a session's state without attaching to it or opening it.
func (c *Client) Show(ctx context.Context, id gladhand.SessionID) (gladhand.ShowResult, error) {
	var r gladhand.ShowResult
	err := c.callAgain(ctx, gladhand.MethodShow, gladhand.SessionParams{SessionID: id}, &r)
	return r, err
}

// Events reads a page of a session's log.
func (c *Client) Events(ctx context.Context, p gladhand.EventsParams) (gladhand.EventsResult, error) {
	var r gladhand.EventsResult
	err := c.callAgain(ctx, gladhand.MethodEvents, p, &r)
	return r, err
}

// Cancel ends a session's running turn, and this client's own waiting prompts.
func (c *Client) Cancel(ctx context.Context, id gladhand.SessionID) error {
	return c.Call(ctx, gladhand.MethodCancel, gladhand.SessionParams{SessionID: id}, nil)
}

// CloseSession ends a session's agent and keeps everything. It reports whether
// it only detached this client, because others are there or have work in it.
func (c *Client) CloseSession(ctx context.Context, id gladhand.SessionID) (detached bool, err error) {
	var r struct {
		Meta struct {
			Gladhand struct {
				Detached bool `json:"detached"`
			} `json:"gladhand"`
		} `json:"_meta"`
	}
	err = c.Call(ctx, acp.MethodSessionClose, gladhand.SessionParams{SessionID: id}, &r)
	return r.Meta.Gladhand.Detached, err
}

// Kill keeps a session's history; it never runs again.
func (c *Client) Kill(ctx context.Context, id gladhand.SessionID) error {
	return c.Call(ctx, gladhand.MethodKill, gladhand.SessionParams{SessionID: id}, nil)
}

// Delete removes a session and everything of it.
func (c *Client) Delete(ctx context.Context, id gladhand.SessionID) error {
	return c.Call(ctx, acp.MethodSessionDelete, gladhand.SessionParams{SessionID: id}, nil)
}

// SetOption sets a config option ("mode", "model") of a session.
func (c *Client) SetOption(ctx context.Context, id gladhand.SessionID, option, value string) error {
	params := struct {
		SessionID gladhand.SessionID `json:"sessionId"`
		Option    string             `json:"configId"`
		Value     string             `json:"value"`
	}{id, option, value}
	return c.callAgain(ctx, acp.MethodSetConfigOption, params, nil)
}

// Queue lists a session's waiting prompts.
func (c *Client) Queue(ctx context.Context, id gladhand.SessionID) (gladhand.QueueListResult, error) {
	var r gladhand.QueueListResult
	err := c.callAgain(ctx, gladhand.MethodQueueList, gladhand.SessionParams{SessionID: id}, &r)
	return r, err
}

// DropPrompt takes a waiting prompt out of the queue.
func (c *Client) DropPrompt(ctx context.Context, id gladhand.SessionID, p gladhand.PromptID) error {
	return c.Call(ctx, gladhand.MethodQueueDrop, gladhand.QueueItemParams{SessionID: id, PromptID: p}, nil)
}

// MovePrompt gives a waiting prompt another position, counted from 1.
func (c *Client) MovePrompt(ctx context.Context, id gladhand.SessionID, p gladhand.PromptID, position int) error {
	return c.Call(ctx, gladhand.MethodQueueMove, gladhand.QueueItemParams{SessionID: id, PromptID: p, Position: position}, nil)
}

// PauseQueue stops the queue, or lets it go on.
func (c *Client) PauseQueue(ctx context.Context, id gladhand.SessionID, paused bool) error {
	method := gladhand.MethodQueueResume
	if paused {
		method = gladhand.MethodQueuePause
	}
	return c.callAgain(ctx, method, gladhand.SessionParams{SessionID: id}, nil)
}

// Status tells how the daemon is.
func (c *Client) Status(ctx context.Context) (gladhand.StatusResult, error) {
	var r gladhand.StatusResult
	err := c.callAgain(ctx, gladhand.MethodStatus, struct{}{}, &r)
	return r, err
}

// ConfigGet reads one setting.
func (c *Client) ConfigGet(ctx context.Context, prop string) (json.RawMessage, error) {
	var r gladhand.ConfigProp
	err := c.callAgain(ctx, gladhand.MethodConfigGet, gladhand.ConfigProp{Prop: prop}, &r)
	return r.Value, err
}

// ConfigSet changes one setting, durably.
func (c *Client) ConfigSet(ctx context.Context, prop string, value json.RawMessage) error {
	return c.Call(ctx, gladhand.MethodConfigSet, gladhand.ConfigProp{Prop: prop, Value: value}, nil)
}

// ConfigList lists all settings, as the daemon describes them.
func (c *Client) ConfigList(ctx context.Context) (json.RawMessage, error) {
	var r json.RawMessage
	err := c.callAgain(ctx, gladhand.MethodConfigList, struct{}{}, &r)
	return r, err
}

// Stop stops the daemon: running turns may go on for the drain time, and
// everything is stored. It returns when the daemon has taken note; Ended tells
// when it has gone.
func (c *Client) Stop(ctx context.Context, p gladhand.StopParams) error {
	return c.Call(ctx, gladhand.MethodStop, p, nil)
}

// Ended is closed when the newest connection has ended.
func (c *Client) Ended() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link.conn.Done()
}
