"""What a model is shown of a raw result: all its lines, cut, where that is enough; else what a program found in it, and
its beginning, middle and end.

A sample has little over `chars` characters whatever the size of the result, and the work is bounded as well. Secrets
are masked before anything is cut, so that none is cut in half and then not recognised.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcp_memory.core.secrets import mask
from mcp_memory.core.text import decoded, well_formed
from mcp_memory.shortterm.synopsis import synopsise
from mcp_memory.shortterm.synopsis.page import clean, clip

__all__ = ["Sample", "sample"]

_HEAD, _MIDDLE, _TAIL = 0.3, 0.1, 0.2  # the rest is for what a program found
_MARGIN = 6_000
"""Characters masked around what is shown: the longest secret, a private key, has some 3,000."""
_WIDTHS = (900, 450, 220, 110, 80)
"""To how many characters lines may be cut for all of them to be shown: pages and lists of hits have a few long ones."""
_CUT_UP_TO = 100_000


@dataclass(frozen=True, slots=True)
class Sample:
    """`whole`: there is nothing else in the result."""

    text: str
    whole: bool


def sample(data: bytes, *, chars: int, tool: str, arguments: object = None, task: str = "") -> Sample:
    """Return what to show of a result, in some `chars` characters. Bytes that are not UTF-8 become U+FFFD.

    What is found has to do with the call and the task, so far as words tell.
    """
    text = decoded(data)
    text = data.decode("utf-8", "replace") if text is None or not well_formed(text) else text
    if len(text) <= chars:
        return Sample(_readable(text).strip("\n"), whole=True)
    if len(text) <= _CUT_UP_TO:
        lines = [line for line in _readable(text).split("\n") if line.strip()]
        for width in _WIDTHS:
            cut = "\n".join(clip(line, width) for line in lines)
            if len(cut) <= chars:
                return Sample(f"[all lines, cut after {width} characters]\n{cut.strip(chr(10))}", whole=False)
    head, middle, tail = (round(chars * share) for share in (_HEAD, _MIDDLE, _TAIL))
    start, last = (len(text) - middle) // 2, len(text) - tail
    room = chars - head - middle - tail
    parts = [
        ("found in it", synopsise(mask(text), tool=tool, arguments=arguments, talk=task, budget_chars=room).preview),
        ("beginning", _readable(text[: head + _MARGIN])[:head]),
        (f"middle, line {_line_at(text, start):,} on", _within(text, start, middle)),
        ("end", _readable(text[max(0, last - _MARGIN) :])[-tail:]),
    ]
    return Sample("\n".join(f"[{name}]\n{shown.strip(chr(10))}" for name, shown in parts if shown.strip()), whole=False)


def _readable(text: str) -> str:
    return clean(mask(text))


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _within(text: str, start: int, size: int) -> str:
    before = max(0, start - _MARGIN)
    skipped = len(_readable(text[before:start]))
    return _readable(text[before : start + size + _MARGIN])[skipped : skipped + size]
