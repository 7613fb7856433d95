"""Tables of vectors: one for each model and layer, with a row for every 128 vectors of a space.

Row n of a space is at place n % 128 of its block n // 128, so a block needs no ids. Few places are empty, because ids
are given in sequence and nearly every row has a vector. `present` has a byte for each place, 1 if it has a vector;
`vectors` has the vectors in int8. A vector is written in its place by incremental blob I/O, and erased by zeros.

A search scans the blocks of its space. With a row for each vector it would take five times as long, and with `MATCH` of
sqlite-vec four times (`bench/RESULTS.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import apsw

from mcp_memory.store.sqlite.index.rowids import ID_MASK, rowid, span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


ROWS = 128
_BYTES = 2**20  # of vectors that are read together


def create(con: apsw.Connection, table: str, dimensions: int) -> None:
    con.execute(
        f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, present BLOB NOT NULL CHECK (length(present) = {ROWS}),"
        f" vectors BLOB NOT NULL {size_check(dimensions)}) STRICT"
    )


def size_check(dimensions: int) -> str:
    """Return the constraint in the schema of a table by which its dimensions are known."""
    return f"CHECK (length(vectors) = {ROWS} * {dimensions})"


def is_missing(table: str, row: str) -> str:
    """Return the SQL condition that a row has no vector in a table; `row` is the alias of the row in the query."""
    place = f"v.id = {row}.space << 40 | {row}.id / {ROWS} AND substr(v.present, {row}.id % {ROWS} + 1, 1) = x'01'"
    return f"NOT EXISTS (SELECT 1 FROM {table} v WHERE {place})"


def count(con: apsw.Connection, table: str) -> int:
    """Return the number of vectors in a table."""
    return sum(present.count(1) for (present,) in con.execute(f"SELECT present FROM {table}"))


def put(con: apsw.Connection, table: str, space: int, vectors: Mapping[int, bytes]) -> None:
    """Store the vectors of rows; rows that have a vector already are skipped."""
    for block, numbers in _by_block(space, vectors):
        size = ROWS * len(vectors[numbers[0]])
        con.execute(
            f"INSERT INTO {table} VALUES (?, zeroblob({ROWS}), zeroblob({size})) ON CONFLICT DO NOTHING", (block,)
        )
        _write(con, table, block, {number % ROWS: vectors[number] for number in numbers}, present=True)


def erase(con: apsw.Connection, table: str, space: int, numbers: Iterable[int], dimensions: int) -> None:
    """Overwrite the vectors of rows by zeros, and delete blocks that become empty."""
    for block, rows in _by_block(space, numbers):
        if con.execute(f"SELECT 1 FROM {table} WHERE id = ?", (block,)).get is not None:
            _write(con, table, block, dict.fromkeys((row % ROWS for row in rows), bytes(dimensions)), present=False)
            con.execute(f"DELETE FROM {table} WHERE id = ? AND present = zeroblob({ROWS})", (block,))


def _write(con: apsw.Connection, table: str, block: int, vectors: Mapping[int, bytes], *, present: bool) -> None:
    """Write vectors and `present` at places of a block, except places that have this value of `present` already."""
    with (
        con.blob_open("main", table, "present", block, True) as flags,
        con.blob_open("main", table, "vectors", block, True) as stored,
    ):
        before = flags.read()
        for place, vector in vectors.items():
            if before[place] != present:
                flags.seek(place)
                flags.write(bytes([present]))
                stored.seek(place * len(vector))
                stored.write(vector)


def read(
    con: apsw.Connection, table: str, space: int, numbers: Iterable[int], dimensions: int
) -> dict[int, NDArray[np.int8]]:
    """Return the vectors of rows; rows without a vector are left out."""
    import numpy as np

    vectors: dict[int, NDArray[np.int8]] = {}
    for block, rows in _by_block(space, numbers):
        present: bytes = con.execute(f"SELECT present FROM {table} WHERE id = ?", (block,)).get or bytes(ROWS)
        if any(present[row % ROWS] for row in rows):
            with con.blob_open("main", table, "vectors", block, False) as stored:
                for row in rows:
                    if present[row % ROWS]:
                        stored.seek(row % ROWS * dimensions)
                        vectors[row] = np.frombuffer(stored.read(dimensions), np.int8)
    return vectors


def scan(
    con: apsw.Connection, table: str, space: int, dimensions: int, *, allowed: NDArray[np.bool_] | None = None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int8]]]:
    """Yield batches of row numbers of a space (0 for a place to skip) and their vectors.

    The vectors of a batch are valid until the next batch overwrites them.
    `allowed` has for each row from 0 on whether it is scanned; None allows all.
    """
    import numpy as np

    first = con.execute(f"SELECT min(id) FROM {table} WHERE id BETWEEN ? AND ?", span(space)).get
    if first is None:
        return
    listed: Any = con.execute(f"SELECT id, present FROM {table} WHERE id BETWEEN ? AND ? ORDER BY id", span(space))
    size = ROWS * dimensions
    together = max(1, _BYTES // size)
    buffer = np.empty((together * ROWS, dimensions), np.int8)
    raw = memoryview(buffer).cast("B")
    with con.blob_open("main", table, "vectors", first, False) as stored:
        while blocks := list[Any](islice(listed, together)):
            ids = np.array([id for id, _ in blocks], np.int64)
            present = np.frombuffer(b"".join(flags for _, flags in blocks), np.int8).reshape(-1, ROWS)
            numbers = allowed_of(((ids & ID_MASK)[:, None] * ROWS + np.arange(ROWS)) * present, allowed)
            used = numbers.any(axis=1)
            for place, id in enumerate(ids[used].tolist()):
                stored.reopen(id)
                stored.read_into(raw, place * size, size)
            if used.any():
                yield numbers[used].ravel(), buffer[: int(used.sum()) * ROWS]


def allowed_of(numbers: NDArray[np.int64], allowed: NDArray[np.bool_] | None) -> NDArray[np.int64]:
    """Return row numbers, with 0 in place of those that are not allowed; None allows all."""
    import numpy as np

    if allowed is None:
        return numbers
    in_range = np.where(numbers < len(allowed), numbers, 0)
    return np.where(allowed[in_range], in_range, 0)


def _by_block(space: int, numbers: Iterable[int]) -> list[tuple[int, list[int]]]:
    return [
        (rowid(space, block), list(rows)) for block, rows in groupby(sorted(numbers), lambda number: number // ROWS)
    ]
