"""The vector index in SQLite: for each model and layer, a table with blocks of int8 vectors.

`vector_blocks` stores the vectors; `nearest_rows` searches them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import apsw

from mcp_memory.store.sql import queues
from mcp_memory.store.sql.filters import is_plain
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, number_of
from mcp_memory.store.sql.word_index import INDEXED, index_queue
from mcp_memory.store.sqlite.index import nearest_rows, vector_blocks
from mcp_memory.store.sqlite.index.outlines import Outlines, passing_rows
from mcp_memory.store.sqlite.index.rowids import connection_of
from mcp_memory.store.stored_vectors import EMBEDDED_LAYERS, by_layer, normalise, other_dimensions, quantise
from mcp_memory.store.values import Filters, Layer, NearestQuery, Scored, VectorIndex, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_TEXT: tuple[tuple[Layer, str], ...] = (("atom", "text"), ("turn", "content"))


@dataclass(slots=True)
class Seen:
    """The row of each space and layer up to which all rows have vectors; reset if tables change or rows are restored.

    Without it each search for rows to embed would read every row: half a second per million, at every write.
    """

    state: tuple[int | None, ...] = ()
    up_to: dict[tuple[Layer, int], int] = field(default_factory=dict[tuple[Layer, int], int])


def ensure(con: apsw.Connection, identity: str, dimensions: int) -> None:
    """Create the index of a model if it has none. Raises InvalidInput if it exists with other dimensions."""
    stored_dimensions = con.execute("SELECT dimensions FROM vector_index WHERE identity = ?", (identity,)).get
    if stored_dimensions == dimensions:
        return
    if stored_dimensions is not None:
        raise other_dimensions(identity, dimensions, stored_dimensions)
    number = con.execute(
        "INSERT INTO vector_index (identity, dimensions) VALUES (?, ?) RETURNING id", (identity, dimensions)
    ).get
    for layer in EMBEDDED_LAYERS:
        con.execute(f"DROP TABLE IF EXISTS {_table(layer, number)}")  # left over from a model without a row
        vector_blocks.create(con, _table(layer, number), dimensions)


def put(
    con: apsw.Connection,
    layer: Layer,
    space: int,
    numbers: Sequence[int],
    vectors: Vectors,
    *,
    rows: Sequence[int] | None = None,
) -> None:
    """Store vectors of rows that have none and are not forgotten.

    `rows` are the places of the vectors in `vectors.data`; by default, all vectors are taken in order.
    """
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
    live = f"SELECT 1 FROM {layer} WHERE space = ? AND id = ? AND tombstone IS NULL"
    rows = {
        number: vector.tobytes()
        for number, vector in zip(numbers, data, strict=True)
        if con.execute(live, (space, number)).get is not None
    }
    vector_blocks.put(con, _table(layer, index), space, rows)


def put_by_id(con: apsw.Connection, rows: Sequence[tuple[str, str]], vectors: Vectors) -> None:
    """See `Store.put_vectors`. `rows` are (space, id) of turns and atoms, in any order."""
    for (name, layer), places in by_layer(rows).items():
        space = con.execute("SELECT id FROM space WHERE name = ?", (name,)).get or 0
        put(con, layer, space, [number_of(rows[place][1], layer[0]) for place in places], vectors, rows=places)


def delete(con: apsw.Connection, layer: Layer, space: int, numbers: Sequence[int]) -> None:
    """Remove rows from every model's index."""
    indexes: Any = con.execute("SELECT id, dimensions FROM vector_index").fetchall()
    for index, dimensions in indexes:
        vector_blocks.erase(con, _table(layer, index), space, numbers, dimensions)


def nearest_to_each(
    tx: Transaction, layer: Layer, queries: Sequence[NearestQuery], *, outlines: Outlines
) -> list[list[Scored]]:
    """See `Store.nearest_to_each`. `outlines` is the cache of the store. The vectors of a model are read once."""
    if not tx.space:
        return [[] for _ in queries]
    allowed = {filters: _allowed_rows(tx, layer, filters, outlines) for _, filters, _ in queries}
    found: list[list[Scored]] = [[] for _ in queries]
    by_model: dict[tuple[str, int], dict[int, nearest_rows.Best]] = {}
    for place, (vectors, filters, limit) in enumerate(queries):
        if vectors.data.any():
            model = vectors.identity, vectors.data.shape[1]
            by_model.setdefault(model, {})[place] = nearest_rows.Best(vectors.data[0], limit, allowed[filters])
    for model, asked in by_model.items():  # a model that changed behind its name is near to nothing it embedded before
        index = tx.get("SELECT id FROM vector_index WHERE identity = ? AND dimensions = ?", *model)
        if index is not None:
            nearest_rows.find(connection_of(tx), _table(layer, index), tx.space, list(asked.values()))
        for place, best in asked.items():
            found[place] = [Scored(id=f"{layer[0]}{row}", score=cosine) for row, cosine in best.results()]
    return found


def of_rows(tx: Transaction, layer: Layer, ids: Sequence[str], identity: str) -> dict[str, NDArray[np.float32]]:
    """See `Store.vectors_of`."""

    def read(numbers: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        stored = read_stored(connection_of(tx), layer, tx.space, numbers, identity)
        return {number: normalise(row) for number, row in stored.items()}

    numbers = [number_of(id, layer[0]) for id in ids]
    return {
        f"{layer[0]}{number}": row for number, row in tx.once(f"{layer} vectors by {identity}", numbers, read).items()
    }


def read_stored(
    con: apsw.Connection, layer: Layer, space: int, numbers: Sequence[int], identity: str
) -> dict[int, NDArray[np.int8]]:
    """See `sql.Index.stored_vectors`."""
    found: Any = con.execute("SELECT id, dimensions FROM vector_index WHERE identity = ?", (identity,)).fetchall()
    for index, dimensions in found:
        return vector_blocks.read(con, _table(layer, index), space, numbers, dimensions)
    return {}


def _allowed_rows(tx: Transaction, layer: Layer, filters: Filters, outlines: Outlines) -> NDArray[np.bool_] | None:
    """Return for each id whether its row passes the filters; None if every row with a vector passes."""
    import numpy as np

    if is_plain(layer, replace(filters, upto=None)):
        # Limited to the rows of the space: the number comes from a cursor, which may be forged.
        newest = outlines.totals(tx).newest
        if filters.upto is None or filters.upto >= newest:
            return None
        return np.ones(filters.upto + 1, np.bool_)
    numbers = passing_rows(tx, layer, filters, outlines)
    allowed = np.zeros(numbers.max(initial=0) + 1, np.bool_)
    allowed[numbers] = True
    return allowed


def indexes(con: apsw.Connection) -> list[VectorIndex]:
    """Return every model with vectors here, most complete first."""
    rows: Any = con.execute("SELECT id, identity, dimensions FROM vector_index ORDER BY id").fetchall()
    models = [
        VectorIndex(
            identity=identity,
            dimensions=dimensions,
            embedded=sum(vector_blocks.count(con, _table(layer, number)) for layer in EMBEDDED_LAYERS),
        )
        for number, identity, dimensions in rows
    ]
    return sorted(models, key=lambda index: -index.embedded)


def embeddable(con: apsw.Connection) -> int:
    """Return the number of rows of all spaces that should have a vector, counted by indexes alone."""
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
        missing = "TRUE" if index is None else vector_blocks.is_missing(_table(layer, index), "r")
        rows = tx.all(
            f"SELECT id, {column} FROM {layer} r WHERE space = :space AND id > ? AND {missing} AND {INDEXED[layer]}"
            " ORDER BY id LIMIT ?",
            *(start, limit - len(texts)),
        )
        seen.up_to[layer, space] = rows[0][0] - 1 if rows else last
        texts += [(f"{layer[0]}{number}", text) for number, text in rows]
    return texts


def _brought_back(con: apsw.Connection) -> int:
    """Return the number of undone forgettings; the restored rows have no vectors."""
    return con.execute("SELECT count(undone_at) FROM tombstone").get


def drop(con: apsw.Connection, identity: str) -> None:
    """See `Store.drop_vector_index`."""
    index = con.execute("SELECT id FROM vector_index WHERE identity = ?", (identity,)).get
    if index is not None:
        for layer in EMBEDDED_LAYERS:
            con.execute(f"DROP TABLE {_table(layer, index)}")
        con.execute("DELETE FROM vector_index WHERE id = ?", (index,))
        queues.look_again(HomeTransaction(con), index_queue(identity))


def _table(layer: Layer | str, index: int) -> str:
    return f"{layer}_vec_{index}"
