"""Canvas stage: a model groups the steps of a long canvas, names them and says when a task is over.

Due after a task has gained many steps since its last review, or is done. The valid parts of a reply become one patch
with the job that produced it, checked as any other, and can be rolled back. A model never redraws a canvas.

Each proposal is checked against the canvas after the ones before it; one that does not fit is refused with its reason,
the others apply. Beside the rules of `edits.Patch`: words name nothing that was not in the question; a step that
somebody named keeps its name, because it continues by that name; a group is a connected stretch, so that no path leaves
it and comes back; labels need an existing edge; a task that somebody named keeps its goal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Group
from mcp_memory.models.llm import ChatMessage
from mcp_memory.models.metered import Applied, ModelQuestion, StageContext, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.shortterm.canvas.flowchart import Canvas, Node
from mcp_memory.shortterm.canvas.folding import fold_groups, members, outermost
from mcp_memory.shortterm.canvas.placement import StepNote, latest
from mcp_memory.shortterm.canvas.state import (
    CanvasState,
    EdgeLabel,
    NewGroup,
    Patch,
    apply_patch,
    complete,
    row_of,
    state_of,
)
from mcp_memory.shortterm.replies import commit, invented
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import CanvasChange, CanvasGrowth, CanvasPatch, Work


def _text(value: Any) -> Any:
    return "" if value is None else value


def _list(value: Any) -> Any:
    return [] if value is None else value


Text = Annotated[str, BeforeValidator(_text)]


class ProposedGroup(BaseModel):
    title: Text = Field(description="What these steps were for, in a few words")
    nodes: Annotated[list[str], BeforeValidator(_list)] = Field(
        description="Ids of steps, and of groups, that follow each other"
    )
    summary: Text = Field("", description="What came of them, at most 120 characters")


class ProposedTitle(BaseModel):
    id: str
    title: Text = Field(description="What the step was for, at most 60 characters")


class ProposedLabel(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    from_: str = Field(alias="from")
    to: str
    label: Text = Field(description="Why the way went on here, one to five words")


class CanvasReply(BaseModel):
    """How the canvas should read. Lists may be empty."""

    groups: Annotated[list[ProposedGroup], BeforeValidator(_list)] = Field(default_factory=list[ProposedGroup])
    titles: Annotated[list[ProposedTitle], BeforeValidator(_list)] = Field(default_factory=list[ProposedTitle])
    edges: Annotated[list[ProposedLabel], BeforeValidator(_list)] = Field(default_factory=list[ProposedLabel])
    ungroup: Annotated[list[str], BeforeValidator(_list)] = Field(
        default_factory=list[str], description="Groups that should be steps again"
    )
    goal: Text = Field("", description="What is being done, where <task> does not say it; otherwise empty")
    finished: Text = Field("", description="Why the task is surely over; otherwise empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedReply:
    """`patch` can be applied to the state that it was checked against."""

    patch: Patch
    kept: list[str]
    refused: list[str]


def checked(
    reply: CanvasReply, state: CanvasState, *, shown: str, named: Collection[str], has_goal: bool
) -> CheckedReply:
    """Return what of the reply holds. `named`: nodes that somebody gave their titles; `shown`: all that was asked."""
    kept, refused = list[str](), list[str]()
    whole = Patch()
    for piece in _pieces(reply):
        fault = _fault(piece, state, shown=shown, named=named, has_goal=has_goal)
        if fault is None:
            try:
                state = apply_patch(state, piece.patch)
            except InvalidInput as error:
                fault = str(error).removeprefix("Nothing was changed. ")
        if fault is None:
            whole = _joined(whole, piece.patch)
            kept.append(piece.told)
        else:
            refused.append(f"{piece.told}: {fault}")
    return CheckedReply(patch=whole, kept=kept, refused=refused)


@dataclass(frozen=True, slots=True)
class _Proposal:
    """One wish: in words, as a patch, and the words that it brings."""

    told: str
    patch: Patch
    words: str


def _pieces(reply: CanvasReply) -> Iterator[_Proposal]:
    """In the order in which a patch does them."""
    if goal := _clean(reply.goal):
        yield _Proposal(f"goal {goal!r}", Patch(goal=goal), goal)
    for id_ in reply.ungroup:
        yield _Proposal(f"ungroup {id_}", Patch(ungroup=(id_.strip(),)), "")
    for group in reply.groups:
        title, summary = _clean(group.title), _clean(group.summary)
        new = NewGroup(title=title, nodes=tuple(each.strip() for each in group.nodes), summary=summary)
        yield _Proposal(f"group {title!r} of {', '.join(new.nodes)}", Patch(groups=(new,)), f"{title} {summary}")
    for each in reply.titles:
        if title := _clean(each.title):
            yield _Proposal(f"{each.id} is {title!r}", Patch(titles={each.id.strip(): title}), title)
    for edge in reply.edges:
        if label := _clean(edge.label):
            patch = Patch(edges=(EdgeLabel(source=edge.from_.strip(), target=edge.to.strip(), label=label),))
            yield _Proposal(f"{edge.from_} to {edge.to} {label!r}", patch, label)


def _clean(text: str) -> str:
    return mask(" ".join(text.split()))


def _joined(one: Patch, other: Patch) -> Patch:
    return Patch(
        goal=other.goal or one.goal,
        ungroup=(*one.ungroup, *other.ungroup),
        groups=(*one.groups, *other.groups),
        titles={**one.titles, **other.titles},
        edges=(*one.edges, *other.edges),
    )


# --- what does not hold -----------------------------------------------------------------------------


def _fault(piece: _Proposal, state: CanvasState, *, shown: str, named: Collection[str], has_goal: bool) -> str | None:
    patch = piece.patch
    if strange := invented(piece.words, shown):
        return f"{', '.join(strange[:3])} stands nowhere in the question."
    if patch.goal and has_goal:
        return "the task has its goal from whoever asked for it."
    if kept := [id_ for id_ in patch.titles if id_ in named]:
        return f"{kept[0]} keeps its name, by which the agent goes on with it."
    joined = {(edge.source, edge.target) for edge in state.canvas.edges}
    if any((edge.source, edge.target) not in joined for edge in patch.edges):
        return "no edge joins them."
    return next((fault for new in patch.groups if (fault := _detour(state, new))), None)


def _detour(state: CanvasState, new: NewGroup) -> str | None:
    """Return the fault of a group that is not a connected stretch: a path leaves it and comes back."""
    try:
        inside = outermost(state.canvas, state.groups, new.nodes)
    except InvalidInput:
        return None  # the patch says so itself
    groups: Mapping[str, Group] = {**state.groups, "new": Group(inside)}
    # With the group folded, whoever leaves it and comes back goes round in a circle.
    held = {node for id_ in inside for node in members(state.groups, id_)}
    drawn = fold_groups(state.canvas, groups)
    after = _reached(drawn, "new", lambda edge: (edge[0], edge[1]))
    before = _reached(drawn, "new", lambda edge: (edge[1], edge[0]))
    between = [node.id for node in drawn.nodes if node.id in after & before and node.id not in held]
    return (
        f"{', '.join(between[:3])} stands between its steps: take it in, or end the group before." if between else None
    )


def _reached(canvas: Canvas, start: str, way: Callable[[tuple[str, str]], tuple[str, str]]) -> set[str]:
    """Return what can be reached from a node, itself left out."""
    follow: dict[str, list[str]] = {}
    for edge in canvas.edges:
        source, target = way((edge.source, edge.target))
        follow.setdefault(source, []).append(target)
    found, left = set[str](), [start]
    while left:
        for each in follow.get(left.pop(), []):
            if each not in found and each != start:
                found.add(each)
                left.append(each)
    return found


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


class CanvasBasis(BaseModel):
    """A canvas, its steps up to record number `upto`; at most `shown` nodes and groups of it, the newest."""

    canvas: int
    upto: int
    shown: int


def grown(store: Store, space: str, now: datetime, *, eager: bool = False) -> list[CanvasGrowth]:
    """Return the canvases that are worth another look, the one that grew most first."""
    found = store.canvas_growth(space, since=now - FRESH)
    return [each for each in found if each.steps >= (GROWN if each.status == "doing" and not eager else FEW)]


def plan(context: StageContext[Store], *, session: str | None, smaller: int) -> CanvasBasis | None:
    """Return the canvas that grew most, of those with enough on them to be put in order."""
    store, space, now = context.store, context.space, context.now
    for each in grown(store, space, now) or grown(store, space, now, eager=True):
        state = _drawing(context, each.canvas)
        if state is not None and len(fold_groups(state.canvas, state.groups).nodes) >= NODES:
            return CanvasBasis(canvas=each.canvas, upto=each.upto, shown=max(NODES, _SHOWN >> smaller))
    return None


def _drawing(context: StageContext[Store], number: int) -> CanvasState | None:
    try:
        return state_of(context.store.canvas(context.space, number))
    except (Damaged, NotFound):
        return None  # `doctor` tells of it


# --- the question ----------------------------------------------------------------------------------


def question(context: StageContext[Store], basis: CanvasBasis) -> ModelQuestion[CanvasReply] | None:
    """Put the canvas as it stands into words; None where it is gone or torn."""
    state = _drawing(context, basis.canvas)
    if state is None:
        return None
    return ModelQuestion(
        purpose="canvas", messages=_messages(context, state, basis), reply=CanvasReply, max_tokens=_ANSWER_TOKENS
    )


def _messages(context: StageContext[Store], state: CanvasState, basis: CanvasBasis) -> Sequence[ChatMessage]:
    drawn = fold_groups(state.canvas, state.groups)
    shown = drawn.nodes[-basis.shown :]
    named = _named(context, state.canvas)
    return prompt(
        "canvas",
        task=_words(state.canvas.task_goal),
        status=state.canvas.status,
        said="\n".join(_said(context, basis.canvas)) or "Nothing that is known.",
        left_out=f"{len(drawn.nodes) - len(shown)} older ones are left out." if len(shown) < len(drawn.nodes) else "",
        steps="\n".join(_step(node, state, named) for node in shown),
        edges="\n".join(_edges(drawn, shown)),
    )


def _named(context: StageContext[Store], canvas: Canvas) -> set[str]:
    """Return the nodes whose titles somebody gave, by what their first step did, or may have given."""
    first = dict[str, str | None]()
    for each in context.store.canvas_steps(context.space, canvas.number):
        first.setdefault(each.record.node_id, each.step)
    return {node.id for node in canvas.nodes if not StepNote.read(first.get(node.id)).routine}


def _step(node: Node, state: CanvasState, named: set[str]) -> str:
    holds = ""
    if node.id in state.groups:
        holds = f" (a group: {', '.join(members(state.groups, node.id))})"
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


def _said(context: StageContext[Store], number: int) -> Iterator[str]:
    """Yield the last words of the session, where it is still at this task."""
    row = context.store.canvas(context.space, number)
    active = context.store.active_canvas(context.space, row.session)
    if active is None or active.number != number:
        return
    for turn in context.store.last_turns(context.space, row.session, limit=4, roles=("user", "assistant")):
        yield f"{turn.role}: {_words(mask(one_line(turn.content, 300)))}"


def _words(text: str) -> str:
    return fenced(text, "task", "said", "steps", "edges")


# --- the answer -----------------------------------------------------------------------------------


def apply(context: StageContext[Store], work: Work, basis: CanvasBasis, reply: CanvasReply | None) -> Applied:
    """Store the valid parts as one patch. Raises InvalidInput if there are proposals and none is valid."""
    found = CheckedReply(patch=Patch(), kept=[], refused=[])

    def store() -> None:
        nonlocal found
        row = context.store.canvas(context.space, basis.canvas)
        state = _drawing(context, basis.canvas) if reply else None
        changes: list[CanvasChange] = []
        if reply and state:
            found = _found(context, basis, state, reply)
            over = _is_over(context, state, reply)
            if found.patch != Patch():
                state = apply_patch(state, found.patch)
                changes.append(CanvasChange(row=row_of(state, row), kind="patched"))
            if over:
                state = complete(state, context.now)
                changes.append(CanvasChange(row=row_of(state, row), kind="completed"))
                found.kept.append(f"the task is over: {one_line(reply.finished, 120)}")
            if found.refused and not found.kept:
                raise InvalidInput(f"Nothing of it can be done. {' '.join(found.refused)}")
        context.store.commit(
            context.space, work.id, CanvasPatch(changes=changes), outcome=_outcome(found), now=context.now
        )

    commit(context, work, store)
    return Applied(outcome=_outcome(found), kept=found.kept, refused=found.refused)


def _found(context: StageContext[Store], basis: CanvasBasis, state: CanvasState, reply: CanvasReply) -> CheckedReply:
    shown = _messages(context, state, basis)[-1].text
    has_goal = not state.canvas.task_goal.startswith(_NO_GOAL)
    named = _named(context, state.canvas)
    last = latest(state.canvas)
    if last and last.status == "doing":
        named.add(last.id)  # the next call may go on with it, by its title
    return checked(reply, state, shown=shown, named=named, has_goal=has_goal)


def _is_over(context: StageContext[Store], state: CanvasState, reply: CanvasReply) -> bool:
    """A step that is taken later opens the task again, so that a wrong word here does no harm."""
    quiet = context.now - state.canvas.updated >= QUIET
    return bool(reply.finished.strip()) and quiet and state.canvas.status != "done"


def _outcome(found: CheckedReply) -> dict[str, int]:
    return {"kept": len(found.kept), "refused": len(found.refused), "groups": len(found.patch.groups)}


CANVAS = StageDefinition(name="canvas", basis=CanvasBasis, reply=CanvasReply, plan=plan, question=question, apply=apply)
