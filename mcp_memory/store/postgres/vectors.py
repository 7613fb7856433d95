"""The vector leg in PostgreSQL: one table of `halfvec` for each model and layer, searched exactly within a space.

The numbers are those that SQLite stores, integers up to 127, which `halfvec` holds exactly: both engines compute the
same cosines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_memory.store.postgres.terms import passing
from mcp_memory.store.sql import queues
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, number_of
from mcp_memory.store.sql.word_index import INDEXED, index_queue
from mcp_memory.store.stored_vectors import EMBEDDED_LAYERS, cosines, other_dimensions, quantised, unit
from mcp_memory.store.values import Filters, Layer, Scored, VectorIndex, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.store.postgres.transaction import PostgresTransaction

__all__ = ["delete", "drop", "embeddable", "indexes", "nearest", "of_rows", "put", "unembedded"]

_MORE = 50  # rows beyond the limit that are scored again: the query is rounded to three digits first
_TEXT: tuple[tuple[Layer, str], ...] = (("atom", "r.text"), ("turn", "r.content"))


def _table(layer: Layer, index: int) -> str:
    return f"{layer}_vec_{index}"


def _index(tx: HomeTransaction, identity: str, dimensions: int | None = None) -> int | None:
    found = tx.one("SELECT id, dimensions FROM vector_index WHERE identity = ?", identity)
    return found[0] if found is not None and dimensions in (None, found[1]) else None


def ensure(tx: HomeTransaction, identity: str, dimensions: int) -> int:
    """Return the number of a model's index; a new one is created. InvalidInput when it has other dimensions."""
    tx.run("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", f"mcp-memory vectors {identity}")
    known = tx.one("SELECT id, dimensions FROM vector_index WHERE identity = ?", identity)
    if known is not None and known[1] != dimensions:
        raise other_dimensions(identity, dimensions, known[1])
    if known is not None:
        return known[0]
    index: int = tx.get(
        "INSERT INTO vector_index (identity, dimensions) VALUES (?, ?) RETURNING id", identity, dimensions
    )
    tx.run("SELECT create_vector_tables(?, ?)", index, dimensions)
    return index


def put(
    tx: Transaction, layer: Layer, numbers: Sequence[int], new: Vectors, *, rows: Sequence[int] | None = None
) -> None:
    """Store vectors of rows that have none yet; `rows` selects theirs from `new.data` (default: in order)."""
    dimensions = int(new.data.shape[1])
    index = _index(tx, new.identity, dimensions) or ensure(tx, new.identity, dimensions)
    data = quantised(new.data if rows is None else new.data[list(rows)])
    tx.many(
        f"INSERT INTO {_table(layer, index)} (space, id, embedding) SELECT space, id, ?::halfvec FROM {layer}"
        " WHERE space = :space AND id = ? AND tombstone IS NULL ON CONFLICT DO NOTHING",
        [(_written(data[at]), number) for at, number in enumerate(numbers)],
    )


def _written(row: NDArray[np.int8]) -> str:
    return f"[{','.join(map(str, row.tolist()))}]"


def delete(tx: Transaction, layer: Layer, numbers: Sequence[int]) -> None:
    for index in tx.column("SELECT id FROM vector_index"):
        tx.many(f"DELETE FROM {_table(layer, index)} WHERE space = :space AND id = ?", [(one,) for one in numbers])


def nearest(tx: PostgresTransaction, layer: Layer, query: Vectors, *, filters: Filters, limit: int) -> list[Scored]:
    """See `Store.nearest`."""
    index = _index(tx, query.identity, int(query.data.shape[1]))
    if not tx.space or index is None or not query.data.any():
        return []
    condition, values = passing(tx, layer, filters)
    data: bytes | None = tx.get(
        f"SELECT string_agg(int8send(n.id) || halfvec_send(n.embedding), '') FROM (SELECT v.id, v.embedding"
        f" FROM {_table(layer, index)} v JOIN {layer} r ON r.space = v.space AND r.id = v.id"
        f" WHERE v.space = :space AND {condition} ORDER BY v.embedding <#> ?::halfvec, v.id DESC LIMIT ?) n",
        *(*values, "[" + ",".join(f"{number:.8g}" for number in query.data[0].tolist()) + "]", limit + _MORE),
    )
    return _best(data or b"", query.data[0], layer, limit)


def _best(data: bytes, query: NDArray[np.float32], layer: Layer, limit: int) -> list[Scored]:
    """Score rows again: `halfvec` holds their numbers exactly, but not those of the query."""
    import numpy as np

    line = np.dtype([("id", ">i8"), ("head", ">i4"), ("vector", ">f2", (len(query),))])
    rows = np.frombuffer(data, line)
    scores = cosines(rows["vector"].astype(np.int8), unit(query))
    order = np.lexsort((-rows["id"], -scores))[:limit]
    return [
        Scored(id=f"{layer[0]}{id}", score=score)
        for id, score in zip(rows["id"][order].tolist(), scores[order].tolist(), strict=True)
    ]


def of_rows(tx: Transaction, layer: Layer, ids: Sequence[str], identity: str) -> dict[str, NDArray[np.float32]]:
    """See `Store.vectors_of`."""
    import numpy as np

    index = _index(tx, identity)
    if index is None or not tx.space:
        return {}
    numbers = [number_of(id, layer[0]) for id in ids]
    sql = f"SELECT id, embedding::text FROM {_table(layer, index)} WHERE space = :space AND id IN ({{}})"
    found: dict[str, NDArray[np.float32]] = {}
    for number, text in tx.among(sql, numbers):
        row = np.fromstring(text[1:-1], np.float32, sep=",")
        found[f"{layer[0]}{number}"] = row / max(float(np.linalg.norm(row)), 1.0)
    return found


def embeddable(tx: HomeTransaction) -> int:
    """Return the number of rows of all spaces that a model has to embed."""
    counts = (tx.get(f"SELECT count(*) FROM {layer} WHERE {INDEXED[layer]}") for layer in EMBEDDED_LAYERS)
    return sum(counts)


def indexes(tx: HomeTransaction) -> list[VectorIndex]:
    """Return every model with vectors here, most complete first."""
    found = [
        VectorIndex(
            identity=identity,
            dimensions=dimensions,
            embedded=sum(tx.get(f"SELECT count(*) FROM {_table(layer, index)}") for layer in EMBEDDED_LAYERS),
        )
        for index, identity, dimensions in tx.all("SELECT id, identity, dimensions FROM vector_index ORDER BY id")
    ]
    return sorted(found, key=lambda index: -index.embedded)


def unembedded(tx: Transaction, identity: str, *, limit: int) -> list[tuple[str, str]]:
    """See `Store.unembedded`."""
    index = _index(tx, identity)
    found: list[tuple[str, str]] = []
    for layer, text in _TEXT:
        missing = (
            "true"
            if index is None
            else f"NOT EXISTS (SELECT 1 FROM {_table(layer, index)} v WHERE v.space = r.space AND v.id = r.id)"
        )
        rows = tx.all(
            f"SELECT r.id, {text} FROM {layer} r WHERE r.space = :space AND {INDEXED[layer]} AND {missing}"
            " ORDER BY r.id LIMIT ?",
            limit - len(found),
        )
        found += [(f"{layer[0]}{number}", words) for number, words in rows]
    return found


def drop(tx: HomeTransaction, identity: str) -> None:
    """See `Store.drop_vector_index`."""
    index = _index(tx, identity)
    if index is not None:
        tx.run("SELECT drop_vector_tables(?)", index)
        tx.run("DELETE FROM vector_index WHERE id = ?", index)
        queues.look_again(tx, index_queue(identity))
