"""`SQLiteStore`: a home in one SQLite file, with the files next to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import apsw

from mcp_memory.store.clock import SystemClock
from mcp_memory.store.forgetting import Purge, Purged
from mcp_memory.store.purge_search import Traces
from mcp_memory.store.sql import exporting, moving, page_rows, word_index
from mcp_memory.store.sql.postings import CommonTerms
from mcp_memory.store.sql.row_counts import RowCounts
from mcp_memory.store.sql.transaction import HomeTransaction, in_home
from mcp_memory.store.sqlite import checks, copies
from mcp_memory.store.sqlite.database import Database, translate_errors
from mcp_memory.store.sqlite.index import outlines, positions, term_rows, terms, vectors
from mcp_memory.store.sqlite.migrations import SCHEMA, is_unfinished
from mcp_memory.store.sqlite.transaction import SqliteTransaction, in_space
from mcp_memory.store.sqlite.upkeep import compaction, purging, repair, snapshots
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters, IndexProgress, Layer, NearestQuery, Posting, Scored, Totals, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


P = ParamSpec("P")
T = TypeVar("T")


def open_store(home: Path) -> SQLiteStore:
    """Open or create the store in `home`.

    Raises StoreUnavailable if it cannot be opened or a move into it is unfinished, and NewerHome if its schema is
    newer.
    """
    database = Database(home)
    if database.read(is_unfinished):
        database.close()
        raise moving.unfinished_error(str(home))
    return SQLiteStore(database)


class SQLiteStore:
    """One open home; `store.protocol.EmbeddedStore` is its contract."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._common = CommonTerms()
        self._outlines = outlines.Outlines()
        self._counts = RowCounts()
        self._seen = vectors.Seen()

    def folder(self, space: str) -> Path:
        """Return the folder of a space's files."""
        return self._db.home / "spaces" / space

    def remove_folder(self, space: str) -> None:
        folder = self.folder(space)
        with translate_errors(self._db.home), suppress(FileNotFoundError):
            shutil.rmtree(folder)
        self.write(space, copies.forget_files)

    def close(self) -> None:
        self._db.close()

    def read(
        self, space: str, work: Callable[Concatenate[SqliteTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self._db.read(self._in_space, space, work, *args, **kwargs)

    def _in_space(
        self,
        con: apsw.Connection,
        space: str,
        work: Callable[Concatenate[SqliteTransaction, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run `work` on a space; in a snapshot, in the same transaction as before."""
        snapshot = self._db.snapshots.current
        if snapshot is None:
            return in_space(con, self._db.home, space, work, *args, **kwargs)
        tx = snapshot.transactions.get(space)
        if tx is None:
            tx = snapshot.transactions[space] = SqliteTransaction(con, self._db.home, space)
            tx.known = {}
        return work(tx, *args, **kwargs)

    def write(
        self, space: str, work: Callable[Concatenate[SqliteTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self._db.write(in_space, self._db.home, space, work, *args, **kwargs)

    def read_home(self, work: Callable[Concatenate[HomeTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._db.read(in_home, work, *args, **kwargs)

    def write_home(self, work: Callable[Concatenate[HomeTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._db.write(in_home, work, *args, **kwargs)

    def in_snapshot(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._db.in_snapshot(partial(work, *args, **kwargs))

    def outside_snapshot(self) -> AbstractContextManager[None]:
        return self._db.snapshots.outside()

    def on_change(self, heard: Callable[[], None]) -> None:
        """Do nothing. A process is not notified when other processes write to a file, so callers have to poll."""

    def export_rows(self, spaces: Sequence[str], take: exporting.Take) -> None:
        self._db.read(
            lambda con: [exporting.export(SqliteTransaction(con, self._db.home, space), take) for space in spaces]
        )

    # search

    def totals(self, space: str, layer: Layer) -> Totals:
        if layer == "turn":
            return self.read(space, self._outlines.totals)
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
            outlines=self._outlines,
        )

    def turn_metadata(self, space: str, rows: NDArray[np.int64], *, filters: Filters, reach: int = 0) -> TurnMetadata:
        return self.read(space, self._outlines.of, rows, filters=filters, reach=reach)

    def nearest(self, space: str, layer: Layer, query: Vectors, *, filters: Filters, limit: int) -> list[Scored]:
        (hits,) = self.nearest_to_each(space, layer, [NearestQuery(query, filters, limit)])
        return hits

    def nearest_to_each(self, space: str, layer: Layer, queries: Sequence[NearestQuery]) -> list[list[Scored]]:
        return self.read(space, vectors.nearest_to_each, layer, queries, outlines=self._outlines)

    def vectors_of(
        self, space: str, layer: Layer, ids: Sequence[str], identity: str
    ) -> Mapping[str, NDArray[np.float32]]:
        return self.read(space, vectors.of_rows, layer, ids, identity)

    def index_progress(self) -> IndexProgress:
        return self._db.read(
            lambda con: IndexProgress(
                embeddable=vectors.embeddable(con),
                vectors=vectors.indexes(con),
                stale_terms=terms.stale_terms(con),
                unindexed_refs=word_index.refs_waiting(HomeTransaction(con)),
            )
        )

    def unembedded(self, space: str, identity: str, *, limit: int) -> list[tuple[str, str]]:
        return self.read(space, vectors.unembedded, identity, limit=limit, seen=self._seen)

    def put_vectors(self, rows: Sequence[tuple[str, str]], new: Vectors) -> None:
        self._db.write(vectors.put_by_id, rows, new)

    def drop_vector_index(self, identity: str) -> None:
        self._db.write(vectors.drop, identity)

    def index_new_turns(self, space: str, *, limit: int) -> bool:
        if self.read_only is not None:
            return False
        with self.outside_snapshot():
            batch = self._db.read(terms.new_batch, space, limit=limit)
            if batch is not None:
                self._db.write(terms.commit_batch, batch, terms.terms_of_batch(batch))
        return batch is not None

    def maintain_indexes(self, *, limit: int) -> bool:
        batch = self._db.read(terms.next_batch, limit=limit)
        if batch is not None:
            self._db.write(terms.commit_batch, batch, terms.terms_of_batch(batch))
            self._db.write(terms.merge_segments, batch.layer)
            return True
        if left := self._db.read(terms.unsettled_layers):
            self._db.write(terms.settle_segments, left[0])
            return True
        following = self._db.read(positions.next_rows)
        if following is not None:
            self._db.write(positions.add, *following)
        return following is not None

    # purging

    def purge(self, space: str, what: Purge, *, now: datetime) -> Purged:
        return self.write(space, purging.purge, what, now=now)

    def unverified_purges(self) -> list[str]:
        return self.read_home(purging.unverified_purges)

    def note_verified(self, purges: Sequence[str]) -> None:
        self.write_home(purging.note_verified, purges)

    def secure_delete(self, *, patience: float = 10.0) -> bool:
        self._db.write(lambda con: None)  # it writes the copies that are behind, and removes their marks
        if self._db.read(copies.marked_copies):  # a copy may have erased words, its mark may name them
            return False
        return self._db.outside(purging.secure_delete, patience=patience)

    def exclude_retained(self, traces: Traces) -> list[str]:
        home = self._db.home
        return self._db.read(purging.exclude_retained, home, traces)

    # seeing

    @property
    def clock(self) -> SystemClock:
        return SystemClock()

    @property
    def place(self) -> str:
        return str(self._db.path)

    @property
    def has_files(self) -> bool:
        return True

    @property
    def read_only(self) -> str | None:
        return self._db.read_only

    def not_ready(self, *, try_commit: bool = False) -> str | None:
        self.read_home(lambda tx: tx.get("SELECT count(*) FROM home"))
        return None

    @property
    def write_problem(self) -> str | None:
        return None

    @property
    def replication(self) -> None:
        return None

    def schema(self) -> str:
        return SCHEMA[-1][0]

    def problems(self) -> list[str]:
        home = self._db.home
        if unreadable := self._db.read(checks.unreadable):
            return unreadable  # whatever else is asked reads these rows too
        problems = self._db.read(checks.problems)
        problems += self._db.read_with_copies(checks.copy_problems, home)
        refs = self._db.read(checks.ref_problems, home)
        if refs:  # files of refs forgotten meanwhile are rightly missing
            again = self._db.read(checks.ref_problems, home)
            refs = [problem for problem in refs if problem in again]
        return [*problems, *refs]

    # upkeep

    def snapshot(self, to: Path) -> None:
        self._db.read(snapshots.take, to)

    def repair(self, set_aside: Callable[[Path], object]) -> list[str]:
        home = self._db.home
        return self._db.write(repair.repair_database, home, set_aside)

    def write_persona_file(self, space: str, /, page: str) -> None:
        if not self.read(space, page_rows.is_persona_written, page):
            self.write(space, page_rows.write_persona_file, page)

    def kept_beside(self, space: str) -> list[Path]:
        return copies.kept_beside(self._db.home, space)

    def compact(self, *, vacuum: bool) -> None:
        more = self._db.write(compaction.optimise, begin=True)
        while more:
            more = self._db.write(compaction.optimise, begin=False)
        if vacuum:
            self._db.outside(compaction.vacuum)
        self._db.outside(compaction.checkpoint)

    def free_bytes(self) -> tuple[int, int]:
        return self._db.read(compaction.free)
