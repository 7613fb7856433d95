"""Base of the verbs: the parts they work with, and how a blocking verb becomes awaitable."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from copy import copy
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial, wraps
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import anyio.to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.lru import LRU
from mcp_memory.core.secrets.masking import mask, require_no_key
from mcp_memory.core.text import one_line, safe_name

if TYPE_CHECKING:
    from mcp_memory.core.process_registry import ProcessNote
    from mcp_memory.core.token_counts import TokenCounter
    from mcp_memory.longterm.search.rerank import Rerank
    from mcp_memory.longterm.search.search import Search
    from mcp_memory.models.metered import MeteredModel
    from mcp_memory.service.indexing import Indexing
    from mcp_memory.service.recall_log import RecallLog
    from mcp_memory.service.scheduler import Scheduler, SchedulerThread
    from mcp_memory.store.protocol import EmbeddedStore, Store
    from mcp_memory.store.values import Vectors


MAX_LIMIT = 50
_SESSIONS = 1_000  # whose last stable block is remembered

P = ParamSpec("P")
T = TypeVar("T")


def in_thread(verb: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Make a blocking verb awaitable."""

    @wraps(verb)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await anyio.to_thread.run_sync(partial(verb, *args, **kwargs))

    return run


def of_store(verb: Callable[Concatenate[Any, str, P], T]) -> Callable[Concatenate[Verbs, P], Coroutine[Any, Any, T]]:
    """Make a verb of the store, which takes a space first, a verb of the space of a memory."""

    @wraps(verb)
    async def run(self: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        blocking = getattr(self._parts.store, verb.__name__)  # pyright: ignore[reportPrivateUsage]
        return await anyio.to_thread.run_sync(partial(blocking, self.space, *args, **kwargs))

    return run


class Verbs:
    """A group of verbs over one space of one store."""

    def __init__(self, parts: Parts, session: str) -> None:
        self._parts = parts
        self.settings = parts.settings
        self.space = parts.settings.space
        self.session = session
        """The handle used where a caller names none."""

    def under(self, session: str) -> Self:
        """Return the same memory for a caller whose session this is where it names none."""
        other = copy(self)
        other.session = session
        return other

    def of_client(self, client: str) -> Self:
        """Return the same memory for an authenticated client; its session is of the client and the day."""
        return self.under(f"{self._parts.now():%Y-%m-%d}-{sha256(client.encode()).hexdigest()[:8]}")

    def _session(self, name: str | None) -> str:
        if name is None:
            return self.session
        require_no_key(name, "session")
        return safe_name(name, what="session")

    def _changed(self) -> None:
        """Update data derived from the rows: the persona now, the indexes in the background."""
        self._parts.scheduler.write_persona()
        self._parts.stored()

    def _waiting(self, session: str | None = None) -> int:
        """Return how many turns, of a session or of all, are still to be read by a model."""
        return sum(one.turns for one in self._parts.store.backlog(self.space, session=session))


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What `open_memory` joined."""

    settings: Settings
    store: Store
    embedded: EmbeddedStore | None
    """The same store where it is the one with files; None on PostgreSQL."""
    search: Search
    indexing: Indexing
    model: MeteredModel | None
    scheduler: Scheduler
    worker: SchedulerThread | None
    rerank: Rerank
    counter: TokenCounter
    now: Callable[[], datetime]
    note: ProcessNote | None
    recall_log: RecallLog
    stable_blocks: LRU[tuple[str, str], tuple[int, datetime]] = field(default_factory=lambda: LRU(_SESSIONS))
    """Hash of the stable block that a session got last, and when, by space and session."""
    shown_promises: LRU[tuple[str, str], tuple[frozenset[str], datetime]] = field(
        default_factory=lambda: LRU(_SESSIONS)
    )
    """Ids of the promises that a session was shown, and when the last, by space and session."""

    def moment(self, text: str | None, what: str, *, now: datetime | None = None, end: bool = False) -> datetime | None:
        """Return the moment that a time filter names; None for no filter."""
        from mcp_memory.language.when.intervals import parse_time

        return parse_time(text, what=what, now=now or self.now(), end=end) if text else None

    def times(
        self, since: str | None, until: str | None, *, now: datetime | None = None
    ) -> tuple[datetime | None, datetime | None]:
        """Return from when and before when something is looked for. InvalidInput where no time is between."""
        begin, end = self.moment(since, "since", now=now), self.moment(until, "until", now=now, end=True)
        if begin is not None and end is not None and begin >= end:
            raise InvalidInput(
                f"Nothing is between since {one_line(since or '', 40)!r} ({begin:%Y-%m-%d %H:%M}) and until "
                f"{one_line(until or '', 40)!r}, which ends at {end:%Y-%m-%d %H:%M}. since has to be the earlier one."
            )
        return begin, end

    def asking(self) -> QueryVectors:
        return QueryVectors(self.indexing)

    def stored(self, turns: int = 0) -> None:
        """Tell the background that there is something new, such as so many turns."""
        self.indexing.stored(turns)
        if self.worker:
            self.worker.ring()


class QueryVectors:
    """A question whose vectors are made when a search first wants them; `note` says if that went wrong."""

    def __init__(self, indexing: Indexing) -> None:
        self._indexing = indexing
        self._found: dict[str, list[Vectors]] = {}
        self.note: str | None = None

    def vectors(self, text: str) -> list[Vectors]:
        """Return the vectors of a text by each model there is. It is masked: the model may be across a network."""
        if text not in self._found:
            self._found[text], self.note = self._indexing.of_query(mask(text))
        return self._found[text]


def notes(*notes: str | None) -> str | None:
    return " ".join(note for note in notes if note) or None


def in_range(value: int, what: str, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{what} is {value}; it can be {least} to {most}.")
