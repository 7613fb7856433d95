"""A made-up conversation, and workers that read it with a model that needs no script."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.reader import Reader
from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.search.search import Search
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.models.metered import MeteredModel
from mcp_memory.service.indexing import Indexing
from mcp_memory.service.scheduler import Scheduler
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.usage_ledger import StoreLedger
from mcp_memory.testing import FixedClock
from tests.leases import pass_time

SESSIONS = ("morning", "evening")
THINGS = (
    "cello", "harbour", "bakery", "chess", "glacier", "orchard", "violin", "ferry",
)  # fmt: skip


def record(store: Store, clock: FixedClock) -> None:
    for session in SESSIONS:
        for number, thing in enumerate(THINGS):
            said = f"I learned about the {thing} in the {session}." if number % 3 else "ok, thanks"
            new = [NewTurn(role="user", content=said), NewTurn(role="assistant", content=f"A {thing}, indeed.")]
            store.write("default", turn_rows.append, session, turn_rows.prepare(new), now=clock())
            clock.advance(seconds=20)
    clock.advance(hours=2)


@contextmanager
def working(store: Any, clock: FixedClock, home: Path) -> Generator[Callable[[], bool]]:
    settings = Settings(home=home, embedder="none", distil=False, scenes_interval=0)
    indexing = Indexing(store, make_embedder(settings), settings)  # never started: no thread but this one
    search = Search(store, clock)
    pipeline = Scheduler(store, search, indexing, settings, now=clock)
    model = MeteredModel(Reader(), StoreLedger(store), settings, now=clock)
    yield lambda: pipeline.step(model) is True


def finish(store: Store, clock: FixedClock, home: Path) -> None:
    clock.advance(hours=7)
    pass_time(store, timedelta(hours=6))  # past every lease and every pause after a failure
    with working(store, clock, home) as step:
        while step():
            pass


EXPECTED = sorted(
    (text, text)
    for session in SESSIONS
    for number, thing in enumerate(THINGS)
    if number % 3
    for text in [f"I learned about the {thing} in the {session}."]
)
