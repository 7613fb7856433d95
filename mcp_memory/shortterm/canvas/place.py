"""Where a step goes on the canvas. Pure and deterministic: the same canvas and step give the same canvas.

Rules
    The same step (its id, or its title compared without case and white space) continues its node.
    A call without a step continues the node touched last, where nobody named that one and it is more of the same
    (`intent`); a dead end is a step of its own.
    A new step follows the nodes it names in `after`, or the node touched last. A dead end (`blocked`) is joined
    by a dashed edge, and what comes next follows what came before it.
    When a step starts, what it follows is done, if it was still `doing`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import StepStatus
from mcp_memory.shortterm.canvas.flowchart import TITLE_LIMIT, Canvas, Edge, Node, padded
from mcp_memory.shortterm.canvas.intent import Doing, goes_on, grown
from mcp_memory.shortterm.canvas.label import clean

__all__ = ["DEAD_END", "Move", "Step", "dumps", "latest", "loads", "move", "place"]

DEAD_END = "dead end"

_NODE_ID = re.compile(r"\d{3,9}-[NF]\d{1,9}(?:-\d{1,9})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A tool call on its way to the canvas. `name` is what the agent calls its step, or a node's id."""

    title: str
    """What the call is called where nobody named a step."""
    summary: str
    now: datetime
    name: str | None = None
    after: Mapping[str, str] = field(default_factory=dict[str, str])
    """Nodes that it follows, each with the words on the edge, which may be none."""
    status: StepStatus | None = None
    doing: Doing | None = None
    """What a call that nobody named is for."""
    before: str = ""
    """The key of what the node touched last did last, where nobody named that either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What a step does to a canvas, all of it decided, so that it can be done again by a later version of the rules.

    With a `title` its node is new, or is called so from now on. `after` are nodes that it is joined to, with the words
    on the edge; `finished` those that are done because it begins; `routine` the key of what it did, where nobody named
    the step.
    """

    status: StepStatus
    title: str = ""
    routine: str = ""
    after: Mapping[str, str] = field(default_factory=dict[str, str])
    finished: tuple[str, ...] = ()


def place(canvas: Canvas, step: Step) -> tuple[str, Move]:
    """Return the node that the step belongs to, and what it does.

    Raises InvalidInput when `name` or `after` has an id that is not on the canvas; its text names those that are.
    """
    for id_ in step.after:
        _require(canvas, id_, "after")
    old = _existing(canvas, step)
    return (old.id, _continuing(canvas, old, step)) if old else _starting(canvas, step)


def move(canvas: Canvas, node: str, how: Move, *, summary: str, now: datetime) -> Canvas:
    """Return the canvas with the move done. A node that it goes on with and is not there is made."""
    known = {each.id: each for each in canvas.nodes}
    if old := known.get(node):
        made = replace(
            old, title=how.title or old.title, status=how.status, summary=summary, timestamp=max(old.timestamp, now)
        )
    else:
        made = Node(node, how.title or node, how.status, summary, now)
    done = {node: made} | {
        id_: replace(known[id_], status="done")
        for id_ in how.finished
        if id_ in known and known[id_].status == "doing" and id_ != node
    }
    nodes = tuple(done.get(each.id, each) for each in canvas.nodes) + (() if old else (made,))
    joined = {(edge.source, edge.target) for edge in canvas.edges}
    drawn = [Edge(id_, node, words) for id_, words in how.after.items() if id_ in known and (id_, node) not in joined]
    edges = tuple(_styled(edge, made) for edge in (*canvas.edges, *drawn))
    return replace(canvas, nodes=nodes, edges=edges, status="doing", updated=max(canvas.updated, now))


def dumps(how: Move) -> str:
    """Return the JSON that a record keeps of its move; what is as usual is left out."""
    fields = {key: value for key, value in asdict(how).items() if value}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def loads(text: str) -> Move:
    """Return the move of a record."""
    fields: dict[str, Any] = json.loads(text)
    fields["finished"] = tuple(fields.get("finished", ()))
    return Move(**fields)


def latest(canvas: Canvas) -> Node | None:
    """Return the node that was touched last."""
    newest = max((node.timestamp for node in canvas.nodes), default=None)
    return next((node for node in reversed(canvas.nodes) if node.timestamp == newest), None)


# --- finding ----------------------------------------------------------------------------------------


def _existing(canvas: Canvas, step: Step) -> Node | None:
    if step.name is None:
        last = latest(canvas)
        more = step.doing and not step.after and step.status != "blocked" and goes_on(step.before, step.doing)
        return last if last and more and last.status == "doing" else None
    name = clean(step.name, TITLE_LIMIT)
    if _NODE_ID.fullmatch(name):
        return _require(canvas, name, "step")
    return next((node for node in reversed(canvas.nodes) if _key(node.title) == _key(name)), None)


def _require(canvas: Canvas, id_: str, what: str) -> Node:
    by_id = {node.id: node for node in canvas.nodes}
    if id_ in by_id:
        return by_id[id_]
    known = ", ".join(list(by_id)[-12:]) or "none yet"
    raise InvalidInput(
        f"{what} names {clean(id_, 40)!r}, which is no node of canvas {padded(canvas.number)}. "
        f"Its nodes{', the newest ones,' if len(by_id) > 12 else ''} are: {known}."
    )


def _key(title: str) -> str:
    return "".join(title.casefold().split())


# --- growing ----------------------------------------------------------------------------------------


def _continuing(canvas: Canvas, old: Node, step: Step) -> Move:
    joined = {(edge.source, edge.target) for edge in canvas.edges}
    return Move(
        status=step.status or ("blocked" if old.status == "blocked" else "doing"),
        title=grown(old.title, step.before, step.doing) if step.doing and step.name is None else "",
        routine=_key_of(step),
        after={id_: words for id_, words in step.after.items() if id_ != old.id and (id_, old.id) not in joined},
    )


def _starting(canvas: Canvas, step: Step) -> tuple[str, Move]:
    number = max((int(node.id.rpartition("N")[2]) for node in canvas.nodes), default=0) + 1
    before = step.after or dict.fromkeys(_live_ends(canvas), "")
    return f"{padded(canvas.number)}-N{number}", Move(
        status=step.status or "doing",
        title=_title(step),
        routine=_key_of(step),
        after=before,
        finished=tuple(node.id for node in canvas.nodes if node.id in before and node.status == "doing"),
    )


def _title(step: Step) -> str:
    if step.name is not None:
        return clean(step.name, TITLE_LIMIT)
    return step.doing.title if step.doing and step.doing.title else step.title


def _key_of(step: Step) -> str:
    return step.doing.key if step.doing and step.name is None else ""


def _live_ends(canvas: Canvas) -> list[str]:
    """The node touched last; where that is a dead end, what came before it, as far back as dead ends go."""
    blocked = {node.id for node in canvas.nodes if node.status == "blocked"}
    last = latest(canvas)
    ends: list[str] = [last.id] if last else []
    seen = set(ends)
    while any(id_ in blocked for id_ in ends):
        sources = [edge.source for end in ends if end in blocked for edge in canvas.edges if edge.target == end]
        ends = [id_ for id_ in ends if id_ not in blocked] + [id_ for id_ in sources if id_ not in seen]
        seen.update(sources)
    return ends


def _styled(edge: Edge, node: Node) -> Edge:
    """An edge into the node looks like what the node has become."""
    if edge.target != node.id:
        return edge
    if node.status == "blocked":
        return Edge(edge.source, edge.target, edge.label or DEAD_END, dashed=True)
    return Edge(edge.source, edge.target, "" if edge.label == DEAD_END else edge.label)
