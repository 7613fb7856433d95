"""Records of a ChatGPT export: the path to the last message, and the counts of skipped messages."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.importers.formats.chatgpt import FORMAT, chatgpt_records
from mcp_memory.integrations.importers.parts import BRANCHES, CALLS, HIDDEN, RESULTS, THOUGHTS
from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
)
from tests.integrations.importers.conftest import contents, import_into, only_results, without_results
from tests.json_values import json_values

EXPORT = json.loads((Path(__file__).parents[3] / "fixtures/exports/chatgpt.json").read_text(encoding="utf-8"))


def of(value: Any, skipped: SkippedParts | None = None) -> list[Any]:
    """Return the turns and problems of a conversation."""
    return without_results(chatgpt_records, value, skipped)


def results(value: Any) -> list[ImportedResult]:
    return only_results(chatgpt_records, value)


def turns_of(value: Any) -> list[tuple[str, str]]:
    return [(record.role, record.content) for record in of(value) if record.name != "title"]


def message(content: Any, *, role: str = "user", **more: Any) -> dict[str, Any]:
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    return {"author": {"role": role}, "content": content, **more}


def chain(*messages: Any, **more: Any) -> dict[str, Any]:
    """A conversation without branches, with nothing that it could be without."""
    nodes = {
        f"n{nth}": {"message": entry, "parent": f"n{nth - 1}" if nth else None} for nth, entry in enumerate(messages)
    }
    return {"mapping": nodes, **more}


def test_the_path_to_the_last_message_is_imported_and_the_other_messages_are_counted() -> None:
    skipped = SkippedParts()
    records = [record for record in of(EXPORT[0], skipped) if isinstance(record, ImportedTurn)]
    assert [(record.role, record.name, record.content) for record in records] == [
        ("system", "title", "Glaze for cone 6"),
        ("user", None, "Which glaze fires well at cone 6? My kiln is a Rohde Ecotop 60."),
        (
            "assistant",
            None,
            "Floating Blue is a safe start. Fire it to 1,222 °C and hold for 10 minutes; Rohde gives the curve in "
            "[the manual](https://kilns.example/ecotop).",
        ),
        ("user", None, "These pinholes came out of the last firing. Why?\n[attached: pinholes.jpg]"),
        ("assistant", None, "The clay still gave off gas: hold longer at the top, or bisque hotter."),
    ]
    assert (skipped.left_out, skipped.parts) == ({BRANCHES: 2, CALLS: 2, HIDDEN: 1, RESULTS: 1, THOUGHTS: 3}, 1)


def test_a_turn_has_the_id_and_the_time_of_its_message_and_the_session_of_its_conversation() -> None:
    first = next(record for record in of(EXPORT[0]) if isinstance(record, ImportedTurn) and record.role == "user")
    id = "45cf8aa4-059a-41e1-b527-e27951c34250"
    assert first == ImportedTurn(
        where=f"line 1, [0].mapping.{id}",
        role="user",
        content="Which glaze fires well at cone 6? My kiln is a Rohde Ecotop 60.",
        name=None,
        said_at=datetime(2026, 1, 1, 10, 0, 2, 618_000, tzinfo=UTC),
        id=id,
        session="chatgpt-7bd6aa42",
        conversation=1,
        began=datetime(2026, 1, 1, 10, 0, 0, 500_000, tzinfo=UTC),
    )


def test_voice_notes_are_imported_as_words() -> None:
    assert turns_of(EXPORT[1]) == [
        ("user", "When is the market in Matosinhos?"),
        ("assistant", "Every first Saturday, from nine."),
    ]


def test_a_conversation_marked_as_not_to_be_remembered_is_skipped() -> None:
    skipped = SkippedParts()
    assert of(EXPORT[2], skipped) == []
    assert skipped.left_out == {"conversations marked as not to be remembered": 1}


@pytest.mark.parametrize("name", [None, "", "  ", "New chat", 7])
def test_a_conversation_without_a_title_is_imported_without_a_title_turn(name: Any) -> None:
    assert [record.content for record in of(chain(message("hi"), title=name))] == ["hi"]


@pytest.mark.parametrize("current", [None, "gone", 3])
def test_without_a_last_message_the_newest_leaf_is_taken(current: Any) -> None:
    talk = chain(message("hi"), message("old", role="assistant", create_time=1.7e9), current_node=current)
    talk["mapping"]["new"] = {"message": message("new", role="assistant", create_time=1.8e9), "parent": "n0"}
    talk["mapping"]["undated"] = {"message": message("undated", role="assistant"), "parent": "n0"}
    assert [text for _, text in turns_of(talk)] == ["hi", "new"]


def test_a_tree_may_be_given_by_its_children_alone() -> None:
    talk = {
        "mapping": {"b": {"message": message("two")}, "a": {"message": message("one"), "children": ["b", None]}},
        "current_node": "b",
    }
    assert [text for _, text in turns_of(talk)] == ["one", "two"]


def test_a_ring_of_messages_ends() -> None:
    talk = {"mapping": {"a": {"message": message("one"), "parent": "b"}, "b": {"parent": "a"}}, "current_node": "a"}
    assert [text for _, text in turns_of(talk)] == ["one"]


def test_tool_results_have_their_calls_and_are_unchanged() -> None:
    browsed, printed = results(EXPORT[0])
    called = '{"search_query":[{"q":"floating blue cone 6"}]}'
    assert (browsed.tool, browsed.arguments, browsed.text) == ("web.run", called, "L0: Floating Blue")
    id = next(id for id, node in EXPORT[0]["mapping"].items() if "execution_output" in json.dumps(node))
    assert printed == ImportedResult(
        where=f"line 1, [0].mapping.{id}",
        tool="python",
        arguments="print(1222 - 1180)",
        call=id,
        text="42\n",
        said_at=datetime(2026, 1, 1, 10, 5, 6, 500_000, tzinfo=UTC),
        session="chatgpt-7bd6aa42",
    )


def test_a_conversation_of_thousands_of_messages_is_imported_whole() -> None:
    assert len(of(chain(*(message(str(nth)) for nth in range(5_000))))) == 5_000


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (message("x", role="system"), HIDDEN),
        (message("x", role="critic"), HIDDEN),
        (message("x", weight=0.0), HIDDEN),
        (message("x", metadata={"is_visually_hidden_from_conversation": True}), HIDDEN),
        (message({"content_type": "model_editable_context", "model_set_context": ""}, role="assistant"), HIDDEN),
        (message("", role="tool"), RESULTS),
        (message({"content_type": "tether_quote"}, role="assistant"), RESULTS),
        (message("x", role="assistant", recipient="python"), CALLS),
        (message("x", role="assistant", channel="analysis"), THOUGHTS),
        (message({"content_type": "thoughts", "thoughts": []}, role="assistant"), THOUGHTS),
    ],
)
def test_messages_that_are_not_part_of_the_conversation_are_counted_by_category(
    entry: dict[str, Any], why: str
) -> None:
    skipped = SkippedParts()
    assert [turn.content for turn in of(chain(message("hi"), entry), skipped)] == ["hi"]
    assert skipped.left_out == {why: 1}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content_type": "code", "language": "python", "text": "print(1)"}, "print(1)"),
        ({"content_type": "a_new_one", "parts": ["a", {"text": "b"}, {"url": "c"}, None]}, "a\nb"),
        ({"content_type": "text", "parts": []}, ""),
        ({"content_type": "text"}, ""),
        ({}, ""),
        (None, ""),
        (7, ""),
    ],
)
def test_texts_are_found_in_every_kind_of_content(content: Any, text: str) -> None:
    assert turns_of(chain(message(content, role="assistant", recipient="all"))) == [("assistant", text)]


@pytest.mark.parametrize(
    ("given_text", "shown"),
    [
        ("a \ue200cite\ue202turn0search1\ue202turn0news2\ue201, b", "a, b"),
        ("a \ue200filecite\ue202turn0file0\ue202L5-L8\ue201", "a"),
        ("\ue200entity\ue202[1]\ue201b \ue200entity\ue202{\ue201", "b"),
        ("in \ue200url\ue202Porto\ue201", "in Porto"),
        ("a \ue200cite cut off", "a cite cut off"),
        ("a【12†source】 b 【4:0†notes.pdf】", "a b"),
        ("【1】 † stays", "【1】 † stays"),
        ("  code\n  stays  as it is", "  code\n  stays  as it is"),
    ],
)
def test_marks_of_the_page_are_shown_as_the_page_does(given_text: str, shown: str) -> None:
    assert turns_of(chain(message(given_text))) == [("user", shown)]


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"messages": []}])
def test_a_value_that_is_not_a_conversation_is_a_problem(value: Any) -> None:
    [problem] = of(value)
    assert isinstance(problem, ImportProblem)
    assert "has to be a conversation of ChatGPT" in str(problem)
    assert not FORMAT.matches(value)


def test_a_message_that_is_too_large_is_a_problem() -> None:
    [problem] = of(chain(message("x" * 5_000_000)))
    assert str(problem) == "line 1, [0].mapping.n0: is larger than 4 MiB. Pass over it with --skip-bad."


keys = ["message", "parent", "children", "author", "role", "content", "content_type", "parts", "text", "metadata"]
nodes = st.dictionaries(
    st.sampled_from([*keys, "create_time", "attachments", "id", "weight"]), json_values(), max_size=6
)


@given(st.dictionaries(st.sampled_from("abc"), json_values() | nodes | st.builds(dict, message=nodes)), json_values())
def test_any_conversation_yields_only_turns_and_problems(mapping: dict[str, Any], other: Any) -> None:
    value = {"mapping": mapping, "current_node": other, "title": other, "id": other, "create_time": other}
    assert all(isinstance(record, ImportedTurn | ImportProblem) for record in of(value))


def test_an_export_is_stored_once_and_what_was_added_to_it_later(tmp_path: Path) -> None:
    home, path = tmp_path / "home", tmp_path / "conversations.json"
    path.write_text(json.dumps(EXPORT[:1]), encoding="utf-8")
    first = import_into(home, path)
    path.write_text(json.dumps(EXPORT), encoding="utf-8")
    second = import_into(home, path)
    assert (first.stored, second.stored, second.duplicates) == (6, 2, 6)
    assert (second.kept, second.small) == (0, 2)
    assert {session: len(talk) for session, talk in contents(home).items()} == {
        "chatgpt-7bd6aa42": 6,
        "chatgpt-7d1f3b5c": 2,
    }
    assert second.notes[-1] == (
        "Left out, because they are not part of the conversation as last shown: calls of tools (2), conversations marked as not to "
        "be remembered (1), hidden messages and instructions (2), messages on other branches, edited or answered anew "
        "(2), results of tools without text (1), thoughts (3)."
    )
