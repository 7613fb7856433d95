"""Measures the results of recall, and when it returns none: `python -m bench.recall DIR... [--each N] [--json FILE]`

Each store is filled from a haystack, as by `bench.ours`, with turns alone: no atoms, scenes or persona. It is asked
questions that its turns answer, and three kinds that they do not: questions of other haystacks of the set whose
evidence sessions are not here (the hardest: similar people with similar questions), questions of the other sets given,
and small talk. `--each` is about how many of each kind a set is asked, spread over its stores.

`bench.answers.systems` defines the systems; all of them are asked as by an agent or a hook.

`evidence` is the share of answerable questions for which the answer names at least one evidence turn, `all of it` the
share for which it names all; `tokens` is the length of an answer to an answerable question. `brought` is the share of
unrelated questions for which something is returned as related: by a hook, anything at all; by `recall`, anything
outside its part "Closest, unsure"; a search marks distant results instead.

Intervals are Wilson's, over questions; those of one store are not independent.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Literal

import anyio
from tqdm import tqdm

from bench.answers.systems import BUDGET, bring
from bench.ours import Clock, record
from bench.sets import Haystack, Question, RetrievalSet, read_set
from bench.stats import share, shown, timings_ms
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.service.memory import Memory, open_memory

EACH = 240
Kind = Literal["answerable", "other store", "other set", "chit-chat"]
KINDS: tuple[Kind, ...] = ("answerable", "other store", "other set", "chit-chat")

CHAT = {
    "en": """\
Write a haiku about rain
What is 17 times 23?
Translate 'good morning' into French
Tell me a joke
hi
Hello, how are you?
thanks, that's great
ok
yes please go on
Explain how quicksort works
Write a Python function that reverses a string
What is the capital of Mongolia?
Who wrote Pride and Prejudice?
Summarize the plot of Hamlet in two sentences
Can you write a limerick about a penguin?
What's the difference between TCP and UDP?
How do I center a div in CSS?
Give me a synonym for 'happy'
Convert 30 degrees Celsius to Fahrenheit
Fix the grammar: he go to school yesterday
What time is it in Tokyo when it is noon in London?
How many moons does Jupiter have?
Explain the theory of relativity to a child
Generate a random password with 12 characters
What does the error 'segmentation fault' mean?
Draft a polite email declining an invitation
Run the tests and fix whatever fails
Good night!
Why is the sky blue?
Write a regex that matches an email address
List three facts about octopuses
Make it shorter""".splitlines(),
    "zh": """\
写一首关于雨的俳句
你好
谢谢你
继续
法国的首都是哪里？
把“早上好”翻译成英文
用Python写一个快速排序
17乘以23等于多少？
给我讲个笑话
为什么天空是蓝色的？
解释一下相对论
水的沸点是多少度？
木星有几颗卫星？
帮我写一封拒绝邀请的邮件
长城有多长？
晚安""".splitlines(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question to one store; `evidence` are ids of the set."""

    kind: Kind
    text: str
    at: datetime | None
    evidence: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A system's answer: the turns in it, by ids of the set, its tokens, and its seconds."""

    turns: list[str]
    sure: bool
    tokens: int
    seconds: float


SYSTEMS = ("recall", "search", "hook")

_ID = re.compile(r"(?m)(?:^(?:\[|\* |  )?|(?:^  before: | ← )\[)(t\d+)[ \]]")
_SURE = "About this"
"""Heading above the turns that `recall` judges relevant to a question."""


# --- asking -----------------------------------------------------------------------------------------


def plan(data: RetrievalSet, others: Sequence[RetrievalSet], each: int) -> list[list[Asked]]:
    """Return the questions for each haystack's store, the same in every run."""
    chance = random.Random(7)
    some = max(1, each // len(data.haystacks))
    elsewhere = [question.text for other in others for question in other.questions]
    asked: list[list[Asked]] = []
    for haystack in data.haystacks:
        chat = CHAT["en" if haystack.questions[0].text.isascii() else "zh"]
        foreign = _foreign(data, haystack)
        own = [question for question in haystack.questions if question.evidence_turns]
        asked.append(
            [
                *(
                    Asked(kind="answerable", text=one.text, at=one.asked_at, evidence=one.evidence_turns)
                    for one in _some(chance, own, some)
                ),
                *(Asked(kind="other store", text=one.text, at=one.asked_at) for one in _some(chance, foreign, some)),
                *(Asked(kind="other set", text=text, at=None) for text in _some(chance, elsewhere, some)),
                *(Asked(kind="chit-chat", text=text, at=None) for text in _some(chance, chat, some)),
            ]
        )
    return asked


def _foreign(data: RetrievalSet, haystack: Haystack) -> list[Question]:
    here = {session.id for session in haystack.sessions}
    return [one for one in data.questions if one.evidence_sessions and not one.evidence_sessions & here]


def _some(chance: random.Random, rows: Sequence[Any], count: int) -> list[Any]:
    return chance.sample(rows, min(count, len(rows)))


async def measure(data: RetrievalSet, others: Sequence[RetrievalSet], each: int) -> list[tuple[Asked, dict[str, Told]]]:
    """Ask every system all planned questions."""
    plans = plan(data, others, each)
    found: list[tuple[Asked, dict[str, Told]]] = []
    with tqdm(total=sum(map(len, plans)), desc=data.name, unit="q", leave=False) as bar:
        for haystack, asked in zip(data.haystacks, plans, strict=True):
            clock = Clock(haystack)
            with TemporaryDirectory(prefix="bench-") as folder:
                async with open_memory(Settings(home=Path(folder)), now=clock) as memory:
                    ids, _ = await record(memory, haystack)
                    await memory.recall("warm")
                    for one in asked:
                        clock.moment = one.at or clock.after
                        found.append((one, {name: await _told(name, memory, one, ids) for name in SYSTEMS}))
                        bar.update()
    return found


async def _told(name: str, memory: Memory, one: Asked, ids: dict[str, str]) -> Told:
    start = perf_counter()
    brought = await bring(name, memory, one.text)
    seconds = perf_counter() - start
    turns = [ids[id] for id in dict.fromkeys(_ID.findall(brought.text)) if id in ids]
    sure = _SURE in brought.text if name == "recall" else bool(brought.text)
    return Told(turns=turns, sure=sure, tokens=brought.tokens, seconds=seconds)


# --- figures ----------------------------------------------------------------------------------------


def report(name: str, found: Sequence[tuple[Asked, dict[str, Told]]]) -> dict[str, Any]:
    """Return the figures of a set in the format of `--json`: shares in per cent, each with its interval."""
    return {
        "set": name,
        "budget": BUDGET,
        "questions": {kind: sum(one.kind == kind for one, _ in found) for kind in KINDS},
        "systems": {system: _system([(one, told[system]) for one, told in found]) for system in SYSTEMS},
    }


def _system(found: Sequence[tuple[Asked, Told]]) -> dict[str, Any]:
    answerable = [(one, told) for one, told in found if one.kind == "answerable"]
    return {
        "evidence": share([not one.evidence.isdisjoint(told.turns) for one, told in answerable]),
        "all_evidence": share([one.evidence.issubset(told.turns) for one, told in answerable]),
        "brought": {kind: share([told.sure for one, told in found if one.kind == kind]) for kind in KINDS[1:]},
        "tokens": round(sum(told.tokens for _, told in answerable) / len(answerable)) if answerable else None,
        "latency_ms": timings_ms([told.seconds for _, told in found]),
    }


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures of a set as lines of text."""
    asked = ", ".join(f"{count} {kind}" for kind, count in found["questions"].items())
    yield f"{found['set']}: {asked}; {found['budget']:,} tokens"
    systems: dict[str, Any] = found["systems"]
    yield _row("", systems)
    yield _row("evidence, %", [shown(one["evidence"]) for one in systems.values()])
    yield _row("all of it, %", [shown(one["all_evidence"]) for one in systems.values()])
    for kind in KINDS[1:]:
        yield _row(f"brought, {kind}, %", [shown(one["brought"][kind]) for one in systems.values()])
    yield _row("tokens", [str(one["tokens"]) for one in systems.values()])
    yield _row("p50 / p95, ms", ["{p50:.1f} / {p95:.1f}".format(**one["latency_ms"]) for one in systems.values()])


def _row(label: str, cells: Sequence[str] | dict[str, Any]) -> str:
    return f"{label:<28}" + "".join(f"{cell:<22}" for cell in cells).rstrip()


# --- the command ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.recall", description="What recall brings, and when nothing.")
    parser.add_argument("sets", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--each", type=int, default=EACH, metavar="N", help="questions of each kind and set")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, a list of sets")
    options = parser.parse_args(arguments)
    if options.each < 1:
        parser.error("--each has to be 1 or more")
    try:
        sets = [read_set(folder) for folder in options.sets]
    except McpMemoryError as error:
        sys.exit(f"bench.recall: {error}")
    figures: list[dict[str, Any]] = []
    for data in sets:
        others = [other for other in sets if other is not data]
        figures.append(report(data.name, anyio.run(measure, data, others, options.each)))
        print("\n".join(table(figures[-1])), end="\n\n", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
