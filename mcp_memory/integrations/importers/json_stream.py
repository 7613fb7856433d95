"""JSON in streams of any size: a value on each line, or arrays and objects that span lines.

Only one value is in memory at a time: an array is read value by value, and so is the list of sessions of a seed. Each
value comes with its line and path, and a line that is not JSON as an `ImportProblem`.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, Any, NoReturn

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers.records import ImportProblem, SourceValue
from mcp_memory.integrations.importers.streams import Readable

BOM = b"\xef\xbb\xbf"
MAX_DOCUMENT_BYTES = 256 * 2**20
_MAX_VALUE_BYTES = 64 * 2**20
_CHUNK = 2**20
_WHITE_SPACE = re.compile(r"[ \t\r\n]+")
_DECODER = json.JSONDecoder(strict=False)  # exports contain raw tabs and line breaks in strings


def parse_json(data: bytes) -> Any:
    """Return the value of these bytes. Raises ValueError or RecursionError if they are not JSON."""
    return _DECODER.decode(data.removeprefix(BOM).decode())


def whole_document(stream: IO[bytes], source: Readable) -> SourceValue | ImportProblem:
    """Return the JSON document of a stream as one value. Raises InvalidInput if it is too large."""
    data = stream.read(MAX_DOCUMENT_BYTES + 1)
    if len(data) > MAX_DOCUMENT_BYTES:
        limit = MAX_DOCUMENT_BYTES // 2**20
        raise InvalidInput(f"{source.name} is larger than {limit} MiB, too large for one JSON document. Split it.")
    return _parse_line(data.removeprefix(BOM).strip(), 1, "document", source)


# --- lines ------------------------------------------------------------------------------------------


def line_values(stream: IO[bytes], source: Readable) -> Iterator[SourceValue | ImportProblem]:
    number = line = 0
    while data := stream.readline(_MAX_VALUE_BYTES + 1):
        line += 1
        if len(data) > _MAX_VALUE_BYTES:
            raise InvalidInput(f"{source.name}, line {line} is longer than {_MAX_VALUE_BYTES // 2**20} MiB. Split it.")
        text = data.removeprefix(BOM).strip() if line == 1 else data.strip()
        if not text:
            continue
        number += 1
        parsed = _parse_line(text, number, f"line {line}", source)
        if isinstance(parsed, ImportProblem) and number > 1 and text.startswith(b"{") and not data.endswith(b"\n"):
            parsed = replace(parsed, what="is incomplete, and will be read when the file has grown.", torn=True)
        yield parsed


def _parse_line(data: bytes, number: int, where: str, source: Readable) -> SourceValue | ImportProblem:
    where = f"{source.within}, {where}" if source.within else where
    try:
        return SourceValue(_DECODER.decode(data.decode()), where, number, source.place)
    except UnicodeDecodeError as error:
        return ImportProblem(where=where, what=f"is not UTF-8 (byte {error.start + 1}). Convert the file to UTF-8.")
    except json.JSONDecodeError as error:
        return ImportProblem(
            where=where, what=f"is not JSON ({error.msg} at character {error.pos + 1}). Repair or remove it."
        )
    except (RecursionError, ValueError):  # nested too deep, or a number with too many digits
        return ImportProblem(where=where, what="is JSON that cannot be read. Remove it.")


# --- documents --------------------------------------------------------------------------------------


def document_values(stream: IO[bytes], source: Readable) -> Iterator[SourceValue]:
    """Yield the values of a document. Raises InvalidInput at the first place that is not JSON."""
    return _Document(stream, source).values()


class _Document:
    """JSON that spans lines, parsed value by value."""

    def __init__(self, stream: IO[bytes], source: Readable) -> None:
        self._stream, self._decoder = stream, codecs.getincrementaldecoder("utf-8-sig")()
        self._name, self._place = source.name, source.place
        self._inside = f"{source.within}, " if source.within else ""
        self._buffer = ""
        self._at = self._counted = 0
        self._line = 1
        self._ended = False
        self._decode = _DECODER.raw_decode
        self._number = 0

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
        return SourceValue(value, where, self._number, self._place)

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
                raise InvalidInput(
                    f"{self._name}, line {self._here()}: a value is nested too deep or has too many digits, so nothing "
                    "of the file was stored. Take it out."
                ) from None
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
