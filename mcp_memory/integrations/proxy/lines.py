"""Messages on the wire: JSON-RPC, one a line. Pure.

A line that is too long to hold comes in pieces, which can be passed on as they arrive: so memory is bounded
whatever the other side sends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

__all__ = [
    "MAX_LINE",
    "Message",
    "NotAMessage",
    "Piece",
    "Splitter",
    "Unread",
    "failure",
    "id_in",
    "key_of",
    "parse",
    "success",
    "to_line",
]

MAX_LINE = 256 * 2**20
"""Bytes of one message that are held. A result of 100 MB fits, its line breaks and quotes escaped."""

CONNECTION_CLOSED = -32000
PARSE_ERROR = -32700

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a line that is too long to hold; `last` where they end it, line break included."""

    data: bytes
    last: bool


class Splitter:
    """Cuts chunks of bytes into lines, without their ends. Linear in the bytes, whatever the chunks."""

    def __init__(self, max_line: int = MAX_LINE) -> None:
        self._max = max_line
        self._held: list[bytes] = []
        self._size = 0
        self._passing = False

    def feed(self, chunk: bytes) -> Iterator[bytes | Piece]:
        """Yield every line that is now complete, and the pieces of one that is too long."""
        *ended, rest = chunk.split(b"\n")
        for end in ended:
            if self._passing:
                self._passing = False
                yield Piece(end + b"\n", last=True)
            else:
                self._held.append(end)
                line = b"".join(self._held)
                self._clear()
                yield line
        if self._passing:
            if rest:
                yield Piece(rest, last=False)
        elif rest:
            self._held.append(rest)
            self._size += len(rest)
            if self._size > self._max:
                self._passing = True
                held = b"".join(self._held)
                self._clear()
                yield Piece(held, last=False)

    def rest(self) -> bytes:
        """Return what came after the last line break."""
        rest = b"".join(self._held)
        self._clear()
        return rest

    def _clear(self) -> None:
        self._held.clear()
        self._size = 0


class NotAMessage(ValueError):
    """The line is no JSON, or JSON of something that is no message."""


class Unread(ValueError):
    """The line may be JSON, but nested deeper or with longer numbers than are read here."""


def parse(line: bytes) -> Message | list[Any]:
    """Return the message, or the batch, that a line is. Raises NotAMessage and Unread."""
    try:
        value: Any = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise NotAMessage(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise Unread(str(error)) from None
    if not isinstance(value, dict | list):
        raise NotAMessage("no object")
    return cast("Message | list[Any]", value)


def to_line(message: Message) -> bytes:
    """Return the message as it is sent. Raises ValueError for a number that JSON cannot write, RecursionError.

    A lone surrogate leaves as the escape that it came as.
    """
    try:
        text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def key_of(id: object) -> str:
    """Return what an id is remembered by: 1 and "1" are two."""
    return json.dumps(id)


def success(id: object, result: Message) -> bytes:
    return to_line({"jsonrpc": "2.0", "id": id, "result": result})


def failure(id: object, text: str, code: int = CONNECTION_CLOSED) -> bytes:
    return to_line({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})


_ID = re.compile(rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.){0,200}")')


def id_in(broken: bytes) -> str | None:
    """Return the key of the id that stands near the start or the end of a line that is no JSON."""
    found = _ID.search(broken[:1_000]) or _ID.search(broken[-1_000:])
    if found is None:
        return None
    try:
        return key_of(json.loads(found[1]))
    except ValueError:
        return None
