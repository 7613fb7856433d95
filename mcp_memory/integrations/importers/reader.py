"""Reads a file as JSON values or texts: lines, one document, a zip archive, or Markdown files.

The layout is detected from the first bytes: gzip or plain, a JSON value on each line or arrays and objects that span
lines, a zip archive, or a text or a folder of Markdown. A file may grow while it is read: it is read up to its size at
the start, so that two passes see the same bytes. Folders of notes are read without hidden files and links that lead out
of them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular
from mcp_memory.integrations.importers.archive import is_archive
from mcp_memory.integrations.importers.json_stream import (
    BOM,
    MAX_DOCUMENT_BYTES,
    document_values,
    line_values,
    parse_json,
)
from mcp_memory.integrations.importers.records import ImportProblem, SourceValue, object_of
from mcp_memory.integrations.importers.refusals import BINARY, refuse_unknown
from mcp_memory.integrations.importers.streams import Readable, ReadProgress, ignore_progress, readable_file

Layout = Literal["lines", "document", "archive", "notes"]

_JSON_START = re.compile(r'\{|\[\s*(?:[{\["\]]|-?\d+(?:\.\d+)?\s*[,\]]|true\b|false\b|null\b|$)')
"""How text begins that may be JSON, unlike `[20.03.26, 09:46]`."""
_OBJECT_START = re.compile(r'(?:\[\s*)?\{\s*"')
TEXT_NAME = re.compile(r"\.(?:md|markdown|html?)$", re.IGNORECASE)
_HEAD = 64 * 2**10
_HEAD_LINES = 20
_MAX_HEAD_LINE = 2**20
_MAX_NOTE_BYTES = 64 * 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSource:
    """A file to read, or a folder of notes.

    `name` is shown to people, `size` is the number of bytes that are read, and `modified` the mtime in ms since 1970.
    """

    path: Path
    name: str
    size: int
    modified: int
    is_folder: bool = False
    is_found: bool = False
    """Whether the user named a folder around it, and not the file."""
    parts: Sequence[Path] = ()
    """Other files that belong to the file."""
    session: str = ""
    """The session of turns that name none, if it is not the file's name."""

    def readable(self, on_read: ReadProgress = ignore_progress) -> Readable:
        return readable_file(self.path, self.name, self.size, on_read)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Options of an import.

    `session` is the session of turns that name none, by default the file's name. If `again`, files that were imported
    before are read again.
    """

    session: str | None = None
    format: str = "auto"
    skip_bad: bool = False
    again: bool = False


def layout_of(source: ImportSource) -> Layout:
    """Detect the layout of a file; text without JSON is `notes`. Raises InvalidInput if it is empty or not UTF-8."""
    if source.is_folder:
        return "notes"
    file = source.readable()
    head = _head(file)
    if not head.removeprefix(BOM).strip():
        raise InvalidInput(f"{source.name} is empty.")
    if is_archive(head):
        return "archive"
    if head.startswith(BINARY) or source.path.suffix == ".pb":
        raise InvalidInput(refuse_unknown(source.name, source.path))
    if not head[:64].strip(b"\0"):
        raise InvalidInput(f"{source.name} begins with zero bytes, so it is not text. It may be damaged.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:64]:
        raise InvalidInput(
            f"{source.name} is not UTF-8; it looks like UTF-16. Convert it first, as with "
            "`iconv -f UTF-16 -t UTF-8 OLD > NEW`."
        )
    return text_layout(file, head)


def text_layout(file: Readable, head: bytes | None = None) -> Layout:
    """Detect the layout of text from its name and its first bytes."""
    text = (_head(file) if head is None else head).removeprefix(BOM).decode("utf-8", "replace").strip()
    if text.startswith("<") or (TEXT_NAME.search(file.place) and not _OBJECT_START.match(text)):
        return "notes"
    if (text.startswith("[") and _JSON_START.match(text)) or re.match(r'\{\s*"sessions"\s*:\s*\[', text):
        return "document"
    lines = [line.lstrip() for line in text.splitlines() if line.strip()]
    json_lines = sum(_JSON_START.match(line) is not None for line in lines)
    if len(lines) > 1 and not (_JSON_START.match(lines[0]) or json_lines * 2 >= len(lines)):
        return "notes"
    first, _, rest = text.partition("\n")
    if not rest or _is_json(first) or rest.lstrip().startswith("{"):
        return "lines"
    return "document" if text.startswith("{") else "lines"


def _is_json(text: str) -> bool:
    try:
        parse_json(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _head(file: Readable) -> bytes:
    with file.open() as stream:
        return stream.read(_HEAD)


def values(file: Readable, layout: Layout) -> Iterator[SourceValue | ImportProblem]:
    """Yield the JSON values of a file, or its text.

    Raises InvalidInput if reading cannot continue, as in an invalid document or a truncated archive.
    """
    if layout == "notes":
        yield _text(file)
        return
    with file.open() as stream:
        yield from (document_values if layout == "document" else line_values)(stream, file)


def whole_lines(file: Readable) -> Iterator[SourceValue | ImportProblem]:
    """Yield the problems of lines that are not JSON, then the values of all other lines as a list."""
    lines: list[Any] = []
    with file.open() as stream:
        for value in line_values(stream, file):
            if isinstance(value, ImportProblem):
                yield value
            else:
                lines.append(value.value)
    yield SourceValue(lines, _short_name(file), path=file.place)


def read_json(path: Path) -> Any:
    """Return the JSON document of a file. Raises InvalidInput if it cannot be read, is too large, or is not JSON."""
    try:
        with open_regular(path) as stream:
            data = stream.read(MAX_DOCUMENT_BYTES + 1)
        if len(data) <= MAX_DOCUMENT_BYTES:
            return parse_json(data)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not JSON. Repair or remove it.") from None
    raise InvalidInput(f"{path} is larger than {MAX_DOCUMENT_BYTES // 2**20} MiB, too large for one JSON document.")


# --- the beginning of a file ------------------------------------------------------------------------


def first_value(file: Readable) -> Any:
    """Return the first JSON value of a file; None if there is none, or if it cannot be read."""
    try:
        with file.open() as stream:
            return next((value.value for value in document_values(stream, file)), None)
    except (InvalidInput, OSError, ValueError):
        return None


def first_lines(file: Readable) -> list[dict[str, Any]]:
    """Return the first objects of a file of JSON lines; empty for another file. Raises InvalidInput if unreadable."""
    head: list[dict[str, Any]] = []
    with file.open() as stream:
        for data in islice(iter(lambda: stream.readline(_MAX_HEAD_LINE), b""), _HEAD_LINES):
            try:
                fields = object_of(parse_json(data)) if data.strip() else {}
            except (ValueError, RecursionError):
                return []
            if fields is None:
                return []
            head += [fields] if fields else []
    return head


def text_head(file: Readable) -> str:
    """Return the first 64 KiB of a file as text. Raises InvalidInput if it cannot be read."""
    return _head(file).removeprefix(BOM).decode("utf-8", "replace")


# --- texts ------------------------------------------------------------------------------------------


def notes_in_folder(folder: Path) -> list[Path]:
    """Return the Markdown files in a folder and its subfolders, sorted by path."""
    here = folder.resolve()
    notes: list[Path] = []
    for root, folders, files in os.walk(here):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        notes += [Path(root, name) for name in sorted(files) if name.casefold().endswith(".md") and name[0] != "."]
    return [path for path in notes if path.resolve().is_relative_to(here) and path.is_file()]


def readable_notes(folder: Path, name: str, on_read: ReadProgress) -> Iterator[Readable]:
    """Yield the notes of a folder, each with its path in the folder."""
    read = 0
    for path in notes_in_folder(folder):
        shown = path.relative_to(folder.resolve()).as_posix()
        file = readable_file(path, f"{shown} in {name}")
        yield Readable(name=file.name, place=file.place, open=file.open, within=shown)
        read += path.stat().st_size
        on_read(read)


def notes_digest(folder: Path, name: str) -> str:
    """Return the SHA-256 of the names and bytes of a folder's notes."""
    whole = hashlib.sha256()
    for note in readable_notes(folder, name, ignore_progress):
        for part in (note.within.encode("utf-8", "surrogateescape"), _note_bytes(note)):
            whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()


def _text(file: Readable) -> SourceValue | ImportProblem:
    try:
        return SourceValue(_note_bytes(file).removeprefix(BOM).decode(), _short_name(file), path=file.place)
    except UnicodeDecodeError:
        return ImportProblem(where=_short_name(file), what="is not UTF-8. Convert it to UTF-8.")


def _short_name(file: Readable) -> str:
    return file.within or PurePosixPath(file.place).name


def _note_bytes(file: Readable) -> bytes:
    with file.open() as stream:
        data = stream.read(_MAX_NOTE_BYTES + 1)
    if len(data) > _MAX_NOTE_BYTES:
        limit = _MAX_NOTE_BYTES // 2**20
        raise InvalidInput(f"{_short_name(file)} is larger than {limit} MiB, too large for a note. Remove it.")
    return data
