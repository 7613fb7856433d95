"""What the tables share: spaces and sessions by name, moments as integers, ids as text, the change feed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

import apsw

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line

__all__ = [
    "WITH_A_SPACE",
    "from_ms",
    "marks",
    "number_of",
    "numbers_of",
    "session_for",
    "session_id",
    "space_for",
    "space_id",
    "stands",
    "to_ms",
    "touch",
]

WITH_A_SPACE = ("turn", "atom", "scene", "persona", "ref", "record", "canvas", "tombstone", "draft", "fact")
"""Tables whose rows say what a space holds."""
_SPACES = (("space", "id"), ("session", "space"), *((table, "space") for table in WITH_A_SPACE))
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ms(moment: datetime) -> int:
    """Return an aware moment as milliseconds since 1970, exactly (years before 1970 are negative)."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def from_ms(ms: int) -> datetime:
    """Return the moment in the zone of this machine, as people and agents read it."""
    try:
        moment = _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:  # a row that another program wrote
        return datetime.max.replace(tzinfo=UTC) if ms > 0 else datetime.min.replace(tzinfo=UTC)
    try:
        return moment.astimezone()
    except (OverflowError, OSError, ValueError):  # far from now, some systems know no local time
        return moment


def space_id(con: apsw.Connection, space: str) -> int | None:
    """Return the number of a space, None where it holds nothing yet."""
    return con.execute("SELECT id FROM space WHERE name = ?", (space,)).get


def space_for(con: apsw.Connection, space: str) -> int:
    """Return the number of a space, made if it is new."""
    known = space_id(con, space)
    if known is None:
        # Not a number that rows carry whose space is lost: they would be of this one.
        taken = max(con.execute(f"SELECT max({column}) FROM {table}").get or 0 for table, column in _SPACES)
        known = con.execute("INSERT INTO space (id, name) VALUES (?, ?) RETURNING id", (taken + 1, space)).get
    return known


def session_id(con: apsw.Connection, space: int | None, session: str) -> int | None:
    return con.execute("SELECT id FROM session WHERE space = ? AND name = ?", (space, session)).get


def session_for(con: apsw.Connection, space: int, session: str) -> int:
    known = session_id(con, space, session)
    if known is None:
        known = con.execute(
            "INSERT INTO session (id, space, name) SELECT 1 + max(coalesce((SELECT max(id) FROM session), 0),"
            " coalesce((SELECT max(session) FROM turn), 0)), ?, ? RETURNING id",
            (space, session),
        ).get
    return known


def number_of(id: str, prefix: str) -> int:
    """Return 812 for `t812`. Raises NotFound, which also says how such ids look."""
    match = re.fullmatch(rf"{prefix}(\d{{1,18}})", id.strip(), flags=re.ASCII)
    if match is None:
        raise NotFound(f"There is no {one_line(id, 40)!r}. Ids of this kind look like {prefix}12.")
    return int(match[1])


def numbers_of(ids: Iterable[str], prefix: str) -> list[int]:
    return [number_of(id, prefix) for id in ids]


def stands(id: str) -> str:
    """Return the condition that the turn or atom which an SQL expression names, `t12` or `a5`, was not forgotten.

    It is looked for by its number: to compare names would read every row for each.
    """
    of = f"CAST(substr({id}, 2) AS INTEGER)"
    return (
        f"CASE substr({id}, 1, 1)"
        f" WHEN 't' THEN EXISTS (SELECT 1 FROM turn st WHERE st.id = {of} AND st.tombstone IS NULL)"
        f" WHEN 'a' THEN EXISTS (SELECT 1 FROM atom st WHERE st.id = {of} AND st.tombstone IS NULL) END"
    )


def marks(values: Sequence[object]) -> str:
    """Return `?, ?, ?` for that many values."""
    return ", ".join("?" * len(values))


def touch(con: apsw.Connection, space: int, *topics: str) -> None:
    """Note in the change feed that these topics of the space changed, in the transaction that changed them."""
    seq = (con.execute("SELECT max(seq) FROM change").get or 0) + 1
    con.executemany(
        "INSERT INTO change (space, topic, seq) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq",
        [(space, topic, seq) for topic in dict.fromkeys(topics)],
    )
