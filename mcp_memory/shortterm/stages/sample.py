"""What a model is shown of a raw result: all its lines, cut, where that is enough; else the beginning, the middle and
the end, and lines that tell of trouble.

A sample has little over `chars` characters whatever the size of the result, and the work is bounded as well. Secrets
are masked before anything is cut, so that none is cut in half and then not recognised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mcp_memory.secrets import mask
from mcp_memory.shortterm.synopsis.page import clean, clip

__all__ = ["Sample", "sample"]

_HEAD, _MIDDLE, _TAIL = 0.4, 0.15, 0.25  # the rest is for lines of trouble
_MARGIN = 6_000
"""Characters masked around what is shown: the longest secret, a private key, has some 3,000."""
_SEARCHED = 500_000
"""Characters before the end in which trouble is looked for."""
_LINE = 200
_WIDTHS = (900, 450, 220, 110)
"""To how many characters lines may be cut for all of them to be shown: pages and lists of hits have a few long ones."""
_CUT_UP_TO = 100_000
_TROUBLE = re.compile(
    r"^.*(?:\b(?:error|exception|fatal|fail(?:ed|ure|s)?|panic|denied|refused|timed? ?out|not found|traceback|"
    r"cannot|unable|assert\w*)\b|(?<=[a-z])(?:Error|Exception)\b).*$",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Sample:
    """`whole`: there is nothing else in the result."""

    text: str
    whole: bool


def sample(data: bytes, *, chars: int) -> Sample:
    """Return what to show of a result, in some `chars` characters. Bytes that are not UTF-8 become U+FFFD."""
    text = data.decode("utf-8", "replace")
    if len(text) <= chars:
        return Sample(_readable(text).strip("\n"), whole=True)
    if len(text) <= _CUT_UP_TO:
        text = _readable(text)
        cut = text
        for width in _WIDTHS:
            cut = "\n".join(clip(line, width) for line in text.split("\n"))
            if len(cut) <= chars:
                return Sample(f"[all lines, cut after {width} characters]\n{cut.strip(chr(10))}", whole=False)
        text = cut
    return Sample(_parts(text, chars), whole=False)


def _parts(text: str, chars: int) -> str:
    head, middle, tail = (round(chars * share) for share in (_HEAD, _MIDDLE, _TAIL))
    start, last = (len(text) - middle) // 2, len(text) - tail
    parts = [
        ("beginning", _readable(text[: head + _MARGIN])[:head]),
        *_trouble(text, head, last, chars - head - middle - tail),
        (f"middle, line {_line_at(text, start):,} on", _within(text, start, middle)),
        ("end", _readable(text[max(0, last - _MARGIN) :])[-tail:]),
    ]
    return "\n".join(f"[{name}]\n{shown.strip(chr(10))}" for name, shown in parts if shown.strip())


def _readable(text: str) -> str:
    return clean(mask(text))


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _within(text: str, start: int, size: int) -> str:
    before = max(0, start - _MARGIN)
    skipped = len(_readable(text[before:start]))
    return _readable(text[before : start + size + _MARGIN])[skipped : skipped + size]


def _trouble(text: str, head: int, last: int, room: int) -> list[tuple[str, str]]:
    """Return lines of trouble that stand neither in the beginning nor in the end: the last of each kind."""
    found = list(_TROUBLE.finditer(text, max(head, last - _SEARCHED), last))
    kept = dict[str, tuple[str, str]]()
    for one in reversed(found):
        line = clip(" ".join(_readable(one[0][:4_000]).split()), _LINE)
        kind = re.sub(r"\d+", "0", line)
        if kind not in kept and len(line) <= room:
            kept[kind] = (f"line {_line_at(text, one.start()):,}", line)
            room -= len(line)
    return list(reversed(kept.values()))
