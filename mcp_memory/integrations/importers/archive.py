"""Zip archives: which members are read, in which order, and which archives are refused.

Archives are read in place, and nothing is unpacked to disk. Read are members that may be text, whatever their names:
first the conversations (`conversations.json`, its parts, or a folder of that name), then other JSON, then Markdown and
HTML. Members whose names would leave the folder are skipped and named. Encrypted or truncated archives, duplicate
members, and members that unpack to far more than text does are refused before any of them is read.
"""

from __future__ import annotations

import re
import zipfile
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.integrations.importers.streams import (
    UNKNOWN_METHOD,
    Readable,
    ReadProgress,
    buffered,
    translate_errors,
)

_MAGIC = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
_CONVERSATIONS = re.compile(
    r"(?:^|/)conversations(?:[-_ ]?\d+)?\.json$|(?:^|/)conversations/[^/]+\.json$", re.IGNORECASE
)
_MIRROR = re.compile(r"(?:^|/)conversations/[^/]+$", re.IGNORECASE)
_JSON = re.compile(r"\.(?:jsonl?|ndjson|txt|af)$|(?:^|/)[^./]+$", re.IGNORECASE)
_TEXT = re.compile(r"\.(?:md|markdown|html?)$", re.IGNORECASE)
_NOT_FILES = re.compile(r"(?:^|/)(?:__MACOSX/|\._)|/$")
_UNPACKED = ("conversations*.json", "*/conversations*.json", "conversations/*.json", "*/conversations/*.json")
_ARCHIVES = re.compile(r"\.(?:zip|tar|tgz|gz|7z|rar)$", re.IGNORECASE)
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
"""The methods that exports use; the standard library unpacks other methods in pieces of unbounded size."""
_RATIO = 200
"""Limit of unpacked to packed size. Conversations unpack to 4 to 30 times their size."""
_SMALL = 64 * 2**20
"""Unpacked bytes up to which the ratio does not matter."""
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An open archive: the members to be read, in order, and the names of others.

    The names of those in `leaving` would leave the folder.
    """

    members: Sequence[Readable]
    unread: Sequence[str]
    leaving: Sequence[str]


def is_archive(head: bytes) -> bool:
    """Return whether a file that starts with these bytes is a zip archive."""
    return head.startswith(_MAGIC)


def is_conversations(path: str) -> bool:
    """Return whether a file's path is that of a file with the conversations of an export."""
    return _CONVERSATIONS.search(path) is not None


def unpacked_conversations(folder: Path) -> list[Path]:
    """Return the files with conversations of an export that was unpacked into the folder, or into a folder in it."""
    files = {path.relative_to(folder).as_posix(): path for where in _UNPACKED for path in folder.glob(where)}
    return [files[name] for name in _conversations([name for name, path in files.items() if path.is_file()])]


@contextmanager
def open_archive(path: Path, name: str, on_read: ReadProgress) -> Generator[Archive]:
    """Open an archive, called `name` in messages; `on_read` receives the number of bytes read.

    Raises InvalidInput if it cannot be read or has no member to be read.
    """
    with translate_errors(name):
        size = path.stat().st_size
        with buffered(path, size, on_read) as file, zipfile.ZipFile(file) as packed:
            members = _files(packed)
            chosen = _in_order([member for member in members if not _escapes_folder(member)])
            _check(chosen, members, name, size=size)
            yield Archive(
                members=[
                    Readable(
                        name=f"{name}, {member.filename}",
                        place=f"{path.as_posix()}/{_path(member)}",
                        open=partial(packed.open, member),
                        within=member.filename,
                    )
                    for member in chosen
                ],
                unread=[
                    member.filename
                    for member in members
                    if not (member in chosen or _escapes_folder(member) or _CONVERSATIONS.search(_path(member)))
                ],
                leaving=[member.filename for member in members if _escapes_folder(member)],
            )


def _files(packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [member for member in packed.infolist() if not _NOT_FILES.search(_path(member))]


def _in_order(members: Sequence[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    paths = [_path(member) for member in members]
    whole = set(_conversations(paths))
    named = [member for member, path in zip(members, paths, strict=True) if path in whole]
    others = [member for member, path in zip(members, paths, strict=True) if not _CONVERSATIONS.search(path)]
    return [
        *sorted(named, key=lambda member: _natural_key(_path(member))),
        *(member for member in others if _JSON.search(_path(member))),
        *sorted((member for member in others if _TEXT.search(_path(member))), key=_path),
    ]


def _conversations(paths: Sequence[str]) -> list[str]:
    """Return the paths of conversations, in natural order.

    Files of a `conversations` folder are used only if no file contains all conversations.
    """
    matches = [path for path in paths if _CONVERSATIONS.search(path)]
    whole = [path for path in matches if not _MIRROR.search(path)]
    return sorted(whole or matches, key=_natural_key)


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
        raise InvalidInput(f"{name} contains no file that can be read.{_advice(members)}")
    times = Counter(member.filename for member in chosen)
    if twice := next((member for member in times if times[member] > 1), None):
        raise InvalidInput(f"{name} contains two files named {_shorten(twice)}. Download it again.")
    if any(member.flag_bits & 0x1 for member in chosen):
        raise InvalidInput(f"{name} is encrypted. Unpack it with its password, and import the files in it.")
    if any(member.compress_type not in _METHODS for member in chosen):
        raise InvalidInput(UNKNOWN_METHOD.format(name=name))
    unpacked, packed = sum(member.file_size for member in chosen), sum(member.compress_size for member in chosen)
    if unpacked > max(_SMALL, _RATIO * min(packed, size)):
        raise InvalidInput(
            f"{name} would unpack to {unpacked / 2**20:,.0f} MiB from {min(packed, size) / 2**20:,.1f}, which no "
            "conversations do. If you trust it, unpack it and import the files in it."
        )


def _advice(members: Sequence[zipfile.ZipInfo]) -> str:
    """Return the next step for an archive without a file that can be read."""
    if inner := [member.filename for member in members if _ARCHIVES.search(member.filename)]:
        return f" It contains other archives ({_name_some(inner)}): extract and import those."
    if leaving := [member.filename for member in members if _escapes_folder(member)]:
        return f" The name of {_name_some(leaving)} leads out of the archive, so it is not read."
    return f" It contains {_name_some([member.filename for member in members])}." if members else " It is empty."


def _name_some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(_shorten(name) for name in names[:_SHOWN]) + more


def _shorten(name: str) -> str:
    return one_line(name, 80)
