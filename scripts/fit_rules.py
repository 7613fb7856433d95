"""Fit the models of standing rules: `python scripts/fit_rules.py`.

Two models tell whether a sentence states a standing rule. A logistic regression on the cues of
`mcp_memory/language/rule_cues.py` is cheap; the store marks turns with it. A network with one hidden layer on the
bundled encoder's features and the cues decides (`mcp_memory/models/embed/classifiers.py`).

Both learn from `fixtures/rules` and, as sentences that are no rules, from prompts of `fixtures/prompts`. Each labelled
file is left out of a fit in turn; the scores of what is left out set the bar of the decision, and precision and recall
go to `fixtures/rules/left_out.json`. `--keep-bar` skips that and keeps the bar that is stored there.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.language.rule_cues import CUES, SHAPES
from mcp_memory.language.sentences import masked_quotations
from mcp_memory.models.embed.classifiers import rule_features

ROOT = Path(__file__).parent.parent
OUT = ROOT / "mcp_memory/models/embed/model/rules.safetensors"
CUE_WEIGHTS = ROOT / "mcp_memory/language/data/rule_weights.txt"
LEFT_OUT = ROOT / "fixtures/rules/left_out.json"
RULES = ("rule", "scoped")
"""Headings of the sentences that are rules; `limit` (allergies, budgets) and all others are none."""
AUTHORS = ("labelled", "author_a", "author_b", "author_c")
"""Files written by people who did not know the code."""
AUTHORS_WEIGH = 2.0
PRECISION = 0.92
"""Of sentences by authors who are left out of the fit; the bar of the model is set for it."""
HIDDEN, EPOCHS, BATCH, RATE, DECAY, DROPPED = 96, 20, 128, 2e-3, 1.0, 0.5
CUE_RIDGE, ROUNDS = 30.0, 8
EVERY = 3  # of the prompts: all of them outweigh the rest

Floats = NDArray[np.float32]


class Example(NamedTuple):
    text: str
    language: str
    is_rule: bool
    source: str = ""


def sections(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file, each with its heading."""
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and line[2:].replace(" ", "").isalpha() and line.islower():
            heading = line[2:]
        elif line:
            yield heading, line


def composed(path: Path) -> Iterator[Example]:
    """Yield sentences made of the parts in a file: orders within a scope or for good, for once, and of others."""
    parts = {heading: line.split("|") for heading, line in sections(path)}
    space = "" if path.stem in ("ja", "zh") else " "
    bodies, tails = parts["body"], parts["tail"]
    for at, scope in enumerate(parts["scope"]):
        for step in (0, 3, 7):
            body = bodies[(at + step) % len(bodies)]
            tail = tails[(at + step) % len(tails)] if step else ""
            yield Example(f"{scope}{space}{body}{tail}.", path.stem, is_rule=True)
    for heading in ("for good", "not now"):
        for at, frame in enumerate(parts.get(heading, [])):
            for step in (0, 4, 9):
                body = bodies[(at + step) % len(bodies)]
                yield Example(frame.format(body), path.stem, is_rule=heading == "for good")
    for at, body in enumerate(bodies):
        first = body[:1].upper() + body[1:]
        yield Example(f"{first}{tails[at % len(tails)]}.", path.stem, is_rule=True)
        for heading in ("once", "reported"):
            for step in (0, 2):
                opener = parts[heading][(at + step) % len(parts[heading])]
                yield Example(f"{opener}{space}{body}.", path.stem, is_rule=False)


def examples() -> Iterator[Example]:
    for path in sorted((ROOT / "fixtures/rules/parts").glob("*.txt")):
        yield from composed(path)
    for path in sorted((ROOT / "fixtures/rules").glob("*.txt")):
        for heading, line in sections(path):
            yield Example(line, path.stem, heading in RULES)
    prompts = (ROOT / "fixtures/prompts/train.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, prompts[::EVERY]):
        yield Example(row["text"], row["language"], is_rule=False)
    for path in sorted((ROOT / "fixtures/rules").glob("*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            yield Example(row["text"], row["language"], row["rule"], path.stem)


class Network(NamedTuple):
    """A hidden layer beside a linear part: `relu(rows @ hidden + shift) @ out + rows @ direct + constant`."""

    hidden: Floats
    shift: Floats
    out: Floats
    direct: Floats
    constant: Floats

    def scores(self, rows: Floats) -> Floats:
        return np.maximum(rows @ self.hidden + self.shift, 0) @ self.out + rows @ self.direct + self.constant


def fit(rows: Floats, is_rule: Floats, weight: Floats) -> Network:
    """Return a network fitted with Adam and dropout; its weights are those of rows that are not scaled."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    rows = (rows - mean) / spread
    chance = np.random.default_rng(0)
    width = rows.shape[1]
    start = chance.normal(size=(width, HIDDEN)) / np.sqrt(width), chance.normal(size=HIDDEN) / np.sqrt(HIDDEN)
    hidden, out = (one.astype(np.float32) for one in start)
    network = Network(hidden, np.zeros(HIDDEN, np.float32), out, np.zeros(width, np.float32), np.zeros(1, np.float32))
    first, second = ([np.zeros_like(one) for one in network] for _ in range(2))
    step, steps = 0, EPOCHS * (len(rows) // BATCH)
    for _ in range(EPOCHS):
        order = chance.permutation(len(rows))
        for begin in range(0, len(rows) - BATCH + 1, BATCH):
            chosen = order[begin : begin + BATCH]
            step += 1
            slopes = slopes_of(network, rows[chosen], is_rule[chosen], weight[chosen], chance)
            rate = RATE * (1 - step / (steps + 1))
            for at, (values, slope) in enumerate(zip(network, slopes, strict=True)):
                first[at] = 0.9 * first[at] + 0.1 * slope
                second[at] = 0.99 * second[at] + 0.01 * slope * slope
                change = first[at] / (1 - 0.9**step) / (np.sqrt(second[at] / (1 - 0.99**step)) + 1e-8)
                values -= rate * (change + (DECAY * values if at < len(network) - 1 else 0))
    hidden, direct = network.hidden / spread[:, None], network.direct / spread
    return Network(hidden, network.shift - mean @ hidden, network.out, direct, network.constant - mean @ direct)


def slopes_of(
    network: Network, rows: Floats, is_rule: Floats, weight: Floats, chance: np.random.Generator
) -> tuple[Floats, ...]:
    """Return the gradients of the loss, with a part of the inputs and of the hidden layer dropped."""
    rows = rows * kept(rows.shape, chance)
    before = rows @ network.hidden + network.shift
    used = kept(before.shape, chance) * (before > 0)
    scores = (before * used) @ network.out + rows @ network.direct + network.constant
    error = ((1 / (1 + np.exp(-scores)) - is_rule) * weight / len(rows)).astype(np.float32)
    back = np.outer(error, network.out) * used
    return rows.T @ back, back.sum(axis=0), (before * used).T @ error, rows.T @ error, error.sum(keepdims=True)


def kept(shape: tuple[int, ...], chance: np.random.Generator) -> Floats:
    return ((chance.random(shape, dtype=np.float32) > DROPPED) / (1 - DROPPED)).astype(np.float32)


def fit_cues(rows: NDArray[np.float64], is_rule: Floats) -> NDArray[np.float64]:
    """Return the weights of a logistic regression, the constant last: Newton's method, on features of equal spread."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    scaled = np.column_stack([(rows - mean) / spread, np.ones(len(rows))])
    weights = np.zeros(scaled.shape[1])
    penalty = np.diag([*[CUE_RIDGE] * (len(weights) - 1), 1e-6])
    for _ in range(ROUNDS):
        guess = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        bend = (scaled.T * (guess * (1 - guess))) @ scaled + penalty
        weights -= np.linalg.solve(bend, scaled.T @ (guess - is_rule) + penalty @ weights)
    own = weights[:-1] / spread
    return np.append(own, weights[-1] - own @ mean)


def bar_for(precision: float, scores: Floats, is_rule: Floats) -> float:
    """Return the lowest score above which this share of the sentences are rules."""
    order = np.argsort(-scores)
    shares = np.cumsum(is_rule[order]) / np.arange(1, len(order) + 1)
    return float(scores[order][np.flatnonzero(shares >= precision)[-1]])


def figures(scores: Floats, is_rule: Floats, bar: float) -> dict[str, float]:
    above = scores >= bar
    found = {"precision": is_rule[above].mean(), "recall": is_rule[above].sum() / is_rule.sum()}
    return {name: round(float(value), 3) for name, value in found.items()} | {"sentences": len(is_rule)}


def left_out(rows: list[Example], features: Floats, is_rule: Floats, weight: Floats) -> dict[str, Any]:
    """Return the bar, and precision and recall on each author and each language, by models fitted without the author.

    `precise` has the same at a precision of 0.95.
    """
    sources, scores = np.array([row.source for row in rows]), np.full(len(rows), np.nan, np.float32)
    for author in AUTHORS:
        own = sources == author
        scores[own] = fit(features[~own], is_rule[~own], weight[~own]).scores(features[own])
    judged = ~np.isnan(scores)
    bar = bar_for(PRECISION, scores[judged], is_rule[judged])
    found: dict[str, Any] = {"bar": round(bar, 4), "all": figures(scores[judged], is_rule[judged], bar)}
    found["precise"] = figures(scores[judged], is_rule[judged], bar_for(0.95, scores[judged], is_rule[judged]))
    languages = np.array([row.language for row in rows])
    found["authors"] = {one: figures(scores[sources == one], is_rule[sources == one], bar) for one in AUTHORS}
    found["languages"] = {}
    for one in np.unique(languages[judged]):
        chosen = judged & (languages == one)
        found["languages"][str(one)] = figures(scores[chosen], is_rule[chosen], bar)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the models of standing rules.")
    parser.add_argument("--keep-bar", action="store_true", help="measure nothing, keep the bar of left_out.json")
    options = parser.parse_args()
    rows = list(examples())
    is_rule = np.array([row.is_rule for row in rows], np.float32)
    weight = np.array([AUTHORS_WEIGH if row.source in AUTHORS else 1 for row in rows], np.float32)
    features = rule_features([masked_quotations(row.text) for row in rows])
    if not options.keep_bar:
        found = left_out(rows, features, is_rule, weight)
        LEFT_OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(found, indent=1))
    bar = json.loads(LEFT_OUT.read_text(encoding="utf-8"))["bar"]
    network = fit(features, is_rule, weight)
    OUT.write_bytes(save(network._replace(constant=network.constant - np.float32(bar))._asdict()))
    cues = features[:, -2 * len(CUES) - len(SHAPES) :].astype(float)
    lines = [f"    {value:.2f}" for value in fit_cues(cues, is_rule)]
    head = "# Made by scripts/fit_rules.py: one weight for each of `rule_cues.cues_of`, and the constant.\n\nweights\n"
    CUE_WEIGHTS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
