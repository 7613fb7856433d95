"""`import`: conversations that were kept elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from mcp_memory.cli.base import as_json, ask, place, settings
from mcp_memory.errors import InvalidInput
from mcp_memory.terminal import day, json_text, one_line, plural, visible, wrapped

if TYPE_CHECKING:
    from mcp_memory.importing import Asked, Brought
    from mcp_memory.importing.cost import Cost
    from mcp_memory.importing.reader import Source
    from mcp_memory.importing.storing import Progress

__all__ = ["import_"]


@click.command(name="import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--session", help="Where turns belong that name no session.  [default: the file's name]")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["auto", "jsonl", "seed"]),
    default="auto",
    show_default=True,
    help="What the files are, where it cannot be told.",
)
@click.option("--skip-bad", is_flag=True, help="Pass over what is wrong in a file, and list it.")
@click.option("--again", is_flag=True, help="Read files, too, that have not changed since they were imported.")
@click.option("--dry-run", is_flag=True, help="Check the files and say what would be stored, and what reading costs.")
@as_json
@place
def import_(
    files: tuple[Path, ...],
    session: str | None,
    layout: Literal["auto", "jsonl", "seed"],
    skip_bad: bool,
    again: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Store conversations that were kept elsewhere.

    A FILE has a JSON object a line (or is an array of them): a turn, {"role", "content"} and where known "session",
    "name", "said_at" and "id"; or a conversation, {"session", "turns": [...]} or {"messages": [...]}. Seeds of
    TencentDB Agent Memory are read too. Files may be gzipped; - is standard input. Times are ISO 8601, local where
    they name no zone, or seconds or milliseconds since 1970.

    All of a file is checked before any of it is stored. What was stored before is not stored again, so an import
    that was stopped goes on when it is called again, and of a file that has grown only the new turns are stored. No
    model is asked: what reads new turns reads these, in its own time.

    \b
    mcp-memory import --dry-run history.jsonl
    mcp-memory import history.jsonl.gz notes/*.jsonl
    mcp-memory --space work import --session standup - < standup.jsonl
    """
    from mcp_memory.importing import Asked
    from mcp_memory.text import safe_name

    asked = Asked(session=session and safe_name(session, what="session"), format=layout, skip_bad=skip_bad, again=again)
    answers: list[Brought] = []
    errors: list[str] = []

    def told(one: Brought | InvalidInput) -> None:
        if isinstance(one, InvalidInput):
            errors.append(str(one))
            click.echo(f"Error: {visible(str(one))}", err=True)
        else:
            answers.append(one)
            if not as_json:
                click.echo("\n".join(_lines(one)))

    with _sources(files) as sources:
        (_look if dry_run else _bring)(sources, asked, told)
    if as_json:
        click.echo(json_text({"files": answers, "errors": errors}))
    elif any(one.stored for one in answers):
        click.echo(wrapped(_NEXT, ""))
    sys.exit(1 if errors or any(one.state == "refused" for one in answers) else 0)


_NEXT = (
    "Search finds them now. What they say of you is drawn from them by the model or the agent that reads new turns; "
    "`mcp-memory distill` has a model do it at once."
)

Told = Callable[["Brought | InvalidInput"], None]


@contextmanager
def _sources(files: Sequence[Path]) -> Generator[list[Source | InvalidInput]]:
    """Give what is to be read, each file once; standard input as a file, for it is read twice."""
    from mcp_memory.importing import STDIN, source_of

    found: list[Source | InvalidInput] = []
    with tempfile.TemporaryDirectory(prefix="mcp-memory-import-") as folder:
        for file in dict.fromkeys(files):
            try:
                if str(file) == STDIN:
                    kept = Path(folder, "stdin")
                    with kept.open("wb") as stream:
                        shutil.copyfileobj(sys.stdin.buffer, stream)
                    found.append(source_of(kept, name=STDIN))
                else:
                    found.append(source_of(file))
            except InvalidInput as error:
                found.append(error)
        yield found


def _bring(sources: Sequence[Source | InvalidInput], asked: Asked, told: Told) -> None:
    """Store them in the memory that the options name, which is made where there is none."""
    import anyio

    from mcp_memory.importing import bring
    from mcp_memory.memory import open_memory

    async def visit() -> None:
        # A command that stores must not set a model to work.
        async with open_memory(settings(), distil=False) as memory:
            for source in sources:
                if isinstance(source, InvalidInput):
                    told(source)
                    continue
                with _bar(source) as progress:
                    try:
                        done = await bring(memory, source, asked, now=datetime.now(UTC), progress=progress)
                    except InvalidInput as error:
                        done = error
                told(done)

    anyio.run(visit)


def _look(sources: Sequence[Source | InvalidInput], asked: Asked, told: Told) -> None:
    """Say what would be stored. A memory that is not there is not made."""
    from mcp_memory.importing import look
    from mcp_memory.llm import price

    chosen = settings()
    held = os.access(chosen.home / "memory.db", os.R_OK)
    known = ask(lambda memory: memory.imported()) if held else []
    for source in sources:
        if isinstance(source, InvalidInput):
            told(source)
            continue
        with _bar(source) as progress:
            try:
                seen = look(source, asked, chosen, price=price, files=known, progress=progress)
            except InvalidInput as error:
                seen = error
        told(seen)


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


# --- for people -------------------------------------------------------------------------------------


def _lines(one: Brought) -> Iterator[str]:
    name = click.style(visible(one.file), bold=True)
    if one.state == "known":
        yield f"{name}: nothing new"
    elif one.state == "refused":
        yield f"{name}: nothing of it was stored, for {plural(one.bad, 'place')} in it cannot be taken"
    else:
        span = f", {day(one.first)} to {day(one.last)}" if one.first and one.last else ""
        yield f"{name}: {plural(one.turns, 'turn')} in {plural(one.sessions, 'session')}{span}"
    if one.state == "stored":
        before = f", {one.duplicates:,} were there before" if one.duplicates else ""
        emptied = f", {one.emptied:,} held only what this memory had recalled" if one.emptied else ""
        yield f"  {one.stored:,} stored{before}{emptied}"
    if one.noise is not None and one.turns:
        yield f"  {one.noise:,} of them ({one.noise / one.turns:.0%}) are noise that no model would be shown"
    if one.cost is not None:
        yield from _cost(one.cost)
    for note in one.notes:
        yield wrapped(note, "  ")
    for wrong in one.wrong:
        yield wrapped(wrong, "  wrong: ")
    if one.bad > len(one.wrong):
        yield f"  and {one.bad - len(one.wrong):,} more"
    if one.state == "refused":
        yield "  Mend them, or pass over them with --skip-bad."


def _cost(cost: Cost) -> Iterator[str]:
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
