"""Entities in SQLite: whom and what atoms are about, each under one chief name however it is called.

A name belongs to one entity, compared without case, width and white space. The one it was first given to keeps it, so
that a wrong guess never makes one person of two. The user is `user`, whatever else they are called.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import apsw

from mcp_memory.core.types import Entity
from mcp_memory.store.sql.rows import space_id

__all__ = ["KNOWN", "OF_ATOM", "chief", "key", "learn", "listed", "meet", "mention"]

_USER = "user"

OF_ATOM = (
    "(SELECT json_group_array(n.name ORDER BY n.id) FROM mention m JOIN entity_name n ON n.id = m.entity"
    " WHERE m.atom = r.id)"
)
"""Of a row `r` of atoms, whom and what it is about, as JSON."""

KNOWN = (
    "c.space = ? AND c.entity = c.id AND (NOT EXISTS (SELECT 1 FROM mention m WHERE m.entity = c.id)"
    " OR EXISTS (SELECT 1 FROM mention m JOIN atom r ON r.id = m.atom WHERE m.entity = c.id AND r.tombstone IS NULL))"
)
"""The condition on a row `c` for the chief name of an entity that was not forgotten with all that was said of it."""


def key(name: str) -> str:
    """Return a name as it is compared: `ＭＡＹＡ  Lopez` is `maya lopez`."""
    bare = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(bare.split())


def chief(con: apsw.Connection, space: int, name: str) -> str:
    """Return the chief name of the entity that has this name; one that is new is its own."""
    known = con.execute(
        "SELECT c.name FROM entity_name n JOIN entity_name c ON c.id = n.entity WHERE n.space = ? AND n.key = ?",
        (space, key(name)),
    ).get
    return known or _clean(name)


def meet(con: apsw.Connection, space: int, name: str) -> None:
    """Make an entity of a name that is new."""
    if key(name):
        _for(con, space, name)


def mention(con: apsw.Connection, space: int, atom: int, names: Iterable[str]) -> None:
    """Note whom and what an atom is about; new names become entities."""
    found = {_for(con, space, name) for name in names if key(name)}
    con.executemany("INSERT INTO mention (atom, entity) VALUES (?, ?)", [(atom, entity) for entity in sorted(found)])


def learn(con: apsw.Connection, space: int, aliases: Mapping[str, Sequence[str]]) -> None:
    """Give entities further names.

    A name that is new, with a further one that is an entity's chief name, is that entity's: `Maya Lopez`, also called
    `Maya`, is the Maya that is known.
    """
    for name, others in aliases.items():
        names = [one for one in (name, *others) if key(one)]
        if not key(name) or len(names) < 2:
            continue
        if _USER in map(key, names):
            _for(con, space, _USER)
        chiefs = (_of(con, space, other, only="entity = id") for other in others)
        entity = _of(con, space, name) or next(filter(None, chiefs), None) or _for(con, space, name)
        for one in names:
            if _of(con, space, one) is None:
                _insert(con, space, one, entity)


def listed(con: apsw.Connection, space: str, *, prefix: str, limit: int) -> list[Entity]:
    """See `Store.entities`."""
    rows: Any = con.execute(
        "SELECT c.name, (SELECT json_group_array(n.name ORDER BY n.id) FROM entity_name n"
        "  WHERE n.entity = c.id AND n.id <> c.id),"
        " (SELECT count(*) FROM mention m JOIN atom r ON r.id = m.atom"
        "  WHERE m.entity = c.id AND r.valid_to IS NULL AND r.tombstone IS NULL) AS held"
        f" FROM entity_name c WHERE {KNOWN} AND EXISTS ("
        "  SELECT 1 FROM entity_name n WHERE n.entity = c.id AND substr(n.key, 1, length(?2)) = ?2)"
        " ORDER BY held DESC, c.key LIMIT ?3",
        (space_id(con, space), key(prefix), limit),
    )
    return [Entity(name=name, aliases=tuple(json.loads(aliases)), atoms=atoms) for name, aliases, atoms in rows]


def _of(con: apsw.Connection, space: int, name: str, *, only: str = "1") -> int | None:
    """Return the entity that has this name."""
    return con.execute(f"SELECT entity FROM entity_name WHERE space = ? AND key = ? AND {only}", (space, key(name))).get


def _for(con: apsw.Connection, space: int, name: str) -> int:
    """Return the entity that has this name, made if it is new."""
    return _of(con, space, name) or _insert(con, space, name, None)


def _insert(con: apsw.Connection, space: int, name: str, entity: int | None) -> int:
    """Add a name of an entity, or of a new one."""
    number: int = con.execute(
        "INSERT INTO entity_name (space, key, name, entity) VALUES (?, ?, ?, ?) RETURNING id",
        (space, key(name), _clean(name), entity or 0),
    ).get
    if entity is None:
        con.execute("UPDATE entity_name SET entity = id WHERE id = ?", (number,))
    return number


def _clean(name: str) -> str:
    return _USER if key(name) == _USER else " ".join(name.split())
