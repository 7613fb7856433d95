"""Canvases: their rows and files, the edits that were made to them, and each session's active one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import CanvasRow, Group
from mcp_memory.store import files
from mcp_memory.store.sql import jobs
from mcp_memory.store.sql.transaction import Transaction, Value, from_ms, marks, number_of, to_ms
from mcp_memory.store.values import CanvasEdit, CanvasGrowth, Conflict

__all__ = [
    "FILE",
    "activate",
    "active",
    "canvas",
    "edits",
    "groups_of",
    "groups_text",
    "growth",
    "lines",
    "listed",
    "log",
    "must_be_at",
    "next_number",
    "path_of",
    "save",
]

FILE = "canvases.jsonl"

_CANVAS = "c.number, c.label, s.name, c.text, c.status, c.folded, c.groups, c.updated, c.version"
_FROM = "FROM canvas c JOIN session s ON s.space = c.space AND s.id = c.session"


def path_of(number: int, label: str) -> str:
    return f"mmds/{number:03}-{label}.mmd"


def save(
    tx: Transaction,
    canvas: CanvasRow,
    *,
    expected: int,
    edits: Sequence[CanvasEdit] = (),
    undo: Sequence[int] = (),
    now: datetime | None = None,
    make_active: bool = False,
) -> None:
    tx.make_space()
    stored = tx.one("SELECT version, label FROM canvas WHERE space = :space AND number = ?", canvas.number)
    if (stored[0] if stored else 0) != expected:
        raise Conflict
    session = tx.make_session(canvas.session)
    tx.run(
        "INSERT INTO canvas (space, number, label, session, text, status, folded, groups, updated, version)"
        " VALUES (:space, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, number) DO UPDATE SET label = excluded.label,"
        " session = excluded.session, text = excluded.text, status = excluded.status, folded = excluded.folded,"
        " groups = excluded.groups, updated = excluded.updated, version = excluded.version",
        *(canvas.number, canvas.label, session, canvas.text, canvas.status, canvas.folded),
        *(groups_text(canvas.groups), to_ms(canvas.updated), expected + 1),
    )
    new = [_add_edit(tx, canvas.number, edit) for edit in edits]
    tx.many(
        "UPDATE canvas_edit SET undone_at = ? WHERE space = :space AND id = ? AND canvas = ?",
        [((now or canvas.updated).isoformat(), edit, canvas.number) for edit in undo],
    )
    tx.files.write(path_of(canvas.number, canvas.label), canvas.text.encode())
    if stored is not None and stored[1] != canvas.label:
        tx.files.remove(path_of(canvas.number, stored[1]))
    if make_active:
        _set_active(tx, session, canvas.number, canvas.updated)
    log(tx, edits=[*undo, *new], canvas=canvas.number, session=session if make_active else None)
    tx.touch(f"canvas:{canvas.number:03}")


def must_be_at(tx: Transaction, rows: Sequence[CanvasRow]) -> None:
    """Raise Conflict, before any file is written, where a canvas is no longer at the version of its row."""
    if any(canvas(tx, row.number).version != row.version for row in rows):
        raise Conflict


def activate(tx: Transaction, session: str, number: int | None, *, now: datetime) -> None:
    if number is not None:
        canvas(tx, number)
    session_no = tx.make_session(session)
    left = tx.get("SELECT active_canvas FROM session WHERE space = :space AND id = ?", session_no)
    _set_active(tx, session_no, number, now)
    log(tx, session=session_no)
    tx.touch(*(f"canvas:{n:03}" for n in (left, number) if n is not None))


def _set_active(tx: Transaction, session: int, number: int | None, at: datetime) -> None:
    # The clock may go back; what was activated last must still be the last.
    latest = tx.get("SELECT coalesce(max(activated_at), 0) FROM session WHERE space = :space")
    tx.run(
        "UPDATE session SET active_canvas = ?, activated_at = ? WHERE space = :space AND id = ?",
        *(number, None if number is None else max(to_ms(at), latest + 1), session),
    )


def active(tx: Transaction, session: str | None = None) -> CanvasRow | None:
    only = "" if session is None else "AND name = ?"
    number = tx.get(
        f"SELECT active_canvas FROM session WHERE space = :space AND active_canvas IS NOT NULL {only}"
        " ORDER BY activated_at DESC LIMIT 1",
        *(() if session is None else (session,)),
    )
    return None if number is None else canvas(tx, number)


def canvas(tx: Transaction, number: int) -> CanvasRow:
    row = tx.one(f"SELECT {_CANVAS} {_FROM} WHERE c.space = :space AND c.number = ?", number)
    if row is None:
        known = ", ".join(f"{c.number:03}" for c in listed(tx, limit=8))
        hint = f"The latest are {known}." if known else "offload_tool_result starts one."
        raise NotFound(f"There is no canvas {number:03} in this space. {hint}")
    return _canvas(row)


def listed(
    tx: Transaction, *, session: str | None = None, label: str | None = None, limit: int = 100
) -> list[CanvasRow]:
    conditions, values = ["c.space = :space"], list[Value]()
    for column, value in (("s.name", session), ("c.label", label)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    rows = tx.all(
        f"SELECT {_CANVAS} {_FROM} WHERE {' AND '.join(conditions)} ORDER BY c.updated DESC, c.number DESC LIMIT ?",
        *(*values, limit if limit >= 0 else 2**62),
    )
    return [_canvas(row) for row in rows]


def next_number(tx: Transaction) -> int:
    return tx.get("SELECT coalesce(max(number), 0) + 1 FROM canvas WHERE space = :space")


def _canvas(row: Sequence[Any]) -> CanvasRow:
    number, label, session, text, status, folded, groups, updated, version = row
    return CanvasRow(
        number=number,
        label=label,
        session=session,
        text=text,
        status=status,
        folded=bool(folded),
        groups=groups_of(groups),
        updated=from_ms(updated),
        version=version,
    )


def groups_text(groups: dict[str, Group]) -> str:
    return json.dumps({id: asdict(group) for id, group in groups.items()}, ensure_ascii=False)


def groups_of(text: str) -> dict[str, Group]:
    found: dict[str, Any] = json.loads(text)
    return {
        id: Group(tuple(group["nodes"]), group.get("title", ""), group.get("summary", ""))
        for id, group in found.items()
    }


# --- what a model looks over ------------------------------------------------------------------------


def growth(tx: Transaction, *, since: datetime) -> list[CanvasGrowth]:
    """Return canvases with records that no model has looked over, most first."""
    rows = tx.all(
        "SELECT c.number, c.status, r.id FROM canvas c CROSS JOIN record r ON r.space = c.space AND r.canvas = c.number"
        " WHERE c.space = :space AND c.updated >= ? ORDER BY c.number DESC, r.id",
        to_ms(since),
    )
    seen = jobs.looked_over(tx)
    found: dict[int, CanvasGrowth] = {}
    for number, status, record in rows:
        if record > seen.get(number, 0):
            steps = found[number].steps if number in found else 0
            found[number] = CanvasGrowth(canvas=number, status=status, steps=steps + 1, upto=record)
    return sorted(found.values(), key=lambda one: -one.steps)


# --- edits ------------------------------------------------------------------------------------------


def _add_edit(tx: Transaction, number: int, edit: CanvasEdit) -> int:
    after = tx.get("SELECT coalesce(max(id), 0) FROM record WHERE space = :space AND canvas = ?", number)
    id = tx.next("canvas_edit")
    tx.insert(
        "canvas_edit",
        id=id,
        canvas=number,
        after_record=after,
        kind=edit.kind,
        body=edit.body,
        at=edit.at.isoformat(),
        work=None if edit.work is None else number_of(edit.work, "w"),
    )
    return id


def edits(tx: Transaction, number: int) -> list[tuple[int, CanvasEdit]]:
    """Return the edits of a canvas in order, each with the number of the record that it came after."""
    rows = tx.all(
        "SELECT after_record, kind, body, at, work, id, undone_at FROM canvas_edit"
        " WHERE space = :space AND canvas = ? ORDER BY id",
        number,
    )
    return [
        (
            after,
            CanvasEdit(
                kind=kind,
                body=body,
                at=datetime.fromisoformat(at),
                work=None if work is None else f"w{work}",
                number=id,
                undone=None if undone is None else datetime.fromisoformat(undone),
            ),
        )
        for after, kind, body, at, work, id, undone in rows
    ]


# --- the file ---------------------------------------------------------------------------------------
# With the records of the sessions, `canvases.jsonl` is enough to have every canvas again without its row. Of lines
# with the same `edit`, `canvas` alone, or `session` alone, the last counts.


def log(tx: Transaction, *, edits: Sequence[int] = (), canvas: int | None = None, session: int | None = None) -> None:
    tx.files.append(
        FILE,
        [
            *_edit_lines(tx, f"id IN ({marks(edits)})", *edits),
            *_canvas_lines(tx, "c.number = ?", canvas or 0),
            *_session_lines(tx, "id = ?", session or 0),
        ],
        rewrite=lambda: lines(tx),
        whole=True,
    )


def lines(tx: Transaction) -> Iterator[bytes]:
    """Yield the lines of the file of a space's canvases."""
    yield from _edit_lines(tx, "1 = 1")
    yield from _canvas_lines(tx, "1 = 1")
    yield from _session_lines(tx, "activated_at IS NOT NULL")


def _edit_lines(tx: Transaction, which: str, *values: Value) -> Iterator[bytes]:
    return _lines(
        tx,
        ("edit", "canvas", "after", "kind", "body", "at", "work", "undone_at"),
        "SELECT id, canvas, after_record, kind, body, at, 'w' || work, undone_at FROM canvas_edit"
        f" WHERE space = :space AND {which} ORDER BY id",
        *values,
    )


def _canvas_lines(tx: Transaction, which: str, *values: Value) -> Iterator[bytes]:
    return _lines(
        tx,
        ("canvas", "label", "of", "version", "updated"),
        f"SELECT c.number, c.label, s.name, c.version, c.updated {_FROM} WHERE c.space = :space AND {which}"
        " ORDER BY c.number",
        *values,
    )


def _session_lines(tx: Transaction, which: str, *values: Value) -> Iterator[bytes]:
    return _lines(
        tx,
        ("session", "active", "activated"),
        f"SELECT name, active_canvas, activated_at FROM session WHERE space = :space AND {which}"
        " ORDER BY activated_at, id",
        *values,
    )


def _lines(tx: Transaction, names: Sequence[str], sql: str, *values: Value) -> Iterator[bytes]:
    return (files.json_line(dict(zip(names, row, strict=True))) for row in tx.all(sql, *values))
