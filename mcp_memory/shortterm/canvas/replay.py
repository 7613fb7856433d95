"""Replay a canvas from its history: its records with their moves, and the edits between them; change it, undo, forget.

Guarantees: unless the rows were changed from outside, `rebuild` equals the stored canvas; a canvas from before moves
were stored begins with the edit `drawn`, and where that is unreadable too, its records follow each other. An edit and
the canvas that it makes are stored together; two writers of one canvas both succeed. `rollback` gives the canvas
without its last patch, with every step that was taken since.

Forgetting tool results keeps nodes and edges and removes the words that came from them. An edit of the kind `forgotten`
marks it in the history; replaying takes the words off every node with a step of a forgotten result. The title of a node
is then one that another step gave it, its summary that of its newest step; nodes without any other step say FORGOTTEN,
as does the goal without any step left. Undoing the edit restores all of them. For a purge `scrubbed` rewrites the
history itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.types import FORGOTTEN, CanvasRow, Group, Record
from mcp_memory.shortterm.canvas.edits import CanvasState, do, edit, row_of, state_of, stepped
from mcp_memory.shortterm.canvas.flowchart import (
    TITLE_LIMIT,
    Canvas,
    Edge,
    Node,
    clean,
    number_of,
    padded,
    parse,
    render,
)
from mcp_memory.shortterm.canvas.folding import members
from mcp_memory.shortterm.canvas.placement import DEAD_END, Move, latest, loads
from mcp_memory.store.forgetting import Redrawn, Scrubbed
from mcp_memory.store.protocol import CanvasEdit, Conflict, Store, TakenStep

ATTEMPTS = 50
_ALL = 1_000_000


def replay(history: Iterable[TakenStep | CanvasEdit], *, number: int, label: str = "") -> CanvasState | None:
    """Return the state that a history gives, without undone edits; None where it is empty."""
    state: CanvasState | None = None
    summaries: dict[str, str] = {}
    steps = list[TakenStep]()
    for each in history:
        if isinstance(each, TakenStep):
            state = _after_step(state, each, number=number, label=label)
            summaries[each.record.node_id] = each.record.summary
            steps.append(each)
        elif each.undone is not None:
            continue
        elif each.kind == "forgotten":
            state = _without_forgotten(state, steps) if state else None
        else:
            try:
                state = do(state, each, number=number) or state
                if state and each.kind == "drawn":  # its records may have better summaries by now
                    nodes = (replace(node, summary=summaries.get(node.id, node.summary)) for node in state.canvas.nodes)
                    state = replace(state, canvas=replace(state.canvas, nodes=tuple(nodes)))
            except (ValueError, KeyError, TypeError, InvalidInput):
                continue  # it cannot be read, or depends on what was undone
    return state


def _after_step(state: CanvasState | None, step: TakenStep, *, number: int, label: str) -> CanvasState:
    record = step.record
    if state is None:
        empty = Canvas(number, label or record.tool_call, "doing", record.timestamp, record.timestamp)
        state = CanvasState(canvas=empty)
    try:
        how = loads(step.move) if step.move else _guessed_move(state, record)
    except (ValueError, TypeError):
        how = _guessed_move(state, record)
    return stepped(state, record.node_id, how, summary=record.summary, now=record.timestamp)


def _guessed_move(state: CanvasState, record: Record) -> Move:
    """Return a move that follows the step before it."""
    last = latest(state.canvas)
    known = any(node.id == record.node_id for node in state.canvas.nodes)
    if known or last is None:
        return Move(status="doing", title="" if known else clean(record.tool_call, TITLE_LIMIT))
    return Move(status="doing", title=clean(record.tool_call, TITLE_LIMIT), after={last.id: ""}, finished=(last.id,))


def _without_forgotten(state: CanvasState, steps: Sequence[TakenStep]) -> CanvasState:
    """Remove the words of steps whose result is forgotten; `steps` are all that made the canvas."""
    by_node: dict[str, list[TakenStep]] = {}
    for step in steps:
        by_node.setdefault(step.record.node_id, []).append(step)
    touched = {node for node, own in by_node.items() if any(step.record.forgotten for step in own)}
    bare = {node for node in touched if all(step.record.forgotten for step in by_node[node])}
    canvas = replace(
        state.canvas,
        task_goal=FORGOTTEN if touched and all(step.record.forgotten for step in steps) else state.canvas.task_goal,
        nodes=tuple(_retold(node, by_node[node.id]) if node.id in touched else node for node in state.canvas.nodes),
        edges=tuple(_without_label(edge, bare) for edge in state.canvas.edges),
    )
    groups = {
        id: group if touched.isdisjoint(members(state.groups, id)) else Group(group.nodes)
        for id, group in state.groups.items()
    }
    return replace(state, canvas=canvas, groups=groups)


def _retold(node: Node, steps: Sequence[TakenStep]) -> Node:
    """Return the node with the words of those steps that are not forgotten."""
    left = [step for step in steps if not step.record.forgotten]
    titles = [title for step in left if (title := _title(step.move))]
    summary = left[-1].record.summary if left else FORGOTTEN
    return replace(node, title=titles[-1] if titles else FORGOTTEN, summary=summary)


def _title(move: str | None) -> str:
    try:
        return loads(move).title if move else ""
    except (ValueError, TypeError):
        return ""


def _without_label(edge: Edge, nodes: Collection[str]) -> Edge:
    """Return an edge of one of the nodes with no words but those that every dead end has."""
    touched = edge.source in nodes or edge.target in nodes
    return replace(edge, label=DEAD_END if edge.dashed else "") if touched else edge


# --- stored canvases --------------------------------------------------------------------------------


def rebuild(store: Store, space: str, number: int) -> CanvasState:
    """Return a canvas from its records and edits alone. Raises NotFound where it has none."""
    label = store.canvas(space, number).label
    state = replay(store.canvas_history(space, number), number=number, label=label)
    if state is None:
        raise NotFound(f"Canvas {padded(number)} has no records and no edits to be drawn from.")
    return state


def current_state(store: Store, space: str, row: CanvasRow) -> CanvasState:
    """Return the state that a row stores; where its text is torn, the one that its history gives."""
    try:
        return state_of(row)
    except Damaged:
        try:
            return rebuild(store, space, row.number)
        except NotFound:
            pass
        raise


def problems(store: Store, space: str) -> Iterator[str]:
    """Yield a sentence for each canvas that differs from its history."""
    for row in store.canvases(space, limit=_ALL):
        try:
            well = state_of(row) == rebuild(store, space, row.number)
        except Damaged:
            well = False
        if not well:
            name = f"{padded(row.number)}-{row.label}"
            yield f"Canvas {name} is not what its records come to; `mcp-memory show canvas {name} --rebuild` mends it."


def mend(store: Store, space: str, number: int, *, now: datetime) -> tuple[CanvasRow, bool]:
    """Write the canvas that its history gives, its file too. Returns it, and whether its row differed."""
    while True:
        row = store.canvas(space, number)
        fresh = row_of(rebuild(store, space, number), row)
        try:
            store.save_canvas(space, fresh, expected=row.version, now=now)
        except Conflict:
            continue
        return store.canvas(space, number), fresh != row


def amend(store: Store, space: str, row: CanvasRow, decide: Callable[[CanvasState], Sequence[CanvasEdit]]) -> CanvasRow:
    """Apply the edits that `decide` returns for the current canvas, and return its row; none leave it unchanged.

    The active canvas stays the same. Raises what `decide` and `do` raise, with nothing written.
    """
    for _ in range(ATTEMPTS):
        state = current_state(store, space, row)
        edits = decide(state)
        if not edits:
            return row
        try:
            store.save_canvas(space, with_edits(row, state, edits), expected=row.version, edits=edits)
        except Conflict:
            row = store.canvas(space, row.number)
            continue
        return store.canvas(space, row.number)
    raise _too_busy(row.number)


def _too_busy(number: int) -> StoreUnavailable:
    return StoreUnavailable(f"Canvas {padded(number)} is being written to by many others at once. Call again.")


def with_edits(row: CanvasRow, state: CanvasState, edits: Sequence[CanvasEdit]) -> CanvasRow:
    """Return the row after the edits, for callers that save both together. Raises InvalidInput as `do` does."""
    for each in edits:
        state = do(state, each, number=row.number) or state
    return row_of(state, row)


def rollback(store: Store, space: str, number: int, *, now: datetime) -> CanvasRow:
    """Undo the last patch that counts; later steps and folds stay. Raises NotFound without a patch to undo."""
    for _ in range(ATTEMPTS):
        row = store.canvas(space, number)
        history = store.canvas_history(space, number)
        patches = [
            each for each in history if isinstance(each, CanvasEdit) and each.kind == "patched" and not each.undone
        ]
        if not patches:
            raise NotFound(f"Canvas {padded(number)} has no patch to undo.")
        last = patches[-1]
        left = replay((each for each in history if each != last), number=number, label=row.label)
        assert left is not None, "a patch changes an existing canvas"
        try:
            store.save_canvas(space, row_of(left, row), expected=row.version, undo=[last.number], now=now)
        except Conflict:
            continue
        return store.canvas(space, number)
    raise _too_busy(number)


# --- forgetting -------------------------------------------------------------------------------------


def taken_off(store: Store, space: str, refs: Collection[str], *, now: datetime) -> list[Redrawn]:
    """Return the canvases with results that are about to be forgotten, without their words."""
    redrawn: list[Redrawn] = []
    for row, history in _touched(store, space, refs):
        gone = [_with_flag(each, refs, forgotten=True) for each in history]
        bare = all(step.record.forgotten for step in gone if isinstance(step, TakenStep))
        done = edit("forgotten", now, refs=sorted(set(refs)), label=row.label if bare else "")
        fresh = _redrawn(row, [*gone, done])
        redrawn.append(Redrawn(row=replace(fresh, label=FORGOTTEN) if bare else fresh, edits=[done]))
    return redrawn


def brought_back(store: Store, space: str, refs: Collection[str]) -> list[Redrawn]:
    """Return the canvases of results whose forgetting is undone, with their words."""
    redrawn: list[Redrawn] = []
    for row, history in _touched(store, space, refs):
        edits = {
            each.number: body
            for each in history
            if isinstance(each, CanvasEdit) and each.kind == "forgotten" and each.undone is None
            if not set(refs).isdisjoint((body := _body(each)).get("refs", ()))
        }
        back = [
            _with_flag(each, refs, forgotten=False)
            for each in history
            if isinstance(each, TakenStep) or each.number not in edits
        ]
        label = next((body["label"] for body in edits.values() if body.get("label")), row.label)
        if edits:
            redrawn.append(Redrawn(row=replace(_redrawn(row, back), label=label), undo=list(edits)))
    return redrawn


def _touched(
    store: Store, space: str, refs: Collection[str]
) -> Iterator[tuple[CanvasRow, list[TakenStep | CanvasEdit]]]:
    """Yield the canvases that have records of these refs, with their histories."""
    records = (record for ref in set(refs) for record in store.records(space, ref=ref, limit=_ALL))
    for number in sorted({number_of(record.node_id) for record in records}):
        try:
            yield store.canvas(space, number), store.canvas_history(space, number)
        except NotFound:
            continue


def _with_flag(each: TakenStep | CanvasEdit, refs: Collection[str], *, forgotten: bool) -> TakenStep | CanvasEdit:
    if isinstance(each, CanvasEdit) or each.record.ref not in refs:
        return each
    return replace(each, record=replace(each.record, forgotten=forgotten))


def _redrawn(row: CanvasRow, history: Sequence[TakenStep | CanvasEdit]) -> CanvasRow:
    state = replay(history, number=row.number, label=row.label)
    return row if state is None else row_of(state, row)


def _body(done: CanvasEdit) -> dict[str, Any]:
    try:
        return dict(json.loads(done.body))
    except (ValueError, TypeError):
        return {}


def scrubbed(store: Store, space: str, refs: Collection[str]) -> list[Scrubbed]:
    """Return the canvases whose history has words of these forgotten results, with a history that has none."""
    return [_scrubbed(row, history, set(refs)) for row, history in _touched(store, space, refs)]


def _scrubbed(row: CanvasRow, history: Sequence[TakenStep | CanvasEdit], refs: set[str]) -> Scrubbed:
    steps = [each for each in history if isinstance(each, TakenStep)]
    nodes = {step.record.node_id for step in steps if step.record.ref in refs}
    all_gone = all(step.record.ref in refs or _is_husk(step) for step in steps)
    moves: dict[int, str] = {}
    edits: dict[int, str] = {}
    fresh: list[TakenStep | CanvasEdit] = []
    for each in history:
        if isinstance(each, CanvasEdit):
            body = _bare_body(each, nodes, refs, all_gone)
            if body != each.body:
                edits[each.number] = body
            each = replace(each, body=body)
        elif each.record.ref in refs:
            bare = replace(each.record, summary=FORGOTTEN, tool_call=FORGOTTEN, forgotten=True)
            if each.move:
                moves[each.number] = _bare_move(each.move)
            each = replace(each, record=bare, move=moves.get(each.number, each.move))
        fresh.append(each)
    return Scrubbed(row=_redrawn(row, fresh), moves=moves, edits=edits)


def _bare_move(move: str) -> str:
    try:
        fields: dict[str, Any] = json.loads(move)
    except ValueError:
        return "{}"
    fields.pop("routine", None)
    if fields.get("title"):
        fields["title"] = FORGOTTEN
    if fields.get("after"):
        fields["after"] = dict.fromkeys(fields["after"], "")
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def _is_husk(step: TakenStep) -> bool:
    return step.record.forgotten and step.record.tool_call == step.record.summary == FORGOTTEN


def _bare_body(done: CanvasEdit, nodes: Collection[str], refs: Collection[str], all_gone: bool) -> str:
    body = _body(done)
    match done.kind:
        case "begun" if all_gone:
            body["goal"] = FORGOTTEN
        case "drawn":
            body["text"] = _bare_text(str(body.get("text", "")), nodes, all_gone)
        case "forgotten" if not set(refs).isdisjoint(body.get("refs", ())):
            body.pop("label", None)
        case "patched":
            _bare_patch(body, nodes, all_gone)
        case _:
            return done.body
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def _bare_text(text: str, nodes: Collection[str], all_gone: bool) -> str:
    try:
        canvas: Canvas = parse(text)
    except InvalidInput:
        return ""
    bare = tuple(
        replace(node, title=FORGOTTEN, summary=FORGOTTEN) if node.id in nodes else node for node in canvas.nodes
    )
    edges = tuple(_without_label(edge, nodes) for edge in canvas.edges)
    goal = FORGOTTEN if all_gone else canvas.task_goal
    return render(replace(canvas, task_goal=goal, nodes=bare, edges=edges))


def _bare_patch(body: dict[str, Any], nodes: Collection[str], all_gone: bool) -> None:
    """Remove words from a patch. Those on groups all go: a group may hold one of the nodes through others."""
    for words in ("titles", "summaries"):
        held: dict[str, str] = body.get(words, {})
        body[words] = {id: text for id, text in held.items() if id not in nodes and "-F" not in id}
    for group in body.get("groups", ()):
        if any(id in nodes or "-F" in id for id in group["nodes"]):
            group["title"], group["summary"] = FORGOTTEN, ""
    for edge in body.get("edges", ()):
        if {edge["source"], edge["target"]} & set(nodes):
            edge["label"] = ""
    if all_gone and body.get("goal"):
        body["goal"] = FORGOTTEN
