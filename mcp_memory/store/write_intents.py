"""Write intents: a transaction notes each file before it writes it, so that uncommitted writes can be undone.

Files are written inside the transaction of their rows, before it commits: a kill, or a failure, in between leaves a
file that is newer than its row, a line without a row, or a result without a ref. So each transaction that writes files
keeps a mark, `<home>/unsettled/<process>-<thread>-<lot>`, with a line for each file: `=` and its path if it is written
whole; `+`, its committed length in bytes, `:` and its path if it is appended to. The transaction deletes the mark
after its commit. Transactions on a home are serial, so a mark found at the start of one was left by one that has
failed; `sqlite.upkeep.recovery` then restores its files from the rows.

A mark is not flushed to the disk: it survives a kill of the process, not a power cut, whose damage `doctor` finds.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mcp_memory.core.private_files import make_folder, opener
from mcp_memory.core.regular_files import is_own, read_own, remove_own

_FOLDER = "unsettled"
_WHOLE, _MORE = b"=", b"+"
_MARK = re.compile(r"\d+-\d+-[0-9a-f]{8}")
_APPENDED = re.compile(rb"(?:(\d+):)?(.*)", re.DOTALL)


class _Running(threading.local):
    """The transaction of this thread: its home, and the path of its mark, which may not exist yet."""

    home: Path | None = None
    mark: Path = Path()


_running = _Running()


@contextmanager
def noting(home: Path) -> Generator[None]:
    """Keep a mark of this thread's writes in the block; it is deleted if the block succeeds."""
    _running.home = home
    _running.mark = home / _FOLDER / f"{os.getpid()}-{threading.get_ident()}-{secrets.token_hex(4)}"
    try:
        yield
        take_away([_running.mark])
    finally:
        _running.home = None


def note(path: Path, *, whole: bool = True, length: int | None = None) -> None:
    """Note that a file is about to be replaced or deleted, or appended to after its first `length` bytes.

    Does nothing outside of a transaction.
    """
    home, mark = _running.home, _running.mark
    if home is None or not path.is_relative_to(home):
        return
    kind = _WHOLE if whole else _MORE if length is None else b"%s%d:" % (_MORE, length)
    line = kind + path.relative_to(home).as_posix().encode("utf-8", "surrogateescape") + b"\n"
    try:
        handle = opener(str(mark), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except FileNotFoundError:
        if not home.is_dir():  # it was removed: nothing of it is made again
            raise
        make_folder(mark.parent)
        handle = opener(str(mark), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        if os.write(handle, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def left(home: Path) -> list[Path]:
    """Return the marks that exist. Other files in their folder are not ours: they are neither read nor deleted."""
    try:
        return [path for path in (home / _FOLDER).iterdir() if _MARK.fullmatch(path.name) and is_own(path)]
    except FileNotFoundError:
        return []


def take_away(marks: Iterable[Path]) -> None:
    """Delete the marks of files that are settled and committed; a mark that stays is settled again later."""
    for mark in marks:
        with suppress(OSError):
            remove_own(mark)


@dataclass(frozen=True, slots=True)
class Written:
    """How a file was written to: `whole`, or after its first `length` bytes, which were committed."""

    whole: bool
    length: int = 0


def paths_of(mark: Path) -> dict[PurePosixPath, Written]:
    """Return the files that a mark names, relative to the home, and how each was written.

    A last line that was cut short is ignored: its file was not touched yet. So are paths that lead out of the home.
    """
    try:
        lines = read_own(mark).split(b"\n")[:-1]
    except FileNotFoundError:
        return {}
    found: dict[PurePosixPath, Written] = {}
    for line in lines:
        length, name = _APPENDED.fullmatch(line[1:]).groups()  # type: ignore[union-attr]
        path = PurePosixPath(name.decode("utf-8", "surrogateescape"))
        if path.is_absolute() or ".." in path.parts:
            continue
        before = found.get(path)
        whole = line[:1] == _WHOLE or (before is not None and before.whole)
        found[path] = Written(whole, min(int(length or 0), before.length) if before else int(length or 0))
    return found
