"""Compares static models to bundle: `python -m bench.embedders --raw FOLDER DIR...`

For each candidate (dimensions, number format, SIF weight, tokens read of a long text) and each set in the format of
`sessions.jsonl.gz` and `questions.jsonl.gz`, it prints the mean share of a question's evidence turns among the first
ten turns by cosine alone. There is no lexical search and no fusion: the figure isolates the model.

`scripts/distill_embedder.py --raw --out FOLDER` writes FOLDER. All candidates derive from it by the steps of the
distillation: the first columns of the PCA are the PCA with fewer columns, SIF is one factor per row, int8 is a
rounding. Texts are therefore tokenized only once.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

READ_CHARACTERS = 40_000
TOP = 10

Matrix = NDArray[np.float32]


Numbers = Literal["int8", "int8, one scale", "float32"]
"""`int8` has a scale for each row; with one scale for the matrix, tokens of little weight would be rounded to zero."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A model that could be bundled; the defaults are the bundled one. `tokens`: how many of a text are read."""

    dimensions: int = 256
    numbers: Numbers = "int8"
    sif: float | None = 1e-3
    tokens: int | None = 256

    @property
    def megabytes(self) -> float:
        return 29_525 * self.dimensions * (4 if self.numbers == "float32" else 1) / 1e6


CANDIDATES = [
    *(Candidate(dimensions=d) for d in (64, 128, 256, 320, 384)),
    Candidate(numbers="float32"),
    Candidate(dimensions=384, numbers="float32"),
    Candidate(numbers="int8, one scale"),
    *(Candidate(sif=s) for s in (None, 1e-2, 3e-4, 1e-4, 1e-5)),
    *(Candidate(tokens=t) for t in (64, 128, 512, None)),
    Candidate(numbers="int8, one scale", sif=1e-4, tokens=512),  # what the distillation gives unasked
]


@dataclass(frozen=True, kw_only=True)
class Set:
    """A set with its texts as token ids: `turns` and `questions` index into `ids`."""

    name: str
    ids: list[NDArray[np.int64]]
    cases: list[tuple[int, NDArray[np.int64], set[int]]]
    """(question, turns of its haystack, turns with the evidence), as indexes into `ids`."""


def read_set(folder: Path, tokenizer: Any) -> Set:
    """Read and tokenize a set's turns and the questions that have evidence."""
    texts: list[str] = []
    place: dict[str, int] = {}
    members: dict[str, list[int]] = {}
    for session in _lines(folder / "sessions.jsonl.gz"):
        for turn in session["turns"]:
            place[turn["id"]] = len(texts)
            members.setdefault(session["session_id"], []).append(len(texts))
            texts.append(turn["content"])
    cases: list[tuple[int, NDArray[np.int64], set[int]]] = []
    for question in _lines(folder / "questions.jsonl.gz"):
        if not question["evidence_turns"]:
            continue
        haystack = [i for part in question["haystack"] for i in members[part["session_id"]]]
        cases.append((len(texts), np.array(haystack), {place[i] for i in question["evidence_turns"]}))
        texts.append(question["question"])
    unknown = tokenizer.token_to_id("[UNK]")
    ids: list[NDArray[np.int64]] = []
    for text in tqdm(texts, desc=f"{folder.name}: tokens", leave=False):
        found = np.array(tokenizer.encode(text[:READ_CHARACTERS], add_special_tokens=False).ids, dtype=np.int64)
        ids.append(found[found != unknown])
    return Set(name=folder.name, ids=ids, cases=cases)


def derive(raw: Matrix, candidate: Candidate) -> Matrix:
    """Return the candidate's table of token vectors, in float32 whatever its number format."""
    table = raw[:, : candidate.dimensions]
    weights = np.ones(len(raw))
    if candidate.sif is not None:
        share = 1 / np.arange(2, len(raw) + 2)
        share /= share.sum()
        weights = candidate.sif / (candidate.sif + share)
    weighted = table * weights[:, None]
    match candidate.numbers:
        case "int8":
            scale = np.abs(table).max(axis=1, keepdims=True) / 127
            weighted = np.rint(table / scale) * scale * weights[:, None]
        case "int8, one scale":
            scale = np.abs(weighted).max() / 127
            weighted = np.rint(weighted / scale) * scale
        case "float32":
            pass
    return weighted.astype(np.float32)


def turn_recall(data: Set, table: Matrix, tokens: int | None) -> float:
    """Return turn R@10 in per cent."""
    vectors = np.stack([table[ids[:tokens]].sum(axis=0) for ids in data.ids])
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.where(lengths == 0, 1, lengths)
    shares: list[float] = []
    for question, haystack, evidence in data.cases:
        scores = vectors[haystack] @ vectors[question]
        best = haystack[np.argsort(-scores, kind="stable")[:TOP]]
        shares.append(len(evidence.intersection(best.tolist())) / len(evidence))
    return 100 * float(np.mean(shares))


def table_lines(sets: Sequence[Set], raw: Matrix) -> Iterator[str]:
    """Yield the result as lines of a Markdown table, one per candidate."""
    names = [data.name for data in sets]
    yield "| dimensions | numbers | SIF | tokens read | MB | " + " | ".join(names) + " |"
    yield "|---" * (5 + len(names)) + "|"
    for candidate in tqdm(CANDIDATES, desc="candidates", leave=False):
        table = derive(raw, candidate)
        figures = [f"{turn_recall(data, table, candidate.tokens):.1f}" for data in sets]
        about = [candidate.dimensions, candidate.numbers, candidate.sif, candidate.tokens or "all"]
        cells = [*map(str, about), f"{candidate.megabytes:.1f}", *figures]
        yield "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Dense-only turn R@10 of models that could be bundled.")
    parser.add_argument("sets", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--raw", required=True, type=Path, help="made by scripts/distill_embedder.py --raw")
    options = parser.parse_args()
    from safetensors.numpy import load_file  # pyright: ignore[reportUnknownVariableType]
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(options.raw / "tokenizer.json"))
    sets = [read_set(folder, tokenizer) for folder in options.sets]
    for line in table_lines(sets, load_file(options.raw / "model.safetensors")["embeddings"]):
        tqdm.write(line)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


if __name__ == "__main__":
    main()
