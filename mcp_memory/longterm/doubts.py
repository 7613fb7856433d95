"""Handles statements that a check labelled as doubtful.

When they are merged, the model sees them again, so that it can correct them. A correction is accepted if it
resolves the doubt and adds no value that its quotes lack. A statement that the model leaves unchanged keeps its label.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.text import one_line
from mcp_memory.language.sentences import is_negative
from mcp_memory.longterm.verification.values import DatedText, KnownValues
from mcp_memory.store.values import Draft, NewAtom, quarantines

_QUOTE = 300  # characters shown
_LONGEST = 600


def is_doubted(atom: NewAtom) -> bool:
    """Return whether a check labelled a statement without quarantining it."""
    return bool(atom.held) and not quarantines(atom.held)


def doubt_of(atom: NewAtom, said_at: Mapping[str, datetime]) -> str:
    """Return what to check about a statement, with its quotes; empty without a doubt."""
    if not is_doubted(atom):
        return ""
    missing = ", ".join(_missing(atom, atom.text, said_at)[:3]) if "other_value" in atom.held else "its negation"
    quotes = " … ".join(evidence.quote for evidence in atom.evidence)
    return f"check {missing or 'its values'} against: {one_line(quotes, _QUOTE)}"


def with_corrections(
    drafts: Mapping[str, Draft], texts: Mapping[str, str], said_at: Mapping[str, datetime]
) -> dict[str, Draft]:
    """Return the drafts. A labelled draft gets its new text from `texts` (by draft id) if that resolves the doubt."""
    return {
        id: replace(draft, atom=_corrected(draft.atom, texts.get(id, ""), said_at)) if is_doubted(draft.atom) else draft
        for id, draft in drafts.items()
    }


def _corrected(atom: NewAtom, text: str, said_at: Mapping[str, datetime]) -> NewAtom:
    text = one_line(text, _LONGEST + 1)
    if not text or len(text) > _LONGEST:
        return atom
    before, after = set(_missing(atom, atom.text, said_at)), set(_missing(atom, text, said_at))
    is_resolved = after < before if "other_value" in atom.held else is_negative(text) != is_negative(atom.text)
    return replace(atom, text=text, held=()) if is_resolved and after <= before else atom


def _missing(atom: NewAtom, text: str, said_at: Mapping[str, datetime]) -> list[str]:
    quotes = [DatedText(evidence.quote, said_at.get(evidence.turn)) for evidence in atom.evidence]
    return KnownValues(quotes, atom.entities).missing(text)
