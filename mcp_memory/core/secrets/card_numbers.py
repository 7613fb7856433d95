"""Numbers of payment cards: digits in the lengths and with the first digits that issuers use, and a right checksum.

One number in ten of that shape has a right checksum by chance, and one in a hundred numbers of its length has the
shape. So a number that stands behind the name of something else (`id=`, "order") is left alone where nothing says
`card`. In a tool result, which a wrong mask would change for good, something must say so, or the number stands in a
sentence in groups.
Issuers are those of ISO/IEC 7812 in November 2026.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_memory.core.secrets.values import any_of

SHOWN = 4
"""Digits at the end that stay readable, as on a receipt: they tell one's cards apart."""

_GAP = r"[ .\u00a0\u2011\u2013\u202f-]"
_GROUPS = (
    rf"\d{{4}}(?P<gap>{_GAP})\d{{4}}(?P=gap)\d{{4}}(?P=gap)\d{{1,7}}|\d{{4}}(?P<amex>{_GAP})\d{{6}}(?P=amex)\d{{4,5}}"
)
_NUMBER = re.compile(
    rf"(?<![\w./#•-])(?<!\d,)(?<!\d )(?=[2-6])(?:\d{{15,16}}|{_GROUPS})(?![\w/-]|\.\d| [\da-f]{{4}}\b|\t)"
)
_AT_ONCE = re.compile(r"(?i)(?:^|[^a-z])[\"']?[a-z_]*(?:id|no|ref|seq|hash|ts|code)[\"']?\s?[:=]\s?[\"']?$")
_IN_SENTENCE = re.compile(r"[^\W\d]{2,}:? $|\d[\"']\s?: $")

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
    rf"|{any_of('numbers of other things')}"
)
_CARD = re.compile(f"(?i){any_of('cards')}")


def cards(text: str, *, prose: bool = True) -> Iterator[tuple[int, int]]:
    """Yield where card numbers stand. Without `prose`, digits in a row must be called so."""
    for found in _NUMBER.finditer(text):
        digits = re.sub(r"\D", "", found[0])
        issued = any(head.match(digits) and len(digits) in lengths for head, lengths in _ISSUERS)
        alone = prose or (digits != found[0] and _IN_SENTENCE.search(text, max(0, found.start() - 40), found.start()))
        if issued and _checks(digits) and _is_meant(text, found.start(), alone=bool(alone)):
            yield found.span()


def _is_meant(text: str, start: int, *, alone: bool) -> bool:
    """Tell whether the words before a number say that it is of a card; `alone`: or do not say of what else."""
    before = text[max(0, start - 40) : start]
    if _CARD.search(before) is not None:
        return _AT_ONCE.search(before) is None
    return alone and _NAMED.search(before) is None


def _checks(digits: str) -> bool:
    """Whether the sum of Luhn is right; a number of one digit alone is a sample, and right by chance."""
    doubled = (int(digit) * 2 for digit in digits[-2::-2])
    return (
        len(set(digits)) > 1 and (sum(map(int, digits[::-2])) + sum(two - 9 * (two > 9) for two in doubled)) % 10 == 0
    )
