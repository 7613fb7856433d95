"""Streams of the bytes of files and of members of archives, unpacked. Errors of reading are raised as InvalidInput."""

from __future__ import annotations

import errno
import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import opener

ReadProgress = Callable[[int], None]
"""Receives the number of bytes read."""

BLOCK = 2**16
_GZIP = b"\x1f\x8b"


def ignore_progress(_: int) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """A file, or a member of an archive, to be read.

    `name` is shown to people, `place` is the path with `/` between its parts (that of a member begins with that of its
    archive), and `within` begins the places of values.
    """

    name: str
    place: str
    open: Callable[[], AbstractContextManager[IO[bytes]]]
    within: str = ""

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.place).suffix.lower()


def readable_file(path: Path, name: str = "", size: int | None = None, on_read: ReadProgress | None = None) -> Readable:
    """Return a file to be read up to `size` bytes, unpacked if it is packed with gzip."""
    place = path.absolute().as_posix()
    return Readable(
        name=name or str(path), place=place, open=partial(_open_file, path, name or str(path), size, on_read)
    )


@contextmanager
def _open_file(path: Path, name: str, size: int | None, on_read: ReadProgress | None) -> Generator[IO[bytes]]:
    with translate_errors(name):
        limit = path.stat().st_size if size is None else size
        with buffered(path, limit, on_read or ignore_progress) as packed:
            yield cast("IO[bytes]", gzip.GzipFile(fileobj=packed) if packed.peek(2)[:2] == _GZIP else packed)


def buffered(path: Path, size: int, on_read: ReadProgress) -> io.BufferedReader:
    """Open the first `size` bytes of a file; `on_read` receives the number of bytes read so far."""
    return io.BufferedReader(_CountedFile(path, size, on_read), BLOCK)


class _CountedFile(io.FileIO):
    """A file cut to its first `size` bytes. `on_read` is called with the number of bytes read so far."""

    def __init__(self, path: Path, size: int, on_read: ReadProgress) -> None:
        super().__init__(path, opener=opener)
        self._size, self._read, self._at = size, 0, on_read

    def readinto(self, buffer: Any, /) -> int:
        part = memoryview(buffer)[: max(0, self._size - self.tell())]
        count = super().readinto(part) or 0 if len(part) else 0
        self._read = min(self._read + count, self._size)
        self._at(self._read)
        return count


UNKNOWN_METHOD = "{name} uses an unsupported compression method. Unpack it, and import the files in it."


@contextmanager
def translate_errors(name: str) -> Generator[None]:
    """Raise errors of reading or unpacking as InvalidInput."""
    try:
        yield
    except (zipfile.BadZipFile, gzip.BadGzipFile, EOFError, zlib.error, struct.error, UnicodeError):
        raise InvalidInput(f"{name} is damaged or truncated: it cannot be unpacked. Download it again.") from None
    except NotImplementedError:
        raise InvalidInput(UNKNOWN_METHOD.format(name=name)) from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # a member's offset is negative
            raise InvalidInput(f"{name} is damaged: it cannot be unpacked. Download it again.") from None
        raise InvalidInput(f"{name} cannot be read: {error.strerror or error}.") from None
