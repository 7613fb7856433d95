"""A PostgreSQL database as the source of a move, or as its target if the user owns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.store.postgres.connection import connection_of
from mcp_memory.store.postgres.database import PostgresDatabase
from mcp_memory.store.postgres.deadlines import lift_deadlines
from mcp_memory.store.postgres.objects import Uploads
from mcp_memory.store.postgres.schema import is_unfinished
from mcp_memory.store.postgres.store import PostgresStore, open_objects
from mcp_memory.store.postgres.transaction import PostgresTransaction, home_transaction
from mcp_memory.store.sql.transaction import HomeTransaction

P = ParamSpec("P")
T = TypeVar("T")

_CONSTRAINTS = """
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname),
        format('ALTER TABLE %s ADD CONSTRAINT %I %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid))
        FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid
        WHERE c.contype = 'f' AND t.relnamespace = current_schema()::regnamespace
    UNION ALL
    SELECT format('DROP INDEX %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid)
        FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid
        WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind = 'r'
        AND NOT EXISTS (SELECT 1 FROM pg_constraint c WHERE c.conindid = i.indexrelid)
    UNION ALL
    SELECT 'SELECT 1', format('SELECT setval(pg_get_serial_sequence(%L, %L), max(%I)) FROM %I',
        table_name, column_name, column_name, table_name)
        FROM information_schema.columns WHERE is_identity = 'YES' AND table_schema = current_schema()
"""
_OTHERS = """
    SELECT count(*) FROM pg_stat_activity a, pg_stat_activity me
    WHERE me.pid = pg_backend_pid() AND a.pid <> me.pid AND a.datname = me.datname
    AND a.application_name LIKE 'mcp-memory%'
"""


class MovablePostgres(PostgresStore):
    """`sql.moving.Movable` for PostgreSQL."""

    def __init__(self, url: str, objects: str | None = None) -> None:
        """Open a database, even if a move into it is unfinished. `objects` is its bucket, as for `open_store`."""
        database = PostgresDatabase(url)
        try:
            super().__init__(database, open_objects(database, objects))
        except BaseException:
            database.close()
            raise
        self.name = self.place
        self._address = url, objects

    def read_still(self, work: Callable[[HomeTransaction], T]) -> T:
        def read(con: Any) -> T:
            tx = home_transaction(con)
            self._prepare(tx)
            return work(tx)

        return self._db.read(read, again=False, locked="space")

    def _prepare(self, tx: HomeTransaction) -> None:
        """Turn off the timeouts of the transaction. Raises StoreUnavailable if another program is connected."""
        lift_deadlines(connection_of(tx))
        if others := tx.get(_OTHERS):
            raise StoreUnavailable(
                f"{self.name} is in use: other programs of mcp-memory have {others} connections to it. Nothing was "
                "changed. Stop them, and move again."
            )

    def write_home(self, work: Callable[Concatenate[HomeTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        def write(tx: HomeTransaction) -> T:
            lift_deadlines(connection_of(tx))  # indexes of a large memory take minutes
            return work(tx, *args, **kwargs)

        return super().write_home(write)

    def reopen(self) -> MovablePostgres:
        return MovablePostgres(*self._address)

    def in_space(self, tx: HomeTransaction, space: str) -> PostgresTransaction:
        con = connection_of(tx)
        made = PostgresTransaction(con, space, writing=False, uploads=Uploads(self._objects))
        home_transaction(con)  # the rest of the transaction sees the rows of all spaces again
        return made

    def is_unfinished(self, tx: HomeTransaction) -> bool:
        return is_unfinished(connection_of(tx))

    def constraints(self, tx: HomeTransaction) -> list[tuple[str, str]]:
        self._prepare(tx)
        return tx.all(_CONSTRAINTS)
