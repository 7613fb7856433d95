"""Compares texts by the terms of the index and by meaning (bundled encoder).

A text is compared by its pieces: the whole, its sentences, pairs of neighbouring sentences, and clauses. A sentence
takes about 2 ms. Without the encoder's files only terms count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cache, lru_cache, partial
from itertools import zip_longest
from typing import TYPE_CHECKING

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.sentences import sentences
from mcp_memory.language.words import base_terms, function_words, index_terms, languages_of, query_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHORT = 2
"""The fewest terms of a part that can be compared; a shorter part says hardly anything."""
_PIECES = 200  # pieces of a text that are embedded
_WORD = re.compile(r"[^\W\d_]+")
_HAN = "\u2e80"  # from here on a single character is a word; below, "s" is what "Ann's" leaves
_HAN_PAIR = re.compile("(?=([\u3040-\u30ff\u3400-\u9fff]{2}))")

pattern = partial(pattern_of, "mcp_memory.longterm", "words/verification.txt")
word_list = partial(words_of, "mcp_memory.longterm", "words/verification.txt")


def differ(text: str, other: str) -> bool:
    """Return whether two texts differ in their kind of script or, as far as recognised, in their language."""
    mine, theirs = languages_of(text.split()), languages_of(other.split())
    return dense(text) != dense(other) or bool(mine and theirs and set(mine).isdisjoint(theirs))


def dense(text: str) -> int:
    """Return the script of most letters of a text: 0 for Latin, 1 for other alphabets, 2 for East Asian scripts."""
    letters = [2 if letter >= "\u2e80" else 1 if letter >= "\u0370" else 0 for letter in text if letter.isalpha()]
    return max(set(letters), key=letters.count, default=0)


# --- parts and pieces -------------------------------------------------------------------------------


def sentences_of(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def places_of(text: str) -> list[str]:
    """Return the sentences of a text, each with the next sentence, so that words close together are compared."""
    single = [sentence.strip() for sentence in sentences_of(text)]
    return [f"{sentence} {following or ''}" for sentence, following in zip_longest(single, single[1:])]


@lru_cache(maxsize=64)
def pieces_of(text: str) -> tuple[str, ...]:
    """Return a text, its sentences alone and with the next sentence, and their clauses, each once; at most 200."""
    pieces = [text, *places_of(text)]
    for sentence in sentences_of(text):
        pieces.append(sentence.strip())
        pieces += [part.strip() for part in pattern("CUT").split(sentence) if part and len(part.strip()) > 1]
    return tuple(dict.fromkeys(pieces))[:_PIECES]


# --- words ------------------------------------------------------------------------------------------


def words_in(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, pairs of characters."""
    return [part for word in _WORD.findall(text) for part in (_HAN_PAIR.findall(word) or [word])]


def terms_of(text: str) -> set[str]:
    """Return the informative terms of a text, without numbers and words for the user, which are checked elsewhere."""
    words = set(query_terms(text)) & set(base_terms(text)) - _user_terms()
    return {word for word in words if not any(map(str.isdigit, word)) and (len(word) > 1 or word >= _HAN)}


@cache
def _user_terms() -> frozenset[str]:
    return frozenset(base_terms(" ".join(word_list("users"))))


@lru_cache(maxsize=1_024)
def known_terms(*texts: str) -> frozenset[str]:
    """Return all terms of some texts."""
    return frozenset(term for text in texts for term in (*index_terms(text), *base_terms(text)))


def share_of(text: str, terms: Collection[str]) -> float:
    """Return the share of a text's terms that are among `terms`; 1 for a text without terms."""
    words = terms_of(text)
    return len(words.intersection(terms)) / len(words) if words else 1.0


# --- meaning ----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _vectors(texts: tuple[str, ...]) -> NDArray[np.float32] | None:
    from mcp_memory.models.embed.bundled import shared_encoder

    try:
        return shared_encoder().embed(texts)
    except EmbeddingFailed:
        return None


def nearest(text: str, others: Iterable[str]) -> float:
    """Return the highest cosine of a text to other texts; 0 without other texts or without the encoder."""
    theirs = tuple(others)
    vectors, vector = (_vectors(theirs), _vectors((text,))) if theirs else (None, None)
    return 0.0 if vectors is None or vector is None else float((vectors @ vector[0]).max())


_CAPITAL = re.compile(r"(?<![\w'’])[^\W\d_a-zа-яё][\w-]*")


def capitals_of(text: str) -> frozenset[str]:
    """Return the capitalised words in lower case, without calendar words, polite words and single letters.

    A function word at the start of the text does not count either.
    """
    names = [name.lower() for name in _CAPITAL.findall(text)]
    if text.lstrip()[:1].isupper() and names and names[0] in _first_words():
        names = names[1:]
    return frozenset(name for name in names if len(name) > 1) - word_list("calendar") - word_list("polite")


@cache
def _first_words() -> frozenset[str]:
    return function_words(("en", "de", "fr", "es", "nl", "ru"))
