"""How far a forgetting reaches: all that goes with what was named, computed and nothing changed.

What was told goes with its note, what was drawn from turns with the last of them. The dry run and the deed ask this
one function, so that what is shown is what is done.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import apsw

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.store.forgetting import Reach

__all__ = ["of"]

# Notes of these atoms that no other one rests on.
_NOTES = (
    "SELECT DISTINCT t.id FROM evidence e JOIN turn t ON t.id = e.turn"
    " WHERE e.atom IN (SELECT value FROM json_each(?1)) AND t.role = 'note' AND t.tombstone IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM evidence o JOIN atom a ON a.id = o.atom"
    "  WHERE o.turn = t.id AND a.tombstone IS NULL AND a.id NOT IN (SELECT value FROM json_each(?1)))"
)
# Atoms that rest on nothing but these turns.
_GROUNDLESS = (
    "SELECT DISTINCT a.id FROM evidence e JOIN atom a ON a.id = e.atom"
    " WHERE e.turn IN (SELECT value FROM json_each(?1)) AND a.tombstone IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM evidence o JOIN turn t ON t.id = o.turn"
    "  WHERE o.atom = a.id AND t.tombstone IS NULL AND t.id NOT IN (SELECT value FROM json_each(?1)))"
)


def of(con: apsw.Connection, space: int | None, ids: Sequence[str]) -> Reach:
    """See `Store.reach`."""
    wanted = list(dict.fromkeys(id.strip() for id in ids))
    if not wanted:
        raise InvalidInput("There is nothing to forget: name ids such as t12, a5 or r-9f2c1a7b3d4e.")
    missing = [id for id in wanted if not _there(con, space, id)]
    if missing:
        shown = ", ".join(one_line(id, 40) for id in missing[:10])
        raise NotFound(f"Not in this space, or forgotten already: {shown}. Nothing was forgotten; call again without.")
    named_turns = {int(id[1:]) for id in wanted if id[0] == "t"}
    named_atoms = {int(id[1:]) for id in wanted if id[0] == "a"}
    refs = [id for id in wanted if id[0] == "r"]
    turns, atoms = set(named_turns), set(named_atoms)
    while True:
        notes, groundless = _numbers(con, _NOTES, atoms), _numbers(con, _GROUNDLESS, turns)
        if notes <= turns and groundless <= atoms:
            break
        turns |= notes
        atoms |= groundless
    notes = _numbers(con, "SELECT id FROM turn WHERE role = 'note' AND id IN (SELECT value FROM json_each(?))", turns)
    return Reach(
        turns=_ids("t", turns - notes),
        atoms=_ids("a", atoms),
        refs=refs,
        notes=_ids("t", notes),
        along=_ids("a", atoms - named_atoms),
        facts=_count(con, "fact WHERE tombstone IS NULL AND atom IN", atoms),
        records=_count(con, "record WHERE space = ? AND ref IN", refs, space),
        scenes=_scenes(con, space, atoms),
        said_in=_ids("t", _said_in(con, atoms) - turns),
    )


def _there(con: apsw.Connection, space: int | None, id: str) -> bool:
    if id.startswith("r-"):
        sql, key = "SELECT 1 FROM ref WHERE space = ? AND id = ? AND tombstone IS NULL", id
    elif id[:1] in ("t", "a") and id[1:].isdecimal() and id.isascii():
        table = "turn" if id[0] == "t" else "atom"
        sql, key = f"SELECT 1 FROM {table} WHERE space = ? AND id = ? AND tombstone IS NULL", int(id[1:19])
    else:
        raise InvalidInput(f"{one_line(id, 40)!r} is not an id. Ids look like t12, a5 or r-9f2c1a7b3d4e.")
    return con.execute(sql, (space, key)).get is not None


def _said_in(con: apsw.Connection, atoms: Collection[int]) -> set[int]:
    """Return the turns, still there, whose words the atoms rest on."""
    sql = (
        "SELECT DISTINCT e.turn FROM evidence e JOIN turn t ON t.id = e.turn"
        " WHERE t.tombstone IS NULL AND t.role <> 'note' AND e.atom IN (SELECT value FROM json_each(?))"
    )
    return _numbers(con, sql, atoms)


def _scenes(con: apsw.Connection, space: int | None, atoms: Collection[int]) -> list[str]:
    rows: Any = con.execute(
        "SELECT s.slug FROM scene s WHERE s.space = ? AND s.action <> 'delete'"
        " AND s.version = (SELECT max(version) FROM scene WHERE space = s.space AND slug = s.slug)"
        " AND EXISTS (SELECT 1 FROM json_each(s.atoms) WHERE value IN (SELECT value FROM json_each(?)))"
        " ORDER BY s.slug",
        (space, json.dumps(_ids("a", atoms))),
    )
    return [slug for (slug,) in rows]


def _numbers(con: apsw.Connection, sql: str, of: Collection[int]) -> set[int]:
    return {number for (number,) in con.execute(sql, (json.dumps(sorted(of)),))} if of else set()


def _count(con: apsw.Connection, what: str, of: Collection[object], *values: int | None) -> int:
    sql = f"SELECT count(*) FROM {what} (SELECT value FROM json_each(?))"
    return con.execute(sql, (*values, json.dumps(sorted(of, key=str)))).get


def _ids(prefix: str, numbers: Collection[int]) -> list[str]:
    return [f"{prefix}{number}" for number in sorted(numbers)]
