"""What lines of Codex's logs say."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from mcp_memory.integrations.importers.agent_logs import codex_records, is_codex_line
from mcp_memory.integrations.importers.records import ImportedResult, ImportedTurn
from tests.integrations.importers.agents import at, records_of

BESIDE = "internal_chat_message_metadata_passthrough"


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": at(0), "type": kind, "payload": payload}


def message(role: str, *words: str, **more: Any) -> dict[str, Any]:
    parts = [{"type": "input_text" if role == "user" else "output_text", "text": text} for text in words]
    return line("response_item", type="message", role=role, content=parts, **more)


META = line("session_meta", id="c1", source="cli")
TURN = line("turn_context", turn_id="t1")


records = partial(records_of, codex_records)


def turns_of(*lines: Any) -> list[tuple[str, str, str | None]]:
    return [(record.role, record.content, record.id) for record in records(*lines) if isinstance(record, ImportedTurn)]


def test_messages_are_known_by_their_turn_and_their_id_or_place_in_it() -> None:
    messages = [message("user", "Hello"), message("assistant", "Hi!", id="msg_1"), message("assistant", "Done.")]
    first = [("user", "Hello", "t1/1"), ("assistant", "Hi!", "t1/msg_1"), ("assistant", "Done.", "t1/3")]
    assert turns_of(META, TURN, *messages) == first
    next_turn = line("event_msg", type="task_started", turn_id="t2")
    assert turns_of(META, TURN, messages[0], next_turn, messages[0])[1] == ("user", "Hello", "t2/1")


def test_a_fork_that_copies_its_parents_lines_gives_them_the_same_ids() -> None:
    parent = [META, TURN, message("user", "Hello"), message("assistant", "Hi!")]
    fork = [line("session_meta", id="c2", forked_from_id="c1"), *parent]
    assert turns_of(*fork) == turns_of(*parent)
    assert {record.session for record in records(*fork) if isinstance(record, ImportedTurn)} == {"c2"}


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(message("developer", "Be brief."), id="instructions"),
        pytest.param(message("user", "<environment_context>\n<cwd>/x</cwd>\n</environment_context>"), id="environment"),
        pytest.param(
            message("user", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>..."), id="instructions of files"
        ),
        pytest.param(message("user", "<turn_aborted>\nstopped\n</turn_aborted>"), id="an interruption"),
        pytest.param(message("user", "x", **{BESIDE: {"content_item_kinds": ["hooks.context"]}}), id="a hook's words"),
        pytest.param({**message("assistant", "x"), "metadata": {"compaction_output": True}}, id="a raw summary"),
        pytest.param(line("response_item", type="reasoning", summary=[]), id="thoughts"),
        pytest.param(line("event_msg", type="agent_message", message="x"), id="an event that repeats"),
        pytest.param(line("event_msg", type="item_completed", item={"type": "AgentMessage", "id": "x"}), id="an item"),
        pytest.param(line("world_state", full=True), id="state"),
        pytest.param(line("response_item"), id="an empty item"),
        pytest.param({"timestamp": at(0), "type": "response_item", "payload": 5}, id="an odd item"),
    ],
)
def test_lines_without_words_of_a_person_or_model_are_not_turns(item: dict[str, Any]) -> None:
    assert records(META, TURN, item) == []


@pytest.mark.parametrize("about", [{"source": {"subagent": "review"}}, {"thread_source": "subagent"}])
def test_nothing_is_taken_of_a_sub_agent(about: dict[str, Any]) -> None:
    assert records(line("session_meta", id="c1", **about), TURN, message("user", "Hello")) == []


def test_a_result_is_yielded_whole_first_and_then_as_the_model_saw_it() -> None:
    call = line("response_item", type="function_call", name="exec_command", call_id="c", arguments='{"cmd": "ls"}')
    whole = line(
        "event_msg", type="item_completed", item={"type": "CommandExecution", "id": "c", "aggregated_output": "a\nb"}
    )
    shown = line("response_item", type="function_call_output", call_id="c", output="Exit code 0\na")
    results = [record for record in records(META, call, whole, shown) if isinstance(record, ImportedResult)]
    assert [(record.text, record.tool, record.arguments) for record in results] == [
        ("a\nb", "exec_command", {"cmd": "ls"}),
        ("Exit code 0\na", "exec_command", {"cmd": "ls"}),
    ]


def test_a_tool_of_a_server_is_named_with_its_server() -> None:
    call = {
        "type": "function_call",
        "name": "list_notes",
        "namespace": "mcp__notes",
        "call_id": "c",
        "arguments": "{}",
    }
    parts = [{"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": "data:"}]
    shown = line("response_item", type="function_call_output", call_id="c", output=parts)
    (result,) = records(META, line("response_item", **call), shown)
    assert isinstance(result, ImportedResult)
    assert (result.tool, result.text) == ("mcp__notes__list_notes", "one")
    item = {"type": "McpToolCall", "id": "d", "server": "notes", "tool": "list_notes", "arguments": {"n": 1}}
    ended = line(
        "event_msg", type="item_completed", item={**item, "result": {"content": [{"type": "text", "text": "two"}]}}
    )
    (alone,) = records(META, ended)
    assert isinstance(alone, ImportedResult)
    assert (alone.tool, alone.arguments, alone.text) == ("mcp__notes__list_notes", {"n": 1}, "two")


def test_other_calls_and_arguments_that_are_not_json_are_imported_unchanged() -> None:
    patch = line("response_item", type="custom_tool_call", name="apply_patch", call_id="p", input="*** Begin Patch")
    shell = line("response_item", type="local_shell_call", call_id="s", action={"type": "exec", "command": ["ls"]})
    odd = line("response_item", type="function_call", name="x", call_id="o", arguments="{")
    answers = [
        line("response_item", type="custom_tool_call_output", call_id="p", output="Done"),
        line("response_item", type="function_call_output", call_id="s", output={"content": "a", "success": True}),
        line("response_item", type="function_call_output", call_id="o", output="b"),
    ]
    results = [record for record in records(META, patch, shell, odd, *answers) if isinstance(record, ImportedResult)]
    assert [(record.tool, record.arguments, record.text) for record in results] == [
        ("apply_patch", "*** Begin Patch", "Done"),
        ("shell", {"type": "exec", "command": ["ls"]}, "a"),
        ("x", "{", "b"),
    ]


def test_a_compaction_is_stored_as_a_summary_without_its_introduction() -> None:
    before = "Another language model started to solve this problem and so on. Use it with your own analysis:\n"
    (turn,) = records(META, line("compacted", message=f"{before}Summary: three berths."))
    assert isinstance(turn, ImportedTurn)
    assert (turn.role, turn.name, turn.content) == ("system", "summary", "Summary: three berths.")
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{before}Three berths."}]}
    (summary,) = records(META, line("response_item", **item))
    assert isinstance(summary, ImportedTurn)
    assert (summary.role, summary.name, summary.content) == ("system", "summary", "Three berths.")
    assert records(META, line("compacted", message="", replacement_history=[])) == []


@pytest.mark.parametrize("value", [5, {"type": "message", "payload": {}}, {"type": "response_item", "payload": "x"}])
def test_other_histories_are_not_recognised_as_such_a_log(value: Any) -> None:
    assert not is_codex_line(value)
