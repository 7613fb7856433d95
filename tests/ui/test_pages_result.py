"""A tool result: its facts, its content in windows of lines, the lines that are linked to, what cites it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import MaskedPlace, NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import html, text_of, tree
from mcp_memory.ui.pages.result import HITS, MOST_HITS, PART, WINDOW, Hit, Window, find, window_of
from tests.ui.holding import at
from tests.ui.shown import elements, forms, links, text

LOG = "".join(f"line {number} <b>&amp; of the log\n" for number in range(1, 1_501))


async def kept(memory: Memory, content: str | bytes, **more: Any) -> str:
    done = await memory.offload_tool_result("shell", content, arguments={"command": "cat log"}, session="s", **more)
    assert done.ref
    return done.ref


def numbers(page: Page) -> list[int]:
    lines = next(one for one in elements(page) if str(one.attributes.get("class")).startswith("lines"))
    return [int(text_of(line.children[0])) for line in lines.children if not isinstance(line, str)]  # type: ignore[union-attr]


def marked(page: Page) -> list[str]:
    return [text_of(one) for one in elements(page) if one.tag == "li" and one.attributes.get("class") == "mark"]


async def test_a_result_has_its_facts_its_step_and_a_download(memory: Memory) -> None:
    ref = await kept(memory, LOG, task="Look", step="Read the log")
    shown = await at(memory, f"/{ref}")
    assert f"1,500 lines, {len(LOG):,} bytes" in text(shown)
    assert "cat log" in text(shown)
    assert shown.title.startswith("shell")
    assert {f"/download/{ref}", "/001-N1", "/session/s"} <= set(links(shown))


async def test_where_nothing_is_downloaded_there_is_no_link_for_it(memory: Memory) -> None:
    ref = await kept(memory, LOG)
    shown = await at(memory, f"/{ref}", form_token="")
    assert f"/download/{ref}" not in links(shown)
    assert {form.method for form in forms(shown)} == {"get"}


async def test_a_window_is_small_and_the_next_one_goes_on(memory: Memory) -> None:
    ref = await kept(memory, LOG)
    seen: list[int] = []
    address = f"/{ref}"
    while address:
        shown = await at(memory, address)
        assert sum(len(html(node)) for node in shown.body) < 100_000
        assert len(json.dumps([tree(node) for node in shown.body])) < 100_000
        seen += numbers(shown)
        address = next((href for href in links(shown) if "from=" in href and f"from={seen[-1] + 1}" in href), "")
    assert seen == list(range(1, 1_501))


async def test_lines_that_are_linked_to_are_marked_with_some_before_them(memory: Memory) -> None:
    ref = await kept(memory, LOG)
    shown = await at(memory, f"/{ref}?lines=1000-1002")
    assert marked(shown) == [f"{number}line {number} <b>&amp; of the log" for number in (1000, 1001, 1002)]
    assert numbers(shown)[0] == 994
    assert marked(await at(memory, f"/{ref}?at=7")) == ["7line 7 <b>&amp; of the log"]
    assert [one.attributes["id"] for one in elements(shown) if "id" in one.attributes] == ["content"]


@pytest.mark.parametrize("query", ["from=0", "from=-3", "from=x", "lines=9-", "lines=5-2", "at=", "from=99999999999"])
async def test_an_odd_place_shows_some_window(memory: Memory, query: str) -> None:
    ref = await kept(memory, "one\ntwo\n")
    assert numbers(await at(memory, f"/{ref}?{query}")) in ([1, 2], [2])


async def test_a_masked_secret_is_shown_as_masked(memory: Memory) -> None:
    ref = await kept(memory, "first\ntoken: ghp_" + "a1B2" * 9 + "\nlast\n")
    shown = await at(memory, f"/{ref}")
    places = [one for one in elements(shown) if one.attributes.get("class") == "masked"]
    assert len(places) == 1
    assert places[0].attributes["title"].startswith("A secret was here")
    assert "ghp_" not in text(shown)
    assert "1 secret was replaced" in text(shown)


async def test_bytes_that_are_no_text_are_only_downloaded(memory: Memory) -> None:
    ref = await kept(memory, bytes(range(256)) * 40)
    shown = await at(memory, f"/{ref}")
    assert "These bytes are no text" in text(shown)
    assert f"/download/{ref}" in links(shown)


async def test_what_cites_a_result_leads_to_it_and_to_the_lines(memory: Memory) -> None:
    ref = await kept(memory, LOG)
    turn = NewTurn(role="assistant", content=f"The fault is in {ref}:12-14, I think.")
    await memory.record_turns([turn], session="s")
    shown = await at(memory, f"/{ref}")
    assert {"/t1", f"/{ref}?lines=12-14"} <= set(links(shown))


async def test_a_result_that_is_not_there_is_not_found(memory: Memory) -> None:
    with pytest.raises(NotFound):
        await at(memory, "/r-0123456789ab")


async def test_bytes_that_were_changed_are_said_and_not_shown(memory: Memory, home: Path) -> None:
    ref = await kept(memory, LOG)
    (file,) = (home / "spaces" / "default" / "refs").glob(f"*{ref[2:]}*")
    file.write_bytes(file.read_bytes().replace(b"line 7 ", b"line 8 "))
    shown = await at(memory, f"/{ref}")
    assert "line 8" not in text(shown)
    assert [one for one in elements(shown) if one.attributes.get("class") == "note bad"]


# --- finding ----------------------------------------------------------------------------------------


def hits(page: Page, looks: str | None = None) -> list[str]:
    return [text_of(one) for one in elements(page) if one.tag == "mark" and one.attributes.get("class") == looks]


async def test_a_text_is_found_in_the_whole_result_with_the_lines_around_it(memory: Memory) -> None:
    ref = await kept(memory, LOG.replace("line 700 ", "line 700 Timeout, TIMEOUT "))
    shown = await at(memory, f"/{ref}?q=timeout")
    assert "2 hits in 1 line" in text(shown)
    assert numbers(shown) == [699, 700, 701]
    assert hits(shown) == ["Timeout", "TIMEOUT"]
    assert f"/{ref}?q=timeout&hit=1#hit" in links(shown)


TABLE = "part  place  pieces\n" + "".join(f"belt-{number}  A{number}  {number + 5}\n" for number in range(1, 60))


async def test_the_words_of_a_search_are_marked_and_not_the_lines_that_it_found(memory: Memory) -> None:
    ref = await kept(memory, LOG.replace("line 700 ", "line 700 Timeouts of the ferry "))
    shown = await at(memory, f"/{ref}?lines=698-702&q=was+there+a+timeout+of+the+ferry")
    assert marked(shown) == []
    assert hits(shown) == ["ferry"]
    (first,) = [one for one in elements(shown) if one.attributes.get("id") == "hit"]
    assert text_of(first) == "Timeouts"
    assert "Nothing in this result" not in text(shown)


@pytest.mark.parametrize("query", ["?at=40", "?q=belt-40", "?q=belt-40&hit=1", "?lines=40&q=belt-40"])
async def test_the_names_of_the_columns_stay_above_a_later_part_of_a_table(memory: Memory, query: str) -> None:
    ref = await kept(memory, TABLE)
    shown = await at(memory, f"/{ref}{query}")
    lines = [one for one in elements(shown) if one.tag == "li" and one.attributes.get("class") == "top"]
    assert [text_of(line) for line in lines] == ["1part  place  pieces"]


async def test_a_first_line_that_names_no_columns_is_a_line_like_others(memory: Memory) -> None:
    for content in (LOG, TABLE.replace("part  place  pieces", "60 parts are in the drawers:"), "a,b,c\n"):
        shown = await at(memory, f"/{await kept(memory, content)}?at=40")
        assert not [one for one in elements(shown) if one.attributes.get("class") == "top"]


async def test_from_hit_to_hit_by_links_that_have_keys(memory: Memory) -> None:
    ref = await kept(memory, LOG)
    shown = await at(memory, f"/{ref}?q=line+7+")
    assert "1 hit in 1 line" in text(shown)
    shown = await at(memory, f"/{ref}?q=of+the+log&hit=1000")
    assert numbers(shown)[:7] == list(range(994, 1_001))
    assert "Hit 1,000 of 1,500" in text(shown)
    assert hits(shown, "current") == ["of the log"]
    by_key = {
        one.attributes["data-key"]: one.attributes["href"] for one in elements(shown) if "data-key" in one.attributes
    }
    assert by_key == {key: f"/{ref}?q=of+the+log&hit={hit}#hit" for key, hit in (("n", 1_001), ("p", 999))}


async def test_a_hit_in_the_middle_of_a_very_long_line_is_in_sight(memory: Memory) -> None:
    ref = await kept(memory, "x" * 50_000 + "needle" + "y" * 50_000)
    assert hits(await at(memory, f"/{ref}?q=needle")) == ["needle"]
    assert hits(await at(memory, f"/{ref}?q=NEEDLE&hit=1"), "current") == ["needle"]


async def test_a_text_that_is_everywhere_makes_no_page_large(memory: Memory) -> None:
    ref = await kept(memory, ("e" * 500 + "\n") * 300)
    for query in ("q=e", "q=e&hit=1", "q=e&hit=9000", "q=e&hit=99999999"):
        shown = await at(memory, f"/{ref}?{query}")
        assert sum(len(html(node)) for node in shown.body) < 80_000
    assert f"The first {MOST_HITS:,} hits" in text(await at(memory, f"/{ref}?q=e"))


async def test_what_is_not_there_and_a_line_beyond_the_end_are_said(memory: Memory) -> None:
    ref = await kept(memory, LOG)
    assert "Nothing in this result reads “<b>x”." in text(await at(memory, f"/{ref}?q=%3Cb%3Ex"))
    shown = await at(memory, f"/{ref}?at=9999")
    assert "There is no line 9,999; the last one is 1,500." in text(shown)
    assert numbers(shown) == [1_500]


LINES = st.lists(st.text("aAbß\r.*", max_size=6), max_size=9)


@given(LINES, st.text("aAbß.*", min_size=1, max_size=2))
def test_hits_are_the_places_where_a_line_has_the_text(lines: list[str], sought: str) -> None:
    found = find("\n".join(lines).encode(), sought)
    assert found
    texts = [lines[hit.line - 1][hit.start : hit.end] for hit in found.hits]
    assert [one.lower() for one in texts] == [sought.lower()] * len(texts)
    assert len(texts) == sum(line.lower().count(sought.lower()) for line in lines)
    assert found.hits == sorted(found.hits, key=lambda hit: (hit.line, hit.start))
    assert {hit.line for hit in found.hits[:HITS]} <= found.around.keys()


def test_hits_are_counted_from_the_first_line() -> None:
    found = find(b"one\ntwo two\n", "TWO")
    assert found
    assert list(found.hits) == [Hit(2, 0, 3), Hit(2, 4, 7)]
    assert dict(found.around) == {1: "one", 2: "two two"}
    assert find(bytes(range(256)), "a") is None


# --- windows ----------------------------------------------------------------------------------------


def walk(data: bytes) -> list[Window]:
    windows: list[Window] = []
    place: tuple[int, int] | None = (1, 0)
    while place:
        window = window_of(data, (), line=place[0], char=place[1])
        assert window
        windows.append(window)
        place = window.after
    return windows


@given(st.lists(st.sampled_from(["", "a", "<&>" * 500, "x" * (PART + 1), "y" * (3 * PART), "z" * PART]), max_size=40))
def test_windows_hold_all_of_a_text_once(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    windows = walk(data)
    told: dict[int, str] = {}
    for window in windows:
        assert sum(len(line.text) for line in window.lines) <= WINDOW
        for line in window.lines:
            assert len(told.get(line.number, "")) == line.char
            told[line.number] = told.get(line.number, "") + line.text
    assert list(told.values()) == lines


@given(st.lists(st.sampled_from(["", "a", "<&>" * 900, "x" * (PART + 1), "y" * (3 * PART)]), max_size=30))
def test_the_window_before_ends_where_the_next_begins_or_later(lines: list[str]) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()
    for window in walk(data)[1:]:
        assert window.before
        earlier = window_of(data, (), line=window.before[0], char=window.before[1])
        assert earlier
        assert earlier.after
        first = window.lines[0]
        assert (earlier.lines[0].number, earlier.lines[0].char) < (first.number, first.char) <= earlier.after


def test_masked_places_are_found_in_a_text_of_many_bytes_a_character() -> None:
    data = "schöner Tag\n漢字 [secret] ende\n".encode()
    start = data.index(b"[secret]")
    window = window_of(data, [MaskedPlace(start=start, end=start + 8, kind="password")], line=1)
    assert window
    (line,) = [one for one in window.lines if one.masked]
    ((begin, end, kind),) = line.masked
    assert (line.text[begin:end], kind) == ("[secret]", "password")


def test_an_empty_result_has_no_lines() -> None:
    assert window_of(b"", (), line=1) == Window(lines=(), total=0, before=None, after=None)
