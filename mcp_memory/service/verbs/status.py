"""Status of a memory: counts, sizes, activity, jobs, usage, savings and problems."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread

from mcp_memory import __version__
from mcp_memory.core.errors import DamagedRow, Refused, StoreUnavailable
from mcp_memory.core.metrics import Sample
from mcp_memory.core.process_registry import all_processes
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.types import Activity, DaySavings, SessionSavings, Spent
from mcp_memory.service.measurements import replication_samples, samples_of
from mcp_memory.service.verbs.base import MAX_PAGE, check_range, home_verb, in_thread, reading, store_verb
from mcp_memory.service.verbs.forgetting import overdue_rows
from mcp_memory.service.verbs.recall import RecallVerbs
from mcp_memory.store.sql import (
    atom_rows,
    home_rows,
    job_rows,
    quota_rows,
    saving_rows,
    stage_outputs,
)
from mcp_memory.store.sql.measures import measure
from mcp_memory.store.values import DISTIL, RecallEntry, Replication, Saved, Token

MAX_DAYS = 366
_COUNT_LIMIT = 10_000
CACHED_PRICE = 0.1
"""Typical price of a token in the provider's cache; a new token costs 1."""
_KINDS = {"refs": "results", "conversations": "journal", "mmds": "canvases", "scenes": "scenes"}

T = TypeVar("T")


class StatusVerbs(RecallVerbs):
    """Status, activity, savings, changes and problems."""

    @reading
    def status(self, *, brief: bool = False) -> dict[str, Any]:
        """Return counts, sizes, growth, waiting and failed jobs, usage and savings, as plain JSON values.

        `brief` leaves out what takes long in a large memory: growth, savings, and waiting rows other than turns.
        """
        parts, store, now = self._parts, self._store, self._parts.now()
        damaged: list[str] = []
        counts = asdict(store.read(self.space, home_rows.counts))
        quarantined = counts.pop("quarantined")
        saved = {name: counts.pop(name) for name in ("raw_bytes", "tokens_raw", "tokens_kept")}
        embedded = parts.embedded
        sizes = disk(self.settings.home) if embedded else {}
        return {
            "version": __version__,
            "home": str(self.settings.home),
            "store": store.place,
            "space": self.space,
            "spaces": store.read_home(home_rows.spaces),
            "schema": store.schema(),
            "clock": store.clock.problem(),
            "counts": counts,
            "grown": {
                name: asdict(store.read(self.space, home_rows.grown, since=now - timedelta(days=days)))
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
            "set_aside": [path.name for path in (embedded.kept_beside(self.space) if embedded else ())],
            "retention": [
                {
                    **_as_json(overdue.policy, "what", "days", "took", "ran_at"),
                    "next_run": overdue.next_run.isoformat(),
                    "due": overdue.going,
                    "kept_as_evidence": overdue.staying,
                }
                for overdue in overdue_rows(store, self.space, now=now)
            ],
            "quotas": [_as_json(quota) for quota in store.read(self.space, quota_rows.list_quotas, now=now)],
            "tokens": _count_tokens(_read_rows(partial(store.read_home, home_rows.tokens), damaged), now=now),
            "connected": _home_processes(self.settings.home),
            "damaged": list(dict.fromkeys(damaged)),
            "write_problem": self._write_problem(try_commit=not brief),
        }

    def _write_problem(self, *, try_commit: bool) -> str | None:
        try:
            return self._store.not_ready(try_commit=try_commit) or self._store.write_problem
        except StoreUnavailable as error:
            return str(error)

    @reading
    def ledger(self) -> dict[str, Any]:
        """Return the parts of `status` on tokens and costs, and whether models are paused."""
        counts = self._store.read(self.space, home_rows.counts)
        raw, kept = counts.tokens_raw, counts.tokens_kept
        return {
            "offload": {"tokens_raw": raw, "tokens_kept": kept, "tokens_saved": raw - kept},
            "savings": self._savings_status(),
            "model": self._model_status(),
            "paused": self._pause_status(),
        }

    def _pause_status(self) -> dict[str, str] | None:
        paused = self._store.read_home(home_rows.paused)
        return None if paused is None else {"reason": paused[0], "since": paused[1].isoformat()}

    def _savings_status(self) -> dict[str, Any]:
        """Return the savings in real use. `…_later` counts them again for each proven later call: a lower bound."""
        rows = self._store.read(self.space, saving_rows.savings)
        saving = [row for row in rows if row.kind in ("offload", "compress")]
        spending = [row for row in rows if row.kind in ("expand", "canvas")]
        saved = sum(row.saved - row.spent for row in saving)
        saved_later = sum(row.saved_later - row.spent_later for row in saving)
        spent, spent_later = sum(row.spent for row in spending), sum(row.spent_later for row in spending)
        return {
            "saved_once": saved,
            "saved_later": saved_later,
            "spent": {row.kind: row.spent for row in spending},
            "spent_later": spent_later,
            "cache_broken": sum(row.cache_broken for row in rows),
            "net_tokens": saved + saved_later - spent - spent_later,
            "net_cost": round(sum(map(_net_cost, rows))),
            "kinds": [asdict(row) for row in rows],
        }

    def _pyramid_status(self, damaged: list[str], *, brief: bool) -> dict[str, Any]:
        parts, store = self._parts, self._store
        turns, sessions = store.read(self.space, home_rows.count_unread)
        return {
            "answered_by": parts.model.name if parts.model and parts.settings.distil else None,
            "paused": self._pause_status(),
            "waiting": {"turns": turns, "sessions": sessions, **({} if brief else self._waiting_rows(damaged))},
            "works": [
                _as_json(job, "id", "stage", "session", "state", "until", "attempts", "error")
                for job in _read_rows(lambda: store.read(self.space, job_rows.list_jobs), damaged)
            ],
            "done": {
                done.stage: {"works": done.works, "last": done.last.isoformat(), **done.outcome}
                for done in _read_rows(lambda: store.read(self.space, job_rows.stage_totals), damaged)
            },
        }

    def _waiting_rows(self, damaged: list[str]) -> dict[str, int]:
        from mcp_memory.shortterm import canvas_stage, summary_stage

        store, space, now = self._store, self.space, self._parts.now()
        scenes = store.read(space, job_rows.stage_states).get("scenes")
        after = scenes.position if scenes else 0
        rows: dict[str, Callable[[], Sequence[object]]] = {
            "drafts": lambda: store.read(space, stage_outputs.drafts, limit=_COUNT_LIMIT),
            "atoms_in_no_scene_yet": lambda: store.read(
                space, atom_rows.list_since, after, limit=_COUNT_LIMIT, sentences=False
            ),
            "poor_summaries": lambda: summary_stage.due_records(store, space, now, limit=_COUNT_LIMIT),
            "grown_canvases": lambda: canvas_stage.due_canvases(store, space, now),
        }
        return {name: len(_read_rows(read, damaged)) for name, read in rows.items()}

    def _model_status(self) -> dict[str, Any]:
        from mcp_memory.models.metered import this_hour, today

        store, settings, now = self._store, self.settings, self._parts.now()
        calls = store.read_home(home_rows.spent, since=today(now))
        return {
            "name": self.model,
            "rerank": settings.rerank,
            "tokens_today": _count_model_tokens(calls),
            "daily_tokens": settings.llm_daily_tokens,
            "tokens_this_hour": _count_model_tokens(store.read_home(home_rows.spent, since=this_hour(now))),
            "hourly_tokens": settings.llm_hourly_tokens,
            "today": [asdict(row) for row in calls],
            "ever": [asdict(row) for row in store.read_home(home_rows.spent, since=datetime.fromtimestamp(0, UTC))],
        }

    @reading
    def savings_by_day(self, *, days: int = 30) -> list[DaySavings]:
        """Return the savings and costs of the last days in this machine's time zone, today last."""
        check_range(days, "days", 1, MAX_DAYS)
        today = self._parts.now().astimezone().date()
        dates = [today - timedelta(days=back) for back in reversed(range(days))]
        limits = [datetime.combine(day, time()).astimezone() for day in (*dates, today + timedelta(days=1))]
        saved = self._store.read(self.space, saving_rows.savings_between, limits[:-1])
        calls = self._store.read_home(home_rows.spent_between, limits)
        return [
            DaySavings(
                day=day,
                saved=_saved(kinds),
                spent=_spent(kinds),
                model_tokens=_count_model_tokens(rows),
                cost=sum(prices) if (prices := [row.cost for row in rows if row.cost is not None]) else None,
            )
            for day, kinds, rows in zip(dates, saved, calls, strict=True)
        ]

    @reading
    def savings_by_session(self, *, days: int = 7, limit: int = 30) -> list[SessionSavings]:
        """Return the savings and costs of each session in the last days, the latest session first."""
        check_range(days, "days", 1, MAX_DAYS)
        rows = self._store.read(
            self.space, saving_rows.savings_of_sessions, since=self._parts.now() - timedelta(days=days)
        )
        return [
            SessionSavings(session=session, at=at, saved=_saved(kinds), spent=_spent(kinds))
            for session, at, kinds in rows[:limit]
        ]

    @reading
    def activity(self, *, limit: int = 50, cursor: str | None = None) -> Activity:
        """Return a page of what happened, the newest first: rows were stored, recalled, forgotten or restored.

        Raises InvalidInput for a cursor that is not one of ours.
        """
        from mcp_memory.service.activity import activity

        check_range(limit, "limit", 1, MAX_PAGE)

        def recalls(before: int | None) -> Sequence[RecallEntry]:
            return self._recalls(limit, before=before)

        return activity(self._store, self.space, recalls, limit=limit, cursor=cursor)

    # --- the store and its processes ----------------------------------------------------------------

    def add_client(self, client: str) -> None:
        """Register the masked name of a client, which other processes show. Blocks briefly; never raises."""
        if self._parts.process:
            self._parts.process.add_client(mask(client))

    @in_thread
    def connected(self) -> list[dict[str, Any]]:
        """Return the processes that have the home open, with the clients that they serve, as in `status`."""
        return _home_processes(self.settings.home)

    last_change = store_verb(home_rows.last_change)
    changes = store_verb(home_rows.changes)
    last_changes = home_verb(home_rows.last_changes)
    spaces = home_verb(home_rows.spaces)
    take_requests = home_verb(home_rows.take_requests, writes=True)

    @in_thread
    def on_change(self, heard: Callable[[], None]) -> None:
        """Call `heard`, on another thread, soon after other processes changed something; see `Store.on_change`."""
        self._store.on_change(heard)

    @in_thread
    def measurements(self) -> list[Sample]:
        """Return the samples of the store for `/metrics`."""
        wrong = float(self._store.clock.problem() is not None)
        unready = float(self._write_problem(try_commit=False) is not None)
        return [
            *samples_of(self._store.read_home(measure, queues=self._queues())),
            Sample("mcp_memory_store_not_ready", "Whether the store cannot be fully read and written now.", unready),
            Sample("mcp_memory_clock_wrong", "Whether this machine's clock differs from the database's.", wrong),
            *replication_samples(self._store.replication),
            *self._parts.indexing.samples(),
        ]

    def _queues(self) -> list[str]:
        """Return the queues of spaces that background threads of this process work on."""
        return [self._parts.indexing.queue, *([DISTIL] if self._parts.worker else [])]

    async def not_ready(self) -> str | None:
        """Run a query; return the reason if the store does not answer or cannot be written by this program, else None.

        It does not wait for threads of other calls, and can be cancelled. Raises StoreUnavailable.
        """
        return await anyio.to_thread.run_sync(
            self._store.not_ready, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
        )

    def replication(self) -> Replication | None:
        """Return what is known of the standbys since the last `status` or `not_ready`; None for files."""
        return self._store.replication

    def warnings(self) -> list[str]:
        """Return why a store that can be read does not confirm writes, and how its clock differs. Does not block."""
        return [problem for problem in (self._store.write_problem, self._store.clock.problem()) if problem]

    @in_thread
    def problems(self) -> list[str]:
        from mcp_memory.shortterm.canvas.state import canvas_problems

        store = self._store
        problems = store.problems()
        try:
            return problems + [
                f"{space}: {line}"
                for space in store.read_home(home_rows.spaces)
                for line in canvas_problems(store, space)
            ]
        except DamagedRow:
            return problems  # they include the row

    @in_thread
    def drop_old_vectors(self) -> list[str]:
        """Delete the vectors of all embedding models but the configured model; return their identities.

        Raises Refused until the configured model has embedded everything: another model's vectors are searched too
        until then.
        """
        state, store = self._parts.indexing.state(), self._store
        if state.model is None or state.embedded < state.total:
            raise Refused(
                f"Nothing was deleted: the configured model has embedded {state.embedded:,} of {state.total:,} rows. "
                "A running server embeds the rest; `mcp-memory status` shows how far it is."
            )
        old = [index.identity for index in store.index_progress().vectors if index.identity != state.model]
        for identity in old:
            store.drop_vector_index(identity)
        return old


def _saved(kinds: Sequence[Saved]) -> int:
    return sum(_net(row) for row in kinds if row.kind in ("offload", "compress"))


def _spent(kinds: Sequence[Saved]) -> int:
    return -sum(_net(row) for row in kinds if row.kind in ("expand", "canvas"))


def _net(row: Saved) -> int:
    return row.saved + row.saved_later - row.spent - row.spent_later


def _net_cost(row: Saved) -> float:
    """Return the saving of a kind of edit, in tokens at full price. An offloaded result was never read in full."""
    net, later = row.saved - row.spent, row.saved_later - row.spent_later
    first = CACHED_PRICE if row.kind == "compress" else 1.0
    return net * first + later * CACHED_PRICE - row.cache_broken * (1 - CACHED_PRICE)


def _count_model_tokens(calls: Sequence[Spent]) -> int:
    return sum(row.prompt_tokens + row.completion_tokens for row in calls)


def _count_tokens(tokens: Sequence[Token], *, now: datetime) -> dict[str, int]:
    """Return how many tokens of HTTP clients are valid, expired and revoked."""
    revoked = sum(1 for token in tokens if token.revoked_at)
    valid = sum(1 for token in tokens if token.is_good(now))
    return {"valid": valid, "expired": len(tokens) - valid - revoked, "revoked": revoked}


def _as_json(row: Any, *names: str) -> dict[str, Any]:
    """Return a dataclass, or some of its fields, as plain JSON values."""
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


def _read_rows(read: Callable[[], Sequence[T]], damaged: list[str]) -> Sequence[T]:
    """Read rows and return them; if a damaged row makes them unreadable, add that to `damaged` and return none."""
    try:
        return read()
    except DamagedRow as error:
        damaged.append(str(error))
        return []


def disk(home: Path) -> dict[str, int]:
    """Return the bytes in a home, by kind, over all spaces, without empty kinds.

    Kinds: `database`, `results` (raw tool results), `journal`, `records`, `canvases`, `scenes`, `backups`, `hooks`
    (their logs and notes) and `other`.
    """
    sizes: Counter[str] = Counter()
    _add_sizes(sizes, str(home), ())
    return {kind: size for kind, size in sizes.most_common() if size}


def _add_sizes(sizes: Counter[str], folder: str, parts: tuple[str, ...]) -> None:
    """Add the sizes of all files in `folder`, by kind; `parts` is its path in the home."""
    with suppress(OSError), os.scandir(folder) as entries:  # files may be deleted meanwhile
        for entry in entries:
            with suppress(OSError):
                if entry.is_dir(follow_symlinks=False):
                    _add_sizes(sizes, entry.path, (*parts, entry.name))
                else:
                    sizes[_file_kind((*parts, entry.name))] += entry.stat(follow_symlinks=False).st_size


def _file_kind(parts: tuple[str, ...]) -> str:
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


def _home_processes(home: Path) -> list[dict[str, Any]]:
    """Return the processes that have the home open, without the current process unless it serves."""
    return [_as_json(row) for row in all_processes(home) if row.pid != os.getpid() or row.what.startswith("serve")]
