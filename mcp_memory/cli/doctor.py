"""Checks of how a memory stands, by its status: work that failed, what was spent, who is there, backups, reviews.

Examines an installation and a home: each check says what it found and, where that is not well, what to do.

A home that does not exist is not made; opening one may bring its schema up to date, and changes nothing else.
`fail` means that something is lost or does not work, `warn` that it works less well than it could. The check of
files reads every byte that is kept, so it takes as long as the memory is large.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mcp_memory import __version__
from mcp_memory.cli.terminal import one_line, plural
from mcp_memory.core.errors import InvalidInput, McpMemoryError

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.service.upkeep.backup import Backup
    from mcp_memory.service.upkeep.rebuild import Agreement

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


LITTLE_DISK, TOO_LITTLE_DISK = 1_000_000_000, 50_000_000


def examine(**overrides: Any) -> Iterator[Check]:
    """Yield the checks, the quick ones first. `overrides` are settings, as `load_settings` takes them."""
    from mcp_memory.core.config import load_settings

    yield _python()
    yield _engine()
    try:
        settings = load_settings(**overrides)
    except InvalidInput as error:
        yield Check(
            name="settings",
            state="fail",
            found=str(error),
            next_step="Mend it and run doctor again: the other checks need the settings.",
        )
        return
    yield _settings(settings)
    yield from _spans()
    yield _home(settings.home)
    yield _disk(settings.home)
    yield _hooks(settings.home)
    yield from _store(settings)
    yield _embedder(settings)
    yield _tokenizer(settings)


def _python() -> Check:
    return Check(name="python", state="ok", found=f"{platform.python_version()} at {sys.executable}")


def _engine() -> Check:
    """A turn is stored in a scratch home and found again: the engine, its extensions and its index work."""
    import anyio

    from mcp_memory.core.config import Settings
    from mcp_memory.core.types import NewTurn
    from mcp_memory.service.memory import open_memory

    async def try_out(scratch: str) -> int:
        async with open_memory(Settings(home=Path(scratch), embedder="none")) as memory:
            await memory.record_turns([NewTurn(role="user", content="The night boat sails at 02:30.")])
            return len((await memory.conversation_search("night boat")).hits)

    versions = ", ".join(f"{name} {version(name)}" for name in ("apsw", "sqlite-vec"))
    try:
        with tempfile.TemporaryDirectory(prefix="mcp-memory-doctor-") as scratch:
            found = anyio.run(try_out, scratch)
    except (McpMemoryError, OSError, ImportError) as error:
        return Check(
            name="engine",
            state="fail",
            found=f"a scratch store does not work ({versions}): {error}",
            next_step="Install the packages anew: pip install --force-reinstall apsw sqlite-vec",
        )
    if not found:
        return Check(
            name="engine",
            state="fail",
            found=f"what was stored in a scratch store was not found again ({versions})",
            next_step="Install the packages anew: pip install --force-reinstall apsw sqlite-vec PyStemmer",
        )
    return Check(name="engine", state="ok", found=f"stores and finds ({versions})")


def _settings(settings: Settings) -> Check:
    from mcp_memory.cli.terminal import with_nearest
    from mcp_memory.core.config import unknown_variables

    if unknown := unknown_variables():
        return Check(
            name="settings",
            state="warn",
            found=f"variables that begin with MCP_MEMORY_ and set nothing: {with_nearest(unknown)}",
            next_step="Mend their names, or unset them. The README lists all settings.",
        )
    path = settings.home / "config.toml"
    source = path if path.is_file() else "the defaults"
    return Check(name="settings", state="ok", found=f"valid, from the options, the environment and {source}")


def _spans() -> Iterator[Check]:
    """What leaves the machine is never silent: nothing is said only where no collector is named."""
    from mcp_memory.core import telemetry

    if not telemetry.wanted():
        return
    if telemetry.is_installed():
        yield Check(name="telemetry", state="ok", found="spans without contents go to the collector that OTEL_* names")
    else:
        yield Check(
            name="telemetry",
            state="warn",
            found="OTEL_* names a collector, and the extra that sends spans is not installed",
            next_step="Install mcp-memory[otel], or unset the variable; nothing is sent meanwhile.",
        )


def _home(home: Path) -> Check:
    place = _nearest(home)
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        return Check(
            name="home",
            state="fail",
            found=f"{place} cannot be written to: {error.strerror}",
            next_step="Give your user the right to write there, or name another home with MCP_MEMORY_HOME.",
        )
    return Check(name="home", state="ok", found=str(home) if place == home else f"{home}, made when first needed")


def _nearest(home: Path) -> Path:
    """Return the home, or the nearest folder above it that is there."""
    return next(folder for folder in (home, *home.parents) if os.access(folder, os.F_OK))


def _disk(home: Path) -> Check:
    free = shutil.disk_usage(_nearest(home)).free
    state = "fail" if free < TOO_LITTLE_DISK else "warn" if free < LITTLE_DISK else "ok"
    return Check(
        name="disk",
        state=state,
        found=f"{free / 1e9:.1f} GB free",
        next_step=None if state == "ok" else "Make room: a full disk refuses new turns and results.",
    )


def _hooks(home: Path) -> Check:
    from mcp_memory.integrations.hooks.endpoint import health

    found = health(home, now=datetime.now())
    if not found.used:
        return Check(name="hooks", state="ok", found="no client has run any")
    if not found.failures:
        running = "a process that serves them runs" if found.residents else "no process of theirs runs"
        return Check(name="hooks", state="ok", found=f"{running}, nothing failed within a week")
    many = f"{len(found.failures)} times" if len(found.failures) > 1 else "once"
    return Check(
        name="hooks",
        state="warn",
        found=f"failed {many} within a week, last at {one_line(found.failures[-1], 300)}",
        next_step=f"Clients went on without memory then. All of it is in {found.log}.",
    )


def _store(settings: Settings) -> Iterator[Check]:
    import anyio

    from mcp_memory.service.memory import open_memory
    from mcp_memory.service.upkeep.rebuild import agreement
    from mcp_memory.store.files import database_is_gone

    if not os.access(settings.home / "memory.db", os.F_OK) and not database_is_gone(settings.home):
        yield Check(name="database", state="ok", found="none yet, made when something is first stored")
        return

    async def look() -> tuple[dict[str, Any], list[str], bool]:
        async with open_memory(settings, distil=False, what="doctor") as memory:
            return await memory.status(), await memory.problems(), await memory.unproven()

    try:
        status, problems, unproven = anyio.run(look)
    except McpMemoryError as error:
        yield Check(
            name="database",
            state="fail",
            found=str(error),
            next_step="Nothing was changed. When this is mended, run doctor again.",
        )
        return
    yield Check(name="database", state="ok", found=f"opens, schema {status['schema']}")
    yield _index(status["embedding"])
    agreed = agreement(settings.home)
    for problem in dict.fromkeys((*problems, *agreed.problems)):
        yield Check(name="files", state="fail", found=problem)
    for page in agreed.behind:
        yield Check(name="files", state="warn", found=page)
    if not (problems or agreed.problems):
        yield Check(name="files", state="ok", found=_compared(agreed))
    if unproven:
        yield Check(
            name="purge",
            state="warn",
            found="one is not finished: it was cut short, or another program is at it",
            next_step="If none is, `mcp-memory doctor --repair` or the next purge finishes it. Its words can no longer "
            "be looked for: look through logs, spaces/*/*.jsonl.* and backups/ in the home yourself.",
        )
    yield from standing(status, settings.home)


def _compared(agreed: Agreement) -> str:
    """Say what was compared with what, and what there was nothing to compare with."""
    same = ", ".join(f"{count:,} {what}" for what, count in agreed.same.items() if count) or "no rows yet"
    told = (
        f"the same in the files and in the database: {same}. "
        "Turns and results match their hashes, and quotes stand in their turns"
    )
    if agreed.alone:
        alone = ", ".join(f"{count:,} {what}" for what, count in agreed.alone.items())
        told += f". In the database alone, so not compared: {alone}"
    if agreed.passed:
        told += ". Not told by files: " + ", ".join(f"{count:,} {why}" for why, count in agreed.passed.items())
    return told


def _index(embedding: dict[str, Any]) -> Check:
    embedded, total = embedding["embedded"], embedding["total"]
    if embedding["model"] is None or embedded == total:
        return Check(name="index", state="ok", found=f"{embedded} of {total} rows embedded")
    return Check(
        name="index",
        state="warn",
        found=f"{embedded} of {total} rows embedded",
        next_step="A running server embeds the rest in the background; words are searched meanwhile.",
    )


def _embedder(settings: Settings) -> Check:
    from mcp_memory.models.embed import make_embedder

    try:
        embedder = make_embedder(settings)
        if embedder is None:
            return Check(
                name="embedder",
                state="warn",
                found="switched off: search goes by words alone",
                next_step="Set MCP_MEMORY_EMBEDDER=bundled to search by meaning too.",
            )
        began = time.perf_counter()
        dimensions = embedder.embed(["Does it answer?"]).shape[1]
        milliseconds = (time.perf_counter() - began) * 1000
    except McpMemoryError as error:
        return Check(
            name="embedder",
            state="fail",
            found=str(error),
            next_step="Mend the embedder settings; search goes by words alone until then.",
        )
    found = f"{embedder.identity} answers in {milliseconds:.0f} ms, {dimensions} dimensions"
    return Check(name="embedder", state="ok", found=found)


def _tokenizer(settings: Settings) -> Check:
    from mcp_memory.core.tokens import token_counter

    counter = token_counter(settings.tokenizer)
    if counter.exact:
        return Check(name="tokenizer", state="ok", found=f"{settings.tokenizer}, counted exactly")
    return Check(
        name="tokenizer",
        state="warn",
        found=f"the vocabulary of {settings.tokenizer} is not here: tokens are estimated, never too low",
        next_step="Install litellm again, which brings it, or set TIKTOKEN_CACHE_DIR to a folder that holds it.",
    )
