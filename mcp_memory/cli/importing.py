"""`import`: conversations that were kept elsewhere, histories and logs of coding agents."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, place, settings
from mcp_memory.cli.brought import lines, together
from mcp_memory.cli.parcels import lines as lines_of_parcel
from mcp_memory.cli.parcels import parcels_in, take_parcel
from mcp_memory.cli.sources import AGENTS, NOTES, logs_of, packed_logs, sources
from mcp_memory.cli.terminal import json_text, one_line, plural, visible, wrapped
from mcp_memory.core.errors import InvalidInput, McpMemoryError

if TYPE_CHECKING:
    from mcp_memory.cli.sources import Found
    from mcp_memory.integrations.importers import Asked, Brought
    from mcp_memory.integrations.importers.agents import Agent
    from mcp_memory.integrations.importers.cost import Cost
    from mcp_memory.integrations.importers.finding import Log
    from mcp_memory.integrations.importers.follow import Followed
    from mcp_memory.integrations.importers.reader import Source
    from mcp_memory.integrations.importers.storing import Forgotten, Progress
    from mcp_memory.service.portable import Brought as Taken

__all__ = ["import_"]


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
    from mcp_memory.integrations.importers import Asked

    if watch and dry_run:
        raise click.UsageError("--watch stores what it sees, and --dry-run nothing: choose one.")
    form = "auto" if layout in AGENTS else layout
    asked = Asked(session=session and safe_name(session, what="session"), format=form, skip_bad=skip_bad, again=again)
    report = _Report(as_json=as_json)
    if packed := packed_logs(files):
        click.echo(wrapped(_PACKED.format(plural(len(packed), "log"), packed[0]), ""), err=True)
    parcels = parcels_in(files) if form == "auto" else []
    for parcel in parcels:
        try:
            report.take(str(parcel), take_parcel(parcel, dry_run=dry_run), dry_run=dry_run)
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


class _Report:
    """What becomes of the files: said of each as it is known, or of all at the end as JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._answers: list[Brought] = []
        self._errors: list[str] = []
        self._taken: dict[str, Sequence[Taken]] = {}

    def take(self, file: str, done: Sequence[Taken], *, dry_run: bool) -> None:
        """Say what became of an exported memory."""
        self._taken[file] = done
        self._say(lines_of_parcel(file, done, dry_run=dry_run))

    def add(self, one: Brought | McpMemoryError) -> None:
        if isinstance(one, McpMemoryError):
            self._errors.append(str(one))
            click.echo(f"Error: {visible(str(one))}", err=True)
            return
        self._answers.append(one)
        if not _is_old_log(one):
            self._say(lines(one))

    def sum_up(self, cost: Cost | None) -> None:
        """Say what the files come to together; `cost` is that of having all of them read."""
        if whole := together(self._answers, cost):
            self._say(lines(whole))

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


def _is_old_log(one: Brought) -> bool:
    return one.state == "known" and one.session is not None


# --- storing ----------------------------------------------------------------------------------------


def _bring(found: Sequence[Found], asked: Asked, report: _Report) -> None:
    """Store them in the memory that the options name, which is made where there is none."""
    import anyio

    from mcp_memory.integrations.importers import bring
    from mcp_memory.integrations.importers.answer import of_log
    from mcp_memory.integrations.importers.finding import Log
    from mcp_memory.integrations.importers.follow import follow
    from mcp_memory.service.memory import open_memory

    async def visit() -> None:
        # A command that stores must not set a model to work.
        async with open_memory(settings(), distil=False, what="import") as memory:
            for one in found:
                try:
                    if isinstance(one, InvalidInput):
                        raise one
                    if isinstance(one, Log):
                        log = await follow(memory, one.path, live=False, client=one.client, again=asked.again)
                        report.add(of_log(str(one.path), log, state="stored" if log.turns or log.kept else "known"))
                        continue
                    with _bar(one) as progress:
                        done = await bring(memory, one, asked, now=datetime.now(UTC), progress=progress)
                    report.add(done)
                except InvalidInput as error:
                    report.add(error)

    anyio.run(visit)


def _look(found: Sequence[Found], asked: Asked, report: _Report) -> Cost | None:
    """Say what would be stored, and return what reading all of it costs. A memory that is not there is not made."""
    from mcp_memory.integrations.importers import look
    from mcp_memory.integrations.importers.cost import Size, cost
    from mcp_memory.integrations.importers.finding import Log
    from mcp_memory.integrations.importers.foresee import foresee
    from mcp_memory.models.llm import price

    chosen = settings()
    held = os.access(chosen.home / "memory.db", os.R_OK)
    known = ask(lambda memory: memory.imported()) if held else []
    logs = {log.path: log for log in (ask(lambda memory: memory.followed_logs()) if held and not asked.again else [])}
    whole = Size(chosen.batch_turns)
    with _forgotten(held=held) as forgotten:
        for one in found:
            try:
                if isinstance(one, InvalidInput):
                    raise one
                if isinstance(one, Log):
                    before = logs.get(str(one.path.resolve()))
                    name = str(one.path)
                    report.add(
                        foresee(one.path, one.client, chosen, name=name, price=price, known=before, within=whole)
                    )
                    continue
                with _bar(one) as progress:
                    seen = look(
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
    return cost(whole, chosen, price)


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


def _watch(found: Sequence[Found], files: Sequence[Path], layout: str, asked: Asked, report: _Report) -> None:
    """Store what is there, then follow logs until Ctrl-C."""
    import anyio

    from mcp_memory.integrations.importers.answer import of_log
    from mcp_memory.integrations.importers.finding import Log
    from mcp_memory.integrations.importers.watching import watch
    from mcp_memory.service.memory import open_memory

    if any(not isinstance(one, Log) for one in found):
        _bring([one for one in found if not isinstance(one, Log)], asked, report)
    if not any(isinstance(one, Log) for one in found):
        raise InvalidInput("--watch follows logs of coding agents, and none of these is one. Leave it out.")
    known: dict[Path, Agent | None] = {}
    said: dict[Path, str] = {}

    def logs() -> Iterator[Log]:
        for file in files:
            try:
                yield from logs_of(file, layout, known)
            except InvalidInput:  # gone for now
                continue

    def heard(log: Log, one: Followed | McpMemoryError) -> None:
        if isinstance(one, McpMemoryError):
            if said.get(log.path) != str(one):
                report.add(one)
            said[log.path] = str(one)
        elif one.stored or one.kept:
            report.add(of_log(str(log.path), one, state="stored"))

    async def visit() -> None:
        async with open_memory(settings(), distil=False, what="import") as memory:
            click.echo(f"Watching {plural(len(list(logs())), 'log')}; Ctrl-C ends it.", err=True)
            await watch(memory, logs, told=heard)

    try:
        anyio.run(visit)
    except KeyboardInterrupt:
        click.echo("Ended. What comes after this is read when you import or watch again.", err=True)


@contextmanager
def _bar(source: Source) -> Generator[Progress]:
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
