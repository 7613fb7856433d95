"""`sql.Connection` over psycopg: converts values and rows to the form that domain SQL uses.

PostgreSQL's `text` cannot store the character NUL, which a conversation may contain. It is stored as an escape in every
text, so that SQL statements need no special case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast
from weakref import WeakKeyDictionary

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.numeric import NumericBinaryLoader

from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, Value

_ESCAPE = "\U0010fffe"
"""A noncharacter, which no text should contain; if a text does, it is escaped as well."""

_TO_ESCAPE = re.compile(f"[\0{_ESCAPE}]")
_ESCAPED = re.compile(f"{_ESCAPE}([01])")
_MARK = re.compile(r"'(?:[^']|'')*'|\?|%|\bCROSS JOIN\b")


NO_SCANS = "no scans"
"""The fact of a transaction that forbids scans, so that a snapshot does it together with its first query."""


class Binary(bytes):
    """A value in PostgreSQL's binary form. The statement has to name its type, such as `?::halfvec`."""


def connection_of(tx: HomeTransaction) -> psycopg.Connection[Any]:
    """Return the connection of a transaction of this engine."""
    return cast("PostgresConnection", tx.connection).con


def forbid_scans(tx: HomeTransaction) -> None:
    """Make the rest of a transaction use indexes, because the planner may otherwise scan the rows of all spaces."""
    if tx.known is None:
        tx.run("SET LOCAL enable_seqscan = off")
    else:
        cast("Transaction", tx).fact(NO_SCANS)


class PostgresConnection:
    """A connection in a transaction. Values are sent separately from the SQL.

    In pipeline mode a statement is sent without waiting for its answer, until its rows are read.
    """

    def __init__(self, con: psycopg.Connection[Any]) -> None:
        self.con = con

    def execute(self, sql: str, values: Sequence[Value], /) -> Iterator[Any]:
        return self._rows(self.con.execute(_translate(sql), [_escape_value(value) for value in values], binary=True))

    def executemany(self, sql: str, rows: Iterable[Sequence[Value]], /) -> object:
        converted = [[_escape_value(value) for value in row] for row in rows]
        if converted:
            with self.con.cursor() as cursor:
                cursor.executemany(_translate(sql), converted)
        return None

    def _rows(self, cursor: psycopg.Cursor[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows; waits for them when the first row is requested."""
        pipeline = self.con._pipeline  # pyright: ignore[reportPrivateUsage]
        if pipeline is not None and cursor.pgresult is None:
            pipeline.sync()  # not a flush, after which the server would wait for us without its timeouts
        yield from map(_unescape_row, cursor.fetchall())


@lru_cache(maxsize=2_048)  # some statements have numbers in them
def _translate(sql: str) -> bytes:
    """Translate domain SQL: `?` becomes psycopg's placeholder, and CROSS JOIN … ON becomes JOIN.

    In SQLite, CROSS JOIN only fixes the order of the joins.
    """

    def mark(match: re.Match[str]) -> str:
        return {"?": "%s", "%": "%%", "CROSS JOIN": "JOIN"}.get(match[0], match[0].replace("%", "%%"))

    return _MARK.sub(mark, sql).encode()  # psycopg accepts only literal strings as `str`


def _escape_value(value: Value) -> Value:
    if isinstance(value, str) and ("\0" in value or _ESCAPE in value):
        return _TO_ESCAPE.sub(lambda match: f"{_ESCAPE}{int(match[0] == _ESCAPE)}", value)
    return int(value) if isinstance(value, bool) else value


def _unescape_row(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        _ESCAPED.sub(lambda match: _ESCAPE if match[1] == "1" else "\0", value)
        if isinstance(value, str) and _ESCAPE in value
        else value
        for value in row
    )


@dataclass(frozen=True, slots=True)
class ConnectionCache:
    """Data cached for a connection. After a failover, new connections have empty caches.

    `spaces`: space ids by name. `tables`: the vector table and the number of dimensions, by layer and model.
    """

    spaces: dict[str, int] = field(default_factory=dict[str, int])
    tables: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict[tuple[str, str], tuple[str, int]])


_caches = WeakKeyDictionary[psycopg.Connection[Any], ConnectionCache]()


def cache_of(con: psycopg.Connection[Any]) -> ConnectionCache:
    """Return the cache of a connection; behind a pooler, where connections change, an empty and temporary cache."""
    return _caches.get(con) or ConnectionCache()


class _BinaryDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Binary) -> Binary:
        return obj


class _WholeNumber(NumericBinaryLoader):
    """Loads whole `numeric` values as int: PostgreSQL returns sums of bigint as `numeric`."""

    def load(self, data: bytes | bytearray | memoryview) -> int | float:  # pyright: ignore[reportIncompatibleMethodOverride]
        value = super().load(data)
        return int(value) if value.as_tuple().exponent == 0 else float(value)


def equip(con: psycopg.Connection[Any]) -> None:
    """Set up a new connection of the pool. Statements are prepared, unless there is a pooler before the server.

    Behind a pooler each transaction may run on another connection, where the same name may mean another statement.
    """
    con.adapters.register_loader("numeric", _WholeNumber)
    con.adapters.register_dumper(Binary, _BinaryDumper)
    if con.execute("SELECT pg_backend_pid()").fetchone() == (con.info.backend_pid,):
        _caches[con] = ConnectionCache()
    else:
        con.prepare_threshold = None
