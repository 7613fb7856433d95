"""The plugins' own code, with a program in place of `mcp-memory` that answers with what it was asked, or with none."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.integrations.clients.programs import client_named, plugin_contents
from scripts.install_peers import node

ECHO = """import json, sys
event, payload = sys.argv[2], json.load(sys.stdin)
said = json.dumps([sys.argv[1:], payload])
keys = ("appendSystemContext", "prependContext", "context", "text", "output", "result")
own = {"tool_result": ["content"], "session_start": keys[:1], "before_prompt_build": keys[1:2]}
print(json.dumps({key: said for key in own.get(event, keys)}))
"""
LARGE = "word " * 1_000

OPENCLAW = """
const { default: plugin } = await import(process.argv[1]);
const on = {};
plugin.register({ on: (name, handler) => (on[name] = handler),
  registerAgentToolResultMiddleware: (handler, options) => (on.tool = handler) });
const ctx = { sessionId: "s1", sessionKey: "agent:main:s1", trigger: "user", workspaceDir: "/quay" };
const result = { content: [{ type: "text", text: "word ".repeat(1000) }] };
console.log(JSON.stringify({
  prompt: await on.before_prompt_build({ prompt: "When?", messages: [] }, ctx),
  again: await on.before_prompt_build({ prompt: "Then?", messages: [1] }, ctx),
  job: (await on.before_prompt_build({ prompt: "Go.", messages: [] }, { ...ctx, sessionKey: "agent:main:cron:1" })) ?? null,
  tool: (await on.tool({ toolName: "exec", toolCallId: "c1", args: { command: "x" }, result }, ctx)) ?? null,
  small: (await on.tool({ toolName: "exec", toolCallId: "c2", args: {}, result: { content: [] } }, ctx)) ?? null,
}));
"""
OPENCODE = """
const { McpMemory } = await import(process.argv[1]);
const session = { get: async () => ({ data: { id: "s1" } }), messages: async () => ({ data: [] }) };
const hooks = await McpMemory({ client: { session }, directory: "/quay" });
const parts = [{ id: "prt_1", type: "text", text: "When?" }];
await hooks["chat.message"]({ sessionID: "s1" }, { message: { id: "m1" }, parts });
const output = { output: "word ".repeat(1000), metadata: {} };
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s1", callID: "c1", args: { command: "x" } }, output);
console.log(JSON.stringify({ parts, output: output.output }));
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Callable[..., Path]:
    """Write the plugin of a client, as it is installed, into a folder; its hooks start `program`."""
    echo = tmp_path / "echo.py"
    echo.write_text(ECHO)

    def write(client: str, *program: str) -> Path:
        command = program or (sys.executable, str(echo))
        for name, content in plugin_contents(client_named(client), command).items():
            (tmp_path / name).write_bytes(content)
        return tmp_path

    return write


def run(script: str, module: Path) -> dict[str, Any]:
    done = subprocess.run(
        [str(node()), "--input-type=module", "--eval", script, module.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def hook(client: str, event: str, **payload: Any) -> str:
    """Return what the program says of one call."""
    folder = {"cwd": str(Path.cwd())} if client == "hermes" else {}
    return json.dumps([["hook", event, "--client", client], {**folder, **payload}])


def test_openclaw_s_plugin_asks_and_gives_the_answers_to_the_model(plugin: Callable[..., Path]) -> None:
    given = run(OPENCLAW, plugin("openclaw") / "index.js")
    opening = hook("openclaw", "session_start", session_id="s1", cwd="/quay", source="startup")
    call = {"session_id": "s1", "tool_name": "exec", "tool_input": {"command": "x"}, "tool_use_id": "c1"}
    content = [{"type": "text", "text": LARGE}]
    assert given == {
        "prompt": {
            "appendSystemContext": opening,
            "prependContext": hook("openclaw", "before_prompt_build", session_id="s1", prompt="When?"),
        },
        "again": {
            "appendSystemContext": opening,
            "prependContext": hook("openclaw", "before_prompt_build", session_id="s1", prompt="Then?"),
        },
        "job": None,
        "tool": {"result": {"content": hook("openclaw", "tool_result", **call, tool_response=content)}},
        "small": None,
    }


def test_opencode_s_plugin_asks_and_gives_the_answers_to_the_model(plugin: Callable[..., Path]) -> None:
    given = run(OPENCODE, plugin("opencode") / "mcp-memory.js")
    opening = hook("opencode", "session.created", session_id="s1", cwd="/quay", source="startup")
    recalled = hook("opencode", "chat.message", session_id="s1", prompt="When?")
    typed, added = given["parts"]
    assert typed == {"id": "prt_1", "type": "text", "text": "When?"}
    assert (added["text"], added["synthetic"], added["messageID"]) == (f"{opening}\n\n{recalled}", True, "m1")
    call = {"session_id": "s1", "tool_name": "bash", "tool_input": {"command": "x"}, "tool_use_id": "c1"}
    assert given["output"] == hook("opencode", "tool.execute.after", **call, tool_response=LARGE)


class HermesContext:
    """What Hermes gives to `register`."""

    def __init__(self) -> None:
        self.hooks: dict[str, Callable[..., Any]] = {}

    def register_hook(self, name: str, callback: Callable[..., Any]) -> None:
        self.hooks[name] = callback


def load_hermes(folder: Path) -> dict[str, Callable[..., Any]]:
    spec = importlib.util.spec_from_file_location("hermes_plugin_of_a_test", folder / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ctx = HermesContext()
    module.register(ctx)
    return ctx.hooks


def test_hermes_plugin_asks_and_gives_the_answers_to_the_model(plugin: Callable[..., Path]) -> None:
    hooks = load_hermes(plugin("hermes"))
    opening = hook("hermes", "on_session_start", session_id="s1", source="startup")
    recalled = hook("hermes", "pre_llm_call", session_id="s1", prompt="When?")
    told = hooks["pre_llm_call"](session_id="s1", user_message="When?", is_first_turn=True, platform="cli")
    assert told == {"context": f"{opening}\n\n{recalled}"}
    again = hooks["pre_llm_call"](session_id="s1", user_message="When?", is_first_turn=False, platform="cli")
    assert again == {"context": recalled}
    assert hooks["pre_llm_call"](session_id="s2", user_message="Go.", platform="cron") is None
    result = json.dumps({"output": LARGE, "exit_code": 0})
    call = {"session_id": "s1", "tool_name": "terminal", "tool_input": {"command": "x"}, "tool_use_id": "c1"}
    replaced = hooks["transform_tool_result"](
        tool_name="terminal", args={"command": "x"}, result=result, session_id="s1", tool_call_id="c1", status="ok"
    )
    assert replaced == hook("hermes", "transform_tool_result", **call, tool_response=json.loads(result))
    assert hooks["transform_tool_result"](tool_name="terminal", result="short", session_id="s1") is None


def test_without_the_command_the_model_gets_nothing_and_the_turn_goes_on(plugin: Callable[..., Path]) -> None:
    missing = ("/nowhere/mcp-memory",)
    given = run(OPENCLAW, plugin("openclaw", *missing) / "index.js")
    assert given == {"prompt": {}, "again": {}, "job": None, "tool": None, "small": None}
    given = run(OPENCODE, plugin("opencode", *missing) / "mcp-memory.js")
    assert given == {"parts": [{"id": "prt_1", "type": "text", "text": "When?"}], "output": LARGE}
    hooks = load_hermes(plugin("hermes", *missing))
    assert hooks["pre_llm_call"](session_id="s1", user_message="When?", is_first_turn=True) is None
    assert hooks["transform_tool_result"](tool_name="terminal", result=LARGE, session_id="s1") is None
