"""Canvases in SQLite: their rows and files, what was done to them, and each session's active one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import CanvasRow, Group
from mcp_memory.store import files
from mcp_memory.store.protocol import CanvasEdit, Conflict
from mcp_memory.store.sql.rows import (
    from_ms,
    marks,
    number_of,
    session_for,
    session_id,
    space_for,
    space_id,
    to_ms,
    touch,
)
from mcp_memory.store.sqlite.linefiles import append_lines

__all__ = [
    "FILE",
    "activate",
    "active",
    "canvas",
    "canvas_path",
    "edits",
    "groups_of",
    "groups_text",
    "lines",
    "listed",
    "log",
    "next_number",
    "save",
    "settle_file",
]

FILE = "canvases.jsonl"

_CANVAS = "c.number, c.label, s.name, c.text, c.status, c.folded, c.groups, c.updated, c.version"
_CANVAS_FROM = "FROM canvas c JOIN session s ON s.id = c.session"


def canvas_path(number: int, label: str) -> str:
    return f"mmds/{number:03}-{label}.mmd"


def save(
    con: apsw.Connection,
    folder: Path,
    space: str,
    row: CanvasRow,
    *,
    expected: int,
    make_active: bool = True,
    edits: Sequence[CanvasEdit] = (),
    undo: Sequence[int] = (),
    now: datetime | None = None,
) -> None:
    """See `Store.save_canvas`."""
    space_no = space_for(con, space)
    held = con.execute(
        "SELECT version, label FROM canvas WHERE space = ? AND number = ?", (space_no, row.number)
    ).fetchone()
    if (held[0] if held else 0) != expected:
        raise Conflict
    session = session_for(con, space_no, row.session)
    con.execute(
        "INSERT INTO canvas (space, number, label, session, text, status, folded, groups, updated, version)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET label = excluded.label,"
        " session = excluded.session, text = excluded.text, status = excluded.status, folded = excluded.folded,"
        " groups = excluded.groups, updated = excluded.updated, version = excluded.version",
        (
            space_no,
            row.number,
            row.label,
            session,
            row.text,
            row.status,
            row.folded,
            groups_text(row.groups),
            to_ms(row.updated),
            expected + 1,
        ),
    )
    new = [_add_edit(con, space_no, row.number, edit) for edit in edits]
    con.executemany(
        "UPDATE canvas_edit SET undone_at = ? WHERE id = ? AND space = ? AND canvas = ?",
        [((now or row.updated).isoformat(), edit, space_no, row.number) for edit in undo],
    )
    files.write_whole(folder / canvas_path(row.number, row.label), row.text.encode())
    if held is not None and held[1] != row.label:
        files.remove(folder / canvas_path(row.number, str(held[1])))
    if make_active:
        _set_active(con, space_no, session, row.number, row.updated)
    log(con, folder, space_no, edits=[*undo, *new], canvas=row.number, session=session if make_active else None)
    touch(con, space_no, f"canvas:{row.number:03}")


def settle_file(con: apsw.Connection, folder: Path, space: str, name: str) -> None:
    """Write the file of a canvas as its row has it, and no other; `name` is one that it may have."""
    number = name.partition("-")[0]
    row = con.execute(
        "SELECT label, text FROM canvas WHERE space = ? AND number = ?",
        (space_id(con, space), int(number) if number.isdecimal() else 0),
    ).fetchone()
    due = None if row is None else folder / canvas_path(int(number), str(row[0]))
    for path in (folder / "mmds").glob(f"{number}-*.mmd"):
        if path != due:
            path.unlink(missing_ok=True)
    if row is not None and due is not None:
        files.write_whole(due, str(row[1]).encode())


def activate(
    con: apsw.Connection, folder: Path, space: str, session: str, number: int | None, *, now: datetime
) -> None:
    """See `Store.activate`."""
    space_no = space_for(con, space)
    if number is not None:
        canvas(con, space, number)
    session_no = session_for(con, space_no, session)
    left = con.execute("SELECT active_canvas FROM session WHERE id = ?", (session_no,)).get
    _set_active(con, space_no, session_no, number, now)
    log(con, folder, space_no, session=session_no)
    touch(con, space_no, *(f"canvas:{n:03}" for n in (left, number) if n is not None))


def _set_active(con: apsw.Connection, space: int, session: int, number: int | None, at: datetime) -> None:
    # The clock may go back; what was activated last must still be the last.
    latest = con.execute("SELECT coalesce(max(activated_at), 0) FROM session WHERE space = ?", (space,)).get
    con.execute(
        "UPDATE session SET active_canvas = ?, activated_at = ? WHERE id = ?",
        (number, None if number is None else max(to_ms(at), latest + 1), session),
    )


def active(con: apsw.Connection, space: str, session: str | None) -> CanvasRow | None:
    space_no = space_id(con, space)
    number = con.execute(
        "SELECT active_canvas FROM session WHERE space = ?1 AND active_canvas IS NOT NULL"
        " AND (?2 IS NULL OR name = ?2) ORDER BY activated_at DESC LIMIT 1",
        (space_no, session),
    ).get
    return None if number is None else canvas(con, space, number)


def canvas(con: apsw.Connection, space: str, number: int) -> CanvasRow:
    row = con.execute(
        f"SELECT {_CANVAS} {_CANVAS_FROM} WHERE c.space = ? AND c.number = ?", (space_id(con, space), number)
    ).fetchone()
    if row is None:
        known = ", ".join(f"{c.number:03}" for c in listed(con, space, session=None, label=None, limit=8))
        hint = f"The latest are {known}." if known else "offload_tool_result starts one."
        raise NotFound(f"There is no canvas {number:03} in this space. {hint}")
    return _canvas(row)


def listed(con: apsw.Connection, space: str, *, session: str | None, label: str | None, limit: int) -> list[CanvasRow]:
    space_no = space_id(con, space)
    conditions, values = ["c.space = ?"], [space_no]
    if session is not None:
        conditions.append("c.session = ?")
        values.append(session_id(con, space_no, session))
    rows = con.execute(
        f"SELECT {_CANVAS} {_CANVAS_FROM} WHERE {' AND '.join(conditions)} AND (?{len(values) + 1} IS NULL"
        f" OR c.label = ?{len(values) + 1}) ORDER BY c.updated DESC, c.number DESC LIMIT ?{len(values) + 2}",
        (*values, label, limit),
    )
    return [_canvas(row) for row in rows]


def next_number(con: apsw.Connection, space: str) -> int:
    return con.execute("SELECT coalesce(max(number), 0) + 1 FROM canvas WHERE space = ?", (space_id(con, space),)).get


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
    """Groups were bare lists of ids before they had words of their own."""
    held: dict[str, Any] = json.loads(text)
    return {id: _group(group if isinstance(group, dict) else {"nodes": group}) for id, group in held.items()}


def _group(held: Any) -> Group:
    return Group(tuple(held["nodes"]), held.get("title", ""), held.get("summary", ""))


# --- edits ------------------------------------------------------------------------------------------


def _add_edit(con: apsw.Connection, space: int, number: int, edit: CanvasEdit) -> int:
    return con.execute(
        "INSERT INTO canvas_edit (space, canvas, after_record, kind, body, at, work) SELECT ?1, ?2,"
        " (SELECT coalesce(max(id), 0) FROM record WHERE space = ?1 AND canvas = ?2), ?3, ?4, ?5, ?6 RETURNING id",
        (
            space,
            number,
            edit.kind,
            edit.body,
            edit.at.isoformat(),
            None if edit.work is None else number_of(edit.work, "w"),
        ),
    ).get


def edits(con: apsw.Connection, space: str, number: int) -> list[tuple[int, CanvasEdit]]:
    """Return the edits of a canvas in order, each with the number of the record that it came after."""
    rows: Any = con.execute(
        "SELECT after_record, kind, body, at, work, id, undone_at FROM canvas_edit WHERE space = ? AND canvas = ?"
        " ORDER BY id",
        (space_id(con, space), number),
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


def log(
    con: apsw.Connection,
    folder: Path,
    space: int,
    *,
    edits: Sequence[int] = (),
    canvas: int | None = None,
    session: int | None = None,
) -> None:
    append_lines(
        con,
        folder,
        space,
        FILE,
        [
            *_edit_lines(con, f"id IN ({marks(edits)})", edits),
            *_canvas_lines(con, "c.space = ? AND c.number = ?", (space, canvas or 0)),
            *_session_lines(con, "id = ?", (session or 0,)),
        ],
        rewrite=lambda: lines(con, space),
        whole=True,
    )


def lines(con: apsw.Connection, space: int) -> Iterator[bytes]:
    """Yield the lines of the file of a space's canvases."""
    yield from _edit_lines(con, "space = ?", (space,))
    yield from _canvas_lines(con, "c.space = ?", (space,))
    yield from _session_lines(con, "space = ? AND activated_at IS NOT NULL", (space,))


def _edit_lines(con: apsw.Connection, which: str, values: Sequence[int]) -> Iterator[bytes]:
    names = ("edit", "canvas", "after", "kind", "body", "at", "work", "undone_at")
    rows = con.execute(
        "SELECT id, canvas, after_record, kind, body, at, 'w' || work, undone_at FROM canvas_edit"
        f" WHERE {which} ORDER BY id",
        values,
    )
    return (files.json_line(dict(zip(names, row, strict=True))) for row in rows)


def _canvas_lines(con: apsw.Connection, which: str, values: Sequence[int]) -> Iterator[bytes]:
    names = ("canvas", "label", "of", "version", "updated")
    rows = con.execute(
        f"SELECT c.number, c.label, s.name, c.version, c.updated {_CANVAS_FROM} WHERE {which} ORDER BY c.number", values
    )
    return (files.json_line(dict(zip(names, row, strict=True))) for row in rows)


def _session_lines(con: apsw.Connection, which: str, values: Sequence[int]) -> Iterator[bytes]:
    names = ("session", "active", "activated")
    rows = con.execute(
        f"SELECT name, active_canvas, activated_at FROM session WHERE {which} ORDER BY activated_at, id", values
    )
    return (files.json_line(dict(zip(names, row, strict=True))) for row in rows)
