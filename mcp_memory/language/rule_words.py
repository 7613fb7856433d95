"""A cheap score for whether a sentence states a standing rule: a logistic regression on its words and cues.

`language.sentences` selects candidates with it, and `models.embed.classifiers.rule_scores` adds it to the encoder's
score. Words are hashed into `SLOTS` weights; most are 0. `scripts/fit_rules.py` fits them and writes
`data/rule_words.bin`: two little-endian floats (the scale of the weights, the constant), a bit for each slot that has a
weight, and the weights as signed bytes in the order of the slots.

Cues are words that establish, address, report, limit or revoke an order. A cue is one idea in fourteen languages ("from
now on", "she said", "back then"), so that weights learned in one language apply to all. `data/rule_cues/` has a file
per language, with a block per cue: words and phrases, `prefer*` for a prefix and `-ría` for a suffix. A sentence is
read in the language of most of its cues. No cue decides alone.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from itertools import pairwise
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
_PART = 3  # letters by which prefixes and suffixes are looked up
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
    """The cues of some languages. An entry is (language, cue, the rest of the phrase, or the prefix or suffix).

    `phrases` are keyed by their first word, `beginnings` by three letters of the prefix, `endings` by two of the
    suffix.
    """

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
    vocabulary = _Vocabulary()
    for language in languages:
        for cue, entry in _entries(language):
            words = _WORD.findall(entry)
            if entry.startswith("-"):
                vocabulary.endings.setdefault(words[0][-2:], []).append((language, cue, words[0]))
            elif entry.endswith("*") and len(words) == 1:
                vocabulary.beginnings.setdefault(words[0][:_PART], []).append((language, cue, words[0]))
            else:
                vocabulary.phrases.setdefault(words[0], []).append((language, cue, words[1:]))
    return vocabulary


@cache
def _substrings(language: str) -> list[tuple[int, str]]:
    return list(_entries(language))


def _matches(lower: str) -> tuple[str, list[tuple[int, bool]]]:
    """Return the language of a sentence, and its cues, each with whether it is at the beginning."""
    language = next((name for name, letters in _SCRIPTS if re.search(letters, lower)), "")
    if language in _DENSE:
        places = [(cue, lower.find(entry)) for cue, entry in _substrings(language)]
        return language, [(cue, place < _EARLY_DENSE) for cue, place in places if place >= 0]
    by_language: dict[str, list[tuple[int, bool]]] = {}
    vocabulary = _vocabulary((language,) if language else _SPACED)
    words = _WORD.findall(lower)
    for place, word in enumerate(words):
        for spoken, cue, rest in vocabulary.phrases.get(word, ()):
            if words[place + 1 : place + 1 + len(rest)] == rest:
                by_language.setdefault(spoken, []).append((cue, place < _EARLY))
        for spoken, cue, beginning in vocabulary.beginnings.get(word[:_PART], ()):
            if word.startswith(beginning):
                by_language.setdefault(spoken, []).append((cue, place < _EARLY))
        for spoken, cue, ending in vocabulary.endings.get(word[-2:], ()):
            if word.endswith(ending) and len(word) > len(ending) + 1:
                by_language.setdefault(spoken, []).append((cue, place < _EARLY))
    if not by_language:
        return "", []
    best = max(by_language, key=lambda name: len(by_language[name]) + len({cue for cue, _ in by_language[name]}))
    return best, by_language[best]


@lru_cache(maxsize=4_096)
def cues_of(sentence: str) -> tuple[bool, ...]:
    """Return which `CUES` and `SHAPES` a sentence has, then which `CUES` at its beginning, as one tuple."""
    lower = sentence.lower().replace("’", "'")
    language, matches = _matches(lower)
    dense = language in _DENSE
    anywhere, early = {cue for cue, _ in matches}, {cue for cue, is_early in matches if is_early}
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


SLOTS = 1 << 18
_WORD_OR_SIGN = re.compile("[\u0e00-\u0e7f\u2e80-\uffef]|[^\\W\u0e00-\u0e7f\u2e80-\uffef]+|[?!:¤]")
_HEAD = struct.Struct("<ff")
_BEGINNING, _SHORT_BEGINNING, _ENDING = 6, 4, 3  # characters
_ENDS = 3  # words


def slots_of(sentence: str) -> list[int]:
    """Return the slots of a sentence's features among `SLOTS` weights, each once.

    Features are cues, beginnings of words (four and six letters), pairs of them, pairs around a word, three in a row,
    endings, and the first and last words as such.
    """
    words = ["^", *_WORD_OR_SIGN.findall(sentence.lower()), "$"]
    stems, short = [word[:_BEGINNING] for word in words], [f"4{word[:_SHORT_BEGINNING]}" for word in words]
    features = {*stems, *short, *map(" ".join, pairwise(stems)), *map(" ".join, pairwise(short))}
    features.update(map(" _ ".join, zip(stems, stems[2:], strict=False)))
    features.update(map(" ".join, zip(stems, stems[1:], stems[2:], strict=False)))
    features.update(f"-{word[-_ENDING:]}" for word in words if len(word) > _ENDING + 1)
    features.update(f"<{stem}" for stem in stems[1 : _ENDS + 1])
    features.update(f">{stem}" for stem in stems[-_ENDS - 1 : -1])
    features.update(f"cue {at}" for at, has in enumerate(cues_of(sentence)) if has)
    return sorted({_hashed(feature) for feature in features})


@lru_cache(maxsize=256)
def word_score(sentence: str) -> float:
    """Return the log-odds that a sentence states a standing rule, by its words and cues alone."""
    weights, constant = _model()
    slots = slots_of(sentence)
    return sum(weights.get(slot, 0.0) for slot in slots) / (len(slots) + 1) ** 0.5 + constant


def pack(weights: dict[int, float], constant: float) -> bytes:
    """Return the content of `rule_words.bin` for the non-zero weights by slot."""
    scale = max(map(abs, weights.values())) / 127
    used = bytearray(SLOTS // 8)
    for slot in weights:
        used[slot // 8] |= 1 << slot % 8
    values = (round(weights[slot] / scale) for slot in sorted(weights))
    return _HEAD.pack(scale, constant) + bytes(used) + struct.pack(f"<{len(weights)}b", *values)


@cache
def _model() -> tuple[dict[int, float], float]:
    stored = resources.files("mcp_memory.language").joinpath("data", "rule_words.bin").read_bytes()
    scale, constant = _HEAD.unpack_from(stored)
    used = stored[_HEAD.size : _HEAD.size + SLOTS // 8]
    slots = [at * 8 + bit for at, byte in enumerate(used) if byte for bit in range(8) if byte >> bit & 1]
    values = struct.unpack_from(f"<{len(slots)}b", stored, _HEAD.size + len(used))
    return {slot: value * scale for slot, value in zip(slots, values, strict=True)}, constant


@lru_cache(maxsize=16_384)
def _hashed(feature: str) -> int:
    return zlib.crc32(feature.encode("utf-8", "surrogatepass")) % SLOTS
