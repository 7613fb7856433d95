"""Phases: which steps of a task belong together, and what to call them.

Guarantees: pure; a phase that has ended is never cut otherwise by what comes later, so that a text that names it stays
as it is. Titles are the steps' own words where people or agents named them; where steps are calls that nobody named,
they say what was written, run and looked at, by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import timedelta

from mcp_memory.shortterm.canvas.flowchart import Canvas, Node
from mcp_memory.shortterm.canvas.intent import Doing, of_title

__all__ = ["begins", "title_of"]

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
    """How clearly something else begins: 2 by itself, 1 where enough has come together."""
    stage, stage_before = _stage(node.title), _stage(before.title)
    if (stage or stage_before) and stage != stage_before:
        return 2
    if node.timestamp - before.timestamp > PAUSE:
        return 2
    if not follows:
        return 1 if before.status == "blocked" else 2
    looks, looked = of_title(node.title), of_title(before.title)
    return int(bool(looks and looks.intent == "look" and not (looked and looked.intent == "look")))


def _stage(title: str) -> str:
    """`Explore` of `Explore: read the auth module`."""
    word, colon, _ = title.partition(": ")
    return word.casefold() if colon and len(word) <= 20 and " " not in word and word != "Look" else ""


def title_of(nodes: Sequence[Node], *, room: int) -> str:
    """Return what to call steps that stand as one, in at most `room` characters."""
    calls = [found for node in nodes if (found := of_title(node.title)) and found.subject]
    if 2 * len(calls) > len(nodes) > 1:
        return _of_calls(calls, room)
    return _ends([node.title for node in nodes], room)


def _of_calls(calls: Sequence[Doing], room: int) -> str:
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
