"""Zip archives with a manifest of their members: the common part of backups and exports."""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mcp_memory.core.regular_files import open_regular

_PIECE = 2**20
TORN = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(UnicodeError, NotImplementedError, RuntimeError),
)
"""The errors of reading an archive that is cut off, damaged or encrypted."""


@dataclass(frozen=True, slots=True)
class Member:
    """Size and hash of a member, as in a manifest."""

    bytes: int
    sha256: str


def is_archive(path: Path, test: Callable[[zipfile.ZipFile], bool]) -> bool:
    """Return whether a file is a zip archive that passes a test."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as packed:
            return test(packed)
    except (OSError, ValueError, KeyError, *TORN):
        return False


def measured(packed: zipfile.ZipFile, name: str, *, most: int, to: IO[bytes] | None = None) -> Member:
    """Read a member, into `to` if given, and return its size and hash. Reading stops after `most` bytes."""
    digest, length = hashlib.sha256(), 0
    with packed.open(name) as stream:
        while length <= most and (piece := stream.read(_PIECE)):
            length += len(piece)
            digest.update(piece)
            if to is not None and length <= most:
                to.write(piece)
    return Member(bytes=length, sha256=digest.hexdigest())
