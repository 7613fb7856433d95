"""A better order of a long canvas: a model groups what belongs together, names steps and says when a task is over.

Due where a task has grown by many steps since it was last looked over, or is done. What a model asks for becomes one
patch, checked as any other (`pieces`, `patch`), with the work that it came of, and can be rolled back. A canvas is
never redrawn by a model, and what it is not sure of stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from pydantic import BaseModel

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.secrets import mask
from mcp_memory.core.text import one_line
from mcp_memory.models.llm import Message
from mcp_memory.models.metered import Question
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.models.stage import Applied, StageContext, StageDefinition
from mcp_memory.shortterm.canvas.amend import with_edits
from mcp_memory.shortterm.canvas.drawing import Drawing, drawing_of
from mcp_memory.shortterm.canvas.edits import completed, patched
from mcp_memory.shortterm.canvas.flowchart import Canvas, Node
from mcp_memory.shortterm.canvas.groups import fold_groups, members
from mcp_memory.shortterm.canvas.patch import Patch
from mcp_memory.shortterm.canvas.place import Move, latest, loads
from mcp_memory.shortterm.stages.committing import commit
from mcp_memory.shortterm.stages.pieces import Checked, Reply, checked
from mcp_memory.store.protocol import CanvasEdit, CanvasGrowth, Store, TakenStep, Work

__all__ = ["CANVAS", "FRESH", "Basis", "Reply", "apply", "grown", "plan", "question"]

FRESH = timedelta(days=3)
GROWN, FEW = 25, 10
"""Steps taken since the last look that make another one worth a question; of a task that is done or left, fewer do."""
NODES = 8
"""What is drawn with fewer than that can be read as it is."""
QUIET = timedelta(minutes=10)
"""How long a task has to rest before a model may say that it is over."""

_SHOWN = 80
_ANSWER_TOKENS = 3_000
_NO_GOAL = "Work with "


class Basis(BaseModel):
    """A canvas, its steps up to record number `upto`; at most `shown` nodes and groups of it, the newest."""

    canvas: int
    upto: int
    shown: int


def grown(store: Store, space: str, now: datetime, *, eager: bool = False) -> list[CanvasGrowth]:
    """Return the canvases that are worth another look, the one that grew most first."""
    found = store.canvas_growth(space, since=now - FRESH)
    return [each for each in found if each.steps >= (GROWN if each.status == "doing" and not eager else FEW)]


def plan(desk: StageContext[Store], *, session: str | None, smaller: int) -> Basis | None:
    """Return the canvas that grew most, of those with enough on them to be put in order."""
    store, space, now = desk.store, desk.space, desk.now
    for each in grown(store, space, now) or grown(store, space, now, eager=True):
        drawing = _drawing(desk, each.canvas)
        if drawing is not None and len(fold_groups(drawing.canvas, drawing.groups).nodes) >= NODES:
            return Basis(canvas=each.canvas, upto=each.upto, shown=max(NODES, _SHOWN >> smaller))
    return None


def _drawing(desk: StageContext[Store], number: int) -> Drawing | None:
    try:
        return drawing_of(desk.store.canvas(desk.space, number))
    except (Damaged, NotFound):
        return None  # `doctor` tells of it


# --- what is asked ----------------------------------------------------------------------------------


def question(desk: StageContext[Store], basis: Basis) -> Question[Reply] | None:
    """Put the canvas as it stands into words; None where it is gone or torn."""
    drawing = _drawing(desk, basis.canvas)
    if drawing is None:
        return None
    return Question(purpose="canvas", messages=_messages(desk, drawing, basis), reply=Reply, max_tokens=_ANSWER_TOKENS)


def _messages(desk: StageContext[Store], drawing: Drawing, basis: Basis) -> Sequence[Message]:
    drawn = fold_groups(drawing.canvas, drawing.groups)
    shown = drawn.nodes[-basis.shown :]
    named = _named(desk, drawing.canvas)
    return prompt(
        "canvas",
        task=_words(drawing.canvas.task_goal),
        status=drawing.canvas.status,
        said="\n".join(_said(desk, basis.canvas)) or "Nothing that is known.",
        left_out=f"{len(drawn.nodes) - len(shown)} older ones are left out." if len(shown) < len(drawn.nodes) else "",
        steps="\n".join(_step(node, drawing, named) for node in shown),
        edges="\n".join(_edges(drawn, shown)),
    )


def _named(desk: StageContext[Store], canvas: Canvas) -> set[str]:
    """Return the nodes whose titles somebody gave, by what their first step did, or may have given."""
    first = dict[str, Move | None]()
    for each in desk.store.canvas_history(desk.space, canvas.number):
        if isinstance(each, TakenStep):
            first.setdefault(each.record.node_id, loads(each.move) if each.move else None)
    moves = ((node.id, first.get(node.id)) for node in canvas.nodes)
    return {id_ for id_, move in moves if move is None or not move.routine}


def _step(node: Node, drawing: Drawing, named: set[str]) -> str:
    holds = ""
    if node.id in drawing.groups:
        holds = f" (a group: {', '.join(members(drawing.groups, node.id))})"
    mark = " (named by the agent)" if node.id in named else ""
    return f"{node.id} [{node.status}] {_words(node.title)}{mark}{holds}: {_words(node.summary)}"


def _edges(drawn: Canvas, shown: Sequence[Node]) -> Iterator[str]:
    """Yield how a step is come to, where that is not just by the one above it."""
    above = drawn.nodes[-len(shown) - 1].id if len(shown) < len(drawn.nodes) else ""
    for node in shown:
        into = [(edge.source, edge.label) for edge in drawn.edges if edge.target == node.id]
        if into != ([(above, "")] if above else []):
            sources = [f"{source} ({_words(label)})" if label else source for source, label in into]
            yield f"{node.id} follows {', '.join(sources) or 'nothing'}"
        above = node.id


def _said(desk: StageContext[Store], number: int) -> Iterator[str]:
    """Yield the last words of the session, where it is still at this task."""
    row = desk.store.canvas(desk.space, number)
    active = desk.store.active_canvas(desk.space, row.session)
    if active is None or active.number != number:
        return
    for turn in desk.store.last_turns(desk.space, row.session, limit=4, roles=("user", "assistant")):
        yield f"{turn.role}: {_words(mask(one_line(turn.content, 300)))}"


def _words(text: str) -> str:
    return fenced(text, "task", "said", "steps", "edges")


# --- what is kept -----------------------------------------------------------------------------------


def apply(desk: StageContext[Store], work: Work, basis: Basis, reply: Reply | None) -> Applied:
    """Store what holds as one patch. InvalidInput where something was asked for and nothing of it holds."""
    found = Checked(patch=Patch(), kept=[], refused=[])

    def store() -> None:
        nonlocal found
        row = desk.store.canvas(desk.space, basis.canvas)
        drawing = _drawing(desk, basis.canvas) if reply else None
        edits: list[CanvasEdit] = []
        if reply and drawing:
            found = _found(desk, basis, drawing, reply)
            if found.patch != Patch():
                edits.append(patched(found.patch, desk.now, work=work.id))
            if _is_over(desk, drawing, reply):
                edits.append(replace(completed(desk.now), work=work.id))
                found.kept.append(f"the task is over: {one_line(reply.finished, 120)}")
            if found.refused and not found.kept:
                raise InvalidInput(f"Nothing of it can be done. {' '.join(found.refused)}")
        desk.store.commit_canvas(
            desk.space,
            work.id,
            canvas=with_edits(row, drawing, edits) if drawing and edits else None,
            expected=row.version,
            edits=edits,
            outcome=_outcome(found),
            now=desk.now,
        )

    commit(desk, work, store)
    return Applied(outcome=_outcome(found), kept=found.kept, refused=found.refused)


def _found(desk: StageContext[Store], basis: Basis, drawing: Drawing, reply: Reply) -> Checked:
    shown = _messages(desk, drawing, basis)[-1].text
    has_goal = not drawing.canvas.task_goal.startswith(_NO_GOAL)
    named = _named(desk, drawing.canvas)
    last = latest(drawing.canvas)
    if last and last.status == "doing":
        named.add(last.id)  # the next call may go on with it, by its title
    return checked(reply, drawing, shown=shown, named=named, has_goal=has_goal)


def _is_over(desk: StageContext[Store], drawing: Drawing, reply: Reply) -> bool:
    """A step that is taken later opens the task again, so that a wrong word here does no harm."""
    quiet = desk.now - drawing.canvas.updated >= QUIET
    return bool(reply.finished.strip()) and quiet and drawing.canvas.status != "done"


def _outcome(found: Checked) -> dict[str, int]:
    return {"kept": len(found.kept), "refused": len(found.refused), "groups": len(found.patch.groups)}


CANVAS = StageDefinition(name="canvas", basis=Basis, reply=Reply, plan=plan, question=question, apply=apply)
