"""Which turns and atoms name a tool result: rows of `citation`, made as turns and atoms are stored.

Only what is there is cited: a ref or a node of the same space. A node stands for the results of its records. What was
forgotten, on either side, is given to nobody; the rows stay, for the undoing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Citation
from mcp_memory.store.naming import Named, named
from mcp_memory.store.sql.rows import number_of, space_id

__all__ = ["by_sources", "note", "note_given", "of_ref"]

_LIVE = (
    "EXISTS (SELECT 1 FROM ref r WHERE r.space = c.space AND r.id = c.ref AND r.tombstone IS NULL)"
    " AND CASE substr(c.source, 1, 1)"
    " WHEN 't' THEN EXISTS (SELECT 1 FROM turn t WHERE t.id = CAST(substr(c.source, 2) AS INTEGER)"
    "  AND t.tombstone IS NULL)"
    " ELSE EXISTS (SELECT 1 FROM atom a WHERE a.id = CAST(substr(c.source, 2) AS INTEGER) AND a.tombstone IS NULL) END"
)


def note(con: apsw.Connection, space: int, source: str, text: str) -> None:
    """Keep what a text names of the results that there are."""
    _insert(con, space, source, [one for name in named(text) for one in _found(con, space, name)])


def note_given(con: apsw.Connection, space: int, source: str, given: Sequence[str]) -> None:
    """Keep what a source was said to cite. NotFound names what is none or is not there."""
    rows: list[tuple[str, tuple[int, int] | None]] = []
    for one in given:
        found = [row for name in named(one) for row in _found(con, space, name)]
        if not found:
            raise NotFound(
                f"There is no result {one_line(one, 60)!r} to cite. Name a ref, its lines or a node: "
                "r-9f2c1a7b3d4e, r-9f2c1a7b3d4e:120-134, 003-N4. Nothing was stored."
            )
        rows += found
    _insert(con, space, source, rows)


def by_sources(con: apsw.Connection, space: str, sources: Sequence[str]) -> dict[str, list[Citation]]:
    """See `Store.citations`."""
    number = space_id(con, space)
    if not sources or con.execute("SELECT 1 FROM citation WHERE space = ? LIMIT 1", (number,)).get is None:
        return {}
    found = {source: _cited(con, number, source) for source in dict.fromkeys(sources)}
    return {source: cites for source, cites in found.items() if cites}


def _cited(con: apsw.Connection, space: int | None, source: str) -> list[Citation]:
    """Return what a source names, and an atom's turns; the same lines once, by whom they are named first."""
    sources = [source]
    if source.startswith("a"):
        turns: Any = con.execute(
            "SELECT DISTINCT turn FROM evidence WHERE atom = ? ORDER BY turn", (number_of(source, "a"),)
        )
        sources += [f"t{turn}" for (turn,) in turns]
    found: dict[object, Citation] = {}
    for one in (one for name in sources for one in _rows(con, space, "source", name)):
        found.setdefault((one.ref, one.lines), one)
    return list(found.values())


def of_ref(con: apsw.Connection, space: str, ref: str) -> list[Citation]:
    """See `Store.cited_by`."""
    direct = _rows(con, space_id(con, space), "ref", ref)
    resting: list[Citation] = []
    for one in direct:
        if one.source.startswith("t"):
            atoms: Any = con.execute(
                "SELECT DISTINCT e.atom FROM evidence e JOIN atom a ON a.id = e.atom"
                " WHERE e.turn = ? AND a.tombstone IS NULL ORDER BY e.atom",
                (number_of(one.source, "t"),),
            )
            resting += [Citation(source=f"a{atom}", ref=one.ref, lines=one.lines) for (atom,) in atoms]
    return list(dict.fromkeys([*direct, *resting]))


def _rows(con: apsw.Connection, space: int | None, column: str, value: str) -> list[Citation]:
    rows: Any = con.execute(
        f"SELECT c.source, c.ref, c.first_line, c.last_line FROM citation c WHERE c.space = ? AND c.{column} = ?"
        f" AND {_LIVE} ORDER BY c.source, c.ref, c.first_line",
        (space, value),
    )
    return [
        Citation(source=source, ref=ref, lines=(first, last) if first else None) for source, ref, first, last in rows
    ]


def _found(con: apsw.Connection, space: int, name: Named) -> list[tuple[str, tuple[int, int] | None]]:
    if name.target.startswith("r-"):
        sql = "SELECT id FROM ref WHERE space = ? AND id = ? AND tombstone IS NULL"
    else:
        sql = "SELECT DISTINCT ref FROM record WHERE space = ? AND node = ? ORDER BY ref"
    return [(str(ref), name.lines) for (ref,) in con.execute(sql, (space, name.target))]


def _insert(con: apsw.Connection, space: int, source: str, rows: Sequence[tuple[str, tuple[int, int] | None]]) -> None:
    con.executemany(
        "INSERT INTO citation (space, source, ref, first_line, last_line) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        [(space, source, ref, *(lines or (0, 0))) for ref, lines in rows],
    )
