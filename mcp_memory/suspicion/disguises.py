"""Readings of a text with its disguise removed.

Base64, hexadecimal digits, escapes and entities are decoded if the result is readable text. Spaced letters are joined,
digits within words are read as letters, words on separate lines are joined to a sentence, identifiers of five or
more words that are not code are split, and marks within words are removed. Reversed text and ROT13 are tried where the
words of an order would result. Nested disguises are not decoded.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from urllib.parse import unquote

from mcp_memory.suspicion.lexicon import parted

__all__ = ["readings"]

_MOST = 200  # runs of a kind that are decoded
_LONGEST = 20_000  # characters of such a run
_BASE64 = re.compile(r"(?<![\w+/-])(?:[A-Za-z0-9+/]{4}){6,}(?:[A-Za-z0-9+/]{2,3}={0,2})?(?![\w+/])")
_BASE64_URL = re.compile(r"(?<![\w+/-])(?=[A-Za-z0-9]*[-_])[\w-]{24,}={0,2}(?![\w+/])", re.ASCII)
_HEX = re.compile(r"(?<!\w)(?:0x)?(?:[0-9a-fA-F]{2}){12,}(?!\w)")
_HEX_PAIRS = re.compile(r"(?<!\w)(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s:,]{1,2}){11,}(?:0x)?[0-9a-fA-F]{2}(?!\w)")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|&#x([0-9a-fA-F]{2,5});|&#(\d{2,6});")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_MARK = "[\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]"
_LETTER = rf"(?:[^\W_]{_MARK}*|{_MARK}+)"
_SPACED = re.compile(
    rf"(?<!\S)(?:\S{_MARK}*[ \t]{{1,3}}){{9,}}\S{_MARK}*(?!\S)"
    rf"|(?<![^\W_])(?:{_LETTER}[.\-_*·|]){{9,}}{_LETTER}(?![^\W_])"
)
_PARTED = re.compile(rf"(?<![^\W_]){_LETTER}(?P<by>[.\-_*·|]){_LETTER}(?:(?P=by)(?:{_LETTER}|[@.:/]))*(?![^\W_])")
_GAP = re.compile(r"[ \t]{2,}| / |[.\-_*·|]{2,}")
_SPACE, _SEPARATOR = re.compile(r"[ \t]"), re.compile(r"[.\-_*·|]")
_ITEM = r"[ \t]*(?:(?:\d{1,3}[.)]|[-*•>#]|//)[ \t]+)?"  # the start of a line of a list or a quotation
_CHARACTERS = re.compile(rf"^(?:{_ITEM}\S{_MARK}*[ \t]*\n\s*?){{9,}}{_ITEM}\S{_MARK}*[ \t]*$", re.MULTILINE)
_COLUMN = re.compile(
    rf"^(?:{_ITEM}(?:\S[^\n]{{0,15}}|\S{{1,40}})\n){{3,}}{_ITEM}(?:\S[^\n]{{0,15}}|\S{{1,40}})$", re.MULTILINE
)
_WORDS_APART = re.compile(
    rf"^(?:{_ITEM}[^\s<>|]{{1,24}}[ \t]*\n\s*?){{5,}}{_ITEM}[^\s<>|]{{1,24}}[ \t]*$", re.MULTILINE
)
_AT_LINE = re.compile(rf"^{_ITEM}", re.MULTILINE)
_NAMED = r"(?:[^\s_(){}=/:]|:(?!:))"
_JOINED = re.compile(
    rf"(?<![\w./:$@(-])(?<!def )(?<!class )[^\W\d](?:{_NAMED}*+(?:_+{_NAMED}++){{4,}}+|\w{{15,200}}+)"
    r"(?![\w(/:=]|\.\w|\s*=)"
)
_FEWEST = 5  # words of a name that is read as a sentence
_MARKUP = (
    r"(?:</?(?:b|i|u|s|em|a|strong|span|font|wbr|small|sub|sup|mark|tt|code)\b[^<>\n]{0,80}>|<!--[^<>]{0,80}-->"
    r"|\*{1,3}|~~|`|&(?:shy|zwn?j|ZeroWidthSpace|#173|#820[34]|#x200[bc]|#xad);)+"
)
_WITHIN = re.compile(rf"(?:[^\W\d_]|{_MARK}){_MARKUP}[^\W\d_]", re.IGNORECASE)
_ANY_MARKUP = re.compile(_MARKUP, re.IGNORECASE)
_LEET = re.compile(r"(?<![\w@$])(?=[\w@$!]*[A-Za-z])(?=[\w@$!]*[013457@$!])[\w@$!]{3,20}(?![\w@$])")
_DIGITS = {one: str.maketrans("013457@$!", f"o{one}easta" + "s" + "i") for one in "il"}
_READABLE = 0.7  # of a decoded run are letters and spaces
_LONG = 20_000  # characters; in longer texts whole readings are tried only where common words of orders stand
_KEYS = (
    "instructions", "password", "ignore", "previous", "system", "assistant", "remember", "forget", "secret", "user",
)  # fmt: skip
_TURNED = tuple(key[::-1] for key in _KEYS)
_MOVED = tuple(codecs.encode(key, "rot13") for key in _KEYS)


def readings(text: str) -> Iterator[str]:
    """Yield the readings of a text, one after the other."""
    yield from _decoded(text)
    if _SPACED.search(text):
        yield _SPACED.sub(_together, text)
    if _many(_PARTED, text, at_least=4):
        yield _PARTED.sub(lambda word: word[0].replace(word["by"], ""), text)
    if _WITHIN.search(text):
        yield _ANY_MARKUP.sub("", text)
    if any(len(_words_of(name[0])) >= _FEWEST for name in _JOINED.finditer(text)):
        yield _JOINED.sub(lambda name: " ".join(_words_of(name[0])), text)
    for lines, joined in ((_CHARACTERS, _characters), (_COLUMN, _line), (_WORDS_APART, _line)):
        if lines.search(text):
            yield lines.sub(joined, text)
    if _many(_LEET, text, at_least=3):
        for letters in _DIGITS.values():
            yield _LEET.sub(lambda word, letters=letters: word[0].translate(letters), text)
    lower = text.lower() if len(text) > _LONG else ""
    if not lower or any(key in lower for key in _TURNED):
        yield "\n".join(line[::-1] for line in text.split("\n"))
    if not lower or any(key in lower for key in _MOVED):
        yield codecs.encode(text, "rot13")


def _together(run: re.Match[str]) -> str:
    between = _SPACE if _SPACE.search(run[0]) else _SEPARATOR
    words = [between.sub("", word) for word in _GAP.split(run[0])]
    return " ".join(words) if len(words) > 2 else parted("".join(words))


def _words_of(name: str) -> list[str]:
    """Return the words that underscores or capitals join to one name."""
    if "_" in name:
        return [word for word in name.split("_") if word]
    starts = [at for at, letter in enumerate(name) if letter.isupper()]
    return [name[start:end] for start, end in pairwise([0, *(at for at in starts if at), len(name)])]


def _line(lines: re.Match[str]) -> str:
    """Return short lines as one, without what each begins with."""
    return " ".join(_AT_LINE.sub("", lines[0]).split())


def _characters(lines: re.Match[str]) -> str:
    words = ["".join(word.split()) for word in re.split(r"\n[ \t]*\n", _AT_LINE.sub("", lines[0]))]
    return " ".join(words) if len(words) > 2 else parted("".join(words))


def _decoded(text: str) -> Iterator[str]:
    kinds: list[tuple[re.Pattern[str], Callable[[str], str]]] = [
        (_BASE64, lambda run: _of_bytes(base64.b64decode, run + "=" * (-len(run) % 4))),
        (_BASE64_URL, lambda run: _of_bytes(base64.urlsafe_b64decode, run + "=" * (-len(run) % 4))),
        (_HEX, lambda run: _of_bytes(bytes.fromhex, run.removeprefix("0x"))),
        (_HEX_PAIRS, lambda run: _of_bytes(bytes.fromhex, re.sub(r"0x|\\x|[\s:,]", "", run))),
    ]
    for pattern, decode in kinds:
        for run in islice(pattern.finditer(text), _MOST):
            if len(run[0]) <= _LONGEST and (read := decode(run[0])):
                yield read
    if ("\\" in text or "&#" in text) and _ESCAPE.search(text):
        yield _ESCAPE.sub(lambda code: chr(int(code[4]) if code[4] else int(code[1] or code[2] or code[3], 16)), text)
    if "%" in text and _PERCENT.search(text):
        yield _PERCENT.sub(lambda run: unquote(run[0]), text)


def _many(pattern: re.Pattern[str], text: str, *, at_least: int) -> bool:
    return sum(1 for _ in islice(pattern.finditer(text), at_least)) == at_least


def _of_bytes(decode: Callable[[str], bytes], run: str) -> str:
    try:
        text = decode(run).decode("utf-8")
    except (ValueError, binascii.Error):
        return ""
    letters = sum(1 for character in text if unicodedata.category(character)[0] in "LMZ")
    return text if letters >= _READABLE * len(text) else ""
