"""Detects prompt injection in text that a model will read. Pure; needs no language model.

    injected_instructions  orders to a model, by the words of twenty-eight languages and by the bundled encoder
    disguises              decoded and rearranged readings of a text
    lexicon                the words of attacks, one file a language
    marks.txt              patterns of text that poses as a speaker, a tool call or an answer, in any language

`flags` returns the signs that matter for a text's source. People may tell their own assistant anything, so of the
user's words only hidden characters and closing tags count. Callers interpret the flags; nothing is refused or
changed here. False statements without unusual wording pass: `longterm.verification.trust` checks the source instead.

`defused` protects the tag around recalled text: it removes the dashes from everything that reads like the name of the
tag, in any letters, widths or escapes, so nothing can close the block. It also replaces the bracket of marks by which
models separate speakers and tools.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Literal

from mcp_memory.core.text import hides, plain, revealed
from mcp_memory.core.types import Source
from mcp_memory.language import patterns_of
from mcp_memory.suspicion.disguises import readings
from mcp_memory.suspicion.injected_instructions import means_order, orders_in, uncited

Flag = Literal["hidden", "fence", "disguised", "drop", "heed", "keep", "role", "call", "leak", "order"]

MEANINGS: dict[str, str] = {
    "hidden": "hidden characters",
    "fence": "something like the end of a recalled block",
    "disguised": "words in disguise",
    "drop": "an order to drop other instructions",
    "heed": "orders addressed to a model",
    "keep": "an order to remember something",
    "role": "text that poses as another speaker",
    "call": "text that poses as a tool's call or answer",
    "leak": "an order to send something away",
    "order": "a sentence that means an order to a model",
    "unsaid": "the user's word for it is missing: its words are a tool's",
    "secret": "a key, password or card number: forget and purge it",
}
"""Each flag in words for people; `longterm` sets `unsaid`, and `secret` is for rows older than masking."""

_LOOKED_AT = 400_000  # characters at either end of a longer text


def flags(text: str, source: Source) -> tuple[Flag, ...]:
    """Return the flags of a text from this source, in the order of `MEANINGS`; most texts have none."""
    if len(text) > 2 * _LOOKED_AT:
        text = f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    signs: set[Flag] = worded(text) if source != "user" else set()
    if hides(text):
        signs.add("hidden")
    if breaks_out(text):
        signs.add("fence")
    return tuple(flag for flag in _ORDER if flag in signs)


def worded(text: str) -> set[Flag]:
    """Return the flags of a text's wording, whoever says it, except for orders that it quotes as examples."""
    signs = _worded(text)
    return _worded(rest) if signs and (rest := uncited(text)) != text else signs


def _worded(text: str) -> set[Flag]:
    shown = plain(text)
    signs = _signs(shown)
    if signs and shown != text and not _signs(text):
        signs.add("disguised")
    for reading in readings(shown):
        if read := _signs(reading) - signs:
            signs |= {*read, "disguised"}
    if not signs and means_order(shown):
        signs.add("order")
    return {flag for flag in _ORDER if flag in signs}


def _signs(text: str) -> set[str]:
    return poses_in(text) | orders_in(text)


def sifted(text: str) -> str:
    """Return the text of a canvas with a comment in the place of each line that reads like an attack."""
    shown = (
        "%% a line that reads like an order is left out" if flags(line, "tool") else line for line in text.split("\n")
    )
    return "\n".join(shown)


_ORDER: tuple[Flag, ...] = ("hidden", "fence", "disguised", "drop", "heed", "keep", "role", "call", "leak", "order")


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
