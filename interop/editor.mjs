// An editor made of the official SDK, driven over standard input and output, a JSON
// object a line. It starts `gladhand acp` as editors do.
//
//	node editor.mjs 1|2
//
// in:  {"id", "call", "params"}      a request; answered with {"id", "result"|"error"}
//      {"notify", "params"}          a notification
//      {"answer": n, "optionId"}     answers permission request n
//      {"cancel": id}                withdraws the request with that id
//      {"close": true}               closes the connection and ends
// out: {"update": params}, {"ask": n, "params"}, {"withdrawn": n}, {"closed": true}
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const version = Number(process.argv[2]);
const entry = version === 2 ? "@agentclientprotocol/sdk/experimental/v2" : "@agentclientprotocol/sdk";
const installed = createRequire(process.env.GLADHAND_INTEROP_CLIENTS + "/");
const acp = await import(pathToFileURL(installed.resolve(entry)));

const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");

const agent = spawn("gladhand", ["acp"], { stdio: ["pipe", "pipe", "inherit"] });
const asks = new Map();
const calls = new Map();
let asked = 0;

const app = acp
  .client({ name: `editor-v${version}` })
  .onNotification(acp.methods.client.session.update, ({ params }) => say({ update: params }))
  .onRequest(acp.methods.client.session.requestPermission, ({ params, signal }) => {
    const n = ++asked;
    say({ ask: n, params });
    return new Promise((resolve) => {
      asks.set(n, resolve);
      signal.addEventListener("abort", () => {
        // The screen is cleared; the protocol wants an answer all the same.
        asks.delete(n);
        if (!connection.signal.aborted) say({ withdrawn: n });
        resolve({ outcome: { outcome: "cancelled" } });
      });
    });
  });
const connection = app.connect(acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)));

function call({ id, call: method, params }) {
  const stop = new AbortController();
  calls.set(id, stop);
  connection.agent.request(method, params, { cancellationSignal: stop.signal }).then(
    (result) => say({ id, result }),
    (error) => say({ id, error: { code: error.code ?? 0, message: error.message, data: error.data } }),
  );
}

async function obey(line) {
  const order = JSON.parse(line);
  if (order.call) call(order);
  else if (order.notify) await connection.agent.notify(order.notify, order.params);
  else if (order.answer) asks.get(order.answer)?.({ outcome: { outcome: "selected", optionId: order.optionId } });
  else if (order.cancel) calls.get(order.cancel)?.abort();
  else if (order.close) connection.close();
}

createInterface({ input: process.stdin }).on("line", (line) => void obey(line));
connection.closed.then(() => {
  say({ closed: true });
  agent.stdin.end();
  process.stdin.destroy();
});
