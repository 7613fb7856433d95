"""Fit the model of promises and prompts: `python scripts/fit_promises.py`.

It reads the development part of `fixtures/promises`: prompts that call for a promise, in the trigger's words and in
others, and near misses. Further prompts that call for none are those of the other promises and ordinary prompts of the
promise's language (`fixtures/prompts`). It writes `mcp_memory/longterm/promises.json`.

The center and the scale of the bundled model's dimensions are those of prompts and of users' sentences
(`fixtures/sentences`). The limits come from log-odds of models that were fitted without the promise.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from fit_rules import fit_logistic
from numpy.typing import NDArray

from bench.promise_sets import LabelledPromise, read_promises, read_prompts
from mcp_memory.longterm import promises as model
from mcp_memory.longterm.promise_parts import parse_promise
from mcp_memory.longterm.promises import MODEL_FILE, PromiseFeatures, bundled_vector, promise_features

FIXTURES = Path(__file__).parent.parent / "fixtures"
RIDGE = 1.0
OTHERS = 300  # ordinary prompts for each promise
LEFT_OUT = 3  # promises at a time
SHRINK = 0.5  # of the mean variance, added to that of each dimension
SHARES = (0.01, 0.005, 0.002, 0.001, 0.0005)
DIGITS = 4

Floats = NDArray[np.float64]


class Row(NamedTuple):
    promise: int
    group: str
    """`same`, `other`, `near`, or `none` for prompts of other matters."""
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


def _prompts() -> list[dict[str, str]]:
    lines = (FIXTURES / "prompts/train.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def rows_of(promises: list[LabelledPromise], ordinary: list[tuple[str, str]]) -> list[Row]:
    random = Random(1)
    rows: list[Row] = []
    for number, promise in enumerate(promises):
        parts = parse_promise(promise.promise, promise.said_at)
        context = model.with_words_before(promise.turn, promise.promise)
        own = [text for language, text in ordinary if language[:2] in (promise.language[:2], "en")]
        groups = {name: getattr(promise, name) for name in ("same", "other", "near")}
        strangers = [text for other in promises if other is not promise for text in (*other.same, *other.other)]
        groups["none"] = [*random.sample(own, min(OTHERS, len(own))), *strangers]
        for group, texts in groups.items():
            rows += [Row(number, group, promise_features(parts, context, text)) for text in texts]
    return rows


def main() -> None:
    center, scale = center_and_scale()
    stored = {
        "weights": dict.fromkeys((*PromiseFeatures._fields, "constant"), 0.0),
        "limits": {},
        "center": np.round(center, DIGITS).tolist(),
        "scale": np.round(scale, DIGITS).tolist(),
    }
    _write(stored)
    promises = [one for one in read_promises("dev") if not one.is_date]
    ordinary = [*((row["language"], row["text"]) for row in _prompts()), *read_prompts("dev")]
    rows = rows_of(promises, ordinary)
    features = np.array([row.features for row in rows], np.float64)
    group, number = np.array([row.group for row in rows]), np.array([row.promise for row in rows])
    right = np.isin(group, ("same", "other")).astype(np.float64)
    scores = np.zeros(len(rows))
    for first in range(0, len(promises), LEFT_OUT):
        own = (number >= first) & (number < first + LEFT_OUT)
        weights = fit_logistic(features[~own], right[~own], ridge=RIDGE)
        scores[own] = features[own] @ weights[:-1] + weights[-1]
    for share in SHARES:
        limit = float(np.quantile(scores[group == "none"], 1 - share))
        stored["limits"][str(share)] = round(limit, 3)
        found = {name: (scores[group == name] >= limit).mean() for name in ("same", "other", "near")}
        print(f"{share:.2%} of other prompts: " + ", ".join(f"{name} {part:.0%}" for name, part in found.items()))
    fitted = fit_logistic(features, right, ridge=RIDGE).tolist()
    named = zip((*PromiseFeatures._fields, "constant"), fitted, strict=True)
    stored["weights"] = {name: round(weight, 3) for name, weight in named}
    _write(stored)


def _write(stored: dict[str, object]) -> None:
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in stored.items())
    MODEL_FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
