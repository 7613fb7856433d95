"""Files of Markdown, of a folder, an archive, or one on its own: their names and bytes, in a fixed order.

A folder is read as it is, links that lead out of it and hidden files left out; an archive in place, as `archive` does.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular
from mcp_memory.integrations.importers import archive

__all__ = ["digest", "found_in", "texts"]

_LONGEST = 16 * 2**20


def found_in(folder: Path) -> list[Path]:
    """Return the Markdown files in a folder and those below it, by path."""
    here = folder.resolve()
    found: list[Path] = []
    for root, folders, files in os.walk(here):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found += [Path(root, name) for name in sorted(files) if name.casefold().endswith(".md") and name[0] != "."]
    return [path for path in found if path.resolve().is_relative_to(here) and path.is_file()]


def texts(path: Path, name: str, at: Callable[[int], None]) -> Iterator[tuple[str, bytes]]:
    """Yield each file's name, within what was given, and its bytes. InvalidInput where one cannot be read."""
    if path.is_file() and path.suffix.casefold() != ".md":
        with archive.opened(path, name, at, notes=True) as packed:
            for member in packed.members:
                with packed.member(member) as stream:
                    yield member, _whole(member, stream.read(_LONGEST + 1))
        return
    files = found_in(path) if path.is_dir() else [path]
    read = 0
    for file in files:
        shown = file.relative_to(path.resolve()).as_posix() if path.is_dir() else file.name
        try:
            with open_regular(file) as stream:
                data = _whole(shown, stream.read(_LONGEST + 1))
        except OSError as error:
            raise InvalidInput(f"{shown} in {name} cannot be read: {error.strerror or error}.") from None
        read += len(data)
        at(read)
        yield shown, data


def digest(folder: Path, name: str) -> str:
    """Return SHA-256 over the names and bytes of a folder's notes."""
    whole = hashlib.sha256()
    for shown, data in texts(folder, name, lambda _: None):
        for part in (shown.encode("utf-8", "surrogateescape"), data):
            whole.update(b"%d:" % len(part) + part)
    return whole.hexdigest()


def _whole(name: str, data: bytes) -> bytes:
    if len(data) > _LONGEST:
        raise InvalidInput(f"{name} is larger than {_LONGEST // 2**20} MiB, which no note is. Take it out.")
    return data
