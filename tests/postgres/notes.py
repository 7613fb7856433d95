"""Writes that nothing but the engine keeps from being stored twice, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import psycopg

from mcp_memory.store.postgres.database import PostgresDatabase
from mcp_memory.store.postgres.store import PostgresStore
from mcp_memory.store.postgres.transaction import PostgresTransaction


@contextmanager
def opened(url: str, **options: Any):
    store = PostgresStore(PostgresDatabase(url, **options))
    try:
        yield store
    finally:
        store.close()


def note(store: PostgresStore, text: str, *, first: Callable[[], object] = lambda: None) -> None:
    """Store a text in a transaction of the space `me`; `first` runs in it, with the space locked."""
    store.write("me", _note, text, first)


def _note(tx: PostgresTransaction, text: str, first: Callable[[], object]) -> None:
    first()
    tx.run("INSERT INTO note (text) VALUES (?)", text)


def as_administrator(url: str) -> str:
    return url.replace("//memory@", "//postgres@")


def as_owner(url: str) -> str:
    return url.replace("//memory@", "//owner@")


def make_table(url: str) -> None:
    sql(url, "CREATE TABLE note (text TEXT NOT NULL)")
    sql(url, "ALTER TABLE note OWNER TO owner")
    sql(url, "GRANT ALL ON note TO memory")


def noted(url: str) -> list[str]:
    """Return all texts, with doubles."""
    return [text for (text,) in sql(url, "SELECT text FROM note ORDER BY text")]


def sql(url: str, statement: str) -> list[Any]:
    """Run a statement as the administrator of the server."""
    with psycopg.connect(as_administrator(url), autocommit=True) as con:
        cursor = con.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
