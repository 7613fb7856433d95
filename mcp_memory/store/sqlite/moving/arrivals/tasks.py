"""Canvases as they come in, with their records and edits; one gets another number where its own is taken."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from mcp_memory.core.types import CanvasRow
from mcp_memory.store import carried
from mcp_memory.store.sql import canvases, records
from mcp_memory.store.sql.rows import number_of, session_for
from mcp_memory.store.sqlite.moving.arrivals.desk import GONE, Desk

__all__ = ["canvas"]


def canvas(desk: Desk, row: carried.Canvas, taken: Sequence[carried.Record]) -> None:
    """Take in a canvas; of one that is here, what was done to it since. One that went on here too stays as it is."""
    if desk.is_own:
        desk.names[f"c{row.number}"] = f"c{row.number}"
        desk.known += 1 + len(taken)
        return
    known = desk.find(f"c{row.number}", row.begun, row.origins)
    if known is None:
        number, expected = _free(desk, row.number), 0
        desk.stored += 1
    else:
        number = number_of(known, "c")
        held = canvases.canvas(desk.con, desk.space, number)
        new = [one for one in taken if desk.find(one.id, one.timestamp, one.origins) is None]
        edits = [one for one in row.edits if desk.find(one.id, one.at, one.origins) is None]
        desk.note(f"c{row.number}", row.begun, row.origins, known)
        if not (new or edits) and row.updated <= held.updated:
            desk.known += 1 + len(taken)
            return
        if _went_on(desk, number, row, taken):
            desk.left.append(
                f"Canvas {number:03} went on here and where it came from. It stays as it is here; "
                f"{len(new)} steps from there were left out."
            )
            return
        desk.changed += 1
        expected = held.version
    _write(desk, row, taken, number=number, expected=expected)


def _free(desk: Desk, number: int) -> int:
    taken = desk.con.execute("SELECT 1 FROM canvas WHERE space = ? AND number = ?", (desk.number, number)).get
    return canvases.next_number(desk.con, desk.space) if taken else number


def _went_on(desk: Desk, number: int, row: carried.Canvas, taken: Sequence[carried.Record]) -> bool:
    """Tell whether a canvas has records or edits that are not among those that come in."""
    came = {desk.find(one.id, one.timestamp, one.origins) for one in taken}
    came |= {desk.find(one.id, one.at, one.origins) for one in row.edits}
    here = desk.con.execute(
        "SELECT 'k' || id FROM record WHERE space = ?1 AND canvas = ?2 UNION ALL"
        " SELECT 'e' || id FROM canvas_edit WHERE space = ?1 AND canvas = ?2",
        (desk.number, number),
    )
    return any(id not in came for (id,) in here)


def _write(desk: Desk, row: carried.Canvas, taken: Sequence[carried.Record], *, number: int, expected: int) -> None:
    con = desk.con

    def here(text: str) -> str:
        return text if number == row.number else renumbered(text, row.number, number)

    canvases.save(
        con,
        desk.folder,
        desk.space,
        CanvasRow(
            number=number,
            label=row.label,
            session=row.session,
            text=here(row.text),
            status=row.status,
            folded=row.folded,
            groups=canvases.groups_of(here(json.dumps(row.groups))),
            updated=row.updated,
            version=expected,
        ),
        expected=expected,
        make_active=False,
    )
    desk.note(f"c{row.number}", row.begun, row.origins, f"c{number}")
    lines = defaultdict[str, list[int]](list)
    for one in taken:
        lines[one.session].append(_record(desk, one, number, here))
    for session, numbers in lines.items():
        records.append(con, desk.folder, desk.space, session, numbers)
    edits = [_edit(desk, one, number, here) for one in row.edits]
    canvases.log(con, desk.folder, desk.number, edits=edits, canvas=number)


def _record(desk: Desk, row: carried.Record, canvas: int, here: Any) -> int:
    """Store a record, or the better summary of one that is here."""
    ref = desk.name(row.ref) or row.ref
    path: str | None = desk.con.execute("SELECT path FROM ref WHERE space = ? AND id = ?", (desk.number, ref)).get
    known = desk.find(row.id, row.timestamp, row.origins)
    if known is not None:
        desk.note(row.id, row.timestamp, row.origins, known)
        number = number_of(known, "k")
        desk.con.execute(
            "UPDATE record SET summary = ?, score = ?, summary_by = ? WHERE id = ?",
            (here(row.summary), row.score, row.summary_by, number),
        )
        return number
    number = desk.con.execute(
        "INSERT INTO record (space, session, canvas, node, timestamp, tool_call, summary, result_ref, tool_call_id,"
        " score, tokens_raw, tokens_kept, ref, summary_by, step) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " RETURNING id",
        (
            desk.number,
            session_for(desk.con, desk.number, row.session),
            canvas,
            here(row.node_id),
            row.timestamp.isoformat(),
            here(row.tool_call),
            here(row.summary),
            path or row.result_ref,
            row.tool_call_id,
            row.score,
            row.tokens_raw,
            row.tokens_kept,
            ref,
            row.summary_by,
            None if row.step is None else here(row.step),
        ),
    ).get
    desk.note(row.id, row.timestamp, row.origins, f"k{number}")
    desk.stored += 1
    return number


def _edit(desk: Desk, row: carried.Edit, canvas: int, here: Any) -> int:
    known = desk.find(row.id, row.at, row.origins)
    undone = None if row.undone_at is None else row.undone_at.isoformat()
    if known is not None:
        desk.note(row.id, row.at, row.origins, known)
        desk.con.execute("UPDATE canvas_edit SET undone_at = ? WHERE id = ?", (undone, number_of(known, "e")))
        return number_of(known, "e")
    after = desk.name(row.after) if row.after else GONE
    number: int = desk.con.execute(
        "INSERT INTO canvas_edit (space, canvas, after_record, kind, body, at, work, undone_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            desk.number,
            canvas,
            0 if after == GONE else number_of(after, "k"),
            row.kind,
            here(row.body),
            row.at.isoformat(),
            desk.work("canvas") if row.by_model else None,
            undone,
        ),
    ).get
    desk.note(row.id, row.at, row.origins, f"e{number}")
    return number


def renumbered(text: str, old: int, new: int) -> str:
    """Return a text with the ids of a canvas's nodes and groups, `003-N4`, under another number."""
    return re.sub(rf"(?<![\w-]){old:03}-(?=[NF]\d)", f"{new:03}-", text, flags=re.ASCII)
