"""What the exports of chat services share. No I/O, no state.

They are made by programs, so nobody can mend them: what is missing, odd or new in a message is done without, and
only what is no conversation at all is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from mcp_memory.core.text import one_line, well_formed
from mcp_memory.integrations.importers.formats.told import LONGEST_ID, Passed, Told, Unfit, mended
from mcp_memory.longterm.l0_turns import MAX_TURN_BYTES

__all__ = [
    "ATTACHED_CHARS",
    "BRANCHES",
    "CALLS",
    "HIDDEN",
    "OWN",
    "RESULTS",
    "THOUGHTS",
    "attached",
    "fitting",
    "id_of",
    "name_of",
    "text_of",
    "title",
]

# What is no part of a talk, as the answer of an import names it.
BRANCHES = "messages on other branches, edited or answered anew"
CALLS = "calls of tools"
HIDDEN = "hidden messages and instructions"
OWN = "results of this memory's tools"
RESULTS = "results of tools without text"
THOUGHTS = "thoughts"

ATTACHED_CHARS = 20_000
"""Of the text of what is attached to a message, so many characters are kept with it."""

_UNTITLED = {"", "new chat", "untitled"}


def title(
    name: str, *, id: str | None, where: str, session: str | None, number: int, at: datetime | None
) -> Iterator[Told]:
    """Yield the title of a conversation, where it has one of its own, as a turn of role `system`: the conversation is
    found by it, and no model reads it as new.
    """
    if name.casefold() in _UNTITLED:
        return
    yield Told(
        where=where,
        role="system",
        content=one_line(name, 300),
        name="title",
        said_at=at,
        id=f"title-{id}" if id else None,
        session=session,
        conversation=number,
        began=at,
    )


def attached(files: Iterable[tuple[str | None, str | None]], passed: Passed) -> str:
    """Return the lines that tell what is attached to a message: names, and the text of each where it is known."""
    lines: list[str] = []
    left = ATTACHED_CHARS
    for name, text in dict.fromkeys(files):
        if not (name or text):
            continue
        lines.append(f"[attached: {one_line(name or 'text', 200)}]")
        if not text:
            continue
        lines += [text[:left]] if left else []
        if len(text) > left:
            passed.left[f"attached texts, of which {ATTACHED_CHARS:,} characters are kept"] += 1
            lines.append(f"[{len(text) - left:,} more characters of it are not kept]")
        left = max(0, left - len(text))
    return "\n".join(lines)


def fitting(text: str, passed: Passed) -> str:
    """Return the text as it can be stored. Unfit where it is too large."""
    text = mended(text, passed) or ""
    if len(text) > MAX_TURN_BYTES or len(text.encode()) > MAX_TURN_BYTES:
        raise Unfit(f"is larger than {MAX_TURN_BYTES // 2**20} MiB. Pass over it with --skip-bad.")
    return text


def text_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first of these fields that is a string with something in it."""
    return next((value for key in keys if isinstance(value := thing.get(key), str) and value.strip()), None)


def name_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    text = text_of(thing, *keys)
    return None if text is None else text.strip()


def id_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    id = name_of(thing, *keys)
    return id if id and len(id) <= LONGEST_ID and well_formed(id) else None
