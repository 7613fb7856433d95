"""Rows of spaces and sessions that are gone, given back by the journals that name what belongs to them.

Other rows know a space and a session by number alone, and the files by name alone. A line of a folder and the row of
the same number and hash are the same thing: that tells which name a number had. Where nothing tells it, nothing is
done.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.store import files
from mcp_memory.store.sqlite import linefiles
from mcp_memory.store.sqlite.forms import LINE_FILES, is_line_file
from mcp_memory.store.sqlite.rows import WITH_A_SPACE

__all__ = ["give_back", "nameless"]


def nameless(con: apsw.Connection) -> list[int]:
    """Return the numbers of spaces that have rows, and no name."""
    numbers = " UNION ".join(f"SELECT DISTINCT space FROM {table}" for table in WITH_A_SPACE)
    rows = con.execute(f"SELECT space FROM ({numbers}) WHERE space NOT IN (SELECT id FROM space) ORDER BY space")
    return [int(number) for (number,) in rows]


def give_back(con: apsw.Connection, home: Path) -> None:
    """Name spaces and sessions again, in this transaction, where the files of one folder alone have their lines."""
    lost = nameless(con)
    if lost:
        known = {name for (name,) in con.execute("SELECT name FROM space")}
        found = dict[int, set[str]]()
        for folder in sorted(path for path in (home / "spaces").glob("*/") if path.name not in known):
            for number, _, _ in _rows_in(con, folder):
                found.setdefault(number, set()).add(folder.name)
        for number, names in found.items():
            if number in lost and len(names) == 1 and sum(names & other != set() for other in found.values()) == 1:
                con.execute("INSERT INTO space (id, name) VALUES (?, ?)", (number, *names))
    if con.execute("SELECT 1 FROM turn WHERE session NOT IN (SELECT id FROM session) LIMIT 1").get:
        rows: Any = con.execute("SELECT id, name FROM space").fetchall()
        for number, name in rows:
            for space, session, fields in _rows_in(con, home / "spaces" / name):
                if space == number and session is not None:
                    con.execute(
                        "INSERT INTO session (id, space, name) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                        (session, space, fields["session"]),
                    )


def _rows_in(con: apsw.Connection, folder: Path) -> Iterator[tuple[int, int | None, dict[str, Any]]]:
    """Yield (space, session of a turn, line) of each line of a folder that has its row in the database."""
    for path in sorted(path for what in LINE_FILES for path in folder.glob(what)):
        name = path.relative_to(folder).as_posix()
        if is_line_file(name):
            yield from linefiles.known_rows(con, name, files.beyond(path, 0))
