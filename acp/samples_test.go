package acp_test

// sample is one update of a version, and what it is in the other: for the event
// that opens its id, and for a later one (the same when empty). "-" is nothing.
type sample struct {
	name          string
	version       int
	update        string
	opening, late string
}

// Every sample has a member that no schema knows and a _meta, which must survive.
const extra = `,"xNew":{"deep":[1,2.50]},"_meta":{"k":1}`

var samples = []sample{
	// v1.
	{
		"chunk with id", 1, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hé\u00e9"},"messageId":"m1"` + extra + `}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hé\u00e9"},"messageId":"m1"` + extra + `}`, "",
	},
	{
		"chunk without id", 1, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}` + extra + `}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}` + extra + `,"messageId":"#5"}`, "",
	},
	{
		"chunk with null id", 1, `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hi"},"messageId":null` + extra + `}`,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hi"}` + extra + `,"messageId":"#5"}`, "",
	},
	{
		"image chunk", 1, `{"sessionUpdate":"user_message_chunk","content":{"type":"image","data":"AAAA","mimeType":"image/png"},"messageId":"u"` + extra + `}`,
		`{"sessionUpdate":"user_message_chunk","content":{"type":"image","data":"AAAA","mimeType":"image/png"},"messageId":"u"` + extra + `}`, "",
	},
	{
		"tool_call", 1, `{"sessionUpdate":"tool_call","toolCallId":"t","title":"Edit","kind":"edit","status":"in_progress","rawInput":{"n":9007199254740993},"content":[{"type":"diff","path":"/a","oldText":"x\ny\n","newText":"x\nz\n","k":1},{"type":"content","content":{"type":"text","text":"t"}}]` + extra + `}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"Edit","kind":"edit","status":"in_progress","rawInput":{"n":9007199254740993},"content":[{"type":"diff","k":1,"changes":[{"operation":"modify","path":"/a"}],"patch":{"format":"git_patch","text":"diff --git /a /a\n--- /a\n+++ /a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"}},{"type":"content","content":{"type":"text","text":"t"}}]` + extra + `}`, "",
	},
	{
		"tool_call_update", 1, `{"sessionUpdate":"tool_call_update","toolCallId":"t","title":null,"status":"completed","content":null` + extra + `}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"` + extra + `}`, "",
	},
	{
		"plan", 1, `{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]` + extra + `}`,
		`{"sessionUpdate":"plan_update"` + extra + `,"plan":{"type":"items","planId":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]}}`, "",
	},
	{
		"commands", 1, `{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"c","description":"d","input":{"hint":"h"}},{"name":"e","description":"f","input":null}]` + extra + `}`,
		`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"c","description":"d","input":{"hint":"h","type":"text"},"type":"command"},{"name":"e","description":"f","input":null,"type":"command"}]` + extra + `}`, "",
	},
	{
		"mode", 1, `{"sessionUpdate":"current_mode_update","currentModeId":"plan"` + extra + `}`,
		`{"sessionUpdate":"_current_mode_update","currentModeId":"plan"` + extra + `}`, "",
	},
	{
		"config", 1, `{"sessionUpdate":"config_option_update","configOptions":[{"id":"model","name":"Model","category":"model","type":"select","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"}]}]},{"id":"b","name":"B","type":"boolean","currentValue":true}]` + extra + `}`,
		`{"sessionUpdate":"config_option_update","configOptions":[{"configId":"model","name":"Model","category":"model","type":"select","currentValue":"a","options":[{"groupId":"g","name":"G","options":[{"value":"a","name":"A"}]}]},{"configId":"b","name":"B","type":"boolean","currentValue":true}]` + extra + `}`, "",
	},
	{"info", 1, `{"sessionUpdate":"session_info_update","title":"T","updatedAt":null` + extra + `}`, `{"sessionUpdate":"session_info_update","title":"T","updatedAt":null` + extra + `}`, ""},
	{"usage", 1, `{"sessionUpdate":"usage_update","used":5,"size":10,"cost":{"amount":0.10,"currency":"USD"}` + extra + `}`, `{"sessionUpdate":"usage_update","used":5,"size":10,"cost":{"amount":0.10,"currency":"USD"}` + extra + `}`, ""},
	{"notice", 1, `{"sessionUpdate":"notice","severity":"info","title":"T"` + extra + `}`, `{"sessionUpdate":"notice","severity":"info","title":"T"` + extra + `}`, ""},
	{"compaction", 1, `{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"` + extra + `}`, `{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"` + extra + `}`, ""},
	{"compaction chunk", 1, `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"s"}` + extra + `}`, `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"s"}` + extra + `}`, ""},
	{"plan_update v1", 1, `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}` + extra + `}`, `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}` + extra + `}`, ""},
	{"plan_removed v1", 1, `{"sessionUpdate":"plan_removed","planId":"p"` + extra + `}`, `{"sessionUpdate":"plan_removed","planId":"p"` + extra + `}`, ""},
	{"subagent v1", 1, `{"sessionUpdate":"subagent_update","sessionId":"k","title":"kid","state":{"state":"running"}` + extra + `}`, `{"sessionUpdate":"subagent_update","sessionId":"k","title":"kid","state":{"state":"running"}` + extra + `}`, ""},
	{"session_message v1", 1, `{"sessionUpdate":"session_message","messageId":"m","content":[{"type":"text","text":"x"}]` + extra + `}`, `{"sessionUpdate":"session_message","messageId":"m","content":[{"type":"text","text":"x"}]` + extra + `}`, ""},
	{"session_message_chunk v1", 1, `{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"x"}` + extra + `}`, `{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"x"}` + extra + `}`, ""},
	{"unknown v1", 1, `{"sessionUpdate":"_their_own","a":1` + extra + `}`, `{"sessionUpdate":"_their_own","a":1` + extra + `}`, ""},

	// v2.
	{"chunk v2", 2, `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"hi"}` + extra + `}`, `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"hi"}` + extra + `}`, ""},
	{"thought v2, new block", 2, `{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"_video","v":1}` + extra + `}`, `{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"[_video]"}` + extra + `}`, ""},
	{"user chunk v2", 2, `{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"hi"}` + extra + `}`, `{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"hi"}` + extra + `}`, ""},
	{"message v2", 2, `{"sessionUpdate":"agent_message","messageId":"m","content":[{"type":"text","text":"hi"}]` + extra + `}`, `{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":"hi"}` + extra + `}`, ""},
	{"thought v2", 2, `{"sessionUpdate":"agent_thought","messageId":"m","content":[{"type":"text","text":"hi"}]` + extra + `}`, `{"sessionUpdate":"agent_thought_chunk","messageId":"m","content":{"type":"text","text":"hi"}` + extra + `}`, ""},
	{"user message v2", 2, `{"sessionUpdate":"user_message","messageId":"m","content":[{"type":"text","text":"hi"}]` + extra + `}`, `{"sessionUpdate":"user_message_chunk","messageId":"m","content":{"type":"text","text":"hi"}` + extra + `}`, ""},
	{"empty message v2", 2, `{"sessionUpdate":"agent_message","messageId":"m"` + extra + `}`, "-", ""},
	{"cleared message v2", 2, `{"sessionUpdate":"agent_message","messageId":"m","content":null` + extra + `}`, "-", ""},
	{"state", 2, `{"sessionUpdate":"state_update","state":"idle","stopReason":"end_turn"` + extra + `}`, "-", ""},
	{
		"tool v2", 2, `{"sessionUpdate":"tool_call_update","toolCallId":"t","name":"bash","status":"paused","kind":"_x","content":[{"type":"content","content":{"type":"text","text":"t"}},{"type":"terminal","terminalId":"x"},{"type":"_new"}],"capabilities":{"cancel":{}}` + extra + `}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t","name":"bash","status":"in_progress","kind":"other","content":[{"type":"content","content":{"type":"text","text":"t"}},{"type":"content","content":{"type":"text","text":"[terminal x]"}},{"type":"content","content":{"type":"text","text":"[_new]"}}],"capabilities":{"cancel":{}}` + extra + `,"title":"bash"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","name":"bash","status":"in_progress","kind":"other","content":[{"type":"content","content":{"type":"text","text":"t"}},{"type":"content","content":{"type":"text","text":"[terminal x]"}},{"type":"content","content":{"type":"text","text":"[_new]"}}],"capabilities":{"cancel":{}}` + extra + `}`,
	},
	{
		"tool v2, cleared", 2, `{"sessionUpdate":"tool_call_update","toolCallId":"t","title":null,"name":null,"kind":null,"status":null,"content":null,"locations":null` + extra + `}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t","kind":"other","status":"pending","content":[],"locations":[]` + extra + `,"title":"other"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"","kind":"other","status":"pending","content":[],"locations":[]` + extra + `}`,
	},
	{
		"tool v2, cancelled", 2, `{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T","status":"cancelled"` + extra + `}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t","title":"T","status":"failed"` + extra + `}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T","status":"failed"` + extra + `}`,
	},
	{
		"tool v2, diff", 2, `{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T","content":[{"type":"diff","changes":[{"operation":"modify","path":"/a"},{"operation":"move","oldPath":"/b","path":"/c"}],"patch":{"format":"git_patch","text":"diff --git /a /a\n--- /a\n+++ /a\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n\\ No newline at end of file\n"},"q":1}]` + extra + `}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t","title":"T","content":[{"type":"diff","q":1,"path":"/a","oldText":"x\ny\n","newText":"x\nz"},{"type":"content","content":{"type":"text","text":"Moved /b to /c"}}]` + extra + `}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T","content":[{"type":"diff","q":1,"path":"/a","oldText":"x\ny\n","newText":"x\nz"},{"type":"content","content":{"type":"text","text":"Moved /b to /c"}}]` + extra + `}`,
	},
	{
		"tool chunk", 2, `{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"content","content":{"type":"text","text":"t"}}` + extra + `}`,
		`{"sessionUpdate":"tool_call","toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"t"}}]` + extra + `,"title":"Tool call"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"t","content":[{"type":"content","content":{"type":"text","text":"t"}}]` + extra + `}`,
	},
	{
		"terminal", 2, `{"sessionUpdate":"terminal_update","terminalId":"x","command":"ls","cwd":"/","output":{"data":"aGkK"},"exitStatus":{"exitCode":0}` + extra + `}`,
		`{"sessionUpdate":"tool_call","toolCallId":"terminal:x","cwd":"/","content":[{"type":"content","content":{"type":"text","text":"hi\n"}}],"exitStatus":{"exitCode":0}` + extra + `,"title":"ls","status":"completed","kind":"execute"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"terminal:x","cwd":"/","content":[{"type":"content","content":{"type":"text","text":"hi\n"}}],"exitStatus":{"exitCode":0}` + extra + `,"title":"ls","status":"completed"}`,
	},
	{
		"terminal, bare", 2, `{"sessionUpdate":"terminal_update","terminalId":"x","exitStatus":{"exitCode":1}` + extra + `}`,
		`{"sessionUpdate":"tool_call","toolCallId":"terminal:x","exitStatus":{"exitCode":1}` + extra + `,"title":"Terminal","status":"failed","kind":"execute"}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"terminal:x","exitStatus":{"exitCode":1}` + extra + `,"status":"failed"}`,
	},
	{
		"terminal chunk", 2, `{"sessionUpdate":"terminal_output_chunk","terminalId":"x","data":"aGkK"` + extra + `}`,
		`{"sessionUpdate":"tool_call","toolCallId":"terminal:x","xNew":{"deep":[1,2.50]},"title":"Terminal","kind":"execute","status":"in_progress","_meta":{"k":1,"terminal_output":{"terminal_id":"x","data":"hi\n"}}}`,
		`{"sessionUpdate":"tool_call_update","toolCallId":"terminal:x","xNew":{"deep":[1,2.50]},"_meta":{"k":1,"terminal_output":{"terminal_id":"x","data":"hi\n"}}}`,
	},
	{
		"plan_update", 2, `{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[{"content":"a","priority":"_p","status":"cancelled","z":1},{"content":"b","priority":"low","status":"_s"}]}` + extra + `}`,
		`{"sessionUpdate":"plan","entries":[{"content":"a","priority":"medium","status":"completed","z":1},{"content":"b","priority":"low","status":"pending"}]` + extra + `}`, "",
	},
	{"plan_update, markdown", 2, `{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"p","content":"# x"}` + extra + `}`, `{"sessionUpdate":"plan","entries":[{"content":"# x","priority":"medium","status":"in_progress"}]` + extra + `}`, ""},
	{"plan_update, file", 2, `{"sessionUpdate":"plan_update","plan":{"type":"file","planId":"p","uri":"file:///x"}` + extra + `}`, `{"sessionUpdate":"plan","entries":[{"content":"file:///x","priority":"medium","status":"in_progress"}]` + extra + `}`, ""},
	{"plan_removed", 2, `{"sessionUpdate":"plan_removed","planId":"p"` + extra + `}`, `{"sessionUpdate":"plan","planId":"p"` + extra + `,"entries":[]}`, ""},
	{
		"commands v2", 2, `{"sessionUpdate":"available_commands_update","availableCommands":[{"type":"command","name":"c","description":"d","input":{"type":"text","hint":"h"}},{"type":"_new","name":"n","description":"d"},{"type":"command","name":"e","description":"d","input":{"type":"_form"}}]` + extra + `}`,
		`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"c","description":"d","input":{"hint":"h"}},{"name":"e","description":"d"}]` + extra + `}`, "",
	},
	{
		"config v2", 2, `{"sessionUpdate":"config_option_update","configOptions":[{"configId":"m","name":"M","type":"select","currentValue":"a","options":[{"groupId":"g","name":"G","options":[{"value":"a","name":"A"}]}]},{"configId":"n","name":"N","type":"_slider"}]` + extra + `}`,
		`{"sessionUpdate":"config_option_update","configOptions":[{"id":"m","name":"M","type":"select","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"}]}]}]` + extra + `}`, "",
	},
	{"info v2", 2, `{"sessionUpdate":"session_info_update","title":null` + extra + `}`, `{"sessionUpdate":"session_info_update","title":null` + extra + `}`, ""},
	{"usage v2", 2, `{"sessionUpdate":"usage_update","used":5,"size":10` + extra + `}`, `{"sessionUpdate":"usage_update","used":5,"size":10` + extra + `}`, ""},
	{"notice v2", 2, `{"sessionUpdate":"notice","severity":"_s","title":"T"` + extra + `}`, `{"sessionUpdate":"notice","severity":"_s","title":"T"` + extra + `}`, ""},
	{"compaction v2", 2, `{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":[{"type":"_v"}]` + extra + `}`, `{"sessionUpdate":"compaction_update","compactionId":"c","status":"completed","summary":[{"type":"text","text":"[_v]"}]` + extra + `}`, ""},
	{"compaction chunk v2", 2, `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"_v"}` + extra + `}`, `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"[_v]"}` + extra + `}`, ""},
	{"subagent v2", 2, `{"sessionUpdate":"subagent_update","sessionId":"k","state":{"state":"idle","stopReason":"error","error":{"code":1,"message":"x"}}` + extra + `}`, `{"sessionUpdate":"subagent_update","sessionId":"k","state":{"state":"idle","stopReason":"error","error":{"code":1,"message":"x"}}` + extra + `}`, ""},
	{"session_message v2", 2, `{"sessionUpdate":"session_message","messageId":"m","senderSessionId":"s","content":[{"type":"_v"},{"type":"text","text":"x"}]` + extra + `}`, `{"sessionUpdate":"session_message","messageId":"m","senderSessionId":"s","content":[{"type":"text","text":"[_v]"},{"type":"text","text":"x"}]` + extra + `}`, ""},
	{"session_message_chunk v2", 2, `{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"x"}` + extra + `}`, `{"sessionUpdate":"session_message_chunk","messageId":"m","content":{"type":"text","text":"x"}` + extra + `}`, ""},
	{"unknown v2", 2, `{"sessionUpdate":"_theirs","a":[]` + extra + `}`, `{"sessionUpdate":"_theirs","a":[]` + extra + `}`, ""},
}
