"""Logs of clients: how far each was read, and which of their messages and tool calls are here already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from mcp_memory.store.protocol import FollowedLog
from mcp_memory.store.sql.rows import from_ms, marks, session_id, space_for, space_id, to_ms

__all__ = ["kept_calls", "known_turns", "listed", "note"]

_AT_ONCE = 500
_COLUMNS = "path, client, session, offset, head, tail, state, at"


def listed(con: apsw.Connection, space: str, *, path: str | None) -> list[FollowedLog]:
    """See `Store.followed_logs`."""
    space_no = space_id(con, space)
    one = "" if path is None else "AND path = ?"
    rows: Any = con.execute(
        f"SELECT {_COLUMNS} FROM followed WHERE space = ? {one} ORDER BY at DESC, path",
        (space_no,) if path is None else (space_no, path),
    )
    return [
        FollowedLog(
            path=found,
            client=client,
            session=session,
            offset=offset,
            head=head,
            tail=tail,
            state=state,
            at=from_ms(at),
        )
        for found, client, session, offset, head, tail, state, at in rows
    ]


def note(con: apsw.Connection, space: str, log: FollowedLog) -> None:
    """See `Store.note_followed`."""
    con.execute(
        f"INSERT OR REPLACE INTO followed (space, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            space_for(con, space),
            log.path,
            log.client,
            log.session,
            log.offset,
            log.head,
            log.tail,
            log.state,
            to_ms(log.at),
        ),
    )


def known_turns(con: apsw.Connection, space: str, ids: Sequence[str]) -> dict[str, bool]:
    """See `Store.known_client_ids`."""
    query = "SELECT client_id FROM turn WHERE space = ?1 AND {} client_id IN"
    number = space_id(con, space)
    here = set(_among(con, query.format("tombstone IS NULL AND"), ids, number))
    return {id: id not in here for id in _among(con, query.format(""), ids, number)}


def kept_calls(con: apsw.Connection, space: str, session: str, ids: Sequence[str]) -> set[str]:
    """See `Store.kept_calls`."""
    number = space_id(con, space)
    query = "SELECT tool_call_id FROM {} WHERE space = ?1 AND session = ?2 AND tool_call_id IN"
    return {
        *_among(con, query.format("record"), ids, number, session_id(con, number, session)),
        *_among(con, query.format("ref"), ids, number, session),
    }


def _among(con: apsw.Connection, query: str, ids: Sequence[str], *about: int | str | None) -> Iterator[str]:
    wanted = list(dict.fromkeys(ids))
    for start in range(0, len(wanted), _AT_ONCE):
        some = wanted[start : start + _AT_ONCE]
        for (id,) in con.execute(f"{query} ({marks(some)})", (*about, *some)):
            yield str(id)
