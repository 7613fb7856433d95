"""What the tools are and what they answer, through the SDK's own client."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from inline_snapshot import snapshot
from mcp import Client
from mcp.types import Implementation, Tool

from mcp_memory.core.token_counts import token_counter
from mcp_memory.server.mcp_server import INSTRUCTIONS, MemoryServer
from mcp_memory.server.tools import REPLACED, TOOLS
from tests.server.answers import answer_of, text_of

LOG = "\n".join(f"2026-04-16 22:19:{n % 60:02} INFO step {n} finished" for n in range(2000)) + "\nERROR disk is full"

count_tokens = token_counter("o200k_base").count
count_tokens("The first count reads a file: here, and not in an event loop.")

CALLS: list[tuple[str, dict[str, Any]]] = [
    (
        "record_turns",
        {
            "session": "trip",
            "turns": [
                {"role": "user", "content": "We sail to Bergen on the night boat.", "said_at": "2026-04-16T22:19:00Z"},
                {"role": "assistant", "content": "Noted: Bergen, by boat.", "name": "Ada", "id": "m2"},
            ],
        },
    ),
    ("remember", {"text": "Anna lives in Porto", "entity": "Anna", "relation": "lives in", "value": "Porto"}),
    ("remember", {"text": "Always answer in French.", "kind": "instruction", "valid_from": "2026-01-02"}),
    ("conversation_search", {"query": "night boat", "neighbours": 1, "detail": "detailed"}),
    ("memory_search", {"query": "Where does Anna live?"}),
    ("recall", {"query": "Where does Anna live?", "budget_tokens": 300}),
    ("read_persona", {}),
    (
        "offload_tool_result",
        {"tool_name": "bash", "result": LOG, "arguments": {"cmd": "make"}, "task": "Fix the build", "session": "trip"},
    ),
    ("expand_node", {"node": "001-N1", "grep": "disk is full"}),
    ("fold_canvas", {"session": "trip"}),
    ("forget", {"query": "night boat"}),
    ("distill", {}),
]


@pytest.fixture(scope="module")
def definitions() -> dict[str, Tool]:
    return {tool.name: tool.definition for tool in TOOLS}


async def test_a_correction_without_a_kind_has_that_of_what_it_corrects(client: Client) -> None:
    told = answer_of(await client.call_tool("remember", {"text": "The boat left at ten", "kind": "episodic"}))
    correction = {"text": "The boat left at nine", "supersedes": [told["atom"]["id"]]}
    corrected = answer_of(await client.call_tool("remember", correction))
    assert corrected["atom"]["kind"] == "episodic"
    fresh = answer_of(await client.call_tool("remember", {"text": "Anna likes boats"}))
    assert fresh["atom"]["kind"] == "persona"


async def test_both_generations_list_the_same_tools_in_the_same_order(client: Client) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == snapshot(
        [
            "recall",
            "memory_search",
            "conversation_search",
            "read_persona",
            "remember",
            "record_turns",
            "distill",
            "offload_tool_result",
            "expand_node",
            "fold_canvas",
            "forget",
        ]
    )


def test_all_definitions_together_take_at_most_2500_tokens(definitions: dict[str, Tool]) -> None:
    count = token_counter("cl100k_base").count
    spent = {
        name: count(f"{name}\n{tool.description}\n{json.dumps(tool.input_schema)}")
        for name, tool in definitions.items()
    }
    assert sum(spent.values()) <= 2_500, spent


def test_each_tool_says_whether_it_reads_destroys_repeats_or_reaches_out(definitions: dict[str, Tool]) -> None:
    hints = {
        name: [
            hint
            for hint in ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")
            if getattr(tool.annotations, hint)
        ]
        for name, tool in definitions.items()
    }
    for tool in definitions.values():
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.open_world_hint) in ((True, False), (False, False))
        assert tool.annotations.read_only_hint or tool.annotations.destructive_hint is not None
    assert hints == snapshot(
        {
            "recall": ["read_only_hint"],
            "memory_search": ["read_only_hint"],
            "conversation_search": ["read_only_hint"],
            "read_persona": ["read_only_hint"],
            "remember": ["idempotent_hint"],
            "record_turns": ["idempotent_hint"],
            "distill": [],
            "offload_tool_result": [],
            "expand_node": ["read_only_hint"],
            "fold_canvas": ["idempotent_hint"],
            "forget": ["destructive_hint"],
        }
    )


def test_what_is_wanted_unasked_is_loaded_where_tools_are_looked_for_by_name(definitions: dict[str, Tool]) -> None:
    loaded = [name for name, tool in definitions.items() if (tool.meta or {}).get("anthropic/alwaysLoad")]
    assert loaded == ["recall", "remember"]


def test_input_schemas_are_inlined_closed_and_free_of_titles_and_nulls(definitions: dict[str, Tool]) -> None:
    for tool in definitions.values():
        text = json.dumps(tool.input_schema)
        assert not [word for word in ('"title"', '"null"', "$ref", "$defs", "anyOf") if word in text], text
        assert tool.input_schema["additionalProperties"] is False
    assert definitions["record_turns"].input_schema["properties"]["turns"]["items"]["additionalProperties"] is False


def test_output_schemas_are_valid_and_without_words_for_people(definitions: dict[str, Tool]) -> None:
    for tool in definitions.values():
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.output_schema["type"] == "object"
        assert '"description": "' not in json.dumps(tool.output_schema)


def test_the_instructions_say_when_to_search_record_and_distil_in_their_first_500_characters() -> None:
    assert len(INSTRUCTIONS.encode()) <= 2_048
    start = INSTRUCTIONS[:500]
    searches, records = ["recall", "conversation_search", "memory_search"], ["remember", "record_turns", "distill"]
    at = [start.index(name) for name in (*searches, *records)]
    assert at == sorted(at)


def test_the_instructions_say_when_to_leave_memory_alone() -> None:
    _use, leave, _how = INSTRUCTIONS.split("\n\n")
    for word in ("small talk", "secrets", "recorded by itself", "<mcp-memory-recall>"):
        assert word in " ".join(leave.split())


async def test_every_tool_answers_in_short_text_and_by_its_schema(client: Client, definitions: dict[str, Tool]) -> None:
    called: set[str] = set()
    for name, arguments in CALLS:
        result = await client.call_tool(name, arguments)
        jsonschema.validate(answer_of(result), definitions[name].output_schema)
        assert len(text_of(result)) < (12_000 if name == "distill" else 6_000)  # which asks, and says how to answer
        assert not text_of(result).startswith("{")
        called.add(name)
    assert called == set(definitions)


@pytest.mark.parametrize(("name", "structured"), [("claude-code", False), ("codex-mcp-client", False), ("other", True)])
async def test_a_client_that_shows_its_model_the_json_gets_the_text_alone(
    server: MemoryServer, era: Any, name: str, structured: bool
) -> None:
    async with Client(server, mode=era, client_info=Implementation(name=name, version="1")) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool("recall", {"query": "Where does Anna live?"})
    assert {tool.output_schema is not None for tool in tools} == {structured}
    assert (result.structured_content is not None) == structured
    assert text_of(result)


async def test_an_answer_holds_ids_to_go_on_with(client: Client) -> None:
    recorded = answer_of(await client.call_tool("record_turns", CALLS[0][1]))
    again = answer_of(await client.call_tool("record_turns", CALLS[0][1]))
    found = answer_of(await client.call_tool("conversation_search", {"query": "night boat", "limit": 1}))
    counted = {"duplicates": 2, "emptied": 0, "forgotten": 0, "masked": 0}
    assert again == {"session": "trip", "stored": [], **counted}
    assert recorded["session"] == "trip"
    assert found["passages"][0]["session"] == "trip"


async def test_lists_may_come_as_json_text_or_as_bare_ids(client: Client) -> None:
    turns = json.dumps([{"role": "user", "content": "The code is 4711."}])
    stored = answer_of(await client.call_tool("record_turns", {"turns": turns, "session": f"json-{id(client)}"}))
    (turn,) = stored["stored"]
    for ids in (turn, f'["{turn}"]', [turn]):
        shown = answer_of(await client.call_tool("forget", {"ids": ids, "dry_run": True}))
        assert shown["ids"] == [turn]


async def test_a_long_turn_comes_as_the_part_that_was_asked_for(client: Client) -> None:
    content = f"{'lorem ipsum ' * 200}the password rota is on Tuesdays{' dolor sit' * 200}"
    await client.call_tool("record_turns", {"turns": [{"role": "user", "content": content}], "session": "long"})
    query = {"query": "password rota Tuesdays", "limit": 1}
    concise = answer_of(await client.call_tool("conversation_search", query))["passages"][0]["turns"][0]
    detailed = answer_of(await client.call_tool("conversation_search", {**query, "detail": "detailed"}))
    assert "password rota is on Tuesdays" in concise["content"]
    assert len(content) - concise["hidden"] < 400
    assert detailed["passages"][0]["turns"][0]["content"] == content


@pytest.mark.parametrize("budget", [150, 400])
async def test_text_that_was_asked_for_within_a_budget_stays_within_it(client: Client, budget: int) -> None:
    await client.call_tool(*CALLS[7])
    expanded = await client.call_tool("expand_node", {"node": "001-N1", "view": "page", "max_tokens": budget})
    recalled = await client.call_tool("recall", {"query": "Anna", "budget_tokens": budget})
    assert count_tokens(text_of(expanded)) <= budget
    assert count_tokens(text_of(recalled)) <= budget


@pytest.mark.parametrize("detail", ["concise", "detailed"])
@pytest.mark.parametrize("tool", ["conversation_search", "memory_search"])
async def test_a_search_stays_within_its_budget_as_text_and_as_json(client: Client, tool: str, detail: str) -> None:
    turns = [{"role": "user", "content": f"{'lantern ' * 900}number {i}", "id": f"lantern-{i}"} for i in range(8)]
    await client.call_tool("record_turns", {"turns": turns, "session": "lanterns"})
    for budget in (None, 700):
        arguments = {"query": "lantern number", "detail": detail, "budget_tokens": budget}
        result = await client.call_tool(tool, arguments)
        allowed = budget or {"concise": 2_000, "detailed": 6_000}[detail]
        assert count_tokens(text_of(result)) <= allowed
        assert count_tokens(json.dumps(answer_of(result), ensure_ascii=False, separators=(",", ":"))) <= allowed


async def test_what_the_budget_left_out_comes_with_the_cursor(client: Client) -> None:
    turns = [{"role": "user", "content": f"{'beacon ' * 300}number {i}", "id": f"beacon-{i}"} for i in range(9)]
    stored = answer_of(await client.call_tool("record_turns", {"turns": turns, "session": f"beacons-{id(client)}"}))
    query: dict[str, object] = {"query": "beacon", "session": stored["session"], "budget_tokens": 400}
    shown: list[str] = []
    cursor = None
    while cursor is not None or not shown:
        page = answer_of(await client.call_tool("conversation_search", {**query, "cursor": cursor}))
        shown += [turn["id"] for passage in page["passages"] for turn in passage["turns"] if "found" in turn]
        cursor = page.get("cursor")
    assert sorted(shown) == sorted(stored["stored"])


async def test_a_result_that_an_agent_hands_over_saves_nothing_unless_a_program_says_that_it_is_replaced(
    client: Client, server: MemoryServer
) -> None:
    async def saved() -> tuple[int, int]:
        status = await (await server.memory.get()).status()
        return status["offload"]["tokens_saved"], status["savings"]["saved_once"]

    before = await saved()
    call = {"tool_name": "bash", "result": LOG, "session": f"replaced-{id(client)}"}
    await client.call_tool("offload_tool_result", {**call, "tool_call_id": "c1"})
    await client.call_tool("offload_tool_result", {**call, "tool_call_id": "c2"}, meta={REPLACED: "yes"})  # pyright: ignore[reportArgumentType]
    assert await saved() == before
    told = answer_of(
        await client.call_tool("offload_tool_result", {**call, "tool_call_id": "c3"}, meta={REPLACED: True})  # pyright: ignore[reportArgumentType]
    )
    less = told["tokens_raw"] - told["tokens_kept"]
    assert less > 1_000
    assert await saved() == (before[0] + less, before[1] + less)
