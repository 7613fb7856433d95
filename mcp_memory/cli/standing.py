"""Checks of how a memory stands, by its status: work that failed, what was spent, who is there, backups, reviews."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mcp_memory import __version__
from mcp_memory.cli.terminal import one_line, plural

if TYPE_CHECKING:
    from mcp_memory.service.upkeep.backup import Backup

__all__ = ["Check", "standing"]

_WORTH_A_BACKUP = 1_000  # turns
_OLD = timedelta(days=30)
_NEARLY = 0.9  # of the day's tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at. Where `state` is not `ok`, `next_step` says what to do, unless `found` does."""

    name: str
    state: Literal["ok", "warn", "fail"]
    found: str
    next_step: str | None = None


def standing(status: dict[str, Any], home: Path) -> Iterator[Check]:
    """Yield the checks of a memory's status, as `Memory.status` returns it, and of the backups in its home."""
    from mcp_memory.service.upkeep.backup import folder_of, listed

    yield work(status["pyramid"])
    yield model(status["model"], status["pyramid"])
    yield review(status["held"])
    yield recovered(status["recovered"], now=datetime.now(UTC))
    yield processes(status["connected"])
    yield backups(listed(folder_of(home)), turns=status["counts"]["turns"], now=datetime.now(UTC))


def work(pyramid: dict[str, Any]) -> Check:
    """What models were to do and could not."""
    parked = [one for one in pyramid["works"] if one["state"] == "parked"]
    waiting = pyramid["waiting"]
    queue = f"{plural(waiting['turns'], 'turn')} to read, {plural(waiting['drafts'], 'statement')} to merge"
    if not parked:
        return Check(name="work", state="ok", found=f"nothing failed; {queue}")
    last = parked[-1]
    return Check(
        name="work",
        state="warn",
        found=f"{plural(len(parked), 'work')} failed, {last['stage']} with: {one_line(last['error'] or '', 160)}",
        next_step="Each is tried again by itself later, and `mcp-memory status` lists them. No turn is lost.",
    )


def model(model: dict[str, Any], pyramid: dict[str, Any]) -> Check:
    """Whether a model may be asked, and how far its budget is used up."""
    if pyramid["paused"]:
        found = f"paused since {pyramid['paused']['since'][:16].replace('T', ' ')}: {pyramid['paused']['reason']}"
        return Check(name="model", state="warn", found=found, next_step="`mcp-memory resume` ends the pause.")
    if model["name"] is None:
        return Check(name="model", state="ok", found="none is set; the connected agent can distil")
    used, cap = model["tokens_today"], model["daily_tokens"]
    found = f"{model['name']}, {used:,} of {cap:,} tokens today"
    if used >= _NEARLY * cap:
        return Check(
            name="model",
            state="warn",
            found=found,
            next_step="What waits is read from midnight UTC on; raise MCP_MEMORY_LLM_DAILY_TOKENS to go on now.",
        )
    failed = sum(call["failed"] for call in model["today"])
    return Check(name="model", state="ok", found=found + (f", {plural(failed, 'call')} failed" if failed else ""))


def recovered(found: Sequence[dict[str, Any]], *, now: datetime) -> Check:
    """Whether the database lost something that the files had; it is back, and whoever runs this should know."""
    late = [one for one in found if now - datetime.fromisoformat(one["at"]) < _OLD]
    if not late:
        return Check(name="recovered", state="ok", found="the database had all that the files have, whenever opened")
    lines, left = sum(one["lines"] for one in late), sum(one["left"] for one in late)
    could_not = f", {plural(left, 'line')} could not" if left else ""
    return Check(
        name="recovered",
        state="warn",
        found=f"{plural(lines, 'line')} that the database had lost came back from the files{could_not}, last on"
        f" {late[0]['at'][:16].replace('T', ' ')}: {one_line(', '.join(one['path'] for one in late), 160)}",
        next_step="Nothing is to be done. Its log of writes, memory.db-wal, was deleted, or the home was copied "
        "without it: use `mcp-memory backup` for copies.",
    )


def review(held: int) -> Check:
    if not held:
        return Check(name="review", state="ok", found="nothing is held")
    return Check(
        name="review",
        state="warn",
        found="1 row reads like an attack and waits for you"
        if held == 1
        else f"{held:,} rows read like an attack and wait for you",
        next_step="`mcp-memory review` shows them; nothing of them is recalled until you release it.",
    )


def processes(there: Sequence[dict[str, Any]]) -> Check:
    """Who holds the home; a process of another version works, and may lack what this one does."""
    told = ", ".join(f"{one['what']} (process {one['pid']})" for one in there) or "nobody else holds the home"
    others = [one for one in there if one["version"] not in ("", __version__)]
    if not others:
        return Check(name="connected", state="ok", found=one_line(told, 200))
    return Check(
        name="connected",
        state="warn",
        found=f"{one_line(told, 200)}; {plural(len(others), 'process')} of another version",
        next_step=f"End and start them again, so that they run {__version__} too.",
    )


def backups(found: Sequence[Backup], *, turns: int, now: datetime) -> Check:
    """Whether there is a backup that can be read and is not old, once there is something to lose."""
    good = [one for one in found if one.manifest is not None]
    broken = [one.path.name for one in found if one.manifest is None]
    newest = max((one.manifest.made for one in good if one.manifest), default=None)
    make = "`mcp-memory backup` makes one while others go on."
    if broken:
        return Check(
            name="backups",
            state="warn",
            found=f"{one_line(', '.join(broken), 160)} cannot be read",
            next_step=f"Remove it, it restores nothing. {make}",
        )
    if newest is None:
        state = "warn" if turns >= _WORTH_A_BACKUP else "ok"
        return Check(name="backups", state=state, found="none", next_step=make if state == "warn" else None)
    told = f"{len(found)}, the newest of {newest.astimezone():%Y-%m-%d %H:%M}"
    if now - newest > _OLD:
        return Check(name="backups", state="warn", found=told, next_step=make)
    return Check(name="backups", state="ok", found=told)
