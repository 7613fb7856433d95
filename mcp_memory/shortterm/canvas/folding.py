"""Folding: groups of nodes shown as one, phases of a task, and a canvas within a budget.

Everything here is pure; nodes themselves never change. Two kinds of id: `003-F1` is a group that somebody folded; it is
stored in `CanvasRow.groups` and may hold other groups, so that unfolding restores them. `003-F2-9` is the stretch from
node 003-N2 to 003-N9, folded to fit a budget; it is not stored, because its name says which nodes it holds.

A phase is a run of steps that belong together. One that has ended is never cut differently by later steps, so that a
text that names it stays the same. Its title uses the steps' own words where people or agents named them, else the names
of the files that the calls wrote, ran and read.

Where a canvas does not fit, phases fold, the oldest first, and later phases of phases. The next fold depends only on
the steps before it, so that a text mostly changes at its end. Unfinished steps and the newest one fold last.
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
"""Steps after which a phase may end at a clear break, at any break, and ends."""
PAUSE = timedelta(minutes=15)
NAMED = 3
"""Names of one kind in a title."""


def begins(canvas: Canvas) -> set[int]:
    """Return at which nodes, by their place on the canvas, a phase begins; the first is one."""
    joined = {(edge.source, edge.target) for edge in canvas.edges}
    starts, size = {0}, 0
    for at, node in enumerate(canvas.nodes):
        size += 1
        if at == 0:
            continue
        before = canvas.nodes[at - 1]
        strength = _break(before, node, follows=(before.id, node.id) in joined)
        if size > MANY or (size > USUAL and strength >= 1) or (size > FEW and strength >= 2):
            starts.add(at)
            size = 1
    return starts


def _break(before: Node, node: Node, *, follows: bool) -> int:
    """Return how clearly a new phase begins: 2 always, 1 after enough steps, 0 not."""
    stage, stage_before = _stage(node.title), _stage(before.title)
    if (stage or stage_before) and stage != stage_before:
        return 2
    if node.timestamp - before.timestamp > PAUSE:
        return 2
    if not follows:
        return 1 if before.status == "blocked" else 2
    looks, looked = title_intent(node.title), title_intent(before.title)
    return int(bool(looks and looks.intent == "look" and not (looked and looked.intent == "look")))


def _stage(title: str) -> str:
    """`Explore` of `Explore: read the auth module`."""
    word, colon, _ = title.partition(": ")
    return word.casefold() if colon and len(word) <= 20 and " " not in word and word != "Look" else ""


def title_of(nodes: Sequence[Node], *, room: int) -> str:
    """Return what to call steps that stand as one, in at most `room` characters."""
    calls = [found for node in nodes if (found := title_intent(node.title)) and found.subject]
    if 2 * len(calls) > len(nodes) > 1:
        return _of_calls(calls, room)
    return _ends([node.title for node in nodes], room)


def _of_calls(calls: Sequence[CallIntent], room: int) -> str:
    """`write a.py, b.py; run t.py; look at c.py`, the names used most first; the less telling give way."""
    named: dict[str, list[str]] = {}
    seen: set[str] = set()
    for verb, intent in (("write", "change"), ("run", "run"), ("look at", "look"), ("install", "install")):
        names = _most_used(call.subject for call in calls if call.intent == intent)
        named[verb] = [name for name in names if name not in seen][:NAMED]
        seen.update(named[verb])
    kept: list[str] = []
    for verb, names in named.items():
        while names:
            part = f"{verb} {', '.join(names)}"
            if len("; ".join([*kept, part])) <= room:
                kept.append(part)
                break
            names.pop()
    return "; ".join(kept) or _ends([calls[0].subject, calls[-1].subject], room)


def _most_used(names: Iterable[str]) -> list[str]:
    return [name for name, _ in Counter(name for name in names if name).most_common()]


def _ends(titles: Sequence[str], room: int) -> str:
    """The first and the last title, cut evenly where both do not fit."""
    ends = [titles[0], titles[-1]] if len(titles) > 1 else [titles[0]]
    joint = " · " if len(titles) <= 2 else " … "
    each = (room - len(joint)) // len(ends)
    return joint.join(title if len(title) <= each else title[: each - 1].rstrip() + "…" for title in ends)


Groups = Mapping[str, Group]

DEAD_ENDS_TOLD = 60
"""Characters of the titles of dead ends that a composite tells, the newest first."""

_STRETCH = re.compile(r"(\d{3,9})-F(\d{1,9})-(\d{1,9})")


def members(groups: Groups, id_: str) -> list[str]:
    """Return the nodes that a group holds, those of groups inside it too; a node holds itself."""
    return [node for each in groups[id_].nodes for node in members(groups, each)] if id_ in groups else [id_]


def nodes_of(canvas: Canvas, groups: Groups, id_: str) -> tuple[str, ...]:
    """Return the nodes that a node's, group's or stretch's id stands for, in the canvas's order; none if unknown."""
    if found := _STRETCH.fullmatch(id_):
        number, first, last = map(int, found.groups())
        held = {f"{padded(number)}-N{at}" for at in range(first, min(last, first + 100_000) + 1)}
    else:
        held = set(members(groups, id_))
    return tuple(node.id for node in canvas.nodes if node.id in held)


def opened(groups: Groups, node: str) -> dict[str, Group]:
    """Return the groups without those that hold the node: it is being worked on again."""
    return {id_: group for id_, group in groups.items() if node not in members(groups, id_)}


def without_words(groups: Groups, nodes: Collection[str]) -> dict[str, Group]:
    """Return the groups; those that hold one of the nodes have no title or summary."""
    return {
        id_: Group(group.nodes) if any(node in nodes for node in members(groups, id_)) else group
        for id_, group in groups.items()
    }


def without(groups: Groups, gone: Collection[str]) -> dict[str, Group]:
    """Return the groups without some; those that held one of them hold its content."""

    def kept(id_: str) -> list[str]:
        if id_ not in gone or id_ not in groups:
            return [id_]
        return [each for inside in groups[id_].nodes for each in kept(inside)]

    return {
        id_: replace(group, nodes=tuple(each for inside in group.nodes for each in kept(inside)))
        for id_, group in groups.items()
        if id_ not in gone
    }


def top_level(groups: Groups, id_: str) -> str:
    """Return the outermost group that holds a node or group, or itself."""
    holder = next((each for each, group in groups.items() if id_ in group.nodes), None)
    return id_ if holder is None else top_level(groups, holder)


def require(canvas: Canvas, groups: Groups, id_: str) -> tuple[str, ...]:
    """Return the nodes that an id stands for. Raises InvalidInput with the ids there are."""
    if found := nodes_of(canvas, groups, id_.strip()):
        return found
    known = ", ".join([*groups, *(node.id for node in canvas.nodes[-12:])])
    raise InvalidInput(f"{clean(id_, 40)!r} is no node or group of canvas {padded(canvas.number)}. It has: {known}.")


def outermost(canvas: Canvas, groups: Groups, ids: Iterable[str]) -> tuple[str, ...]:
    """Return the content of a group of these: nodes and whole groups. Raises InvalidInput for a part of a group."""
    chosen = list(dict.fromkeys(node for id_ in ids for node in require(canvas, groups, id_)))
    inside = tuple(dict.fromkeys(top_level(groups, node) for node in chosen))
    for id_ in inside:
        missing = [node for node in members(groups, id_) if node not in chosen]
        if missing:
            raise InvalidInput(
                f"{id_} is folded already and holds {', '.join(missing)} too. Name {id_} itself, or unfold it first."
            )
    return inside


def new_group_id(number: int, groups: Groups) -> str:
    """Return the id of the next group of a canvas."""
    highest = max((int(id_.rpartition("F")[2]) for id_ in groups), default=0)
    return f"{padded(number)}-F{highest + 1}"


def stretch_id(first: str, last: str) -> str:
    """Return the id of the stretch between two nodes, both in it."""
    number, _, start = first.partition("-N")
    return f"{number}-F{start}-{last.rpartition('N')[2]}"


def fold_groups(canvas: Canvas, groups: Groups) -> Canvas:
    """Return the canvas with one composite node for each outermost group, where its first node stood.

    Edges go to the composite; those inside it, and doubles, are gone. An edge stays dashed only where all that it
    leads to is a dead end.
    """
    holder = {node: id_ for id_ in groups if top_level(groups, id_) == id_ for node in members(groups, id_)}
    shown: dict[str, list[Node]] = {}
    for node in canvas.nodes:
        shown.setdefault(holder.get(node.id, node.id), []).append(node)
    nodes = {id_: composite(id_, groups[id_], held) if id_ in groups else held[0] for id_, held in shown.items()}
    edges: dict[tuple[str, str], Edge] = {}
    for edge in canvas.edges:
        source, target = holder.get(edge.source, edge.source), holder.get(edge.target, edge.target)
        if source != target:
            drawn = _rewired(edge, source, target, into_group=target in groups, status=nodes[target].status)
            edges.setdefault((source, target), drawn)
    return replace(canvas, nodes=tuple(nodes.values()), edges=tuple(edges.values()))


def _rewired(edge: Edge, source: str, target: str, *, into_group: bool, status: StepStatus) -> Edge:
    if not into_group:
        return replace(edge, source=source, target=target)
    dead = status == "blocked"
    return Edge(source, target, DEAD_END if dead else "", dead)


def composite(id_: str, group: Group, nodes: Sequence[Node]) -> Node:
    """Return one node for a group: `3 steps: Explore · Fix` with the newest result, or the group's own words."""
    live = [node for node in nodes if node.status != "blocked"]
    dead = len(nodes) - len(live)
    count = f"{len(nodes)} step{'s' * (len(nodes) != 1)}"
    if live and dead:
        count += f", {dead} dead end{'s' * (dead != 1)}"
    newest = max(live or nodes, key=lambda node: (not node.summary.startswith("no output"), node.timestamp))
    titles = group.title or title_of(live or nodes, room=78 - len(count))
    return Node(
        id_,
        f"{count}: {titles}",
        _status(live),
        group.summary or _summary(newest, [node.title for node in nodes if live and node.status == "blocked"]),
        max(node.timestamp for node in nodes),
    )


def _summary(newest: Node, dead: Sequence[str]) -> str:
    """Return the result of the steps, after the dead ends among them, which should not be tried again."""
    if not dead:
        return newest.summary
    told = clean(", ".join(reversed(dead)), DEAD_ENDS_TOLD)
    return f"dead end{'s' * (len(dead) > 1)}: {told}; {newest.summary}"


def _status(live: Iterable[Node]) -> StepStatus:
    statuses = {node.status for node in live}
    for status in ("doing", "paused", "done"):
        if status in statuses:
            return status
    return "blocked"


TITLE, SUMMARY, DEAD_ENDS = 60, 100, 140
"""Characters of a step's words where the whole canvas does not fit; the newest keeps all of them."""
CROWD, FOLDED_AT_ONCE = 5, 4
"""So many composites of one size side by side are too many, and so many of them become one."""
EDGE_TOKENS = 11
"""About what an edge takes; what the estimate leaves out, the exact count that follows does not."""


@dataclass(frozen=True, slots=True)
class _Block:
    """One line of the text. Level 0: a node or a stored group; 1: a phase; above: phases of phases."""

    id: str
    ids: tuple[str, ...]
    nodes: tuple[Node, ...]
    first: int
    last: int
    """The numbers of its first and last node; those between are its own too, unless it is fixed."""
    level: int
    phase: int
    fixed: bool


def fitting(canvas: Canvas, groups: Groups, *, counter: TokenCounter, budget: int) -> str | None:
    """Return the fullest text that fits, None where none does."""
    whole = render(fold_groups(canvas, groups))
    if counter.fits(whole, budget):
        return whole
    last = latest(canvas)
    blocks: list[_Block] | None = _blocks(canvas, groups, last)
    costs: dict[str, int] = {}

    def cost(block: _Block) -> int:
        if block.id not in costs:
            costs[block.id] = counter.count(node_line(_shortened(_shown(block, groups), last)))
        return costs[block.id]

    while blocks is not None:
        if sum(cost(block) + EDGE_TOKENS for block in blocks) <= budget:
            text = _text(canvas, groups, blocks, last)
            if counter.fits(text, budget):
                return text
        blocks = _fold_once(blocks)
    return None


def in_phases(canvas: Canvas, groups: Groups, *, most: int) -> tuple[Canvas, list[list[str]]]:
    """Return the canvas with at most `most` boxes where folding allows it, and their ids phase by phase.

    Composites of several phases share a column, as many as would be folded at once.
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
    made = {block.id: Group(block.ids) for block in blocks if len(block.ids) > 1}
    return fold_groups(canvas, {**groups, **made}), phases


def _text(canvas: Canvas, groups: Groups, blocks: Sequence[_Block], last: Node | None) -> str:
    made = {block.id: Group(block.ids) for block in blocks if len(block.ids) > 1}
    folded = fold_groups(canvas, {**groups, **made})
    return render(replace(folded, nodes=tuple(_shortened(node, last) for node in folded.nodes)))


def _shown(block: _Block, groups: Groups) -> Node:
    if len(block.ids) == 1 and block.ids[0] not in groups:
        return block.nodes[0]
    return composite(block.id, groups.get(block.id) or Group(block.ids), block.nodes)


def _shortened(node: Node, last: Node | None) -> Node:
    if last and node.id == last.id:
        return node
    if "-F" in node.id:
        return replace(node, summary=clean(node.summary, DEAD_ENDS if node.summary.startswith("dead end") else SUMMARY))
    return replace(node, title=clean(node.title, TITLE), summary=clean(node.summary, SUMMARY))


# --- blocks -----------------------------------------------------------------------------------------


def _blocks(canvas: Canvas, groups: Groups, last: Node | None) -> list[_Block]:
    starts = begins(canvas)
    blocks: list[_Block] = []
    at, phase = 0, -1
    while at < len(canvas.nodes):
        node = canvas.nodes[at]
        top = top_level(groups, node.id)
        held = set(members(groups, top))
        nodes = canvas.nodes[at : at + len(held)]
        whole = {each.id for each in nodes} == held
        nodes = nodes if whole else (node,)
        phase += any(each in starts for each in range(at, at + len(nodes)))
        # Part of a group whose nodes lie apart cannot go into a stretch: the group holds it already.
        fixed = not whole or any(each.status not in ("done", "blocked") or each == last for each in nodes)
        numbers = [int(each.id.rpartition("N")[2]) for each in nodes]
        fixed = fixed or numbers != list(range(numbers[0], numbers[0] + len(numbers)))
        id_ = top if whole else node.id
        blocks.append(_Block(id_, (id_,), nodes, numbers[0], numbers[-1], 0, phase, fixed))
        at += len(nodes)
    return blocks


def _fold_once(blocks: Sequence[_Block]) -> list[_Block] | None:
    """Return the blocks with some that stand side by side folded into one; None where nothing is left to fold."""
    runs = list(_runs(blocks))
    newest = blocks[-1].phase
    for first, length in sorted(runs, key=lambda run: -blocks[run[0]].level):
        if blocks[first].level and length >= CROWD:
            return _merged(blocks, first, FOLDED_AT_ONCE)
    for first, length in runs:
        if blocks[first].level == 0 and length > 1 and blocks[first].phase != newest:
            return _merged(blocks, first, length)
    for first, length in sorted(runs, key=lambda run: blocks[run[0]].level or len(blocks)):
        if length > 1:
            return _merged(blocks, first, min(length, FOLDED_AT_ONCE))
    for at in range(len(blocks) - 1):
        if _side_by_side(blocks[at], blocks[at + 1]):
            return _merged(blocks, at, 2)
    return None


def _runs(blocks: Sequence[_Block]) -> Iterator[tuple[int, int]]:
    """Where blocks of one level stand side by side, at level 0 those of one phase: the first, and how many."""
    at = 0
    while at < len(blocks):
        end = at + 1
        while (
            end < len(blocks)
            and _side_by_side(blocks[end - 1], blocks[end])
            and blocks[end].level == blocks[at].level
            and (blocks[at].level > 0 or blocks[end].phase == blocks[at].phase)
        ):
            end += 1
        yield at, end - at
        at = end


def _side_by_side(one: _Block, other: _Block) -> bool:
    """Whether a stretch may hold both: its name is its first and last node."""
    return one.last + 1 == other.first and not one.fixed and not other.fixed


def _merged(blocks: Sequence[_Block], first: int, count: int) -> list[_Block]:
    inside = blocks[first : first + count]
    nodes = tuple(node for block in inside for node in block.nodes)
    made = _Block(
        id=stretch_id(nodes[0].id, nodes[-1].id),
        ids=tuple(id_ for block in inside for id_ in block.ids),
        nodes=nodes,
        first=inside[0].first,
        last=inside[-1].last,
        level=max(block.level for block in inside) + 1,
        phase=inside[-1].phase,
        fixed=False,
    )
    return [*blocks[:first], made, *blocks[first + count :]]
