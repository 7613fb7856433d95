"""Memory that was freed goes back to the system."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_memory.core.malloc import limit_malloc_arenas, release_free_memory


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4 / 1024


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs Linux with glibc"
)
def test_memory_below_a_block_in_use_is_released() -> None:
    blocks = [bytes(4_096) for _ in range(10_000)]
    del blocks[::2], blocks[:-1]
    before = resident_mb()
    release_free_memory()
    assert before - resident_mb() > 20


@pytest.mark.parametrize("call", [limit_malloc_arenas, release_free_memory])
def test_a_system_without_these_settings_is_left_as_it_is(
    monkeypatch: pytest.MonkeyPatch, call: Callable[[], None]
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    call()
