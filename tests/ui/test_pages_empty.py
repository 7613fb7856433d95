"""Pages of a memory in which nothing is stored: each says so, and how to begin."""

from __future__ import annotations

import pytest

from mcp_memory.service.memory import Memory
from tests.ui.holding import at
from tests.ui.shown import text


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/", ["Nothing is in this memory yet."]),
        ("/conversations", ["Nothing has been recorded in this space yet.", "mcp-memory import"]),
        ("/live", ["No agent has asked this memory for anything yet."]),
        ("/activity", ["Nothing has happened yet."]),
        ("/savings", ["Nothing was saved yet"]),
        ("/tasks", ["first tool result"]),
    ],
)
async def test_a_page_of_an_empty_memory_says_how_to_begin(memory: Memory, address: str, words: list[str]) -> None:
    shown = text(await at(memory, address))
    assert [one for one in words if one not in shown] == []
