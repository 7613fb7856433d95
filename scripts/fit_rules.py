"""Fit the models of standing rules: `python scripts/fit_rules.py [--labelled FILE...] [--report] [--out FILE]`.

Two logistic regressions tell whether a sentence states a standing rule. The first goes by the cues of
`mcp_memory/language/rule_cues.py` alone; the store marks turns with it. The second adds the bundled encoder and pairs
of cues (`mcp_memory/models/embed/classifiers.py`); it decides.

Both learn from `fixtures/rules` and, as sentences that are no rules, prompts of `fixtures/prompts`. `--labelled`
files, one JSON object a line with `text` and `rule`, are added. `--report` prints precision and recall where each
language in turn is left out of the fit, and where one sentence in four is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save  # pyright: ignore[reportUnknownVariableType]

from mcp_memory.language.rule_cues import CUES, SHAPES
from mcp_memory.language.sentences import masked_quotations
from mcp_memory.models.embed.classifiers import rule_features

ROOT = Path(__file__).parent.parent
OUT = ROOT / "mcp_memory/models/embed/model/rules.safetensors"
CUE_WEIGHTS = ROOT / "mcp_memory/language/data/rule_weights.txt"
RULES = ("rule", "scoped")
"""Headings of the sentences that are rules; `limit` (allergies, budgets) and all others are none."""
RIDGE, ROUNDS = 40.0, 8
CUE_RIDGE = 30.0
PARTS = 4
PRECISION = 0.95
"""Of sentences left out of the fit, a part at a time; the bar of the model is set for it."""
EVERY = 3  # of the prompts: all of them outweigh the rest

Floats = NDArray[np.float64]


class Example(NamedTuple):
    text: str
    language: str
    is_rule: bool


def sections(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file, each with its heading."""
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and line[2:].replace(" ", "").isalpha() and line.islower():
            heading = line[2:]
        elif line:
            yield heading, line


def composed(path: Path) -> Iterator[Example]:
    """Yield sentences made of the parts in a file: orders within a scope or for good, for once, and of others."""
    parts = {heading: line.split("|") for heading, line in sections(path)}
    space = "" if path.stem in ("ja", "zh") else " "
    bodies, tails = parts["body"], parts["tail"]
    for at, scope in enumerate(parts["scope"]):
        for step in (0, 3, 7):
            body = bodies[(at + step) % len(bodies)]
            tail = tails[(at + step) % len(tails)] if step else ""
            yield Example(f"{scope}{space}{body}{tail}.", path.stem, is_rule=True)
    for heading in ("for good", "not now"):
        for at, frame in enumerate(parts.get(heading, [])):
            for step in (0, 4, 9):
                body = bodies[(at + step) % len(bodies)]
                yield Example(frame.format(body), path.stem, is_rule=heading == "for good")
    for at, body in enumerate(bodies):
        first = body[:1].upper() + body[1:]
        yield Example(f"{first}{tails[at % len(tails)]}.", path.stem, is_rule=True)
        for heading in ("once", "reported"):
            for step in (0, 2):
                opener = parts[heading][(at + step) % len(parts[heading])]
                yield Example(f"{opener}{space}{body}.", path.stem, is_rule=False)


def examples(labelled: list[Path]) -> Iterator[Example]:
    for path in sorted((ROOT / "fixtures/rules/parts").glob("*.txt")):
        yield from composed(path)
    for path in sorted((ROOT / "fixtures/rules").glob("*.txt")):
        for heading, line in sections(path):
            yield Example(line, path.stem, heading in RULES)
    prompts = (ROOT / "fixtures/prompts/train.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, prompts[::EVERY]):
        yield Example(row["text"], row["language"], is_rule=False)
    for row in (json.loads(line) for path in [*sorted((ROOT / "fixtures/rules").glob("*.jsonl")), *labelled] for line in path.read_text(encoding="utf-8").splitlines()):
        yield Example(row["text"], row["language"], row["rule"])


def fit(rows: NDArray[np.float32], is_rule: Floats, ridge: float) -> Floats:
    """Return the weights of a logistic regression, the constant last: Newton's method, on features of equal spread."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    scaled = np.column_stack([(rows - mean) / spread, np.ones(len(rows))])
    weights = np.zeros(scaled.shape[1])
    penalty = np.diag([*[ridge] * (len(weights) - 1), 1e-6])
    for _ in range(ROUNDS):
        guess = 1 / (1 + np.exp(-np.clip(scaled @ weights, -30, 30)))
        bend = (scaled.T * (guess * (1 - guess))) @ scaled + penalty
        weights -= np.linalg.solve(bend, scaled.T @ (guess - is_rule) + penalty @ weights)
    own = weights[:-1] / spread
    return np.append(own, weights[-1] - own @ mean)


def left_out(rows: NDArray[np.float32], is_rule: Floats, part: NDArray[np.int64], ridge: float) -> Floats:
    """Return for each row its score by a model that was fitted without its part."""
    scores = np.zeros(len(rows))
    for one in np.unique(part):
        weights = fit(rows[part != one], is_rule[part != one], ridge)
        scores[part == one] = rows[part == one] @ weights[:-1] + weights[-1]
    return scores


def bar_for(precision: float, scores: Floats, is_rule: Floats) -> float:
    """Return the lowest score above which this share of the sentences are rules."""
    order = np.argsort(-scores)
    shares = np.cumsum(is_rule[order]) / np.arange(1, len(order) + 1)
    return float(scores[order][np.flatnonzero(shares >= precision)[-1]])


def described(scores: Floats, is_rule: Floats, bar: float) -> str:
    above = scores >= bar
    return f"precision {is_rule[above].mean():.1%}, recall {is_rule[above].sum() / is_rule.sum():.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit the models of standing rules.")
    parser.add_argument("--labelled", nargs="*", type=Path, default=[], metavar="FILE")
    parser.add_argument("--report", action="store_true", help="print precision and recall on what is left out")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    rows = list(examples(options.labelled))
    is_rule = np.array([row.is_rule for row in rows], float)
    features = rule_features([masked_quotations(row.text) for row in rows])
    columns = slice(features.shape[1] - _pairs() - _cues(), features.shape[1] - _pairs())
    cues = features[:, columns]

    folds = np.arange(len(rows)) % PARTS
    scores = left_out(features, is_rule, folds, RIDGE)
    bar = bar_for(PRECISION, scores, is_rule)
    print(f"{len(rows)} sentences, {int(is_rule.sum())} rules; a part left out: {described(scores, is_rule, bar)}")
    if options.report:
        languages = np.unique([row.language for row in rows], return_inverse=True)[1]
        scores = left_out(features, is_rule, languages, RIDGE)
        print(f"a language left out: {described(scores, is_rule, bar)}")
    weights = fit(features, is_rule, RIDGE)
    weights[-1] -= bar
    options.out.write_bytes(save({"weights": weights.astype(np.float32)}))
    lines = [f"    {weight:.2f}" for weight in fit(cues, is_rule, CUE_RIDGE)]
    head = "# Made by scripts/fit_rules.py: one weight for each of `rule_cues.cues_of`, and the constant.\n\nweights\n"
    CUE_WEIGHTS.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def _cues() -> int:
    return 2 * len(CUES) + len(SHAPES)


def _pairs() -> int:
    many = len(CUES) + len(SHAPES)
    return many * (many - 1) // 2


if __name__ == "__main__":
    main()
