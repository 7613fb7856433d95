"""Measures the pyramid on real conversations: `python -m bench.pyramid DIR --llm MODEL [--base-url URL] ...`

The first `--turns` turns of the haystack number `--haystack` of a set are replayed: each turn is recorded at its time
(half a minute apart within a session), and after each the pipeline does what is due, as in a server; between sessions,
the time passes that the set gives. At the end, all waiting stages run. `--home` keeps the store; with `--resume` it is
only measured again, without a model.

Printed: atoms per 100 turns, quotes refused, calls and tokens per 100 turns, calls per 10 turns after the first session
of the space, the share of stored atoms whose quotes occur in their turns, and the report of `verify`. Tokens are
counted here (o200k), including the schema of the reply; "same prefix" is the share of the prompt tokens that an earlier
prompt of that stage began with, which a provider's cache may serve.

Then the questions whose evidence is in those turns are asked of two lists of ten: turns alone (`conversation_search`),
and atoms and turns together (`memory_search`). An atom counts for the turns that it is based on. Floor: turns alone.
The share of the evidence in the text of `recall` is measured the same way, with 600 and 1,200 tokens, for this memory
and for one of the turns alone. Floor: the turns alone with 1,200 tokens.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from os.path import commonprefix
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import anyio.to_thread
import numpy as np

from bench.sets import Haystack, read_set
from bench.stats import Floats
from mcp_memory.cli.evaluation.report import mean_interval
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError, ModelFailed
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import Atom, NewTurn
from mcp_memory.models.llm import LLM, Completion, ModelPrompt, reply_schema
from mcp_memory.models.metered import make_llm
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.citations import cited_atoms, without_citations
from mcp_memory.testing import FixedClock

FIRST = 10
BETWEEN = timedelta(seconds=30)
LISTS = ("turns alone", "atoms and turns")
RECALLS = ("recall of turns, 1,200", "recall of turns, 600", "with atoms, 1,200", "with atoms, 600")
MANY = 100_000


class CountedLLM:
    """A model that counts its tokens by stage."""

    def __init__(self, llm: LLM) -> None:
        self.name = llm.name
        self._llm = llm
        self._count = token_counter("o200k_base").count
        self._before: dict[str, list[str]] = {}
        self.tokens: dict[str, Counter[str]] = {}

    def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
        said = self._llm.ask(prompt, timeout=timeout)
        shape = prompt.shape.__name__
        text = json.dumps(reply_schema(prompt.shape)) + "".join(message.text for message in prompt.messages)
        same = max((len(_shared_start(text, one)) for one in self._before.get(shape, ())), default=0)
        self._before.setdefault(shape, []).append(text)
        counts = {"calls": 1, "read": self._count(text), "written": self._count(said.text)}
        self.tokens.setdefault(shape, Counter()).update(counts, same=self._count(text[:same]))
        return said

    def lines(self, turns: int) -> list[str]:
        """Return the token counts, the total first."""
        whole = sum(self.tokens.values(), Counter[str]())
        bills = {"tokens of all stages": whole, **self.tokens}
        return [
            f"{name}: {one['calls']} calls, {one['read']:,} read + {one['written']:,} written, for 100 turns "
            f"{100 * (one['read'] + one['written']) / turns:,.0f}; "
            f"same prefix {100 * one['same'] / max(1, one['read']):.0f} %"
            for name, one in bills.items()
        ]


def _shared_start(one: str, other: str) -> str:
    return commonprefix([one, other])  # noqa: RUF071  character by character is what is wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Lived:
    """A store after its conversation: our ids of turns by the set's, and the token counts."""

    ids: dict[str, str]
    calls: list[dict[str, Any]]
    warm_calls: int
    warm_turns: int


async def live(memory: Memory, haystack: Haystack, clock: FixedClock) -> Lived:
    """Record the turns at their times, and run the pipeline in between as a server does."""
    ids: dict[str, str] = {}
    warm_calls = warm_turns = 0
    for number, session in enumerate(haystack.sessions, start=1):
        clock.moment = max(clock.moment + timedelta(hours=1), session.started_at or clock.moment)
        called = 0
        for turn in session.turns:
            clock.moment += BETWEEN
            new = NewTurn(role=turn.role, content=turn.content, name=turn.name, said_at=clock.moment, client_id=turn.id)
            done = await memory.record_turns([new], session=f"session-{number}")
            for id in done.stored:
                ids[id] = turn.id
            called += await _work(memory)
        clock.advance(seconds=memory.settings.idle_seconds + 1)
        called += await _work(memory)
        if number > 1:
            warm_calls, warm_turns = warm_calls + called, warm_turns + len(session.turns)
        print(f"session {number}: {len(session.turns)} turns, {called} questions", file=sys.stderr)
    await memory.consolidate()
    status = await memory.status()
    return Lived(ids=ids, calls=status["model"]["ever"], warm_calls=warm_calls, warm_turns=warm_turns)


async def _work(memory: Memory) -> int:
    parts = memory._parts  # pyright: ignore[reportPrivateUsage]  what a server's background does, in step with the clock
    assert parts.model is not None
    before = sum(one["calls"] for one in (await memory.status())["model"]["ever"])
    while True:
        try:
            if not await anyio.to_thread.run_sync(parts.scheduler.run, parts.model):
                break
        except ModelFailed as failure:  # its work is parked, and others may be due
            print(f"failed: {failure}", file=sys.stderr)
    return sum(one["calls"] for one in (await memory.status())["model"]["ever"]) - before


async def compare(memory: Memory, haystack: Haystack, ids: dict[str, str], clock: FixedClock) -> dict[str, Floats]:
    """Return the share of every question's evidence among the first ten, in per cent, for each list."""
    shares: dict[str, list[float]] = {name: [] for name in LISTS}
    for question in haystack.questions:
        clock.moment = max(clock.moment, question.asked_at or clock.moment)
        said = [[hit.turn.id] for hit in (await memory.conversation_search(question.text, limit=FIRST)).hits]
        known = await memory.memory_search(question.text, limit=FIRST)
        both = [*(_rests_on(hit.atom) for hit in known.atoms), *([hit.turn.id] for hit in known.turns)]
        for name, found in zip(LISTS, (said, both), strict=True):
            held = {ids[id] for each in found for id in each if id in ids}
            shares[name].append(100.0 * len(question.evidence_turns & held) / len(question.evidence_turns))
    return {name: np.array(values) for name, values in shares.items()}


async def compare_recalls(memory: Memory, haystack: Haystack, clock: FixedClock) -> dict[str, Floats]:
    """Return the share of every question's evidence in recall, with and without the pyramid."""
    with TemporaryDirectory(prefix="bench-") as folder:
        async with open_memory(home=Path(folder), now=clock) as plain:
            for number, session in enumerate(haystack.sessions, start=1):
                held = await memory.session_turns(f"session-{number}", limit=MANY)
                new = [
                    NewTurn(role=turn.role, content=turn.content, name=turn.name, said_at=turn.said_at)
                    for turn in held
                    if turn.role != "note"
                ]
                assert len(new) == len(session.turns)
                await plain.record_turns(new, session=f"session-{number}")
            asked = ((plain, 1_200), (plain, 600), (memory, 1_200), (memory, 600))
            shares = [await _recalled(one, haystack, budget) for one, budget in asked]
    return dict(zip(RECALLS, shares, strict=True))


async def _recalled(memory: Memory, haystack: Haystack, budget: int) -> Floats:
    """Return the share of evidence in recall, by ids of turns and atoms and by the words of atoms and scene lines."""
    ids = await _ids(memory, haystack)
    atoms = {atom.id: atom for atom in await memory.atoms(limit=MANY)}
    told = [(_letters(atom.text)[:_TOLD], (id,)) for id, atom in atoms.items()]
    for scene in await memory.scenes():
        parts = (part for line in scene.body.splitlines() for part in _BEHIND_IDS.split(line))
        told += [(_letters(without_citations(part))[:_TOLD], tuple(cited_atoms(part))) for part in parts]
    shares: list[float] = []
    for question in haystack.questions:
        bundle = await memory.recall(question.text, budget_tokens=budget)
        text = f"{bundle.stable}\n{bundle.dynamic}"
        letters = _letters(text)
        named = {*_ID.findall(text), *(id for words, many in told if words and words in letters for id in many)}
        found = {ids[id] for id in chain(named, *(_rests_on(atoms[id]) for id in named & atoms.keys())) if id in ids}
        shares.append(100.0 * len(question.evidence_turns & found) / len(question.evidence_turns))
    return np.array(shares)


_ID = re.compile(r"(?:\[|\(|, )([at]\d+)(?= ·|, |\)|\])")
_BEHIND_IDS = re.compile(r"(?<=\))")
_TOLD = 45  # letters of a line, which may be cut


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text.lower())


def _rests_on(atom: Atom) -> list[str]:
    return [atom.evidence, *(one.turn for one in atom.also)]


async def _ids(memory: Memory, haystack: Haystack) -> dict[str, str]:
    """Return our ids of turns by the set's, for a store that was filled before: recording again stores nothing."""
    ids: dict[str, str] = {}
    for number, session in enumerate(haystack.sessions, start=1):
        held = [turn for turn in await memory.session_turns(f"session-{number}", limit=MANY) if turn.role != "note"]
        ids.update((turn.id, each.id) for turn, each in zip(held, session.turns, strict=True))
    return ids


def _figures(turns: int, lived: Lived, status: dict[str, Any], grounded: tuple[int, int]) -> list[str]:
    done = status["pyramid"]["done"]
    calls = sum(one["calls"] for one in lived.calls)
    drawn, refused = done["extract"].get("atoms", 0), done["extract"].get("refused", 0)
    counts = status["counts"]
    lines = [
        f"{turns} turns, {done['extract'].get('skipped', 0)} of them skipped as chatter",
        f"atoms drawn {drawn} ({100 * drawn / turns:.1f} for 100 turns), refused {refused}",
        f"held true {counts['current']}, past {counts['atoms'] - counts['current']}, facts {counts['facts']}, "
        f"entities {counts['entities']}, scenes {counts['scenes']}; held for review {status['held']}",
        f"calls {calls} ({100 * calls / turns:.1f} for 100 turns)",
        f"grounded {grounded[0]} of {grounded[1]} quotes ({100 * grounded[0] / max(1, grounded[1]):.1f} %)",
    ]
    if lived.warm_turns:
        lines.append(
            f"after the first session {lived.warm_calls} calls for {lived.warm_turns} turns, "
            f"{10 * lived.warm_calls / lived.warm_turns:.2f} for 10"
        )
    return lines + [
        f"  {one['purpose']:<8} {one['calls']:>4} calls, {one['failed']} failed, {one['prompt_tokens']:,} + "
        f"{one['completion_tokens']:,} tokens"
        for one in lived.calls
    ]


async def _grounded(memory: Memory) -> tuple[int, int]:
    verified = await memory.verify()
    bad = sum("quote" in problem for problem in verified.problems)
    for problem in verified.problems:
        print(f"verify: {problem}", file=sys.stderr)
    return verified.quotes - bad, verified.quotes


def _table(title: str, shares: dict[str, Floats]) -> list[str]:
    floor = next(iter(shares.values()))
    lines = [f"{len(floor)} questions, {title}, per cent"]
    for name, values in shares.items():
        low, high = mean_interval(values)
        ahead = values - floor
        less, more = mean_interval(ahead)
        share, against = (
            f"{values.mean():5.1f} [{low:.1f}, {high:.1f}]",
            f"{ahead.mean():+5.1f} [{less:+.1f}, {more:+.1f}]",
        )
        lines.append(f"  {name:<22} {share}   {against}")
    return lines


async def _run(given: argparse.Namespace) -> None:
    number, most = int(given.haystack), int(given.turns)
    haystack = read_set(given.dir).haystacks[number].first(most)
    began = haystack.sessions[0].started_at or datetime.now(UTC)
    clock = FixedClock(began - timedelta(hours=1))
    with TemporaryDirectory(prefix="bench-") if given.home is None else nullcontext(given.home) as folder:
        settings = Settings(
            home=Path(folder),
            llm=given.llm,
            llm_base_url=given.base_url,
            llm_api_key=os.environ.get("MCP_MEMORY_LLM_API_KEY"),
            llm_timeout=given.timeout,
            llm_daily_tokens=50_000_000,
            llm_hourly_tokens=50_000_000,
            distil=False,
        )
        model = make_llm(settings)
        counted = None if model is None else CountedLLM(model)
        async with open_memory(settings, now=clock, llm=counted) as memory:
            if given.resume:
                clock.moment = max(one.last for one in await memory.sessions()) + timedelta(hours=3)
                calls = (await memory.status())["model"]["ever"]
                lived = Lived(ids=await _ids(memory, haystack), calls=calls, warm_calls=0, warm_turns=0)
            else:
                lived = await live(memory, haystack, clock)
            status = await memory.status()
            print("\n".join(_figures(len(lived.ids), lived, status, await _grounded(memory))))
            if counted is not None:
                print("\n".join(counted.lines(len(lived.ids))))
            if haystack.questions:
                shares = await compare(memory, haystack, lived.ids, clock)
                print("\n".join(_table("share of the evidence turns among ten results", shares)))
                recalls = await compare_recalls(memory, haystack, clock)
                print("\n".join(_table("share of the evidence turns that recall brings", recalls)))
                if given.json:
                    given.json.write_text(json.dumps({name: list(values) for name, values in shares.items()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--haystack", type=int, default=0)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--llm", default="none", help="a litellm name; its key is MCP_MEMORY_LLM_API_KEY")
    parser.add_argument("--base-url")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one question")
    parser.add_argument("--home", type=Path, help="keep the store here")
    parser.add_argument("--resume", action="store_true", help="the conversation is in the home already")
    parser.add_argument("--json", type=Path)
    try:
        anyio.run(_run, parser.parse_args())
    except McpMemoryError as error:
        raise SystemExit(f"bench.pyramid: {error}") from None


if __name__ == "__main__":
    main()
