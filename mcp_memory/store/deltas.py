"""Deltas between versions of a text, and the text that results from a series of them.

A delta is JSON: the whole text as a string, or a list of `[start, end, new]`, each of which replaces the characters
from `start` to `end` of the text before. `combine([delta(None, a), delta(a, b)]) == b` for all texts.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import accumulate
from typing import Any


def delta(old: str | None, new: str) -> str:
    """Return the delta from a text to another; from None it is the whole new text."""
    return as_json(new if old is None else list(_changes(old, new)))


def as_json(changes: Any) -> str:
    return json.dumps(changes, ensure_ascii=False, separators=(",", ":"))


def combine(deltas: Iterable[str]) -> str:
    """Return the text that results from at least one delta. Raises ValueError if any delta cannot be read."""
    return deque(texts(deltas), maxlen=1).pop()


def texts(deltas: Iterable[str]) -> Iterator[str]:
    """Yield the text after each delta; the first delta is a whole text. Raises ValueError for an unreadable delta."""
    text = ""
    for delta_json in deltas:
        changes: Any = json.loads(delta_json)
        try:
            text = changes if isinstance(changes, str) else "".join(_pieces(text, changes))
        except (TypeError, ValueError):
            raise ValueError(f"no delta: {delta_json[:40]}") from None
        yield text


def _pieces(text: str, changes: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    at = 0
    for start, end, new in changes:
        yield text[at:start]
        yield new
        at = end
    yield text[at:]


def _changes(old: str, new: str) -> Iterator[tuple[int, int, str]]:
    """Yield the differences: added or removed lines, and the changed part of a changed line."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = list(accumulate(map(len, before), initial=0))
    for what, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            continue
        pairs = min(j - i, m - k)
        for line in range(pairs):
            yield from _change_within(before[i + line], after[k + line], starts[i + line])
        yield from _change_within("".join(before[i + pairs : j]), "".join(after[k + pairs : m]), starts[i + pairs])


def _change_within(old: str, new: str, at: int) -> Iterator[tuple[int, int, str]]:
    if old == new:
        return
    start = _common_prefix(old, new)
    end = min(_common_prefix(old[::-1], new[::-1]), min(len(old), len(new)) - start)
    yield at + start, at + len(old) - end, new[start : len(new) - end]


def _common_prefix(text: str, other: str) -> int:
    """Return the length of the common prefix of two texts."""
    differs = (at for at, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1])
    return next(differs, min(len(text), len(other)))
