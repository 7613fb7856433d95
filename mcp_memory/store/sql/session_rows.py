"""Sessions as a list of conversations: when each took place, its client and project, and the turns that may name it.

Only the client is stored for this list. Dates, counts and titles are read from the turns, so they follow forgetting,
purging, exports and imports. The index `turn_said` gives the last time of a session in one lookup; turns are counted
only for the sessions of a page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from mcp_memory.core.types import TITLE
from mcp_memory.language.words import fold
from mcp_memory.store.sql import entity_rows, quarantine_rows
from mcp_memory.store.sql.filters import CLIENT
from mcp_memory.store.sql.transaction import Transaction, Value, from_ms, to_ms
from mcp_memory.store.sql.turn_rows import SPOKEN

_IN_NAME = re.compile(r"(?![0-9]|session-)(.+)-[0-9a-f]{8}", re.DOTALL)
TALK = (
    "t.space = :space AND t.role <> 'note' AND (t.role <> 'system' OR coalesce(t.name, '') <> 'title')"
    " AND t.tombstone IS NULL"
)
"""The condition that a turn `t` is neither forgotten, nor a note, nor a title, as in the index `turn_said`."""
_BEGINNING = 1_000  # characters of a turn that are read to name its session
_CANDIDATES = 8  # user turns of a session that are read to name it


class Place(NamedTuple):
    """The place of a session in the list: its last time, in ms since 1970, and its number."""

    last: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilters:
    """Which sessions to list.

    That with this name, those of a client, of a project ("" for none), with a turn in a period, with words on which
    statements about an entity are based.
    """

    session: str | None = None
    client: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    entity: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedSession:
    """A session with the number of its turns without titles, and when the first and the last of them were said."""

    place: Place
    name: str
    client: str | None
    project: str | None
    turns: int
    first: datetime
    last: datetime


@dataclass(slots=True)
class NamingTurns:
    """The texts that may name a session: the titles that it was given, latest first, and its first user turns."""

    titles: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])


def client_in(session: str) -> str | None:
    """Return the client that the name of a session tells, as the list of sessions does; None if it tells none."""
    match = _IN_NAME.fullmatch(session)
    return match and match[1]


def list_sessions(
    tx: Transaction,
    filters: SessionFilters,
    *,
    among: Collection[int] | None = None,
    after: Place | None = None,
    limit: int,
) -> list[ListedSession]:
    """Return sessions with turns, the one with the latest turn (by `said_at`) first, as many as `limit` after a place.

    `among` are the numbers of the only sessions to list.
    """
    conditions, values = ["s.space = :space"], list[Value]()
    if filters.session is not None:
        conditions.append("s.name = ?")
        values.append(filters.session)
    if filters.entity is not None:
        conditions.append(
            # Join order: the entity's atoms first; SQLite would begin with all evidence of the space.
            "s.id IN (SELECT t.session FROM mention m CROSS JOIN evidence e ON e.space = m.space AND e.atom = m.atom"
            " CROSS JOIN turn t ON t.space = e.space AND t.id = e.turn WHERE m.space = :space AND m.entity = ?"
            " AND m.atom NOT IN (SELECT a.id FROM atom a WHERE a.space = :space AND a.tombstone IS NOT NULL)"
            " AND t.tombstone IS NULL)"
        )
        values.append(entity_rows.number_of(tx, filters.entity))
    if filters.client is not None:
        conditions.append(f"{CLIENT} = ?")
        values.append(filters.client)
    if filters.project is not None:
        conditions.append("coalesce(s.project, '') = ?")
        values.append(filters.project)
    said = [
        (f"t.said_at {comparison} ?", to_ms(moment))
        for comparison, moment in ((">=", filters.since), ("<", filters.until))
        if moment is not None
    ]
    if said:
        period = " AND ".join(condition for condition, _ in said)
        conditions.append(f"EXISTS (SELECT 1 FROM turn t WHERE {TALK} AND t.session = s.id AND {period})")
        values += [moment for _, moment in said]
    following = ""
    if after is not None:
        following = "AND (last, id) < (?, ?)"
        values += after
    most = "" if among is not None else "LIMIT ?"
    values += [] if among is not None else [limit]
    rows = tx.all(
        f"WITH dated AS MATERIALIZED (SELECT s.id, s.name, {CLIENT} AS client, s.project,"
        f" (SELECT max(t.said_at) FROM turn t WHERE {TALK} AND t.session = s.id) AS last"
        f" FROM session s WHERE {' AND '.join(conditions)})"
        f" SELECT * FROM dated WHERE last IS NOT NULL {following} ORDER BY last DESC, id DESC {most}",
        *values,
    )
    rows = [row for row in rows if among is None or row[0] in among][:limit]
    extents = {
        session: (count, first)
        for session, count, first in tx.among(
            f"SELECT t.session, count(*), min(t.said_at) FROM turn t WHERE {TALK} AND t.session IN ({{}})"
            " GROUP BY t.session",
            [row[0] for row in rows],
        )
    }
    return [
        ListedSession(
            place=Place(last, number),
            name=name,
            client=client,
            project=project,
            turns=extents[number][0],
            first=from_ms(extents[number][1]),
            last=from_ms(last),
        )
        for number, name, client, project, last in rows
    ]


def with_words(tx: Transaction, words: Iterable[tuple[str, Sequence[str]]]) -> set[int]:
    """Return the numbers of the sessions in which each word occurs, in a turn or in the name of the session.

    A word is given with its index terms.
    """
    names = {number: fold(name) for number, name in tx.all("SELECT id, name FROM session WHERE space = :space")}
    left = set(names)
    for word, terms in words:
        turns = tx.index.with_all_terms("turn", terms) if terms else []
        of_turns = tx.among("SELECT session FROM turn WHERE space = :space AND tombstone IS NULL AND id IN ({})", turns)
        left &= {number for (number,) in of_turns} | {number for number in left if fold(word) in names[number]}
    return left


def numbers_of(tx: Transaction, sessions: Iterable[str]) -> dict[str, int]:
    """Return the numbers of the sessions that exist, by name."""
    return {name: number for name in sessions if (number := tx.session(name)) is not None}


def naming_turns(tx: Transaction, sessions: Sequence[int]) -> dict[int, NamingTurns]:
    """Return the turns that may name these sessions, by the number of the session. Quarantined turns are left out."""
    found = {number: NamingTurns() for number in sessions}
    for number, title in tx.among(
        f"SELECT r.session, substr(r.content, 1, {_BEGINNING}) FROM turn r WHERE r.space = :space AND r.role = 'system'"
        f" AND r.name = '{TITLE}' AND r.tombstone IS NULL AND {quarantine_rows.NOT_SUSPECTED} AND r.session IN ({{}})"
        " ORDER BY r.session, r.position DESC",
        sessions,
    ):
        found[number].titles.append(_printable(title))
    # Join order: the first turns of each session, found by an index, before their texts are read.
    for number, beginning in tx.among(
        "WITH said AS MATERIALIZED (SELECT t.id, row_number() OVER (PARTITION BY t.session ORDER BY t.position) AS nth"
        f" FROM turn t WHERE t.space = :space AND {SPOKEN} AND t.role = 'user' AND t.session IN ({{}}))"
        f" SELECT r.session, substr(r.content, 1, {_BEGINNING}) FROM said CROSS JOIN turn r"
        f" ON r.space = :space AND r.id = said.id WHERE said.nth <= {_CANDIDATES} AND {quarantine_rows.NOT_SUSPECTED}"
        " ORDER BY r.session, r.position",
        sessions,
    ):
        found[number].said.append(_printable(beginning))
    return found


def _printable(beginning: str) -> str:
    """Return the beginning of a text up to a NUL, at which SQLite ends it anyway."""
    return beginning.partition("\0")[0]


def note_client(tx: Transaction, session: str, client: str) -> None:
    """Record the client of a session that exists and has none yet."""
    number = tx.session(session)
    tx.run("UPDATE session SET client = ? WHERE space = :space AND id = ? AND client IS NULL", client, number)
