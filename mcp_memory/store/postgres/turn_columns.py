"""Turn metadata from PostgreSQL, read only for the turns that a search matched and the turns around them.

All columns are in the index `turn_place`, so no text is read. They are read as one value of packed numbers, because an
object for each number of 10,000 turns would take longer than the query.

The totals of each space are cached, and updated with the turns appended since, because counting a large space takes
longer than searching it. Rows of a space are numbered in the order of commits, so no row up to the newest counted row
is missed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_memory.core.lru import LRU
from mcp_memory.store.sql.filters import where
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters, Totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.core.types import Role
    from mcp_memory.store.postgres.transaction import PostgresTransaction


_MOST_SPACES = 1_000

_PACKED = {
    "row": ("int8send(r.id)", ">i8"),
    "session": ("int8send(r.session)", ">i8"),
    "position": ("int8send(r.position)", ">i8"),
    "said_at": ("int8send(r.said_at)", ">i8"),
    "size": ("int4send(r.size)", ">i4"),
    "speaker": ("int8send(r.speaker)", ">i8"),
    "asks": ("boolsend(r.asks)", "?"),
    "passes": ("boolsend(coalesce({}, false))", "?"),
}
_MET = "SELECT session, position FROM turn WHERE space = :space AND id = ANY (?::bigint[]) AND role <> 'note'"
# Windows that touch are read as one span. Notes take positions too, so spans are wider by their number.
_SPANS = f"""
    SELECT session, min(position) - wide AS first, max(position) + wide AS last FROM (
        SELECT session, position, wide,
            count(*) FILTER (WHERE apart) OVER (PARTITION BY session ORDER BY position) AS span
        FROM (
            SELECT session, position, wide,
                position - lag(position) OVER (PARTITION BY session ORDER BY position) > 2 * wide + 1 AS apart
            FROM ({_MET}) met JOIN LATERAL (
                SELECT ? + count(*) AS wide FROM turn n
                WHERE n.space = :space AND n.session = met.session AND n.role = 'note'
            ) reach ON true
        ) gaps
    ) spans GROUP BY session, wide, span
"""
_AROUND = f"""
    ({_SPANS}) s JOIN LATERAL (
        SELECT * FROM turn t WHERE t.space = :space AND t.session = s.session
            AND t.position BETWEEN s.first AND s.last AND t.role <> 'note' OFFSET 0
    ) r ON true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountedTurns:
    """Totals of all turns up to row `upto`, without notes. `newest` is the newest turn; row `upto` may be a note."""

    upto: int = 0
    rows: int = 0
    newest: int = 0
    sessions: int = 0
    size: int = 0
    who: dict[int, tuple[Role, str | None]] = field(default_factory=dict[int, "tuple[Role, str | None]"])


class Turns:
    """Reads metadata and totals of turns; one per store, safe to use from several threads."""

    def __init__(self) -> None:
        self._known = LRU[int, _CountedTurns](_MOST_SPACES)

    def totals(self, tx: PostgresTransaction) -> Totals:
        counted = self._update_counts(tx)
        return Totals(
            rows=counted.rows,
            newest=counted.newest,
            sessions=counted.sessions,
            mean_size=counted.size / max(1, counted.rows),
            names=tuple(sorted({name for _, name in counted.who.values() if name})),
        )

    def read(self, tx: PostgresTransaction, rows: NDArray[np.int64], *, filters: Filters, reach: int) -> TurnMetadata:
        """See `Store.turn_metadata`."""
        import numpy as np

        who = self._update_counts(tx).who
        turns = _lines(tx, rows, filters, reach)
        turns = turns[np.lexsort((turns["position"], turns["session"]))]
        inside, stretches = _windows(turns["session"], np.flatnonzero(np.isin(turns["row"], rows)), reach)
        turns = turns[inside]
        return TurnMetadata(
            rows=turns["row"].astype(np.int64),
            sessions=turns["session"].astype(np.int64),
            stretches=stretches[inside],
            said_at=turns["said_at"].astype(np.int64),
            sizes=turns["size"].astype(np.int64),
            speakers=turns["speaker"].astype(np.int64),
            asks=turns["asks"].copy(),
            passes=turns["passes"].copy(),
            who=who,
        )

    def _update_counts(self, tx: PostgresTransaction) -> _CountedTurns:
        counted = self._known.get(tx.space) or _CountedTurns()
        newest = tx.newest("turn")
        if newest < counted.upto:  # seen from an earlier moment, or rows were lost with a server
            counted = _CountedTurns()
        if newest > counted.upto:
            counted = self._known.put(tx.space, _add_counts(tx, counted, newest))
        return counted


def _lines(tx: PostgresTransaction, rows: NDArray[np.int64], filters: Filters, reach: int) -> NDArray[np.void]:
    """Return the columns of these turns and the turns around them, in any order, possibly with a few more turns."""
    import numpy as np

    condition, values = where(tx, "turn", filters)
    packed = " || ".join(sql for sql, _ in _PACKED.values()).format(condition)
    met = "{" + ",".join(map(str, rows.tolist())) + "}"
    if reach:
        source, arguments = f"FROM {_AROUND}", (met, reach)
    else:
        source, arguments = (
            "FROM turn r WHERE r.space = :space AND r.id = ANY (?::bigint[]) AND r.role <> 'note'",
            (met,),
        )
    data: bytes | None = tx.get(f"SELECT string_agg({packed}, '') {source}", *values, *arguments)
    return np.frombuffer(data or b"", np.dtype([(name, code) for name, (_, code) in _PACKED.items()]))


def _windows(
    sessions: NDArray[np.int64], met: NDArray[np.intp], reach: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return a mask of the places within `reach` of a place of `met` in the same session, and their stretch numbers.

    Two places belong to the same stretch if a window includes both. Places are sorted by session.
    """
    import numpy as np

    starts = np.maximum(met - reach, np.searchsorted(sessions, sessions[met]))
    ends = np.minimum(met + reach, np.searchsorted(sessions, sessions[met], side="right") - 1)
    opened, closed = (np.bincount(edges, minlength=len(sessions)) for edges in (starts, ends))
    joined = np.cumsum(opened - closed) > 0  # with the next place
    inside = joined | (closed > 0)
    return inside, np.concatenate(([0], np.cumsum(~joined[:-1])))[: len(sessions)]


def _add_counts(tx: PostgresTransaction, counted: _CountedTurns, upto: int) -> _CountedTurns:
    """Return the totals of `counted` and of the turns after it, up to the row `upto`."""
    speakers = tx.all(
        "SELECT speaker, count(*), sum(size), max(id) FROM turn WHERE space = :space AND role <> 'note' AND id > ?"
        " GROUP BY speaker",
        counted.upto,
    )
    unknown = [last for speaker, _, _, last in speakers if speaker not in counted.who]
    names = tx.among("SELECT speaker, role, name FROM turn WHERE space = :space AND id IN ({})", unknown)
    sessions = "SELECT DISTINCT session FROM turn WHERE space = :space AND role <> 'note' AND id > ?"
    if counted.upto:
        sessions = (
            f"SELECT n.session FROM ({sessions}) n WHERE NOT EXISTS (SELECT 1 FROM turn t WHERE t.space = :space"
            " AND t.session = n.session AND t.role <> 'note' AND t.id <= ?)"
        )
    begun = tx.get(f"SELECT count(*) FROM ({sessions}) s", *[counted.upto] * sessions.count("?"))
    return _CountedTurns(
        rows=counted.rows + sum(count for _, count, _, _ in speakers),
        upto=upto,
        newest=max([counted.newest, *(last for _, _, _, last in speakers)]),
        sessions=counted.sessions + begun,
        size=counted.size + sum(size for _, _, size, _ in speakers),
        who=counted.who | {speaker: (role, name) for speaker, role, name in names},
    )
