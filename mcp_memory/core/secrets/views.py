"""A text as its reader has it: joined, unescaped, without what a tool put before each line.

A secret is recognised by its place, and places are hidden by what carries the text: a zero-width space inside a key, a
file inside a JSON string, the numbers that an editor puts before lines, the marks of a diff. Each view is the text
without these, with the place in the original of each of its characters.
"""

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from urllib.parse import unquote

__all__ = ["View", "views"]

View = tuple[str, Callable[[int], int]]
"""A text, and what tells where a character of it stands in the original."""

_BROKEN = re.compile(
    "[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]+"
    r"|\x1b\[[0-9;]{0,12}m|\r(?=\n)|\\\r?\n[ \t]*"
)
"""What a reader, or a shell, leaves out of a text: characters without width, colours, and where a line goes on."""

_WIDE = {
    wide: wide - 0xFEE0 for wide in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B), 0xFF0D)
}
_IS_WIDE = re.compile("[\uff0d\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
"""Letters and digits as wide as a Chinese character, and their dash."""

_ESCAPE = re.compile(r"(?<=[:,\[{ ])\"(?=[^\"\\\n]{0,400}\\n)|\\(?:[nrt\"/]|u[0-9a-fA-F]{4}|\\(?=[nrt\"u\\]))")
_SIMPLE = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "/": "/", "\\": "\\"}
_REFERENCE = re.compile(r"&(?:quot|apos|amp|lt|gt|#0?3[49]|#x2[27]);")
_OF_ADDRESS = re.compile(r"%[2-7][0-9A-Fa-f]")
"""How pages and addresses write a quotation mark in JSON."""
_DEEPEST = 2  # of JSON in JSON
_BEFORE_LINE = re.compile(
    r"(?m)^(?:[ \t]*\d{1,7}[ ]?(?:→|\t|:[ ]?|\|[ ]?|-[ ]?|[ ]{2})"  # of an editor, or `cat -n`
    r"|(?:[A-Za-z]:)?[\w.~/\\-]{1,200}[:-]\d{1,7}[:-](?:\d{1,5}:)?"  # of grep
    r"|[ \t]*[\w.-]{1,40}[ ]{0,20}\|[ ]{1,2}(?:\d{4}-\d\d-\d\dT[\d:.]+Z[ ])?"  # of containers
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?[ ]{1,2}"
    r"|[+>-][ ]?|[#;*|][ ]{1,4}(?=\S)|//[ ]?)"
)
_HUNK, _OF_HUNK = re.compile(r"(?m)^@@ "), re.compile(r"(?m)^[ +-]")
_FEWEST, _SHARE = 2, 0.6  # lines that begin so
_DENSE = 300  # characters for each escape, at most


def views(text: str) -> Iterator[View]:
    """Yield the text as it is written, then as it reads, where that differs."""
    read: View = text, lambda place: place
    yield read
    if _may_be_broken(text):
        read = _cut(text, [(*one.span(), "") for one in _BROKEN.finditer(text)])
        if not read[0].isascii() and _IS_WIDE.search(read[0]):
            read = read[0].translate(_WIDE), read[1]
        if read[0] != text:
            yield read
    for _ in range(_DEEPEST):
        if not _is_escaped(read[0]):
            break
        read = _over(read, _unescaped(read[0]))
        yield read
    for sign, written, shown in (("&quot;", _REFERENCE, html.unescape), ("%22", _OF_ADDRESS, unquote)):
        if sign in read[0]:
            yield _over(read, _cut(read[0], [(*one.span(), shown(one[0])) for one in written.finditer(read[0])]))
    yield from _without_prefixes(read)


def _is_escaped(text: str) -> bool:
    """Tell whether a text is, or carries, a file in a JSON string; code has an escape here and there."""
    escapes = text.count("\\n") + text.count('\\"') + text.count("\\u")
    return escapes > 0 and (text.lstrip()[:1] in ("{", "[", '"') or escapes * _DENSE >= len(text))


def _may_be_broken(text: str) -> bool:
    return not text.isascii() or "\\\n" in text or "\r\n" in text or "\x1b[" in text


def _without_prefixes(view: View) -> Iterator[View]:
    text = view[0]
    lines = text.count("\n") + 1
    if lines < _FEWEST:
        return
    begins = _OF_HUNK if _HUNK.search(text) else _BEFORE_LINE
    found = [(*one.span(), "") for one in begins.finditer(text)]
    if found and (begins is _OF_HUNK or len(found) >= max(_FEWEST, _SHARE * lines)):
        yield _over(view, _cut(text, found))


def _unescaped(text: str) -> View:
    found: list[tuple[int, int, str]] = []
    for one in _ESCAPE.finditer(text):
        mark = one[0][1:2]  # none: a string of several lines begins, and its first line is a line
        shown = (_SIMPLE.get(mark) or json.loads(f'"{one[0]}"')) if mark else "\n"
        found.append((*one.span(), shown))
    return _cut(text, found)


def _over(outer: View, inner: View) -> View:
    return inner[0], lambda place: outer[1](inner[1](place))


def _cut(text: str, cuts: list[tuple[int, int, str]]) -> View:
    """Return a text with each cut (from, to, at most one character in its place) made."""
    if not cuts:
        return text, lambda place: place
    pieces: list[str] = []
    starts, lost = [0], [0]
    at = 0
    for start, end, shown in cuts:
        pieces += [text[at:start], shown]
        lost.append(lost[-1] + end - start - len(shown))
        starts.append(end - lost[-1])
        at = end
    starts_of = tuple(starts)
    return "".join([*pieces, text[at:]]), lambda place: place + lost[bisect_right(starts_of, place) - 1]
