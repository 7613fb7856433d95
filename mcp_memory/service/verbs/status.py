"""Status of a memory: counts, sizes, indexing, jobs, usage, savings and problems."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mcp_memory import __version__
from mcp_memory.core.errors import DamagedRow, InvalidInput, Refused
from mcp_memory.core.private import without_private
from mcp_memory.core.process_registry import all_processes
from mcp_memory.core.secrets.masking import mask
from mcp_memory.service.verbs.base import MAX_LIMIT, Verbs, in_range, in_thread, notes, of_store
from mcp_memory.store.protocol import Store

if TYPE_CHECKING:
    from mcp_memory.core.types import Kind
    from mcp_memory.longterm.recall.blocks import Recalled
    from mcp_memory.longterm.search.explain import Explained
    from mcp_memory.store.values import Saved, Token


_MANY = 10_000

T = TypeVar("T")


class StatusVerbs(Verbs):
    """Status, changes and repairs."""

    def met(self, client: str) -> None:
        """Register the name of a client, masked, shown to other processes. Blocks shortly; never raises."""
        if self._parts.note:
            self._parts.note.met(mask(client))

    last_change = of_store(Store.last_change)
    changes = of_store(Store.changes)

    @in_thread
    def not_ready(self) -> str | None:
        """Return why the store cannot serve requests now, or None. Raises the same errors as a request."""
        return self._parts.store.not_ready()

    @in_thread
    def take_requests(self, key: str, *, wanted: int, a_minute: int) -> int:
        """Take up to `wanted` requests from the allowance of an HTTP client; return how many were granted."""
        return self._parts.store.take_requests(key, wanted=wanted, a_minute=a_minute)

    @in_thread
    def last_changes(self, spaces: Sequence[str]) -> dict[str, int]:
        """Return the number of the last change of several spaces."""
        return self._parts.store.last_changes(spaces)

    @in_thread
    def spaces(self) -> list[str]:
        """Return the names of all spaces of the store."""
        return self._parts.store.spaces()

    @in_thread
    def on_change(self, heard: Callable[[], None]) -> None:
        """Have `heard` called, on another thread, when other processes may have changed something."""
        self._parts.store.on_change(heard)

    @in_thread
    def problems(self) -> list[str]:
        from mcp_memory.shortterm.canvas.state import canvas_problems

        store = self._parts.store
        found = store.problems()
        try:
            return found + [f"{space}: {each}" for space in store.spaces() for each in canvas_problems(store, space)]
        except DamagedRow:
            return found  # which names it

    @in_thread
    def drop_old_vectors(self) -> list[str]:
        """Delete the vectors of every embedding model but the one that is set; return their identities.

        Refused until that one has embedded everything, for until then the fullest other is searched too.
        """
        state, store = self._parts.indexing.state(), self._parts.store
        if state.model is None or state.embedded < state.total:
            raise Refused(
                f"Nothing was deleted: the model that is set has embedded {state.embedded:,} of {state.total:,} rows. "
                "A running server embeds the rest; `mcp-memory status` shows how far it is."
            )
        old = [index.identity for index in store.index_progress().vectors if index.identity != state.model]
        for identity in old:
            store.drop_vector_index(identity)
        return old

    @in_thread
    def explain(
        self,
        query: str,
        *,
        kind: Kind | None = None,
        entity: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int = 10,
    ) -> Explained:
        """Explain the ranking of a memory search. Raises InvalidInput without a query.

        Raises NotFound for an unknown entity.
        """
        from mcp_memory.longterm.search.explain import explain
        from mcp_memory.longterm.search.scenes import resolve_filters
        from mcp_memory.store.values import Filters

        query = without_private(query)
        _not_empty(query)
        in_range(limit, "limit", 1, MAX_LIMIT)
        parts, now = self._parts, self._parts.now()
        asking = parts.asking()
        begin, end = parts.times(since, until, now=now)
        filters, taken_as = resolve_filters(
            parts.store, self.space, Filters(kind=kind, entity=entity, since=begin, until=end)
        )
        found = explain(
            parts.store, parts.search, self.space, query, embed=asking.vectors, filters=filters, limit=limit, at=now
        )
        note = (
            "A model puts the first results of real searches into order; it was not asked."
            if parts.settings.rerank
            else None
        )
        return replace(found, note=notes(taken_as, asking.note, note))

    @in_thread
    def explain_recall(self, query: str, *, budget_tokens: int = 1200) -> Recalled:
        """Explain what recall would bring for a question, and why. Raises InvalidInput without a query."""
        from mcp_memory.longterm.recall.blocks import explain_recall

        query = without_private(query)
        _not_empty(query)
        in_range(budget_tokens, "budget_tokens", 100, 100_000)
        parts = self._parts
        return explain_recall(parts.scheduler.context(), query, counter=parts.counter, budget=budget_tokens)

    @in_thread
    def status(self, *, brief: bool = False) -> dict[str, Any]:
        """Return counts, sizes, growth, waiting and failed jobs, usage and savings, as plain JSON values.

        `brief` leaves growth and savings empty, and of what waits it has the turns: the rest takes longer the more
        there is.
        """
        parts, store, now = self._parts, self._parts.store, self._parts.now()
        damaged: list[str] = []
        counts = asdict(store.counts(self.space))
        quarantined = counts.pop("quarantined")
        saved = {name: counts.pop(name) for name in ("raw_bytes", "tokens_raw", "tokens_kept")}
        embedded = parts.embedded
        sizes = disk(self.settings.home) if embedded else {}
        return {
            "version": __version__,
            "home": str(self.settings.home),
            "store": store.place,
            "space": self.space,
            "spaces": store.spaces(),
            "schema": store.schema(),
            "counts": counts,
            "grown": {
                name: asdict(store.grown(self.space, since=now - timedelta(days=days)))
                for name, days in ((("day", 1), ("week", 7), ("month", 30)) if not brief else ())
            },
            "disk": {
                "database": sizes.get("database", 0),
                "files": sum(sizes.values()) - sizes.get("database", 0),
                "kinds": sizes,
            },
            "embedding": asdict(parts.indexing.state()),
            "model": self._model_status(),
            "pyramid": self._pyramid_status(damaged, brief=brief),
            "tokenizer": {"name": parts.counter.name, "exact": parts.counter.exact},
            "offload": {**saved, "tokens_saved": saved["tokens_raw"] - saved["tokens_kept"]},
            "savings": {} if brief else self._savings_status(),
            "held": quarantined,
            "recovered": [_plain(one) for one in (embedded.recovered(self.space) if embedded else ())],
            "set_aside": embedded.set_aside(self.space) if embedded else [],
            "retention": [_plain(one, "what", "days", "took", "ran_at") for one in store.policies(self.space)],
            "tokens": keys(_read(store.tokens, damaged), now=now),
            "connected": connected(self.settings.home),
            "damaged": list(dict.fromkeys(damaged)),
        }

    @in_thread
    def ledger(self) -> dict[str, Any]:
        """Return the parts of `status` that tell of tokens and money, and whether models are paused."""
        counts, paused = self._parts.store.counts(self.space), self._parts.store.paused()
        raw, kept = counts.tokens_raw, counts.tokens_kept
        return {
            "offload": {"tokens_raw": raw, "tokens_kept": kept, "tokens_saved": raw - kept},
            "savings": self._savings_status(),
            "model": self._model_status(),
            "paused": None if paused is None else {"reason": paused[0], "since": paused[1].isoformat()},
        }

    def _savings_status(self) -> dict[str, Any]:
        """What real use saved; `…_later` counts again for every later call that is proven, so it is a lower bound."""
        kinds = self._parts.store.savings(self.space)
        saved = sum(one.saved - one.spent for one in kinds if one.kind in ("offload", "compress"))
        saved_later = sum(one.saved_later - one.spent_later for one in kinds if one.kind in ("offload", "compress"))
        read = {one.kind: one for one in kinds if one.kind in ("expand", "canvas")}
        broken = sum(one.cache_broken for one in kinds)
        spent = sum(one.spent for one in read.values())
        spent_later = sum(one.spent_later for one in read.values())
        return {
            "saved_once": saved,
            "saved_later": saved_later,
            "spent": {kind: one.spent for kind, one in read.items()},
            "spent_later": spent_later,
            "cache_broken": broken,
            "net_tokens": saved + saved_later - spent - spent_later,
            "net_cost": round(sum(map(_worth, kinds))),
            "kinds": [asdict(one) for one in kinds],
        }

    def _pyramid_status(self, damaged: list[str], *, brief: bool) -> dict[str, Any]:
        parts, store = self._parts, self._parts.store
        (turns, sessions), paused = store.unread(self.space), store.paused()
        return {
            "answered_by": parts.model.name if parts.model and parts.settings.distil else None,
            "paused": None if paused is None else {"reason": paused[0], "since": paused[1].isoformat()},
            "waiting": {"turns": turns, "sessions": sessions, **({} if brief else self._waiting_rows(damaged))},
            "works": [
                _plain(work, "id", "stage", "session", "state", "until", "attempts", "error")
                for work in _read(lambda: store.jobs(self.space), damaged)
            ],
            "done": {
                done.stage: {"works": done.works, "last": done.last.isoformat(), **done.outcome}
                for done in _read(lambda: store.stage_logs(self.space), damaged)
            },
        }

    def _waiting_rows(self, damaged: list[str]) -> dict[str, int]:
        from mcp_memory.shortterm import canvas_stage, summary_stage

        parts, store = self._parts, self._parts.store
        told = store.stage_states(self.space).get("scenes")
        after = told.position if told else 0
        untold = _read(lambda: store.atoms_since(self.space, after, limit=_MANY, sentences=False), damaged)
        drafts = _read(lambda: store.drafts(self.space, limit=_MANY), damaged)
        thin = _read(lambda: summary_stage.thin(store, self.space, parts.now(), limit=_MANY), damaged)
        grown = _read(lambda: canvas_stage.grown(store, self.space, parts.now()), damaged)
        return {
            "drafts": len(drafts),
            "atoms_in_no_scene_yet": len(untold),
            "poor_summaries": len(thin),
            "grown_canvases": len(grown),
        }

    def _model_status(self) -> dict[str, Any]:
        from mcp_memory.models.metered import this_hour, today

        parts, settings = self._parts, self.settings
        calls = parts.store.spent(since=today(parts.now()))
        ever = parts.store.spent(since=datetime.fromtimestamp(0, UTC))
        return {
            "name": parts.model.name if parts.model else None,
            "rerank": settings.rerank,
            "tokens_today": sum(one.prompt_tokens + one.completion_tokens for one in calls),
            "daily_tokens": settings.llm_daily_tokens,
            "tokens_this_hour": sum(
                one.prompt_tokens + one.completion_tokens for one in parts.store.spent(since=this_hour(parts.now()))
            ),
            "hourly_tokens": settings.llm_hourly_tokens,
            "today": [asdict(one) for one in calls],
            "ever": [asdict(one) for one in ever],
        }


def _not_empty(query: str) -> None:
    if not query.strip():
        raise InvalidInput("The query is empty. Say what was, or would be, searched for.")


def _plain(row: Any, *names: str) -> dict[str, Any]:
    """Return a dataclass (these of its fields) as plain JSON values."""
    fields = asdict(row)
    return {name: _json_value(fields[name]) for name in names or fields}


def _json_value(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case tuple():
            return [*cast("tuple[Any, ...]", value)]
        case _:
            return value


def _read(read: Callable[[], list[T]], damaged: list[str]) -> list[T]:
    """Return the rows; those that a damaged row makes unreadable are counted as none, and noted in `damaged`."""
    try:
        return read()
    except DamagedRow as error:
        damaged.append(str(error))
        return []


CACHED_PRICE = 0.1
"""Of a token that the provider has read before, as it is with most: a new one costs 1."""


def _worth(one: Saved) -> float:
    """Return the saving of a kind, in new tokens. A result offloaded on arrival was never read whole, not even once."""
    net, later = one.saved - one.spent, one.saved_later - one.spent_later
    first = CACHED_PRICE if one.kind == "compress" else 1.0
    return net * first + later * CACHED_PRICE - one.cache_broken * (1 - CACHED_PRICE)


_KINDS = {"refs": "results", "conversations": "journal", "mmds": "canvases", "scenes": "scenes"}


def disk(home: Path) -> dict[str, int]:
    """Return the bytes in a home, by kind, over all spaces; empty kinds are left out.

    `database`, `results` (raw tool results), `journal`, `records`, `canvases`, `scenes`, `backups`, `hooks` (their
    logs and notes) and `other`.
    """
    sizes: Counter[str] = Counter()
    _add_sizes(sizes, str(home), ())
    return {kind: size for kind, size in sizes.most_common() if size}


def _add_sizes(sizes: Counter[str], folder: str, parts: tuple[str, ...]) -> None:
    """Add the bytes of a folder, which is at `parts` in the home. A home may have a file for each of many results."""
    with suppress(OSError), os.scandir(folder) as entries:  # gone since it was listed, as files may be
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    _add_sizes(sizes, entry.path, (*parts, entry.name))
                else:
                    sizes[_kind((*parts, entry.name))] += entry.stat(follow_symlinks=False).st_size


def _kind(parts: tuple[str, ...]) -> str:
    match parts:
        case (name,) if name.startswith("memory.db"):
            return "database"
        case ("spaces", _, folder, *_) if folder in _KINDS:
            return _KINDS[folder]
        case ("spaces", _, name) if name.endswith(".jsonl"):
            return "records"
        case (("backups" | "hooks") as folder, *_):
            return folder
        case _:
            return "other"


def connected(home: Path) -> list[dict[str, Any]]:
    """Return the processes that have the home open, except this one unless it serves."""
    return [_plain(one) for one in all_processes(home) if one.pid != os.getpid() or one.what.startswith("serve")]


def keys(tokens: Sequence[Token], *, now: datetime) -> dict[str, int]:
    """Return how many tokens of HTTP clients open something now, how many are past their time, how many revoked."""
    revoked, valid = sum(1 for one in tokens if one.revoked_at), sum(1 for one in tokens if one.is_good(now))
    return {"valid": valid, "expired": len(tokens) - valid - revoked, "revoked": revoked}
