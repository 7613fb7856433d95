"""The evidence of atoms: rows of `evidence`, each a turn, a span of its characters and the quote.

Quotes are checked against their turns before they are stored. Evidence from a forgotten turn is left out of answers;
its rows stay, so that the forgetting can be undone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Evidence
from mcp_memory.store.sql.transaction import Transaction, marks, number_of

__all__ = ["Quote", "add", "all_there", "checked", "confirm", "last_said", "of_atoms"]

Quote = tuple[int, int, int, str]
"""A row: the number of the turn, where the words begin and end, and they."""

_CERTAIN = 0.99  # the most that repetition can reach; only explicit statements are certain


def of_atoms(tx: Transaction, atoms: Sequence[int]) -> dict[int, list[Evidence]]:
    """Return the evidence of atoms, the first evidence first.

    If the evidence rows of an atom are lost, its first evidence is returned without the quote.
    """
    found = defaultdict[int, list[Evidence]](list)
    for atom, turn, start, end, quote in tx.all(
        "SELECT r.id, e.turn, e.span_start, e.span_end, e.quote FROM atom r"
        " JOIN evidence e ON e.space = r.space AND e.atom = r.id JOIN turn t ON t.space = e.space AND t.id = e.turn"
        f" WHERE r.space = :space AND r.id IN ({marks(atoms)}) AND t.tombstone IS NULL ORDER BY r.id,"
        " CASE WHEN e.turn = r.evidence AND e.span_start = r.span_start AND e.span_end = r.span_end THEN 0 ELSE 1 END,"
        " e.turn, e.span_start",
        *atoms,
    ):
        found[atom].append(Evidence(turn=f"t{turn}", span=(start, end), quote=quote))
    for atom in atoms:
        if atom not in found and (
            row := tx.one("SELECT evidence, span_start, span_end FROM atom WHERE space = :space AND id = ?", atom)
        ):
            found[atom].append(Evidence(turn=f"t{row[0]}", span=(row[1], row[2]), quote=""))
    return found


def checked(tx: Transaction, evidence: Sequence[Evidence]) -> list[Quote]:
    """Return evidence as rows, each once. Raises InvalidInput for a quote that is not at its place in the turn."""
    rows: list[Quote] = []
    for one in evidence:
        turn, (start, end) = number_of(one.turn, "t"), one.span
        content: str | None = tx.get("SELECT content FROM turn WHERE space = :space AND id = ?", turn)
        if content is None or not 0 <= start < end or content[start:end] != one.quote:
            raise InvalidInput(
                f"{one.turn} does not say {one_line(one.quote, 80)!r} at {start} to {end}. Quote its words exactly; "
                "nothing was stored."
            )
        rows.append((turn, start, end, one.quote))
    return list(dict.fromkeys(rows))


def all_there(tx: Transaction, evidence: Sequence[Evidence]) -> bool:
    """Tell whether none of the turns is forgotten."""
    turns = [number_of(one.turn, "t") for one in evidence]
    sql = f"SELECT 1 FROM turn WHERE space = :space AND id IN ({marks(turns)}) AND tombstone IS NOT NULL"
    return tx.one(sql, *turns) is None


def last_said(tx: Transaction, quotes: Sequence[Quote]) -> int:
    turns = [turn for turn, *_ in quotes]
    return tx.get(f"SELECT max(said_at) FROM turn WHERE space = :space AND id IN ({marks(turns)})", *turns)


def add(tx: Transaction, atom: int, quotes: Sequence[Quote]) -> bool:
    """Add quotes to an atom's evidence; tell whether any are new."""
    new = [
        tx.one(
            "INSERT INTO evidence (space, atom, turn, span_start, span_end, quote) VALUES (:space, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING RETURNING 1",
            *(atom, *quote),
        )
        for quote in quotes
    ]
    return any(new)


def confirm(tx: Transaction, atom: int, quotes: Sequence[Quote], *, confidence: float) -> None:
    """Add quotes of the same statement to an atom's evidence, and raise its confidence."""
    if add(tx, atom, quotes):
        known: float = tx.get("SELECT confidence FROM atom WHERE space = :space AND id = ?", atom)
        surer = max(known, min(_CERTAIN, 1 - (1 - known) * (1 - confidence)))
        tx.run("UPDATE atom SET confidence = ? WHERE space = :space AND id = ?", surer, atom)
        tx.touch(f"atom:a{atom}")
