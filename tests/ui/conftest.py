"""Memories that pages show, and a browser of one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock
from tests.ui.browsing import Browser, browsing
from tests.ui.holding import holding


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    """An empty memory."""
    async with open_memory(home=home, now=FixedClock(), embedder="none", llm="none") as opened:
        yield opened


@pytest.fixture
async def maya(home: Path) -> AsyncIterator[Memory]:
    """A memory with statements about Maya, a scene and a persona."""
    async with holding(home) as opened:
        yield opened


@pytest.fixture
async def browser(home: Path) -> AsyncIterator[Browser]:
    """A browser in a session of the owner, over an empty memory."""
    async with browsing(home) as opened:
        yield opened
