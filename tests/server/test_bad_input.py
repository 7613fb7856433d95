"""Bad calls get a sentence that says what to do next, and leave nothing behind."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, EmptyResult, Implementation, Request

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.server.mcp_server import MemoryServer
from tests.server.answers import WAIT, answer_of, error_of, files_under

SAID = [{"role": "user", "content": "hello there"}]


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> CallToolResult:
    with anyio.fail_after(WAIT):
        return await client.call_tool(tool, arguments)


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        (
            "remember",
            {"text": "x", "foo": 1},
            snapshot(
                "remember has no argument 'foo'; it takes: text, kind, entity, relation, value, supersedes, "
                "valid_from, valid_until, cites, source."
            ),
        ),
        ("remember", {}, snapshot("remember needs 'text'.")),
        (
            "remember",
            {"text": "x", "kind": "rule"},
            snapshot("kind must be one of 'persona', 'episodic', 'instruction' or 'promise', not 'rule'."),
        ),
        ("remember", {"text": ["x"]}, snapshot("text must be a string, not a list.")),
        ("conversation_search", {"query": "x", "limit": 0}, snapshot("limit must be at least 1, not 0.")),
        ("conversation_search", {"query": "x", "limit": 9999}, snapshot("limit must be at most 50, not 9999.")),
        (
            "conversation_search",
            {"query": "x", "limit": "many"},
            snapshot("limit must be a whole number, not 'many'."),
        ),
        (
            "record_turns",
            {"turns": [{"role": "robot", "content": 7, "mood": "good"}]},
            snapshot(
                "turns[0].role must be one of 'user', 'assistant', 'system' or 'tool', not 'robot'. "
                "turns[0].content must be a string, not a number. "
                "turns[0] has no field 'mood'; it takes: role, content, name, said_at, id."
            ),
        ),
        (
            "record_turns",
            {"turns": '[{"role":'},
            snapshot(
                "turns is not valid JSON (EOF while parsing a value at line 1 column 9). Send a list of {role, content}."
            ),
        ),
        ("record_turns", {"turns": "{}"}, snapshot("turns must be a list, not an object.")),
        ("record_turns", {"turns": []}, snapshot("turns is empty; send at least one.")),
        (
            "offload_tool_result",
            {"tool_name": "bash", "result": "x", "arguments": "{oops"},
            snapshot("arguments is not valid JSON (key must be a string at line 1 column 2). Send an object."),
        ),
        (
            "offload_tool_result",
            {"tool_name": "bash", "result": {"a": 1}},
            snapshot("result must be a string, not an object."),
        ),
        (
            "expand_node",
            {},
            snapshot("expand_node takes either node (such as 003-N4) or ref (such as r-9f2c1a7b3d4e)."),
        ),
        ("forget", {"dry_run": "perhaps", "ids": ["t1"]}, snapshot("dry_run must be true or false, not 'perhaps'.")),
        (
            "forgett",
            {},
            snapshot(
                "There is no tool 'forgett'. Tools: recall, memory_search, conversation_search, read_persona, remember, "
                "record_turns, distill, offload_tool_result, expand_node, fold_canvas, forget."
            ),
        ),
    ],
)
async def test_a_wrong_call_is_told_what_is_wrong_and_what_is_allowed(
    client: Client, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    assert error_of(await call(client, tool, arguments)) == sentence


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("record_turns", {"turns": SAID, "session": "../../x"}),
        ("record_turns", {"turns": SAID, "session": "/etc/passwd"}),
        ("record_turns", {"turns": SAID, "session": "con"}),
        ("record_turns", {"turns": [{"role": "user", "content": "half \ud83d"}]}),
        ("remember", {"text": ""}),
        ("remember", {"text": "half \ud83d"}),
        ("remember", {"text": "x", "supersedes": ["a999"]}),
        ("remember", {"text": "x", "valid_from": "yesterdayish"}),
        ("conversation_search", {"query": "x", "since": "soon"}),
        ("conversation_search", {"query": "x", "cursor": "nonsense"}),
        ("memory_search", {"query": "x", "as_of": "never"}),
        ("memory_search", {"query": "x", "scene": "garden"}),
        ("read_persona", {"section": "No such heading"}),
        ("offload_tool_result", {"tool_name": "bash", "result": ""}),
        ("offload_tool_result", {"tool_name": "", "result": "x"}),
        ("offload_tool_result", {"tool_name": "bash", "result": "x", "task": "../../x"}),
        ("offload_tool_result", {"tool_name": "bash", "result": "x", "session": "a/b"}),
        ("offload_tool_result", {"tool_name": "bash", "result": "x", "after": ["009-N9"]}),
        ("expand_node", {"node": "404-N4"}),
        ("expand_node", {"node": "../../etc/passwd"}),
        ("expand_node", {"ref": "r-000000000000"}),
        ("fold_canvas", {"task": "no such task", "action": "fold"}),
        ("forget", {"ids": ["t999"]}),
        ("forget", {}),
        ("forget", {"undo": "x999"}),
    ],
)
async def test_what_memory_refuses_reaches_the_agent_as_its_own_sentence(
    client: Client, settings: Settings, tool: str, arguments: dict[str, Any]
) -> None:
    await call(client, "read_persona", {})
    before = files_under(settings.home)
    sentence = error_of(await call(client, tool, arguments))
    assert not sentence.startswith(("Error executing", "Internal error")), sentence
    assert sentence.endswith(".")
    assert len(sentence) < 500
    assert files_under(settings.home) == before


@pytest.mark.parametrize("value", ["x" * 1_000_000, ["x" * 1_000_000], {"deep": "x" * 1_000_000}])
async def test_a_giant_wrong_value_is_never_echoed(client: Client, value: object) -> None:
    for tool, name in (("remember", "kind"), ("conversation_search", "limit"), ("record_turns", "turns")):
        assert len(error_of(await call(client, tool, {"text": "x", "query": "x", name: value}))) < 400


@pytest.mark.parametrize(
    "query", ['"unclosed', "a AND", "NEAR(", "*", "col:x", "\x00", "🦜" * 50, "(((", "-x", "half \ud83d"]
)
async def test_no_query_text_breaks_a_search(client: Client, query: str) -> None:
    for tool in ("conversation_search", "memory_search", "recall"):
        answer_of(await call(client, tool, {"query": query}))


async def test_nul_and_half_surrogates_in_a_result_survive_and_can_be_shown(client: Client) -> None:
    offloaded = answer_of(
        await call(client, "offload_tool_result", {"tool_name": "cat", "result": "a\x00b \ud83d c\n" * 50})
    )
    expanded = answer_of(await call(client, "expand_node", {"ref": offloaded["ref"]}))
    assert "a\x00b" in expanded["text"]
    expanded["text"].encode()


async def test_a_client_with_a_name_of_megabytes_holds_nobody_up(server: MemoryServer) -> None:
    endless = Implementation(name="n" * 4_000_000, version="1")
    with anyio.fail_after(WAIT):
        async with Client(server, mode="legacy", client_info=endless) as client:
            for _ in range(40):
                await client.list_prompts()


async def test_a_failure_of_ours_is_logged_and_shows_nothing(
    client: Client, server: MemoryServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory = await server.memory.get()

    async def broken(**_arguments: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(memory, "read_persona", broken)
    with caplog.at_level(logging.ERROR):
        sentence = error_of(await call(client, "read_persona", {}))
    assert sentence == "Internal error in read_persona. Its traceback is in the server's log."
    failures = [record.exc_info[1] for record in caplog.records if record.exc_info]
    assert "secret detail" in [str(failure.__cause__) for failure in failures if failure]


@pytest.mark.files
async def test_a_home_that_cannot_be_opened_fails_each_call_until_it_can(tmp_path: Path, era: Any) -> None:
    blocked = tmp_path / "home"
    blocked.write_text("a file where the home should be")
    async with Client(MemoryServer(Settings(home=blocked, embedder="none")), mode=era) as client:
        assert "recall" in {tool.name for tool in (await client.list_tools()).tools}
        assert [resource.name for resource in (await client.list_resources()).resources] == [
            "persona.md",
            "active.mmd",
            "status.json",
        ]
        assert str(blocked) in error_of(await call(client, "recall", {"query": "x"}))
        blocked.unlink()
        answer_of(await call(client, "recall", {"query": "x"}))


KEY = "AKIA" + "Q7RZ5MDW3KXN8PLT"


async def test_a_key_in_the_name_of_what_is_not_there_is_not_said_again(home: Path) -> None:
    server = MemoryServer(load_settings({}, home=home, embedder="none"))
    asked: list[Callable[[Client], Awaitable[Any]]] = [
        lambda client: client.read_resource(f"memory://turn/{KEY}"),
        lambda client: client.read_resource(f"other://{KEY}"),
        lambda client: client.get_prompt(KEY),
        lambda client: client.session.send_request(Request(method=f"tools/{KEY}", params=None), EmptyResult),
    ]
    async with Client(server) as client:
        for ask in asked:
            with anyio.fail_after(WAIT), pytest.raises(MCPError) as raised:
                await ask(client)
            assert KEY not in f"{raised.value.error!r}"
