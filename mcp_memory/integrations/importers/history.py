"""Imports a history: checks the whole file, stores it, and records the import.

Nothing is stored of a file with a problem unless problems are to be skipped. Turns are stored in batches. A turn is
recognised by its id, so after a kill the next run stores only the remaining turns. An import is
recorded with the file's SHA-256; a file that has not changed since is not read again. Both passes read by `records`, so
that the second stores exactly what the first has checked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.keyed_hash import keyed_hash
from mcp_memory.core.regular_files import modified_ms, open_regular
from mcp_memory.core.secrets.masking import mask, mask_id, mask_name, mask_typed
from mcp_memory.core.text import is_blank, safe_name
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.file_records import layout_for, records
from mcp_memory.integrations.importers.follow import classify_result, select_new_results
from mcp_memory.integrations.importers.format_table import whole_file_format
from mcp_memory.integrations.importers.parts import NOT_REMEMBERED, SUB_AGENTS
from mcp_memory.integrations.importers.placement import STEP, PlacedTurn, TurnPlacement, without_stored
from mcp_memory.integrations.importers.reader import ImportOptions, ImportSource, notes_digest, notes_in_folder
from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
)
from mcp_memory.integrations.importers.refusals import refuse_unknown, refuse_without_turns
from mcp_memory.integrations.importers.report import FileReport, HistorySize, Price, Survey, estimate_cost
from mcp_memory.integrations.importers.streams import ReadProgress
from mcp_memory.longterm.statements import explicit_atom
from mcp_memory.service.memory import Memory
from mcp_memory.service.verbs.administration import StatementToImport
from mcp_memory.store.values import Imported, NewAtom

Progress = Callable[[str, int, int], None]
"""Receives the name of the step, the bytes read and the size of the file."""
Forgotten = Callable[[Sequence[NewTurn], str, Sequence[Sequence[str]]], int]
"""Counts the turns of a session and the statements (by their wordings) that were forgotten, and stay forgotten."""

STDIN = "-"
FILES = "imported files"
"""The purpose of the secret that keys the hashes of imported files."""
BATCH = 500
BATCH_CHARS = 8 * 2**20
_RACE = timedelta(seconds=2)
"""A file modified this shortly before its import may have been modified again with the same mtime."""
_FIRST = 3
"""The number of turns by which a file is recognised that was moved."""
_SHOWN = 20
"""The number of problems that are listed."""
_ENOUGH = 10_000
"""The number of problems after which reading stops: nothing will be stored, and it may not be a history."""
_ENDINGS = re.compile(r"(\.(jsonl|ndjson|json|txt|zip))?(\.gz)?$", re.IGNORECASE)


def source_of(path: Path, *, name: str | None = None, is_found: bool = False) -> ImportSource:
    """Return the source for a file or a folder of notes; `is_found` if only a folder around it was named.

    Raises InvalidInput if it cannot be read.
    """
    shown = name or str(path)
    try:
        stat = path.stat()
    except OSError as error:
        raise InvalidInput(f"{shown} cannot be read: {error.strerror}.") from None
    if path.is_dir() and (files := notes_in_folder(path)):
        modified = max(modified_ms(file.stat()) for file in files)
        size = sum(file.stat().st_size for file in files)
        return ImportSource(path=path.absolute(), name=shown, size=size, modified=modified, is_folder=True)
    if not path.is_file():
        raise InvalidInput(f"{shown} is not a file. Name the files to import, as with {shown.rstrip('/')}/*.jsonl.")
    form = whole_file_format(path)
    parts = [part for part in form.parts(path.absolute()) if part.is_file()] if form is not None else []
    modified = max(map(modified_ms, (stat, *(part.stat() for part in parts))))
    return ImportSource(
        path=path.absolute(), name=shown, size=stat.st_size, modified=modified, parts=parts, is_found=is_found
    )


async def import_file(
    memory: Memory, source: ImportSource, options: ImportOptions, *, now: datetime, progress: Progress
) -> FileReport:
    """Store the turns, results and statements of a file, record the import, and return the report.

    Nothing is stored if the file has not changed since an import, or has problems that are not to be skipped. Raises
    InvalidInput if it cannot be read at all.
    """
    imported = await memory.imported()
    files = [] if options.again else imported
    if earlier := await to_thread(_find_unchanged, files, source):
        return _unchanged(source, earlier)
    digest = await to_thread(_digest, source, await memory.secret(FILES))
    record = Imported(path=await to_thread(_address, source), sha256=digest, modified=source.modified, turns=0, at=now)
    if earlier := _find_by_digest(files, digest):
        await memory.note_import(replace(record, turns=earlier.turns))
        return _unchanged(source, earlier)
    source = await _with_separate_session(memory, source, options, imported)
    contents = await to_thread(partial(survey, source, options, on_read=_progress_for(progress, "checking", source)))
    await to_thread(_refuse_empty, source, contents)
    if contents.bad and not options.skip_bad:
        return contents.report(source.name, "refused")
    contents.kept = 0
    with closing(_batches(source, contents, options, _progress_for(progress, "storing", source))) as batches:
        while batch := await to_thread(partial(next, batches, None)):
            for session, placed in batch.turns.items():
                if turns := await without_stored(memory, session, placed, contents):
                    contents.add_turns(await memory.record_turns(turns, session=session))
            for session, results in batch.results.items():
                contents.kept += await _keep_results(memory, session, results)
            if batch.statements:
                session = _statement_session(source, options)
                atoms = await to_thread(partial(statement_atoms, batch.statements, session=session, now=now))
                contents.add_statements(await memory.tell(atoms))
    await memory.note_import(replace(record, turns=contents.turns + contents.statements))
    return contents.report(source.name, "stored")


def preview_file(
    source: ImportSource,
    options: ImportOptions,
    settings: Settings,
    *,
    price: Price,
    files: Sequence[Imported] = (),
    progress: Progress,
    within: HistorySize | None = None,
    forgotten: Forgotten | None = None,
    secret: bytes = b"",
) -> FileReport:
    """Return what `import_file` would store, and the estimated cost of extraction. Writes nothing; blocks.

    `files` are the recorded imports, whose hashes are keyed with `secret`. Turns that are stored already are counted
    too, because only the import recognises them. If given, `within` sums up all previewed files.
    """
    if files and not options.again:
        earlier = _find_unchanged(files, source) or _find_by_digest(files, _digest(source, secret))
        if earlier is not None:
            return _unchanged(source, earlier)
    size = HistorySize(settings.batch_turns, within)
    contents = survey(source, options, on_read=_progress_for(progress, "checking", source), size=size)
    _refuse_empty(source, contents)
    if contents.bad and not options.skip_bad:
        return contents.report(source.name, "refused")
    if forgotten is not None:
        with closing(_batches(source, contents, options, _progress_for(progress, "comparing", source))) as batches:
            for batch in batches:
                contents.forgotten += sum(
                    forgotten([placed.turn for placed in new], session, ()) for session, new in batch.turns.items()
                )
                if batch.statements:
                    session = _statement_session(source, options)
                    atoms = statement_atoms(batch.statements, session=session, now=datetime.now(UTC))
                    contents.forgotten += forgotten((), session, [atom.wordings for atom in atoms])
    cost = estimate_cost(size, settings, price)
    return contents.report(source.name, "seen", noise=size.noise, cost=cost)


def _unchanged(source: ImportSource, earlier: Imported) -> FileReport:
    note = f"It was imported on {earlier.at:%Y-%m-%d} and has not changed; --again reads it once more."
    return FileReport(file=source.name, state="known", turns=earlier.turns, notes=[note])


def _progress_for(progress: Progress, doing: str, source: ImportSource) -> ReadProgress:
    return lambda read: progress(doing, read, source.size)


async def _keep_results(memory: Memory, session: str, results: Sequence[ImportedResult]) -> int:
    """Keep the results that the session does not have yet, and return their number."""
    new = await select_new_results(memory, session, results)
    for result in new:
        tool = result.tool or "tool"
        await memory.keep_tool_result(
            tool, result.text, arguments=result.arguments, tool_call_id=result.call, session=session, at=result.said_at
        )
    return len(new)


def statement_atoms(statements: Sequence[ImportedStatement], *, session: str, now: datetime) -> list[StatementToImport]:
    """Return statements as explicit atoms, secrets masked. They are events, never rules or traits.

    Each is valid from the past time at which the other memory recorded it, otherwise from now.
    """
    return [
        StatementToImport(
            atom=_atom(statement, session=session, now=now),
            id=statement.id and mask_id(statement.id),
            words=mask_typed(statement.words),
        )
        for statement in statements
    ]


def _atom(statement: ImportedStatement, *, session: str, now: datetime) -> NewAtom:
    entity, relation, value = map(mask, statement.fact) if statement.fact else (None, None, None)
    valid_from = min(statement.said_at or now, now)
    fact: dict[str, Any] = {"entity": entity, "relation": relation, "value": value}
    atom = explicit_atom(
        mask(statement.text),
        kind="episodic",
        session=session,
        supersedes=(),
        valid_from=valid_from,
        source="import",
        **fact,
    )
    return replace(
        atom, entities=tuple(filter(None, (mask_typed(name) for name in statement.about))), single_valued=False
    )


# --- known files ------------------------------------------------------------------------------------


def _find_unchanged(files: Sequence[Imported], source: ImportSource) -> Imported | None:
    """Return the import of this file if it was not modified since. None for a folder, which has to be read to know."""
    if source.is_folder:
        return None
    seen = (_address(source), source.modified)
    written = datetime.fromtimestamp(source.modified / 1000, UTC)
    return next((file for file in files if (file.path, file.modified) == seen and written + _RACE < file.at), None)


def _find_by_digest(files: Sequence[Imported], digest: str) -> Imported | None:
    return next((file for file in files if file.sha256 == digest), None)


def _digest(source: ImportSource, secret: bytes) -> str:
    """Return a keyed hash of a file, because its text is not masked."""
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
        for part in source.parts:
            digest.update(b"\0" + hashlib.sha256(part.read_bytes()).digest())
    except OSError as error:
        raise InvalidInput(f"{source.name} cannot be read: {error.strerror}.") from None
    return digest.hexdigest()


def _address(source: ImportSource) -> str:
    return STDIN if source.name == STDIN else mask(str(source.path))


# --- reading ----------------------------------------------------------------------------------------


def survey(
    source: ImportSource, options: ImportOptions, *, on_read: ReadProgress, size: HistorySize | None = None
) -> Survey:
    """Read a file, store nothing, and return its contents and problems. Turns are also added to `size`.

    Unless problems are to be skipped, reading stops early after very many. Raises InvalidInput if the file
    cannot be read.
    """
    layout = layout_for(source, options)
    contents = Survey(layout=layout, start=_start(source, 0))
    places = TurnPlacement(default=_default_session(source, options), start=contents.start)
    for record in records(source, options, layout, skipped=contents.skipped, on_read=on_read):
        match record:
            case ImportedTurn():
                placed = places.place(record)
                contents.titles += record.name == "title"
                if is_blank(record.content):
                    contents.without_text += 1
                    continue
                contents.count(record.said_at)
                if size is not None:
                    size.add(placed.session, placed.turn)
            case ImportedResult():
                kind = classify_result(record)
                contents.kept += kind == "large"
                contents.small += kind == "small"
                if kind == "ours":
                    contents.skipped.left_out["results of this memory's tools"] += 1
            case ImportedStatement():
                contents.statements += 1
            case ImportProblem(torn=True):
                contents.torn = record
            case ImportProblem():
                contents.bad += 1
                contents.alike[record.kind] += 1
                contents.wrong += [record] if contents.alike[record.kind] == 1 and len(contents.wrong) < _SHOWN else []
                if contents.bad == _ENOUGH and not options.skip_bad:
                    break
    contents.sessions, contents.undated, contents.renamed = places.sessions, places.undated, places.renamed
    return contents


def _refuse_empty(source: ImportSource, contents: Survey) -> None:
    """Raise InvalidInput for a file from which nothing can be imported: it may be of another format than it seems."""
    talk = contents.turns - contents.titles
    is_left_out = {SUB_AGENTS, NOT_REMEMBERED} & contents.skipped.left_out.keys()
    if talk or contents.statements or contents.kept or contents.small or is_left_out:
        return
    if source.is_found and not contents.bad:
        return  # a conversation of a folder may be empty
    formats = contents.skipped.formats
    if contents.bad and formats:
        return  # the problems are listed
    if formats:
        raise InvalidInput(refuse_without_turns(source.name, sorted(formats), contents.skipped))
    problem = str(contents.wrong[0]) if contents.wrong else ""
    raise InvalidInput(refuse_unknown(source.name, source.path, contents.skipped.describe_unread(), problem))


async def _with_separate_session(
    memory: Memory, source: ImportSource, options: ImportOptions, imported: Sequence[Imported]
) -> ImportSource:
    """Return the source with a separate session, if a file with the same name was imported from another folder.

    The file that was imported first keeps the session that is named after the file. So does a file that begins with the
    turns of that session, because it is the first file, moved.
    """
    if options.session is not None or source.name == STDIN or source.is_folder:
        return source
    name, address = _plain_session(source.path), await to_thread(_address, source)
    namesakes = sorted((file for file in imported if _plain_session(Path(file.path)) == name), key=lambda file: file.at)
    if not namesakes or namesakes[0].path == address:
        return source
    first = await to_thread(_first_turns, source, options)
    if first:
        try:
            first = first[: len(await memory.session_turns(name, limit=_FIRST))]
        except NotFound:
            first = []
    stored = await memory.client_turns([id for placed in first for id in placed.ids])
    if first and all(any(id in stored for id in placed.ids) for placed in first):
        return source
    mark = hashlib.sha256(source.path.parent.as_posix().encode("utf-8", "surrogateescape")).hexdigest()[:6]
    return replace(source, session=mask_name(f"{source.path.parent.name}-{name}-{mark}"))


def _first_turns(source: ImportSource, options: ImportOptions) -> list[PlacedTurn]:
    """Return the first turns of a file that name no session."""
    places = TurnPlacement(default=_plain_session(source.path), start=_start(source, 0))
    layout = layout_for(source, options)
    head = islice(records(source, options, layout, skipped=SkippedParts(), on_read=lambda _: None), 20 * _FIRST)
    turns = (
        turn for turn in head if isinstance(turn, ImportedTurn) and not turn.session and not is_blank(turn.content)
    )
    return [places.place(turn) for turn in islice(turns, _FIRST)]


def _plain_session(path: Path) -> str:
    return mask_name(_ENDINGS.sub("", path.name) or path.name)


def _default_session(source: ImportSource, options: ImportOptions) -> str | None:
    """Return the session of turns that name none: from the options, else the file's name without its endings.

    None for standard input. Raises InvalidInput for a session that cannot be part of a file name.
    """
    if options.session is not None:
        return safe_name(options.session, what="session")
    if source.name == STDIN:
        return None
    return source.session or _plain_session(source.path)


def _statement_session(source: ImportSource, options: ImportOptions) -> str:
    return _default_session(source, options) or "import"


def _start(source: ImportSource, undated: int) -> datetime:
    """Return the guessed time of the first of `undated` turns, so that they end at the file's modification time."""
    return datetime.fromtimestamp(source.modified / 1000, UTC) - STEP * undated


# --- storing ----------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class _ImportBatch:
    """Records stored at once: turns and results by session, statements in order."""

    statements: list[ImportedStatement] = field(default_factory=list[ImportedStatement])
    turns: dict[str, list[PlacedTurn]] = field(default_factory=dict[str, "list[PlacedTurn]"])
    results: dict[str, list[ImportedResult]] = field(default_factory=dict[str, list[ImportedResult]])
    count: int = 0
    chars: int = 0


def _batches(
    source: ImportSource, contents: Survey, options: ImportOptions, on_read: ReadProgress
) -> Generator[_ImportBatch, None, None]:
    """Yield batches of some hundred records to store. Raises InvalidInput if the file changed since the survey."""
    places = TurnPlacement(default=_default_session(source, options), start=_start(source, contents.undated))
    batch = _ImportBatch()
    for record in records(source, options, contents.layout, skipped=SkippedParts(), on_read=on_read):
        match record:
            case ImportedTurn():
                placed = places.place(record)
                if is_blank(placed.turn.content):
                    continue
                batch.turns.setdefault(placed.session, []).append(placed)
                batch.chars += len(placed.turn.content)
            case ImportedResult():
                if classify_result(record) != "large":
                    continue
                batch.results.setdefault(places.session_of(record), []).append(record)
                batch.chars += len(record.text)
            case ImportedStatement():
                batch.statements.append(record)
                batch.chars += len(record.text)
            case ImportProblem():
                if not (record.torn or options.skip_bad):
                    raise InvalidInput(f"{source.name} changed while it was read. Import it again.")
                continue
        batch.count += 1
        if batch.count >= BATCH or batch.chars >= BATCH_CHARS:
            yield batch
            batch = _ImportBatch()
    if batch.count:
        yield batch
