// The SDK's own short way, as its documentation has it: one session, one prompt,
// the text of the answer. Permissions are allowed once.
//
//	node hello.mjs 1|2 CWD PROMPT
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [version, cwd, prompt] = [Number(process.argv[2]), process.argv[3], process.argv[4]];
const entry = version === 2 ? "@agentclientprotocol/sdk/experimental/v2" : "@agentclientprotocol/sdk";
const installed = createRequire(process.env.GLADHAND_INTEROP_CLIENTS + "/");
const acp = await import(pathToFileURL(installed.resolve(entry)));

const agent = spawn("gladhand", ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const who = { name: "hello", version: "1.0.0" };
const initialize =
  version === 2
    ? { protocolVersion: 2, info: who, capabilities: {} }
    : { protocolVersion: 1, clientInfo: who, clientCapabilities: {} };

const text = await acp
  .client({ name: "hello" })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    const allow = params.options.find((o) => o.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: allow.optionId } };
  })
  .connectWith(stream, async (ctx) => {
    await ctx.request(acp.methods.agent.initialize, initialize);
    return ctx.buildSession(cwd).withSession(async (session) => {
      const answered = session.prompt(prompt);
      const text = version === 2 ? await session.readTextUntilIdle() : await session.readText();
      await answered;
      return text;
    });
  });
agent.stdin.end();
process.stdout.write(text + "\n");
