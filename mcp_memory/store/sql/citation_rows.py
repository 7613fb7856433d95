"""Citations of tool results by turns and atoms: rows of `citation`, made when turns and atoms are stored.

Only existing refs and nodes of the same space are stored as citations; a node means the results of its records.
Citations of or by forgotten rows are left out of answers, but stay in the table so that forgetting can be undone.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Citation
from mcp_memory.store.naming import NamedResult, named
from mcp_memory.store.sql.transaction import Transaction, number_of

__all__ = ["by_sources", "note", "note_given", "of_ref"]

Lines = tuple[int, int] | None


def note(tx: Transaction, source: str, text: str) -> None:
    """Store citations of all existing results that a text names."""
    _insert(tx, source, [one for name in named(text) for one in _found(tx, name)])


def note_given(tx: Transaction, source: str, given: Sequence[str]) -> None:
    """Store the citations that a caller gave for a source. NotFound names one that is malformed or unknown."""
    rows: list[tuple[str, Lines]] = []
    for one in given:
        found = [row for name in named(one) for row in _found(tx, name)]
        if not found:
            raise NotFound(
                f"There is no result {one_line(one, 60)!r} to cite. Name a ref, its lines or a node: "
                "r-9f2c1a7b3d4e, r-9f2c1a7b3d4e:120-134, 003-N4. Nothing was stored."
            )
        rows += found
    _insert(tx, source, rows)


def by_sources(tx: Transaction, sources: Sequence[str]) -> dict[str, list[Citation]]:
    if not sources or not tx.one("SELECT 1 FROM citation WHERE space = :space LIMIT 1"):
        return {}
    found = {source: _cited(tx, source) for source in dict.fromkeys(sources)}
    return {source: cites for source, cites in found.items() if cites}


def _cited(tx: Transaction, source: str) -> list[Citation]:
    """Return the citations of a source; for an atom, also those of its turns. Equal lines are listed once."""
    sources = [source]
    if source.startswith("a"):
        turns = tx.column(
            "SELECT DISTINCT turn FROM evidence WHERE space = :space AND atom = ? ORDER BY turn",
            number_of(source, "a"),
        )
        sources += [f"t{turn}" for turn in turns]
    found: dict[object, Citation] = {}
    for one in (one for name in sources for one in _rows(tx, "source", name)):
        found.setdefault((one.ref, one.lines), one)
    return list(found.values())


def of_ref(tx: Transaction, ref: str) -> list[Citation]:
    direct = _rows(tx, "ref", ref)
    derived: list[Citation] = []
    for one in direct:
        if one.source.startswith("t"):
            atoms = tx.column(
                "SELECT DISTINCT e.atom FROM evidence e JOIN atom a ON a.space = e.space AND a.id = e.atom"
                " WHERE e.space = :space AND e.turn = ? AND a.tombstone IS NULL ORDER BY e.atom",
                number_of(one.source, "t"),
            )
            derived += [Citation(source=f"a{atom}", ref=one.ref, lines=one.lines) for atom in atoms]
    return list(dict.fromkeys([*direct, *derived]))


def _rows(tx: Transaction, column: str, value: str) -> list[Citation]:
    rows = tx.all(
        "SELECT c.source, c.ref, c.first_line, c.last_line FROM citation c"
        " JOIN ref r ON r.space = c.space AND r.id = c.ref"
        f" WHERE c.space = :space AND c.{column} = ? AND r.tombstone IS NULL ORDER BY c.source, c.ref, c.first_line",
        value,
    )
    found = [Citation(source=source, ref=ref, lines=(first, last) if first else None)
             for source, ref, first, last in rows]  # fmt: skip
    live = {source: _is_live(tx, source) for source in {one.source for one in found}}
    return [one for one in found if live[one.source]]


def _is_live(tx: Transaction, source: str) -> bool:
    table = "turn" if source.startswith("t") else "atom"
    sql = f"SELECT 1 FROM {table} WHERE space = :space AND id = ? AND tombstone IS NULL"
    return tx.one(sql, int(source[1:])) is not None


def _found(tx: Transaction, name: NamedResult) -> list[tuple[str, Lines]]:
    if name.target.startswith("r-"):
        sql = "SELECT id FROM ref WHERE space = :space AND id = ? AND tombstone IS NULL"
    else:
        sql = "SELECT DISTINCT ref FROM record WHERE space = :space AND node = ? ORDER BY ref"
    return [(ref, name.lines) for ref in tx.column(sql, name.target)]


def _insert(tx: Transaction, source: str, rows: Sequence[tuple[str, Lines]]) -> None:
    tx.many(
        "INSERT INTO citation (space, source, ref, first_line, last_line) VALUES (:space, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        [(source, ref, *(lines or (0, 0))) for ref, lines in rows],
    )
