"""Everyday talks over the real server, as a person who went by the server's words alone played them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client

from bench.agent_loop import TALKS, Call, Talk, Turn, from_talk, play
from mcp_memory.core.config import load_settings
from mcp_memory.server.mcp_server import MemoryServer


async def outcomes_of(talk: Talk, home: Path) -> list[bool]:
    settings = load_settings({"MCP_MEMORY_READ_SENTENCES": "false"}, home=home)  # the talks name statements by ids
    async with Client(MemoryServer(settings)) as client:
        outcomes, _ = await play(client, talk, from_talk(talk))
    return [outcome.right for outcome in outcomes]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(file.stem for file in TALKS.glob("*.json")))
async def test_memory_is_used_at_the_right_moments_and_answers_with_what_is_needed(name: str, home: Path) -> None:
    talk = Talk.model_validate_json((TALKS / f"{name}.json").read_bytes())
    assert await outcomes_of(talk, home) == [True] * len(talk.turns)


async def test_a_call_that_is_missing_unwanted_refused_or_brings_nothing_is_wrong(home: Path) -> None:
    recall = Call(name="recall", arguments={})
    talk = Talk(
        about="all that can go wrong",
        turns=[
            Turn(user="Where do I live?", calls=["recall|memory_search"]),
            Turn(user="2 + 2?", never=["*"], played=[[recall]]),
            Turn(user="Who am I?", played=[[Call(name="recall", arguments={"topic": "me"})]]),
            Turn(user="Who am I?", shows=["Marta"], played=[[recall]]),
            Turn(user="Who am I?", calls=["recall|memory_search"], never=["remember"], played=[[recall]]),
        ],
    )
    assert await outcomes_of(talk, home) == [False, False, False, False, True]
