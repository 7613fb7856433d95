"""Segments of the word index: the rows of each term, for a range of rows of a space.

`{layer}_terms` has the keys of each row (see `terms`). A GIN index over them would change a page for each term of a
row, and log 20 to 40 kB for a turn. Instead, rows are indexed together, in the background: a segment covers an aligned
range of row numbers and is computed from `{layer}_terms` by one statement. When a larger range is complete, one segment
replaces the smaller ones. A search reads the segments of a space, and the keys of the rows that have no segment yet.

A segment is spread over buckets of its keys, a row of `term_segment` for each. The key `keys[i]` has the rows
`first + rows[j]` for `ends[i - 1] < j <= ends[i]`. Bucket 0 always exists.

Triggers delete the segment of each row of `{layer}_terms` that is inserted, changed or deleted later, in the same
transaction. So a segment always has the keys of exactly the rows in its range, and none of a forgotten row, whichever
version of this program writes. The rows that remain are searched by their keys until they are merged again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from time import monotonic
from typing import Any, get_args

import psycopg

from mcp_memory.language.words import TERMS_VERSION
from mcp_memory.store.postgres.access import enter_as_owner
from mcp_memory.store.postgres.connection import PostgresConnection
from mcp_memory.store.sql.transaction import HomeTransaction
from mcp_memory.store.values import Layer

Connection = psycopg.Connection[Any]

SIZES = (4_096, 512, 64)
"""Row numbers that a segment covers: a multiple of its size and the numbers that follow.

A search takes as long for six rows without a segment as for a segment, and a turn is written once for each size. Larger
segments would lock the space for longer when they are made, and be made again when one of their rows is forgotten.
"""

_LAYERS: tuple[Layer, ...] = get_args(Layer)
_BUCKET_BYTES = 2_500  # at most, on average; with 1,000 the rows have a quarter more log, and more disk
_SCAN_SECONDS = 600.0

_TABLE = """
    CREATE TABLE term_segment (
        space BIGINT NOT NULL, layer TEXT NOT NULL, first BIGINT NOT NULL, bucket INT NOT NULL,
        last BIGINT NOT NULL, buckets INT NOT NULL, keys BIGINT[] NOT NULL, ends INT[] NOT NULL,
        rows SMALLINT[] NOT NULL, PRIMARY KEY (space, layer, first, bucket)
    ) WITH (toast_tuple_target = 8160);
    ALTER TABLE term_segment
        ALTER keys SET STORAGE EXTERNAL, ALTER ends SET STORAGE EXTERNAL, ALTER rows SET STORAGE EXTERNAL,
        ALTER keys SET STATISTICS 0, ALTER ends SET STATISTICS 0, ALTER rows SET STATISTICS 0;
    CREATE INDEX term_segment_range ON term_segment (space, layer, first) INCLUDE (last, buckets) WHERE bucket = 0;
"""
_DROP_SEGMENTS = """
    CREATE FUNCTION drop_segments() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE segment record;
        BEGIN
            FOR segment IN
                SELECT DISTINCT c.space, s.first FROM changed c CROSS JOIN LATERAL (
                    SELECT s.first, s.last FROM term_segment s
                    WHERE s.space = c.space AND s.layer = TG_ARGV[0] AND s.bucket = 0 AND s.first <= c.id
                    ORDER BY s.first DESC LIMIT 1
                ) s WHERE s.last >= c.id
            LOOP
                DELETE FROM term_segment s
                    WHERE s.space = segment.space AND s.layer = TG_ARGV[0] AND s.first = segment.first;
            END LOOP;
            RETURN NULL;
        END $$;
"""
_TRIGGER = """
    CREATE TRIGGER {event}_drops_segments AFTER {event} ON {layer}_terms REFERENCING {rows} TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION drop_segments('{layer}')
"""
_ROWS_OF_EVENT = {"INSERT": "NEW", "UPDATE": "NEW", "DELETE": "OLD"}


def expand(con: Connection) -> None:
    """Create the table and the triggers."""
    for statements in (_TABLE, _DROP_SEGMENTS):
        con.execute(statements.encode())
    con.execute("SELECT keep_to_space('term_segment')")
    for layer in _LAYERS:
        for event, rows in _ROWS_OF_EVENT.items():
            con.execute(_TRIGGER.format(event=event, layer=layer, rows=rows).encode())


def backfill(con: Connection) -> bool:
    """Merge rows of a space; return whether there may be more."""
    tx = HomeTransaction(PostgresConnection(con))
    enter_as_owner(con)
    return any(merge(tx, space, layer) for space, layer in unmerged(tx))


def contract(con: Connection) -> None:
    """Drop the GIN indexes, and the functions that searched them as the owner of the tables."""
    for layer in _LAYERS:
        con.execute(f"DROP FUNCTION {layer}_rows_with; DROP INDEX {layer}_terms_keys".encode())
        con.execute(f"ALTER TABLE {layer}_terms ALTER keys SET STATISTICS 0".encode())
        con.execute("SELECT keep_to_space(%s)", (f"{layer}_terms",))


# --- merging ----------------------------------------------------------------------------------------


_MERGED = """
    WITH posting AS MATERIALIZED (
        SELECT unnest(keys) AS key, (id - ?)::smallint AS row FROM {layer}_terms
        WHERE space = ? AND id BETWEEN ? AND ?
    ), term AS MATERIALIZED (
        SELECT key, count(*) AS rows FROM posting GROUP BY key
    ), size AS MATERIALIZED (
        SELECT (1 << ceil(log(2, 1 + (12 * count(*) + 2 * coalesce(sum(rows), 0)) / {bytes}))::int) - 1 AS mask
        FROM term
    ), of_terms AS (
        SELECT bucket, array_agg(key ORDER BY key) AS keys, array_agg(last::int ORDER BY key) AS ends FROM (
            SELECT key & mask AS bucket, key, sum(rows) OVER (PARTITION BY key & mask ORDER BY key) AS last
            FROM term, size
        ) ended GROUP BY bucket
    ), of_rows AS (
        SELECT key & mask AS bucket, array_agg(row ORDER BY key, row) AS rows FROM posting, size GROUP BY 1
    )
    INSERT INTO term_segment (space, layer, first, bucket, last, buckets, keys, ends, rows)
    SELECT ?, '{layer}', ?, bucket, ?, mask + 1,
        coalesce(keys, '{{}}'), coalesce(ends, '{{}}'), coalesce(rows, '{{}}')
    FROM size, generate_series(0, mask) bucket LEFT JOIN of_terms USING (bucket) LEFT JOIN of_rows USING (bucket)
"""


def merge(tx: HomeTransaction, space: int, layer: Layer) -> bool:
    """Make the largest segment that a space lacks in a layer; return False if it has all.

    Runs in a transaction on all spaces, and locks the space. A range of which only some rows have terms of an earlier
    version is left out until the others are reindexed.
    """
    tx.run("SELECT FROM space WHERE id = ? FOR NO KEY UPDATE", space)
    last: int = tx.get("SELECT last FROM number WHERE space = ? AND kind = ?", space, layer) or 0
    merged = dict(
        tx.all("SELECT first, last FROM term_segment WHERE space = ? AND layer = ? AND bucket = 0", space, layer)
    )
    for first, end in _missing(merged, last):
        are_alike = f"SELECT count(DISTINCT version < ?) < 2 FROM {layer}_terms WHERE space = ? AND id BETWEEN ? AND ?"
        if tx.get(are_alike, TERMS_VERSION, space, first, end):
            tx.run(
                "DELETE FROM term_segment WHERE space = ? AND layer = ? AND first BETWEEN ? AND ?",
                *(space, layer, first, end),
            )
            tx.run(_MERGED.format(layer=layer, bytes=_BUCKET_BYTES), first, space, first, end, space, first, end)
            return True
    return False


def completes_range(numbers: Sequence[int]) -> bool:
    """Return whether a range of rows can be merged when these rows, in ascending order, are the newest of a space."""
    return bool(numbers) and (numbers[-1] + 1) // SIZES[-1] > numbers[0] // SIZES[-1]


def _missing(merged: dict[int, int], last: int) -> list[tuple[int, int]]:
    """Return the complete ranges of numbers up to `last` without a segment, the largest first.

    `merged` has the last number of each segment by its first.
    """
    ranges: list[tuple[int, int]] = []
    for size in SIZES:
        for first in range(0, last + 2 - size, size):
            covering = {merged.get(first // larger * larger, 0) for larger in SIZES if larger >= size}
            if all(end < first + size - 1 for end in covering):
                ranges.append((first, first + size - 1))
    return ranges


def unmerged(tx: HomeTransaction) -> list[tuple[int, Layer]]:
    """Return the spaces and layers with complete ranges that have no segment, the one with most rows first."""
    smallest = SIZES[-1]
    return tx.all(
        "SELECT space, kind FROM (SELECT n.space, n.kind, (n.last + 1) / ? * ? - coalesce((SELECT sum(s.last - s.first"
        " + 1) FROM term_segment s WHERE s.space = n.space AND s.layer = n.kind AND s.bucket = 0), 0) AS rows"
        f" FROM number n WHERE n.kind IN {_LAYERS} AND n.last >= ?) waiting WHERE rows > 0"
        " ORDER BY rows DESC",
        *(smallest, smallest, smallest - 1),
    )


class Unmerged:
    """The spaces and layers to merge, as this process knows them; safe to use from several threads.

    A write notes them. What a process has noted before it died is found by `unmerged`, every ten minutes.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._noted = dict[tuple[int, Layer], None]()
        self._scan_at = 0.0

    def is_scan_due(self) -> bool:
        """Return whether `unmerged` is to be noted again, and True only once for each time."""
        with self._lock:
            is_due = monotonic() >= self._scan_at
            if is_due:
                self._scan_at = monotonic() + _SCAN_SECONDS
            return is_due

    def note(self, of_spaces: Iterable[tuple[int, Layer]]) -> None:
        with self._lock:
            self._noted.update(dict.fromkeys(of_spaces))

    def pop(self) -> tuple[int, Layer] | None:
        """Return the space and layer that were noted first, and remove the note."""
        with self._lock:
            first = next(iter(self._noted), None)
            if first is not None:
                del self._noted[first]
            return first
