"""L3 in SQLite: the versions of the page about the user. The file is a projection of the newest."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.regular_files import read_regular
from mcp_memory.core.types import PersonaVersion
from mcp_memory.store import files
from mcp_memory.store.protocol import Outcome
from mcp_memory.store.sql import jobs
from mcp_memory.store.sql.rows import from_ms, number_of, space_for, space_id, to_ms, touch

__all__ = ["commit", "current", "is_written", "put", "versions", "write_file"]


def current(con: apsw.Connection, space: str) -> PersonaVersion | None:
    return next(iter(_newest_first(con, space, limit=1)), None)


def versions(con: apsw.Connection, space: str) -> list[PersonaVersion]:
    return _newest_first(con, space, limit=-1)


def _newest_first(con: apsw.Connection, space: str, *, limit: int) -> list[PersonaVersion]:
    rows: Any = con.execute(
        "SELECT version, text, at, work, reason FROM persona WHERE space = ? ORDER BY version DESC LIMIT ?",
        (space_id(con, space), limit),
    )
    return [
        PersonaVersion(version=version, text=text, at=from_ms(at), by_model=work is not None, reason=reason or "")
        for version, text, at, work, reason in rows
    ]


def put(con: apsw.Connection, space: str, text: str, *, now: datetime, reason: str) -> int:
    """See `Store.put_persona`."""
    held = current(con, space)
    if held is not None and held.text == text:
        return held.version
    return _insert(con, space_for(con, space), text, now=now, reason=reason, work=None)


def commit(
    con: apsw.Connection, space: str, work: str, text: str, *, reason: str, upto: int, outcome: Outcome, now: datetime
) -> int:
    """See `Store.commit_persona`."""
    space_no = space_for(con, space)
    jobs.finish(con, space_no, work, outcome=outcome, now=now)
    jobs.move(con, space_no, "persona", upto, now=now)
    return _insert(con, space_no, text, now=now, reason=reason, work=number_of(work, "w"))


def _insert(con: apsw.Connection, space: int, text: str, *, now: datetime, reason: str, work: int | None) -> int:
    version: int = con.execute(
        "INSERT INTO persona (space, version, text, at, reason, work) SELECT ?1, coalesce(max(version), 0) + 1, ?2, ?3,"
        " ?4, ?5 FROM persona WHERE space = ?1 RETURNING version",
        (space, text, to_ms(now), reason, work),
    ).get
    touch(con, space, "persona")
    return version


def is_written(folder: Path, page: str) -> bool:
    """Tell whether the file has the page already."""
    try:
        return read_regular(folder / "persona.md") == page.encode("utf-8", "backslashreplace")
    except OSError:  # not there, or not readable: writing it anew says why
        return False


def write_file(folder: Path, page: str) -> None:
    """See `Store.write_persona_file`."""
    files.write_whole(folder / "persona.md", page.encode("utf-8", "backslashreplace"))
