"""The word index: for each row the 64-bit hashes of its terms, with a GIN index over them.

A hash is of the space and the term, so a query names no space: beside `space =` the planner takes the wrong index (20
to 70 times as slow), and the terms of one space are never met in another.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from mcp_memory.language.words import TERMS_VERSION
from mcp_memory.store.postgres.connection import Binary
from mcp_memory.store.sql.filters import where
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, Value
from mcp_memory.store.sql.word_index import RULE, terms_of_row
from mcp_memory.store.values import Filters, Layer

if TYPE_CHECKING:
    from mcp_memory.store.postgres.transaction import PostgresTransaction

__all__ = ["delete", "hashed", "outdated", "passing", "put", "renew", "stale", "with_all"]

_BIGINT = 20  # the number of this type in every database

_RENEWED: tuple[tuple[Layer, str], ...] = (("atom", "r.text, NULL"), ("turn", "r.content, r.name"))
"""The layers that are renewed here, and what their terms are taken from; results are indexed again by `put_chunks`."""


def hashed(space: int, terms: Iterable[str]) -> list[int]:
    """Return the keys of terms in a space, in the order of the terms."""
    return [int.from_bytes(key, "big", signed=True) for key in _keys(space, terms)]


def _keys(space: int, terms: Iterable[str]) -> list[bytes]:
    salt = str(space).encode() + b"\0"
    return [blake2b(salt + term.encode("utf-8", "surrogatepass"), digest_size=8).digest() for term in terms]


def _array(keys: Sequence[bytes]) -> Binary:
    """Return keys as an array of bigint: dimensions, no NULL, type, length, first index, and each key with its size."""
    if not keys:
        return Binary(struct.pack(">3i", 0, 0, _BIGINT))
    size = struct.pack(">i", 8)
    return Binary(struct.pack(">5i", 1, 0, _BIGINT, len(keys), 1) + size + size.join(keys))


def put(tx: PostgresTransaction, layer: Layer, rows: Sequence[tuple[int, Sequence[str] | None]]) -> None:
    """Index rows, given as (number, terms); None for one that is not to be found by its words."""
    indexed = [(number, _array(_keys(tx.space, set(found)))) for number, found in rows if found is not None]
    tx.run_rows(  # together: each statement would take longer than its row
        f"INSERT INTO {layer}_terms (space, id, version, keys) VALUES {{}} ON CONFLICT (space, id)"
        " DO UPDATE SET version = excluded.version, keys = excluded.keys",
        f"(:space, ?, {TERMS_VERSION}, ?::bigint[])",
        indexed,
    )


def delete(tx: Transaction, layer: Layer, numbers: Sequence[int]) -> None:
    tx.many(f"DELETE FROM {layer}_terms WHERE space = :space AND id = ?", [(number,) for number in numbers])


def with_all(tx: PostgresTransaction, layer: Layer, wanted: Sequence[str]) -> list[int]:
    """Return the rows of a space that have all of these terms."""
    rows = tx.con.execute(
        f"SELECT id, space FROM {layer}_terms WHERE keys @> %s::int8[]", (hashed(tx.space, wanted),)
    ).fetchall()
    return sorted(id for id, space in rows if space == tx.space)


def passing(tx: Transaction, layer: Layer, filters: Filters) -> tuple[str, list[Value]]:
    """Return the condition on the row `r` of a layer's table, and its values: `filters.where`, with `states_rule`."""
    condition, values = where(tx, layer, filters)
    if filters.states_rule:
        (key,) = hashed(tx.space, [RULE])
        stating = f"SELECT w.id FROM turn_terms w WHERE w.keys @> ARRAY[{key}::int8] AND w.space = {tx.space}"
        condition += f" AND r.id IN ({stating})"
    return condition, values


def stale(tx: HomeTransaction) -> int:
    """Return the number of turns and atoms with terms of an earlier version."""
    counts = (tx.get(f"SELECT count(*) FROM {layer}_terms WHERE version < ?", TERMS_VERSION) for layer, _ in _RENEWED)
    return sum(counts)


def outdated(tx: HomeTransaction) -> tuple[str, Layer] | None:
    """Return a space, and a layer of it that has rows with terms of an earlier version."""
    for layer, _ in _RENEWED:
        first = tx.one(
            f"SELECT s.name FROM {layer}_terms w JOIN space s ON s.id = w.space WHERE w.version < ? LIMIT 1",
            TERMS_VERSION,
        )
        if first is not None:
            return first[0], layer
    return None


def renew(tx: PostgresTransaction, layer: Layer, *, limit: int) -> None:
    """Index up to `limit` rows with terms of an earlier version again, newest first.

    They are chosen with the space locked, so servers that do so at once take different ones.
    """
    text = dict(_RENEWED)[layer]
    numbers = tx.column(
        f"SELECT id FROM {layer}_terms WHERE space = :space AND version < ? ORDER BY id DESC LIMIT ?",
        *(TERMS_VERSION, limit),
    )
    rows = tx.among(
        f"SELECT r.id, {text} FROM {layer} r WHERE r.space = :space AND r.tombstone IS NULL AND r.id IN ({{}})", numbers
    )
    put(tx, layer, [(number, terms_of_row(layer, words, name)) for number, words, name in rows])
