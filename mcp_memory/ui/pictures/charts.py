"""Charts: bars, bars by day, and facts over time; and estimates of text widths.

Widths of bars are percentages, so text keeps its size. Text widths are estimated without the font, rather too wide.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime

from mcp_memory.core.text import remove_hidden
from mcp_memory.core.types import Fact
from mcp_memory.ui.components import badge, count, line, link, moment, name_of_source, relation_words
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.times import day_of, day_text

LOOKS = ("first", "second", "third")
"""Classes of the series of a chart by day; the style sheet distinguishes them without colour too."""
HEIGHT = 120
"""Height of the bars in a chart by day, in pixels."""


def signals(found_by: Mapping[str, float | None], *, most: float | None = None) -> Element:
    """Return a bar for each signal of a hit, the strongest first; `most` is the value of a full bar.

    A signal without a value is listed too, because it found the row, only without a score.
    """
    strongest_first = sorted(found_by.items(), key=lambda signal: -(signal[1] or 0.0))
    full = most or max((value or 0.0 for value in found_by.values()), default=0.0)
    lines = (
        el(
            "li",
            el("span", name, dir="auto"),
            _bar(100 * (value or 0.0) / full if full else 0.0),
            el("span", "–" if value is None else f"{value:.3f}", class_="number"),
        )
        for name, value in strongest_first
    )
    return el("ul", lines, class_="bars", aria_label="How each signal found it")


def _bar(percent: float) -> Element:
    kind = "bar" if percent >= 0 else "bar second"
    return el(
        "svg",
        el("rect", width="100%", height="100%", rx=2, class_="groove"),
        el("rect", width=f"{min(100.0, abs(percent)):.4g}%", height="100%", rx=2, class_=kind),
        width="100%",
        height=10,
        aria_hidden="true",
    )


def _number(value: float) -> str:
    return count(value, digits=0 if value == int(value) else 2)


# --- by day -----------------------------------------------------------------------------------------
def days(series: Sequence[tuple[date, Mapping[str, float]]], *, label: str) -> Element:
    """Return grouped bars for the values of each day, under a legend; negative values hang down.

    `series` has the oldest day first, which is on the left. Each day has a tooltip with its values.
    """
    names = list(dict.fromkeys(name for _, values in series for name in values))
    all_values = [value for _, values in series for value in values.values()]
    top, bottom = max([0.0, *all_values]), min([0.0, *all_values])
    scale = HEIGHT / max(top - bottom, 1e-9)
    zero = 16 + top * scale
    drawn = (_day(at, day, values, names, 100 / len(series), zero, scale) for at, (day, values) in enumerate(series))
    chart = el(
        "svg",
        el("title", label),
        el("line", x1=0, x2="100%", y1=f"{zero:.4g}", y2=f"{zero:.4g}", class_="grid"),
        el("text", _number(top), x=0, y=11) if top else None,
        drawn,
        _ends(series),
        width="100%",
        height=HEIGHT + 38,
        role="img",
        aria_label=_describe_chart(series, names, label),
    )
    return el("figure", _legend(names) if len(names) > 1 else None, chart, class_="days")


def _day(at: int, day: date, values: Mapping[str, float], names: Sequence[str], width: float, zero: float, scale: float
         ) -> Element:  # fmt: skip
    summary = "; ".join(f"{name}: {_number(values[name])}" for name in names if name in values)
    each = width * 0.8 / len(names) if names else 0.0
    drawn: list[Element] = []
    for place, name in enumerate(names):
        if height := abs(values.get(name, 0.0)) * scale:
            height = max(1.0, height)
            top = zero - height if values[name] > 0 else zero
            left = f"{at * width + width * 0.1 + place * each:.4g}%"
            drawn.append(el("rect", x=left, y=f"{top:.4g}", width=f"{each:.4g}%", height=f"{height:.4g}",
                            class_=f"bar {LOOKS[place % len(LOOKS)]}"))  # fmt: skip
    return el("g", el("title", f"{day_text(day)}: {summary}"), drawn)


def _ends(series: Sequence[tuple[date, Mapping[str, float]]]) -> list[Element]:
    """Return the first and the last day, under the bars."""
    if not series:
        return []
    low = HEIGHT + 34
    first = el("text", day_text(series[0][0]), x=0, y=low)
    if len(series) == 1:
        return [first]
    return [first, el("text", day_text(series[-1][0]), x="100%", y=low, text_anchor="end")]


def _legend(names: Sequence[str]) -> Element:
    def swatch(place: int) -> Element:
        looks = f"bar {LOOKS[place % len(LOOKS)]}"
        return el("svg", el("rect", x=1, y=1, width=10, height=10, class_=looks), width=12, height=12,
                  aria_hidden="true")  # fmt: skip

    return el("figcaption", (el("span", swatch(place), " ", name) for place, name in enumerate(names)), class_="line")


def _describe_chart(series: Sequence[tuple[date, Mapping[str, float]]], names: Sequence[str], label: str) -> str:
    """Return the chart in words: the sum of each series."""
    sums = (f"{name}: {_number(sum(values.get(name, 0.0) for _, values in series))}" for name in names)
    return f"{label}. {'; '.join(sums)}" if names else label


_NARROW = frozenset("iljtfrI.,:;|!'`()[]{}/\\ -")
_BROAD = frozenset("mwMW@%—…")


def text_width(text: str, size: float = 13) -> float:
    """Return the estimated width of a text in pixels; wide characters, such as Chinese, count double."""
    return size * sum(map(_char_width, text))


def _char_width(char: str) -> float:
    if char in _NARROW:
        return 0.38
    if char in _BROAD:
        return 0.95
    if char.isascii():
        return 0.7 if char.isupper() else 0.61
    if unicodedata.east_asian_width(char) in "WF":
        return 1.16
    return 0.0 if unicodedata.combining(char) or unicodedata.category(char) == "Cf" else 0.7


def shorten(text: str, room: float, size: float = 13) -> str:
    """Return a text cut to a width of `room` pixels, with an ellipsis if it was cut."""
    if text_width(text, size) <= room:
        return text
    left, kept = room - text_width("…", size), 0
    while kept < len(text) and (left := left - size * _char_width(text[kept])) >= 0:
        kept += 1
    return f"{text[:kept].rstrip(' …')}…"


def wrap(text: str, room: float, size: float = 13, *, lines: int = 2) -> Sequence[str]:
    """Return a text in at most `lines` lines, broken between words if possible; the last line is shortened."""
    done: list[str] = []
    rest = text.strip()
    while rest and len(done) < lines - 1 and text_width(rest, size) > room:
        head, rest = _break_line(rest, room, size)
        done.append(head)
    return [*done, shorten(rest, room, size)] if rest else done


def _break_line(text: str, room: float, size: float) -> tuple[str, str]:
    """Return the part of a text that fits into a line, and the rest."""
    end, left = 0, room
    while end < len(text) and (left := left - size * _char_width(text[end])) >= 0:
        end += 1
    end = max(1, end)
    between = text.rfind(" ", 0, end + 1)
    end = between if between > end // 2 else end
    return text[:end].rstrip(), text[end:].lstrip()


MARKS = 5
"""Years named on the scale, at most."""


def facts(facts: Sequence[Fact], *, now: datetime, as_of: datetime | None) -> Element:
    """Return a bar from start to end for each fact, on a common scale, in the given order.

    Facts that have ended, or begin after `as_of`, look different; `as_of` is a line through all bars.
    """
    scale = _Scale(*extent(facts, now), as_of)
    return el(
        "ul",
        el("li", scale.axis()) if facts else None,
        (el("li", *_row(fact, scale, now, as_of)) for fact in facts),
        class_="timeline",
        aria_label="Facts over time",
    )


def extent(facts: Sequence[Fact], now: datetime) -> tuple[datetime, datetime]:
    """Return the moments at the ends of the scale of some facts: the first start, and the last end or now."""
    every = [now, *(at for fact in facts for at in (fact.valid_from, fact.valid_to) if at is not None)]
    return min(every), max(every)


def _row(fact: Fact, scale: _Scale, now: datetime, as_of: datetime | None) -> Iterator[Element]:
    at = as_of or now
    holds = fact.valid_from <= at and (fact.valid_to is None or fact.valid_to > at)
    yield line(
        link(f"/{fact.atom}", relation_words(fact.relation), " ", el("strong", remove_hidden(fact.value), dir="auto")),
        moment(fact.valid_from, day=True),
        ["– ", moment(fact.valid_to, day=True)] if fact.valid_to else None,
        None if holds else badge("no longer true" if fact.valid_from <= at else "not yet true"),
        name_of_source(fact.source),
    )
    yield scale.bar(fact, "bar" if holds else "bar ended")


class _Scale:
    """The time scale between two moments, as percentages of the width."""

    def __init__(self, first: datetime, last: datetime, as_of: datetime | None) -> None:
        self.first, self.last = first, last
        self.as_of = as_of

    def place(self, at: datetime) -> float:
        whole = (self.last - self.first).total_seconds()
        place = 100 * (at - self.first).total_seconds() / whole if whole else 0.0
        return round(min(100.0, max(0.0, place)), 2)

    def bar(self, fact: Fact, looks: str) -> Element:
        begun, ended = self.place(fact.valid_from), self.place(max(fact.valid_to or self.last, fact.valid_from))
        wide = max(0.6, ended - begun)
        begun = min(begun, 100 - wide)
        return el(
            "svg",
            el("rect", x=f"{begun:g}%", y=3, width=f"{wide:g}%", height=9, rx=2, class_=looks),
            self._line(15),
            width="100%",
            height=15,
            aria_hidden="true",
        )

    def _line(self, height: float) -> Element | None:
        if self.as_of is None:
            return None
        place = f"{self.place(self.as_of):g}%"
        return el("line", x1=place, x2=place, y1=0, y2=height, class_="as-of")

    def axis(self) -> Element:
        return el("svg", list(self._marks()), self._line(18), width="100%", height=18, aria_hidden="true")

    def _marks(self) -> Iterator[Element]:
        """Yield labels for the days at both ends, and for years between them if there is room."""
        yield el("text", day_text(day_of(self.first)), x=0, y=12)
        if self.first.date() == self.last.date():
            return
        yield el("text", day_text(day_of(self.last)), x="100%", y=12, text_anchor="end")
        years = range(self.first.year + 1, self.last.year + 1)
        step = -(-len(years) // MARKS) or 1
        for year in years[::step]:
            place = self.place(datetime(year, 1, 1, tzinfo=UTC))
            if 25 <= place <= 75:  # elsewhere it would overlap a date
                yield el("text", str(year), x=f"{place:g}%", y=12, text_anchor="middle")
