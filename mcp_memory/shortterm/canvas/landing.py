"""Where a tool call lands: its task, its canvas, its node. It reads the store and writes nothing.

What it finds is ready to be committed with the record: the canvas as it will stand, the move that made it so, and the
edits that come before it (a new canvas begins). `row.version` guards it: where another writer was first, the call is
landed again.
It does not know which words begin a task (`boundary`), what a task is called (`tasks`) or where a step goes (`place`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from mcp_memory.core.secrets import mask
from mcp_memory.core.types import CanvasRow, Role, StepStatus, Turn
from mcp_memory.shortterm.canvas.amend import amend
from mcp_memory.shortterm.canvas.drawing import Drawing, row_of
from mcp_memory.shortterm.canvas.edits import begun, completed, do, paused, stepped
from mcp_memory.shortterm.canvas.flowchart import TITLE_LIMIT
from mcp_memory.shortterm.canvas.groups import nodes_of
from mcp_memory.shortterm.canvas.intent import Doing
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.place import Step, dumps, latest, loads, place
from mcp_memory.shortterm.canvas.rebuild import drawing_at
from mcp_memory.shortterm.canvas.tasks import Choice, check_task, choose_task, content, find_earlier, find_task
from mcp_memory.store.protocol import CanvasEdit, Store

if TYPE_CHECKING:
    from mcp_memory.shortterm.canvas.boundary import Verdict

__all__ = ["Arrival", "Landing", "Left", "land", "leave"]

TITLES_HEARD = 12
TASKS_LOOKED_AT = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A tool call in words (see `records`), and what the agent says of it."""

    session: str
    tool: str
    title: str
    summary: str
    doing: Doing
    now: datetime
    task: str | None = None
    step: str | None = None
    after: tuple[str, ...] = ()
    status: StepStatus | None = None
    goal_hint: str = ""
    said: tuple[Turn, ...] = ()
    """The last turns of the session, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The task that a session leaves; `done`: it was said to be finished."""

    row: CanvasRow
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """`move` and `edits` are for `Store.commit_step`, with `row`, whose version is the one that was read."""

    row: CanvasRow
    node: str
    move: str
    edits: tuple[CanvasEdit, ...]
    left: Left | None
    """For `leave`, once the step is committed."""


def land(store: Store, space: str, call: Arrival) -> Landing:
    """Return where the call goes. Raises InvalidInput for a task that is a path, and ids that are not there."""
    choice, left = _choose(store, space, call)
    edits: tuple[CanvasEdit, ...] = ()
    if choice.row is None:
        number = store.next_canvas_number(space)
        edits = (begun(choice.goal, call.now),)
        drawing = do(None, edits[0], number=number)
        assert drawing is not None
        row = _new_row(number, choice, call)
    else:
        row, drawing = replace(choice.row, session=call.session), drawing_at(store, space, choice.row)
    node, how = place(drawing.canvas, _step(store, space, call, drawing))
    grown = stepped(drawing, node, how, summary=call.summary, now=call.now)
    return Landing(row=row_of(grown, row), node=node, move=dumps(how), edits=edits, left=left)


def leave(store: Store, space: str, left: Left, *, now: datetime) -> None:
    """Note that a session went on to another task: the one it left is done, or paused until it is taken up again."""
    if left.done:
        amend(store, space, left.row, lambda held: [completed(now)] if held.canvas.status != "done" else [])
    else:
        amend(store, space, left.row, lambda held: [paused(now)] if held.canvas.status == "doing" else [])


def _new_row(number: int, choice: Choice, call: Arrival) -> CanvasRow:
    return CanvasRow(
        number=number, label=choice.label, session=call.session, text="", status="doing", updated=call.now, version=0
    )


# --- the task ---------------------------------------------------------------------------------------


def _choose(store: Store, space: str, call: Arrival) -> tuple[Choice, Left | None]:
    """Return the task of the call, and the one that the session leaves for it."""
    active = store.active_canvas(space, call.session)
    task = None if call.task is None else mask(check_task(call.task))
    heard = _heard(store, space, call, active) if active and task is None else None
    if heard and heard.back is not None:
        row = find_earlier(_others(store, space, call, active), heard.back)
        choice = Choice(row=row, label=row.label, goal="") if row else None
    else:
        choice = None
    wanted = mask(heard.new) if heard and heard.new else task
    if choice is None:
        known = wanted is None or (active and find_task([active], wanted))
        choice = choose_task(
            task=wanted,
            active=active,
            earlier=[] if known else _others(store, space, call, active),
            goal_hint=call.goal_hint,
            tool=call.tool,
        )
    if active is None or (choice.row and choice.row.number == active.number):
        return choice, None
    return choice, Left(row=active, done=heard is not None and heard.done)


def _heard(store: Store, space: str, call: Arrival, active: CanvasRow) -> Verdict | None:
    """What was said since the task's last step, if the user said anything."""
    since: list[tuple[Role, str]] = [
        (turn.role, turn.content) for turn in call.said if turn.learned_at > active.updated
    ]
    if not any(role == "user" for role, _ in since):
        return None
    from mcp_memory.shortterm.canvas.boundary import boundary

    canvas = drawing_at(store, space, active).canvas
    told = [canvas.task_goal, *(node.title for node in canvas.nodes[-TITLES_HEARD:])]
    return boundary(since, about=content(" ".join(told)))


def _others(store: Store, space: str, call: Arrival, active: CanvasRow | None) -> list[CanvasRow]:
    """The session's other tasks, the one worked on last first."""
    rows = store.canvases(space, session=call.session, limit=TASKS_LOOKED_AT)
    return [row for row in rows if active is None or row.number != active.number]


# --- the step ---------------------------------------------------------------------------------------


def _step(store: Store, space: str, call: Arrival, drawing: Drawing) -> Step:
    last = latest(drawing.canvas)
    taken = store.last_move(space, last.id) if last and call.step is None else None
    return Step(
        title=call.title,
        summary=call.summary,
        now=call.now,
        name=mask(clean(call.step or "", TITLE_LIMIT)) or None,
        after=dict(_followed(drawing, each) for each in call.after),
        status=call.status,
        doing=call.doing,
        before=loads(taken).routine if taken else "",
    )


def _followed(drawing: Drawing, after: str) -> tuple[str, str]:
    """`003-N2 if red` is what was followed, and the words on the edge; a folded group is followed at its last step."""
    id_, _, words = after.strip().partition(" ")
    nodes = nodes_of(drawing.canvas, drawing.groups, id_)
    return (nodes[-1], mask(words)) if nodes else (after, "")
