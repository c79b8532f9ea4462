package daemon

import (
	"context"
	"errors"
	"slices"

	"gladhand"
	"gladhand/acp"
	"gladhand/rpc"
)

// method is one row of the surface.
type method struct {
	// handle parses, calls and returns the result; see errLater.
	handle func(*conn, context.Context, *rpc.Request) (any, error)
	// inline handlers run on the read loop, in order, and must not wait.
	inline bool
	// page handlers have results that may be large, and never answer later.
	page bool
	// version is the only version of ACP that has the method; 0 for any.
	version int
	// needs are the rights that the handler's call will be checked for, where the
	// data is; here they are documentation, and what the handshake is made from.
	needs gladhand.Rights
	doc   string
}

// errLater is what a handler returns that answers the request itself.
var errLater = errors.New("answered later")

// methods is everything the daemon serves. It is filled in init, since handlers
// refer to it.
var methods map[string]*method

func init() {
	methods = map[string]*method{
		acp.MethodInitialize:      {handle: initialize, inline: true, doc: "settle the version and say who we are; first on every connection"},
		acp.MethodAuthenticate:    {handle: authenticate, version: acp.V1, doc: "nothing to log in to locally"},
		acp.MethodLogout:          {handle: logout, version: acp.V1, doc: "nothing to log out of locally"},
		acp.MethodLogin:           {handle: authenticate, version: acp.V2, doc: "nothing to log in to locally"},
		acp.MethodAuthLogout:      {handle: logout, version: acp.V2, doc: "nothing to log out of locally"},
		acp.MethodSessionNew:      {handle: sessionNew, needs: gladhand.Prompting | gladhand.Observe, doc: "make a session, attached"},
		acp.MethodSessionLoad:     {handle: sessionLoad, version: acp.V1, needs: gladhand.Observe, doc: "attach: replay the history, then answer"},
		acp.MethodSessionResume:   {handle: sessionResume, needs: gladhand.Observe, doc: "attach at the tail; v2 may ask for the history"},
		acp.MethodSessionList:     {handle: sessionList, page: true, needs: gladhand.Observe, doc: "pages of sessions, by cwd"},
		acp.MethodSessionClose:    {handle: sessionClose, needs: gladhand.Prompting, doc: "end the agent, keep everything; only leave when others need the session"},
		acp.MethodSessionDelete:   {handle: sessionDelete, needs: gladhand.Manage, doc: "remove a session and its history"},
		acp.MethodSessionPrompt:   {handle: sessionPrompt, inline: true, needs: gladhand.Prompting, doc: "put a prompt in; answered when the turn ends (v1) or it was inserted (v2)"},
		acp.MethodSessionCancel:   {handle: sessionCancel, inline: true, needs: gladhand.Prompting, doc: "end the running turn and the caller's own waiting prompts"},
		acp.MethodSetMode:         {handle: setMode, version: acp.V1, needs: gladhand.Configure, doc: "choose a session's mode"},
		acp.MethodSetConfigOption: {handle: setConfigOption, needs: gladhand.Configure, doc: "choose a session's option"},

		gladhand.MethodStatus: {handle: status, needs: gladhand.Observe, doc: "what the daemon is and has open"},
		gladhand.MethodHealth: {handle: status, needs: gladhand.Observe, doc: "the same as status"},
		gladhand.MethodStop:   {handle: stop, needs: gladhand.Manage, doc: "stop the daemon"},

		gladhand.MethodKill:     {handle: sessionKill, needs: gladhand.Manage, doc: "keep the history, never run again"},
		gladhand.MethodAttach:   {handle: attach, needs: gladhand.Observe, doc: "follow a session behind a number, with everything we know of it"},
		gladhand.MethodDetach:   {handle: detach, doc: "leave a session"},
		gladhand.MethodEvents:   {handle: events, page: true, needs: gladhand.Observe, doc: "a page of a session's log"},
		gladhand.MethodSend:     {handle: send, inline: true, needs: gladhand.Prompting, doc: "put a prompt in; answered when it is stored"},
		gladhand.MethodCancel:   {handle: cancel, inline: true, needs: gladhand.Prompting, doc: "session/cancel, answered"},
		gladhand.MethodAnswer:   {handle: answer, inline: true, needs: gladhand.Answering, doc: "answer an ask; the first valid answer wins"},
		gladhand.MethodAsks:     {handle: asks, page: true, needs: gladhand.Answering, doc: "the open asks of all sessions"},
		gladhand.MethodSessions: {handle: sessions, page: true, needs: gladhand.Observe, doc: "the sessions, with what they are doing"},
		gladhand.MethodShow:     {handle: show, page: true, needs: gladhand.Observe, doc: "one session's state, also of a closed one"},

		gladhand.MethodQueueList:   {handle: queueList, page: true, needs: gladhand.Observe, doc: "the waiting prompts"},
		gladhand.MethodQueueDrop:   {handle: queueDrop, needs: gladhand.Prompting, doc: "take a waiting prompt out"},
		gladhand.MethodQueueMove:   {handle: queueMove, needs: gladhand.Prompting, doc: "put a waiting prompt at a position"},
		gladhand.MethodQueuePause:  {handle: queuePause, needs: gladhand.Configure, doc: "stop starting turns"},
		gladhand.MethodQueueResume: {handle: queueResume, needs: gladhand.Configure, doc: "start turns again"},

		gladhand.MethodConfigGet:      {handle: configGet, needs: gladhand.Observe, doc: "one setting"},
		gladhand.MethodConfigSet:      {handle: configSet, needs: gladhand.Configure, doc: "change one setting, durably"},
		gladhand.MethodConfigList:     {handle: configList, needs: gladhand.Observe, doc: "all settings"},
		gladhand.MethodConfigValidate: {handle: configValidate, needs: gladhand.Observe, doc: "check the text of a settings file"},
		gladhand.MethodLogQuery:       {handle: logQuery, page: true, needs: gladhand.Manage, doc: "the newest lines of the daemon's log"},
	}
}

// methodNames lists what a connection of a version can call, sorted.
func methodNames(version int) []string {
	var names []string
	for name, m := range methods {
		if m.version == 0 || m.version == version {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
