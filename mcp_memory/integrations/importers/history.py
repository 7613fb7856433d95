"""Imports a history: checks the whole file, stores it, and notes it as done.

Nothing is stored of a file with a problem unless problems are to be skipped. Turns are stored in batches, each with an
id by which it is recognised: after a kill, whole batches are stored, and the next run stores the rest. A file is done
when it is noted with its SHA-256; a file that has not changed since is not read again. Both passes read by `records`,
so that the second stores exactly what the first has checked.
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
from typing import Any, Literal

from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.keyed import keyed_hash
from mcp_memory.core.private import without_private
from mcp_memory.core.regular_files import modified_ms, open_regular
from mcp_memory.core.secrets.masking import holds_key, mask, mask_id, mask_name, mask_typed
from mcp_memory.core.text import is_blank, safe_name, with_zone
from mcp_memory.core.types import IMPORTED, NewTurn
from mcp_memory.integrations.importers import chat_exports, other_memories
from mcp_memory.integrations.importers.follow import not_kept, worth
from mcp_memory.integrations.importers.reader import (
    At,
    ImportSource,
    Layout,
    SourceValue,
    layout_of,
    notes_digest,
    notes_in_folder,
    remarks,
    values,
)
from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
    generic_records,
)
from mcp_memory.integrations.importers.report import FileReport, HistorySize, Price, State, Survey, estimate_cost
from mcp_memory.longterm.statements import explicit_atom
from mcp_memory.service.memory import Memory
from mcp_memory.service.verbs.administration import StatementToImport
from mcp_memory.store.values import Imported, NewAtom

Progress = Callable[[str, int, int], None]
"""Receives what is being done, the bytes of the file behind the reader, and all of its bytes."""
Forgotten = Callable[[Sequence[NewTurn], str, Sequence[Sequence[str]]], int]
"""Counts the turns of a session, and the statements by their wordings, that were forgotten and stay so."""
Format = Literal["auto", "jsonl", "seed", "chatgpt", "claude-ai", "memory-server", "mem0", "basic-memory", "mempalace"]
AnyRecord = ImportedTurn | ImportedResult | ImportedStatement | ImportProblem

STDIN = "-"
FILES = "imported files"
"""The purpose of the secret that keys the hashes of imported files."""
STEP = timedelta(milliseconds=100)
BATCH = 500
BATCH_CHARS = 8 * 2**20
_RACE = timedelta(seconds=2)
"""A file written so shortly before it was noted may have been written again since, with the same mtime."""
_SHOWN = 20
"""Problems that are listed."""
_ENOUGH = 10_000
"""Problems after which a file is not read on: none of it will be stored, and it may be no history at all."""
_ENDINGS = re.compile(r"(\.(jsonl|ndjson|json|txt|zip))?(\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """`session` is where turns belong that name none; by default, the file's name. `again` reads known files again."""

    session: str | None = None
    format: Format = "auto"
    skip_bad: bool = False
    again: bool = False


def source_of(path: Path, *, name: str | None = None) -> ImportSource:
    """Return a file, or a folder of notes, as it is now. Raises InvalidInput if it cannot be read."""
    shown = name or str(path)
    try:
        found = path.stat()
    except OSError as error:
        raise InvalidInput(f"{shown} cannot be read: {error.strerror}.") from None
    if path.is_dir() and (files := notes_in_folder(path)):
        modified = max(modified_ms(file.stat()) for file in files)
        size = sum(file.stat().st_size for file in files)
        return ImportSource(path=path.absolute(), name=shown, size=size, modified=modified, is_folder=True)
    if not path.is_file():
        raise InvalidInput(f"{shown} is not a file. Name the files to import, as with {shown.rstrip('/')}/*.jsonl.")
    return ImportSource(path=path.absolute(), name=shown, size=found.st_size, modified=modified_ms(found))


async def import_file(
    memory: Memory, source: ImportSource, asked: ImportOptions, *, now: datetime, progress: Progress
) -> FileReport:
    """Store the turns of a file. Raises InvalidInput if it cannot be read at all."""
    files = [] if asked.again else await memory.imported()
    if known := await to_thread(_untouched, files, source):
        return _unchanged(source, known)
    digest = await to_thread(_digest, source, await memory.secret(FILES))
    noted = Imported(path=await to_thread(_address, source), sha256=digest, modified=source.modified, turns=0, at=now)
    if known := _with_digest(files, digest):
        await memory.note_import(replace(noted, turns=known.turns))
        return _unchanged(source, known)
    found = await to_thread(partial(survey, source, asked, at=_told(progress, "checking", source)))
    if found.bad and not asked.skip_bad:
        return _report(source, found, "refused")
    found.kept = 0
    with closing(_batches(source, found, asked, _told(progress, "storing", source))) as batches:
        while batch := await to_thread(partial(next, batches, None)):
            for session, new in batch.turns.items():
                found.add(await memory.record_turns(new, session=session))
            for session, results in batch.results.items():
                found.kept += await _keep(memory, session, results)
            if batch.statements:
                session = _statement_session(source, asked)
                atoms = await to_thread(partial(statement_atoms, batch.statements, session=session, now=now))
                done = await memory.tell(atoms)
                found.told, found.held = found.told + done.told, found.held + done.held
                found.repeated, found.forgotten = found.repeated + done.repeated, found.forgotten + done.kept_out
    await memory.note_import(replace(noted, turns=found.turns + found.statements))
    return _report(source, found, "stored")


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
    secret: bytes = b"",
) -> FileReport:
    """Preview `import_file`: the counts, and the cost of a model reading it. Writes nothing; blocks.

    `files` are those known to the memory, by hashes keyed with its `secret`. Duplicates are only known once stored.
    Turns are added to `within`.
    """
    if (
        files
        and not asked.again
        and (known := _untouched(files, source) or _with_digest(files, _digest(source, secret)))
    ):
        return _unchanged(source, known)
    size = HistorySize(settings.batch_turns, within)
    found = survey(source, asked, at=_told(progress, "checking", source), size=size)
    if found.bad and not asked.skip_bad:
        return _report(source, found, "refused")
    if forgotten is not None:
        with closing(_batches(source, found, asked, _told(progress, "comparing", source))) as batches:
            for batch in batches:
                found.forgotten += sum(forgotten(new, session, ()) for session, new in batch.turns.items())
                if batch.statements:
                    session = _statement_session(source, asked)
                    atoms = statement_atoms(batch.statements, session=session, now=datetime.now(UTC))
                    found.forgotten += forgotten((), session, [one.wordings for one in atoms])
    cost = estimate_cost(size, settings, price)
    return _report(source, found, "seen", noise=size.noise, cost=cost)


def _unchanged(source: ImportSource, known: Imported) -> FileReport:
    note = f"It was imported on {known.at:%Y-%m-%d} and has not changed; --again reads it once more."
    return FileReport(file=source.name, state="known", turns=known.turns, notes=[note])


def _report(source: ImportSource, found: Survey, state: State, **more: Any) -> FileReport:
    return found.report(source.name, state, start=_start(source, 0), **more)


def _told(progress: Progress, doing: str, source: ImportSource) -> At:
    return lambda read: progress(doing, read, source.size)


async def _keep(memory: Memory, session: str, results: Sequence[ImportedResult]) -> int:
    """Keep the results that the session does not hold yet, and return how many that were."""
    new = await not_kept(memory, session, results)
    for one in new:
        tool = one.tool or "tool"
        await memory.keep_tool_result(
            tool, one.text, arguments=one.arguments, tool_call_id=one.call, session=session, at=one.said_at
        )
    return len(new)


def statement_atoms(statements: Sequence[ImportedStatement], *, session: str, now: datetime) -> list[StatementToImport]:
    """Return statements as explicit atoms, secrets masked: the imported file's word, so neither rule nor trait.

    Each is valid from the past time at which the other memory noted it, else from now.
    """
    return [
        StatementToImport(
            atom=_atom(one, session=session, now=now),
            id=one.id and mask_id(one.id),
            words=mask_typed(one.words),
        )
        for one in statements
    ]


def _atom(one: ImportedStatement, *, session: str, now: datetime) -> NewAtom:
    entity, relation, value = map(mask, one.fact) if one.fact else (None, None, None)
    valid_from = min(one.said_at or now, now)
    fact: dict[str, Any] = {"entity": entity, "relation": relation, "value": value}
    atom = explicit_atom(
        mask(one.text), kind="episodic", session=session, supersedes=(), valid_from=valid_from, source="import", **fact
    )
    return replace(atom, entities=tuple(filter(None, (mask_typed(name) for name in one.about))), single_valued=False)


# --- known files ------------------------------------------------------------------------------------


def _untouched(files: Sequence[Imported], source: ImportSource) -> Imported | None:
    """Return the import of a file that was not written to since; a folder has to be read to tell."""
    if source.is_folder:
        return None
    seen = (_address(source), source.modified)
    written = datetime.fromtimestamp(source.modified / 1000, UTC)
    return next((one for one in files if (one.path, one.modified) == seen and written + _RACE < one.at), None)


def _with_digest(files: Sequence[Imported], digest: str) -> Imported | None:
    return next((one for one in files if one.sha256 == digest), None)


def _digest(source: ImportSource, secret: bytes) -> str:
    """Return a keyed hash of a file, whose text is not masked."""
    return keyed_hash(secret, _plain_digest(source), digits=64)


def _plain_digest(source: ImportSource) -> str:
    if source.is_folder:
        return notes_digest(source.path, source.name)
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


# --- reading ----------------------------------------------------------------------------------------


def survey(source: ImportSource, asked: ImportOptions, *, at: At, size: HistorySize | None = None) -> Survey:
    """Read all of a file. Problems are counted and listed by place; turns are added to `size`."""
    layout = _layout(source, asked)
    found = Survey(layout=layout, remarks=list(remarks(source, layout)))
    places = TurnPlacement(default=_default_session(source, asked), start=_start(source, 0))
    for one in records(source, asked, layout, passed=found.passed, at=at):
        match one:
            case ImportedTurn():
                placed = places.place(one)
                if is_blank(one.content):
                    found.without_text += 1
                    continue
                found.count(one.said_at)
                if size is not None:
                    size.add(*placed)
            case ImportedResult():
                kind = worth(one)
                found.kept += kind == "large"
                found.small += kind == "small"
                if kind == "ours":
                    found.passed.left[chat_exports.OWN] += 1
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


def _layout(source: ImportSource, asked: ImportOptions) -> Layout:
    seen = layout_of(source)  # in any case: it refuses what is not text
    if seen == "notes" and asked.format not in ("auto", "basic-memory", "mempalace"):
        raise InvalidInput(f"{source.name} is Markdown. Leave --format out, or say basic-memory or mempalace.")
    if asked.format not in ("jsonl", "seed"):
        return seen
    if seen == "archive":
        raise InvalidInput(f"{source.name} is a zip archive. Leave --format out, or unpack it first.")
    return "lines" if asked.format == "jsonl" else "document"


def records(
    source: ImportSource, asked: ImportOptions, layout: Layout, *, passed: SkippedParts, at: At
) -> Iterator[AnyRecord]:
    """Yield the records of a file, in order."""
    for value in values(source, layout, at=at):
        if isinstance(value, ImportProblem):
            yield value
        elif layout == "notes":
            yield from _of_note(value, asked.format, passed)
        else:
            yield from _of_value(value, asked.format, passed)


def _of_note(value: SourceValue, format: Format, passed: SkippedParts) -> Iterator[AnyRecord]:  # noqa: A002
    text, name = str(value.value), value.where
    if format != "basic-memory" and other_memories.is_room(text):
        yield from other_memories.mempalace_records(text, name, passed)
    elif format != "basic-memory" and other_memories.is_index(text):
        passed.left["indexes"] += 1
    elif format == "basic-memory" or (format == "auto" and other_memories.is_note(text)):
        yield from other_memories.basic_memory_records(text, name, passed)
    else:
        passed.left["other files of Markdown"] += 1


_SHAPES: Sequence[tuple[Format, Callable[[Any], bool]]] = (
    ("chatgpt", chat_exports.is_chatgpt_conversation),
    ("claude-ai", chat_exports.is_claude_ai_conversation),
    ("memory-server", other_memories.is_graph),
    ("mem0", other_memories.is_mem0),
)


def _of_value(value: SourceValue, format: Format, passed: SkippedParts) -> Iterator[AnyRecord]:  # noqa: A002
    """Yield the records of a JSON value, read as the given format or, with `auto`, as its shape says."""
    shape = next((name for name, fits in _SHAPES if fits(value.value)), "jsonl") if format == "auto" else format
    match shape:
        case "chatgpt":
            yield from chat_exports.chatgpt_records(value.value, value.where, value.number, passed)
        case "claude-ai":
            yield from chat_exports.claude_ai_records(value.value, value.where, value.number, passed)
        case "memory-server":
            yield from other_memories.memory_server_records(value.value, value.where, passed)
        case "mem0":
            yield from other_memories.mem0_records(value.value, value.where, passed)
        case "basic-memory" | "mempalace":
            yield ImportProblem(where=value.where, what=f"is JSON, and what {shape} exports is Markdown.")
        case _:
            seeds_only = shape == "seed"
            yield from generic_records(value.value, value.where, value.number, passed, seeds_only=seeds_only)


def _default_session(source: ImportSource, asked: ImportOptions) -> str | None:
    """Return where turns belong that name no session: as asked, or the file's name without its endings."""
    if asked.session is not None:
        return safe_name(asked.session, what="session")
    if source.name == STDIN:
        return None
    name = _ENDINGS.sub("", source.path.name) or source.path.name
    return mask_name(name)


def _statement_session(source: ImportSource, asked: ImportOptions) -> str:
    return _default_session(source, asked) or "import"


def _start(source: ImportSource, undated: int) -> datetime:
    """Return the guess for the first turn without a time, such that the last one has the time of the file."""
    return datetime.fromtimestamp(source.modified / 1000, UTC) - STEP * undated


# --- storing ----------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _ImportBatch:
    """Records stored at once: turns and results by session, statements in order."""

    statements: list[ImportedStatement] = field(default_factory=list[ImportedStatement])
    turns: dict[str, list[NewTurn]] = field(default_factory=dict[str, list[NewTurn]])
    results: dict[str, list[ImportedResult]] = field(default_factory=dict[str, list[ImportedResult]])
    count: int = 0
    chars: int = 0


def _batches(source: ImportSource, found: Survey, asked: ImportOptions, at: At) -> Generator[_ImportBatch, None, None]:
    """Yield batches of some hundred records to store."""
    places = TurnPlacement(default=_default_session(source, asked), start=_start(source, found.undated))
    batch = _ImportBatch()
    for one in records(source, asked, found.layout, passed=SkippedParts(), at=at):
        match one:
            case ImportedTurn():
                session, turn = places.place(one)
                if is_blank(turn.content):
                    continue
                batch.turns.setdefault(session, []).append(turn)
                batch.chars += len(turn.content)
            case ImportedResult():
                if one.session is None or worth(one) != "large":
                    continue
                batch.results.setdefault(one.session, []).append(one)
                batch.chars += len(one.text)
            case ImportedStatement():
                batch.statements.append(one)
                batch.chars += len(one.text)
            case ImportProblem():
                if not (one.torn or asked.skip_bad):
                    raise InvalidInput(f"{source.name} changed while it was read. Import it again.")
                continue
        batch.count += 1
        if batch.count >= BATCH or batch.chars >= BATCH_CHARS:
            yield batch
            batch = _ImportBatch()
    if batch.count:
        yield batch


@dataclass(slots=True)
class _SessionClock:
    """A session, the last known time in it, and the number of turns since."""

    name: str
    clock: datetime | None = None
    since: int = 0


class TurnPlacement:
    """Gives each turn of a file its session, its time, and an id by which it is recognised.

    `default` is the session of turns that name none, `start` the guess for the first one without a time; a guess is 100
    ms after the turn before. The id depends on the turn and not on the file: its own id; else its session, role, name,
    words and time, and the number of turns in the session since that time, so that two equal turns are stored twice. A
    guess is part neither of the id nor of the turn's hash: the history is recognised in a file of another date.
    """

    def __init__(self, *, default: str | None, start: datetime) -> None:
        self._default = default
        self._next = start
        self._sessions: dict[str, _SessionClock] = {}
        self.renamed: dict[str, str] = {}
        """Session names that could not be kept, and their replacements."""
        self.undated = 0

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def place(self, told: ImportedTurn) -> tuple[str, NewTurn]:
        """Return the session's name and the turn, without private passages, on which its id must not depend."""
        if told.role != "tool":
            told = replace(told, content=without_private(told.content), name=told.name and without_private(told.name))
        session = self._session(told)
        said_at = told.said_at
        if said_at is not None and said_at != session.clock:
            session.clock, session.since = said_at, 0
        turn = NewTurn(
            role=told.role,
            content=told.content,
            name=told.name,
            said_at=said_at or self._guess(session, told.began),
            client_id=told.id or _content_id(session, told),
            guessed=said_at is None,
        )
        session.since += 1
        return session.name, turn

    def _guess(self, session: _SessionClock, began: datetime | None) -> datetime:
        self.undated += 1
        known = session.clock or began
        if known is None:
            self._next += STEP
            return self._next - STEP
        try:
            return with_zone(known + STEP * session.since)
        except (OverflowError, ValueError):  # there is no later moment
            return known

    def _session(self, told: ImportedTurn) -> _SessionClock:
        name = told.session
        if not name and self._default is None:
            raise InvalidInput(f"{told.where} names no session. Say with --session where such turns belong.")
        if not name:
            name = f"{self._default}-{told.conversation}" if told.conversation > 1 else str(self._default)
        if name not in self._sessions:
            self._sessions[name] = _SessionClock(self._kept_name(name))
        return self._sessions[name]

    def _kept_name(self, name: str) -> str:
        """Return the name, or a similar one without secrets if it cannot be part of a file name."""
        try:
            if not holds_key(name):
                return safe_name(name, what="session")
        except InvalidInput:
            pass
        shown = mask(name)
        mark = hashlib.sha256(shown.encode()).hexdigest()[:6]
        like = _FORBIDDEN.sub("-", shown).encode()[:_LONGEST_NAME].decode(errors="ignore").strip(" .-")
        self.renamed[name] = f"{like or 'session'}-{mark}"
        return self.renamed[name]


_FORBIDDEN = re.compile(r'[.<>:"/\\|?*\x00-\x1f\x7f]+')
_LONGEST_NAME = 100  # bytes, so that there is room for what distinguishes two names


def _content_id(session: _SessionClock, told: ImportedTurn) -> str:
    clock = "" if session.clock is None else session.clock.astimezone(UTC).isoformat()
    digest = hashlib.sha256(b"mcp-memory import 1\n")
    for part in (session.name, clock, str(session.since), told.role, told.name or "", told.content):
        data = part.encode()
        digest.update(b"%d:" % len(data) + data)
    return f"{IMPORTED}{digest.hexdigest()[:24]}"
