// Package mcp makes the tools of MCP servers tools of the built-in agent.
//
// A [Set] is the servers of one session, from the settings and from the editor
// ([ParseServers] reads what session/new brings):
//
//	set := mcp.Open(servers, mcp.Options{Dir: cwd, Environ: env, Notice: say})
//	defer set.Close()
//	tools := set.Tools(ctx) // of those that are ready; ask again each turn
//
// Open returns at once; servers start in the background, and one that is slow,
// dead, or never answers costs the session nothing but its tools.
//
// # A server's life
//
//	starting → ready → gone → (next use) starting → …
//	         ↘ failed
//
// A server has [startLimit] to answer and to list its tools. One that ends is
// started again when it is used next, at most [maxRestarts] times, and people
// are told. A call that was under way is not repeated: its effect is unknown.
//
// A stdio server is a child of package proc: a group of its own, no descriptors
// but three, a clean environment. It is told to end by the end of its input, then
// by a signal, then killed with all its group. An HTTP server is reached with the
// client of [Options]; its headers go to its own host alone.
//
// # What a server cannot do
//
// Everything a server says is bounded before anything else looks at it, in
// [gate]: lines and events are at most [maxMessage] long, notifications are taken
// off the stream as they come, and questions to us are few at a time. What is
// printed on standard error is read and, but for the end, forgotten.
//
// A server's word is no authority. That a tool only reads is its claim, so every
// call is asked about like a command ([gladhand.EffectRun]). What it is called and
// described as reaches the model bounded and cleaned. A server may ask for the
// workspace's root; requests for sampling and elicitation are refused.
//
// Values of environment variables and headers are in no log, status or error, not
// even when a server repeats them there. What a call gives is given as it is.
//
// # The SDK
//
// The protocol is github.com/modelcontextprotocol/go-sdk's. Its transports have
// no bound on what they queue, so ours stand below: [stdio] replaces one, and
// [link] is the HTTP transport under the other.
package mcp
