"""Notices that the client of a stdio server has exited, even if standard input stays open.

A pipe ends when every process that can write to it has closed it. If a client started other processes that inherited
its end and was then killed, its server would wait forever. So the end of the parent process is watched too (on Linux
and macOS the parent changes, on Windows its handle is signalled), and whether standard output has lost its reader.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress


def exit_watch(output: int, *, parent: Callable[[], int] = os.getppid) -> Callable[[], bool]:
    """Return a function that says whether the client has exited; it never does if that cannot be observed.

    `output` is a descriptor of the pipe to the client; `parent` returns the id of the parent process.
    """
    first = parent()
    if sys.platform == "win32":
        return _watch_process(first)
    # Parent 1: started by init, or the starter has already exited. Its end cannot be observed.
    return lambda: (first != 1 and parent() != first) or _is_broken(output)


if sys.platform == "win32":

    def _watch_process(pid: int) -> Callable[[], bool]:
        import ctypes

        synchronize, timed_out = 0x00100000, 0x00000102
        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        handle = kernel.OpenProcess(synchronize, False, pid)  # 0: it has ended already, or may not be watched
        return lambda: bool(handle) and kernel.WaitForSingleObject(ctypes.c_void_p(handle), 0) != timed_out

else:

    def _is_broken(output: int) -> bool:
        """Return whether a descriptor is a pipe without readers."""
        import select

        with suppress(OSError, ValueError):
            watched = select.poll()
            watched.register(output, 0)  # errors are always reported
            return any(event & (select.POLLERR | select.POLLHUP) for _, event in watched.poll(0))
        return False
