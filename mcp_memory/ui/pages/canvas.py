"""Tasks: their list, a task's canvas as picture and outline with its versions, and a step with its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.core.types import CanvasRow, Record, StepStatus, Why
from mcp_memory.shortterm.canvas.flowchart import Canvas, Node, padded, parse, read
from mcp_memory.shortterm.canvas.folding import composite, nodes_of, top_level
from mcp_memory.ui import components as ui
from mcp_memory.ui.elements import Element, el
from mcp_memory.ui.pictures.canvas import drawing, picture
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import WORDS, t

if TYPE_CHECKING:
    from mcp_memory.store.values import CanvasVersion


_LISTED = 100
_RECORDS = 1_000
_VERSIONS = 40
_STEPS = 60
_SUMMARY = 160
"""Characters of a step's result in an outline; its page has all of them."""
BESIDE = 560
"""Pixels: the widest picture that has its outline beside it."""
_LOOKS: Mapping[StepStatus, str] = {"done": "ok", "doing": "", "paused": "warn", "blocked": "bad"}


def status_badge(status: StepStatus) -> Element:
    return ui.badge(t(f"pictures.{status}"), _LOOKS[status])


# --- the list ---------------------------------------------------------------------------------------


async def tasks(view: View) -> Page:
    """All tasks, the one worked on last first."""
    found = await view.memory.canvases(limit=_LISTED)
    active = await view.memory.active_canvas()
    listed = ui.rows(_task(row, is_active=active is not None and row.number == active.number) for row in found)
    more = ui.note(t("canvas.newest_only", count=_LISTED)) if len(found) == _LISTED else None
    body = (listed, more) if found else (ui.empty(t("canvas.no_tasks")),)
    return Page(title=t("canvas.tasks"), here="tasks", body=tuple(filter(None, body)))


def _task(row: CanvasRow, *, is_active: bool) -> Element:
    number, held = padded(row.number), _summary(row.text)
    goal, steps, dead = held or (row.label, 0, 0)
    return el(
        "div",
        el("p", ui.link(f"/{number}", ui.words_of(goal or row.label)), class_="said"),
        ui.gap(
            el("span", number, class_="id"),
            status_badge(row.status),
            ui.badge(t("canvas.active"), "kind") if is_active else None,
            el("span", t("canvas.steps", count=steps)) if held else ui.badge(t("canvas.torn"), "bad"),
            el("span", t("canvas.dead_ends", count=dead)) if dead else None,
            ui.moment(row.updated),
        ),
    )


@lru_cache(maxsize=2 * _LISTED)
def _summary(text: str) -> tuple[str, int, int] | None:
    """Return the goal of a canvas, its steps and its dead ends; None if its text is torn. A long one takes 2 ms."""
    try:
        held = parse(text)
    except InvalidInput:
        return None
    return held.task_goal, len(held.nodes), sum(one.status == "blocked" for one in held.nodes)


# --- one task ---------------------------------------------------------------------------------------


async def canvas(view: View) -> Page:
    """The picture, the outline with what each step found, how it is folded, and its versions."""
    row = await view.memory.canvas(int(view.parts["number"]))
    number = padded(row.number)
    versions = await view.memory.canvas_versions(row.number)
    records = await view.memory.records(node=number, limit=_RECORDS)
    try:
        held = read(row)
    except Damaged as error:
        torn = ui.note(str(error), kind="bad")
        found = ui.section(t("canvas.results"), ui.rows(map(record_row, records[-_LISTED:]))) if records else None
        return Page(title=f"{number} {row.label}", here="tasks", body=tuple(filter(None, (torn, found))))
    folded, drawn = drawing(held, row.groups)
    shown = ui.section(t("canvas.picture"), picture(held, row.groups, selected=None)) if held.nodes else _no_steps()
    outline = _outline(view, row, held, folded.nodes, records)
    return Page(
        title=remove_hidden(held.task_goal) or row.label,
        here="tasks",
        body=(
            _head(row, held),
            *((ui.columns(shown, outline),) if drawn.width <= BESIDE else (shown, outline)),
            ui.columns(_state(view, row, held), _history(view, row.number, versions)),
        ),
    )


def _no_steps() -> Element:
    return ui.empty(t("canvas.no_steps"))


def _head(row: CanvasRow, held: Canvas) -> Element:
    counts = Counter(one.status for one in held.nodes)
    return ui.gap(
        el("span", f"{padded(row.number)}-{row.label}", class_="id"),
        status_badge(row.status),
        el("span", t("canvas.steps", count=len(held.nodes))),
        el("span", t("canvas.dead_ends", count=counts["blocked"])) if counts["blocked"] else None,
        ui.span(held.created, row.updated),
        el("span", t("canvas.session"), " ", ui.link(f"/session/{ui.part(row.session)}", ui.words_of(row.session))),
    )


def _outline(view: View, row: CanvasRow, held: Canvas, shown: Sequence[Node], records: Sequence[Record]) -> Element:
    """The boxes of the picture as a list, the newest last; those that are chosen can be folded into one."""
    refs: dict[str, dict[str, None]] = {}
    for record in records:
        refs.setdefault(record.node_id, {}).setdefault(record.ref)
    name = f"fold-{padded(row.number)}"
    button = el("button", t("canvas.fold_chosen"), title=t("canvas.about_fold"))
    hint = el("small", t("canvas.about_fold"))
    fold = ui.form(view, "fold", button, " ", hint, needs="write", id_=name, number=row.number, action="fold")
    lines = (
        _step(one, refs.get(one.id, ()), tick=_tick(one, name) if fold and _foldable(row, one) else None,
              unfold=_unfold(view, row, one))
        for one in shown
    )  # fmt: skip
    return ui.section(t("canvas.outline"), ui.rows(lines, ordered=True), fold if len(held.nodes) > 1 else None)


def _foldable(row: CanvasRow, one: Node) -> bool:
    """Return True for steps and for groups that were made by folding, not for stacks that exist only in the picture."""
    return "-F" not in one.id or one.id in row.groups


def _tick(one: Node, name: str) -> Element:
    return el("input", type="checkbox", name="nodes", value=one.id, form=name,
              aria_label=t("canvas.choose", id=one.id))  # fmt: skip


def _unfold(view: View, row: CanvasRow, one: Node) -> Element | None:
    if one.id not in row.groups:
        return None
    return ui.action(view, "fold", t("canvas.unfold"), needs="write", number=row.number, nodes=one.id, action="unfold")


def _step(one: Node, refs: Iterable[str], *, tick: Element | None = None, unfold: Element | None = None) -> Element:
    return el(
        "div",
        el("p", tick, ui.link(f"/{one.id}", ui.words_of(one.title)), class_="said"),
        el("p", ui.words_of(one_line(one.summary, _SUMMARY))) if one.summary else None,
        ui.gap(
            el("span", one.id, class_="id"),
            status_badge(one.status),
            ui.moment(one.timestamp),
            (ui.link(f"/{ref}", ref, class_="id") for ref in list(refs)[:3]),
            unfold,
        ),
    )


def _state(view: View, row: CanvasRow, held: Canvas) -> Element:
    """How the canvas stands in a context, and what changes that."""
    number, is_done = row.number, row.status == "done" and all(one.status != "doing" for one in held.nodes)
    buttons = [
        ui.action(view, "fold", t("canvas.unfold_all"), needs="write", number=number, nodes="", action="unfold")
        if row.folded or row.groups
        else None,
        None
        if row.folded
        else ui.action(view, "fold", t("canvas.fold_all"), needs="write", number=number, nodes="", action="fold"),
        None
        if is_done
        else ui.action(view, "fold", t("canvas.complete"), needs="write", number=number, nodes="", action="complete"),
    ]
    told = t("canvas.is_folded") if row.folded else t("canvas.is_open", count=len(row.groups))
    hint = el("p", el("small", t("canvas.about_buttons"))) if any(buttons) else None
    return ui.section(t("canvas.state"), el("p", told), ui.gap(buttons) if any(buttons) else None, hint)


def _history(view: View, number: int, versions: Sequence[CanvasVersion]) -> Element:
    """The versions, the newest first; steps that follow each other are one line. The last patch can be undone."""
    undone = {one.detail for one in versions if one.kind == "undone"}
    last = next((one for one in reversed(versions) if one.kind == "patched" and str(one.number) not in undone), None)
    undo = ui.action(view, "undo_patch", t("canvas.undo"), number=number) if last and not last.is_erased else None
    lines = list(_runs(versions))[:_VERSIONS]
    listed = [
        el("div", el("span", called), " ", el("span", at, class_="id"), " ", undo if run[-1] is last else None)
        for run in lines
        for called, at in [_named(run, undone)]
    ]
    return ui.section(t("canvas.versions"), ui.rows(listed) if listed else ui.empty(t("canvas.no_versions")))


def _runs(versions: Sequence[CanvasVersion]) -> Iterator[list[CanvasVersion]]:
    """Yield versions of one kind that follow each other, the newest first; only steps and summaries run together."""
    run: list[CanvasVersion] = []
    for one in reversed(versions):
        if run and (one.kind != run[0].kind or one.kind not in ("step", "summaries")):
            yield run
            run = []
        run.insert(0, one)
    if run:
        yield run


def _named(run: Sequence[CanvasVersion], undone: set[str]) -> tuple[str, str]:
    """Return the description of a run of versions, and the range of their numbers."""
    first, last = run[0], run[-1]
    key = f"canvas.version_{last.kind}"
    text = t(key, count=len(run)) if key in WORDS else last.kind
    text += f" ({t('canvas.was_undone')})" if str(last.number) in undone and last.kind == "patched" else ""
    text += f" ({t('canvas.erased')})" if last.is_erased else ""
    text += f" ({t('canvas.by_model')})" if last.work else ""
    return text, f"{first.number}–{last.number}" if first is not last else str(last.number)


# --- one step ---------------------------------------------------------------------------------------


async def node(view: View) -> Page:
    """Show a step with its results and the steps before and after it, or a group with its steps."""
    row = await view.memory.canvas(int(view.parts["number"]))
    id_ = f"{padded(row.number)}-{view.parts['node']}"
    held = read(row)
    inside = nodes_of(held, row.groups, id_)
    if not inside:
        raise NotFound(t("canvas.no_node", id=id_, number=padded(row.number)))
    steps = [one for one in held.nodes if one.id in inside]
    if "-F" in id_:
        return _group(view, row, held, id_, steps)
    (step,) = steps
    records = await view.memory.records(node=id_, limit=_STEPS + 1)
    why = await view.memory.why(id_) if records else None
    return Page(
        title=remove_hidden(step.title) or id_,
        here="tasks",
        body=(
            _of_task(row, held, id_),
            _about(step, row),
            ui.section(t("canvas.results"), *_results(records)),
            *_cited(why),
            *_around(held, id_),
            ui.section(t("canvas.picture"), picture(held, row.groups, selected=id_)),
        ),
    )


def _results(records: Sequence[Record]) -> Iterator[Element]:
    yield ui.rows(map(record_row, records[:_STEPS])) if records else ui.empty(t("canvas.no_results"))
    if len(records) > _STEPS:
        yield ui.note(t("canvas.oldest_only", count=_STEPS))


def _of_task(row: CanvasRow, held: Canvas, id_: str) -> Element:
    task = ui.link(f"/{padded(row.number)}", ui.words_of(held.task_goal or row.label))
    return ui.gap(el("span", id_, class_="id"), el("span", t("canvas.of"), " ", task))


def _about(step: Node, row: CanvasRow) -> Element:
    group = top_level(row.groups, step.id)
    return ui.facts_of(
        (
            (t("canvas.status"), status_badge(step.status)),
            (t("canvas.found"), ui.words_of(step.summary, class_="said") if step.summary else None),
            (t("canvas.at"), ui.moment(step.timestamp)),
            (t("canvas.folded_in"), ui.link(f"/{group}", group, class_="id") if group != step.id else None),
        )
    )


def record_row(record: Record) -> Element:
    """Return a tool call in a line or two: the call, its summary, and a link to the whole result."""
    saved = t("canvas.tokens", raw=ui.count(record.tokens_raw), kept=ui.count(record.tokens_kept))
    return el(
        "div",
        el("p", ui.link(f"/{record.ref}", ui.words_of(one_line(record.tool_call, 300), tag="code"))),
        el("p", ui.words_of(record.summary)) if record.summary else None,
        ui.gap(
            ui.link(f"/{record.ref}", record.ref, class_="id"),
            ui.link(f"/{record.node_id}", record.node_id, class_="id") if record.node_id else None,
            ui.moment(record.timestamp),
            el("span", saved, class_="number") if record.offloaded else None,
            ui.badge(t("canvas.forgotten"), "warn") if record.forgotten else None,
        ),
    )


def _cited(why: Why | None) -> Iterator[Element]:
    if why and why.cited_by:
        lines = (
            el("div", el("p", ui.link(f"/{one.id}", ui.words_of(one_line(one.text, 300))), class_="said"),
               ui.gap(el("span", one.id, class_="id"), el("span", one.at, class_="id")))
            for one in why.cited_by[:_LISTED]
        )  # fmt: skip
        yield ui.section(t("canvas.cited_by"), ui.rows(lines))


def _around(held: Canvas, id_: str) -> Iterator[Element]:
    """The steps before and after this one."""
    nodes = {one.id: one for one in held.nodes}
    before = [nodes[edge.source] for edge in held.edges if edge.target == id_]
    after = [nodes[edge.target] for edge in held.edges if edge.source == id_]
    sides = [
        ui.section(t(f"canvas.{name}"), ui.rows(_step(one, ()) for one in steps))
        for name, steps in (("before", before), ("after", after))
        if steps
    ]
    if sides:
        yield ui.columns(*sides)


def _group(view: View, row: CanvasRow, held: Canvas, id_: str, steps: Sequence[Node]) -> Page:
    group = row.groups.get(id_)
    shown = composite(id_, group, steps) if group else None
    title = remove_hidden(shown.title) if shown else t("canvas.stretch", first=steps[0].id, last=steps[-1].id)
    buttons = None
    if group:
        buttons = ui.action(view, "fold", t("canvas.unfold"), needs="write", number=row.number, nodes=id_,
                            action="unfold")  # fmt: skip
    return Page(
        title=title,
        here="tasks",
        body=tuple(
            filter(
                None,
                (
                    _of_task(row, held, id_),
                    el("p", ui.words_of(shown.summary), class_="said") if shown and shown.summary else None,
                    buttons,
                    ui.section(t("canvas.inside"), *_inside(view, id_, steps)),
                    ui.section(t("canvas.picture"), picture(held, row.groups, selected=id_)),
                ),
            )
        ),
    )


def _inside(view: View, id_: str, steps: Sequence[Node]) -> Iterator[Element]:
    """Yield the steps of a group, one page of them, and the link to the next page."""
    cursor = view.query.get("cursor", "")
    first = int(cursor) if cursor.isascii() and cursor.isdecimal() and len(cursor) < 7 else 0
    yield ui.rows((_step(one, ()) for one in steps[first : first + _STEPS]), ordered=True)
    more = str(first + _STEPS) if first + _STEPS < len(steps) else None
    if turn := ui.pager(f"/{id_}", more, t("canvas.more_steps")):
        yield turn
