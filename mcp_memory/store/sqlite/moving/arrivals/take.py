"""One transaction of rows that come in, each kind to those who know it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import TypeVar

import apsw

from mcp_memory.store import carried
from mcp_memory.store.sql import entities
from mcp_memory.store.sql.rows import space_for
from mcp_memory.store.sqlite.moving.arrivals import pages, places, tasks, words
from mcp_memory.store.sqlite.moving.arrivals.desk import Desk
from mcp_memory.store.sqlite.moving.carrying import home_id

__all__ = ["take_in"]

R = TypeVar("R", bound=carried.Row)


def take_in(
    con: apsw.Connection,
    folder: Path,
    space: str,
    rows: Sequence[carried.Row],
    *,
    of: carried.From,
    names: Mapping[str, str],
    now: datetime,
) -> carried.Arrival:
    """See `Store.take_in`."""
    desk = Desk(
        con=con,
        folder=folder,
        space=space,
        number=space_for(con, space),
        of=of,
        now=now,
        given=names,
        home=home_id(con),
    )
    for entity in _only(rows, carried.Entity):
        entities.meet(con, desk.number, entity.name)
        entities.learn(con, desk.number, {entity.name: entity.aliases})
    for ref in _only(rows, carried.Ref):
        words.ref(desk, ref)
    words.spoken(desk, [row for row in rows if isinstance(row, carried.Turn | carried.Atom)])
    for held in _only(rows, carried.Held):
        places.held(desk, held)
    records = defaultdict[int, list[carried.Record]](list)
    for record in _only(rows, carried.Record):
        records[record.canvas].append(record)
    for canvas in _only(rows, carried.Canvas):
        tasks.canvas(desk, canvas, records[canvas.number])
    for _, versions in groupby(_only(rows, carried.Scene), key=lambda one: one.slug):
        pages.scene(desk, list(versions))
    pages.persona(desk, _only(rows, carried.Persona))
    for cites in _only(rows, carried.Citation):
        places.citation(desk, cites)
    for session in _only(rows, carried.Session):
        places.session(desk, session)
    for progress in _only(rows, carried.Progress):
        places.progress(desk, progress)
    return carried.Arrival(
        names=desk.names,
        stored=desk.stored,
        known=desk.known,
        forgotten=desk.forgotten,
        changed=desk.changed,
        left=tuple(desk.left),
    )


def _only(rows: Sequence[carried.Row], kind: type[R]) -> list[R]:
    return [row for row in rows if isinstance(row, kind)]
