"""Layout of long flowcharts: a column for each phase, from left to right.

The guarantees of `layers` apply. An edge to the box below is a straight line. Other edges leave a box at its side and
run in lanes between columns; edges to a column that is not adjacent pass below all boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mcp_memory.ui.pictures.layers import LABEL, MARGIN, Box, Drawing, Label, Size, Wire

TITLE, GAP, LANE, SIDE = 26.0, 30.0, 8.0, 16.0
"""Pixels: height of a column's title, gap between boxes, width of a lane, free space beside lanes for the tips of
edges.
"""
ROUND = 5.0
ASIDE = 7.0
"""Distance from the middle of a side at which edges enter (above) and leave (below), to distinguish them."""

Point = tuple[float, float]


@dataclass(slots=True)
class _Route:
    """An edge that is not straight: its gutters `out` and `into`, its lane in each, and its track below the boxes.

    With `from_left` it leaves its source on the left side.
    """

    source: str
    target: str
    out: int
    into: int
    from_left: bool
    lanes: tuple[int, int] = (0, 0)
    track: int = 0

    @property
    def is_short(self) -> bool:
        return self.out == self.into


def lay_out_columns(
    sizes: Mapping[str, Size],
    edges: Sequence[tuple[str, str]],
    labels: Mapping[tuple[str, str], Size],
    phases: Sequence[Sequence[str]],
    titles: Sequence[str],
) -> Drawing:
    """Return the drawing of boxes in columns; `phases` has each box once, `titles` a title for each phase."""
    column = {id_: at for at, ids in enumerate(phases) for id_ in ids}
    into: dict[str, int] = {}
    rows = {edge: into.setdefault(edge[1], 0) for edge in labels}
    for edge in labels:
        rows[edge] = into[edge[1]]
        into[edge[1]] += 1
    tops = {id_: y for ids in phases for id_, y in _tops(ids, sizes, into)}
    straight = {pair for ids in phases for pair in pairwise(ids)}
    routes = [_route(edge, column) for edge in edges if edge not in straight]
    low = max((tops[id_] + sizes[id_].height for id_ in tops), default=MARGIN)
    tracks = _take_tracks(routes)
    gutters = _take_lanes(routes, {id_: tops[id_] + sizes[id_].height / 2 for id_ in tops}, low, len(phases) + 1)
    widths = [max(sizes[id_].width for id_ in ids) for ids in phases]
    lefts = _lefts(widths, gutters)
    boxes = {id_: Box(lefts[column[id_]], tops[id_], sizes[id_].width, sizes[id_].height) for id_ in tops}
    places = {edge: Label("", boxes[edge[1]].x, tops[edge[1]] - 6 - LABEL * row, "start") for edge, row in rows.items()}
    lines = {(route.source, route.target): route for route in routes}
    starts = [left - _gutter_width(lanes) for left, lanes in zip(lefts, gutters, strict=True)]
    wires = [
        _bent_wire(lines[edge], boxes, starts, low, places.get(edge))
        if edge in lines
        else _straight_wire(edge, boxes, places.get(edge))
        for edge in edges
    ]
    headings = [Label(title, left, MARGIN + 12, "start") for title, left in zip(titles, lefts, strict=False)]
    height = low + MARGIN + (LANE * tracks + MARGIN if tracks else 0)
    return Drawing(width=lefts[-1] + MARGIN, height=height, boxes=boxes, wires=wires, titles=headings)


def _tops(ids: Sequence[str], sizes: Mapping[str, Size], labels: Mapping[str, int]) -> list[tuple[str, float]]:
    """Return the boxes of a column, each with its y; there is room for labels above them."""
    tops: list[tuple[str, float]] = []
    y = MARGIN + TITLE
    for place, id_ in enumerate(ids):
        y += LABEL * labels.get(id_, 0) + (GAP if place else 0)
        tops.append((id_, y))
        y += sizes[id_].height
    return tops


def _route(edge: tuple[str, str], column: Mapping[str, int]) -> _Route:
    """Return the route of an edge, without its lanes and track; gutter 2 is on the left of column 2."""
    source, target = edge
    same = column[source] == column[target]
    return _Route(source, target, column[source] + (0 if same else 1), column[target], from_left=same)


def _lefts(widths: Sequence[float], gutters: Sequence[int]) -> list[float]:
    """Return the x of each column, and the end of the last gutter."""
    lefts, x = list[float](), MARGIN
    for lanes, width in zip(gutters, [*widths, 0.0], strict=True):
        x += _gutter_width(lanes)
        lefts.append(x)
        x += width
    return lefts


def _gutter_width(lanes: int) -> float:
    return 2 * SIDE + LANE * max(0, lanes - 1) if lanes else SIDE


# --- lanes ------------------------------------------------------------------------------------------


def _take_lanes(routes: Sequence[_Route], middles: Mapping[str, float], low: float, gutters: int) -> list[int]:
    """Assign lanes to each route so that no two overlap; return the number of lanes in each gutter."""
    spans: list[tuple[int, float, float, _Route, int]] = []
    for route in routes:
        start, end = middles[route.source], middles[route.target]
        if route.is_short:
            spans.append((route.out, min(start, end), max(start, end), route, 0))
        else:
            spans += [(route.out, start, low + LANE, route, 0), (route.into, end, low + LANE, route, 1)]
    taken: list[list[float]] = [[] for _ in range(gutters)]
    for gutter, first, last, route, which in sorted(spans, key=lambda span: span[:3]):
        lanes = taken[gutter]
        lane = next((at for at, until in enumerate(lanes) if until < first - 2 * ASIDE), len(lanes))
        lanes[lane:] = [last] if lane == len(lanes) else [last, *lanes[lane + 1 :]]
        route.lanes = (
            (lane, lane) if route.is_short else (lane, route.lanes[1]) if not which else (route.lanes[0], lane)
        )
    return [len(lanes) for lanes in taken]


def _take_tracks(routes: Sequence[_Route]) -> int:
    """Assign each long route a track below the boxes; return the number of tracks."""
    taken: list[int] = []
    for route in sorted(routes, key=lambda route: min(route.out, route.into)):
        if route.is_short:
            continue
        first, last = sorted((route.out, route.into))
        route.track = next((at for at, until in enumerate(taken) if until < first), len(taken))
        taken[route.track :] = [last, *taken[route.track + 1 :]]
    return len(taken)


# --- paths ------------------------------------------------------------------------------------------


def _straight_wire(edge: tuple[str, str], boxes: Mapping[str, Box], label: Label | None) -> Wire:
    upper, lower = boxes[edge[0]], boxes[edge[1]]
    x = round(upper.x + min(upper.width, lower.width) / 2)
    end = (x, lower.y)
    return Wire(edge[0], edge[1], f"M{x:g} {upper.y + upper.height:g}V{lower.y:g}", end, "down", label)


def _bent_wire(
    route: _Route, boxes: Mapping[str, Box], gutters: Sequence[float], low: float, label: Label | None
) -> Wire:
    """Return the path of an edge through its lanes, with round corners; `gutters` are the left edges of the gutters."""
    source, target = boxes[route.source], boxes[route.target]
    start = (source.x if route.from_left else source.x + source.width, round(source.y + source.height / 2 + ASIDE))
    end = (target.x, round(target.y + target.height / 2 - ASIDE))
    lanes = [gutters[gutter] + SIDE + LANE * lane
             for gutter, lane in zip((route.out, route.into), route.lanes, strict=True)]  # fmt: skip
    points: list[Point] = [start, (lanes[0], start[1])]
    if route.is_short:
        points += [(lanes[0], end[1]), end]
    else:
        below = low + MARGIN + LANE * route.track
        points += [(lanes[0], below), (lanes[1], below), (lanes[1], end[1]), end]
    return Wire(route.source, route.target, _round_corners(points), end, "right", label)


def _round_corners(points: Sequence[Point]) -> str:
    """Return a path along these points with rounded corners."""
    path = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        begin, end = _toward(corner, before), _toward(corner, after)
        path.append(f"L{begin[0]:g} {begin[1]:g}Q{corner[0]:g} {corner[1]:g} {end[0]:g} {end[1]:g}")
    return f"{''.join(path)}L{points[-1][0]:g} {points[-1][1]:g}"


def _toward(corner: Point, point: Point) -> Point:
    """Return a point near a corner, at most half of the way to another point."""
    far = abs(point[0] - corner[0]) + abs(point[1] - corner[1])
    part = min(ROUND, far / 2) / far if far else 0.0
    return corner[0] + (point[0] - corner[0]) * part, corner[1] + (point[1] - corner[1]) * part
