"""Turn metadata of spaces, kept in memory by each process and updated before each use.

Turns are appended and never change, so cached columns stay valid; only the forgotten turns are queried each time.
Columns are read from a covering index, `turn_outline`, without the texts. In memory they take 3 MB per 100,000 turns.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from mcp_memory.core.lru import LRU
from mcp_memory.store.sql.filters import CLIENT, where
from mcp_memory.store.sql.transaction import Transaction, to_ms
from mcp_memory.store.sqlite.migrations import OUTLINE_ASKS, OUTLINE_SIZE
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters, Layer, Totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.core.types import Role


_ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")
_MOST_TURNS = 2_000_000  # in the columns of all spaces: 60 MB
_FEWEST = 8_000  # turns that a smaller space counts as, so that there are 250 spaces at most
_KINDS = ("int32", "int32", "int32", "int64", "int32", "bool", "int32")
"""The types of the columns that are read: sessions, rows, positions, said_at, sizes, asks, speakers."""
_SESSIONS = 200  # parsed at a time
_A_FEW = 2_000  # new turns that are merged into cached columns; with more, all turns are read again


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """All turns of a space up to row `upto`, ordered by session and position, in the columns of `TurnMetadata`."""

    rows: NDArray[np.int32]
    sessions: NDArray[np.int32]
    positions: NDArray[np.int32]
    said_at: NDArray[np.int64]
    sizes: NDArray[np.int32]
    speakers: NDArray[np.int32]
    asks: NDArray[np.bool_]
    who: dict[int, tuple[Role, str | None]]
    place_of_row: NDArray[np.int32]
    """By row number; −1 if the row is not a turn of this space."""
    upto: int
    totals: Totals


class Outlines:
    """The cache of turn metadata, one per store; safe to use from several threads."""

    def __init__(self) -> None:
        self._known = LRU[int, _Columns](_MOST_TURNS, weigh=lambda columns: max(_FEWEST, len(columns.rows)))
        self._lock = threading.Lock()

    def of(self, tx: Transaction, rows: NDArray[np.int64], *, filters: Filters, reach: int) -> TurnMetadata:
        """See `Store.turn_metadata`."""
        import numpy as np

        columns = self._of(tx)
        places = _around(columns, _places(columns, rows), reach)
        sessions = columns.sessions[places]
        gaps = (np.diff(places) > 1) | (np.diff(sessions) != 0)
        return TurnMetadata(
            rows=columns.rows[places].astype(np.int64),
            sessions=sessions.astype(np.int64),
            stretches=np.concatenate(([0], np.cumsum(gaps)))[: len(places)],
            said_at=columns.said_at[places],
            sizes=columns.sizes[places].astype(np.int64),
            speakers=columns.speakers[places].astype(np.int64),
            asks=columns.asks[places],
            passes=_which_pass(tx, columns, filters, places),
            who=columns.who,
        )

    def passing(self, tx: Transaction, filters: Filters) -> NDArray[np.int64]:
        """Return the row numbers of the turns of a space that pass the filters and are not forgotten."""
        columns = self._of(tx)
        return columns.rows[_which_pass(tx, columns, filters)].astype("int64")

    def totals(self, tx: Transaction) -> Totals:
        return self._of(tx).totals

    def _of(self, tx: Transaction) -> _Columns:
        with self._lock:
            return self._known.put(tx.space, _refresh(tx, self._known.get(tx.space)))


def passing_rows(tx: Transaction, layer: Layer, filters: Filters, outlines: Outlines) -> NDArray[np.int64]:
    """Return the row numbers of a layer of a space that pass the filters. In a snapshot, atoms are read once."""
    import numpy as np

    if layer == "turn":
        return outlines.passing(tx, filters)

    def read(several: Sequence[Filters]) -> dict[Filters, NDArray[np.int64]]:
        numbers: dict[Filters, NDArray[np.int64]] = {}
        for each in several:
            condition, values = where(tx, layer, each)
            # As one text: SQLite hands over single numbers at a third of the speed.
            listed = tx.get(f"SELECT group_concat(r.id, ' ') FROM {layer} r WHERE {condition}", *values)
            numbers[each] = np.fromstring(listed or "", np.int64, sep=" ")
        return numbers

    return tx.once(f"passing {layer}", [filters], read)[filters]


def _places(columns: _Columns, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of those rows that are in the columns."""
    places = columns.place_of_row[rows[rows < len(columns.place_of_row)]]
    return places[places >= 0].astype("int64")


def _around(columns: _Columns, places: NDArray[np.int64], reach: int) -> NDArray[np.int64]:
    """Return the given places and all places within `reach` in the same session, in order and without duplicates."""
    import numpy as np

    chosen = np.zeros(len(columns.rows), bool)
    chosen[places] = True
    if reach:
        around = places[:, None] + np.arange(-reach, reach + 1)
        inside = (around >= 0) & (around < len(columns.rows))
        inside &= columns.sessions.take(around, mode="clip") == columns.sessions[places][:, None]
        chosen[around[inside]] = True
    return np.flatnonzero(chosen)


def _refresh(tx: Transaction, cached: _Columns | None) -> _Columns:
    newest = tx.newest("turn")
    if cached is not None and newest <= cached.upto:  # `newest` is lower if another reader has a later snapshot
        return cached
    if cached is None or newest - cached.upto > _A_FEW:
        return _read(tx, newest, "INDEXED BY turn_outline WHERE space = :space")
    return _merge(cached, _read(tx, newest, f"WHERE space = :space AND id > {cached.upto}", who=cached.who))


def _read(tx: Transaction, upto: int, those: str, *, who: dict[int, tuple[Role, str | None]] | None = None) -> _Columns:
    """Read the columns of turns as text, a row for each session: five times as fast as one object for each number.

    `those` is the SQL after `FROM turn`. Some sessions at a time are parsed, because the text of all would take more
    memory than the columns.
    """
    import numpy as np

    code = "CASE role " + " ".join(f"WHEN '{role}' THEN {number}" for number, role in enumerate(_ROLES)) + " END"
    columns = " || ' ' || ".join(("id", "position", "said_at", OUTLINE_SIZE, OUTLINE_ASKS, code))
    session_rows = tx.each(
        f"SELECT session, count(*), group_concat({columns}, ' ' ORDER BY position) FROM turn {those}"
        " AND role <> 'note' GROUP BY session ORDER BY session"
    )
    parts = [[np.empty(0, kind) for kind in _KINDS]]
    while some := list(islice(session_rows, _SESSIONS)):
        numbers, counts, texts = zip(*some, strict=True)
        table = np.fromstring(" ".join(texts), np.int64, sep=" ").reshape(-1, 6)
        new = (np.repeat(numbers, counts), *table.T)
        parts.append([column.astype(kind) for column, kind in zip(new, _KINDS, strict=True)])
    sessions, rows, positions, said_at, sizes, asks, speakers = map(np.concatenate, zip(*parts, strict=True))
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
    return _Columns(
        rows=rows,
        sessions=sessions,
        positions=positions,
        said_at=said_at,
        sizes=sizes,
        speakers=speakers,
        asks=asks,
        who=who,
        place_of_row=place_of_row,
        upto=upto,
        totals=_totals(rows, sessions, sizes, who),
    )


def _merge(cached: _Columns, new: _Columns) -> _Columns:
    """Insert a few new turns at their places, usually the ends of their sessions."""
    import numpy as np

    at = np.searchsorted(_keys(cached.sessions, cached.positions), _keys(new.sessions, new.positions))

    def both(before: NDArray[Any], after: NDArray[Any]) -> NDArray[Any]:
        return np.insert(before, at, after)

    rows, sessions = both(cached.rows, new.rows), both(cached.sessions, new.sessions)
    sizes = both(cached.sizes, new.sizes)
    return _Columns(
        rows=rows,
        sessions=sessions,
        positions=both(cached.positions, new.positions),
        said_at=both(cached.said_at, new.said_at),
        sizes=sizes,
        speakers=both(cached.speakers, new.speakers),
        asks=both(cached.asks, new.asks),
        who=new.who,
        place_of_row=_place_of_row(rows, new.upto),
        upto=new.upto,
        totals=_totals(rows, sessions, sizes, new.who),
    )


def _totals(
    rows: NDArray[np.int32],
    sessions: NDArray[np.int32],
    sizes: NDArray[np.int32],
    who: dict[int, tuple[Role, str | None]],
) -> Totals:
    return Totals(
        rows=len(rows),
        newest=int(rows.max(initial=0)),
        sessions=int((sessions[1:] != sessions[:-1]).sum()) + bool(len(sessions)),
        mean_size=float(sizes.mean()) if len(sizes) else 0.0,
        names=tuple(sorted({name for _, name in who.values() if name})),
    )


def _keys(sessions: NDArray[np.int32], positions: NDArray[np.int32]) -> NDArray[np.int64]:
    return (sessions.astype("int64") << 32) + positions


def _place_of_row(rows: NDArray[np.int32], upto: int) -> NDArray[np.int32]:
    import numpy as np

    places = np.full(upto + 1, -1, np.int32)
    places[rows] = np.arange(len(rows), dtype=np.int32)
    return places


def _which_pass(
    tx: Transaction, columns: _Columns, filters: Filters, places: NDArray[np.int64] | slice = slice(None)
) -> NDArray[np.bool_]:
    """Return a mask of the turns at these places that pass the filters and are not forgotten."""
    import numpy as np

    forgotten = tx.column(
        "SELECT id FROM turn INDEXED BY turn_forgotten WHERE tombstone IS NOT NULL AND space = :space"
    )
    live = np.ones(len(columns.rows), bool)
    live[_places(columns, np.array(forgotten, np.int64))] = False
    passes = live[places]
    if filters.since is not None:
        passes &= columns.said_at[places] >= to_ms(filters.since)
    if filters.until is not None:
        passes &= columns.said_at[places] < to_ms(filters.until)
    if filters.upto is not None:
        passes &= columns.rows[places] <= filters.upto
    if filters.session is not None:
        number = tx.session(filters.session)
        passes &= columns.sessions[places] == (-1 if number is None else number)
    if filters.project is not None:
        numbers = tx.column("SELECT id FROM session WHERE space = :space AND project = ?", filters.project)
        passes &= np.isin(columns.sessions[places], np.array(numbers, np.int64))
    if filters.client is not None:
        numbers = tx.column(f"SELECT s.id FROM session s WHERE s.space = :space AND {CLIENT} = ?", filters.client)
        passes &= np.isin(columns.sessions[places], np.array(numbers, np.int64))
    if filters.role is not None:
        those = [code for code, (role, _) in columns.who.items() if role == filters.role]
        passes &= np.isin(columns.speakers[places], those)
    return passes
