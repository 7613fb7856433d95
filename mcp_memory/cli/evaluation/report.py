"""Asks mined questions of the search and of its two legs alone, and reports figures with their intervals.

`ours` is `conversation_search` as an agent calls it, `bm25` and `dense` are its legs (`Memory.ranked_by`). The system
asked first changes from question to question, because later systems find pages and words already in memory.

Everything is seeded: the same answers give the same intervals. Rates have Wilson's score interval, which is meaningful
at 0 and 100 too. Means, medians and differences, taken question by question, have the percentile bootstrap over
questions. Questions of the same session share its difficulties, so over few sessions the intervals are too narrow.
Every figure has its interval. Differences are judged by MRR, which moves with every rank; a
difference is reported only if its interval excludes zero and enough questions differ. Too small a memory is refused.
"""

from __future__ import annotations

import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel

from mcp_memory.cli.evaluation.questions import KINDS, MinedQuestion, Talk, mine, read_talk
from mcp_memory.core.errors import Refused

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.core.types import Turn
    from mcp_memory.service.memory import Memory

Interval = tuple[float, float]

RESAMPLES = 4_000
LEAST_DIFFERING = 6  # sign test: with five, a unanimous result still has p = 2 / 2 ** 5 > 5 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value and its 95 % interval."""

    value: float
    ci95: Interval


def rate(hits: Sequence[bool]) -> Figure:
    """Return the share of hits, in per cent, with Wilson's interval."""
    count, share = len(hits), sum(hits) / len(hits)
    z = 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Figure(value=100 * share, ci95=(100 * min(low, share), 100 * max(high, share)))  # min: rounding


def mean(values: Sequence[float], *, least: float = 0.0, most: float = 100.0) -> Figure:
    """Return the mean of the values, whose possible range is `least` to `most`, with its interval.

    If all are equal a bootstrap would claim certainty. Then the rule of three applies: 3 of the same number of further
    questions may differ, by the greatest possible amount.
    """
    import numpy as np

    data = np.asarray(values, dtype=np.float64)
    value = float(data.mean())
    if (data == data[0]).all():
        unseen = min(1.0, 3 / len(data))
        return Figure(value=value, ci95=(value - unseen * (value - least), value + unseen * (most - value)))
    return Figure(value=value, ci95=mean_interval(data))


def median(values: Sequence[float]) -> Figure:
    import numpy as np

    data = np.asarray(values, dtype=np.float64)
    return Figure(value=float(np.median(data)), ci95=_interval(np.median(_resampled(data, 0), axis=1)))


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """Return the mean difference of paired values, both 0 to 100."""
    return mean([own - other for own, other in zip(ours, theirs, strict=True)], least=-100.0)


def mean_interval(values: NDArray[np.float64], *, seed: int = 0) -> Interval:
    """Return the 95 % percentile bootstrap interval of the mean of `values`, which are not empty and without NaN."""
    return _interval(_resampled(values, seed).mean(axis=1))


def _resampled(values: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    import numpy as np

    return values[np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))]


def _interval(resampled: Any) -> Interval:
    import numpy as np

    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(low), float(high)


DEPTH = 10
SYSTEMS = ("ours", "bm25", "dense")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemAnswer:
    """How a system answered a question: `rank` is the rank of the target turn, 1 to DEPTH, or None."""

    rank: int | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    question: MinedQuestion
    answers: Mapping[str, SystemAnswer]


async def ask_questions(
    memory: Memory,
    questions: Mapping[str, Sequence[MinedQuestion]],
    systems: Sequence[str],
    *,
    seed: int,
    until: float,
    progress: Callable[[int, int], None] = lambda _done, _of: None,
) -> list[AskedQuestion]:
    """Ask questions of each kind in turn until all are asked, or `perf_counter()` passes `until`; return the answers.

    The order is random, so that the questions asked before time ran out are a fair sample.
    """
    searches = _searches(memory, systems)
    for search in searches.values():
        await search("warm", 1)  # models are loaded
    shuffled = [random.Random(f"{seed} {kind}").sample(some, len(some)) for kind, some in questions.items()]
    order = [question for question in chain.from_iterable(zip_longest(*shuffled)) if question is not None]
    asked: list[AskedQuestion] = []
    for number, question in enumerate(order):
        if perf_counter() > until:
            break
        first = number % len(systems)
        answers = {name: await _answer(searches[name], question) for name in (*systems[first:], *systems[:first])}
        asked.append(AskedQuestion(question=question, answers=answers))
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


async def _answer(search: Search, question: MinedQuestion) -> SystemAnswer:
    start = perf_counter()
    ranked = await search(question.text, DEPTH + len(question.left_out))
    seconds = perf_counter() - start
    counted = [turn for turn in ranked if turn.id not in question.left_out][:DEPTH]
    rank = next((place for place, turn in enumerate(counted, start=1) if question.finds(turn)), None)
    return SystemAnswer(rank=rank, seconds=seconds)


LEAST_TURNS = 200  # in a smaller memory, ten results are more than a twentieth of everything
LEAST_QUESTIONS = 30  # an interval of fewer is some 35 points wide
LABELS = {"ours": "ours", "bm25": "BM25 only", "dense": "dense only"}
_EXCERPT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Figures of a system on a kind of question.

    `hit1` and `hit10` are the percentages of questions whose target came first, or among the first ten. `mrr10` is
    the mean of 100 / rank, 0 beyond ten; `median_ms` is the median duration of a search.
    """

    hit1: Figure
    hit10: Figure
    mrr10: Figure
    median_ms: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """How far our search is ahead of a baseline on the same questions, in points of 0 to 100.

    `differ` counts the questions for which the two systems ranked the target differently.
    """

    hit1: Figure
    hit10: Figure
    mrr10: Figure
    differ: int
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KindReport:
    """Results for a kind of question. `refused` explains why figures are missing, None if there are figures."""

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
class BenchReport:
    """The result of `measure`. Questions were mined from `turns_read` of the `turns` in the space.

    `stopped` is true if time ran out before all questions were asked.
    """

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
"""Takes the name of the operation, the steps done, and the total."""


async def measure(
    memory: Memory,
    *,
    kinds: Sequence[str] = tuple(KINDS),
    questions: int = 200,
    seed: int = 0,
    seconds: float = 300,
    show: int = 0,
    progress: Progress = lambda _doing, _done, _of: None,
) -> BenchReport:
    """Ask at most `questions` of each kind within about `seconds`, and return the figures.

    `show` is the number of examples of each kind. Raises Refused if the space is too small for figures, if time runs
    out before there are enough answers, if rows are not embedded, and if questions would be sent to another machine.
    """
    until = perf_counter() + seconds
    _refuse_far_models(memory)
    turn_count = sum(info.turns for info in await memory.sessions(limit=1_000_000))
    if turn_count < LEAST_TURNS:
        raise Refused(
            f"Space {memory.space!r} has {turn_count:,} turns, and figures need {LEAST_TURNS}: among so few, ten "
            "results are a large part of everything. Measure again when more has been recorded."
        )
    model = await _wait_for_embeddings(memory, until, progress)
    talk = await read_talk(memory, seed=seed, progress=lambda done: progress("reading turns", done, turn_count))
    mined: dict[str, list[MinedQuestion]] = {}
    for kind in kinds:
        progress("mining questions", len(mined), len(kinds))
        mined[kind] = mine(talk, kind, questions, seed=seed)
        await anyio.lowlevel.checkpoint()  # Ctrl-C is heard here
    enough = {kind: some for kind, some in mined.items() if len(some) >= LEAST_QUESTIONS}
    if not enough:
        raise Refused(_too_few(talk, max(map(len, mined.values()))))
    systems = SYSTEMS if model else SYSTEMS[:2]
    asked = await ask_questions(
        memory, enough, systems, seed=seed, until=until, progress=lambda done, of: progress("asking", done, of)
    )
    by_kind = {kind: [answered for answered in asked if answered.question.kind == kind] for kind in kinds}
    if all(len(some) < LEAST_QUESTIONS for some in by_kind.values()):
        raise Refused(f"Time ran out before {LEAST_QUESTIONS} questions of a kind were asked. Allow more --seconds.")
    return BenchReport(
        space=memory.space,
        turns=talk.turn_count,
        sessions=talk.sessions,
        turns_read=len(talk.turns),
        model=model,
        seed=seed,
        stopped=len(asked) < sum(map(len, enough.values())),
        kinds=[kind_report(kind, by_kind[kind], len(mined[kind]), systems) for kind in kinds],
        examples=[_example(answered) for some in by_kind.values() for answered in some[:show]],
    )


def _refuse_far_models(memory: Memory) -> None:
    from mcp_memory.models.embed.factory import make_embedder

    embedder = make_embedder(memory.settings)
    if embedder is not None and not embedder.local:
        raise Refused(
            f"The embedding model {memory.settings.embedder} is remote, and this would send it every question twice, "
            "at your cost. To measure the search by words only, set MCP_MEMORY_EMBEDDER=none."
        )


async def _wait_for_embeddings(memory: Memory, until: float, progress: Progress) -> str | None:
    """Wait until everything is embedded, and return the embedding model; None without a model.

    Raises Refused if embedding fails, or is not done when `perf_counter()` passes `until`.
    """
    while True:
        state = (await memory.status())["embedding"]
        if state["model"] is None or state["embedded"] >= state["total"]:
            return state["model"]
        if state["error"] or perf_counter() > until:
            raise Refused(
                f"{state['embedded']:,} of {state['total']:,} rows are embedded: figures would describe half an index"
                f"{': ' + state['error'] if state['error'] else ''}. `mcp-memory status` shows the progress."
            )
        progress("embedding rows", state["embedded"], state["total"])
        await anyio.sleep(0.5)


def _too_few(talk: Talk, most: int) -> str:
    text = (
        f"Only {most} questions of a kind can be mined from {len(talk.turns):,} turns, and figures need "
        f"{LEAST_QUESTIONS}: most turns are too short, or repeat each other."
    )
    if not most:
        return text
    return f"{text} It takes about {round(len(talk.turns) * LEAST_QUESTIONS / most, -2):,} turns like these."


# --- figures of a kind ------------------------------------------------------------------------------


def kind_report(kind: str, asked: Sequence[AskedQuestion], mined: int, systems: Sequence[str]) -> KindReport:
    """Return the figures of the questions asked, or why there are none."""
    refused = None
    if mined < LEAST_QUESTIONS:
        refused = f"{mined} such questions could be mined; figures need {LEAST_QUESTIONS}."
    elif len(asked) < LEAST_QUESTIONS:
        refused = f"{len(asked)} were asked when time ran out; figures need {LEAST_QUESTIONS}."
    figures = {} if refused else {name: _system(asked, name) for name in systems}
    return KindReport(
        kind=kind,
        asks=KINDS[kind].asks,
        caution=KINDS[kind].caution,
        questions=len(asked),
        systems=figures,
        gaps={name: _gap(asked, name) for name in figures if name != "ours"},
        refused=refused,
    )


def _system(asked: Sequence[AskedQuestion], name: str) -> System:
    return System(
        hit1=rate([value == 100 for value in _hits(asked, name, 1)]),
        hit10=rate([value == 100 for value in _hits(asked, name, 10)]),
        mrr10=mean(_reciprocal(asked, name)),
        median_ms=median([1_000 * question.answers[name].seconds for question in asked]),
    )


def _gap(asked: Sequence[AskedQuestion], floor: str) -> Gap:
    ahead = difference(_reciprocal(asked, "ours"), _reciprocal(asked, floor))
    differ = sum(question.answers["ours"].rank != question.answers[floor].rank for question in asked)
    return Gap(
        hit1=difference(_hits(asked, "ours", 1), _hits(asked, floor, 1)),
        hit10=difference(_hits(asked, "ours", 10), _hits(asked, floor, 10)),
        mrr10=ahead,
        differ=differ,
        verdict=_verdict(ahead, differ, len(asked), LABELS[floor]),
    )


def _verdict(ahead: Figure, differ: int, count: int, floor: str) -> str:
    low, high = ahead.ci95
    interval = f"[{low:+.1f}, {high:+.1f}]"
    if differ < LEAST_DIFFERING or low <= 0 <= high:
        return f"No difference from {floor} can be shown with {count} questions: {ahead.value:+.1f} MRR {interval}."
    side = "ahead of" if ahead.value > 0 else "behind"
    return f"Ours is {side} {floor} by {abs(ahead.value):.1f} points of MRR {interval}."


def _hits(asked: Sequence[AskedQuestion], name: str, depth: int) -> list[float]:
    return [100.0 * ((question.answers[name].rank or depth + 1) <= depth) for question in asked]


def _reciprocal(asked: Sequence[AskedQuestion], name: str) -> list[float]:
    return [100.0 / rank if (rank := question.answers[name].rank) else 0.0 for question in asked]


def _example(asked: AskedQuestion) -> Example:
    return Example(
        kind=asked.question.kind,
        question=asked.question.text,
        sought=asked.question.target.id,
        excerpt=" ".join(asked.question.target.content.split())[:_EXCERPT],
        ranks={name: asked.answers[name].rank for name in sorted(asked.answers, key=SYSTEMS.index)},
    )
