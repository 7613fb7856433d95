"""Scenes that no model has written, through the verbs, the resources and the pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.server.resources import list_resources, read_resource
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock, HashEmbedder
from tests.longterm.by_hand import SPACE, ByHand
from tests.longterm.test_digest import say
from tests.ui.holding import at
from tests.ui.shown import links, text

NOA = ("Noa is my sister, she takes the photos.", "I pay Noa in mugs.", "The photos by Noa are due in May.")
PAGE = (
    "# Noa\n\n"
    "- 2026-11-20: Noa is my sister, she takes the photos. (a1)\n"
    "- 2026-11-20: I pay Noa in mugs. (a2)\n"
    "- 2026-11-20: The photos by Noa are due in May. (a3)\n"
)


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    clock = FixedClock(datetime(2026, 11, 21, 12, 0, tzinfo=UTC))
    async with open_memory(home=home, now=clock, embedder=HashEmbedder(), llm="none", space=SPACE) as opened:
        parts = opened._parts  # pyright: ignore[reportPrivateUsage]  as the reader stores sentences
        hand = ByHand(parts.store, parts.search, parts.settings)
        for sentence in (*NOA, "My dentist is in Vigo."):
            entities = ("Noa",) if "Noa" in sentence else ()
            await anyio.to_thread.run_sync(partial(say, hand, sentence, "trait", entities=entities))
        yield opened


async def test_it_is_read_by_its_slug_as_a_page_and_as_a_resource(memory: Memory) -> None:
    assert await memory.scene_page("noa") == PAGE
    (content,) = await read_resource(memory, "memory://scene/noa")
    assert content.content == PAGE
    assert "memory://scene/noa" in {str(one.uri) for one in await list_resources(memory)}
    with pytest.raises(NotFound, match=r"There is no scene 'nora'. Scenes: noa\."):
        await memory.scene_page("nora")


async def test_the_persona_lists_it_and_a_search_within_it_finds_its_statements(memory: Memory) -> None:
    assert "- noa (heat 3" in (await memory.read_persona()).text
    found = await memory.memory_search("photos", scene="Noa")
    assert {hit.atom.id for hit in found.atoms} == {"a1", "a3"}
    assert [hit.scene.slug for hit in found.scenes] == ["noa"]
    assert (await memory.memory_search("photos")).scenes == []


async def test_a_search_within_it_goes_on_to_the_next_page_after_another_statement(memory: Memory) -> None:
    first = await memory.memory_search("", scene="noa", limit=2)
    await memory.remember("Noa lives in Porto.")
    second = await memory.memory_search("", scene="noa", limit=2, cursor=first.cursor)
    assert sorted(hit.atom.id for page in (first, second) for hit in page.atoms) == ["a1", "a2", "a3"]


async def test_it_has_one_version_that_is_stored_nowhere(memory: Memory) -> None:
    assert [scene.version for scene in await memory.scene_history("noa")] == [1]
    with pytest.raises(NotFound):
        await memory.restore_scene("noa", 1)


async def test_the_page_for_people_shows_it_with_its_statements(memory: Memory) -> None:
    assert "/scene/noa" in links(await at(memory, "/memory"))
    page = await at(memory, "/scene/noa")
    assert page.title == "Noa"
    assert text(page).count("I pay Noa in mugs.") == 1
    assert {"/a1", "/a2", "/a3"} <= set(links(page))
