"""Numbers about all spaces for monitoring, cheap enough to be read every few seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mcp_memory.store.sql.home_rows import DELETED
from mcp_memory.store.sql.transaction import NOW, HomeTransaction, marks


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueBacklog:
    """Spaces that wait in the queues of a kind, and for how many seconds the first of them has been due."""

    kind: str
    spaces: int
    oldest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """`turns` counts all turns that were ever stored."""

    spaces: int
    turns: int
    tokens: int
    backlogs: list[QueueBacklog]


def measure(tx: HomeTransaction, *, queues: Sequence[str]) -> Measures:
    """Return the numbers. Reads no row of a turn: counters and queues alone.

    `queues` are the names of those that the process works on. Others, such as that of a former model, may have no
    worker.
    """
    now, spaces, turns, tokens = tx.all(
        f"SELECT {NOW}, (SELECT count(*) FROM space WHERE name NOT LIKE '{DELETED}%'),"
        " (SELECT coalesce(sum(last), 0) FROM number WHERE kind = 'turn'),"
        f" (SELECT count(*) FROM token WHERE revoked_at IS NULL AND (until IS NULL OR until > {NOW}))"
    )[0]
    rows = tx.all(
        "SELECT q.name, count(d.space), min(d.at)"
        f" FROM queue q LEFT JOIN due d ON d.queue = q.name AND d.space > 0 AND d.at <= {NOW} AND d.until <= {NOW}"
        f" WHERE q.name IN ({marks(queues)}) GROUP BY q.name",
        *queues,
    )
    backlogs = dict[str, QueueBacklog]()
    for name, waiting, first in rows:
        kind = name.partition(" ")[0]
        before = backlogs.get(kind)
        backlogs[kind] = QueueBacklog(
            kind=kind,
            spaces=waiting + (before.spaces if before else 0),
            oldest=max((now - first) / 1_000 if waiting else 0.0, before.oldest if before else 0.0),
        )
    return Measures(
        spaces=spaces, turns=int(turns), tokens=tokens, backlogs=[backlogs[kind] for kind in sorted(backlogs)]
    )
