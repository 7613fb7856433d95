// The plugin of OpenClaw: starts `mcp-memory hook EVENT --client openclaw` at the events of a conversation and gives the
// answer to the model. If anything fails, it adds nothing and the turn continues.
import { spawn } from "node:child_process";

const COMMAND = ["mcp-memory"]; // `mcp-memory install openclaw` writes the command of this machine here

const TIMEOUT_MS = 12_000; // the hook ends earlier
const MAX_LINES = 1_000; // of a transcript; earlier ones were sent with earlier turns
const SMALLEST = 1_000; // characters of a result that may be worth replacing
const OF_A_PROGRAM = /:(?:subagent|cron|hook|heartbeat)\b/;

/** Run the hook and return its answer; {} without one. */
function ask(event, payload) {
  return new Promise((resolve) => {
    const options = { stdio: ["pipe", "pipe", "ignore"], signal: AbortSignal.timeout(TIMEOUT_MS), windowsHide: true };
    const hook = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", event, "--client", "openclaw"], options);
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

/** Return whether a person takes part in the conversation. */
function isTalk(ctx) {
  const byUser = ctx.trigger === undefined || ctx.trigger === "user";
  return Boolean(ctx.sessionId) && byUser && !OF_A_PROGRAM.test(ctx.sessionKey ?? "");
}

/** Return the session as OpenClaw stores it. */
async function transcript(ctx) {
  const { readSessionTranscriptEvents } = await import("openclaw/plugin-sdk/session-transcript-runtime");
  const { agentId, sessionId, sessionKey } = ctx;
  const lines = await readSessionTranscriptEvents({ agentId, sessionId, sessionKey });
  return { id: sessionId, key: sessionKey, lines: lines.slice(-MAX_LINES) };
}

export default {
  id: "mcp-memory",
  name: "mcp-memory",
  description: "A memory that is used without being asked.",
  register(api) {
    const openings = new Map(); // what the model is told of each session, which OpenClaw forgets after every turn

    async function record(event, ctx) {
      if (!isTalk(ctx)) return;
      await ask(event, { session_id: ctx.sessionId, cwd: ctx.workspaceDir, conversation: await transcript(ctx) });
    }

    api.on("before_prompt_build", async (event, ctx) => {
      if (!isTalk(ctx)) return;
      const session_id = ctx.sessionId;
      if (!openings.get(session_id)) {
        const source = event.messages?.length ? "resume" : "startup";
        const answer = await ask("session_start", { session_id, cwd: ctx.workspaceDir, source });
        openings.set(session_id, answer.appendSystemContext);
      }
      const prompt = event.currentUserMessage ?? event.prompt;
      const answer = await ask("before_prompt_build", { session_id, prompt });
      return { ...answer, appendSystemContext: openings.get(session_id) };
    });

    api.on("agent_end", (_event, ctx) => record("agent_end", ctx));
    api.on("before_compaction", (_event, ctx) => record("before_compaction", ctx));
    api.on("after_compaction", async (_event, ctx) => {
      const { sessionId, workspaceDir } = ctx;
      const answer = await ask("session_start", { session_id: sessionId, cwd: workspaceDir, source: "compact" });
      if (openings.has(ctx.sessionId)) openings.set(ctx.sessionId, answer.appendSystemContext);
    });
    api.on("session_end", async (event) => {
      if (openings.delete(event.sessionId)) await ask("session_end", { session_id: event.sessionId });
    });

    api.registerAgentToolResultMiddleware(
      async (event, ctx) => {
        const content = event.result?.content;
        if (event.isError || !isTalk(ctx) || JSON.stringify(content ?? "").length < SMALLEST) return;
        const answer = await ask("tool_result", {
          session_id: ctx.sessionId,
          tool_name: event.toolName,
          tool_input: event.args,
          tool_use_id: event.toolCallId,
          tool_response: content,
        });
        if (answer.content) return { result: { ...event.result, content: answer.content } };
      },
      { runtimes: ["openclaw", "codex"] },
    );
  },
};
