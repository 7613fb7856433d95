"""Turn metadata out of PostgreSQL: the columns that ranking reads of every turn of a space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_memory.store.postgres.terms import states_rule
from mcp_memory.store.sql.filters import where
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters

if TYPE_CHECKING:
    from mcp_memory.core.types import Role

__all__ = ["read"]

_ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")
_ASKS = "right(content, 120) ~ '[?？]'"


def read(tx: Transaction, filters: Filters) -> TurnMetadata:
    """See `Store.turn_metadata`."""
    import numpy as np

    condition, values = where(tx, "turn", filters)
    rule = f" AND {states_rule(tx.space)}" if filters.states_rule else ""
    rows = tx.all(
        f"SELECT r.id, r.session, r.said_at, octet_length(r.content), r.role, r.name, {_ASKS},"
        f" ({condition}{rule}) FROM turn r WHERE r.space = :space AND r.role <> 'note' ORDER BY r.session, r.position",
        *values,
    )
    who: dict[tuple[Role, str | None], int] = {(role, None): number for number, role in enumerate(_ROLES)}
    for row in rows:
        who.setdefault((row[4], row[5]), len(who))
    ids, sessions, said_at, sizes, roles, names, asks, passes = zip(*rows, strict=True) if rows else ((),) * 8
    numbers = np.array(ids, np.int64)
    places = np.full(int(numbers.max(initial=0)) + 1, -1, np.int32)
    places[numbers] = np.arange(len(numbers), dtype=np.int32)
    return TurnMetadata(
        rows=numbers,
        sessions=np.array(sessions, np.int64),
        said_at=np.array(said_at, np.int64),
        sizes=np.array(sizes, np.int64),
        speakers=np.array([who[role, name] for role, name in zip(roles, names, strict=True)], np.int64),
        asks=np.array(asks, bool),
        passes=np.array(passes, bool),
        who={number: speaker for speaker, number in who.items()},
        place_of_row=places,
    )
