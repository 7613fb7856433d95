"""Find, remove and see through characters that a model reads and a person does not see.

Scripts and emoji need some of them, so it matters where one is: joiners belong into Persian words and families of
emoji, tags into three flags, a variation selector behind one character, direction marks around a telephone number.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_WIDTHLESS = "\u200b-\u200d\u2060-\u2064\ufeff\u180e\u034f\u115f\u1160\u3164\uffa0"
_LATIN = "A-Za-z\u00c0-\u024f"

_FLAG = re.compile("(\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{1,6}\U000e007f)")
_SMUGGLED = re.compile(
    f"[{_TAGS}]+|[{_SELECTORS}]{{2,}}|(?<![\u2e80-\U0003ffff])[\U000e0100-\U000e01ef]|[\ufff9-\ufffb]|[{_WIDTHLESS}]{{6,}}"
)
_TURNED = re.compile(rf"[\u202d\u202e][^\u202c\n]{{0,80}}?[{_LATIN}]{{3}}")  # letters in an order that is not theirs
_IN_WORDS = re.compile(rf"(?<=[{_LATIN}])[{_WIDTHLESS}]+(?=[{_LATIN}])")
_FEW = 3  # that a page is cut and pasted with
_CONCEALED = re.compile(r"\x1b\[(?:\d+;)*8m|\x08{4,}")
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_UNSEEN = re.compile(f"[{_TAGS}{_SELECTORS}{_WIDTHLESS}\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# Letters of other alphabets that look like Latin ones, and these.
_ALIKE = str.maketrans(
    "абвгекмнорстухіјѕԁһԛԝьѵӏαβγεηικνορτυχωϲϳɡɩ",
    "aбbreкmhopctyxijsdhqwьvlaβyεniкvoptuxwcjgi",
)
_WORD = re.compile(r"\w+")
_OTHER_ALPHABET = re.compile("[\u0370-\u052f]")
_BASIC = re.compile("[A-Za-z]")


def hides(text: str) -> bool:
    """Tell whether a text holds something that its reader is not to see."""
    if text.isascii():
        return ("\x1b" in text or "\x08" in text) and _CONCEALED.search(text) is not None
    seen = _FLAG.sub("", text) if "\U0001f3f4" in text else text
    if _SMUGGLED.search(seen) or _TURNED.search(seen) or _CONCEALED.search(seen):
        return True
    return sum(1 for _ in _IN_WORDS.finditer(seen)) >= _FEW


def revealed(text: str) -> str:
    """Return a text without its unseen characters, as far as no script needs them."""
    if text.isascii():
        return text
    parts = _FLAG.split(text)  # every second one is a flag
    return "".join(part if place % 2 else _without(part) for place, part in enumerate(parts))


def _without(text: str) -> str:
    return _IN_WORDS.sub("", _DIRECTIONS.sub("", _SMUGGLED.sub("", text)))


def plain(text: str) -> str:
    """Return a text as it looks: one width, nothing unseen, look-alikes of other alphabets as the Latin letters."""
    if text.isascii():
        return text
    shown = _UNSEEN.sub("", unicodedata.normalize("NFKC", text))
    return _WORD.sub(_in_one_alphabet, shown) if _OTHER_ALPHABET.search(shown) else shown


def _in_one_alphabet(word: re.Match[str]) -> str:
    return _latin(word[0]) if _OTHER_ALPHABET.search(word[0]) and _BASIC.search(word[0]) else word[0]


@lru_cache(maxsize=4096)
def _latin(word: str) -> str:
    return word.lower().translate(_ALIKE)
