"""What is left of canvases when tool results on them are forgotten: the way, without the words that told of them.

An edit of the kind `forgotten` stands in the canvas's history where that happened. Replaying the history takes the
words off every node that had a step of a result forgotten now (`wordless`); where the forgetting is undone the edit is
undone with it, and all of them are back.

For a purge the history itself is written anew (`scrubbed`), so that its words are nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import FORGOTTEN, CanvasRow
from mcp_memory.shortterm.canvas.drawing import row_of
from mcp_memory.shortterm.canvas.edits import edit
from mcp_memory.shortterm.canvas.flowchart import Canvas, number_of, parse, render
from mcp_memory.shortterm.canvas.rebuild import replay
from mcp_memory.shortterm.canvas.wordless import without_label
from mcp_memory.store.forgetting import Redrawn, Scrubbed
from mcp_memory.store.protocol import CanvasEdit, Store, TakenStep

__all__ = ["brought_back", "scrubbed", "taken_off"]

_ALL = 1_000_000


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
