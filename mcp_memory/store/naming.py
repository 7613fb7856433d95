"""Names of tool results in texts: `r-9f2c1a7b3d4e`, with lines `r-9f2c1a7b3d4e:120-134`, or their node, `003-N4`.

Turns and statements are named by a letter and a number that counts the rows of all spaces: `t12`, `a3`.

Pure functions on text; they do not check that the results exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["NamedResult", "address", "named"]

_NAME = re.compile(
    r"(?<![\w-])(?:(?P<ref>r-[0-9a-f]{12,64})(?::(?P<first>[1-9]\d{0,8})(?:[-–](?P<last>[1-9]\d{0,8}))?)?"
    r"|(?P<node>\d{3,6}-N\d{1,6}))(?![\w])",
    re.ASCII,
)
_MOST = 200


@dataclass(frozen=True, slots=True)
class NamedResult:
    """A ref or node that a text names, and the first and last of its lines, from 1, if given."""

    target: str
    lines: tuple[int, int] | None = None


def named(text: str) -> list[NamedResult]:
    """Return the results that a text names, in order, each once; at most the first hundreds."""
    if "r-" not in text and "-N" not in text:  # nearly every turn: the pattern takes ten times as long
        return []
    found: dict[NamedResult, None] = {}
    for match in _NAME.finditer(text):
        found[NamedResult(match["node"] or match["ref"], _lines(match))] = None
        if len(found) == _MOST:
            break
    return list(found)


def address(ref: str, lines: tuple[int, int] | None) -> str:
    """Return a ref with its lines in the form that `named` reads."""
    if lines is None:
        return ref
    return f"{ref}:{lines[0]}" if lines[0] == lines[1] else f"{ref}:{lines[0]}-{lines[1]}"


def _lines(match: re.Match[str]) -> tuple[int, int] | None:
    if match["first"] is None:
        return None
    first, last = int(match["first"]), int(match["last"] or match["first"])
    return min(first, last), max(first, last)
