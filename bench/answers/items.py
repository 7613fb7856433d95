"""Questions that are put to readers, and what each system brings for them.

Each haystack that a chosen question needs is stored in a home of its own, as `bench.ours` does, and all systems are
asked over the same store at the time of the question. Left out are questions without a gold answer, and those whose
answer the memory does not hold: without evidence, of the type `adversarial`, or with an id that ends in `_abs`.
With `unanswerable` the latter are asked too, as a set of their own.

A pyramid is asked in its own home, which is not changed: `homes` has one by the name `SET-NUMBER` for each haystack.
Haystacks without one are left out then.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

from tqdm import tqdm

from bench.answers.systems import Brought, bring, needs_pyramid
from bench.ours import Clock, record
from bench.sets import Haystack, Question, RetrievalSet
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.service.memory import open_memory

UNANSWERABLE = "The memory does not say. Right is an answer that says so, and wrong one that claims anything."
_LEAST_ID = 5
"""Shorter ids of a set are numbers and the like, which stand in a text by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which systems are asked how many questions of each set (None: all), and where the homes of pyramids are."""

    systems: Sequence[str]
    questions: int | None
    unanswerable: bool
    homes: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, its gold answer, and what each system brought for it."""

    set: str
    question_id: str
    type: str
    question: str
    asked_at: datetime
    gold: str
    brought: dict[str, Brought]


def is_answerable(question: Question) -> bool:
    """Return whether the memory holds the answer."""
    return bool(question.alternatives) and question.type != "adversarial" and not question.id.endswith("_abs")


async def collect(name: str, sets: Sequence[RetrievalSet], plan: Plan, chance: random.Random) -> list[Asked]:
    """Ask each system the questions of the sets that are planned, and return them in a random order.

    Raises InvalidInput where there is none, or where a text holds an id of its set.
    """
    chosen = _chosen(sets, plan, chance)
    if not chosen:
        raise InvalidInput(f"{name} has no question with an answer and evidence. Leave it out.")
    asked: list[Asked] = []
    with tqdm(total=len(chosen), desc=name, unit="q", leave=False) as bar:
        for data in sets:
            for number, haystack in enumerate(data.haystacks):
                questions = [question for home, question in chosen if home is haystack]
                for question, at, brought in await _brought(haystack, questions, plan, _kept(plan, data, number)):
                    asked.append(
                        Asked(
                            set=name if is_answerable(question) else f"{name}, unanswerable",
                            question_id=question.id if len(sets) == 1 else f"{data.name}/{question.id}",
                            type=question.type,
                            question=question.text,
                            asked_at=at,
                            gold=_gold(question),
                            brought=brought,
                        )
                    )
                bar.update(len(questions))
    chance.shuffle(asked)
    return asked


def _chosen(sets: Sequence[RetrievalSet], plan: Plan, chance: random.Random) -> Sequence[tuple[Haystack, Question]]:
    fit = [
        (haystack, question)
        for data in sets
        for number, haystack in enumerate(data.haystacks)
        if plan.homes is None or _kept(plan, data, number)
        for question in haystack.questions
        if _gold(question) and (plan.unanswerable or is_answerable(question))
    ]
    return fit if plan.questions is None or plan.questions >= len(fit) else chance.sample(fit, plan.questions)


def _kept(plan: Plan, data: RetrievalSet, number: int) -> Path | None:
    """Return the home of a haystack's pyramid, if there is one."""
    home = plan.homes / f"{data.name}-{number}" if plan.homes else None
    return home if home and home.is_dir() else None


async def _brought(
    haystack: Haystack, questions: Sequence[Question], plan: Plan, kept: Path | None
) -> list[tuple[Question, datetime, dict[str, Brought]]]:
    """Store a haystack; return each question with the time it is asked at and what each system brings for it."""
    if not questions:
        return []
    found: list[tuple[Question, datetime, dict[str, Brought]]] = []
    clock = Clock(haystack)
    with TemporaryDirectory(prefix="bench-") as folder:
        homes = {False: Path(folder, "turns")}
        if kept:
            homes[True] = copytree(kept, Path(folder, "pyramid"))
        async with AsyncExitStack() as stack:
            memories = {
                read: await stack.enter_async_context(open_memory(Settings(home=home), now=clock))
                for read, home in homes.items()
            }
            await record(memories[False], haystack)
            for question in questions:
                clock.moment = question.asked_at or clock.after
                brought = {one: await bring(one, memories[needs_pyramid(one)], question.text) for one in plan.systems}
                _check_leaks(brought, haystack, question)
                found.append((question, clock.moment, brought))
    return found


def _gold(question: Question) -> str:
    answer = (question.answer or "").strip()
    return answer if is_answerable(question) else answer or UNANSWERABLE


def _check_leaks(brought: dict[str, Brought], haystack: Haystack, question: Question) -> None:
    """Refuse a text that holds an id of the set which nobody said: ids such as `answer_12` give the evidence away."""
    for system, one in brought.items():
        for id in _ids(haystack, question):
            if len(id) >= _LEAST_ID and id in one.text and not _is_said(id, haystack, question):
                raise InvalidInput(f"What {system} brought for {question.id} holds the set's id {id!r}. Rename it.")


def _ids(haystack: Haystack, question: Question) -> Iterator[str]:
    yield question.id
    for session in haystack.sessions:
        yield session.id
        yield from (turn.id for turn in session.turns)


def _is_said(id: str, haystack: Haystack, question: Question) -> bool:
    return id in question.text or any(id in turn.content or id in (turn.name or "") for _, turn in haystack.turns())
