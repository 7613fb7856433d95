"""Interface of the systems under measurement: opened over a haystack, then asked questions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from bench.sets import Haystack, Question, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Ids of the set, best first; the seconds of the call; the tokens of its text, if it has one.

    `without` has the ranking of turns with each signal left out, for systems that have signals.
    """

    turns: list[str]
    sessions: list[str]
    seconds: float
    tokens: int | None = None
    without: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])


Ask = Callable[[Question], Awaitable[Answer]]
System = Callable[[Haystack], AbstractAsyncContextManager[Ask]]
"""A context manager that indexes a haystack when entered and deletes the index when left."""


def in_order_of_first_turn(sessions: Iterable[str]) -> list[str]:
    """Return the distinct sessions of a ranking of turns, in the order of their first turns."""
    return list(dict.fromkeys(sessions))


def ranked(said: Sequence[tuple[str, Turn]], places: Sequence[int], *, seconds: float) -> Answer:
    """Return the answer for turns given by their places in the haystack."""
    return Answer(
        turns=[said[place][1].id for place in places],
        sessions=in_order_of_first_turn(said[place][0] for place in places),
        seconds=seconds,
    )
