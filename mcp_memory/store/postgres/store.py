"""`PostgresStore`: many spaces in one PostgreSQL database, for any number of servers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import psycopg

from mcp_memory.store.forgetting import Purge, Purged
from mcp_memory.store.postgres import term_rows, term_segments, terms, vectors
from mcp_memory.store.postgres.clock import DatabaseClock
from mcp_memory.store.postgres.database import CALL_SECONDS, PostgresDatabase
from mcp_memory.store.postgres.deadlines import allow_long_answers
from mcp_memory.store.postgres.migrations import STEPS
from mcp_memory.store.postgres.notifications import Notifications
from mcp_memory.store.postgres.object_upkeep import ObjectUpkeep, find_folder
from mcp_memory.store.postgres.objects import NotUploaded, Objects, Rows, Uploads, open_bucket
from mcp_memory.store.postgres.schema import is_unfinished
from mcp_memory.store.postgres.transaction import PostgresTransaction, home_transaction
from mcp_memory.store.postgres.turn_columns import Turns
from mcp_memory.store.sql import (
    exporting,
    home_rows,
    importing,
    moving,
    purging,
    recall_rows,
    tombstone_rows,
    word_index,
)
from mcp_memory.store.sql.postings import CommonTerms
from mcp_memory.store.sql.row_counts import RowCounts
from mcp_memory.store.sql.transaction import HomeTransaction, number_of
from mcp_memory.store.stored_vectors import by_layer
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import (
    Filters,
    IndexProgress,
    Layer,
    NearestQuery,
    Posting,
    Replication,
    Scored,
    Totals,
    Vectors,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


P = ParamSpec("P")
T = TypeVar("T")
Connection = psycopg.Connection[Any]

_LONG: set[Callable[..., object]] = {
    importing.import_rows,
    purging.purge,
    tombstone_rows.forget,
    tombstone_rows.undo,
    vectors.drop,
    vectors.move,
}
"""Writes of any number of rows. Only each of their answers has a deadline, and the COMMIT."""
_LOSABLE: set[Callable[..., object]] = {
    home_rows.note_token_used,
    home_rows.take_requests,
    recall_rows.note_recalls,
}
"""Writes of requests that may only read, which wait neither for the disk nor for a standby."""


def open_store(
    url: str,
    objects: str | None = None,
    *,
    key: str | None = None,
    timeout: float = CALL_SECONDS,
    reads: str | None = None,
) -> PostgresStore:
    """Open the store in a database and bring its schema up to date.

    `objects`: the bucket that new tool results go to, `s3://BUCKET/PREFIX`; None for the database itself. `key` is the
    setting `store_key`, which the owner of the tables does not need. `timeout`: how many seconds a call may take.
    `reads`: the URL of standbys for the reads of snapshots. Raises StoreUnavailable if the database cannot be used or a
    move into it is unfinished, NewerHome if a newer version has contracted it, and InvalidInput for a wrong bucket.
    """
    database = PostgresDatabase(url, key=key, timeout=timeout, reads=reads)
    try:
        if database.read(is_unfinished):
            raise moving.unfinished_error(database.name)
        return PostgresStore(database, open_objects(database, objects))
    except BaseException:
        database.close()
        raise


def open_objects(database: PostgresDatabase, address: str | None) -> Objects:
    """Return the storage of new tool results. Sends no request to a bucket, but may record a new folder for it."""
    return open_bucket(address, find_folder(database) if address else None)


class PostgresStore:
    """One open database; `store.protocol.Store` is its contract."""

    def __init__(self, database: PostgresDatabase, objects: Objects | None = None) -> None:
        self._db = database
        self._objects = objects or Rows()
        self._object_upkeep = ObjectUpkeep(database, self._objects)
        self._common = CommonTerms()
        self._turns = Turns()
        self._counts = RowCounts()
        self._unmerged = term_segments.Unmerged()
        self._notifications: Notifications | None = None

    def close(self) -> None:
        if self._notifications:
            self._notifications.close()
        self._db.close()

    def read(
        self, space: str, work: Callable[Concatenate[PostgresTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def read(con: Connection) -> T:
            tx = self._in_snapshot(con, space) or self._reading(con, space)
            result = work(tx, *args, **kwargs)
            tx.verify()
            return result

        return self._db.read(read)

    def _in_snapshot(self, con: Connection, space: str) -> PostgresTransaction | None:
        """Return the transaction of a space in this thread's snapshot; None outside of a snapshot."""
        if (snapshot := self._db.snapshots.current) is None:
            return None
        entered = snapshot.transactions  # the last is that of the rows that the connection sees
        tx: PostgresTransaction | None = entered.get(space)
        if tx is None:
            tx = self._reading(con, space)
            tx.known = {}
        elif next(reversed(entered)) != space:
            tx.enter()
            del entered[space]
        entered[space] = tx
        return tx

    def in_snapshot(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._db.in_snapshot(partial(work, *args, **kwargs))

    def outside_snapshot(self) -> AbstractContextManager[None]:
        return self._db.snapshots.outside()

    def _reading(self, con: Connection, space: str) -> PostgresTransaction:
        return PostgresTransaction(con, space, writing=False, uploads=Uploads(self._objects))

    def write(
        self, space: str, work: Callable[Concatenate[PostgresTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        uploads = Uploads(self._objects, early=True)

        def write(con: Connection) -> tuple[T, PostgresTransaction]:
            if work in _LONG:
                allow_long_answers(con)
            tx = PostgresTransaction(con, space, writing=True, uploads=uploads)
            result = work(tx, *args, **kwargs)
            tx.verify()
            return result, tx

        try:
            result, tx = self._db.write(write)
        except NotUploaded as wanted:
            wanted.upload()
            result, tx = self._db.write(write)
        if tx.is_touched and self._notifications:
            self._notifications.send()
        if tx.has_removed:
            self._object_upkeep.delete_of(tx.space)
        self._unmerged.note((tx.space, layer) for layer in tx.unmerged)
        return result

    def read_home(self, work: Callable[Concatenate[HomeTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        def read(con: Connection) -> T:
            tx = home_transaction(con)
            if snapshot := self._db.snapshots.current:
                snapshot.transactions.pop(None, None)
                snapshot.transactions[None] = tx
            return work(tx, *args, **kwargs)

        return self._db.read(read)

    def write_home(self, work: Callable[Concatenate[HomeTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        def write(con: Connection) -> T:
            if work in _LONG:
                allow_long_answers(con)
            return work(home_transaction(con, writing=True), *args, **kwargs)

        return self._db.write(write, durable=work not in _LOSABLE)

    def export_rows(self, spaces: Sequence[str], take: exporting.Take) -> None:
        self._db.read(
            lambda con: [exporting.export(self._reading(con, space), take) for space in spaces],
            again=False,  # `take` has received rows already
        )

    # search

    def totals(self, space: str, layer: Layer) -> Totals:
        if layer == "turn":
            return self.read(space, self._turns.totals)
        return self.read(space, self._counts.totals, layer)

    def postings(
        self, space: str, layer: Layer, query_terms: Sequence[str], *, filters: Filters, also: Sequence[str] = (),
        absent: bool = False,
    ) -> list[Posting]:  # fmt: skip
        return self.read(
            space,
            term_rows.read,
            layer,
            query_terms,
            filters=filters,
            also=also,
            absent=absent,
            common=self._common,
        )

    def turn_metadata(self, space: str, rows: NDArray[np.int64], *, filters: Filters, reach: int = 0) -> TurnMetadata:
        return self.read(space, self._turns.read, rows, filters=filters, reach=reach)

    def nearest(self, space: str, layer: Layer, query: Vectors, *, filters: Filters, limit: int) -> list[Scored]:
        (hits,) = self.nearest_to_each(space, layer, [NearestQuery(query, filters, limit)])
        return hits

    def nearest_to_each(self, space: str, layer: Layer, queries: Sequence[NearestQuery]) -> list[list[Scored]]:
        return self.read(space, vectors.nearest, layer, queries)

    def vectors_of(
        self, space: str, layer: Layer, ids: Sequence[str], identity: str
    ) -> Mapping[str, NDArray[np.float32]]:
        return self.read(space, vectors.of_rows, layer, ids, identity)

    def index_progress(self) -> IndexProgress:
        return self.read_home(
            lambda tx: IndexProgress(
                embeddable=vectors.embeddable(tx),
                vectors=vectors.indexes(tx),
                stale_terms=terms.stale(tx),
                unindexed_refs=word_index.refs_waiting(tx),
            )
        )

    def unembedded(self, space: str, identity: str, *, limit: int) -> list[tuple[str, str]]:
        return self.read(space, vectors.unembedded, identity, limit=limit)

    def put_vectors(self, rows: Sequence[tuple[str, str]], new: Vectors) -> None:
        for (space, layer), places in by_layer(rows).items():
            numbers = [number_of(rows[place][1], layer[0]) for place in places]
            self.write(space, vectors.put, layer, numbers, new, rows=places)

    def drop_vector_index(self, identity: str) -> None:
        self.write_home(vectors.drop, identity)

    def index_new_turns(self, space: str, *, limit: int) -> bool:
        del space, limit  # other servers search it: turns are indexed in the transaction that stores them
        return False

    def maintain_indexes(self, *, limit: int) -> bool:
        if self._merge_terms():
            return True
        stale_layer = self.read_home(terms.outdated_layer)
        if stale_layer is not None:
            space, layer = stale_layer
            self.write(space, _renew_terms, layer, limit=limit)
            return True
        return self.write_home(vectors.move, limit=limit) or self._object_upkeep.step()

    def _merge_terms(self) -> bool:
        if self._unmerged.is_scan_due():
            self._unmerged.note(self.read_home(term_segments.unmerged))
        while (of_space := self._unmerged.pop()) is not None:
            if self.write_home(term_segments.merge, *of_space):
                self._unmerged.note([of_space])
                return True
        return False

    # purging

    def purge(self, space: str, what: Purge, *, now: datetime) -> Purged:
        return self.write(space, purging.purge, what, now=now)

    # seeing

    def on_change(self, heard: Callable[[], None]) -> None:
        if self._notifications:
            self._notifications.close()
        self._notifications = self._db.notifications(heard)

    def not_ready(self, *, try_commit: bool = False) -> str | None:
        return self._db.not_ready(try_commit=try_commit)

    @property
    def write_problem(self) -> str | None:
        return self._db.standby.problem

    @property
    def replication(self) -> Replication | None:
        return self._db.standby.replication

    def schema(self) -> str:
        return STEPS[-1].name

    def write_persona_file(self, space: str, /, page: str) -> None:
        """Do nothing: this engine has no files."""

    @property
    def place(self) -> str:
        return self._db.name

    @property
    def clock(self) -> DatabaseClock:
        return self._db.clock

    def problems(self) -> list[str]:
        clock = self.clock.problem()
        return [*self._db.problems(), *([clock] if clock else []), *self._object_upkeep.problems()]

    @property
    def has_files(self) -> bool:
        return False

    @property
    def read_only(self) -> str | None:
        return self._db.read_only


def _renew_terms(tx: PostgresTransaction, layer: Layer, *, limit: int) -> None:
    terms.renew(tx, layer, limit=limit)
    tx.unmerged.add(layer)
