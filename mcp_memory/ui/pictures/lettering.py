"""How wide a text will be, without its font: an estimate that is rather too wide. Texts shortened and wrapped by it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_NARROW = frozenset("iljtfrI.,:;|!'`()[]{}/\\ -")
_BROAD = frozenset("mwMW@%—…")


def width(text: str, size: float = 13) -> float:
    """Return about how many pixels a text takes at a size; wide characters, as of Chinese, take two places."""
    return size * sum(map(_of, text))


def _of(char: str) -> float:
    if char in _NARROW:
        return 0.38
    if char in _BROAD:
        return 0.95
    if char.isascii():
        return 0.7 if char.isupper() else 0.61
    if unicodedata.east_asian_width(char) in "WF":
        return 1.16
    return 0.0 if unicodedata.combining(char) or unicodedata.category(char) == "Cf" else 0.7


def shortened(text: str, room: float, size: float = 13) -> str:
    """Return a text cut to a width of `room` pixels, with an ellipsis where it was cut."""
    if width(text, size) <= room:
        return text
    left, kept = room - width("…", size), 0
    while kept < len(text) and (left := left - size * _of(text[kept])) >= 0:
        kept += 1
    return f"{text[:kept].rstrip(' …')}…"


def wrapped(text: str, room: float, size: float = 13, *, lines: int = 2) -> Sequence[str]:
    """Return a text in at most `lines` lines, broken between words where possible; the last line is shortened."""
    done: list[str] = []
    rest = text.strip()
    while rest and len(done) < lines - 1 and width(rest, size) > room:
        head, rest = _broken(rest, room, size)
        done.append(head)
    return [*done, shortened(rest, room, size)] if rest else done


def _broken(text: str, room: float, size: float) -> tuple[str, str]:
    """The part of a text that fits into a line, and the rest."""
    end, left = 0, room
    while end < len(text) and (left := left - size * _of(text[end])) >= 0:
        end += 1
    end = max(1, end)
    between = text.rfind(" ", 0, end + 1)
    end = between if between > end // 2 else end
    return text[:end].rstrip(), text[end:].lstrip()
