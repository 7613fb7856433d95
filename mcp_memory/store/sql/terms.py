"""The index terms of rows: those of `words.index_terms`, and a mark on turns that state a rule."""

from __future__ import annotations

from mcp_memory.core.text import spoken
from mcp_memory.language.standing_rules import standing_rules
from mcp_memory.language.words import index_terms
from mcp_memory.store.values import Layer

__all__ = ["INDEXED", "RULE", "of_atom", "of_row", "of_spoken", "of_turn"]

RULE = "\ue000rule"
"""A term that no text has: it marks turns in which somebody states a standing rule."""

INDEXED = {"turn": "tombstone IS NULL AND role <> 'note'", "atom": "tombstone IS NULL"}
"""The rows of a layer that the word index holds. A note is found through its atom."""


def of_turn(content: str, name: str | None) -> list[str]:
    return of_spoken(spoken(content, name))


def of_row(layer: Layer, text: str, name: str | None) -> list[str]:
    """Return the terms of a row's text; only turns have a name."""
    return of_turn(text, name) if layer == "turn" else of_atom(text)


def of_spoken(text: str) -> list[str]:
    """Return the terms of a turn in the form of `text.spoken`, with a mark if it states a standing rule."""
    found = index_terms(text)
    return [*found, RULE] if standing_rules(text) else found


def of_atom(text: str) -> list[str]:
    return index_terms(text)
