"""Fit the models of standing rules: `python scripts/fit_rules.py`.

Two models are added to tell whether a sentence states a standing rule (`mcp_memory/models/embed/classifiers.py`): a
network with one hidden layer, on the bundled encoder's features and the cues of `mcp_memory/language/rule_words.py`,
and a logistic regression on words (`mcp_memory/language/rule_words.py`), with which the store marks turns too.

They learn from `fixtures/rules` and, as sentences that are no rules, from prompts of `fixtures/prompts`. Each file by
an author who did not know the code is left out of a fit in turn. The scores of what is left out weigh the two models
against each other and make their sum the log-odds; precision and recall on them, at the limits of
`mcp_memory/longterm/standing_rules.py`, go to `fixtures/rules/left_out.json`. `--keep` skips all that and keeps the
weights of the models that are stored there.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from network import Network, fit_network, quantised
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.language.rule_words import SLOTS, pack, slots_of
from mcp_memory.language.sentences import masked_quotations, rule_candidates
from mcp_memory.longterm.standing_rules import STATES, SUPPORTS
from mcp_memory.models.embed.classifiers import rule_features, rule_probability

ROOT = Path(__file__).parent.parent
OUT = ROOT / "mcp_memory/models/embed/model/rules.safetensors"
WORDS_OUT = ROOT / "mcp_memory/language/data/rule_words.bin"
LEFT_OUT = ROOT / "fixtures/rules/left_out.json"
RULES = ("rule", "scoped")
"""Headings of the sentences that are rules; `limit` (allergies, budgets) and all others are none."""
AUTHORS = ("labelled", "author_a", "author_b", "author_c", "author_d", "author_e", "author_f", "labelled_2")
"""Files written by people who did not know the code."""
WEIGHTS = {"earlier": 8.0, "pairs": 2.0, **dict.fromkeys(AUTHORS, 2.0)}
"""What a sentence of a file weighs; 1 elsewhere."""
HIDDEN, EPOCHS = 256, 20
LEAST_SEEN, WORD_EPOCHS, WORD_RATE, WORD_DECAY = 4, 8, 0.3, 1e-3
ROUNDS = 8
LIMITS = {"supports": SUPPORTS, "states": STATES}
TOGETHER = 500  # sentences
EVERY = 3  # of the prompts: all of them outweigh the rest

Floats = NDArray[np.floating[Any]]


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


class Inputs(NamedTuple):
    """Texts as the models read them: a row of features each, and the slots of their words."""

    features: Floats
    slots: list[NDArray[np.int64]]

    def where(self, chosen: NDArray[np.bool_]) -> Inputs:
        return Inputs(self.features[chosen], [self.slots[at] for at in np.flatnonzero(chosen)])


def inputs_of(texts: Sequence[str]) -> Inputs:
    parts = [rule_features(texts[start : start + TOGETHER]) for start in range(0, len(texts), TOGETHER)]
    return Inputs(np.concatenate(parts), [np.array(slots_of(text)) for text in texts])


class WordModel(NamedTuple):
    weights: NDArray[np.float64]
    constant: float

    def scores(self, slots: Sequence[NDArray[np.int64]]) -> Floats:
        """Return the log-odds of sentences by the slots of their words."""
        sums = [self.weights[own].sum() / math.sqrt(len(own) + 1) for own in slots]
        return np.array(sums, np.float32) + np.float32(self.constant)


def fit_words(slots: Sequence[NDArray[np.int64]], is_rule: Floats, weight: Floats) -> WordModel:
    """Return a logistic regression, fitted with Adagrad; words of fewer than `LEAST_SEEN` sentences weigh 0."""
    seen = np.bincount(np.concatenate(slots), minlength=SLOTS)
    common: list[NDArray[np.int64]] = [own[seen[own] >= LEAST_SEEN] for own in slots]
    weights, slopes = np.zeros(SLOTS), np.full(SLOTS, 1e-3)
    constant, constant_slope = 0.0, 1e-3
    chance = np.random.default_rng(0)
    for _ in range(WORD_EPOCHS):
        for at in map(int, chance.permutation(len(common))):
            own, scale = common[at], math.sqrt(len(slots[at]) + 1)
            score = float(weights[own].sum()) / scale + constant
            error = float((1 / (1 + math.exp(-score)) - is_rule[at]) * weight[at])
            slope = error / scale + WORD_DECAY * weights[own]
            slopes[own] += slope * slope
            weights[own] -= WORD_RATE * slope / np.sqrt(slopes[own])
            constant_slope += error * error
            constant -= WORD_RATE * error / math.sqrt(constant_slope)
    return WordModel(weights, constant)


def fit_logistic(rows: NDArray[np.float64], is_rule: Floats, *, ridge: float) -> NDArray[np.float64]:
    """Return the weights of a logistic regression, the constant last: Newton's method, on features of equal spread."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    scaled = np.column_stack([(rows - mean) / spread, np.ones(len(rows))])
    weights = np.zeros(scaled.shape[1])
    penalty = np.diag([*[ridge] * (len(weights) - 1), 1e-6])
    for _ in range(ROUNDS):
        guess = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        bend = (scaled.T * (guess * (1 - guess))) @ scaled + penalty
        weights -= np.linalg.solve(bend, scaled.T @ (guess - is_rule) + penalty @ weights)
    own = weights[:-1] / spread
    return np.append(own, weights[-1] - own @ mean)


def left_out_scores(
    rows: Sequence[Example], inputs: Inputs, is_rule: Floats, weight: Floats
) -> tuple[NDArray[np.int64], Floats]:
    """Return the row of each sentence of a text by an author, and its scores by fits without the author.

    Scores are (sentences, 2, 2): of the sentence alone and between its neighbours, by the network and by words.
    """
    sources = np.array([row.source for row in rows])
    examples = [
        (at, candidate)
        for at, row in enumerate(rows)
        if row.source in AUTHORS
        for candidate in rule_candidates(row.text, least=-math.inf)
    ]
    owner = np.array([at for at, _ in examples])
    read = (
        inputs_of([reading_rows.text for _, reading_rows in examples]),
        inputs_of([reading_rows.context for _, reading_rows in examples]),
    )
    scores = np.zeros((len(examples), 2, 2))
    for author in AUTHORS:
        others = sources != author
        network = fit_network(inputs.features[others], is_rule[others], weight[others], hidden=HIDDEN, epochs=EPOCHS)
        words = fit_words(inputs.where(others).slots, is_rule[others], weight[others])
        own = sources[owner] == author
        for reading, chosen in enumerate(reading_rows.where(own) for reading_rows in read):
            scores[own, reading] = np.column_stack([network.scores(chosen.features), words.scores(chosen.slots)])
        print(f"left out: {author}", flush=True)
    return owner, scores


def figures(scores: Floats, is_rule: Floats, limit: float) -> dict[str, float]:
    """Return precision and recall of the sentences of at least this probability."""
    above = scores >= limit
    shares = {"precision": is_rule[above].mean(), "recall": is_rule[above].sum() / is_rule.sum()}
    return {name: round(float(value), 3) for name, value in shares.items()} | {"sentences": len(is_rule)}


def report(rows: Sequence[Example], probabilities: dict[str, list[float]]) -> dict[str, Any]:
    """Return precision and recall at each limit: of all sentences by left-out authors, by author and by language.

    `probabilities` has those of each author's sentences in their order.
    """
    rows = [row for author in AUTHORS for row in rows if row.source == author]
    chances = np.concatenate([probabilities[author] for author in AUTHORS])
    is_rule = np.array([row.is_rule for row in rows], np.float32)
    results: dict[str, Any] = {}
    for name, limit in LIMITS.items():
        results[name] = {"limit": limit, "all": figures(chances, is_rule, limit)}
        for group, labels in (("authors", [row.source for row in rows]), ("languages", [row.language for row in rows])):
            chosen = {
                label: np.array([label_of_row == label for label_of_row in labels]) for label in sorted(set(labels))
            }
            results[name][group] = {label: figures(chances[own], is_rule[own], limit) for label, own in chosen.items()}
    order = np.argsort(-chances)
    shares = np.cumsum(is_rule[order]) / np.arange(1, len(order) + 1)
    least = {goal: float(chances[order][np.flatnonzero(shares >= goal)[-1]]) for goal in (0.9, 0.92, 0.95, 0.97)}
    return results | {
        "limits by precision": {
            goal: [round(at, 3), figures(chances, is_rule, at)["recall"]] for goal, at in least.items()
        }
    }


def measured(rows: Sequence[Example], inputs: Inputs, is_rule: Floats, weight: Floats) -> dict[str, Any]:
    """Return what `left_out.json` holds: how the models are weighed, figures, and the probability of each sentence."""
    owner, scores = left_out_scores(rows, inputs, is_rule, weight)
    both = fit_logistic(scores.mean(axis=1), is_rule[owner], ridge=1e-3)
    alone, between = (scores @ both[:2] + both[2]).T
    chance = np.array([rule_probability(*pair) for pair in zip(alone.tolist(), between.tolist(), strict=True)])
    chances, guesses = np.zeros(len(rows)), np.full(len(rows), -np.inf)  # of a text, its best sentence
    np.maximum.at(chances, owner, chance)
    np.maximum.at(guesses, owner, scores[:, :, 1].max(axis=1))
    sources = np.array([row.source for row in rows])
    judged = np.isin(sources, AUTHORS)
    rules, others = judged & (is_rule > 0), judged & (is_rule == 0)
    marked = {
        str(limit): [round(float((guesses[own] >= limit).mean()), 3) for own in (rules, others)]
        for limit in (-4.0, -3.5, -3.0, -2.5, -2.0, -1.5)
    }
    return {
        "weights": [round(float(value), 3) for value in both],
        "marked by words, of rules and of others": marked,
        "probabilities": {author: chances[sources == author].round(3).tolist() for author in AUTHORS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the models of standing rules.")
    parser.add_argument("--keep", action="store_true", help="keep the weights and probabilities of left_out.json")
    options = parser.parse_args()
    rows = list(examples())
    is_rule = np.array([row.is_rule for row in rows], np.float32)
    weight = np.array([WEIGHTS.get(row.source, 1.0) for row in rows], np.float32)
    inputs = inputs_of([masked_quotations(row.text) for row in rows])
    stored = json.loads(LEFT_OUT.read_text(encoding="utf-8")) if options.keep else None
    results = stored or measured(rows, inputs, is_rule, weight)
    results |= report(rows, results["probabilities"])
    LEFT_OUT.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in results.items() if name != "probabilities"}, indent=1))
    by_network, by_words, constant = results["weights"]
    words = fit_words(inputs.slots, is_rule, weight)
    used = np.flatnonzero(words.weights).tolist()
    WORDS_OUT.write_bytes(pack({slot: float(words.weights[slot]) for slot in used}, words.constant))
    network = fit_network(inputs.features, is_rule, weight, hidden=HIDDEN, epochs=EPOCHS)
    write_network(network, by_network, by_words, constant)


def write_network(network: Network, by_network: float, by_words: float, constant: float) -> None:
    weighed = network._replace(
        out=by_network * network.out,
        direct=by_network * network.direct,
        constant=by_network * network.constant + constant,
    )
    OUT.write_bytes(save({**quantised(weighed), "words": np.array([by_words], np.float32)}))


if __name__ == "__main__":
    main()
