"""Pure text: index terms, names that become file names, times, one-line cleaning. No I/O, no state.

`index_terms` is the one function that turns documents and queries into search terms, for any store, so what
was indexed with it is found with it. Terms hold no white space and are already folded and stemmed.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mcp_memory.errors import InvalidInput
from mcp_memory.function_words import function_words_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["fold", "index_terms", "iso", "one_line", "query_terms", "safe_name", "spoken", "well_formed"]

# --- index terms ------------------------------------------------------------------------------------

# Scripts written without spaces (Han, kana, Thai, Lao, Khmer, Burmese) and Hangul, whose particles cling to
# the word: indexed by character and by pairs, which needs no dictionary.
_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
# A word with what joins identifiers inside (`foo_bar.py`, `PR#4831`, `don't`) and the tail of `C++`, `C#`;
# a dense run; or one symbol such as an emoji.
_TOKEN = re.compile(
    rf"([{_DENSE}]+)"
    rf"|([^\W{_DENSE}](?:[^\W{_DENSE}]|[\u0300-\u036f'’._:/#@+-](?=[^\W{_DENSE}]))*(?:\+\+|\#)?)"
    r"|([\u2190-\u2bff\U0001f000-\U0001faff])"
)
_SPOKEN = re.compile(r"[^\W\d_]+")
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\WA-Za-z\d_]+")
_MAX_TERM = 64  # longer runs are hashes and encoded data, which nobody searches for in full


def index_terms(text: str) -> list[str]:
    """Return the search terms of a text, in order, repeats kept (they are term frequencies).

    Folded by NFKC, case and accents; Latin words stemmed (English), Cyrillic ones too (Russian);
    identifiers whole and in parts; scripts without spaces as single characters and pairs.
    """
    terms: list[str] = []
    for dense, word, symbol in _TOKEN.findall(text if text.isascii() else unicodedata.normalize("NFKC", text)):
        if word:
            terms += _word_terms(word)
        elif dense:
            terms += _dense_terms(dense)
        else:
            terms.append(symbol)
    return terms


def spoken(content: str, name: str | None) -> str:
    """Return a turn as it is indexed: its words and who said them."""
    return f"{name}: {content}" if name else content


def query_terms(text: str) -> list[str]:
    """Return the terms of a question that tell what it is about: `index_terms` without its function words.

    Where it has no others, all of them.
    """
    words = [word.casefold() for word in _SPOKEN.findall(text)]
    idle = function_words_of(words)
    telling = [word for word in words if word not in idle]
    if not idle or not telling:
        return index_terms(text)
    left_out = {term for word in set(words) & idle for term in index_terms(word)}
    return [term for term in index_terms(text) if term not in left_out]


def _dense_terms(run: str) -> Iterator[str]:
    yield from run
    for left, right in pairwise(run):
        yield left + right


@lru_cache(maxsize=32_768)
def _word_terms(word: str) -> tuple[str, ...]:
    if word.isascii() and word.isalpha() and (word.islower() or word.istitle()) and len(word) <= _MAX_TERM:
        return (_stem(word.lower()),)  # nearly every word of a Latin text
    folded = fold(word)
    if len(folded) > _MAX_TERM:
        folded = folded[:_MAX_TERM]
    if folded.isalnum():
        parts = _CAMEL.findall(word) if not (word.islower() or word.isupper() or word.istitle()) else []
    else:
        parts = [piece for run in _PART.findall(word) for piece in (_CAMEL.findall(run) or [run])]
    terms = {_stem(folded): None}  # a dict keeps order and drops what whole and parts share
    terms.update((_stem(fold(part)), None) for part in parts[:32])
    return tuple(terms)


def fold(text: str) -> str:
    """Return the text without case, accents and width: `Café` and `ＣＡＦÉ` are both `cafe`."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).replace("’", "'")


def _stem(word: str) -> str:
    if not word.isalpha():
        return word.removesuffix("'s")
    if word.isascii():
        return _stemmer("english").stemWord(word)
    return _stemmer("russian").stemWord(word) if "\u0400" <= word[0] <= "\u04ff" else word


@lru_cache(maxsize=2)
def _stemmer(language: str) -> Any:
    import Stemmer  # loaded late: the server starts without it

    return Stemmer.Stemmer(language)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


# --- names ------------------------------------------------------------------------------------------

_RESERVED = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in "123456789¹²³")}
_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')


def safe_name(name: str, *, what: str) -> str:
    """Return `name` if it can be part of a file name on every system, else raise InvalidInput.

    It is never changed silently: two names that differ stay two names.
    """
    problem = None
    if not name or name != name.strip():
        problem = "is empty or has white space around it"
    elif len(name.encode("utf-8", "surrogatepass")) > 120:
        problem = "is longer than 120 bytes"
    elif _FORBIDDEN.search(name) or not well_formed(name):
        problem = 'has a path separator, a control character or one of < > : " | ? *'
    elif name.startswith(".") or name.endswith("."):
        problem = "begins or ends with a dot"
    elif name.split(".")[0].casefold() in _RESERVED:
        problem = "is a device name on Windows"
    if problem is None:
        return name
    shown = name if len(name) <= 60 else name[:60] + "…"
    raise InvalidInput(
        f"The {what} {shown!r} {problem}. Use letters, digits, spaces and - _ . + @ , at most 120 bytes."
    )


def well_formed(text: str) -> bool:
    """Tell whether the text has no lone surrogate, so that it can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_line(text: str, limit: int) -> str:
    """Return the text on one line without control characters, cut to `limit` characters with an ellipsis."""
    clean = " ".join("".join(c if c.isprintable() else " " for c in text[: limit * 4 + 400]).split())
    return clean if len(clean) <= limit else clean[: limit - 1].rstrip() + "…"


# --- times ------------------------------------------------------------------------------------------


def iso(moment: datetime) -> str:
    """Return ISO-8601 with milliseconds and offset: `2026-04-16T22:19:53.895+08:00`."""
    return moment.isoformat(timespec="milliseconds")
