"""Index terms: one function makes the words of documents and of queries comparable, in any language.

Guarantees: a word is found by the same word in any context, because each word has one form that depends only on its
script (Latin is stemmed as English, Cyrillic as Russian, and so on). If the text's language is known, forms of that
language are added. No dictionary and no setting: the same text always gives the same terms. Terms contain no white
space and are folded.

Function words (`data/function_words.txt`) show the language of a text. BM25 would overrate them, because they are rare
in what people say and part of every question. Only queries drop them, and only those of the query's own language:
German "die" is an article, English "die" is not. A query of function words alone keeps them.

Scripts without spaces need no dictionary: Han and kana give each character and each pair; Thai, Lao, Khmer and Burmese
the same of written syllables; Hangul the word without its particles, and pairs, which find the parts of compounds.
Folding drops only marks that writers may omit: accents of Latin, Greek and Cyrillic, the vowel points of Arabic and
Hebrew, the nukta of Indic scripts. The stemmers are Snowball's, except for Arabic and Hebrew, where stripping articles
and particles finds more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Any, NamedTuple

from mcp_memory.core.text import normalize
from mcp_memory.language import blocks_of, patterns_of

_ENDING_VOTE = 0.5
_ENDING_OF = 4  # a word with an ending has more letters

_LOOKED_AT = 40
_ENOUGH = 3
_COUNTED = 200
_SCRIPT_TELLS = "\u0e00"  # from Thai on, a script implies its language
_MAX_LANGUAGES = 3


class _FunctionWords(NamedTuple):
    """The parsed lists of function words.

    `of` has the words by language, and `languages` the languages by word. `shapes` maps letters and endings to the
    languages that they indicate. `asking` is a pattern, and `english` has words found only in English.
    """

    of: dict[str, tuple[str, ...]]
    languages: dict[str, tuple[str, ...]]
    shapes: dict[str, tuple[str, ...]]
    asking: re.Pattern[str]
    english: frozenset[str]


@cache
def _lists() -> _FunctionWords:
    of: dict[str, tuple[str, ...]] = {}
    languages: dict[str, tuple[str, ...]] = {}
    shapes: dict[str, tuple[str, ...]] = {}
    rest: dict[str, tuple[str, ...]] = {}
    for head, lines in blocks_of("mcp_memory.language", "data", "function_words.txt"):
        kind, *named = head.split()
        words = tuple(dict.fromkeys(" ".join(lines).split()))
        match kind:
            case "words":
                of[named[0]] = words
                languages |= {word: (*languages.get(word, ()), *named) for word in words}
            case "endings":
                shapes |= {ending: (*shapes.get(ending, ()), *named) for ending in words}
            case "letters":
                shapes |= dict.fromkeys((*words, *map(str.upper, words)), tuple(named))
            case _:
                rest[kind] = words
    asking = re.compile("|".join(sorted(rest["asking"], key=len, reverse=True)))
    english = frozenset((*rest["surely"], *map(str.capitalize, rest["surely"])))
    return _FunctionWords(of, languages, shapes, asking, english)


@cache
def function_words(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the function words of these languages, in lower case."""
    return frozenset(word for language in languages for word in _lists().of.get(language, ()))


def languages_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the most likely languages, at most three; none without evidence.

    Function words count most, then letters and endings. English wins every tie, so that plain English never gets forms
    of another language.
    """
    lists = _lists()
    if len(lists.english.intersection(words[:_LOOKED_AT])) >= _ENOUGH:
        return ("en",)
    votes: dict[str, float] = {}
    languages_by_word, shapes = lists.languages, lists.shapes
    lower = [word.lower() for word in words[:_COUNTED] if word < _SCRIPT_TELLS]
    elided = [word.partition("'")[0] for word in lower if word[1:3].find("'") >= 0]  # l'eau, qu'il
    for word in (*lower, *elided):
        for language in languages_by_word.get(word, ()):
            votes[language] = votes.get(language, 0.0) + 1.0
        if len(word) > _ENDING_OF:
            for language in shapes.get(word[-3:], ()):
                votes[language] = votes.get(language, 0.0) + _ENDING_VOTE
    for letter in shapes.keys() & set().union(*(word for word in lower if not word.isascii())):
        for language in shapes[letter]:
            votes[language] = votes.get(language, 0.0) + 1.0
    most = max(votes.values(), default=0.0)
    if most < 1.0:
        return ()
    best = tuple(language for language in lists.of if votes.get(language) == most)
    return ("en",) if "en" in best else best[:_MAX_LANGUAGES]


def function_words_of(words: Sequence[str]) -> frozenset[str]:
    """Return the function words of the language of these words, none if it is unknown."""
    return function_words(languages_of(words))


_PATTERNS = {
    name: re.compile(source)
    for name, source in patterns_of("mcp_memory.language", "data", "word_patterns.txt")
    if not name.startswith("define ")
}


def dense_terms(run: str) -> Iterator[str]:
    """Return the terms of a run in a script without spaces, in order."""
    if run[0] <= "\u109f" or "\u1780" <= run[0] <= "\u17ff":
        return _singles_and_pairs(_PATTERNS["SYLLABLE"].findall(run))
    if "\uac00" <= run[0] <= "\ud7ff" or run[0] < "\u3005" or "\u3130" <= run[0] <= "\u318f":
        return _hangul(run)
    return _singles_and_pairs(kana_folded(run) if _PATTERNS["KATAKANA"].search(run) else run)


def is_kana(term: str) -> bool:
    """Return whether a term is a single kana, which is uninformative next to other terms."""
    return len(term) == 1 and "\u3040" <= term <= "\u30ff"


def _singles_and_pairs(units: str | list[str]) -> Iterator[str]:
    yield from units
    for left, right in pairwise(units):
        yield left + right


def _hangul(word: str) -> Iterator[str]:
    stem = _PATTERNS["KOREAN_PARTICLE"].sub("", word) or word
    if len(stem) != 2:
        yield stem
    for left, right in pairwise(word):
        yield left + right


_SPELLED = str.maketrans(
    {
        "ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th", "ħ": "h", "ß": "ss",
        "ς": "σ", "ґ": "г", "’": "'", "ʼ": "'", "‘": "'", "`": "'", "‐": "-", "‑": "-", "–": "-",
        # one letter in Arabic and in Persian or Urdu keyboards; endings that are often mixed up
        "ٱ": "ا", "ى": "ي", "ی": "ي", "ة": "ه", "ہ": "ه", "ە": "ه", "ک": "ك", "ँ": "ं",
    }
)  # fmt: skip
_KANA = {katakana: katakana - 0x60 for katakana in range(0x30A1, 0x30F7)}
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_TYPOGRAPHY = (("\u2019", "'"), ("\u201c", " "), ("\u201d", " "), ("\u2014", " "), ("\u2013", "-"), ("\u2026", " "))


def fold(text: str) -> str:
    """Return the text without case, accents and width: `Café` and `ＣＡＦÉ` are both `cafe`."""
    if text.isascii():
        return text.lower()
    bare = normalize("NFKD", normalize("NFKD", text).casefold())
    return normalize("NFC", _PATTERNS["DROPPED"].sub("", bare).translate(_SPELLED))


def normalised(text: str) -> str:
    """Return the text in one width and composition, with ASCII digits.

    English with curly quotes and dashes becomes ASCII, which is faster to split.
    """
    for typographic, plain in _TYPOGRAPHY:
        text = text.replace(typographic, plain)
    return text if text.isascii() else ascii_digits(normalize("NFKC", text))


def ascii_digits(text: str) -> str:
    """Return the text with the digits of every script as 0 to 9."""
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0])), text)


def kana_folded(text: str) -> str:
    """Return the text with katakana as hiragana: りんご and リンゴ are one word."""
    return text.translate(_KANA)


STEMMED = {
    "de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese", "nl": "dutch",
    "sv": "swedish", "da": "danish", "no": "norwegian", "fi": "finnish", "hu": "hungarian", "tr": "turkish",
    "ro": "romanian", "pl": "polish", "cs": "czech", "id": "indonesian", "ca": "catalan", "sr": "serbian",
    "fa": "persian",
}  # fmt: skip
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"), ("\u1f00", "\u1fff", "greek"), ("\u0400", "\u052f", "russian"),
    ("\u0531", "\u058f", "armenian"), ("\u0900", "\u097f", "hindi"), ("\u0b80", "\u0bff", "tamil"),
)  # fmt: skip
_COMPOUNDING = {"de", "nl", "sv", "da", "no", "fi", "hu"}
_LONG = 8
_PART_LENGTH = 4
_REST = 3
_SURE_STEMS = 3  # with more candidate languages, compounds are not split
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})

_FINAL = str.maketrans("ךםןףץ", "כמנפצ")


@lru_cache(maxsize=8_192)
def forms(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the distinct forms of a word of letters, those by its script first; never empty."""
    low = word.casefold()
    if low.isascii() and not languages:
        return (_stem("english", low) or low,)
    distinct = dict.fromkeys(_by_script(low))
    for language in languages:
        distinct.update(dict.fromkeys(_by_language(word, low, language, loose=len(languages) > _SURE_STEMS)))
    distinct.pop("", None)
    return tuple(distinct) or (low,)


def _by_script(low: str) -> Iterator[str]:
    first, folded = low[0], fold(low)
    if first < "\u0250" or "\u1e00" <= first <= "\u1eff":
        yield _stem("english", folded)
        if not low.isascii() and (spelled := low.translate(_UMLAUTS)) != low:
            yield _stem("english", fold(spelled))
    elif "\u0590" <= first <= "\u05ff":
        yield folded.translate(_FINAL)
        bare = _PATTERNS["HEBREW_PREFIX"].sub("", folded)
        yield bare.translate(_FINAL)
        yield _PATTERNS["HEBREW_SUFFIX"].sub("", bare).translate(_FINAL)
    elif "\u0600" <= first <= "\u06ff":
        yield folded
        yield _arabic(folded)
    else:
        algorithm = next((name for start, end, name in _SCRIPTS if start <= first <= end), None)
        yield fold(_stem(algorithm, low)) if algorithm else folded


def _by_language(word: str, low: str, language: str, *, loose: bool) -> Iterator[str]:
    if language == "tr":
        low = _stem("turkish", word.replace("İ", "i").replace("I", "ı").casefold())  # one pass leaves case suffixes
    elif language == "pt":
        low = _PATTERNS["PORTUGUESE_PLURAL"].sub("ão", low)
    if language in ("uk", "bg"):
        yield fold(_PATTERNS["CYRILLIC_SUFFIX"].sub("", low))
    elif algorithm := STEMMED.get(language):
        yield fold(_stem(algorithm, low))
        if language in _COMPOUNDING and not loose and _LONG <= len(low) <= 40:
            yield from (stem for part in _parts(low) if len(stem := fold(_stem(algorithm, part))) >= _REST)


def _arabic(word: str) -> str:
    """Return the word without the article, particles and endings (after Larkey's light10, 2002)."""
    word = _PATTERNS["ARABIC_PREFIX"].sub("", word)
    while (shorter := _PATTERNS["ARABIC_SUFFIX"].sub("", word)) != word:
        word = shorter
    return word


def _parts(word: str) -> Iterator[str]:
    """Yield possible first and last parts of a compound, cut where a word can begin.

    Most are not words, and only take space in the index.
    """
    for cut in range(_REST, len(word) - _REST + 1):
        if (
            _PATTERNS["ONSET"].match(word, cut)
            and _PATTERNS["HEAD"].fullmatch(word, 0, cut)
            and not _PATTERNS["ENDING"].fullmatch(word, cut)
        ):
            if len(word) - cut >= _PART_LENGTH:
                yield word[cut:]
            if cut >= _PART_LENGTH:
                yield word[:cut]


def _stem(language: str, word: str) -> str:
    return _stemmer(language).stemWord(word)


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Any:
    import Stemmer  # loaded late: the server starts without it

    # Without its own cache: `forms` has one, and 10,000 words of each language would be 1 MB each.
    return Stemmer.Stemmer(language, 0)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


TERMS_VERSION = 4
"""Incremented whenever the terms of a text may change, so that a store knows which rows to index again."""

_MAX_TERM = 64  # characters; longer runs are hashes or encoded data, which no one types into a query
_MAX_PARTS = 32
_FEW = 2  # a query of unknown language with so few words is expanded in all languages

_DENSE_FROM = "\u0e00"  # Thai; scripts without spaces, and emoji, begin here
_NO_LANGUAGE = "\u0530"  # scripts from here on need no language for their forms


def index_terms(text: str) -> list[str]:
    """Return the search terms of a text, in order, repeats kept (they are term frequencies).

    Terms are words by their stems, numbers and dates in one spelling, identifiers whole and in parts, scripts without
    spaces as characters and pairs, emoji without their skin and gender.
    """
    tokens = _tokens(text)
    return _terms(tokens, languages_of(tokens))


def terms_among(text: str, terms: Collection[str]) -> frozenset[str]:
    """Return which of these terms are `index_terms` of a text, without stemming words that cannot give any of them."""
    tokens = _tokens(text)
    languages = languages_of(tokens)
    if languages in ((), ("en",)):  # other stemmers change more than the last two letters
        beginnings = beginnings_of(terms)
        tokens = [token for token in tokens if may_give(token, beginnings)]
    return frozenset(terms).intersection(_terms(tokens, languages))


def beginnings_of(terms: Iterable[str]) -> tuple[str, ...]:
    """Return the beginnings of the English words whose stems are these terms, for `may_give`."""
    return tuple(map(beginning_of, terms))


def beginning_of(term: str) -> str:
    """Return the letters that a term has in common with the words that it is the stem of."""
    return term[: max(1, len(term) - 2)]  # the stemmer changes the last two letters at most


def may_give(token: str, beginnings: tuple[str, ...]) -> bool:
    """Return False only if a token cannot have a base term with one of these beginnings."""
    return token.lower().startswith(beginnings) or not _is_plain_word(token)


def terms_of_each(texts: Iterable[str]) -> list[list[str]]:
    """Return the search terms of each text."""
    return [index_terms(text) for text in texts]


def base_terms(text: str) -> list[str]:
    """Return the terms that do not depend on the language that a text seems to be in.

    A text contains the base terms of each of its words: use them to test whether it contains certain words.
    """
    return _terms(_tokens(text), ())


def content_terms(text: str) -> list[str]:
    """Return the base terms of a text, in order, without its function words; all terms if it has no other words."""
    terms = base_terms(text)
    idle = _function_terms(function_words_of(terms))
    return [term for term in terms if term not in idle] or terms


@lru_cache(maxsize=64)
def _function_terms(words: frozenset[str]) -> frozenset[str]:
    return words | frozenset(base_terms(" ".join(sorted(words))))


_BEFORE, _BEHIND = '"([', '.,;:!?")]'
_CACHED_RUN = 24  # characters; longer runs are paths, or phrases of scripts without spaces


def base_terms_of_word(run: str) -> Sequence[str]:
    """Return the base terms of a run without spaces; short runs are cached."""
    return _cached_base_terms(run) if len(run) <= _CACHED_RUN else base_terms(run)


def without_punctuation(run: str) -> str:
    """Return a run without the usual punctuation around it, which gives no terms."""
    return run.lstrip(_BEFORE).rstrip(_BEHIND)


@lru_cache(maxsize=8_192)
def _cached_base_terms(run: str) -> Sequence[str]:
    word = without_punctuation(run)
    return _plain_terms(word) if word.isascii() and word.isalpha() else base_terms(run)


def query_terms(text: str) -> list[str]:
    """Return the content terms of a question: `index_terms` without function words, unless it has no other words.

    One or two words of unknown language get the forms of all languages.
    """
    tokens = _tokens(text)
    languages = languages_of(tokens)
    words = {part for token in tokens for part in (token.lower(), *token.lower().split("'"))}
    idle_terms = set(_terms([*(words & function_words(languages))], languages))
    content = _tokens(_lists().asking.sub(" ", text))
    terms = [term for term in _terms(content, languages) if term not in idle_terms and not is_kana(term)]
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
            return _PATTERNS["ANY"].findall(text)
    return (_PATTERNS["ASCII"] if _PATTERNS["NOT_SIMPLE"].search(text) else _PATTERNS["SIMPLE"]).findall(text)


def _terms(tokens: list[str], languages: tuple[str, ...]) -> list[str]:
    if languages not in ((), ("en",)):
        terms_of = {token: _token_terms(token, languages) for token in set(tokens)}
        return list(chain.from_iterable(map(terms_of.__getitem__, tokens)))
    if max(tokens, default="") < _DENSE_FROM:
        return list(chain.from_iterable(map(_plain_terms, tokens)))
    # Runs without spaces are whole phrases, hardly ever the same: remembered, they would fill the memory.
    remembered = (_plain_terms(token) if token < _DENSE_FROM else _token_terms(token, ()) for token in tokens)
    return list(chain.from_iterable(remembered))


@lru_cache(maxsize=8_192)
def _plain_terms(token: str) -> tuple[str, ...]:
    return _token_terms(token, ())


def _is_plain_word(token: str) -> bool:
    return token.isascii() and token.isalpha() and (token.islower() or token.istitle() or token.isupper())


def _token_terms(token: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    if token.isascii():
        is_word = _is_plain_word(token)
    elif _PATTERNS["DENSE_SCRIPT"].match(token):
        return tuple(dense_terms(token))
    else:
        is_word = _PATTERNS["WORD"].fullmatch(token) is not None
    if is_word and len(token) <= _MAX_TERM:
        return forms(token, languages)  # nearly every word
    if (pieces := _PATTERNS["APART"].split(token))[1:]:
        return tuple(chain.from_iterable(_token_terms(piece, languages) for piece in pieces if piece))
    if "'" in token:
        if _PATTERNS["CONTRACTED"].fullmatch(token):
            return (token.lower().replace("'", ""),)
        if (bare := _PATTERNS["CLINGING"].fullmatch(token)) is not None:
            # The s of "it's" and "Anna's" is a word as well: measured, searches lose without it.
            return (*_token_terms(bare[1], languages), *(("s",) if bare[2] else ()))
        if (bare := _PATTERNS["ELISION"].fullmatch(token)) is not None:
            return _token_terms(bare[1], languages)
    return tuple(dict.fromkeys(_compound_terms(token, languages)))


def _compound_terms(token: str, languages: tuple[str, ...]) -> Iterator[str]:
    """Yield an identifier, number or date as a whole, by its segments (of a path, an address), and in parts."""
    if token[0].isdecimal():
        yield from (spelled := tuple(_one_spelling(token)))
        if spelled and "," in token and " " not in token:
            return  # the "000" of "1,000" is no search term
    folded = fold(token)[:_MAX_TERM].replace(" ", "")
    segments = [segment for segment in _PATTERNS["SEPARATE"].split(folded) if segment]
    for segment in (folded, *(segments[:_MAX_PARTS] if len(segments) > 1 else ())):
        whole = _PATTERNS["SQUEEZED"].sub("", segment)
        yield forms(whole, ())[0] if whole.isalpha() else whole or segment
    if (plus := folded.find("++")) > 0:
        yield folded[: plus + 2]  # C++17 is C++
    if _PATTERNS["MIXED"].search(token):
        return
    for part in _PATTERNS["PART"].findall(token)[:_MAX_PARTS]:
        if part[0].isdecimal():
            yield from _prefixes(part[:_MAX_TERM])
        elif not part.isascii() or part.islower():
            yield from forms(part[:_MAX_TERM], languages)
        else:
            for piece in _PATTERNS["CAMEL"].findall(part)[:_MAX_PARTS]:
                yield from forms(piece[:_MAX_TERM], languages)


def _one_spelling(token: str) -> Iterator[str]:
    """Yield a number without its grouping, a date as year-month-day (both ways where day and month may be swapped)."""
    if (grouped := _PATTERNS["GROUPED"].fullmatch(token)) is not None:
        yield (whole := re.sub("[^0-9]", "", grouped[1]))
        if grouped[2]:
            yield f"{whole}.{grouped[2]}"
    elif _PATTERNS["DECIMAL_COMMA"].fullmatch(token):
        yield from _prefixes(token.replace(",", "."))
    elif (date := _PATTERNS["YEAR_FIRST"].match(token)) is not None:
        yield from _date(date[1], date[3], date[4])
    elif (date := _PATTERNS["YEAR_LAST"].fullmatch(token)) is not None:
        yield from _date(date[4], date[3], date[1])
        if date[2] != ".":
            yield from _date(date[4], date[1], date[3])


def _date(year: str, month: str, day: str) -> Iterator[str]:
    if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
        yield f"{year}{int(month):02}{int(day):02}"
        yield year


def _prefixes(number: str) -> Iterator[str]:
    """Yield `2`, `2.3` and `2.3.1` for `2.3.1`."""
    pieces = number.split(".")
    for count in range(1, min(len(pieces), _MAX_PARTS) + 1):
        yield ".".join(pieces[:count])
