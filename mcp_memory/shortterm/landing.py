"""Where a tool call lands: its task, its canvas, its node. It reads the store and writes nothing.

What it finds is ready to be committed with the record: the canvas as it will stand, the move that made it so, and the
edits that come before it (a new canvas begins). `row.version` guards it: where another writer was first, the call is
landed again.
It does not know which words begin a task (`boundary`), what a task is called (`tasks`) or where a step goes (`place`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from mcp_memory.shortterm.canvas import TITLE_LIMIT
from mcp_memory.shortterm.drawing import Drawing, row_of
from mcp_memory.shortterm.edits import begun, do, stepped
from mcp_memory.shortterm.groups import nodes_of
from mcp_memory.shortterm.intent import Doing
from mcp_memory.shortterm.label import clean
from mcp_memory.shortterm.place import Step, dumps, latest, loads, place
from mcp_memory.shortterm.rebuild import drawing_at
from mcp_memory.shortterm.secrets import mask
from mcp_memory.shortterm.tasks import Choice, check_task, choose_task, label_of, number_in
from mcp_memory.store.protocol import CanvasEdit, Store
from mcp_memory.types import CanvasRow, StepStatus

__all__ = ["Arrival", "Landing", "land"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """`move` and `edits` are for `Store.commit_step`, with `row`, whose version is the one that was read."""

    row: CanvasRow
    node: str
    move: str
    edits: tuple[CanvasEdit, ...]


def land(store: Store, space: str, call: Arrival) -> Landing:
    """Return where the call goes. Raises InvalidInput for a task that is a path, and ids that are not there."""
    choice = _choose(store, space, call)
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
    return Landing(row=row_of(grown, row), node=node, move=dumps(how), edits=edits)


def _new_row(number: int, choice: Choice, call: Arrival) -> CanvasRow:
    return CanvasRow(
        number=number, label=choice.label, session=call.session, text="", status="doing", updated=call.now, version=0
    )


def _choose(store: Store, space: str, call: Arrival) -> Choice:
    task = None if call.task is None else mask(check_task(call.task))
    return choose_task(
        task=task,
        active=store.active_canvas(space, call.session),
        earlier=[] if task is None else _namesakes(store, space, call.session, task),
        goal_hint=call.goal_hint,
        tool=call.tool,
    )


def _namesakes(store: Store, space: str, session: str, task: str) -> list[CanvasRow]:
    """The session's canvases that the task's words may mean: by label, or by number."""
    rows = [
        row
        for label in dict.fromkeys((label_of(task), task))
        for row in store.canvases(space, session=session, label=label)
    ]
    if (number := number_in(task)) and number < store.next_canvas_number(space):
        rows += [row for row in [store.canvas(space, number)] if row.session == session]
    return rows


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
