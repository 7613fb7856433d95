"""Which files a transaction is about to write, noted before it touches them, so that none outlives it uncommitted.

Files are written inside the transaction of their rows, before it commits: a kill, or a failure, in between leaves a
file that is ahead of its row, a line that no row has, or a result that nothing points at. So each transaction that
writes files keeps a mark, `<home>/unsettled/<process>-<thread>-<lot>`, with a line for each: `=` and its path, or `+`
where it is appended to. It takes the mark away when it has committed. Transactions on a home come one after the other;
a mark that stands when one begins is of one that is over, and `sqlite.settling` brings its files back into line with
the rows.

A mark is not flushed to the disk: it outlives its process, not a power cut. `doctor` finds what that leaves.
"""

from __future__ import annotations

import errno
import os
import secrets
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

__all__ = ["left", "note", "noting", "paths_of", "take_away"]

_FOLDER = "unsettled"
_WHOLE, _MORE = b"=", b"+"


class _Running(threading.local):
    """The transaction that runs in this thread: its home, and its mark, whether it is made yet or not."""

    home: Path | None = None
    mark: Path = Path()


_running = _Running()


@contextmanager
def noting(home: Path) -> Generator[None]:
    """Keep a mark of what this thread writes inside; it goes when the block ends well, and stays when it does not."""
    _running.home = home
    _running.mark = home / _FOLDER / f"{os.getpid()}-{threading.get_ident()}-{secrets.token_hex(4)}"
    try:
        yield
        take_away([_running.mark])
    finally:
        _running.home = None


def note(path: Path, *, whole: bool = True) -> None:
    """Note that a file is about to be replaced or deleted, or appended to; outside of a transaction, do nothing."""
    home, mark = _running.home, _running.mark
    if home is None or not path.is_relative_to(home):
        return
    line = (_WHOLE if whole else _MORE) + path.relative_to(home).as_posix().encode("utf-8", "surrogateescape") + b"\n"
    try:
        handle = os.open(mark, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except FileNotFoundError:
        mark.parent.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(mark, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        if os.write(handle, line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def left(home: Path) -> list[Path]:
    """Return the marks that stand."""
    try:
        return [Path(entry.path) for entry in os.scandir(home / _FOLDER)]
    except FileNotFoundError:
        return []


def take_away(marks: Iterable[Path]) -> None:
    """Delete marks of what is settled and committed; one that cannot be deleted is settled once more."""
    for mark in marks:
        with suppress(OSError):
            mark.unlink(missing_ok=True)


def paths_of(mark: Path) -> dict[PurePosixPath, bool]:
    """Return what a mark names, from the home on, and whether it was written whole.

    A last line that was cut short names nothing that was touched.
    """
    try:
        lines = mark.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return {}
    found: dict[PurePosixPath, bool] = {}
    for line in lines:
        path = PurePosixPath(line[1:].decode("utf-8", "surrogateescape"))
        found[path] = found.get(path, False) or line[:1] == _WHOLE
    return found
