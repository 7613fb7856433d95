"""A tool result: its description, the steps it belongs to, its citations, and its content line by line.

A page shows a window of at most `WINDOW` serialised characters. `?from=LINE` starts it at a line, `?lines=12-14` (or
`?at=12`) a little before these lines, which are marked. A line longer than a window is shown in parts, `&char=N`.

`?q=TEXT` lists the lines that contain a text, in any case, each with the line before and after it; with `&hit=N` the
window begins a little before hit N, and links lead to the hits before and after it. With `lines`, as from a search, the
words of the text are marked instead of the lines. The current hit, or the first word, is the place `#hit`.

The first line of a table stays in sight.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice, pairwise
from typing import Any

import anyio.to_thread

from mcp_memory.core.errors import Damaged
from mcp_memory.core.text import decode_text, one_line, plural, remove_hidden
from mcp_memory.core.types import MaskedPlace, Ref, Why
from mcp_memory.longterm.search.marking import marks_of
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, Node, el
from mcp_memory.ui.pages.canvas import record_row

WINDOW = 64_000
"""Most characters of the lines of a page, serialised as HTML or JSON."""
PART = 10_000
"""Most characters of a line on a page."""
AROUND = 6
"""Lines shown before a linked line."""
MOST_HITS = 10_000
"""Hits that are counted."""
HITS = 100
"""Hits listed on a page."""
_MARKED = 150  # hits before and after the current one that are marked
_SHOWN = 240  # characters of a line in the list of hits
_BEFORE_HIT = 200  # characters of a long line
_MOST_SOUGHT = 200  # characters of a text to find
_LISTED = 40
_TITLE = 100  # characters
_PER_LINE = 130
_MAX_DIGITS = 9
_COMPARED = 5  # lines of which those of a table have the same number of cells
_BETWEEN_CELLS = re.compile(r" {2,}|[\t|,;]")


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or its part from the character `char` on; `masked` are spans of masked secrets, with their kind."""

    number: int
    text: str
    char: int = 0
    masked: tuple[tuple[int, int, str], ...] = ()
    hits: tuple[tuple[int, int, bool], ...] = ()
    """Spans of a text that was searched for; True for the current one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Consecutive lines of `total`, and where the windows before and after begin (line and character)."""

    lines: Sequence[Line]
    total: int
    before: tuple[int, int] | None
    after: tuple[int, int] | None
    head: str | None = None
    """The first line of the result if the lines are those of a table."""


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a text was found: a line, from 1, and a span of its characters."""

    line: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The hits of a text, in order, the current one (from 1, or 0), and the lines around the listed hits by number."""

    sought: str
    hits: Sequence[Hit]
    current: int
    around: Mapping[int, str]


async def result(view: View) -> Page:
    """Show a tool result; damaged bytes are reported and not shown. Raises NotFound for an unknown id."""
    id_ = view.parts["id"]
    records = await view.memory.records(ref=id_, limit=_LISTED)
    why = await view.memory.why(id_)
    try:
        ref, data = await view.memory.ref(id_)
    except Damaged as error:
        body = (ui.note(str(error), kind="bad"), *_records_of(records), *_citing_statements(why))
        return Page(title=f"Result {id_}", here="tasks", body=body)
    first, last = _requested_lines(view)
    start, char = _number(view.query.get("from")), _number(view.query.get("char"))
    begin, sought = start or max(1, first - AROUND), view.query.get("q", "")[:_MOST_SOUGHT]
    found = None
    if sought.strip():
        found = await anyio.to_thread.run_sync(partial(find, data, sought, current=_number(view.query.get("hit"))))
    by_words = bool(sought.strip() and first)
    if found and found.current and not start:
        hit = found.hits[found.current - 1]
        is_long = hit.end > PART
        start = begin = hit.line if is_long else max(1, hit.line - AROUND)
        char = max(0, hit.start - _BEFORE_HIT) if is_long else 0
    window = await anyio.to_thread.run_sync(partial(window_of, data, ref.masked, line=begin, char=char if start else 0))
    if window and by_words:
        window = await anyio.to_thread.run_sync(_with_words, window, sought, first)
    elif window and found:
        window = replace(window, lines=[_with_hits(line, found) for line in window.lines])
    is_list = found is not None and not found.current and not by_words
    title = (await view.memory.titles([ref.session])).get(ref.session) or ref.session
    return Page(
        title=remove_hidden(one_line(why.text, _TITLE)),
        here="tasks",
        body=ui.body(
            ui.line(
                ui.moment(ref.timestamp),
                _size(ref, window),
                ui.session_link(ref.session, title),
                ui.link(f"/download/{id_}", "Download, byte for byte") if view.form_token else None,
            ),
            ui.section(
                None,
                *_ways(ref.id, window, found, first),
                *(
                    _list_of_hits(ref.id, found, window.head if window else None)
                    if found and is_list
                    else _content(ref.id, window, *((0, 0) if by_words else (first, last)))
                ),
                id="content",
            ),
            *_records_of(records),
            *_citing_statements(why),
            el("details", el("summary", "Details"), _facts(ref)),
        ),
    )


def _requested_lines(view: View) -> tuple[int, int]:
    """Return the first and the last line to mark, 0 if none are requested."""
    first, _, last = (view.query.get("lines") or view.query.get("at") or "").partition("-")
    return _number(first), _number(last) or _number(first)


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else 0


# --- description of the result ----------------------------------------------------------------------


def _size(ref: Ref, window: Window | None) -> str:
    size = plural(ref.bytes, "byte")
    return f"{plural(window.total, 'line')}, {size}" if window else size


def _facts(ref: Ref) -> Element:
    return ui.labelled_values(
        (
            ("Tool", ui.memory_text(ref.tool)),
            ("Arguments", _arguments(ref.arguments)),
            ("Type", ui.memory_text(ref.content_type)),
            (
                "Masked",
                plural(
                    len(ref.masked), "secret was replaced before it was stored", "secrets were replaced before storing"
                )
                if ref.masked
                else None,
            ),
            ("Result", el("span", ref.id, class_="id")),
            ("SHA-256", el("code", ref.sha256)),
        )
    )


def _arguments(arguments: Any) -> Element | None:
    if arguments in (None, {}, "", []):
        return None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return ui.memory_text(one_line(text, 600), tag="code")


def _records_of(records: Sequence[Any]) -> Iterator[Element]:
    if records:
        yield ui.section("Steps with this result", ui.rows(record_row(record, is_open=True) for record in records))


def _citing_statements(why: Why) -> Iterator[Element]:
    if why.cited_by:
        lines = (
            el(
                "div",
                el("p", ui.link(f"/{citation.id}", ui.memory_text(one_line(citation.text, 240))), class_="said"),
                ui.line(el("span", citation.id, class_="id"), _place(citation.at)),
            )
            for citation in why.cited_by[:_LISTED]
        )
        yield ui.section("Cited by", ui.rows(lines))


def _place(at: str) -> Element:
    """Return a citation (`r-…:120-134`) as a link to the cited lines."""
    ref, _, lines = at.partition(":")
    return ui.link(f"/{ref}", at, class_="id", lines=lines)


# --- finding ----------------------------------------------------------------------------------------


def find(data: bytes, sought: str, *, current: int = 0) -> Found | None:
    """Return the first MOST_HITS hits of a text, in any case; None if the data are not text."""
    text = decode_text(data)
    if text is None:
        return None
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]

    def hit_at(start: int, end: int) -> Hit:
        line = bisect_right(starts, start)
        return Hit(line, start - starts[line - 1], end - starts[line - 1])

    matches = re.finditer(re.escape(sought), text, re.IGNORECASE)
    hits = [hit_at(*match.span()) for match in islice(matches, MOST_HITS)]
    listed = {hit.line for hit in hits[:HITS]}
    around = {line + step for line in listed for step in (-1, 0, 1)}
    total = len(starts) - 1 - text.endswith("\n")
    lines = {line: text[starts[line - 1] : starts[line] - 1] for line in sorted(around) if 1 <= line <= total}
    return Found(sought=sought, hits=hits, current=min(current, len(hits)), around=lines)


def _ways(id_: str, window: Window | None, found: Found | None, first: int) -> Iterator[Element]:
    """Yield the fields that find a text and go to a line, and what was found."""
    if window is None or not window.lines:
        return
    label = "Find in this result"
    field = el("input", type="search", name="q", value=found.sought if found else None, placeholder=label,
               aria_label=label, required=True, maxlength=_MOST_SOUGHT, dir="auto")  # fmt: skip
    number = el("input", type="number", name="at", min=1, max=window.total, inputmode="numeric", required=True)
    yield el(
        "div",
        el("form", field, el("button", "Find"), method="get", action=f"/{id_}#content", role="search"),
        el(
            "form",
            el("label", "Line ", number, class_="field"),
            el("button", "Go"),
            method="get",
            action=f"/{id_}#content",
        ),
        class_="ways",
    )
    if first > window.total:
        yield ui.note(f"There is no line {first:,}; the last one is {window.total:,}.")
    if found and (found.hits or not first):
        yield el("p", *_hits_in_words(id_, found, is_list=not first), class_="pager", role="status")


def _hits_in_words(id_: str, found: Found, *, is_list: bool) -> Iterator[Node]:
    many, at = len(found.hits), found.current
    if not many:
        yield el("span", "Nothing in this result reads “", ui.memory_text(found.sought), "”.")
        return
    lines = plural(len({hit.line for hit in found.hits}), "line")
    total = f"The first {many:,} hits" if many == MOST_HITS else plural(many, "hit")
    yield el("span", f"Hit {at:,} of {many:,}" if at else f"{total} in {lines}")
    if at > 1:
        yield _to_hit(id_, found, at - 1, "Previous hit", "p")
    if at < many:
        yield _to_hit(id_, found, at + 1, "Next hit" if at else "First hit", "n")
    if at or not is_list:
        yield ui.link(f"/{id_}#content", "All hits", q=found.sought)


def _to_hit(id_: str, found: Found, hit: int, text: str, key: str) -> Element:
    address = ui.address(f"/{id_}#hit", q=found.sought, hit=hit)
    return el("a", text, " ", el("code", key), href=address, data_key=key, aria_keyshortcuts=key)


def _list_of_hits(id_: str, found: Found, head: str | None) -> Iterator[Element]:
    """Yield the listed hits as lines, with the lines around them; the number of a line with hits leads to its first."""
    if not found.hits:
        return
    first_hits = {hit.line: number for number, hit in reversed(list(enumerate(found.hits[:HITS], 1)))}
    rows = [_head(id_, head)] if head and 1 not in found.around else []
    for before, line in pairwise([len(rows), *found.around]):
        if line > before + 1 and rows:
            rows.append(_gap())
        shown = _around_hit(line, found)
        is_hit = line in first_hits
        number = (
            ui.link(f"/{id_}#hit", str(line), q=found.sought, hit=first_hits[line])
            if is_hit
            else ui.link(f"/{id_}#content", str(line), at=line)
        )
        code = el("code", _pieces(shown), dir="auto")
        rows.append(el("li", number, code, class_="top" if head and line == 1 else None if is_hit else "beside"))
    yield el("ol", rows, class_="lines hits", tabindex="0", aria_label=f"Lines with hits, at most {HITS} hits")
    if len(found.hits) > HITS:
        yield el("p", f"These are the first {HITS}. The others follow with “Next hit”.")


def _around_hit(number: int, found: Found) -> Line:
    """Return a line of the list, cut around its first hit if it is long, with its hits."""
    text = found.around[number]
    spans = [(hit.start, hit.end) for hit in found.hits[:HITS] if hit.line == number]
    begin = max(0, spans[0][0] - _SHOWN // 3) if spans and len(text) > _SHOWN else 0
    end = begin + _SHOWN
    cut = "…" if begin else ""
    shown = f"{cut}{text[begin:end]}{'…' if len(text) > end else ''}"
    moved = len(cut) - begin
    hits = tuple((start + moved, min(stop, end) + moved, False) for start, stop in spans if start < end)
    return Line(number, shown, hits=hits)


def _with_words(window: Window, query: str, first: int) -> Window:
    """Return a window with the words of a query marked; the first from the line `first` on is the current hit."""
    marks, is_found = marks_of(query), False
    lines: list[Line] = []
    for line in window.lines:
        spans = marks(line.text)
        is_first = bool(spans) and line.number >= first and not is_found
        is_found = is_found or is_first
        hits = tuple((start, end, is_first and at == 0) for at, (start, end) in enumerate(spans))
        lines.append(replace(line, hits=hits))
    return replace(window, lines=lines)


def _with_hits(line: Line, found: Found) -> Line:
    """Return a line of a window with the spans of its hits."""
    begin, end = max(0, found.current - _MARKED), line.char + len(line.text)
    spans = tuple(
        (max(hit.start, line.char) - line.char, min(hit.end, end) - line.char, number == found.current)
        for number, hit in enumerate(found.hits[begin : found.current + _MARKED], begin + 1)
        if hit.line == line.number and hit.start < end and hit.end > line.char
    )
    return replace(line, hits=spans)


# --- its content ------------------------------------------------------------------------------------


def _content(id_: str, window: Window | None, first: int, last: int) -> Iterator[Element]:
    if window is None:
        yield ui.note("These bytes are no text. Download them to look at them.")
        return
    if not window.lines:
        yield ui.empty("The result is empty.")
        return
    first_line, last_line = window.lines[0], window.lines[-1]
    if first_line.number == last_line.number and (
        first_line.char or window.after == (first_line.number, first_line.char + PART)
    ):
        label = (
            f"Part of line {first_line.number} of {ui.count(window.total)}, from character "
            f"{ui.count(first_line.char + 1)}"
        )
    else:
        label = f"Lines {ui.count(first_line.number)} to {ui.count(last_line.number)} of {ui.count(window.total)}"
    turn = list(_window_links(id_, window))
    yield el("p", label, class_="empty")
    yield from turn[:1] if window.before else []
    head = [_head(id_, window.head), _gap()] if window.head and first_line.number > 1 else []
    listed = (
        _line(
            id_, line, "mark" if first <= line.number <= last else "top" if window.head and line.number == 1 else None
        )
        for line in window.lines
    )
    yield el("ol", head, listed, class_="lines", tabindex="0", aria_label=label)
    yield from turn


def _head(id_: str, head: str) -> Element:
    """Return the first line of a table for a list that begins later."""
    return _line(id_, Line(1, head[:PART]), "top")


def _gap() -> Element:
    return el("li", el("span", "⋯"), class_="gap")


def _window_links(id_: str, window: Window) -> Iterator[Element]:
    """Yield links to the previous and the next window."""
    links = [
        el("a", label, href=ui.address(f"/{id_}#content", **{"from": place[0], "char": place[1] or ""}))
        for label, place in (("Previous lines", window.before), ("Next lines", window.after))
        if place
    ]
    if links:
        yield el("p", links, class_="pager")


def _line(id_: str, line: Line, class_: str | None) -> Element:
    number = ui.link(f"/{id_}#content", str(line.number), at=line.number)
    return el("li", number, el("code", _pieces(line), dir="auto"), class_=class_)


def _pieces(line: Line) -> Iterator[Node]:
    """Yield the text of a line, with its hits and its placeholders of masked secrets marked."""
    spans = [(start, end) for start, end, _ in (*line.masked, *line.hits)]
    cuts = sorted({0, len(line.text), *(place for span in spans for place in span)})
    for start, end in pairwise(cuts):
        piece: Node = remove_hidden(line.text[start:end])
        for first, last, kind in line.masked:
            if first <= start < last:
                piece = el("span", piece, class_="masked", title=f"A secret was here: {kind}")
        for first, last, is_current in line.hits:
            if first <= start < last:
                place = "hit" if is_current and start == first else None
                piece = el("mark", piece, class_="current" if is_current else None, id=place)
        yield piece


# --- windows ----------------------------------------------------------------------------------------


def window_of(data: bytes, masked: Sequence[MaskedPlace], *, line: int, char: int = 0) -> Window | None:
    """Return the window that begins at a line and, in a long line, at a character; None if the data are not text."""
    text = decode_text(data)
    if text is None:
        return None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    total = len(lines)
    if not total:
        return Window(lines=(), total=0, before=None, after=None)
    at = min(max(line, 1), total)
    char = char if 0 < char < len(lines[at - 1]) else 0
    if char or len(lines[at - 1]) > PART:
        shown = [Line(at, lines[at - 1][char : char + PART], char)]
        end = (at, char + PART) if char + PART < len(lines[at - 1]) else (at + 1, 0)
    else:
        shown = list(_fitting_lines(lines, at))
        end = (shown[-1].number + 1, 0)
    return Window(
        lines=_with_masked_places(shown, lines, _in_characters(text, data, masked)),
        total=total,
        before=_before(lines, at, char),
        after=end if end[0] <= total else None,
        head=lines[0] if _is_table(lines) else None,
    )


def _is_table(lines: Sequence[str]) -> bool:
    """Return whether the first line names columns: as many as the lines after it have, and no number among them."""
    first = [line for line in lines[:_COMPARED] if any(map(str.isalnum, line))]
    columns = {len(_BETWEEN_CELLS.split(line.strip())) for line in first}
    is_named = bool(first) and first[0] == lines[0] and not any(map(str.isdigit, lines[0]))
    return is_named and len(first) > 2 and len(columns) == 1 and min(columns) > 2


def _fitting_lines(lines: Sequence[str], at: int) -> Iterator[Line]:
    """Yield the lines, from line `at` on, that fit into a window; a long line begins a separate window."""
    room = WINDOW
    for number in range(at, len(lines) + 1):
        room -= _page_chars(lines[number - 1])
        if number > at and (room < 0 or len(lines[number - 1]) > PART):
            return
        yield Line(number, lines[number - 1])


def _page_chars(line: str) -> int:
    """Return how many characters a line takes on a page, in the larger of its two serialisations."""
    part = line[: PART + 1]
    return _PER_LINE + max(len(html.escape(part)), len(json.dumps(part, ensure_ascii=False)))


def _before(lines: Sequence[str], at: int, char: int) -> tuple[int, int] | None:
    """Return the start of the previous window as line and character, None at the beginning."""
    if char:
        return at, max(0, char - PART)
    if at == 1:
        return None
    long = len(lines[at - 2])
    if long > PART:
        return at - 1, (long - 1) // PART * PART
    room, first = WINDOW, at
    while first > 1 and len(lines[first - 2]) <= PART and (room := room - _page_chars(lines[first - 2])) >= 0:
        first -= 1
    return min(first, at - 1), 0


def _in_characters(text: str, data: bytes, masked: Sequence[MaskedPlace]) -> list[tuple[int, int, str]]:
    """Return masked spans, given in bytes, in characters of the text; empty if the text is not UTF-8."""
    if not masked or text.encode("utf-8", "replace") != data:
        return []
    places: list[tuple[int, int, str]] = []
    byte = char = 0
    for place in sorted(masked, key=lambda place: place.start):
        start = char + len(data[byte : place.start].decode("utf-8", "replace"))
        end = start + len(data[place.start : place.end].decode("utf-8", "replace"))
        places.append((start, end, place.kind))
        byte, char = place.end, end
    return places


def _with_masked_places(
    shown: Sequence[Line], lines: Sequence[str], places: Sequence[tuple[int, int, str]]
) -> list[Line]:
    """Return the lines with the masked spans in each."""
    if not places:
        return list(shown)
    begin = sum(len(line) + 1 for line in lines[: shown[0].number - 1]) + shown[0].char
    done: list[Line] = []
    for line in shown:
        end = begin + len(line.text)
        inside = tuple((max(a, begin) - begin, min(b, end) - begin, kind) for a, b, kind in places
                       if a < end and b > begin)  # fmt: skip
        done.append(Line(line.number, line.text, line.char, inside))
        begin = end + 1
    return done
