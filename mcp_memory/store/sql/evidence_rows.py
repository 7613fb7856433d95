"""The words that atoms rest on: rows of `evidence`, each a turn, a span of it and what stands there.

What is stored was checked against the turn. Words of a forgotten turn are not given; the rows stay, for the undoing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Evidence
from mcp_memory.store.sql.rows import marks, number_of, touch

__all__ = ["OF_ATOM", "Words", "add", "all_there", "checked", "confirm", "last_said", "read"]

Words = tuple[int, int, int, str]
"""A row: the number of the turn, where the words begin and end, and they."""

OF_ATOM = (
    "(SELECT iif(count(*) > 0, json_group_array(json_array(e.turn, e.span_start, e.span_end, e.quote) ORDER BY"
    "  (e.turn, e.span_start, e.span_end) = (r.evidence, r.span_start, r.span_end) DESC, e.turn, e.span_start),"
    "  json_array(json_array(r.evidence, r.span_start, r.span_end, '')))"
    " FROM evidence e JOIN turn t ON t.id = e.turn WHERE e.atom = r.id AND t.tombstone IS NULL)"
)
"""Of a row `r` of atoms, its words as `read` takes them, the first evidence first: where their rows are lost, without
the quote."""

_CERTAIN = 0.99  # as sure as saying it again can make; what was told explicitly is sure


def read(words: str) -> list[Evidence]:
    """Return what `OF_ATOM` gave."""
    return [Evidence(turn=f"t{turn}", span=(start, end), quote=quote) for turn, start, end, quote in json.loads(words)]


def checked(con: apsw.Connection, space: int, evidence: Sequence[Evidence]) -> list[Words]:
    """Return evidence as rows, each once. Raises InvalidInput for words that do not stand where they are said to."""
    rows: list[Words] = []
    for one in evidence:
        turn, (start, end) = number_of(one.turn, "t"), one.span
        content = con.execute("SELECT content FROM turn WHERE id = ? AND space = ?", (turn, space)).get
        if content is None or not 0 <= start < end or content[start:end] != one.quote:
            raise InvalidInput(
                f"{one.turn} does not say {one_line(one.quote, 80)!r} at {start} to {end}. Quote its words exactly; "
                "nothing was stored."
            )
        rows.append((turn, start, end, one.quote))
    return list(dict.fromkeys(rows))


def all_there(con: apsw.Connection, evidence: Sequence[Evidence]) -> bool:
    """Tell whether none of the turns was forgotten."""
    turns = [number_of(one.turn, "t") for one in evidence]
    sql = f"SELECT 1 FROM turn WHERE id IN ({marks(turns)}) AND tombstone IS NOT NULL"
    return con.execute(sql, turns).get is None


def last_said(con: apsw.Connection, words: Sequence[Words]) -> int:
    turns = [turn for turn, *_ in words]
    return con.execute(f"SELECT max(said_at) FROM turn WHERE id IN ({marks(turns)})", turns).get


def add(con: apsw.Connection, atom: int, words: Sequence[Words]) -> bool:
    """Let an atom rest on further words; tell whether any are new."""
    before = con.total_changes()
    con.executemany(
        "INSERT INTO evidence (atom, turn, span_start, span_end, quote) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(atom, *row) for row in words],
    )
    return con.total_changes() > before


def confirm(con: apsw.Connection, space: int, atom: int, words: Sequence[Words], *, confidence: float) -> None:
    """Let an atom rest on words that say the same, and be the surer for it."""
    if add(con, atom, words):
        con.execute(
            "UPDATE atom SET confidence = max(confidence, min(?, 1 - (1 - confidence) * (1 - ?))) WHERE id = ?",
            (_CERTAIN, confidence, atom),
        )
        touch(con, space, f"atom:a{atom}")
