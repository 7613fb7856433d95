"""The vector leg in SQLite: one `vec0` table of int8 vectors for each model and layer, partitioned by space.

sqlite-vec stores and changes the vectors; `nearest_rows` searches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import apsw

from mcp_memory.store.sql import queues
from mcp_memory.store.sql.filters import is_plain, where
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, number_of
from mcp_memory.store.sql.word_index import INDEXED, index_queue
from mcp_memory.store.sqlite.index import nearest_rows
from mcp_memory.store.sqlite.index.outlines import Outlines
from mcp_memory.store.sqlite.index.rowids import ID_BITS, connection_of, rowid
from mcp_memory.store.stored_vectors import EMBEDDED_LAYERS, by_layer, normalise, other_dimensions, quantise
from mcp_memory.store.values import Filters, Layer, Scored, VectorIndex, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_TEXT: tuple[tuple[Layer, str], ...] = (("atom", "text"), ("turn", "content"))


@dataclass(slots=True)
class Seen:
    """The row of each space and layer up to which all rows have vectors; reset by changed tables and restored rows.

    Without it each search for rows to embed would read every row: half a second per million, at every write.
    """

    state: tuple[int | None, ...] = ()
    up_to: dict[tuple[Layer, int], int] = field(default_factory=dict[tuple[Layer, int], int])


def ensure(con: apsw.Connection, identity: str, dimensions: int) -> None:
    """Create a model's index. InvalidInput when it exists with other dimensions."""
    stored_dimensions = con.execute("SELECT dimensions FROM vector_index WHERE identity = ?", (identity,)).get
    if stored_dimensions == dimensions:
        return
    if stored_dimensions is not None:
        raise other_dimensions(identity, dimensions, stored_dimensions)
    number = con.execute(
        "INSERT INTO vector_index (identity, dimensions) VALUES (?, ?) RETURNING id", (identity, dimensions)
    ).get
    for layer in EMBEDDED_LAYERS:
        con.execute(f"DROP TABLE IF EXISTS main.{_table(layer, number)}")  # left over from a model without a row
        con.execute(
            f"CREATE VIRTUAL TABLE {_table(layer, number)} USING vec0("
            f"space INTEGER PARTITION KEY, embedding INT8[{dimensions}] distance_metric=cosine)"
        )


def put(
    con: apsw.Connection,
    layer: Layer,
    space: int,
    numbers: Sequence[int],
    vectors: Vectors,
    *,
    rows: Sequence[int] | None = None,
) -> None:
    """Store vectors of rows that have none yet; `rows` selects theirs from `vectors.data` (default: in order)."""
    put_stored(
        con,
        layer,
        space,
        numbers,
        vectors.identity,
        quantise(vectors.data if rows is None else vectors.data[list(rows)]),
    )


def put_stored(
    con: apsw.Connection, layer: Layer, space: int, numbers: Sequence[int], identity: str, data: NDArray[np.int8]
) -> None:
    """See `sql.Index.put_stored`."""
    ensure(con, identity, data.shape[1])
    index = con.execute("SELECT id FROM vector_index WHERE identity = ?", (identity,)).get
    table = _table(layer, index)
    con.executemany(
        f"INSERT INTO {table} (rowid, space, embedding)"
        f" SELECT ?3, space, vec_int8(?4) FROM {layer} WHERE space = ?1 AND id = ?2 AND tombstone IS NULL"
        f" AND NOT EXISTS (SELECT 1 FROM {table}_rowids WHERE rowid = ?3)",
        [(space, number, rowid(space, number), data[i].tobytes()) for i, number in enumerate(numbers)],
    )
    nearest_rows.add_late_sketches(con, layer, index, space, data.shape[1], numbers)


def put_by_id(con: apsw.Connection, rows: Sequence[tuple[str, str]], vectors: Vectors) -> None:
    """See `Store.put_vectors`: (space, id) of both layers, in any order."""
    for (name, layer), places in by_layer(rows).items():
        space = con.execute("SELECT id FROM space WHERE name = ?", (name,)).get or 0
        put(con, layer, space, [number_of(rows[place][1], layer[0]) for place in places], vectors, rows=places)


def delete(con: apsw.Connection, layer: Layer, space: int, numbers: Sequence[int]) -> None:
    """Remove rows from every model's index."""
    indexes: Any = con.execute("SELECT id FROM vector_index").fetchall()
    rows = [(rowid(space, number),) for number in numbers]
    for (index,) in indexes:
        con.executemany(f"DELETE FROM {_table(layer, index)} WHERE rowid = ?", rows)
        nearest_rows.delete_sketches(con, layer, index, space, numbers)


def nearest(
    tx: Transaction, layer: Layer, query: Vectors, *, filters: Filters, limit: int, outlines: Outlines
) -> list[Scored]:
    """See `Store.nearest`. `outlines` is the cache of the store."""
    index = tx.get(  # a model that changed behind its name is near to nothing that it embedded before
        "SELECT id FROM vector_index WHERE identity = ? AND dimensions = ?", query.identity, query.data.shape[1]
    )
    if not tx.space or index is None or not query.data.any():
        return []
    allowed = _allowed_rows(tx, layer, filters, outlines)
    hits = nearest_rows.nearest(connection_of(tx), layer, index, tx.space, query.data[0], allowed=allowed, limit=limit)
    return [Scored(id=f"{layer[0]}{row}", score=cosine) for row, cosine in hits]


def of_rows(tx: Transaction, layer: Layer, ids: Sequence[str], identity: str) -> dict[str, NDArray[np.float32]]:
    """See `Store.vectors_of`."""
    vectors = read_stored(connection_of(tx), layer, tx.space, [number_of(id, layer[0]) for id in ids], identity)
    return {f"{layer[0]}{number}": normalise(row) for number, row in vectors.items()}


def read_stored(
    con: apsw.Connection, layer: Layer, space: int, numbers: Sequence[int], identity: str
) -> dict[int, NDArray[np.int8]]:
    """See `sql.Index.stored_vectors`."""
    import numpy as np

    index = con.execute("SELECT id FROM vector_index WHERE identity = ?", (identity,)).get
    if index is None:
        return {}
    sql = f"SELECT embedding FROM {_table(layer, index)} WHERE rowid = ?"
    rows = ((number, con.execute(sql, (rowid(space, number),)).get) for number in numbers)
    return {number: np.frombuffer(data, np.int8) for number, data in rows if data is not None}


def _allowed_rows(tx: Transaction, layer: Layer, filters: Filters, outlines: Outlines) -> NDArray[np.bool_] | None:
    """Return for each id whether its row passes the filters; None if all do: the table has only live turns."""
    import numpy as np

    if is_plain(layer, replace(filters, upto=None)):
        # Limited to the rows of the space: the number comes from a cursor, which may be forged.
        newest = outlines.totals(tx).newest
        if filters.upto is None or filters.upto >= newest:
            return None
        return np.ones(filters.upto + 1, np.bool_)
    if layer == "turn":
        numbers = outlines.passing(tx, filters)
    else:
        condition, values = where(tx, layer, filters)
        numbers = np.array(tx.column(f"SELECT r.id FROM {layer} r WHERE {condition}", *values), np.int64)
    allowed = np.zeros(numbers.max(initial=0) + 1, np.bool_)
    allowed[numbers] = True
    return allowed


def due_sketches(con: apsw.Connection) -> list[tuple[Layer, int, int, int]]:
    """Return (layer, index, space, dimensions) of the tables whose sketches can be extended."""
    rows: Any = con.execute("SELECT id, dimensions FROM vector_index").fetchall()
    return [
        (layer, index, space, dimensions)
        for index, dimensions in rows
        for layer in EMBEDDED_LAYERS
        if (space := nearest_rows.due_space(con, layer, index, dimensions)) is not None
    ]


def extend_sketches(con: apsw.Connection) -> None:
    """Do a share of the work on all sketches. See `Store.maintain_indexes`."""
    for table in due_sketches(con):
        nearest_rows.extend_sketches(con, *table)


def problems(con: apsw.Connection) -> list[str]:
    """Return the missing sketches, a line for each model and layer. Dropping an index rebuilds all of them."""
    rows: Any = con.execute("SELECT id, identity FROM vector_index").fetchall()
    lacking = [
        (nearest_rows.missing_sketches(con, layer, index), layer, identity)
        for index, identity in rows
        for layer in EMBEDDED_LAYERS
    ]
    return [
        f"{count} {layer}s have no sketch by {identity}: drop its vectors, and they are recomputed."
        for count, layer, identity in lacking
        if count
    ]


def indexes(con: apsw.Connection) -> list[VectorIndex]:
    """Return every model with vectors here, most complete first."""
    rows: Any = con.execute("SELECT id, identity, dimensions FROM vector_index ORDER BY id").fetchall()
    models = [
        VectorIndex(
            identity=identity,
            dimensions=dimensions,
            embedded=sum(
                con.execute(f"SELECT count(*) FROM {_table(la, number)}_rowids").get for la in EMBEDDED_LAYERS
            ),
        )
        for number, identity, dimensions in rows
    ]
    return sorted(models, key=lambda index: -index.embedded)


def embeddable(con: apsw.Connection) -> int:
    """Return the number of rows of all spaces that a model has to embed, counted by indexes alone."""
    counts = (
        "SELECT count(*) FROM turn",
        "SELECT -count(*) FROM turn INDEXED BY turn_forgotten WHERE tombstone IS NOT NULL",
        "SELECT -count(*) FROM turn INDEXED BY turn_note WHERE tombstone IS NULL AND role = 'note'",
        "SELECT count(*) FROM atom",
        "SELECT -count(*) FROM atom INDEXED BY atom_forgotten WHERE tombstone IS NOT NULL",
    )
    return sum(con.execute(count).get for count in counts)


def unembedded(tx: Transaction, identity: str, *, limit: int, seen: Seen) -> list[tuple[str, str]]:
    """See `Store.unembedded`."""
    con, space = connection_of(tx), tx.space
    index = con.execute("SELECT id FROM vector_index WHERE identity = ?", (identity,)).get
    state = index, con.execute("PRAGMA schema_version").get, _brought_back(con)
    if seen.state != state:
        seen.state, seen.up_to = state, {}
    texts: list[tuple[str, str]] = []
    for layer, column in _TEXT:
        last, start = tx.last(layer), seen.up_to.get((layer, space), 0)
        if last <= start or len(texts) == limit:
            continue
        of_row = f"v.rowid = r.space << {ID_BITS} | r.id"
        missing = (
            "" if index is None else f"NOT EXISTS (SELECT 1 FROM {_table(layer, index)}_rowids v WHERE {of_row}) AND"
        )
        rows = tx.all(
            f"SELECT id, {column} FROM {layer} r WHERE space = :space AND id > ? AND {missing} {INDEXED[layer]}"
            " ORDER BY id LIMIT ?",
            *(start, limit - len(texts)),
        )
        if not rows:
            seen.up_to[layer, space] = last
        texts += [(f"{layer[0]}{number}", text) for number, text in rows]
    return texts


def _brought_back(con: apsw.Connection) -> int:
    """The number of undone forgettings: restored rows have no vectors."""
    return con.execute("SELECT count(undone_at) FROM tombstone").get


def drop(con: apsw.Connection, identity: str) -> None:
    """See `Store.drop_vector_index`."""
    index = con.execute("SELECT id FROM vector_index WHERE identity = ?", (identity,)).get
    if index is not None:
        for layer in EMBEDDED_LAYERS:
            con.execute(f"DROP TABLE {_table(layer, index)}")
            nearest_rows.drop_sketches(con, layer, index)
        con.execute("DELETE FROM vector_index WHERE id = ?", (index,))
        queues.look_again(HomeTransaction(con), index_queue(identity))


def _table(layer: Layer | str, index: int) -> str:
    return f"{layer}_vec_{index}"
