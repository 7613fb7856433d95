"""Health checks of an installation and a home, each with its result and, if something is wrong, the next step.

A missing home is not created. Opening a home may migrate its schema, rewrite its identity file and close its folders to
other users; nothing else changes. `fail` means that something is lost or does not work, `warn` that something works
less well than it could. The check of files reads every stored byte, so its time grows with the memory.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio

from mcp_memory import __version__
from mcp_memory.cli.check import Check, State
from mcp_memory.cli.terminal import model_name, one_line, suggest_names
from mcp_memory.core import telemetry
from mcp_memory.core.config import Settings, load_settings, require_home, unknown_variables
from mcp_memory.core.distribution import install_hint
from mcp_memory.core.errors import InvalidInput, McpMemoryError, ModelFailed
from mcp_memory.core.hook_outcomes import outcomes
from mcp_memory.core.paths import foreign_files
from mcp_memory.core.text import plural
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.clients.plan import installed_but_off
from mcp_memory.integrations.hooks.daemon_files import health
from mcp_memory.models.client_llm import ClientLLM
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.models.metered import make_llm, make_llms_by_purpose
from mcp_memory.service.memory import open_memory
from mcp_memory.service.upkeep.backup import Backup, folder_of, list_backups
from mcp_memory.service.upkeep.home_checks import exposed_paths, identity_problem, nearest_folder, why_unwritable
from mcp_memory.service.upkeep.rebuild import spaces_with_outdated_persona
from mcp_memory.store.files import database_is_gone
from mcp_memory.store.values import Replication

LITTLE_DISK, TOO_LITTLE_DISK = 1_000_000_000, 50_000_000
_WORTH_A_BACKUP = 1_000  # turns
_OLD = timedelta(days=30)
_NEARLY = 0.9  # share of the daily token limit


def run_checks(**overrides: Any) -> Iterator[Check]:
    """Run all checks, quick checks first, and yield each result; stop after the check of settings if they are invalid.

    `overrides` are settings, as for `load_settings`.
    """
    yield Check("python", "ok", f"{platform.python_version()} at {sys.executable}")
    try:
        is_elsewhere = load_settings(**overrides).server is not None
    except InvalidInput:  # reported below
        is_elsewhere = False
    if not is_elsewhere:
        yield _check_engine()
    try:
        settings = load_settings(**overrides)
        require_home(settings)
    except InvalidInput as error:
        next_step = "Mend it and run doctor again: the other checks need the settings."
        yield Check("settings", "fail", str(error), next_step)
        return
    yield _check_settings(settings)
    yield from _check_telemetry()
    yield from _check_clients(settings)
    yield _check_home(settings.home)
    yield _check_disk(settings.home)
    yield _check_hooks(settings.home)
    yield from _check_switched_off()
    if settings.server is not None:
        from mcp_memory.cli.server_status import check_server

        yield from check_server(settings)
        return
    yield from _check_identity(settings)
    yield from _check_store(settings)
    yield _check_embedder(settings)
    yield _check_tokenizer(settings)


def _check_engine() -> Check:
    """Store a turn in a scratch home and find it again, which needs the engine, its extensions and its index."""

    async def try_out(scratch: str) -> int:
        async with open_memory(Settings(home=Path(scratch), embedder="none")) as memory:
            await memory.record_turns([NewTurn(role="user", content="The night boat sails at 02:30.")])
            return len((await memory.conversation_search("night boat")).hits)

    versions = f"apsw {version('apsw')}"
    again = "Reinstall the package: pip install --force-reinstall apsw"
    try:
        with tempfile.TemporaryDirectory(prefix="mcp-memory-doctor-") as scratch:
            hits = anyio.run(try_out, scratch)
    except (McpMemoryError, OSError, ImportError) as error:
        return Check("engine", "fail", f"a scratch store does not work ({versions}): {error}", again)
    if not hits:
        lost = f"a row stored in a scratch store was not found again ({versions})"
        return Check("engine", "fail", lost, f"{again} PyStemmer")
    return Check("engine", "ok", f"stores and finds ({versions})")


def _check_settings(settings: Settings) -> Check:
    if unknown := unknown_variables():
        problem = f"unknown variables that begin with MCP_MEMORY_: {suggest_names(unknown)}"
        return Check(
            "settings", "warn", problem, "Mend their names, or unset them. docs/settings.md lists all settings."
        )
    path = settings.home / "config.toml"
    source = path if path.is_file() else "the defaults"
    return Check("settings", "ok", f"valid, from the options, the environment and {source}")


def _check_telemetry() -> Iterator[Check]:
    """Report where spans are sent; nothing without a collector."""
    if telemetry.is_configured() and telemetry.is_installed():
        yield Check("telemetry", "ok", "spans without contents go to the collector that OTEL_* names")
    elif telemetry.is_configured():
        problem = "OTEL_* names a collector, but the extra that sends spans is not installed"
        next_step = f"Install it ({install_hint('otel')}), or unset the variable; nothing is sent meanwhile."
        yield Check("telemetry", "warn", problem, next_step)


def _check_clients(settings: Settings) -> Iterator[Check]:
    """Check that the clients configured as models can be found, but not that they are signed in."""
    try:
        models = [make_llm(settings), *make_llms_by_purpose(settings).values()]
    except InvalidInput as error:
        yield Check("client", "fail", str(error), "Mend the setting and run doctor again.")
        return
    for model in models:
        if isinstance(model, ClientLLM):
            try:
                yield Check("client", "ok", f"{model.name} is {model.program()}")
            except ModelFailed as error:
                yield Check("client", "warn", str(error), "Turns are kept meanwhile, and read afterwards.")


def _check_home(home: Path) -> Check:
    if problem := why_unwritable(home):
        next_step = "Give your user the right to write there, or name another home with MCP_MEMORY_HOME."
        return Check("home", "fail", problem, next_step)
    if others := foreign_files(home):
        detail = f"{home} also holds files of other programs ({one_line(', '.join(others), 100)})"
        return Check("home", "warn", detail, "Give the memory a separate folder: name it with MCP_MEMORY_HOME.")
    return Check("home", "ok", str(home) if nearest_folder(home) == home else f"{home}, created when first needed")


def _check_identity(settings: Settings) -> Iterator[Check]:
    """Report a damaged identity file, which opening the home rewrites from the database."""
    if settings.store is None and (wrong := identity_problem(settings.home)):
        next_step = (
            "This run writes it again from the database where it can; run doctor again. If it stays, `mcp-memory "
            "doctor --repair` replaces it."
        )
        yield Check("identity", "warn", f"{wrong}, in {settings.home}", next_step)


def _check_privacy(home: Path) -> Iterator[Check]:
    """Report files that other users of the machine may open. Opening a home has closed the folders above them."""
    paths = [path for path, _ in exposed_paths(home)]
    if paths:
        named = one_line(", ".join(str(path.relative_to(home)) for path in paths[:3]), 160)
        more = f" and {len(paths) - 3:,} more" if len(paths) > 3 else ""
        next_step = "`mcp-memory doctor --repair` makes them yours alone."
        yield Check("privacy", "warn", f"modes that let other users in: {named}{more}", next_step)


def _check_disk(home: Path) -> Check:
    free = shutil.disk_usage(nearest_folder(home)).free
    state: State = "fail" if free < TOO_LITTLE_DISK else "warn" if free < LITTLE_DISK else "ok"
    next_step = None if state == "ok" else "Make room: a full disk refuses new turns and results."
    return Check("disk", state, f"{free / 1e9:.1f} GB free", next_step)


def _check_hooks(home: Path) -> Check:
    hooks = health(home, now=datetime.now())
    if not hooks.used:
        return Check("hooks", "ok", "no client has run any")
    misses = outcomes(home, now=datetime.now()).sentences()
    if not hooks.failures and not misses:
        running = "their daemon runs" if hooks.residents else "their daemon does not run"
        return Check("hooks", "ok", f"{running}, nothing failed within a week")
    if not hooks.failures:
        return Check("hooks", "warn", "; ".join(misses), "Where the cause is a time, this machine was busy.")
    many = f"{len(hooks.failures)} times" if len(hooks.failures) > 1 else "once"
    failed = f"failed {many} within a week, last at {one_line(hooks.failures[-1], 300)}"
    next_step = f"Clients went on without memory then. All of it is in {hooks.log}."
    return Check("hooks", "warn", "; ".join([failed, *misses]), next_step)


def _check_switched_off() -> Iterator[Check]:
    """Yield a warning for each client that has our hooks and runs none."""
    for title, where in installed_but_off().items():
        yield Check(
            "hooks", "warn", f"{title} runs none, because of {where}", "Change that, or it recalls and records nothing."
        )


def _check_store(settings: Settings) -> Iterator[Check]:
    is_file = settings.store is None
    if is_file and not os.access(settings.home / "memory.db", os.F_OK) and not database_is_gone(settings.home):
        yield Check("database", "ok", "none yet, created when something is first stored")
        return

    async def look() -> tuple[dict[str, Any], list[str], bool, Replication | None]:
        async with open_memory(settings, distil=False, what="doctor") as memory:
            found = await memory.status(), await memory.problems(), await memory.unproven()
            return *found, memory.replication()

    try:
        status, problems, unproven, replication = anyio.run(look)
    except McpMemoryError as error:
        yield Check("database", "fail", str(error), "Nothing was changed. When this is mended, run doctor again.")
        return
    yield Check("database", "ok", f"{status['store']} opens, schema {status['schema']}")
    yield _check_index(status["embedding"])
    if is_file:
        yield from _check_privacy(settings.home)
        yield from _check_files(settings.home, problems)
    else:
        for problem in problems:
            yield Check("database", "fail", problem)
        if replication is not None and status["write_problem"] is None:
            yield Check("standby", "ok", standby_text(replication))
    if unproven:
        next_step = (
            "If none is running, `mcp-memory doctor --repair` or the next purge finishes it. The erased words are no "
            "longer known: search logs, spaces/*/*.jsonl.* and backups/ in the home yourself."
        )
        problem = "a purge is not finished: it was interrupted, or another program is running it"
        yield Check("purge", "warn", problem, next_step)
    yield check_jobs(status["pyramid"])
    yield check_model(status["model"], status["pyramid"])
    yield check_quarantine(status["held"])
    yield check_processes(status["connected"])
    if is_file:
        yield check_backups(
            list_backups(folder_of(settings.home)), turns=status["counts"]["turns"], now=datetime.now(UTC)
        )


def standby_text(found: Replication) -> str:
    """Return how many standbys there are, whether commits wait for one and, if that is known, how far it is behind."""
    if not found.connected:
        return "none is connected, and no write waits for one"
    lag = "" if found.lag is None else f", the slowest is {found.lag:,} bytes behind"
    waits = "writes wait for one, which confirms them" if found.is_required else "no write waits for one"
    return f"{found.connected} connected, {waits}{lag}"


def _check_files(home: Path, problems: Sequence[str]) -> Iterator[Check]:
    """Report the problems of rows and files, and persona pages that are behind."""
    for problem in dict.fromkeys(problems):
        yield Check("files", "fail", problem)
    for space in spaces_with_outdated_persona(home):
        outdated = f"{space}: persona.md is missing, or not the current page"
        next_step = "The next program that distils writes it; `mcp-memory doctor --repair` does so now."
        yield Check("files", "warn", outdated, next_step)
    if not problems:
        yield Check(
            "files", "ok", "files are what the database has; turns and results match their hashes, quotes their turns"
        )


def _check_index(embedding: dict[str, Any]) -> Check:
    embedded, total = embedding["embedded"], embedding["total"]
    if embedding["model"] is None or embedded == total:
        return Check("index", "ok", f"{embedded} of {total} rows embedded")
    next_step = "A running server embeds the rest in the background; until then they are found by words only."
    return Check("index", "warn", f"{embedded} of {total} rows embedded", next_step)


def _check_embedder(settings: Settings) -> Check:
    try:
        embedder = make_embedder(settings)
        if embedder is None:
            next_step = "Set MCP_MEMORY_EMBEDDER=bundled to search by meaning too."
            return Check("embedder", "warn", "switched off: search by words only", next_step)
        began = time.perf_counter()
        dimensions = embedder.embed(["Does it answer?"]).shape[1]
        milliseconds = (time.perf_counter() - began) * 1000
    except McpMemoryError as error:
        next_step = "Mend the embedder settings; until then search uses words only."
        return Check("embedder", "fail", str(error), next_step)
    answers = f"answers in {milliseconds:.0f} ms, {dimensions} dimensions"
    return Check("embedder", "ok", f"{model_name(embedder.identity)} {answers}")


def _check_tokenizer(settings: Settings) -> Check:
    if token_counter(settings.tokenizer).exact:
        return Check("tokenizer", "ok", f"{settings.tokenizer}, counted exactly")
    problem = f"the vocabulary of {settings.tokenizer} is missing: tokens are estimated, never too low"
    next_step = "Reinstall litellm, which contains it, or set TIKTOKEN_CACHE_DIR to a folder with it."
    return Check("tokenizer", "warn", problem, next_step)


# --- from the memory's status -------------------------------------------------------------------------


def check_jobs(pyramid: dict[str, Any]) -> Check:
    """Report the failed jobs of models or, if none failed, how much waits."""
    parked = [job for job in pyramid["works"] if job["state"] == "parked"]
    waiting = pyramid["waiting"]
    queue = f"{plural(waiting['turns'], 'turn')} to read, {plural(waiting['drafts'], 'statement')} to merge"
    if not parked:
        return Check("work", "ok", f"nothing failed; {queue}")
    last = parked[-1]
    failed = f"{plural(len(parked), 'job')} failed, {last['stage']} with: {one_line(last['error'] or '', 160)}"
    next_step = "Each is retried automatically, and `mcp-memory status` lists them. No turn is lost."
    return Check("work", "warn", failed, next_step)


def check_model(model: dict[str, Any], pyramid: dict[str, Any]) -> Check:
    """Report whether the model may be asked, and how much of its budget is used."""
    if pyramid["paused"]:
        state = f"paused since {pyramid['paused']['since'][:16].replace('T', ' ')}: {pyramid['paused']['reason']}"
        return Check("model", "warn", state, "`mcp-memory resume` ends the pause.")
    if model["name"] is None:
        return Check("model", "ok", "none is set; the connected agent can distil")
    used, cap = model["tokens_today"], model["daily_tokens"]
    state = f"{model['name']}, {used:,} of {cap:,} tokens today"
    if used >= _NEARLY * cap:
        next_step = "Reading continues at midnight UTC; raise MCP_MEMORY_LLM_DAILY_TOKENS to continue now."
        return Check("model", "warn", state, next_step)
    failed = sum(call["failed"] for call in model["today"])
    return Check("model", "ok", state + (f", {plural(failed, 'call')} failed" if failed else ""))


def check_quarantine(count: int) -> Check:
    if not count:
        return Check("review", "ok", "nothing is quarantined")
    single = "1 row reads like an attack and waits for you"
    text = single if count == 1 else f"{count:,} rows read like an attack and wait for you"
    next_step = "`mcp-memory review` shows them; they are not recalled until you release them."
    return Check("review", "warn", text, next_step)


def check_processes(connected: Sequence[dict[str, Any]]) -> Check:
    """Report processes that have the home open. Another version works, but may lack features of this version."""
    names = one_line(", ".join(f"{process['what']} (process {process['pid']})" for process in connected), 200)
    others = [process for process in connected if process["version"] not in ("", __version__)]
    if not others:
        return Check("connected", "ok", names or "no other process uses the home")
    text = f"{names}; {plural(len(others), 'process')} of another version"
    return Check("connected", "warn", text, f"Restart them, so that they run {__version__} too.")


def check_backups(stored: Sequence[Backup], *, turns: int, now: datetime) -> Check:
    """Report an unreadable backup, an old newest backup or, once there is something to lose, a missing backup."""
    broken = [backup.path.name for backup in stored if backup.manifest is None]
    newest = max((backup.manifest.made_at for backup in stored if backup.manifest), default=None)
    make = "`mcp-memory backup` makes one while the memory is in use."
    if broken:
        unread = f"{one_line(', '.join(broken), 160)} cannot be read"
        return Check("backups", "warn", unread, f"Remove it, it cannot be restored. {make}")
    if newest is None:
        return Check("backups", "warn", "none", make) if turns >= _WORTH_A_BACKUP else Check("backups", "ok", "none")
    summary = f"{len(stored)}, the newest of {newest.astimezone():%Y-%m-%d %H:%M}"
    return Check("backups", "warn", summary, make) if now - newest > _OLD else Check("backups", "ok", summary)
