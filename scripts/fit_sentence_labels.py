"""Fit the model of sentence labels: `python scripts/fit_sentence_labels.py [--out FILE]`.

Logistic regressions on `sentence_features` learn what the sentences of `fixtures/sentences` state, how much each is
worth in later conversations, and which are fragments. Prints precision, recall and F1 of each label, and how the worth
ranks sentences, for a fifth of the authors when they are left out, then fits all.
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
BEST, WANTED, FRAGMENT = 3, 2, "f"  # ratings: the best, the least that a page wants, and the mark of a fragment
LEFT_OUT = 5
"""One author of so many is left out for the report."""

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Example:
    author: str
    sentence: SentenceInTurn
    label: str
    worth: float
    """0 to 1: a third of the rating."""
    is_fragment: bool


def examples() -> Iterator[Example]:
    """Yield the labelled sentences, each with its neighbours and the assistant's words before the turn."""
    for file in sorted(SENTENCES.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            conversation = json.loads(line)
            for turn in conversation["turns"]:
                yield from _of_turn(conversation["author"], turn)


def _of_turn(author: str, turn: dict[str, Any]) -> Iterator[Example]:
    texts = [text for text, *_ in turn["labels"]]
    reply_to = (turn.get("assistant") or "")[-200:]
    for at, (text, label, *rating) in enumerate(turn["labels"]):
        before, after = texts[at - 1] if at else "", "".join(texts[at + 1 : at + 2])
        (rated,) = rating or ["0"]  # what states nothing has no rating
        sentence = SentenceInTurn(text, before, after, reply_to)
        yield Example(author, sentence, label, int(rated[0]) / BEST, FRAGMENT in rated)


def fit(rows: Floats, classes: NDArray[np.int64], worths: Floats) -> dict[str, NDArray[np.float32]]:
    """Return the tensors of regressions with L2 decay, fitted with Adam.

    `worths` has two columns, the worth and 1 for a fragment. Each class of the labels weighs the same; fragments are
    learned from the sentences that state something.
    """
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    rows = scaled(rows, mean, spread)
    counts = np.bincount(classes, minlength=len(CLASSES))
    by_class = (len(classes) / len(CLASSES) / np.maximum(counts, 1))[classes]
    states = (classes != CLASSES.index("none")) * len(classes) / max(1, len(classes) - counts[-1])
    weight = np.column_stack([*[by_class] * len(CLASSES), np.ones(len(rows)), states])
    right = np.column_stack([np.eye(len(CLASSES))[classes], worths])
    values, first, second = np.zeros((3, rows.shape[1] + 1, right.shape[1]))
    features = np.column_stack([rows, np.ones(len(rows))])
    for step in range(1, STEPS + 1):
        slope = features.T @ ((_chances(features @ values) - right) * weight) / len(rows)
        slope[:-1] += DECAY * values[:-1]
        first = 0.9 * first + 0.1 * slope
        second = 0.99 * second + 0.01 * slope * slope
        change = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
        values -= RATE * (1 - step / (STEPS + 20)) * change
    tensors = {"mean": mean, "spread": spread, "weights": values[:-1], "constants": values[-1]}
    return {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}


def _chances(scores: Floats) -> Floats:
    """Return the probabilities of the classes, then the worth, and the probability of a fragment."""
    labels, others = scores[:, : len(CLASSES)], scores[:, len(CLASSES) :]
    chances = np.exp(labels - labels.max(axis=1, keepdims=True))
    return np.column_stack([chances / chances.sum(axis=1, keepdims=True), 1 / (1 + np.exp(-others))])


def predicted(model: dict[str, NDArray[np.float32]], rows: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Return the likeliest class of each row, and its worth."""
    chances = _chances(scaled(rows, model["mean"], model["spread"]) @ model["weights"] + model["constants"])
    return chances[:, : len(CLASSES)].argmax(axis=1), chances[:, -2] * (1 - chances[:, -1])


def order_quality(right: NDArray[np.bool_], scores: Floats) -> float:
    """Return the area under the ROC curve: how often a wanted sentence has more worth than an unwanted one."""
    ranks = np.empty(len(scores))
    ranks[scores.argsort(kind="stable")] = np.arange(1, len(scores) + 1)
    positives = int(right.sum())
    return float((ranks[right].sum() - positives * (positives + 1) / 2) / (positives * (len(scores) - positives)))


def report(right: NDArray[np.int64], predicted: NDArray[np.int64]) -> None:
    """Print precision, recall and F1 by label, and their macro averages."""
    figures: list[tuple[float, float, float]] = []
    for place, name in enumerate(CLASSES):
        hits = int(((right == place) & (predicted == place)).sum())
        precision = hits / max(1, int((predicted == place).sum()))
        recall = hits / max(1, int((right == place).sum()))
        figures.append((precision, recall, 2 * hits / max(1, int((predicted == place).sum() + (right == place).sum()))))
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
    worths = np.array([(example.worth, example.is_fragment) for example in given], float)
    left_out = np.isin([example.author for example in given], authors[::LEFT_OUT])
    print(f"{len(given)} sentences of {len(authors)} authors; {left_out.sum()} are of authors left out:")
    labels, worth = predicted(fit(rows[~left_out], classes[~left_out], worths[~left_out]), rows[left_out])
    report(classes[left_out], labels)
    is_positive = (worths[:, 0] >= WANTED / BEST) & (worths[:, 1] == 0)
    print(f"worth     area under the curve {order_quality(is_positive[left_out], worth):.3f}")
    options.out.write_bytes(save(fit(rows, classes, worths)))
    print(f"{options.out.name}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
