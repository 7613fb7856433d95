"""Records of a Claude.ai export: the path to the last message, its words and attachments."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.importers.formats.claude_ai import FORMAT
from mcp_memory.integrations.importers.parts import ATTACHED_CHARS, BRANCHES, CALLS, HIDDEN, RESULTS, THOUGHTS
from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
)
from tests.integrations.importers.conftest import import_into, only_results, without_results
from tests.json_values import json_values

EXPORT = json.loads((Path(__file__).parents[3] / "fixtures/exports/claude-ai.json").read_text(encoding="utf-8"))


def of(value: Any, skipped: SkippedParts | None = None) -> list[Any]:
    """Return the turns and problems of a conversation."""
    return without_results(FORMAT.records, value, skipped)


def results(value: Any) -> list[ImportedResult]:
    return only_results(FORMAT.records, value)


def message(text: str, *, sender: str = "human", **more: Any) -> dict[str, Any]:
    return {"sender": sender, "text": text, **more}


def words(*messages: Any, **more: Any) -> list[str]:
    return [record.content for record in of({"chat_messages": list(messages), **more})]


def test_the_path_to_the_last_message_is_imported_and_the_other_messages_are_counted() -> None:
    skipped = SkippedParts()
    assert [(record.role, record.name, record.content) for record in of(EXPORT[0], skipped)] == [
        ("system", "title", "Letter to the landlord"),
        (
            "user",
            None,
            "Rewrite our lease letter. The landlord is Sr. Tavares.\n[attached: lease.txt]\n"
            "The rent is 640 euros, due on the 8th of each month.\n",
        ),
        (
            "assistant",
            None,
            "I read the lease first.\nThe letter asks Sr. Tavares to move the due date from the 8th to the 1st.",
        ),
        ("user", None, "[attached: text]\nPasted answer: I agree to the 1st. A. Tavares"),
        ("assistant", None, "He agreed. From May on the rent is due on the 1st."),
        ("user", None, "Thank him for me.\n[attached: signature.png]"),
    ]
    assert (skipped.left_out, skipped.parts) == ({BRANCHES: 2, CALLS: 1, THOUGHTS: 1}, 1)


def test_a_turn_has_the_id_and_the_time_of_its_message_and_the_session_of_its_conversation() -> None:
    last = of(EXPORT[0])[-1]
    assert last == ImportedTurn(
        where="line 1, [0].chat_messages[6]",
        role="user",
        content="Thank him for me.\n[attached: signature.png]",
        name=None,
        said_at=datetime(2026, 4, 11, 9, 4, tzinfo=UTC),
        id="9a3c7967-4497-7d49-bc43-799c9cb7a471",
        session="claude-ai-24663cbd",
        conversation=1,
        began=datetime(2026, 4, 11, 9, 0, 0, 77, tzinfo=UTC),
    )


def test_an_old_export_without_parts_and_parents_is_read_in_its_order() -> None:
    assert [(record.role, record.content) for record in of(EXPORT[1])] == [
        ("user", "How do I say kiln in Portuguese?"),
        ("assistant", "Forno."),
    ]


def test_a_conversation_that_never_began_holds_nothing() -> None:
    assert of(EXPORT[2]) == []


def test_the_last_message_is_the_leaf_that_the_export_names_or_the_newest_leaf() -> None:
    talk = [
        message("one", uuid="a"),
        message("two", uuid="b", parent_message_uuid="a", created_at="2026-01-01T00:00:00Z"),
        message("two, edited", uuid="c", parent_message_uuid="a", created_at="2026-01-02T00:00:00Z"),
    ]
    assert words(*talk) == words(talk[0], talk[2], talk[1]) == ["one", "two, edited"]
    assert words(*talk, current_leaf_message_uuid="b") == ["one", "two"]
    assert words(*talk, current_leaf_message_uuid="gone") == ["one", "two, edited"]


def test_a_message_whose_parent_is_missing_answers_the_message_before_it() -> None:
    talk = [message("one", uuid="a"), message("two", uuid="b", parent_message_uuid="gone"), message("three")]
    assert words(*talk) == ["one", "two", "three"]


def test_a_ring_of_messages_ends() -> None:
    assert sorted(words(message("a", uuid="a", parent_message_uuid="b"), message("b", uuid="b"))) == ["a", "b"]
    ring = [message("a", uuid="a", parent_message_uuid="b"), message("b", uuid="b", parent_message_uuid="a")]
    assert sorted(words(*ring)) == ["a", "b"]


def test_attached_texts_are_kept_up_to_a_limit_and_a_cut_is_noted() -> None:
    skipped = SkippedParts()
    files = [
        {"file_name": "a.txt", "extracted_content": "x" * (ATTACHED_CHARS - 5)},
        {"file_name": "b.txt", "extracted_content": "y" * 12},
        {"file_name": "c.txt", "extracted_content": "z"},
    ]
    [turn] = of({"chat_messages": [message("read", attachments=files)]}, skipped)
    lines = turn.content.split("\n")
    assert [line[:30] for line in lines] == [
        "read",
        "[attached: a.txt]",
        "x" * 30,
        "[attached: b.txt]",
        "y" * 5,
        "[7 more characters of it are n",
        "[attached: c.txt]",
        "[1 more characters of it are n",
    ]
    assert skipped.left_out == {"attached texts, of which 20,000 characters are kept": 2}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"}, {"type": "text", "text": "c"}], "a\nc"),
        ([{"type": "voice_note", "transcript": "a"}], "a"),
        ([{"type": "a_new_one", "text": "a"}, {"type": "image"}, "b", None, 7], "a\nb"),
        ([{"type": "tool_use", "name": "x", "text": "no"}], ""),
        ([], "text"),
        (None, "text"),
        (7, "text"),
    ],
)
def test_words_are_those_of_the_parts_and_of_the_text_where_there_is_none(content: Any, text: str) -> None:
    assert words(message("text", content=content)) == [text]


def test_tool_results_and_documents_written_with_a_tool_are_imported() -> None:
    written, answered = results(EXPORT[0])
    assert written == ImportedResult(
        where="line 1, [0].chat_messages[3]",
        tool="artifacts",
        arguments={"id": "letter", "type": "text/markdown", "title": "Letter", "command": "create"},
        call="toolu_01Ab",
        text="Caro Sr. Tavares,\n…",
        said_at=datetime(2026, 4, 11, 9, 2, 3, 5, tzinfo=UTC),
        session="claude-ai-24663cbd",
    )
    assert (answered.tool, answered.text, answered.call) == ("artifacts", "OK", "toolu_01Ab-result")
    assert answered.arguments["content"] == written.text
    plain = {"type": "tool_result", "content": "as a string"}
    assert [record.text for record in results({"uuid": "c", "chat_messages": [message("", content=[plain])]})] == [
        "as a string"
    ]


def test_a_result_without_text_is_counted() -> None:
    skipped = SkippedParts()
    nothing = [{"type": "tool_result", "content": content} for content in ([], None, [{"type": "image"}], " ")]
    assert of({"uuid": "c", "chat_messages": [message("", content=nothing)]}, skipped)[0].content == ""
    assert skipped.left_out == {RESULTS: 4}


def test_large_results_are_kept_once_and_those_of_this_memory_never(tmp_path: Path) -> None:
    long = "\n".join(f"{nth} kiln log line" for nth in range(300))
    parts = [
        {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "cat kiln.log"}},
        {"type": "tool_result", "tool_use_id": "t1", "name": "bash", "content": [{"type": "text", "text": long}]},
        {"type": "tool_result", "name": "memory:recall", "content": [{"type": "text", "text": long}]},
        {"type": "tool_use", "name": "create_file", "input": {"path": "a.md", "file_text": long + "!"}},
        {"type": "text", "text": "Done."},
    ]
    talk = {"uuid": "c", "chat_messages": [message("", sender="assistant", uuid="m", content=parts)]}
    home, path = tmp_path / "home", tmp_path / "conversations.json"
    path.write_text(json.dumps([talk]), encoding="utf-8")
    done = [import_into(home, path, again=True) for _ in range(2)]
    assert [(report.stored, report.kept, report.small) for report in done] == [(1, 2, 0), (0, 0, 0)]
    assert "results of this memory's tools (1)" in done[0].notes[-1]
    assert sorted(file.read_text().split("\n---\n")[1] for file in home.glob("spaces/*/refs/*")) == [long, long + "!"]


def test_a_message_of_neither_of_the_two_is_counted() -> None:
    skipped = SkippedParts()
    assert of({"chat_messages": [message("x", sender="system"), message("hi"), None]}, skipped)[0].content == "hi"
    assert skipped.left_out == {HIDDEN: 2}


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"messages": []}])
def test_a_value_that_is_not_a_conversation_is_a_problem(value: Any) -> None:
    [problem] = of(value)
    assert isinstance(problem, ImportProblem)
    assert "has to be a conversation of Claude.ai" in str(problem)
    assert not FORMAT.matches(value)


fields = ["uuid", "sender", "text", "content", "created_at", "attachments", "files", "parent_message_uuid"]
messages = st.dictionaries(st.sampled_from(fields), json_values() | st.sampled_from(["human", "a", "b"]), max_size=8)


@given(st.lists(json_values() | messages, max_size=5), json_values())
def test_any_conversation_yields_only_turns_and_problems(talk: list[Any], other: Any) -> None:
    value = {"chat_messages": talk, "uuid": other, "name": other, "created_at": other}
    assert all(
        isinstance(record, ImportedTurn | ImportProblem) for record in of({**value, "current_leaf_message_uuid": other})
    )


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30))
def test_of_any_tree_one_path_from_a_root_is_imported_and_the_others_are_counted(parents: list[int]) -> None:
    talk = [
        message(str(nth), uuid=str(nth), parent_message_uuid=str(parent % nth) if nth else None)
        for nth, parent in enumerate(parents)
    ]
    skipped = SkippedParts()
    path = [int(record.content) for record in of({"chat_messages": talk}, skipped)]
    assert path[0] == 0
    assert path[-1] == len(parents) - 1
    assert all(parents[nth] % nth == before for before, nth in pairwise(path))
    assert skipped.left_out[BRANCHES] == len(parents) - len(path)
