"""Turn metadata of spaces, kept in memory by each process and updated before each use.

Turns are appended and never change, so cached columns stay valid; only the forgotten turns are queried each time.
Columns are read from a covering index, `turn_outline`: 5 MB per 100,000 turns, without the texts.

Totals: the number of rows of a space in each layer and its newest row, from which the rarity of terms is computed.
They count one space only: a total over all spaces would let the rows of one space change the scores of another.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mcp_memory.store.sql.transaction import Transaction, to_ms
from mcp_memory.store.sqlite.index.terms import states_rule
from mcp_memory.store.sqlite.migrations import OUTLINE_ASKS, OUTLINE_SIZE
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters, Layer, Totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.core.types import Role

__all__ = ["Outlines", "TotalsCache"]

_ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")
_A_FEW = 2_000  # new turns that are merged into cached columns; with more, all turns are read again


class Outlines:
    """The cache of turn metadata, one per store; safe to use from several threads."""

    def __init__(self) -> None:
        self._known: dict[int, _Columns] = {}
        self._lock = threading.Lock()

    def of(self, tx: Transaction, filters: Filters) -> TurnMetadata:
        """Return the turn metadata of a space, with the turns that pass the filters."""
        with self._lock:
            columns = self._known[tx.space] = _refreshed(tx, self._known.get(tx.space))
        return replace(columns.outline, passes=_passing(tx, columns.outline, filters))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    outline: TurnMetadata
    positions: NDArray[np.int64]
    upto: int


def _refreshed(tx: Transaction, known: _Columns | None) -> _Columns:
    newest: int = tx.get("SELECT coalesce(max(id), 0) FROM turn WHERE space = :space")
    if known is not None and newest <= known.upto:  # below, where a reader beside this one sees a later moment
        return known
    if known is None or newest - known.upto > _A_FEW:
        return _read(tx, newest, "INDEXED BY turn_outline WHERE space = :space")
    fresh = _read(tx, newest, f"WHERE space = :space AND id > {known.upto}", who=known.outline.who)
    return _merged(known, fresh)


def _read(tx: Transaction, upto: int, those: str, *, who: dict[int, tuple[Role, str | None]] | None = None) -> _Columns:
    """Read columns as text, one row per session: five times as fast as a Python object for each number."""
    import numpy as np

    code = "CASE role " + " ".join(f"WHEN '{role}' THEN {number}" for number, role in enumerate(_ROLES)) + " END"
    columns = " || ' ' || ".join(("id", "position", "said_at", OUTLINE_SIZE, OUTLINE_ASKS, code))
    found = tx.all(
        f"SELECT session, count(*), group_concat({columns}, ' ' ORDER BY position) FROM turn {those}"
        " AND role <> 'note' GROUP BY session ORDER BY session"
    )
    table = np.fromstring(" ".join(text for _, _, text in found), np.int64, sep=" ")
    rows, positions, said_at, sizes, asks, speakers = table.reshape(-1, 6).T.copy()  # each column in one piece
    place_of_row = _place_of_row(rows, upto)
    who = dict(who or {number: (role, None) for number, role in enumerate(_ROLES)})
    numbers = {speaker: number for number, speaker in who.items()}
    for role, name, ids in tx.all(
        f"SELECT role, name, group_concat(id, ' ') FROM turn {those} AND role <> 'note' AND name IS NOT NULL"
        " GROUP BY role, name"
    ):
        number = numbers.setdefault((role, name), len(numbers))
        who[number] = (role, name)
        speakers[place_of_row[np.fromstring(ids, np.int64, sep=" ")]] = number
    outline = TurnMetadata(
        rows=rows,
        sessions=np.repeat([session for session, _, _ in found], [count for _, count, _ in found]).astype(np.int64),
        said_at=said_at,
        sizes=sizes,
        speakers=speakers,
        asks=asks.astype(bool),
        passes=np.ones(len(rows), bool),
        who=who,
        place_of_row=place_of_row,
    )
    return _Columns(outline=outline, positions=positions, upto=upto)


def _merged(known: _Columns, fresh: _Columns) -> _Columns:
    """Insert a few new turns at their places, usually the ends of their sessions."""
    import numpy as np

    old, new = known.outline, fresh.outline
    at = np.searchsorted(_keys(old.sessions, known.positions), _keys(new.sessions, fresh.positions))

    def both(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
        return np.insert(before, at, after)

    rows = both(old.rows, new.rows)
    outline = TurnMetadata(
        rows=rows,
        sessions=both(old.sessions, new.sessions),
        said_at=both(old.said_at, new.said_at),
        sizes=both(old.sizes, new.sizes),
        speakers=both(old.speakers, new.speakers),
        asks=both(old.asks, new.asks),
        passes=np.ones(len(rows), bool),
        who=new.who,
        place_of_row=_place_of_row(rows, fresh.upto),
    )
    return _Columns(outline=outline, positions=both(known.positions, fresh.positions), upto=fresh.upto)


def _keys(sessions: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    return (sessions << 32) + positions


def _place_of_row(rows: NDArray[np.int64], upto: int) -> NDArray[np.int32]:
    import numpy as np

    places = np.full(upto + 1, -1, np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    return places


def _passing(tx: Transaction, outline: TurnMetadata, filters: Filters) -> NDArray[np.bool_]:
    import numpy as np

    passes = np.ones(len(outline.rows), bool)
    forgotten = tx.column(
        "SELECT id FROM turn INDEXED BY turn_forgotten WHERE tombstone IS NOT NULL AND space = :space"
    )
    if forgotten:
        passes[outline.places(np.array(forgotten, np.int64))] = False
    if filters.since is not None:
        passes &= outline.said_at >= to_ms(filters.since)
    if filters.until is not None:
        passes &= outline.said_at < to_ms(filters.until)
    if filters.upto is not None:
        passes &= outline.rows <= filters.upto
    if filters.session is not None:
        number = tx.session(filters.session)
        passes &= outline.sessions == (-1 if number is None else number)
    if filters.role is not None:
        passes &= np.isin(outline.speakers, [code for code, (role, _) in outline.who.items() if role == filters.role])
    if filters.states_rule:
        stating = tx.column(f"SELECT r.id FROM turn r WHERE r.space = :space AND {states_rule(tx.space)}")
        passes &= np.isin(outline.rows, np.array(stating, np.int64))
    return passes


class TotalsCache:
    """The cache of row counts, one per store; kept until a change, because counting reads all rows of a space."""

    def __init__(self, outlines: Outlines) -> None:
        self._outlines = outlines
        self._known: dict[tuple[Layer, int], tuple[tuple[int, int], Totals]] = {}

    def of(self, tx: Transaction, layer: Layer) -> Totals:
        if layer == "turn":
            rows = self._outlines.of(tx, Filters()).rows
            return Totals(rows=len(rows), newest=int(rows.max(initial=0)))
        newest = f"SELECT coalesce(max(id), 0) FROM {layer} WHERE space = :space"
        state = tx.get("SELECT coalesce(max(seq), 0) FROM change"), tx.get(newest)
        known = self._known.get((layer, tx.space))
        if known is None or known[0] != state:
            counted = tx.get(f"SELECT count(*) FROM {layer} WHERE space = :space")
            known = self._known[layer, tx.space] = state, Totals(rows=counted, newest=state[1])
        return known[1]
