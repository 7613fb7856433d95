"""Keeps instructions to a model out of stand-ins: they are counted instead of quoted.

A summary and a preview are read with every later prompt, so a sentence in them that reads like an instruction to a
model (`suspicion`) would be repeated. `quiet_synopsis` removes such passages from the result, describes the remaining
text and counts them. It judges only passages that the description would quote, each as a whole: sentences, lines and
pairs of lines, or the values of JSON. Passages are found by their letters, so markup, invisible characters and scripts
without spaces make no difference. It searches around the lines whose numbers the description has, and the beginning
and end of the text if the description has key words or an instruction of unknown place. The finished summary and
preview are judged too, because a description may decode or join text that the result disguises or splits.
`expand_node` still shows everything. Ordinary log lines, usage lines and hints do not count as instructions.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from html import unescape
from operator import add

from mcp_memory.core.text import to_plain_letters
from mcp_memory.shortterm.synopsis.page import clip
from mcp_memory.shortterm.synopsis.synopsis import Synopsis
from mcp_memory.suspicion.flags import Flag, flags_of

_HEAD, _TAIL = 200_000, 50_000  # characters searched for quoted passages
_SHORTEST, _LONGEST = 6, 1_200  # letters of a passage; characters of it
_RUN = 12  # consecutive letters by which a passage is found in the description
_BEGINNING = 20  # characters by which a disguised passage is found in the description
_FEWEST_WORDS, _SHARE = 4, 0.4  # words of a passage, and the share of them that key words of a preview repeat
_MAX_PASSAGES = 400  # passages per size and round
_ROUNDS = 4  # removing passages makes room for others
_QUOTED = re.compile(r"(?:^|; )(?P<line>\d+)(?:@(?P<at>\d+))?:? |line (?P<place>\d+)", re.MULTILINE)
_AROUND = 600  # characters around the quoted part of a very long line
_SENTENCE = re.compile(r"(?:[^\n\"<>.!?。！？\\]|[.!?](?!\s|\\n)|\\(?!n))+[.!?。！？]?")
_VALUE = re.compile(r'"(?P<passage>(?:[^"\\\n]|\\.)+)"')
_LINE = re.compile(r"(?P<passage>[^\n]+)")
_PAIR = re.compile(r"(?m)^(?=(?P<passage>[^\n]+\n\n?[^\n]+))")
_NEWLINE = re.compile(r"\n")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_TOKEN = re.compile(r"[^\s\d!-/:-@\[-`{-~…]+")
_LONG_WORD = 4  # letters
_ALPHABETIC = "\u0530"  # the scripts below it (Latin, Greek, Cyrillic) separate words by spaces


def quiet_synopsis(text: str, describe: Callable[[str], Synopsis], *, budget_chars: int | None = None) -> Synopsis:
    """Return the description of a text without passages that read like instructions, with a note of how many there are.

    If `budget_chars` is not None, the preview has at most that many characters.
    """
    made = describe(text)
    suspect = _suspect(made)
    lines = text.count("\n") + 1
    left_out = 0
    for _ in range(_ROUNDS):
        sizes = (_SENTENCE, _VALUE) if made.kind in ("json", "jsonl") else (_SENTENCE, _LINE, _PAIR)  # JSON stays JSON
        described = f"{made.summary}\n{made.preview}"
        shown = _Shown.of(described)
        places = _quoted_lines(text, described, around=1)
        if made.has_key_words or any(suspect):
            places = _merged([*places, (0, _HEAD), (max(_HEAD, len(text) - _TAIL), len(text))])
        orders = _orders(text, shown, sizes, places)
        if made.has_key_words and not orders:  # a single word of a line is shown too
            orders = _orders(text, None, sizes, _quoted_lines(text, described, around=0))
        if not orders:
            break
        left_out += len(orders)
        for start, end in reversed(orders):
            text = text[:start] + _blank(text, start, end) + text[end:]
        made = describe(text)
        suspect = _suspect(made)
    summary, *in_preview = suspect
    left_out = max(left_out, sum(in_preview), summary)
    if not left_out:
        return made
    note = f"{left_out} line{'s read' if left_out > 1 else ' reads'} like instructions; expand to see them"
    preview = "\n".join(
        line for line, is_order in zip(made.preview.split("\n"), in_preview, strict=True) if not is_order
    )
    if budget_chars is not None:
        preview = clip(preview, max(0, budget_chars - len(note) - 1))
        note = clip(note, budget_chars)
    return replace(
        made,
        summary=f"{made.kind} of {lines:,} line{'s' if lines > 1 else ''}" if summary else made.summary,
        preview=f"{preview}\n{note}".lstrip("\n"),
    )


def _blank(text: str, start: int, end: int) -> str:
    """Return what a passage is replaced by: an ellipsis, or nothing for whole lines; lines keep their numbers."""
    whole = (start == 0 or text[start - 1] == "\n") and text[end : end + 1] in ("\n", "")
    return "…" * (not whole) + "\n" * text.count("\n", start, end)


def _suspect(made: Synopsis) -> list[bool]:
    """Return whether the summary, and each line of the preview, reads like an instruction."""
    return [bool(flags) for flags in flags_of([(line, "tool") for line in (made.summary, *made.preview.split("\n"))])]


def _quoted_lines(text: str, described: str, *, around: int) -> list[tuple[int, int]]:
    """Return the spans of the lines whose numbers a description has, with so many lines around each."""
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text)), len(text) + 1]
    spans: set[tuple[int, int]] = set()
    for match in _QUOTED.finditer(described):
        number = int((match["line"] or match["place"])[:9])
        if not 0 < number < len(starts):
            continue
        begin, end = starts[max(0, number - 1 - around)], starts[min(len(starts) - 1, number + around)] - 1
        if end - begin > 10 * _AROUND:
            at = starts[number - 1] + int((match["at"] or "0")[:9])
            begin, end = max(begin, at - _AROUND), min(end, at + _AROUND)
        spans.add((begin, end))
    return _merged(spans)


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans in order; those that touch are one."""
    merged: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _orders(
    text: str, shown: _Shown | None, sizes: Iterable[re.Pattern[str]], places: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the spans of the smallest passages within these places that read like instructions, in order.

    Only passages that are `shown` are judged, all if that is None.

    Only sentences are judged by their meaning, because this takes most of the time. A sentence
    flagged only as a call is not removed by itself: the line around it is judged.
    """
    orders: list[tuple[int, int]] = []
    judged: set[str] = set()
    is_shown = cache(shown.has) if shown else None  # a line is often a sentence too
    for pattern in sizes:
        spans: dict[str, list[tuple[int, int]]] = {}
        for start, end in _spans(pattern, text, places):
            passage = text[start:end].strip()
            if passage in spans or (
                len(spans) < _MAX_PASSAGES and passage not in judged and (is_shown is None or is_shown(passage))
            ):
                spans.setdefault(passage, []).append((start, end))
        suspicions = flags_of([(passage, "tool") for passage in spans], meaning=pattern is _SENTENCE)
        calls = {("call",)} if pattern is _SENTENCE else set[tuple[Flag, ...]]()
        flagged = {passage for passage, flags in zip(spans, suspicions, strict=True) if flags and flags not in calls}
        judged |= spans.keys() - {passage for passage, flags in zip(spans, suspicions, strict=True) if flags in calls}
        for span in (span for passage in spans if passage in flagged for span in spans[passage]):
            at = bisect(orders, span)
            if (at == 0 or orders[at - 1][1] <= span[0]) and (at == len(orders) or span[1] <= orders[at][0]):
                orders.insert(at, span)
    return orders


def _spans(pattern: re.Pattern[str], text: str, places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    group = "passage" if "passage" in pattern.groupindex else 0
    for begin, end in places:
        for match in pattern.finditer(text, begin, end):
            if len(match[group]) <= _LONGEST or group == 0:
                yield match.span(group)


@dataclass(frozen=True, slots=True)
class _Shown:
    """The text of a description on one line, its letters, their runs of `_RUN` letters, and its words."""

    text: str
    letters: str
    runs: frozenset[str]
    words: Set[str]

    @staticmethod
    def of(text: str) -> _Shown:
        plain = _as_it_looks(text)
        letters = _letters(plain)
        return _Shown(" ".join(text.split()), letters, frozenset(_runs(letters, step=1)), _words(plain))

    def has(self, passage: str) -> bool:
        """Return whether the description has a part of a passage, or many of its words."""
        plain = _as_it_looks(passage)
        letters = _letters(plain)
        if len(letters) < _SHORTEST:
            return False
        if passage[:_BEGINNING] in self.text:
            return True
        if len(letters) < _RUN:
            if letters in self.letters:
                return True
        elif not self.runs.isdisjoint(_runs(letters, step=_RUN)):
            return True
        words = _words(plain)
        return len(words) >= _FEWEST_WORDS and len(words & self.words) >= _SHARE * len(words)


def _letters(plain: str) -> str:
    return _NO_LETTERS.sub("", plain)


def _runs(letters: str, *, step: int) -> list[str]:
    return [letters[start : start + _RUN] for start in range(0, len(letters) - _RUN + 1, step)]


def _words(plain: str) -> set[str]:
    """Return the longer words of a text; except in Latin, Greek and Cyrillic script, pairs of adjacent letters."""
    words: set[str] = set()
    for token in _TOKEN.findall(plain):
        letters = token if token.isalpha() else _letters(token)
        if letters and letters[0] >= _ALPHABETIC:
            words.update(map(add, letters, letters[1:]))
        elif len(letters) >= _LONG_WORD:
            words.add(letters)
    return words


def _as_it_looks(text: str) -> str:
    return to_plain_letters(unescape(text) if "&" in text else text).casefold()
