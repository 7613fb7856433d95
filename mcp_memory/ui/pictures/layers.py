"""Layout of flowcharts: places of boxes and paths of edges, from top to bottom, in layers.

Guarantees, for any nodes and edges, cycles too: no two boxes overlap, no path crosses a box that it does not join, and
everything is inside `width` × `height`. Each edge leads to a lower layer, unless it closes a cycle; an edge that spans
several layers has a place in each between the boxes, and bends only in the gaps between layers. Method: K. Sugiyama,
S. Tagawa, M. Toda (1981), with the places in a layer found by isotonic regression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

WIDE = 4
"""The most boxes in a layer; further boxes go into the next layer."""
MARGIN, BESIDE, GAP, LANE = 12.0, 28.0, 44.0, 14.0
"""Pixels: margin around everything, gap between boxes, gap between layers, width of a passing edge."""
LABEL = 16.0
"""Height of a label, by which its gap grows."""
ACROSS = 0.84
"""Share of an edge's horizontal way at which its label is centred; the label covers the edge."""
SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Size:
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Box:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Label:
    """A text, positioned by the middle of its lower edge or by its start."""

    text: str
    x: float
    y: float
    anchor: str = "middle"


@dataclass(frozen=True, slots=True)
class Wire:
    """An edge: its path, the direction of its tip (`down`, `up`, `right`, `left`) at the path's end, and its label."""

    source: str
    target: str
    path: str
    end: tuple[float, float]
    way: str
    label: Label | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Boxes by id, and wires; `titles` are texts above columns."""

    width: float
    height: float
    boxes: Mapping[str, Box]
    wires: Sequence[Wire]
    titles: Sequence[Label] = field(default=())


@dataclass(slots=True)
class _Place:
    """A box, or the place where an edge crosses a layer; `x` is its middle."""

    width: float
    height: float
    above: list[_Place] = field(default_factory=list["_Place"])
    below: list[_Place] = field(default_factory=list["_Place"])
    x: float = 0.0
    order: float = 0.0
    is_box: bool = True


def lay_out_layers(sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]], labels: Mapping[tuple[str, str], Size]
            ) -> Drawing:  # fmt: skip
    """Return the drawing of boxes of these sizes; `labels` are the sizes of edge labels, whose texts are left empty.

    Edges join different boxes, and no edge is repeated.
    """
    ranks, turned = rank_boxes(list(sizes), edges)
    boxes = {id_: _Place(size.width, size.height) for id_, size in sizes.items()}
    layers: list[list[_Place]] = [[] for _ in range(max(ranks.values(), default=-1) + 1)]
    for id_, place in boxes.items():
        layers[ranks[id_]].append(place)
    chains = {edge: _chain(edge, boxes, ranks, layers, turned=edge in turned) for edge in edges}
    _order(layers)
    width = _spread(layers)
    rows, label_places = _label_rows(layers, chains, labels, width)
    levels = _heights(layers, rows)

    def wire(edge: tuple[str, str]) -> Wire:
        first, last = sorted(ranks[id_] for id_ in edge)
        return _wire(edge, chains[edge], levels[first : last + 1], label_places.get(edge), turned=edge in turned)

    drawn = {
        id_: Box(round(each.x - each.width / 2), levels[ranks[id_]][0], each.width, each.height)
        for id_, each in boxes.items()
    }
    height = (levels[-1][1] if levels else MARGIN) + MARGIN
    return Drawing(width=width, height=height, boxes=drawn, wires=[wire(edge) for edge in edges])


# --- which layer ------------------------------------------------------------------------------------


def rank_boxes(ids: Sequence[str], edges: Sequence[tuple[str, str]]) -> tuple[dict[str, int], set[tuple[str, str]]]:
    """Return the layer of each box, and the edges to draw upwards to break cycles.

    A box without edges is below the box created before it.
    """
    after: dict[str, list[str]] = {id_: [] for id_ in ids}
    for source, target in edges:
        after[source].append(target)
    done, turned = _topological_order(ids, after)
    before: dict[str, list[str]] = {id_: [] for id_ in ids}
    for source, target in edges:
        source, target = (target, source) if (source, target) in turned else (source, target)
        before[target].append(source)
    joined = {id_ for edge in edges for id_ in edge}
    ranks: dict[str, int] = {}
    taken: dict[int, int] = {}
    previous = dict(zip(ids[1:], ids, strict=False))
    for id_ in done:
        above = before[id_] or ([] if id_ in joined else [previous[id_]] if id_ in previous else [])
        rank = max((ranks[each] + 1 for each in above if each in ranks), default=0)
        while taken.get(rank, 0) >= WIDE:
            rank += 1
        ranks[id_] = rank
        taken[rank] = taken.get(rank, 0) + 1
    return ranks, turned


def _topological_order(
    ids: Sequence[str], after: Mapping[str, Sequence[str]]
) -> tuple[list[str], set[tuple[str, str]]]:
    """Return the boxes in topological order, and the edges that this order ignores because they close a cycle."""
    done: list[str] = []
    state: dict[str, int] = {}
    turned: set[tuple[str, str]] = set()
    for start in ids:
        stack = [] if start in state else [(start, iter(after[start]))]
        while stack:
            id_, rest = stack[-1]
            state[id_] = 1
            for target in rest:
                if state.get(target) == 1:
                    turned.add((id_, target))
                elif target not in state:
                    stack.append((target, iter(after[target])))
                    break
            else:
                state[id_] = 2
                done.append(id_)
                stack.pop()
    place = {id_: at for at, id_ in enumerate(ids)}
    return _keep_creation_order(list(reversed(done)), after, turned, place), turned


def _keep_creation_order(
    done: list[str], after: Mapping[str, Sequence[str]], turned: set[tuple[str, str]], place: Mapping[str, int]
) -> list[str]:
    """Return a topological order in which older boxes are as early as the edges allow."""
    waits = dict.fromkeys(done, 0)
    onward: dict[str, list[str]] = {id_: [] for id_ in done}
    for source in done:
        for target in after[source]:
            first, second = (target, source) if (source, target) in turned else (source, target)
            onward[first].append(second)
            waits[second] += 1
    ready = sorted((id_ for id_ in done if not waits[id_]), key=place.__getitem__)
    ordered: list[str] = []
    while ready:
        ordered.append(id_ := ready.pop(0))
        for target in onward[id_]:
            waits[target] -= 1
            if not waits[target]:
                ready.append(target)
        ready.sort(key=place.__getitem__)
    return ordered


def _chain(
    edge: tuple[str, str],
    boxes: Mapping[str, _Place],
    ranks: Mapping[str, int],
    layers: Sequence[list[_Place]],
    *,
    turned: bool,
) -> list[_Place]:
    """Add a place for an edge to each layer that it passes; return its places, from the upper box to the lower."""
    upper, lower = reversed(edge) if turned else edge
    between = [_Place(LANE, 0.0, is_box=False) for _ in range(ranks[upper] + 1, ranks[lower])]
    for at, place in enumerate(between, start=ranks[upper] + 1):
        layers[at].append(place)
    chain = [boxes[upper], *between, boxes[lower]]
    for place, next_place in pairwise(chain):
        place.below.append(next_place)
        next_place.above.append(place)
    return chain


# --- where in it ------------------------------------------------------------------------------------


def _order(layers: Sequence[list[_Place]]) -> None:
    """Order each layer by the mean place of its neighbours, to reduce edge crossings."""
    for layer in layers:
        _number(layer)
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for layer in layers[1:] if down else layers[-2::-1]:
            layer.sort(key=lambda place: _middle(place.above if down else place.below, place.order))
            _number(layer)
        if (crossings := _crossings(layers)) < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
        if not fewest:
            break
    for layer, kept in zip(layers, best, strict=True):
        layer[:] = kept
        _number(layer)


def _number(layer: Sequence[_Place]) -> None:
    for at, place in enumerate(layer):
        place.order = at - (len(layer) - 1) / 2


def _middle(joined: Sequence[_Place], own: float) -> float:
    return sum(place.order for place in joined) / len(joined) if joined else own


def _crossings(layers: Sequence[Sequence[_Place]]) -> int:
    count = 0
    for layer in layers:
        ends = [(place.order, below.order) for place in layer for below in place.below]
        count += sum((a - c) * (b - d) < 0 for at, (a, b) in enumerate(ends) for c, d in ends[:at])
    return count


def _spread(layers: Sequence[Sequence[_Place]]) -> float:
    """Set the x of each place near the mean of its neighbours, in the order of its layer; return the total width."""
    for sweep in range(2 * SWEEPS + 1):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            targets = [_mean_x(place.above if down else place.below, place.x) for place in layer]
            _fit(layer, targets)
    left = min((place.x - place.width / 2 for layer in layers for place in layer), default=0.0)
    for layer in layers:
        for place in layer:
            place.x = round(place.x - left + MARGIN)
    return max((place.x + place.width / 2 for layer in layers for place in layer), default=0.0) + MARGIN


def _mean_x(joined: Sequence[_Place], own: float) -> float:
    return sum(place.x for place in joined) / len(joined) if joined else own


def _fit(layer: Sequence[_Place], targets: Sequence[float]) -> None:
    """Set each x as near as possible to its target, by least squares, keeping the order and the distances."""
    offsets = [0.0]
    for left, right in pairwise(layer):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + (BESIDE if left.is_box or right.is_box else LANE))
    pools: list[tuple[float, float, int]] = []  # sum, weight, places
    for place, want, offset in zip(layer, targets, offsets, strict=False):
        weight = 1.0 if place.is_box else 4.0  # passing edges go straight
        pools.append((weight * (want - offset), weight, 1))
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] > pools[-1][0] / pools[-1][1]:
            (a, b, c), (d, e, f) = pools.pop(-2), pools.pop()
            pools.append((a + d, b + e, c + f))
    positions = [total / weight for total, weight, places in pools for _ in range(places)]
    for place, at, offset in zip(layer, positions, offsets, strict=False):
        place.x = at + offset


# --- labels and heights -----------------------------------------------------------------------------


def _label_rows(
    layers: Sequence[Sequence[_Place]],
    chains: Mapping[tuple[str, str], Sequence[_Place]],
    labels: Mapping[tuple[str, str], Size],
    width: float,
) -> tuple[list[int], dict[tuple[str, str], tuple[float, int]]]:
    """Return the number of label rows above each layer, and the x and row of each label; labels do not overlap."""
    level = {id(place): at for at, layer in enumerate(layers) for place in layer}
    taken: list[list[list[tuple[float, float]]]] = [[] for _ in layers]
    label_places: dict[tuple[str, str], tuple[float, int]] = {}
    for edge, size in labels.items():
        upper, lower = chains[edge][-2:]
        half = size.width / 2
        x = round(max(half + 2, min(width - half - 2, upper.x + ACROSS * (lower.x - upper.x))))
        rows = taken[level[id(lower)]]
        row = next((at for at, row in enumerate(rows) if all(x + half < a or b < x - half for a, b in row)), len(rows))
        if row == len(rows):
            rows.append([])
        rows[row].append((x - half - 4, x + half + 4))
        label_places[edge] = (x, row)
    return [len(rows) for rows in taken], label_places


def _heights(layers: Sequence[Sequence[_Place]], rows: Sequence[int]) -> list[tuple[float, float]]:
    """Return the top and the bottom of each layer."""
    levels: list[tuple[float, float]] = []
    y = MARGIN
    for at, layer in enumerate(layers):
        top = y + (GAP + LABEL * rows[at] if at else 0)
        y = top + max(place.height for place in layer)
        levels.append((top, y))
    return levels


def _wire(
    edge: tuple[str, str],
    chain: Sequence[_Place],
    levels: Sequence[tuple[float, float]],
    label_place: tuple[float, int] | None,
    *,
    turned: bool,
) -> Wire:
    """Return the path of an edge through these levels: straight within them, bent in the gaps between."""
    x, y = chain[0].x, levels[0][0] + chain[0].height
    start, path = (x, y), [f"M{x:g} {y:g}"]
    for (upper, lower), (_, low), (high, _) in zip(pairwise(chain), levels, levels[1:], strict=False):
        if y < low:
            path.append(f"V{low:g}")
        bend = round((low + high) / 2)
        straight = upper.x == lower.x
        path.append(f"V{high:g}" if straight else f"C{upper.x:g} {bend:g} {lower.x:g} {bend:g} {lower.x:g} {high:g}")
        x, y = lower.x, high
    label = (
        None if label_place is None else Label("", label_place[0], round(levels[-1][0] - 14 - LABEL * label_place[1]))
    )
    end, way = (start, "up") if turned else ((x, y), "down")
    return Wire(edge[0], edge[1], "".join(path), end, way, label)


def drawable_edges(edges: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the edges that a drawing can show: between different boxes, each once, in a single direction."""
    kept: dict[tuple[str, str], None] = {}
    for source, target in edges:
        if source != target and (target, source) not in kept:
            kept.setdefault((source, target))
    return list(kept)
