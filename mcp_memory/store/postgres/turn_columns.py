"""Turn metadata out of PostgreSQL: read for the turns that a search met and those around them, never for all.

All columns are in the index `turn_place`, so no text is read. They come as one value of packed numbers: an object for
each number of 10,000 turns would take longer than the query.

Totals of turns are kept in memory for each space, a few numbers and names, and updated with what was appended since: a
count of a large space takes longer than its search. Rows of a space are numbered in the order of commits, so all rows
up to the newest one that was counted are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_memory.store.postgres.terms import passing
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters, Totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.core.types import Role

__all__ = ["Turns"]

_PACKED = {
    "met": ("int8send(m.id)", ">i8"),
    "row": ("int8send(r.id)", ">i8"),
    "session": ("int8send(r.session)", ">i8"),
    "position": ("int8send(r.position)", ">i8"),
    "said_at": ("int8send(r.said_at)", ">i8"),
    "size": ("int4send(r.size)", ">i4"),
    "speaker": ("int8send(r.speaker)", ">i8"),
    "asks": ("boolsend(r.asks)", "?"),
    "passes": ("boolsend(coalesce({}, false))", "?"),
}
_COLUMNS = "t.space, t.id, t.session, t.position, t.said_at, t.role, t.size, t.asks, t.speaker, t.tombstone"
_AROUND = f"""
    turn m JOIN LATERAL (
        (SELECT {_COLUMNS} FROM turn t WHERE t.space = m.space AND t.session = m.session AND t.role <> 'note'
            AND t.position <= m.position ORDER BY t.position DESC LIMIT {{reach}} + 1)
        UNION ALL
        (SELECT {_COLUMNS} FROM turn t WHERE t.space = m.space AND t.session = m.session AND t.role <> 'note'
            AND t.position > m.position ORDER BY t.position LIMIT {{reach}})
    ) r ON true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountedTurns:
    """Totals of all rows up to `upto`, which may be a note; `newest` is a turn."""

    upto: int = 0
    rows: int = 0
    newest: int = 0
    sessions: int = 0
    size: int = 0
    who: dict[int, tuple[Role, str | None]] = field(default_factory=dict[int, "tuple[Role, str | None]"])


class Turns:
    """Reads metadata and totals of turns; one per store, safe to use from several threads."""

    def __init__(self) -> None:
        self._known: dict[int, _CountedTurns] = {}

    def totals(self, tx: Transaction) -> Totals:
        counted = self._counted(tx)
        return Totals(
            rows=counted.rows,
            newest=counted.newest,
            sessions=counted.sessions,
            mean_size=counted.size / max(1, counted.rows),
            names=tuple(sorted({name for _, name in counted.who.values() if name})),
        )

    def read(self, tx: Transaction, rows: NDArray[np.int64], *, filters: Filters, reach: int) -> TurnMetadata:
        """See `Store.turn_metadata`."""
        import numpy as np

        who = self._counted(tx).who
        lines = _lines(tx, rows, filters, reach)
        keys = (lines["session"].astype(np.int64) << 32) + lines["position"]
        _, first, places = np.unique(keys, return_index=True, return_inverse=True)
        turns = lines[first]
        return TurnMetadata(
            rows=turns["row"].astype(np.int64),
            sessions=turns["session"].astype(np.int64),
            stretches=_stretches(lines["met"], places),
            said_at=turns["said_at"].astype(np.int64),
            sizes=turns["size"].astype(np.int64),
            speakers=turns["speaker"].astype(np.int64),
            asks=turns["asks"].copy(),
            passes=turns["passes"].copy(),
            who=who,
        )

    def _counted(self, tx: Transaction) -> _CountedTurns:
        known = self._known.get(tx.space, _CountedTurns())
        newest: int = tx.get("SELECT coalesce(max(id), 0) FROM turn WHERE space = :space")
        if newest < known.upto:  # seen from an earlier moment, or rows were lost with a server
            known = _CountedTurns()
        if newest > known.upto:
            known = self._known[tx.space] = _counted(tx, known, newest)
        return known


def _lines(tx: Transaction, rows: NDArray[np.int64], filters: Filters, reach: int) -> NDArray[np.void]:
    """Return a line for each turn around each of these rows; one that is around several has as many lines."""
    import numpy as np

    condition, values = passing(tx, "turn", filters)
    packed = " || ".join(sql for sql, _ in _PACKED.values()).format(condition)
    # Without a reach a turn is its own neighbour: a join would take twice as long.
    source = _AROUND.format(reach=reach) if reach else "turn r"
    of, packed = ("m", packed) if reach else ("r", packed.replace("(m.id)", "(r.id)"))
    data: bytes | None = tx.get(
        f"SELECT string_agg({packed}, '') FROM {source}"
        f" WHERE {of}.space = :space AND {of}.id = ANY (?::bigint[]) AND {of}.role <> 'note'",
        *values,
        "{" + ",".join(map(str, rows.tolist())) + "}",
    )
    return np.frombuffer(data or b"", np.dtype([(name, code) for name, (_, code) in _PACKED.items()]))


def _stretches(met: NDArray[np.int64], places: NDArray[np.intp]) -> NDArray[np.int64]:
    """Number the stretches: two places belong together if the turns around one row reach over both."""
    import numpy as np

    count = int(places.max(initial=-1)) + 1
    _, window = np.unique(met, return_inverse=True)
    starts = np.full(int(window.max(initial=-1)) + 1, count)
    ends = np.zeros(len(starts), np.int64)
    np.minimum.at(starts, window, places)
    np.maximum.at(ends, window, places)
    inside = np.cumsum(np.bincount(starts, minlength=count) - np.bincount(ends, minlength=count))
    return np.concatenate(([0], np.cumsum(inside[:-1] == 0)))[:count]


def _counted(tx: Transaction, known: _CountedTurns, upto: int) -> _CountedTurns:
    """Add the turns from the first row that is not counted to `upto`."""
    speakers = tx.all(
        "SELECT speaker, count(*), sum(size), max(id) FROM turn WHERE space = :space AND role <> 'note' AND id > ?"
        " GROUP BY speaker",
        known.upto,
    )
    unknown = [last for speaker, _, _, last in speakers if speaker not in known.who]
    names = tx.among("SELECT speaker, role, name FROM turn WHERE space = :space AND id IN ({})", unknown)
    sessions = "SELECT DISTINCT session FROM turn WHERE space = :space AND role <> 'note' AND id > ?"
    if known.upto:
        sessions = (
            f"SELECT n.session FROM ({sessions}) n WHERE NOT EXISTS (SELECT 1 FROM turn t WHERE t.space = :space"
            " AND t.session = n.session AND t.role <> 'note' AND t.id <= ?)"
        )
    begun = tx.get(f"SELECT count(*) FROM ({sessions}) s", *[known.upto] * sessions.count("?"))
    return _CountedTurns(
        rows=known.rows + sum(count for _, count, _, _ in speakers),
        upto=upto,
        newest=max([known.newest, *(last for _, _, _, last in speakers)]),
        sessions=known.sessions + begun,
        size=known.size + sum(size for _, _, size, _ in speakers),
        who=known.who | {speaker: (role, name) for speaker, role, name in names},
    )
