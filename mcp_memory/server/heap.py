"""What the C library keeps of memory that was given back, bounded.

glibc gives threads heaps of their own, up to eight a processor, and each keeps the most that was ever free in it. A
server whose work wanders over a pool of threads grew by 20 MB a minute under load, most of it free; with two heaps it
does not, and answers as fast (`python -m bench.load`). Other C libraries have no such setting, and are left alone.
"""

from __future__ import annotations

import ctypes
import os
import sys

__all__ = ["bound_heaps"]

_M_ARENA_MAX = -8
_HEAPS = 2


def bound_heaps() -> None:
    """Let threads that are still to come share two heaps, unless MALLOC_ARENA_MAX says how many."""
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, _HEAPS)
