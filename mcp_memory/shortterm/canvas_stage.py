"""Canvas stage: a model groups the steps of a long canvas, titles them and says when a task is over.

A canvas is due when it has gained many steps since its last review, or fewer if its task is done or left. The valid
parts of a reply become one patch with the job that produced it, validated like any other patch, and can be undone. A
model never redraws a canvas.

Each proposal is checked against the canvas after the preceding proposals. An invalid proposal is refused with a reason;
the remaining proposals apply. In addition to the rules of `state.Patch`: texts have no numbers, paths or names of code
that were not in the question; a step titled by a person or an agent keeps its title, by which the agent continues it;
no path leaves a group and returns to it; labels need an existing edge; a task named by a person or an agent keeps its
goal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
from mcp_memory.shortterm.replies import Text, commit, invented
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, record_rows, stage_outputs, turn_rows
from mcp_memory.store.values import CanvasChange, CanvasGrowth, CanvasPatch, Work


def _list(value: Any) -> Any:
    return [] if value is None else value


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
    """The valid part of a reply as a patch, and descriptions of the valid and the refused proposals."""

    patch: Patch
    kept: list[str]
    refused: list[str]


def check_reply(
    reply: CanvasReply, state: CanvasState, *, question: str, titled: Collection[str], has_goal: bool
) -> CheckedReply:
    """Check each proposal of a reply. `titled` are the ids of nodes whose title a person or an agent gave."""
    kept, refused = list[str](), list[str]()
    whole = Patch()
    for proposal in _proposals(reply):
        fault = _fault(proposal, state, question=question, titled=titled, has_goal=has_goal)
        if fault is None:
            try:
                state = apply_patch(state, proposal.patch)
            except InvalidInput as error:
                fault = str(error).removeprefix("Nothing was changed. ")
        if fault is None:
            whole = _join(whole, proposal.patch)
            kept.append(proposal.description)
        else:
            refused.append(f"{proposal.description}: {fault}")
    return CheckedReply(patch=whole, kept=kept, refused=refused)


@dataclass(frozen=True, slots=True)
class _Proposal:
    """One proposed change. `words` are its new texts."""

    description: str
    patch: Patch
    words: str


def _proposals(reply: CanvasReply) -> Iterator[_Proposal]:
    """Yield the proposals in the order in which a patch is applied."""
    if goal := _clean(reply.goal):
        yield _Proposal(f"goal {goal!r}", Patch(goal=goal), goal)
    for id_ in reply.ungroup:
        yield _Proposal(f"ungroup {id_}", Patch(ungroup=(id_.strip(),)), "")
    for group in reply.groups:
        title, summary = _clean(group.title), _clean(group.summary)
        new = NewGroup(title=title, nodes=tuple(id_.strip() for id_ in group.nodes), summary=summary)
        yield _Proposal(f"group {title!r} of {', '.join(new.nodes)}", Patch(groups=(new,)), f"{title} {summary}")
    for step in reply.titles:
        if title := _clean(step.title):
            yield _Proposal(f"{step.id} is {title!r}", Patch(titles={step.id.strip(): title}), title)
    for edge in reply.edges:
        if label := _clean(edge.label):
            patch = Patch(edges=(EdgeLabel(source=edge.from_.strip(), target=edge.to.strip(), label=label),))
            yield _Proposal(f"{edge.from_} to {edge.to} {label!r}", patch, label)


def _clean(text: str) -> str:
    return mask(" ".join(text.split()))


def _join(first: Patch, second: Patch) -> Patch:
    return Patch(
        goal=second.goal or first.goal,
        ungroup=(*first.ungroup, *second.ungroup),
        groups=(*first.groups, *second.groups),
        titles={**first.titles, **second.titles},
        edges=(*first.edges, *second.edges),
    )


# --- faults of proposals ----------------------------------------------------------------------------


def _fault(
    proposal: _Proposal, state: CanvasState, *, question: str, titled: Collection[str], has_goal: bool
) -> str | None:
    patch = proposal.patch
    if strange := invented(proposal.words, question):
        return f"{', '.join(strange[:3])} is nowhere in the question."
    if patch.goal and has_goal:
        return "the task already has a goal, given by whoever started it."
    if kept := [id_ for id_ in patch.titles if id_ in titled]:
        return f"{kept[0]} keeps its title, by which the agent continues it."
    edges = {(edge.source, edge.target) for edge in state.canvas.edges}
    if any((edge.source, edge.target) not in edges for edge in patch.edges):
        return "no edge joins them."
    return next((fault for new in patch.groups if (fault := _detour(state, new))), None)


def _detour(state: CanvasState, new: NewGroup) -> str | None:
    """Return the fault of a group if a path leaves it and returns."""
    try:
        children = outermost(state.canvas, state.groups, new.nodes)
    except InvalidInput:
        return None  # the patch reports it
    groups: Mapping[str, Group] = {**state.groups, "new": Group(children)}
    # In the canvas with the group folded, such a path is a cycle.
    folded = fold_groups(state.canvas, groups)
    edges = [(edge.source, edge.target) for edge in folded.edges]
    after = _reachable(edges, "new")
    before = _reachable([(target, source) for source, target in edges], "new")
    between = [node.id for node in folded.nodes if node.id in after & before]
    if not between:
        return None
    return f"{', '.join(between[:3])} is between its steps: include it, or end the group before it."


def _reachable(edges: Sequence[tuple[str, str]], start: str) -> set[str]:
    """Return the nodes that can be reached from a node, without the node itself."""
    targets: dict[str, list[str]] = {}
    for source, target in edges:
        targets.setdefault(source, []).append(target)
    reached, pending = set[str](), [start]
    while pending:
        for target in targets.get(pending.pop(), []):
            if target not in reached and target != start:
                reached.add(target)
                pending.append(target)
    return reached


FRESH = timedelta(days=3)
GROWN, FEW = 25, 10
"""Steps since the last review that make a canvas due: `GROWN`, or `FEW` for a task that is done or left."""
NODES = 8
"""A canvas with fewer nodes needs no groups."""
QUIET = timedelta(minutes=10)
"""How long a task must be idle before a model may declare it over."""

_SHOWN = 80
_ANSWER_TOKENS = 3_000
_NO_GOAL = "Work with "


class CanvasBasis(BaseModel):
    """The number of a canvas, its last record number (`upto`), and how many of its newest nodes and groups to show."""

    canvas: int
    upto: int
    shown: int


def due_canvases(store: Store, space: str, now: datetime, *, eager: bool = False) -> list[CanvasGrowth]:
    """Return the canvases due for a review, most new steps first; with `eager`, `FEW` steps suffice for every task."""
    growth = store.read(space, canvas_rows.growth, since=now - FRESH)
    return [canvas for canvas in growth if canvas.steps >= (GROWN if canvas.status == "doing" and not eager else FEW)]


def plan(context: StageContext[Store], *, session: str | None, smaller: int) -> CanvasBasis | None:
    """Choose the first due canvas that has at least `NODES` nodes; None if there is none.

    If no canvas is due, the canvases due with `eager` are the candidates. `smaller` is the number of failed attempts,
    each of which halves the number of nodes to show.
    """
    store, space, now = context.store, context.space, context.now
    for due in due_canvases(store, space, now) or due_canvases(store, space, now, eager=True):
        state = _state(context, due.canvas)
        if state is not None and len(fold_groups(state.canvas, state.groups).nodes) >= NODES:
            return CanvasBasis(canvas=due.canvas, upto=due.upto, shown=max(NODES, _SHOWN >> smaller))
    return None


def _state(context: StageContext[Store], number: int) -> CanvasState | None:
    try:
        return state_of(context.store.read(context.space, canvas_rows.canvas, number))
    except (Damaged, NotFound):
        return None  # `doctor` reports it


# --- the question ----------------------------------------------------------------------------------


def question(context: StageContext[Store], basis: CanvasBasis) -> ModelQuestion[CanvasReply] | None:
    """Describe the canvas for the model; None if it is missing or damaged."""
    state = _state(context, basis.canvas)
    if state is None:
        return None
    return ModelQuestion(
        purpose="canvas", messages=_messages(context, state, basis), reply=CanvasReply, max_tokens=_ANSWER_TOKENS
    )


def _messages(context: StageContext[Store], state: CanvasState, basis: CanvasBasis) -> Sequence[ChatMessage]:
    folded = fold_groups(state.canvas, state.groups)
    shown = folded.nodes[-basis.shown :]
    titled = _titled_nodes(context, state.canvas)
    omitted = len(folded.nodes) - len(shown)
    return prompt(
        "canvas",
        task=_fence(state.canvas.task_goal),
        status=state.canvas.status,
        said="\n".join(_last_messages(context, basis.canvas)) or "Nothing that is known.",
        left_out=f"{omitted} older ones are left out." if omitted else "",
        steps="\n".join(_step_line(node, state, titled) for node in shown),
        edges="\n".join(_edge_lines(folded, shown)),
    )


def _titled_nodes(context: StageContext[Store], canvas: Canvas) -> set[str]:
    """Return the ids of nodes whose title a person or an agent gave or may have given, judged by their first step."""
    first = dict[str, str | None]()
    for step in context.store.read(context.space, record_rows.canvas_steps, canvas.number):
        first.setdefault(step.record.node_id, step.step)
    return {node.id for node in canvas.nodes if not StepNote.read(first.get(node.id)).routine}


def _step_line(node: Node, state: CanvasState, titled: set[str]) -> str:
    content = ""
    if node.id in state.groups:
        content = f" (a group: {', '.join(members(state.groups, node.id))})"
    mark = " (named by the agent)" if node.id in titled else ""
    return f"{node.id} [{node.status}] {_fence(node.title)}{mark}{content}: {_fence(node.summary)}"


def _edge_lines(folded: Canvas, shown: Sequence[Node]) -> Iterator[str]:
    """Yield a line for each shown step that does not simply follow the step above it: the steps that it follows."""
    above = folded.nodes[-len(shown) - 1].id if len(shown) < len(folded.nodes) else ""
    for node in shown:
        into = [(edge.source, edge.label) for edge in folded.edges if edge.target == node.id]
        if into != ([(above, "")] if above else []):
            sources = [f"{source} ({_fence(label)})" if label else source for source, label in into]
            yield f"{node.id} follows {', '.join(sources) or 'nothing'}"
        above = node.id


def _last_messages(context: StageContext[Store], number: int) -> Iterator[str]:
    """Yield the last messages of a canvas's session, if its task is still active in that session."""
    row = context.store.read(context.space, canvas_rows.canvas, number)
    active = context.store.read(context.space, canvas_rows.active_canvas, row.session)
    if active is None or active.number != number:
        return
    for turn in context.store.read(
        context.space, turn_rows.last_turns, row.session, limit=4, roles=("user", "assistant")
    ):
        yield f"{turn.role}: {_fence(mask(one_line(turn.content, 300)))}"


def _fence(text: str) -> str:
    return fenced(text, "task", "said", "steps", "edges")


# --- the answer -----------------------------------------------------------------------------------


def apply(context: StageContext[Store], work: Work, basis: CanvasBasis, reply: CanvasReply | None) -> Applied:
    """Store the valid parts as one patch, complete an idle task if the reply declares it over, and close the job.

    Raises InvalidInput if all proposals are refused, Conflict if the job is no longer open.
    """
    result = CheckedReply(patch=Patch(), kept=[], refused=[])

    def outcome() -> dict[str, int]:
        return {"kept": len(result.kept), "refused": len(result.refused), "groups": len(result.patch.groups)}

    def store() -> None:
        nonlocal result
        row = context.store.read(context.space, canvas_rows.canvas, basis.canvas)
        state = _state(context, basis.canvas) if reply else None
        changes: list[CanvasChange] = []
        if reply and state:
            result = _check(context, basis, state, reply)
            # A later step reopens the task, so a wrong verdict does no harm.
            is_quiet = context.now - state.canvas.updated >= QUIET
            is_over = reply.finished.strip() and is_quiet and state.canvas.status != "done"
            if result.patch != Patch():
                state = apply_patch(state, result.patch)
                changes.append(CanvasChange(row=row_of(state, row), kind="patched"))
            if is_over:
                state = complete(state, context.now)
                changes.append(CanvasChange(row=row_of(state, row), kind="completed"))
                result.kept.append(f"the task is over: {one_line(reply.finished, 120)}")
            if result.refused and not result.kept:
                raise InvalidInput(f"Nothing of it can be done. {' '.join(result.refused)}")
        context.store.write(
            context.space,
            stage_outputs.commit,
            work.id,
            CanvasPatch(changes=changes),
            outcome=outcome(),
            now=context.now,
        )

    commit(context, work, store)
    return Applied(outcome=outcome(), kept=result.kept, refused=result.refused)


def _check(context: StageContext[Store], basis: CanvasBasis, state: CanvasState, reply: CanvasReply) -> CheckedReply:
    titled = _titled_nodes(context, state.canvas)
    last = latest(state.canvas)
    if last and last.status == "doing":
        titled.add(last.id)  # the next call may continue it by its title
    question = _messages(context, state, basis)[-1].text
    has_goal = not state.canvas.task_goal.startswith(_NO_GOAL)
    return check_reply(reply, state, question=question, titled=titled, has_goal=has_goal)


CANVAS = StageDefinition(name="canvas", basis=CanvasBasis, reply=CanvasReply, plan=plan, question=question, apply=apply)
