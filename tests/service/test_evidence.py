"""From pages down to their proof, and from a statement up to the lines that name it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import Mention
from mcp_memory.service.memory import Memory
from tests.ui.holding import holding


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    async with holding(home) as opened:
        yield opened


async def test_lines_of_the_persona_come_with_the_statements_and_scenes_that_they_name(memory: Memory) -> None:
    lines = await memory.persona_lines()
    assert "\n".join(line.text for line in lines).startswith("# Persona\n\n- Lives in Lisbon (a1)")
    claims = [([atom.id for atom in line.atoms], line.scenes) for line in lines if line.is_claim]
    assert claims == [(["a1"], ()), (["a2"], ("the-knee",)), ([], ())]
    assert not any(line.atoms for line in lines if not line.is_claim)


async def test_a_statement_is_found_in_the_lines_that_name_it(memory: Memory) -> None:
    assert await memory.lines_citing("a1") == [
        Mention(slug=None, title="Persona", line="- Lives in Lisbon (a1)"),
        Mention(slug="the-knee", title="The Knee", line="- Lives in Lisbon (a1)."),
    ]
    assert await memory.lines_citing("a9") == []


async def test_a_forgotten_statement_is_named_by_no_line(memory: Memory) -> None:
    await memory.forget(["a1"], dry_run=False)
    assert await memory.lines_citing("a1") == []
    assert await memory.statements_by_id(["a1", "a2"]) == [await memory.atom("a2")]


async def test_the_statements_that_one_took_the_place_of_are_listed(memory: Memory) -> None:
    new = await memory.remember("Maya lives in Porto.", supersedes=["a1"], typed=True)
    assert [atom.id for atom in await memory.superseded_by([new.atom.id])] == ["a1"]


async def test_a_turn_matches_its_hash_and_an_unknown_one_is_not_found(memory: Memory) -> None:
    assert await memory.is_intact("t1")
    with pytest.raises(NotFound, match="t99"):
        await memory.is_intact("t99")
