"""How well standing rules are recognised in labelled sentences: `python -m bench.rules FILE...`

A file has one JSON object a line: `text`, `language` and `rule`, and optionally `kind`. Precision and recall are
printed for all sentences and by language, beside those of a list of cue words (always, never, from now on, …). By kind,
the share of sentences that are judged right is printed. `--show N` prints that many wrong answers.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from mcp_memory.longterm.standing_rules import standing_rules

__all__ = ["Figures", "Sentence", "figures", "read", "table"]

_CUE_WORDS = re.compile(
    r"\b(?:always|never|from now on|every time|please|immer|nie|niemals|ab jetzt|ab sofort|bitte|toujours|jamais"
    r"|désormais|dorénavant|siempre|nunca|a partir de ahora|sempre|mai|d'ora in poi|a partir de agora|altijd|nooit"
    r"|voortaan|zawsze|nigdy|od teraz|всегда|никогда|впредь|alltid|aldrig|her zaman|asla|bundan sonra)\b"
    "|总是|永远|以后|不要|いつも|必ず|今後|これから|항상|절대|앞으로",
    re.IGNORECASE,
)


class Sentence(NamedTuple):
    text: str
    language: str
    kind: str
    is_rule: bool


class Figures(NamedTuple):
    """Precision and recall, each from 0 to 1; NaN where nothing was found or nothing is a rule."""

    precision: float
    recall: float


def read(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a file. ValueError or KeyError for a line that is not labelled."""
    for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        yield Sentence(row["text"], row["language"], row.get("kind", ""), row["rule"])


def by_model(text: str) -> bool:
    return bool(standing_rules(text))


def by_cue_words(text: str) -> bool:
    return _CUE_WORDS.search(text) is not None


def figures(sentences: Sequence[Sentence], judge: Callable[[str], bool]) -> Figures:
    """Return how well a judge tells rules from other sentences."""
    found = [sentence for sentence in sentences if judge(sentence.text)]
    right = sum(sentence.is_rule for sentence in found)
    rules = sum(sentence.is_rule for sentence in sentences)
    return Figures(right / len(found) if found else float("nan"), right / rules if rules else float("nan"))


def table(sentences: Sequence[Sentence]) -> Iterator[str]:
    """Yield the lines of a report."""
    yield f"{'':12}{'sentences':>10}{'precision':>11}{'recall':>8}   cue words: precision, recall"
    for language in ("all", *sorted({sentence.language for sentence in sentences})):
        chosen = [one for one in sentences if language in ("all", one.language)]
        model, cues = figures(chosen, by_model), figures(chosen, by_cue_words)
        yield (
            f"{language:12}{len(chosen):10}{model.precision:11.1%}{model.recall:8.1%}"
            f"{cues.precision:24.1%}{cues.recall:8.1%}"
        )
    yield ""
    for is_rule in (True, False):
        for kind in sorted({one.kind for one in sentences if one.is_rule is is_rule}):
            chosen = [one for one in sentences if one.is_rule is is_rule and one.kind == kind]
            right = sum(by_model(one.text) is is_rule for one in chosen) / len(chosen)
            yield f"{'rule' if is_rule else 'no rule':8} {kind or '(no kind)':24}{len(chosen):6}{right:9.1%} right"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description="Precision and recall of rules.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print that many wrong answers")
    options = parser.parse_args()
    sentences = [sentence for path in options.files for sentence in read(path)]
    print("\n".join(table(sentences)))
    wrong = [one for one in sentences if by_model(one.text) is not one.is_rule]
    for one in wrong[: options.show]:
        print(f"{'missed' if one.is_rule else 'taken '} {one.language} {one.kind}: {one.text}")


if __name__ == "__main__":
    main()
