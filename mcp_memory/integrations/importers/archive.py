"""Reads the conversations in the zip archive of an export, in place: a member is a stream, nothing is unpacked.

Conversations are in `conversations.json`, in parts of it (`conversations-000.json`, …), or in a folder of that name,
wherever in the archive. An archive without any may hold notes: files of Markdown. Nothing is ever written, so no name
can lead anywhere; members whose names would leave the folder are passed over all the same, and named. What is
encrypted, cut off, there twice, or unpacks to far more than text does is refused before any of it is read.
"""

from __future__ import annotations

import errno
import io
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular, opener
from mcp_memory.core.text import one_line

__all__ = ["Archive", "holds_notes", "is_archive", "opened", "unpacked_in"]

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_CONVERSATIONS = re.compile(
    r"(?:^|/)conversations(?:[-_ ]?\d+)?\.json$|(?:^|/)conversations/[^/]+\.json$", re.IGNORECASE
)
_MIRROR = re.compile(r"(?:^|/)conversations/[^/]+$", re.IGNORECASE)
_NOTES = re.compile(r"\.md$", re.IGNORECASE)
_NOT_FILES = re.compile(r"(?:^|/)(?:__MACOSX/|\._)|/$")
_UNPACKED = ("conversations*.json", "*/conversations*.json", "conversations/*.json", "*/conversations/*.json")
_ARCHIVES = re.compile(r"\.(?:zip|tar|tgz|gz|7z|rar)$", re.IGNORECASE)

_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""How exports are packed, and what is unpacked in pieces of bounded size; the standard library's others are not."""
_UNKNOWN = "{name} is packed in a way that is not known here. Unpack it, and import its conversations.json."
_RATIO = 200
"""Conversations unpack to 4 to 30 times their size. A megabyte that unpacks to a gigabyte is none."""
_SMALL = 64 * 2**20
"""Unpacked bytes that are read whatever they were packed to."""
_SHOWN = 3


class _Counted(io.FileIO):
    """A file that tells how many bytes of it were read."""

    def __init__(self, path: Path, at: Callable[[int], None]) -> None:
        super().__init__(path, opener=opener)
        self._end = os.fstat(self.fileno()).st_size
        self._done = 0
        self._at = at

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size) or b""
        self._done = min(self._done + len(data), self._end)
        self._at(self._done)
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An open archive. `members` hold conversations, in order; `notes` say what was passed over."""

    name: str
    members: Sequence[str]
    notes: list[str] = field(default_factory=list[str])
    packed: zipfile.ZipFile

    @contextmanager
    def member(self, name: str) -> Generator[IO[bytes]]:
        """Open a member as a stream of its unpacked bytes."""
        with _refusing(self.name), self.packed.open(name) as stream:
            yield stream


def is_archive(head: bytes) -> bool:
    """Tell whether a file that begins so is a zip archive."""
    return head.startswith(_MAGIC)


def holds_notes(path: Path) -> bool:
    """Tell whether an archive holds notes and no conversations; one that cannot be read holds none."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as packed:
            names = [_path(one) for one in packed.infolist() if not _NOT_FILES.search(_path(one))]
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile, struct.error):
        return False
    return any(map(_NOTES.search, names)) and not any(map(_CONVERSATIONS.search, names))


def unpacked_in(folder: Path) -> list[Path]:
    """Return the files with conversations of an export that was unpacked into a folder, or into one in it."""
    found = {path.relative_to(folder).as_posix(): path for where in _UNPACKED for path in folder.glob(where)}
    names = [name for name, path in found.items() if path.is_file()]
    return [found[names[nth]] for nth in _conversations(names)]


@contextmanager
def opened(path: Path, name: str, at: Callable[[int], None], *, notes: bool = False) -> Generator[Archive]:
    """Open an archive that people call `name`; `at` is told how many of its bytes are read.

    Its members are those with conversations, or its `notes`. InvalidInput where it cannot be read, or holds none.
    """
    with _refusing(name):
        file = _Counted(path, at)
    with file:
        with _refusing(name):
            packed = zipfile.ZipFile(file)
        with packed:
            yield _listed(packed, name, size=path.stat().st_size, notes=notes)


@contextmanager
def _refusing(name: str) -> Generator[None]:
    """Raise what goes wrong in reading an archive as InvalidInput."""
    try:
        yield
    except InvalidInput:
        raise
    except (zipfile.BadZipFile, EOFError, zlib.error, struct.error, UnicodeError):
        raise InvalidInput(f"{name} is damaged or cut off: it cannot be unpacked. Fetch it again.") from None
    except NotImplementedError:
        raise InvalidInput(_UNKNOWN.format(name=name)) from None
    except OSError as error:
        if error.errno == errno.EINVAL:  # it says of a member that it begins before the file
            raise InvalidInput(f"{name} is damaged: it cannot be unpacked. Fetch it again.") from None
        raise InvalidInput(f"{name} cannot be read: {error.strerror or error}.") from None


def _listed(packed: zipfile.ZipFile, name: str, *, size: int, notes: bool) -> Archive:
    found = [one for one in packed.infolist() if not _NOT_FILES.search(_path(one))]
    safe = [one for one in found if not _leaves(one)]
    if notes:
        chosen = sorted((one for one in safe if _NOTES.search(_path(one))), key=_path)
    else:
        chosen = [safe[nth] for nth in _conversations([_path(one) for one in safe])]
    _check(chosen, found, name, size=size)
    return Archive(name=name, members=[one.filename for one in chosen], notes=list(_notes(found)), packed=packed)


def _conversations(paths: Sequence[str]) -> list[int]:
    """Return the places of the paths that hold conversations, in order: a folder's only where no file has them all."""
    found = [nth for nth, path in enumerate(paths) if _CONVERSATIONS.search(path)]
    whole = [nth for nth in found if not _MIRROR.search(paths[nth])]
    return sorted(whole or found, key=lambda nth: _order(paths[nth]))


def _order(path: str) -> tuple[str | int, ...]:
    """Sort `conversations-10.json` after `conversations-9.json`."""
    return tuple(int(part) if nth % 2 else part for nth, part in enumerate(re.split(r"(\d{1,18})", path)))


def _path(member: zipfile.ZipInfo) -> str:
    return member.orig_filename.replace("\\", "/")


def _leaves(member: zipfile.ZipInfo) -> bool:
    """Tell whether a name, unpacked, would leave the folder."""
    path = _path(member)
    return path.startswith("/") or "\0" in path or ".." in path.split("/") or re.match("[A-Za-z]:", path) is not None


def _check(chosen: Sequence[zipfile.ZipInfo], found: Sequence[zipfile.ZipInfo], name: str, *, size: int) -> None:
    if not chosen:
        raise InvalidInput(
            f"{name} holds no conversations.json, so it is no export of ChatGPT or Claude.ai.{_next(found)}"
        )
    times = Counter(one.filename for one in chosen)
    if twice := next((one for one in times if times[one] > 1), None):
        raise InvalidInput(f"{name} holds two files named {_shown(twice)}, and only one can be meant. Fetch it again.")
    if any(one.flag_bits & 0x1 for one in chosen):
        raise InvalidInput(f"{name} is encrypted. Unpack it with its password, and import its conversations.json.")
    if any(one.compress_type not in _METHODS for one in chosen):
        raise InvalidInput(_UNKNOWN.format(name=name))
    unpacked, packed = sum(one.file_size for one in chosen), sum(one.compress_size for one in chosen)
    if unpacked > max(_SMALL, _RATIO * min(packed, size)):
        raise InvalidInput(
            f"{name} would unpack to {unpacked / 2**20:,.0f} MiB from {min(packed, size) / 2**20:,.1f}, which no "
            "conversations do. If it is what it should be, unpack it and import its conversations.json."
        )


def _next(found: Sequence[zipfile.ZipInfo]) -> str:
    """Return what to do with an archive that has no conversations."""
    inner = [one.filename for one in found if _ARCHIVES.search(one.filename)]
    if inner:
        return f" It holds other archives ({_some(inner)}): take those out, and import them."
    leaving = [one.filename for one in found if _CONVERSATIONS.search(_path(one))]
    if leaving:
        return f" The name of {_some(leaving)} leads out of the archive, so that is not read."
    return " Unpack it, and import the files in it that hold conversations."


def _notes(found: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    if leaving := [one.filename for one in found if _leaves(one)]:
        yield f"Not read, for their names lead out of the archive: {_some(leaving)}."


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(_shown(name) for name in names[:_SHOWN]) + more


def _shown(name: str) -> str:
    return one_line(name, 80)
