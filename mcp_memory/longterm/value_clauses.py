"""Reads a text as clauses with values: the values that each clause states, and the words that they belong to.

A *value* (`change_values`) is a date, weekday, time, amount, version or name. It belongs to the other words of its
clause ("rent", "deadline of the draft"). All functions are pure. Word lists are in `words/changes.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise

from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.sentences import is_person
from mcp_memory.language.words import fold, function_words, languages_of
from mcp_memory.longterm.change_values import (
    DENSE_FROM,
    Phrases,
    StatedValue,
    ValueKind,
    any_of,
    may_have_values,
    phrases_by_name,
    values_in,
)

READ = 1_500
"""Characters of a text that are compared, from its start."""
_FIRST = 24  # clauses that are compared
_OF_CHANGE = "changed", "new"


@dataclass(eq=False)
class ValueClause:
    """A clause of a sentence, with its values. What it says besides them is found when it is first asked for.

    `languages` are those of the whole text (`languages_of`). Most sentences have no values, words of change
    or relations; this is checked once for all clauses of a sentence.
    """

    text: str
    sentence: str
    languages: tuple[str, ...]

    @cached_property
    def _all_values(self) -> list[StatedValue]:
        return values_in(self.text) if may_have_values(self.sentence) else []

    @cached_property
    def _until_here(self) -> str:
        """The sentence up to the end of the clause."""
        return self.sentence[: self.sentence.find(self.text) + len(self.text)]

    @cached_property
    def changed(self) -> bool:
        """Whether it or a clause before it in the sentence has a word of change.

        So it is in "Fiona has swapped a shift, so they come on Sunday", but not in "I slept for eight hours, no longer
        tired".
        """
        return _phrases(*_OF_CHANGE).may_be_in(self.sentence) and _has_change(self._until_here)

    @cached_property
    def former(self) -> tuple[StatedValue, ...]:
        """Values that it calls outdated ("not 14", "instead of Tuesday")."""
        return tuple(value for value in self._all_values if _is_former(self.text, value, changed=self.changed))

    @cached_property
    def values(self) -> tuple[StatedValue, ...]:
        return tuple(value for value in self._all_values if value not in self.former)

    @cached_property
    def kinds(self) -> frozenset[ValueKind]:
        """The kinds of `values`."""
        return frozenset(value.kind for value in self.values)

    @cached_property
    def _without_values(self) -> str:
        return _blanked(self.text, [value.at for value in self._all_values])

    @cached_property
    def _spans_of_names(self) -> list[tuple[int, int]]:
        return list(_names(self._without_values, self.languages))

    @cached_property
    def names(self) -> frozenset[str]:
        """Capitalised words, folded. In languages that capitalise every noun, only those after a preposition."""
        return frozenset(fold(self.text[start:end]) for start, end in self._spans_of_names).union(
            fold(value.unit) for value in self._all_values if value.kind == "version"
        )

    @cached_property
    def _without_names(self) -> str:
        """The text without values, names and words of change."""
        return _phrases("changed").removed_from(_blanked(self._without_values, self._spans_of_names))

    @cached_property
    def _may_have_relations(self) -> bool:
        return _phrases("relation").may_be_in(self.sentence)

    @cached_property
    def _plain_relations(self) -> dict[str, Phrases]:
        return _relations_in(self._without_names) if self._may_have_relations else {}

    @cached_property
    def _overlapping_relations(self) -> dict[str, Phrases]:
        """Relations that may be words of change too, such as "switched to"."""
        return _relations_in(self._without_values) if self._may_have_relations else {}

    @cached_property
    def relations(self) -> frozenset[str]:
        return frozenset(self._plain_relations | self._overlapping_relations)

    @cached_property
    def plain_relations(self) -> frozenset[str]:
        """Relations without those that only a word of change names, such as "moved to"."""
        return frozenset(self._plain_relations)

    @cached_property
    def words(self) -> frozenset[str]:
        """Content words, without numbers, names, words of change and words of a relation."""
        bare = _phrases("changed").removed_from(_without(self._plain_relations, self._without_names))
        bare = _phrases("month").removed_from(_without(self._overlapping_relations, bare))  # "from June" is when
        return _content(bare)

    @cached_property
    def parts(self) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
        """The words of a part and of its whole: "car park of the pool", "the pool's car park"."""
        return tuple(_parts(self._without_values))

    @cached_property
    def people(self) -> frozenset[str]:
        """Words such as "sister", folded."""
        words = (*_WORD.findall(self.text), *_dense_words(self.text))
        return frozenset(fold(word) for word in words if is_person(word))

    @cached_property
    def is_further(self) -> bool:
        """Whether its sentence introduces another thing ("another shelf") or one of several ("the last bus")."""
        return _phrases("further").are_in(_TOPIC_END.split(self._until_here)[-1])

    @cached_property
    def is_of_user(self) -> bool:
        """Whether it is in the first person."""
        return bool(_first_person().search(self.text.lower()))

    @cached_property
    def is_stated(self) -> bool:
        """Whether its sentence states a fact, rather than asking, supposing or wishing."""
        return not _supposes(self.sentence) and not _quotes_values(self.sentence, self.text, self._all_values)

    def answering(self, question: ValueClause) -> ValueClause:
        """Return this clause, a bare value, with the words of the question that it answers."""
        answer = copy(self)
        answer.words, answer.relations = question.words, question.relations
        answer.names = self.names | question.names
        return answer


@lru_cache(maxsize=4_096)
def value_clauses(text: str) -> tuple[ValueClause, ...]:
    """Return the clauses of a text, in order."""
    languages = languages_of(_WORD.findall(text)[:60])
    return tuple(
        ValueClause(clause, sentence, languages)
        for sentence in map(str.strip, _sentences(text))
        if sentence
        for clause in _clauses(sentence)
    )


def first_clauses(text: str) -> tuple[ValueClause, ...]:
    """Return the clauses at the start of a text; only these are compared."""
    return value_clauses(text[:READ])[:_FIRST]


@lru_cache(maxsize=4_096)
def announces_change(text: str) -> bool:
    """Return whether a text has words of change, or words that call a value outdated; a fast check."""
    return _has_change(text[:READ]) or _phrases("former").are_in(text[:READ])


def calls_former(text: str, words: str) -> bool:
    """Return whether a text mentions `words` only as outdated: "Physio" in "Praxis Wallmann instead of Physio"."""
    lower, sought = text.lower(), words.lower()
    places = [match.start() for match in re.finditer(re.escape(sought), lower)] if sought else []
    return bool(places) and all(_follows_former(text, start) for start in places)


def words_alike(words: frozenset[str], others: frozenset[str]) -> tuple[int, int]:
    """Return how many words of each set match a word of the other set: an equal word, stem or compound."""
    same = words & others
    left, right = _by_ends(words), _by_ends(others)
    pairs = [  # few words begin or end alike: only these are compared
        (word, other)
        for end in left.keys() & right.keys()
        for word in left[end]
        if word not in same
        for other in right[end]
        if other not in same and have_one_stem(word, other)
    ]
    return len(same) + len({word for word, _ in pairs}), len(same) + len({other for _, other in pairs})


def have_one_stem(word: str, other: str) -> bool:
    """Return whether two words have the same stem, or the longer is a compound that ends with the shorter."""
    short, long = sorted((word, other), key=len)
    if len(short) < LEAST_STEM or short > DENSE_FROM:
        return False
    if long.endswith(short):
        return True
    if len(short) == LEAST_STEM and len(long) > 2 * LEAST_STEM:
        return False
    needed = max(LEAST_STEM, round(_STEM_SHARE * len(long)) if len(long) < 2 * len(short) else len(short))
    return short[:needed] == long[:needed]


LEAST_STEM = 4  # letters
_STEM_SHARE = 0.6


@lru_cache(maxsize=4_096)
def _by_ends(words: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Return the words by their first and last letters: words of the same stem share the first, compounds the last."""
    by_end: dict[str, list[str]] = {}
    for word in words:
        for end in {word[:LEAST_STEM], word[-LEAST_STEM:]}:
            by_end.setdefault(end, []).append(word)
    return by_end


# --- sentences and clauses --------------------------------------------------------------------------

_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|(?<=[。！？；])|\n+")
_TOPIC_END = re.compile(r"[:：]\s")  # "another thing: dinner is at 8 now"
_COMMA = re.compile(r"[,;:]\s|\s[-–—]\s|[，、；]")
_MAX_CLAUSES = 12
_QUOTATION = re.compile(r"«[^»]*»|“[^”]*”|„[^“”]*[“”]|\"[^\"]*\"|「[^」]*」|『[^』]*』")
_QUOTED_SENTENCE = 14  # characters with the quotation marks; shorter quotations are mostly names
_ABBREVIATED = re.compile(r"(?:\b\w{1,2}|\d|\b(?:Dr|Mrs?|Ms|Prof|Sr|Sra|St|Nr|ca|approx))\.$")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_CLITIC = re.compile(r"^(?:[dlnsmtcj]|qu|dell|nell|all|sull|un)['’]|['’](?:s|ll|re|ve|d|m|t)$")
_DENSE = re.compile(r"[\u4e00-\u9fff]+|[\u30a0-\u30ff]{2,}|[\uac00-\ud7a3]+")
_PARTICLES = re.compile(
    "[的了是在我你您他她们們到把从從和也都很就]|[上下]午|午[前後]|오전|오후|이에요|예요|에요|어요|아요|해요|입니다|합니다|습니다|까지"
)
_A_WORD = r"[^\W\d_\u0e00-\uffff]+"
_PART_OF = re.compile(
    rf"\b(?P<part>{_A_WORD})\s(?:(?:of|for|at|de|du|des|del|della|do|da|von|vom|van|zum|zur|für|beim|pour|para|per|voor)\s|d['’]|dell['’])"
    rf"(?:(?:the|my|our|la|le|les|el|los|las|dem|den|der|het|een)\s|l['’])?(?P<whole>{_A_WORD})"
    rf"|\b(?P<owner>{_A_WORD})['’]s\s(?P<owned>{_A_WORD})"
    r"|(?P<dense_whole>[\u30a0-\u30ff\u4e00-\u9fff]{2,})[的の](?P<dense>[\u30a0-\u30ff\u4e00-\u9fff]{2,})"
)
_NAME_WORD = r"[A-ZÀ-ÖØ-ÞА-ЯЁ][\w+#]*(?:[.-][A-Za-z]\w*)*"
_NAME = re.compile(rf"(?<![^\W_]){_NAME_WORD}(?:\.?\s{_NAME_WORD})*")
_POSSESSIVE = re.compile(r"['’]s\s")
_PREPOSITION = re.compile(r"(?:^|\s)(?:in|nach|bei|aus|von|zu|auf|an|Praxis|Dr\.|Frau|Herrn?)\s$")
_FORMER_REACH = 24  # characters
_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "pl", "tr", "sv")


def _sentences(text: str) -> Iterator[str]:
    begun = ""
    for part in _SENTENCE.split(text):
        begun = f"{begun} {part}" if begun else part
        if not _ABBREVIATED.search(begun[-12:]):
            yield begun
            begun = ""
    yield begun


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the parts between commas; a part without content words stays with the part before it."""
    places = [0, *(match.end() for match in _COMMA.finditer(sentence)), len(sentence)]
    parts = [sentence[start:end] for start, end in pairwise(places)]
    if len(parts) == 1 or len(parts) > _MAX_CLAUSES:
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
    """Return whether a part has content words."""
    plain = _phrases("changed").removed_from(_blanked(part, [value.at for value in values_in(part)]))
    return bool(_content(_without(_relations_in(plain), plain)))


def _relations_in(text: str) -> dict[str, Phrases]:
    return {name: phrases for name, phrases in _relations() if phrases.are_in(text)}


def _without(relations: Mapping[str, Phrases], text: str) -> str:
    for phrases in relations.values():
        text = phrases.removed_from(text)
    return text


def _has_change(text: str) -> bool:
    return _phrases(*_OF_CHANGE).are_in(text)


def _supposes(sentence: str) -> bool:
    """Return whether a sentence asks, is a condition, or states a possibility."""
    if sentence.rstrip().endswith(("?", "？")) or _phrases("condition").are_in(sentence):
        return True
    return bool(pattern_of("mcp_memory.longterm", "words/frames.txt", "UNSURE").search(sentence.lower()))


def _quotes_values(sentence: str, clause: str, values: Sequence[StatedValue]) -> bool:
    """Return whether a value of the clause is in a quotation, which may be another person's statement."""
    start = sentence.find(clause)
    spans = [match.span() for match in _QUOTATION.finditer(sentence) if len(match[0]) >= _QUOTED_SENTENCE]
    return any(first <= start + value.at[0] < last for first, last in spans for value in values)


def _is_former(text: str, value: StatedValue, *, changed: bool) -> bool:
    """Return whether the words around a value call it outdated: not 14, instead of 14, moved from 14 to 12."""
    start, end = value.at
    if _follows_former(text, start):
        return True
    before, after = text[max(0, start - _FORMER_REACH) : start], text[end : end + 12]
    return changed and bool(_from().search(before)) and bool(_to().match(after))


def _follows_former(text: str, start: int) -> bool:
    """Return whether words such as "instead of" come before a place."""
    before = text[max(0, start - _FORMER_REACH) : start]
    return _phrases("former").are_in(before) and _former().search(before) is not None


def _blanked(text: str, places: Sequence[tuple[int, int]]) -> str:
    for start, end in places:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _names(text: str, languages: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    idle = _function_words(languages) if languages else _idle()
    for match in _NAME.finditer(text):
        word, start = match[0], match.start()
        acronym = any(len(part) > 1 and part[1:].lower() != part[1:] for part in word.split())
        if "de" in languages and not acronym and not _PREPOSITION.search(text[max(0, start - 8) : start]):
            continue
        inside = text[:start].strip(" \"'“„«*-") or _POSSESSIVE.match(text, match.end())
        if (inside or acronym) and fold(word) not in idle:
            yield match.span()


def _parts(text: str) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for match in _PART_OF.finditer(text):
        part = match["part"] or match["owned"] or match["dense"]
        whole = match["whole"] or match["owner"] or match["dense_whole"]
        if (words := _content(part)) and (of := _content(whole)):
            yield words, of


def _content(text: str) -> frozenset[str]:
    words = (word if word.isalpha() else _CLITIC.sub("", word) for word in _WORD.findall(fold(text)))
    words_of_text = frozenset(word for word in words if word < DENSE_FROM and len(word) > 1) - _idle()
    return words_of_text if text.isascii() else words_of_text.union(_dense_words(text))


def _dense_words(text: str) -> Iterator[str]:
    """Yield pairs of characters of Chinese and Japanese words, and the first two characters of Korean words."""
    for run in _DENSE.findall(_PARTICLES.sub(" ", text)):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)) if run < "\uac00" or not at)


# --- patterns, built once ---------------------------------------------------------------------------


@cache
def _function_words(languages: tuple[str, ...]) -> frozenset[str]:
    return frozenset(map(fold, function_words(languages)))


@cache
def _idle() -> frozenset[str]:
    light = words_of("mcp_memory.longterm", "words/changes.txt", "light")
    return frozenset(map(fold, function_words(_LANGUAGES) | light))


@cache
def _phrases(*kinds: str) -> Phrases:
    return Phrases(table for kind in kinds for table in phrases_by_name(kind).values())


@cache
def _relations() -> list[tuple[str, Phrases]]:
    return [(name, Phrases([phrases])) for name, phrases in phrases_by_name("relation").items()]


@cache
def _first_person() -> re.Pattern[str]:
    spaced = pattern_of("mcp_memory.longterm", "words/verification.txt", "FIRST_PERSON").pattern
    return re.compile(rf"{spaced}|[我咱私僕俺저]|우리|나는|내 ")


_ARTICLES = r"(?:\s?(?:the|at|on|am|um|den|der|dem|le|la|las|il|los|de|bei))?"


@cache
def _former() -> re.Pattern[str]:
    return re.compile(rf"(?:{any_of(phrases_by_name('former').values())}){_ARTICLES}\s*[(\"]?$", re.IGNORECASE)


@cache
def _from() -> re.Pattern[str]:
    return re.compile(rf"(?:{any_of(phrases_by_name('from').values())}){_ARTICLES}\s*$", re.IGNORECASE)


@cache
def _to() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{any_of(phrases_by_name('to').values())})", re.IGNORECASE)
