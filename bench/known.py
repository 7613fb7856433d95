"""Fits the answerability model: `python -m bench.known DIR... [--held-out DIR...] [--each N] [--write] [--json FILE]`

Fits the two regressions of `longterm.search.answerability` and prints how well they identify questions that a memory
can answer. Each DIR is a set in the format of `bench.sets`, or a folder of such sets, whose memories then count as one
set. Each memory has a separate home, filled as by `bench.ours`, once completely and once with only its first 100 turns.
It is asked

    own      questions that its turns answer
    foreign  questions of the other memories of the set, whose evidence is not in this one
    nothing  prompts that need no memory: those of the set, and `fixtures/prompts/nothing` (author C is held out)

`AUC` and `own at 5 %` compare own and foreign questions: the area under the curve, and the share of own questions above
a limit that 5 % of the foreign ones pass. `ECE` is the expected calibration error over ten bins of equal size. Each set
is judged by a model fitted to the other sets, then each memory by one fitted to the memories of four other folds, from
which the limits are chosen; a held-out set is judged by the shipped model.

`--write` fits to all sets and writes `mcp_memory/longterm/search/answerability.json`. Limits: 5 % of the foreign
questions pass `likely` in the median set; 2 % of the nothing prompts reach `unlikely` in the worst set, since hooks
return rows from that limit on; half of the rows marked `close` are evidence in the median set, which names only few of
the turns that help.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import anyio
import numpy as np
from anyio import to_thread
from numpy.typing import NDArray
from tqdm import tqdm

from bench.ours import Clock, record
from bench.sets import Haystack, Question, RetrievalSet, read_sets
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.longterm.search.answerability import JUDGED, Measured, measure
from mcp_memory.longterm.search.regressions import MODEL_FILE, QuestionFeatures, RowFeatures, regression
from mcp_memory.models.embed.classifiers import probability
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.values import Filters

Floats = NDArray[np.float64]
Kind = Literal["own", "foreign", "nothing"]
KINDS: tuple[Kind, ...] = ("own", "foreign", "nothing")

EACH = 240
MEMORIES = 20  # of a set
SMALL = 100  # turns
FOLDS = 5
PROMPTS = Path(__file__).parent.parent / "fixtures/prompts/nothing"
HELD_OUT_PROMPTS = "author_c.jsonl"
NOTHING = 15.0  # what prompts that need no memory count: a hook before every prompt must not get in their way
RIDGE = 3.0
ROUNDS = 30
FOREIGN_LIKELY, NOTHING_SHOWN, CLOSE_PRECISION = 0.05, 0.02, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question to one memory with its features; `evidence` are ids of rows that answer it."""

    set: str
    memory: str
    kind: Kind
    measured: Measured
    evidence: frozenset[str] = frozenset()


# --- asking -----------------------------------------------------------------------------------------


async def ask(name: str, sets: Sequence[RetrievalSet], prompts: Sequence[str], each: int) -> list[Asked]:
    """Ask the memories of a set, complete and small."""
    chance = random.Random(7)
    asked: list[Asked] = []
    memories = [(data, haystack) for data in sets for haystack in data.haystacks]
    chosen = memories[:: math.ceil(len(memories) / MEMORIES)]
    some = max(1, round(each / len(chosen)))
    for number, (data, haystack) in enumerate(tqdm(chosen, desc=name, unit="memory", leave=False)):
        here = {session.id for session in haystack.sessions}
        others = [
            question
            for _, other in memories
            if other is not haystack
            for question in other.questions
            if question.alternatives and not question.evidence_sessions & here
        ]
        sizes = [haystack.first(SMALL)] if sum(1 for _ in haystack.turns()) > 2 * SMALL else []
        for part in [haystack, *sizes]:
            questions = [question for question in part.questions if question.alternatives]
            own = chance.sample(questions, min(some, len(questions)))
            foreign = chance.sample(others, min(some, len(others)))
            nothing = [prompt.text for prompt in data.nothing]
            nothing += chance.sample(prompts, min(max(4, some), len(prompts)))
            asked += await _ask_memory(name, f"{name} {number}", part, own, foreign, nothing)
    return asked


async def _ask_memory(
    name: str, memory_name: str, haystack: Haystack, own: Sequence[Question], foreign: Sequence[Question],
    nothing: Sequence[str],
) -> list[Asked]:  # fmt: skip
    clock = Clock(haystack)
    asked: list[Asked] = []
    with TemporaryDirectory(prefix="bench-") as folder:
        async with open_memory(Settings(home=Path(folder)), now=clock) as memory:
            ids, _ = await record(memory, haystack)
            rows = {theirs: ours for ours, theirs in ids.items()}

            async def add(kind: Kind, text: str, at: datetime | None, evidence: frozenset[str] = frozenset()) -> None:
                clock.moment = at or clock.after
                measured = await to_thread.run_sync(_measure, memory, text)
                here = frozenset(rows[id] for id in evidence if id in rows)
                asked.append(Asked(set=name, memory=memory_name, kind=kind, measured=measured, evidence=here))

            for question in own:
                await add(
                    "own",
                    question.text,
                    question.asked_at,
                    frozenset(id for one in question.alternatives for id in one),
                )
            for question in foreign:
                await add("foreign", question.text, None)
            for text in nothing:
                await add("nothing", text, None)
    return asked


def _measure(memory: Memory, text: str) -> Measured:
    context = memory._parts.scheduler.context()  # pyright: ignore[reportPrivateUsage]  no verb returns features
    hits = context.search(
        context.space, "turn", text, embed=context.of_query, filters=Filters(), limit=JUDGED, at=context.now
    )
    return measure(context.store, context.space, text, hits, embed=context.of_query)


def read_prompts(*, held_out: bool) -> list[str]:
    files = sorted(path for path in PROMPTS.glob("*.jsonl") if (path.name == HELD_OUT_PROMPTS) == held_out)
    return [json.loads(line)["text"] for path in files for line in path.read_text(encoding="utf-8").splitlines()]


# --- fitting ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """The parameters of both regressions in the format of `answerability.json`, without the limits."""

    question: dict[str, Any]
    row: dict[str, Any]

    def log_odds(self, one: Asked) -> float:
        return regression(self.question, QuestionFeatures).log_odds(one.measured.question)

    def rows(self, one: Asked) -> dict[str, float]:
        """Return the probability that each row answers."""
        model, log_odds = regression(self.row, RowFeatures), self.log_odds(one)
        return {
            id: probability(model.log_odds(row._replace(question=log_odds))) for id, row in one.measured.rows.items()
        }


def fit(asked: Sequence[Asked]) -> Fitted:
    """Fit to questions: all sets have the same weight, and so have own and foreign questions."""
    counts = Counter((one.set, one.kind) for one in asked)
    shares = np.array([(NOTHING if one.kind == "nothing" else 1) / counts[one.set, one.kind] for one in asked])
    features = np.array([one.measured.question for one in asked], float)
    question = _fit(features, np.array([one.kind == "own" for one in asked], float), shares, QuestionFeatures._fields)
    model = regression(question, QuestionFeatures)
    rows: list[RowFeatures] = []
    right: list[bool] = []
    row_shares: list[float] = []
    for one, part in zip(asked, shares.tolist(), strict=True):
        log_odds = model.log_odds(one.measured.question)
        for id, row in one.measured.rows.items():
            rows.append(row._replace(question=log_odds))
            right.append(id in one.evidence)
            row_shares.append(part / len(one.measured.rows))
    row = _fit(np.array(rows, float), np.array(right, float), np.array(row_shares), RowFeatures._fields)
    return Fitted(question=question, row=row)


def _fit(features: Floats, right: Floats, shares: Floats, names: Sequence[str]) -> dict[str, Any]:
    """Fit a logistic regression by Newton's method, on standardized features."""
    means, spread = np.nanmean(features, axis=0), np.nanstd(features, axis=0) + 1e-6
    rows = np.column_stack([np.nan_to_num((features - means) / spread), np.ones(len(features))])
    shares = shares * len(shares) / shares.sum()
    weights = np.zeros(rows.shape[1])
    ridge = np.diag([*[RIDGE] * len(names), 0.0])
    for _ in range(ROUNDS):
        guess = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (shares * (guess - right)) + ridge @ weights
        weights -= np.linalg.solve((rows.T * (shares * guess * (1 - guess))) @ rows + ridge, slope)
    return {
        "means": {name: round(float(mean), 5) for name, mean in zip(names, means, strict=True)},
        "weights": {name: round(float(one), 5) for name, one in zip(names, weights[:-1] / spread, strict=True)},
        "constant": round(float(weights[-1]), 5),
    }


Judged = dict[int, tuple[float, dict[str, float]]]
"""By the place of a question: the probability that it can be answered, and that of each of its rows."""


def left_out(asked: Sequence[Asked], part: Callable[[Asked], Any]) -> Judged:
    """Judge each question, by its place, with a model that was fitted without its part."""
    judged: Judged = {}
    parts = [part(one) for one in asked]
    for name in dict.fromkeys(parts):
        fitted = fit([one for one, its in zip(asked, parts, strict=True) if its != name])
        for place, one in enumerate(asked):
            if parts[place] == name:
                judged[place] = probability(fitted.log_odds(one)), fitted.rows(one)
    return judged


def limits(asked: Sequence[Asked], judged: Judged) -> dict[str, float]:
    """Choose the three limits."""
    sets = list(dict.fromkeys(one.set for one in asked))

    def known(name: str, kind: Kind) -> Floats:
        return np.array([judged[at][0] for at, one in enumerate(asked) if (one.set, one.kind) == (name, kind)])

    def rows(name: str) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the probabilities of the rows of own questions, and which of the rows answer."""
        own = [(at, one) for at, one in enumerate(asked) if (one.set, one.kind) == (name, "own")]
        pairs = [(chance, id in one.evidence) for at, one in own for id, chance in judged[at][1].items()]
        return np.array([chance for chance, _ in pairs]), np.array([right for _, right in pairs])

    foreign, nothing = [known(name, "foreign") for name in sets], [known(name, "nothing") for name in sets]
    found = [rows(name) for name in sets]

    def precision(limit: float) -> float:
        return float(
            np.median([right[chance >= limit].mean() if (chance >= limit).any() else 1 for chance, right in found])
        )

    steps = np.arange(0.005, 1, 0.005).round(3)
    return {
        "likely": float(
            next(step for step in steps if np.median([(one >= step).mean() for one in foreign]) <= FOREIGN_LIKELY)
        ),
        "unlikely": float(
            next(step for step in steps if max((one >= step).mean() for one in nothing) <= NOTHING_SHOWN)
        ),
        "close": float(next(step for step in steps if precision(step) >= CLOSE_PRECISION)),
    }


# --- figures ----------------------------------------------------------------------------------------


def report(asked: Sequence[Asked], judged: Judged, limit: dict[str, float]) -> dict[str, Any]:
    """Return the figures by set, and their mean, in the format of `--json`: shares in per cent."""
    sets = {name: _figures(asked, judged, limit, name) for name in dict.fromkeys(one.set for one in asked)}
    names = next(iter(sets.values())).keys()
    mean = {name: round(float(np.mean([one[name] for one in sets.values()])), 3) for name in names}
    return {**sets, "mean": mean}


def _figures(asked: Sequence[Asked], judged: Judged, limit: dict[str, float], name: str) -> dict[str, float]:
    places = {kind: [at for at, one in enumerate(asked) if one.set == name and one.kind == kind] for kind in KINDS}
    found = {kind: np.array([judged[at][0] for at in some]) for kind, some in places.items()}
    own, foreign = found["own"], found["foreign"]
    close = {
        kind: [{id for id, chance in judged[at][1].items() if chance >= limit["close"]} for at in some]
        for kind, some in places.items()
    }
    own_marks = list(zip(places["own"], close["own"], strict=True))

    def per_cent(yes: Sequence[bool]) -> float:
        return round(100 * float(np.mean(yes)), 1) if yes else 0.0

    def above(values: Floats, bound: float) -> float:
        return round(100 * float((values >= bound).mean()), 1) if len(values) else math.nan

    return {
        "own": len(own),
        "AUC": round(100 * _area(own, foreign), 1),
        "own_at_5": above(own, float(np.quantile(foreign, 0.95, method="higher")) + 1e-12),
        "own_at_5_of_nothing": above(own, float(np.quantile(found["nothing"], 0.95, method="higher")) + 1e-12),
        "ECE": round(_calibration_error(np.concatenate([own, foreign]), len(own)), 3),
        **{f"{kind}_likely": above(values, limit["likely"]) for kind, values in found.items()},
        **{f"{kind}_unlikely": round(100 - above(values, limit["unlikely"]), 1) for kind, values in found.items()},
        "own_evidence_close": per_cent([bool(ids & asked[at].evidence) for at, ids in own_marks]),
        "foreign_close": per_cent([bool(ids) for ids in close["foreign"]]),
        "close_precision": per_cent([id in asked[at].evidence for at, ids in own_marks for id in ids]),
    }  # fmt: skip


def _area(own: Floats, foreign: Floats) -> float:
    return float(np.mean([(foreign < one).mean() + (foreign == one).mean() / 2 for one in own]))


def _calibration_error(guessed: Floats, own: int) -> float:
    """Return the expected calibration error; the first `own` guesses are for questions that can be answered."""
    right = np.arange(len(guessed)) < own
    order = np.argsort(guessed)
    parts = [part for part in np.array_split(order, 10) if len(part)]
    return sum(len(part) / len(guessed) * abs(guessed[part].mean() - right[part].mean()) for part in parts)


COLUMNS = {
    "AUC": "AUC", "own_at_5": "own at 5", "own_at_5_of_nothing": "at 5 of n.", "ECE": "ECE", "own_likely": "likely o",
    "foreign_likely": "f", "nothing_likely": "n", "own_unlikely": "unlikely o", "foreign_unlikely": "f",
    "nothing_unlikely": "n", "own_evidence_close": "close o", "foreign_close": "f", "close_precision": "precision",
}  # fmt: skip


def table(title: str, figures: dict[str, Any]) -> Iterator[str]:
    yield title
    yield f"{'':<20}" + "".join(f"{name:>11}" for name in COLUMNS.values())
    for name, one in figures.items():
        yield f"{name:<20}" + "".join(f"{one[column]:>11}" for column in COLUMNS)
    yield ""


# --- the command ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.known", description="Whether a memory knows about a question.")
    parser.add_argument("sets", nargs="*", type=Path, metavar="DIR", help="sets to fit to")
    parser.add_argument("--held-out", nargs="*", type=Path, default=[], metavar="DIR", help="sets to judge alone")
    parser.add_argument("--each", type=int, default=EACH, metavar="N", help="questions of each kind and set")
    parser.add_argument("--write", action="store_true", help="write the parameters into the package")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    try:
        fitted_on = [(folder.resolve().name, read_sets(folder)) for folder in options.sets]
        held_out = [(folder.resolve().name, read_sets(folder)) for folder in options.held_out]
    except McpMemoryError as error:
        sys.exit(f"bench.known: {error}")
    figures: dict[str, Any] = {}
    if fitted_on:
        prompts = read_prompts(held_out=False)
        asked = [one for name, sets in fitted_on for one in anyio.run(ask, name, sets, prompts, options.each)]
        by_memory = left_out(asked, lambda one: int(one.memory.rpartition(" ")[2]) % FOLDS)
        chosen = limits(asked, by_memory)
        if len(fitted_on) > 1:
            figures["each set left out"] = report(asked, left_out(asked, lambda one: one.set), chosen)
        figures["each memory left out"] = report(asked, by_memory, chosen)
        if options.write:
            fitted = fit(asked)
            MODEL_FILE.write_text(
                json.dumps({**chosen, "question": fitted.question, "row": fitted.row}, indent=1) + "\n",
                encoding="utf-8",
            )
    if held_out:
        prompts = read_prompts(held_out=True)
        asked = [one for name, sets in held_out for one in anyio.run(ask, name, sets, prompts, options.each)]
        stored = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
        shipped = Fitted(question=stored["question"], row=stored["row"])
        judged = {at: (probability(shipped.log_odds(one)), shipped.rows(one)) for at, one in enumerate(asked)}
        figures["held out"] = report(asked, judged, stored)
    for title, found in figures.items():
        print("\n".join(table(title, found)), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
