"""A home that a memory is moved from or to. No other process may use it (`core.process_registry.exclusive`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mcp_memory.store.sql.transaction import HomeTransaction
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.index.rowids import connection_of
from mcp_memory.store.sqlite.migrations import is_unfinished
from mcp_memory.store.sqlite.store import SQLiteStore
from mcp_memory.store.sqlite.transaction import SqliteTransaction

T = TypeVar("T")


class MovableSqlite(SQLiteStore):
    """See `sql.moving.Movable`."""

    def __init__(self, home: Path) -> None:
        database = Database(home)
        super().__init__(database)
        self.name = f"sqlite:{home}"
        self.home = home
        if self.read_only is None:
            database.outside(lambda con: con.execute("PRAGMA foreign_keys = OFF"))

    def read_still(self, work: Callable[[HomeTransaction], T]) -> T:
        return self.read_home(work)

    def reopen(self) -> MovableSqlite:
        return MovableSqlite(self.home)

    def in_space(self, tx: HomeTransaction, space: str) -> SqliteTransaction:
        return SqliteTransaction(connection_of(tx), self.home, space)

    def is_unfinished(self, tx: HomeTransaction) -> bool:
        return is_unfinished(connection_of(tx))

    def constraints(self, tx: HomeTransaction) -> list[tuple[str, str]]:
        return tx.all("SELECT 'DROP INDEX ' || name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
