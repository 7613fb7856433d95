"""The contract of a store. `sqlite/` and `postgres/` implement it.

Functions
    Most reads and writes are functions on a transaction, in the modules of `store.sql`, the same for every engine.
    `Store.read` and `Store.write` run them: `store.read(space, turn_rows.by_ids, ids)`. The methods below differ
    between engines.

Model
    Evidence (turns, refs) is appended and hashed, never changed. Everything else is derived from it.
    Every function takes a `space`, or a transaction of a space, and sees nothing outside it.
    A write is one transaction: rows, index entries and files are committed together or not at all.
    Once a write has returned, its rows survive a kill of the process at any moment.

Concurrency
    Methods block and are safe to call from any thread; several processes may open the same home.
    Writers of a space queue and never wait for readers. A read sees one consistent state.

Failure
    InvalidInput, NotFound, Refused, Damaged and StoreUnavailable (see `core.errors`), and Conflict (`values`); no other
    error is raised on purpose.

Outside the contract: how text is chosen, ranked, summarised or drawn. The store saves and finds. One suite,
`tests/store/test_contract.py`, runs against every implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mcp_memory.store.clock import Clock
from mcp_memory.store.forgetting import Purge, Purged
from mcp_memory.store.purge_search import Traces
from mcp_memory.store.row_types import Row
from mcp_memory.store.sql.transaction import Engine
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


class SearchStore(Protocol):
    """Search candidates and the indexes they come from. Ranking is outside the store."""

    def totals(self, space: str, /, layer: Layer) -> Totals:
        """Return how many rows a layer has (without notes, with forgotten turns and atoms), and its newest row.

        The values that are for turns only may be from before a purge.
        """
        ...

    def postings(
        self, space: str, /, layer: Layer, query_terms: Sequence[str], *, filters: Filters, also: Sequence[str] = (),
        absent: bool = False,
    ) -> list[Posting]:  # fmt: skip
        """Return the rows with any of the query terms; for a common term, only the newest rows.

        If all rows of the layer pass the filters, common terms are left out as long as there are rarer terms. Atoms and
        chunks that do not pass are left out. Turns that do not pass may be returned, because they may be the context of
        other turns (see `turn_metadata`). The rows of the terms in `also` are returned only if these terms are rare.
        With `absent`, query terms that no row has are returned too, with no rows, last.
        """
        ...

    def turn_metadata(
        self, space: str, /, rows: NDArray[np.int64], *, filters: Filters, reach: int = 0
    ) -> TurnMetadata:
        """Return the metadata of these turns, and which of them pass the filters; unknown numbers are left out.

        The metadata of up to `reach` turns before and after each turn in its session is returned as well. These turns
        are in the same stretch. Notes are neither returned nor counted.
        """
        ...

    def nearest(self, space: str, /, layer: Layer, query: Vectors, *, filters: Filters, limit: int) -> list[Scored]:
        """Return the rows nearest to a vector, by cosine, among the rows that the model of the vector has embedded."""
        ...

    def nearest_to_each(self, space: str, /, layer: Layer, queries: Sequence[NearestQuery]) -> list[list[Scored]]:
        """Return the rows nearest to each of several vectors, like `nearest`, at once."""
        ...

    def vectors_of(
        self, space: str, /, layer: Layer, ids: Sequence[str], identity: str
    ) -> Mapping[str, NDArray[np.float32]]:
        """Return a model's unit vectors of some rows; rows without a vector are left out."""
        ...

    def index_progress(self) -> IndexProgress:
        """Return how far the indexes have come, over all spaces."""
        ...

    def unembedded(self, space: str, /, identity: str, *, limit: int) -> list[tuple[str, str]]:
        """Return (id, text) of rows that the model has yet to embed: atoms before turns, each oldest first.

        The text of a turn is its content, without the speaker.
        """
        ...

    def put_vectors(self, rows: Sequence[tuple[str, str]], new: Vectors) -> None:
        """Add vectors of rows, given as (space, id); rows that were forgotten or embedded meanwhile are skipped.

        Raises InvalidInput if the model's vectors had other dimensions before.
        """
        ...

    def index_new_turns(self, space: str, /, *, limit: int) -> bool:
        """Index up to `limit` turns that were appended without their terms; return whether there were any.

        Until then a search takes longer, because it reads them. An engine that indexes all turns at once has none. A
        snapshot of this thread ends.
        """
        ...

    def maintain_indexes(self, *, limit: int) -> bool:
        """Do a part of the background work on the indexes; return whether more may be left.

        First, rows with terms of an earlier version are indexed again, newest first, up to `limit` at a time; then the
        index of many vectors is optimised. Searches find everything before, during and after this work. Other writers
        wait for some 20 ms at a time. Several processes may do it at the same time, and any of them may be killed.
        """
        ...

    def drop_vector_index(self, identity: str) -> None:
        """Delete a model's vectors. They can be made again."""
        ...


class Store(Engine, SearchStore, Protocol):
    """One home. The module docstring states the rules for every read and write."""

    def purge(self, space: str, /, what: Purge, *, now: datetime) -> Purged:
        """Erase forgotten content from rows and files, for good.

        The caller then runs `secure_delete` and searches the files for residual matches. Erased turns, atoms and refs
        keep their ids and positions without any words, and everything that quoted them loses those words. Their digests
        are kept, so that the same content is not stored again. Raises Conflict, changing nothing, if a canvas has
        another version now, and NotFound for a tombstone that cannot be purged.
        """
        ...

    def close(self) -> None:
        """Release files and threads. Safe to call twice; the store cannot be used afterwards."""
        ...

    def schema(self) -> str:
        """Return the name of the newest step of the schema."""
        ...

    def not_ready(self, *, try_commit: bool = False) -> str | None:
        """Run a query; return the reason if the store does not answer or cannot be written by this program, else None.

        It takes two seconds at most. `write_problem` is what is known without a commit afterwards; with `try_commit`
        one is tried, for two seconds more, and it is certain. Raises StoreUnavailable if the store cannot be used.
        """
        ...

    @property
    def write_problem(self) -> str | None:
        """The reason why a server does not confirm writes, as last found, else None. The store can be read."""
        ...

    @property
    def replication(self) -> Replication | None:
        """The standbys, as `not_ready` last found them; None for files."""
        ...

    def on_change(self, heard: Callable[[], None]) -> None:
        """Call `heard`, on another thread, soon after other processes changed something, until `close`.

        It replaces the function that was given before. Calls may be spurious, late, or missing if an engine has no
        notifications, so poll `home_rows.last_changes` too.
        """
        ...

    def export_rows(self, spaces: Sequence[str], take: Callable[[str, Row], None]) -> None:
        """Call `take(space, row)` for every row of these spaces that is not forgotten, all from one snapshot.

        Rows are ordered by kind, as `importing.import_rows` requires. An unchanged store always gives the same rows.
        """
        ...

    def write_persona_file(self, space: str, /, page: str) -> None:
        """Write `page`, the current page with its navigation, to `persona.md`, unless the file is up to date.

        An engine without files does nothing.
        """
        ...

    @property
    def clock(self) -> Clock:
        """The clock by which rows are dated and deleted: the database's, where several servers use it."""
        ...

    @property
    def place(self) -> str:
        """The location of the store for messages: the path of its file, or its URL without user and password."""
        ...

    def problems(self) -> list[str]:
        """Return all problems for `doctor`.

        With files, these include damaged rows and missing, torn or stray files; with a server, settings that weaken
        durability.
        """
        ...

    @property
    def has_files(self) -> bool:
        """Whether results and pages are files, at the paths that `Ref` and `Record` name."""
        ...

    @property
    def read_only(self) -> str | None:
        """The reason why nothing can be written, so that writes raise StoreUnavailable; None if writes are possible."""
        ...


class EmbeddedStore(Store, Protocol):
    """A store in files of this machine, with the operations that only such an engine has."""

    def folder(self, space: str, /) -> Path:
        """Return the folder of a space's files."""
        ...

    def remove_folder(self, space: str, /) -> None:
        """Delete the folder of a space, and what the database notes of its files. Used when the space is deleted."""
        ...

    def kept_beside(self, space: str, /) -> list[Path]:
        """Return the line files that were renamed before they were rewritten from the database.

        They were longer than the database's copy, or damaged.
        """
        ...

    def snapshot(self, to: Path) -> None:
        """Copy the database to a new file, in a consistent state; other processes can read and write meanwhile."""
        ...

    def repair(self, set_aside: Callable[[Path], object]) -> list[str]:
        """Rebuild the indexes and copies that `problems` names from the rows, and return a line for each repair.

        Files that are replaced are passed to `set_aside`, which moves them.
        """
        ...

    def compact(self, *, vacuum: bool) -> None:
        """Merge the segments of the word index and empty the write-ahead log; with `vacuum`, release free pages too.

        The merge is done in steps, between which other writers can write. A vacuum makes them wait some 10 s per GB.
        """
        ...

    def free_bytes(self) -> tuple[int, int]:
        """Return how many bytes of the database are unused, and its size in bytes."""
        ...

    def secure_delete(self, *, patience: float = 10.0) -> bool:
        """Erase deleted content from free pages, indexes and logs of the engine. Writers wait meanwhile.

        Returns False if it has to be called again, because other connections read an older state for `patience`
        seconds, or copies that may have erased words could not be rewritten.
        """
        ...

    def exclude_retained(self, traces: Traces) -> list[str]:
        """Exclude from `traces` everything that retained rows and refs also contain; return the names of these rows."""
        ...

    def unverified_purges(self) -> list[str]:
        """Return purges whose verification was killed or is running, by space and first tombstone: `work/x3`."""
        ...

    def note_verified(self, purges: Sequence[str]) -> None:
        """Record that purges were verified, or cannot be verified."""
        ...
