// The plugin of opencode: starts `mcp-memory hook EVENT --client opencode` at the events of a conversation and gives the
// answer to the model. If anything fails, it adds nothing and the turn continues.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";

const COMMAND = ["mcp-memory"]; // `mcp-memory install opencode` writes the command of this machine here

const TIMEOUT_MS = 12_000; // the hook ends earlier
const MAX_MESSAGES = 500; // of a session; earlier ones were sent with earlier turns
const SMALLEST = 1_000; // characters of a result that may be worth replacing

/** Return the whole result of a tool: opencode cuts a long one, and writes it to a file. */
async function wholeOutput({ output, metadata }) {
  return metadata?.outputPath ? readFile(metadata.outputPath, "utf8").catch(() => output) : output;
}

/** Run the hook and return its answer; {} without one. */
function ask(event, payload) {
  return new Promise((resolve) => {
    const options = { stdio: ["pipe", "pipe", "ignore"], signal: AbortSignal.timeout(TIMEOUT_MS), windowsHide: true };
    const hook = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", event, "--client", "opencode"], options);
    const output = [];
    hook.on("error", () => resolve({}));
    hook.stdin.on("error", () => {});
    hook.stdout.on("data", (chunk) => output.push(chunk));
    hook.on("close", () => {
      try {
        resolve(JSON.parse(Buffer.concat(output).toString("utf8")));
      } catch {
        resolve({});
      }
    });
    hook.stdin.end(JSON.stringify(payload));
  });
}

export const McpMemory = async ({ client, directory }) => {
  const sessions = new Map(); // by id: whether a person takes part, whether the model was told the text of the start

  async function session(id) {
    if (!sessions.has(id)) {
      const { data } = await client.session.get({ path: { id } });
      sessions.set(id, { isTalk: Boolean(data) && !data.parentID });
    }
    return sessions.get(id);
  }

  async function record(event, id) {
    if (!(await session(id)).isPrompted) return;
    const { data: info } = await client.session.get({ path: { id } });
    const { data: messages } = await client.session.messages({ path: { id }, query: { limit: MAX_MESSAGES } });
    await ask(event, { session_id: id, cwd: directory, conversation: { info, messages } });
  }

  const hooks = {
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const known = await session(sessionID);
      const prompt = parts
        .filter((part) => part.type === "text" && !part.synthetic)
        .map((part) => part.text)
        .join("\n\n");
      if (!known.isTalk || !prompt.trim()) return;
      const answers = [];
      if (!known.isOpened) {
        const { data } = await client.session.messages({ path: { id: sessionID }, query: { limit: 1 } });
        const source = known.isCompacted ? "compact" : data?.length ? "resume" : "startup";
        answers.push(await ask("session.created", { session_id: sessionID, cwd: directory, source }));
        Object.assign(known, { isPrompted: true, isCompacted: false, isOpened: source !== "startup" || Boolean(answers[0].text) });
      }
      answers.push(await ask("chat.message", { session_id: sessionID, prompt }));
      const text = answers.flatMap((answer) => answer.text ?? []).join("\n\n");
      const id = `prt_${parts.at(-1)?.id?.slice(4) ?? Date.now()}z`; // after the typed words
      if (text) parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true });
    },

    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const { isTalk } = await session(sessionID);
      if (!isTalk || typeof output.output !== "string" || output.output.length < SMALLEST) return;
      const answer = await ask("tool.execute.after", {
        session_id: sessionID,
        tool_name: tool,
        tool_input: args,
        tool_use_id: callID,
        tool_response: await wholeOutput(output),
      });
      if (typeof answer.output === "string") output.output = answer.output;
    },

    "experimental.session.compacting": ({ sessionID }) => record("experimental.session.compacting", sessionID),

    event: async ({ event }) => {
      const id = event.properties?.sessionID;
      if (event.type === "session.idle") await record("session.idle", id);
      if (event.type === "session.compacted") Object.assign(await session(id), { isOpened: false, isCompacted: true });
      if (event.type === "session.deleted" && sessions.delete(event.properties.info?.id ?? id)) {
        await ask("session.deleted", { session_id: event.properties.info?.id ?? id });
      }
    },
  };
  return Object.fromEntries(Object.entries(hooks).map(([name, hook]) => [name, (...given) => hook(...given).catch(() => {})]));
};
