"""Numbers of payment cards: digits in the lengths and with the first digits that issuers use, and a right checksum.

One number in ten of that shape has a right checksum by chance, and one in a hundred numbers of its length has the
shape. So digits without gaps that stand behind a name such as `id=` are left alone, where nothing says `card`.
Issuers are those of ISO/IEC 7812 in November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["SHOWN", "cards"]

SHOWN = 4
"""Digits at the end that stay readable, as on a receipt: they tell one's cards apart."""

_GAP = r"[ .\u00a0\u2011\u2013\u202f-]"
_GROUPS = (
    rf"\d{{4}}(?P<gap>{_GAP})\d{{4}}(?P=gap)\d{{4}}(?P=gap)\d{{1,7}}|\d{{4}}(?P<amex>{_GAP})\d{{6}}(?P=amex)\d{{4,5}}"
)
_NUMBER = re.compile(rf"(?<![\w./#•-])(?<!\d,)(?=[2-6])(?:\d{{15,16}}|{_GROUPS})(?![\w/-]|\.\d)")

_ISSUERS = (
    (re.compile(r"4"), (16, 19)),
    (re.compile(r"5[1-5]|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"6(?:011|5|4[4-9])"), (16, 19)),
    (re.compile(r"35(?:2[89]|[3-8]\d)"), (16,)),
    (re.compile(r"3(?:0[0-5]|[68])"), (14,)),
    (re.compile(r"62"), (16, 17, 18, 19)),
)

_NAMED = re.compile(
    r"(?i)(?:id|no|nr|num|number|ref|seq|hash|ts|time|stamp|count|bytes|size|offset)[\"'\]]{0,2}\s?[:=#]?\s?[\"']?$"
)
_CARD = re.compile(r"(?i)card|\bcc\b|credit|debit|karte|carte|tarjeta|cartão|карт|visa|amex|卡|カード|카드")


def cards(text: str) -> Iterator[tuple[int, int]]:
    """Yield where card numbers stand."""
    for found in _NUMBER.finditer(text):
        digits = re.sub(r"\D", "", found[0])
        issued = any(head.match(digits) and len(digits) in lengths for head, lengths in _ISSUERS)
        if issued and _checks(digits) and not (digits == found[0] and _is_named(text, found.start())):
            yield found.span()


def _is_named(text: str, start: int) -> bool:
    """Whether what stands before a number says that it is one of something else."""
    before = text[max(0, start - 40) : start]
    return _NAMED.search(before) is not None and _CARD.search(before) is None


def _checks(digits: str) -> bool:
    """Whether the sum of Luhn is right; a number of one digit alone is a sample, and right by chance."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (
        len(set(digits)) > 1 and (sum(map(int, digits[::-2])) + sum(two - 9 * (two > 9) for two in doubled)) % 10 == 0
    )
