"""Detects text that poses as another speaker or a tool, and protects the tag around recalled text.

The patterns are in `marks.txt`, the same for all languages. `injected_instructions` detects orders in words.

`defused` removes the dashes from everything that reads like the name of the tag, in any letters, widths or escapes, so
nothing can close the block. It also replaces the bracket of marks by which models separate speakers and tools.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from mcp_memory.language import patterns_of
from mcp_memory.language.hidden_characters import plain, revealed

__all__ = ["TAG", "breaks_out", "defused", "poses_in"]


_WORD = re.compile(r"\w+")


def poses_in(text: str) -> set[str]:
    """Return the flags of the patterns of `marks.txt` that a text has; most are ruled out by the words it lacks."""
    folded = text.casefold()
    words = set(_WORD.findall(folded))
    flags: set[str] = set()
    for flag, groups, source in _rows():
        may_be = flag not in flags and all(
            not whole.isdisjoint(words) or any(part in folded for part in parts) for whole, parts in groups
        )
        if may_be and _compiled(source).search(text):
            flags.add(flag)
    return flags


@cache
def _rows() -> list[tuple[str, list[tuple[set[str], list[str]]], str]]:
    """Return for each pattern its flag, its groups of words and of parts of words or signs, and the pattern."""
    rows: list[tuple[str, list[tuple[set[str], list[str]]], str]] = []
    for head, source in patterns_of("mcp_memory.suspicion", "marks.txt"):
        flag, _, needs = head.partition(": ")
        groups = [group.split() for group in needs.split("&")]
        split = [(set(filter(_is_word, group)), [one for one in group if not _is_word(one)]) for group in groups]
        rows.append((flag, split, source))
    return rows


def _is_word(text: str) -> bool:
    return text.isalnum() and text[0] < "\u2e80"


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE | re.MULTILINE)


TAG = "mcp-memory-recall"

_DASH = r"(?:[-_\u2010-\u2015\u2212\ufe58\ufe63\uff0d\s]|&#0*45;|&#x0*2d;|&(?:hyphen|dash|shy);|\\u002d|\\x2d|%2d|\\-)"
_NAME = re.compile(rf"mcp{_DASH}{{0,4}}memory{_DASH}{{0,4}}recall", re.IGNORECASE)
_WORDS = "mcp memory recall"
_CLOSING = re.compile(
    rf"(?:<|&lt;|&#0*60;|&#x0*3c;|\\u003c|\\x3c|%3c|[＜﹤‹〈⟨])\s*[/\\／⁄∕]\s*{_NAME.pattern}", re.IGNORECASE
)
_MARK = re.compile(
    r"<(?=\s*\|)|<(?=\s*+/?\s*+(?:antml:|system\b|user\b|assistant\b|human\b|developer\b|tool|function|invoke\b|parameter\b|"
    r"im_|start_of|end_of|instructions?\b|context\b|memor|recall|data\b|untrusted|<\s*/?SYS))|<(?=｜)|\[(?=/?INST\])",
    re.IGNORECASE,
)


def breaks_out(text: str) -> bool:
    """Tell whether a text has something that reads like the end of recalled text."""
    if "recall" not in text and text.isascii() and "RECALL" not in text.upper():
        return False
    return _CLOSING.search(plain(text)) is not None


def defused(text: str) -> str:
    """Return a text that cannot end the block it stands in, nor pose as another speaker in it; else as it reads."""
    return _MARK.sub(lambda mark: "‹" if mark[0] == "<" else "(", _nameless(revealed(text)))


def _nameless(text: str) -> str:
    text = _NAME.sub(_WORDS, text)
    if text.isascii() or _NAME.search(plain(text)) is None:
        return text
    folded, places = _by_place(text)
    kept, reached = list[str](), 0
    for name in _NAME.finditer(folded):
        start, end = places[name.start()], places[name.end() - 1] + 1
        kept += [text[reached:start], _WORDS]
        reached = end
    return "".join([*kept, text[reached:]])


def _by_place(text: str) -> tuple[str, list[int]]:
    """Return a text character for character as it looks, and where in it each comes from."""
    folded, places = list[str](), list[int]()
    for at, character in enumerate(text):
        shown = character if character.isascii() else _latin_like(unicodedata.normalize("NFKC", character))
        folded += shown
        places += [at] * len(shown)
    return "".join(folded), places


def _latin_like(character: str) -> str:
    return plain(f"a{character}")[1:]  # in a word with a Latin letter look-alikes are read as such
