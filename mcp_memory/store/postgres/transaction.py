"""A transaction of a space in PostgreSQL: its rows, the raw bytes of results, and its word and vector indexes."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.store.postgres import access, term_rows, terms, vectors
from mcp_memory.store.postgres.connection import NO_SCANS, PostgresConnection, cache_of
from mcp_memory.store.postgres.objects import Part, Uploads
from mcp_memory.store.postgres.term_segments import completes_range
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, Value
from mcp_memory.store.values import Layer, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


logger = logging.getLogger(__name__)

_RESULTS = "refs/"
_SPACES = 10_000  # whose numbers a connection knows
_VALUES_TOGETHER = 2_000  # of one statement, which is prepared in its form; PostgreSQL allows 65,535


def home_transaction(con: psycopg.Connection[Any], *, writing: bool = False) -> HomeTransaction:
    """Let the transaction of a connection see the rows of all spaces, and return it as a transaction of the home."""
    tx = HomeTransaction(PostgresConnection(con))
    tx.skip_locked = "FOR UPDATE OF {} SKIP LOCKED"
    access.enter(con, None, "write" if writing else "read")
    return tx


class PostgresTransaction(Transaction):
    """A transaction on the rows of a space; `con` runs SQL that only PostgreSQL has.

    With `writing`, it locks the row of the space. `epoch` is the start of the sequence numbers of changes, taken from
    the timeline of the server. A standby that was promoted without the last commits of its primary has a higher
    timeline, so no number is used twice. `is_touched` is True once a change is recorded. `has_removed` is True once
    results are deleted, whose bytes in a bucket must be deleted after the commit. `unmerged` are the layers whose terms
    can be merged after it.
    """

    epoch = "(('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint << 40)"
    is_touched = False
    has_removed = False
    facts: ClassVar[Mapping[str, str]] = {
        **Transaction.facts,
        "vector_tables": vectors.TABLES,
        NO_SCANS: "set_config('enable_seqscan', 'off', true)",
    }
    _queued: list[tuple[str, Sequence[Value]]] | None = None

    def __init__(self, con: psycopg.Connection[Any], space: str, *, writing: bool, uploads: Uploads) -> None:
        HomeTransaction.__init__(self, PostgresConnection(con))
        self.con = con
        self.name = space
        spaces = cache_of(con).spaces
        self._entered = access.enter(con, space, "write" if writing else "read")
        self.space = spaces.get(space) or self._number()
        if self.space and len(spaces) < _SPACES:
            spaces[space] = self.space
        self.files = SpaceObjects(self, uploads)
        self.index = SpaceKeys(self)
        self.unmerged = set[Layer]()

    def _number(self) -> int:
        """Return the number that the database has for the space; 0 if it does not exist."""
        return next(self._entered)[0]

    def verify(self) -> None:
        """Close the connection and raise a transient error if the cached number of the space was wrong."""
        for (number,) in self._entered:
            if number != self.space:
                self.con.close()
                raise psycopg.OperationalError("the space has another number now")

    def enter(self) -> None:
        """Restrict the rest of a reading transaction to the rows of this space again, after those of another."""
        access.enter(self.con, self.name, "read")

    @contextmanager
    def together(self) -> Generator[None]:
        self._queued = []
        try:
            yield
            self._send()
        finally:
            self._queued = None

    def all(self, sql: str, *values: Value) -> list[Any]:
        self._send()
        return super().all(sql, *values)

    def each(self, sql: str, *values: Value) -> Iterator[Any]:
        self._send()
        return super().each(sql, *values)

    def run(self, sql: str, *values: Value) -> None:
        if self._queued is not None and sql.startswith("INSERT"):
            if sum(len(given) for _, given in self._queued) + len(values) > _VALUES_TOGETHER:
                self._send()
            self._queued.append((sql, values))
        else:
            self._send()
            super().run(sql, *values)

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        if self._queued is None:
            super().many(sql, rows)
        else:
            for row in rows:
                self.run(sql, *row)

    def _send(self) -> None:
        """Send the queued statements as one: all but the last are common table expressions of the last."""
        if self._queued:
            *first, last = (sql for sql, _ in self._queued)
            parts = ", ".join(f"part{number} AS ({sql})" for number, sql in enumerate(first))
            values = [value for _, given in self._queued for value in given]
            self._queued.clear()
            super().run(f"WITH {parts} {last}" if parts else last, *values)

    def make_space(self) -> None:
        if not self.space:
            self._send()
            self._entered = access.enter(self.con, self.name, "create")
            self.space = self._number()

    def touch(self, *topics: str, due: Sequence[str] = (), but: str = "") -> None:
        super().touch(*topics, due=due, but=but)
        self.is_touched = True


class SpaceObjects:
    """`sql.Files` as rows: the raw results, or their places in the bucket.

    Pages and journals are read from other rows, so they are not written.
    """

    def __init__(self, tx: PostgresTransaction, uploads: Uploads) -> None:
        self._tx = tx
        self._uploads = uploads
        self._is_new = not tx.space

    def read(self, path: str) -> bytes | None:
        row = self._tx.one("SELECT data, key FROM object WHERE space = :space AND path = ?", path)
        data, key = row or (None, None)
        return data if key is None else self._uploads.objects.get(key)

    def display_path(self, path: str) -> str:
        return path

    def read_results(self, spans: Sequence[tuple[str, int, tuple[int, int]]]) -> list[bytes | None]:
        parts = self._parts(spans)
        in_bucket = list(dict.fromkeys(part for part in parts if isinstance(part, Part)))
        try:
            read = self._uploads.objects.get_parts(in_bucket) if in_bucket else {}
        except StoreUnavailable as error:
            logger.warning("searched without the results in the bucket: %s", error)
            read = {}
        texts = (read.get(part) if isinstance(part, Part) else part for part in parts)
        return [
            text if text is not None and len(text) == span[1] - span[0] else None
            for text, (_, _, span) in zip(texts, spans, strict=True)
        ]

    def _parts(self, spans: Sequence[tuple[str, int, tuple[int, int]]]) -> list[bytes | Part | None]:
        """Return spans of results, or their places in the bucket; None for a missing result."""
        if not spans:
            return []
        rows = self._tx.all(
            "SELECT substring(o.data FROM (octet_length(o.data) - asked.size + asked.first + 1)::int"
            " FOR (asked.last - asked.first)::int), o.key, o.length FROM"
            f" (VALUES {', '.join(['(?::bigint, ?::text, ?::bigint, ?::bigint, ?::bigint)'] * len(spans))})"
            " asked (place, path, size, first, last)"
            " LEFT JOIN object o ON o.space = :space AND o.path = asked.path ORDER BY asked.place",
            *(value for place, (path, size, span) in enumerate(spans) for value in (place, path, size, *span)),
        )
        return [_part(row, size, span) for row, (_, size, span) in zip(rows, spans, strict=True)]

    def write(self, path: str, data: bytes) -> None:
        if path.startswith(_RESULTS):
            stored = self._uploads.put(self._tx.space, path, data, is_new=self._is_new)
            self._tx.run(
                "INSERT INTO object (space, path, data, key, length) VALUES (:space, ?, ?, ?, ?)"
                " ON CONFLICT (space, path) DO UPDATE"
                " SET data = excluded.data, key = excluded.key, length = excluded.length",
                *(path, stored.data, stored.key, stored.length),
            )

    def remove(self, path: str) -> None:
        self._tx.has_removed |= path.startswith(_RESULTS)
        self._tx.run("DELETE FROM object WHERE space = :space AND path = ?", path)

    def append(self, path: str, lines: Iterable[bytes]) -> None: ...

    def outdate(self, *paths: str) -> None: ...


class SpaceKeys:
    """`sql.Index` over hashed terms and pgvector."""

    def __init__(self, tx: PostgresTransaction) -> None:
        self._tx = tx

    def put_terms(self, layer: Layer, rows: Sequence[tuple[int, Sequence[str] | None]]) -> None:
        terms.put(self._tx, layer, rows)
        if completes_range([number for number, _ in rows]):
            self._tx.unmerged.add(layer)

    def put_vectors(
        self, layer: Layer, numbers: Sequence[int], new: Vectors, *, rows: Sequence[int] | None = None
    ) -> None:
        vectors.put_new(self._tx, layer, numbers, new, rows=rows)

    def put_stored(self, layer: Layer, numbers: Sequence[int], identity: str, data: NDArray[np.int8]) -> None:
        vectors.put_stored(self._tx, layer, numbers, identity, data)

    def stored_vectors(self, layer: Layer, numbers: Sequence[int], identity: str) -> dict[int, NDArray[np.int8]]:
        return vectors.read_stored(self._tx, layer, numbers, identity)

    def with_all_terms(self, layer: Layer, query_terms: Sequence[str]) -> list[int]:
        return term_rows.with_all(self._tx, layer, query_terms)

    def remove(self, layer: Layer, numbers: Sequence[int]) -> None:
        terms.delete(self._tx, layer, numbers)
        self._tx.unmerged.add(layer)
        if layer != "chunk":
            vectors.delete(self._tx, layer, numbers)


def _part(row: tuple[Any, Any, Any], size: int, span: tuple[int, int]) -> bytes | Part | None:
    """Return a span of a result, or its place in the bucket."""
    data, key, length = row
    if key is None or length is None or length < size:
        return data
    return Part(key, length - size + span[0], length - size + span[1]) if span[0] < span[1] else b""
