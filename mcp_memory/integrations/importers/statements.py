"""Statements and texts of other programs, as records. No I/O, no state.

A statement has at most some 2,000 characters. A longer text is imported as a turn of role `tool`, so that it is kept
and never taken for the user's words.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import is_blank
from mcp_memory.integrations.importers.records import (
    MAX_ID_CHARS,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
    InvalidRecord,
    SkippedParts,
    replace_surrogates,
    storable_text,
)
from mcp_memory.longterm.statements import MAX_CHARS

_MAX_OF_A_NAME = 200

MemoryRecord = ImportedStatement | ImportedTurn | ImportProblem


def statement(
    where: str,
    skipped: SkippedParts,
    *,
    text: str | None = None,
    words: str = "",
    fact: tuple[str, str, str] | None = None,
    about: tuple[str, ...] = (),
    said_at: datetime | None = None,
    id: str | None = None,
    program: str = "memory",
) -> MemoryRecord:
    """Return a statement without lone surrogates and private passages. If `text` is None, the fact is its text.

    A text that is too long for a statement becomes a turn, an empty text a problem.
    """
    # Masked first: a key without its underscores would not be recognised.
    content = _clean_text(
        text if text is not None else " ".join(map(mask, fact or ())).replace("_", " "), skipped
    ).strip()
    names = tuple(
        name for mention in about if (name := _clean_text(mention, skipped).strip()) and len(name) <= _MAX_OF_A_NAME
    )
    if fact is not None:
        fact = _clean_text(fact[0], skipped), _clean_text(fact[1], skipped), _clean_text(fact[2], skipped)
    if max(map(len, (content, *(fact or ())))) > MAX_CHARS:
        return as_turn(where, content, skipped, program=program, said_at=said_at, id=id)
    if any(map(is_blank, fact or (content,))):
        return ImportProblem(where=where, what="is empty, or has no visible character. Take it out.")
    return ImportedStatement(where=where, text=content, said_at=said_at, id=id, fact=fact, about=names, words=words)


def _clean_text(text: str, skipped: SkippedParts) -> str:
    return replace_surrogates(without_private(text), skipped) or ""


def as_turn(
    where: str,
    text: str,
    skipped: SkippedParts,
    *,
    program: str,
    said_at: datetime | None = None,
    id: str | None = None,
    session: str | None = None,
) -> ImportedTurn | ImportProblem:
    """Return another program's text as a turn of role `tool`: searchable, and never taken for the user's words.

    A text that is too large becomes a problem.
    """
    try:
        content = storable_text(without_private(text), skipped)
    except InvalidRecord as invalid:
        return ImportProblem(where=where, what=str(invalid))
    return ImportedTurn(
        where=where,
        role="tool",
        content=content,
        name=program,
        said_at=said_at,
        id=id or f"{program}-{hashlib.sha256(content.encode()).hexdigest()[:24]}",
        session=session,
    )


def short_id(id: str) -> str | None:
    return id if len(id) <= MAX_ID_CHARS else None
