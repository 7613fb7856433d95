"""Settings of the C library's malloc. They have no effect except on Linux with glibc."""

import ctypes
import os
import sys

_M_ARENA_MAX = -8
_ARENAS = 2


def limit_malloc_arenas() -> None:
    """Limit threads to two malloc arenas, unless MALLOC_ARENA_MAX is set.

    Each arena keeps freed memory for its own threads. Call it before threads are started.
    """
    if "MALLOC_ARENA_MAX" not in os.environ:
        _call("mallopt", _M_ARENA_MAX, _ARENAS)


def release_free_memory() -> None:
    """Return freed memory to the system, which takes less than a millisecond. Call it once modules are loaded."""
    _call("malloc_trim", 0)


def _call(name: str, *values: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
    if function is not None:
        function(*values)
