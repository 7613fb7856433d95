"""Tasks: their list, a task's canvas as picture and outline with its versions, and a step with its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.text import one_line, plural, remove_hidden
from mcp_memory.core.types import CanvasRow, Record, StepStatus, Why
from mcp_memory.shortterm.canvas.flowchart import Canvas, Node, padded, parse, read
from mcp_memory.shortterm.canvas.folding import Groups, composite, fold_groups, nodes_of, top_level
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pictures.canvas import STATUS_NAMES, drawing, picture

if TYPE_CHECKING:
    from mcp_memory.store.values import CanvasVersion


_LISTED = 100
_RESTS = timedelta(days=1)
"""Time without a new step after which a task is called open, not doing."""
_RECORDS = 1_000
_VERSIONS = 40
_STEPS = 60
_SUMMARY = 160
"""Characters of a step's result in an outline; its page has all of them."""
WIDEST_BESIDE = 560
"""Width in pixels from which a picture has its outline below it, not beside it."""
_ABOUT_FOLDING = "Tick two steps or more: the agent and the picture then see them as one. Nothing is lost."
_CHANGES = {
    "summaries": "summaries improved",
    "patched": "patched: words, groups or edges",
    "undone": "patch undone",
    "folded": "folded",
    "unfolded": "unfolded",
    "completed": "completed",
    "forgotten": "results forgotten",
    "restored": "forgetting undone",
    "edited": "edited",
    "imported": "imported",
}
"""What made a version of a canvas, by its kind; a step is described by the number of results."""
_STATUS_BADGES: Mapping[StepStatus, str] = {"done": "ok", "doing": "", "paused": "warn", "blocked": "bad"}


def status_badge(status: StepStatus) -> Element:
    return ui.badge(STATUS_NAMES[status], _STATUS_BADGES[status])


# --- the list ---------------------------------------------------------------------------------------


async def tasks(view: View) -> Page:
    """List the tasks, the most recent first, at most `_LISTED`."""
    rows = await view.memory.canvases(limit=_LISTED)
    active = await view.memory.active_canvas()
    now = view.memory.now()
    listed = ui.rows(_task(row, now, is_active=active is not None and row.number == active.number) for row in rows)
    more = ui.note(f"The {_LISTED} tasks worked on last.") if len(rows) == _LISTED else None
    body = (listed, more) if rows else (ui.empty("No task yet. The first tool result that is offloaded begins one."),)
    return Page(title="Tasks", here="tasks", body=tuple(filter(None, body)))


def _rests(row: CanvasRow, now: datetime) -> bool:
    """Return whether a task is not done, and nothing was done for it for a while."""
    return row.status == "doing" and now - row.updated > _RESTS


def _task_badge(row: CanvasRow, now: datetime) -> Element:
    return ui.badge("open") if _rests(row, now) else status_badge(row.status)


def _task(row: CanvasRow, now: datetime, *, is_active: bool) -> Element:
    rests = _rests(row, now)
    number, summary = padded(row.number), _summary(row.text)
    goal, steps, dead = summary or (row.label, 0, 0)
    return el(
        "div",
        el("p", ui.link(f"/{number}", ui.memory_text(goal or row.label)), class_="said"),
        ui.line(
            _task_badge(row, now),
            ui.badge("active", "kind") if is_active and not rests else None,
            el("span", plural(steps, "step")) if summary else ui.badge("cannot be read", "bad"),
            el("span", plural(dead, "dead end")) if dead else None,
            el("span", "last worked on ", ui.moment(row.updated)) if rests else ui.moment(row.updated),
            el("span", number, class_="id"),
        ),
    )


@lru_cache(maxsize=2 * _LISTED)
def _summary(text: str) -> tuple[str, int, int] | None:
    """Return the goal of a canvas, its steps and its dead ends; None if the text is damaged."""
    try:
        canvas = parse(text)
    except InvalidInput:
        return None
    return canvas.task_goal, len(canvas.nodes), sum(node.status == "blocked" for node in canvas.nodes)


# --- one task ---------------------------------------------------------------------------------------


async def canvas(view: View) -> Page:
    """Show a task: the picture, the outline with the result of each step, the folding, and the versions."""
    row = await view.memory.canvas(int(view.parts["number"]))
    number = padded(row.number)
    versions = await view.memory.canvas_versions(row.number)
    records = await view.memory.records(node=number, limit=_RECORDS)
    try:
        parsed = read(row)
    except Damaged as error:
        torn = ui.note(str(error), kind="bad")
        results = ui.section("Results", ui.rows(map(record_row, records[-_LISTED:]))) if records else None
        return Page(title=f"{number} {row.label}", here="tasks", body=tuple(filter(None, (torn, results))))
    folded, drawn = drawing(parsed, row.groups)
    shown = _picture(parsed, row.groups) if parsed.nodes else ui.empty("No step yet.")
    outline = _outline(view, row, parsed, folded.nodes, records)
    return Page(
        title=remove_hidden(parsed.task_goal) or row.label,
        here="tasks",
        body=ui.body(
            _head(view, row, parsed, (await view.memory.titles([row.session])).get(row.session)),
            *((ui.wide_columns([shown], [outline]),) if shown and drawn.width <= WIDEST_BESIDE else (shown, outline)),
            ui.columns(_state(view, row, parsed), _history(view, row.number, versions)),
        ),
    )


def _picture(canvas: Canvas, groups: Groups, selected: str | None = None) -> Element | None:
    """Return the picture of a canvas, None if it would have a single box."""
    if len(fold_groups(canvas, groups).nodes) < 2:
        return None
    return ui.section("Picture", picture(canvas, groups, selected=selected))


def _head(view: View, row: CanvasRow, canvas: Canvas, title: str | None) -> Element:
    counts = Counter(node.status for node in canvas.nodes)
    return ui.line(
        _task_badge(row, view.memory.now()),
        el("span", plural(len(canvas.nodes), "step")),
        el("span", plural(counts["blocked"], "dead end")) if counts["blocked"] else None,
        ui.time_span(canvas.created, row.updated),
        ui.session_link(row.session, title or row.session),
        el("span", f"{padded(row.number)}-{row.label}", class_="id"),
    )


def _outline(view: View, row: CanvasRow, canvas: Canvas, shown: Sequence[Node], records: Sequence[Record]) -> Element:
    """Return the boxes of the picture as a list, the newest last, with checkboxes to fold some into a group."""
    refs: dict[str, dict[str, None]] = {}
    for record in records:
        refs.setdefault(record.node_id, {}).setdefault(record.ref)
    name = f"fold-{padded(row.number)}"
    button = el("button", "Fold the chosen steps", title=_ABOUT_FOLDING)
    hint = el("small", _ABOUT_FOLDING)
    fold = ui.form(view, "fold", button, " ", hint, needs="write", id_=name, number=row.number, action="fold")
    lines = (
        _step(node, refs.get(node.id, ()), tick=_tick(node, name) if fold and _is_foldable(row, node) else None,
              unfold=_unfold(view, row, node))
        for node in shown
    )  # fmt: skip
    return ui.section("Outline", ui.rows(lines, ordered=True), fold if len(canvas.nodes) > 1 else None)


def _is_foldable(row: CanvasRow, node: Node) -> bool:
    """Return True for steps and for groups that were made by folding, not for stacks that exist only in the picture."""
    return "-F" not in node.id or node.id in row.groups


def _tick(node: Node, name: str) -> Element:
    return el("input", type="checkbox", name="nodes", value=node.id, form=name,
              aria_label=f"Choose {node.id}")  # fmt: skip


def _unfold(view: View, row: CanvasRow, node: Node) -> Element | None:
    if node.id not in row.groups:
        return None
    return ui.action(view, "fold", "Unfold", needs="write", number=row.number, nodes=node.id, action="unfold")


def _step(node: Node, refs: Iterable[str], *, tick: Element | None = None, unfold: Element | None = None) -> Element:
    return el(
        "div",
        el("p", tick, ui.link(f"/{node.id}", ui.memory_text(node.title)), class_="said"),
        el("p", ui.memory_text(one_line(node.summary, _SUMMARY))) if node.summary else None,
        ui.line(
            status_badge(node.status),
            ui.moment(node.timestamp),
            (
                ui.link(f"/{ref}", "Open the output" if place == 1 else f"output {place}")
                for place, ref in enumerate(list(refs)[:3], 1)
            ),
            el("span", node.id, class_="id"),
            unfold,
        ),
    )


def _state(view: View, row: CanvasRow, canvas: Canvas) -> Element:
    """Return how the canvas is folded in a context, with buttons to change it."""
    number, is_done = row.number, row.status == "done" and all(node.status != "doing" for node in canvas.nodes)
    buttons = [
        ui.action(view, "fold", "Unfold all", needs="write", number=number, nodes="", action="unfold")
        if row.folded or row.groups
        else None,
        None
        if row.folded
        else ui.action(view, "fold", "Fold the whole task", needs="write", number=number, nodes="", action="fold"),
        None
        if is_done
        else ui.action(view, "fold", "Mark as done", needs="write", number=number, nodes="", action="complete"),
    ]
    state = (
        "Folded: the agent sees the goal, the status and the time only."
        if row.folded
        else f"Open, with {plural(len(row.groups), 'folded group')}."
        if row.groups
        else "Open: the agent sees every step."
    )
    folding = (
        "Folding makes the task shorter in the agent's context. "
        "Unfold all shows every step again; the results stay as they are."
    )
    change = [ui.line(buttons), el("p", el("small", folding))] if any(buttons) else None
    return ui.section("In the context of the agent", el("p", state), change)


def _history(view: View, number: int, versions: Sequence[CanvasVersion]) -> Element:
    """Return the versions, the newest first, with consecutive steps in a single line. The last patch can be undone."""
    undone = {version.detail for version in versions if version.kind == "undone"}
    last = next(
        (version for version in reversed(versions) if version.kind == "patched" and str(version.number) not in undone),
        None,
    )
    undo = ui.action(view, "undo_patch", "Undo this patch", number=number) if last and not last.is_erased else None
    lines = list(_runs(versions))[:_VERSIONS]
    listed = [
        el("div", el("span", called), " ", el("span", at, class_="id"), " ", undo if run[-1] is last else None)
        for run in lines
        for called, at in [_describe_run(run, undone)]
    ]
    return ui.section("Versions", ui.rows(listed) if listed else ui.empty("No version is kept."))


def _runs(versions: Sequence[CanvasVersion]) -> Iterator[list[CanvasVersion]]:
    """Yield consecutive versions of the same kind, the newest first; only steps and summaries are grouped."""
    run: list[CanvasVersion] = []
    for version in reversed(versions):
        if run and (version.kind != run[0].kind or version.kind not in ("step", "summaries")):
            yield run
            run = []
        run.insert(0, version)
    if run:
        yield run


def _describe_run(run: Sequence[CanvasVersion], undone: set[str]) -> tuple[str, str]:
    """Return the description of a run of versions, and the range of their numbers."""
    first, last = run[0], run[-1]
    text = _CHANGES.get(last.kind, last.kind)
    if last.kind == "step":
        text = "a result added" if len(run) == 1 else f"{len(run):,} results added"
    text += " (undone)" if str(last.number) in undone and last.kind == "patched" else ""
    text += " (erased)" if last.is_erased else ""
    text += " (by a model)" if last.work else ""
    return text, f"{first.number}–{last.number}" if first is not last else str(last.number)


# --- one step ---------------------------------------------------------------------------------------


async def node(view: View) -> Page:
    """Show a step with its results and its neighbours, or a group with its steps. Raises NotFound for an unknown id."""
    row = await view.memory.canvas(int(view.parts["number"]))
    id_ = f"{padded(row.number)}-{view.parts['node']}"
    canvas = read(row)
    inside = nodes_of(canvas, row.groups, id_)
    if not inside:
        raise NotFound(f"There is no step or group {id_} on canvas {padded(row.number)}.")
    steps = [member for member in canvas.nodes if member.id in inside]
    if "-F" in id_:
        return _group(view, row, canvas, id_, steps)
    (step,) = steps
    records = await view.memory.records(node=id_, limit=_STEPS + 1)
    why = await view.memory.why(id_) if records else None
    return Page(
        title=remove_hidden(step.title) or id_,
        here="tasks",
        body=ui.body(
            _of_task(row, canvas, id_),
            _about(step, row),
            ui.section("Results", *_results(records)),
            *_citing_statements(why),
            *_neighbours(canvas, id_),
            _picture(canvas, row.groups, selected=id_),
        ),
    )


def _results(records: Sequence[Record]) -> Iterator[Element]:
    yield ui.rows(map(record_row, records[:_STEPS])) if records else ui.empty("No tool result belongs to this step.")
    if len(records) > _STEPS:
        yield ui.note(f"The first {_STEPS} results.")


def _of_task(row: CanvasRow, canvas: Canvas, id_: str) -> Element:
    task = ui.link(f"/{padded(row.number)}", ui.memory_text(canvas.task_goal or row.label))
    return ui.line(el("span", "of ", task), el("span", id_, class_="id"))


def _about(step: Node, row: CanvasRow) -> Element:
    group = top_level(row.groups, step.id)
    return ui.labelled_values(
        (
            ("Status", status_badge(step.status)),
            ("Found", ui.memory_text(step.summary, class_="said") if step.summary else None),
            ("Last changed", ui.moment(step.timestamp)),
            ("Folded in", ui.link(f"/{group}", group, class_="id") if group != step.id else None),
        )
    )


def record_row(record: Record, *, is_open: bool = False) -> Element:
    """Return a tool call in a line or two: the call, its summary, and a link to its result unless that `is_open`."""
    saved = f"{ui.count(record.tokens_raw)} → {ui.count(record.tokens_kept)} tokens"
    return el(
        "div",
        el("p", ui.link(f"/{record.ref}", ui.memory_text(one_line(record.tool_call, 300), tag="code"))),
        el("p", ui.memory_text(record.summary)) if record.summary else None,
        ui.line(
            ui.moment(record.timestamp),
            el("span", saved, class_="number") if record.offloaded else None,
            ui.badge("forgotten", "warn") if record.forgotten else None,
            None if is_open else ui.link(f"/{record.ref}", "Open the output"),
            ui.link(f"/{record.node_id}", record.node_id, class_="id") if record.node_id else None,
        ),
    )


def _citing_statements(why: Why | None) -> Iterator[Element]:
    if why and why.cited_by:
        lines = (
            el("div", el("p", ui.link(f"/{citation.id}", ui.memory_text(one_line(citation.text, 300))), class_="said"),
               ui.line(el("span", citation.id, class_="id"), el("span", citation.at, class_="id")))
            for citation in why.cited_by[:_LISTED]
        )  # fmt: skip
        yield ui.section("Cited by", ui.rows(lines))


def _neighbours(canvas: Canvas, id_: str) -> Iterator[Element]:
    """Yield the steps before and after a step."""
    nodes = {step.id: step for step in canvas.nodes}
    before = [nodes[edge.source] for edge in canvas.edges if edge.target == id_]
    after = [nodes[edge.target] for edge in canvas.edges if edge.source == id_]
    sides = [
        ui.section(title, ui.rows(_step(step, ()) for step in steps))
        for title, steps in (("Before it", before), ("After it", after))
        if steps
    ]
    if sides:
        yield ui.columns(*sides)


def _group(view: View, row: CanvasRow, canvas: Canvas, id_: str, steps: Sequence[Node]) -> Page:
    group = row.groups.get(id_)
    shown = composite(id_, group, steps) if group else None
    title = remove_hidden(shown.title) if shown else f"Steps {steps[0].id} to {steps[-1].id}"
    buttons = None
    if group:
        buttons = ui.action(view, "fold", "Unfold", needs="write", number=row.number, nodes=id_,
                            action="unfold")  # fmt: skip
    return Page(
        title=title,
        here="tasks",
        body=ui.body(
            _of_task(row, canvas, id_),
            el("p", ui.memory_text(shown.summary), class_="said") if shown and shown.summary else None,
            buttons,
            ui.section("Steps in it", *_group_steps(view, id_, steps)),
            _picture(canvas, row.groups, selected=id_),
        ),
    )


def _group_steps(view: View, id_: str, steps: Sequence[Node]) -> Iterator[Element]:
    """Yield the steps of a group, one page of them, and the link to the next page."""
    cursor = view.query.get("cursor", "")
    first = int(cursor) if cursor.isascii() and cursor.isdecimal() and len(cursor) < 7 else 0
    yield ui.rows((_step(step, ()) for step in steps[first : first + _STEPS]), ordered=True)
    more = str(first + _STEPS) if first + _STEPS < len(steps) else None
    if turn := ui.pager(f"/{id_}", more, "More steps"):
        yield turn
