"""Maintenance of a home that other processes may have open: its store opened for upkeep, and `compact`.

`compact` releases unused space to the disk while other processes work. The word index is merged in shares and the
write-ahead log is emptied. Vacuuming stops all writers for a while, so a large database is only vacuumed while no other
process has the home open.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from mcp_memory.core.process_registry import other_processes, register
from mcp_memory.store.protocol import EmbeddedStore
from mcp_memory.store.sqlite.store import open_store

_LARGE = 500_000_000  # bytes; a rewrite takes some 5 s, and writers that wait give up after 30
_WORTH = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """Bytes of the database with its log, before and after.

    `postponed` is the reason why free pages were left in it.
    """

    before: int
    after: int
    postponed: str | None = None


@contextmanager
def store_for_upkeep(home: Path, what: str) -> Generator[EmbeddedStore]:
    """Open the store of a home, and register this process there with its activity `what`."""
    noted = register(home, what=what)
    with closing(noted) if noted else nullcontext(), closing(open_store(home)) as store:
        yield store


def compact(store: EmbeddedStore, home: Path) -> Compacted:
    """Compact the database of a home; a large database that other processes have open is not vacuumed."""
    before, (free, size) = _size(home), store.free_bytes()
    holders, postponed = other_processes(home), None
    if size > _LARGE and holders and free > _WORTH * size:
        postponed = (
            f"{free / 1e6:,.0f} MB of free pages stay in it while {', '.join(map(str, holders))} would have to wait. "
            "End them and compact again."
        )
    store.compact(vacuum=postponed is None and (not holders or free > _WORTH * size))
    return Compacted(before=before, after=_size(home), postponed=postponed)


def _size(home: Path) -> int:
    return sum(path.stat().st_size for path in home.glob("memory.db*") if path.exists())
