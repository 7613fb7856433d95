"""Private passages: text between `<private>` and `</private>` never reaches the memory.

They are replaced before anything is stored, logged, embedded or searched for. Nested tags belong to the outer passage,
and an unclosed passage extends to the end. A tag that is alone in inline code or in a code fence is a mention: it opens
and closes nothing. Tool results are not searched for the tag, because programs print it for other reasons.

A message is one text, even if its client splits it into several parts, so a passage may begin in one part and end in
another. Passages are therefore removed from all parts together, before any part is classified or dropped.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator

PRIVATE = "[private]"
"""Replaces a private passage within other words."""

_TAG = re.compile(r"<[ \t]*(?P<closes>/)?[ \t]*private(?=[\s/>])[^<>]{0,200}>", re.IGNORECASE)
_CODE = re.compile(r"(?m)^[ \t]*(?P<fence>`{3,}|~{3,})[^\n]*$|(?P<ticks>`+)|\n")


def without_private(text: str) -> str:
    """Return a text without its private passages; empty if nothing else is left. Takes linear time."""
    return without_private_parts([text])[0]


def with_private_lines_blank(text: str) -> str:
    """Return a text as `without_private` does, with a blank line for each line of a private passage."""
    return _remove_private(text, 0, keep_lines=True)[0]


def without_private_parts(parts: Iterable[str]) -> list[str]:
    """Return the parts of a message without its private passages, which may span several parts.

    A part with nothing else is returned empty; the number of parts stays the same. Code spans end with their part.
    """
    depth, kept = 0, list[str]()
    for part in parts:
        public, depth = _remove_private(part, depth)
        kept.append(public)
    return kept


def _remove_private(text: str, depth: int, *, keep_lines: bool = False) -> tuple[str, int]:
    """Return a text without its private passages, and how many are open at its end; `depth` are open at its start."""
    if not depth and "private" not in text.lower():
        return text, 0
    kept: list[str] = []
    start = None if depth else 0  # of the public passage
    opened = 0
    for tag in _tags(text):
        if start is not None and not tag["closes"]:
            kept.append(text[start : tag.start()])
            start, opened = None, tag.start()
        depth = max(0, depth + (-1 if tag["closes"] else 1))
        if start is None and not depth:
            start = tag.end()
            if keep_lines:
                kept[-1] += "\n" * text.count("\n", opened, start)
    kept.append("" if start is None else text[start:])
    return (PRIVATE.join(kept) if any(part.strip() for part in kept) else ""), depth


def _tags(text: str) -> Iterator[re.Match[str]]:
    """Yield the tags that open or close a passage, excluding mentions in code."""
    tags = list(_TAG.finditer(text))
    spans = _code_spans(text) if tags else []
    starts = [start for start, _ in spans]
    kinds: dict[int, set[bool]] = {}
    within: list[int | None] = []
    for tag in tags:
        place = bisect(starts, tag.start()) - 1
        is_code = place >= 0 and tag.start() < spans[place][1]
        within.append(place if is_code else None)
        if is_code:
            kinds.setdefault(place, set()).add(tag["closes"] is None)
    yield from (tag for tag, place in zip(tags, within, strict=True) if place is None or len(kinds[place]) == 2)


def _code_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of closed code fences and of inline code, which ends within its line."""
    spans: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for mark in _CODE.finditer(text):
        kind = mark["fence"] or mark["ticks"] or "\n"
        if kind == "\n":
            opened = opened if opened and opened[1][:3] in ("```", "~~~") else None
        elif opened is None:
            opened = mark.start(), kind
        elif kind == opened[1]:
            spans.append((opened[0], mark.end()))
            opened = None
    return spans
