"""Positions of the nodes of a map, computed from their links.

Nodes repel each other and links pull them together, so that groups of linked nodes become visible. Nothing is random:
the same map has the same positions. It is laid out as the memory grew: the oldest nodes first, then each time as many
again, every node beside its neighbours that have a position; so one more statement moves hardly any node, and readers
find everything in its place.

The repulsion of many nodes is a convolution on a grid, computed by FFT: a step of 2,000 nodes takes about 2 ms.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from math import cos, pi, sin, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.intp]
Link = tuple[int, int, float]
"""Two nodes by their place, and how strongly they are linked."""

Box = tuple[float, float, float]
"""Room for a node and its label in pixels: half of its width, and its height above and below the position."""

_FIRST = 16  # nodes of the first level
_STEPS = 28  # of a level
_MORE_STEPS = 2_000  # of the last level, divided by the number of nodes
_EXACT = 160  # nodes whose repulsion is computed pair by pair
_CELLS = 48  # of the grid in each direction
_GRAVITY = (0.14, 0.32)  # along both axes: maps are wider than high
_ALONE = 2.2  # how much stronger it is for nodes without links
_WIDTH, _HEIGHT = 1000.0, 620.0  # pixels that many nodes fill
_ROOMY = 108.0  # pixels between neighbours if there are few nodes
_ROUNDS, _MOVES = 3, 20  # in which boxes are moved apart, and of those found near each other in each
_REACH = 1.4  # times their size, within which boxes may come to overlap


@lru_cache(maxsize=8)
def place(keys: tuple[str, ...], boxes: tuple[Box, ...], links: tuple[Link, ...]) -> list[tuple[float, float]]:
    """Return the position of each node in pixels, around (0, 0); boxes do not overlap if there is room for them.

    `keys` identify the nodes, in the order in which they became known.
    """
    if not keys:
        return []
    count = len(keys)
    older: list[list[int]] = [[] for _ in keys]
    for one, other, _ in links:
        older[max(one, other)].append(min(one, other))
    pairs = np.array([(a, b) for a, b, _ in links], np.intp).reshape(-1, 2)
    pulls = np.array([pull for _, _, pull in links])
    places = np.zeros((count, 2))
    placed, level = 0, min(count, _FIRST)
    while placed < count:
        _begin(places, range(placed, level), keys, older)
        inside = (pairs < level).all(axis=1)
        steps = _STEPS + (_MORE_STEPS // count if level == count else 0)
        _relax(places[:level], pairs[inside], pulls[inside], steps)
        placed, level = level, min(count, 2 * level)
    _spread(places)
    _move_apart(places, np.array(boxes))
    return [(round(float(x), 1), round(float(y), 1)) for x, y in places]


def _begin(places: Floats, new: range, keys: Sequence[str], older: Sequence[Sequence[int]]) -> None:
    """Give new nodes a position, one after the other: beside their older neighbours, or at the edge of the map."""
    edge = 1.1 * float(np.sqrt((places[: new.start] ** 2).sum(axis=1).max())) if new.start else sqrt(len(new))
    for at in new:
        angle = int.from_bytes(blake2b(keys[at].encode(), digest_size=4).digest()) / 2**32 * 2 * pi
        turned = np.array([cos(angle), sin(angle)])
        places[at] = places[older[at]].mean(axis=0) + 0.5 * turned if older[at] else edge * turned


def _relax(places: Floats, pairs: Integers, pulls: Floats, steps: int) -> None:
    """Move nodes by their forces, less far with each step.

    As in ForceAtlas2 (Jacomy and others, 2014), nodes push each other by their degrees over the distance, and a link
    pulls by its length.
    """
    count = len(places)
    degrees = np.bincount(pairs.ravel(), minlength=count)
    masses = 1.0 + degrees
    gravity = np.array(_GRAVITY) * np.where(degrees, 1.0, _ALONE)[:, None]
    heat = 0.1 * np.sqrt(count) + 0.5
    for step in range(steps):
        forces = _push_exactly(places, masses) if count <= _EXACT else _push_by_grid(places, masses)
        apart = places[pairs[:, 1]] - places[pairs[:, 0]]
        pull = apart * pulls[:, None]
        for axis in (0, 1):
            drawn = np.bincount(pairs[:, 0], pull[:, axis], count) - np.bincount(pairs[:, 1], pull[:, axis], count)
            forces[:, axis] += drawn / masses
        forces -= gravity * places
        length = np.sqrt((forces**2).sum(axis=1))
        limit = heat * (1 - step / steps)
        places += forces * (0.8 * limit / (limit + length))[:, None]


def _push_exactly(places: Floats, masses: Floats) -> Floats:
    apart = places[:, None] - places[None]
    return np.einsum("ijk,ij->ik", apart, masses[None] / ((apart**2).sum(axis=2) + 0.05))


def _push_by_grid(places: Floats, masses: Floats) -> Floats:
    """Return the push at each node: masses divided by distance, summed over a grid by a convolution."""
    low = places.min(axis=0)
    size = float((places.max(axis=0) - low).max()) / (_CELLS - 2) + 1e-9
    scaled = (places - low) / size + 0.5
    corner = scaled.astype(np.intp)
    part = scaled - corner
    grid = np.zeros(_CELLS * _CELLS)
    corners: list[tuple[Integers, Floats]] = []
    for x in (0, 1):
        for y in (0, 1):
            share = np.abs(1 - x - part[:, 0]) * np.abs(1 - y - part[:, 1])
            cell = (corner[:, 0] + x) * _CELLS + corner[:, 1] + y
            corners.append((cell, share))
            grid += np.bincount(cell, share * masses, minlength=_CELLS * _CELLS)
    kernel = _kernel()
    whole = np.fft.rfft2(grid.reshape(_CELLS, _CELLS), (2 * _CELLS, 2 * _CELLS))
    push = np.zeros_like(places)
    for axis in (0, 1):
        field = np.fft.irfft2(whole * kernel[axis], (2 * _CELLS, 2 * _CELLS))[:_CELLS, :_CELLS].ravel()
        push[:, axis] = sum(field[cell] * share for cell, share in corners)
    return push / size


@lru_cache(maxsize=1)
def _kernel() -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Return the transforms of the push of a mass of 1 at distance d, which is 1/d, along both axes."""
    steps = np.arange(2 * _CELLS)
    steps = np.where(steps < _CELLS, steps, steps - 2 * _CELLS).astype(float)
    x, y = np.meshgrid(steps, steps, indexing="ij")
    square = x**2 + y**2 + 0.4
    return np.fft.rfft2(x / square), np.fft.rfft2(y / square)


def _spread(places: Floats) -> None:
    """Scale positions to pixels: few nodes have much room each, many fill the whole map."""
    count = len(places)
    places -= places.mean(axis=0)
    room = min(_ROOMY, np.sqrt(_WIDTH * _HEIGHT / count))
    deviation = np.sqrt((places**2).sum(axis=1).mean()) + 1e-9
    places *= 0.4 * room * np.sqrt(count) / deviation


def _move_apart(places: Floats, boxes: Floats) -> None:
    """Move overlapping boxes apart. Their corners are rounded, so that nodes do not line up."""
    half = np.stack([boxes[:, 0], (boxes[:, 1] + boxes[:, 2]) / 2], axis=1)
    lowered = (boxes[:, 2] - boxes[:, 1]) / 2
    places[:, 1] += lowered
    for _ in range(_ROUNDS):
        first, second = _near(places, half)
        reach = half[first] + half[second]
        for _ in range(_MOVES):
            _move_pairs(places, first, second, reach)
    places[:, 1] -= lowered


def _move_pairs(places: Floats, first: Integers, second: Integers, reach: Floats) -> None:
    """Move the boxes of the pairs that overlap one step apart."""
    apart = places[second] - places[first]
    square = (apart / reach) ** 2
    distance = np.sqrt(np.sqrt((square**2).sum(axis=1))) + 1e-3
    move = np.where(distance < 1, 0.4 * (1 / distance - 1), 0)[:, None] * apart
    np.clip(move, -reach / 4, reach / 4, out=move)
    for axis in (0, 1):
        there = np.bincount(second, move[:, axis], len(places))
        places[:, axis] += there - np.bincount(first, move[:, axis], len(places))


def _near(places: Floats, half: Floats) -> tuple[Integers, Integers]:
    """Return the pairs of boxes that overlap or may soon; `half` are their half widths and heights."""
    order = np.argsort(places[:, 0], kind="stable")
    sorted_places, sorted_half = places[order], _REACH * half[order]
    none = np.zeros(0, np.intp)
    pairs: list[tuple[Integers, Integers]] = [(none, none)]
    for step in range(1, len(order)):
        apart = np.abs(sorted_places[step:] - sorted_places[:-step])
        if apart[:, 0].min() > 2 * sorted_half[:, 0].max():
            break
        (at,) = np.nonzero((apart < sorted_half[step:] + sorted_half[:-step]).all(axis=1))
        pairs.append((order[at], order[at + step]))
    return np.concatenate([one for one, _ in pairs]), np.concatenate([other for _, other in pairs])
