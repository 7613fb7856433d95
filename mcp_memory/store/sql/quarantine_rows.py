"""Quarantine: turns and atoms that automatic recall leaves out until a person has reviewed them, and the verdicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.store.sql.transaction import Transaction, from_ms, marks, to_ms
from mcp_memory.store.values import UNJUDGED, Held, Verdict, quarantines

_OF_ATOM = "FROM held h WHERE h.space = r.space AND h.id = 'a' || r.id"
_WAITS = "(h.verdict IS NULL OR h.verdict = 'kept')"
_QUARANTINED = f"{_OF_ATOM} AND {_WAITS}"
OF_ATOM = f"(SELECT h.reasons {_QUARANTINED})"
"""The reasons why a row `r` of atoms is quarantined, as JSON; NULL if it is not."""
DOUBTS_OF_ATOM = f"(SELECT h.reasons {_OF_ATOM} AND h.verdict = 'labelled')"
"""The doubts that label a row `r` of atoms, as JSON; NULL if there are none."""
PASSES = f"NOT EXISTS (SELECT 1 {_QUARANTINED})"
TURN_PASSES = f"NOT EXISTS (SELECT 1 FROM held h WHERE h.space = r.space AND h.id = 't' || r.id AND {_WAITS})"
"""The conditions that a row `r` of atoms, or of turns, is not quarantined."""
NOT_AMONG_QUARANTINED = (
    "r.id NOT IN (SELECT CAST(substr(h.id, 2) AS BIGINT) FROM held h"
    f" WHERE h.space = :space AND h.id > 'a' AND h.id < 'b' AND {_WAITS})"
)
"""The condition `PASSES` for many rows of the space: the quarantined rows are read once, not looked up for each row."""

THERE = (
    "CASE substr({id}, 1, 1) WHEN 't' THEN EXISTS (SELECT 1 FROM turn st WHERE st.space = {space}"
    " AND st.id = CAST(substr({id}, 2) AS BIGINT) AND st.tombstone IS NULL)"
    " ELSE EXISTS (SELECT 1 FROM atom st WHERE st.space = {space}"
    " AND st.id = CAST(substr({id}, 2) AS BIGINT) AND st.tombstone IS NULL) END"
)
"""The condition that a turn or atom, given as an expression for `t12` or `a5`, was not forgotten."""

ONLY_UNJUDGED = f"""'["{UNJUDGED}"]'"""
"""The reasons of a turn that is not judged yet, as an SQL string."""
NOT_SUSPECTED = (
    "NOT EXISTS (SELECT 1 FROM held h WHERE h.space = r.space AND h.id = 't' || r.id"
    f" AND {_WAITS} AND h.reasons <> {ONLY_UNJUDGED})"
)
"""The condition that a row `r` of turns is not quarantined for what it says. It may wait for its judgement."""
HELD = f"FROM held h WHERE h.space = :space AND {THERE.format(id='h.id', space='h.space')}"
"""The rows of a space that are not forgotten and were ever quarantined or labelled."""
WAITING = f"h.verdict IS NULL AND h.reasons <> {ONLY_UNJUDGED}"
"""The condition that a row of `HELD` waits for the review of a person."""
MAY_HAVE_ATTACKS = (
    "(EXISTS (SELECT 1 FROM chunk WHERE space = :space)"
    f" OR EXISTS (SELECT 1 FROM held h WHERE h.space = :space AND (h.reasons <> {ONLY_UNJUDGED}"
    " OR EXISTS (SELECT 1 FROM turn t WHERE t.space = h.space AND t.id = CAST(substr(h.id, 2) AS BIGINT)"
    " AND t.role = 'tool'))))"
)
"""The condition that a space may contain the text of an attack.

This is so if there are chunks of tool results, which are judged only when they are shown, turns of tools that are not
judged, or rows that have or had other reasons for quarantine.
"""
_FEW = 200  # rows
_COLUMNS = "h.id, h.reasons, h.at, h.verdict, h.reviewed_at"


def note(tx: Transaction, row_reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
    """Quarantine rows for the given reasons; if the reasons are only doubts, label the rows instead.

    Rows that have reasons already are not changed.
    """
    tx.run_rows(
        "INSERT INTO held (space, id, reasons, at, verdict) VALUES {} ON CONFLICT DO NOTHING",
        "(:space, ?, ?, ?, ?)",
        [
            (id, json.dumps(list(why)), to_ms(now), None if quarantines(why) else "labelled")
            for id, why in row_reasons.items()
            if why
        ],
    )


def quarantine(tx: Transaction, row_reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
    """Quarantine turns and atoms (`t8`, `a5`) like `note`, and announce the change.

    Rows that come with `NewTurn.held` or `NewAtom.held` are quarantined as they are stored.
    """
    tx.make_space()
    note(tx, row_reasons, now=now)
    tx.touch(*_topics(row_reasons))


def list_quarantined(
    tx: Transaction, ids: Iterable[str] | None = None, *, decided: bool = False, limit: int = 100
) -> list[Held]:
    """Return rows that wait for review, newest first; with `decided`, reviewed rows, latest review first.

    With `ids`, return all of these rows that are quarantined, not judged yet, reviewed or labelled (see `Held`), in the
    order of `ids`. Forgotten rows are left out.
    """
    if not tx.has_any("held"):
        return []
    if ids is not None and tx.known is not None and (few := _all_if_few(tx)) is not None:
        return [few[id] for id in dict.fromkeys(ids) if id in few]
    if ids is None:
        by_person = "h.verdict IN ('released', 'kept') ORDER BY h.reviewed_at DESC"
        which = by_person if decided else f"{WAITING} ORDER BY h.at DESC"
        return [_read_held(row) for row in tx.all(f"SELECT {_COLUMNS} {HELD} AND {which}, h.id LIMIT ?", limit)]

    def read(new_ids: Sequence[str]) -> dict[str, Held]:
        rows = tx.all(f"SELECT {_COLUMNS} {HELD} AND h.id IN ({marks(new_ids)})", *new_ids)
        return {row.id: row for row in map(_read_held, rows)}

    return list(tx.once("held", ids, read).values())


def _all_if_few(tx: Transaction) -> Mapping[str, Held] | None:
    """Return all rows of a space that `list_quarantined` knows, by id, read once in a snapshot; None if they are many.

    Most spaces have few, and a verb asks for the rows of each of its lists.
    """

    def read(_: object) -> dict[str, list[Held]]:
        return {"all": [_read_held(row) for row in tx.all(f"SELECT {_COLUMNS} {HELD} LIMIT {_FEW + 1}")]}

    rows = tx.once("all held", ["all"], read)["all"]
    return {row.id: row for row in rows} if len(rows) <= _FEW else None


def may_have_attacks(tx: Transaction) -> bool:
    """Return whether the space may contain the text of an attack."""
    return bool(tx.get(f"SELECT {MAY_HAVE_ATTACKS}"))


def unjudged(tx: Transaction, *, limit: int) -> list[str]:
    """Return the ids of turns that are not judged and not reviewed, oldest first."""
    marked = f'%"{UNJUDGED}"%'
    which = "h.verdict IS NULL AND substr(h.id, 1, 1) = 't' AND h.reasons LIKE ? ORDER BY h.at, h.id LIMIT ?"
    return tx.column(f"SELECT h.id {HELD} AND {which}", marked, limit)


def judge(tx: Transaction, row_reasons: Mapping[str, Sequence[str]], *, now: datetime) -> None:
    """Replace the reason `UNJUDGED` of rows by the reasons found; rows without any reason leave quarantine.

    Rows that were judged, reviewed or forgotten meanwhile stay as they are. The space is due for the scheduler.
    """
    where = "WHERE space = :space AND verdict IS NULL AND id"
    stored = {
        id: reasons(text) for id, text in tx.among(f"SELECT id, reasons FROM held {where} IN ({{}})", row_reasons)
    }
    left = {
        id: [reason for reason in dict.fromkeys((*before, *row_reasons[id])) if reason != UNJUDGED]
        for id, before in stored.items()
        if UNJUDGED in before
    }
    tx.run_among(f"DELETE FROM held {where} IN ({{}})", [id for id, why in left.items() if not why])
    tx.many(
        f"UPDATE held SET reasons = ?, at = ? {where} = ?",
        [(json.dumps(why), to_ms(now), id) for id, why in left.items() if why],
    )
    tx.touch(*_topics(left))


def review(tx: Transaction, ids: Sequence[str], verdict: Verdict | None, *, now: datetime) -> list[Held]:
    """Store the decision on quarantined rows, and return the rows. A decision may be changed later; None revokes it.

    Raises NotFound, changing nothing, if `list_quarantined` would leave out any of `ids`.
    """
    reviewable = {row.id for row in list_quarantined(tx, ids)}
    missing = [one_line(id, 40) for id in ids if id not in reviewable]
    if missing:
        raise NotFound(
            f"Not held for review: {', '.join(missing[:10])}. Nothing was changed; `review` lists the held rows."
        )
    tx.many(
        "UPDATE held SET verdict = ?, reviewed_at = ? WHERE space = :space AND id = ?",
        [(verdict, to_ms(now) if verdict else None, id) for id in ids],
    )
    tx.touch(*_topics(ids))
    return list_quarantined(tx, ids)


def reasons(text: str | None) -> tuple[str, ...]:
    """Return the reasons from the JSON that `OF_ATOM` and `DOUBTS_OF_ATOM` select."""
    return () if text is None else tuple(json.loads(text))


def _topics(ids: Iterable[str]) -> list[str]:
    return [f"atom:{id}" for id in ids if id.startswith("a")]


def _read_held(row: Sequence[Any]) -> Held:
    id, why, at, verdict, reviewed = row
    return Held(
        id=id,
        reasons=tuple(json.loads(why)),
        at=from_ms(at),
        verdict=verdict,
        reviewed_at=None if reviewed is None else from_ms(reviewed),
    )
