"""A tool result: its description, the steps it belongs to, its citations, and its content line by line.

A page shows a window of at most `WINDOW` serialised characters. `?from=LINE` starts it at a line, `?lines=12-14` (or
`?at=12`) a little before these lines, which are marked. A line longer than a window is shown in parts, `&char=N`.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio.to_thread

from mcp_memory.core.errors import Damaged
from mcp_memory.core.text import decode_text, one_line, plural, remove_hidden
from mcp_memory.core.types import MaskedPlace, Ref, Why
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
_LISTED = 40
_PER_LINE = 130
_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Line:
    """A line, or its part from the character `char` on; `masked` are spans of masked secrets, with their kind."""

    number: int
    text: str
    char: int = 0
    masked: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Consecutive lines of `total`, and where the windows before and after begin (line and character)."""

    lines: Sequence[Line]
    total: int
    before: tuple[int, int] | None
    after: tuple[int, int] | None


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
    begin = start or max(1, first - AROUND)
    window = await anyio.to_thread.run_sync(partial(window_of, data, ref.masked, line=begin, char=char if start else 0))
    return Page(
        title=f"Result {id_}",
        here="tasks",
        body=(
            el("p", ui.memory_text(one_line(why.text, 400), tag="code")),
            _facts(ref, window),
            ui.section(
                "Content",
                *_content(ref.id, window, first, last),
                beside=ui.link(f"/download/{id_}", "Download, byte for byte") if view.form_token else None,
            ),
            *_records_of(records),
            *_citing_statements(why),
        ),
    )


def _requested_lines(view: View) -> tuple[int, int]:
    """Return the first and the last line to mark, 0 if none are requested."""
    first, _, last = (view.query.get("lines") or view.query.get("at") or "").partition("-")
    return _number(first), _number(last) or _number(first)


def _number(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else 0


# --- description of the result ----------------------------------------------------------------------


def _facts(ref: Ref, window: Window | None) -> Element:
    size = plural(ref.bytes, "byte")
    size += f", {plural(window.total, 'line')}" if window else ""
    return ui.labelled_values(
        (
            ("Tool", ui.memory_text(ref.tool)),
            ("Arguments", _arguments(ref.arguments)),
            ("Taken", ui.moment(ref.timestamp)),
            ("Session", ui.link(f"/session/{ui.part(ref.session)}", ui.memory_text(ref.session))),
            ("Size", size),
            ("Type", ui.memory_text(ref.content_type)),
            (
                "Masked",
                plural(
                    len(ref.masked), "secret was replaced before it was stored", "secrets were replaced before storing"
                )
                if ref.masked
                else None,
            ),
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
        yield ui.section("Steps with this result", ui.rows(map(record_row, records)))


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
    listed = (_line(id_, line, marked=first <= line.number <= last) for line in window.lines)
    yield el("ol", listed, class_="lines", tabindex="0", aria_label=label)
    yield from turn


def _window_links(id_: str, window: Window) -> Iterator[Element]:
    """Yield links to the previous and the next window."""
    links = [
        el("a", label, href=ui.address(f"/{id_}", **{"from": place[0], "char": place[1] or ""}))
        for label, place in (("Previous lines", window.before), ("Next lines", window.after))
        if place
    ]
    if links:
        yield el("p", links, class_="pager")


def _line(id_: str, line: Line, *, marked: bool) -> Element:
    number = ui.link(f"/{id_}", str(line.number), at=line.number)
    return el("li", number, el("code", _pieces(line), dir="auto"), class_="mark" if marked else None)


def _pieces(line: Line) -> Iterator[Node]:
    """Yield the text of a line, with its placeholders of masked secrets marked."""
    place = 0
    for start, end, kind in line.masked:
        yield remove_hidden(line.text[place:start])
        shown = remove_hidden(line.text[start:end])
        yield el("span", shown, class_="masked", title=f"A secret was here: {kind}")
        place = end
    yield remove_hidden(line.text[place:])


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
    )


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
