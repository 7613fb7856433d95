"""Checks of an installation and a home: what each found and, if something is wrong, what to do.

A missing home is not created; opening one may migrate its schema and changes nothing else. `fail`: something is lost or
does not work; `warn`: it works less well than it could. The check of files reads every byte that is kept, so its time
grows with the memory.
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
from typing import Any, Literal

import anyio

from mcp_memory import __version__
from mcp_memory.cli.terminal import model_name, one_line, plural, with_nearest
from mcp_memory.core import telemetry
from mcp_memory.core.config import Settings, load_settings, require_home, unknown_variables
from mcp_memory.core.distribution import install_hint
from mcp_memory.core.errors import InvalidInput, McpMemoryError, ModelFailed
from mcp_memory.core.paths import foreign_files
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.hooks.endpoint import health
from mcp_memory.models.client_llm import ClientLLM
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.models.metered import make_llm, make_others
from mcp_memory.service.memory import open_memory
from mcp_memory.service.upkeep.backup import Backup, folder_of, listed
from mcp_memory.service.upkeep.home_checks import exposed, identity_problem, nearest_folder, unwritable
from mcp_memory.service.upkeep.rebuild import Agreement, agreement
from mcp_memory.store.files import database_is_gone

State = Literal["ok", "warn", "fail"]

LITTLE_DISK, TOO_LITTLE_DISK = 1_000_000_000, 50_000_000
_WORTH_A_BACKUP = 1_000  # turns
_OLD = timedelta(days=30)
_NEARLY = 0.9  # of the day's tokens


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. If `state` is not `ok`, `next_step` says what to do, unless `found` does."""

    name: str
    state: State
    found: str
    next_step: str | None = None


def examine(**overrides: Any) -> Iterator[Check]:
    """Yield the checks, the quick ones first. `overrides` are settings, as `load_settings` takes them."""
    yield Check("python", "ok", f"{platform.python_version()} at {sys.executable}")
    yield _engine()
    try:
        settings = load_settings(**overrides)
        require_home(settings)
    except InvalidInput as error:
        next_step = "Mend it and run doctor again: the other checks need the settings."
        yield Check("settings", "fail", str(error), next_step)
        return
    yield _settings(settings)
    yield from _telemetry()
    yield from _clients(settings)
    yield _home(settings.home)
    yield _disk(settings.home)
    yield _hooks(settings.home)
    yield from _identity(settings)
    yield from _store(settings)
    yield _embedder(settings)
    yield _tokenizer(settings)


def _engine() -> Check:
    """Store a turn in a scratch home and find it again: this needs the engine, its extensions and its index."""

    async def try_out(scratch: str) -> int:
        async with open_memory(Settings(home=Path(scratch), embedder="none")) as memory:
            await memory.record_turns([NewTurn(role="user", content="The night boat sails at 02:30.")])
            return len((await memory.conversation_search("night boat")).hits)

    versions = ", ".join(f"{name} {version(name)}" for name in ("apsw", "sqlite-vec"))
    again = "Install the packages anew: pip install --force-reinstall apsw sqlite-vec"
    try:
        with tempfile.TemporaryDirectory(prefix="mcp-memory-doctor-") as scratch:
            found = anyio.run(try_out, scratch)
    except (McpMemoryError, OSError, ImportError) as error:
        return Check("engine", "fail", f"a scratch store does not work ({versions}): {error}", again)
    if not found:
        lost = f"what was stored in a scratch store was not found again ({versions})"
        return Check("engine", "fail", lost, f"{again} PyStemmer")
    return Check("engine", "ok", f"stores and finds ({versions})")


def _settings(settings: Settings) -> Check:
    if unknown := unknown_variables():
        found = f"variables that begin with MCP_MEMORY_ and set nothing: {with_nearest(unknown)}"
        return Check("settings", "warn", found, "Mend their names, or unset them. docs/settings.md lists all settings.")
    path = settings.home / "config.toml"
    source = path if path.is_file() else "the defaults"
    return Check("settings", "ok", f"valid, from the options, the environment and {source}")


def _telemetry() -> Iterator[Check]:
    """Report where spans are sent; nothing without a collector."""
    if telemetry.is_configured() and telemetry.is_installed():
        yield Check("telemetry", "ok", "spans without contents go to the collector that OTEL_* names")
    elif telemetry.is_configured():
        found = "OTEL_* names a collector, and the extra that sends spans is not installed"
        next_step = f"Install it ({install_hint('otel')}), or unset the variable; nothing is sent meanwhile."
        yield Check("telemetry", "warn", found, next_step)


def _clients(settings: Settings) -> Iterator[Check]:
    """Look for the clients that are set as models. Whether they are signed in shows only when they are asked."""
    try:
        models = [make_llm(settings), *make_others(settings).values()]
    except InvalidInput as error:
        yield Check("client", "fail", str(error), "Mend the setting and run doctor again.")
        return
    for model in models:
        if isinstance(model, ClientLLM):
            try:
                yield Check("client", "ok", f"{model.name} is {model.program()}")
            except ModelFailed as error:
                yield Check("client", "warn", str(error), "Turns are kept meanwhile, and read afterwards.")


def _home(home: Path) -> Check:
    if problem := unwritable(home):
        next_step = "Give your user the right to write there, or name another home with MCP_MEMORY_HOME."
        return Check("home", "fail", problem, next_step)
    if others := foreign_files(home):
        found = f"{home} also holds files of other programs ({one_line(', '.join(others), 100)})"
        return Check("home", "warn", found, "Give the memory a folder of its own: name it with MCP_MEMORY_HOME.")
    return Check("home", "ok", str(home) if nearest_folder(home) == home else f"{home}, made when first needed")


def _identity(settings: Settings) -> Iterator[Check]:
    """Report a damaged identity, which opening the home writes again from the database."""
    if settings.store is None and (wrong := identity_problem(settings.home)):
        next_step = (
            "This run writes it again from the database where it can; run doctor again. If it stays, `mcp-memory "
            "doctor --repair` replaces it."
        )
        yield Check("identity", "warn", f"{wrong}, in {settings.home}", next_step)


def _privacy(home: Path) -> Iterator[Check]:
    """Report files that other users of the machine may open; opening a home has closed the folders above them."""
    found = [path for path, _ in exposed(home)]
    if found:
        named = one_line(", ".join(str(path.relative_to(home)) for path in found[:3]), 160)
        more = f" and {len(found) - 3:,} more" if len(found) > 3 else ""
        next_step = "`mcp-memory doctor --repair` makes them yours alone."
        yield Check("privacy", "warn", f"modes that let other users in: {named}{more}", next_step)


def _disk(home: Path) -> Check:
    free = shutil.disk_usage(nearest_folder(home)).free
    state: State = "fail" if free < TOO_LITTLE_DISK else "warn" if free < LITTLE_DISK else "ok"
    next_step = None if state == "ok" else "Make room: a full disk refuses new turns and results."
    return Check("disk", state, f"{free / 1e9:.1f} GB free", next_step)


def _hooks(home: Path) -> Check:
    found = health(home, now=datetime.now())
    if not found.used:
        return Check("hooks", "ok", "no client has run any")
    if not found.failures:
        running = "a process that serves them runs" if found.residents else "no process of theirs runs"
        return Check("hooks", "ok", f"{running}, nothing failed within a week")
    many = f"{len(found.failures)} times" if len(found.failures) > 1 else "once"
    failed = f"failed {many} within a week, last at {one_line(found.failures[-1], 300)}"
    return Check("hooks", "warn", failed, f"Clients went on without memory then. All of it is in {found.log}.")


def _store(settings: Settings) -> Iterator[Check]:
    is_file = settings.store is None
    if is_file and not os.access(settings.home / "memory.db", os.F_OK) and not database_is_gone(settings.home):
        yield Check("database", "ok", "none yet, made when something is first stored")
        return

    async def look() -> tuple[dict[str, Any], list[str], bool]:
        async with open_memory(settings, distil=False, what="doctor") as memory:
            return await memory.status(), await memory.problems(), await memory.unproven()

    try:
        status, problems, unproven = anyio.run(look)
    except McpMemoryError as error:
        yield Check("database", "fail", str(error), "Nothing was changed. When this is mended, run doctor again.")
        return
    yield Check("database", "ok", f"{status['store']} opens, schema {status['schema']}")
    yield _index(status["embedding"])
    if is_file:
        yield from _privacy(settings.home)
        yield from _files(settings.home, problems)
    else:
        for problem in problems:
            yield Check("database", "fail", problem)
    if unproven:
        next_step = (
            "If none is, `mcp-memory doctor --repair` or the next purge finishes it. Its words can no longer be looked "
            "for: look through logs, spaces/*/*.jsonl.* and backups/ in the home yourself."
        )
        yield Check("purge", "warn", "one is not finished: it was cut short, or another program is at it", next_step)
    yield work(status["pyramid"])
    yield model(status["model"], status["pyramid"])
    yield review(status["held"])
    yield recovered(status["recovered"], now=datetime.now(UTC))
    yield processes(status["connected"])
    if is_file:
        yield backups(listed(folder_of(settings.home)), turns=status["counts"]["turns"], now=datetime.now(UTC))


def _files(home: Path, problems: Sequence[str]) -> Iterator[Check]:
    """Compare the files of a home with its database; `problems` are those of the database itself."""
    agreed = agreement(home)
    for problem in dict.fromkeys((*problems, *agreed.problems)):
        yield Check("files", "fail", problem)
    for page in agreed.behind:
        yield Check("files", "warn", page)
    if not (problems or agreed.problems):
        yield Check("files", "ok", _compared(agreed))


def _compared(agreed: Agreement) -> str:
    """Say what the files and the database agree on, and what there was nothing to compare with."""
    same = ", ".join(f"{count:,} {what}" for what, count in agreed.same.items() if count) or "no rows yet"
    told = (
        f"the same in the files and in the database: {same}. "
        "Turns and results match their hashes, and quotes stand in their turns"
    )
    if agreed.alone:
        alone = ", ".join(f"{count:,} {what}" for what, count in agreed.alone.items())
        told += f". In the database alone, so not compared: {alone}"
    return told


def _index(embedding: dict[str, Any]) -> Check:
    embedded, total = embedding["embedded"], embedding["total"]
    if embedding["model"] is None or embedded == total:
        return Check("index", "ok", f"{embedded} of {total} rows embedded")
    next_step = "A running server embeds the rest in the background; words are searched meanwhile."
    return Check("index", "warn", f"{embedded} of {total} rows embedded", next_step)


def _embedder(settings: Settings) -> Check:
    try:
        embedder = make_embedder(settings)
        if embedder is None:
            next_step = "Set MCP_MEMORY_EMBEDDER=bundled to search by meaning too."
            return Check("embedder", "warn", "switched off: search goes by words alone", next_step)
        began = time.perf_counter()
        dimensions = embedder.embed(["Does it answer?"]).shape[1]
        milliseconds = (time.perf_counter() - began) * 1000
    except McpMemoryError as error:
        next_step = "Mend the embedder settings; search goes by words alone until then."
        return Check("embedder", "fail", str(error), next_step)
    answers = f"answers in {milliseconds:.0f} ms, {dimensions} dimensions"
    return Check("embedder", "ok", f"{model_name(embedder.identity)} {answers}")


def _tokenizer(settings: Settings) -> Check:
    if token_counter(settings.tokenizer).exact:
        return Check("tokenizer", "ok", f"{settings.tokenizer}, counted exactly")
    found = f"the vocabulary of {settings.tokenizer} is not here: tokens are estimated, never too low"
    next_step = "Install litellm again, which brings it, or set TIKTOKEN_CACHE_DIR to a folder that holds it."
    return Check("tokenizer", "warn", found, next_step)


# --- by the memory's status -------------------------------------------------------------------------


def work(pyramid: dict[str, Any]) -> Check:
    """Jobs for models that failed."""
    parked = [one for one in pyramid["works"] if one["state"] == "parked"]
    waiting = pyramid["waiting"]
    queue = f"{plural(waiting['turns'], 'turn')} to read, {plural(waiting['drafts'], 'statement')} to merge"
    if not parked:
        return Check("work", "ok", f"nothing failed; {queue}")
    last = parked[-1]
    failed = f"{plural(len(parked), 'work')} failed, {last['stage']} with: {one_line(last['error'] or '', 160)}"
    next_step = "Each is tried again by itself later, and `mcp-memory status` lists them. No turn is lost."
    return Check("work", "warn", failed, next_step)


def model(model: dict[str, Any], pyramid: dict[str, Any]) -> Check:
    """Whether a model may be asked, and how much of its budget is used."""
    if pyramid["paused"]:
        found = f"paused since {pyramid['paused']['since'][:16].replace('T', ' ')}: {pyramid['paused']['reason']}"
        return Check("model", "warn", found, "`mcp-memory resume` ends the pause.")
    if model["name"] is None:
        return Check("model", "ok", "none is set; the connected agent can distil")
    used, cap = model["tokens_today"], model["daily_tokens"]
    found = f"{model['name']}, {used:,} of {cap:,} tokens today"
    if used >= _NEARLY * cap:
        next_step = "What waits is read from midnight UTC on; raise MCP_MEMORY_LLM_DAILY_TOKENS to go on now."
        return Check("model", "warn", found, next_step)
    failed = sum(call["failed"] for call in model["today"])
    return Check("model", "ok", found + (f", {plural(failed, 'call')} failed" if failed else ""))


def recovered(found: Sequence[dict[str, Any]], *, now: datetime) -> Check:
    """Whether the database lost rows that the files still had; they are back, and the user should know."""
    late = [one for one in found if now - datetime.fromisoformat(one["at"]) < _OLD]
    if not late:
        return Check("recovered", "ok", "the database had all that the files have, whenever opened")
    lines, left = sum(one["lines"] for one in late), sum(one["left"] for one in late)
    could_not = f", {plural(left, 'line')} could not" if left else ""
    last, paths = late[0]["at"][:16].replace("T", " "), one_line(", ".join(one["path"] for one in late), 160)
    came_back = f"{plural(lines, 'line')} that the database had lost came back from the files{could_not}"
    next_step = (
        "Nothing is to be done. Its log of writes, memory.db-wal, was deleted, or the home was copied without it: use "
        "`mcp-memory backup` for copies."
    )
    return Check("recovered", "warn", f"{came_back}, last on {last}: {paths}", next_step)


def review(held: int) -> Check:
    if not held:
        return Check("review", "ok", "nothing is held")
    one = "1 row reads like an attack and waits for you"
    found = one if held == 1 else f"{held:,} rows read like an attack and wait for you"
    next_step = "`mcp-memory review` shows them; nothing of them is recalled until you release it."
    return Check("review", "warn", found, next_step)


def processes(there: Sequence[dict[str, Any]]) -> Check:
    """Which processes hold the home; one of another version works, and may lack features of this one."""
    told = one_line(", ".join(f"{one['what']} (process {one['pid']})" for one in there), 200)
    others = [one for one in there if one["version"] not in ("", __version__)]
    if not others:
        return Check("connected", "ok", told or "nobody else holds the home")
    found = f"{told}; {plural(len(others), 'process')} of another version"
    return Check("connected", "warn", found, f"End and start them again, so that they run {__version__} too.")


def backups(found: Sequence[Backup], *, turns: int, now: datetime) -> Check:
    """Whether there is a recent and readable backup, once there is something to lose."""
    broken = [one.path.name for one in found if one.manifest is None]
    newest = max((one.manifest.made for one in found if one.manifest), default=None)
    make = "`mcp-memory backup` makes one while others go on."
    if broken:
        unread = f"{one_line(', '.join(broken), 160)} cannot be read"
        return Check("backups", "warn", unread, f"Remove it, it restores nothing. {make}")
    if newest is None:
        return Check("backups", "warn", "none", make) if turns >= _WORTH_A_BACKUP else Check("backups", "ok", "none")
    told = f"{len(found)}, the newest of {newest.astimezone():%Y-%m-%d %H:%M}"
    return Check("backups", "warn", told, make) if now - newest > _OLD else Check("backups", "ok", told)
