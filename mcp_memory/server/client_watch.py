"""Notices that the client of a stdio server has gone although standard input never ends.

The end of a pipe comes when every process that can write to it has closed it. A client may have started other
processes that inherited its end, and then a killed client leaves its server waiting for ever. So two more signs are
watched: the process that started the server has ended (a process of Linux and macOS then gets another parent, a handle
of Windows is signalled), or nobody can read standard output any more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress

import anyio
import anyio.to_thread

_INTERVAL_SECONDS = 2.0


async def wait_for_clients_end(output: int, *, parent: Callable[[], int] = os.getppid) -> None:
    """Return when the client has gone; never, if that cannot be told.

    `output` is a descriptor of the pipe to the client. `parent` returns the id of the process that started this one.
    """
    if sys.platform == "win32":
        await anyio.to_thread.run_sync(_wait_for_parent, parent(), abandon_on_cancel=True)
        return
    first = parent()
    # A server whose parent is 1 was started by init, or its starter had left before: that one's end cannot be seen.
    while (first == 1 or parent() == first) and not _is_broken(output):  # noqa: ASYNC110 nothing tells
        await anyio.sleep(_INTERVAL_SECONDS)


if sys.platform == "win32":

    def _wait_for_parent(parent: int) -> None:
        import ctypes
        import threading

        synchronize, infinite = 0x00100000, 0xFFFFFFFF
        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = kernel.OpenProcess(synchronize, False, parent)
        if not handle:
            threading.Event().wait()  # it has ended before, or may not be watched
        kernel.WaitForSingleObject(ctypes.c_void_p(handle), infinite)

else:

    def _is_broken(output: int) -> bool:
        """Return whether a descriptor is the end of a pipe that nobody reads."""
        import select

        with suppress(OSError, ValueError):
            watched = select.poll()
            watched.register(output, 0)  # errors are reported unasked
            return any(event & (select.POLLERR | select.POLLHUP) for _, event in watched.poll(0))
        return False
