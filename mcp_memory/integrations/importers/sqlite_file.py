"""Reads SQLite databases of other programs. The only SQL outside the store.

A database is opened read-only, never copied (some have several GB), and no file is written to its folder. Without a
write-ahead log it is opened as a file that does not change. With a log, the program may be running; its rows are read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from mcp_memory.core.errors import InvalidInput


class Database:
    """An open database of another program. Values of blobs are bytes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def columns(self, table: str) -> list[str]:
        """Return the columns of a table or view; empty if there is none of that name."""
        return [row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(table)})")]

    def rows(
        self,
        table: str,
        *,
        equal: Mapping[str, Any] | None = None,
        prefix: Mapping[str, str] | None = None,
        order: str = "rowid",
    ) -> Iterator[dict[str, Any]]:
        """Yield the rows of a table as objects, in the order of a column.

        `equal` are the values of columns, `prefix` the beginnings of the texts in columns. No rows for a missing table.
        """
        columns = self.columns(table)
        if not columns:
            return
        tests = [(f"{_quoted(name)} = ?", [value]) for name, value in (equal or {}).items()]
        tests += [
            (f"{_quoted(name)} >= ? AND {_quoted(name)} < ?", [start, start + chr(0x10FFFF)])
            for name, start in (prefix or {}).items()
        ]
        where = " AND ".join(test for test, _ in tests) or "1 = 1"
        sql = f"SELECT {', '.join(map(_quoted, columns))} FROM {_quoted(table)} WHERE {where} ORDER BY {_quoted(order)}"
        for row in self._connection.execute(sql, [value for _, values in tests for value in values]):
            yield dict(zip(columns, row, strict=True))


@contextmanager
def open_database(path: Path) -> Generator[Database]:
    """Open a database to read it. Raises InvalidInput, also from the body, if it cannot be read."""
    log = path.with_name(f"{path.name}-wal")
    mode = "mode=ro" if log.is_file() and log.stat().st_size else "immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True, timeout=2)) as connection:
            connection.text_factory = _decode
            yield Database(connection)
    except sqlite3.Error as error:
        raise InvalidInput(f"{path} cannot be read as a database ({error}). Close the program that uses it.") from None


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
