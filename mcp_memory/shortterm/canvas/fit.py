"""A canvas within a budget: phases fold where it does not fit, the oldest first, and later on phases of phases.

Guarantees: pure; what folds next depends only on the steps up to there, so that a text stays as it is but for its end,
and now and then its beginning. What is unfinished, and the newest step, stand by themselves until the last. Every
composite is a stretch (`003-F2-9`), whose id says what it holds, or a group that somebody made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcp_memory.core.types import Group
from mcp_memory.shortterm.canvas.flowchart import Canvas, Node, node_line, render
from mcp_memory.shortterm.canvas.groups import Groups, composite, fold_groups, members, stretch_id, top_level
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.phases import begins
from mcp_memory.shortterm.canvas.place import latest

if TYPE_CHECKING:
    from mcp_memory.core.tokens import TokenCounter

__all__ = ["fitting", "in_phases"]

TITLE, SUMMARY, DEAD_ENDS = 60, 100, 140
"""Characters of a step's words where the whole canvas does not fit; the newest keeps all of them."""
CROWD, FOLDED_AT_ONCE = 5, 4
"""So many composites of one size side by side are too many, and so many of them become one."""
EDGE_TOKENS = 11
"""About what an edge takes; what the estimate leaves out, the exact count that follows does not."""


@dataclass(frozen=True, slots=True)
class _Block:
    """What stands as one in the text. Level 0: a node or a group that is kept; 1: a phase; above: phases of phases."""

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
    """Return the canvas with at most so many boxes where folding comes to that, and their ids phase by phase.

    Composites of several phases stand together, as many as would be folded at once.
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
