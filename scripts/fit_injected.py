"""Fit the model of injected orders: `python scripts/fit_injected.py --benign FILE... [--out FILE]`.

`mcp_memory/models/embed/classifiers.py` adds two linear models; this fits both, to the attacks and benign sentences of
`fixtures/suspicion/train.jsonl` and `paraphrases.jsonl`, the prompts of `fixtures/prompts`, and the sentences of the
`--benign` files, one a line: tens of thousands, in many languages, as talk, tool results and user interfaces have them.
None of their text is kept. The threshold is set on a quarter of the written lines, left out of a first fit: above
it is one in a hundred of the benign ones.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.models.embed.classifiers import SLOTS, features_of, word_slots
from mcp_memory.suspicion.injected_instructions import traits

ROOT = Path(__file__).parent.parent
OUT = ROOT / "mcp_memory/models/embed/model/injected.safetensors"
WRITTEN = ("suspicion/train.jsonl", "suspicion/paraphrases.jsonl")
PROMPTS = "prompts/train.jsonl"
WEIGHT = 8.0  # of a written line: each stands for many
RIDGE, ROUNDS = 400.0, 9
SPARSE_RIDGE, STEPS, RATE = 1e-6, 200, 0.05
SHARE = 1.0  # of the word model beside the encoder's
FALSE_ALARMS = 0.01
FLOOR = -2.5  # of the word model: some 1 % of the sentences of talk are above it, which keeps a turn to 1.3 ms
PARTS = 4

Floats = NDArray[np.float64]


class Words:
    """The slots of many sentences in one row."""

    def __init__(self, texts: Sequence[str]) -> None:
        slots = [word_slots(text) for text in texts]
        self.lengths = np.array([len(text_slots) for text_slots in slots])
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.flat = np.concatenate([np.array(text_slots, np.int64) for text_slots in slots])

    def scores(self, weights: Floats, bias: float) -> Floats:
        return np.add.reduceat(weights[self.flat], self.starts) / np.sqrt(self.lengths) + bias

    def gradient(self, errors: Floats) -> Floats:
        each = np.repeat(errors / np.sqrt(self.lengths), self.lengths)
        return np.bincount(self.flat, each, 2 * SLOTS).astype(np.float64)


def fit_words(texts: Sequence[str], is_attack: Floats, counts: Floats) -> tuple[Floats, float]:
    """Return the weights of a logistic regression over hashed words and its constant: Adam, all rows at a time."""
    words, weights, bias = Words(texts), np.zeros(2 * SLOTS), 0.0
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        errors = counts * (1 / (1 + np.exp(-words.scores(weights, bias))) - is_attack) / counts.sum()
        slope = words.gradient(errors) + SPARSE_RIDGE * weights
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope * slope
        weights -= RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        bias -= 0.5 * float(errors.sum())
    return weights, bias


def fit_features(features: NDArray[np.float32], is_attack: Floats, counts: Floats) -> Floats:
    """Return the weights of a logistic regression over features, the constant last: Newton's method."""
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    rows = np.column_stack([(features - mean) / spread, np.ones(len(features), np.float32)])
    weights = np.zeros(rows.shape[1])
    ridge = np.diag([*[RIDGE] * (len(weights) - 1), 1e-6])
    for _ in range(ROUNDS):
        guess = 1 / (1 + np.exp(-np.clip(rows @ weights.astype(np.float32), -30, 30)))
        slope = rows.T @ (counts * (guess - is_attack)).astype(np.float32) + ridge @ weights
        bend = (rows.T * (counts * guess * (1 - guess)).astype(np.float32)) @ rows
        weights -= np.linalg.solve(bend + ridge, slope)
    own = weights[:-1] / spread
    return np.append(own, weights[-1] - own @ mean)


def fit(
    texts: Sequence[str], features: NDArray[np.float32], is_attack: Floats, counts: Floats
) -> tuple[Floats, float, Floats]:
    return *fit_words(texts, is_attack, counts), fit_features(features, is_attack, counts)


def read(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (ROOT / "fixtures" / name).read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the model of injected orders.")
    parser.add_argument("--benign", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    written = [row for name in WRITTEN for row in read(name)]
    lines = [line for path in options.benign for line in path.read_text(encoding="utf-8").splitlines() if line]
    texts = [*(row["text"] for row in written), *(row["text"] for row in read(PROMPTS)), *lines]
    features = features_of(texts, traits)
    is_attack = np.array([row["kind"] != "benign" for row in written] + [False] * (len(texts) - len(written)), float)
    counts = np.where(np.arange(len(texts)) < len(written), WEIGHT, 1.0)

    left_out = np.zeros(len(texts), bool)
    left_out[: len(written)] = parted(written)
    rows = np.flatnonzero(~left_out)
    words, bias, own = fit([texts[at] for at in rows], features[rows], is_attack[rows], counts[rows])
    by_words = Words([texts[at] for at in np.flatnonzero(left_out)]).scores(words, bias)
    scores = features[left_out] @ own[:-1] + own[-1] + SHARE * by_words
    attacks = is_attack[left_out] == 1
    bar = float(np.quantile(scores[~attacks], 1 - FALSE_ALARMS))
    flagged = (scores > bar) & (by_words > FLOOR)
    print(f"lines left out that are held: {flagged[attacks].mean():.1%}; bar {bar:.2f}")

    words, bias, own = fit(texts, features, is_attack, counts)
    scale = float(np.abs(words).max() / 127)
    levels = np.round(words / scale).astype(np.int8)
    tensors = {
        "used": np.packbits(levels != 0),  # half the slots are never seen: only the others are stored
        "words": levels[levels != 0],
        "words_scale": np.array([scale], np.float32),
        "features": own.astype(np.float32),
        "levels": np.array([bias, FLOOR, SHARE, bar], np.float32),
    }
    options.out.write_bytes(save(tensors))


def parted(written: Sequence[dict[str, str]]) -> list[bool]:
    """Return which written lines are held out: every fourth place of each language (lines of a place are similar)."""
    seen: Counter[tuple[str, bool]] = Counter()
    chosen: list[bool] = []
    for row in written:
        group = (row["language"], row["kind"] == "benign")
        chosen.append(seen[group] % PARTS == 1)
        seen[group] += 1
    return chosen


if __name__ == "__main__":
    main()
