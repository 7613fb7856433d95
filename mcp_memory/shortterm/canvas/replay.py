"""The words of a canvas that told of forgotten results, taken off; nodes and edges stay. Pure.

The title of a node is then one that another step gave it, and its summary that of its newest step; nodes without any
other step say FORGOTTEN, as does the goal where no step is left.

A canvas drawn anew from what made it: its records with their moves, and the edits between them.

Guarantees: where nobody touched the rows from outside, what is rebuilt equals what is stored. A canvas from before
moves were kept begins as it stood then; where that cannot be read either, its records are strung together.

Edits on their way into the store: read, decide, do, keep; and again where another writer was first.

Guarantees: an edit and the canvas that it makes land together; two writers of one canvas both have their way;
`rollback` gives what the canvas would be had the last patch never been, with every step that was taken since.

What is left of canvases when tool results on them are forgotten: the way, without the words that told of them.

An edit of the kind `forgotten` stands in the canvas's history where that happened. Replaying the history takes the
words off every node that had a step of a result forgotten now (`wordless`); where the forgetting is undone the edit is
undone with it, and all of them are back.

For a purge the history itself is written anew (`scrubbed`), so that its words are nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.types import FORGOTTEN, CanvasRow, Group, Record
from mcp_memory.shortterm.canvas.edits import CanvasState, Patch, do, edit, patched, row_of, state_of, stepped
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
from mcp_memory.shortterm.canvas.placement import DEAD_END, Move, latest, loads
from mcp_memory.store.forgetting import Redrawn, Scrubbed
from mcp_memory.store.protocol import CanvasEdit, Conflict, Store, TakenStep


def without_words(drawing: CanvasState, steps: Sequence[TakenStep]) -> CanvasState:
    """Return the drawing without what told of steps whose result is forgotten; `steps` are all that made it."""
    by_node = _by_node(steps)
    touched = {node for node, own in by_node.items() if any(step.record.forgotten for step in own)}
    if not touched:
        return drawing
    bare = {node for node in touched if all(step.record.forgotten for step in by_node[node])}
    canvas = drawing.canvas
    return replace(
        drawing,
        canvas=replace(
            canvas,
            task_goal=FORGOTTEN if all(step.record.forgotten for step in steps) else canvas.task_goal,
            nodes=tuple(_node(node, by_node[node.id]) if node.id in touched else node for node in canvas.nodes),
            edges=tuple(without_label(edge) if {edge.source, edge.target} & bare else edge for edge in canvas.edges),
        ),
        groups={
            id: Group(group.nodes) if _holds(drawing.groups, id, touched) else group
            for id, group in drawing.groups.items()
        },
    )


def _by_node(steps: Sequence[TakenStep]) -> dict[str, list[TakenStep]]:
    found: dict[str, list[TakenStep]] = {}
    for step in steps:
        found.setdefault(step.record.node_id, []).append(step)
    return found


def _node(node: Node, steps: Sequence[TakenStep]) -> Node:
    left = [step for step in steps if not step.record.forgotten]
    titles = [title for step in left if (title := _title(step.move))]
    return replace(
        node,
        title=titles[-1] if titles else FORGOTTEN,
        summary=left[-1].record.summary if left else FORGOTTEN,
    )


def _title(move: str | None) -> str:
    try:
        return loads(move).title if move else ""
    except (ValueError, TypeError):
        return ""


def without_label(edge: Edge) -> Edge:
    """Return the edge with no words but those that every dead end has."""
    return replace(edge, label=DEAD_END if edge.dashed else "")


def _holds(groups: Mapping[str, Group], id: str, nodes: Collection[str]) -> bool:
    return any(one in nodes or (one in groups and _holds(groups, one, nodes)) for one in groups[id].nodes)


_ALL = 1_000_000


def replay(history: Iterable[TakenStep | CanvasEdit], *, number: int, label: str = "") -> CanvasState | None:
    """Return the drawing that a history comes to, without what was undone; None where it is empty."""
    drawing: CanvasState | None = None
    told: dict[str, str] = {}
    steps = list[TakenStep]()
    for each in history:
        if isinstance(each, TakenStep):
            drawing = _taken(drawing, each, number=number, label=label)
            told[each.record.node_id] = each.record.summary
            steps.append(each)
        elif each.kind == "forgotten":
            drawing = without_words(drawing, steps) if drawing and each.undone is None else drawing
        elif each.undone is None:
            try:
                drawing = do(drawing, each, number=number) or drawing
                drawing = _retold(drawing, told) if drawing and each.kind == "drawn" else drawing
            except (ValueError, KeyError, TypeError, InvalidInput):
                continue  # it cannot be read, or leans on what was undone
    return drawing


def _retold(drawing: CanvasState, told: Mapping[str, str]) -> CanvasState:
    """A canvas as it stood has the summaries of that time; its records may have better ones by now."""
    nodes = tuple(replace(node, summary=told.get(node.id, node.summary)) for node in drawing.canvas.nodes)
    return replace(drawing, canvas=replace(drawing.canvas, nodes=nodes))


def _taken(drawing: CanvasState | None, step: TakenStep, *, number: int, label: str) -> CanvasState:
    record = step.record
    if drawing is None:
        empty = Canvas(number, label or record.tool_call, "doing", record.timestamp, record.timestamp)
        drawing = CanvasState(canvas=empty)
    try:
        how = loads(step.move) if step.move else _guessed(drawing, record)
    except (ValueError, TypeError):
        how = _guessed(drawing, record)
    return stepped(drawing, record.node_id, how, summary=record.summary, now=record.timestamp)


def _guessed(drawing: CanvasState, record: Record) -> Move:
    """It follows the step before it."""
    last = latest(drawing.canvas)
    known = any(node.id == record.node_id for node in drawing.canvas.nodes)
    if known or last is None:
        return Move(status="doing", title="" if known else clean(record.tool_call, TITLE_LIMIT))
    return Move(status="doing", title=clean(record.tool_call, TITLE_LIMIT), after={last.id: ""}, finished=(last.id,))


# --- on the store -----------------------------------------------------------------------------------


def rebuild(store: Store, space: str, number: int) -> CanvasState:
    """Return a canvas drawn from its records and edits alone. Raises NotFound where it has none."""
    label = store.canvas(space, number).label
    drawing = replay(store.canvas_history(space, number), number=number, label=label)
    if drawing is None:
        raise NotFound(f"Canvas {padded(number)} has no records and no edits to be drawn from.")
    return drawing


def current_state(store: Store, space: str, row: CanvasRow) -> CanvasState:
    """Return what a row keeps; where its text is torn, what its history comes to."""
    try:
        return state_of(row)
    except Damaged:
        try:
            return rebuild(store, space, row.number)
        except NotFound:
            pass
        raise


def problems(store: Store, space: str) -> Iterator[str]:
    """Yield a sentence for each canvas that is not what its history comes to."""
    for row in store.canvases(space, limit=_ALL):
        try:
            well = state_of(row) == rebuild(store, space, row.number)
        except Damaged:
            well = False
        if not well:
            name = f"{padded(row.number)}-{row.label}"
            yield f"Canvas {name} is not what its records come to; `mcp-memory show canvas {name} --rebuild` mends it."


def mend(store: Store, space: str, number: int, *, now: datetime) -> tuple[CanvasRow, bool]:
    """Write the canvas as its history has it, its file too. Returns it, and whether its row was another."""
    while True:
        row = store.canvas(space, number)
        fresh = row_of(rebuild(store, space, number), row)
        try:
            store.save_canvas(space, fresh, expected=row.version, now=now)
        except Conflict:
            continue
        return store.canvas(space, number), fresh != row


ATTEMPTS = 50


def amend(store: Store, space: str, row: CanvasRow, decide: Callable[[CanvasState], Sequence[CanvasEdit]]) -> CanvasRow:
    """Do the edits that `decide` finds right for the canvas as it stands, and return it; none leave it as it is.

    Which canvas is active stays as it is. Raises what `decide` and `do` raise, with nothing written.
    """
    for _ in range(ATTEMPTS):
        drawing = current_state(store, space, row)
        edits = decide(drawing)
        if not edits:
            return row
        try:
            store.save_canvas(space, with_edits(row, drawing, edits), expected=row.version, edits=edits)
        except Conflict:
            row = store.canvas(space, row.number)
            continue
        return store.canvas(space, row.number)
    raise StoreUnavailable(f"Canvas {padded(row.number)} is being written to by many others at once. Call again.")


def with_edits(row: CanvasRow, drawing: CanvasState, edits: Sequence[CanvasEdit]) -> CanvasRow:
    """Return the row as the edits make it, for whoever saves both together. Raises InvalidInput as `do` does."""
    for each in edits:
        drawing = do(drawing, each, number=row.number) or drawing
    return row_of(drawing, row)


def patch_canvas(
    store: Store, space: str, number: int, patch: Patch, *, work: str | None = None, now: datetime
) -> CanvasRow:
    """Check a patch against the canvas as it stands, do it and keep it. Raises InvalidInput with all its faults."""
    return amend(store, space, store.canvas(space, number), lambda _: [patched(patch, now, work=work)])


def rollback(store: Store, space: str, number: int, *, now: datetime) -> CanvasRow:
    """Undo the last patch that counts. Steps and folds made since then stay. Raises NotFound where there is none."""
    for _ in range(ATTEMPTS):
        row = store.canvas(space, number)
        history = store.canvas_history(space, number)
        counting = [
            each for each in history if isinstance(each, CanvasEdit) and each.kind == "patched" and not each.undone
        ]
        if not counting:
            raise NotFound(f"Canvas {padded(number)} has no patch to undo.")
        last = counting[-1]
        left = replay((each for each in history if each != last), number=number, label=row.label)
        assert left is not None, "what was patched was there before"
        try:
            store.save_canvas(space, row_of(left, row), expected=row.version, undo=[last.number], now=now)
        except Conflict:
            continue
        return store.canvas(space, number)
    raise StoreUnavailable(f"Canvas {padded(number)} is being written to by many others at once. Call again.")


# --- on the store -----------------------------------------------------------------------------------


def taken_off(store: Store, space: str, refs: Collection[str], *, now: datetime) -> list[Redrawn]:
    """Return the canvases that told of results about to be forgotten, as they are to stand without them."""
    return list(_taken_off(store, space, set(refs), now))


def _taken_off(store: Store, space: str, refs: set[str], now: datetime) -> Iterator[Redrawn]:
    for row, history in _touched(store, space, refs):
        gone = [_with_flag(each, refs, forgotten=True) for each in history]
        bare = all(step.record.forgotten for step in gone if isinstance(step, TakenStep))
        done = edit("forgotten", now, refs=sorted(refs), label=row.label if bare else "")
        fresh = _redrawn(row, [*gone, done])
        yield Redrawn(row=replace(fresh, label=FORGOTTEN) if bare else fresh, edits=[done])


def brought_back(store: Store, space: str, refs: Collection[str]) -> list[Redrawn]:
    """Return the canvases that are to tell of results again, once their forgetting is undone."""
    return list(_brought_back(store, space, set(refs)))


def _brought_back(store: Store, space: str, refs: set[str]) -> Iterator[Redrawn]:
    for row, history in _touched(store, space, refs):
        edits = {each.number: _body(each) for each in history if isinstance(each, CanvasEdit) and _is_of(each, refs)}
        back = [
            _with_flag(each, refs, forgotten=False)
            for each in history
            if isinstance(each, TakenStep) or each.number not in edits
        ]
        label = next((body["label"] for body in edits.values() if body.get("label")), row.label)
        if edits:
            yield Redrawn(row=replace(_redrawn(row, back), label=label), undo=list(edits))


def _is_of(done: CanvasEdit, refs: set[str]) -> bool:
    return done.kind == "forgotten" and done.undone is None and not refs.isdisjoint(_body(done).get("refs", ()))


def _touched(
    store: Store, space: str, refs: Collection[str]
) -> Iterator[tuple[CanvasRow, list[TakenStep | CanvasEdit]]]:
    records = (record for ref in refs for record in store.records(space, ref=ref, limit=_ALL))
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
    drawing = replay(history, number=row.number, label=row.label)
    return row if drawing is None else row_of(drawing, row)


def _body(done: CanvasEdit) -> dict[str, Any]:
    try:
        return dict(json.loads(done.body))
    except (ValueError, TypeError):
        return {}


# --- for good ---------------------------------------------------------------------------------------


def scrubbed(store: Store, space: str, refs: Collection[str]) -> list[Scrubbed]:
    """Return the canvases whose history has words of these forgotten results, with a history that has none."""
    return [_scrubbed(row, history, set(refs)) for row, history in _touched(store, space, set(refs))]


def _scrubbed(row: CanvasRow, history: Sequence[TakenStep | CanvasEdit], refs: set[str]) -> Scrubbed:
    steps = [each for each in history if isinstance(each, TakenStep)]
    nodes = {step.record.node_id for step in steps if step.record.ref in refs}
    all_gone = all(step.record.ref in refs or _is_husk(step) for step in steps)
    moves = {step.number: _bare_move(step.move) for step in steps if step.record.ref in refs and step.move}
    edits = {
        each.number: body
        for each in history
        if isinstance(each, CanvasEdit) and (body := _bare_body(each, nodes, refs, all_gone)) != each.body
    }
    fresh = [
        replace(each, body=edits.get(each.number, each.body))
        if isinstance(each, CanvasEdit)
        else replace(
            each,
            move=moves.get(each.number, each.move),
            record=replace(each.record, summary=FORGOTTEN, tool_call=FORGOTTEN, forgotten=True)
            if each.record.ref in refs
            else each.record,
        )
        for each in history
    ]
    return Scrubbed(row=_redrawn(row, fresh), moves=moves, edits=edits)


def _bare_move(move: str | None) -> str:
    try:
        fields: dict[str, Any] = json.loads(move or "{}")
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
    told = tuple(
        replace(node, title=FORGOTTEN, summary=FORGOTTEN) if node.id in nodes else node for node in canvas.nodes
    )
    edges = tuple(without_label(edge) if {edge.source, edge.target} & set(nodes) else edge for edge in canvas.edges)
    goal = FORGOTTEN if all_gone else canvas.task_goal
    return render(replace(canvas, task_goal=goal, nodes=told, edges=edges))


def _bare_patch(body: dict[str, Any], nodes: Collection[str], all_gone: bool) -> None:
    """A patch keeps its shape. Words on groups go: a group may hold one of the nodes by way of others."""
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
