"""The work of `import`: identifies its arguments, imports or previews each, and reports.

The command's help does not wait for these imports.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click
from anyio.from_thread import start_blocking_portal

from mcp_memory.cli.base import ask, command_settings, progress_bars, settings, wants_json
from mcp_memory.cli.pricing import cost_line, distilling_cost
from mcp_memory.cli.terminal import day, json_text, plural, visible, wrapped
from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.integrations.importers.follow import LOGS, FollowReport, follow_log, preview_log, watch_logs
from mcp_memory.integrations.importers.history import (
    FILES,
    STDIN,
    Forgotten,
    ImportOptions,
    import_file,
    preview_file,
    source_of,
)
from mcp_memory.integrations.importers.log_file import AgentLog, agent_of, find_logs, log_folders, stored_path
from mcp_memory.integrations.importers.reader import ImportSource, notes_in_folder, unpacked_conversations
from mcp_memory.integrations.importers.records import AGENTS, Agent, agent_named
from mcp_memory.integrations.importers.report import CostEstimate, FileReport, HistorySize, estimate_cost
from mcp_memory.models.llm import price
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.portable.bringing import Brought
from mcp_memory.service.portable.reading import Parcel, is_parcel, opened
from mcp_memory.service.upkeep.archive import is_backup

Found = ImportSource | AgentLog | InvalidInput

NOTES = ("basic-memory", "mempalace")
"""Formats of memories kept, or exported, as folders of Markdown."""
_PACKED = (
    "{} that Codex has compressed cannot be read, such as {}. Unpack them with `zstd -d --keep`, and import again."
)
_NEXT = (
    "Search finds them now. `mcp-memory show persona` shows the page that is made of them; a model writes a better one "
    "with `mcp-memory distill`."
)


def run_import(files: Sequence[Path], layout: Any, asked: ImportOptions, *, dry_run: bool, watch: bool) -> bool:
    """Import, preview or watch the files, and report. Return whether everything could be read."""
    report = _ImportSummary()
    if packed := _packed_logs(files):
        click.echo(wrapped(_PACKED.format(plural(len(packed), "log"), packed[0]), ""), err=True)
    archives = [one for one in files if asked.format == "auto" and one.is_file() and (is_parcel(one) or is_backup(one))]
    for archive in archives:
        with report.errors():
            report.add_archive(str(archive), _import_archive(archive, dry_run=dry_run), dry_run=dry_run)
    with _sources([file for file in files if file not in archives], layout) as found:
        if watch:
            _watch(found, files, layout, asked, report)
        elif dry_run:
            report.sum_up(_preview(found, asked, report))
        else:
            _import(found, asked, report)
            report.sum_up(None)
    report.end()
    return report.is_well


class _ImportSummary:
    """Reports each file as soon as it is done or, as JSON, all at the end."""

    def __init__(self) -> None:
        self._files: list[FileReport] = []
        self._errors: list[str] = []
        self._exports: dict[str, Sequence[Brought]] = {}

    @contextmanager
    def errors(self) -> Generator[None]:
        """Report InvalidInput, and go on."""
        try:
            yield
        except InvalidInput as error:
            self.add_error(error)

    def add_error(self, error: McpMemoryError) -> None:
        self._errors.append(str(error))
        click.echo(f"Error: {visible(str(error))}", err=True)

    def add_archive(self, file: str, done: Sequence[Brought], *, dry_run: bool) -> None:
        """Report the import of an exported memory."""
        self._exports[file] = done
        self._say(_archive_lines(file, done, dry_run=dry_run))

    def add(self, one: FileReport) -> None:
        self._files.append(one)
        if not _is_old_log(one):
            self._say(_file_lines(one))

    def sum_up(self, cost: CostEstimate | None) -> None:
        """Report all files together; `cost` is that of having all of them read."""
        new = [one for one in self._files if one.state in ("stored", "seen")]
        if len(new) > 1:
            refused = any(one.state == "refused" for one in self._files)
            self._say(_file_lines(_together(new, None if refused else cost)))

    def end(self) -> None:
        if wants_json():
            exports = {"exports": self._exports} if self._exports else {}
            click.echo(json_text({"files": self._files, "errors": self._errors, **exports}))
        if same := sum(map(_is_old_log, self._files)):
            self._say([f"{plural(same, 'log')} with nothing new"])
        if any(one.stored for one in self._files) and not wants_json():
            self._say([wrapped(_NEXT, "")])
            if (cost := distilling_cost()) and cost.questions:
                self._say([wrapped(cost_line("Reading all that waits", cost), "")])

    @property
    def is_well(self) -> bool:
        return not self._errors and all(one.state != "refused" for one in self._files)

    def _say(self, said: Iterable[str]) -> None:
        if not wants_json():
            click.echo("\n".join(said))


def _is_old_log(one: FileReport) -> bool:
    return one.state == "known" and one.session is not None


# --- what the arguments are -------------------------------------------------------------------------


@contextmanager
def _sources(files: Sequence[Path], layout: str) -> Generator[list[Found]]:
    """Yield the sources, each file once; standard input as a file, because it is read twice."""
    with tempfile.TemporaryDirectory(prefix="mcp-memory-import-") as folder:
        found: list[Found] = []
        for file in dict.fromkeys(files):
            try:
                if str(file) == STDIN:
                    kept = Path(folder, "stdin")
                    with kept.open("wb") as stream:
                        shutil.copyfileobj(sys.stdin.buffer, stream)
                    found.append(source_of(kept, name=STDIN))
                elif file.is_dir() and (parts := unpacked_conversations(file)):
                    found += [source_of(part) for part in parts]
                elif not _is_notes(file, layout) and (logs := _logs_of(file, layout, {})):
                    found += logs
                else:
                    found.append(source_of(file))
            except InvalidInput as error:
                found.append(error)
        yield found


def _is_notes(file: Path, layout: str) -> bool:
    """Return whether a folder contains notes of another memory: named by the format, or Markdown without logs."""
    if not file.is_dir() or layout in AGENTS:
        return False
    return layout in NOTES or (bool(notes_in_folder(file)) and not any(find_logs(file, {})))


def _folders(file: Path) -> list[Path]:
    """Return the folders that a path names: itself, or those in which the client of that name keeps its logs."""
    agent = agent_named(str(file))
    if agent is not None and not file.exists():
        return log_folders(agent, environ=os.environ, home=Path.home())
    return [file] if file.is_dir() else []


def _logs_of(file: Path, layout: str, known: dict[Path, Agent | None]) -> list[AgentLog]:
    """Return the logs that a path names; none for another file. Raises InvalidInput for a folder without any."""
    folders = _folders(file)
    if not folders:
        agent = None if not file.is_file() else agent_of(file) if layout == "auto" else agent_named(layout)
        return [] if agent is None else [AgentLog(path=file, client=agent)]
    logs = [log for folder in folders for log in find_logs(folder, known)]
    if not logs:
        where = ", ".join(str(folder) for folder in folders)
        raise InvalidInput(f"There is no log of a coding agent in {where}. Other files have to be named one by one.")
    return logs


def _packed_logs(files: Sequence[Path]) -> list[Path]:
    """Return old logs that Codex has compressed, which cannot be read."""
    return [path for file in files for folder in _folders(file) for path in sorted(folder.rglob("rollout-*.jsonl.zst"))]


# --- importing --------------------------------------------------------------------------------------


def _import(found: Sequence[Found], asked: ImportOptions, report: _ImportSummary) -> None:
    """Store the files in the memory that the options name, which is created if needed."""

    chosen = settings()

    async def visit() -> None:
        async with open_memory(chosen, distil=False, what="import") as memory:
            for one in found:
                with report.errors():
                    if isinstance(one, InvalidInput):
                        raise one
                    if isinstance(one, AgentLog):
                        log = await follow_log(memory, one.path, live=False, client=one.client, again=asked.again)
                        report.add(log.report(str(one.path), "stored" if log.turns or log.kept else "known"))
                        continue
                    with progress_bars(one.name) as progress:
                        done = await import_file(memory, one, asked, now=datetime.now(UTC), progress=progress)
                    report.add(done)

    anyio.run(visit)


def _preview(found: Sequence[Found], asked: ImportOptions, report: _ImportSummary) -> CostEstimate | None:
    """Report what would be stored, and return what reading all of it costs. No memory is created."""
    chosen = settings()
    held = os.access(chosen.home / "memory.db", os.R_OK)
    known = ask(lambda memory: memory.imported()) if held else []
    logs = {log.path: log for log in (ask(lambda memory: memory.followed_logs()) if held and not asked.again else [])}
    of_files, of_logs = ask(_secrets) if held else (b"", b"")
    whole = HistorySize(chosen.batch_turns)
    both: dict[str, Any] = {"price": price, "within": whole}
    with _forgotten(held=held) as forgotten:
        for one in found:
            with report.errors():
                if isinstance(one, InvalidInput):
                    raise one
                if isinstance(one, AgentLog):
                    before = logs.get(stored_path(one.path.resolve()))
                    report.add(
                        preview_log(
                            one.path, one.client, chosen, name=str(one.path), position=before, secret=of_logs, **both
                        )
                    )
                    continue
                with progress_bars(one.name) as progress:
                    seen = preview_file(
                        one, asked, chosen, files=known, progress=progress, forgotten=forgotten, secret=of_files, **both
                    )
                report.add(seen)
    return estimate_cost(whole, chosen, price)


async def _secrets(memory: Memory) -> tuple[bytes, bytes]:
    return await memory.secret(FILES), await memory.secret(LOGS)


@contextmanager
def _forgotten(*, held: bool) -> Generator[Forgotten | None]:
    """Yield the function that counts forgotten turns and statements of the memory; None without a memory."""
    if not held:
        yield None
        return
    opening = open_memory(settings(), distil=False, what="import")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as memory:
        yield lambda turns, session, statements: portal.call(
            partial(memory.forgotten_among, turns, session=session, statements=statements)
        )


def _watch(
    found: Sequence[Found], files: Sequence[Path], layout: str, asked: ImportOptions, report: _ImportSummary
) -> None:
    """Import other files, then follow logs until Ctrl-C."""
    if others := [one for one in found if not isinstance(one, AgentLog)]:
        _import(others, asked, report)
    if len(others) == len(found):
        raise InvalidInput("--watch follows logs of coding agents, and none of these is one. Leave it out.")
    known: dict[Path, Agent | None] = {}
    said: dict[Path, str] = {}

    def logs() -> Iterator[AgentLog]:
        for file in files:
            try:
                yield from _logs_of(file, layout, known)
            except InvalidInput:  # gone for now
                continue

    def heard(log: AgentLog, one: FollowReport | McpMemoryError) -> None:
        if isinstance(one, McpMemoryError):
            if said.get(log.path) != str(one):
                report.add_error(one)
            said[log.path] = str(one)
        elif one.stored or one.kept:
            report.add(one.report(str(log.path), "stored"))

    chosen = settings()

    async def visit() -> None:
        async with open_memory(chosen, distil=False, what="import") as memory:
            click.echo(f"Watching {plural(len(list(logs())), 'log')}; Ctrl-C ends it.", err=True)
            await watch_logs(memory, logs, report=heard)

    try:
        anyio.run(visit)
    except KeyboardInterrupt:
        click.echo("Ended. What comes after this is read when you import or watch again.", err=True)


def _import_archive(file: Path, *, dry_run: bool) -> list[Brought]:
    """Import all spaces of an export under their names, or its only one into the space that `--space` names.

    A dry run only checks the file. Raises InvalidInput.
    """
    if is_backup(file):
        raise InvalidInput(
            f"{visible(str(file))} is a backup: `mcp-memory restore` makes the memory of it, with --home another one."
        )
    with opened(file, visible(str(file))) as parcel:
        return [_import_space(parcel, *pair, dry_run=dry_run) for pair in _targets(parcel)]


def _targets(parcel: Parcel) -> list[tuple[str, str]]:
    into = command_settings().get("space")
    if into is None:
        return [(space, space) for space in parcel.spaces]
    if len(parcel.spaces) == 1:
        return [(next(iter(parcel.spaces)), into)]
    raise InvalidInput(
        f"{parcel.name} holds {len(parcel.spaces)} spaces ({', '.join(sorted(parcel.spaces)[:8])}), and --space names "
        "one. Leave it out, and each goes to the space of its name; or export the one that you want."
    )


def _import_space(parcel: Parcel, space: str, into: str, *, dry_run: bool) -> Brought:
    if dry_run:
        rows = sum(parcel.spaces[space].values())
        note = f"It is whole, and holds {plural(rows, 'row')}. How many of them are new is told when they are stored."
        return Brought(space=space, into=into, notes=[note])

    chosen = settings()

    async def visit() -> Brought:
        async with open_memory(chosen.model_copy(update={"space": into}), distil=False) as memory:
            return await memory.take_in(parcel, space, tell=tell)

    with progress_bars(space) as tell:
        return anyio.run(visit)


# --- for people -------------------------------------------------------------------------------------


def _file_lines(one: FileReport) -> Iterator[str]:
    """Yield the result for a file: contents, rows stored, cost, remarks and problems."""
    name = click.style(visible(one.file), bold=True)
    if one.state == "known":
        yield f"{name}: nothing new"
    elif one.state == "refused":
        yield f"{name}: nothing of it was stored, for {plural(one.bad, 'place')} in it cannot be taken"
    else:
        span = f", {day(one.first)} to {day(one.last)}" if one.first and one.last else ""
        where = f"session {one.session}" if one.session else plural(one.sessions, "session")
        turns = f": {plural(one.turns, 'turn')} in {where}{span}" if one.turns or not one.statements else ""
        yield f"{name}{turns}"
    if one.state == "stored" and (one.turns or not one.statements):
        before = f", {one.duplicates:,} were there before" if one.duplicates else ""
        gone = f", {one.forgotten:,} were forgotten here and stay so" if one.forgotten else ""
        emptied = (
            f", {one.emptied:,} left out (empty, private, recalled from here, or for the host program)"
            if one.emptied
            else ""
        )
        yield f"  {one.stored:,} stored{before}{gone}{emptied}"
    if one.state == "seen" and one.forgotten:
        yield f"  {one.forgotten:,} were forgotten here and would stay so"
    if one.statements:
        yield _statements_line(one)
    if one.kept or one.small:
        kept = "would be kept" if one.state == "seen" else "kept"
        yield f"  {plural(one.kept, 'tool result')} {kept}, {one.small:,} too small for that"
    if one.noise is not None and one.turns:
        yield f"  {one.noise:,} of the turns ({one.noise / one.turns:.0%}) are noise that no model would be shown"
    if one.cost is not None:
        yield wrapped(cost_line("Having it read", one.cost), "  ")
    yield from (wrapped(note, "  ") for note in one.notes)
    yield from (wrapped(wrong, "  wrong: ") for wrong in one.wrong)
    if one.bad > len(one.wrong) > 0:
        yield f"  and {one.bad - len(one.wrong):,} more"
    if one.state == "refused":
        yield "  Mend them, or pass over them with --skip-bad."


def _statements_line(one: FileReport) -> str:
    if one.state != "stored":
        return f"  {plural(one.statements, 'statement')} of another memory"
    rest = one.statements - one.told - one.repeated
    parts = [f"{plural(one.told, 'statement')} told"]
    parts += [f"{one.repeated:,} were here before"] if one.repeated else []
    parts += [f"{rest:,} were forgotten here"] if rest else []
    parts += [f"{one.held:,} wait for review (`mcp-memory review`)"] if one.held else []
    return f"  {', '.join(parts)}"


def _together(new: Sequence[FileReport], cost: CostEstimate | None) -> FileReport:
    """Return several files as if they were one."""
    counts: dict[str, Any] = {
        name: sum(getattr(one, name) for one in new) for name, value in new[0].counts().items() if type(value) is int
    }
    sessions = len({one.session for one in new if one.session}) + sum(one.sessions for one in new if not one.session)
    first = min((one.first for one in new if one.first), default=None)
    last = max((one.last for one in new if one.last), default=None)
    noise = sum(one.noise or 0 for one in new) if new[0].state == "seen" else None
    counts |= {"sessions": sessions, "bad": 0}
    name = f"All {len(new):,} together"
    return FileReport(file=name, state=new[0].state, **counts, first=first, last=last, noise=noise, cost=cost)


def _archive_lines(file: str, done: Sequence[Brought], *, dry_run: bool) -> Iterator[str]:
    """Yield the result for an exported memory."""
    yield click.style(visible(file), bold=True) + f": {plural(len(done), 'space')} of an exported memory"
    for one in done:
        where = visible(one.space) if one.space == one.into else f"{visible(one.space)} into {visible(one.into)}"
        changed = f", {one.changed:,} of them brought up to date" if one.changed else ""
        stored = f": {plural(one.stored, 'row')} stored, {one.known:,} were here before{changed}"
        yield f"  {where}{'' if dry_run else stored}"
        if one.kept_out:
            yield f"    {plural(one.kept_out, 'row')} not taken: forgotten here or there, and left so"
        if one.forgotten:
            gone = f"What was forgotten there is forgotten here too: {', '.join(one.forgotten)}."
            yield wrapped(f"{gone} `mcp-memory forget --undo` brings it back.", "    ")
        if one.undone:
            yield f"    Brought back, as it was there: {', '.join(one.undone)}"
        yield from (wrapped(note, "    ") for note in one.notes)
