"""Separates the words that a user typed from attachments of the client: files, selections, pages, plans, notices.

Only typed words count as the user's. Clients write attachments into the user's message, between tags or below a
heading, and the author of an attached file may have put a closing tag or a heading into it. So a block ends at the last
closing tag of its name, and a heading's section ends with the message. The only exception is a message that begins with
a heading: there the user's request follows the last heading that announces it. Doubtful text counts as attached: it is
stored and searchable, as a tool's text. So an unclosed tag around files or pages that begins a line opens a block to
the end of the message. People's own markup stays with the typed words: a tag that a sentence mentions ("What does
<document> mean?"), any tag between backticks, a tag that is closed within its line, and markup within a code fence.

The names of tags that only clients write, and the headings, are in `words/host.txt`. Takes linear time.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from mcp_memory.language import pattern_of
from mcp_memory.suspicion.flags import TAG

ATTACHED = "attached"
"""Name of the tool turn with the attachments of a user's message."""

_pattern = partial(pattern_of, "mcp_memory.longterm", "words/host.txt")

_OPENING = re.compile(r"(?m)(?:(?P<lead>^[ \t>*-]*+)|)(?P<bracket>[<\[])(?P<name>[A-Za-z][\w.:-]*+)(?=[\s/>\]=]|\Z)")
_CLOSING = re.compile(r"(?P<bracket>[<\[])/[ \t]*(?P<name>[A-Za-z][\w.:-]*+)[^<>\[\]\n]{0,200}[>\]]")
_HEADING = re.compile(r"(?m)^[ \t]*+#{1,6}[ \t]*+[^\s#]")
_FENCE = re.compile(r"(?m)^[ \t]*(`{3,}|~{3,})")
_REST_OF_TAG = re.compile(r"[^\n>\]]{0,400}+(?P<empty>(?<=/))?[>\]]")
_MENTIONED = re.compile(r"[ \t]+\S|[,.;:?!)\"'”’»]")
"""Text after a tag that a sentence mentions; the content of a tag follows without a space, or in the next line."""
_FORMATTING = re.compile("a|abbr|b|br|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strike|strong|sub|sup|u|var")
"""Tags of running text, which open no block."""
_ROUNDS = 4
_LONGEST_MENTION = 400  # characters of a line before and after a tag that are read


@dataclass(frozen=True, slots=True)
class _Block:
    """The passage `text[start:end]` that a client attached. `is_notice` is true if it is only about the client."""

    start: int
    end: int
    is_notice: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """A user's message in two parts: the words that were typed, and the attached passages in their order.

    `notices` are passages only about the client, such as `<system-reminder>`.
    """

    typed: str
    attached: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


def parts_of_message(*texts: str) -> Message:
    """Split a user's message into the typed words and the attachments. Splitting the typed words again changes nothing.

    Clients split a message into several texts at any place, even within attachments, so all are read as one. If every
    text closes each client tag that it opens, the blocks of clients are first cut from each text alone. The rest of a
    message whose attachments are nested too deeply counts as attached.
    """
    attached: list[str] = []
    notices: list[str] = []

    def split(text: str, *, only_clients: bool = False) -> str:
        blocks = list(_blocks(text, only_clients=only_clients))
        for block in blocks:
            (notices if block.is_notice else attached).append(text[block.start : block.end].strip())
        return _without(text, blocks) if blocks else text

    if len(texts) > 1 and all(map(_closes_client_tags, texts)):
        texts = tuple(split(text, only_clients=True) for text in texts)
    rest = "\n\n".join(text for text in texts if text.strip()) if len(texts) > 1 else "".join(texts)
    for _ in range(_ROUNDS):
        typed = split(rest)
        if typed == rest:
            return Message(typed, tuple(attached), tuple(notices))
        rest = typed
    return Message("", (*attached, rest), tuple(notices))


def typed_text(text: str) -> str:
    """Return the typed words of a user's message."""
    return parts_of_message(text).typed


def without_client_blocks(text: str) -> str:
    """Return a text of any speaker without blocks of clients."""
    blocks = list(_blocks(text, only_clients=True))
    return _without(text, blocks) if blocks else text


def _without(text: str, blocks: Sequence[_Block]) -> str:
    """Return the text outside of the blocks, each piece as a paragraph."""
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    pieces = (text[start:end].strip() for start, end in zip([0, *ends], [*starts, len(text)], strict=True))
    return "\n\n".join(piece for piece in pieces if piece)


def _blocks(text: str, *, only_clients: bool = False) -> Iterator[_Block]:
    """Yield the attached passages in order, none within another; with `only_clients`, only those in clients' tags."""
    headings = [] if only_clients else _headings(text)
    openings = list(_OPENING.finditer(text)) if "<" in text or "[" in text else []
    if not headings and not openings:
        return
    fences, closings = _fences(text), _closings(text)
    lines = [at for at, character in enumerate(text) if character == "\n"]
    own = [_Block(*match.span(), is_notice=True) for match in _pattern("USER_TAG").finditer(text)]
    starts: list[tuple[int, re.Match[str] | _Block | str]] = [*headings]
    starts += [(tag.start("bracket"), tag) for tag in openings]
    starts += [(block.start, block) for block in own]
    reached, is_first = 0, True  # nothing was typed before
    for start, opens in sorted(starts, key=lambda start: (start[0], not isinstance(start[1], _Block))):
        if start < reached:
            continue
        fence = _end_of_fence(fences, start)
        is_first = is_first and not text[reached:start].strip()
        match opens:
            case str() as mark:
                end = _end_of_heading(text, start, mark) if is_first else len(text)
                block = None if fence else _Block(start, end)
            case _Block():
                block = opens
            case tag:
                last, count = closings.get((tag["bracket"], tag["name"].lower()), (0, 0))
                following = bisect(lines, start)
                is_in_a_line = following == len(lines) or lines[following] >= last
                block = _tag_block(
                    text, tag, last, count, is_in_a_line=is_in_a_line, is_in_fence=fence > 0, only_clients=only_clients
                )
        if block is not None and block.end > fence:
            yield block
            reached = block.end


def _tag_block(
    text: str, tag: re.Match[str], last: int, count: int, *, is_in_a_line: bool, is_in_fence: bool, only_clients: bool
) -> _Block | None:
    """Return the block that a tag opens, if any. `last` is the end of the last of `count` tags that close it."""
    start, name, begins_line = tag.start("bracket"), tag["name"].lower(), tag["lead"] is not None
    is_of_client = tag["bracket"] == "<" and _pattern("CLIENT_TAGS").fullmatch(name) is not None
    if name == TAG or (only_clients and not is_of_client):  # recalled blocks are removed at admission
        return None
    if _is_in_backticks(text, tag):
        return None
    is_material = _pattern("MATERIAL_TAGS").fullmatch(name) is not None
    rest = _REST_OF_TAG.match(text, tag.end("name"))
    if last <= start:
        is_open = is_of_client or (is_material and not is_in_fence and _opens_alone(text, tag, rest))
        return _Block(start, len(text)) if is_open and begins_line else None
    if not is_of_client and not begins_line and rest and _MENTIONED.match(text, rest.end()):
        return None
    is_known = is_of_client or is_material
    if not is_known and (_FORMATTING.fullmatch(name) or (is_in_a_line and not begins_line)):
        return None
    return _Block(start, last, is_notice=is_of_client and count == 1 and not is_material)


def _is_in_backticks(text: str, tag: re.Match[str]) -> bool:
    start = tag.start("bracket")
    before = text[max(0, start - _LONGEST_MENTION) : start].rpartition("\n")[2]
    after = text[tag.end() : tag.end() + _LONGEST_MENTION].partition("\n")[0]
    return before.count("`") % 2 == 1 and "`" in after


def _opens_alone(text: str, tag: re.Match[str], rest: re.Match[str] | None) -> bool:
    """Return whether a tag that is never closed opens a block: `<file …>`, or `[file …]` alone in its line."""
    if rest is None or rest["empty"] is not None:
        return False
    return tag["bracket"] == "<" or text[rest.end() : rest.end() + _LONGEST_MENTION].partition("\n")[0].strip() == ""


def _closes_client_tags(text: str) -> bool:
    """Return whether a text closes each tag of a client as often as it opens it."""
    opened, closed = (
        Counter(name for tag in tags.finditer(text) if _pattern("CLIENT_TAGS").fullmatch(name := tag["name"].lower()))
        for tags in (_OPENING, _CLOSING)
    )
    return opened == closed


def _closings(text: str) -> dict[tuple[str, str], tuple[int, int]]:
    """Return, by bracket and name, the end of the last closing tag and the number of closing tags."""
    closings: dict[tuple[str, str], tuple[int, int]] = {}
    for tag in _CLOSING.finditer(text):
        key = tag["bracket"], tag["name"].lower()
        closings[key] = tag.end(), closings.get(key, (0, 0))[1] + 1
    return closings


def _headings(text: str) -> list[tuple[int, str]]:
    """Return the start and the first character of each heading that may have attachments below.

    If a client announces the user's request, as in "My request for Codex:", every heading above that line counts.
    """
    headings = list(_pattern("CONTEXT").finditer(text))
    named = [request.end() for request in _pattern("REQUEST").finditer(text) if request["client"]]
    if named:
        headings += _HEADING.finditer(text, 0, named[-1])
    return [(heading.start(), heading[0].lstrip()[0]) for heading in headings]


def _end_of_heading(text: str, start: int, mark: str) -> int:
    """Return where the user's request begins below the heading at `start`, or the end of the text.

    Only a heading of the same kind announces the request: `#`, `-` or `=`.
    """
    requests = (request for request in _pattern("REQUEST").finditer(text, start) if request["mark"] == mark)
    return max((request.end() for request in requests), default=len(text))


def _fences(text: str) -> list[tuple[int, int]]:
    """Return the spans of closed code fences."""
    spans: list[tuple[int, int]] = []
    opened: tuple[int, str] | None = None
    for match in _FENCE.finditer(text):
        at, mark = match.start(), match[1]
        if opened is None:
            opened = at, mark
        elif mark.startswith(opened[1]):
            spans.append((opened[0], at))
            opened = None
    return spans


def _end_of_fence(fences: Sequence[tuple[int, int]], at: int) -> int:
    """Return the end of the code fence that contains the position `at`; 0 outside of fences."""
    before = bisect(fences, (at, at)) - 1
    return fences[before][1] if before >= 0 and at < fences[before][1] else 0
