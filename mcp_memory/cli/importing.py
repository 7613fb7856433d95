"""What became of imported files, of each and of all together, as lines for people.

What `import` does with files that `export` wrote: checked whole, then taken in, space by space.

What the arguments of `import` stand for: files, logs of coding agents, and standard input.

`import`: conversations that were kept elsewhere, histories and logs of coding agents.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, command_settings, place, settings
from mcp_memory.cli.terminal import day, json_text, one_line, plural, visible, wrapped
from mcp_memory.core.errors import InvalidInput, McpMemoryError

if TYPE_CHECKING:
    from mcp_memory.integrations.importers.log_file import AgentLog
    from mcp_memory.integrations.importers.reader import ImportSource
    from mcp_memory.integrations.importers.records import Agent
    from mcp_memory.integrations.importers.report import CostEstimate, ImportReport
    from mcp_memory.service.portable import Brought, Parcel

    Found = ImportSource | AgentLog | InvalidInput
    from mcp_memory.integrations.importers.follow import FollowReport
    from mcp_memory.integrations.importers.history import Forgotten, ImportOptions, Progress


def file_lines(one: ImportReport) -> Iterator[str]:
    """Yield what became of a file: its name and what it holds, then what was done, what it costs and what is odd."""
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
        emptied = f", {one.emptied:,} held only what this memory had recalled" if one.emptied else ""
        yield f"  {one.stored:,} stored{before}{gone}{emptied}"
    if one.state == "seen" and one.forgotten:
        yield f"  {one.forgotten:,} were forgotten here and would stay so"
    if one.statements:
        yield _told(one)
    if one.kept or one.small:
        kept = "would be kept" if one.state == "seen" else "kept"
        yield f"  {plural(one.kept, 'tool result')} {kept}, {one.small:,} too small for that"
    if one.noise is not None and one.turns:
        yield f"  {one.noise:,} of the turns ({one.noise / one.turns:.0%}) are noise that no model would be shown"
    if one.cost is not None:
        yield from _cost(one.cost)
    for note in one.notes:
        yield wrapped(note, "  ")
    for wrong in one.wrong:
        yield wrapped(wrong, "  wrong: ")
    if one.bad > len(one.wrong) > 0:
        yield f"  and {one.bad - len(one.wrong):,} more"
    if one.state == "refused":
        yield "  Mend them, or pass over them with --skip-bad."


def _told(one: ImportReport) -> str:
    if one.state != "stored":
        return f"  {plural(one.statements, 'statement')} of another memory"
    rest = one.statements - one.told - one.repeated
    parts = [f"{plural(one.told, 'statement')} told"]
    parts += [f"{one.repeated:,} were here before"] if one.repeated else []
    parts += [f"{rest:,} were forgotten here"] if rest else []
    parts += [f"{one.held:,} wait for review (`mcp-memory review`)"] if one.held else []
    return f"  {', '.join(parts)}"


def together(files: Sequence[ImportReport], cost: CostEstimate | None) -> ImportReport | None:
    """Return what came of all files as if they were one; None where fewer than two hold something new."""
    from mcp_memory.integrations.importers.report import ImportReport

    new = [one for one in files if one.state in ("stored", "seen")]
    if len(new) < 2:
        return None
    return ImportReport(
        file=f"All {len(new):,} together",
        state=new[0].state,
        turns=sum(one.turns for one in new),
        sessions=len({one.session for one in new if one.session}) + sum(one.sessions for one in new if not one.session),
        first=min((one.first for one in new if one.first), default=None),
        last=max((one.last for one in new if one.last), default=None),
        stored=sum(one.stored for one in new),
        statements=sum(one.statements for one in new),
        told=sum(one.told for one in new),
        held=sum(one.held for one in new),
        repeated=sum(one.repeated for one in new),
        duplicates=sum(one.duplicates for one in new),
        forgotten=sum(one.forgotten for one in new),
        emptied=sum(one.emptied for one in new),
        kept=sum(one.kept for one in new),
        small=sum(one.small for one in new),
        noise=sum(one.noise or 0 for one in new) if new[0].state == "seen" else None,
        cost=None if any(one.state == "refused" for one in files) else cost,
    )


def _cost(cost: CostEstimate) -> Iterator[str]:
    price = "a price that is not known" if cost.price is None else f"about ${cost.price:,.2f}"
    days = (
        "The caps allow no calls."
        if cost.days is None
        else f"With the caps on tokens it takes {plural(cost.days, 'day')}."
    )
    yield wrapped(
        f"Having {cost.model} read it takes about {plural(cost.questions, 'question')}, {cost.prompt_tokens:,} tokens "
        f"in and {cost.completion_tokens:,} out, {price}. {days}",
        "  ",
    )


def archives_in(files: Sequence[Path]) -> list[Path]:
    """Return those of the files that are exported memories, or backups, which `take_parcel` refuses."""
    from mcp_memory.service.portable import is_parcel
    from mcp_memory.service.upkeep.archive import is_backup

    return [file for file in files if file.is_file() and (is_parcel(file) or is_backup(file))]


def import_archive(file: Path, *, dry_run: bool) -> list[Brought]:
    """Take all spaces of an export into those of their names, or its only one into the space that `--space` names.

    A dry run checks the file and says what is in it. Raises InvalidInput.
    """
    import anyio

    from mcp_memory.service.memory import open_memory
    from mcp_memory.service.portable import opened
    from mcp_memory.service.upkeep.archive import is_backup

    if is_backup(file):
        raise InvalidInput(
            f"{visible(str(file))} is a backup: `mcp-memory restore` makes the memory of it, with --home another one."
        )
    with opened(file, visible(str(file))) as parcel:
        pairs = _places(parcel, command_settings().get("space"))
        if dry_run:
            return [_seen(parcel, space, into) for space, into in pairs]

        async def visit(space: str, into: str) -> Brought:
            # A command that stores must not set a model to work.
            async with open_memory(settings().model_copy(update={"space": into}), distil=False) as memory:
                return await memory.take_in(parcel, space)

        return [anyio.run(partial(visit, space, into)) for space, into in pairs]


def _places(parcel: Parcel, into: str | None) -> list[tuple[str, str]]:
    if into is None:
        return [(space, space) for space in parcel.spaces]
    if len(parcel.spaces) == 1:
        return [(next(iter(parcel.spaces)), into)]
    raise InvalidInput(
        f"{parcel.name} holds {len(parcel.spaces)} spaces ({', '.join(sorted(parcel.spaces)[:8])}), and --space names "
        "one. Leave it out, and each goes to the space of its name; or export the one that you want."
    )


def _seen(parcel: Parcel, space: str, into: str) -> Brought:
    from mcp_memory.service.portable import Brought

    rows = sum(parcel.spaces[space].values())
    note = f"It is whole, and holds {plural(rows, 'row')}. How many of them are new is told when they are stored."
    return Brought(space=space, into=into, notes=[note])


def archive_lines(file: str, done: Sequence[Brought], *, dry_run: bool) -> Iterator[str]:
    """Yield what became of an export, for people."""
    yield click.style(visible(file), bold=True) + f": {plural(len(done), 'space')} of an exported memory"
    for one in done:
        where = visible(one.space) if one.space == one.into else f"{visible(one.space)} into {visible(one.into)}"
        if not dry_run:
            changed = f", {one.changed:,} of them brought up to date" if one.changed else ""
            yield f"  {where}: {plural(one.stored, 'row')} stored, {one.known:,} were here before{changed}"
        else:
            yield f"  {where}"
        if one.kept_out:
            yield f"    {plural(one.kept_out, 'row')} not taken: forgotten here or there, and left so"
        if one.forgotten:
            yield wrapped(
                f"What was forgotten there is forgotten here too: {', '.join(one.forgotten)}. "
                "`mcp-memory forget --undo` brings it back.",
                "    ",
            )
        if one.undone:
            yield f"    Brought back, as it was there: {', '.join(one.undone)}"
        for note in one.notes:
            yield wrapped(note, "    ")


AGENTS = ("claude-code", "codex", "gemini")
"""As in `importing.agents`, which the command line's help does not wait for."""

NOTES = ("basic-memory", "mempalace")
"""Memories that are kept, or exported, as folders of Markdown."""


@contextmanager
def sources(files: Sequence[Path], layout: str) -> Generator[list[Found]]:
    """Give what is to be read, each file once; standard input as a file, for it is read twice."""
    from mcp_memory.integrations.importers.history import STDIN, source_of
    from mcp_memory.integrations.importers.reader import unpacked_conversations

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
                elif _is_notes(file, layout):
                    found.append(source_of(file))
                elif logs := logs_of(file, layout, {}):
                    found += logs
                else:
                    found.append(source_of(file))
            except InvalidInput as error:
                found.append(error)
        yield found


def _is_notes(file: Path, layout: str) -> bool:
    """Tell whether a folder holds notes of another memory: by the asked format, or as it holds Markdown and no logs."""
    from mcp_memory.integrations.importers.log_file import logs_in
    from mcp_memory.integrations.importers.reader import notes_in_folder

    if not file.is_dir() or layout in AGENTS:
        return False
    return layout in NOTES or (bool(notes_in_folder(file)) and not any(logs_in(file, {})))


def _folders(file: Path) -> list[Path]:
    """Return the folders that a path stands for: itself, or those in which the client of that name keeps its logs."""
    from mcp_memory.integrations.importers.log_file import log_folders
    from mcp_memory.integrations.importers.records import agent_named

    agent = agent_named(str(file))
    if agent is not None and not file.exists():
        return log_folders(agent, environ=os.environ, home=Path.home())
    return [file] if file.is_dir() else []


def logs_of(file: Path, layout: str, known: dict[Path, Agent | None]) -> list[AgentLog]:
    """Return the logs that a path stands for; none where it is another file. InvalidInput for a folder without any."""
    from mcp_memory.integrations.importers.log_file import AgentLog, agent_of, logs_in
    from mcp_memory.integrations.importers.records import agent_named

    folders = _folders(file)
    if not folders:
        if not file.is_file():
            return []
        agent = agent_of(file) if layout == "auto" else agent_named(layout)
        return [] if agent is None else [AgentLog(path=file, client=agent)]
    logs = [log for folder in folders for log in logs_in(folder, known)]
    if not logs:
        where = ", ".join(str(folder) for folder in folders)
        raise InvalidInput(f"There is no log of a coding agent in {where}. Other files have to be named one by one.")
    return logs


def packed_logs(files: Sequence[Path]) -> list[Path]:
    """Return old logs in these places that Codex has compressed, which cannot be read here."""
    return [path for file in files for folder in _folders(file) for path in sorted(folder.rglob("rollout-*.jsonl.zst"))]


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--session", help="Where turns belong that name no session.  [default: the file's name]")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["auto", "jsonl", "seed", "chatgpt", "claude-ai", "memory-server", "mem0", *NOTES, *AGENTS]),
    default="auto",
    show_default=True,
    help="What the files are, where it cannot be told.",
)
@click.option("--skip-bad", is_flag=True, help="Pass over what is wrong in a file, and list it.")
@click.option("--again", is_flag=True, help="Read files, too, that have not changed since they were imported.")
@click.option("--dry-run", is_flag=True, help="Check the files and say what would be stored, and what reading costs.")
@click.option("--watch", is_flag=True, help="Go on reading logs of agents as they are written, until Ctrl-C.")
@as_json
@place
def import_(
    files: tuple[Path, ...],
    session: str | None,
    layout: Any,
    skip_bad: bool,
    again: bool,
    dry_run: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Store conversations that were kept elsewhere.

    A PATH is told by what is in it: a memory that `export` wrote, whose spaces go to those of their names (or its only
    one to --space); an export of ChatGPT or Claude.ai (the zip as it came), a log of Claude Code, Codex or Gemini CLI,
    a folder with such logs or with an unpacked export, what the reference memory server, mem0, basic-memory or
    MemPalace kept, or JSON. claude-code, codex and gemini stand for the folder in which that program keeps its logs.
    JSON is an object a line (or an array of them): a turn, {"role", "content"} and where known "session", "name",
    "said_at" and "id"; or a conversation, {"session", "turns": [...]} or {"messages": [...]}. Seeds of TencentDB
    Agent Memory are read too. Files may be gzipped; - is standard input.

    What was stored before is not stored again: an import that was stopped goes on when it is called again, and of a
    file that has grown only what is new is stored. A log is read from where it was read to; of its tool results the
    large ones are kept. Any other file is checked whole before any of it is stored. No model is asked: what reads new
    turns reads these, in its own time.

    \b
    mcp-memory import claude-code --dry-run
    mcp-memory import claude-code codex --watch
    mcp-memory import chatgpt-export.zip history.jsonl.gz
    mcp-memory --space work import --session standup - < standup.jsonl
    """
    from mcp_memory.core.text import safe_name
    from mcp_memory.integrations.importers.history import ImportOptions

    if watch and dry_run:
        raise click.UsageError("--watch stores what it sees, and --dry-run nothing: choose one.")
    form = "auto" if layout in AGENTS else layout
    asked = ImportOptions(
        session=session and safe_name(session, what="session"), format=form, skip_bad=skip_bad, again=again
    )
    report = _ImportSummary(as_json=as_json)
    if packed := packed_logs(files):
        click.echo(wrapped(_PACKED.format(plural(len(packed), "log"), packed[0]), ""), err=True)
    parcels = archives_in(files) if form == "auto" else []
    for parcel in parcels:
        try:
            report.take(str(parcel), import_archive(parcel, dry_run=dry_run), dry_run=dry_run)
        except InvalidInput as error:
            report.add(error)
    with sources([file for file in files if file not in parcels], layout) as found:
        if watch:
            _watch(found, files, layout, asked, report)
        elif dry_run:
            report.sum_up(_look(found, asked, report))
        else:
            _bring(found, asked, report)
            report.sum_up(None)
    report.end()
    sys.exit(0 if report.is_well else 1)


_PACKED = (
    "{} that Codex has compressed cannot be read, such as {}. Unpack them with `zstd -d --keep`, and import again."
)
_NEXT = (
    "Search finds them now. What they say of you is drawn from them by the model or the agent that reads new turns; "
    "`mcp-memory distill` has a model do it at once."
)


class _ImportSummary:
    """What becomes of the files: said of each as it is known, or of all at the end as JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._answers: list[ImportReport] = []
        self._errors: list[str] = []
        self._taken: dict[str, Sequence[Brought]] = {}

    def take(self, file: str, done: Sequence[Brought], *, dry_run: bool) -> None:
        """Say what became of an exported memory."""
        self._taken[file] = done
        self._say(archive_lines(file, done, dry_run=dry_run))

    def add(self, one: ImportReport | McpMemoryError) -> None:
        if isinstance(one, McpMemoryError):
            self._errors.append(str(one))
            click.echo(f"Error: {visible(str(one))}", err=True)
            return
        self._answers.append(one)
        if not _is_old_log(one):
            self._say(file_lines(one))

    def sum_up(self, cost: CostEstimate | None) -> None:
        """Say what the files come to together; `cost` is that of having all of them read."""
        if whole := together(self._answers, cost):
            self._say(file_lines(whole))

    def end(self) -> None:
        if self._as_json:
            taken = {"exports": self._taken} if self._taken else {}
            click.echo(json_text({"files": self._answers, "errors": self._errors, **taken}))
        if same := sum(map(_is_old_log, self._answers)):
            self._say([f"{plural(same, 'log')} with nothing new"])
        if any(one.stored for one in self._answers):
            self._say([wrapped(_NEXT, "")])

    @property
    def is_well(self) -> bool:
        return not self._errors and all(one.state != "refused" for one in self._answers)

    def _say(self, said: Iterable[str]) -> None:
        if not self._as_json:
            click.echo("\n".join(said))


def _is_old_log(one: ImportReport) -> bool:
    return one.state == "known" and one.session is not None


# --- storing ----------------------------------------------------------------------------------------


def _bring(found: Sequence[Found], asked: ImportOptions, report: _ImportSummary) -> None:
    """Store them in the memory that the options name, which is made where there is none."""
    import anyio

    from mcp_memory.integrations.importers.follow import follow_log
    from mcp_memory.integrations.importers.history import import_file
    from mcp_memory.integrations.importers.log_file import AgentLog
    from mcp_memory.integrations.importers.report import of_log
    from mcp_memory.service.memory import open_memory

    async def visit() -> None:
        # A command that stores must not set a model to work.
        async with open_memory(settings(), distil=False, what="import") as memory:
            for one in found:
                try:
                    if isinstance(one, InvalidInput):
                        raise one
                    if isinstance(one, AgentLog):
                        log = await follow_log(memory, one.path, live=False, client=one.client, again=asked.again)
                        report.add(of_log(str(one.path), log, state="stored" if log.turns or log.kept else "known"))
                        continue
                    with _bar(one) as progress:
                        done = await import_file(memory, one, asked, now=datetime.now(UTC), progress=progress)
                    report.add(done)
                except InvalidInput as error:
                    report.add(error)

    anyio.run(visit)


def _look(found: Sequence[Found], asked: ImportOptions, report: _ImportSummary) -> CostEstimate | None:
    """Say what would be stored, and return what reading all of it costs. A memory that is not there is not made."""
    from mcp_memory.integrations.importers.follow import preview_log
    from mcp_memory.integrations.importers.history import preview_file
    from mcp_memory.integrations.importers.log_file import AgentLog
    from mcp_memory.integrations.importers.report import HistorySize, estimate_cost
    from mcp_memory.models.llm import price

    chosen = settings()
    held = os.access(chosen.home / "memory.db", os.R_OK)
    known = ask(lambda memory: memory.imported()) if held else []
    logs = {log.path: log for log in (ask(lambda memory: memory.followed_logs()) if held and not asked.again else [])}
    whole = HistorySize(chosen.batch_turns)
    with _forgotten(held=held) as forgotten:
        for one in found:
            try:
                if isinstance(one, InvalidInput):
                    raise one
                if isinstance(one, AgentLog):
                    before = logs.get(str(one.path.resolve()))
                    name = str(one.path)
                    report.add(
                        preview_log(one.path, one.client, chosen, name=name, price=price, known=before, within=whole)
                    )
                    continue
                with _bar(one) as progress:
                    seen = preview_file(
                        one,
                        asked,
                        chosen,
                        price=price,
                        files=known,
                        progress=progress,
                        within=whole,
                        forgotten=forgotten,
                    )
                report.add(seen)
            except InvalidInput as error:
                report.add(error)
    return estimate_cost(whole, chosen, price)


@contextmanager
def _forgotten(*, held: bool) -> Generator[Forgotten | None]:
    """Give what counts the forgotten turns and statements of the memory that the options name; None without one."""
    from anyio.from_thread import start_blocking_portal

    from mcp_memory.service.memory import open_memory

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
    """Store what is there, then follow logs until Ctrl-C."""
    import anyio

    from mcp_memory.integrations.importers.follow import watch_logs
    from mcp_memory.integrations.importers.log_file import AgentLog
    from mcp_memory.integrations.importers.report import of_log
    from mcp_memory.service.memory import open_memory

    if any(not isinstance(one, AgentLog) for one in found):
        _bring([one for one in found if not isinstance(one, AgentLog)], asked, report)
    if not any(isinstance(one, AgentLog) for one in found):
        raise InvalidInput("--watch follows logs of coding agents, and none of these is one. Leave it out.")
    known: dict[Path, Agent | None] = {}
    said: dict[Path, str] = {}

    def logs() -> Iterator[AgentLog]:
        for file in files:
            try:
                yield from logs_of(file, layout, known)
            except InvalidInput:  # gone for now
                continue

    def heard(log: AgentLog, one: FollowReport | McpMemoryError) -> None:
        if isinstance(one, McpMemoryError):
            if said.get(log.path) != str(one):
                report.add(one)
            said[log.path] = str(one)
        elif one.stored or one.kept:
            report.add(of_log(str(log.path), one, state="stored"))

    async def visit() -> None:
        async with open_memory(settings(), distil=False, what="import") as memory:
            click.echo(f"Watching {plural(len(list(logs())), 'log')}; Ctrl-C ends it.", err=True)
            await watch_logs(memory, logs, told=heard)

    try:
        anyio.run(visit)
    except KeyboardInterrupt:
        click.echo("Ended. What comes after this is read when you import or watch again.", err=True)


@contextmanager
def _bar(source: ImportSource) -> Generator[Progress]:
    """Give what shows how far a file is read, on a terminal: a bar for each pass."""
    with ExitStack() as passes:
        bars: dict[str, Any] = {}

        def tell(doing: str, done: int, of: int) -> None:
            if doing not in bars:
                passes.close()
                label = f"{doing} {one_line(source.name, 40)}"
                bars[doing] = passes.enter_context(click.progressbar(length=of, label=label, file=sys.stderr))
            bars[doing].update(done - bars[doing].pos)

        yield tell if sys.stderr.isatty() else _quiet


def _quiet(doing: str, done: int, of: int) -> None: ...
