"""The shapes of phrases that denote times, as patterns over the classes of words (see `vocabulary`).

A name stands for one token of its class; `?`, `|`, brackets and look-around are those of regular expressions.
`~OF` means: not followed by a token of that class. What stands before `:` must come before and is no part of it.
Of shapes that fit at overlapping places the longest wins.
"""

from __future__ import annotations

import re

from mcp_memory.language.when.vocabulary import LETTER

__all__ = ["ALONE", "COMMON", "compiled"]

COMMON = """
    DATE
    ((WEEKDAY|WDAY) DOT? COMMA? (ON|THE)?)? (NUM|ORD) DOT? OF? (MONTH|MON) DOT? ((COMMA|OF)? YEAR)?
    (NTH|ORD) OF MONTH ((COMMA|OF)? YEAR)?
    MONTH (OF|COMMA|ON)? YEAR
    MON DOT? YEAR
    (IN|FROM) THE? MONTH ~APOS
    (IN|FROM) MONTH (AND|COMMA) : MONTH ~APOS
    (REL|RELP) MONTH | MONTH RELP
    MONTH OF? THE? (REL UNIT | UNIT RELP | SHIFT)
    (NUM|ORD) OF? MONTH OF? THE? (REL UNIT | UNIT RELP)
    SEASON (OF|COMMA|ON)? YEAR
    (IN|FROM) THE? SEASON ~PLAIN
    (REL|RELP) SEASON | SEASON RELP
    SEASON OF? THE? (REL UNIT | UNIT RELP)
    QUARTER (OF|COMMA)? THE? YEAR
    (NTH|ORD|NUM) DOT? UNIT (OF|COMMA)? THE? YEAR
    (IN|FROM|REL) THE? QUARTER
    (IN|FROM) (ON|THE)? UNIT? YEAR ~PLAIN
    (IN|ON|AT|FROM) THE? FEAST ~PLAIN
    (REL|RELP) FEAST | FEAST RELP | FEAST OF? YEAR
    DAY (IN? THE? PART)? | DAYPART | LATELY
    REL PART
    (REL|RELP) UNIT ~OF | UNIT RELP | SHIFT
    REL WEEKDAY PART? | WEEKDAY RELP PART?
    (REL UNIT | SHIFT) (ON|THE)? WEEKDAY PART?
    WEEKDAY PART? COMMA? OF? THE? (REL UNIT | UNIT RELP | SHIFT)
    (WORD|NUM|FEW|ONE|ONE? AMOUNT|ONE? HALF ONE?) UNIT AGO | ONE? AMOUNT AGO
    PRIOR (WORD|NUM|FEW|ONE|ONE? HALF) UNIT ~THAT | PRIOR ONE? AMOUNT ~THAT
    PAST (WORD|NUM|FEW|ONE)? UNIT ~OF | PAST AMOUNT
    (REL|RELP) (WORD|NUM|FEW) UNIT | (WORD|NUM|FEW) (PAST|RELP) UNIT
    EDGE DASH? OF? THE? MONTH ((OF|COMMA)? YEAR)?
    EDGE DASH? OF? (ON|THE)? YEAR
    EDGE OF? THE? (REL UNIT | UNIT RELP | SHIFT | REL MONTH | SEASON OF? YEAR)
    (NTH|ORD|REL|RELP|PAST) UNIT OF MONTH ((OF|COMMA)? YEAR)?
    (IN|ON|AT|FROM) UNIT ~OF
"""

ALONE = """
    MONTH | MON | SEASON | QUARTER | FEAST | YEAR | UNIT | REL (MAY|MON|WDAY)
    (WEEKDAY|WDAY) PART?
    MAY (NUM|ORD)?
"""
"""What is a time only where nothing else is said."""


def compiled(shapes: str) -> list[re.Pattern[str]]:
    """Return a pattern over rows of class letters for each line of shapes."""
    return [re.compile(_pattern(line)) for line in shapes.splitlines() if line.strip()]


def _pattern(shape: str) -> str:
    before, _, body = shape.rpartition(" : ")
    marked = re.sub(r"~([A-Z]+)", r"(?!\1)", f"(?<={before})(?:{body})" if before else body)
    return re.sub(r"[A-Z]+", lambda name: LETTER[name[0]], marked).replace(" ", "")
