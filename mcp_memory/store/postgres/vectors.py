"""The vector index in PostgreSQL: a table of `halfvec` for each model and layer, searched exactly within a space.

A space with many vectors also has a separate table with an HNSW index, because an index over all spaces would find few
rows of a single space. New rows are put into the shared table and moved in the background (`move`), so a search reads
the index of the separate table, and all newest rows in the shared table. The separate table is a child of the shared
table, so a query over all spaces reads both. A partition would do that too, but attaching it locks and reads the
vectors of all other spaces.

The numbers are the same as in SQLite, integers up to 127, which `halfvec` stores exactly, so both engines compute the
same cosines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mcp_memory.store.postgres.connection import Binary, cache_of, connection_of, forbid_scans
from mcp_memory.store.sql import queues
from mcp_memory.store.sql.filters import is_plain, where
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, Value, number_of
from mcp_memory.store.sql.word_index import INDEXED, index_queue
from mcp_memory.store.stored_vectors import EMBEDDED_LAYERS, cosines, normalise, other_dimensions, quantise, unit
from mcp_memory.store.values import Layer, NearestQuery, Scored, VectorIndex, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


OWN = 50_000
"""A space with at least this many vectors has a separate table; fewer vectors are all scored, in some 30 ms."""

_RECENT = 1_000  # vectors of such a space that are scored exactly, before they are moved to its index
_EF_SEARCH = 400  # candidates of the index: on 58,487 turns it finds 98.7 % of the 100 nearest, with 200 95.8 %
_BY_INDEX = "v.embedding <#> ?::halfvec"
_BY_SCORE = "(v.embedding <#> ?::halfvec) + 0, v.id DESC"  # an order that no index gives
_MORE = 50  # rows beyond the limit that are scored again: the query is rounded to three digits first
_TEXT: tuple[tuple[Layer, str], ...] = (("atom", "r.text"), ("turn", "r.content"))


@dataclass(frozen=True, slots=True)
class _Tables:
    """The tables with a space's vectors of a layer by a model, and the number of their dimensions."""

    shared: str
    own: str | None
    dimensions: int

    @property
    def both(self) -> tuple[str, ...]:
        """The tables for FROM. Rows must be deleted in this order, because rows may be moved to `own` meanwhile."""
        return (f"ONLY {self.shared}", *((self.own,) if self.own else ()))


TABLES = (
    "(SELECT string_agg(concat_ws(' ', id, dimensions, "
    + ", ".join(f"to_regclass('{layer}_vec_' || id || '_of_' || :space) IS NOT NULL" for layer in EMBEDDED_LAYERS)
    + ", identity), E'\\n' ORDER BY id) FROM vector_index)"
)
"""The tables of all models, a line for each: its number, dimensions, whether each layer has an own table, its name."""


def _tables(tx: HomeTransaction, layer: Layer, *, identity: str | None = None) -> list[_Tables]:
    """Return the tables of a model, or of all models without `identity`."""
    tables: list[_Tables] = []
    lines = tx.fact("vector_tables") if isinstance(tx, Transaction) else tx.get(f"SELECT {TABLES}")
    for line in lines.split("\n") if lines else ():
        id, dimensions, *are_own, model = line.split(" ", 2 + len(EMBEDDED_LAYERS))
        if identity in (None, model):
            shared, has_own = f"{layer}_vec_{id}", are_own[EMBEDDED_LAYERS.index(layer)] == "t"
            tables.append(_Tables(shared, f"{shared}_of_{tx.space}" if has_own else None, int(dimensions)))
    return tables


def _ensure(tx: Transaction, layer: Layer, identity: str, dimensions: int) -> _Tables:
    """Create the tables of a model if it has none, and return them. Raises InvalidInput for other dimensions."""
    tables = _tables(tx, layer, identity=identity)
    if not tables:
        tx.run("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", f"mcp-memory vectors {identity}")
        tables = _tables(tx, layer, identity=identity)
    if not tables:
        index: int = tx.get(
            "INSERT INTO vector_index (identity, dimensions) VALUES (?, ?) RETURNING id", identity, dimensions
        )
        tx.run("SELECT create_vector_tables(?, ?)", index, dimensions)
        tables = _tables(tx, layer, identity=identity)
    if tables[0].dimensions != dimensions:
        raise other_dimensions(identity, dimensions, tables[0].dimensions)
    return tables[0]


def put(
    tx: Transaction, layer: Layer, numbers: Sequence[int], new: Vectors, *, rows: Sequence[int] | None = None
) -> None:
    """Store vectors of rows that have none and are not forgotten.

    `rows` are the places of the vectors in `new.data`; by default, all vectors are taken in order.
    """
    put_stored(tx, layer, numbers, new.identity, quantise(new.data if rows is None else new.data[list(rows)]))


def put_new(
    tx: Transaction, layer: Layer, numbers: Sequence[int], new: Vectors, *, rows: Sequence[int] | None = None
) -> None:
    """Do the same as `put`, but faster, for rows that this transaction has inserted."""
    data = quantise(new.data if rows is None else new.data[list(rows)])
    tables, name = cache_of(connection_of(tx)).tables, (layer, new.identity)
    if name not in tables:
        new_tables = _ensure(tx, layer, new.identity, data.shape[1])
        tables[name] = new_tables.shared, new_tables.dimensions
    shared, dimensions = tables[name]
    if dimensions != data.shape[1]:
        raise other_dimensions(new.identity, data.shape[1], dimensions)
    tx.run_rows(
        f"INSERT INTO {shared} (space, id, embedding) VALUES {{}} ON CONFLICT DO NOTHING",
        "(:space, ?, ?::halfvec)",
        list(zip(numbers, _halfvecs(data), strict=True)),
    )


def _halfvecs(data: NDArray[np.int8]) -> list[Binary]:
    import numpy as np

    vectors = np.zeros(len(data), [("dimensions", ">i2"), ("unused", ">i2"), ("numbers", ">f2", data.shape[1])])
    vectors["dimensions"], vectors["numbers"] = data.shape[1], data
    return [Binary(vector.tobytes()) for vector in vectors]


def put_stored(tx: Transaction, layer: Layer, numbers: Sequence[int], identity: str, data: NDArray[np.int8]) -> None:
    """See `sql.Index.put_stored`."""
    tables = _ensure(tx, layer, identity, data.shape[1])
    not_in_own = f" AND NOT EXISTS (SELECT 1 FROM {tables.own} v WHERE v.space = r.space AND v.id = r.id)"
    tx.run_rows(  # together: each statement would take longer than its row
        f"INSERT INTO {tables.shared} (space, id, embedding) SELECT r.space, r.id, n.embedding"
        f" FROM (VALUES {{}}) n (id, embedding) JOIN {layer} r ON r.space = :space AND r.id = n.id"
        f" WHERE r.tombstone IS NULL{not_in_own if tables.own else ''} ON CONFLICT DO NOTHING",
        "(?::bigint, ?::halfvec)",
        list(zip(numbers, _halfvecs(data), strict=True)),
    )


def delete(tx: Transaction, layer: Layer, numbers: Sequence[int]) -> None:
    for table in (table for tables in _tables(tx, layer) for table in tables.both):
        tx.run_among(f"DELETE FROM {table} WHERE space = :space AND id IN ({{}})", numbers)


def nearest(tx: Transaction, layer: Layer, queries: Sequence[NearestQuery]) -> list[list[Scored]]:
    """See `Store.nearest_to_each`. With filters, the vectors of all rows that pass are scored."""
    selects, values = list[str](), list[Value]()
    for query in queries:
        sql, new_values = _select_nearest(tx, layer, query)
        selects.append(sql)
        values += new_values
    if not any(selects):
        return [[] for _ in queries]
    forbid_scans(tx)
    if any(_is_approximate(tx, layer, query) for query in queries):
        tx.run(f"SET LOCAL hnsw.ef_search = {_EF_SEARCH}")
    (row,) = tx.all(f"SELECT {', '.join(sql or 'NULL' for sql in selects)}", *values)
    hits: list[list[Scored]] = []
    for query, data in zip(queries, row, strict=True):
        numbers, vectors = _read_lines(data or b"", query.vectors.data.shape[1])
        known = dict(zip(numbers.tolist(), vectors, strict=True))
        tx.note_known(_known_vectors(layer, query.vectors.identity), known)
        hits.append(_best(numbers, vectors, query.vectors.data[0], layer, query.limit))
    return hits


def _is_approximate(tx: Transaction, layer: Layer, query: NearestQuery) -> bool:
    """Return whether the index of the space's own table is searched, if there is one."""
    tables = _tables(tx, layer, identity=query.vectors.identity)
    return bool(tables and tables[0].own) and is_plain(layer, query.filters) and query.limit + _MORE <= _EF_SEARCH


def _select_nearest(tx: Transaction, layer: Layer, query: NearestQuery) -> tuple[str, list[Value]]:
    """Return a query for the rows nearest to a vector, with their vectors, as one value; empty if there are none."""
    vectors, filters, limit = query.vectors, query.filters, query.limit
    tables = _tables(tx, layer, identity=vectors.identity)
    if not tx.space or not tables or tables[0].dimensions != vectors.data.shape[1] or not vectors.data.any():
        return "", []
    passes, values = "", list[Value]()  # the vectors of forgotten turns are deleted
    if not is_plain(layer, filters):
        condition, values = where(tx, layer, filters)
        passes = f" AND EXISTS (SELECT 1 FROM {layer} r WHERE r.space = v.space AND r.id = v.id AND {condition})"
    approximate = tables[0].own if _is_approximate(tx, layer, query) else None
    legs = [
        f"SELECT int8send(v.id) || halfvec_send(v.embedding) AS line FROM (SELECT v.id FROM {table} v"
        f" WHERE v.space = :space{passes} ORDER BY {_BY_INDEX if table == approximate else _BY_SCORE} LIMIT ?) n"
        f" JOIN {table} v ON v.space = :space AND v.id = n.id"
        for table in tables[0].both
    ]
    asked = "[" + ",".join(f"{number:.8g}" for number in vectors.data[0].tolist()) + "]"
    return (
        f"(SELECT string_agg(line, '') FROM ({' UNION ALL '.join(legs)}) lines)",
        [*values, asked, limit + _MORE] * len(legs),
    )


def _read_lines(data: bytes, dimensions: int) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    import numpy as np

    line = np.dtype([("id", ">i8"), ("head", ">i4"), ("vector", ">f2", (dimensions,))])
    rows = np.frombuffer(data, line)
    rows = rows[np.unique(rows["id"], return_index=True)[1]]  # two servers may embed a row while it is moved
    return rows["id"].astype(np.int64), rows["vector"].astype(np.int8)


def _best(
    numbers: NDArray[np.int64], vectors: NDArray[np.int8], query: NDArray[np.float32], layer: Layer, limit: int
) -> list[Scored]:
    """Return the best rows by exact scores: PostgreSQL's scores are of the query rounded to `halfvec`."""
    import numpy as np

    scores = cosines(vectors, unit(query))
    order = np.lexsort((-numbers, -scores))[:limit]
    return [
        Scored(id=f"{layer[0]}{id}", score=score)
        for id, score in zip(numbers[order].tolist(), scores[order].tolist(), strict=True)
    ]


def of_rows(tx: Transaction, layer: Layer, ids: Sequence[str], identity: str) -> dict[str, NDArray[np.float32]]:
    """See `Store.vectors_of`."""
    numbers = [number_of(id, layer[0]) for id in ids]
    rows = tx.once(_known_vectors(layer, identity), numbers, partial(_read, tx, layer, identity))
    return {f"{layer[0]}{number}": normalise(row) for number, row in rows.items()}


def _known_vectors(layer: Layer, identity: str) -> str:
    return f"{layer} vectors by {identity}"


def read_stored(tx: Transaction, layer: Layer, numbers: Sequence[int], identity: str) -> dict[int, NDArray[np.int8]]:
    """See `sql.Index.stored_vectors`."""
    return _read(tx, layer, identity, numbers)


def _read(tx: Transaction, layer: Layer, identity: str, numbers: Sequence[int]) -> dict[int, NDArray[np.int8]]:
    import numpy as np

    vectors: dict[int, NDArray[np.int8]] = {}
    for table in (table for tables in _tables(tx, layer, identity=identity) for table in tables.both):
        sql = f"SELECT id, halfvec_send(embedding) FROM {table} WHERE space = :space AND id IN ({{}})"
        for number, data in tx.among(sql, numbers):
            vectors[number] = np.frombuffer(data, ">f2", offset=4).astype(np.int8)
    return vectors


# --- of all spaces ----------------------------------------------------------------------------------


def embeddable(tx: HomeTransaction) -> int:
    """Return the number of rows of all spaces that should have a vector."""
    counts = (tx.get(f"SELECT count(*) FROM {layer} WHERE {INDEXED[layer]}") for layer in EMBEDDED_LAYERS)
    return sum(counts)


def indexes(tx: HomeTransaction) -> list[VectorIndex]:
    """Return every model with vectors here, most complete first."""
    models = [
        VectorIndex(
            identity=identity,
            dimensions=dimensions,
            embedded=sum(tx.get(f"SELECT count(*) FROM {layer}_vec_{index}") for layer in EMBEDDED_LAYERS),
        )
        for index, identity, dimensions in tx.all("SELECT id, identity, dimensions FROM vector_index ORDER BY id")
    ]
    return sorted(models, key=lambda index: -index.embedded)


def unembedded(tx: Transaction, identity: str, *, limit: int) -> list[tuple[str, str]]:
    """See `Store.unembedded`."""
    texts: list[tuple[str, str]] = []
    for layer, text in _TEXT:
        missing = [
            f" AND NOT EXISTS (SELECT 1 FROM {table} v WHERE v.space = r.space AND v.id = r.id)"
            for tables in _tables(tx, layer, identity=identity)
            for table in tables.both
        ]
        rows = tx.all(
            f"SELECT r.id, {text} FROM {layer} r WHERE r.space = :space AND {INDEXED[layer]}{''.join(missing)}"
            " ORDER BY r.id LIMIT ?",
            limit - len(texts),
        )
        texts += [(f"{layer[0]}{number}", words) for number, words in rows]
    return texts


def move(tx: HomeTransaction, *, limit: int) -> bool:
    """Move up to `limit` vectors of a space to its separate table; return False if no space has enough of them.

    Runs in a transaction on all spaces, without locks that a capture or a search would wait for.
    """
    spaces = tx.all("SELECT space, kind FROM number WHERE kind IN ('turn', 'atom') AND last >= ? ORDER BY 1, 2", OWN)
    for shared, space in [
        (f"{layer}_vec_{index}", space)
        for index in tx.column("SELECT id FROM vector_index ORDER BY id")
        for space, layer in spaces
    ]:
        own = f"{shared}_of_{space}"
        has_own: bool = tx.get("SELECT to_regclass(?) IS NOT NULL", own)
        enough = _RECENT if has_own else OWN
        oldest = f"SELECT id FROM ONLY {shared} WHERE space = ? ORDER BY id LIMIT ?"
        if tx.get(f"SELECT count(*) FROM ({oldest}) counted", space, enough) < enough:
            continue
        if not has_own:
            tx.run("SELECT create_vector_table(?, ?)", shared, space)
        tx.run(
            f"WITH moved AS (DELETE FROM ONLY {shared} WHERE space = ? AND id IN ({oldest} FOR UPDATE SKIP LOCKED)"
            f" RETURNING space, id, embedding) INSERT INTO {own} SELECT * FROM moved ON CONFLICT DO NOTHING",
            *(space, space, limit),
        )
        return True
    return False


def drop(tx: HomeTransaction, identity: str) -> None:
    """See `Store.drop_vector_index`."""
    index = tx.get("DELETE FROM vector_index WHERE identity = ? RETURNING id", identity)
    if index is not None:
        tx.run("SELECT drop_vector_tables(?)", index)
        queues.look_again(tx, index_queue(identity))
