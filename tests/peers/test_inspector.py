"""The inspector's command line, over stdio, in both generations of the protocol.

Its strict mode refuses tool schemas that some clients cannot read. Each call starts the server anew on the
same home, as a client does that starts it once a session.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.server.mcp_app import URI
from scripts.install_peers import INSPECTOR
from tests.peers.processes import run_peer

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]

Inspect = Callable[..., Any]

LOG = "\n".join(f"line {n}: connection reset by 10.0.0.7" for n in range(200))

# In an order in which each finds what the ones before it left behind.
CALLS: dict[str, dict[str, Any]] = {
    "record_turns": {
        "session": "s1",
        "turns": [
            {"role": "user", "content": "My sister Ada moved to Lisbon in May."},
            {"role": "assistant", "content": "Noted: Ada lives in Lisbon now."},
        ],
    },
    "remember": {"text": "Ada lives in Lisbon.", "kind": "persona"},
    "conversation_search": {"query": "where does Ada live"},
    "memory_search": {"query": "Ada"},
    "recall": {"query": "Ada", "budget_tokens": 400},
    "read_persona": {},
    "distill": {},
    "offload_tool_result": {
        "tool_name": "read_log",
        "result": LOG,
        "task": "Find the reset",
        "step": "Read the log",
    },
    "expand_node": {"node": "001-N1"},
    "fold_canvas": {"action": "fold"},
    "forget": {"query": "Ada", "dry_run": True},
}


@pytest.fixture(params=["legacy", "modern"])
def inspect(request: pytest.FixtureRequest, server_command: list[str], tmp_path: Path) -> Inspect:
    """Run one method against the server on a home of this test and return its result."""
    return partial(_inspect, server_command, tmp_path, request.param)


def _inspect(command: list[str], folder: Path, era: str, method: str, *options: str) -> Any:
    target = ["-e", f"MCP_MEMORY_HOME={folder / 'home'}", "--", *command]
    era_and_form = ["--protocol-era", era, "--format", "json", "--connect-timeout", "60000"]  # on a busy machine
    flags = ["--cli", *era_and_form, "--method", method, *options]
    run = run_peer(INSPECTOR, *flags, *target, cwd=folder)
    assert run.returncode == 0, run.stderr + run.stdout
    said = json.loads(run.stdout)
    return said.get("result", said.get("appInfo"))


def test_the_inspector_finds_no_portability_problem_in_the_tool_schemas(inspect: Inspect) -> None:
    tools = inspect("tools/list", "--strict")["tools"]
    assert {tool["name"] for tool in tools} == set(CALLS)


def test_each_tool_answers_the_inspector_with_text_and_structure(inspect: Inspect) -> None:
    for tool, arguments in CALLS.items():
        options = ["--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
        answer = inspect("tools/call", *options)
        assert (tool, bool(answer["content"]), bool(answer["structuredContent"])) == (tool, True, True)


def test_the_inspector_reads_the_resources_and_gets_the_prompts(inspect: Inspect) -> None:
    uris = {resource["uri"] for resource in inspect("resources/list")["resources"]}
    assert uris == {"memory://persona", "memory://canvas/active", "memory://status"}
    assert inspect("resources/read", "--uri", "memory://persona")["contents"][0]["uri"] == "memory://persona"
    names = {prompt["name"] for prompt in inspect("prompts/list")["prompts"]}
    assert names == {"recall", "continue_task", "wrap_up"}
    assert inspect("prompts/get", "--prompt-name", "wrap_up")["messages"]


def test_the_inspector_finds_the_app_when_it_shows_apps_and_no_such_tool_otherwise(inspect: Inspect) -> None:
    call = ["--tool-name", "show_memory", "--tool-args-json", json.dumps({"what": "review"})]
    assert inspect("tools/call", *call, "--advertise-apps", "--app-info") == {
        "hasApp": True,
        "toolName": "show_memory",
        "resourceUri": URI,
        "visibility": ["model", "app"],
        "prefersBorder": True,
        "resourceMimeType": "text/html;profile=mcp-app",
    }
    assert inspect("tools/call", *call, "--advertise-apps")["structuredContent"] == {"path": "/review"}
    names = {tool["name"] for tool in inspect("tools/list", "--advertise-apps", "--strict")["tools"]}
    assert names == {*CALLS, "show_memory", "memory_view"}
