"""The vector leg in SQLite: one `vec0` table for each model and layer, partitioned by space.

A vector is kept twice: as int8, scaled by its own largest component (cosine does not see the scale), and as
sign bits. Up to `_EXACT` rows the int8 vectors are scanned; beyond that the bits are (a tenth of the time),
and the best of them are scored again with int8. `python -m bench.latency` times it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

from mcp_memory.errors import InvalidInput
from mcp_memory.store.protocol import Filters, Layer, Scored, VectorIndex, Vectors
from mcp_memory.store.sqlite.filters import where
from mcp_memory.store.sqlite.rows import number_of, space_id

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["delete", "drop", "ensure", "indexes", "nearest", "put", "put_by_id", "unembedded"]

_EXACT = 5_000
_COARSE = 8  # how many times more rows the bits propose than are asked for …
_COARSE_LEAST = 256  # … and at least
_K_MOST = 4_096  # vec0 allows no more
_LAYERS: tuple[Layer, ...] = ("turn", "atom")
_EMBEDDABLE = {"turn": "tombstone IS NULL AND role <> 'note'", "atom": "tombstone IS NULL"}


def ensure(con: apsw.Connection, identity: str, dimensions: int) -> None:
    """See `Store.ensure_vector_index`."""
    known = con.execute("SELECT dimensions FROM vector_index WHERE identity = ?", (identity,)).get
    if known == dimensions:
        return
    if known is not None:
        raise InvalidInput(
            f"The model {identity} gave vectors of {dimensions} numbers and earlier ones of {known}. "
            "Choose another name for the changed model, or run `mcp-memory doctor`."
        )
    number = con.execute(
        "INSERT INTO vector_index (identity, dimensions) VALUES (?, ?) RETURNING id", (identity, dimensions)
    ).get
    for layer in _LAYERS:
        width = _width(dimensions)
        con.execute(
            f"CREATE VIRTUAL TABLE {_table(layer, number)} USING vec0("
            f"space INTEGER PARTITION KEY, coarse BIT[{width}], embedding INT8[{width}] distance_metric=cosine)"
        )


def put(
    con: apsw.Connection,
    layer: Layer,
    numbers: Sequence[int],
    vectors: Vectors,
    *,
    rows: Sequence[int] | None = None,
) -> None:
    """Store vectors of rows that have none yet; `rows` picks theirs from `vectors.data` (default: in order)."""
    index = _index(con, vectors.identity)
    if index is None:
        ensure(con, vectors.identity, int(vectors.data.shape[1]))
        index = _index(con, vectors.identity)
    assert index is not None
    data = vectors.data if rows is None else vectors.data[list(rows)]
    coarse, fine = _quantise(data, _width(index[1]))
    table = _table(layer, index[0])
    con.executemany(
        f"INSERT INTO {table} (rowid, space, coarse, embedding)"
        f" SELECT id, space, vec_bit(?2), vec_int8(?3) FROM {layer} WHERE id = ?1 AND tombstone IS NULL"
        f" AND NOT EXISTS (SELECT 1 FROM {table}_rowids WHERE rowid = ?1)",
        [(number, coarse[i].tobytes(), fine[i].tobytes()) for i, number in enumerate(numbers)],
    )


def put_by_id(con: apsw.Connection, ids: Sequence[str], vectors: Vectors) -> None:
    """See `Store.put_vectors`: ids of both layers, in any order."""
    for layer in _LAYERS:
        rows = [i for i, id in enumerate(ids) if id[:1] == layer[0]]
        if rows:
            put(con, layer, [number_of(ids[i], layer[0]) for i in rows], vectors, rows=rows)


def delete(con: apsw.Connection, layer: Layer, numbers: Sequence[int]) -> None:
    """Take rows out of every model's index."""
    for (index,) in con.execute("SELECT id FROM vector_index").fetchall():
        con.executemany(f"DELETE FROM {_table(layer, index)} WHERE rowid = ?", [(number,) for number in numbers])


def nearest(
    con: apsw.Connection, layer: Layer, space: str, vectors: Vectors, *, filters: Filters, limit: int
) -> list[Scored]:
    """See `Store.nearest`."""
    number, index = space_id(con, space), _index(con, vectors.identity)
    if number is None or index is None or not vectors.data.any():
        return []
    coarse, fine = _quantise(vectors.data[:1], _width(index[1]))
    table = _table(layer, index[0])
    narrowed, values = "", []
    if layer == "atom" or filters != Filters():
        condition, values = where(layer, number, filters)
        narrowed = f"AND rowid IN (SELECT r.id FROM {layer} r WHERE {condition})"
    if (con.execute(f"SELECT max(rowid) FROM {table}_rowids").get or 0) <= _EXACT:
        sql = (
            f"SELECT rowid, distance FROM {table} WHERE embedding MATCH vec_int8(?) AND k = ? AND space = ?"
            f" {narrowed} ORDER BY +distance, +rowid DESC"
        )
        given = (fine[0].tobytes(), min(limit, _K_MOST), number, *values)
    else:
        sql = (
            f"SELECT rowid, vec_distance_cosine(embedding, vec_int8(?)) AS d FROM {table}"
            f" WHERE coarse MATCH vec_bit(?) AND k = ? AND space = ? {narrowed}"
            " ORDER BY d, rowid DESC LIMIT ?"
        )
        given = (
            fine[0].tobytes(),
            coarse[0].tobytes(),
            min(max(limit * _COARSE, _COARSE_LEAST), _K_MOST),
            number,
            *values,
            limit,
        )
    return [Scored(id=f"{layer[0]}{id}", score=1.0 - float(distance)) for id, distance in con.execute(sql, given)]


def indexes(con: apsw.Connection) -> list[VectorIndex]:
    """See `Store.vector_indexes`."""
    total = sum(con.execute(f"SELECT count(*) FROM {la} WHERE {_EMBEDDABLE[la]}").get for la in _LAYERS)
    found = [
        VectorIndex(
            identity=str(identity),
            dimensions=int(dimensions),
            embedded=sum(con.execute(f"SELECT count(*) FROM {_table(la, number)}_rowids").get for la in _LAYERS),
            total=total,
        )
        for number, identity, dimensions in con.execute(
            "SELECT id, identity, dimensions FROM vector_index ORDER BY id"
        ).fetchall()
    ]
    return sorted(found, key=lambda index: -index.embedded)


def unembedded(con: apsw.Connection, identity: str, *, limit: int) -> list[tuple[str, str]]:
    """See `Store.unembedded`."""
    index = _index(con, identity)
    found: list[tuple[str, str]] = []
    for layer, text in (("atom", "text"), ("turn", "content")):
        missing = "" if index is None else f"AND id NOT IN (SELECT rowid FROM {_table(layer, index[0])}_rowids)"
        found += [
            (f"{layer[0]}{number}", str(content))
            for number, content in con.execute(
                f"SELECT id, {text} FROM {layer} WHERE {_EMBEDDABLE[layer]} {missing} ORDER BY id LIMIT ?",
                (limit - len(found),),
            )
        ]
    return found


def drop(con: apsw.Connection, identity: str) -> None:
    """See `Store.drop_vector_index`."""
    index = _index(con, identity)
    if index is not None:
        for layer in _LAYERS:
            con.execute(f"DROP TABLE {_table(layer, index[0])}")
        con.execute("DELETE FROM vector_index WHERE id = ?", (index[0],))


def _index(con: apsw.Connection, identity: str) -> tuple[int, int] | None:
    row = con.execute("SELECT id, dimensions FROM vector_index WHERE identity = ?", (identity,)).fetchone()
    return None if row is None else (int(row[0]), int(row[1]))


def _table(layer: Layer | str, index: int) -> str:
    return f"{layer}_vec_{index}"


def _width(dimensions: int) -> int:
    """Bits come in bytes: the vector is padded with zeros, which changes no cosine."""
    return (dimensions + 7) // 8 * 8


def _quantise(data: NDArray[np.float32], width: int) -> tuple[NDArray[np.uint8], NDArray[np.int8]]:
    """Return sign bits and int8 of each row.

    A row of zeros (a text without a known word) becomes the last axis, which every query has least of:
    the row counts as embedded, and is near to nothing.
    """
    import numpy as np

    padded = np.zeros((data.shape[0], width), dtype=np.float32)
    padded[:, : data.shape[1]] = np.nan_to_num(data)
    largest = np.abs(padded).max(axis=1, keepdims=True)
    padded[:, -1][largest[:, 0] == 0] = 1.0
    largest[largest == 0] = 1.0
    fine = np.rint(padded / largest * 127).astype(np.int8)
    return np.packbits(padded > 0, axis=1, bitorder="little"), fine
