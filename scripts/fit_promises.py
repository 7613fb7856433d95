"""Fit the model of promises and prompts: `python scripts/fit_promises.py`.

It reads the development part of `fixtures/promises`: prompts that call for a promise, in the trigger's words and in
others, and near misses. Further prompts that call for none are those of the other promises and ordinary prompts of the
promise's language (`fixtures/prompts`). It writes `mcp_memory/longterm/promises.json`.

The center and the scale of the bundled model's dimensions are those of prompts and of users' sentences
(`fixtures/sentences`). There is a limit for each number of open promises, from log-odds of models that were fitted
without the promise: from it on, one in a hundred ordinary prompts brings any of so many promises.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from fit_rules import fit_logistic
from numpy.typing import NDArray

from bench.promise_sets import LabelledPromise, read_promises, read_prompts
from mcp_memory.longterm.promise_parts import parse_promise
from mcp_memory.longterm.promises import (
    MODEL_FILE,
    PromiseFeatures,
    bundled_vector,
    promise_features,
    with_words_before,
)

FIXTURES = Path(__file__).parent.parent / "fixtures"
RIDGE = 1.0
ORDINARY = 700  # prompts
WRONG = 0.01  # share of ordinary prompts that bring any of the open promises
OPEN = (1, 2, 4, 8, 16, 32)  # promises at a time
DRAWS = 40  # of so many promises
LEFT_OUT = 3  # promises at a time
SHRINK = 0.5  # of the mean variance, added to that of each dimension
DIGITS = 4

Floats = NDArray[np.float64]


class Row(NamedTuple):
    promise: int
    group: str
    """`same`, `other`, `near`, `stranger` for prompts that call for another promise, or `none` for ordinary ones."""
    features: PromiseFeatures


def center_and_scale() -> tuple[Floats, Floats]:
    """Return the mean and the spread of each dimension over users' sentences and prompts."""
    texts = [row["text"] for row in _prompts()][::2]
    for part in sorted((FIXTURES / "sentences").glob("part_*.jsonl")):
        for line in part.read_text(encoding="utf-8").splitlines():
            texts += [sentence for turn in json.loads(line)["turns"] for sentence, _ in turn["labels"]][::3]
    vectors = np.array([bundled_vector(text) for text in texts], np.float64)
    variance = vectors.var(axis=0)
    half = len(variance) // 2
    for part in (slice(0, half), slice(half, None)):
        variance[part] += SHRINK * variance[part].mean()
    return vectors.mean(axis=0), np.sqrt(variance)


def _prompts() -> list[dict[str, Any]]:
    lines = (FIXTURES / "prompts/train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def rows_of(promises: list[LabelledPromise], ordinary: list[str]) -> list[Row]:
    """Return the rows of all promises with each prompt, prompt by prompt: their vectors are cached."""
    cut = [(parse_promise(one.promise, one.said_at), with_words_before(one.turn, one.promise)) for one in promises]
    texts: list[tuple[int | None, str, str]] = [(None, "none", text) for text in ordinary]
    for number, promise in enumerate(promises):
        texts += [(number, group, text) for group in ("same", "other", "near") for text in getattr(promise, group)]
    rows: list[Row] = []
    for own, group, text in texts:
        for number, (parts, context) in enumerate(cut):
            if own in (None, number) or group != "near":
                name = group if own in (None, number) else "stranger"
                rows.append(Row(number, name, promise_features(parts, context, text)))
    return rows


def limit_for(scores: Floats, promises: int) -> float:
    """Return the limit for a number of open promises; `scores` are (promises, ordinary prompts)."""
    draws = Random(1)
    chosen = [draws.sample(range(len(scores)), promises) for _ in range(DRAWS)]
    return float(np.mean([np.quantile(scores[some].max(axis=0), 1 - WRONG) for some in chosen]))


def main() -> None:
    center, scale = center_and_scale()
    stored = {
        "weights": dict.fromkeys((*PromiseFeatures._fields, "constant"), 0.0),
        "limits": {},
        "center": np.round(center, DIGITS).tolist(),
        "scale": np.round(scale, DIGITS).tolist(),
    }
    _write(stored)
    promises = [promise for promise in read_promises("dev") if not promise.is_date]
    standing_alone = [str(row["text"]) for row in _prompts() if not row["needs_memory"]]
    named = [text for _, text in read_prompts("dev")]
    ordinary = [*named, *Random(1).sample(standing_alone, ORDINARY - len(named))]
    rows = rows_of(promises, ordinary)
    features = np.array([row.features for row in rows], np.float64)
    group, number = np.array([row.group for row in rows]), np.array([row.promise for row in rows])
    right = np.isin(group, ("same", "other")).astype(np.float64)
    scores = np.zeros(len(rows))
    for first in range(0, len(promises), LEFT_OUT):
        own = (number >= first) & (number < first + LEFT_OUT)
        weights = fit_logistic(features[~own], right[~own], ridge=RIDGE)
        scores[own] = features[own] @ weights[:-1] + weights[-1]
    of_ordinary = scores[group == "none"].reshape(ORDINARY, len(promises)).T
    for count in OPEN:
        limit = limit_for(of_ordinary, count)
        stored["limits"][str(count)] = round(limit, 3)
        shares = {name: (scores[group == name] >= limit).mean() for name in ("same", "other", "near")}
        print(f"{count:2} open promises: " + ", ".join(f"{name} {part:.0%}" for name, part in shares.items()))
    fitted = fit_logistic(features, right, ridge=RIDGE).tolist()
    named = zip((*PromiseFeatures._fields, "constant"), fitted, strict=True)
    stored["weights"] = {name: round(weight, 3) for name, weight in named}
    _write(stored)


def _write(stored: Mapping[str, object]) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in stored.items())
    MODEL_FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
