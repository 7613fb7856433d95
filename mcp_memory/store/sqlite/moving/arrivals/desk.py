"""What is known of rows that come in: by which origins, and how they are called here."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.types import Stage
from mcp_memory.store import carried
from mcp_memory.store.sql.rows import marks, space_for, space_id, to_ms
from mcp_memory.store.sqlite.moving.carrying import home_id

__all__ = ["GONE", "Desk", "known_as", "note_origins"]

GONE = ""
"""How a row is called here that was forgotten, and never was here."""

_OWN_TIME = {
    "t": "SELECT learned_at FROM turn WHERE space = ? AND id = ?",
    "a": "SELECT learned_at FROM atom WHERE space = ? AND id = ?",
    "p": "SELECT at FROM persona WHERE space = ? AND version = ?",
    "x": "SELECT at FROM tombstone WHERE space = ? AND id = ?",
    "k": "SELECT timestamp FROM record WHERE space = ? AND id = ?",
    "e": "SELECT at FROM canvas_edit WHERE space = ? AND id = ?",
    "c": (
        "SELECT min(at) FROM (SELECT * FROM (SELECT timestamp AS at FROM record WHERE space = ?1 AND canvas = ?2"
        "  ORDER BY id LIMIT 1) UNION ALL"
        " SELECT * FROM (SELECT at FROM canvas_edit WHERE space = ?1 AND canvas = ?2 ORDER BY id LIMIT 1))"
    ),
    "s": "SELECT at FROM scene WHERE space = ?1 AND slug || '/' || version = ?2",
}
_OWN = re.compile(
    r"(?P<id>(?P<kind>[taxpkec])(?P<number>\d{1,18})|(?P<scene>s):(?P<page>.+/\d{1,18}))@(?P<at>-?\d{1,18})", re.ASCII
)


@dataclass(kw_only=True)
class Desk:
    """What taking rows in works with, in one transaction; `names` are those that arrived before."""

    con: apsw.Connection
    folder: Path
    space: str
    number: int
    of: carried.From
    now: datetime
    given: Mapping[str, str]
    home: str
    names: dict[str, str] = field(default_factory=dict[str, str])
    stored: int = 0
    known: int = 0
    forgotten: int = 0
    changed: int = 0
    left: list[str] = field(default_factory=list[str])
    _works: dict[Stage, int] = field(default_factory=dict[Stage, int])

    @property
    def is_own(self) -> bool:
        """Whether the rows left this very space."""
        return self.of == carried.From(self.home, self.space)

    def name(self, id: str) -> str:
        """Return how a row is called here; nothing where it is not here."""
        return self.names.get(id) or self.given.get(id, GONE)

    def find(self, id: str, at: datetime | None, origins: Sequence[str]) -> str | None:
        """Return how a row is called here that arrived before, GONE where it was forgotten; None for a new one."""
        keys = (carried.origin(self.of, id, at), *origins)
        found = known_as(self.con, self.space, keys)
        return next((found[key] for key in keys if key in found), None)

    def note(self, id: str, at: datetime | None, origins: Sequence[str], here: str) -> None:
        """Remember where a row came from, and how it is called here; what is not here may be another time."""
        self.names[id] = here
        if here != GONE and not self.is_own:
            keys = (carried.origin(self.of, id, at), *origins)
            note_origins(self.con, self.space, dict.fromkeys(keys, here))

    def meet(self, here: str) -> None:
        """Count a row that arrived before: one that was forgotten since is kept out, not here."""
        table, key = {"t": ("turn", here[1:]), "a": ("atom", here[1:])}.get(here[:1], ("ref", here))
        sql = f"SELECT 1 FROM {table} WHERE space = ? AND id = ? AND tombstone IS NOT NULL"
        if self.con.execute(sql, (self.number, key)).get is not None:
            self.forgotten += 1
        elif here != GONE:  # those are told by their names
            self.known += 1

    def work(self, stage: Stage) -> int:
        """Return a work that is done and asked nobody: what came in was made by a model, but not here."""
        if stage not in self._works:
            at = to_ms(self.now)
            self._works[stage] = self.con.execute(
                "INSERT INTO work (space, stage, basis, state, holder, until, attempts, at, done_at, outcome)"
                " VALUES (?, ?, '{}', 'done', '', ?, 0, ?, ?, '{}') RETURNING id",
                (self.number, stage, at, at, at),
            ).get
        return self._works[stage]


def known_as(con: apsw.Connection, space: str, origins: Sequence[str]) -> dict[str, str]:
    """See `Store.known_as`."""
    number = space_id(con, space)
    if number is None or not origins:
        return {}
    rows = con.execute(
        f"SELECT origin, id FROM origin WHERE space = ? AND origin IN ({marks(origins)})", (number, *origins)
    )
    found: dict[str, str] = {}
    for origin, id in rows.fetchall():
        if (here := _standing(con, number, str(id))) is not None:
            found[str(origin)] = here
    mine = carried.origin(carried.From(home_id(con), space), "")
    for origin in origins:
        if origin.startswith(mine) and (id := _own(con, number, origin.removeprefix(mine))):
            found[origin] = id
    return found


def note_origins(con: apsw.Connection, space: str, names: Mapping[str, str]) -> None:
    """See `Store.note_origins`."""
    number = space_for(con, space)
    mine = carried.origin(carried.From(home_id(con), space), "")
    con.executemany(
        "INSERT INTO origin (space, origin, id) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET id = excluded.id",
        [(number, origin, id) for origin, id in names.items() if not origin.startswith(mine)],
    )


def _standing(con: apsw.Connection, space: int, id: str) -> str | None:
    """Return how a row is called here: GONE where a tombstone of elsewhere stands for it that was not undone since."""
    if not id.startswith(carried.gone_by("")):
        return id
    tombstone = id.removeprefix(carried.gone_by(""))
    held = con.execute("SELECT id FROM origin WHERE space = ? AND origin = ?", (space, tombstone)).get
    return None if held == carried.UNDONE else GONE


def _own(con: apsw.Connection, space: int, tail: str) -> str | None:
    """Return the id of a row of this space that an origin names, if it is that row and no other of the same number."""
    if tail.startswith("r-"):
        return con.execute("SELECT id FROM ref WHERE space = ? AND id = ?", (space, tail)).get
    found = _OWN.fullmatch(tail)
    if found is None:
        return None
    which = found["page"] or int(found["number"])
    at: Any = con.execute(_OWN_TIME[found["kind"] or "s"], (space, which)).get
    if isinstance(at, str):
        at = to_ms(datetime.fromisoformat(at))
    return found["id"] if at == int(found["at"]) else None
