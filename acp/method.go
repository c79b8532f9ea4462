package acp

// The methods of both versions, client to agent.
const (
	MethodInitialize      = "initialize"
	MethodSessionNew      = "session/new"
	MethodSessionResume   = "session/resume"
	MethodSessionList     = "session/list"
	MethodSessionClose    = "session/close"
	MethodSessionDelete   = "session/delete"
	MethodSessionPrompt   = "session/prompt"
	MethodSessionCancel   = "session/cancel" // a notification
	MethodSetConfigOption = "session/set_config_option"
)

// The methods of v1 only, client to agent.
const (
	MethodAuthenticate = "authenticate"
	MethodLogout       = "logout"
	MethodSessionLoad  = "session/load"
	MethodSetMode      = "session/set_mode"
)

// The methods of v2 only, client to agent.
const (
	MethodLogin          = "auth/login"
	MethodAuthLogout     = "auth/logout"
	MethodToolCallCancel = "tool_call/cancel"
	MethodTerminalCancel = "terminal/cancel"
)

// The methods of both versions, agent to client.
const (
	MethodUpdate              = "session/update" // a notification
	MethodRequestPermission   = "session/request_permission"
	MethodElicitationCreate   = "elicitation/create"
	MethodElicitationComplete = "elicitation/complete" // a notification
)

// The methods of v1 only, agent to client.
const (
	MethodReadTextFile     = "fs/read_text_file"
	MethodWriteTextFile    = "fs/write_text_file"
	MethodTerminalCreate   = "terminal/create"
	MethodTerminalOutput   = "terminal/output"
	MethodTerminalRelease  = "terminal/release"
	MethodTerminalWaitExit = "terminal/wait_for_exit"
	MethodTerminalKill     = "terminal/kill"
)

// MethodCancelRequest is the notification by which either side withdraws a
// request it made.
const MethodCancelRequest = "$/cancel_request"

// The versions that this package knows.
const (
	V1 = 1
	V2 = 2
	// Newest is what an unknown newer version is answered with.
	Newest = V2
)

// The tags of updates: the values of "sessionUpdate".
const (
	TagUserChunk       = "user_message_chunk"
	TagAgentChunk      = "agent_message_chunk"
	TagThoughtChunk    = "agent_thought_chunk"
	TagToolCallUpdate  = "tool_call_update"
	TagCommands        = "available_commands_update"
	TagConfigOption    = "config_option_update"
	TagSessionInfo     = "session_info_update"
	TagUsage           = "usage_update"
	TagNotice          = "notice"
	TagCompaction      = "compaction_update"
	TagCompactionChunk = "compaction_summary_chunk"

	// v1 only.
	TagToolCall    = "tool_call"
	TagPlan        = "plan"
	TagCurrentMode = "current_mode_update"

	// v2 only.
	TagUserMessage   = "user_message"
	TagAgentMessage  = "agent_message"
	TagAgentThought  = "agent_thought"
	TagState         = "state_update"
	TagToolChunk     = "tool_call_content_chunk"
	TagTerminal      = "terminal_update"
	TagTerminalChunk = "terminal_output_chunk"

	// plan_update is stable in v2; the rest is unstable in both.
	TagPlanUpdate          = "plan_update"
	TagPlanRemoved         = "plan_removed"
	TagSubagent            = "subagent_update"
	TagSessionMessage      = "session_message"
	TagSessionMessageChunk = "session_message_chunk"

	// tagCustomMode is how v2, which has no modes, is told of one.
	tagCustomMode = "_current_mode_update"
)
