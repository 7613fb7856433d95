"""Decides whether the user's words state a fact, and nothing more.

An agent that remembers a statement may add a fact: an entity, a relation and a value. A fact is shown before the
statement and ends older facts, so a false fact does harm even where the statement is in the user's own words.
Therefore every word of the user's sentence must belong to the fact. Only the words of `words/stated_facts.txt` are
free, such as articles, "I am" and "now". A negation, a contrast, an alternative, a rarity, a past tense, an instruction
around the sentence and a second clause each add another word, and the fact is dropped. Many honest facts are dropped
too; the statement is kept in any case.

The subject has to come before the value: "Anna hired Ben" does not state whom Ben hired.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import takewhile

from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.words import fold, function_words, languages_of
from mcp_memory.longterm.names import name_words
from mcp_memory.longterm.validity import without_dates
from mcp_memory.longterm.verification.comparison import dense, word_list
from mcp_memory.longterm.verification.own_words import Said, agrees

_FILE = "mcp_memory.longterm", "words/stated_facts.txt"
_pattern = partial(pattern_of, *_FILE)
_words = partial(words_of, *_FILE)

_SHORT_MESSAGE = 100  # characters; what else such a message says is probably about the sentence
_WORD = re.compile(r"[^\W_]+")
_SIGNS = re.compile(r"[\W_]+")
_OKURIGANA = re.compile(r"[\u3041-\u309f]+$")
_INFLECTED = re.compile(r"[\u3041-\u309f]?(?:[てで]?い)?(?:ます|る)")
_NOT = re.compile(r"n't\b")
_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "ru", "sv", "da", "no", "tr")
_CONTRACTED = frozenset(("m", "re", "s"))  # I'm, we're, Ben's
_SAME_VERB = 2  # letters that two forms of a verb share at least
_THIRD_PERSON = 2  # letters of its ending at most
_FIRST_PERSON = frozenset(("o", "у", "ю", "ę", "m"))
"""Endings that a verb in the present has in the first person alone: vivo, живу, piszę, mieszkam."""


def states_fact(words: Sequence[Said], *, entity: str, relation: str, value: str) -> bool:
    """Return whether a sentence of the user, or a question and its answer, states a fact and nothing more.

    A sentence of a short message has to be all of the message: "I live in Oslo" may be a text to translate.
    """
    whose = None if fold(entity) in name_words("user") else entity
    return any(_states(message, whose, relation.replace("_", " "), value) for message in words)


def _states(message: Said, entity: str | None, relation: str, value: str) -> bool:
    text = message.message if 0 < len(message.message) <= _SHORT_MESSAGE else message.text
    if message.before:
        text = message.before
        if not agrees(message.text):
            is_open = not _words("asking").isdisjoint(_tokens(text))
            text = f"{text} {message.text}"
            if not is_open or _split(message.text, value) is None:
                return False
    if dense(text) == 2:
        return _states_densely(text, entity, relation, value)
    return _Reader.of(text, is_answer=bool(message.before)).states(entity, relation, value)


def _tokens(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _split(text: str, part: str) -> tuple[str, str] | None:
    """Return the text before and after the words of a part; None if the text does not contain them."""
    words = _tokens(part)
    matches = list(_WORD.finditer(text))
    for first in range(len(matches) - len(words) + 1 if words else 0):
        if all(fold(match[0]) == fold(word) for match, word in zip(matches[first:], words, strict=False)):
            return text[: matches[first].start()], text[matches[first + len(words) - 1].end() :]
    return None


@cache
def _free_words(kind: str, languages: tuple[str, ...]) -> frozenset[str]:
    """Return the words of a block, without function words of other languages: "son" is a verb in Spanish alone."""
    if not languages:
        return _words(kind)
    return _words(kind) - (function_words(_LANGUAGES) - function_words(languages))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads a text with spaces between words, to decide whether it states a fact.

    If `is_answer`, the text is a question to the user, followed by their answer.
    """

    text: str
    languages: tuple[str, ...]
    is_answer: bool

    @classmethod
    def of(cls, text: str, *, is_answer: bool) -> _Reader:
        lower = _pattern("polite").sub(" ", _NOT.sub(" not", text.lower().replace("’", "'")))
        named = _pattern("calls").sub(" called ", _pattern("calls_user").sub(" i called ", lower))
        return cls(named, languages_of(_tokens(lower)), is_answer)

    def states(self, entity: str | None, relation: str, value: str) -> bool:
        """Return whether every word of the text belongs to a fact or is free. `entity` is None for the user."""
        around = _split(self.text, value)
        if around is None or _tokens(around[1])[:1] == ["s"]:  # "I am Ben's boss"
            return False
        before, after = (_tokens(without_dates(part)) for part in around)
        if entity is not None:
            named = _split(" ".join(before), entity)
            if named is None or not self._only_introduces(_tokens(named[0])):
                return False
            before = _tokens(named[1])
        left, ending = self._without_relation([*before, *after], relation, is_user=entity is None)
        if left is None or not self._free(relation, is_user=entity is None).issuperset(left):
            return False
        return entity is not None or ending in _FIRST_PERSON or self._is_of_the_user(before)

    def _words(self, *kinds: str) -> frozenset[str]:
        return frozenset[str]().union(*(_free_words(kind, self.languages) for kind in kinds))

    def _only_introduces(self, words: Sequence[str]) -> bool:
        """Return whether words only introduce an entity: "my sister", before "Ines"."""
        rest = [word for word in words if word not in self._words("free")]
        return not rest or (len(rest) == 2 and rest[0] in self._words("possessive"))

    def _is_of_the_user(self, before: Sequence[str]) -> bool:
        """Return whether the subject of the words before a value is the user: "I", or "my" and a form of "be"."""
        subject = self._words("subject", "addressed") if self.is_answer else self._words("subject")
        if not subject.isdisjoint(before):
            return True
        return not (self._words("possessive").isdisjoint(before) or self._words("be", "called").isdisjoint(before))

    def _free(self, relation: str, *, is_user: bool) -> frozenset[str]:
        free = self._words("free", "be", "called") | word_list("calendar") | _CONTRACTED
        if is_user:
            free |= self._words("subject") - self._words("have") | self._words("possessive")
        if self.is_answer:
            free |= self._words("addressed", "asking")
        return free | self._words("place") if set(_tokens(relation)) - free else free

    def _without_relation(self, words: Sequence[str], relation: str, *, is_user: bool) -> tuple[list[str] | None, str]:
        """Return the words that remain without those of a relation, and the ending of an inflected verb.

        The ending is "" if each word has the same form as in the relation. Instead of the words, None is returned if
        the relation has a word that is neither among them nor free.
        """
        left, ending = list(words), ""
        for part in _tokens(_NOT.sub(" not", relation.lower().replace("’", "'"))):
            same = next((word for word in left if _is_same(word, part, is_user=is_user)), None)
            if same is not None:
                left.remove(same)
                ending = ending if same == part else _tails(same, part)[0]
            elif part not in _words("free") | _words("be") | _words("place"):
                return None, ""
        return left, ending


def _is_same(word: str, other: str, *, is_user: bool) -> bool:
    """Return whether two words are equal, or forms of "have" or of "called".

    If the fact is about the user, they may also be the first and the third person of a verb in the present tense.
    """
    if word == other or any({word, other} <= _words(kind) for kind in ("have", "called")):
        return True
    mine, theirs = _tails(word, other)
    if not is_user or len(word) - len(mine) < _SAME_VERB or len(theirs) > _THIRD_PERSON:
        return False
    return mine == "m" or bool(theirs and (mine in _FIRST_PERSON or mine in ("", "e")))


def _tails(word: str, other: str) -> tuple[str, str]:
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    return word[shared:], other[shared:]


def _states_densely(text: str, entity: str | None, relation: str, value: str) -> bool:
    """Return the same as `_Reader.states` for a script without spaces."""
    text, value, relation = (_SIGNS.sub("", part) for part in (text, value, relation))
    before, separator, after = text.partition(value)
    if not value or not separator:
        return False
    subject = re.escape(_SIGNS.sub("", entity)) if entity else _pattern("dense_subject").pattern
    if re.search(subject, after) or (entity and not re.match(subject, before)):
        return False
    rest = before.removeprefix(_SIGNS.sub("", entity)) if entity else before
    if entity and _pattern("dense_subject").search(rest):
        return False
    stem = _OKURIGANA.sub("", relation)
    left = f"{rest}\n{after}"
    if relation in left:
        left = left.replace(relation, "\n", 1)
    elif stem and stem != relation:
        left = re.sub(f"{re.escape(stem)}{_INFLECTED.pattern}", "\n", left, count=1)
    else:
        return False
    return stem not in left and all(map(_pattern("dense_free").fullmatch, left.split("\n")))
