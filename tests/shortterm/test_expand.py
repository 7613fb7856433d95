"""Opening a raw result again: pages, lines, search, JSON path, cursors, budgets."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import Expansion
from mcp_memory.shortterm.expand import content_of, expand_text, view_of_cursor
from tests.shortterm.agent import FourCharacters

REF = "r-9f2c1a7b3d4e"
POEM = "".join(f"line {n} of the log\n" for n in range(1, 101))


COUNTER = FourCharacters()


def expand(raw: str, **asked: object) -> Expansion:
    given: dict[str, object] = {"ref": REF, "counter": COUNTER, "view": "page", "max_tokens": 200, **asked}
    return expand_text(raw, **given)  # type: ignore[arg-type]


def follow(raw: str, **asked: object) -> list[Expansion]:
    """All answers to one question, cursor after cursor."""
    answers = [expand(raw, **asked)]
    while answers[-1].cursor:
        answers.append(expand(raw, **asked, cursor=answers[-1].cursor))
    return answers


# --- by page -----------------------------------------------------------------------------------------


def test_a_short_result_is_one_page_without_a_cursor() -> None:
    text = f"{REF} lines 1–2 of 2\none\ntwo\n"
    assert expand("one\ntwo\n") == Expansion(
        view="page", text=text, tokens=COUNTER.count(text), ref=REF, lines=(1, 2), total_lines=2, cursor=None
    )


def test_a_page_ends_with_a_line_and_says_what_is_left_and_how_to_get_it() -> None:
    first = expand(POEM, max_tokens=60)
    assert first.text.splitlines()[0] == f"{REF} lines 1–8 of 100"
    assert first.text.splitlines()[-1] == f"… 92 more lines in the result: go on with cursor={first.cursor}"
    assert expand(POEM, max_tokens=60, cursor=first.cursor).lines == (9, 15)


def test_an_empty_result_opens_as_an_empty_page() -> None:
    assert expand("").text == f"{REF} page (the result has 0 lines)\n"


@settings(max_examples=60, deadline=None)
@given(
    raw=st.one_of(
        st.text(max_size=3000),
        st.text(alphabet="ab \n\r\t\x00\ud800é漢", max_size=3000),
        st.builds(lambda a, n: a * n, st.text(min_size=1, max_size=9), st.integers(1, 600)),
    ),
    max_tokens=st.integers(50, 300),
)
def test_the_pages_of_any_text_join_to_the_text_and_keep_to_the_budget(raw: str, max_tokens: int) -> None:
    pages = follow(raw, max_tokens=max_tokens)
    assert "".join(content_of(page) for page in pages) == raw
    assert all(COUNTER.count(page.text) == page.tokens <= max_tokens for page in pages)


@settings(max_examples=20, deadline=None)
@given(raw=st.text(alphabet="ab \n\x00\ud800é漢🦉", max_size=900), max_tokens=st.integers(50, 90))
def test_the_law_of_pages_holds_for_real_tokens(raw: str, max_tokens: int) -> None:
    counter = token_counter("o200k_base")
    pages = follow(raw, max_tokens=max_tokens, counter=counter)
    assert "".join(content_of(page) for page in pages) == raw
    assert all(counter.count(page.text) == page.tokens <= max_tokens for page in pages)


@pytest.mark.parametrize(
    "asked", [{"view": "lines", "argument": "1-"}, {"view": "grep", "argument": "line"}], ids=["lines", "grep"]
)
def test_rows_keep_to_a_budget_of_real_tokens(asked: dict[str, str]) -> None:
    counter = token_counter("o200k_base")
    answers = follow(POEM, max_tokens=70, counter=counter, **asked)
    assert len(answers) > 10
    assert all(counter.count(answer.text) <= 70 for answer in answers)
    assert answers[-1].lines == (100, 100) or answers[-1].lines == (answers[-2].lines[1] + 1, 100)


def test_one_line_of_a_million_characters_is_paged_through_by_character() -> None:
    raw = "".join(f"{n:07}" for n in range(20_000))
    assert "".join(content_of(page) for page in follow(raw, max_tokens=2000)) == raw


# --- by lines ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "shown"),
    [("3-5", (3, 5)), ("7", (7, 7)), ("-2", (99, 100)), ("98-", (98, 100)), ("99-500", (99, 100)), ("3–4", (3, 4))],
)
def test_each_form_of_a_range_shows_its_lines_with_their_numbers(lines: str, shown: tuple[int, int]) -> None:
    answer = expand(POEM, view="lines", argument=lines)
    numbered = "\n".join(f"{n}\tline {n} of the log" for n in range(shown[0], shown[1] + 1))
    assert (answer.lines, content_of(answer), answer.cursor) == (shown, numbered, None)


def test_lines_that_do_not_fit_follow_behind_a_cursor() -> None:
    answers = follow(POEM, view="lines", argument="10-60", max_tokens=80)
    rows = [row for answer in answers for row in content_of(answer).split("\n")]
    assert rows == [f"{n}\tline {n} of the log" for n in range(10, 61)]
    assert answers[0].text.startswith(f"{REF} lines 10–")


def test_a_line_longer_than_the_budget_goes_on_in_the_next_answer() -> None:
    raw = "short\n" + "x" * 1000 + "\nend"
    answers = follow(raw, view="lines", argument="1-3", max_tokens=60)
    rows = [row for answer in answers for row in content_of(answer).split("\n")]
    assert rows[0] == "1\tshort"
    assert "".join(row.split("\t")[1] for row in rows if row.startswith("2")) == "x" * 1000
    assert [row.split("\t")[0] for row in rows[1:4]] == ["2", "2+", "2+"]
    assert rows[-1] == "3\tend"


@pytest.mark.parametrize("lines", ["0", "5-3", "101", "abc", "1-2-3", "--4", "-", "9" * 40])
def test_a_wrong_range_is_refused_with_the_allowed_forms_and_the_number_of_lines(lines: str) -> None:
    with pytest.raises(InvalidInput, match=r'Allowed: "120-180".*100 lines'):
        expand(POEM, view="lines", argument=lines)


def test_lines_of_an_empty_result_are_refused() -> None:
    with pytest.raises(InvalidInput, match="0 lines"):
        expand("", view="lines", argument="1")


# --- by search ---------------------------------------------------------------------------------------


def test_a_search_shows_matches_with_two_lines_around_merged_where_they_overlap() -> None:
    answer = expand(POEM, view="grep", argument="line (10|12|50) ")
    shown = [(8, "-"), (9, "-"), (10, ":"), (11, "-"), (12, ":"), (13, "-"), (14, "-"), None]
    shown += [(48, "-"), (49, "-"), (50, ":"), (51, "-"), (52, "-")]
    assert answer.text.split("\n") == [
        f"{REF} lines 8–52 of 100, grep 'line (10|12|50)': 3 matching lines",
        *("--" if row is None else f"{row[0]}{row[1]}line {row[0]} of the log" for row in shown),
    ]


def test_a_search_ignores_case_unless_it_has_an_upper_case_letter() -> None:
    raw = "Error one\nerror two\nERROR three\n"

    def found(pattern: str) -> str:
        return expand(raw, view="grep", argument=pattern).text.split(": ")[1].split(" ")[0]

    assert [found(p) for p in ("error", "Error", "ERROR", r"error\Stwo|err\w+ \S")] == ["3", "1", "1", "3"]


def test_a_search_without_a_match_says_so() -> None:
    assert expand(POEM, view="grep", argument="zebra").text == (
        f"{REF} grep 'zebra': 0 matching lines (the result has 100 lines)\n"
    )


@pytest.mark.parametrize("asked", [{}, {"view": "lines", "argument": "1-3"}, {"view": "grep", "argument": "line"}])
def test_a_cursor_that_was_reckoned_for_a_place_behind_the_end_is_refused(asked: dict[str, Any]) -> None:
    view, place = asked.get("view", "page"), len(POEM) + 1
    question = f"{REF}\0{view}\0{asked.get('argument', '')}\0{len(POEM)}\0{place}"
    cursor = f"{view[0]}{place}-{hashlib.sha256(question.encode()).hexdigest()[:6]}"
    with pytest.raises(InvalidInput, match="not a cursor of this tool"):
        expand(POEM, **asked, cursor=cursor)


def test_the_cursors_of_a_search_show_every_match_once() -> None:
    raw = "".join(f"{n} {'hit' if n % 7 == 0 else 'miss'} {'pad' * (n % 90)}\n" for n in range(400))
    answers = follow(raw, view="grep", argument="hit", max_tokens=90)
    rows = [row for answer in answers for row in content_of(answer).split("\n") if ":" in row[:5]]
    assert [int(row.split(":")[0].rstrip("+")) - 1 for row in rows if "+" not in row] == list(range(0, 400, 7))
    assert all("58 matching" in answer.text for answer in answers)


@pytest.mark.parametrize("pattern", ["(", "[a", "(?P<a>x)(?P<a", "*", "a{999999999999}", "x" * 2000])
def test_a_bad_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="grep"):
        expand(POEM, view="grep", argument=pattern)


# --- by JSON path ------------------------------------------------------------------------------------


SHOP = {"books": [{"id": n, "title": f"Book {n}", "tags": ["a", "b"]} for n in range(3)], "open": True}


def test_a_path_to_one_value_gives_the_value() -> None:
    answer = expand(json.dumps(SHOP), view="json", argument="$.books[1]")
    assert answer.text == f"{REF} json '$.books[1]': 1 match\n" + '{"id": 1, "title": "Book 1", "tags": ["a", "b"]}'


def test_a_path_to_several_values_gives_each_behind_its_path() -> None:
    answer = expand(json.dumps(SHOP), view="json", argument="$.books[?@.id > 0].title")
    assert content_of(answer) == '$.books[1].title: "Book 1"\n$.books[2].title: "Book 2"'


def test_a_long_value_is_printed_one_entry_a_line() -> None:
    answer = expand(json.dumps(SHOP), view="json", argument="$", max_tokens=500)
    books = [f'  {{"id": {n}, "title": "Book {n}", "tags": ["a", "b"]}}' for n in range(3)]
    assert content_of(answer) == '{\n "books": [\n' + ",\n".join(books) + '\n ],\n "open": true\n}'


def test_json_lines_are_an_array_of_their_values() -> None:
    raw = "\n".join(json.dumps({"n": n}) for n in range(5))
    assert content_of(expand(raw, view="json", argument="$[3].n")) == "3"


def test_a_path_that_matches_nothing_says_what_there_is() -> None:
    answer = expand(json.dumps(SHOP), view="json", argument="$.nope")
    assert content_of(answer) == "nothing matches; the top level has the keys books, open"


def test_what_is_not_json_is_refused_with_the_place() -> None:
    with pytest.raises(InvalidInput, match="line 2, column 7"):
        expand('{"a": 1,\n "b": oops}', view="json", argument="$")


@pytest.mark.parametrize("path", ["$[", "$..[?", "$[?@.a ==]", "][", "$" + "[0" * 400])
def test_a_wrong_path_is_refused_with_examples(path: str) -> None:
    with pytest.raises(InvalidInput, match=r"json_path|too deep"):
        expand("[1, 2]", view="json", argument=path)


@pytest.mark.parametrize("raw", ["[" * 10_000, "[" * 10_000 + "]" * 10_000, "[" * 500 + "]" * 500, "1" * 6000])
def test_deep_and_broken_json_is_refused_not_a_crash(raw: str) -> None:
    with pytest.raises(InvalidInput):
        expand(raw, view="json", argument="$..x")


def test_a_path_that_explodes_is_stopped() -> None:
    raw = json.dumps([[[[[[0] * 6] * 6] * 6] * 6] * 6])
    with pytest.raises(InvalidInput, match=r"visits more|matches more"):
        expand(raw, view="json", argument="$..*..*..*..*..*")


@pytest.mark.parametrize(
    ("raw", "view", "argument"),
    [
        ("a" * 5000 + "!", "grep", r"^(a|aa)+$"),
        (json.dumps([{"a": "a" * 5000 + "!"}]), "json", "$[?match(@.a, '(a|aa)+')]"),
        (json.dumps([{"a": "a" * 15 + "!"}] * 2_000), "json", "$[?search(@.a, '^(a|aa|a)*$')]"),
    ],
    ids=["a search", "a filter", "a filter over many values"],
)
def test_a_catastrophic_expression_ends(monkeypatch: pytest.MonkeyPatch, raw: str, view: str, argument: str) -> None:
    for limit in ("GREP_SECONDS", "REGEX_SECONDS"):
        monkeypatch.setattr(f"mcp_memory.shortterm.expand.{limit}", 0.2)
    with pytest.raises(InvalidInput, match="simpler"):
        expand(raw, view=view, argument=argument)


def test_a_long_json_answer_is_continued_by_its_cursor() -> None:
    raw = json.dumps([{"id": n, "text": "x" * n} for n in range(60)])
    whole = content_of(expand(raw, view="json", argument="$[*].text", max_tokens=100_000))
    parts = follow(raw, view="json", argument="$[*].text", max_tokens=100)
    assert len(parts) > 3
    assert "".join(content_of(part) for part in parts) == whole


# --- budgets and cursors -----------------------------------------------------------------------------


def test_fewer_than_fifty_tokens_are_refused() -> None:
    with pytest.raises(InvalidInput, match="50"):
        expand(POEM, max_tokens=49)


@pytest.mark.parametrize("view", ["lines", "grep", "json"])
def test_a_view_without_its_argument_is_refused_by_name(view: str) -> None:
    with pytest.raises(InvalidInput, match=f"`{'json_path' if view == 'json' else view}`"):
        expand(POEM, view=view)


@pytest.mark.parametrize("cursor", ["x", "p-1", "p12", "p12-zzzzzz", "q12-abcdef", "\x00", "p" + "9" * 30 + "-abcdef"])
def test_text_that_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidInput, match="not a cursor of this tool"):
        expand(POEM, cursor=cursor)


def test_a_cursor_names_its_view_and_one_of_another_ref_text_question_or_view_is_refused() -> None:
    cursor = expand(POEM, max_tokens=60).cursor
    assert cursor is not None
    assert view_of_cursor(cursor) == "page"
    moved = f"p1{cursor[1:]}"
    for raw, asked in (
        (POEM, {"ref": "r-000000000000"}),
        (POEM + "more", {}),
        (POEM, {"cursor": moved}),
        (POEM, {"view": "lines", "argument": "1-9"}),
    ):
        with pytest.raises(InvalidInput, match=r"another ref|continues view"):
            expand(raw, **{"cursor": cursor, **asked})


def test_a_string_that_reads_like_json_is_a_string() -> None:
    assert "[1, 2" in expand('"[1, 2"', view="json", argument="$").text
    assert "0 matches" in expand('"[1, 2"', view="json", argument="$[0]").text


@settings(max_examples=80, deadline=None)
@given(
    raw=st.one_of(st.text(max_size=400), st.recursive(st.integers() | st.text(max_size=9), st.lists).map(json.dumps)),
    view=st.sampled_from(["lines", "grep", "json"]),
    asked=st.one_of(st.text(min_size=1, max_size=12), st.sampled_from(["1-", "-3", ".", "$..*", "a|b", "$[*]"])),
    max_tokens=st.integers(50, 120),
)
def test_any_question_is_answered_within_the_budget_or_refused(
    raw: str, view: str, asked: str, max_tokens: int
) -> None:
    try:
        answers = follow(raw, view=view, max_tokens=max_tokens, argument=asked)
    except InvalidInput:
        return
    assert all(COUNTER.count(answer.text) == answer.tokens <= max_tokens for answer in answers)
