"""Fit the model of contradictions between statements: `python scripts/fit_contradiction.py`.

It reads the pairs in English, German and Chinese of `fixtures/hints` and, as more pairs that are compatible, each newer
statement with older ones of other pairs: most statements of a memory are about other matters. It writes
`mcp_memory/longterm/contradiction.json`.

Both limits come from probabilities of models that were fitted without the language of the pair: `sure` is the lowest
with a precision of 95 %, `unsure` the lowest with one of 60 %. Printed are these, and the recall.
"""

from __future__ import annotations

import json
from random import Random

import numpy as np
from fit_rules import fit_logistic
from numpy.typing import NDArray

from bench.hints import FITTED, Pair, read_pairs
from mcp_memory.longterm.contradiction import MODEL_FILE, PairFeatures, pair_features

RIDGE = 1.0
OTHERS = 8  # older statements of other pairs for each newer one
LIMITS = {"sure": 0.95, "unsure": 0.6}

Floats = NDArray[np.float64]


def other_pairs(pairs: list[Pair]) -> list[Pair]:
    """Return newer statements with older ones of other pairs in the language, in a fixed random choice."""
    chosen: list[Pair] = []
    random = Random(1)
    for pair in pairs:
        own = {pair_of_newer.older for pair_of_newer in pairs if pair_of_newer.newer == pair.newer}
        others = dict.fromkeys(
            pair_of_newer.older
            for pair_of_newer in pairs
            if pair_of_newer.language == pair.language and pair_of_newer.older not in own
        )
        chosen += [pair._replace(older=older, replaces=False) for older in random.sample(list(others), OTHERS)]
    return chosen


def probabilities(rows: Floats, weights: Floats) -> Floats:
    return 1 / (1 + np.exp(-(rows @ weights[:-1] + weights[-1])))


def lowest_limit(chances: Floats, right: Floats, precision: float) -> float:
    """Return the lowest probability from which on the share of right pairs is at least `precision`."""
    order = np.argsort(-chances)
    shares = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    return float(chances[order][np.flatnonzero(shares >= precision)[-1]])


def main() -> None:
    pairs_fitted = [pair for name in FITTED for pair in read_pairs(name)]
    pairs = [*pairs_fitted, *other_pairs(pairs_fitted)]
    rows = np.array([pair_features(pair.newer, [pair.older])[0] for pair in pairs], np.float64)
    right = np.array([pair.replaces for pair in pairs], np.float64)
    language = np.array([pair.language for pair in pairs])
    chances = np.zeros(len(pairs))
    for own in (language == name for name in sorted(set(language.tolist()))):
        chances[own] = probabilities(rows[own], fit_logistic(rows[~own], right[~own], ridge=RIDGE))
    limits = {name: lowest_limit(chances, right, precision) for name, precision in LIMITS.items()}
    for name, limit in limits.items():
        shown = chances >= limit
        precision, recall = right[shown].mean(), right[shown].sum() / right.sum()
        print(f"{name}: p >= {limit:.3f}, precision {precision:.1%} recall {recall:.1%}")
    fitted = fit_logistic(rows, right, ridge=RIDGE).tolist()
    weights = dict(zip((*PairFeatures._fields, "constant"), fitted, strict=True))
    rounded = {name: round(weight, 3) for name, weight in weights.items()}
    stored = {"weights": rounded, "limits": {name: round(limit, 3) for name, limit in limits.items()}}
    MODEL_FILE.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
