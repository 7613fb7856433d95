"""The terms of a text: the one function that documents and queries share, in any language, for any store.

It guarantees that what a text says is found by the same words, whatever else was said around them: each word has
a form that does not depend on the language that the text seems to be in. It knows no dictionary and no setting;
the same text always gives the same terms. Terms hold no white space and are folded already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from mcp_memory.language.function_words import function_words, languages_of, without_han_function_words
from mcp_memory.language.words.dense import DENSE, HAN, HANGUL, SYLLABIC, dense_terms, is_kana
from mcp_memory.language.words.folding import fold, normalised
from mcp_memory.language.words.forms import STEMMED, forms

__all__ = ["TERMS_VERSION", "base_terms", "index_terms", "query_terms"]

TERMS_VERSION = 3
"""Grows whenever a text may get other terms than before, so that a store knows which rows to index again."""

_MAX_TERM = 64  # longer runs are hashes and encoded data, which nobody searches for in full
_MAX_PARTS = 32
_MIXED = re.compile("(?:[0-9]+[A-Za-z]+){4}")  # a hash or encoded data, whose pieces say nothing
_FEW = 2  # words of a query that does not tell its language: it is asked in all of them

# Marks that belong to a word though Python takes them for no letters: of Latin, Hebrew, Arabic, the Indic scripts.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0730-\u074a\u0900-\u0963\u0966-\u0dff\u0f18-\u0fbc"
    "\u135d-\u135f\u1a17-\u1a1b\u1b00-\u1bf3"
)
_EMOJI = (
    "\u203c\u2049\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
_GROUPS = r"[0-9]{1,3}(?:[.,' ][0-9]{3})+"
_NUMBER = rf"{_GROUPS}(?:[.,][0-9]+)?(?!\w)|[0-9]+,[0-9]{{1,2}}(?![\w,])"
_LEAD = r"(?<![.\w])[.$][A-Za-z]\w*"  # .NET, $HOME
_TAIL = r"(?:\+\+|\#(?!\w))?"  # C++, C#

# Three patterns, for nearly all that people write is ASCII without numbers of many digits or symbols at an edge.
_SIMPLE = re.compile(r"\w(?:[\w'._:/@&+-]*\w)?", re.ASCII)
_NOT_SIMPLE = re.compile(r"[.$+#0-9](?:(?<=[.$])[A-Za-z]|(?<=\+)\+|(?<=#)|(?<=[0-9])[ ,'][0-9])")
_ASCII = re.compile(rf"{_NUMBER}|\w(?:[\w'._:/@&#+-]*\w)?{_TAIL}|{_LEAD}", re.ASCII)
_LETTERS = rf"(?:[^\W{DENSE}]++|[{_MARKS}]++)++"
_ANY = re.compile(
    rf"{_NUMBER}|[{HAN}]+|[{HANGUL}]+|[{SYLLABIC}]+|[\U0001f1e6-\U0001f1ff]{{2}}|[{_EMOJI}]"
    rf"|{_LETTERS}(?:['._:/@&#+‐‑·׳״\u200c\u200d-]++{_LETTERS})*+{_TAIL}|{_LEAD}"
)
_GROUPED = re.compile(rf"({_GROUPS})(?:[.,]([0-9]+))?")
_DECIMAL_COMMA = re.compile(r"[0-9]+,[0-9]{1,2}")
_DENSE = re.compile(f"[{DENSE}]")
_APART = re.compile(r"\.\.+|--+")  # dots and dashes that stand between words
_DENSE_FROM = "\u0e00"  # Thai; scripts written densely, and emoji, begin here
_NO_LANGUAGE = "\u0530"  # letters from here on are of scripts whose forms need no language
_SEPARATE = re.compile(r"[/:@#&]+")
_SQUEEZED = re.compile("[-_'’‐‑·׳״\u200c\u200d]")
_WORD = re.compile(rf"(?:[^\W\d_]|[{_MARKS}])+")
_PART = re.compile(rf"[0-9]+(?:\.[0-9]+)*|(?:[^\W\d_]|[{_MARKS}])+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_CONTRACTED = re.compile(r"[a-z]+n't|(?:i|you|he|she|it|we|they|that|there|who)'(?:d|m|ll|re|ve)", re.IGNORECASE)
_CLINGING = re.compile(r"([a-z]+)'(?:(s)|d|ll|re|ve)", re.IGNORECASE)
_ELISION = re.compile(
    "(?:[ldjmtsnc]|qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|gl|un|bell|quest|quell|[ndsc]?[aeou]ll)'(.{2,})", re.IGNORECASE
)
_YEAR_FIRST = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})(?![0-9])")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")


def index_terms(text: str) -> list[str]:
    """Return the search terms of a text, in order, repeats kept (they are term frequencies).

    Words by their stems, numbers and dates in one spelling, identifiers whole and in parts, scripts without
    spaces as characters and pairs, emoji without their skin and gender.
    """
    tokens = _tokens(text)
    return _terms(tokens, languages_of(tokens))


def base_terms(text: str) -> list[str]:
    """Return the terms that do not depend on the language that a text seems to be in.

    A text holds the base terms of each of its words, so this is what tells whether it holds all of them.
    """
    return _terms(_tokens(text), ())


def query_terms(text: str) -> list[str]:
    """Return the terms of a question that tell what it is about: `index_terms` without its function words.

    Where it has no others, all of them. One or two words that do not show their language are asked for with the
    forms of all languages.
    """
    tokens = _tokens(text)
    languages = languages_of(tokens)
    idle = function_words(languages)
    words = {part for token in tokens for part in (token.lower(), *token.lower().split("'"))}
    left_out = set(_terms([*(words & idle)], languages))
    kept = _tokens(without_han_function_words(text))
    terms = [term for term in _terms(kept, languages) if term not in left_out and not is_kana(term)]
    if not terms:
        return _terms(tokens, languages)
    if not languages and len(tokens) <= _FEW:
        terms += [
            form
            for token in tokens
            if token.isalpha() and token < _NO_LANGUAGE
            for form in forms(token, tuple(STEMMED))
        ]
    return terms


def _tokens(text: str) -> list[str]:
    if not text.isascii():
        text = normalised(text)
        if not text.isascii():
            return _ANY.findall(text)
    return (_ASCII if _NOT_SIMPLE.search(text) else _SIMPLE).findall(text)


def _terms(tokens: list[str], languages: tuple[str, ...]) -> list[str]:
    if languages not in ((), ("en",)):
        return [term for token in tokens for term in _token_terms(token, languages)]
    if max(tokens, default="") < _DENSE_FROM:
        return list(chain.from_iterable(map(_plain_terms, tokens)))
    # Runs without spaces are whole phrases, hardly ever the same: remembered, they would fill the memory.
    remembered = (_plain_terms(token) if token < _DENSE_FROM else _token_terms(token, ()) for token in tokens)
    return list(chain.from_iterable(remembered))


@lru_cache(maxsize=32_768)
def _plain_terms(token: str) -> tuple[str, ...]:
    return _token_terms(token, ())


def _token_terms(token: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    if token.isascii():
        is_word = token.isalpha() and (token.islower() or token.istitle() or token.isupper())
    elif _DENSE.match(token):
        return tuple(dense_terms(token))
    else:
        is_word = _WORD.fullmatch(token) is not None
    if (pieces := _APART.split(token))[1:]:
        return tuple(chain.from_iterable(_token_terms(piece, languages) for piece in pieces if piece))
    if is_word and len(token) <= _MAX_TERM:
        return forms(token, languages)  # nearly every word
    if "'" in token:
        if _CONTRACTED.fullmatch(token):
            return (token.lower().replace("'", ""),)
        if (bare := _CLINGING.fullmatch(token)) is not None:
            # The s of "it's" and "Anna's" is a word as well: measured, searches lose without it.
            return (*_token_terms(bare[1], languages), *(("s",) if bare[2] else ()))
        if (bare := _ELISION.fullmatch(token)) is not None:
            return _token_terms(bare[1], languages)
    return tuple(dict.fromkeys(_compound_terms(token, languages)))


def _compound_terms(token: str, languages: tuple[str, ...]) -> Iterator[str]:
    """Yield an identifier, a number or a date whole, by its segments (of a path, an address), and in parts."""
    if token[0].isdecimal():
        yield from (spelled := tuple(_one_spelling(token)))
        if spelled and "," in token and " " not in token:
            return  # nobody asks for the 000 of 1,000
    folded = fold(token)[:_MAX_TERM].replace(" ", "")
    segments = [segment for segment in _SEPARATE.split(folded) if segment]
    for segment in (folded, *(segments[:_MAX_PARTS] if len(segments) > 1 else ())):
        whole = _SQUEEZED.sub("", segment)
        yield forms(whole, ())[0] if whole.isalpha() else whole or segment
    if (plus := folded.find("++")) > 0:
        yield folded[: plus + 2]  # C++17 is C++
    if _MIXED.search(token):
        return
    for part in _PART.findall(token)[:_MAX_PARTS]:
        if part[0].isdecimal():
            yield from _prefixes(part[:_MAX_TERM])
        elif not part.isascii() or part.islower():
            yield from forms(part[:_MAX_TERM], languages)
        else:
            for piece in _CAMEL.findall(part)[:_MAX_PARTS]:
                yield from forms(piece[:_MAX_TERM], languages)


def _one_spelling(token: str) -> Iterator[str]:
    """Yield a number without its grouping, a date as year-month-day (both ways where day and month may be swapped)."""
    if (grouped := _GROUPED.fullmatch(token)) is not None:
        yield (whole := re.sub("[^0-9]", "", grouped[1]))
        if grouped[2]:
            yield f"{whole}.{grouped[2]}"
    elif _DECIMAL_COMMA.fullmatch(token):
        yield from _prefixes(token.replace(",", "."))
    elif (date := _YEAR_FIRST.match(token)) is not None:
        yield from _date(date[1], date[3], date[4])
    elif (date := _YEAR_LAST.fullmatch(token)) is not None:
        yield from _date(date[4], date[3], date[1])
        if date[2] != ".":
            yield from _date(date[4], date[1], date[3])


def _date(year: str, month: str, day: str) -> Iterator[str]:
    if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
        yield f"{year}{int(month):02}{int(day):02}"
        yield year


def _prefixes(number: str) -> Iterator[str]:
    """`2.3.1` is found by `2`, `2.3` and itself."""
    pieces = number.split(".")
    for count in range(1, min(len(pieces), _MAX_PARTS) + 1):
        yield ".".join(pieces[:count])
