"""The records of a file: of the whole file, of its values, of its text, or of the members of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers.archive import is_conversations, open_archive
from mcp_memory.integrations.importers.format import AnyRecord, Format
from mcp_memory.integrations.importers.format_table import (
    GENERIC,
    table,
    text_format,
    value_format,
    whole_file_format,
)
from mcp_memory.integrations.importers.json_stream import whole_document
from mcp_memory.integrations.importers.reader import (
    TEXT_NAME,
    ImportOptions,
    ImportSource,
    Layout,
    layout_of,
    readable_notes,
    text_layout,
    values,
    whole_lines,
)
from mcp_memory.integrations.importers.records import (
    OTHER_MEMBERS,
    OTHER_TEXTS,
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
    SourceValue,
)
from mcp_memory.integrations.importers.refusals import describe_head
from mcp_memory.integrations.importers.streams import Readable, ReadProgress

_UNPACK = "{}, to be unpacked first"
_TO_UNPACK = {".db", ".sqlite", ".sqlite3", ".vscdb", ".zip", ".tar", ".tgz", ".gz", ".7z"}
"""Endings of databases and archives, which are only read as files."""


def layout_for(source: ImportSource, options: ImportOptions) -> Layout | Format:
    """Return how a file is read: as a whole in a format, or in a layout. Raises InvalidInput if it cannot be read."""
    whole = None if source.is_folder else whole_file_format(source.path, options.format)
    if whole is not None:
        return whole
    layout = layout_of(source)  # also with a given format, because it refuses a file that is not text
    form = table().get(options.format)
    if layout == "notes" and form is not None and form.unit == "value":
        raise InvalidInput(f"{source.name} is Markdown. Leave --format out, or use basic-memory or mempalace.")
    if options.format not in ("jsonl", "seed"):
        return layout
    if layout == "archive":
        raise InvalidInput(f"{source.name} is a zip archive. Leave --format out, or unpack it first.")
    return "lines" if options.format == "jsonl" else "document"


def records(
    source: ImportSource,
    options: ImportOptions,
    layout: Layout | Format,
    *,
    skipped: SkippedParts,
    on_read: ReadProgress,
) -> Iterator[AnyRecord]:
    """Yield the records of a file, in order. `layout` is a format if the file is read as a whole."""
    if isinstance(layout, Format):
        yield from whole_records(source.path, source.readable(on_read), layout, skipped)
        on_read(source.size)
    elif layout == "archive":
        yield from _archive_records(source, options, skipped, on_read)
    else:
        files = (
            [source.readable(on_read)] if not source.is_folder else readable_notes(source.path, source.name, on_read)
        )
        for file in files:
            for value in values(file, layout):
                yield from _value_records(value, layout, options.format, skipped)


def whole_records(path: Path, file: Readable, form: Format, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of a file that a format reads as a whole."""
    yield from _format_records(form, form.load(path) if form.load else _whole(file, form), skipped)


def _whole(file: Readable, form: Format) -> Iterator[SourceValue | ImportProblem]:
    if form.unit == "lines":
        yield from whole_lines(file)
    else:
        with file.open() as stream:
            yield whole_document(stream, file)


def _format_records(
    form: Format, source_values: Iterator[SourceValue | ImportProblem], skipped: SkippedParts
) -> Iterator[AnyRecord]:
    skipped.formats.add(form.title)
    for value in source_values:
        if isinstance(value, ImportProblem):
            yield value
        else:
            yield from form.records(value, skipped)


def _value_records(
    value: SourceValue | ImportProblem,
    layout: Layout,
    format: str,  # noqa: A002
    skipped: SkippedParts,
) -> Iterator[AnyRecord]:
    """Yield the records of a value or text, in the given format or, with `auto`, in the first format that matches."""
    if isinstance(value, ImportProblem):
        yield value
        return
    form = table().get(format)
    if form is not None and form.unit == "text" and layout != "notes":
        yield ImportProblem(where=value.where, what=f"is JSON, and what {format} exports is Markdown.")
        return
    form = form or (text_format(value) if layout == "notes" else _value_format(value))
    if form is not None:
        yield from _format_records(form, iter((value,)), skipped)
    elif layout == "notes":
        skipped.left_out[OTHER_TEXTS] += 1
    else:
        yield from table()[GENERIC].records(value, skipped)  # its problems name the missing fields


def _value_format(value: SourceValue) -> Format | None:
    """Return the format of a JSON value; None if it is of no known format."""
    form = value_format(value) or table()[GENERIC]
    return form if form.matches(value.value) else None


# --- archives ---------------------------------------------------------------------------------------


def _archive_records(
    source: ImportSource, options: ImportOptions, skipped: SkippedParts, on_read: ReadProgress
) -> Iterator[AnyRecord]:
    """Yield the records of the members of an archive. Those of no known format are noted in `skipped`."""
    number = 0
    with open_archive(source.path, source.name, on_read) as archive:
        for name in archive.unread:
            skipped.note_unread(_describe_name(name), name)
        for name in archive.leaving:
            skipped.note_unread("names that lead out of the archive", name)
        for member in archive.members:
            before, session = number, options.session or _session_of_member(source, member)
            for record in _member_records(member, options.format, skipped, before):
                if isinstance(record, ImportedTurn | ImportedResult):
                    number = max(number, record.conversation)
                    nth = record.conversation - before
                    own = f"{session}-{nth}" if session and nth > 1 else session
                    record = replace(record, session=record.session or own)
                yield record


def _session_of_member(source: ImportSource, member: Readable) -> str | None:
    """Return the session of turns of a member that name none; None for that of the archive."""
    if is_conversations(member.place) or TEXT_NAME.search(member.place):
        return None
    shown = PurePosixPath(member.within.replace("\\", "/")).with_suffix("").as_posix().replace("/", "-")
    return f"{source.path.stem}-{shown}"


def _describe_name(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return _UNPACK.format(suffix) if suffix in _TO_UNPACK else suffix or "no ending"


def _member_records(
    member: Readable,
    format: str,  # noqa: A002
    skipped: SkippedParts,
    last: int,
) -> Iterator[AnyRecord]:
    """Yield the records of a member. Its conversations are numbered from `last` on."""
    whole = whole_file_format(member, format)
    if whole is not None and whole.load is not None:
        skipped.note_unread(_UNPACK.format(whole.title), member.within)
        return
    if whole is not None:
        numbered = (_numbered(value, last) for value in _whole(member, whole))
        yield from _format_records(whole, numbered, skipped)
        return
    layout = "document" if is_conversations(member.place) else text_layout(member)
    given = table().get(format)
    if layout == "notes" and (given is None or given.unit == "text"):
        yield from _member_text(member, given, skipped)
        return
    is_known, is_empty, others, is_damaged = is_conversations(member.place), True, 0, False
    try:
        for value in values(member, layout):
            is_empty = False
            form = None if isinstance(value, ImportProblem) else _member_format(value, given)
            is_known |= form is not None
            if isinstance(value, ImportProblem) and is_known:
                yield value
            elif form is None:
                others += 1
                is_damaged |= isinstance(value, ImportProblem)
            else:
                yield from _format_records(form, iter((_numbered(value, last),)), skipped)
    except InvalidInput:
        if is_known:
            raise
        is_damaged = True
    if is_known and is_empty:
        skipped.note_unread("without conversations", member.within)
    elif not is_known:
        skipped.note_unread(_describe(member) + ", incomplete or damaged" * is_damaged, member.within)
    elif others:
        skipped.left_out[OTHER_MEMBERS] += others


def _member_format(value: SourceValue, given: Format | None) -> Format | None:
    """Return the format of a member's value: the given one, if the value is of it or the member has conversations."""
    if is_conversations(value.path):
        return given or value_format(value) or table()[GENERIC]
    return _value_format(value) if given is None else given if given.matches(value.value) else None


def _numbered(value: SourceValue | ImportProblem, last: int) -> SourceValue | ImportProblem:
    return value if isinstance(value, ImportProblem) else replace(value, number=last + value.number)


def _member_text(member: Readable, given: Format | None, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of a text. In an archive of conversations, a text that only looks like a note is not read."""
    has_conversations = any(form.title in skipped.formats for form in table().values() if form.unit != "text")
    for value in values(member, "notes"):
        form = given if given is not None or isinstance(value, ImportProblem) else text_format(value)
        if form is not None and not (has_conversations and not form.path):
            yield from _format_records(form, iter((value,)), skipped)
        elif form is None and isinstance(value, ImportProblem) and not has_conversations:
            yield value
        else:
            skipped.note_unread(_describe(member), member.within)


def _describe(member: Readable) -> str:
    with member.open() as stream:
        return describe_head(stream.read(2**16), member.suffix)
