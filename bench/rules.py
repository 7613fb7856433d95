"""Measures recognition of standing rules in labelled sentences: `python -m bench.rules FILE...`

A file has one JSON object per line: `text`, `language` and `rule`, and optionally `kind`. Precision and recall are
printed for all sentences and by language, with those of a list of cue words (always, never, from now on, …) for
comparison; by kind, the share of sentences that are judged correctly. `--show N` prints so many wrong answers.

The models were fitted on `fixtures/rules`. Its files by authors who did not know the code are measured with the models
that `scripts/fit_rules.py` fits without the author (`fixtures/rules/left_out.json`); its other files are skipped. Any
other file is measured with the shipped models.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mcp_memory.longterm.standing_rules import STATES, SUPPORTS, judged, standing_rules

_CUE_WORDS = re.compile(
    r"\b(?:always|never|from now on|every time|please|immer|nie|niemals|ab jetzt|ab sofort|bitte|toujours|jamais"
    r"|désormais|dorénavant|siempre|nunca|a partir de ahora|sempre|mai|d'ora in poi|a partir de agora|altijd|nooit"
    r"|voortaan|zawsze|nigdy|od teraz|всегда|никогда|впредь|alltid|aldrig|her zaman|asla|bundan sonra)\b"
    "|总是|永远|以后|不要|いつも|必ず|今後|これから|항상|절대|앞으로",
    re.IGNORECASE,
)


FITTED = Path(__file__).parent.parent / "fixtures/rules"


class Sentence(NamedTuple):
    text: str
    language: str
    kind: str
    is_rule: bool
    probability: float
    """The probability that it states a rule."""


class Figures(NamedTuple):
    """Precision and recall, each from 0 to 1; NaN if nothing was found, or nothing is a rule."""

    precision: float
    recall: float


def read(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a file; none for a file that the models were always fitted on.

    Raises ValueError or KeyError for a line without labels, or if the left-out figures belong to another file.
    """
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.resolve().parent == FITTED:
        left_out = json.loads((FITTED / "left_out.json").read_text(encoding="utf-8"))["probabilities"]
        if path.stem not in left_out:
            return
        probabilities = left_out[path.stem]
    else:
        probabilities = [probability_of(row["text"]) for row in rows]
    for row, probability in zip(rows, probabilities, strict=True):
        yield Sentence(row["text"], row["language"], row.get("kind", ""), row["rule"], probability)


def probability_of(text: str) -> float:
    """Return the probability that a text states a rule, as the package judges it."""
    return max((rule.strength for rule in standing_rules(text) or judged(text)), default=0.0)


def states(sentence: Sentence) -> bool:
    return sentence.probability >= STATES


def supports(sentence: Sentence) -> bool:
    return sentence.probability >= SUPPORTS


def has_cue_word(sentence: Sentence) -> bool:
    return _CUE_WORDS.search(sentence.text) is not None


def figures(sentences: Sequence[Sentence], judge: Callable[[Sentence], bool]) -> Figures:
    """Return the precision and recall of `judge` on the sentences."""
    found = [sentence for sentence in sentences if judge(sentence)]
    right = sum(sentence.is_rule for sentence in found)
    rules = sum(sentence.is_rule for sentence in sentences)
    return Figures(right / len(found) if found else float("nan"), right / rules if rules else float("nan"))


def table(sentences: Sequence[Sentence]) -> Iterator[str]:
    """Yield the lines of a report: precision and recall of `STATES`, of `SUPPORTS` and of cue words."""
    yield f"{'':12}{'sentences':>10}{f'p >= {STATES}':>17}{f'p >= {SUPPORTS}':>17}{'cue words':>17}"
    for language in ("all", *sorted({sentence.language for sentence in sentences})):
        chosen = [one for one in sentences if language in ("all", one.language)]
        found = (figures(chosen, judge) for judge in (states, supports, has_cue_word))
        yield f"{language:12}{len(chosen):10}" + "".join(f"{one.precision:10.1%}{one.recall:7.1%}" for one in found)
    yield ""
    for is_rule in (True, False):
        for kind in sorted({one.kind for one in sentences if one.is_rule is is_rule}):
            chosen = [one for one in sentences if one.is_rule is is_rule and one.kind == kind]
            right = sum(states(one) is is_rule for one in chosen) / len(chosen)
            yield f"{'rule' if is_rule else 'no rule':8} {kind or '(no kind)':24}{len(chosen):6}{right:9.1%} right"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description="Precision and recall of rules.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print that many wrong answers")
    options = parser.parse_args()
    by_file = {path: list(read(path)) for path in options.files}
    sentences = [sentence for found in by_file.values() for sentence in found]
    skipped = [path.name for path, found in by_file.items() if path.stat().st_size and not found]
    if skipped:
        print(f"Fitted on, and not left out in turn: {', '.join(skipped)}\n")
    print("\n".join(table(sentences)))
    wrong = [one for one in sentences if states(one) is not one.is_rule]
    for one in wrong[: options.show]:
        print(f"{'missed' if one.is_rule else 'taken '} {one.language} {one.kind}: {one.text}")


if __name__ == "__main__":
    main()
