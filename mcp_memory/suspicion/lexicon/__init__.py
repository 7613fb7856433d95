"""Lexicon of attacks in twenty-eight languages: one file a language, one line a concept.

`any.txt` has the words that are the same in all of them. In a file, a word that ends in `*` is a stem, and an entry of
several words means these words in a row. From Hebrew on, where words carry prefixes or have no spaces between them, an
entry is found inside words; an entry that ends in a space only at the end of a word. Entries of capitals alone (`AI`,
`KI`) count in capitals alone.

The lexicon knows no grammar; `signs.txt` defines which concepts together are an attack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

from mcp_memory.core.text import normalize

LANGUAGES = (
    "ar", "cs", "da", "de", "el", "en", "es", "fa", "fi", "fr", "he", "hi", "hu", "id", "it", "ja", "ko", "nl", "pl",
    "pt", "ro", "ru", "sv", "th", "tr", "uk", "vi", "zh",
)  # fmt: skip
CONCEPTS = (
    "drop", "orders", "told", "earlier", "all", "you", "send", "secret", "quiet", "no", "tell", "user", "keep",
    "memory", "forever", "act", "machine", "helper", "boss", "heed", "must", "reply", "pose", "free", "none",
    "reads", "only", "asks", "matter",
)  # fmt: skip
"""The concepts that are features of a sentence, in order. The files have words for these and for `cites`:

    drop      to cancel something             orders    instructions, rules       told      "as instructed", "said"
    earlier   previous, so far                all       all, any                  you       the second person
    send      to send or reveal               secret    passwords, conversations  quiet     without telling
    no, tell  "not" and "tell", for quiet      user      the user, a customer      keep      to store, to remember
    memory    a memory, later conversations   forever   for good, from now on     act       to run, pay, recommend
    machine   a model                         helper    assistant, agent, bot     boss      system, developer
    heed      "note to", "if you are"         must      must, please, at once     reply     answers, summaries
    pose      "you are now", "new task"       free      "without restrictions"    none      "do not forget"
    reads     "reading this"                  only      "only for"                asks      actions of a user
    matter    what the rules of a craft are about: style, syntax, recipes
    cites     what names a quotation as an example: attackers, a phrase, such as
"""
ANY = (1 << len(LANGUAGES)) - 1
"""The bits of all languages."""


class Match(NamedTuple):
    """A concept in a text: its start and end, and a bit for each language of the word."""

    start: int
    end: int
    concept: str
    languages: int


class _Entry(NamedTuple):
    """The concept of a word in some languages, if the words or stems of `rest` follow it.

    `needs` has the whole words of `rest`: a text that lacks any of them has no such entry.
    """

    concept: str
    languages: int
    rest: tuple[str, ...]
    needs: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Lexicon:
    """The entries of all languages, by the beginning of each entry.

    `words` and `stems` are keyed by the first word of an entry, `inside` by its first character or two. `openings`
    has the first `_OPENING` characters of every stem, which exclude most words of a text quickly.
    """

    words: dict[str, list[_Entry]]
    stems: dict[str, list[_Entry]]
    openings: set[str]
    inside: dict[str, list[tuple[str, str, int]]]


_BITS = {language: 1 << place for place, language in enumerate(LANGUAGES)} | {"any": ANY}
_CAPITALS = "^"  # instead of further words: the word must be in capitals
_SHORTEST_STEM, _LONGEST_STEM, _OPENING = 2, 24, 3
_LETTERS = (
    {"đ": "d", "Đ": "D", "ı": "i", "İ": "I", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "ß": "ss", "œ": "oe"}
    | dict.fromkeys("’ʼ‘`´", "'")
    | {"ي": "ی", "ى": "ی", "ك": "ک", "\u00a0": " "}
)
_LETTER = re.compile(f"[{''.join(_LETTERS)}]")
_APOSTROPHE = re.compile("[’ʼ‘`´]")
_MARKS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0670\u093c\u0640]")
_TOKEN = re.compile(r"[0-9a-z_\u00aa-\u058f\u1e00-\u1fff]+")
_INSIDE = re.compile("[\u0590-\u1cff\u2e80-\uffef]")
_RUN = re.compile(_INSIDE.pattern + "+")
_NOT = re.compile(r"n't\b")
_VIETNAMESE = re.compile("[\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9]")


def folded(text: str) -> str:
    """Return a text without accents and vowel points, which are optional in most languages, and with "not" for "n't".

    In Vietnamese they distinguish words, so they stay in a text with letters of that language.
    """
    if text.isascii():
        return _NOT.sub(" not", text) if "n't" in text else text
    if _VIETNAMESE.search(text):
        return _NOT.sub(" not", _APOSTROPHE.sub("'", normalize("NFC", text)))
    bare = _LETTER.sub(lambda letter: _LETTERS[letter[0]], text)
    bare = _MARKS.sub("", normalize("NFKD", bare))
    return _NOT.sub(" not", normalize("NFC", bare))


def concepts_of(text: str) -> dict[str, int]:
    """Return the concepts that a folded text may have, with their languages: at least all that `matches` finds."""
    lower = text.lower()
    concepts: dict[str, int] = {}
    words = set(_TOKEN.findall(lower))
    for word in words:
        for concept, languages, _, needs in _begun_by(word):
            if needs <= words:
                concepts[concept] = concepts.get(concept, 0) | languages
    if not lower.isascii():
        for match in _of_runs(lower):
            concepts[match.concept] = concepts.get(match.concept, 0) | match.languages
    return concepts


def spoken_together(languages: dict[str, int], groups: Sequence[Sequence[str]]) -> bool:
    """Return whether one language has a concept of each group."""
    shared = ANY
    for concepts in groups:
        spoken = 0
        for concept in concepts:
            spoken |= languages.get(concept, 0)
        shared &= spoken
        if not shared:
            return False
    return True


def matches(text: str) -> list[Match]:
    """Return the concepts of a folded text, sorted by place."""
    lower = text.lower()
    concepts = list(_of_words(text, lower))
    if not lower.isascii():
        concepts += _of_runs(lower)
        concepts.sort()
    return concepts


def split_run(run: str) -> str:
    """Return letters written without spaces as words of the lexicon, in lower case, and single letters between them.

    Letters of scripts that are searched inside words are returned unchanged.
    """
    if _INSIDE.search(run):
        return run
    lexicon, lower, words, at = _lexicon(), folded(run).lower(), list[str](), 0
    while at < len(lower):
        for length in range(min(_LONGEST_STEM, len(lower) - at), 2, -1):
            word = lower[at : at + length]
            if word in lexicon.words or word in lexicon.stems:
                break
        else:
            word = lower[at]
        words.append(word)
        at += len(word)
    return " ".join(words)


@lru_cache(maxsize=8_192)  # common words repeat constantly
def _begun_by(word: str) -> tuple[_Entry, ...]:
    """Return the entries that a word of a text may begin."""
    lexicon = _lexicon()
    whole_words = lexicon.words.get(word, ())
    if word[:_OPENING] not in lexicon.openings and word[:_SHORTEST_STEM] not in lexicon.stems:
        return tuple(whole_words)
    lengths = range(_SHORTEST_STEM, min(len(word), _LONGEST_STEM) + 1)
    return (*whole_words, *(entry for length in lengths for entry in lexicon.stems.get(word[:length], ())))


def _of_words(text: str, lower: str) -> Iterator[Match]:
    places = [place.span() for place in _TOKEN.finditer(lower)]
    words = {lower[start:end] for start, end in places}
    spoken = ANY if _VIETNAMESE.search(text) else ANY & ~_BITS["vi"]
    for at, (start, end) in enumerate(places):
        for concept, languages, rest, needs in _begun_by(lower[start:end]):
            if not (languages & spoken and needs <= words):
                continue
            if not rest or (rest[0] == _CAPITALS and text[start:end].isupper()):
                yield Match(start, end, concept, languages)
            elif at + len(rest) < len(places) and all(
                _is(lower[slice(*places[at + 1 + step])], part) for step, part in enumerate(rest)
            ):
                yield Match(start, places[at + len(rest)][1], concept, languages)


def _of_runs(lower: str) -> Iterator[Match]:
    inside = _lexicon().inside
    for run in _RUN.finditer(lower):
        for start in range(run.start(), run.end()):
            for key in (lower[start], lower[start : start + 2]):
                for entry, concept, languages in inside.get(key, ()):
                    end = start + len(entry)
                    if lower.startswith(entry, start) or (
                        entry[-1] == " " and lower.startswith(entry[:-1], start) and not lower[end - 1 : end].isalnum()
                    ):
                        yield Match(start, end, concept, languages)


def _is(word: str, part: str) -> bool:
    return word.startswith(part[:-1]) if part[-1] == "*" else word == part


@cache
def _lexicon() -> _Lexicon:
    lexicon = _Lexicon({}, {}, set(), {})
    folder = resources.files("mcp_memory.suspicion") / "lexicon"
    for language in _BITS:
        for line in (folder / f"{language}.txt").read_text(encoding="utf-8").splitlines():
            concept, _, entries = line.partition(": ")
            for entry in f"{entries},".split(", "):
                _add(lexicon, entry.removesuffix(","), concept, language)
    lexicon.openings.update(stem[:_OPENING] for stem in lexicon.stems)
    return lexicon


def _add(lexicon: _Lexicon, entry: str, concept: str, language: str) -> None:
    bit = _BITS[language]
    if _INSIDE.match(entry):
        bare = folded(entry).lower()
        lexicon.inside.setdefault(bare[: min(2, len(bare.rstrip()))], []).append((bare, concept, bit))
        return
    as_written = _APOSTROPHE.sub("'", entry)
    for spelling in {as_written} if language == "vi" else {as_written, folded(entry)}:
        first, *rest = re.findall(_TOKEN.pattern + r"\*?", _NOT.sub(" not", spelling.lower()))
        if entry.isupper() and " " not in entry:
            rest = [_CAPITALS]
        table = lexicon.stems if first[-1] == "*" else lexicon.words
        entries = table.setdefault(first.rstrip("*"), [])
        for place, other in enumerate(entries):
            if other.concept == concept and other.rest == tuple(rest):
                entries[place] = other._replace(languages=other.languages | bit)
                break
        else:
            whole = frozenset(part for part in rest if part[-1] not in f"*{_CAPITALS}")
            entries.append(_Entry(concept, bit, tuple(rest), whole))
