"""Exports that the owner starts on a page: one file of a space at a time, in the folder `exports` of the home.

An export is made in a background task, which reports its progress, and kept for a day for its reader to download. A new
one replaces it. `stop` ends tasks within a hundredth of their work.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.private_files import make_folder
from mcp_memory.core.regular_files import remove_own, require_own

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory
logger = logging.getLogger(__name__)
_KEPT = timedelta(days=1)
_NAME = "%Y-%m-%d-%H%M%S"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportFile:
    """An export to download; `made_at` is in UTC."""

    path: Path
    bytes: int
    made_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportState:
    """The export of a space: the work in progress or the error of the last one, and the last file."""

    doing: str | None = None
    done: int = 0
    total: int = 0
    error: str | None = None
    file: ExportFile | None = None


class _Stopped(Exception):
    """The process ends, and the export with it."""


class Exports:
    """The exports of all spaces. `changed` is called, in any thread, when there is progress to show."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._states = dict[str, ExportState]()
        self._tasks = dict[str, asyncio.Task[None]]()
        self._is_stopping = False

    def stop(self) -> None:
        """End the tasks, soon."""
        self._is_stopping = True

    def start(self, memory: Memory) -> None:
        """Start an export of the space, unless one is being made."""
        task = self._tasks.get(memory.space)
        if task is None or task.done():
            self._states[memory.space] = ExportState(doing="starting")
            self._tasks[memory.space] = asyncio.create_task(self._run(memory), name="mcp-memory export")

    async def state(self, memory: Memory) -> ExportState:
        """Return the state of the space's export. Deletes what is older than a day, of all spaces."""
        state = self._states.get(memory.space, ExportState())
        if state.doing is not None:
            return state
        folder = memory.settings.home / "exports"
        file = await anyio.to_thread.run_sync(_newest, folder, memory.space)
        return ExportState(error=state.error, file=file)

    async def discard(self, memory: Memory) -> None:
        """Delete the file of the space, which may have words that were erased since."""
        await anyio.to_thread.run_sync(_empty, memory.settings.home / "exports" / memory.space)

    async def _run(self, memory: Memory) -> None:
        def tell(doing: str, done: int, total: int) -> None:
            if self._is_stopping:
                raise _Stopped
            done = min(done, total)  # the total leaves out notes
            self._states[memory.space] = ExportState(doing=doing, done=done, total=total)
            self._changed()

        folder = memory.settings.home / "exports" / memory.space
        target = folder / f"{datetime.now(UTC):{_NAME}}.zip"
        error = None
        try:
            await anyio.to_thread.run_sync(_empty, folder)
            await anyio.to_thread.run_sync(make_folder, folder)
            await memory.export(target, tell=tell)
        except _Stopped:
            return
        except OSError as failed:
            error = f"{folder} cannot be written: {failed.strerror}."
        except McpMemoryError as failed:
            error = failed.public or str(failed)
        except Exception:  # the task is an edge: nobody else would see the error
            if self._is_stopping:  # the memory may be closed already
                return
            logger.exception("an export failed")
            error = "Internal error. Its traceback is in the log of the process."
        self._states[memory.space] = ExportState(error=error)
        self._changed()


def _newest(folder: Path, space: str) -> ExportFile | None:
    """Return the newest export of a space, after deleting old ones of all spaces."""
    for path in _exports(folder):
        if datetime.now(UTC) - _modified(path) > _KEPT:
            _remove(path)
    return max(map(_described, (folder / space).glob("[!.]*.zip")), key=lambda file: file.made_at, default=None)


def _empty(folder: Path) -> None:
    """Delete the exports in the folder of a space, if there is one."""
    with suppress(OSError):
        for path in folder.iterdir():
            _remove(path)


def _exports(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        for space in folder.iterdir():
            yield from space.iterdir()


def _described(path: Path) -> ExportFile:
    return ExportFile(path=path, bytes=path.stat().st_size, made_at=_modified(path))


def _modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.lstat().st_mtime, UTC)


def _remove(path: Path) -> None:
    """Delete an export, or what is left of one that was interrupted."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            require_own(path)
            shutil.rmtree(path)
        else:
            remove_own(path)
