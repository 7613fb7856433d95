"""Gives each turn of a history its session, its time and an id by which it is known again. No I/O.

The id rests on what the file says of the turn and not on the file: its own id; else its session, role, name, words
and time, and how many turns of the session were told since that time, so that what was said twice is stored twice.
A time that is not told is a guess, 100 ms after the turn before; a guess is no part of the id or of the turn's hash,
so that the same history is known again in a file of another date.

The first pass over a file: is all of it right, and what would be stored? Nothing is.

`turns` is what both passes read by, so that the second stores exactly what the first has seen.

Statements of other memories as they are told here: by a program, each once, with secrets masked.

Brings a history into a memory: look at the file, check all of it, store it, note that it is done.

Nothing is stored of a file that has a wrong place, unless those are to be skipped. Turns go through `record_turns` in
batches; each has an id of its own, so a kill in the middle leaves whole batches, and the next run stores the rest. A
file is done when it is noted with its SHA-256; one that has neither been touched nor changed since is not read again.
Duplicates are not known before a turn is stored, so a dry run does not tell them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular, written_ms
from mcp_memory.core.secrets import holds_key, mask, mask_id
from mcp_memory.core.text import is_blank, safe_name, zoned
from mcp_memory.core.types import IMPORTED, NewTurn
from mcp_memory.integrations.importers import chat_exports, other_memories, reader, records
from mcp_memory.integrations.importers.chat_exports import OWN
from mcp_memory.integrations.importers.follow import not_kept, worth
from mcp_memory.integrations.importers.reader import At, ImportSource, Layout, SourceValue, layout, remarks, values
from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
)
from mcp_memory.integrations.importers.report import HistorySize, ImportReport, Price, answer, estimate_cost, unchanged
from mcp_memory.longterm.explicit_atoms import told
from mcp_memory.service.memory import Memory
from mcp_memory.service.memory.administration import StatementToImport
from mcp_memory.store.protocol import Imported, NewAtom

STEP = timedelta(milliseconds=100)

_FORBIDDEN = re.compile(r'[.<>:"/\\|?*\x00-\x1f\x7f]+')
_LONGEST = 100  # bytes, so that there is room for what tells two names apart


@dataclass(slots=True)
class _SessionClock:
    name: str
    clock: datetime | None = None
    """The last time told in it."""
    since: int = 0
    """Turns since then."""


class TurnPlacement:
    """Where the turns of one file belong, one pass over it.

    `default` is the session of turns that name none, `start` the guess for the first one without a time.
    """

    def __init__(self, *, default: str | None, start: datetime) -> None:
        self._default = default
        self._next = start
        self._sessions: dict[str, _SessionClock] = {}
        self.renamed: dict[str, str] = {}
        """Names that could not be kept, and what stands for them."""
        self.undated = 0

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def place(self, told: ImportedTurn) -> tuple[str, NewTurn]:
        """Return the session's name and the turn."""
        session = self._session(told)
        said_at = told.said_at
        if said_at is not None and said_at != session.clock:
            session.clock, session.since = said_at, 0
        turn = NewTurn(
            role=told.role,
            content=told.content,
            name=told.name,
            said_at=said_at or self._guess(session, told.began),
            client_id=told.id or _known_by(session, told),
            guessed=said_at is None,
        )
        session.since += 1
        return session.name, turn

    def _guess(self, session: _SessionClock, began: datetime | None) -> datetime:
        self.undated += 1
        known = session.clock or began
        if known is not None:
            return _after(known, session.since)
        self._next += STEP
        return self._next - STEP

    def _session(self, told: ImportedTurn) -> _SessionClock:
        told_name = told.session or self._without_name(told)
        session = self._sessions.get(told_name)
        if session is None:
            session = self._sessions[told_name] = _SessionClock(self._kept(told_name))
        return session

    def _without_name(self, told: ImportedTurn) -> str:
        if self._default is None:
            raise InvalidInput(f"{told.where} names no session. Say with --session where such turns belong.")
        return self._default if told.conversation < 2 else f"{self._default}-{told.conversation}"

    def _kept(self, name: str) -> str:
        """Return the name, or one like it where it cannot be part of a file name; two that differ stay two."""
        try:
            if not holds_key(name):
                return safe_name(name, what="session")
            raise InvalidInput("a key is no name")
        except InvalidInput:
            mark = hashlib.sha256(name.encode()).hexdigest()[:6]
            like = _FORBIDDEN.sub("-", mask(name)).encode()[:_LONGEST].decode(errors="ignore").strip(" .-")
            self.renamed[name] = f"{like or 'session'}-{mark}"
            return self.renamed[name]


def _after(known: datetime, turns: int) -> datetime:
    try:
        return zoned(known + STEP * turns)
    except (OverflowError, ValueError):  # there is no later moment
        return known


def _known_by(session: _SessionClock, told: ImportedTurn) -> str:
    clock = "" if session.clock is None else session.clock.astimezone(UTC).isoformat()
    digest = hashlib.sha256(b"mcp-memory import 1\n")
    for part in (session.name, clock, str(session.since), told.role, told.name or "", told.content):
        data = part.encode()
        digest.update(b"%d:" % len(data) + data)
    return f"{IMPORTED}{digest.hexdigest()[:24]}"


STDIN = "-"
Format = Literal["auto", "jsonl", "seed", "chatgpt", "claude-ai", "memory-server", "mem0", "basic-memory", "mempalace"]
_SHOWN = 20
"""Wrong places that are kept to be shown."""
_ENOUGH = 10_000
"""Wrong places after which a file is not read on: none of it will be stored, and it may be no history at all."""
Anything = ImportedTurn | ImportedResult | ImportedStatement | ImportProblem
_ENDINGS = re.compile(r"(\.(jsonl|ndjson|json|txt|zip))?(\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What is asked for. `session` is where turns belong that name none; without it, the file's name."""

    session: str | None = None
    format: Format = "auto"
    skip_bad: bool = False
    again: bool = False
    """Read files, too, that were read before."""


@dataclass(kw_only=True)
class Survey:
    """What a file holds."""

    layout: Layout
    turns: int = 0
    sessions: int = 0
    statements: int = 0
    """What another memory held to be true."""
    undated: int = 0
    """Turns without a time."""
    without_text: int = 0
    kept: int = 0
    """Results of tools that are large enough to be kept; the `small` ones are not."""
    small: int = 0
    first: datetime | None = None
    last: datetime | None = None
    """Of the times that are told."""
    bad: int = 0
    wrong: list[ImportProblem] = field(default_factory=list[ImportProblem])
    """The first of the bad ones."""
    torn: ImportProblem | None = None
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    passed: SkippedParts = field(default_factory=SkippedParts)
    remarks: list[str] = field(default_factory=list[str])
    """What is passed over in the file as a whole."""


def survey(source: ImportSource, asked: ImportOptions, *, at: At, size: HistorySize | None = None) -> Survey:
    """Read all of a file. What is wrong is counted, and told by its place; `size` is added to."""
    seen = _layout(source, asked)
    found = Survey(layout=seen, remarks=remarks(source, seen))
    places = TurnPlacement(default=default_session(source, asked), start=start(source, 0))
    for one in turns(source, asked, found.layout, passed=found.passed, at=at):
        match one:
            case ImportedTurn():
                _count(found, one, places.place(one), size)
            case ImportedResult():
                match worth(one):
                    case "large":
                        found.kept += 1
                    case "small":
                        found.small += 1
                    case "ours":
                        found.passed.left[OWN] += 1
            case ImportedStatement():
                found.statements += 1
            case ImportProblem(torn=True):
                found.torn = one
            case ImportProblem():
                found.bad += 1
                found.wrong += [one] if found.bad <= _SHOWN else []
                if found.bad == _ENOUGH and not asked.skip_bad:
                    break
    found.sessions, found.undated, found.renamed = places.sessions, places.undated, places.renamed
    return found


def turns(
    source: ImportSource, asked: ImportOptions, layout: Layout, *, passed: SkippedParts, at: At
) -> Iterator[Anything]:
    """Yield what a file tells, in order."""
    for value in values(source, layout, at=at):
        match value:
            case SourceValue() if layout == "notes":
                yield from _noted(value, asked, passed)
            case SourceValue():
                yield from _told(value, asked, passed)
            case ImportProblem():
                yield value


def _noted(value: SourceValue, asked: ImportOptions, passed: SkippedParts) -> Iterator[Anything]:
    """Yield what a file of Markdown tells: a room of MemPalace, or a note of basic-memory."""
    text, name = str(value.value), value.where
    match asked.format:
        case "auto" | "mempalace" if other_memories.is_room(text):
            yield from other_memories.mempalace_records(text, name, passed)
        case "auto" | "mempalace" if other_memories.is_index(text):
            passed.left["indexes"] += 1
        case "auto" | "basic-memory" if asked.format == "basic-memory" or other_memories.is_note(text):
            yield from other_memories.basic_memory_records(text, name, passed)
        case _:
            passed.left["other files of Markdown"] += 1


def _told(value: SourceValue, asked: ImportOptions, passed: SkippedParts) -> Iterator[Anything]:
    """Yield what a value tells: as it was asked to be read, else as its shape says."""
    given = value.value, value.where, value.number, passed
    match asked.format:
        case "jsonl" | "seed":
            yield from records.generic_records(*given, seeds_only=asked.format == "seed")
        case "chatgpt":
            yield from chat_exports.chatgpt_records(*given)
        case "claude-ai":
            yield from chat_exports.claude_ai_records(*given)
        case "memory-server":
            yield from other_memories.memory_server_records(value.value, value.where, passed)
        case "mem0":
            yield from other_memories.mem0_records(value.value, value.where, passed)
        case "basic-memory" | "mempalace":
            yield ImportProblem(where=value.where, what=f"is JSON, and what {asked.format} exports is Markdown.")
        case "auto" if chat_exports.is_chatgpt_conversation(value.value):
            yield from chat_exports.chatgpt_records(*given)
        case "auto" if chat_exports.is_claude_ai_conversation(value.value):
            yield from chat_exports.claude_ai_records(*given)
        case "auto" if other_memories.is_graph(value.value):
            yield from other_memories.memory_server_records(value.value, value.where, passed)
        case "auto" if other_memories.is_mem0(value.value):
            yield from other_memories.mem0_records(value.value, value.where, passed)
        case "auto":
            yield from records.generic_records(*given)


def _layout(source: ImportSource, asked: ImportOptions) -> Layout:
    seen = layout(source)  # also where it is told: it refuses what is no text
    match asked.format:
        case "jsonl" | "seed" | "chatgpt" | "claude-ai" | "memory-server" | "mem0" if seen == "notes":
            raise InvalidInput(f"{source.name} is Markdown. Leave --format out, or say basic-memory or mempalace.")
        case "auto" | "chatgpt" | "claude-ai" | "memory-server" | "mem0" | "basic-memory" | "mempalace":
            return seen
        case "jsonl" | "seed" if seen == "archive":
            raise InvalidInput(f"{source.name} is a zip archive. Leave --format out, or unpack it first.")
        case "jsonl":
            return "lines"
        case "seed":
            return "document"


def _count(found: Survey, told: ImportedTurn, placed: tuple[str, NewTurn], size: HistorySize | None) -> None:
    if is_blank(told.content):
        found.without_text += 1
        return
    found.turns += 1
    if size is not None:
        size.add(*placed)
    if told.said_at is not None:
        found.first = min(found.first or told.said_at, told.said_at)
        found.last = max(found.last or told.said_at, told.said_at)


def default_session(source: ImportSource, asked: ImportOptions) -> str | None:
    """Return where turns belong that name no session: as asked, or the file's name without its endings."""
    if asked.session is not None:
        return safe_name(asked.session, what="session")
    if source.name == STDIN:
        return None
    name = _ENDINGS.sub("", source.path.name) or source.path.name
    return mask(name) if holds_key(name) else name


def start(source: ImportSource, undated: int) -> datetime:
    """Return the guess for the first turn without a time, such that the last one has the time of the file."""
    return datetime.fromtimestamp(source.modified / 1000, UTC) - STEP * undated


def statement_atoms(statements: Sequence[ImportedStatement], *, session: str, now: datetime) -> list[StatementToImport]:
    """Return what to tell. A statement is the imported file's word, whoever that heard it from: no rule and no trait.

    It is held true from when the other memory says it was noted, where that was in the past.
    """
    return [
        StatementToImport(
            atom=_atom(one, session=session, now=now), id=one.id and mask_id(one.id), words=mask(one.words)
        )
        for one in statements
    ]


def _atom(one: ImportedStatement, *, session: str, now: datetime) -> NewAtom:
    entity, relation, value = one.fact or (None, None, None)
    atom = told(
        mask(one.text),
        kind="episodic",
        session=session,
        entity=entity and mask(entity),
        relation=relation and mask(relation),
        value=value and mask(value),
        supersedes=(),
        valid_from=min(one.said_at or now, now),
        source="import",
    )
    return replace(atom, entities=tuple(map(mask, one.about)), single_valued=False)


Progress = Callable[[str, int, int], None]
"""Told what is being done, how many bytes of the file are behind it, and of how many."""

Forgotten = Callable[[Sequence[NewTurn], str, Sequence[Sequence[str]]], int]
"""How many of these turns of a session, and of these statements in their wordings, were forgotten, and stay so."""

BATCH = 500
BATCH_CHARS = 8 * 2**20
_RACE = timedelta(seconds=2)
"""A file written so shortly before it was noted may have been written once more since, with the same mtime."""


def source_of(path: Path, *, name: str | None = None) -> ImportSource:
    """Return a file as it stands. InvalidInput where it is none that can be read."""
    shown = name or str(path)
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidInput(f"{shown} cannot be read: {error.strerror}.") from None
    if path.is_dir() and (files := reader.notes_in_folder(path)):
        modified = max(written_ms(file.stat()) for file in files)
        size = sum(file.stat().st_size for file in files)
        return ImportSource(path=path.absolute(), name=shown, size=size, modified=modified, is_folder=True)
    if not path.is_file():
        raise InvalidInput(f"{shown} is not a file. Name the files to import, as with {shown.rstrip('/')}/*.jsonl.")
    return ImportSource(path=path.absolute(), name=shown, size=found.st_size, modified=written_ms(found))


async def import_file(
    memory: Memory, source: ImportSource, asked: ImportOptions, *, now: datetime, progress: Progress
) -> ImportReport:
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
                done = await memory.tell(statement_atoms(batch.statements, session=_teller(source, asked), now=now))
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


async def _keep(memory: Memory, session: str, results: Sequence[ImportedResult]) -> int:
    """Keep those results that the session does not hold yet. Returns how many that were."""
    new = await not_kept(memory, session, results)
    for one in new:
        tool = one.tool or "tool"
        await memory.keep_tool_result(
            tool, one.text, arguments=one.arguments, tool_call_id=one.call, session=session, at=one.said_at
        )
    return len(new)


def preview_file(
    source: ImportSource,
    asked: ImportOptions,
    settings: Settings,
    *,
    price: Price,
    files: Sequence[Imported] = (),
    progress: Progress,
    within: HistorySize | None = None,
    forgotten: Forgotten | None = None,
) -> ImportReport:
    """Return what `bring` would do, and what it would cost to have the result read. Writes nothing; blocks.

    `files` are those that the memory knows, and `forgotten` what it counts. The turns are added to `within`.
    """
    if files and not asked.again and (known := _untouched(files, source) or _with(files, _digest(source))):
        return unchanged(source, known)
    size = HistorySize(settings.batch_turns, within)
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
                    told = statement_atoms(batch.statements, session=_teller(source, asked), now=datetime.now(UTC))
                    gone += forgotten((), _teller(source, asked), [one.wordings for one in told])
    return answer(
        source, found, state="seen", forgotten=gone, noise=size.noise, cost=estimate_cost(size, settings, price)
    )


def _named(progress: Progress, doing: str, _: str, done: int, of: int) -> None:
    progress(doing, done, of)


# --- what was done before ---------------------------------------------------------------------------


def _untouched(files: Sequence[Imported], source: ImportSource) -> Imported | None:
    """Return what is known of a file that nobody has written to since; of a folder only its contents tell."""
    if source.is_folder:
        return None
    seen = (_address(source), source.modified)
    written = datetime.fromtimestamp(source.modified / 1000, UTC)
    return next((one for one in files if (one.path, one.modified) == seen and written + _RACE < one.at), None)


def _with(files: Sequence[Imported], digest: str) -> Imported | None:
    return next((one for one in files if one.sha256 == digest), None)


def _digest(source: ImportSource) -> str:
    if source.is_folder:
        return reader.notes_digest(source.path, source.name)
    digest, left = hashlib.sha256(), source.size
    try:
        with open_regular(source.path) as stream:
            while left and (chunk := stream.read(min(left, 2**20))):
                digest.update(chunk)
                left -= len(chunk)
    except OSError as error:
        raise InvalidInput(f"{source.name} cannot be read: {error.strerror}.") from None
    return digest.hexdigest()


def _address(source: ImportSource) -> str:
    return STDIN if source.name == STDIN else mask(str(source.path))


# --- the two passes ---------------------------------------------------------------------------------


def _surveyed(
    source: ImportSource, asked: ImportOptions, progress: Progress, size: HistorySize | None = None
) -> Survey:
    return survey(source, asked, at=lambda read: progress("checking", read, source.size), size=size)


@dataclass(kw_only=True)
class _ImportBatch:
    """What is stored at once, by session; statements of other memories in their order."""

    statements: list[ImportedStatement] = field(default_factory=list[ImportedStatement])
    turns: dict[str, list[NewTurn]] = field(default_factory=dict[str, list[NewTurn]])
    results: dict[str, list[ImportedResult]] = field(default_factory=dict[str, list[ImportedResult]])
    count: int = 0
    chars: int = 0

    def add(self, session: str, one: NewTurn | ImportedResult | ImportedStatement) -> None:
        if isinstance(one, ImportedStatement):
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


def _batches(
    source: ImportSource, found: Survey, asked: ImportOptions, progress: Progress
) -> Generator[_ImportBatch, None, None]:
    """Yield what is to be stored, some hundred turns and results at a time."""
    batch = _ImportBatch()
    for session, one in _placed(source, found, asked, progress):
        batch.add(session, one)
        if batch.is_full:
            yield batch
            batch = _ImportBatch()
    if batch.count:
        yield batch


def _teller(source: ImportSource, asked: ImportOptions) -> str:
    """Return the session in which statements are told."""
    return default_session(source, asked) or "import"


def _placed(
    source: ImportSource, found: Survey, asked: ImportOptions, progress: Progress
) -> Iterator[tuple[str, NewTurn | ImportedResult | ImportedStatement]]:
    places = TurnPlacement(default=default_session(source, asked), start=start(source, found.undated))
    at = partial(progress, "storing")
    for one in turns(source, asked, found.layout, passed=SkippedParts(), at=lambda read: at(read, source.size)):
        match one:
            case ImportedTurn():
                session, turn = places.place(one)
                if not is_blank(turn.content):
                    yield session, turn
            case ImportedResult():
                if one.session is not None and worth(one) == "large":
                    yield one.session, one
            case ImportedStatement():
                yield _teller(source, asked), one
            case ImportProblem():
                if not (one.torn or asked.skip_bad):
                    raise InvalidInput(f"{source.name} changed while it was read. Import it again.")
