"""JSON in settings is changed where a value changes, and nowhere else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.clients.json_text import BadJson, Dialect, read_json, rewrite_json, same_value

KEYS = st.sampled_from(["a", "b", "mcpServers", "é", 'quo"te', "", "x y"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([0.5, "", "// no comment", "/*", ",}", "ß\n"])
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=12
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, Any]:
    """An object as somebody may have typed it, with comments, odd spaces and commas before brackets."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    gaps = ["", " ", "\t", newline, f"{newline}    ", f" // note{newline}", "/* a, { */", f"{newline}{newline}  "]

    def gap() -> str:
        return draw(st.sampled_from(gaps)) + draw(st.sampled_from(gaps))

    def show(value: Any) -> str:
        if isinstance(value, dict):
            return between("{", [f"{json.dumps(k)}{gap()}:{gap()}{show(v)}" for k, v in value.items()], "}")
        if isinstance(value, list):
            return between("[", [show(v) for v in value], "]")
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def between(opening: str, parts: list[str], closing: str) -> str:
        inside = ",".join(f"{gap()}{part}{gap()}" for part in parts)
        return opening + (inside or gap()) + ("," + gap() if parts and draw(st.booleans()) else "") + closing

    value = draw(OBJECTS)
    return draw(st.sampled_from(["", "\ufeff"])) + gap() + show(value) + gap(), value


@given(written())
def test_a_text_reads_as_what_was_written_and_stays_as_it_is_when_nothing_changes(document: tuple[str, Any]) -> None:
    text, value = document
    assert same_value(read_json(text), value)
    assert rewrite_json(text, value) == text


@given(written(), OBJECTS)
def test_a_text_that_was_changed_reads_as_the_new_value(document: tuple[str, Any], new: dict[str, Any]) -> None:
    assert same_value(read_json(rewrite_json(document[0], new)), new)


@given(OBJECTS, OBJECTS, st.sampled_from([None, 2, "\t"]))
def test_strict_json_stays_strict(old: dict[str, Any], new: dict[str, Any], indent: int | str | None) -> None:
    assert same_value(json.loads(rewrite_json(json.dumps(old, indent=indent), new, "json")), new)


@given(written(), KEYS, VALUES)
def test_one_new_member_leaves_every_line_and_comment_as_it_was(document: tuple[str, Any], key: str, new: Any) -> None:
    text, value = document
    if key in value:
        return
    changed = rewrite_json(text, {**value, key: new})
    kept = iter(changed)
    assert all(char in kept for char in text if char not in " \t\r\n")  # in this order, more in between
    assert changed.count("// note") >= text.count("// note")


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=5), st.sampled_from([2, 4, "\t"]), st.data())
def test_a_member_that_comes_last_and_goes_leaves_the_bytes_of_before(
    value: dict[str, Any], indent: int | str, data: st.DataObject
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    assert rewrite_json(rewrite_json(text, {**value, "new": data.draw(VALUES)}), value) == text


def test_what_is_added_looks_like_its_neighbours() -> None:
    text = '{\r\n\t"servers": {\r\n\t\t"other": {"command": "x"} // mine\r\n\t}\r\n}\r\n'
    value = read_json(text)
    value["servers"]["memory"] = {"command": "y", "args": ["serve"]}
    assert rewrite_json(text, value) == (
        '{\r\n\t"servers": {\r\n\t\t"other": {"command": "x"}, // mine\r\n'
        '\t\t"memory": {\r\n\t\t\t"command": "y",\r\n\t\t\t"args": ["serve"]\r\n\t\t}\r\n\t}\r\n}\r\n'
    )
    assert rewrite_json('{"a":{"b":1}}', {"a": {"b": 1, "c": [1, 2]}}) == '{"a":{"b":1,"c":[1,2]}}'
    assert rewrite_json('{"a": {}}', {"a": {"c": 1}}) == '{"a": {"c": 1}}'
    assert rewrite_json('{"a": {"b": 1}}', {"a": {"b": 1, "c": ["x" * 40, "y" * 40]}}) == (
        '{\n  "a": {\n    "b": 1,\n    "c": [\n      "' + "x" * 40 + '",\n      "' + "y" * 40 + '"\n    ]\n  }\n}'
    )
    assert rewrite_json("{}", {"a": 1}) == '{\n  "a": 1\n}'
    assert rewrite_json("", {"a": 1}) == '{\n  "a": 1\n}\n'


def test_a_line_that_would_grow_too_wide_is_opened_and_each_child_keeps_its_bytes() -> None:
    text = '{\n    "short": {"x": 1.0},\n    "wide": {"b":{ "c": 1e2 }, "l": [1,  2],},\n}\n'
    value = read_json(text)
    value["wide"]["new"] = {"word": "x" * 60}
    assert rewrite_json(text, value) == (
        '{\n    "short": {"x": 1.0},\n    "wide": {\n        "b":{ "c": 1e2 },\n        "l": [1,  2],\n'
        '        "new": {\n            "word": "' + "x" * 60 + '"\n        },\n    },\n}\n'
    )


def test_what_goes_takes_its_line_and_the_note_on_it_and_no_other_comment() -> None:
    text = '{\n  // the first\n  "a": 1, // one\n  "b": 2, // two\n  // the last\n  "c": 3\n}\n'
    assert rewrite_json(text, {"a": 1, "c": 3}) == '{\n  // the first\n  "a": 1, // one\n  // the last\n  "c": 3\n}\n'
    assert rewrite_json(text, {"a": 1}) == '{\n  // the first\n  "a": 1 // one\n  // the last\n}\n'


def test_items_of_a_list_that_stay_keep_their_bytes() -> None:
    text = '{"l": [\n  {"a":   1}, // one\n  {"b":   2}\n]}'
    assert rewrite_json(text, {"l": [{"a": 1}, {"n": 0}, {"b": 2}]}) == (
        '{"l": [\n  {"a":   1}, // one\n  {\n    "n": 0\n  },\n  {"b":   2}\n]}'
    )
    assert rewrite_json(text, {"l": [{"b": 2}]}) == '{"l": [\n  {"b":   2}\n]}'


def test_of_a_name_that_stands_twice_the_last_counts_and_both_go() -> None:
    text = '{"a": 1, "b": 2, "a": 3}'
    assert read_json(text) == {"a": 3, "b": 2}
    assert rewrite_json(text, {"a": 4, "b": 2}) == '{"a": 1, "b": 2, "a": 4}'
    assert rewrite_json(text, {"b": 2}) == '{"b": 2}'


@pytest.mark.parametrize(
    ("text", "dialect", "said"),
    [
        ('{"a": 1,\n  "b" 2}', "jsonc", "line 2, column 7: a colon is expected here"),
        ('{"a": 1', "jsonc", "line 1, column 8: the document ends; a comma or } is expected"),
        ('{"a": ', "jsonc", "line 1, column 7: the document ends too early"),
        ('{"a": tru}', "jsonc", "line 1, column 7: a value is expected here"),
        ('{"a": "x\ny"}', "jsonc", "line 1, column 7: a string that does not end on its line, or has a wrong escape"),
        ("{'a': 1}", "jsonc", "line 1, column 2: a name in double quotes is expected here"),
        ("{\"a\": 'b'}", "jsonc", "line 1, column 7: a value is expected here"),
        ("{a: 1}", "jsonc", "line 1, column 2: a name in double quotes is expected here"),
        ('{"a": 1} {', "jsonc", "line 1, column 10: the document has ended and more follows"),
        ('{"a": 1 /* }', "jsonc", "line 1, column 9: a comment that does not end, or a slash that is none"),
        ('{\r\n"a": 1, // x\r\n}', "json", "line 2, column 9: a comment, and this client reads none here"),
        ('{"a": 1,}', "json+comments", "line 1, column 8: a comma before }, and this client reads none there"),
        ('{"a": NaN}', "json", "line 1, column 7: a value is expected here"),
        ("[" * 5000, "json", "line 1, column 102: nested more than 100 deep"),
    ],
)
def test_what_is_no_json_is_told_with_its_line_and_column(text: str, dialect: Dialect, said: str) -> None:
    with pytest.raises(BadJson) as caught:
        read_json(text, dialect)
    assert str(caught.value) == said


@given(st.text(st.sampled_from('{}[]",:/*\\ \n\r1-etrunfalse\ufeff'), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = read_json(text)
    except BadJson:
        return
    assert rewrite_json(text, value) == text


def test_a_number_of_any_length_passes() -> None:
    text = '{"n": ' + "9" * 5000 + "}"
    assert rewrite_json(text, {**read_json(text), "a": 1}) == text[:-1] + ', "a": 1}'


def test_names_and_quotes_of_json5_are_read_and_kept() -> None:
    text = "{\n  a: 'it\\'s \"x\" \\u00e4\\n',\n  $b_1: {'c d': [1, 'x',], e: null,},\n  ä: true\n}"
    value = {"a": 'it\'s "x" ä\n', "$b_1": {"c d": [1, "x"], "e": None}, "ä": True}
    assert read_json(text, "json5") == value
    new = {**value, "$b_1": {"c d": [1, "y"], "e": None}, "new": "'"}
    assert rewrite_json(text, new, "json5") == text.replace("'x'", '"y"').replace("true", 'true,\n  "new": "\'"')


@pytest.mark.parametrize("text", ["{1a: 2}", "{a: 'b\n'}", "{a: 'b}", "{a: b}", "{a-b: 1}", r"{a: '\x41'}", "{a: +1}"])
def test_what_is_not_read_of_json5_is_refused(text: str) -> None:
    with pytest.raises(BadJson, match=r"^line 1, column"):
        read_json(text, "json5")
