"""Fit the models of standing rules: `python scripts/fit_rules.py`.

Two models are added to tell whether a sentence states a standing rule (`mcp_memory/models/embed/classifiers.py`): a
network with one hidden layer, on the bundled encoder's features and the cues of `mcp_memory/language/rule_cues.py`, and
a logistic regression on hashed words and pairs of words. A third, a logistic regression on the cues alone, is cheap;
the store marks turns with it.

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
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.language.rule_cues import CUES, SHAPES
from mcp_memory.language.sentences import masked_quotations
from mcp_memory.longterm.standing_rules import STATES, SUPPORTS
from mcp_memory.models.embed.classifiers import RULE_SLOTS, rule_features, rule_slots

ROOT = Path(__file__).parent.parent
OUT = ROOT / "mcp_memory/models/embed/model/rules.safetensors"
CUE_WEIGHTS = ROOT / "mcp_memory/language/data/rule_weights.txt"
LEFT_OUT = ROOT / "fixtures/rules/left_out.json"
RULES = ("rule", "scoped")
"""Headings of the sentences that are rules; `limit` (allergies, budgets) and all others are none."""
AUTHORS = ("labelled", "author_a", "author_b", "author_c", "author_d", "author_e", "author_f", "labelled_2")
"""Files written by people who did not know the code."""
WEIGHTS = {"earlier": 4.0, "pairs": 2.0, **dict.fromkeys(AUTHORS, 2.0)}
"""What a sentence of a file weighs; 1 elsewhere."""
HIDDEN, EPOCHS, BATCH, RATE, DECAY, DROPPED = 256, 20, 256, 2e-3, 1.0, 0.5
LEAST_SEEN, WORD_EPOCHS, WORD_RATE, WORD_DECAY = 4, 8, 0.3, 1e-3
CUE_RIDGE, ROUNDS = 30.0, 8
LIMITS = {"supports": SUPPORTS, "states": STATES}
TOGETHER = 500  # sentences
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


class Samples(NamedTuple):
    """Sentences as the models read them: a row of features, slots of words, the label, the weight, file, language."""

    features: Floats
    slots: list[NDArray[np.int64]]
    is_rule: Floats
    weight: Floats
    sources: NDArray[np.str_]
    languages: NDArray[np.str_]

    def where(self, chosen: NDArray[np.bool_]) -> Samples:
        slots = [self.slots[at] for at in np.flatnonzero(chosen)]
        return Samples(
            self.features[chosen],
            slots,
            self.is_rule[chosen],
            self.weight[chosen],
            self.sources[chosen],
            self.languages[chosen],
        )


def read_samples() -> Samples:
    rows = list(examples())
    texts = [masked_quotations(row.text) for row in rows]
    features = np.concatenate(
        [rule_features(texts[start : start + TOGETHER]) for start in range(0, len(texts), TOGETHER)]
    )
    return Samples(
        features,
        [np.array(rule_slots(text)) for text in texts],
        np.array([row.is_rule for row in rows], np.float32),
        np.array([WEIGHTS.get(row.source, 1.0) for row in rows], np.float32),
        np.array([row.source for row in rows]),
        np.array([row.language for row in rows]),
    )


class Network(NamedTuple):
    """A hidden layer beside a linear part: `relu(rows @ hidden + shift) @ out + rows @ direct + constant`."""

    hidden: Floats
    shift: Floats
    out: Floats
    direct: Floats
    constant: Floats

    def scores(self, rows: Floats) -> Floats:
        """Return the log-odds of rows of features."""
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


def fit_words(slots: Sequence[NDArray[np.int64]], is_rule: Floats, weight: Floats) -> NDArray[np.float64]:
    """Return the weights of a logistic regression on hashed words, the constant last; 0 for a word that is rare."""
    seen = np.bincount(np.concatenate(slots), minlength=RULE_SLOTS)
    slots = [one[seen[one] >= LEAST_SEEN] for one in slots]
    weights, slopes = np.zeros(RULE_SLOTS + 1), np.full(RULE_SLOTS + 1, 1e-3)
    chance = np.random.default_rng(0)
    for _ in range(WORD_EPOCHS):
        for at in chance.permutation(len(slots)):
            own, scale = slots[at], np.sqrt(len(slots[at]) + 1)
            score = weights[own].sum() / scale + weights[-1]
            error = (1 / (1 + np.exp(-score)) - is_rule[at]) * weight[at]
            slope = error / scale + WORD_DECAY * weights[own]
            slopes[own] += slope * slope
            slopes[-1] += error * error
            weights[own] -= WORD_RATE * slope / np.sqrt(slopes[own])
            weights[-1] -= WORD_RATE * error / np.sqrt(slopes[-1])
    return weights


def word_scores(weights: NDArray[np.float64], slots: Sequence[NDArray[np.int64]]) -> Floats:
    return np.array([weights[one].sum() / np.sqrt(len(one) + 1) + weights[-1] for one in slots], np.float32)


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


def fit_both(train: Samples) -> tuple[Network, NDArray[np.float64]]:
    return fit(train.features, train.is_rule, train.weight), fit_words(train.slots, train.is_rule, train.weight)


def left_out_scores(samples: Samples) -> NDArray[np.float64]:
    """Return the scores of both models, a row a sentence, by fits without its author; NaN for other files."""
    scores = np.full((len(samples.slots), 2), np.nan)
    for author in AUTHORS:
        own = samples.sources == author
        network, words = fit_both(samples.where(~own))
        chosen = samples.where(own)
        scores[own] = np.column_stack([network.scores(chosen.features), word_scores(words, chosen.slots)])
    return scores


def figures(scores: NDArray[np.float64], is_rule: Floats, limit: float) -> dict[str, float]:
    """Return precision and recall of the sentences of at least this probability."""
    above = scores >= math.log(limit / (1 - limit))
    found = {"precision": is_rule[above].mean(), "recall": is_rule[above].sum() / is_rule.sum()}
    return {name: round(float(value), 3) for name, value in found.items()} | {"sentences": len(is_rule)}


def report(samples: Samples, scores: NDArray[np.float64]) -> dict[str, Any]:
    """Return precision and recall at each limit, of all sentences by left-out authors, by author and by language."""
    judged = ~np.isnan(scores)
    found: dict[str, Any] = {}
    for name, limit in LIMITS.items():
        found[name] = {"limit": limit, "all": figures(scores[judged], samples.is_rule[judged], limit)}
        for group, labels in (("authors", samples.sources), ("languages", samples.languages)):
            chosen = {str(one): judged & (labels == one) for one in np.unique(labels[judged])}
            found[name][group] = {
                one: figures(scores[is_in], samples.is_rule[is_in], limit) for one, is_in in chosen.items()
            }
    order = np.argsort(-scores[judged])
    shares = np.cumsum(samples.is_rule[judged][order]) / np.arange(1, len(order) + 1)
    for precision in (0.9, 0.95, 0.97):
        least = float(scores[judged][order][np.flatnonzero(shares >= precision)[-1]])
        found.setdefault("probability for a precision of", {})[str(precision)] = round(1 / (1 + math.exp(-least)), 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the models of standing rules.")
    parser.add_argument("--keep", action="store_true", help="measure nothing, keep the weights of left_out.json")
    options = parser.parse_args()
    samples = read_samples()
    if not options.keep:
        scores = left_out_scores(samples)
        judged = ~np.isnan(scores[:, 0])
        both = fit_logistic(scores[judged], samples.is_rule[judged], ridge=1e-3)
        found = report(samples, scores @ both[:2] + both[2])
        found["weights of network, words, constant"] = [round(float(value), 3) for value in both]
        LEFT_OUT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        print(json.dumps(found, indent=1))
    weights = json.loads(LEFT_OUT.read_text(encoding="utf-8"))["weights of network, words, constant"]
    write_model(*fit_both(samples), weights)
    cues = samples.features[:, -2 * len(CUES) - len(SHAPES) :].astype(float)
    lines = [f"    {value:.2f}" for value in fit_logistic(cues, samples.is_rule, ridge=CUE_RIDGE)]
    head = "# Made by scripts/fit_rules.py: one weight for each of `rule_cues.cues_of`, and the constant.\n\nweights\n"
    CUE_WEIGHTS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def write_model(network: Network, words: NDArray[np.float64], weights: Sequence[float]) -> None:
    """Write both models, so that their sum is the log-odds."""
    by_network, by_words, constant = weights
    scale = np.abs(network.hidden).max(axis=0) / 127
    used = words[:-1] != 0
    word_scale = np.abs(words[:-1]).max() / 127
    tensors = {
        "hidden": np.round(network.hidden / scale).astype(np.int8),
        "hidden_scale": scale.astype(np.float32),
        "shift": network.shift.astype(np.float32),
        "out": (by_network * network.out).astype(np.float32),
        "direct": (by_network * network.direct).astype(np.float32),
        "constant": (by_network * network.constant + by_words * words[-1] + constant).astype(np.float32),
        "used": np.packbits(used),
        "words": np.round(words[:-1][used] / word_scale).astype(np.int8),
        "words_scale": np.array([by_words * word_scale], np.float32),
    }
    OUT.write_bytes(save(tensors))


if __name__ == "__main__":
    main()
