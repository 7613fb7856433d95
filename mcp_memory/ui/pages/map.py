"""The map: the names and topics of a memory as a picture over time, and as a table.

`?day=` is a day as the slider counts them, from 1 January of the year 1, or `?on=` a date; `?from=` is the first row of
the table. Spots lie where they lie today; counts and sizes are those of the day. Without scripts slider and date are a
form that loads the page, and the picture shows the largest names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import plural
from mcp_memory.core.types import MemoryMap
from mcp_memory.service.memory import Memory
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pictures.map import MOST_DRAWN, Map, Spot, as_json, as_of, count_of, laid_out, legend, picture
from mcp_memory.ui.times import day_of, day_text, end_of

MOST = 2_000
"""Names and topics on the map."""
_ROWS = 50
_BARS = 72
_BAR_HEIGHT = 28
_DAYS = 120  # the slider moves by days if the memory is not older, else by weeks
_NONE = "No statement names anybody yet. Names are read from what you say in conversations, in the background."
_KEYS = "Zoom with + and −, move with the arrow keys, 0 shows all. Tab goes from name to name."


async def memory_map(view: View) -> Page:
    """Show the map on a day, today by default."""
    today = day_of(view.memory.now())
    given, drawn, day = await _map_on(view.memory, _day(view.query, today), today)
    if not given.nodes:
        return Page(title="Map", here="map", body=ui.body(ui.empty(_NONE)))
    first = min(spot.begun for spot in drawn.spots)
    shown = [drawn.spots[at] for at in drawn.on(day)]
    lines = sum(line.is_on(day) for line in drawn.lines)
    return Page(
        title="Map",
        here="map",
        body=ui.body(
            el("p", _lead(shown, lines, day), class_="lead"),
            ui.note(f"These are the {MOST:,} with the most statements, of {given.total:,}.")
            if given.total > len(given.nodes)
            else None,
            _slider(drawn, first, today, day),
            _picture(drawn, day, shown),
            _table(view, shown, day, today),
        ),
    )


async def map_data(memory: Memory, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the whole map for `static/map.js`, with the sizes of a day if the query has one."""
    today = day_of(memory.now())
    _, drawn, _ = await _map_on(memory, _day(query, today), today)
    return as_json(drawn)


async def _map_on(memory: Memory, day: date, today: date) -> tuple[MemoryMap, Map, date]:
    """Return the map with the sizes of a day, and the day: not before the first one of the map."""
    given = await memory.entity_map(limit=MOST, as_of=end_of(day) if day < today else None)
    drawn = await anyio.to_thread.run_sync(laid_out, given)
    first = min((spot.begun for spot in drawn.spots), default=today)
    if day < min(first, today):
        return await _map_on(memory, min(first, today), today)
    return given, as_of(drawn, given.then), day


def _day(query: Mapping[str, str], today: date) -> date:
    """Return the day that was asked for: the date if it was changed, else that of the slider."""
    asked, on = query.get("day"), query.get("on")
    try:
        if on and on != query.get("was"):
            chosen = date.fromisoformat(on)
        elif asked:
            chosen = date.fromordinal(int(asked))
        else:
            return today
    except (ValueError, OverflowError):
        raise InvalidInput("A day of the map is a date, or a number of days as the slider counts them.") from None
    return min(today, chosen)


def _lead(shown: Sequence[Spot], lines: int, day: date) -> str:
    topics = sum(spot.node.topic is not None for spot in shown)
    parts = [plural(len(shown) - topics, "name"), plural(topics, "topic") if topics else None]
    return f"On {day_text(day)}: {', '.join(filter(None, parts))}, {plural(lines, 'pair')} mentioned together."


def _slider(drawn: Map, first: date, today: date, day: date) -> Element | None:
    days = (today - first).days
    if days < 1:
        return None
    step = 1 if days <= _DAYS else 7
    last = today.toordinal()
    least = last - -(-days // step) * step
    field = el("input", type="range", name="day", min=least, max=last, step=step, value=day.toordinal(),
               aria_label="Day")  # fmt: skip
    return el(
        "form",
        _bars(drawn, least, last),
        field,
        el("input", type="date", name="on", min=first.isoformat(), max=today.isoformat(), value=day.isoformat(),
           required=True, aria_label="Date"),
        *ui.hidden({"was": day.isoformat()}),
        el("button", "Show"),
        ui.link("/map", "Back to today") if day != today else None,
        method="get",
        action="/map",
        class_="map-time",
    )  # fmt: skip


def _bars(drawn: Map, least: int, last: int) -> Element:
    """Return bars above the slider: how many names were new."""
    counts = [0] * _BARS
    for spot in drawn.spots:
        counts[min(len(counts) - 1, (spot.begun.toordinal() - least) * len(counts) // (last - least + 1))] += 1
    width, most = 100 / len(counts), max(counts)
    bars = (
        el("rect", x=f"{at * width + width * 0.15:.4g}%", width=f"{width * 0.7:.3g}%", rx=1,
           y=f"{_BAR_HEIGHT * (1 - count / most):.3g}", height=f"{_BAR_HEIGHT * count / most:.3g}")
        for at, count in enumerate(counts) if count
    )  # fmt: skip
    return el("svg", bars, width="100%", height=_BAR_HEIGHT, aria_hidden="true")


def _picture(drawn: Map, day: date, shown: Sequence[Spot]) -> Element:
    marks_new = drawn.has_older(day)
    notes = [
        "The larger a spot, the more statements mention it.",
        " Lines join" if any(line.is_on(day) for line in drawn.lines) else " Lines will join",
        " what one statement mentions together.",
        " A ring marks what is new this week." if marks_new and any(spot.is_new(day) for spot in shown) else None,
        " Squares are topics." if any(spot.node.topic for spot in shown) else None,
        el("span", f" The {MOST_DRAWN} largest are drawn.", class_="without-script")
        if len(shown) > MOST_DRAWN
        else None,
    ]
    buttons = (
        el("button", sign, type="button", data_zoom=what, title=name, aria_label=name, hidden=True)
        for sign, what, name in (("+", "in", "Zoom in"), ("−", "out", "Zoom out"), ("All", "all", "Show all"))
    )
    return el(
        "figure",
        el("a", "Skip the picture: the same as a table", href="#names", class_="skip"),
        el(
            "div",
            picture(drawn, day, label="Names that are mentioned together", marks_new=marks_new),
            class_="picture",
            tabindex="0",
            role="region",
            aria_label=f"Map. {_KEYS}",
        ),
        el("div", buttons, class_="map-zoom"),
        el("figcaption", legend(drawn, day), notes),
        class_="map",
        data_map=True,
    )


def _table(view: View, shown: Sequence[Spot], day: date, today: date) -> Element:
    start = view.query.get("from", "")
    begin = int(start) if start.isascii() and start.isdecimal() and len(start) < 7 else 0
    page = shown[begin : begin + _ROWS]
    head = ("Name", "Statements", "First", "Last")
    lines = (
        (
            ui.link(spot.address, ui.memory_text(spot.name)),
            count_of(spot.node),
            ui.moment(spot.node.first, day=True),
            ui.moment(spot.node.last, day=True),
        )
        for spot in page
    )
    asked = None if day == today else day.toordinal()
    links = [
        el("a", text, href=ui.address("/map", **{"day": asked, "from": place or None}))
        for text, place, is_there in (
            ("Previous names", max(0, begin - _ROWS), begin > 0),
            ("More names", begin + _ROWS, begin + _ROWS < len(shown)),
        )
        if is_there
    ]
    return ui.section(
        "Names" if day == today else f"Names on {day_text(day)}",
        ui.table("Names and topics, those with the most statements first", head, lines),
        el("p", links, class_="pager") if links else None,
        id="names",
    )
