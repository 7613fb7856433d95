"""Memory: the API for agents (through `server/`), people (through `cli`) and programs.

`open_memory()` builds the parts: settings, store, models, search and background threads. The verbs (`verbs/`) are async
and never block the event loop: each runs in a worker thread, which finishes even when its caller is cancelled, so a
write is complete. They return answers of `core.types` and raise errors of `core.errors`.

All spaces of a store share the file, the models, the index and a single scheduler thread, so a thousand spaces cost
little more than one. The first space is open from the start, other spaces from their first use; the least recently used
spaces are closed, and opened again on demand.

`compress` is for programs that are not async: it opens the memory, compresses and closes it again.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from mcp_memory.core.config import Settings, load_settings, require_home
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.lru import LRU
from mcp_memory.core.secrets.masking import mask_name
from mcp_memory.core.text import safe_name
from mcp_memory.service.persona_page import write_persona
from mcp_memory.service.verbs.administration import AdministrationVerbs
from mcp_memory.service.verbs.base import Parts
from mcp_memory.service.verbs.pages import PageVerbs
from mcp_memory.service.verbs.spaces import SpaceVerbs
from mcp_memory.service.verbs.statements import StatementVerbs
from mcp_memory.service.verbs.status import StatusVerbs
from mcp_memory.service.verbs.tasks import TaskVerbs
from mcp_memory.service.verbs.turns import TurnVerbs
from mcp_memory.store.sql import quarantine_rows, sentence_rows

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_memory.longterm.search.search import SearchContext
    from mcp_memory.models.embed.protocol import Embedder
    from mcp_memory.models.llm import LLM
    from mcp_memory.service.compression.compress import Compressed
    from mcp_memory.store.protocol import EmbeddedStore, Store

_OPEN_SPACES = 256
"""Spaces that stay open in addition to the first, with their schedulers."""


class Memory(TurnVerbs, StatementVerbs, PageVerbs, TaskVerbs, AdministrationVerbs, SpaceVerbs, StatusVerbs):
    """The verbs over a space of a store. `open_memory` opens it; safe to call from many tasks at once."""

    def __init__(self, parts: Parts, spaces: _Spaces | None = None) -> None:
        super().__init__(parts, session=f"{parts.now():%Y-%m-%d}-{secrets.token_hex(4)}")
        self._spaces = spaces or _Spaces(first=self)

    def in_space(self, space: str) -> Memory:
        """Return the verbs over a space of the same store, without a personal memory.

        Raises InvalidInput for an impossible name.

        They work while this Memory is open. No space is created: a space exists once something is stored in it.
        """
        from mcp_memory.service.scheduler import Scheduler

        name, spaces, parts = safe_name(space, what="space"), self._spaces, self._parts

        def open_space() -> Memory:
            settings = parts.settings.model_copy(update={"space": name})
            scheduler = Scheduler(parts.store, parts.search, parts.indexing, settings, now=parts.now)
            return Memory(replace(parts, settings=settings, scheduler=scheduler), spaces)

        return spaces.first if name == spaces.first.space else spaces.others.get_or_put(name, open_space)


@dataclass
class _Spaces:
    """The open spaces of a store."""

    first: Memory
    others: LRU[str, Memory] = field(default_factory=lambda: LRU[str, "Memory"](_OPEN_SPACES))


@asynccontextmanager
async def open_memory(
    settings: Settings | None = None,
    *,
    now: Callable[[], datetime] | None = None,
    embedder: Embedder | str | None = None,
    llm: LLM | str | None = None,
    what: str = "library",
    **overrides: Any,
) -> AsyncGenerator[Memory]:
    """Open a store and yield its verbs. At the end of the block, stop the background work and close the store.

    `overrides` are settings by name (`home=…`, `space=…`); `now`, `embedder` and `llm` replace the store's clock and
    the configured models (a string is the setting). `what` is the purpose shown to other processes. Raises InvalidInput
    for invalid settings, StoreUnavailable if the store cannot be opened.

    With the setting `server`, the verbs are those that a server offers to other machines (`service.remote`).
    """
    names = {"embedder": embedder, "llm": llm}
    overrides |= {name: value for name, value in names.items() if isinstance(value, str)}
    chosen = await anyio.to_thread.run_sync(_choose_settings, settings, overrides)
    if (access := chosen.server_access()) is not None:
        module = await anyio.to_thread.run_sync(import_module, "mcp_memory.service.remote.memory")
        async with module.open_remote(chosen, access) as remote:
            yield remote
        return
    models = [None if isinstance(value, str) else value for value in names.values()]
    build = partial(_build, chosen, now, *models, what)
    parts = await anyio.to_thread.run_sync(build)
    try:
        memory, personal = Memory(parts), parts.settings.personal_space
        yield memory if personal in ("none", memory.space) else memory.beside(memory.in_space(personal))
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_close, parts)


def _choose_settings(settings: Settings | None, overrides: dict[str, Any]) -> Settings:
    """Return the settings with overrides, by default those of the environment. Raises InvalidInput if wrong."""
    if settings is None or overrides:
        base = settings.model_dump(exclude_unset=True) if settings else {}
        settings = load_settings(**{**base, **overrides})
    safe_name(settings.space, what="space")
    safe_name(settings.personal_space, what="space")
    require_home(settings)
    return settings


def _build(
    settings: Settings,
    now: Callable[[], datetime] | None,
    embedder: Embedder | None,
    llm: LLM | None,
    what: str,
) -> Parts:
    """Open the store, load the configured models and start the background threads."""
    from mcp_memory.core import audit
    from mcp_memory.core.process_registry import register
    from mcp_memory.core.telemetry import with_spans
    from mcp_memory.core.token_counts import token_counter
    from mcp_memory.longterm.search.rerank import make_rerank
    from mcp_memory.longterm.search.search import Search
    from mcp_memory.models.embed.factory import make_embedder
    from mcp_memory.models.metered import MeteredModel, make_llm, make_llms_by_purpose
    from mcp_memory.service.grouped_writes import GroupedWrites
    from mcp_memory.service.indexing import Indexing
    from mcp_memory.service.recall_log import RecallLog
    from mcp_memory.service.scheduler import Scheduler
    from mcp_memory.service.scheduler_thread import SchedulerThread
    from mcp_memory.shortterm.chunks import index_next
    from mcp_memory.store.usage_ledger import StoreLedger

    embedder = with_spans(embedder or make_embedder(settings), "embed")
    others = (
        {}
        if llm
        else {purpose: with_spans(model, "model") for purpose, model in make_llms_by_purpose(settings).items()}
    )
    llm = with_spans(llm or make_llm(settings), "model")
    if settings.rerank and llm is None:
        raise InvalidInput("Setting 'rerank' is on and no model is set. Set MCP_MEMORY_LLM, or switch rerank off.")
    process = register(settings.home, what=what, space=mask_name(settings.space))  # before the schema is migrated
    try:
        store, embedded = _open_store(settings)
    except BaseException:
        if process:
            process.close()
        raise
    now = now or store.clock.now
    audit.use_clock(now)
    model = MeteredModel(llm, StoreLedger(store), settings, now=now, others=others) if llm else None
    indexing = Indexing(
        store,
        embedder,
        settings,
        index_result=partial(index_next, store, dict[str, set[str]]()),
        judge_row=partial(_judge_row, store, now),
        read_turns=lambda space, going_on: _read_turns(scheduler_of(space).context(), going_on),
    )
    search = Search(store, now)

    def scheduler_of(space: str) -> Scheduler:
        return Scheduler(store, search, indexing, settings.model_copy(update={"space": space}), now=now)

    worker = None
    if model and settings.distil:
        worker = SchedulerThread(store, lru_cache(_OPEN_SPACES)(scheduler_of), model, settings)
    if store.read_only is None:
        indexing.start()
        if worker:
            worker.start()
    return Parts(
        settings=settings,
        store=store,
        embedded=embedded,
        search=search,
        indexing=indexing,
        model=model,
        scheduler=scheduler_of(settings.space),
        worker=worker,
        rerank=make_rerank(store, model, settings),
        counter=token_counter(settings.tokenizer),
        now=now,
        process=process,
        recall_log=RecallLog(store),
        appends=GroupedWrites(store),
    )


def _judge_row(store: Store, now: Callable[[], datetime], space: str, going_on: Callable[[], bool]) -> bool:
    """Judge a turn of a space that was stored unjudged; return whether there was any."""
    if not store.read(space, quarantine_rows.unjudged, limit=1):  # most spaces have none: skip the slow import
        return False
    from mcp_memory.longterm.verification.trust import judge_waiting

    return judge_waiting(store, space, going_on, now=now())


_TURNS_READ = 20  # together


def _read_turns(context: SearchContext, going_on: Callable[[], bool]) -> bool:
    """Make statements of the next turns of a space; return whether there were any and all of them were read.

    After the last of them, the page about the user is updated.
    """
    store, space = context.store, context.space
    turns = (
        store.read(space, sentence_rows.unread_turns, limit=_TURNS_READ + 1) if context.settings.read_sentences else []
    )
    if not turns:  # and nothing heavy is loaded
        return False
    from mcp_memory.longterm.reader import read

    has_read = read(context, turns[:_TURNS_READ], going_on=going_on)
    if has_read and going_on() and len(turns) <= _TURNS_READ:
        write_persona(store, space, context.now)
    return has_read


def _open_store(settings: Settings) -> tuple[Store, EmbeddedStore | None]:
    """Open the configured store, and return it twice: as a store, and as the embedded store (None on PostgreSQL)."""
    from mcp_memory.core.telemetry import with_spans

    if settings.store is None:
        from mcp_memory.store.sqlite.store import open_store

        for name, what in (("objects", "the bucket"), ("store_reads", "a standby")):
            if getattr(settings, name) is not None:
                raise InvalidInput(
                    f"Setting '{name}' is {what} of a memory in PostgreSQL, and 'store' is not set. Set"
                    f" MCP_MEMORY_STORE, or unset MCP_MEMORY_{name.upper()}."
                )

        embedded = with_spans(open_store(settings.home), "store")
        return embedded, embedded
    from mcp_memory.store.postgres.store import open_store as open_postgres

    opened = open_postgres(
        settings.store,
        settings.objects,
        key=settings.store_key,
        timeout=settings.store_timeout,
        reads=settings.store_reads,
    )
    return with_spans(opened, "store"), None


def _close(parts: Parts) -> None:
    if parts.model:
        parts.model.close()
    if parts.worker:
        parts.worker.close()
    parts.indexing.close()
    parts.recall_log.close()
    parts.store.close()
    if parts.process:
        parts.process.close()


def compress(
    messages: Sequence[Any],
    *,
    window: int,
    memory: Memory | None = None,
    settings: Settings | None = None,
    home: Path | str | None = None,
    space: str | None = None,
    **options: Any,
) -> Compressed:
    """Compress messages to a window of tokens, storing what is removed; `options` are those of `Memory.compress`.

    Uses an open `memory`, or opens the memory of `settings`, `home` and `space`, by default that of the environment.
    Async code awaits `memory.compress` instead; in an event loop this raises InvalidInput.
    """

    async def run() -> Compressed:
        if memory is not None:
            return await memory.compress(messages, window=window, **options)
        # Without vectors it opens in milliseconds; the next process that opens it embeds the stored rows.
        settings_given: dict[str, Any] = {"home": home, "space": space}
        overrides = {name: value for name, value in settings_given.items() if value is not None}
        async with open_memory(settings, distil=False, embedder="none", **overrides) as opened:
            return await opened.compress(messages, window=window, **options)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(run)
    raise InvalidInput("An event loop runs here, and compress() would block it. Use `await memory.compress(…)`.")
