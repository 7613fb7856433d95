"""Fit the model of questions about many things: `python scripts/fit_many_things.py [--out FILE]`.

A logistic regression on the features of the bundled encoder (`Encoder.features`) tells questions that ask for an
order, a count, a list, a sum, places, a summary or a development from other prompts. It learns from
`fixtures/prompts/many/train.jsonl` and, as more prompts of other kinds, from `fixtures/prompts/train.jsonl` without its
lists. Prints precision and recall for `fixtures/prompts/many/test.jsonl`, by group of languages.
`mcp_memory/models/embed/classifiers.py` reads it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.models.embed.bundled import shared_encoder

ROOT = Path(__file__).parent.parent
PROMPTS = ROOT / "fixtures/prompts"
OUT = ROOT / "mcp_memory/models/embed/model/many_things.safetensors"
STEPS, RATE, DECAY = 300, 0.05, 3e-4
OTHER_WEIGHT = 0.05
"""Weight of a prompt that was written for another purpose."""
GROUPS = {"en": ("en",), "European": ("de", "es", "fr", "it", "nl", "pl", "pt", "ru", "tr")}

Floats = NDArray[np.floating[Any]]
Row = dict[str, Any]


def read(name: str) -> list[Row]:
    return [json.loads(line) for line in (PROMPTS / name).read_text(encoding="utf-8").splitlines()]


def features_of(rows: Sequence[Row]) -> Floats:
    return shared_encoder().features([row["text"] for row in rows])


def fit(features: Floats, right: Floats, weight: Floats) -> tuple[Floats, float]:
    """Return the weights and the constant of a logistic regression with L2 decay, fitted with Adam."""
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-6
    scale = spread * np.sqrt(features.shape[1])
    rows = np.column_stack([(features - mean) / scale, np.ones(len(features))])
    decay = np.full(rows.shape[1], DECAY)
    decay[-1] = 0
    values, first, second = np.zeros((3, rows.shape[1]))
    for step in range(1, STEPS + 1):
        error = (1 / (1 + np.exp(-rows @ values)) - right) * weight
        slope = rows.T @ error / weight.sum() + decay * values
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope * slope
        change = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        values -= RATE * (1 - step / (STEPS + 20)) * change
    inner = values[:-1] / scale
    return inner, float(values[-1]) - float(mean @ inner)


def report(rows: Sequence[Row], asked: NDArray[np.bool_]) -> None:
    """Print precision and recall by group of languages, and the share of each kind that is recognised."""
    many = np.array([row["many"] for row in rows])
    groups = {language: name for name, languages in GROUPS.items() for language in languages}
    group = np.array([groups.get(row["language"], "Asian and Arabic") for row in rows])
    for name in ("all", *GROUPS, "Asian and Arabic"):
        part = np.ones(len(rows), bool) if name == "all" else group == name
        right = (asked & many & part).sum()
        print(f"{name}: precision {right / (asked & part).sum():.1%}, recall {right / (many & part).sum():.1%}")
    kinds = np.array([row["kind"] for row in rows])
    print(", ".join(f"{kind} {asked[kinds == kind].mean():.0%}" for kind in dict.fromkeys(kinds.tolist())))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the model of questions about many things.")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    own, other = read("many/train.jsonl"), [row for row in read("train.jsonl") if row["kind"] != "list"]
    right = np.array([row.get("many", False) for row in (*own, *other)], np.float32)
    weight = np.array([1.0] * len(own) + [OTHER_WEIGHT] * len(other), np.float32)
    weights, constant = fit(features_of([*own, *other]), right, weight)
    test = read("many/test.jsonl")
    report(test, features_of(test) @ weights + constant > 0)
    options.out.write_bytes(save({"weights": weights.astype(np.float32), "constant": np.array([constant], np.float32)}))


if __name__ == "__main__":
    main()
