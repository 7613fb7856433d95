"""Separates what a user typed from what a client attached to the message: files, selections, pages, plans, notices.

Only typed words count as the user's. Clients write attachments into the user's message, between tags or below a
heading, and whoever wrote an attached file may have put a closing tag into it. So a block reaches to the last closing
tag of its name, and a heading reaches to the last heading of the user's request, or to the end. What is in doubt counts
as attached: it is stored and found, as a tool's text. A tag that is closed within its line, and markup within a code
fence, stay with the typed words: people write both.

The names of tags that only clients write, and the headings, are in `words/host.txt`. Takes linear time.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mcp_memory.language import pattern_of
from mcp_memory.suspicion.flags import TAG

__all__ = ["ATTACHED", "Message", "parts_of_message", "typed_text", "without_client_blocks"]

ATTACHED = "attached"
"""Name of the tool turn that holds what was attached to a user's message."""

_pattern = partial(pattern_of, "mcp_memory.longterm", "words/host.txt")

_OPENING = re.compile(r"(?m)(?:(?P<lead>^[ \t>*-]*+)|)(?P<bracket>[<\[])(?P<name>[A-Za-z][\w.:-]*+)(?=[\s/>\]=]|\Z)")
_CLOSING = re.compile(r"(?P<bracket>[<\[])/[ \t]*(?P<name>[A-Za-z][\w.:-]*+)[^<>\[\]\n]{0,200}[>\]]")
_FENCE = re.compile(r"(?m)^[ \t]*(`{3,}|~{3,})")
_FORMATTING = re.compile("a|abbr|b|br|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strike|strong|sub|sup|u|var")
"""Tags of running text: inside a line they open no block."""
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class _Block:
    """A passage that a client attached: `text[start:end]`. `is_notice`: it only tells about the client."""

    start: int
    end: int
    is_notice: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A user's message in two parts: the words that were typed, and the attached passages in their order.

    `notices` are passages that only tell about the client, such as `<system-reminder>`.
    """

    typed: str
    attached: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def parts_of_message(text: str) -> Message:
    """Return the parts of a user's message; splitting the typed part again changes nothing."""
    attached: list[str] = []
    notices: list[str] = []
    typed = text
    for _ in range(_ROUNDS):
        blocks = list(_blocks(typed))
        if not blocks:
            return Message(typed, tuple(attached), tuple(notices))
        for block in blocks:
            (notices if block.is_notice else attached).append(typed[block.start : block.end].strip())
        typed = _without(typed, blocks)
    return Message("", (*attached, typed), tuple(notices))


def typed_text(text: str) -> str:
    """Return the words of a user's message that were typed."""
    return parts_of_message(text).typed


def without_client_blocks(text: str) -> str:
    """Return a text of any speaker without the blocks that only clients write."""
    blocks = list(_blocks(text, only_clients=True))
    return _without(text, blocks) if blocks else text


def _without(text: str, blocks: Sequence[_Block]) -> str:
    """Return the text between blocks, each piece as a paragraph."""
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    pieces = (text[start:end].strip() for start, end in zip([0, *ends], [*starts, len(text)], strict=True))
    return "\n\n".join(piece for piece in pieces if piece)


def _blocks(text: str, *, only_clients: bool = False) -> Iterator[_Block]:
    """Yield the attached passages in order, none within another."""
    headings = [] if only_clients else [found.start() for found in _pattern("CONTEXT").finditer(text)]
    openings = list(_OPENING.finditer(text)) if "<" in text or "[" in text else []
    if not headings and not openings:
        return
    fences, closings = _fences(text), _closings(text)
    lines = [at for at, character in enumerate(text) if character == "\n"]
    own = [_Block(*found.span(), is_notice=True) for found in _pattern("USER_TAG").finditer(text)]
    starts: list[tuple[int, re.Match[str] | _Block | None]] = [(at, None) for at in headings]
    starts += [(tag.start("bracket"), tag) for tag in openings]
    starts += [(block.start, block) for block in own]
    reached = 0
    for start, opens in sorted(starts, key=lambda one: (one[0], not isinstance(one[1], _Block))):
        if start < reached:
            continue
        fence = _end_of_fence(fences, start)
        match opens:
            case None:
                block = None if fence else _Block(start, _end_of_context(text, start))
            case _Block():
                block = opens
            case tag:
                last, count = closings.get((tag["bracket"], tag["name"].lower()), (0, 0))
                following = bisect(lines, start)
                is_in_a_line = following == len(lines) or lines[following] >= last
                block = _tagged(text, tag, last, count, is_in_a_line=is_in_a_line, only_clients=only_clients)
        if block is not None and block.end > fence:
            yield block
            reached = block.end


def _tagged(
    text: str, tag: re.Match[str], last: int, count: int, *, is_in_a_line: bool, only_clients: bool
) -> _Block | None:
    """Return the block that a tag opens, if any. `last` is the end of the last of `count` tags that close it."""
    start, name, begins_line = tag.start("bracket"), tag["name"].lower(), tag["lead"] is not None
    is_of_client = tag["bracket"] == "<" and _pattern("CLIENT_TAGS").fullmatch(name) is not None
    if name == TAG or (only_clients and not is_of_client):  # recalled blocks are removed at admission
        return None
    if last <= start:
        return _Block(start, len(text)) if is_of_client and begins_line else None
    is_material = _pattern("MATERIAL_TAGS").fullmatch(name) is not None
    is_known = is_of_client or is_material
    if not is_known and not begins_line and (_FORMATTING.fullmatch(name) or is_in_a_line):
        return None
    return _Block(start, last, is_notice=is_of_client and count == 1 and not is_material)


def _closings(text: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return for each tag the end of the last one that closes it, and how many do."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for tag in _CLOSING.finditer(text):
        key = tag["bracket"], tag["name"].lower()
        found[key] = tag.end(), found.get(key, (0, 0))[1] + 1
    return found


def _end_of_context(text: str, start: int) -> int:
    """Return where the user's request begins below a heading of attached material; the end where nothing says so."""
    return max((found.end() for found in _pattern("REQUEST").finditer(text, start)), default=len(text))


def _fences(text: str) -> list[tuple[int, int]]:
    """Return the spans of closed code fences."""
    marks = [(found.start(), found[1]) for found in _FENCE.finditer(text)]
    spans: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for at, mark in marks:
        if opened is None:
            opened = at, mark
        elif mark.startswith(opened[1]):
            spans.append((opened[0], at))
            opened = None
    return spans


def _end_of_fence(fences: Sequence[tuple[int, int]], at: int) -> int:
    """Return the end of the code fence around a place; 0 outside of fences."""
    before = bisect(fences, (at, at)) - 1
    return fences[before][1] if before >= 0 and at < fences[before][1] else 0
