"""Records in SQLite: one line for each tool call, in rows and in a session's file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.types import FORGOTTEN, CanvasRow, Record
from mcp_memory.store import files
from mcp_memory.store.protocol import CanvasEdit, TakenStep
from mcp_memory.store.sql import canvases
from mcp_memory.store.sql.rows import marks, session_for, session_id, space_for, space_id
from mcp_memory.store.sqlite.linefiles import append_lines

__all__ = ["COLUMNS", "append", "commit_step", "history", "last_move", "lines", "of_row", "records"]

COLUMNS = (
    "r.timestamp, r.node, r.tool_call, r.summary, r.result_ref, r.tool_call_id, s.name, r.score, r.tokens_raw,"
    " r.tokens_kept, r.ref, r.summary_by"
)
_GONE = "EXISTS (SELECT 1 FROM ref g WHERE g.space = r.space AND g.id = r.ref AND g.tombstone IS NOT NULL)"


def commit_step(
    con: apsw.Connection,
    folder: Path,
    space: str,
    *,
    record: Record,
    row: CanvasRow,
    expected: int,
    move: str | None,
    edits: Sequence[CanvasEdit],
) -> None:
    """See `Store.commit_step`."""
    canvases.save(con, folder, space, row, expected=expected, edits=edits)
    space_no = space_for(con, space)
    session = session_for(con, space_no, record.session)
    number: int = con.execute(
        "INSERT INTO record (space, session, canvas, node, timestamp, tool_call, summary, result_ref, tool_call_id,"
        " score, tokens_raw, tokens_kept, ref, summary_by, step) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " RETURNING id",
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
            record.summary_by,
            move,
        ),
    ).get
    append(con, folder, space, record.session, [number])


def note_replaced(
    con: apsw.Connection,
    folder: Path,
    space: str,
    session: str,
    node: str,
    ref: str,
    *,
    tokens_raw: int,
    tokens_kept: int,
) -> bool:
    """See `Store.note_replaced`."""
    space_no = space_id(con, space)
    number = con.execute(
        "UPDATE record SET tokens_raw = ?, tokens_kept = ? WHERE tokens_kept >= tokens_raw AND id = (SELECT max(id)"
        " FROM record WHERE space = ? AND session = ? AND node = ? AND ref = ?) RETURNING id",
        (tokens_raw, tokens_kept, space_no, session_id(con, space_no, session), node, ref),
    ).get
    if number is None:
        return False
    append(con, folder, space, session, [number])
    return True


def append(con: apsw.Connection, folder: Path, space: str, session: str, numbers: Sequence[int]) -> None:
    """Append the lines of records to their session's file; the rows are there already."""
    space_no = space_for(con, space)
    append_lines(
        con,
        folder,
        space_no,
        f"offload-{session}.jsonl",
        _lines(con, f"r.id IN ({marks(numbers)})", numbers),
        rewrite=lambda: lines(con, space_no, session),
    )


def lines(con: apsw.Connection, space: int, session: str) -> Iterator[bytes]:
    """Yield the lines of a session's file, each record's once."""
    return _lines(con, "r.session = ?", [session_id(con, space, session) or 0])


def _lines(con: apsw.Connection, which: str, values: Sequence[int]) -> Iterator[bytes]:
    rows: Any = con.execute(
        f"SELECT r.id, r.step, {COLUMNS} FROM record r JOIN session s ON s.id = r.session WHERE {which} ORDER BY r.id",
        values,
    )
    for number, step, *row in rows:
        yield files.record_line(of_row(row), number=number, step=step)


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
        f"SELECT {_GONE}, {COLUMNS} FROM record r JOIN session s ON s.id = r.session WHERE {' AND '.join(conditions)}"
        " ORDER BY r.id LIMIT ? OFFSET ?",
        (*values, limit, start),
    )
    return [_without_words(of_row(row)) if gone else of_row(row) for gone, *row in rows]


def _without_words(record: Record) -> Record:
    return replace(record, tool_call=FORGOTTEN, summary=FORGOTTEN, forgotten=True)


def history(con: apsw.Connection, space: str, number: int) -> list[TakenStep | CanvasEdit]:
    """See `Store.canvas_history`."""
    taken: Any = con.execute(
        f"SELECT r.id, r.step, {_GONE}, {COLUMNS} FROM record r JOIN session s ON s.id = r.session"
        " WHERE r.space = ? AND r.canvas = ? ORDER BY r.id",
        (space_id(con, space), number),
    )
    steps = [
        ((id, 0, 0), TakenStep(record=replace(of_row(row), forgotten=bool(gone)), move=move, number=id))
        for id, move, gone, *row in taken
    ]
    done = [((after, 1, edit.number), edit) for after, edit in canvases.edits(con, space, number)]
    return [each for _, each in sorted([*steps, *done], key=lambda pair: pair[0])]


def last_move(con: apsw.Connection, space: str, node: str) -> str | None:
    """See `Store.last_move`."""
    return con.execute(
        "SELECT step FROM record WHERE space = ? AND canvas = ? AND node = ? ORDER BY id DESC LIMIT 1",
        (space_id(con, space), int(node.partition("-")[0]), node),
    ).get


def of_row(row: Sequence[Any]) -> Record:
    """Return the record of a row of `COLUMNS`."""
    timestamp, node, tool_call, summary, result_ref, call, session, score, raw, kept, ref, by = row
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
        summary_by=by,
    )
