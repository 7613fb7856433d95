"""Base of the verbs: the parts they work with, how a blocking verb becomes awaitable, and answers within a budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial, wraps
from hashlib import sha256
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import anyio.to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.lru import LRU
from mcp_memory.core.personal_ids import MARK, mark_answer, unmarked
from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import mask, require_no_key
from mcp_memory.core.text import one_line, safe_name
from mcp_memory.core.types import Bundle, CanvasView, Expansion, FoundPage, MemoryResults, TurnResults
from mcp_memory.service.persona_page import write_persona
from mcp_memory.service.recall_log import RecalledContexts
from mcp_memory.store.sql import job_rows
from mcp_memory.store.values import Filters

if TYPE_CHECKING:
    from mcp_memory.core.process_registry import ProcessNote
    from mcp_memory.core.token_counts import TokenCounter
    from mcp_memory.longterm.search.rerank import Rerank
    from mcp_memory.longterm.search.search import Search
    from mcp_memory.models.metered import MeteredModel
    from mcp_memory.service.grouped_writes import GroupedWrites
    from mcp_memory.service.indexing import Indexing
    from mcp_memory.service.recall_log import RecallLog
    from mcp_memory.service.scheduler import Scheduler
    from mcp_memory.service.scheduler_thread import SchedulerThread
    from mcp_memory.store.protocol import EmbeddedStore, Store
    from mcp_memory.store.sql.transaction import HomeTransaction, Transaction
    from mcp_memory.store.values import Vectors

MAX_LIMIT = 50
MAX_PAGE = 500
FRAME_TOKENS = 40
"""About the number of tokens that `render` adds to a text."""

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V", bound="Verbs")
Results = TypeVar("Results", TurnResults, MemoryResults, FoundPage)
Framed = TypeVar("Framed", Bundle, CanvasView, Expansion)


def in_thread(verb: Callable[Concatenate[V, P], T]) -> Callable[Concatenate[V, P], Coroutine[Any, Any, T]]:
    """Make a blocking verb awaitable."""

    @wraps(verb)
    async def run(self: V, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await anyio.to_thread.run_sync(_serve, self, partial(verb, self, *args, **kwargs))

    return run


def _serve(memory: Verbs, call: Callable[[], T]) -> T:
    """Run a call of a client, to which the background gives way."""
    with memory._parts.indexing.serving():  # pyright: ignore[reportPrivateUsage]
        return call()


def reading(verb: Callable[Concatenate[V, P], T]) -> Callable[Concatenate[V, P], Coroutine[Any, Any, T]]:
    """Make a blocking verb awaitable that only reads the store: all its reads see one snapshot."""

    @wraps(verb)
    async def run(self: V, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store = self._store  # pyright: ignore[reportPrivateUsage]
        return await anyio.to_thread.run_sync(_serve, self, lambda: store.in_snapshot(verb, self, *args, **kwargs))

    return run


def store_verb(
    function: Callable[Concatenate[Transaction, P], T], *, writes: bool = False
) -> Callable[Concatenate[Verbs, P], Coroutine[Any, Any, T]]:
    """Make a verb of the memory's space from a function of `store.sql`, run in a reading or a writing transaction."""

    @wraps(function)
    async def run(self: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store = self._store  # pyright: ignore[reportPrivateUsage]
        in_transaction = store.write if writes else store.read
        return await anyio.to_thread.run_sync(
            _serve, self, lambda: in_transaction(self.space, function, *args, **kwargs)
        )

    return run


def home_verb(
    function: Callable[Concatenate[HomeTransaction, P], T], *, writes: bool = False
) -> Callable[Concatenate[Verbs, P], Coroutine[Any, Any, T]]:
    """Make a verb from a function of `store.sql` that concerns all spaces."""

    @wraps(function)
    async def run(self: Verbs, /, *args: P.args, **kwargs: P.kwargs) -> T:
        store = self._store  # pyright: ignore[reportPrivateUsage]
        in_transaction = store.write_home if writes else store.read_home
        return await anyio.to_thread.run_sync(lambda: in_transaction(function, *args, **kwargs))

    return run


_Verb = Callable[Concatenate[V, P], Coroutine[Any, Any, T]]


def of_either_memory(*names: str) -> Callable[[_Verb[V, P, T]], _Verb[V, P, T]]:
    """Make a verb accept marked ids of the personal memory (`core.personal_ids`) in the arguments `names`.

    With such ids the verb acts on the personal memory, and its answer has marked ids. It raises InvalidInput for ids of
    both memories. Without a personal memory, marked ids are unknown ids.
    """

    def decorate(verb: _Verb[V, P, T]) -> _Verb[V, P, T]:
        parameters = signature(verb)

        @wraps(verb)
        async def run(self: V, /, *args: P.args, **kwargs: P.kwargs) -> T:
            personal = self.personal
            given = parameters.bind(self, *args, **kwargs)
            ids = {name: value for name in names if (value := given.arguments.get(name))}
            if personal is None or not are_marked(ids.values()):
                return await verb(self, *args, **kwargs)
            for name, value in ids.items():
                given.arguments[name] = value.removeprefix(MARK) if isinstance(value, str) else unmarked(value)
            return mark_answer(await getattr(personal, verb.__name__)(*given.args[1:], **given.kwargs))

        return run

    return decorate


def are_marked(values: Iterable[str | Sequence[str]]) -> bool:
    """Return whether ids are those of the personal memory. Raises InvalidInput if only some are."""
    ids = [id for value in values for id in ([value] if isinstance(value, str) else value)]
    marked = [id.startswith(MARK) for id in ids]
    if any(marked) and not all(marked):
        raise InvalidInput(
            f"These ids are of two memories: those that begin with {MARK} and the others. Call once for each; nothing "
            "was changed."
        )
    return any(marked)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of a memory; `open_memory` makes them."""

    settings: Settings
    store: Store
    embedded: EmbeddedStore | None
    """The same store if it has files; None on PostgreSQL."""
    search: Search
    indexing: Indexing
    model: MeteredModel | None
    scheduler: Scheduler
    worker: SchedulerThread | None
    rerank: Rerank
    counter: TokenCounter
    now: Callable[[], datetime]
    process: ProcessNote | None
    recall_log: RecallLog
    appends: GroupedWrites
    contexts: RecalledContexts = field(default_factory=RecalledContexts)
    noted_clients: LRU[tuple[str, str], bool] = field(default_factory=lambda: LRU[tuple[str, str], bool](10_000))
    """Spaces and sessions whose client this process has recorded lately."""

    def parse_time(
        self, text: str | None, what: str, *, now: datetime | None = None, end: bool = False
    ) -> datetime | None:
        """Return the moment that a text names, or None if it is empty; see `intervals.parse_time`.

        Phrases are relative to `now`, by default the current time. Raises InvalidInput, naming `what`, for other texts.
        """
        from mcp_memory.language.when.intervals import parse_time

        return parse_time(text, what=what, now=now or self.now(), end=end) if text else None

    def parse_period(
        self, since: str | None, until: str | None, *, now: datetime | None = None
    ) -> tuple[datetime | None, datetime | None]:
        """Return the beginning and the end of a period, None for an open end.

        Raises InvalidInput for an empty period, or a text that names no time.
        """
        begin, end = self.parse_time(since, "since", now=now), self.parse_time(until, "until", now=now, end=True)
        if begin is not None and end is not None and begin >= end:
            raise InvalidInput(
                f"Nothing is between since {one_line(since or '', 40)!r} ({begin:%Y-%m-%d %H:%M}) and until "
                f"{one_line(until or '', 40)!r}, which ends at {end:%Y-%m-%d %H:%M}. since has to be the earlier one."
            )
        return begin, end

    def notify_background(self, turns: int = 0) -> None:
        """Wake the background threads: something was stored or restored, `turns` turns among it."""
        self.indexing.stored(self.settings.space, turns=turns)
        if self.worker:
            self.worker.ring()


class Verbs:
    """A group of verbs over a space of a store."""

    def __init__(self, parts: Parts, session: str) -> None:
        self._parts = parts
        self._store = parts.store
        self.settings = parts.settings
        self.space = parts.settings.space
        self.session = session
        """The session of calls that name none."""
        self.earlier_session: str | None = None
        """The session of such calls before, if all conversations of a client share one."""
        self.client: str | None = None
        """The name of the program that calls, as it introduced itself: the client of the sessions that it records."""
        self.personal: Self | None = None
        """The user's personal memory, which is recalled beside this one and gets statements about the user."""

    def under(self, session: str) -> Self:
        """Return the same memory with another default session."""
        other = copy(self)
        other.session = session
        return other

    def called_by(self, client: str) -> Self:
        """Return the same memory for a program of this name; see `client`."""
        other = copy(self)
        other.client = client
        return other

    def beside(self, personal: Self) -> Self:
        """Return the same memory with a personal memory, a space of the same store, beside it."""
        other = copy(self)
        other.personal = personal
        return other

    def of_client(self, client: str) -> Self:
        """Return the same memory for an authenticated client, whose default session changes every day."""
        today, name = self._parts.now(), sha256(client.encode()).hexdigest()[:8]
        other = self.under(f"{today:%Y-%m-%d}-{name}")
        other.earlier_session = f"{today - timedelta(days=1):%Y-%m-%d}-{name}"
        return other

    @property
    def model(self) -> str | None:
        """The name of the language model that reads what is stored; None without one."""
        return self._parts.model.name if self._parts.model else None

    def now(self) -> datetime:
        """Return the current time by the clock of the store, by which rows are dated. Does not block."""
        return self._parts.now()

    def _session_name(self, name: str | None) -> str:
        if name is None:
            return self.session
        require_no_key(name, "session")
        return safe_name(name, what="session")

    def _refresh(self, *, turns: int = 0) -> None:
        """Update data derived from the rows: the persona now, the indexes, of `turns` turns, in the background."""
        self._write_persona()
        self._parts.notify_background(turns)

    def _write_persona(self) -> None:
        write_persona(self._store, self.space, self._parts.now())

    def _count_undistilled(self, session: str | None = None) -> int:
        """Return how many turns, of a session or of all, no model has read yet."""
        return sum(backlog.turns for backlog in self._store.read(self.space, job_rows.backlog, session=session))

    def _search_page(
        self,
        search: Callable[..., Results],
        query: str,
        filters: Filters,
        *,
        since: str | None,
        until: str | None,
        as_of: str | None = None,
        limit: int,
        cursor: str | None,
    ) -> Results:
        """Return a page of a search. On every page, "last week" is relative to the request for the first page."""
        from mcp_memory.longterm.search.pages import asked_at

        check_range(limit, "limit", 1, MAX_LIMIT)
        if query.strip():
            self._parts.indexing.catch_up()
        parts, vectors = self._parts, QueryVectors(self._parts.indexing)
        at = asked_at(cursor, parts.now())
        begin, end = parts.parse_period(since, until, now=at)
        moment = parts.parse_time(as_of, "as_of", now=at, end=True)
        results = search(
            parts.store,
            parts.search,
            self.space,
            without_private(query),
            embed=vectors.embed,
            filters=replace(filters, since=begin, until=end, as_of=moment),
            limit=limit,
            cursor=cursor,
            at=at,
            rerank=parts.rerank,
        )
        return replace(results, note=join_notes(vectors.note, results.note))

    async def _fit_budget(
        self, answer_in: Callable[[int], Awaitable[Framed]], budget: int, *, first: int, also_as_json: bool = False
    ) -> Framed:
        """Return an answer whose text (and JSON, if `also_as_json`) fits the budget, counted exactly.

        `answer_in` is called with the tokens that the text may take: first with `first`, then, while the answer is
        over the budget, with as many tokens fewer as it is over. Raises InvalidInput if no room is left for the text.
        """

        def excess(answer: Framed) -> int:
            from mcp_memory.service.render import as_json, render

            forms = (render, as_json) if also_as_json else (render,)
            return max(self._parts.counter.count(form(answer)) for form in forms) - budget

        room = first = max(1, first)
        while True:
            try:
                answer = await answer_in(room)
            except InvalidInput:
                if room == first:
                    raise
                break
            over = await anyio.to_thread.run_sync(excess, answer)
            if over <= 0:
                return answer
            if room == 1:
                break
            room = max(1, room - over)
        raise InvalidInput(
            f"{budget} tokens are too few for this answer with its headings. Ask again with {2 * budget}."
        )


class QueryVectors:
    """The vectors of a query, made when a search first needs them. `note` says why a model failed, if any did."""

    def __init__(self, indexing: Indexing) -> None:
        self._indexing = indexing
        self._vectors: dict[str, list[Vectors]] = {}
        self.note: str | None = None

    def embed(self, text: str) -> list[Vectors]:
        """Return the vectors of a text by each available model. Secrets are masked, since a model may be remote."""
        if text not in self._vectors:
            self._vectors[text], self.note = self._indexing.of_query(mask(text))
        return self._vectors[text]


def join_notes(*notes: str | None) -> str | None:
    return " ".join(note for note in notes if note) or None


def check_range(value: int, what: str, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{what} is {value}; it can be {least} to {most}.")


def require_query(query: str) -> str:
    """Return the query without private passages. Raises InvalidInput for an empty query."""
    query = without_private(query)
    if not query.strip():
        raise InvalidInput("The query is empty. Say what was, or would be, searched for.")
    return query
