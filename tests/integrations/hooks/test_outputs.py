"""The shapes of tool answers: what is replaced, and that all else stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.hooks.tool_outputs import OutputPart, full_output_path, parts_of, replace_parts
from tests.json_values import json_values

BASH = {"stdout": "out", "stderr": "err", "interrupted": False, "isImage": False, "noOutputExpected": False}
READ = {
    "type": "text",
    "file": {"filePath": "/p/a.py", "content": "x = 1\n", "numLines": 2, "startLine": 1, "totalLines": 2},
}
GREP = {"mode": "content", "numFiles": 0, "filenames": [], "content": "a.py:1:x", "numLines": 1}
GREP_FILES = {"mode": "files_with_matches", "filenames": ["a.py", "b.py"], "numFiles": 2, "totalFiles": 2}
GLOB = {"filenames": ["a.py", "b.py"], "durationMs": 18, "numFiles": 2, "truncated": False}
FETCH = {"bytes": 9, "code": 200, "codeText": "OK", "result": "page", "durationMs": 3, "url": "https://example.com"}
SEARCH = {
    "query": "boats",
    "results": ["Found:", {"tool_use_id": "t", "content": [{"title": "Boat", "url": "https://example.com"}]}],
    "durationSeconds": 0.1,
    "searchCount": 1,
}
ANSWERS = [
    ("Bash", BASH),
    ("Read", READ),
    ("Grep", GREP),
    ("Grep", GREP_FILES),
    ("Glob", GLOB),
    ("WebFetch", FETCH),
    ("WebSearch", SEARCH),
]


def of(tool: str, answer: Any) -> list[OutputPart]:
    return parts_of("claude-code", tool, answer)


def shape(value: Any) -> Any:
    """Return the names and kinds of an answer, and what its lists hold as one."""
    if isinstance(value, dict):
        return {key: shape(held) for key, held in value.items()}
    return "list" if isinstance(value, list) else type(value).__name__


@pytest.mark.parametrize(("tool", "answer"), ANSWERS)
def test_a_replaced_answer_has_the_shape_that_the_tool_gave_it(tool: str, answer: dict[str, Any]) -> None:
    before = json.dumps(answer)
    parts = of(tool, answer)
    after = replace_parts(answer, {part.keys: f"note {place}" for place, part in enumerate(parts)})
    assert parts
    assert shape(after) == shape(answer)
    assert json.dumps(answer) == before
    assert [part.text for part in of(tool, after)] == [f"note {place}" for place, _ in enumerate(parts)]


def test_the_file_with_the_whole_of_a_long_output_is_named_and_then_not_shown() -> None:
    cut = {**BASH, "persistedOutputPath": "/tmp/b.txt", "persistedOutputSize": 40_000}
    assert full_output_path("Bash", cut) == "/tmp/b.txt"
    assert replace_parts(cut, {("stdout",): "note"}) == {**BASH, "stdout": "note"}


def test_a_list_of_names_becomes_a_list_of_the_note() -> None:
    (part,) = of("Glob", GLOB)
    assert part.text == "a.py\nb.py"
    assert replace_parts(GLOB, {part.keys: "note"})["filenames"] == ["note"]


def test_the_answer_of_a_server_is_a_string_or_blocks() -> None:
    blocks = [{"type": "text", "text": "one"}, {"type": "image", "data": "AA=="}, {"type": "text", "text": "two"}]
    assert [part.text for part in of("mcp__notes__list", "plain")] == ["plain"]
    assert replace_parts("plain", {(): "note"}) == "note"
    assert [part.text for part in of("mcp__notes__list", blocks)] == ["one", "two"]
    assert replace_parts(blocks, {(2, "text"): "note"}) == [*blocks[:2], {"type": "text", "text": "note"}]


def test_a_text_that_an_sdk_has_wrapped_is_kept_without_the_wrapping() -> None:
    assert [part.text for part in of("mcp__notes__list", '{"result":"a\\nb"}')] == ["a\nb"]
    assert [part.text for part in of("mcp__notes__list", '{"result":"a","n":1}')] == ['{"result":"a","n":1}']


@pytest.mark.parametrize(
    ("tool", "answer"),
    [
        ("Edit", {"filePath": "/p/a.py", "originalFile": "x" * 9}),
        ("Agent", {"content": [{"type": "text", "text": "x"}]}),
        ("Bash", {**BASH, "isImage": True}),
        ("Bash", "a string"),
        ("Read", {"type": "image", "file": {"base64": "AA==", "type": "image/png"}}),
        ("Read", {"type": "notebook", "file": {"filePath": "/p/n.ipynb", "cells": []}}),
        ("mcp__notes__list", {"content": [{"type": "text", "text": "x"}]}),
        ("mcp__notes__list", None),
    ],
)
def test_what_is_not_known_has_no_parts(tool: str, answer: Any) -> None:
    assert of(tool, answer) == []


def test_codex_takes_one_text_for_any_answer_that_is_nothing_but_text() -> None:
    def texts(answer: Any) -> list[str]:
        return [part.text for part in parts_of("codex", "Bash", answer)]

    text, image = {"type": "text", "text": "one"}, {"type": "image", "data": "AA=="}
    assert texts("out") == ["out"]
    assert texts({"content": [text, text], "isError": False}) == ["one\none"]
    assert texts({"content": [text, image]}) == []
    assert replace_parts("out", {(): "note"}) == "note"


@given(st.sampled_from(["Bash", "Read", "Grep", "Glob", "WebFetch", "WebSearch", "mcp__a__b", "Task"]), json_values())
def test_no_answer_whatever_it_holds_is_too_odd(tool: str, answer: Any) -> None:
    for client in ("claude-code", "codex"):
        for part in parts_of(client, tool, answer):
            noted = replace_parts(answer, {part.keys: "note"})
            assert OutputPart(part.keys, "note") in parts_of(client, tool, noted)
    assert full_output_path(tool, answer) is None or tool == "Bash"
