"""The short-term side in SQLite: refs, records, canvases, each session's active one, and their files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.errors import Damaged, NotFound
from mcp_memory.store import files
from mcp_memory.store.protocol import Conflict, NewRef
from mcp_memory.store.sqlite.linefiles import append_lines
from mcp_memory.store.sqlite.rows import from_ms, session_for, session_id, space_for, space_id, to_ms, touch
from mcp_memory.text import one_line
from mcp_memory.types import CanvasRow, Record, Ref

__all__ = [
    "activate",
    "active_canvas",
    "canvas",
    "canvas_path",
    "canvases",
    "commit_step",
    "next_number",
    "put_ref",
    "read_ref",
    "records",
    "ref",
    "save_canvas",
]

_REF = "id, path, tool, arguments, tool_call_id, session, timestamp, bytes, sha256, content_type"
_RECORD = (
    "r.timestamp, r.node, r.tool_call, r.summary, r.result_ref, r.tool_call_id, s.name, r.score, r.tokens_raw,"
    " r.tokens_kept, r.ref"
)
_CANVAS = "c.number, c.label, s.name, c.text, c.status, c.folded, c.groups, c.updated, c.version"
_CANVAS_FROM = "FROM canvas c JOIN session s ON s.id = c.session"


# --- refs -------------------------------------------------------------------------------------------


def put_ref(con: apsw.Connection, folder: Path, space: str, new: NewRef) -> Ref:
    """See `Store.put_ref`. The file comes first: a kill leaves at worst a file that nothing points at."""
    space_no = space_for(con, space)
    digest = hashlib.sha256(new.data).hexdigest()
    for length in (12, 16, 24, 64):  # 48 bits can collide in a long life; then the id grows
        id = f"r-{digest[:length]}"
        known = _find_ref(con, space_no, id, forgotten=True)
        if known is None or known[0].sha256 == digest:
            break
    else:
        raise AssertionError("two contents with one SHA-256")
    if known is not None and not known[1] and _intact(folder / known[0].path):
        return known[0]
    found = Ref(
        id=id,
        path=files.ref_name(new.tool, new.timestamp.date().isoformat(), id[2:]) if known is None else known[0].path,
        tool=new.tool,
        arguments=new.arguments,
        tool_call_id=new.tool_call_id,
        session=new.session,
        timestamp=new.timestamp,
        bytes=len(new.data),
        sha256=digest,
        content_type=new.content_type,
    )
    files.write_whole(folder / found.path, files.ref_file(found, new.data))
    con.execute(
        f"INSERT OR REPLACE INTO ref (space, {_REF}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            space_no,
            found.id,
            found.path,
            found.tool,
            json.dumps(found.arguments),
            found.tool_call_id,
            found.session,
            found.timestamp.isoformat(),
            found.bytes,
            found.sha256,
            found.content_type,
        ),
    )
    touch(con, space_no, f"ref:{found.id}")
    return found


def ref(con: apsw.Connection, space: str, id: str) -> Ref:
    wanted = id.strip() if id.strip().startswith("r-") else f"r-{id.strip()}"
    found = _find_ref(con, space_id(con, space), wanted, forgotten=False)
    if found is None:
        raise NotFound(f"There is no ref {one_line(id, 40)!r} in this space. Refs look like r-9f2c1a7b3d4e.")
    return found[0]


def read_ref(folder: Path, found: Ref) -> bytes:
    """Return the raw bytes of a ref, checked against the hash in the database and the one in the file."""
    path = folder / found.path
    try:
        fields, data = files.read_ref_file(path.read_bytes())
    except FileNotFoundError:
        raise Damaged(f"The file of {found.id} is missing: {path}. Restore it from a backup.") from None
    except Damaged as error:
        raise Damaged(f"The file of {found.id} is damaged: {error}. It is left as it is: {path}.") from None
    if fields["sha256"] != found.sha256:
        raise Damaged(f"The file of {found.id} holds other bytes than were stored. It is left as it is: {path}.")
    return data


def _intact(path: Path) -> bool:
    try:
        files.read_ref_file(path.read_bytes())
    except (FileNotFoundError, Damaged):
        return False
    return True


def _find_ref(con: apsw.Connection, space: int | None, id: str, *, forgotten: bool) -> tuple[Ref, bool] | None:
    row: Any = con.execute(f"SELECT {_REF}, tombstone FROM ref WHERE space = ? AND id = ?", (space, id)).fetchone()
    if row is None or (row[-1] is not None and not forgotten):
        return None
    id, path, tool, arguments, call, session, timestamp, size, digest, content_type, tombstone = row
    return Ref(
        id=id,
        path=path,
        tool=tool,
        arguments=json.loads(arguments),
        tool_call_id=call,
        session=session,
        timestamp=datetime.fromisoformat(timestamp),
        bytes=size,
        sha256=digest,
        content_type=content_type,
    ), tombstone is not None


# --- canvases ---------------------------------------------------------------------------------------


def canvas_path(number: int, label: str) -> str:
    return f"mmds/{number:03}-{label}.mmd"


def save_canvas(
    con: apsw.Connection, folder: Path, space: str, row: CanvasRow, *, expected: int, make_active: bool = True
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
            json.dumps(row.groups),
            to_ms(row.updated),
            expected + 1,
        ),
    )
    files.write_whole(folder / canvas_path(row.number, row.label), row.text.encode())
    if held is not None and held[1] != row.label:
        (folder / canvas_path(row.number, str(held[1]))).unlink(missing_ok=True)
    if make_active:
        _set_active(con, space_no, session, row.number, row.updated)
    touch(con, space_no, f"canvas:{row.number:03}")


def activate(con: apsw.Connection, space: str, session: str, number: int | None, *, now: datetime) -> None:
    """See `Store.activate`."""
    space_no = space_for(con, space)
    if number is not None:
        canvas(con, space, number)
    session_no = session_for(con, space_no, session)
    left = con.execute("SELECT active_canvas FROM session WHERE id = ?", (session_no,)).get
    _set_active(con, space_no, session_no, number, now)
    touch(con, space_no, *(f"canvas:{n:03}" for n in (left, number) if n is not None))


def _set_active(con: apsw.Connection, space: int, session: int, number: int | None, at: datetime) -> None:
    # The clock may go back; what was activated last must still be the last.
    latest = con.execute("SELECT coalesce(max(activated_at), 0) FROM session WHERE space = ?", (space,)).get
    con.execute(
        "UPDATE session SET active_canvas = ?, activated_at = ? WHERE id = ?",
        (number, None if number is None else max(to_ms(at), latest + 1), session),
    )


def active_canvas(con: apsw.Connection, space: str, session: str | None) -> CanvasRow | None:
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
        known = ", ".join(f"{c.number:03}" for c in canvases(con, space, session=None, label=None, limit=8))
        hint = f"The latest are {known}." if known else "offload_tool_result starts one."
        raise NotFound(f"There is no canvas {number:03} in this space. {hint}")
    return _canvas(row)


def canvases(
    con: apsw.Connection, space: str, *, session: str | None, label: str | None, limit: int
) -> list[CanvasRow]:
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
        groups=json.loads(groups),
        updated=from_ms(updated),
        version=version,
    )


# --- records ----------------------------------------------------------------------------------------


def commit_step(
    con: apsw.Connection, folder: Path, space: str, *, record: Record, row: CanvasRow, expected: int
) -> None:
    """See `Store.commit_step`."""
    save_canvas(con, folder, space, row, expected=expected)
    space_no = space_for(con, space)
    session = session_for(con, space_no, record.session)
    con.execute(
        "INSERT INTO record (space, session, canvas, node, timestamp, tool_call, summary, result_ref, tool_call_id,"
        " score, tokens_raw, tokens_kept, ref) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            space_no,
            session,
            row.number,
            record.node_id,
            record.timestamp.isoformat(),
            record.tool_call,
            record.summary,
            record.result_ref,
            record.tool_call_id,
            record.score,
            record.tokens_raw,
            record.tokens_kept,
            record.ref,
        ),
    )

    def whole_session() -> Iterator[bytes]:
        for held in records(con, space, node=None, session=record.session, ref=None, call=None, start=0, limit=-1):
            yield files.record_line(held)

    append_lines(
        con,
        folder,
        space_no,
        f"offload-{record.session}.jsonl",
        [files.record_line(record)],
        rewrite=whole_session,
    )


def records(
    con: apsw.Connection,
    space: str,
    *,
    node: str | None,
    session: str | None,
    ref: str | None,
    call: str | None,
    start: int,
    limit: int,
) -> list[Record]:
    """See `Store.records`; a negative limit means all."""
    space_no = space_id(con, space)
    conditions: list[str] = ["r.space = ?"]
    values: list[int | str | None] = [space_no]
    if node is not None:
        number, _, step = node.partition("-")
        conditions.append("r.canvas = ?")
        values.append(int(number) if number.isdecimal() else -1)
        if step:
            conditions.append("r.node = ?")
            values.append(node)
    for column, value in (("r.ref", ref), ("r.tool_call_id", call)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    if session is not None:
        conditions.append("r.session = ?")
        values.append(session_id(con, space_no, session))
    rows = con.execute(
        f"SELECT {_RECORD} FROM record r JOIN session s ON s.id = r.session WHERE {' AND '.join(conditions)}"
        " ORDER BY r.id LIMIT ? OFFSET ?",
        (*values, limit, start),
    )
    return [_record(row) for row in rows]


def _record(row: Sequence[Any]) -> Record:
    timestamp, node, tool_call, summary, result_ref, call, session, score, raw, kept, ref = row
    return Record(
        timestamp=datetime.fromisoformat(timestamp),
        node_id=node,
        tool_call=tool_call,
        summary=summary,
        result_ref=result_ref,
        tool_call_id=call,
        offloaded=True,
        session=session,
        score=score,
        tokens_raw=raw,
        tokens_kept=kept,
        ref=ref,
    )
