"""The implementation of `import`: identifies its arguments, imports or previews each, and reports.

A separate module, so that the help of the command does not wait for its imports.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click
from anyio.from_thread import start_blocking_portal

from mcp_memory.cli.base import ask, command_settings, progress_bars, settings, wants_json
from mcp_memory.cli.distilling import cost_line, distilling_cost
from mcp_memory.cli.terminal import escape_controls, format_day, json_text, wrap
from mcp_memory.core.errors import InvalidInput, McpMemoryError, Refused
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import plural
from mcp_memory.integrations.importers.archive import unpacked_conversations
from mcp_memory.integrations.importers.follow import LOGS, FollowReport, follow_log, preview_log, watch_logs
from mcp_memory.integrations.importers.format_table import files_of_formats, table, whole_file_format
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
from mcp_memory.integrations.importers.reader import ImportSource, notes_in_folder, text_head
from mcp_memory.integrations.importers.records import AGENTS, Agent, agent_named
from mcp_memory.integrations.importers.refusals import refuse_log
from mcp_memory.integrations.importers.report import CostEstimate, FileReport, HistorySize, estimate_cost
from mcp_memory.integrations.importers.streams import readable_file
from mcp_memory.integrations.project_files import ProjectChanges, store_project_files
from mcp_memory.models.llm import price
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.portable.bringing import Brought
from mcp_memory.service.portable.reading import Parcel, is_parcel, open_export
from mcp_memory.service.upkeep.archive import is_backup
from mcp_memory.store.values import ProjectFile

Source = ImportSource | AgentLog | InvalidInput

NOTES = ("basic-memory", "mempalace")
"""Formats of memories kept, or exported, as folders of Markdown."""
_PACKED = (
    "{} that Codex has compressed cannot be read, such as {}. Unpack them with `zstd -d --keep`, and import again."
)
_NO_FILES = "There are no instructions for agents, such as AGENTS.md, in this project."
_NEXT = (
    "Search finds them now. `mcp-memory show persona` shows the page that is made of them; a model writes a better one "
    "with `mcp-memory distill`."
)


def run_import(files: Sequence[Path], layout: Any, asked: ImportOptions, *, dry_run: bool, watch: bool) -> bool:
    """Import, preview or watch the files, and report. Return whether everything could be read."""
    report = _ImportSummary()
    if packed := _packed_logs(files):
        click.echo(wrap(_PACKED.format(plural(len(packed), "log"), packed[0]), ""), err=True)
    archives = [
        path for path in files if asked.format == "auto" and path.is_file() and (is_parcel(path) or is_backup(path))
    ]
    for archive in archives:
        with report.errors():
            report.add_archive(str(archive), _import_archive(archive, dry_run=dry_run), dry_run=dry_run)
    with sources([file for file in files if file not in archives], layout) as found:
        if watch:
            _watch(found, files, layout, asked, report)
        elif dry_run:
            report.sum_up(_preview(found, asked, report))
        else:
            _import(found, asked, report)
            report.sum_up(None)
    report.end()
    return report.is_well


def run_projects(folders: Sequence[Path]) -> None:
    """Read the files of projects for search, and list them. Raises InvalidInput for a path that is no folder."""
    for folder in folders:
        if not folder.is_dir():
            raise InvalidInput(f"{folder} is no folder. Name the folder of a project.")
    chosen = settings()
    if chosen.server is not None:
        raise Refused("Files of a project are read for a memory on this machine only: they stay on it.")

    async def visit() -> list[tuple[ProjectChanges, list[ProjectFile]]]:
        async with open_memory(chosen, distil=False, what="import") as memory:
            done = [await store_project_files(memory, folder) for folder in folders]
            files = await memory.project_files()
        return [(changes, [file for file in files if file.project == changes.project]) for changes in done]

    projects = anyio.run(visit)
    if wants_json():
        click.echo(json_text({"projects": {changes.project: files for changes, files in projects}}))
        return
    for changes, files in projects:
        changed = {content.path for content in changes.changed}
        click.echo(f"{escape_controls(changes.project)}: {plural(len(files), 'file')}" if files else _NO_FILES)
        for file in files:
            name = file.label.removesuffix(f" of {changes.project}")
            click.echo(escape_controls(f"  {name}  {'read' if file.path in changed else 'unchanged'}"))


class _ImportSummary:
    """Reports each file as soon as it is done or, as JSON, all at the end."""

    def __init__(self) -> None:
        self._files: list[FileReport] = []
        self._errors: list[str] = []
        self._exports: dict[str, Sequence[Brought]] = {}

    @contextmanager
    def errors(self) -> Generator[None]:
        """Report an InvalidInput from the body instead of raising it."""
        try:
            yield
        except InvalidInput as error:
            self.add_error(error)

    def add_error(self, error: McpMemoryError) -> None:
        self._errors.append(str(error))
        click.echo(f"Error: {escape_controls(str(error))}", err=True)

    def add_archive(self, file: str, done: Sequence[Brought], *, dry_run: bool) -> None:
        """Report the import of an exported memory."""
        self._exports[file] = done
        self._say(_archive_lines(file, done, dry_run=dry_run))

    def add(self, file: FileReport) -> None:
        self._files.append(file)
        if not _is_old_log(file):
            self._say(_file_lines(file))

    def sum_up(self, cost: CostEstimate | None) -> None:
        """Report the total of all new files, if there are several; `cost` is that of extracting all of them."""
        new = [file for file in self._files if file.state in ("stored", "seen")]
        if len(new) > 1:
            refused = any(file.state == "refused" for file in self._files)
            self._say(_file_lines(_sum_reports(new, None if refused else cost)))

    def end(self) -> None:
        if wants_json():
            exports = {"exports": self._exports} if self._exports else {}
            click.echo(json_text({"files": self._files, "errors": self._errors, **exports}))
        if same := sum(map(_is_old_log, self._files)):
            self._say([f"{plural(same, 'log')} with nothing new"])
        if any(file.stored for file in self._files) and not wants_json():
            self._say([wrap(_NEXT, "")])
            if (cost := distilling_cost()) and cost.questions:
                self._say([wrap(cost_line("Reading all that waits", cost), "")])

    @property
    def is_well(self) -> bool:
        return not self._errors and all(file.state != "refused" for file in self._files)

    def _say(self, lines: Iterable[str]) -> None:
        if not wants_json():
            click.echo("\n".join(lines))


def _is_old_log(report: FileReport) -> bool:
    return report.state == "known" and report.session is not None


def never_imported(files: Sequence[Path]) -> list[Path]:
    """Return the files that were never imported into the selected memory; all if it cannot be read."""
    try:
        known = {imported.path for imported in ask(lambda memory: memory.imported())}
    except McpMemoryError:
        known = set[str]()
    return [file for file in files if mask(str(file.absolute())) not in known]


# --- what the arguments are -------------------------------------------------------------------------


@contextmanager
def sources(files: Sequence[Path], layout: str) -> Generator[list[Source]]:
    """Yield the sources of the files, each file once, with an InvalidInput in place of a file that cannot be used.

    Standard input is copied to a file first, because it is read twice.
    """
    with tempfile.TemporaryDirectory(prefix="mcp-memory-import-") as folder:
        found: list[Source] = []
        for file in dict.fromkeys(files):
            try:
                if str(file) == STDIN:
                    kept = Path(folder, "stdin")
                    with kept.open("wb") as stream:
                        shutil.copyfileobj(sys.stdin.buffer, stream)
                    found.append(source_of(kept, name=STDIN))
                elif file.is_dir() and layout not in AGENTS and (parts := _files_of_formats(file, layout)):
                    whole = unpacked_conversations(file)
                    found += [source_of(part, is_found=part not in whole) for part in parts]
                    found += [log for log in find_logs(file, {}) if log.path.absolute() not in parts]
                elif not _is_notes_folder(file, layout) and (logs := _logs_of(file, layout, {})):
                    found += logs
                else:
                    found.append(source_of(file))
            except InvalidInput as error:
                found.append(error)
        yield found


def _files_of_formats(folder: Path, layout: str) -> list[Path]:
    """Return the files in a folder that are conversations of an unpacked export, or of another known format.

    None if the folder has notes of another memory, and nothing else that is known but Markdown: it is read whole.
    """
    if layout in NOTES:
        return []
    found = [*unpacked_conversations(folder), *files_of_formats(folder, layout)]
    is_whole = found and layout == "auto" and all(path.suffix == ".md" for path in found) and _has_notes(folder, found)
    return [] if is_whole else found


def _has_notes(folder: Path, found: Sequence[Path]) -> bool:
    """Return whether a folder without logs has all these files as notes, and others of another memory."""
    notes, known = notes_in_folder(folder), {path.resolve() for path in found}
    if not known <= set(notes) or any(find_logs(folder, {})):
        return False
    others = (text_head(readable_file(note)) for note in notes if note not in known)
    return any(table()[name].matches(text) for text in others for name in NOTES)


def _is_notes_folder(file: Path, layout: str) -> bool:
    """Return whether a folder has notes of another memory: `layout` says so, or it has Markdown and no logs."""
    if not file.is_dir() or layout in AGENTS:
        return False
    return layout in NOTES or (bool(notes_in_folder(file)) and not any(find_logs(file, {})))


def _folders(file: Path) -> list[Path]:
    """Return the folders that a path names: itself, or the log folders of the client so named; none for a file."""
    agent = agent_named(str(file))
    if agent is not None and not file.exists():
        return log_folders(agent, environ=os.environ, home=Path.home())
    return [file] if file.is_dir() else []


def _logs_of(file: Path, layout: str, agents: dict[Path, Agent | None]) -> list[AgentLog]:
    """Return the logs that a path names; empty for another file. Raises InvalidInput for a folder without logs."""
    folders = _folders(file)
    if not folders:
        is_log = file.is_file() and (layout != "auto" or whole_file_format(file) is None)
        agent = None if not is_log else agent_of(file) if layout == "auto" else agent_named(layout)
        return [] if agent is None else [AgentLog(path=file, client=agent, is_named=True)]
    logs = [log for folder in folders for log in find_logs(folder, agents)]
    if not logs:
        where = ", ".join(str(folder) for folder in folders)
        raise InvalidInput(
            f"There is no log, and no file of another known format, in {where}. "
            "Other files have to be named one by one."
        )
    return logs


def _packed_logs(files: Sequence[Path]) -> list[Path]:
    """Return old logs that Codex has compressed, which cannot be read."""
    return [path for file in files for folder in _folders(file) for path in sorted(folder.rglob("rollout-*.jsonl.zst"))]


# --- importing --------------------------------------------------------------------------------------


def _import(sources: Sequence[Source], asked: ImportOptions, report: _ImportSummary) -> None:
    """Store the files in the selected memory, which is created if needed, and report each."""

    chosen = settings()

    async def visit() -> None:
        async with open_memory(chosen, distil=False, what="import") as memory:
            for source in sources:
                with report.errors():
                    if isinstance(source, InvalidInput):
                        raise source
                    if isinstance(source, AgentLog):
                        log = await follow_log(memory, source.path, live=False, client=source.client, again=asked.again)
                        if source.is_named and log.is_unreadable:
                            raise InvalidInput(refuse_log(str(source.path), source.client))
                        report.add(log.report(str(source.path), "stored" if log.turns or log.kept else "known"))
                        continue
                    with progress_bars(source.name) as progress:
                        done = await import_file(memory, source, asked, now=memory.now(), progress=progress)
                    report.add(done)

    anyio.run(visit)


def _preview(sources: Sequence[Source], asked: ImportOptions, report: _ImportSummary) -> CostEstimate | None:
    """Report what would be stored, and return the cost of reading all of it. No memory is created."""
    chosen = settings()
    has_memory = chosen.server is not None or os.access(chosen.home / "memory.db", os.R_OK)
    imported = ask(lambda memory: memory.imported()) if has_memory else []
    logs = {
        log.path: log for log in (ask(lambda memory: memory.followed_logs()) if has_memory and not asked.again else [])
    }
    of_files, of_logs = ask(_secrets) if has_memory else (b"", b"")
    whole = HistorySize(chosen.batch_turns)
    both: dict[str, Any] = {"price": price, "within": whole}
    with _forgotten_counter(has_memory=has_memory) as forgotten:
        for source in sources:
            with report.errors():
                if isinstance(source, InvalidInput):
                    raise source
                if isinstance(source, AgentLog):
                    before = logs.get(stored_path(source.path.resolve()))
                    report.add(
                        preview_log(
                            source.path,
                            source.client,
                            chosen,
                            name=str(source.path),
                            position=before,
                            secret=of_logs,
                            is_named=source.is_named,
                            **both,
                        )
                    )
                    continue
                with progress_bars(source.name) as progress:
                    seen = preview_file(
                        source,
                        asked,
                        chosen,
                        files=imported,
                        progress=progress,
                        forgotten=forgotten,
                        secret=of_files,
                        **both,
                    )
                report.add(seen)
    return estimate_cost(whole, chosen, price)


async def _secrets(memory: Memory) -> tuple[bytes, bytes]:
    return await memory.secret(FILES), await memory.secret(LOGS)


@contextmanager
def _forgotten_counter(*, has_memory: bool) -> Generator[Forgotten | None]:
    """Yield the function that counts forgotten turns and statements of the memory; None without a memory."""
    if not has_memory:
        yield None
        return
    opening = open_memory(settings(), distil=False, what="import")
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opening) as memory:
        yield lambda turns, session, statements: portal.call(
            partial(memory.forgotten_among, turns, session=session, statements=statements)
        )


def _watch(
    sources: Sequence[Source], files: Sequence[Path], layout: str, asked: ImportOptions, report: _ImportSummary
) -> None:
    """Import the files that are not logs, then follow the logs until Ctrl-C. Raises InvalidInput if there is no log."""
    if others := [source for source in sources if not isinstance(source, AgentLog)]:
        _import(others, asked, report)
    if len(others) == len(sources):
        raise InvalidInput("--watch follows logs of coding agents, and none of these is one. Leave it out.")
    agents: dict[Path, Agent | None] = {}
    last_errors: dict[Path, str] = {}

    def logs() -> Iterator[AgentLog]:
        for file in files:
            try:
                yield from _logs_of(file, layout, agents)
            except InvalidInput:  # gone for now
                continue

    def heard(log: AgentLog, event: FollowReport | McpMemoryError) -> None:
        if isinstance(event, McpMemoryError):
            if last_errors.get(log.path) != str(event):
                report.add_error(event)
            last_errors[log.path] = str(event)
        elif event.stored or event.kept:
            report.add(event.report(str(log.path), "stored"))

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
    """Import all spaces of an export under their names, or its only space into the space selected by `--space`.

    A dry run only checks the file. Raises InvalidInput for a backup, for a damaged export, and for an export of several
    spaces with `--space`.
    """
    if (server := settings().server) is not None:
        raise InvalidInput(
            f"{escape_controls(str(file))} is a memory as a whole, with its ids and proofs. It is imported where the "
            f"memory is: on {server}."
        )
    if is_backup(file):
        raise InvalidInput(
            f"{escape_controls(str(file))} is a backup: use `mcp-memory restore`, with --home for another memory."
        )
    with open_export(file, escape_controls(str(file))) as parcel:
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
        note = f"It is intact, and holds {plural(rows, 'row')}. How many of them are new is told when they are stored."
        return Brought(space=space, into=into, notes=[note])

    chosen = settings()

    async def visit() -> Brought:
        async with open_memory(chosen.model_copy(update={"space": into}), distil=False) as memory:
            return await memory.take_in(parcel, space, tell=tell)

    with progress_bars(space) as tell:
        return anyio.run(visit)


# --- for people -------------------------------------------------------------------------------------


def _file_lines(report: FileReport) -> Iterator[str]:
    """Yield the result for a file: contents, rows stored, cost, remarks and problems."""
    name = click.style(escape_controls(report.file), bold=True)
    if report.state == "known":
        yield f"{name}: nothing new"
    elif report.state == "refused":
        yield f"{name}: nothing of it was stored, for {plural(report.bad, 'place')} in it cannot be taken"
    else:
        span = f", {format_day(report.first)} to {format_day(report.last)}" if report.first and report.last else ""
        where = f"session {report.session}" if report.session else plural(report.sessions, "session")
        turns = f": {plural(report.turns, 'turn')} in {where}{span}" if report.turns or not report.statements else ""
        yield f"{name}{turns}"
    if report.state == "stored" and (report.turns or not report.statements):
        before = f", {report.duplicates:,} were there before" if report.duplicates else ""
        gone = f", {report.forgotten:,} were forgotten here and stay so" if report.forgotten else ""
        emptied = (
            f", {report.emptied:,} left out (empty, private, recalled from here, or for the host program)"
            if report.emptied
            else ""
        )
        yield f"  {report.stored:,} stored{before}{gone}{emptied}"
    if report.state == "seen" and report.forgotten:
        yield f"  {report.forgotten:,} were forgotten here and would stay so"
    if report.statements:
        yield _statements_line(report)
    if report.kept or report.small:
        kept = "would be kept" if report.state == "seen" else "kept"
        yield f"  {plural(report.kept, 'tool result')} {kept}, {report.small:,} too small for that"
    if report.noise is not None and report.turns:
        share = report.noise / report.turns
        yield f"  {report.noise:,} of the turns ({share:.0%}) are noise that no model would be shown"
    if report.cost is not None:
        yield wrap(cost_line("Having it read", report.cost), "  ")
    yield from (wrap(note, "  ") for note in report.notes)
    yield from (wrap(wrong, "  wrong: ") for wrong in report.wrong)
    if report.state == "refused":
        yield "  Mend them, or pass over them with --skip-bad."


def _statements_line(report: FileReport) -> str:
    if report.state != "stored":
        return f"  {plural(report.statements, 'statement')} of another memory"
    rest = report.statements - report.stored_statements - report.repeated
    parts = [f"{plural(report.stored_statements, 'statement')} stored"]
    parts += [f"{report.repeated:,} were here before"] if report.repeated else []
    parts += [f"{rest:,} were forgotten here"] if rest else []
    parts += [f"{report.quarantined:,} wait for review (`mcp-memory review`)"] if report.quarantined else []
    return f"  {', '.join(parts)}"


def _sum_reports(new: Sequence[FileReport], cost: CostEstimate | None) -> FileReport:
    """Return several reports as a single report."""
    counts: dict[str, Any] = {
        name: sum(getattr(file, name) for file in new) for name, value in new[0].counts().items() if type(value) is int
    }
    sessions = len({file.session for file in new if file.session}) + sum(
        file.sessions for file in new if not file.session
    )
    first = min((file.first for file in new if file.first), default=None)
    last = max((file.last for file in new if file.last), default=None)
    noise = sum(file.noise or 0 for file in new) if new[0].state == "seen" else None
    counts |= {"sessions": sessions, "bad": 0}
    name = f"All {len(new):,} together"
    return FileReport(file=name, state=new[0].state, **counts, first=first, last=last, noise=noise, cost=cost)


def _archive_lines(file: str, done: Sequence[Brought], *, dry_run: bool) -> Iterator[str]:
    """Yield the result for an exported memory."""
    yield click.style(escape_controls(file), bold=True) + f": {plural(len(done), 'space')} of an exported memory"
    for space in done:
        where = (
            escape_controls(space.space)
            if space.space == space.into
            else f"{escape_controls(space.space)} into {escape_controls(space.into)}"
        )
        changed = f", {space.changed:,} of them brought up to date" if space.changed else ""
        stored = f": {plural(space.stored, 'row')} stored, {space.known:,} were here before{changed}"
        yield f"  {where}{'' if dry_run else stored}"
        if space.kept_out:
            yield f"    {plural(space.kept_out, 'row')} not taken: forgotten here or there, and left so"
        if space.forgotten:
            gone = f"What was forgotten there is forgotten here too: {', '.join(space.forgotten)}."
            yield wrap(f"{gone} `mcp-memory forget --undo` brings it back.", "    ")
        if space.undone:
            yield f"    Brought back, as it was there: {', '.join(space.undone)}"
        yield from (wrap(note, "    ") for note in space.notes)
