"""Decodes disguised text and strips introductions. The results are only for judging, in addition to the original.

`readings` removes the disguise of a text. Base64, hexadecimal digits, escapes and entities are decoded if the result is
readable text. Spaced letters are joined, digits within words are read as letters, words on separate lines are joined to
a sentence, identifiers of five or more words that are not code are split, and marks within words are removed. Reversed
text and ROT13 are tried too; of a long text, only if words of an instruction would result. Nested disguises are not
decoded.

`messages_of` reduces each line to its message. It removes timestamps, log levels, loggers, `file:line:`, list and
comment marks, keys and quotation marks from the front of a line, and puts each cell of prose (CSV, tables, JSON and
`key=value`) on a separate line. It may lose words.
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

from mcp_memory.suspicion.lexicon import split_run

_MAX_RUNS = 200  # runs of a kind that are decoded
_LONGEST_RUN = 20_000  # characters of such a run
_BASE64 = re.compile(r"(?<![\w+/-])(?:[A-Za-z0-9+/]{4}){6,}(?:[A-Za-z0-9+/]{2,3}={0,2})?(?![\w+/])")
_BASE64_URL = re.compile(r"(?<![\w+/-])(?=[A-Za-z0-9]*[-_])[\w-]{24,}={0,2}(?![\w+/])", re.ASCII)
_HEX = re.compile(r"(?<!\w)(?:0x)?(?:[0-9a-fA-F]{2}){12,}(?!\w)")
_HEX_PAIRS = re.compile(r"(?<!\w)(?:(?:0x|\\x)?[0-9a-fA-F]{2}[\s:,]{1,2}){11,}(?:0x)?[0-9a-fA-F]{2}(?!\w)")
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|&#x([0-9a-fA-F]{2,5});|&#(\d{2,6});")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_COMBINING = "[\u0300-\u036f\u0591-\u05c7\u064b-\u0655\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]"
_LETTER = rf"(?:[^\W_]{_COMBINING}*+|{_COMBINING}++)"
_NO_LETTER_BEFORE = rf"(?<![^\W_])(?<!{_COMBINING})"
_SPACED = re.compile(
    rf"(?<!\S)(?:\S{_COMBINING}*+[ \t]{{1,3}}){{9,}}\S{_COMBINING}*+(?!\S)"
    rf"|{_NO_LETTER_BEFORE}(?:{_LETTER}[.\-_*·|]){{9,}}{_LETTER}(?![^\W_])"
)
_PARTED = re.compile(
    rf"{_NO_LETTER_BEFORE}{_LETTER}(?P<by>[.\-_*·|]){_LETTER}(?:(?P=by)(?:{_LETTER}|[@.:/]))*(?![^\W_])"
)
_GAP = re.compile(r"[ \t]{2,}| / |[.\-_*·|]{2,}")
_SPACE, _SEPARATOR = re.compile(r"[ \t]"), re.compile(r"[.\-_*·|]")
_ITEM = r"[ \t]*(?:(?:\d{1,3}[.)]|[-*•>#]|//)[ \t]+)?"  # the start of a line of a list or a quotation
_CHARACTERS = re.compile(rf"^(?:{_ITEM}\S{_COMBINING}*[ \t]*\n\s*?){{9,}}{_ITEM}\S{_COMBINING}*[ \t]*$", re.MULTILINE)
_COLUMN = re.compile(
    rf"^(?:{_ITEM}(?:\S[^\n]{{0,15}}|\S{{1,40}})\n){{3,}}{_ITEM}(?:\S[^\n]{{0,15}}|\S{{1,40}})$", re.MULTILINE
)
_WORDS_APART = re.compile(
    rf"^(?:{_ITEM}[^\s<>|]{{1,24}}[ \t]*\n\s*?){{5,}}{_ITEM}[^\s<>|]{{1,24}}[ \t]*$", re.MULTILINE
)
_AT_LINE = re.compile(rf"^{_ITEM}", re.MULTILINE)
_NAMED = r"(?:[^\s_(){}=/:]|:(?!:))"
_NAME_BEGINS = r"(?<![\w./:$@(-])(?<!def )(?<!class )[^\W\d]"
_NAME_ENDS = r"(?![\w(/:=]|\.\w|\s*=)"
_UNDERSCORED = re.compile(rf"{_NAME_BEGINS}{_NAMED}*+(?:_++{_NAMED}++)*+(?P<ends>{_NAME_ENDS})?")
"""Any run of words and underscores, so that each place is read once; `ends` is None if it is part of code."""
_CAPITALISED = re.compile(rf"{_NAME_BEGINS}\w{{15,200}}+{_NAME_ENDS}")
_FEWEST = 5  # words of a name that is read as a sentence
_MARKUP = (
    r"(?:</?(?:b|i|u|s|em|a|strong|span|font|wbr|small|sub|sup|mark|tt|code)\b[^<>\n]{0,80}>|<!--[^<>]{0,80}-->"
    r"|\*|~~|`|&(?:shy|zwn?j|ZeroWidthSpace|#173|#820[34]|#x200[bc]|#xad);)++"
)
_WITHIN = re.compile(rf"(?:[^\W\d_]|{_COMBINING}){_MARKUP}[^\W\d_]", re.IGNORECASE)
_ANY_MARKUP = re.compile(_MARKUP, re.IGNORECASE)
_LEET = re.compile(r"(?<![\w@$])(?=[\w@$!]{0,19}[A-Za-z])(?=[\w@$!]{0,19}[013457@$!])[\w@$!]{3,20}(?![\w@$])")
_DIGITS = {one: str.maketrans("013457@$!", f"o{one}easta" + "s" + "i") for one in "il"}
_READABLE = 0.7  # least share of letters and spaces in a decoded run
_LONG = 20_000  # characters; longer texts are reversed or shifted only if common words of instructions result
_KEYS = (
    "instructions", "password", "ignore", "previous", "system", "assistant", "remember", "forget", "secret", "user",
)  # fmt: skip
_TURNED = tuple(key[::-1] for key in _KEYS)
_MOVED = tuple(codecs.encode(key, "rot13") for key in _KEYS)


def readings(text: str) -> Iterator[str]:
    """Yield the possible readings of a disguised text."""
    yield from _decode(text)
    if _SPACED.search(text):
        yield _SPACED.sub(_join_spaced, text)
    if _has_many(_PARTED, text, at_least=4):
        yield _PARTED.sub(lambda word: word[0].replace(word["by"], ""), text)
    if _WITHIN.search(text):
        yield _ANY_MARKUP.sub("", text)
    if (split := _CAPITALISED.sub(_as_sentence, _UNDERSCORED.sub(_as_sentence, text))) != text:
        yield split
    for lines, joined in ((_CHARACTERS, _characters), (_COLUMN, _line), (_WORDS_APART, _line)):
        if lines.search(text):
            yield lines.sub(joined, text)
    if _has_many(_LEET, text, at_least=3):
        for letters in _DIGITS.values():
            yield _LEET.sub(lambda word, letters=letters: word[0].translate(letters), text)
    lower = text.lower() if len(text) > _LONG else ""
    if not lower or any(key in lower for key in _TURNED):
        yield "\n".join(line[::-1] for line in text.split("\n"))
    if not lower or any(key in lower for key in _MOVED):
        yield codecs.encode(text, "rot13")


def _join_spaced(run: re.Match[str]) -> str:
    between = _SPACE if _SPACE.search(run[0]) else _SEPARATOR
    words = [between.sub("", word) for word in _GAP.split(run[0])]
    return " ".join(words) if len(words) > 2 else split_run("".join(words))


def _as_sentence(name: re.Match[str]) -> str:
    """Return the words of a name with spaces between them; a name of few words, or of code, unchanged."""
    if name.re is _UNDERSCORED and (name["ends"] is None or "_" not in name[0]):
        return name[0]
    words = _words_of(name[0])
    return " ".join(words) if len(words) >= _FEWEST else name[0]


def _words_of(name: str) -> list[str]:
    """Return the words that underscores or capitals join to a name."""
    if "_" in name:
        return [word for word in name.split("_") if word]
    starts = [at for at, letter in enumerate(name) if letter.isupper()]
    return [name[start:end] for start, end in pairwise([0, *(at for at in starts if at), len(name)])]


def _line(lines: re.Match[str]) -> str:
    """Return short lines joined to one line, without list marks."""
    return " ".join(_AT_LINE.sub("", lines[0]).split())


def _characters(lines: re.Match[str]) -> str:
    words = ["".join(word.split()) for word in re.split(r"\n[ \t]*\n", _AT_LINE.sub("", lines[0]))]
    return " ".join(words) if len(words) > 2 else split_run("".join(words))


def _decode(text: str) -> Iterator[str]:
    kinds: list[tuple[re.Pattern[str], Callable[[str], str]]] = [
        (_BASE64, lambda run: _of_bytes(base64.b64decode, run + "=" * (-len(run) % 4))),
        (_BASE64_URL, lambda run: _of_bytes(base64.urlsafe_b64decode, run + "=" * (-len(run) % 4))),
        (_HEX, lambda run: _of_bytes(bytes.fromhex, run.removeprefix("0x"))),
        (_HEX_PAIRS, lambda run: _of_bytes(bytes.fromhex, re.sub(r"0x|\\x|[\s:,]", "", run))),
    ]
    for pattern, decode in kinds:
        for run in islice(pattern.finditer(text), _MAX_RUNS):
            if len(run[0]) <= _LONGEST_RUN and (read := decode(run[0])):
                yield read
    if ("\\" in text or "&#" in text) and _ESCAPE.search(text):
        yield _ESCAPE.sub(lambda code: chr(int(code[4]) if code[4] else int(code[1] or code[2] or code[3], 16)), text)
    if "%" in text and _PERCENT.search(text):
        yield _PERCENT.sub(lambda run: unquote(run[0]), text)


def _has_many(pattern: re.Pattern[str], text: str, *, at_least: int) -> bool:
    return sum(1 for _ in islice(pattern.finditer(text), at_least)) == at_least


def _of_bytes(decode: Callable[[str], bytes], run: str) -> str:
    try:
        text = decode(run).decode("utf-8")
    except (ValueError, binascii.Error):
        return ""
    letters = sum(1 for character in text if unicodedata.category(character)[0] in "LMZ")
    return text if letters >= _READABLE * len(text) else ""


# --- lines ------------------------------------------------------------------------------------------

_CELL = re.compile(
    r"""[\t|] | \\n
    | (?<=[A-Za-z0-9"'}\])]),(?=["']?[^\s,"']{1,40}\ [^\s,])   # a cell of CSV that has several words
    | [:=,({\[]\ ?(?=["“«„「]\S{1,40}\ \S)              # a quoted value
    | (?<=\w)=(?=\S{1,40}\ \S)                            # key=value
    """,
    re.VERBOSE,
)
_LEVELS = "trace|debug|info|notice|warn|warning|error|err|fatal|critical|crit|severe|panic"
_FRONT = re.compile(
    rf"""^(?:
      [^\w\n]++                                                     # marks, quotation marks, spaces
    | [^\s:]{{1,200}}?-\d{{1,7}}-(?=\S)                             # file-line- as grep writes context lines
    | [^\s\d:,;|"=]{{0,80}}+\d[^\s:,;|"=]*+(?!\w)                   # numbers, timestamps, identifiers
    | [^\s:,;|"=./\\]{{0,80}}+[./\\]\w[^\s:,;|"=]*+(?=\s*:|\s+-\s)  # a path or a logger
    | (?:{_LEVELS.upper()})\b | (?i:{_LEVELS})(?=\s*[:\]])          # a level
    | (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b(?=,?\ )
    | [\w.-]{{1,80}}+(?=\ [\w./-]{{1,80}}\[\d{{1,9}}\]:)            # the host of a line of syslog
    | [a-z][\w.-]{{0,40}}+["']?:(?=\ ["']?[^\s:"][^\n:]{{1,40}}:)   # a key in front of a label
    )++""",
    re.VERBOSE | re.MULTILINE,
)
_BACK = re.compile(r"(?<=\w)[.!?]?[\"'”»\]})]++[,;]?$", re.MULTILINE)


def messages_of(text: str) -> str:
    """Return the text with every line cut to its message; each cell, list item and log line becomes a paragraph."""
    return _BACK.sub("", _FRONT.sub(_paragraph_break, _CELL.sub("\n\n", text)))


def _paragraph_break(front: re.Match[str]) -> str:
    """Return a line break, padded to the length of the removed front so that distances between words stay the same.

    Return nothing if the front consists of marks only.
    """
    begins = any(character.isalnum() or character in "-*•+" for character in front[0])
    return "\n".rjust(len(front[0])) if begins else ""
