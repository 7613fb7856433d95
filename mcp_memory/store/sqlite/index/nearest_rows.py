"""Nearest rows by their vectors: an exact scan, and coarse vectors (sketches) for spaces with many rows.

The scan scores every row of a space. It reads the chunks that sqlite-vec keeps (tables `…_chunks`, `…_rowids` and
`…_vector_chunks00`, described in its ARCHITECTURE.md), through one blob handle into one buffer, and multiplies
them with numpy: `MATCH` of vec0 0.1.9 takes many times as long, since it picks the k best rows of a chunk one after
the other. A test checks that both give the same answer. The scan takes 0.25 s per million rows of 256 numbers.

Sketches make the search of many rows fast and miss about one row in some hundred. The sketch of a row is its vector
minus the mean, projected on the directions in which the vectors of its space vary most: a third of the numbers, or
less. The search scores all sketches, then the best few thousand rows in full, so the returned scores are exact.
`bench/RESULTS.md` has the measured loss (`python -m bench.vectors`).

For the `vec0` table `turn_vec_1` there are three tables: `turn_sketch_1`, a `vec0` table of sketches; `turn_row_1`,
the same vectors, one per row, so that a vector can be read without its chunk; and `turn_plan_1`: for each large space
the directions, and the id up to which all its rows have sketches. Rows above it are scanned exactly, so that all
processes find new rows at once; a background job (`extend_sketches`) adds their sketches by the thousand. All of this
is a projection of the `vec0` table, made for a space when it has grown to _FROM rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import apsw

from mcp_memory.store.sqlite.index.rowids import ID_BITS, ID_MASK, rowid, span
from mcp_memory.store.stored_vectors import cosines, unit
from mcp_memory.store.values import Layer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_BLOCK = 2**20  # bytes of vectors read together
_FLOATS = 2**17  # numbers multiplied together
_ROUNDING = 1e-4  # more than single precision can be off in a cosine


class Best:
    """The best rows of all that were added, by their cosines to the query."""

    def __init__(self, query: NDArray[np.float32], limit: int) -> None:
        import numpy as np

        self._query = unit(query)
        self._limit = limit
        self._numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self._scores: NDArray[np.float64] = np.empty(0, np.float64)

    def add(self, numbers: NDArray[np.int64], rows: NDArray[np.int8]) -> None:
        """Score rows; those numbered 0 are left out.

        First all in single precision, which is fast; then the possible best rows again, one by one, so that equal rows
        get equal scores to the last bit, whatever their position.
        """
        import numpy as np

        if np.count_nonzero(numbers) < len(numbers) / 2:  # a filter left few
            numbers, rows = numbers[numbers > 0], rows[numbers > 0]
        rough = np.where(numbers > 0, products(rows, self._query), -np.inf)
        bar = -np.inf
        if len(self._scores) == self._limit:
            bar = self._scores[-1] - _ROUNDING
        elif len(rough) > self._limit:
            bar = np.partition(rough, -self._limit)[-self._limit] - 2 * _ROUNDING
        near = np.flatnonzero((rough >= bar) & (numbers > 0))
        if len(near):
            self._merge(numbers[near], cosines(rows[near], self._query))

    def _merge(self, numbers: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        import numpy as np

        numbers, scores = np.concatenate((self._numbers, numbers)), np.concatenate((self._scores, scores))
        order = np.lexsort((-numbers, -scores))[: self._limit]
        self._numbers, self._scores = numbers[order], scores[order]

    def results(self) -> list[tuple[int, float]]:
        """Return row numbers and cosines, best first; ties by number, newest first."""
        return list(zip(self._numbers.tolist(), self._scores.tolist(), strict=True))


def products(rows: NDArray[np.int8], query: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return each row times the query, in single precision.

    Processes some hundred rows at a time: the floats stay in the cache of a core, and OpenBLAS stays in one thread. For
    half a million numbers it would start others and wait for the scheduler, 8 ms if a core is busy.
    """
    import numpy as np

    floats = np.empty((max(1, _FLOATS // len(query)), len(query)), np.float32)
    single = query.astype(np.float32)
    result = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), len(floats)):
        part = rows[start : start + len(floats)]
        np.copyto(floats[: len(part)], part)
        np.dot(floats[: len(part)], single, out=result[start : start + len(part)])
    return result


def blocks(
    con: apsw.Connection,
    table: str,
    space: int,
    dimensions: int,
    *,
    allowed: NDArray[np.bool_] | None = None,
    above: int = 0,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int8]]]:
    """Yield ids of rows (0 for a row to skip) and their vectors, which the next block overwrites.

    Rows with an id up to `above` are skipped.
    """
    import numpy as np

    chunks = list(_chunks(con, table, space, allowed, above))
    if not chunks:
        return
    size = len(chunks[0][1]) * dimensions
    together = max(1, _BLOCK // size)
    buffer = np.empty((together * len(chunks[0][1]), dimensions), np.int8)
    raw = memoryview(buffer).cast("B")
    vectors = con.blob_open("main", f"{table}_vector_chunks00", "vectors", chunks[0][0], False)
    try:
        for start in range(0, len(chunks), together):
            for place, (chunk, _) in enumerate(chunks[start : start + together]):
                vectors.reopen(chunk)
                vectors.read_into(raw, place * size, size)
            numbers = np.concatenate([numbers for _, numbers in chunks[start : start + together]])
            yield numbers, buffer[: len(numbers)]
    finally:
        vectors.close()


def _chunks(
    con: apsw.Connection, table: str, space: int, allowed: NDArray[np.bool_] | None, above: int
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the chunks that have rows to score, and the ids of their rows (0 for a row to skip)."""
    import numpy as np

    tail = ""
    if above:
        newer = f"rowid > {rowid(space, above)} AND rowid <= {span(space)[1]}"
        tail = f"AND chunk_id IN (SELECT chunk_id FROM {table}_rowids WHERE {newer})"
    for chunk, used, rowids in con.execute(
        f"SELECT chunk_id, validity, rowids FROM {table}_chunks WHERE partition00 = ? {tail} ORDER BY chunk_id",
        (space,),
    ):
        numbers = np.frombuffer(rowids, np.int64) & ID_MASK
        if used.count(255) < len(used):
            numbers = numbers * np.unpackbits(np.frombuffer(used, np.uint8), bitorder="little")
        if allowed is not None:
            in_range = np.where(numbers < len(allowed), numbers, 0)
            numbers = np.where(allowed[in_range], in_range, 0)
        if above:
            numbers = np.where(numbers > above, numbers, 0)
        if numbers.any():
            yield chunk, numbers


# --- sketches ---------------------------------------------------------------------------------------


_FROM = 50_000  # rows; until then the exact scan takes some ten milliseconds
_STEP = 2_000  # rows added per batch, and about as many may be waiting
CANDIDATES = 1_200  # rows scored in full, plus 1 per _MORE rows
_MORE = 500
_SAMPLE = 8_192
_ROUNDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """`directions` has one column a number of a sketch; a row's sketch is vector @ directions - shift, rounded."""

    covered: int
    directions: NDArray[np.float32]
    shift: NDArray[np.float32]


def nearest(
    con: apsw.Connection,
    layer: Layer,
    index: int,
    space: int,
    query: NDArray[np.float32],
    *,
    allowed: NDArray[np.bool_] | None,
    limit: int,
) -> list[tuple[int, float]]:
    """Return (id, cosine), best first: of rows with promising sketches, and of all rows without one.

    `allowed` has for each id from 0 on whether the row may be returned; None allows all.
    """
    import numpy as np

    best = Best(query, limit)
    covered = 0
    plan = _plan(con, layer, index, space, len(query))
    if plan is not None:
        covered = plan.covered
        candidates = None if allowed is None else np.flatnonzero(allowed[: covered + 1])
        if candidates is None or len(candidates) > CANDIDATES:
            candidates = _ids_of_nearest_sketches(
                con, f"{layer}_sketch_{index}", space, query @ plan.directions, allowed
            )
        best.add(*_rows(con, layer, index, space, candidates, len(query)))
    for numbers, rows in blocks(con, f"{layer}_vec_{index}", space, len(query), allowed=allowed, above=covered):
        best.add(numbers, rows)
    return best.results()


def due_space(con: apsw.Connection, layer: Layer, index: int, dimensions: int) -> int | None:
    """Return a space with enough rows that `extend_sketches` can process."""
    if dimensions < 2 * _width(dimensions):
        return None
    large: Any = con.execute("SELECT space, last FROM number WHERE kind = ? AND last >= ?", (layer, _FROM)).fetchall()
    for space, last in large:
        covered = _covered_up_to(con, layer, index, space)
        least = _FROM if covered is None else _STEP
        if (
            last - (covered or 0) >= least
            and len(_uncovered_ids(con, layer, index, space, covered or 0, least)) == least
        ):
            return space
    return None


def extend_sketches(con: apsw.Connection, layer: Layer, index: int, space: int, dimensions: int) -> None:
    """Add the next rows of a space to the sketches; creates the tables if they do not exist."""
    plan = _plan(con, layer, index, space, dimensions) or _create_plan(con, layer, index, space, dimensions)
    waiting = _uncovered_ids(con, layer, index, space, plan.covered, _STEP)
    _add_sketches(con, layer, index, space, plan, waiting)
    con.execute(f"UPDATE {layer}_plan_{index} SET covered = ? WHERE space = ?", (waiting[-1], space))


def _uncovered_ids(con: apsw.Connection, layer: Layer, index: int, space: int, covered: int, limit: int) -> list[int]:
    """Return the next ids of rows that have vectors and are not covered."""
    rows = con.execute(
        f"SELECT rowid & {ID_MASK} FROM {layer}_vec_{index}_rowids WHERE rowid > ? AND rowid <= ?"
        " ORDER BY rowid LIMIT ?",
        (rowid(space, covered), span(space)[1], limit),
    )
    return [int(number) for (number,) in rows]


def add_late_sketches(
    con: apsw.Connection, layer: Layer, index: int, space: int, dimensions: int, numbers: Sequence[int]
) -> None:
    """Add sketches of rows whose vectors came after those of later rows: `extend_sketches` would skip them."""
    covered = _covered_up_to(con, layer, index, space)
    late = [number for number in numbers if covered is not None and number <= covered]
    plan = _plan(con, layer, index, space, dimensions) if late else None
    if plan is not None:
        _add_sketches(con, layer, index, space, plan, late)


def delete_sketches(con: apsw.Connection, layer: Layer, index: int, space: int, numbers: Sequence[int]) -> None:
    if _covered_up_to(con, layer, index, space) is not None:
        for table, key in ((f"{layer}_sketch_{index}", "rowid"), (f"{layer}_row_{index}", "id")):
            con.executemany(f"DELETE FROM {table} WHERE {key} = ?", [(rowid(space, number),) for number in numbers])


def drop_sketches(con: apsw.Connection, layer: Layer, index: int) -> None:
    for table in ("sketch", "row", "plan"):
        con.execute(f"DROP TABLE IF EXISTS {layer}_{table}_{index}")


def missing_sketches(con: apsw.Connection, layer: Layer, index: int) -> int:
    """Return the number of covered rows without a sketch, which a search by meaning would not find."""
    if not _has_any(con, layer, index):
        return 0
    return con.execute(
        f"SELECT count(*) FROM {layer}_plan_{index} p JOIN {layer}_vec_{index}_rowids v"
        f" ON v.rowid BETWEEN p.space << {ID_BITS} AND p.space << {ID_BITS} | p.covered"
        f" WHERE NOT EXISTS (SELECT 1 FROM {layer}_row_{index} WHERE id = v.rowid)"
    ).get


# --- the search -------------------------------------------------------------------------------------


def _ids_of_nearest_sketches(
    con: apsw.Connection, table: str, space: int, query: NDArray[np.float32], allowed: NDArray[np.bool_] | None
) -> NDArray[np.int64]:
    """Return the ids of the rows with the nearest sketches."""
    import numpy as np

    numbers: list[NDArray[np.int64]] = []
    scores: list[NDArray[np.float32]] = []
    for block, rows in blocks(con, table, space, len(query), allowed=allowed):
        numbers.append(block)
        scores.append(products(rows, query))
        scores[-1][block == 0] = -np.inf
    if not numbers:
        return np.empty(0, np.int64)
    ids, score = np.concatenate(numbers), np.concatenate(scores)
    count = CANDIDATES + len(ids) // _MORE
    if len(ids) > count:
        ids = ids[np.argpartition(score, -count)[-count:]]
    return ids[ids > 0]


def _rows(
    con: apsw.Connection, layer: Layer, index: int, space: int, numbers: NDArray[np.int64], dimensions: int
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Return the existing rows among these, with their vectors."""
    import json

    import numpy as np

    vectors: list[Any] = con.execute(
        f"SELECT id & {ID_MASK}, vector FROM {layer}_row_{index} WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps((np.sort(numbers) | rowid(space, 0)).tolist()),),
    ).fetchall()
    rows = np.frombuffer(b"".join(vector for _, vector in vectors), np.int8).reshape(-1, dimensions)
    return np.array([number for number, _ in vectors], np.int64), rows


# --- making them ------------------------------------------------------------------------------------


def _width(dimensions: int) -> int:
    """Return the number of dimensions of a sketch."""
    return max(80, dimensions // 8)


def _plan(con: apsw.Connection, layer: Layer, index: int, space: int, dimensions: int) -> _Plan | None:
    import numpy as np

    covered = _covered_up_to(con, layer, index, space)
    if covered is None:
        return None
    data: bytes = con.execute(f"SELECT directions FROM {layer}_plan_{index} WHERE space = ?", (space,)).get
    directions = np.frombuffer(data, np.float32).reshape(dimensions + 1, -1)
    return _Plan(covered=covered, directions=directions[:-1], shift=directions[-1])


def _covered_up_to(con: apsw.Connection, layer: Layer, index: int, space: int) -> int | None:
    """Return the id up to which all rows of a space have a sketch; None for a space without sketches."""
    if not _has_any(con, layer, index):
        return None
    return con.execute(f"SELECT covered FROM {layer}_plan_{index} WHERE space = ?", (space,)).get


def _has_any(con: apsw.Connection, layer: Layer, index: int) -> bool:
    return con.table_exists("main", f"{layer}_plan_{index}")


def _create_plan(con: apsw.Connection, layer: Layer, index: int, space: int, dimensions: int) -> _Plan:
    import numpy as np

    width = _width(dimensions)
    directions, shift = _directions(_sample(con, f"{layer}_vec_{index}", space, dimensions), width)
    if not _has_any(con, layer, index):
        con.execute(
            f"CREATE VIRTUAL TABLE {layer}_sketch_{index} USING vec0("
            f"space INTEGER PARTITION KEY, embedding INT8[{width}]);"
            f"CREATE TABLE {layer}_row_{index} (id INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;"
            f"CREATE TABLE {layer}_plan_{index} (space INTEGER PRIMARY KEY, covered INTEGER NOT NULL,"
            " directions BLOB NOT NULL) STRICT;"
        )
    data = np.vstack((directions, shift)).astype(np.float32).tobytes()
    con.execute(f"INSERT INTO {layer}_plan_{index} VALUES (?, 0, ?)", (space, data))
    return _Plan(covered=0, directions=directions, shift=shift)


def _sample(con: apsw.Connection, vectors: str, space: int, dimensions: int) -> NDArray[np.float32]:
    """Return vectors sampled evenly over a space: rows at equal steps from chunks at equal steps."""
    import numpy as np

    sql = f"SELECT chunk_id FROM {vectors}_chunks WHERE partition00 = ? ORDER BY chunk_id"
    chunks = [int(chunk) for (chunk,) in con.execute(sql, (space,))]
    taken: list[NDArray[np.int8]] = []
    for chunk in chunks[:: max(1, len(chunks) // 64)]:
        data: bytes = con.execute(f"SELECT vectors FROM {vectors}_vector_chunks00 WHERE rowid = ?", (chunk,)).get
        taken.append(np.frombuffer(data, np.int8).reshape(-1, dimensions)[:: 1024 * 64 // _SAMPLE])
    rows = np.concatenate(taken).astype(np.float32)
    return rows[rows.any(axis=1)]


def _directions(sample: NDArray[np.float32], width: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the directions in which the sample varies most, scaled to fill an int8, and the shift of its mean.

    Computed by orthogonal iteration: close enough to the principal components, and fast for vectors of any length.
    """
    import numpy as np

    mean = sample.mean(axis=0)
    centred = sample - mean
    directions = np.random.default_rng(0).normal(size=(sample.shape[1], width)).astype(np.float32)
    for _ in range(_ROUNDS):
        directions = np.linalg.qr(centred.T @ (centred @ directions))[0]
    directions *= 127 / np.quantile(np.abs(centred @ directions), 0.9999)
    return directions, mean @ directions


def _add_sketches(
    con: apsw.Connection, layer: Layer, index: int, space: int, plan: _Plan, numbers: Sequence[int]
) -> None:
    """Copy the missing rows of the `vec0` table."""
    import numpy as np

    missing: list[Any] = []
    for number in numbers:
        missing += con.execute(
            f"SELECT rowid, embedding FROM {layer}_vec_{index} WHERE rowid = ?1"
            f" AND NOT EXISTS (SELECT 1 FROM {layer}_row_{index} WHERE id = ?1)",
            (rowid(space, number),),
        )
    if not missing:
        return
    rows = np.frombuffer(b"".join(vector for _, vector in missing), np.int8).reshape(len(missing), -1)
    sketches = np.clip(np.rint(rows.astype(np.float32) @ plan.directions - plan.shift), -127, 127).astype(np.int8)
    con.executemany(
        f"INSERT INTO {layer}_sketch_{index} (rowid, space, embedding) VALUES (?, ?, vec_int8(?))",
        [(row, space, sketch.tobytes()) for (row, _), sketch in zip(missing, sketches, strict=True)],
    )
    con.executemany(f"INSERT INTO {layer}_row_{index} VALUES (?, ?)", missing)
