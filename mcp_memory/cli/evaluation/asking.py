"""Asks mined questions of the search and of its two legs alone, all in one run over the same memory.

`ours` is `conversation_search` as an agent calls it, `bm25` and `dense` are the legs of it (`Memory.ranked_by`).
All read from the memory and nothing else. Which system a question goes to first changes from question to
question: who comes later finds pages and words already in memory.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from time import perf_counter
from typing import TYPE_CHECKING

from mcp_memory.cli.evaluation.mining import Question

if TYPE_CHECKING:
    from mcp_memory.core.types import Turn
    from mcp_memory.service.memory import Memory

__all__ = ["DEPTH", "SYSTEMS", "Answer", "Asked", "ask"]

DEPTH = 10
SYSTEMS = ("ours", "bm25", "dense")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`rank` is the place of what was sought, 1 to DEPTH, or None."""

    rank: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    question: Question
    answers: Mapping[str, Answer]


async def ask(
    memory: Memory,
    questions: Mapping[str, Sequence[Question]],
    systems: Sequence[str],
    *,
    seed: int,
    until: float,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> list[Asked]:
    """Ask the questions of each kind in turns until all are asked, or `perf_counter()` says `until`.

    In an order of chance, so that what was asked when time ran out is a fair part of the whole.
    """
    searches = _searches(memory, systems)
    for search in searches.values():
        await search("warm", 1)  # models are loaded
    shuffled = [random.Random(f"{seed} {kind}").sample(some, len(some)) for kind, some in questions.items()]
    order = [question for question in chain.from_iterable(zip_longest(*shuffled)) if question is not None]
    asked: list[Asked] = []
    for number, question in enumerate(order):
        if perf_counter() > until:
            break
        first = number % len(systems)
        answers = {name: await _answer(searches[name], question) for name in (*systems[first:], *systems[:first])}
        asked.append(Asked(question=question, answers=answers))
        progress(number + 1, len(order))
    return asked


Search = Callable[[str, int], Awaitable[Sequence["Turn"]]]


def _searches(memory: Memory, systems: Sequence[str]) -> dict[str, Search]:
    async def ours(query: str, limit: int) -> Sequence[Turn]:
        return [hit.turn for hit in (await memory.conversation_search(query, limit=limit)).hits]

    async def bm25(query: str, limit: int) -> Sequence[Turn]:
        return await memory.ranked_by({"words"}, query, limit=limit)

    async def dense(query: str, limit: int) -> Sequence[Turn]:
        return await memory.ranked_by({"meaning"}, query, limit=limit)

    searches: dict[str, Search] = {"ours": ours, "bm25": bm25, "dense": dense}
    return {name: searches[name] for name in systems}


async def _answer(search: Search, question: Question) -> Answer:
    start = perf_counter()
    found = await search(question.text, DEPTH + len(question.left_out))
    seconds = perf_counter() - start
    counted = [turn for turn in found if turn.id not in question.left_out][:DEPTH]
    rank = next((place for place, turn in enumerate(counted, start=1) if question.finds(turn)), None)
    return Answer(rank=rank, seconds=seconds)
