"""Imported files and the logs of clients: how far each was read, and which of their messages are stored already."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_memory.store.sql.transaction import Transaction, from_ms, to_ms
from mcp_memory.store.values import FollowedLog, Imported

__all__ = ["files", "known_client_ids", "logs", "note_file", "note_log", "stored_calls"]


def files(tx: Transaction) -> list[Imported]:
    rows = tx.all("SELECT path, sha256, modified, turns, at FROM imported WHERE space = :space ORDER BY at DESC, path")
    return [
        Imported(path=path, sha256=sha256, modified=modified, turns=turns, at=from_ms(at))
        for path, sha256, modified, turns, at in rows
    ]


def note_file(tx: Transaction, file: Imported) -> None:
    """Record that all turns of a file are stored. Equal content at another path replaces the recorded path."""
    tx.make_space()
    tx.run(
        "INSERT INTO imported (space, sha256, path, modified, turns, at) VALUES (:space, ?, ?, ?, ?, ?)"
        " ON CONFLICT (space, sha256) DO UPDATE SET path = excluded.path, modified = excluded.modified,"
        " turns = excluded.turns, at = excluded.at",
        *(file.sha256, file.path, file.modified, file.turns, to_ms(file.at)),
    )


def logs(tx: Transaction, *, path: str | None = None) -> list[FollowedLog]:
    rows = tx.all(
        "SELECT path, client, session, offset, head, tail, state, at FROM followed WHERE space = :space"
        f" {'' if path is None else 'AND path = ?'} ORDER BY at DESC, path",
        *(() if path is None else (path,)),
    )
    names = ("path", "client", "session", "offset", "head", "tail", "state")
    return [FollowedLog(**dict(zip(names, row, strict=True)), at=from_ms(at)) for *row, at in rows]


def note_log(tx: Transaction, log: FollowedLog) -> None:
    tx.make_space()
    tx.run("DELETE FROM followed WHERE space = :space AND path = ?", log.path)
    tx.insert(
        "followed",
        path=log.path,
        client=log.client,
        session=log.session,
        offset=log.offset,
        head=log.head,
        tail=log.tail,
        state=log.state,
        at=to_ms(log.at),
    )


def known_client_ids(tx: Transaction, ids: Sequence[str]) -> dict[str, bool]:
    """Return those of the ids that a turn of any session has, and whether it is forgotten."""
    query = "SELECT client_id FROM turn WHERE space = :space {} AND client_id IN ({{}})"
    here = {id for (id,) in tx.among(query.format("AND tombstone IS NULL"), ids)}
    return {id: id not in here for (id,) in tx.among(query.format(""), ids)}


def stored_calls(tx: Transaction, session: str, ids: Sequence[str]) -> set[str]:
    query = "SELECT tool_call_id FROM {} WHERE space = :space AND session = ? AND tool_call_id IN ({{}})"
    found = (*tx.among(query.format("record"), ids, tx.session(session)), *tx.among(query.format("ref"), ids, session))
    return {id for (id,) in found}
