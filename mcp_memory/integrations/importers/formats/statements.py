"""What another memory holds to be true, as it can be held here. No I/O.

A statement is at most some 2,000 characters here. What is longer is no statement but a text: it is told as a turn of
role `tool`, so that nothing of it is lost and nobody takes it for the user's words.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from mcp_memory.core.secrets import mask
from mcp_memory.core.text import is_blank
from mcp_memory.integrations.importers.formats.exports import fitting
from mcp_memory.integrations.importers.formats.told import Passed, Statement, Told, Unfit, mended
from mcp_memory.longterm.l1_atoms.told import MAX_CHARS

__all__ = ["as_turn", "statement"]

_MOST_OF_A_NAME = 200


def statement(
    where: str,
    passed: Passed,
    *,
    text: str | None = None,
    words: str = "",
    fact: tuple[str, str, str] | None = None,
    about: tuple[str, ...] = (),
    said_at: datetime | None = None,
    id: str | None = None,
    session: str | None = None,
    program: str = "memory",
) -> Statement | Told:
    """Return a statement, with half characters mended; without `text` it is the fact's. Unfit where it is too large."""
    # A key with its dashes gone would be known as one no more.
    said = mended(text if text is not None else " ".join(map(mask, fact or ())).replace("_", " "), passed) or ""
    said = said.strip()
    names = tuple(
        name for one in about if (name := (mended(one, passed) or "").strip()) and len(name) <= _MOST_OF_A_NAME
    )
    whole = (
        None
        if fact is None
        else (mended(fact[0], passed) or "", mended(fact[1], passed) or "", mended(fact[2], passed) or "")
    )
    if len(said) > MAX_CHARS or (whole is not None and max(map(len, whole)) > MAX_CHARS):
        return as_turn(where, said, passed, program=program, said_at=said_at, id=id, session=session)
    if any(map(is_blank, whole or (said,))):
        raise Unfit("is empty, or has no visible character. Take it out.")
    return Statement(where=where, text=said, said_at=said_at, id=id, fact=whole, about=names, words=words)


def as_turn(
    where: str,
    text: str,
    passed: Passed,
    *,
    program: str,
    said_at: datetime | None = None,
    id: str | None = None,
    session: str | None = None,
) -> Told:
    """Return a text that another program kept, as a turn that is found and that nobody said."""
    content = fitting(text, passed)
    return Told(
        where=where,
        role="tool",
        content=content,
        name=program,
        said_at=said_at,
        id=id or f"{program}-{hashlib.sha256(content.encode()).hexdigest()[:24]}",
        session=session,
    )
