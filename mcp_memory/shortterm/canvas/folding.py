"""Folding: groups of nodes shown as one, phases of a task, and a canvas within a budget.

Everything here is pure; nodes themselves never change. Two kinds of ids name folded nodes. `003-F1` is a group folded
by a person or an agent; it is stored in `CanvasRow.groups` and may contain other groups, so that unfolding restores
them. `003-F2-9` is the stretch from node 003-N2 to 003-N9, folded to fit a budget; it is not stored, because its id
names its nodes.

A phase is a run of steps that belong together. Later steps never change the bounds of a finished phase, so that a text
that names it stays the same. Its title consists of the steps' titles if people or agents gave them, else of the names
of the files that the calls wrote, ran and read.

If a canvas does not fit, phases fold, the oldest first, then groups of phases. The next fold depends only on the steps
before it, so that a text mostly changes at its end. Unfinished steps and the newest step fold last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Group, StepStatus
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, clean, node_line, padded, render
from mcp_memory.shortterm.canvas.placement import DEAD_END, CallIntent, latest, title_intent

if TYPE_CHECKING:
    from mcp_memory.core.token_counts import TokenCounter

FEW, USUAL, MANY = 4, 6, 10
"""Numbers of steps after which a phase ends at a clear break, at any break, and in any case."""
PAUSE = timedelta(minutes=15)
NAMES_IN_TITLE = 3
"""The most names after a verb in a title."""


def _phase_starts(canvas: Canvas) -> set[int]:
    """Return the indices of the nodes that start a phase, 0 included."""
    edges = {(edge.source, edge.target) for edge in canvas.edges}
    starts, size = {0}, 1
    for at in range(1, len(canvas.nodes)):
        size += 1
        before, node = canvas.nodes[at - 1 : at + 1]
        strength = _break_strength(before, node, follows=(before.id, node.id) in edges)
        if size > MANY or (size > USUAL and strength >= 1) or (size > FEW and strength >= 2):
            starts.add(at)
            size = 1
    return starts


def _break_strength(before: Node, node: Node, *, follows: bool) -> int:
    """Return 2 for a clear break between two nodes, 1 for a possible break, else 0."""
    stage, stage_before = _stage(node.title), _stage(before.title)
    if (stage or stage_before) and stage != stage_before:
        return 2
    if node.timestamp - before.timestamp > PAUSE:
        return 2
    if not follows:
        return 1 if before.status == "blocked" else 2
    intent, intent_before = title_intent(node.title), title_intent(before.title)
    return int(bool(intent and intent.intent == "look" and not (intent_before and intent_before.intent == "look")))


def _stage(title: str) -> str:
    """Return `explore` for `Explore: read the auth module`, "" for a title that names no stage."""
    word, colon, _ = title.partition(": ")
    return word.casefold() if colon and len(word) <= 20 and " " not in word and word != "Look" else ""


def title_of(nodes: Sequence[Node], *, room: int) -> str:
    """Return a common title for several steps, in at most `room` characters."""
    calls = [intent for node in nodes if (intent := title_intent(node.title)) and intent.subject]
    if 2 * len(calls) > len(nodes) > 1:
        return _title_of_calls(calls, room)
    return _first_and_last([node.title for node in nodes], room)


def _title_of_calls(calls: Sequence[CallIntent], room: int) -> str:
    """Return `write a.py, b.py; run t.py; look at c.py`, the most used names first, as many as fit."""
    parts: list[str] = []
    seen: set[str] = set()
    for verb, intent in (("write", "change"), ("run", "run"), ("look at", "look"), ("install", "install")):
        counts = Counter(call.subject for call in calls if call.intent == intent)
        names = [name for name, _ in counts.most_common() if name not in seen][:NAMES_IN_TITLE]
        seen.update(names)
        while names and len("; ".join([*parts, f"{verb} {', '.join(names)}"])) > room:
            names.pop()
        if names:
            parts.append(f"{verb} {', '.join(names)}")
    return "; ".join(parts) or _first_and_last([calls[0].subject, calls[-1].subject], room)


def _first_and_last(titles: Sequence[str], room: int) -> str:
    """Join the first and the last title, both cut if they do not fit."""
    ends = [titles[0], titles[-1]] if len(titles) > 1 else [titles[0]]
    joint = " · " if len(titles) <= 2 else " … "
    limit = (room - len(joint)) // len(ends)
    return joint.join(clean(title, limit) for title in ends)


Groups = Mapping[str, Group]

DEAD_END_TITLES = 60
"""Characters of the titles of dead ends in a composite's summary, the newest first."""

_STRETCH = re.compile(r"(\d{3,9})-F(\d{1,9})-(\d{1,9})")


def members(groups: Groups, id_: str) -> list[str]:
    """Return the nodes of a group, including those of nested groups; for a node, its own id."""
    return [node for child in groups[id_].nodes for node in members(groups, child)] if id_ in groups else [id_]


def nodes_of(canvas: Canvas, groups: Groups, id_: str) -> tuple[str, ...]:
    """Return the nodes of a node's, group's or stretch's id, in the order of the canvas; empty if unknown."""
    if stretch := _STRETCH.fullmatch(id_):
        number, first, last = map(int, stretch.groups())
        ids = {f"{padded(number)}-N{at}" for at in range(first, min(last, first + 100_000) + 1)}
    else:
        ids = set(members(groups, id_))
    return tuple(node.id for node in canvas.nodes if node.id in ids)


def without_texts(groups: Groups, nodes: Collection[str]) -> dict[str, Group]:
    """Return the groups, without title and summary if they contain any of the nodes."""
    return {
        id_: Group(group.nodes) if any(node in nodes for node in members(groups, id_)) else group
        for id_, group in groups.items()
    }


def dissolve(groups: Groups, ids: Collection[str]) -> dict[str, Group]:
    """Return the groups without the groups `ids`, whose children move into the group around them, if any."""

    def expand(id_: str) -> list[str]:
        if id_ not in ids or id_ not in groups:
            return [id_]
        return [node for child in groups[id_].nodes for node in expand(child)]

    return {
        id_: replace(group, nodes=tuple(node for child in group.nodes for node in expand(child)))
        for id_, group in groups.items()
        if id_ not in ids
    }


def top_level(groups: Groups, id_: str) -> str:
    """Return the outermost group around a node or group, or its own id."""
    parent = next((group_id for group_id, group in groups.items() if id_ in group.nodes), None)
    return id_ if parent is None else top_level(groups, parent)


def require(canvas: Canvas, groups: Groups, id_: str) -> tuple[str, ...]:
    """Return the nodes of an id as `nodes_of` does. Raises InvalidInput if it is unknown."""
    if nodes := nodes_of(canvas, groups, id_.strip()):
        return nodes
    ids = ", ".join([*groups, *(node.id for node in canvas.nodes[-12:])])
    raise InvalidInput(f"{clean(id_, 40)!r} is not a node or group of canvas {padded(canvas.number)}. It has: {ids}.")


def outermost(canvas: Canvas, groups: Groups, ids: Iterable[str]) -> tuple[str, ...]:
    """Return the children of a new group of these ids: ungrouped nodes, and whole groups instead of their nodes.

    Raises InvalidInput for an unknown id, and if the ids are only a part of an existing group.
    """
    chosen = list(dict.fromkeys(node for id_ in ids for node in require(canvas, groups, id_)))
    children = tuple(dict.fromkeys(top_level(groups, node) for node in chosen))
    for id_ in children:
        missing = [node for node in members(groups, id_) if node not in chosen]
        if missing:
            raise InvalidInput(
                f"{id_} is folded already and contains {', '.join(missing)} too. Name {id_} itself, or unfold it first."
            )
    return children


def new_group_id(number: int, groups: Groups) -> str:
    highest = max((int(id_.rpartition("F")[2]) for id_ in groups), default=0)
    return f"{padded(number)}-F{highest + 1}"


def fold_groups(canvas: Canvas, groups: Groups) -> Canvas:
    """Return the canvas with one composite node for each outermost group, in the place of its first node.

    Edges of its nodes become edges of the composite; edges inside a group and duplicates are dropped. An edge into a
    group is dashed only if the whole group is a dead end.
    """
    group_of = {node: id_ for id_ in groups if top_level(groups, id_) == id_ for node in members(groups, id_)}
    folded: dict[str, list[Node]] = {}
    for node in canvas.nodes:
        folded.setdefault(group_of.get(node.id, node.id), []).append(node)
    nodes = {id_: composite(id_, groups[id_], inner) if id_ in groups else inner[0] for id_, inner in folded.items()}
    edges: dict[tuple[str, str], Edge] = {}
    for edge in canvas.edges:
        source, target = group_of.get(edge.source, edge.source), group_of.get(edge.target, edge.target)
        if source != target and (source, target) not in edges:
            is_dead_end = nodes[target].status == "blocked"
            edges[source, target] = (
                Edge(source, target, DEAD_END if is_dead_end else "", is_dead_end)
                if target in groups
                else replace(edge, source=source, target=target)
            )
    return replace(canvas, nodes=tuple(nodes.values()), edges=tuple(edges.values()))


def composite(id_: str, group: Group, nodes: Sequence[Node]) -> Node:
    """Return one node for a group: `3 steps: Explore · Fix` with the newest result, or the group's own texts.

    If the group has no summary, the dead ends are listed first: they should not be tried again.
    """
    live = [node for node in nodes if node.status != "blocked"]
    dead = [node.title for node in nodes if live and node.status == "blocked"]
    count = f"{len(nodes)} step{'s' * (len(nodes) != 1)}"
    summary = max(live or nodes, key=lambda node: (not node.summary.startswith("no output"), node.timestamp)).summary
    if dead:
        count += f", {len(dead)} dead end{'s' * (len(dead) != 1)}"
        titles = clean(", ".join(reversed(dead)), DEAD_END_TITLES)
        summary = f"dead end{'s' * (len(dead) > 1)}: {titles}; {summary}"
    statuses = {node.status for node in nodes}
    return Node(
        id_,
        f"{count}: {group.title or title_of(live or nodes, room=78 - len(count))}",
        next(status for status in _STATUS_ORDER if status in statuses),
        group.summary or summary,
        max(node.timestamp for node in nodes),
    )


_STATUS_ORDER: tuple[StepStatus, ...] = ("doing", "paused", "done", "blocked")

TITLE, SUMMARY, DEAD_ENDS = 60, 100, 140
"""Characters of a step's texts if the whole canvas does not fit; the newest step is not cut."""
CROWD, FOLDED_AT_ONCE = 5, 4
"""Of `CROWD` adjacent composites of one level, the oldest `FOLDED_AT_ONCE` become one composite."""
EDGE_TOKENS = 11
"""Estimated tokens of an edge; an exact count follows."""


@dataclass(frozen=True, slots=True)
class _Block:
    """One box of the folded canvas. Level 0 is a node or a stored group, 1 is a phase, above are groups of phases.

    `first` and `last` are the numbers of its first and last node. Unless `fixed`, it has all nodes between them.
    """

    id: str
    ids: tuple[str, ...]
    nodes: tuple[Node, ...]
    first: int
    last: int
    level: int
    phase: int
    fixed: bool


def fit(canvas: Canvas, groups: Groups, *, counter: TokenCounter, budget: int) -> str | None:
    """Return the most detailed text of a canvas that fits the budget; None if even the least detailed does not."""
    whole = render(fold_groups(canvas, groups))
    if counter.fits(whole, budget):
        return whole
    last = latest(canvas)
    blocks: list[_Block] | None = _blocks(canvas, groups, last)
    costs: dict[str, int] = {}

    def cost(block: _Block) -> int:
        if block.id not in costs:
            node = block.nodes[0]
            if block.id != node.id:
                node = composite(block.id, groups.get(block.id) or Group(block.ids), block.nodes)
            costs[block.id] = counter.count(node_line(_shorten(node, last)))
        return costs[block.id]

    while blocks is not None:
        if sum(cost(block) + EDGE_TOKENS for block in blocks) <= budget:
            folded = _fold_blocks(canvas, groups, blocks)
            text = render(replace(folded, nodes=tuple(_shorten(node, last) for node in folded.nodes)))
            if counter.fits(text, budget):
                return text
        blocks = _fold_once(blocks)
    return None


def in_phases(canvas: Canvas, groups: Groups, *, most: int) -> tuple[Canvas, list[list[str]]]:
    """Return the canvas with at most `most` boxes, if folding allows it, and their ids phase by phase.

    Up to `2 * CROWD` composites of several phases share a column.
    """
    last = latest(canvas)
    blocks = _blocks(canvas, groups, last)
    while len(blocks) > most and (folded := _fold_once(blocks)):
        blocks = folded
    phases: list[list[str]] = []
    before: _Block | None = None
    for block in blocks:
        same = before and (before.phase == block.phase or (before.level > 0 and block.level > 0))
        if not same or len(phases[-1]) >= 2 * CROWD:
            phases.append([])
        phases[-1].append(block.id)
        before = block
    return _fold_blocks(canvas, groups, blocks), phases


def _fold_blocks(canvas: Canvas, groups: Groups, blocks: Sequence[_Block]) -> Canvas:
    stretches = {block.id: Group(block.ids) for block in blocks if len(block.ids) > 1}
    return fold_groups(canvas, {**groups, **stretches})


def _shorten(node: Node, last: Node | None) -> Node:
    if last and node.id == last.id:
        return node
    if "-F" in node.id:
        return replace(node, summary=clean(node.summary, DEAD_ENDS if node.summary.startswith("dead end") else SUMMARY))
    return replace(node, title=clean(node.title, TITLE), summary=clean(node.summary, SUMMARY))


# --- blocks -----------------------------------------------------------------------------------------


def _blocks(canvas: Canvas, groups: Groups, last: Node | None) -> list[_Block]:
    starts = _phase_starts(canvas)
    blocks: list[_Block] = []
    at, phase = 0, -1
    while at < len(canvas.nodes):
        node = canvas.nodes[at]
        top = top_level(groups, node.id)
        inner = set(members(groups, top))
        nodes = canvas.nodes[at : at + len(inner)]
        whole = {node.id for node in nodes} == inner
        nodes = nodes if whole else (node,)
        phase += any(index in starts for index in range(at, at + len(nodes)))
        # Part of a group whose nodes are not adjacent cannot go into a stretch: it already belongs to the group.
        fixed = not whole or any(node.status not in ("done", "blocked") or node == last for node in nodes)
        numbers = [int(node.id.rpartition("N")[2]) for node in nodes]
        fixed = fixed or numbers != list(range(numbers[0], numbers[0] + len(numbers)))
        id_ = top if whole else node.id
        blocks.append(_Block(id_, (id_,), nodes, numbers[0], numbers[-1], 0, phase, fixed))
        at += len(nodes)
    return blocks


def _fold_once(blocks: Sequence[_Block]) -> list[_Block] | None:
    """Fold some adjacent blocks into one; None if nothing is left to fold."""
    runs = list(_runs(blocks))
    newest = blocks[-1].phase
    for first, length in sorted(runs, key=lambda run: -blocks[run[0]].level):
        if blocks[first].level and length >= CROWD:
            return _merge(blocks, first, FOLDED_AT_ONCE)
    for first, length in runs:
        if blocks[first].level == 0 and length > 1 and blocks[first].phase != newest:
            return _merge(blocks, first, length)
    for first, length in sorted(runs, key=lambda run: blocks[run[0]].level or len(blocks)):
        if length > 1:
            return _merge(blocks, first, min(length, FOLDED_AT_ONCE))
    for at in range(len(blocks) - 1):
        if _are_adjacent(blocks[at], blocks[at + 1]):
            return _merge(blocks, at, 2)
    return None


def _runs(blocks: Sequence[_Block]) -> Iterator[tuple[int, int]]:
    """Yield (first index, length) of runs of adjacent blocks with the same level, and at level 0 the same phase."""
    at = 0
    while at < len(blocks):
        end = at + 1
        while (
            end < len(blocks)
            and _are_adjacent(blocks[end - 1], blocks[end])
            and blocks[end].level == blocks[at].level
            and (blocks[at].level > 0 or blocks[end].phase == blocks[at].phase)
        ):
            end += 1
        yield at, end - at
        at = end


def _are_adjacent(block: _Block, following: _Block) -> bool:
    """Return whether two blocks can be folded into a stretch, whose id names only its first and last node."""
    return block.last + 1 == following.first and not block.fixed and not following.fixed


def _merge(blocks: Sequence[_Block], first: int, count: int) -> list[_Block]:
    inside = blocks[first : first + count]
    nodes = tuple(node for block in inside for node in block.nodes)
    number, _, start = nodes[0].id.partition("-N")
    merged = _Block(
        id=f"{number}-F{start}-{nodes[-1].id.rpartition('N')[2]}",
        ids=tuple(id_ for block in inside for id_ in block.ids),
        nodes=nodes,
        first=inside[0].first,
        last=inside[-1].last,
        level=max(block.level for block in inside) + 1,
        phase=inside[-1].phase,
        fixed=False,
    )
    return [*blocks[:first], merged, *blocks[first + count :]]
