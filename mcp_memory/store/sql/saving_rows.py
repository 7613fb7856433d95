"""Edits of message lists, and the ledger of the tokens that were saved and spent."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from mcp_memory.store.sql import row_codec
from mcp_memory.store.sql.transaction import Transaction, from_ms, to_ms
from mcp_memory.store.values import Conflict, MessageEdit, Saved, Saving, SavingKind

ONE_CALL_MS = 1_000
"""Events within this time belong to one call of the model, whose parallel tool calls are recorded one by one."""


def message_edits(tx: Transaction, *, shown: Sequence[str] = (), reaching: Sequence[str] = ()) -> list[MessageEdit]:
    """Return edits whose `shown` is in `shown` or whose `after` is in `reaching`, oldest first.

    Edits that name a forgotten ref are left out.
    """
    query = f"SELECT {row_codec.columns(MessageEdit)} {row_codec.tables(MessageEdit)} {{}} IN ({{{{}}}})"
    rows = *tx.among(query.format("r.shown"), shown), *tx.among(query.format("r.after"), reaching)
    edits = {edit.id: edit for edit in (MessageEdit(**row_codec.fields_of(MessageEdit, row)) for row in rows)}
    gone = set(tx.column("SELECT id FROM ref WHERE space = :space AND tombstone IS NOT NULL")) if edits else set[str]()
    return [edits[id] for id in sorted(edits) if gone.isdisjoint(edits[id].refs)]


def put_message_edits(tx: Transaction, edits: Sequence[MessageEdit], *, seen: int, saving: Saving) -> None:
    """Store edits together with their saving.

    Raises Conflict, storing nothing, if a stored edit with an id above `seen` has the same `after` as a new edit.
    """
    if any(edit.id > seen for edit in message_edits(tx, reaching=[edit.after for edit in edits])):
        raise Conflict
    tx.make_space()
    first = tx.next("message_edit", len(edits))
    for number, edit in enumerate(edits, start=first):
        tx.insert("message_edit", **row_codec.values_of(replace(edit, id=number)), at=to_ms(saving.at))
    add_saving(tx, saving)


def add_saving(tx: Transaction, saving: Saving) -> None:
    tx.make_space()
    tx.insert("saving", **row_codec.values_of(saving), id=tx.next("saving"))


def savings(tx: Transaction, *, since: datetime | None = None) -> list[Saved]:
    """Return the sums of all savings, or of the savings since a moment, by kind."""
    return _sums(_since(tx, since))


def savings_between(tx: Transaction, moments: Sequence[datetime]) -> list[list[Saved]]:
    """Return the sums of savings from each moment to the next, and from the last moment on.

    The moments must be in order. The sums add up to `savings` since the first moment, because a later call counts in
    the period of the saving it repeats.
    """
    bounds = [to_ms(moment) for moment in moments]
    shares: list[list[Any]] = [[] for _ in bounds]
    for row in _since(tx, moments[0]) if moments else ():
        shares[bisect(bounds, row[0]) - 1].append(row)
    return [_sums(share) for share in shares]


def savings_of_sessions(tx: Transaction, *, since: datetime) -> list[tuple[str, datetime, list[Saved]]]:
    """Return the sums of savings of each session with the time of its last saving, the latest first."""
    rows = groupby(_rows(tx, since), key=itemgetter(0))
    by_session = [(str(session), list(of)) for session, of in rows]
    by_session.sort(key=lambda session_rows: session_rows[1][0][1], reverse=True)
    return [(session, from_ms(of[0][1]), _sums(_with_later_calls(of))) for session, of in by_session]


def _since(tx: Transaction, since: datetime | None) -> Iterator[Any]:
    return _with_later_calls(_rows(tx, since))


def _rows(tx: Transaction, since: datetime | None) -> list[Any]:
    return tx.all(
        "SELECT session, at, kind, saved, spent, cache_broken FROM saving WHERE space = :space AND at >= ?"
        " ORDER BY session DESC, at DESC, id DESC",  # an index, read backwards
        0 if since is None else to_ms(since),
    )


def _sums(rows: Iterable[Any]) -> list[Saved]:
    sums: dict[SavingKind, list[int]] = {}
    for _, kind, saved, spent, broken, later in rows:
        totals = sums.get(kind) or sums.setdefault(kind, [0] * 6)
        totals[0] += 1
        totals[1] += saved
        totals[2] += spent
        totals[3] += broken
        totals[4] += saved * later
        totals[5] += spent * later
    names = ("times", "saved", "spent", "cache_broken", "saved_later", "spent_later")
    return [Saved(kind=kind, **dict(zip(names, values, strict=True))) for kind, values in sorted(sums.items())]


def _with_later_calls(rows: Any) -> Iterator[tuple[int, SavingKind, int, int, int, int]]:
    """Yield rows of the ledger, each with the number of later model calls of its session, up to the next compaction.

    The rows of a session must be ordered from the newest to the oldest. Rows about compactions are not yielded.
    """
    session, last, later = None, 0, 0
    for name, at, kind, saved, spent, broken in rows:
        if name != session:
            session, last, later = name, at, 0
        if kind == "compacted":
            later, last = 0, at
            continue
        if last - at >= ONE_CALL_MS:
            later, last = later + 1, at
        yield at, kind, saved, spent, broken, later
