"""Settings of the C library's malloc."""

import ctypes
import os
import sys

_M_ARENA_MAX = -8
_ARENAS = 2


def limit_malloc_arenas() -> None:
    """Limit threads to two malloc arenas, on Linux with glibc and unless MALLOC_ARENA_MAX is set.

    Each arena keeps freed memory for its own threads. Call it before threads are started.
    """
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, _ARENAS)
