"""Fit the model of sentence labels: `python scripts/fit_sentence_labels.py [--out FILE]`.

A multinomial logistic regression on `sentence_features` learns what the sentences of `fixtures/sentences` state. Prints
precision, recall and F1 of each label for a fifth of the authors when they are left out, then fits all.
`mcp_memory/models/embed/sentence_labels.py` reads it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.models.embed.sentence_labels import LABELS, SentenceInTurn, scaled, sentence_features

ROOT = Path(__file__).parent.parent
SENTENCES = ROOT / "fixtures/sentences"
OUT = ROOT / "mcp_memory/models/embed/model/labels.safetensors"
STEPS, RATE, DECAY = 400, 0.02, 0.04
CLASSES = (*LABELS, "none")
BATCH = 64
LEFT_OUT = 5
"""One author of so many is left out for the report."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Example:
    author: str
    sentence: SentenceInTurn
    label: str


def examples() -> Iterator[Example]:
    """Yield the labelled sentences, each with its neighbours and the assistant's words before the turn."""
    for file in sorted(SENTENCES.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            conversation = json.loads(line)
            for turn in conversation["turns"]:
                yield from _of_turn(conversation["author"], turn)


def _of_turn(author: str, turn: dict[str, Any]) -> Iterator[Example]:
    texts = [text for text, _ in turn["labels"]]
    reply_to = (turn.get("assistant") or "")[-200:]
    for at, (text, label) in enumerate(turn["labels"]):
        before, after = texts[at - 1] if at else "", "".join(texts[at + 1 : at + 2])
        yield Example(author, SentenceInTurn(text, before, after, reply_to), label)


def fit(rows: Floats, classes: NDArray[np.int64]) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of a regression with L2 decay, fitted with Adam; each class weighs the same."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    rows = scaled(rows, mean, spread)
    counts = np.bincount(classes, minlength=len(CLASSES))
    weight = (len(classes) / len(CLASSES) / np.maximum(counts, 1))[classes]
    right = np.eye(len(CLASSES))[classes]
    values, first, second = np.zeros((3, rows.shape[1] + 1, len(CLASSES)))
    given = np.column_stack([rows, np.ones(len(rows))])
    for step in range(1, STEPS + 1):
        scores = given @ values
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        slope = given.T @ ((chances - right) * weight[:, None]) / len(rows)
        slope[:-1] += DECAY * values[:-1]
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope * slope
        change = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        values -= RATE * (1 - step / (STEPS + 20)) * change
    tensors = {"mean": mean, "spread": spread, "weights": values[:-1], "constants": values[-1]}
    return {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}


def predicted(model: dict[str, NDArray[np.float32]], rows: Floats) -> NDArray[np.int64]:
    scores = scaled(rows, model["mean"], model["spread"]) @ model["weights"] + model["constants"]
    return scores.argmax(axis=1)


def report(right: NDArray[np.int64], given: NDArray[np.int64]) -> None:
    """Print precision, recall and F1 by label, and their macro averages."""
    figures: list[tuple[float, float, float]] = []
    for place, name in enumerate(CLASSES):
        hits = int(((right == place) & (given == place)).sum())
        precision = hits / max(1, int((given == place).sum()))
        recall = hits / max(1, int((right == place).sum()))
        figures.append((precision, recall, 2 * hits / max(1, int((given == place).sum() + (right == place).sum()))))
        print(f"{name:9} precision {figures[-1][0]:.2f}  recall {figures[-1][1]:.2f}  F1 {figures[-1][2]:.2f}")
    print("macro     precision {:.2f}  recall {:.2f}  F1 {:.3f}".format(*np.mean(figures, axis=0)))


def features_of(sentences: Sequence[SentenceInTurn]) -> Floats:
    return np.concatenate(
        [sentence_features(sentences[start : start + BATCH]) for start in range(0, len(sentences), BATCH)]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the model of sentence labels.")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    given = list(examples())
    rows = features_of([example.sentence for example in given])
    classes = np.array([CLASSES.index(example.label) for example in given])
    authors = sorted({example.author for example in given})
    left_out = np.isin([example.author for example in given], authors[::LEFT_OUT])
    print(f"{len(given)} sentences of {len(authors)} authors; {left_out.sum()} are of authors left out:")
    report(classes[left_out], predicted(fit(rows[~left_out], classes[~left_out]), rows[left_out]))
    options.out.write_bytes(save(fit(rows, classes)))
    print(f"{options.out.name}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
