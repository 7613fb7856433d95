"""Which files a transaction is about to write, noted before it touches them, so that none outlives it uncommitted.

Files are written inside the transaction of their rows, before it commits: a kill, or a failure, in between leaves a
file that is ahead of its row, a line that no row has, or a result that nothing points at. So each transaction that
writes files keeps a mark, `<home>/unsettled/<process>-<thread>-<lot>`, with the path of each on a line of its own, and
takes it away when it has committed. Transactions on a home come one after the other; a mark that stands when one
begins is of one that is over, and `sqlite.settling` brings its files back into line with the rows.

A mark is not flushed to the disk: it outlives its process, not a power cut. `doctor` finds what that leaves.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath

__all__ = ["left", "note", "noting", "paths_of"]

_FOLDER = "unsettled"


class _Running(threading.local):
    """The home whose transaction runs in this thread."""

    home: Path | None = None


_running = _Running()


@contextmanager
def noting(home: Path) -> Generator[None]:
    """Keep a mark of what this thread writes inside; it goes when the block ends well, and stays when it does not."""
    _running.home = home
    try:
        yield
        with suppress(OSError):  # it was settled by the next one already
            _mark(home).unlink(missing_ok=True)
    finally:
        _running.home = None


def note(path: Path) -> None:
    """Note that a file is about to be written, replaced or deleted. Outside of a transaction it does nothing."""
    home = _running.home
    if home is None or not path.is_relative_to(home):
        return
    mark = _mark(home)
    line = path.relative_to(home).as_posix().encode("utf-8", "surrogateescape") + b"\n"
    try:
        handle = os.open(mark, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except FileNotFoundError:
        mark.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(mark, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


def left(home: Path) -> list[Path]:
    """Return the marks that stand."""
    try:
        return [Path(entry.path) for entry in os.scandir(home / _FOLDER)]
    except FileNotFoundError:
        return []


def paths_of(mark: Path) -> list[PurePosixPath]:
    """Return what a mark names, from the home on. A last line that was cut short names nothing that was touched."""
    try:
        lines = mark.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    return [PurePosixPath(line.decode("utf-8", "surrogateescape")) for line in dict.fromkeys(lines)]


def _mark(home: Path) -> Path:
    return home / _FOLDER / f"{os.getpid()}-{threading.get_ident()}-{_lot(os.getpid())}"


@cache
def _lot(pid: int) -> str:
    """Tell processes of two containers apart, which may have one number."""
    return secrets.token_hex(4)
