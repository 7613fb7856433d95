"""What Gemini CLI's logs say, a line at a time or as one document."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.integrations.importers.agent_logs import gemini_records, is_gemini_line
from mcp_memory.integrations.importers.records import ImportedResult, ImportedTurn
from tests.integrations.importers.agents import LONG, at, followed, records_of, refs, turns

META = {"sessionId": "g1", "projectHash": "ab", "startTime": at(0), "kind": "main"}


def message(kind: str, content: Any, id: str = "m1", **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": at(0), "type": kind, "content": content, **more}


records = partial(records_of, gemini_records)


def turns_of(*lines: Any) -> list[tuple[str, str]]:
    return [(record.role, record.content) for record in records(META, *lines) if isinstance(record, ImportedTurn)]


def test_a_message_is_a_turn_whether_its_content_is_a_string_a_part_or_parts() -> None:
    for content in ("Hello", {"text": "Hello"}, [{"text": "Hello"}], ["Hello", {"inlineData": {}}]):
        assert turns_of(message("user", content)) == [("user", "Hello")]
    assert turns_of(message("gemini", [{"text": "Hm.", "thought": True}, {"text": "Hi!"}])) == [("assistant", "Hi!")]


def test_texts_added_by_hooks_and_files_are_removed_from_the_users_words() -> None:
    parts = [
        {"text": "<hook_context>&lt;recall&gt;</hook_context>\n\nHello"},
        {"text": "<hook_context>x</hook_context>"},
    ]
    assert turns_of(message("user", parts)) == [("user", "Hello")]
    shown = message("user", "Hello @a.py\n--- Content of a.py ---\n…", displayContent=[{"text": "Hello @a.py"}])
    assert turns_of(shown) == [("user", "Hello @a.py")]


@pytest.mark.parametrize(
    "line",
    [
        message("info", "Update available"),
        message("error", "Quota"),
        message("gemini", ""),
        message("user", "<session_context>\nThis is the Gemini CLI.\n</session_context>"),
        message("user", "/compress"),
        message("user", "/chat save x"),
        message("user", [{"functionResponse": {"name": "x", "response": {"output": "y"}}}]),
        {"$set": {"lastUpdated": at(1)}},
        {"$rewindTo": "m1"},
        {"$set": {"messages": [message("user", "Hello")]}},
    ],
)
def test_hidden_and_repeated_lines_are_not_turns(line: dict[str, Any]) -> None:
    assert records(META, line) == []


def test_a_path_at_the_start_is_not_a_command() -> None:
    assert turns_of(message("user", "/etc/hosts is wrong")) == [("user", "/etc/hosts is wrong")]


def test_of_a_compression_only_the_summary_is_taken() -> None:
    snapshot = message("user", [{"text": "<state_snapshot>Berth 3</state_snapshot>"}], "new-1")
    (turn,) = records(META, {"$set": {"messages": [snapshot, message("gemini", "Got it.", "new-2")]}})
    assert isinstance(turn, ImportedTurn)
    assert (turn.role, turn.name, turn.content) == ("system", "summary", "<state_snapshot>Berth 3</state_snapshot>")


def test_nothing_is_taken_of_a_sub_agent() -> None:
    assert records({**META, "kind": "subagent"}, message("user", "Hello")) == []


def call(result: Any, **more: Any) -> dict[str, Any]:
    made = {"id": "c1", "name": "read_file", "args": {"path": "a"}, "result": result, "status": "success", **more}
    return message("gemini", "", toolCalls=[made])


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ([{"functionResponse": {"response": {"output": "one"}}}], "one"),
        ([{"functionResponse": {"response": {"error": "none"}}}], "none"),
        ([{"functionResponse": {"response": {"found": 2}}}], '{"found": 2}'),
        ({"functionResponse": {"response": {"output": "<untrusted_context>\none\n</untrusted_context>"}}}, "one"),
        ([{"functionResponse": {"response": {"output": "one\n<hook_context>x</hook_context>"}}}], "one"),
        ("one", "one"),
        ([{"text": "one"}, {"inlineData": {}}, 5], "one"),
    ],
)
def test_a_result_is_identified_by_its_call_and_has_no_surrounding_text(result: Any, text: str) -> None:
    (result_record,) = records(META, call(result))
    assert isinstance(result_record, ImportedResult)
    assert (result_record.text, result_record.tool, result_record.arguments, result_record.call) == (
        text,
        "read_file",
        {"path": "a"},
        "c1",
    )


@pytest.mark.parametrize("result", [None, [], [{"functionResponse": {"response": {"output": " "}}}], 5])
def test_a_call_without_an_answer_tells_nothing(result: Any) -> None:
    assert records(META, call(result)) == []


def test_a_call_that_is_at_work_tells_nothing_yet() -> None:
    assert records(META, call("half", status="executing")) == []


def test_an_older_log_is_one_document_and_read_whole_when_it_has_changed(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "session-2026-11-20T09-00-595f5ec3.json"
    answer = [{"functionResponse": {"response": {"output": LONG}}}]
    talk = [message("user", "Hello", "m1"), {**call(answer), "id": "m2"}, message("gemini", "Hi!", "m3")]
    path.write_text(json.dumps({**META, "messages": talk[:2]}, indent=2), encoding="utf-8")
    first, same = followed(home, path, path)
    assert (first.stored, first.kept, same.turns) == (1, 1, 0)
    whole = json.dumps({**META, "messages": talk}, indent=2)
    path.write_text(whole[:-40], encoding="utf-8")
    (torn,) = followed(home, path, client="gemini")
    assert (torn.torn, torn.stored) == (True, 0)
    path.write_text(whole, encoding="utf-8")
    (grown,) = followed(home, path)
    assert (grown.stored, grown.duplicates, grown.kept) == (1, 1, 0)
    (stored,) = turns(home).values()
    assert stored == [("user", "Hello"), ("assistant", "Hi!")]
    assert refs(home) == [LONG.encode()]


def test_a_result_that_the_client_cut_is_kept_whole(home: Path, tmp_path: Path) -> None:
    cut = "Output too large. Showing first 8,000 and last 32,000 characters. For full output see: /x/y/list_1.txt\n"
    folder = tmp_path / "tool-outputs" / "session-g1"
    folder.mkdir(parents=True)
    (folder / "list_1.txt").write_text(LONG * 2, encoding="utf-8")
    path = tmp_path / "chats" / "session-1.jsonl"
    path.parent.mkdir()
    lines = [META, message("user", "Hello"), call([{"functionResponse": {"response": {"output": cut + LONG}}}])]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    followed(home, path)
    assert refs(home) == [(LONG * 2).encode()]


@pytest.mark.parametrize("value", [5, {"sessionId": "x"}, {"projectHash": "x"}, {"id": "x", "type": "user"}])
def test_other_histories_are_not_recognised_as_such_a_log(value: Any) -> None:
    assert not is_gemini_line(value)
