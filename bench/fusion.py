"""Fits the weights of the ranking: `python -m bench.fusion DIR... [--without SIGNAL] [--keep FILE] [--kept FILE]`

DIR contains a set as `bench.sets` reads it. Every question is asked of a store of its haystack, as `bench.ours` does,
and the signals of all candidates are kept, so that fitting takes seconds (`--keep` writes them, `--kept` reads them
instead of asking again).

The objective is the share of a question's evidence among the first 5, 10 and 20 turns, with each step smoothed into a
slope; every set has the same weight, whatever its number of questions. There are few weights and many questions, so the
figures of `cross-validated` (fitted on other haystacks of the same sets) should be close to those of `fitted`.

It prints the figures of the current weights, of the fitted ones, and the value of each signal: the figures of weights
fitted without it.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tqdm import tqdm

from bench.asking import in_order_of_first_turn
from bench.metrics import METRICS, figures
from bench.sets import Haystack, Question, read_set
from bench.stats import Floats
from mcp_memory.core.config import Settings
from mcp_memory.core.text import is_blank
from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.search.query import parse_query
from mcp_memory.longterm.search.ranking import SIGNALS, WEIGHTS
from mcp_memory.longterm.search.search import Search
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Filters, Vectors

STEPS = {5: 0.2, 10: 0.5, 20: 0.3}
"""Weight of the share of evidence among so many first turns."""
SLOPE = 0.35
FOLDS = 4
ROUNDS, PACE = 60, 0.15
TOWARDS_START = 2e-3


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question with the signals of its candidates, newest rows first among equals."""

    set: str
    haystack: int
    question: Question
    signals: Floats
    turns: list[str]
    sessions: list[str]

    def evidence(self) -> Floats:
        """Return the value of finding each candidate; the values of all evidence add up to 1."""
        worth = 1 / max(1, len(self.question.evidence_turns))
        return np.array([worth * (turn in self.question.evidence_turns) for turn in self.turns])

    def figures(self, weights: Floats) -> Floats:
        order: list[int] = np.argsort(-np.round(self.signals @ weights, 9), kind="stable").tolist()
        turns = [self.turns[place] for place in order]
        sessions = in_order_of_first_turn(self.sessions[place] for place in order)
        return np.array(figures(self.question, turns, sessions))


def gather(folder: Path) -> list[Case]:
    """Ask every question of a set and return the signals."""
    data = read_set(folder)
    return [
        case
        for number, haystack in enumerate(tqdm(data.haystacks, desc=data.name, leave=False))
        for case in _cases(data.name, number, haystack)
    ]


def _cases(name: str, number: int, haystack: Haystack) -> list[Case]:
    embedder = make_embedder(Settings())
    assert embedder is not None
    with TemporaryDirectory(prefix="bench-") as home:
        store = open_store(Path(home))
        known: dict[str, tuple[str, str]] = {}
        for place, session in enumerate(haystack.sessions):
            turns = [turn for turn in session.turns if not is_blank(turn.content)]
            new = [NewTurn(role=t.role, content=t.content, name=t.name, said_at=session.started_at) for t in turns]
            data = embedder.embed([turn.content for turn in turns])
            vectors = Vectors(identity=embedder.identity, data=data)
            now = session.started_at or datetime(2020, 1, 1, tzinfo=UTC)
            done = store.write(
                "default", turn_rows.append, f"s{place}", turn_rows.prepare(new), now=now, vectors=vectors
            )
            for turn, stored in zip(turns, done.stored, strict=True):
                known[stored.id] = (turn.id, session.id)
        last = max((s.started_at for s in haystack.sessions if s.started_at), default=datetime(2020, 1, 1, tzinfo=UTC))
        search = Search(store, lambda: last + timedelta(hours=1))
        cases: list[Case] = []

        def embed(text: str) -> list[Vectors]:
            return [Vectors(identity=embedder.identity, data=embedder.embed_query(text)[None, :])]

        for question in haystack.questions:
            asked = parse_query(question.text, question.asked_at or last + timedelta(hours=1))
            found, _ = search.candidates("default", "turn", asked, embed=embed, filters=Filters())
            newest = np.argsort(-found.rows)
            ids = [known[f"t{row}"] for row in found.rows[newest].tolist()]
            cases.append(
                Case(
                    set=name,
                    haystack=number,
                    question=question,
                    signals=found.signals[newest],
                    turns=[turn for turn, _ in ids],
                    sessions=[session for _, session in ids],
                )
            )
        store.close()
    return cases


def fit(cases: Sequence[Case], *, start: Floats, free: Floats) -> Floats:
    """Return weights that maximize the smoothed share of evidence among the first turns, by Adam from `start`.

    `free` is 1 for the weights that may change; the others keep their values.
    """
    asked = [(case.signals, case.evidence(), case.set) for case in cases if case.question.evidence_turns]
    sizes = {name: sum(1 for *_, other in asked if other == name) for *_, name in asked}
    weights = start * 1.0
    mean, square = np.zeros_like(start), np.zeros_like(start)
    for turn in range(1, ROUNDS + 1):
        slope = 2 * TOWARDS_START * (weights - start)
        for signals, evidence, name in asked:
            slope -= _slope(signals, evidence, weights) / sizes[name]
        slope *= free
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        weights = weights - PACE * (mean / (1 - 0.9**turn)) / (np.sqrt(square / (1 - 0.999**turn)) + 1e-8)
    return weights


def _slope(signals: Floats, evidence: Floats, weights: Floats) -> Floats:
    scores = signals @ weights
    found = np.flatnonzero(evidence)
    slope = np.zeros_like(weights)
    if not len(found) or len(scores) < 2:
        return slope
    deepest = min(len(scores), max(STEPS) + 1)
    first = np.argpartition(-scores, deepest - 1)[:deepest]
    first = first[np.argsort(-scores[first], kind="stable")]
    for depth, worth in STEPS.items():
        last, next_ = first[min(depth, deepest) - 1], first[min(depth + 1, deepest) - 1]
        bar, at_bar = (scores[last] + scores[next_]) / 2, (signals[last] + signals[next_]) / 2
        reached = 1 / (1 + np.exp(-np.clip((scores[found] - bar) / SLOPE, -30, 30)))
        steep = worth * evidence[found] * reached * (1 - reached) / SLOPE
        slope += steep @ (signals[found] - at_bar)
    return slope


def table(cases: Sequence[Case], judged: Sequence[Floats]) -> str:
    """Return a line of figures for each set; `judged` has those of each case."""
    lines: list[str] = []
    for name in dict.fromkeys(case.set for case in cases):
        rows = np.array([row for case, row in zip(cases, judged, strict=True) if case.set == name])
        values = np.nanmean(rows, axis=0)
        lines.append(f"  {name:14}" + "  ".join(f"{m} {v:5.1f}" for m, v in zip(METRICS, values, strict=True)))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="DIR")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--kept", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.kept:
        cases: list[Case] = pickle.loads(options.kept.read_bytes())
    else:
        cases = [case for folder in options.folders for case in gather(folder)]
    if options.keep:
        options.keep.write_bytes(pickle.dumps(cases))
    start, free = np.array(WEIGHTS), np.ones(len(WEIGHTS))
    print("in force", _named(start), table(cases, [case.figures(start) for case in cases]), sep="\n")
    fitted = fit(cases, start=start, free=free)
    print("fitted", _named(fitted), table(cases, [case.figures(fitted) for case in cases]), sep="\n")
    print("cross-validated", table(cases, _cross_validated(cases, start, free)), sep="\n")
    for place, name in enumerate(SIGNALS):
        without = fit(
            cases, start=np.where(np.arange(len(start)) == place, 0, fitted), free=np.arange(len(start)) != place
        )
        print(f"without {name}", table(cases, [case.figures(without) for case in cases]), sep="\n")


def _cross_validated(cases: Sequence[Case], start: Floats, free: Floats) -> list[Floats]:
    found: dict[int, Floats] = {}
    for fold in range(FOLDS):
        weights = fit([case for case in cases if case.haystack % FOLDS != fold], start=start, free=free)
        found |= {id(case): case.figures(weights) for case in cases if case.haystack % FOLDS == fold}
    return [found[id(case)] for case in cases]


def _named(weights: Floats) -> str:
    return "  " + ", ".join(f"{name}={value:.2f}" for name, value in zip(SIGNALS, weights, strict=True))


if __name__ == "__main__":
    main()
