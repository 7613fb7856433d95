"""What texts are compared by: their words, the pieces they have, and how near these are in meaning.

Words are compared as the index has them, without those of no weight; meaning by the bundled encoder, which takes about
2 ms for a word or a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache, lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.language.standing_rules import sentences
from mcp_memory.language.words import base_terms, index_terms, languages_of, query_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

__all__ = [
    "SHORT",
    "common_words",
    "dense",
    "differ",
    "known_terms",
    "names_the_user",
    "nearest",
    "parts_of",
    "pieces_of",
    "places_of",
    "share_of",
    "terms_of",
    "vectors_of",
    "words_of",
]

SHORT = 2
"""Words of a part that hardly says anything."""

_CUT = re.compile(
    r"[,;:()–—、，；：。!?！？…]\s*|\.\s+|\s+-\s+|(?=并|而且|但)|\s+(?=و\S)"
    r"|\s+(?=(?:and|but|so|because|who|und|aber|weil|et|mais|y|pero|e|ed|ma|mas|en|maar|i|oraz|ale|и|но|ve|ama)\s)"
)
_WORD = re.compile(r"[^\W\d_]+")
_HAN_PAIR = re.compile("(?=([\u3040-\u30ff\u3400-\u9fff]{2}))")
_OFTEN = """
always never immer nie niemals toujours jamais siempre nunca sempre mai altijd nooit всегда никогда zawsze nigdy alltid
aldrig altid asla please bitte
"""
_USERS = (
    "user nutzer nutzerin benutzer utilisateur utilisatrice usuario usuaria usuário usuária utilizador utente gebruiker"
    " användaren brugeren użytkownik użytkownika пользователь пользователя kullanıcı kullanıcının 用户 用戶 ユーザー"
    " 사용자 المستخدم"
)


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
    for part in _CUT.split(statement):
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
    """Yield what a part may be near to: a text, its sentences, neighbouring ones together, and their clauses."""
    yield text
    yield from places_of(text)
    yield from _sentence_pieces(text)


def _sentence_pieces(text: str) -> Iterator[str]:
    for start, end in sentences(text):
        sentence = text[start:end]
        yield sentence.strip()
        yield from (part.strip() for part in _CUT.split(sentence) if part and len(part.strip()) > 1)


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
    return any(word in lower for word in _USERS.split())


@cache
def common_words() -> frozenset[str]:
    """Return what the user is called, and the words that make an order a rule."""
    return frozenset((*_USERS.split(), *_OFTEN.split()))


@cache
def _user_terms() -> frozenset[str]:
    return frozenset(base_terms(_USERS))


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
