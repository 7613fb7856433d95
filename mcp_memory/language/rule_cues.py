"""Cues of a standing rule in a sentence: words that fix, address, report, limit or take back an order.

A cue is one idea in fourteen languages ("from now on", "she said", "back then"), so what is learned about cues in one
language holds in all of them. `data/rule_cues/` has a file a language, one block a cue: words and phrases, `prefer*`
for a beginning and `-ría` for an ending of a word. A sentence is read in the language that most of its cues are of.

No cue decides: `rule_words` weighs them together with the words of a sentence, and `models.embed.classifiers` together
with what the encoder says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from mcp_memory.language import blocks_of

CUES = (
    "henceforth", "always", "never", "not", "please", "want", "prefer", "you", "me", "i", "they", "say", "past", "once",
    "question", "withdraw", "when", "must", "imagined", "public", "default", "so", "ask", "thanks", "will",
)  # fmt: skip
SHAPES = (
    "asks", "exclaims", "ends in !", "quotes", "begins with a quotation", "log line", "commit message", "long", "short",
    "number", "lower case", "dense script",
)  # fmt: skip
"""Traits of a sentence's form, in the order of `cues_of`."""

_PACKAGE = "mcp_memory.language"
_SPACED = ("en", "de", "es", "fr", "it", "nl", "pl", "pt", "sv", "tr")
_DENSE = ("ja", "ko", "zh")
_SCRIPTS = (("ko", "[\uac00-\ud7af]"), ("ja", "[\u3040-\u30ff]"), ("zh", "[\u3400-\u9fff]"), ("ru", "[\u0400-\u04ff]"))
_WORD = re.compile(r"[^\W_]+")
_EARLY, _EARLY_DENSE = 2, 3  # words, and characters, at the beginning of a sentence
_PART = 3  # letters by which beginnings and endings of words are looked up
_LOG = re.compile(
    r"\W*(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d)|\W*(?i:npm |\w*(?:warn|error|fehler|avis[oe]|erreur|info|debug|err!|hint"
    r"|usage|fatal|warnung|attenzione|avertissement|uwaga|varning|uyarı|внимание|警告|경고)\w*)[\]):：! ]"
)
_COMMIT = re.compile(
    r"\W*(?i:(?:feat|fix|docs|chore|refactor|test|perf|build|ci|style|revert)(?:\([^)]*\))?!? ?:|merge branch)"
)
_QUOTATION = re.compile(r"\W*?[\"“«„「『]")


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    """The cues of some languages. A phrase is (language, cue, words); the last word may be the beginning of one."""

    phrases: dict[str, list[tuple[str, int, list[str]]]] = field(default_factory=dict[str, Any])
    beginnings: dict[str, list[tuple[str, int, str]]] = field(default_factory=dict[str, Any])
    endings: dict[str, list[tuple[str, int, str]]] = field(default_factory=dict[str, Any])


def _entries(language: str) -> Iterator[tuple[int, str]]:
    for head, lines in blocks_of(_PACKAGE, "data", "rule_cues", f"{language}.txt"):
        for entry in " ".join(lines).split(","):
            if entry.strip():
                yield CUES.index(head), entry.strip()


@cache
def _vocabulary(languages: Sequence[str]) -> _Vocabulary:
    found = _Vocabulary()
    for language in languages:
        for cue, entry in _entries(language):
            words = _WORD.findall(entry)
            if entry.startswith("-"):
                found.endings.setdefault(words[0][-2:], []).append((language, cue, words[0]))
            elif entry.endswith("*") and len(words) == 1:
                found.beginnings.setdefault(words[0][:_PART], []).append((language, cue, words[0]))
            else:
                found.phrases.setdefault(words[0], []).append((language, cue, words[1:]))
    return found


@cache
def _substrings(language: str) -> list[tuple[int, str]]:
    return list(_entries(language))


def _matches(lower: str) -> tuple[str, list[tuple[int, bool]]]:
    """Return the language of a sentence, and its cues, each with whether it is at the beginning."""
    language = next((name for name, letters in _SCRIPTS if re.search(letters, lower)), "")
    if language in _DENSE:
        places = [(cue, lower.find(entry)) for cue, entry in _substrings(language)]
        return language, [(cue, place < _EARLY_DENSE) for cue, place in places if place >= 0]
    found: dict[str, list[tuple[int, bool]]] = {}
    vocabulary = _vocabulary((language,) if language else _SPACED)
    words = _WORD.findall(lower)
    for place, word in enumerate(words):
        for spoken, cue, rest in vocabulary.phrases.get(word, ()):
            if words[place + 1 : place + 1 + len(rest)] == rest:
                found.setdefault(spoken, []).append((cue, place < _EARLY))
        for spoken, cue, beginning in vocabulary.beginnings.get(word[:_PART], ()):
            if word.startswith(beginning):
                found.setdefault(spoken, []).append((cue, place < _EARLY))
        for spoken, cue, ending in vocabulary.endings.get(word[-2:], ()):
            if word.endswith(ending) and len(word) > len(ending) + 1:
                found.setdefault(spoken, []).append((cue, place < _EARLY))
    if not found:
        return "", []
    weight = Counter({one: len(some) + len({cue for cue, _ in some}) for one, some in found.items()})
    best = weight.most_common(1)[0][0]
    return best, found[best]


@lru_cache(maxsize=4_096)
def cues_of(sentence: str) -> tuple[bool, ...]:
    """Return which of `CUES` a sentence has, which `SHAPES`, and which of `CUES` at its beginning, in this order."""
    lower = sentence.lower().replace("’", "'")
    language, found = _matches(lower)
    dense = language in _DENSE
    anywhere, early = {cue for cue, _ in found}, {cue for cue, is_early in found if is_early}
    shapes = (
        "?" in lower or "？" in lower,
        "!" in lower or "！" in lower,
        re.search(r"[!！]\W*$", lower) is not None,
        "\u00a4" in lower,
        _QUOTATION.match(sentence) is not None or lower.lstrip().startswith("\u00a4"),
        _LOG.match(sentence) is not None,
        _COMMIT.match(sentence) is not None,
        len(lower) > (30 if dense else 90),
        len(lower) < (10 if dense else 28),
        any(map(str.isdigit, lower)),
        sentence.lstrip()[:1].islower(),
        dense,
    )
    return (*(at in anywhere for at in range(len(CUES))), *shapes, *(at in early for at in range(len(CUES))))
