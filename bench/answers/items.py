"""Chooses questions for readers, and collects the text that each system returns for them.

Each haystack with a chosen question is stored in a separate home, as `bench.ours` does, and all systems are asked over
the same store at the time of the question. Questions without a gold answer are left out, and so are those that the
memory cannot answer: without evidence, of the type `adversarial`, or with an id that ends in `_abs`. With
`unanswerable`, the latter form a separate set.

A memory with a pyramid is used in its own home, which is not changed: `homes` has one named `SET-NUMBER` for each
haystack. Haystacks without one are then left out.
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
"""Shorter ids of a set are numbers and the like, which occur in texts by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The systems, the number of questions of each set (None: all), and the folder of homes with pyramids."""

    systems: Sequence[str]
    questions: int | None
    unanswerable: bool
    homes: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, its gold answer, and the text of each system for it."""

    set: str
    question_id: str
    type: str
    question: str
    asked_at: datetime
    gold: str
    brought: dict[str, Brought]


def is_answerable(question: Question) -> bool:
    """Return whether the memory contains the answer."""
    return bool(question.alternatives) and question.type != "adversarial" and not question.id.endswith("_abs")


async def collect(name: str, sets: Sequence[RetrievalSet], plan: Plan, chance: random.Random) -> list[Asked]:
    """Ask each system the chosen questions of the sets; return them in random order.

    Raises InvalidInput if there are none, or if a text contains an id of its set.
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
    """Return the home of a haystack's pyramid, or None."""
    home = plan.homes / f"{data.name}-{number}" if plan.homes else None
    return home if home and home.is_dir() else None


async def _brought(
    haystack: Haystack, questions: Sequence[Question], plan: Plan, kept: Path | None
) -> list[tuple[Question, datetime, dict[str, Brought]]]:
    """Store a haystack; return each question with its time and the text of each system."""
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
    """Raise InvalidInput if a text contains an unsaid id of the set, since ids such as `answer_12` reveal evidence."""
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
