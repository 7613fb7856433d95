"""The map of a memory: names and topics as spots, linked where statements mention both, at positions of their own.

The page contains the largest spots as SVG; `static/map.js` draws all of them from `as_json`, and adds zooming, panning
and the slider. Spots are links. Both show only what was true on a day: a spot appears with its first statement and
disappears when its last one has ended.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from math import log2, sqrt
from typing import Any

from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import MapNode, MemoryMap
from mcp_memory.ui.components import part
from mcp_memory.ui.elements import Element, el, svg
from mcp_memory.ui.pictures.charts import shorten, text_width
from mcp_memory.ui.pictures.placing import Box, place
from mcp_memory.ui.times import day_of, day_text

MOST_DRAWN = 120
"""Spots in the page; the script draws all."""
NEW_DAYS = 7
"""Days for which a spot is marked as new."""
LARGE = 11
"""Radius in pixels from which a spot has a larger label."""
_LABELS = 40  # spots whose label has room of its own
_LABEL, _LABEL_HEIGHT, _LABEL_WIDTH = 12.5, 16.0, 150.0  # pixels
_GROUPS = 6  # colours of groups
_MEMBERS = 4  # spots of a group with a colour of its own
_NAMED = 3  # spots of a group in the legend
_PADDING = 14.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """A node with its position and radius in pixels, its colour (0 is that of spots in no group), and its label."""

    node: MapNode
    x: float
    y: float
    radius: float
    colour: int
    label: str
    begun: date
    until: date | None

    def is_on(self, day: date) -> bool:
        return self.begun <= day and (self.until is None or day < self.until)

    def is_new(self, day: date) -> bool:
        return day - self.begun < timedelta(days=NEW_DAYS)

    @property
    def reach(self) -> float:
        """Half of the width of the spot with its label."""
        return max(self.radius, text_width(self.label, _LABEL) / 2)

    @property
    def name(self) -> str:
        return remove_hidden(one_line(self.node.name, 80))

    @property
    def address(self) -> str:
        return f"/scene/{part(self.node.topic)}" if self.node.topic else f"/entity/{part(self.node.name)}"

    @property
    def about(self) -> str:
        """What a tooltip says under the name: `12 statements, 3 Mar 2026 to 5 May 2026`."""
        first, last = day_text(self.begun), day_text(day_of(self.node.last))
        when = first if first == last else f"{first} to {last}"
        many = "statement" if self.node.statements + self.node.past == 1 else "statements"
        return f"{count_of(self.node)} {many}, {when}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A link between two spots, by their place in the list; `width` is 1, 2 or 3."""

    ends: tuple[int, int]
    width: int
    begun: date
    until: date | None

    def is_on(self, day: date) -> bool:
        return self.begun <= day and (self.until is None or day < self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """All spots and lines, and the box around them: left, top, width, height."""

    spots: Sequence[Spot]
    lines: Sequence[Line]
    leaders: Sequence[int]
    """The largest spots of the groups with a colour, in the order of these."""
    box: tuple[float, float, float, float]

    def has_older(self, day: date) -> bool:
        """Return whether there were spots before those that are new on a day; if not, new ones are not marked."""
        return any(not spot.is_new(day) for spot in self.spots)

    def on(self, day: date) -> list[int]:
        """Return the spots of a day by their place in the list, the largest first, then the oldest."""
        shown = (at for at, spot in enumerate(self.spots) if spot.is_on(day))
        return sorted(shown, key=lambda at: (-self.spots[at].radius, at))


def count_of(node: MapNode) -> str:
    """Return the number of statements about a node: `12`, `12 and 1 past`, `2 past`."""
    past = f"{node.past:,} past" if node.past else ""
    if not node.statements:
        return past
    return f"{node.statements:,} and {past}" if past else f"{node.statements:,}"


def laid_out(given: MemoryMap, *, whole: str | None = None) -> Map:
    """Return the map with positions; the label of the node `whole` is not cut. 2,000 nodes take some 200 ms."""
    sizes = [node.statements + node.past for node in given.nodes]
    radii = [_radius(size, len(sizes)) for size in sizes]
    names = [remove_hidden(one_line(node.name, 80)) for node in given.nodes]
    labels = [
        name if node.name == whole else shorten(name, _LABEL_WIDTH, _LABEL)
        for node, name in zip(given.nodes, names, strict=True)
    ]
    largest = set(sorted(range(len(sizes)), key=lambda at: (-sizes[at], at))[:_LABELS])
    boxes = [_box(radii[at], labels[at] if at in largest else None) for at in range(len(sizes))]
    keys = tuple(node.topic or node.name for node in given.nodes)
    pulls = tuple((*link.ends, 1 + log2(link.statements) / 2) for link in given.links)
    colours, leaders = _groups(given, sizes)
    spots = [
        Spot(node=node, x=x, y=y, radius=round(radius, 1), colour=colour, label=label, begun=day_of(node.first),
             until=_day_or_none(node.until))
        for node, (x, y), radius, colour, label in zip(
            given.nodes, place(keys, tuple(boxes), pulls), radii, colours, labels, strict=True
        )
    ]  # fmt: skip
    lines = [
        Line(
            ends=link.ends,
            width=1 if link.statements == 1 else 2 if link.statements < 4 else 3,
            begun=day_of(link.first),
            until=_day_or_none(link.until),
        )
        for link in given.links
    ]
    return Map(spots=spots, lines=lines, leaders=leaders, box=_around(spots))


def as_of(drawn: Map, then: Sequence[MapNode]) -> Map:
    """Return a map with the counts, dates and sizes that its spots had at another time; positions stay."""
    nodes = {(node.name, node.topic): node for node in then}
    spots = [
        replace(spot, node=node, radius=round(_radius(node.statements + node.past, len(drawn.spots)), 1))
        for spot in drawn.spots
        for node in [nodes.get((spot.node.name, spot.node.topic), spot.node)]
    ]
    return replace(drawn, spots=spots)


def _radius(statements: int, nodes: int) -> float:
    """Return the radius in pixels of a node with so many statements, on a map with so many nodes."""
    return min(24.0, 2.2 + 2.4 * sqrt(statements)) * min(1.0, (300 / max(1, nodes)) ** 0.25)


def _day_or_none(at: datetime | None) -> date | None:
    return day_of(at) if at else None


def _box(radius: float, label: str | None) -> Box:
    if label is None:
        return (radius + 2, radius + 2, radius + 2)
    return (max(radius, text_width(label, _LABEL) / 2) + 3, radius + 2, radius + _LABEL_HEIGHT + 2)


def _around(spots: Sequence[Spot]) -> tuple[float, float, float, float]:
    if not spots:
        return (0, 0, 0, 0)
    left = min(spot.x - spot.reach for spot in spots) - _PADDING
    right = max(spot.x + spot.reach for spot in spots) + _PADDING
    top = min(spot.y - spot.radius for spot in spots) - _PADDING
    low = max(spot.y + spot.radius + _LABEL_HEIGHT for spot in spots) + _PADDING
    return tuple(map(round, (left, top, right - left, low - top)))  # type: ignore[return-value]


def _groups(given: MemoryMap, sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the colour of each node, and the nodes that lead the groups with the colours 1, 2, …

    A node is in the group of the neighbour with which it shares most, if that is larger; so a group is what leads to
    one large node. The largest groups have colours, in the order in which their leaders became known.
    """
    leads = list(range(len(sizes)))
    best = [(0, 0, 0)] * len(sizes)
    for link in given.links:
        for one, other in (link.ends, link.ends[::-1]):
            rank = (link.statements, sizes[other], -other)
            if (sizes[other], -other) > (sizes[one], -one) and rank > best[one]:
                leads[one], best[one] = other, rank
    for at in sorted(range(len(sizes)), key=lambda at: (-sizes[at], at)):
        leads[at] = leads[leads[at]]
    members = Counter(leads)
    largest = sorted((lead for lead in members if members[lead] >= _MEMBERS), key=lambda lead: (-members[lead], lead))
    leaders = sorted(largest[:_GROUPS])
    colours = {lead: 1 + at for at, lead in enumerate(leaders)}
    return [colours.get(lead, 0) for lead in leads], leaders


# --- as SVG -----------------------------------------------------------------------------------------


def picture(drawn: Map, day: date, *, label: str, marks_new: bool = False) -> Element:
    """Return the largest spots of a day as SVG, at most `MOST_DRAWN`, with those labels that have room."""
    largest = drawn.on(day)[:MOST_DRAWN]
    chosen = set(largest)
    paths = defaultdict[int, list[str]](list)
    for line in drawn.lines:
        if chosen.issuperset(line.ends) and line.is_on(day):
            a, b = (drawn.spots[end] for end in line.ends)
            paths[line.width].append(f"M{a.x:g} {a.y:g}L{b.x:g} {b.y:g}")
    left, top, width, height = drawn.box
    spots = [drawn.spots[at] for at in largest]
    return svg(
        width,
        height,
        el("g", (el("path", d="".join(paths[one]), class_=f"w{one}") for one in sorted(paths)), class_="links"),
        el("g", (_spot(spot, is_new=marks_new and spot.is_new(day)) for spot in spots)),
        el("g", map(_label_of, _with_room(spots)), class_="labels", aria_hidden="true"),
        label=label,
        role="group",
        viewBox=f"{left:g} {top:g} {width:g} {height:g}",
    )


def _with_room(spots: Iterable[Spot]) -> Iterator[Spot]:
    """Yield the spots whose label overlaps no label of a larger spot."""
    taken: list[tuple[float, float, float]] = []
    for spot in spots:
        x, y, half = spot.x, spot.y + spot.radius, text_width(spot.label, _LABEL) / 2
        if all(abs(y - b) >= _LABEL_HEIGHT or abs(x - a) >= half + wide for a, b, wide in taken):
            taken.append((x, y, half))
            yield spot


def _label_of(spot: Spot) -> Element:
    return el("text", spot.label, x=f"{spot.x:g}", y=f"{spot.y + spot.radius + 12:g}",
              class_="large" if spot.radius > LARGE else None)  # fmt: skip


def _spot(spot: Spot, *, is_new: bool) -> Element:
    radius = spot.radius
    if spot.node.topic:
        shape = el("rect", x=f"{spot.x - radius:g}", y=f"{spot.y - radius:g}", width=f"{2 * radius:g}",
                   height=f"{2 * radius:g}", rx=f"{radius / 2.5:.2g}")  # fmt: skip
    else:
        shape = el("circle", cx=f"{spot.x:g}", cy=f"{spot.y:g}", r=f"{radius:g}")
    looks = f"spot c{spot.colour}{' topic' if spot.node.topic else ''}{' new' if is_new else ''}"
    return el("a", el("title", f"{spot.name}: {spot.about}"), shape, href=spot.address, class_=looks)


def legend(drawn: Map, day: date) -> Element | None:
    """Return what the colours mean: those of groups with at least 3 spots on a day; None if there are none."""
    many = Counter(spot.colour for spot in drawn.spots if spot.is_on(day))
    names = [
        el(
            "span",
            el("svg", el("g", el("circle", cx=5, cy=5, r=5), class_=f"spot c{spot.colour}"), width=10, height=10,
               aria_hidden="true"),
            " ",
            el("span", spot.label, dir="auto"),
        )
        for spot in map(drawn.spots.__getitem__, drawn.leaders)
        if spot.is_on(day) and many[spot.colour] >= _NAMED
    ]  # fmt: skip
    return el("div", "A colour marks what is mentioned most with", names, class_="line") if names else None


def neighbourhood(given: MemoryMap, name: str, day: date) -> Element:
    """Return the map of an entity and those that it is mentioned with (`entity_map(about=name)`), for its page."""
    label = f"What is mentioned together with {remove_hidden(one_line(name, 80))}"
    drawn = picture(laid_out(given, whole=name), day, label=label)
    box = el("div", drawn, class_="picture scroll", tabindex="0", role="region", aria_label=label)
    return el("figure", box, class_="map")


# --- for the script ---------------------------------------------------------------------------------


def as_json(drawn: Map) -> dict[str, Any]:
    """Return all spots and lines as lists of numbers and texts, for `static/map.js`, which names their places.

    Days count from 1 January of the year 1; 0 stands for none. A label that is the name is empty, and so is an address
    that follows from the name.
    """
    return {
        "box": drawn.box,
        "spots": list(_spots_as_json(drawn)),
        "lines": [[*line.ends, line.width, line.begun.toordinal(), _ordinal(line.until)] for line in drawn.lines],
    }


def _spots_as_json(drawn: Map) -> Iterator[list[Any]]:
    for spot in drawn.spots:
        name = spot.name
        address = "" if spot.node.topic is None and name == spot.node.name else spot.address
        label = "" if spot.label == name else spot.label
        is_topic = int(spot.node.topic is not None)
        days = (spot.begun.toordinal(), _ordinal(spot.until))
        yield [name, label, address, spot.about, spot.x, spot.y, spot.radius, spot.colour, is_topic, *days]


def _ordinal(day: date | None) -> int:
    return day.toordinal() if day else 0
