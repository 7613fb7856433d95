"""Fit the prompt gate: `python scripts/fit_prompt_gate.py [--out FILE]`.

A small network on the features of the bundled encoder (`Encoder.features`) tells prompts that need earlier
conversations from those that do not. It learns from `fixtures/prompts/train.jsonl` and from the prompts that need none
in `fixtures/prompts/work.jsonl` and `fixtures/prompts/nothing`, but for those of author C, and prints figures for
`test.jsonl` and author C.
`mcp_memory/models/embed/classifiers.py` reads it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from network import fit_network, quantised
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.models.embed.bundled import shared_encoder

ROOT = Path(__file__).parent.parent
PROMPTS = ROOT / "fixtures/prompts"
HELD_OUT = "author_c.jsonl"
OUT = ROOT / "mcp_memory/models/embed/model/prompts.safetensors"
HIDDEN, EPOCHS = 128, 40

Floats = NDArray[np.floating[Any]]


def read(*files: Path) -> tuple[Floats, Floats]:
    """Return the features of the prompts in files, and 1 for those that need memory."""
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    features = shared_encoder().features([row["text"] for row in rows])
    has_features = features.any(axis=1)
    return features[has_features], np.array([row.get("needs_memory", False) for row in rows], np.float32)[has_features]


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the prompt gate.")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    nothing = [file for file in sorted((PROMPTS / "nothing").glob("*.jsonl")) if file.name != HELD_OUT]
    features, needs = read(PROMPTS / "train.jsonl", *nothing, PROMPTS / "work.jsonl")
    network = fit_network(features, needs, np.ones(len(needs), np.float32), hidden=HIDDEN, epochs=EPOCHS)
    features, needs = read(PROMPTS / "test.jsonl")
    scores, alone = network.scores(features), network.scores(read(PROMPTS / "nothing" / HELD_OUT)[0])
    print(f"right on unseen prompts: {((scores > 0) == needs).mean():.1%}")
    print(f"taken for one that needs memory, of the held-out ones that need none: {(alone > 0).mean():.1%}")
    recall = (scores[needs == 1] > np.quantile(alone, 0.97)).mean()
    print(f"found where 3 % of those are taken for others: {recall:.1%}")
    options.out.write_bytes(save(quantised(network)))


if __name__ == "__main__":
    main()
