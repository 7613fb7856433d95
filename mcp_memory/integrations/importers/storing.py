"""Brings a history into a memory: look at the file, check all of it, store it, note that it is done.

Nothing is stored of a file that has a wrong place, unless those are to be skipped. Turns go through `record_turns` in
batches; each has an id of its own, so a kill in the middle leaves whole batches, and the next run stores the rest. A
file is done when it is noted with its SHA-256; one that has neither been touched nor changed since is not read again.
Duplicates are not known before a turn is stored, so a dry run does not tell them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular, written_ms
from mcp_memory.core.secrets import mask
from mcp_memory.core.text import is_blank
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers import notes
from mcp_memory.integrations.importers.answer import Brought, answer, unchanged
from mcp_memory.integrations.importers.cost import Price, Size, cost
from mcp_memory.integrations.importers.formats.told import Passed, Result, Statement, Told, Wrong
from mcp_memory.integrations.importers.placing import Places
from mcp_memory.integrations.importers.reader import Source
from mcp_memory.integrations.importers.results import not_kept, worth
from mcp_memory.integrations.importers.survey import STDIN, Asked, Survey, default_session, start, survey, turns
from mcp_memory.integrations.importers.telling import told_by
from mcp_memory.service.memory import Memory
from mcp_memory.store.protocol import Imported

__all__ = ["bring", "look", "source_of"]

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many bytes of the file are behind it, and of how many."""

Forgotten = Callable[[Sequence[NewTurn], str, Sequence[Sequence[str]]], int]
"""How many of these turns of a session, and of these statements in their wordings, were forgotten, and stay so."""

BATCH = 500
BATCH_CHARS = 8 * 2**20
_RACE = timedelta(seconds=2)
"""A file written so shortly before it was noted may have been written once more since, with the same mtime."""


def source_of(path: Path, *, name: str | None = None) -> Source:
    """Return a file as it stands. InvalidInput where it is none that can be read."""
    shown = name or str(path)
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidInput(f"{shown} cannot be read: {error.strerror}.") from None
    if path.is_dir() and (files := notes.found_in(path)):
        modified = max(written_ms(file.stat()) for file in files)
        size = sum(file.stat().st_size for file in files)
        return Source(path=path.absolute(), name=shown, size=size, modified=modified, is_folder=True)
    if not path.is_file():
        raise InvalidInput(f"{shown} is not a file. Name the files to import, as with {shown.rstrip('/')}/*.jsonl.")
    return Source(path=path.absolute(), name=shown, size=found.st_size, modified=written_ms(found))


async def bring(memory: Memory, source: Source, asked: Asked, *, now: datetime, progress: Progress) -> Brought:
    """Store the turns of a file. InvalidInput where it cannot be read at all."""
    files = [] if asked.again else await memory.imported()
    if known := await to_thread(_untouched, files, source):
        return unchanged(source, known)
    digest = await to_thread(partial(_digest, source))
    noted = Imported(path=await to_thread(_address, source), sha256=digest, modified=source.modified, turns=0, at=now)
    if known := _with(files, digest):
        await memory.note_import(replace(noted, turns=known.turns))
        return unchanged(source, known)
    found = await to_thread(partial(_surveyed, source, asked, progress))
    if found.bad and not asked.skip_bad:
        return answer(source, found, state="refused")
    stored = duplicates = forgotten = emptied = kept = told = held = repeated = 0
    with closing(_batches(source, found, asked, progress)) as batches:
        while batch := await to_thread(partial(next, batches, None)):
            for session, new in batch.turns.items():
                done = await memory.record_turns(new, session=session, vectors_later=True)
                stored += len(done.stored)
                duplicates += done.duplicates
                forgotten += done.forgotten
                emptied += done.emptied
            for session, results in batch.results.items():
                kept += await _keep(memory, session, results)
            if batch.statements:
                done = await memory.tell(told_by(batch.statements, session=_teller(source, asked), now=now))
                told, held, repeated = told + done.told, held + done.held, repeated + done.repeated
                forgotten += done.kept_out
    await memory.note_import(replace(noted, turns=found.turns + found.statements))
    return answer(
        source,
        found,
        state="stored",
        stored=stored,
        duplicates=duplicates,
        forgotten=forgotten,
        emptied=emptied,
        kept=kept,
        told=told,
        held=held,
        repeated=repeated,
    )


async def _keep(memory: Memory, session: str, results: Sequence[Result]) -> int:
    """Keep those results that the session does not hold yet. Returns how many that were."""
    new = await not_kept(memory, session, results)
    for one in new:
        tool = one.tool or "tool"
        await memory.keep_tool_result(
            tool, one.text, arguments=one.arguments, tool_call_id=one.call, session=session, at=one.said_at
        )
    return len(new)


def look(
    source: Source,
    asked: Asked,
    settings: Settings,
    *,
    price: Price,
    files: Sequence[Imported] = (),
    progress: Progress,
    within: Size | None = None,
    forgotten: Forgotten | None = None,
) -> Brought:
    """Return what `bring` would do, and what it would cost to have the result read. Writes nothing; blocks.

    `files` are those that the memory knows, and `forgotten` what it counts. The turns are added to `within`.
    """
    if files and not asked.again and (known := _untouched(files, source) or _with(files, _digest(source))):
        return unchanged(source, known)
    size = Size(settings.batch_turns, within)
    found = _surveyed(source, asked, progress, size)
    if found.bad and not asked.skip_bad:
        return answer(source, found, state="refused")
    gone = 0
    if forgotten is not None:
        comparing = partial(_named, progress, "comparing")
        with closing(_batches(source, found, asked, comparing)) as batches:
            for batch in batches:
                gone += sum(forgotten(new, session, ()) for session, new in batch.turns.items())
                if batch.statements:
                    told = told_by(batch.statements, session=_teller(source, asked), now=datetime.now(UTC))
                    gone += forgotten((), _teller(source, asked), [one.wordings for one in told])
    return answer(source, found, state="seen", forgotten=gone, noise=size.noise, cost=cost(size, settings, price))


def _named(progress: Progress, doing: str, _: str, done: int, of: int) -> None:
    progress(doing, done, of)


# --- what was done before ---------------------------------------------------------------------------


def _untouched(files: Sequence[Imported], source: Source) -> Imported | None:
    """Return what is known of a file that nobody has written to since; of a folder only its contents tell."""
    if source.is_folder:
        return None
    seen = (_address(source), source.modified)
    written = datetime.fromtimestamp(source.modified / 1000, UTC)
    return next((one for one in files if (one.path, one.modified) == seen and written + _RACE < one.at), None)


def _with(files: Sequence[Imported], digest: str) -> Imported | None:
    return next((one for one in files if one.sha256 == digest), None)


def _digest(source: Source) -> str:
    if source.is_folder:
        return notes.digest(source.path, source.name)
    digest, left = hashlib.sha256(), source.size
    try:
        with open_regular(source.path) as stream:
            while left and (chunk := stream.read(min(left, 2**20))):
                digest.update(chunk)
                left -= len(chunk)
    except OSError as error:
        raise InvalidInput(f"{source.name} cannot be read: {error.strerror}.") from None
    return digest.hexdigest()


def _address(source: Source) -> str:
    return STDIN if source.name == STDIN else mask(str(source.path))


# --- the two passes ---------------------------------------------------------------------------------


def _surveyed(source: Source, asked: Asked, progress: Progress, size: Size | None = None) -> Survey:
    return survey(source, asked, at=lambda read: progress("checking", read, source.size), size=size)


@dataclass(kw_only=True)
class _Batch:
    """What is stored at once, by session; statements of other memories in their order."""

    statements: list[Statement] = field(default_factory=list[Statement])
    turns: dict[str, list[NewTurn]] = field(default_factory=dict[str, list[NewTurn]])
    results: dict[str, list[Result]] = field(default_factory=dict[str, list[Result]])
    count: int = 0
    chars: int = 0

    def add(self, session: str, one: NewTurn | Result | Statement) -> None:
        if isinstance(one, Statement):
            self.statements.append(one)
            self.chars += len(one.text)
        elif isinstance(one, NewTurn):
            self.turns.setdefault(session, []).append(one)
            self.chars += len(one.content)
        else:
            self.results.setdefault(session, []).append(one)
            self.chars += len(one.text)
        self.count += 1

    @property
    def is_full(self) -> bool:
        return self.count >= BATCH or self.chars >= BATCH_CHARS


def _batches(source: Source, found: Survey, asked: Asked, progress: Progress) -> Generator[_Batch, None, None]:
    """Yield what is to be stored, some hundred turns and results at a time."""
    batch = _Batch()
    for session, one in _placed(source, found, asked, progress):
        batch.add(session, one)
        if batch.is_full:
            yield batch
            batch = _Batch()
    if batch.count:
        yield batch


def _teller(source: Source, asked: Asked) -> str:
    """Return the session in which statements are told."""
    return default_session(source, asked) or "import"


def _placed(
    source: Source, found: Survey, asked: Asked, progress: Progress
) -> Iterator[tuple[str, NewTurn | Result | Statement]]:
    places = Places(default=default_session(source, asked), start=start(source, found.undated))
    at = partial(progress, "storing")
    for one in turns(source, asked, found.layout, passed=Passed(), at=lambda read: at(read, source.size)):
        match one:
            case Told():
                session, turn = places.place(one)
                if not is_blank(turn.content):
                    yield session, turn
            case Result():
                if one.session is not None and worth(one) == "large":
                    yield one.session, one
            case Statement():
                yield _teller(source, asked), one
            case Wrong():
                if not (one.torn or asked.skip_bad):
                    raise InvalidInput(f"{source.name} changed while it was read. Import it again.")
