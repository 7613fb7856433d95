"""Line files kept in step with their rows: the journal of turns, the records of a session, canvases, tombstones.

The table `file` has the length of each at the last commit. A file that has lost lines is quarantined and rewritten
from the rows, which have them all. Lines after that length either were never committed or were lost by the database,
such as a copy without its WAL. Lost ones are evidence: no line is written in their place until `upkeep.recovery` has
recovered them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.regular_files import is_own, read_own
from mcp_memory.store import files
from mcp_memory.store.sql.transaction import to_ms
from mcp_memory.store.sqlite.unreadable import LINE_FILES, WRONG, is_line_file


class Behind(StoreUnavailable):
    """A line file has lines that the database lacks, and a transaction wants to append to it."""


def note_length(con: apsw.Connection, space: int, path: str, length: int) -> None:
    """Record the committed length of a line file, in this transaction."""
    con.execute("INSERT OR REPLACE INTO file (space, path, bytes) VALUES (?, ?, ?)", (space, path, length))


def problems(con: apsw.Connection, folder: Path, space: int) -> Iterator[str]:
    """Yield the problems of a space's line files."""
    rows: Any = con.execute("SELECT path, bytes FROM file WHERE space = ?", (space,)).fetchall()
    held = (path.relative_to(folder).as_posix() for what in LINE_FILES for path in sorted(folder.glob(what)))
    unknown = {path: 0 for path in held if is_line_file(path)}
    for path, length in (unknown | dict(rows)).items():
        target = folder / path
        if not is_own(target):
            why = "is no file" if files.is_there(target) else "is missing"
            yield f"{path} {why}; the next line written to it brings all of it back, or `mcp-memory doctor --repair`."
        elif (size := target.stat().st_size) < length:
            yield f"{path} is torn: {size} of {length} bytes; the next line written mends it."
        elif size > length:
            if (whose := owner(con, folder.name, path, files.beyond(target, 0))) is not None:
                yield (
                    f"{path} has lines of the space {whose}, and none of it is taken in. Put each file back into the "
                    f"folder of its space; `mcp-memory doctor --repair` does that where spaces/{whose} is gone, and "
                    "else sets this file aside and writes it anew from the database."
                )
                continue
            count = files.beyond(target, length).count(b"\n")
            yield (
                f"{path} has {count} lines that the database lacks, as where it was copied without its -wal file. "
                "They are taken back when the home is next opened where it can be written to."
            )
    for why in ("beyond", "damaged"):
        for target in sorted(folder.glob(f"**/*.jsonl.{why}-*")):
            if not is_own(target):
                continue
            count = read_own(target).count(b"\n")
            yield (
                f"{target.relative_to(folder).as_posix()} has {count} lines that were moved aside. "
                "`mcp-memory doctor --repair` takes back what the database lacks of them, and keeps the file."
            )


def stale(con: apsw.Connection) -> list[tuple[str, str]]:
    """Return the line files to be written again from the rows, as (name of the space, path)."""
    if not con.table_exists("main", "stale_file"):  # the schema of an older version, in a copy
        return []
    rows: Any = con.execute("SELECT s.name, f.path FROM stale_file f JOIN space s ON s.id = f.space ORDER BY 1, 2")
    return [(str(space), str(path)) for space, path in rows]


def owner(con: apsw.Connection, space: str, path: str, content: bytes) -> str | None:
    """Return the space that the lines of a line file belong to, if it is not `space`; otherwise None.

    A row with the same number, hash and moment is the same row. Two spaces may share some rows: the majority of the
    lines decides.
    """
    names: dict[Any, Any] = dict(con.execute("SELECT id, name FROM space"))
    found = Counter[str](names[number] for number, _, _ in known_rows(con, path, content) if number in names)
    of, count = next(iter(found.most_common(1)), (space, 0))
    return of if count > found[space] else None


def known_rows(con: apsw.Connection, path: str, content: bytes) -> Iterator[tuple[int, int | None, dict[str, Any]]]:
    """Yield (space, session of a turn, line) of each line of a line file that has its row in the database."""
    for line in content.splitlines():
        try:
            fields: Any = json.loads(line)
            table, what, values = _row_of(path, fields)
            session = "r.session" if table == "turn" else "NULL"
            rows: Any = con.execute(f"SELECT r.space, {session} FROM {table} r WHERE {what}", values).fetchall()
        except WRONG:
            continue
        yield from ((space, of, fields) for space, of in rows)


def _row_of(path: str, fields: dict[str, Any]) -> tuple[str, str, tuple[Any, ...]]:
    """Return the table of a line, and the condition that finds its row. Raises WRONG where it has none."""
    spaces = "r.space IN (SELECT id FROM space UNION SELECT space FROM number)"
    known = f"{spaces} AND r.id = ? AND"
    if path.startswith("conversations/"):
        learned = to_ms(datetime.fromisoformat(fields["learned_at"]))
        values = int(fields["turn"][1:]), bytes.fromhex(fields["sha256"]), learned
        return "turn", f"{known} (r.sha256, r.learned_at) = (?, ?)", values
    if path.startswith("offload-"):
        at = to_ms(datetime.fromisoformat(fields["timestamp"]))
        values = fields["record"], fields["node_id"], fields["ref"], at
        moment = "abs(unixepoch(r.timestamp, 'subsec') * 1000 - ?) < 2"
        return "record", f"{known} r.node = ? AND r.ref = ? AND {moment}", values
    if "tombstone" in fields:
        at = to_ms(datetime.fromisoformat(fields["at"]))
        return "tombstone", f"{known} r.at = ?", (int(fields["tombstone"][1:]), at)
    values = (fields["canvas"], fields["version"], fields["updated"], fields["crc"])
    return "canvas_version", f"{spaces} AND (r.canvas, r.version, r.updated, r.crc) = (?, ?, ?, ?)", values


def committed(con: apsw.Connection, space: int | None, path: str) -> int | None:
    """Return how long a line file was at the last commit; None for one that was never written to."""
    return con.execute("SELECT bytes FROM file WHERE space = ? AND path = ?", (space, path)).get


def aside(path: Path, why: str) -> Path:
    """Return the next free name beside a line file, for a quarantined copy: `….beyond-1`, `….damaged-1`."""
    number = 1
    while (beside := path.with_name(f"{path.name}.{why}-{number}")).exists():
        number += 1
    return beside
