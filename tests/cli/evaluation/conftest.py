"""Invented talk: sessions with topics of their own, questions that are replied to, and words of any talk."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mcp_memory.cli.evaluation.questions import Talk, index_turns
from mcp_memory.core.types import NewTurn, Turn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import HashEmbedder

SESSIONS, TURNS = 12, 20


def invented(rng: random.Random, count: int) -> list[str]:
    syllables = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
    return ["".join(rng.choices(syllables, k=4)) for _ in range(count)]


def talk_of(number: int) -> list[NewTurn]:
    """A session: every turn speaks of its topic in words of its own; every second one ends with a question."""
    rng = random.Random(f"session {number}")
    topic, fillers = invented(rng, 30), ["really", "great", "probably", "feel"]
    turns: list[NewTurn] = []
    for place in range(TURNS):
        about = rng.sample(topic, 8)
        said = f"The {' '.join(about[:4])} was {rng.choice(fillers)} {' '.join(invented(rng, 3))}."
        asked = f" Did the {' '.join(about[4:7])} work with {about[7]}?" if place % 2 == 0 else ""
        role = "assistant" if place % 2 else "user"
        turns.append(NewTurn(role=role, content=said + asked, name="Ada" if place % 2 == 0 else None))
    return turns


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    """A memory of 240 such turns."""
    async with open_memory(home=home, embedder=HashEmbedder()) as opened:
        for number in range(SESSIONS):
            await opened.record_turns(talk_of(number), session=f"s{number}")
        yield opened


@pytest.fixture(scope="session")
def talk() -> Talk:
    """The same talk, read."""
    return talk_from([(f"s{number}", [turn.content for turn in talk_of(number)]) for number in range(SESSIONS)])


def talk_from(sessions: Sequence[tuple[str, Sequence[str]]], *, name: str | None = None) -> Talk:
    """Return the talk of these sessions, whose turns are the user's and the assistant's by turns."""
    moment = datetime(2026, 11, 20, tzinfo=UTC)
    turns = [
        Turn(
            id=f"t{number}-{session}",
            session=session,
            position=number,
            role="assistant" if number % 2 else "user",
            name=name,
            content=content,
            said_at=moment,
            learned_at=moment,
            sha256="",
        )
        for session, contents in sessions
        for number, content in enumerate(contents)
    ]
    return index_turns(turns, turn_count=len(turns), sessions=len(sessions))
