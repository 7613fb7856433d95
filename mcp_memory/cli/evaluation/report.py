"""The whole measurement: read, mine, ask, and say what may be said. Refused where nothing may be.

No figure stands without its interval, and none of ours without its floors: the classes below have no place
for one. Differences are judged by MRR, which moves with every rank; a difference is told only where its
interval leaves out zero and enough questions differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from mcp_memory.cli.evaluation import figures, talk
from mcp_memory.cli.evaluation.asking import SYSTEMS, Asked, ask
from mcp_memory.cli.evaluation.figures import LEAST_DIFFERING, Figure
from mcp_memory.cli.evaluation.mining import KINDS, Question, mine
from mcp_memory.core.errors import Refused

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

__all__ = [
    "LABELS",
    "LEAST_QUESTIONS",
    "LEAST_TURNS",
    "Example",
    "Gap",
    "KindReport",
    "Report",
    "System",
    "kind_report",
    "measure",
]

LEAST_TURNS = 200  # in a smaller memory, ten results are more than a twentieth of everything
LEAST_QUESTIONS = 30  # an interval of fewer is some 35 points wide
LABELS = {"ours": "ours", "bm25": "BM25 only", "dense": "dense only"}
_EXCERPT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Of one system on one kind: the share of questions whose turn came first, or among ten, in per cent.

    `mrr10` is the mean of 100 / rank, nothing for what is not among ten; `median_ms` how long a search took.
    """

    hit1: Figure
    hit10: Figure
    mrr10: Figure
    median_ms: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How far ours is ahead of a floor, in points, question by question; `differ` counts the unequal ones."""

    hit1: Figure
    hit10: Figure
    mrr10: Figure
    differ: int
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KindReport:
    """One kind of question. `refused` says why there are no figures, where there are none."""

    kind: str
    asks: str
    caution: str
    questions: int
    systems: Mapping[str, System]
    gaps: Mapping[str, Gap]
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    kind: str
    question: str
    sought: str
    excerpt: str
    ranks: Mapping[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`turns_read` of the space's `turns` were read to mine from. `stopped` says that time ran out."""

    space: str
    turns: int
    sessions: int
    turns_read: int
    model: str | None
    seed: int
    stopped: bool
    kinds: Sequence[KindReport]
    examples: Sequence[Example]


Progress = Callable[[str, int, int], None]
"""Told what is being done, how far it is, and out of how many."""


async def measure(
    memory: Memory,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    questions: int = 200,
    seed: int = 0,
    seconds: float = 300,
    show: int = 0,
    progress: Progress = lambda _doing, _done, _of: None,
) -> Report:
    """Ask at most `questions` of each kind within about `seconds`, and return the figures.

    `show` is how many examples of each kind come with them. Raises Refused where the space is too small for
    figures, and where questions would be sent to another machine.
    """
    until = perf_counter() + seconds
    _refuse_far_models(memory)
    held = sum(info.turns for info in await memory.sessions(limit=1_000_000))
    if held < LEAST_TURNS:
        raise Refused(
            f"Space {memory.space!r} holds {held:,} turns, and figures need {LEAST_TURNS}: among so few, ten results "
            "are a large part of everything. Measure again when more has been recorded."
        )
    model = await _embedded(memory, until, progress)
    said = await talk.read(memory, seed=seed, progress=lambda done: progress("reading turns", done, held))
    mined: dict[str, list[Question]] = {}
    for kind in kinds:
        progress("mining questions", len(mined), len(kinds))
        mined[kind] = mine(said, kind, questions, seed=seed)
        await anyio.lowlevel.checkpoint()  # Ctrl-C is heard here
    enough = {kind: some for kind, some in mined.items() if len(some) >= LEAST_QUESTIONS}
    if not enough:
        raise Refused(_too_few(said, max(map(len, mined.values()))))
    systems = SYSTEMS if model else SYSTEMS[:2]
    asked = await ask(
        memory, enough, systems, seed=seed, until=until, progress=lambda done, of: progress("asking", done, of)
    )
    by_kind = {kind: [one for one in asked if one.question.kind == kind] for kind in kinds}
    if all(len(some) < LEAST_QUESTIONS for some in by_kind.values()):
        raise Refused(f"Time ran out before {LEAST_QUESTIONS} questions of a kind were asked. Allow more --seconds.")
    return Report(
        space=memory.space,
        turns=said.held,
        sessions=said.sessions,
        turns_read=len(said.turns),
        model=model,
        seed=seed,
        stopped=len(asked) < sum(map(len, enough.values())),
        kinds=[kind_report(kind, by_kind[kind], len(mined[kind]), systems) for kind in kinds],
        examples=[_example(one) for some in by_kind.values() for one in some[:show]],
    )


def _refuse_far_models(memory: Memory) -> None:
    from mcp_memory.models.embed import make_embedder

    embedder = make_embedder(memory.settings)
    if embedder is not None and not embedder.local:
        raise Refused(
            f"The embedding model {memory.settings.embedder} is asked over a connection, and this would send it every "
            "question twice, at your cost. To measure the search by words alone, set MCP_MEMORY_EMBEDDER=none."
        )


async def _embedded(memory: Memory, until: float, progress: Progress) -> str | None:
    """Return the embedding model, once it has embedded everything: figures are not of half an index."""
    while True:
        state = (await memory.status())["embedding"]
        if state["model"] is None or state["embedded"] >= state["total"]:
            return state["model"]
        if state["error"] or perf_counter() > until:
            raise Refused(
                f"{state['embedded']:,} of {state['total']:,} rows are embedded, and figures would be of half an index"
                f"{': ' + state['error'] if state['error'] else ''}. `mcp-memory status` tells when all are."
            )
        progress("embedding rows", state["embedded"], state["total"])
        await anyio.sleep(0.5)


def _too_few(said: talk.Talk, most: int) -> str:
    text = (
        f"Only {most} questions of a kind can be mined from {len(said.turns):,} turns, and figures need "
        f"{LEAST_QUESTIONS}: most turns are too short to be asked for, or repeat one another."
    )
    if not most:
        return text
    return f"{text} It takes about {round(len(said.turns) * LEAST_QUESTIONS / most, -2):,} turns like these."


# --- figures of a kind ------------------------------------------------------------------------------


def kind_report(kind: str, asked: Sequence[Asked], mined: int, systems: Sequence[str]) -> KindReport:
    """Return the figures of the questions asked, of those that were mined, or why there are none."""
    refused = None
    if mined < LEAST_QUESTIONS:
        refused = f"{mined} such questions could be mined; figures need {LEAST_QUESTIONS}."
    elif len(asked) < LEAST_QUESTIONS:
        refused = f"{len(asked)} were asked when time ran out; figures need {LEAST_QUESTIONS}."
    found = {} if refused else {name: _system(asked, name) for name in systems}
    return KindReport(
        kind=kind,
        asks=KINDS[kind].asks,
        caution=KINDS[kind].caution,
        questions=len(asked),
        systems=found,
        gaps={name: _gap(asked, name) for name in found if name != "ours"},
        refused=refused,
    )


def _system(asked: Sequence[Asked], name: str) -> System:
    return System(
        hit1=figures.rate([value == 100 for value in _hits(asked, name, 1)]),
        hit10=figures.rate([value == 100 for value in _hits(asked, name, 10)]),
        mrr10=figures.mean(_reciprocal(asked, name)),
        median_ms=figures.median([1_000 * one.answers[name].seconds for one in asked]),
    )


def _gap(asked: Sequence[Asked], floor: str) -> Gap:
    ahead = figures.difference(_reciprocal(asked, "ours"), _reciprocal(asked, floor))
    differ = sum(one.answers["ours"].rank != one.answers[floor].rank for one in asked)
    return Gap(
        hit1=figures.difference(_hits(asked, "ours", 1), _hits(asked, floor, 1)),
        hit10=figures.difference(_hits(asked, "ours", 10), _hits(asked, floor, 10)),
        mrr10=ahead,
        differ=differ,
        verdict=_verdict(ahead, differ, len(asked), LABELS[floor]),
    )


def _verdict(ahead: Figure, differ: int, count: int, floor: str) -> str:
    low, high = ahead.ci95
    interval = f"[{low:+.1f}, {high:+.1f}]"
    if differ < LEAST_DIFFERING or low <= 0 <= high:
        return f"No difference from {floor} can be told from {count} questions: {ahead.value:+.1f} MRR {interval}."
    side = "ahead of" if ahead.value > 0 else "behind"
    return f"Ours is {side} {floor} by {abs(ahead.value):.1f} points of MRR {interval}."


def _hits(asked: Sequence[Asked], name: str, depth: int) -> list[float]:
    return [100.0 * ((one.answers[name].rank or depth + 1) <= depth) for one in asked]


def _reciprocal(asked: Sequence[Asked], name: str) -> list[float]:
    return [100.0 / rank if (rank := one.answers[name].rank) else 0.0 for one in asked]


def _example(one: Asked) -> Example:
    return Example(
        kind=one.question.kind,
        question=one.question.text,
        sought=one.question.target.id,
        excerpt=" ".join(one.question.target.content.split())[:_EXCERPT],
        ranks={name: one.answers[name].rank for name in sorted(one.answers, key=SYSTEMS.index)},
    )
