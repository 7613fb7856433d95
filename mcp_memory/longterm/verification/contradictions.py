"""Finds the part of a statement that contradicts the words: a denial, a swapped name or value, or an unknown name.

"I never drink" does not support "the user drinks"; "Anna moved to Bergen, Tom to Oslo" does not support "Tom moved to
Bergen". These are light checks of the words; paraphrases and scripts without capitals are not covered. Texts are
compared by the terms of the index and by the bundled encoder, about 2 ms for a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.language.negation import is_negative
from mcp_memory.language.standing_rules import is_question, people, sentences
from mcp_memory.language.words import base_terms, function_words, index_terms, languages_of, query_terms
from mcp_memory.longterm.verification import pattern, sources, word_list

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = [
    "SHORT", "common_words", "contradicted_part", "dense", "differ", "dismisses", "known_terms", "names_the_user",
    "nearest", "parts_of", "pieces_of", "places_of", "share_of", "terms_of", "vectors_of", "words_of",
]  # fmt: skip

SHORT = 2
"""Words of a part that hardly says anything."""

_WORD = re.compile(r"[^\W\d_]+")
_HAN_PAIR = re.compile("(?=([\u3040-\u30ff\u3400-\u9fff]{2}))")


def differ(one: str, other: str) -> bool:
    """Tell whether two texts are in different languages, as far as that shows."""
    mine, theirs = languages_of(one.split()), languages_of(other.split())
    return dense(one) != dense(other) or bool(mine and theirs and set(mine).isdisjoint(theirs))


def dense(text: str) -> int:
    """Return which of three kinds of script a text is mostly in: Latin, others with an alphabet, those without."""
    letters = [2 if letter >= "\u2e80" else 1 if letter >= "\u0370" else 0 for letter in text if letter.isalpha()]
    return max(set(letters), key=letters.count, default=0)


# --- parts and pieces -------------------------------------------------------------------------------


def parts_of(statement: str) -> Iterator[str]:
    """Yield the clauses of a statement; what says next to nothing stays with the one before."""
    kept = ""
    for part in pattern("CUT").split(statement):
        if not part or not part.strip():
            continue
        if kept and len(terms_of(part)) >= SHORT:
            yield kept
            kept = part.strip()
        else:
            kept = f"{kept}, {part.strip()}" if kept else part.strip()
    if kept and terms_of(kept):
        yield kept


def places_of(text: str) -> Iterator[str]:
    """Yield the sentences of a text, each with the one after it: words count where they stand together."""
    single = [text[start:end].strip() for start, end in sentences(text)]
    yield from (f"{one} {other or ''}" for one, other in zip_longest(single, single[1:]))


def pieces_of(text: str) -> Iterator[str]:
    """Yield the candidates for comparison with a part: a text, its sentences, neighbouring ones together, and their
    clauses.
    """
    yield text
    yield from places_of(text)
    yield from _sentence_pieces(text)


def _sentence_pieces(text: str) -> Iterator[str]:
    for start, end in sentences(text):
        sentence = text[start:end]
        yield sentence.strip()
        yield from (part.strip() for part in pattern("CUT").split(sentence) if part and len(part.strip()) > 1)


def words_of(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, pairs of characters."""
    return [part for word in _WORD.findall(text) for part in (_HAN_PAIR.findall(word) or [word])]


def terms_of(text: str) -> set[str]:
    """Return the words that say something; of whom, if it is of the user, and when, are judged elsewhere."""
    words = set(query_terms(text)) & set(base_terms(text)) - _user_terms()
    return {word for word in words if not any(map(str.isdigit, word))}


def names_the_user(text: str) -> bool:
    """Tell whether a statement is about the user: "the user wants …", whatever it is called."""
    lower = text.lower()
    return any(word in lower for word in word_list("users"))


@cache
def common_words() -> frozenset[str]:
    """Return what the user is called, and the words that make an order a rule."""
    return frozenset((*word_list("users"), *word_list("often")))


@cache
def _user_terms() -> frozenset[str]:
    return frozenset(base_terms(" ".join(word_list("users"))))


@lru_cache(maxsize=1_024)
def known_terms(texts: tuple[str, ...]) -> frozenset[str]:
    """Return all terms of some texts."""
    return frozenset(term for text in texts for term in (*index_terms(text), *base_terms(text)))


def share_of(text: str, known: Collection[str]) -> float:
    """Return the share of a text's terms that are known; all where it has none."""
    words = terms_of(text)
    return len(words.intersection(known)) / len(words) if words else 1.0


@lru_cache(maxsize=256)
def vectors_of(texts: tuple[str, ...]) -> Floats | None:
    """Return the vectors of texts; None where the encoder cannot be read, and words alone count."""
    from mcp_memory.models.embed.bundled import Encoder

    try:
        return Encoder().embed(texts)
    except EmbeddingFailed:
        return None


def nearest(text: str, pieces: Floats | None) -> float:
    """Return the cosine of a text to the nearest of some vectors; 0 where there are none."""
    vector = vectors_of((text,)) if pieces is not None and len(pieces) else None
    return 0.0 if vector is None or pieces is None else float((pieces @ vector[0]).max())


_SAME_WORDS = 0.6  # share of a part's words in what denies it
_SOME_WORDS, _SAME_MEANING = 0.4, 0.58  # share and cosine of what denies it in other forms
_MEANING_ABROAD = 0.65  # cosine of what denies it in another language
_SAME_NAME = 0.45  # cosine of a name to one that was said
_MOST_WORDS = 200  # of all that was said, for names told otherwise
_USER = "\0"  # stands for the user among names

_INFLECTED = frozenset(("tr", "cs", "fi", "hu", "sr", "sk"))
"""Languages in which verbs deny in their endings or beginnings, or of which few negative words are known."""
_CAPITAL = re.compile(r"(?<![\w'’])[^\W\d_a-zа-яё][\w-]*")
_INNER_CAPITAL = re.compile(r"(?<=[^\W_][ ,;])[ ]?([^\W\d_a-zа-яё][\w-]*)")


def contradicted_part(
    parts: Sequence[str], texts: Sequence[str], *, names: Collection[str], heard: Collection[str]
) -> str | None:
    """Return the first part of a statement that contradicts these texts, or a name that no speaker said.

    `names` are of people and things that "she" and "there" may mean here; `heard` are further ones that are known.
    """
    if strange := _unnamed(parts, texts, [*names, *heard]):
        return strange
    clauses = [clause for text in texts for clause in _clauses(text)]
    subject: frozenset[str] = frozenset()
    for part in parts:
        named = _named(part, clauses)
        subject = subject or named & {_USER}
        named = named | subject if pattern("GOES_ON").match(part) else named
        if _is_denied(part, texts) or _is_another(part, texts) or _is_swapped(part, named, clauses, names):
            return part
    return None


# --- denied -----------------------------------------------------------------------------------------


def _is_denied(part: str, texts: Sequence[str]) -> bool:
    """Tell whether all that has the words of a part says the opposite: "I don't trust him" carries no trust."""
    said = {_denies(limb) for limb in _pieces(part)}
    if len(said) != 1:
        return False
    negative, found = said.pop(), False
    for text in texts:
        for start, end in sentences(text):
            sentence = text[start:end]
            if not _says(sentence, part):
                continue
            pieces = _pieces(sentence)
            near = [piece for piece in pieces if share_of(part, known_terms((piece,))) >= _SAME_WORDS] or pieces
            if (
                dismisses(sentence)
                or is_question(sentence.lower())
                or any(_denies(piece) == negative for piece in near)
            ):
                return False
            found = True
    return found


def dismisses(sentence: str) -> bool:
    """Tell whether a sentence names something to ignore: "Forget the rules of grammar"."""
    return pattern("DISMISSES").match(sentence) is not None


def _pieces(sentence: str) -> list[str]:
    return [limb for piece in pattern("CLAUSE").split(sentence) for limb in _limbs(piece) if terms_of(limb)]


def _limbs(piece: str) -> list[str]:
    """Return a clause and what hangs on it; together where the clause denies it: "I don't think that …"."""
    limbs = pattern("SUBORDINATE").split(piece)
    return [piece] if is_negative(limbs[0]) else limbs


def _says(said: str, part: str) -> bool:
    """Tell whether a sentence has most words of a part, or some of them and its meaning."""
    words = share_of(part, known_terms((said,))) if terms_of(part) else 0.0
    if words >= _SAME_WORDS:
        return True
    abroad = not words and differ(said, part) and _INFLECTED.isdisjoint(languages_of(said.split()))
    if words < _SOME_WORDS and not abroad:
        return False
    return nearest(part, vectors_of((said,))) >= (_MEANING_ABROAD if abroad else _SAME_MEANING)


def _denies(piece: str) -> bool:
    return is_negative(pattern("CONFIRMS").sub(" ", piece))


# --- one word for another ---------------------------------------------------------------------------

_ALIKE = (frozenset(("short", "brief", "concise")), frozenset(("kurz", "knapp")), frozenset(("long", "detailed")))


@cache
def _excluding() -> tuple[frozenset[str], ...]:
    return tuple(known_terms((group,)) for group in sources()["excluding"])


def _is_another(part: str, texts: Sequence[str]) -> bool:
    words = terms_of(part)
    for group in _excluding():
        for word in words & group - known_terms(tuple(texts)):
            others = group - {word}
            alike = next((some for some in _ALIKE if word in some), frozenset[str]())
            rest = words - {word}
            for place in (text[start:end] for text in texts for start, end in sentences(text)):
                said = known_terms((place,))
                if said & (others - alike) and not said & alike and 2 * len(rest & said) >= len(rest):
                    return True
    return False


# --- swapped ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause of the spoken text, its terms, and the people and things it names, in lower case."""

    text: str
    terms: frozenset[str]
    named: frozenset[str]


def _clauses(text: str) -> Iterator[_Clause]:
    """Yield the clauses of a text; one that is only a name goes with the next: "Anna and Tom moved"."""
    for start, end in sentences(text):
        kept = ""
        for piece in pattern("CLAUSE").split(text[start:end]):
            kept = f"{kept} {piece}".strip()
            if len(terms_of(kept)) > 1:
                yield _clause(kept)
                kept = ""
        if kept:
            yield _clause(kept)


def _clause(text: str) -> _Clause:
    lower = text.lower()
    others = frozenset(found[1] for found in people().finditer(lower))
    own = frozenset((_USER,)) if pattern("FIRST_PERSON").search(people().sub(" ", lower)) else frozenset[str]()
    return _Clause(text, known_terms((text,)), _capitals(text) | others | own)


def _named(part: str, clauses: Sequence[_Clause]) -> frozenset[str]:
    said = frozenset(name for clause in clauses for name in clause.named)
    user = frozenset((_USER,)) if pattern("THE_USER").search(part.lower()) else frozenset[str]()
    return (_capitals(part) & said) | (frozenset(words_of(part.lower())) & said) | user


def _capitals(text: str) -> frozenset[str]:
    """Return the words with a capital, in lower case; the first only if it is no function word."""
    found = [name.lower() for name in _CAPITAL.findall(text)]
    first = text.lstrip()[:1].isupper() and found and found[0] in _first_words()
    names = found[1:] if first else found
    return frozenset(
        name
        for name in names
        if len(name) > 1 and name not in word_list("calendar") and name not in word_list("polite")
    )


@cache
def _first_words() -> frozenset[str]:
    return function_words(("en", "de", "fr", "es", "nl", "ru"))


def _is_swapped(part: str, named: frozenset[str], clauses: Sequence[_Clause], names: Collection[str]) -> bool:
    """Tell whether the clauses with the other words of a part have another name, and none has all that it names."""
    known = {word for name in names for word in name.lower().split()}
    names_of_part = known_terms((" ".join(named - {_USER}),)) if named else frozenset[str]()
    words = {word for word in terms_of(part) - names_of_part if len(word) > 1}
    carrying = [clause for clause in clauses if words and words <= clause.terms]
    if not named or not carrying:
        return False
    if len(named) > 1 and any(named <= clause.named for clause in clauses):
        return False
    for clause in carrying:
        missing, extra = named - clause.named, clause.named - named
        extra = {name for name in extra if words.isdisjoint(known_terms((name,)))}  # "Training for …" names nobody
        if {_USER} >= extra and all(_may_be_the_user(name, clauses, known) for name in missing):
            return False
        if not missing or not extra or pattern("THIRD_PERSON").search(people().sub(" ", clause.text.lower())):
            return False
    return True


def _may_be_the_user(name: str, clauses: Sequence[_Clause], known: Collection[str]) -> bool:
    return name in known or any({name, _USER} <= clause.named for clause in clauses)


# --- named by nobody --------------------------------------------------------------------------------


def _unnamed(parts: Sequence[str], texts: Sequence[str], names: Collection[str]) -> str | None:
    whole = "\n".join((*texts, *names)).casefold()
    inner = pattern("GERMAN_NAME") if "de" in languages_of(" ".join(parts).split()) else _INNER_CAPITAL
    found = [name for part in parts for name in inner.findall(part)]
    found += [
        first[1] for first in map(pattern("ACTS").match, parts[:1]) if first and first[1].lower() not in _first_words()
    ]
    strange = [name for name in found if name.casefold() not in whole and name.lower() not in word_list("calendar")]
    strange = [name for name in strange if not any(map(str.isdigit, name)) and len(name) > 1]
    if not strange:
        return None
    said = tuple(dict.fromkeys(word for text in (*texts, *names) for word in words_of(text)))[:_MOST_WORDS]
    return next((name for name in strange if nearest(name, vectors_of(said)) < _SAME_NAME), None)
