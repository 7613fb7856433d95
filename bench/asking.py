"""What a system under measurement is: something that is opened over a haystack and then asked questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from bench.sets import Haystack, Question, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Ids of the set, best first; how long the asking took; what its text costs a reader, where it has one.

    `without` has the turns again as they rank with a signal left out, for systems that have signals.
    """

    turns: list[str]
    sessions: list[str]
    seconds: float
    tokens: int | None = None
    without: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])


Ask = Callable[[Question], Awaitable[Answer]]
System = Callable[[Haystack], AbstractAsyncContextManager[Ask]]
"""Entering it indexes the haystack; leaving it throws the index away."""


def in_order_of_first_turn(sessions: Iterable[str]) -> list[str]:
    """Return the sessions of a ranking of turns, each where its first turn stands."""
    return list(dict.fromkeys(sessions))


def ranked(said: Sequence[tuple[str, Turn]], places: Sequence[int], *, seconds: float) -> Answer:
    """Return the answer that names turns by their places in the haystack."""
    return Answer(
        turns=[said[place][1].id for place in places],
        sessions=in_order_of_first_turn(said[place][0] for place in places),
        seconds=seconds,
    )
