"""Signs of prompt injection in a text.

`flags` returns the signs that matter for a text's source. People may tell their own assistant anything, so of the
user's words only hidden characters and closing tags count. Callers interpret the flags; nothing is refused or
changed here. False statements without unusual wording pass: `longterm.verification.trust` checks the source instead.

A text is judged as it is, without the introduction of each line, and in all its readings without a disguise.

`defuse` protects the tag around recalled text: it removes the dashes from everything that reads like the name of the
tag, in any letters, widths or escapes, so nothing can close the block. It also replaces the bracket of marks by which
models separate speakers and tools.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache
from typing import Literal

from mcp_memory.core.text import has_hidden_text, remove_hidden, to_plain_letters
from mcp_memory.core.types import Source
from mcp_memory.language import patterns_of
from mcp_memory.language.sentences import sentences
from mcp_memory.suspicion.disguises import messages_of, readings
from mcp_memory.suspicion.injected_instructions import (
    instructions_in,
    mean_instructions,
    without_examples,
    without_self_reference,
)

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
    "unjudged": "not analysed yet: the background does it",
    "failed": "its analysis failed: the log has the error",
    "unsaid": "the user's word for it is missing: its words are a tool's",
    "secret": "a key, password or card number: forget and purge it",
}
"""Each flag in words for people. `longterm` sets `unjudged`, `failed` and `unsaid`; `secret` is for rows from before
masking."""

_PIECE, _OVERLAP = 20_000, 1_000
"""Characters that the patterns read at once, so that the time is linear and each match blocks the GIL only briefly."""


def flags(text: str, source: Source, *, meaning: bool = True, is_turn: bool = False) -> tuple[Flag, ...]:
    """Return the flags of a text from this source, in the order of `MEANINGS`; most texts have no flags.

    Without `meaning` the bundled model does not judge its sentences, which takes most of the time. Set
    `is_turn` for a turn of a conversation, in which an assistant may describe itself ("As an AI, …").
    """
    return flags_of([(text, source)], meaning=meaning, are_turns=is_turn)[0]


def flags_of(
    texts: Sequence[tuple[str, Source]], *, meaning: bool = True, are_turns: bool = False
) -> list[tuple[Flag, ...]]:
    """Return the `flags` of each text; the bundled model judges all of them together, which is faster."""
    others = [at for at, (_, source) in enumerate(texts) if source != "user"]
    turns = [place for place, at in enumerate(others) if are_turns and texts[at][1] == "assistant"]
    wordings = dict(zip(others, _wording_flags([texts[at][0] for at in others], meaning, turns), strict=True))
    results: list[tuple[Flag, ...]] = []
    for at, (text, _) in enumerate(texts):
        signs = wordings.get(at, set())
        if has_hidden_text(text):
            signs.add("hidden")
        if breaks_out(text):
            signs.add("fence")
        results.append(tuple(flag for flag in _ORDER if flag in signs))
    return results


def wording_flags(text: str) -> set[Flag]:
    """Return the flags of a text's wording, independent of its source, except for instructions quoted as examples."""
    return _wording_flags([text], meaning=True)[0]


def _wording_flags(texts: Sequence[str], meaning: bool, turns: Collection[int] = ()) -> list[set[Flag]]:
    """Return the flags of each text; `turns` are the indices of the texts that are turns of an assistant."""
    texts = [without_self_reference(text) if at in turns else text for at, text in enumerate(texts)]
    flag_sets = _judge(texts, meaning)
    bare = {
        at: rest for at, signs in enumerate(flag_sets) if signs and (rest := without_examples(texts[at])) != texts[at]
    }
    for at, signs in zip(bare, _judge(list(bare.values()), meaning), strict=True):
        flag_sets[at] = signs
    return flag_sets


def _judge(texts: Sequence[str], meaning: bool) -> list[set[Flag]]:
    flag_sets = [_by_words(text) for text in texts]
    asked = [at for at, signs in enumerate(flag_sets) if meaning and not signs]
    for at, is_order in zip(
        asked, mean_instructions([messages_of(to_plain_letters(texts[at])) for at in asked]), strict=True
    ):
        if is_order:
            flag_sets[at].add("order")
    return flag_sets


def _by_words(text: str) -> set[Flag]:
    """Return the flags that a text gets by its words alone; it is read in pieces that overlap."""
    starts = range(0, max(1, len(text) - _OVERLAP), _PIECE)
    return set[Flag]().union(*(_by_words_of_piece(text[start : start + _PIECE + _OVERLAP]) for start in starts))


def _by_words_of_piece(text: str) -> set[Flag]:
    shown = to_plain_letters(text)
    signs = _signs(shown)
    if (messages := messages_of(shown)) != shown:
        signs |= _signs(messages)
    if signs and shown != text and not _signs(text):
        signs.add("disguised")
    for reading in readings(shown):
        if read := _signs(reading) - signs:
            signs |= {*read, "disguised"}
    return {flag for flag in _ORDER if flag in signs}


def _signs(text: str) -> set[str]:
    return impersonation_in(text) | instructions_in(text)


def without_orders(text: str) -> tuple[str, int]:
    """Return a tool's text without the lines that have flags, and the number of lines removed."""
    lines = text.split("\n")
    suspicions = flags_of([(line, "tool") for line in lines])
    kept = [line for line, flags in zip(lines, suspicions, strict=True) if not flags]
    return "\n".join(kept), len(lines) - len(kept)


def flagged_spans(text: str, *, meaning: bool) -> list[tuple[int, int]]:
    """Return the spans of the sentences and lines of a text that have flags by themselves; `meaning` as in `flags`."""
    spans = list(sentences(text))
    judged = flags_of([(text[start:end], "tool") for start, end in spans], meaning=meaning)
    return [span for span, flags in zip(spans, judged, strict=True) if flags]


def without_flagged_lines(text: str) -> str:
    """Return the text of a canvas with a Mermaid comment in place of each line that has flags."""
    shown = (
        "%% a line that reads like an order is left out" if flags(line, "tool") else line for line in text.split("\n")
    )
    return "\n".join(shown)


_ORDER: tuple[Flag, ...] = ("hidden", "fence", "disguised", "drop", "heed", "keep", "role", "call", "leak", "order")


_WORD = re.compile(r"\w+")


def impersonation_in(text: str) -> set[str]:
    """Return the flags of the patterns of `marks.txt` in a text. Required words rule out most patterns first."""
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
    """Return for each pattern its flag, its groups of required words and parts of words, and the pattern."""
    rows: list[tuple[str, list[tuple[set[str], list[str]]], str]] = []
    for head, source in patterns_of("mcp_memory.suspicion", "marks.txt"):
        flag, _, needs = head.partition(": ")
        groups = [group.split() for group in needs.split("&")]
        split = [(set(filter(_is_word, group)), [word for word in group if not _is_word(word)]) for group in groups]
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
    """Return whether a text has something that reads like the end of recalled text."""
    if "recall" not in text and text.isascii() and "RECALL" not in text.upper():
        return False
    return _CLOSING.search(to_plain_letters(text)) is not None


def defuse(text: str) -> str:
    """Return a text that can neither end its block nor impersonate another speaker, and otherwise reads the same."""
    return _MARK.sub(lambda mark: "‹" if mark[0] == "<" else "(", _without_tag(remove_hidden(text)))


def _without_tag(text: str) -> str:
    text = _NAME.sub(_WORDS, text)
    if text.isascii() or _NAME.search(to_plain_letters(text)) is None:
        return text
    folded, places = _by_place(text)
    kept, reached = list[str](), 0
    for name in _NAME.finditer(folded):
        start, end = places[name.start()], places[name.end() - 1] + 1
        kept += [text[reached:start], _WORDS]
        reached = end
    return "".join([*kept, text[reached:]])


def _by_place(text: str) -> tuple[str, list[int]]:
    """Return a text with look-alike characters replaced, and for each character its place in the original."""
    folded, places = list[str](), list[int]()
    for at, character in enumerate(text):
        shown = character if character.isascii() else _latin_like(unicodedata.normalize("NFKC", character))
        folded += shown
        places += [at] * len(shown)
    return "".join(folded), places


def _latin_like(character: str) -> str:
    return to_plain_letters(f"a{character}")[1:]  # look-alikes count in a word with a Latin letter
