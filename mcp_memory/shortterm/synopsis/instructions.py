"""Stand-ins that quote no instructions: what a result orders a model to do is counted, not shown.

A summary and a preview are read with every later prompt, so a sentence there that reads like an instruction to a model
(`suspicion`) would be repeated to it. `quiet_synopsis` describes the result without those sentences and says how many
there are. Only the sentences that the stand-in would show are judged, each whole, however much of it would be shown;
`expand_node` still shows everything. Ordinary log lines, usage lines and hints are no instructions to a model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import replace

from mcp_memory.shortterm.synopsis.page import clip
from mcp_memory.shortterm.synopsis.synopsis import Synopsis
from mcp_memory.suspicion.flags import flags_of

__all__ = ["quiet_synopsis"]

_HEAD, _TAIL = 200_000, 50_000  # characters in which the shown sentences are looked for
_SHORTEST = 12  # characters of a sentence
_BEGINNING = 20  # characters of a sentence by which it is found in a stand-in
_FEWEST_WORDS, _SHARE = 4, 0.4  # words of a sentence, and the share of them that key words of a preview repeat
_MOST = 400  # sentences that are judged
_WORD = re.compile(r"[^\W\d_]{4,}|[\u3040-\u30ff\u3400-\u9fff]{2}")
_ROUNDS = 4  # without the sentences of one round others are shown
_SEGMENT = re.compile(r"(?:[^\n\"<>.!?。！？\\]|[.!?](?!\s|\\n)|\\(?!n))+[.!?。！？]?")


def quiet_synopsis(text: str, describe: Callable[[str], Synopsis], *, budget_chars: int | None = None) -> Synopsis:
    """Return the description of a text without the sentences that read like instructions, and with their number.

    Its preview has at most `budget_chars` characters, where there is a budget.
    """
    made = describe(text)
    left_out = 0
    for _ in range(_ROUNDS):
        orders = _orders(text, f"{made.summary}\n{made.preview}")
        if not orders:
            break
        left_out += len(orders)
        for start, end in reversed(orders):
            text = f"{text[:start]}…{text[end:]}"
        made = describe(text)
    if not left_out:
        return made
    note = f"{left_out} line{'s read' if left_out > 1 else ' reads'} like instructions; expand to see them"
    shown = "\n".join(line for line in made.preview.split("\n") if not any(flags_of([(line, "tool")])))
    if budget_chars is not None:
        shown = clip(shown, max(0, budget_chars - len(note) - 1))
        note = clip(note, budget_chars)
    return replace(made, preview=f"{shown}\n{note}".lstrip("\n"))


def _orders(text: str, shown: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences that a stand-in shows and that read like instructions, in their order."""
    squeezed, words = " ".join(shown.split()), set(_WORD.findall(shown.lower()))
    spans: dict[str, list[tuple[int, int]]] = {}
    for start, end in _segments(text):
        sentence = " ".join(text[start:end].split())
        if sentence in spans or (len(spans) < _MOST and _is_shown(sentence, squeezed, words)):
            spans.setdefault(sentence, []).append((start, end))
    suspicions = flags_of([(sentence, "tool") for sentence in spans])
    return sorted(span for some, found in zip(spans.values(), suspicions, strict=True) if found for span in some)


def _is_shown(sentence: str, shown: str, words: Set[str]) -> bool:
    """Tell whether a stand-in shows the beginning of a sentence, or some of its words."""
    if sentence[:_BEGINNING] in shown:
        return True
    own = set(_WORD.findall(sentence.lower()))
    return len(own) >= _FEWEST_WORDS and len(own & words) >= _SHARE * len(own)


def _segments(text: str) -> Iterator[tuple[int, int]]:
    for begin, end in ((0, _HEAD), (max(_HEAD, len(text) - _TAIL), len(text))):
        for found in _SEGMENT.finditer(text, begin, min(end, len(text))):
            if len(found[0].strip()) >= _SHORTEST:
                yield found.span()
