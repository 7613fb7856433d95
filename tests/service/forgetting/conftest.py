"""A memory to forget of, and where a word is left of what was forgotten."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock


@pytest.fixture
async def memory(home: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with open_memory(home=home, now=clock, embedder="none") as opened:
        yield opened


def left_in(home: Path, word: str) -> list[str]:
    """Return the files with a word, in any case, in their bytes or their names."""
    files = [path for path in sorted(home.rglob("*")) if path.is_file()]
    found = [path for path in files if word.encode() in path.read_bytes().lower() or word in path.name.lower()]
    return [path.relative_to(home).as_posix() for path in found]
