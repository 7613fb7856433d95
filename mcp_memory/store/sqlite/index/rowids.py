"""Row numbers of the word and vector tables, which have the rows of all spaces.

The upper bits are the number of the space, so a search reads one range of rows, in the order of their ids.
"""

from __future__ import annotations

from typing import cast

import apsw

from mcp_memory.store.sql.transaction import HomeTransaction

ID_BITS = 40
ID_MASK = (1 << ID_BITS) - 1


def rowid(space: int, id: int) -> int:
    return space << ID_BITS | id


def span(space: int) -> tuple[int, int]:
    """Return the first and the last row number that a space can have."""
    return rowid(space, 0), rowid(space, ID_MASK)


def connection_of(tx: HomeTransaction) -> apsw.Connection:
    """Return the connection of a transaction of this engine."""
    return cast("apsw.Connection", tx.connection)
