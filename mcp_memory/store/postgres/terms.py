"""The word index: for each row the keys of its terms, which `term_segments` groups by key and `term_rows` reads.

A key is the 64-bit hash of a space, a block of its rows, and a term. The block is in it because programs of schema 7
and older search by a GIN index over all keys, until the schema is contracted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from mcp_memory.language.words import TERMS_VERSION
from mcp_memory.store.postgres.connection import Binary
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction
from mcp_memory.store.sql.word_index import INDEXED_COLUMNS, terms_of_row
from mcp_memory.store.values import Layer

_BIGINT = 20  # the number of this type in every database
BLOCK = 32_768
"""Row numbers of a block: a multiple of the sizes of segments, so that the terms of a segment have one key each."""

_RENEWED: tuple[Layer, ...] = ("atom", "turn")
"""The layers that `renew` reindexes; `put_chunks` indexes results again."""


def keys_in_blocks(space: int, term: str, newest: int) -> list[int]:
    """Return the key of a term in each block up to the block of the row `newest`, oldest block first."""
    blocks = range(newest // BLOCK + 1)
    return [int.from_bytes(_keys(space, block, [term])[0], "big", signed=True) for block in blocks]


def _keys(space: int, block: int, terms: Iterable[str]) -> list[bytes]:
    salt = f"{space} {block}\0".encode()
    return [blake2b(salt + term.encode("utf-8", "surrogatepass"), digest_size=8).digest() for term in terms]


def _array(keys: Sequence[bytes]) -> Binary:
    """Return keys as a `bigint[]` in PostgreSQL's binary form.

    The fields are the number of dimensions, 0 for no NULL, the type, the length, the first index, and each key after
    its size.
    """
    if not keys:
        return Binary(struct.pack(">3i", 0, 0, _BIGINT))
    size = struct.pack(">i", 8)
    return Binary(struct.pack(">5i", 1, 0, _BIGINT, len(keys), 1) + size + size.join(keys))


def put(tx: Transaction, layer: Layer, rows: Sequence[tuple[int, Sequence[str] | None]]) -> None:
    """Index rows, given as (number, terms); the terms are None if the word index must not find the row."""
    indexed = [
        (number, _array(_keys(tx.space, number // BLOCK, set(terms)))) for number, terms in rows if terms is not None
    ]
    tx.run_rows(  # together: each statement would take longer than its row
        f"INSERT INTO {layer}_terms (space, id, version, keys) VALUES {{}} ON CONFLICT (space, id)"
        " DO UPDATE SET version = excluded.version, keys = excluded.keys",
        f"(:space, ?, {TERMS_VERSION}, ?::bigint[])",
        indexed,
    )


def delete(tx: Transaction, layer: Layer, numbers: Sequence[int]) -> None:
    tx.run_among(f"DELETE FROM {layer}_terms WHERE space = :space AND id IN ({{}})", numbers)


def array_of(keys: Iterable[int]) -> str:
    """Return keys as the text of a PostgreSQL array, such as `{1,2}`."""
    return "{" + ",".join(map(str, keys)) + "}"


def stale(tx: HomeTransaction) -> int:
    """Return the number of turns and atoms with terms of an earlier version."""
    counts = (tx.get(f"SELECT count(*) FROM {layer}_terms WHERE version < ?", TERMS_VERSION) for layer in _RENEWED)
    return sum(counts)


def outdated_layer(tx: HomeTransaction) -> tuple[str, Layer] | None:
    """Return a space and a layer that have rows with terms of an earlier version; None if there are none."""
    for layer in _RENEWED:
        first = tx.one(
            f"SELECT s.name FROM {layer}_terms w JOIN space s ON s.id = w.space WHERE w.version < ? LIMIT 1",
            TERMS_VERSION,
        )
        if first is not None:
            return first[0], layer
    return None


def renew(tx: Transaction, layer: Layer, *, limit: int) -> None:
    """Reindex up to `limit` rows with terms of an earlier version, newest first.

    The rows are chosen with the space locked, so servers that do this at the same time choose different rows.
    """
    numbers = tx.column(
        f"SELECT id FROM {layer}_terms WHERE space = :space AND version < ? ORDER BY id DESC LIMIT ?",
        *(TERMS_VERSION, limit),
    )
    rows = tx.among(
        f"SELECT id, {INDEXED_COLUMNS[layer]} FROM {layer} WHERE space = :space AND tombstone IS NULL AND id IN ({{}})",
        numbers,
    )
    put(tx, layer, [(number, terms_of_row(layer, *row)) for number, *row in rows])
