"""Canvases: their rows, files and numbered versions, and the active canvas of each session.

A canvas consists of its nodes and edges (`text`), its groups, and fields such as its label and status. Every change,
also an undo, commits the next version in the same transaction. A version is never changed; only a purge erases it.

A version stores its label and the other fields in full, and the text and groups as a delta from the previous version
(see `deltas`). The first version is stored whole, and so is a version after the row was changed by another program,
which `crc` detects. After 2,000 offloads, each a separate step, the text is 450 KB, all deltas are 610 KB,
`canvases.jsonl` is 1.1 MB, and reading the last version from its deltas takes 0.2 s. So all versions are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any
from zlib import crc32

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import CanvasRow, Group
from mcp_memory.store import deltas
from mcp_memory.store.row_types import SessionRow, VersionRow
from mcp_memory.store.sql import job_rows, row_codec
from mcp_memory.store.sql.line_forms import line_of
from mcp_memory.store.sql.transaction import Transaction, Value, from_ms, to_ms
from mcp_memory.store.values import CanvasChange, CanvasGrowth, CanvasVersion, Conflict

FILE = "canvases.jsonl"
IMPORTED = "imported"
"""The kind of a version that was imported without its history."""

_CANVAS = "c.number, c.label, s.name, c.text, c.status, c.folded, c.groups, c.updated, c.version"
_FROM = "FROM canvas c JOIN session s ON s.space = c.space AND s.id = c.session"


def path_of(number: int, label: str) -> str:
    return f"mmds/{number:03}-{label}.mmd"


def save(
    tx: Transaction,
    canvas: CanvasRow,
    *,
    expected: int,
    kind: str = "edited",
    detail: str = "",
    job: int | None = None,
    make_active: bool = False,
) -> None:
    """Commit the next version of a canvas, which may be new, without adding a record.

    Raises Conflict if its current version is not `expected` (0 for a new canvas). The active canvas of its session is
    changed only with `make_active`. `job` is the number of the job that made the version, if any.
    """
    tx.make_space()
    stored = tx.one(
        "SELECT c.version, c.label, c.groups, c.text, v.crc FROM canvas c LEFT JOIN canvas_version v"
        " ON v.space = c.space AND v.canvas = c.number AND v.version = c.version"
        " WHERE c.space = :space AND c.number = ?",
        canvas.number,
    )
    if (stored[0] if stored else 0) != expected:
        raise Conflict
    session, groups = _put(tx, canvas, version=expected + 1)
    before, after = None, document(groups, canvas.text)
    if stored is not None and crc_of(previous := document(stored[2], stored[3])) == stored[4]:
        before = previous
    tx.insert(
        "canvas_version",
        canvas=canvas.number,
        version=expected + 1,
        kind=kind,
        detail=detail,
        label=canvas.label,
        session=session,
        status=canvas.status,
        folded=canvas.folded,
        updated=to_ms(canvas.updated),
        work=job,
        crc=crc_of(after),
        delta=deltas.delta(before, after),
    )
    _outdate_files(tx, canvas.number, canvas.label, *([stored[1]] if stored is not None else []))
    if make_active:
        _set_active(tx, session, canvas.number, canvas.updated)
    log(tx, canvas=canvas.number, since=expected + 1, session=session if make_active else None)
    tx.touch(f"canvas:{canvas.number:03}")


def _outdate_files(tx: Transaction, number: int, *labels: str) -> None:
    """Mark the files of a canvas as outdated.

    The file under its current label is rewritten; files under its former labels are deleted.
    """
    tx.files.outdate(*(path_of(number, label) for label in dict.fromkeys(labels)))


def _put(tx: Transaction, canvas: CanvasRow, *, version: int) -> tuple[int, str]:
    """Write the row of a canvas. Return the number of its session, and its groups in their stored form."""
    session, groups = tx.make_session(canvas.session), groups_text(canvas.groups)
    tx.run(
        "INSERT INTO canvas (space, number, label, session, text, status, folded, groups, updated, version)"
        " VALUES (:space, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (space, number) DO UPDATE SET label = excluded.label,"
        " session = excluded.session, text = excluded.text, status = excluded.status, folded = excluded.folded,"
        " groups = excluded.groups, updated = excluded.updated, version = excluded.version",
        *(canvas.number, canvas.label, session, canvas.text, canvas.status, canvas.folded),
        *(groups, to_ms(canvas.updated), version),
    )
    return session, groups


def take_over(tx: Transaction, canvas: CanvasRow, history: Sequence[dict[str, Value]]) -> None:
    """Store a canvas from another home.

    `history` replaces the stored versions of the canvas. If it is empty, the canvas is stored as the next version.
    """
    if not history:
        save(tx, canvas, expected=canvas.version, kind=IMPORTED)
        return
    label = tx.get("SELECT label FROM canvas WHERE space = :space AND number = ?", canvas.number)
    _put(tx, canvas, version=int(str(history[-1]["version"])))
    tx.run("DELETE FROM canvas_version WHERE space = :space AND canvas = ?", canvas.number)
    for version in history:
        tx.insert("canvas_version", **version)
    _outdate_files(tx, canvas.number, canvas.label, *([label] if label is not None else []))
    log(tx, canvas=canvas.number)
    tx.touch(f"canvas:{canvas.number:03}")


def patch(tx: Transaction, job: int | None, changes: Sequence[CanvasChange]) -> None:
    """Commit consecutive versions of one canvas. Every row has the version that the canvas had before the first change.

    Raises Conflict if the canvas is no longer at that version. `job` is the number of the job that made the versions.
    """
    for version, new in enumerate(changes):
        save(tx, new.row, expected=new.row.version + version, kind=new.kind, detail=new.detail, job=job)


def change(tx: Transaction, changes: Sequence[CanvasChange]) -> None:
    """Commit the next version of each of these canvases.

    Raises, before anything is changed, NotFound if any of them is unknown, and Conflict if any is no longer at the
    version of its row.
    """
    must_be_at(tx, [new.row for new in changes])
    for new in changes:
        save(tx, new.row, expected=new.row.version, kind=new.kind, detail=new.detail)


def must_be_at(tx: Transaction, rows: Sequence[CanvasRow]) -> None:
    """Raise Conflict if any of these canvases is no longer at the version of its row, NotFound if it is unknown."""
    if any(canvas(tx, row.number).version != row.version for row in rows):
        raise Conflict


def activate(tx: Transaction, session: str, number: int | None, *, now: datetime) -> None:
    """Set the active canvas of a session; None means no canvas. Raises NotFound for an unknown canvas."""
    if number is not None:
        canvas(tx, number)
    session_no = tx.make_session(session)
    left = tx.get("SELECT active_canvas FROM session WHERE space = :space AND id = ?", session_no)
    _set_active(tx, session_no, number, now)
    log(tx, session=session_no)
    tx.touch(*(f"canvas:{n:03}" for n in (left, number) if n is not None))


def _set_active(tx: Transaction, session: int, number: int | None, at: datetime) -> None:
    # The clock may go back; the last activated canvas must still be the last.
    latest = tx.get("SELECT coalesce(max(activated_at), 0) FROM session WHERE space = :space")
    tx.run(
        "UPDATE session SET active_canvas = ?, activated_at = ? WHERE space = :space AND id = ?",
        *(number, None if number is None else max(to_ms(at), latest + 1), session),
    )


def active_canvas(tx: Transaction, session: str | None = None) -> CanvasRow | None:
    """Return the active canvas of a session; with None, the latest active canvas of the space."""
    only = "" if session is None else "AND name = ?"
    number = tx.get(
        f"SELECT active_canvas FROM session WHERE space = :space AND active_canvas IS NOT NULL {only}"
        " ORDER BY activated_at DESC LIMIT 1",
        *(() if session is None else (session,)),
    )
    return None if number is None else canvas(tx, number)


def canvas(tx: Transaction, number: int, *, version: int | None = None) -> CanvasRow:
    """Return a canvas, or one of its versions. Raises NotFound if it is unknown or the version is lost or damaged."""
    if version is not None:
        return _read_version(tx, number, version)
    row = tx.one(f"SELECT {_CANVAS} {_FROM} WHERE c.space = :space AND c.number = ?", number)
    if row is None:
        latest = ", ".join(f"{c.number:03}" for c in list_canvases(tx, limit=8))
        hint = f"The latest are {latest}." if latest else "offload_tool_result starts one."
        raise NotFound(f"There is no canvas {number:03} in this space. {hint}")
    return _canvas(row)


def list_canvases(
    tx: Transaction, *, session: str | None = None, label: str | None = None, limit: int = 100
) -> list[CanvasRow]:
    """Return canvases, latest updated first; all of them if `limit` is negative."""
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
    """Return the next unused number of a canvas; `record_rows.commit_step` raises Conflict if it was taken since."""
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
    """Return groups as JSON, in the order of their numbers."""
    ordered = sorted(groups.items(), key=lambda entry: (len(entry[0]), entry[0]))
    return json.dumps({id: asdict(group) for id, group in ordered}, ensure_ascii=False)


def groups_of(text: str) -> dict[str, Group]:
    groups: dict[str, Any] = json.loads(text)
    return {
        id: Group(tuple(group["nodes"]), group.get("title", ""), group.get("summary", ""))
        for id, group in groups.items()
    }


# --- versions ---------------------------------------------------------------------------------------


def document(groups: str, text: str) -> str:
    """Return the groups and the text of a canvas as one text, from which the deltas of versions are computed."""
    return f"{groups}\n{text}"


def parts_of(document: str) -> tuple[str, str]:
    """Return the groups and the text of a canvas, from the text that `document` returns."""
    groups, _, text = document.partition("\n")
    return groups, text


def crc_of(document: str) -> int:
    return crc32(document.encode("utf-8", "surrogatepass"))


def versions(tx: Transaction, number: int) -> list[CanvasVersion]:
    """Return the versions of a canvas, oldest first. Empty for an unknown canvas."""
    rows = tx.all(
        "SELECT version, kind, detail, label, work, delta IS NULL FROM canvas_version"
        " WHERE space = :space AND canvas = ? ORDER BY version",
        number,
    )
    return [
        CanvasVersion(
            number=version,
            kind=kind,
            detail=detail,
            label=label,
            work=None if work is None else f"w{work}",
            is_erased=bool(erased),
        )
        for version, kind, detail, label, work, erased in rows
    ]


def _read_version(tx: Transaction, number: int, version: int) -> CanvasRow:
    rows = tx.all(
        "SELECT v.label, s.name, v.status, v.folded, v.updated, v.version, v.crc, v.delta FROM canvas_version v"
        " JOIN session s ON s.space = v.space AND s.id = v.session WHERE v.space = :space AND v.canvas = ?"
        " AND v.version BETWEEN (SELECT max(w.version) FROM canvas_version w WHERE w.space = :space AND w.canvas = ?"
        " AND w.version <= ? AND substr(w.delta, 1, 1) = '\"') AND ? ORDER BY v.version",
        *(number, number, version, version),
    )
    missing = NotFound(f"Version {version} of canvas {number:03} is not kept, or what it is made of is damaged.")
    if not rows or rows[-1][5] != version:
        raise missing
    label, session, status, folded, updated, _, crc, _ = rows[-1]
    try:
        content = deltas.combine(row[-1] for row in rows)
        groups, text = parts_of(content)
        if crc_of(content) != crc:
            raise missing
        return _canvas((number, label, session, text, status, folded, groups, updated, version))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise missing from None


def read_newest(tx: Transaction, number: int) -> CanvasRow:
    """Return a canvas rebuilt from its newest version. Raises NotFound if the versions are incomplete."""
    newest = tx.get("SELECT max(version) FROM canvas_version WHERE space = :space AND canvas = ?", number)
    return _read_version(tx, number, newest or 0)


def redraw(tx: Transaction, number: int) -> tuple[CanvasRow, bool]:
    """Rewrite the row and file of a canvas from its newest version. Return the canvas, and whether its row differed.

    Raises NotFound if the canvas is unknown or its versions are incomplete.
    """
    row, now = canvas(tx, number), read_newest(tx, number)
    _put(tx, now, version=now.version)
    _outdate_files(tx, number, now.label, row.label)
    tx.touch(f"canvas:{number:03}")
    return now, now != row


def draw(tx: Transaction, number: int) -> None:
    """Restore the row of a canvas from its newest version.

    If versions are missing and the row has no text, the text is read from the file of the canvas.
    """
    row = canvas(tx, number)
    try:
        now = read_newest(tx, number)
    except NotFound:
        text = tx.files.read(path_of(number, row.label))
        now = replace(row, text=text.decode(errors="replace")) if text and not row.text else row
    if now != row:
        _put(tx, now, version=now.version)


def differing_canvases(tx: Transaction) -> list[int]:
    """Return the numbers of the canvases whose row differs from their newest version.

    Canvases with incomplete versions are left out.
    """
    numbers: list[int] = []
    for row in list_canvases(tx, limit=-1):
        with suppress(NotFound):  # its versions are incomplete
            numbers += [] if read_newest(tx, row.number) == row else [row.number]
    return sorted(numbers)


def erase_history(tx: Transaction, number: int) -> list[str]:
    """Erase the texts and labels of the earlier versions of a canvas, and store its current version whole.

    Returns the erased labels.
    """
    groups, text, version, label = tx.one(
        "SELECT groups, text, version, label FROM canvas WHERE space = :space AND number = ?", number
    ) or ("{}", "", 0, "")
    sql = "SELECT DISTINCT label FROM canvas_version WHERE space = :space AND canvas = ? AND label <> ?"
    labels: list[str] = tx.column(sql, number, label)
    tx.run(
        "UPDATE canvas_version SET delta = NULL WHERE space = :space AND canvas = ? AND version < ?", number, version
    )
    tx.run(
        "UPDATE canvas_version SET delta = ?, crc = ? WHERE space = :space AND canvas = ? AND version = ?",
        *(deltas.delta(None, document(groups, text)), crc_of(document(groups, text)), number, version),
    )
    tx.run("UPDATE canvas_version SET label = ? WHERE space = :space AND canvas = ?", label, number)
    return labels


# --- reviews by a model -----------------------------------------------------------------------------


def growth(tx: Transaction, *, since: datetime) -> list[CanvasGrowth]:
    """Return canvases updated since a moment that have records newer than their last review by a model.

    The canvas with the most such records comes first.
    """
    rows = tx.all(
        "SELECT c.number, c.status, r.id FROM canvas c CROSS JOIN record r ON r.space = c.space AND r.canvas = c.number"
        " WHERE c.space = :space AND c.updated >= ? ORDER BY c.number DESC, r.id",
        to_ms(since),
    )
    seen = job_rows.last_reviewed(tx)
    grown: dict[int, CanvasGrowth] = {}
    for number, status, record in rows:
        if record > seen.get(number, 0):
            steps = grown[number].steps if number in grown else 0
            grown[number] = CanvasGrowth(canvas=number, status=status, steps=steps + 1, upto=record)
    return sorted(grown.values(), key=lambda canvas: -canvas.steps)


# --- the file ---------------------------------------------------------------------------------------
# `canvases.jsonl` is enough to have every canvas again, at each of its versions, without its row. Of lines with the
# same `canvas` and `version`, or `session` alone, the last counts.


def log(tx: Transaction, *, canvas: int = 0, since: int = 0, session: int | None = None) -> None:
    tx.files.append(
        FILE,
        [
            *_version_lines(tx, "r.canvas = ? AND r.version >= ?", canvas, since),
            *_session_lines(tx, "r.id = ?", session or 0),
        ],
    )


def lines(tx: Transaction) -> Iterator[bytes]:
    """Yield all lines of `canvases.jsonl`."""
    yield from _version_lines(tx, "1 = 1")
    yield from _session_lines(tx, "r.activated_at IS NOT NULL")


def _version_lines(tx: Transaction, which: str, *values: Value) -> Iterator[bytes]:
    yield from map(line_of, row_codec.rows(tx, VersionRow, f"{which} ORDER BY r.canvas, r.version", *values))


def _session_lines(tx: Transaction, which: str, *values: Value) -> Iterator[bytes]:
    which = f"{which} ORDER BY r.activated_at, r.id"
    yield from map(line_of, row_codec.rows(tx, SessionRow, which, *values, read=None, batches=0, scene=None))
