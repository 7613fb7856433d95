"""Reads a file of any size as JSON values or notes: lines, one document, a zip archive, or Markdown files.

The layout is detected from the first bytes: gzip or plain, a JSON value on each line or arrays and objects that span
lines, a zip archive of documents, or a folder or archive of notes in Markdown. A document's array is read value by
value, and so is the list of sessions of a seed; only one value is in memory at a time. Each value comes with its line
and path, and a line that is not JSON as an `ImportProblem`. A file may grow while it is read: it is read up to its size
at the start, so that two passes see the same bytes.

Archives are read in place, and nothing is unpacked to disk. Conversations are in `conversations.json`, in parts of it
(`conversations-000.json`, …), or in a folder of that name, anywhere in the archive. Members whose names would leave the
folder are skipped and named. Encrypted or truncated archives, duplicate members, and members that unpack to far more
than text does are refused before any of them is read. Folders of notes are read without hidden files and links that
lead out of them.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import hashlib
import io
import json
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular, opener
from mcp_memory.core.text import one_line
from mcp_memory.integrations.importers.records import ImportProblem, SourceValue, object_of
from mcp_memory.integrations.importers.refusals import BINARY, refuse_unknown

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_CONVERSATIONS = re.compile(
    r"(?:^|/)conversations(?:[-_ ]?\d+)?\.json$|(?:^|/)conversations/[^/]+\.json$", re.IGNORECASE
)
_MIRROR = re.compile(r"(?:^|/)conversations/[^/]+$", re.IGNORECASE)
_BESIDE = re.compile(
    r"(?:^|/)(?:memories|projects)\.json$|(?:^|/)(?:memories|projects|design_chats)/[^/]+\.json$", re.IGNORECASE
)
"""Other files of an export of Claude.ai that are imported."""
_JSON_NAME = re.compile(r"\.jsonl?$", re.IGNORECASE)
_JSON_START = re.compile(r'\{|\[\s*(?:[{\["\]]|-?\d+(?:\.\d+)?\s*[,\]]|true\b|false\b|null\b|$)')
"""How text begins that may be JSON, unlike `[20.03.26, 09:46]`."""
_NOTE_NAME = re.compile(r"\.md$", re.IGNORECASE)
_NOT_FILES = re.compile(r"(?:^|/)(?:__MACOSX/|\._)|/$")
_UNPACKED = ("conversations*.json", "*/conversations*.json", "conversations/*.json", "*/conversations/*.json")
_ARCHIVES = re.compile(r"\.(?:zip|tar|tgz|gz|7z|rar)$", re.IGNORECASE)

_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""The methods that exports use; the standard library unpacks other methods in pieces of unbounded size."""
_UNKNOWN = "{name} uses an unsupported compression method. Unpack it, and import its conversations.json."
_RATIO = 200
"""Limit of unpacked to packed size. Conversations unpack to 4 to 30 times their size."""
_SMALL = 64 * 2**20
"""Unpacked bytes up to which the ratio does not matter."""
_SHOWN = 3


class _CountedFile(io.FileIO):
    """A file cut to its first `size` bytes. `on_read` is called with the number of bytes read so far."""

    def __init__(self, path: Path, size: int, on_read: Callable[[int], None]) -> None:
        super().__init__(path, opener=opener)
        self._size, self._read, self._at = size, 0, on_read

    def readinto(self, buffer: Any, /) -> int:
        part = memoryview(buffer)[: max(0, self._size - self.tell())]
        count = super().readinto(part) or 0 if len(part) else 0
        self._read = min(self._read + count, self._size)
        self._at(self._read)
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An open archive. `members` contain conversations, in order; `notes` name skipped members."""

    members: Sequence[str]
    notes: Sequence[str]
    packed: zipfile.ZipFile


def is_archive(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is a zip archive."""
    return head.startswith(_MAGIC)


def holds_notes(path: Path) -> bool:
    """Return whether an archive can be read and contains notes, but no conversations."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as packed:
            names = [_path(member) for member in packed.infolist() if not _NOT_FILES.search(_path(member))]
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error):
        return False
    return any(map(_NOTE_NAME.search, names)) and not any(map(_CONVERSATIONS.search, names))


def unpacked_conversations(folder: Path) -> list[Path]:
    """Return the files with conversations of an export that was unpacked into the folder, or into a folder in it."""
    files = {path.relative_to(folder).as_posix(): path for where in _UNPACKED for path in folder.glob(where)}
    names = [name for name, path in files.items() if path.is_file()]
    return [files[names[nth]] for nth in _conversations(names)]


@contextmanager
def open_archive(path: Path, name: str, on_read: Callable[[int], None], *, notes: bool = False) -> Generator[Archive]:
    """Open an archive, called `name` in messages; `on_read` receives the number of bytes read.

    Its members are the files with conversations or, if `notes`, the notes. Raises InvalidInput if it cannot be read or
    has no such member.
    """
    with _translate_errors(name):
        size = path.stat().st_size
        with _buffered(path, size, on_read) as file, zipfile.ZipFile(file) as packed:
            yield _select_members(packed, name, size=size, notes=notes)


def _buffered(path: Path, size: int, on_read: Callable[[int], None]) -> io.BufferedReader:
    return io.BufferedReader(_CountedFile(path, size, on_read), _BLOCK)


@contextmanager
def _translate_errors(name: str) -> Generator[None]:
    """Raise errors of reading or unpacking as InvalidInput."""
    try:
        yield
    except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, struct.error, UnicodeError):
        raise InvalidInput(f"{name} is damaged or truncated: it cannot be unpacked. Download it again.") from None
    except NotImplementedError:
        raise InvalidInput(_UNKNOWN.format(name=name)) from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # a member's offset is negative
            raise InvalidInput(f"{name} is damaged: it cannot be unpacked. Download it again.") from None
        raise InvalidInput(f"{name} cannot be read: {error.strerror or error}.") from None


def _select_members(packed: zipfile.ZipFile, name: str, *, size: int, notes: bool) -> Archive:
    members = [member for member in packed.infolist() if not _NOT_FILES.search(_path(member))]
    safe = [member for member in members if not _escapes_folder(member)]
    if notes:
        chosen = sorted((member for member in safe if _NOTE_NAME.search(_path(member))), key=_path)
    else:
        chosen = [safe[nth] for nth in _conversations([_path(member) for member in safe])]
        more = _BESIDE if chosen else _JSON_NAME
        chosen += [member for member in safe if more.search(_path(member)) and member not in chosen]
    _check(chosen, members, name, size=size)
    return Archive(members=[member.filename for member in chosen], notes=_remarks_on_skipped(members), packed=packed)


def _conversations(paths: Sequence[str]) -> list[int]:
    """Return the indexes of the paths that contain conversations, in natural order.

    Files of a `conversations` folder are used only if no file contains all conversations.
    """
    matches = [nth for nth, path in enumerate(paths) if _CONVERSATIONS.search(path)]
    whole = [nth for nth in matches if not _MIRROR.search(paths[nth])]
    return sorted(whole or matches, key=lambda nth: _natural_key(paths[nth]))


def _natural_key(path: str) -> tuple[str | int, ...]:
    """Return a sort key that puts `conversations-10.json` after `conversations-9.json`."""
    return tuple(int(part) if nth % 2 else part for nth, part in enumerate(re.split(r"(\d{1,18})", path)))


def _path(member: zipfile.ZipInfo) -> str:
    return member.orig_filename.replace("\\", "/")


def _escapes_folder(member: zipfile.ZipInfo) -> bool:
    """Return whether a name, unpacked, would leave the folder."""
    path = _path(member)
    return path.startswith("/") or "\0" in path or ".." in path.split("/") or re.match("[A-Za-z]:", path) is not None


def _check(chosen: Sequence[zipfile.ZipInfo], members: Sequence[zipfile.ZipInfo], name: str, *, size: int) -> None:
    if not chosen:
        raise InvalidInput(
            f"{name} contains no conversations.json; it is not an export of ChatGPT or Claude.ai.{_advice(members)}"
        )
    times = Counter(member.filename for member in chosen)
    if twice := next((member for member in times if times[member] > 1), None):
        raise InvalidInput(f"{name} contains two files named {_shorten(twice)}. Download it again.")
    if any(member.flag_bits & 0x1 for member in chosen):
        raise InvalidInput(f"{name} is encrypted. Unpack it with its password, and import its conversations.json.")
    if any(member.compress_type not in _METHODS for member in chosen):
        raise InvalidInput(_UNKNOWN.format(name=name))
    unpacked, packed = sum(member.file_size for member in chosen), sum(member.compress_size for member in chosen)
    if unpacked > max(_SMALL, _RATIO * min(packed, size)):
        raise InvalidInput(
            f"{name} would unpack to {unpacked / 2**20:,.0f} MiB from {min(packed, size) / 2**20:,.1f}, which no "
            "conversations do. If you trust it, unpack it and import its conversations.json."
        )


def _advice(members: Sequence[zipfile.ZipInfo]) -> str:
    """Return the next step for an archive without conversations."""
    inner = [member.filename for member in members if _ARCHIVES.search(member.filename)]
    if inner:
        return f" It contains other archives ({_name_some(inner)}): extract and import those."
    leaving = [member.filename for member in members if _CONVERSATIONS.search(_path(member))]
    if leaving:
        return f" The name of {_name_some(leaving)} leads out of the archive, so it is not read."
    return " Unpack it, and import the files in it that contain conversations."


def _remarks_on_skipped(members: Sequence[zipfile.ZipInfo]) -> list[str]:
    leaving = [member.filename for member in members if _escapes_folder(member)]
    return [f"Not read, because their names lead out of the archive: {_name_some(leaving)}."] if leaving else []


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(_shorten(name) for name in names[:_SHOWN]) + more


def _shorten(name: str) -> str:
    return one_line(name, 80)


_MAX_NOTE_BYTES = 64 * 2**20


def notes_in_folder(folder: Path) -> list[Path]:
    """Return the Markdown files in a folder and its subfolders, sorted by path."""
    here = folder.resolve()
    notes: list[Path] = []
    for root, folders, files in os.walk(here):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        notes += [Path(root, name) for name in sorted(files) if name.casefold().endswith(".md") and name[0] != "."]
    return [path for path in notes if path.resolve().is_relative_to(here) and path.is_file()]


def note_texts(path: Path, name: str, on_read: Callable[[int], None]) -> Iterator[tuple[str, bytes]]:
    """Yield each file's name, relative to the path, and its bytes. Raises InvalidInput if a file cannot be read."""
    if path.is_file() and _is_packed(path):
        with open_archive(path, name, on_read, notes=True) as packed:
            for member in packed.members:
                with packed.packed.open(member) as stream:
                    yield member, _check_note_size(member, stream.read(_MAX_NOTE_BYTES + 1))
        return
    files = notes_in_folder(path) if path.is_dir() else [path]
    read = 0
    for file in files:
        shown = file.relative_to(path.resolve()).as_posix() if path.is_dir() else file.name
        try:
            with open_regular(file) as stream:
                data = _check_note_size(shown, stream.read(_MAX_NOTE_BYTES + 1))
        except OSError as error:
            raise InvalidInput(f"{shown} in {name} cannot be read: {error.strerror or error}.") from None
        read += len(data)
        on_read(read)
        yield shown, data


def _is_packed(path: Path) -> bool:
    with open_regular(path) as stream:
        return is_archive(stream.read(4))


def notes_digest(folder: Path, name: str) -> str:
    """Return the SHA-256 of the names and bytes of a folder's notes."""
    whole = hashlib.sha256()
    for shown, data in note_texts(folder, name, lambda _: None):
        for part in (shown.encode("utf-8", "surrogateescape"), data):
            whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()


def _check_note_size(name: str, data: bytes) -> bytes:
    if len(data) > _MAX_NOTE_BYTES:
        raise InvalidInput(f"{name} is larger than {_MAX_NOTE_BYTES // 2**20} MiB, too large for a note. Remove it.")
    return data


Layout = Literal["lines", "document", "archive", "notes"]
ReadProgress = Callable[[int], None]
"""Receives the number of bytes read."""

_HEAD = 64 * 2**10
_BLOCK = 2**16
_CHUNK = 2**20
_HEAD_LINES = 20
_MAX_VALUE_BYTES = 64 * 2**20
_MAX_DOCUMENT_BYTES = 256 * 2**20
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")
_BOM = b"\xef\xbb\xbf"
_DECODER = json.JSONDecoder(strict=False)  # exports contain raw tabs and line breaks in strings


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
    """Whether it was found in a folder that was named, and not named."""
    parts: Sequence[Path] = ()
    """Other files that belong to the file."""
    session: str = ""
    """The session of turns that name none, if it is not the file's name."""


def layout_of(source: ImportSource) -> Layout:
    """Detect the layout of a file; text without JSON is `notes`. Raises InvalidInput if it is empty or not UTF-8."""
    if source.is_folder or _NOTE_NAME.search(source.path.name):
        return "notes"
    with open_text(source) as stream:
        head = stream.read(_HEAD)
    if not head.removeprefix(_BOM).strip():
        raise InvalidInput(f"{source.name} is empty.")
    if is_archive(head):
        return "notes" if holds_notes(source.path) else "archive"
    if head.startswith(BINARY) or source.path.suffix == ".pb":
        raise InvalidInput(refuse_unknown(source.name, source.path))
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:64]:
        raise InvalidInput(
            f"{source.name} is not UTF-8; it looks like UTF-16. Convert it first, as with "
            "`iconv -f UTF-16 -t UTF-8 OLD > NEW`."
        )
    text = head.removeprefix(_BOM).decode("utf-8", "replace").strip()
    if (text.startswith("[") and _JSON_START.match(text)) or re.match(r'\{\s*"sessions"\s*:\s*\[', text):
        return "document"
    if len(lines := text.splitlines()) > 1 and not any(map(_JSON_START.match, map(str.lstrip, lines))):
        return "notes"
    first, _, rest = text.partition("\n")
    if not rest or _is_json(first) or rest.lstrip().startswith("{"):
        return "lines"
    return "document" if text.startswith("{") else "lines"


def values(source: ImportSource, layout: Layout, *, on_read: ReadProgress) -> Iterator[SourceValue | ImportProblem]:
    """Yield the values of a file.

    Raises InvalidInput if reading cannot continue, as in an invalid document or a truncated archive.
    """
    match layout:
        case "lines":
            with open_text(source, on_read) as stream:
                yield from _placed(_lines(stream, source), source.path)
        case "document":
            with open_text(source, on_read) as stream:
                yield from _placed(_Document(stream, source.name).values(), source.path)
        case "archive":
            yield from _members(source, on_read)
        case "notes":
            for number, (name, data) in enumerate(note_texts(source.path, source.name, on_read), start=1):
                try:
                    yield SourceValue(data.removeprefix(_BOM).decode(), name, number, _note_path(source, name))
                except UnicodeDecodeError:
                    yield ImportProblem(where=name, what="is not UTF-8. Convert it to UTF-8.")


def _placed(found: Iterator[SourceValue | ImportProblem], path: Path) -> Iterator[SourceValue | ImportProblem]:
    place = path.as_posix()
    return (replace(value, path=place) if isinstance(value, SourceValue) else value for value in found)


def _note_path(source: ImportSource, name: str) -> str:
    return source.path.as_posix() if source.path.name == name else f"{source.path.as_posix()}/{name}"


def read_head(path: Path) -> list[dict[str, Any]]:
    """Return the first objects of a file of JSON lines; empty for another file. Raises InvalidInput if unreadable."""
    head: list[dict[str, Any]] = []
    try:
        with open_regular(path) as stream:
            for _ in range(_HEAD_LINES):
                data = stream.readline(_CHUNK)
                fields = object_of(_json_or_none(data.removeprefix(_BOM)))
                if fields is None and data.strip():
                    return []
                head += [] if fields is None else [fields]
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from None
    return head


def read_text_head(path: Path) -> str:
    """Return the first 64 KiB of a file as text. Raises InvalidInput if it cannot be read."""
    try:
        with open_regular(path) as stream:
            return stream.read(_HEAD).removeprefix(_BOM).decode("utf-8", "replace")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from None


def whole_lines(source: ImportSource, on_read: ReadProgress) -> Iterator[SourceValue | ImportProblem]:
    """Yield the objects of all lines as one list, after the problems of lines that are none."""
    lines: list[Any] = []
    with open_text(source, on_read) as stream:
        for value in _lines(stream, source):
            if isinstance(value, ImportProblem):
                yield value
            else:
                lines.append(value.value)
    yield SourceValue(lines, source.path.name, path=source.path.as_posix())


def whole_document(source: ImportSource, on_read: ReadProgress) -> Iterator[SourceValue | ImportProblem]:
    """Yield the JSON document of a file as one value. Raises InvalidInput if it is too large or not JSON."""
    with open_text(source, on_read) as stream:
        data = stream.read(_MAX_DOCUMENT_BYTES + 1)
    if len(data) > _MAX_DOCUMENT_BYTES:
        limit = _MAX_DOCUMENT_BYTES // 2**20
        raise InvalidInput(f"{source.name} is larger than {limit} MiB, too large for one JSON document. Split it.")
    value = _parse_line(data.removeprefix(_BOM).strip(), 1, "document")
    yield replace(value, path=source.path.as_posix()) if isinstance(value, SourceValue) else value


def first_value(path: Path) -> Any:
    """Return the first JSON value of a file; None if there is none, or if it cannot be read."""
    try:
        with open_regular(path) as stream:
            found = next(_Document(stream, path.name).values(), None)
    except (InvalidInput, OSError, ValueError):
        return None
    return None if found is None else found.value


def is_conversations(path: Path) -> bool:
    """Return whether a file's name is that of a file with the conversations of an export."""
    return _CONVERSATIONS.search(path.as_posix()) is not None


def read_json(path: Path) -> Any:
    """Return the JSON document of a file. Raises InvalidInput if it cannot be read, is too large, or is not JSON."""
    try:
        with open_regular(path) as stream:
            data = stream.read(_MAX_DOCUMENT_BYTES + 1)
        if len(data) <= _MAX_DOCUMENT_BYTES:
            return _DECODER.decode(data.removeprefix(_BOM).decode())
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path} is not JSON. Repair or remove it.") from None
    raise InvalidInput(f"{path} is larger than {_MAX_DOCUMENT_BYTES // 2**20} MiB, too large for one JSON document.")


def remarks(source: ImportSource, layout: Layout) -> Sequence[str]:
    """Return remarks on skipped members of a file."""
    if layout != "archive" and not (layout == "notes" and source.path.is_file() and _is_packed(source.path)):
        return []
    with open_archive(source.path, source.name, _ignore_progress, notes=layout == "notes") as archive:
        return archive.notes


def _members(source: ImportSource, on_read: ReadProgress) -> Iterator[SourceValue | ImportProblem]:
    number = 0
    with open_archive(source.path, source.name, on_read) as archive:
        for member in archive.members:
            with archive.packed.open(member) as stream:
                document = _Document(stream, f"{source.name}, {member}", inside=f"{member}, ", after=number)
                for value in document.values():
                    is_optional = not _CONVERSATIONS.search(member)
                    yield replace(value, path=f"{source.path.as_posix()}/{member}", is_optional=is_optional)
                    number = value.number


def _is_json(text: str) -> bool:
    return _json_or_none(text) is not None or text.strip() == "null"


def _json_or_none(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# --- bytes ------------------------------------------------------------------------------------------


def _ignore_progress(_: int) -> None: ...


@contextmanager
def open_text(source: ImportSource, on_read: ReadProgress = _ignore_progress) -> Generator[io.BufferedIOBase]:
    """Open the text of a file, unpacked. Errors of reading it are raised as InvalidInput."""
    with _translate_errors(source.name), _buffered(source.path, source.size, on_read) as packed:
        yield gzip.GzipFile(fileobj=packed) if packed.peek(2)[:2] == b"\x1f\x8b" else packed


# --- lines ------------------------------------------------------------------------------------------


def _lines(stream: io.BufferedIOBase, source: ImportSource) -> Iterator[SourceValue | ImportProblem]:
    number = line = 0
    while data := stream.readline(_MAX_VALUE_BYTES + 1):
        line += 1
        if len(data) > _MAX_VALUE_BYTES:
            raise InvalidInput(f"{source.name}, line {line} is longer than {_MAX_VALUE_BYTES // 2**20} MiB. Split it.")
        text = data.removeprefix(_BOM).strip() if line == 1 else data.strip()
        if not text:
            continue
        number += 1
        parsed = _parse_line(text, number, f"line {line}")
        if isinstance(parsed, ImportProblem) and number > 1 and text.startswith(b"{") and not data.endswith(b"\n"):
            parsed = replace(parsed, what="is incomplete, and will be read when the file has grown.", torn=True)
        yield parsed


def _parse_line(data: bytes, number: int, where: str) -> SourceValue | ImportProblem:
    try:
        return SourceValue(_DECODER.decode(data.decode()), where, number)
    except UnicodeDecodeError as error:
        return ImportProblem(where=where, what=f"is not UTF-8 (byte {error.start + 1}). Convert the file to UTF-8.")
    except json.JSONDecodeError as error:
        return ImportProblem(
            where=where, what=f"is not JSON ({error.msg} at character {error.pos + 1}). Repair or remove it."
        )
    except (RecursionError, ValueError):  # nested too deep, or a number with too many digits
        return ImportProblem(where=where, what="is JSON that cannot be read. Remove it.")


# --- documents --------------------------------------------------------------------------------------


class _Document:
    """JSON that spans lines, parsed value by value."""

    def __init__(self, stream: io.BufferedIOBase | IO[bytes], name: str, *, inside: str = "", after: int = 0) -> None:
        self._stream, self._decoder = stream, codecs.getincrementaldecoder("utf-8-sig")()
        self._name, self._inside = name, inside
        self._buffer = ""
        self._at = self._counted = 0
        self._line = 1
        self._ended = False
        self._decode = _DECODER.raw_decode
        self._number = after

    def values(self) -> Iterator[SourceValue]:
        while first := self._peek():
            if first == "[":
                yield from self._elements("")
            elif first == "{":
                yield from self._object()
            else:
                self._fail("an array or an object")

    def _object(self) -> Iterator[SourceValue]:
        """Yield a seed's sessions one by one, any other object whole."""
        where, whole, streamed = f"{self._inside}line {self._here()}", dict[str, Any](), False
        self._take("{")
        while self._peek() == '"':
            key = self._value()
            self._take(":")
            if key == "sessions" and self._peek() == "[":
                streamed = True
                yield from self._elements("sessions")
            else:
                whole[key] = self._value()
            if self._peek() != ",":
                break
            self._take(",")
        self._take("}")
        if not streamed:
            yield self._next(where, whole)

    def _elements(self, path: str) -> Iterator[SourceValue]:
        self._take("[")
        index = 0
        while self._peek() not in ("]", ""):
            where = f"{self._inside}line {self._here()}, {path}[{index}]"
            yield self._next(where, self._value())
            index += 1
            if self._peek() != ",":
                break
            self._take(",")
        self._take("]")

    def _next(self, where: str, value: Any) -> SourceValue:
        self._number += 1
        return SourceValue(value, where, self._number)

    # characters

    def _peek(self) -> str:
        """Skip white space, and return the next character; empty at the end."""
        while True:
            if space := _WHITE_SPACE.match(self._buffer, self._at):
                self._at = space.end()
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _take(self, char: str) -> None:
        if self._peek() != char:
            self._fail(f"{char!r}")
        self._at += 1

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if not (self._may_go_on(error) and self._more()):
                    self._fail("a JSON value", error)
            except (RecursionError, ValueError):
                self._fail("a value that can be read")
            else:
                if end < len(self._buffer) or not self._more():  # a number may continue in the next block
                    self._at = end
                    return value

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Return whether a parse error may be due to a value whose end has not been read yet."""
        return _is_unterminated(error) or error.pos > len(self._buffer) - 16

    def _more(self) -> bool:
        """Read on, doubling the buffer, so that a long value is not parsed too often. Return False at the end."""
        if self._ended:
            return False
        self._here()
        rest = self._buffer[self._at :]
        if len(rest) > _MAX_VALUE_BYTES:
            raise InvalidInput(
                f"{self._name}, line {self._line}: a value is longer than {_MAX_VALUE_BYTES // 2**20} MiB. "
                "Split it, or write each conversation on a line of its own."
            )
        try:
            data = self._stream.read(min(max(_CHUNK, len(rest)), _MAX_VALUE_BYTES + 1 - len(rest)))
            more = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError:
            raise InvalidInput(f"{self._name} is not UTF-8 after line {self._line}. Convert it to UTF-8.") from None
        self._ended = not data
        self._buffer, self._at, self._counted = rest + more, 0, 0
        return not self._ended

    def _here(self) -> int:
        """Return the current line."""
        self._line += self._buffer.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _fail(self, expected: str, error: json.JSONDecodeError | None = None) -> NoReturn:
        at = self._line + self._buffer.count("\n", self._counted, self._at if error is None else error.pos)
        ends = not self._peek() if error is None else _is_unterminated(error) or error.pos >= len(self._buffer)
        actual = "the end of the file" if ends else "something else"
        why = f" ({error.msg})" if error else ""
        raise InvalidInput(
            f"{self._name}, line {at}: expected {expected}, found {actual}{why}. Nothing after it can be read, "
            "so nothing of the file was stored. Repair it, or write one JSON object per line."
        )


def _is_unterminated(error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated string")
