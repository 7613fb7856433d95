"""Upkeep of the bucket: deletes objects after the commit that deleted their rows, and orphans a day later.

A trigger writes the key of each deleted row to `object_garbage`, in the same transaction. The server that committed
deletes the object; if it died, or the bucket did not answer, another server does.

An orphan is an object that no row refers to, because its transaction failed or its server died. Once a day, one server
sweeps the folder of this database and deletes orphans older than a day. A database that was copied, or restored
elsewhere, gets a new folder and reads old objects from the folder of the original, so a sweep never deletes objects
of another database. But if a row of the copy is deleted, its object is deleted for the original too.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.store.postgres.database import PostgresDatabase
from mcp_memory.store.postgres.objects import Objects
from mcp_memory.store.postgres.transaction import home_transaction
from mcp_memory.store.sql.transaction import HomeTransaction

logger = logging.getLogger(__name__)

_DAY = timedelta(days=1)
_AT_ONCE = 1_000
_SHOWN = 3
_CLUSTER = (
    "(SELECT system_identifier || '/' || oid FROM pg_control_system(), pg_database WHERE datname = current_database())"
)


def find_folder(database: PostgresDatabase) -> str | None:
    """Find or create the name of a database's folder in a bucket, and return it.

    Returns None if the database has none and can only be read.
    """

    def make(con: Any) -> None:
        sql = f"INSERT INTO object_folder (cluster, name) VALUES ({_CLUSTER}, ?) ON CONFLICT DO NOTHING"
        home_transaction(con, writing=True).run(sql, secrets.token_hex(8))

    def find(con: Any) -> str | None:
        return home_transaction(con).get(f"SELECT name FROM object_folder WHERE cluster = {_CLUSTER}")

    folder = database.read(find)
    if folder is None and database.read_only is None:
        database.write(make)
        folder = database.read(find)
    return folder


class ObjectUpkeep:
    """A server's share of the upkeep. Only one thread may call `step`; any thread may call the other methods."""

    def __init__(self, database: PostgresDatabase, objects: Objects) -> None:
        self._db = database
        self._objects = objects
        self._pages: Iterator[list[tuple[str, int, datetime]]] | None = None

    def delete_of(self, space: int) -> None:
        """Delete the objects whose rows were deleted from a space; failures are left for a later `step`."""
        try:
            self._delete("space = ?", space)
        except StoreUnavailable as error:
            logger.warning("objects of deleted results are left for later: %s", error)

    def step(self) -> bool:
        """Do a part of the due work; return whether more may be left.

        Errors of the bucket are logged, and the work is retried later.
        """
        try:
            return self._delete("at < now() - interval '1 minute'") or self._sweep_next()
        except StoreUnavailable as error:
            self._pages = None
            logger.warning("upkeep of the bucket is left for later: %s", error)
            return False

    def sweep(self, *, older_than: timedelta = _DAY) -> None:
        """Delete all orphans older than `older_than`, even if a sweep is not due."""
        for page in self._objects.list_pages(self._objects.folder or ""):
            self._delete_orphans(page, older_than)

    def problems(self) -> Iterator[str]:
        """Yield the problems of the bucket: missing results, and objects that are not deleted yet."""
        sizes = dict(self._read(lambda tx: tx.all("SELECT key, length FROM object WHERE key IS NOT NULL")))
        waiting = self._read(
            lambda tx: tx.get("SELECT count(*) FROM object_garbage WHERE at < now() - interval '1 hour'")
        )
        if sizes or self._objects.folder is not None:
            try:
                yield from self._missing_objects(sizes)
            except StoreUnavailable as error:
                yield str(error) if self._objects.folder else f"{len(sizes)} results: {error}"
        if waiting:
            yield f"{waiting} objects of deleted results are still in the bucket. Servers delete them when it answers."

    def _missing_objects(self, sizes: dict[str, int]) -> Iterator[str]:
        folders = {key.partition("/")[0] for key in sizes} | {self._objects.folder or ""} - {""}
        for folder in sorted(folders):
            for page in self._objects.list_pages(folder):
                for key, size, _ in page:
                    if sizes.get(key) == size:
                        del sizes[key]
        if sizes:
            keys = ", ".join(sorted(sizes)[:_SHOWN])
            yield (
                f"{len(sizes)} results are missing in the bucket, or of another size ({keys}). Restore them there, or"
                " store the results again."
            )

    def _delete(self, which: str, *values: int) -> bool:
        """Delete a batch of the garbage that matches a condition: the objects, then the rows of `object_garbage`.

        Returns whether there was any.
        """
        keys = self._read(
            lambda tx: tx.column(f"SELECT key FROM object_garbage WHERE {which} ORDER BY at LIMIT {_AT_ONCE}", *values)
        )
        if not keys:
            return False
        named = self._keys_in_use(keys)
        if gone := [key for key in keys if key not in named]:
            self._objects.delete(gone)
        self._db.write(
            lambda con: home_transaction(con, writing=True).run_among(
                "DELETE FROM object_garbage WHERE key IN ({})", keys
            )
        )
        return True

    def _sweep_next(self) -> bool:
        """Sweep the next page of the folder, if a sweep is due or under way. Return whether there was a page."""
        if self._objects.folder is None:
            return False
        if self._pages is None:
            if not self._db.write(self._is_due):
                return False
            self._pages = self._objects.list_pages(self._objects.folder)
        page = next(self._pages, None)
        if page is None:
            self._pages = None
            return False
        self._delete_orphans(page, _DAY)
        return True

    def _is_due(self, con: Any) -> bool:
        """Claim the sweep if it is due, so that no other server runs it. Return whether it was due."""
        return bool(
            home_transaction(con, writing=True).all(
                f"UPDATE object_folder SET swept_at = now() WHERE cluster = {_CLUSTER}"
                " AND swept_at < now() - interval '1 day' RETURNING 1"
            )
        )

    def _delete_orphans(self, page: Sequence[tuple[str, int, datetime]], older_than: timedelta) -> None:
        before = self._db.clock.now() - older_than
        old = [key for key, _, at in page if at <= before]
        named = self._keys_in_use(old)
        if orphans := [key for key in old if key not in named]:
            logger.info("%d objects that no result names are deleted from the bucket", len(orphans))
            self._objects.delete(orphans)

    def _keys_in_use(self, keys: Sequence[str]) -> set[str]:
        """Return the keys that rows of any space refer to."""
        return {key for (key,) in self._read(lambda tx: tx.among("SELECT key FROM object WHERE key IN ({})", keys))}

    def _read(self, work: Callable[[HomeTransaction], Any]) -> Any:
        return self._db.read(lambda con: work(home_transaction(con)))
