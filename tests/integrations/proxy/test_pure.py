"""The pure parts: lines out of chunks, the listing with its schemas, results with notes in their place, the tool."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.token_counts import token_counter
from mcp_memory.integrations.proxy.answer_editor import (
    is_plain,
    note,
    replace_texts,
    structured_text,
    texts_in,
    widen_schema,
    with_tools,
)
from mcp_memory.integrations.proxy.kept_results import definition, looks_like_ours, parse_arguments, tool_name
from mcp_memory.integrations.proxy.stdio import (
    LinePart,
    NotAMessage,
    Splitter,
    UnreadableLine,
    id_in,
    key_of,
    parse,
    to_line,
)
from tests.json_values import json_values

JSON = json_values(
    st.text(),
    scalars=st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks: list[bytes] = []
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    return [*chunks, data]


# --- lines ------------------------------------------------------------------------------------------


@given(st.binary(max_size=200), st.lists(st.integers(0, 20)), st.integers(1, 30))
def test_whatever_the_chunks_and_the_limit_nothing_is_lost_or_moved(data: bytes, sizes: list[int], limit: int) -> None:
    splitter = Splitter(limit)
    passed = b""
    for chunk in cut(data, sizes):
        for line in splitter.feed(chunk):
            passed += line.data if isinstance(line, LinePart) else line + b"\n"
    assert passed + splitter.rest() == data


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=8),
    st.lists(st.integers(0, 20)),
)
def test_lines_come_out_as_they_went_in(lines: list[bytes], sizes: list[int]) -> None:
    splitter = Splitter()
    data = b"".join(line + b"\n" for line in lines)
    assert [line for chunk in cut(data, sizes) for line in splitter.feed(chunk)] == lines


def test_a_line_too_long_to_hold_comes_in_pieces_and_the_next_one_whole() -> None:
    splitter = Splitter(max_line=10)
    parts = [*splitter.feed(b"0123456789abc"), *splitter.feed(b"def"), *splitter.feed(b"g\n{}\n")]
    assert parts == [
        LinePart(b"0123456789abc", last=False),
        LinePart(b"def", last=False),
        LinePart(b"g\n", last=True),
        b"{}",
    ]


@given(st.dictionaries(st.text(), JSON))
def test_a_message_survives_being_read_and_written(message: dict[str, Any]) -> None:
    assert parse(to_line(message)) == message


def test_what_is_no_message_is_told_from_what_cannot_be_read_here() -> None:
    for line in (b"Server listening", b'{"id": 1', b"42", b"\xff\xfe", b"{'a': 1}"):
        with pytest.raises(NotAMessage):
            parse(line)
    for line in (b"[" * 100_000 + b"]" * 100_000, b'{"n": ' + b"9" * 5_000 + b"}"):
        with pytest.raises(UnreadableLine):
            parse(line)
    assert parse(b'{"half": "\\ud83d"}') == {"half": "\ud83d"}
    assert to_line({"half": "\ud83d"}) == b'{"half":"\\ud83d"}\n'
    with pytest.raises(ValueError):
        to_line({"n": float("inf")})


def test_the_id_of_a_torn_line_is_found() -> None:
    assert id_in(b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"te') == key_of(7)
    assert id_in(b'{"result":{"content":[]},"jsonrpc":"2.0","id":"a\\"b"') == key_of('a"b')
    assert id_in(b'{"result": {}') is None
    assert key_of(1) != key_of("1")


def test_the_id_of_a_line_nested_too_deep_is_its_own_and_none_of_its_content() -> None:
    deep = b'{"id":0,"a":' * 5_000 + b"1" + b"}" * 5_000
    lines = b'{"id":7,"result":%b}', b'{"result":%b,"id":7}', b'{"result":%b, "id": 7,"jsonrpc":"2.0"}\r'
    assert [id_in(line % deep) for line in lines] == [key_of(7)] * 3
    assert id_in(b'{"result":%b}' % deep) is None


# --- the listing ------------------------------------------------------------------------------------

TREE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"root": {"$ref": "#/$defs/node"}, "again": {"$ref": "#"}, "$ref": {"type": "string"}},
    "required": ["root"],
    "$defs": {
        "node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
    },
}


@pytest.mark.parametrize("schema", [TREE, {**TREE, "$id": "https://example.com/tree"}])
def test_a_wider_schema_takes_what_the_server_promised_or_a_note_and_nothing_else(schema: dict[str, Any]) -> None:
    wider = Draft202012Validator(widen_schema(schema))
    Draft202012Validator.check_schema(wider.schema)
    good = {"root": {"children": [{"children": []}]}, "again": {"root": {}}}
    assert wider.is_valid(good)
    assert wider.is_valid(note("001-N1", "r-9f2c1a7b3d4e", "text"))
    for bad in ({"root": {"children": [7]}}, {"root": {}, "again": {}}, {}, {"offloaded": {}}, {"root": {}, "$ref": 7}):
        assert not wider.is_valid(bad)


def test_a_listing_keeps_what_it_had_and_gains_the_tool() -> None:
    view = {"name": "chart", "outputSchema": TREE, "_meta": {"ui": {"resourceUri": "ui://chart"}}}
    page = {"tools": [{"name": "a", "odd": 1}, view, "no tool"], "ttlMs": 5, "_meta": {"x": 1}}
    assert with_tools(page, [definition("expand_x")]) == {**page, "tools": [*page["tools"], definition("expand_x")]}


# --- results ----------------------------------------------------------------------------------------

IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "file:///a", "name": "a"}


def text(words: str, **others: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **others}


def test_texts_are_the_runs_of_like_blocks_and_embedded_texts() -> None:
    page = {"type": "resource", "resource": {"uri": "ui://page", "mimeType": "text/html", "text": "<p>"}}
    file = {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "application/json", "text": "{}"}}
    blob = {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk="}}
    result = {
        "content": [
            text("a"),
            text("b"),
            IMAGE,
            text("c", annotations={"priority": 1}),
            text("d"),
            file,
            page,
            blob,
            LINK,
        ],
        "isError": True,
        "_meta": {"k": 1},
    }
    found = texts_in(result, with_structured=True)
    assert [one.text for one in found] == ["a\nb", "c", "d", "{}"]
    edited = replace_texts(result, {one: f"note on {one.text}" for one in found})
    assert edited == {
        **result,
        "content": [
            text("note on a\nb"),
            IMAGE,
            text("note on c", annotations={"priority": 1}),
            text("note on d"),
            {"type": "resource", "resource": {"uri": "file:///a", "mimeType": "text/plain", "text": "note on {}"}},
            page,
            blob,
            LINK,
        ],
    }


@pytest.mark.parametrize(
    ("structured", "content"),
    [
        ({"a": [1, 2]}, [text('{\n  "a": [1, 2]\n}')]),
        ({"result": "some words"}, [text("some words")]),
        ({"content": "some words"}, [text("some words")]),
        ({"result": [{"a": 1}, {"a": 2}]}, [text('{"a": 1}'), text('{"a": 2}')]),
        ({"result": ["x", "y"]}, [text("x"), text("y")]),
        ({"result": [1, 2]}, [text("[1, 2]")]),
    ],
)
def test_structured_content_that_says_what_a_text_says_is_no_text_of_its_own(
    structured: Any, content: list[Any]
) -> None:
    found = texts_in({"content": content, "structuredContent": structured}, with_structured=True)
    assert [one.kind for one in found] == ["text"]


def test_structured_content_that_says_more_is_kept_as_json_and_stands_in_a_block() -> None:
    result = {"content": [text("2 rows")], "structuredContent": {"rows": [{"é": 1}, {"é": 2}]}}
    _, structured = texts_in(result, with_structured=True)
    assert json.loads(structured.text) == result["structuredContent"]
    assert replace_texts(result, {structured: "note"})["content"] == [text("2 rows"), text("note")]
    assert [one.kind for one in texts_in(result, with_structured=False)] == ["text"]


def test_a_list_of_json_blocks_is_one_json_list() -> None:
    (found,) = texts_in({"content": [text('{"a": 1}'), text("[2]")]}, with_structured=True)
    assert json.loads(found.text) == [{"a": 1}, [2]]


@given(JSON)
def test_any_structured_content_has_a_text(structured: Any) -> None:
    assert json.loads(structured_text(structured)) == structured
    texts_in({"content": [text("x"), IMAGE, 7, None], "structuredContent": structured}, with_structured=True)


def test_a_question_to_the_client_and_a_task_are_no_results() -> None:
    assert is_plain({"content": []})
    assert is_plain({"content": [], "resultType": "complete"})
    assert not is_plain({"content": [], "resultType": "input_required"})
    assert not is_plain({"task": {"taskId": "7"}})


# --- the tool ---------------------------------------------------------------------------------------


def test_its_definition_costs_at_most_120_tokens() -> None:
    shown = definition(tool_name("secure-filesystem-server"))
    said = f"{shown['name']}\n{shown['description']}\n{json.dumps(shown['inputSchema'])}"
    assert token_counter("cl100k_base").count(said) <= 120


def test_its_name_is_the_servers_own_and_collides_with_nothing() -> None:
    assert tool_name("mcp-servers/Everything") == "expand_mcp_servers_everything"
    assert tool_name("日本") == tool_name("") == "expand_result"
    assert tool_name("x", {"expand_x", "expand_x_2"}) == "expand_x_3"
    assert len(tool_name("long" * 50)) <= 47


def test_a_call_from_an_old_listing_is_known_by_its_argument() -> None:
    for node in ("r-9f2c1a7b3d4e", "003-N4", "003-F1"):
        assert looks_like_ours("expand_anything", {"ref": node})
    for name, arguments in [
        ("expand_x", {"ref": "body"}),
        ("expand_x", {"ref": "003"}),
        ("query", {"ref": "003-N4"}),
        ("expand_x", None),
    ]:
        assert not looks_like_ours(name, arguments)


def test_its_arguments_are_checked() -> None:
    assert parse_arguments("x", {"ref": "r-9f2c1a7b3d4e", "lines": "1-2", "grep": None}) == {
        "target": "r-9f2c1a7b3d4e",
        "lines": "1-2",
        "max_tokens": 2000,
    }
    assert parse_arguments("x", {"ref": "003-N4", "max_tokens": 500.0})["max_tokens"] == 500
    for wrong in (
        None,
        [],
        {},
        {"ref": ""},
        {"ref": 7},
        {"ref": "r-1", "rows": 1},
        {"ref": "r-1", "max_tokens": True},
    ):
        with pytest.raises(InvalidInput):
            parse_arguments("x", wrong)
