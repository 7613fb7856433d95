"""A disk that fails when it is told to: below SQLite, and for every file of the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import apsw


@dataclass
class Disk:
    """Fails the write, sync or truncation number `at`, counted from 1, and with `for_good` all that follow."""

    at: int = 0
    error: type[apsw.Error] = apsw.FullError
    for_good: bool = False
    done: int = 0
    failed: int = 0

    def arm(self, at: int, error: type[apsw.Error], *, for_good: bool) -> None:
        self.at, self.error, self.for_good, self.done, self.failed = at, error, for_good, 0, 0

    def touch(self) -> None:
        self.done += 1
        if self.at and (self.done == self.at or (self.for_good and self.done > self.at)):
            self.failed += 1
            raise self.error("the disk was told to fail")


@contextmanager
def failing_disk() -> Iterator[Disk]:
    """Put a disk under every database that is opened inside; all of them have to be closed there too."""
    disk = Disk()

    class File(apsw.VFSFile):
        def __init__(self, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
            super().__init__(base, name, flags)

        def xWrite(self, data: bytes, offset: int) -> None:
            disk.touch()
            super().xWrite(data, offset)

        def xSync(self, flags: int) -> None:
            disk.touch()
            super().xSync(flags)

        def xTruncate(self, newsize: int) -> None:
            disk.touch()
            super().xTruncate(newsize)

    class Faulty(apsw.VFS):
        def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
            return File(name, flags)

    base = apsw.vfs_names()[0]
    faulty = Faulty("faulty", base, makedefault=True)
    try:
        yield disk
    finally:
        faulty.unregister()


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes, as a quota does. Python leaves the signal alone."""
    import resource  # not everywhere

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
