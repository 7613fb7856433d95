"""A text as the statements it makes: for each clause its values, its names and what these are of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from mcp_memory.language.words import fold, function_words, languages_of
from mcp_memory.longterm.changes.forms import Forms, any_of
from mcp_memory.longterm.changes.values import Value, ValueKind, values_in
from mcp_memory.longterm.changes.vocabulary import CHANGED, FORMER, FROM, LIGHT, RELATIONS, TO

__all__ = ["Statement", "says_changed", "statements", "words_alike"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One clause. `words` tell what its values are of: no function words, numbers, change words, names, or
    words of a relation.

    `names` are capitalised words inside it, folded; in languages that capitalise every noun only those after a
    preposition. `former` are values that it says are no longer so ("not 14", "instead of Tuesday");
    `kinds` are those of `values`.
    """

    text: str
    values: tuple[Value, ...]
    former: tuple[Value, ...]
    kinds: frozenset[ValueKind]
    names: frozenset[str]
    words: frozenset[str]
    relations: frozenset[str]
    changed: bool
    asks: bool


@lru_cache(maxsize=4_096)
def statements(text: str) -> tuple[Statement, ...]:
    """Return the statements of a text, in order, one a clause."""
    german = "de" in languages_of(_WORD.findall(text)[:60])
    return tuple(
        _statement(clause, sentence, german=german) for sentence in _sentences(text) for clause in _clauses(sentence)
    )


def says_changed(text: str) -> bool:
    """Tell whether a text has a word of change or negation: else no statement of it is `changed` or has `former`."""
    return _changed().are_in(text) or _denied().are_in(text)


def words_alike(some: frozenset[str], others: frozenset[str]) -> tuple[int, int]:
    """Return how many words of each have one of the same stem, or a compound with it, among the other's."""
    same = some & others
    left, right = _by_ends(some), _by_ends(others)
    pairs = [  # few words begin or end alike: only these are compared, each with each
        (one, other)
        for end in left.keys() & right.keys()
        for one in left[end]
        if one not in same
        for other in right[end]
        if other not in same and _same_stem(one, other)
    ]
    return len(same) + len({one for one, _ in pairs}), len(same) + len({other for _, other in pairs})


# --- reading ----------------------------------------------------------------------------------------

_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|(?<=[。！？；])|\n+")
_COMMA = re.compile(r"[,;:]\s|\s[-–—]\s|[，、；]")
_MOST_CLAUSES = 12
_ABBREVIATED = re.compile(r"(?:\b\w{1,2}|\d|\b(?:Dr|Mrs?|Ms|Prof|Sr|Sra|St|Nr|ca|approx))\.$")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_CLITIC = re.compile(r"^(?:[dlnsmtcj]|qu|dell|nell|all|sull|un)['’]|['’](?:s|ll|re|ve|d|m|t)$")
_DENSE = re.compile(r"[\u4e00-\u9fff]+|[\u30a0-\u30ff]{2,}|[\uac00-\ud7a3]+")
_PARTICLES = re.compile(
    "[的了是在我你您他她们們到把从從和也都很就]|[上下]午|午[前後]|오전|오후|이에요|예요|에요|어요|아요|해요|입니다|합니다|습니다|까지"
)
_NAME_WORD = r"[A-ZÀ-ÖØ-ÞА-ЯЁ][\w+#]*(?:[.-][A-Za-z]\w*)*"
_NAME = re.compile(rf"(?<![^\W_]){_NAME_WORD}(?:\.?\s{_NAME_WORD})*")
_POSSESSIVE = re.compile(r"['’]s\s")
_PREPOSITION = re.compile(r"(?:^|\s)(?:in|nach|bei|aus|von|zu|auf|an|Praxis|Dr\.|Frau|Herrn?)\s$")
_FORMER_REACH = 24
_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "pl", "tr", "sv")
_LEAST_STEM = 4
_STEM_SHARE = 0.6


def _sentences(text: str) -> Iterator[str]:
    begun = ""
    for part in _SENTENCE.split(text):
        begun = f"{begun} {part}" if begun else part
        if not _ABBREVIATED.search(begun[-12:]):
            yield from _told(begun)
            begun = ""
    yield from _told(begun)


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the parts between commas; a part without content words stays with the part before it."""
    places = [0, *(match.end() for match in _COMMA.finditer(sentence)), len(sentence)]
    parts = [sentence[start:end] for start, end in pairwise(places)]
    if len(parts) == 1 or len(parts) > _MOST_CLAUSES:
        yield sentence
        return
    begun = parts[0]
    for part in parts[1:]:
        if _says(begun) and _says(part):
            yield begun
            begun = part
        else:
            begun += part
    yield begun


def _says(part: str) -> bool:
    plain = _changed().taken_out(_blanked(part, [value.at for value in values_in(part)]))
    return bool(_content(_without(_relations_in(plain), plain)))


def _relations_in(text: str) -> dict[str, Forms]:
    return {name: forms for name, forms in _relations() if forms.are_in(text)}


def _without(relations: Mapping[str, Forms], text: str) -> str:
    for forms in relations.values():
        text = forms.taken_out(text)
    return text


def _told(sentence: str) -> Iterator[str]:
    if sentence.strip():
        yield sentence.strip()


def _statement(text: str, sentence: str, *, german: bool) -> Statement:
    values = values_in(text)
    bare = _blanked(text, [value.at for value in values])
    changed = _changed().are_in(sentence)
    names = list(_names(bare, german=german))
    plain = _changed().taken_out(_blanked(bare, names))
    apart, overlapping = _relations_in(plain), _relations_in(bare)  # "switched to" is a change and a relation
    plain = _without(overlapping, _changed().taken_out(_without(apart, plain)))
    former = [value for value in values if _is_former(text, value, changed=changed)]
    return Statement(
        text=text,
        values=tuple(value for value in values if value not in former),
        former=tuple(former),
        kinds=frozenset(value.kind for value in values if value not in former),
        names=frozenset(fold(text[start:end]) for start, end in names).union(
            fold(value.unit) for value in values if value.kind == "version"
        ),
        words=_content(plain),
        relations=frozenset(apart | overlapping),
        changed=changed,
        asks=sentence.rstrip().endswith(("?", "？")),
    )


def _is_former(text: str, value: Value, *, changed: bool) -> bool:
    """Tell whether the words around a value say that it held before: not 14, instead of 14, moved from 14 to 12."""
    start, end = value.at
    before, after = text[max(0, start - _FORMER_REACH) : start], text[end : end + 12]
    if _denied().are_in(before) and _former().search(before):
        return True
    return changed and bool(_from().search(before)) and bool(_to().match(after))


def _blanked(text: str, places: Sequence[tuple[int, int]]) -> str:
    for start, end in places:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _names(text: str, *, german: bool) -> Iterator[tuple[int, int]]:
    for match in _NAME.finditer(text):
        word, start = match[0], match.start()
        acronym = any(len(part) > 1 and part[1:].lower() != part[1:] for part in word.split())
        if german and not acronym and not _PREPOSITION.search(text[max(0, start - 8) : start]):
            continue
        inside = text[:start].strip(" \"'“„«*-") or _POSSESSIVE.match(text, match.end())
        if (inside or acronym) and word.lower() not in _idle():
            yield match.span()


def _content(text: str) -> frozenset[str]:
    words = (word if word.isalpha() else _CLITIC.sub("", word) for word in _WORD.findall(fold(text)))
    found = {word for word in words if word < "\u0e00" and len(word) > 1}
    return frozenset(found - _idle()).union(_dense_words(text)) if not text.isascii() else frozenset(found - _idle())


def _dense_words(text: str) -> Iterator[str]:
    """Yield pairs of characters of Chinese and Japanese words, and the start of each Korean one."""
    for run in _DENSE.findall(_PARTICLES.sub(" ", text)):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)) if run < "\uac00" or not at)


@lru_cache(maxsize=4_096)
def _by_ends(words: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Return the words by their first and last letters: words of one stem share the first, compounds the last."""
    found: dict[str, list[str]] = {}
    for word in words:
        for end in {word[:_LEAST_STEM], word[-_LEAST_STEM:]}:
            found.setdefault(end, []).append(word)
    return found


def _same_stem(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) < _LEAST_STEM or short > "\u0e00":
        return False
    if long.endswith(short):
        return True
    if len(short) == _LEAST_STEM and len(long) > 2 * _LEAST_STEM:
        return False
    needed = max(_LEAST_STEM, round(_STEM_SHARE * len(long)) if len(long) < 2 * len(short) else len(short))
    return short[:needed] == long[:needed]


# --- patterns, built once ---------------------------------------------------------------------------


@cache
def _idle() -> frozenset[str]:
    return frozenset(map(fold, function_words(_LANGUAGES))) | frozenset(map(fold, LIGHT.split()))


@cache
def _changed() -> Forms:
    return Forms(list(CHANGED.values()))


@cache
def _denied() -> Forms:
    return Forms([FORMER])


@cache
def _relations() -> list[tuple[str, Forms]]:
    return [(name, Forms([forms])) for name, forms in RELATIONS.items()]


_ARTICLES = r"(?:\s?(?:the|at|on|am|um|den|der|dem|le|la|las|il|los|de|bei))?"


@cache
def _former() -> re.Pattern[str]:
    return re.compile(rf"(?:{any_of([FORMER])}){_ARTICLES}\s*[(\"]?$", re.IGNORECASE)


@cache
def _from() -> re.Pattern[str]:
    return re.compile(rf"(?:{any_of([FROM])}){_ARTICLES}\s*$", re.IGNORECASE)


@cache
def _to() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{any_of([TO])})", re.IGNORECASE)
