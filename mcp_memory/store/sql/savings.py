"""Edits of message lists, and the ledger of what was saved and spent."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

import apsw

from mcp_memory.store.economy import MessageEdit, Saved, Saving, SavingKind
from mcp_memory.store.protocol import Conflict
from mcp_memory.store.sql.rows import space_for, space_id, to_ms

__all__ = ["add_saving", "message_edits", "put_message_edits", "savings"]

ONE_CALL_MS = 1_000
"""What happens within so short a time belongs to one call of the model: parallel tool calls, one after the other."""

_EDIT = "e.id, e.session, e.before, e.after, e.shown, e.texts, e.note, e.refs, e.calls"
_HELD = (
    " AND NOT EXISTS (SELECT 1 FROM json_each(e.refs) j JOIN ref r ON r.space = e.space AND r.id = j.value"
    " WHERE r.tombstone IS NOT NULL)"
)


def message_edits(
    con: apsw.Connection, space: str, *, shown: Sequence[str], reaching: Sequence[str]
) -> list[MessageEdit]:
    """See `Store.message_edits`."""
    found: dict[int, MessageEdit] = {}
    for column, wanted in (("shown", shown), ("after", reaching)):
        if wanted:
            rows: Any = con.execute(
                f"SELECT {_EDIT} FROM message_edit e WHERE e.space = ? AND e.{column} IN"
                f" (SELECT value FROM json_each(?)){_HELD}",
                (space_id(con, space), json.dumps(list(wanted))),
            )
            found.update({edit.id: edit for edit in map(_edit, rows)})
    return [found[id] for id in sorted(found)]


def put_message_edits(
    con: apsw.Connection, space: str, edits: Sequence[MessageEdit], *, seen: int, saving: Saving
) -> None:
    """See `Store.put_message_edits`."""
    space_no = space_for(con, space)
    newer: Any = con.execute(
        f"SELECT 1 FROM message_edit e WHERE e.space = ? AND e.id > ? AND e.after IN (SELECT value FROM json_each(?))"
        f"{_HELD} LIMIT 1",
        (space_no, seen, json.dumps([edit.after for edit in edits])),
    ).get
    if newer:
        raise Conflict
    con.executemany(
        "INSERT INTO message_edit (space, session, before, after, shown, texts, note, refs, calls, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                space_no,
                edit.session,
                edit.before,
                edit.after,
                edit.shown,
                json.dumps(edit.texts),
                edit.note,
                json.dumps(edit.refs),
                edit.calls,
                to_ms(saving.at),
            )
            for edit in edits
        ],
    )
    _add(con, space_no, saving)


def add_saving(con: apsw.Connection, space: str, saving: Saving) -> None:
    """See `Store.add_saving`."""
    _add(con, space_for(con, space), saving)


def savings(con: apsw.Connection, space: str, *, since: datetime | None) -> list[Saved]:
    """See `Store.savings`."""
    rows: Any = con.execute(
        "SELECT session, at, kind, saved, spent, cache_broken FROM saving WHERE space = ? AND at >= ?"
        " ORDER BY session, at DESC, id DESC",
        (space_id(con, space), 0 if since is None else to_ms(since)),
    )
    sums: dict[SavingKind, list[int]] = {}
    for kind, saved, spent, broken, later in _with_later_calls(rows):
        held = sums.setdefault(kind, [0] * 6)
        for at, value in enumerate((1, saved, spent, broken, saved * later, spent * later)):
            held[at] += value
    return [
        Saved(
            kind=kind,
            times=times,
            saved=saved,
            spent=spent,
            cache_broken=broken,
            saved_later=saved_later,
            spent_later=spent_later,
        )
        for kind, (times, saved, spent, broken, saved_later, spent_later) in sorted(sums.items())
    ]


def _with_later_calls(rows: Any) -> Iterator[tuple[SavingKind, int, int, int, int]]:
    """Rows, newest first in each session, with how many calls of the model must have come after each."""
    session, last, later = None, 0, 0
    for name, at, kind, saved, spent, broken in rows:
        if name != session:
            session, last, later = name, at, 0
        if last - at >= ONE_CALL_MS:
            later, last = later + 1, at
        yield kind, saved, spent, broken, later


def _add(con: apsw.Connection, space: int, saving: Saving) -> None:
    con.execute(
        "INSERT INTO saving (space, session, at, kind, saved, spent, cache_broken) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (space, saving.session, to_ms(saving.at), saving.kind, saving.saved, saving.spent, saving.cache_broken),
    )


def _edit(row: Any) -> MessageEdit:
    id, session, before, after, shown, texts, note, refs, calls = row
    return MessageEdit(
        id=id,
        session=session,
        before=before,
        after=after,
        shown=shown,
        texts={int(part): text for part, text in json.loads(texts).items()},
        note=note,
        refs=tuple(json.loads(refs)),
        calls=calls,
    )
