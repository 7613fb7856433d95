"""Index terms in SQLite: an FTS5 table a layer, of the terms of `text.index_terms`; `postings` reads them."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from mcp_memory.core.text import spoken
from mcp_memory.language.standing_rules import standing_rules
from mcp_memory.language.words import index_terms
from mcp_memory.store.protocol import Layer
from mcp_memory.store.sqlite.finding.term_ranges import cover

__all__ = ["RULE", "delete", "insert", "of_atom", "of_row", "of_spoken", "of_turn", "put"]

RULE = "\ue000rule"
"""A term that no text has: it marks turns in which somebody states a standing rule."""


def of_turn(content: str, name: str | None) -> list[str]:
    return of_spoken(spoken(content, name))


def of_row(layer: Layer, text: str, name: str | None) -> list[str]:
    """Return the terms of a row's text; only turns have a name."""
    return of_turn(text, name) if layer == "turn" else of_atom(text)


def of_spoken(text: str) -> list[str]:
    """Return the terms of a turn as `text.spoken` gives it, with the mark of a standing rule where it states one."""
    found = index_terms(text)
    return [*found, RULE] if standing_rules(text) else found


def of_atom(text: str) -> list[str]:
    return index_terms(text)


def put(con: apsw.Connection, layer: Layer, space: int, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Index rows that follow each other, given as (number, terms)."""
    if rows:
        insert(con, layer, space, rows)
        cover(con, layer, rows[0][0], rows[-1][0])


def insert(con: apsw.Connection, layer: Layer, space: int, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    con.executemany(
        f"INSERT INTO {layer}_terms (rowid, space, terms) VALUES (?, ?, ?)",
        [(number, f"s{space}", " ".join(found)) for number, found in rows],
    )


def delete(con: apsw.Connection, layer: Layer, number: int) -> None:
    con.execute(f"DELETE FROM {layer}_terms WHERE rowid = ?", (number,))
