"""Fit the prompt gate: `python scripts/fit_prompt_gate.py [--out FILE]`.

A logistic regression on the features of the bundled encoder (`Encoder.features`) separates prompts that need earlier
conversations from prompts that do not. It learns from `fixtures/prompts/train.jsonl` and prints its accuracy on
`test.jsonl`. `mcp_memory/models/embed/classifiers.py` reads the weights: one for each feature, and a constant.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.models.embed.bundled import shared_encoder

ROOT = Path(__file__).parent.parent
PROMPTS = ROOT / "fixtures/prompts"
OUT = ROOT / "mcp_memory/models/embed/model/prompts.safetensors"
RIDGE = 300.0
ROUNDS = 25

Floats = NDArray[np.float64]


def read(name: str) -> tuple[Floats, Floats]:
    """Return the features of a file's prompts and which of them need memory."""
    rows = [json.loads(line) for line in (PROMPTS / name).read_text(encoding="utf-8").splitlines()]
    features = shared_encoder().features([row["text"] for row in rows])
    known = features.any(axis=1)
    return features[known].astype(np.float64), np.array([row["needs_memory"] for row in rows], np.float64)[known]


def fit(features: Floats, needs: Floats) -> Floats:
    """Return the weights of the regression, the constant last: Newton's method, on features of equal spread."""
    mean, spread = features.mean(axis=0), features.std(axis=0)
    rows = np.column_stack([(features - mean) / spread, np.ones(len(features))])
    weights = np.zeros(rows.shape[1])
    ridge = np.diag([*[RIDGE] * (len(weights) - 1), 0.0])
    for _ in range(ROUNDS):
        guess = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (guess - needs) + ridge @ weights
        weights -= np.linalg.solve((rows.T * (guess * (1 - guess))) @ rows + ridge, slope)
    own = weights[:-1] / spread
    return np.append(own, weights[-1] - own @ mean)


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the prompt gate.")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    weights = fit(*read("train.jsonl"))
    features, needs = read("test.jsonl")
    scores = features @ weights[:-1] + weights[-1]
    alone = np.quantile(scores[needs == 0], 0.92)
    print(f"right on unseen prompts: {((scores > 0) == needs).mean():.1%}")
    print(f"found where 8 % of those that stand alone are taken for others: {(scores[needs == 1] > alone).mean():.1%}")
    options.out.write_bytes(save({"weights": weights.astype(np.float32)}))


if __name__ == "__main__":
    main()
