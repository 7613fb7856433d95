"""Facts over time: for each a bar from the day it became true to the day it ended, on one scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from mcp_memory.core.text import remove_hidden
from mcp_memory.core.types import Fact
from mcp_memory.ui.components import badge, gap, link, moment, name_of_source
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.words import t

MARKS = 5
"""Years named on the scale, at most."""


def facts(facts: Sequence[Fact], *, now: datetime, as_of: datetime | None) -> Element:
    """Return a row for each fact, in the order given; those that ended, or begin after `as_of`, look different.

    `as_of` is a line through all bars.
    """
    scale = _Scale([fact.valid_from for fact in facts], [fact.valid_to for fact in facts], now, as_of)
    return el(
        "ul",
        el("li", scale.axis()) if facts else None,
        (el("li", *_row(fact, scale, now, as_of)) for fact in facts),
        class_="timeline",
        aria_label=t("pictures.timeline"),
    )


def _row(fact: Fact, scale: _Scale, now: datetime, as_of: datetime | None) -> Iterator[Element]:
    at = as_of or now
    holds = fact.valid_from <= at and (fact.valid_to is None or fact.valid_to > at)
    yield gap(
        link(f"/{fact.atom}", fact.atom, class_="id"),
        el("span", remove_hidden(fact.relation), " ", el("strong", remove_hidden(fact.value)), dir="auto"),
        moment(fact.valid_from, day=True),
        ["– ", moment(fact.valid_to, day=True)] if fact.valid_to else None,
        badge(t("pictures.holds" if holds else "pictures.holds_not"), "ok" if holds else ""),
        name_of_source(fact.source),
    )
    yield scale.bar(fact, "bar" if holds else "bar ended")


class _Scale:
    """From the first beginning to the last moment, as percentages of the width."""

    def __init__(self, begun: Sequence[datetime], ended: Sequence[datetime | None], now: datetime,
                 as_of: datetime | None) -> None:  # fmt: skip
        every = [*begun, *filter(None, ended), now, *filter(None, [as_of])]
        self.first, self.last = min(every), max(every)
        self.as_of = as_of
        self.now = now

    def place(self, at: datetime) -> float:
        whole = (self.last - self.first).total_seconds()
        return round(100 * (at - self.first).total_seconds() / whole, 2) if whole else 0.0

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
        """The days at both ends, and years between them where there is room."""
        yield el("text", f"{self.first:%Y-%m-%d}", x=0, y=12)
        if self.first.date() == self.last.date():
            return
        yield el("text", f"{self.last:%Y-%m-%d}", x="100%", y=12, text_anchor="end")
        years = range(self.first.year + 1, self.last.year + 1)
        step = -(-len(years) // MARKS) or 1
        for year in years[::step]:
            place = self.place(datetime(year, 1, 1, tzinfo=UTC))
            if 25 <= place <= 75:  # else it stands in a date
                yield el("text", str(year), x=f"{place:g}%", y=12, text_anchor="middle")
