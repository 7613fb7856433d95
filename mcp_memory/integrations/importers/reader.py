"""Reads the JSON values of a file one after the other, whatever its size: lines, one document, or those of an archive.

What it is is told by its first bytes: gzip or plain, a JSON value on each line or arrays and objects that span lines,
a zip archive with documents in it, or a folder or archive of notes in Markdown. A document's array is read value by
value, and so is the list of sessions of a seed; no more than one value is in memory. Each value comes with the line it
starts on and its path, and a line that is no JSON as a `Wrong`.

A file may grow while it is read: it is read up to the size that it had, so that two passes see the same.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, NoReturn

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import opener
from mcp_memory.integrations.importers import archive, notes
from mcp_memory.integrations.importers.formats.told import Wrong

__all__ = ["Layout", "Source", "Value", "layout", "remarks", "values"]

Layout = Literal["lines", "document", "archive", "notes"]
At = Callable[[int], None]
"""Told how many bytes of the file are read."""

_HEAD = 64 * 2**10
_BLOCK = 2**16
_CHUNK = 2**20
_LONGEST = 64 * 2**20
_NOTE = re.compile(r"\.md$", re.IGNORECASE)
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")
_BOM = b"\xef\xbb\xbf"
_DECODER = json.JSONDecoder(strict=False)  # exports leave tabs and line breaks in strings as they are


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to read, or a folder of notes.

    `name` is what people call it, `size` how much of it is read, `modified` its mtime in ms.
    """

    path: Path
    name: str
    size: int
    modified: int
    is_folder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A value of a file; `number` counts them from 1. Of notes it is the text, and `where` the path."""

    number: int
    where: str
    value: Any


def layout(source: Source) -> Layout:
    """Tell how a file is laid out. InvalidInput where it is no UTF-8 text, or text of another kind."""
    if source.is_folder or _NOTE.search(source.path.name):
        return "notes"
    with _opened(source) as stream:
        head = stream.read(_HEAD)
    if archive.is_archive(head):
        return "notes" if archive.holds_notes(source.path) else "archive"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:64]:
        raise InvalidInput(
            f"{source.name} is not UTF-8; it looks like UTF-16. Convert it first, as with "
            "`iconv -f UTF-16 -t UTF-8 OLD > NEW`."
        )
    text = head.removeprefix(_BOM).decode("utf-8", "replace").strip()
    if text.startswith("[") or re.match(r'\{\s*"sessions"\s*:\s*\[', text):
        return "document"
    if len(lines := text.splitlines()) > 1 and not any(line.lstrip().startswith(("{", "[")) for line in lines):
        raise InvalidInput(
            f"{source.name} holds no JSON, and is no log or export that is known here. "
            "`mcp-memory import --help` says what can be read."
        )
    first, _, rest = text.partition("\n")
    if not rest or _is_json(first) or rest.lstrip().startswith("{"):
        return "lines"
    return "document" if text.startswith("{") else "lines"


def values(source: Source, layout: Layout, *, at: At) -> Iterator[Value | Wrong]:
    """Yield what a file holds. InvalidInput where it cannot be read on: a document that is no JSON, a cut archive."""
    match layout:
        case "lines":
            with _opened(source, at) as stream:
                yield from _lines(stream, source)
        case "document":
            with _opened(source, at) as stream:
                yield from _Document(stream, source.name).values()
        case "archive":
            yield from _members(source, at)
        case "notes":
            for number, (name, data) in enumerate(notes.texts(source.path, source.name, at), start=1):
                try:
                    yield Value(number=number, where=name, value=data.removeprefix(_BOM).decode())
                except UnicodeDecodeError:
                    yield Wrong(where=name, what="is not UTF-8. Convert it to UTF-8.")


def remarks(source: Source, layout: Layout) -> list[str]:
    """Return what is passed over in a file as a whole."""
    if layout != "archive" and not (layout == "notes" and source.path.suffix.casefold() == ".zip"):
        return []
    with archive.opened(source.path, source.name, _nowhere, notes=layout == "notes") as found:
        return found.notes


def _members(source: Source, at: At) -> Iterator[Value | Wrong]:
    number = 0
    with archive.opened(source.path, source.name, at) as found:
        for member in found.members:
            with found.member(member) as stream:
                for value in _Document(stream, f"{source.name}, {member}", inside=f"{member}, ", after=number).values():
                    yield value
                    number = value.number


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# --- bytes ------------------------------------------------------------------------------------------


class _Upto(io.RawIOBase):
    """The first bytes of a file, and how far they are read."""

    def __init__(self, raw: io.FileIO, size: int, at: At) -> None:
        self._raw, self._left, self._read, self._at = raw, size, 0, at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = memoryview(buffer)[: self._left]
        count = self._raw.readinto(part) or 0 if len(part) else 0
        self._left -= count
        self._read += count
        self._at(self._read)
        return count


def _nowhere(_: int) -> None: ...


@contextmanager
def _opened(source: Source, at: At = _nowhere) -> Generator[io.BufferedIOBase]:
    """Open the text of a file, unpacked. What goes wrong in reading it is InvalidInput."""
    try:
        with (
            io.FileIO(source.path, opener=opener) as raw,
            io.BufferedReader(_Upto(raw, source.size, at), _BLOCK) as packed,
        ):
            yield gzip.GzipFile(fileobj=packed) if packed.peek(2)[:2] == b"\x1f\x8b" else packed
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InvalidInput(f"{source.name} is damaged or cut off: it cannot be unpacked. Fetch it again.") from None
    except OSError as error:
        raise InvalidInput(f"{source.name} cannot be read: {error.strerror or error}.") from None


# --- lines ------------------------------------------------------------------------------------------


def _lines(stream: io.BufferedIOBase, source: Source) -> Iterator[Value | Wrong]:
    number = line = 0
    while data := stream.readline(_LONGEST + 1):
        line += 1
        if len(data) > _LONGEST:
            raise InvalidInput(f"{source.name}, line {line} is longer than {_LONGEST // 2**20} MiB. Take it apart.")
        text = data.removeprefix(_BOM).strip() if line == 1 else data.strip()
        if not text:
            continue
        number += 1
        found = _parsed(text, f"line {line}")
        if isinstance(found, Wrong) and number > 1 and text.startswith(b"{") and not data.endswith(b"\n"):
            found = Wrong(where=found.where, what="is cut off, and will be read when the file has grown.", torn=True)
        yield found if isinstance(found, Wrong) else Value(number=number, where=f"line {line}", value=found[0])


def _parsed(data: bytes, where: str) -> tuple[Any] | Wrong:
    try:
        return (_DECODER.decode(data.decode()),)
    except UnicodeDecodeError as error:
        return Wrong(where=where, what=f"is not UTF-8 (byte {error.start + 1}). Convert the file to UTF-8.")
    except json.JSONDecodeError as error:
        return Wrong(where=where, what=f"is not JSON ({error.msg} at character {error.pos + 1}). Mend or remove it.")
    except (RecursionError, ValueError):  # nested thousands deep, or a number of thousands of digits
        return Wrong(where=where, what="is JSON that cannot be read. Remove it.")


# --- documents --------------------------------------------------------------------------------------


class _Document:
    """JSON that spans lines, read value by value."""

    def __init__(self, stream: io.BufferedIOBase | IO[bytes], name: str, *, inside: str = "", after: int = 0) -> None:
        self._text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")  # pyright: ignore[reportArgumentType]
        self._name, self._inside = name, inside
        self._buffer = ""
        self._at = self._counted = 0
        self._line = 1
        self._ended = False
        self._decode = _DECODER.raw_decode
        self._number = after

    def values(self) -> Iterator[Value]:
        while first := self._peek():
            if first == "[":
                yield from self._elements("")
            elif first == "{":
                yield from self._object()
            else:
                self._unfit("an array or an object")

    def _object(self) -> Iterator[Value]:
        """A seed's sessions one by one; any other object whole."""
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

    def _elements(self, path: str) -> Iterator[Value]:
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

    def _next(self, where: str, value: Any) -> Value:
        self._number += 1
        return Value(number=self._number, where=where, value=value)

    # characters

    def _peek(self) -> str:
        """Return the next character that is no white space; empty at the end."""
        while True:
            self._at = _after_white_space(self._buffer, self._at)
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _take(self, char: str) -> None:
        if self._peek() != char:
            self._unfit(f"{char!r}")
        self._at += 1

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if not (self._may_go_on(error) and self._more()):
                    self._unfit("a JSON value", error)
            except (RecursionError, ValueError):
                self._unfit("a value that can be read")
            else:
                if end < len(self._buffer) or not self._more():  # a number at the end may go on
                    self._at = end
                    return value

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Tell whether a value only seems wrong because the rest of it is not read yet."""
        return _unended(error) or error.pos > len(self._buffer) - 16

    def _more(self) -> bool:
        """Read on, as much again as there is, so that a long value is not tried too often."""
        if self._ended:
            return False
        self._here()
        rest = self._buffer[self._at :]
        if len(rest) > _LONGEST:
            raise InvalidInput(
                f"{self._name}, line {self._line}: a value is longer than {_LONGEST // 2**20} MiB. Take it apart, "
                "or write each conversation on a line of its own."
            )
        try:
            more = self._text.read(min(max(_CHUNK, len(rest)), _LONGEST + 1 - len(rest)))
        except UnicodeDecodeError:
            raise InvalidInput(f"{self._name} is not UTF-8 after line {self._line}. Convert it to UTF-8.") from None
        self._ended = not more
        self._buffer, self._at, self._counted = rest + more, 0, 0
        return bool(more)

    def _here(self) -> int:
        """Return the line that is reached."""
        self._line += self._buffer.count("\n", self._counted, self._at)
        self._counted = self._at
        return self._line

    def _unfit(self, expected: str, error: json.JSONDecodeError | None = None) -> NoReturn:
        at = self._line + self._buffer.count("\n", self._counted, self._at if error is None else error.pos)
        ends = not self._peek() if error is None else _unended(error) or error.pos >= len(self._buffer)
        found = "the file ends" if ends else "there is something else"
        why = f" ({error.msg})" if error else ""
        raise InvalidInput(
            f"{self._name}, line {at}: where {expected} should stand, {found}{why}. Nothing after it can be read, "
            "so nothing of the file was stored. Mend it, or write a JSON object a line."
        )


def _after_white_space(text: str, at: int) -> int:
    found = _WHITE_SPACE.match(text, at)
    return at if found is None else found.end()


def _unended(error: json.JSONDecodeError) -> bool:
    return error.msg.startswith("Unterminated string")
