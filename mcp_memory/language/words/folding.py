"""Letters made comparable: case, width, accents and spellings that people mix.

Only marks that readers leave out are dropped: accents of Latin, Greek and Cyrillic, the vowel points of Arabic
and Hebrew, the nukta of Indic scripts. Vowel signs of Indic scripts and the tones of Thai are letters, and stay.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["ascii_digits", "fold", "kana_folded", "normalised"]

_DROPPED = re.compile(
    "[\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u093c\u09bc\u0a3c\u0abc\u0b3c\u200b-\u200f\u2060\ufe0e\ufe0f]"
)
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
    bare = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFC", _DROPPED.sub("", bare).translate(_SPELLED))


def normalised(text: str) -> str:
    """Return the text in one width and composition, its digits ASCII, before it is cut into words.

    English with curly quotes and dashes comes out as ASCII, which is cut faster.
    """
    for typographic, plain in _TYPOGRAPHY:
        text = text.replace(typographic, plain)
    return text if text.isascii() else ascii_digits(unicodedata.normalize("NFKC", text))


def ascii_digits(text: str) -> str:
    """Return the text with the digits of every script as 0 to 9."""
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0])), text)


def kana_folded(text: str) -> str:
    """Return the text with katakana as hiragana: りんご and リンゴ are one word."""
    return text.translate(_KANA)
