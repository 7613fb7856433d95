"""A memory that holds a persona with two versions, a scene with two, a fact, and how tests ask for its pages."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from bench.ours import until_indexed
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock, HashEmbedder
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, html, tree
from mcp_memory.ui.pages import page_at
from tests.longterm.by_hand import SPACE, ByHand, say
from tests.ui.shown import elements


async def stated(memory: Memory, text: str, *entities: str, session: str, said_at: datetime) -> None:
    """Store a message of the user as a statement that mentions these entities, as the sentence reader would."""
    parts = memory._parts  # pyright: ignore[reportPrivateUsage]
    hand = ByHand(parts.store, parts.search, parts.settings, said_at)
    await anyio.to_thread.run_sync(
        partial(say, hand, text, "person", session=session, entities=entities, space=memory.space)
    )


@asynccontextmanager
async def holding(home: Path) -> AsyncGenerator[Memory]:
    """a1: Maya lives in Lisbon; a2: her knee hurts. A scene and the persona name both."""
    async with open_memory(
        home=home,
        now=FixedClock(datetime(2026, 11, 21, 12, 0, tzinfo=UTC)),
        embedder=HashEmbedder(),
        llm="none",
        space=SPACE,
    ) as memory:
        await anyio.to_thread.run_sync(partial(_lay, memory))
        await until_indexed(memory)  # or two pages that show one search might differ
        yield memory


def _lay(memory: Memory) -> None:
    parts = memory._parts  # pyright: ignore[reportPrivateUsage]
    hand = ByHand(parts.store, parts.search, parts.settings)
    lisbon: dict[str, Any] = {"entity": "user", "relation": "lives_in", "value": "Lisbon"}
    home = hand.draw("Maya lives in Lisbon.", said="I live in Lisbon by the river", **lisbon)
    knee = hand.draw("Maya's left knee hurts.", said="my left knee hurts")
    hand.scene("the-knee", f"- The knee hurts ({knee}).", title="The Knee", summary="A knee that hurts.")
    hand.scene("the-knee", f"- Lives in Lisbon ({home}).\n- The knee hurts still ({knee}).", title="The Knee")
    hand.write(f"- Lives in Lisbon ({home})")
    hand.write(f"- Lives in Lisbon ({home})", f"- Her knee hurts ({knee}), see [[the-knee]]", "- Is kind.")


async def at(memory: Memory, address: str, **more: Any) -> Page:
    """Return the page for somebody who may do everything; it has to be one for both serialisers."""
    given: dict[str, Any] = {"form_token": "t", **more}
    page = await page_at(address, View(memory=memory, **given))
    for node in page.body:
        assert html(node)
        assert tree(node)
    return page


async def reading(memory: Memory, address: str) -> Page:
    """Return the page for somebody who may only read."""
    return await at(memory, address, right="read")


def marked(page: Page) -> list[str]:
    """Return the words that are marked."""
    return [_text(one) for one in elements(page) if one.tag == "mark"]


def _text(one: Element) -> str:
    return "".join(child for child in one.children if isinstance(child, str))
