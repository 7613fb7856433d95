"""The reach of a forgetting: every row that is forgotten with the named ids. Reads only, changes nothing.

An explicit statement is forgotten with its note, an extracted one with the last of its evidence turns. The dry run and
the forgetting both call this function, so the preview always matches the result.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.store.forgetting import Reach
from mcp_memory.store.sql.transaction import Transaction, named_rows

__all__ = ["of"]


def of(tx: Transaction, ids: Sequence[str]) -> Reach:
    wanted = list(dict.fromkeys(id.strip() for id in ids))
    if not wanted:
        raise InvalidInput("There is nothing to forget: name ids such as t12, a5 or r-9f2c1a7b3d4e.")
    missing = [id for id in wanted if not _is_there(tx, id)]
    if missing:
        shown = ", ".join(one_line(id, 40) for id in missing[:10])
        raise NotFound(f"Not in this space, or forgotten already: {shown}. Nothing was forgotten; call again without.")
    named_turns = {int(id[1:]) for id in wanted if id[0] == "t"}
    named_atoms = {int(id[1:]) for id in wanted if id[0] == "a"}
    refs = [id for id in wanted if id[0] == "r"]
    turns, atoms = set(named_turns), set(named_atoms)
    while True:
        notes, groundless = _notes(tx, atoms), _groundless(tx, turns)
        if notes <= turns and groundless <= atoms:
            break
        turns |= notes
        atoms |= groundless
    notes = _numbers(tx, "SELECT id FROM turn WHERE space = :space AND role = 'note' AND id IN ({})", turns)
    return Reach(
        turns=named_rows(sorted(turns - notes), "t"),
        atoms=named_rows(sorted(atoms), "a"),
        refs=refs,
        notes=named_rows(sorted(notes), "t"),
        along=named_rows(sorted(atoms - named_atoms), "a"),
        facts=len(tx.among("SELECT atom FROM fact WHERE space = :space AND tombstone IS NULL AND atom IN ({})", atoms)),
        records=len(tx.among("SELECT id FROM record WHERE space = :space AND ref IN ({})", refs)),
        scenes=_scenes(tx, set(named_rows(atoms, "a"))),
        said_in=named_rows(sorted(_said_in(tx, atoms) - turns), "t"),
    )


def _is_there(tx: Transaction, id: str) -> bool:
    if id.startswith("r-"):
        return tx.one("SELECT 1 FROM ref WHERE space = :space AND id = ? AND tombstone IS NULL", id) is not None
    if id[:1] not in ("t", "a") or not id[1:].isdecimal() or not id.isascii():
        raise InvalidInput(f"{one_line(id, 40)!r} is not an id. Ids look like t12, a5 or r-9f2c1a7b3d4e.")
    table = "turn" if id[0] == "t" else "atom"
    sql = f"SELECT 1 FROM {table} WHERE space = :space AND id = ? AND tombstone IS NULL"
    return tx.one(sql, int(id[1:19])) is not None


def _notes(tx: Transaction, atoms: Collection[int]) -> set[int]:
    """Return the notes of these atoms that are evidence of no other atom."""
    notes = _numbers(
        tx,
        "SELECT DISTINCT t.id FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " WHERE e.space = :space AND t.role = 'note' AND t.tombstone IS NULL AND e.atom IN ({})",
        atoms,
    )
    also = tx.among(
        "SELECT e.turn, e.atom FROM evidence e JOIN atom a ON a.space = e.space AND a.id = e.atom"
        " WHERE e.space = :space AND a.tombstone IS NULL AND e.turn IN ({})",
        notes,
    )
    return notes - {turn for turn, atom in also if atom not in atoms}


def _groundless(tx: Transaction, turns: Collection[int]) -> set[int]:
    """Return the atoms whose evidence is only in these turns."""
    atoms = _numbers(
        tx,
        "SELECT DISTINCT a.id FROM evidence e JOIN atom a ON a.space = e.space AND a.id = e.atom"
        " WHERE e.space = :space AND a.tombstone IS NULL AND e.turn IN ({})",
        turns,
    )
    also = tx.among(
        "SELECT e.atom, e.turn FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " WHERE e.space = :space AND t.tombstone IS NULL AND e.atom IN ({})",
        atoms,
    )
    return atoms - {atom for atom, turn in also if turn not in turns}


def _said_in(tx: Transaction, atoms: Collection[int]) -> set[int]:
    """Return the turns with the words of the atoms' evidence; notes and forgotten turns are left out."""
    return _numbers(
        tx,
        "SELECT DISTINCT e.turn FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " WHERE e.space = :space AND t.tombstone IS NULL AND t.role <> 'note' AND e.atom IN ({})",
        atoms,
    )


def _scenes(tx: Transaction, atoms: set[str]) -> list[str]:
    rows = tx.all(
        "SELECT s.slug, s.atoms FROM scene s WHERE s.space = :space AND s.action <> 'delete'"
        " AND s.version = (SELECT max(version) FROM scene WHERE space = s.space AND slug = s.slug) ORDER BY s.slug"
    )
    return [slug for slug, named in rows if not atoms.isdisjoint(json.loads(named))]


def _numbers(tx: Transaction, sql: str, of: Collection[int]) -> set[int]:
    return {number for (number,) in tx.among(sql, sorted(of))}
