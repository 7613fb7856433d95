"""L0 in SQLite: turns with their terms, vectors and journal lines, and what is asked of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import apsw

from mcp_memory.core.types import NewTurn, Role, SessionInfo, Turn
from mcp_memory.store import files
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.protocol import Appended, Vectors
from mcp_memory.store.sql import citation_rows, digests, review
from mcp_memory.store.sql.rows import (
    from_ms,
    marks,
    number_of,
    numbers_of,
    session_for,
    session_id,
    space_for,
    space_id,
    to_ms,
    touch,
)
from mcp_memory.store.sqlite.finding import terms, vectors
from mcp_memory.store.sqlite.linefiles import append_lines

__all__ = [
    "append",
    "around_all",
    "by_ids",
    "day_lines",
    "insert",
    "journal",
    "last",
    "of_session",
    "sessions",
]

_COLUMNS = "t.id, s.name, t.position, t.role, t.name, t.content, t.said_at, t.learned_at, t.sha256"
_FROM = "FROM turn t JOIN session s ON s.id = t.session"
_LOOK_BACK = 1000


def append(
    con: apsw.Connection,
    folder: Path,
    space: str,
    session: str,
    turns: Sequence[NewTurn],
    *,
    now: datetime,
    embedded: Vectors | None,
) -> Appended:
    """See `Store.append_turns`; `folder` is the space's."""
    space_no = space_for(con, space)
    session_no = session_for(con, space_no, session)
    hashes = [evidence_hash(turn) for turn in turns]
    lacking, gone = _not_yet_stored(con, session_no, turns, hashes)
    unwanted = digests.turns(con, space_no, session_no, [turns[i] for i in lacking])
    fresh = [i for place, i in enumerate(lacking) if place not in unwanted]
    new = [turns[i] for i in fresh]
    stored = insert(con, space_no, session_no, session, new, now=now, hashes=[hashes[i] for i in fresh])
    if stored:
        if embedded is not None:
            vectors.put(con, "turn", [number_of(turn.id, "t") for turn in stored], embedded, rows=fresh)
        journal(con, folder, space_no, stored, now=now)
        touch(con, space_no, f"session:{session}")
    return Appended(stored=stored, duplicates=len(turns) - len(lacking) - gone, forgotten=len(unwanted) + gone)


def forgotten_among(con: apsw.Connection, space: str, session: str, turns: Sequence[NewTurn]) -> int:
    """See `Store.forgotten_among`."""
    space_no = space_id(con, space)
    if space_no is None:
        return 0
    session_no = con.execute("SELECT id FROM session WHERE space = ? AND name = ?", (space_no, session)).get or 0
    lacking, gone = _not_yet_stored(con, session_no, turns, [evidence_hash(turn) for turn in turns])
    return gone + len(digests.turns(con, space_no, session_no, [turns[i] for i in lacking]))


def insert(
    con: apsw.Connection,
    space: int,
    session: int,
    session_name: str,
    new: Sequence[NewTurn],
    *,
    now: datetime,
    hashes: Sequence[bytes],
    told: dict[str, Any] | None = None,
) -> list[Turn]:
    """Insert rows with their terms, at the end of their session."""
    last_id = con.execute("SELECT seq FROM sqlite_sequence WHERE name = 'turn'").get or 0
    last_position = con.execute("SELECT coalesce(max(position), -1) FROM turn WHERE session = ?", (session,)).get
    learned = from_ms(to_ms(now))
    stored = [
        Turn(
            id=f"t{last_id + place}",
            session=session_name,
            position=last_position + place,
            role=turn.role,
            name=turn.name,
            content=turn.content,
            said_at=learned if turn.said_at is None else from_ms(to_ms(turn.said_at)),
            learned_at=learned,
            sha256=digest.hex(),
        )
        for place, (turn, digest) in enumerate(zip(new, hashes, strict=True), start=1)
    ]
    told_json = None if told is None else json.dumps(told)
    con.executemany(
        "INSERT INTO turn (id, space, session, position, role, name, content, client_id, said_at, dated, learned_at,"
        " sha256, told) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                last_id + place,
                space,
                session,
                last_position + place,
                turn.role,
                turn.name,
                turn.content,
                turn.client_id,
                to_ms(review.said_at),
                turn.said_at is not None and not turn.guessed,
                to_ms(now),
                digest,
                told_json,
            )
            for place, (turn, review, digest) in enumerate(zip(new, stored, hashes, strict=True), start=1)
        ],
    )
    terms.put(
        con,
        "turn",
        space,
        [
            (number_of(turn.id, "t"), terms.of_turn(turn.content, turn.name))
            for turn in stored
            if turn.role != "note"  # a note is found through its atom
        ],
    )
    review.note(con, space, {turn.id: one.held for turn, one in zip(stored, new, strict=True)}, now=now)
    for turn in stored:
        if turn.role != "note":  # its atom says the same
            citation_rows.note(con, space, turn.id, turn.content)
    return stored


def _not_yet_stored(
    con: apsw.Connection, session: int, turns: Sequence[NewTurn], hashes: Sequence[bytes]
) -> tuple[list[int], int]:
    """Return the places in `turns` of those that the session lacks; and how many of the others are forgotten."""
    rows: list[Any] = con.execute(
        "SELECT client_id, sha256, tombstone, purged_at FROM turn WHERE session = ? AND role <> 'note'"
        " ORDER BY position DESC LIMIT ?",
        (session, len(turns) + _LOOK_BACK),
    ).fetchall()
    known = [(client_id, bytes(digest)) for client_id, digest, *_ in reversed(rows)]
    given = [(turn.client_id, digest) for turn, digest in zip(turns, hashes, strict=True)]
    if any(purged for *_, purged in rows):  # of those there is but what their hash was made to
        key = digests.key_of(con)
        plain = {place for place, (*_, purged) in enumerate(reversed(rows)) if purged is None}
        known = [
            (id, digests.husk_hash(key, digest) if place in plain else digest)
            for place, (id, digest) in enumerate(known)
        ]
        start, repeated = _repeated(known, [(id, digests.husk_hash(key, digest)) for id, digest in given])
    else:
        start, repeated = _repeated(known, given)
    seen: set[tuple[str | None, bytes]] = set()
    fresh: list[int] = []
    gone = 0
    for place, key in enumerate(given):
        if key[0] is None:
            if place >= repeated:
                fresh.append(place)
            else:
                gone += rows[-1 - start - place][2] is not None
        elif key in seen:
            continue
        elif (review := _held(con, session, key)) is None:
            seen.add(key)
            fresh.append(place)
        else:
            gone += review == "forgotten"
    return fresh, gone


def _repeated(known: Sequence[object], given: Sequence[object]) -> tuple[int, int]:
    """Return from which place of `known` on it holds `given`, from its start, as one run; and how many of it.

    Either the run reaches the session's end, as when a client sends its growing history again, or all of
    `given` (two turns at least) stands in it, as when an earlier call is tried again. One lone turn that
    stands further back is taken for said twice.
    """
    for start in range(max(0, len(known) - len(given)), len(known)):
        if list(known[start:]) == list(given[: len(known) - start]):
            return start, len(known) - start
    if len(given) >= 2:
        for start in range(len(known) - len(given) + 1):
            if known[start] == given[0] and list(known[start : start + len(given)]) == list(given):
                return start, len(given)
    return 0, 0


def _held(con: apsw.Connection, session: int, key: tuple[str | None, bytes]) -> Literal["here", "forgotten"] | None:
    row = con.execute(
        "SELECT tombstone IS NOT NULL FROM turn WHERE session = ? AND client_id = ?"
        " AND (sha256 = ? OR purged_at IS NOT NULL) ORDER BY 1 LIMIT 1",
        (session, *key),
    ).fetchone()
    return None if row is None else "forgotten" if row[0] else "here"


def journal(con: apsw.Connection, folder: Path, space: int, stored: Sequence[Turn], *, now: datetime) -> None:
    """Append turns that follow each other to the journal of the day they were learned, in UTC: it never opens twice."""
    day = now.astimezone(UTC).date()
    append_lines(
        con,
        folder,
        space,
        f"conversations/{day.isoformat()}.jsonl",
        _journal_lines(con, "t.id BETWEEN ? AND ?", [number_of(stored[0].id, "t"), number_of(stored[-1].id, "t")]),
        rewrite=lambda: day_lines(con, space, day),
    )


def day_lines(con: apsw.Connection, space: int, day: date) -> Iterator[bytes]:
    """Yield the lines of the journal of a day."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    span = [to_ms(start), to_ms(start + timedelta(days=1))]
    return _journal_lines(con, "t.space = ? AND t.learned_at >= ? AND t.learned_at < ?", [space, *span])


def _journal_lines(con: apsw.Connection, which: str, values: Sequence[int]) -> Iterator[bytes]:
    for *columns, client_id, told, why in con.execute(
        f"SELECT {_COLUMNS}, t.client_id, t.told, h.reasons {_FROM} LEFT JOIN held h ON h.space = t.space"
        f" AND h.id = 't' || t.id WHERE {which} ORDER BY t.id",
        values,
    ):
        beside = {"told": told, "held": why}
        kept = {name: json.loads(str(text)) for name, text in beside.items() if text is not None}
        yield files.journal_line(_turn(columns), client_id=client_id, **kept)


def by_ids(con: apsw.Connection, space: str, ids: Iterable[str]) -> list[Turn]:
    numbers = numbers_of(ids, "t")
    # The plus keeps the planner from walking the whole space instead of the few ids.
    rows = con.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE +t.space = ? AND t.tombstone IS NULL AND t.id IN ({marks(numbers)})",
        (space_id(con, space), *numbers),
    )
    found = {turn.id: turn for turn in map(_turn, rows)}
    return [found[id] for id in (f"t{n}" for n in dict.fromkeys(numbers)) if id in found]


def of_session(con: apsw.Connection, space: str, session: str, *, start: int, limit: int) -> list[Turn]:
    return _select(con, space, session, "t.position >= ? ORDER BY t.position LIMIT ?", (start, limit))


def last(con: apsw.Connection, space: str, session: str, *, limit: int, roles: Sequence[Role]) -> list[Turn]:
    wanted = f"t.role IN ({marks(roles)}) AND " if roles else ""
    return _select(con, space, session, f"{wanted}1 ORDER BY t.position DESC LIMIT ?", (*roles, limit))[::-1]


def around_all(con: apsw.Connection, space: str, ids: Iterable[str], *, around: int) -> list[Turn]:
    """See `Store.surroundings`."""
    numbers = numbers_of(ids, "t")
    # The hits lead, so that each window is one walk in the index of its session.
    rows = con.execute(
        f"SELECT DISTINCT {_COLUMNS} FROM turn h CROSS JOIN turn t"
        " ON t.session = h.session AND t.position BETWEEN h.position - ? AND h.position + ?"
        f" JOIN session s ON s.id = t.session WHERE h.id IN ({marks(numbers)}) AND h.space = ?"
        " AND t.tombstone IS NULL AND (t.role <> 'note' OR t.id = h.id) ORDER BY t.session, t.position",
        (around, around, *numbers, space_id(con, space)),
    )
    return [_turn(row) for row in rows]


def sessions(con: apsw.Connection, space: str, *, prefix: str, limit: int) -> list[SessionInfo]:
    rows = con.execute(
        "SELECT s.name, count(*), min(t.said_at), max(t.said_at) FROM session s JOIN turn t ON t.session = s.id"
        " WHERE s.space = ?1 AND substr(s.name, 1, length(?2)) = ?2 AND t.tombstone IS NULL"
        " AND t.role <> 'note' GROUP BY s.id ORDER BY max(t.id) DESC LIMIT ?3",
        (space_id(con, space), prefix, limit),
    )
    return [
        SessionInfo(session=str(name), turns=int(count), first=from_ms(int(first)), last=from_ms(int(newest)))
        for name, count, first, newest in rows
    ]


def _select(con: apsw.Connection, space: str, session: str, rest: str, values: tuple[object, ...]) -> list[Turn]:
    number = session_id(con, space_id(con, space), session)
    sql = f"SELECT {_COLUMNS} {_FROM} WHERE t.session = ? AND t.tombstone IS NULL AND {rest}"
    return [_turn(row) for row in con.execute(sql, (number, *values))]  # pyright: ignore[reportArgumentType]


def _turn(row: Sequence[Any]) -> Turn:
    number, session, position, role, name, content, said_at, learned_at, digest = row
    return Turn(
        id=f"t{number}",
        session=session,
        position=position,
        role=role,
        name=name,
        content=content,
        said_at=from_ms(said_at),
        learned_at=from_ms(learned_at),
        sha256=bytes(digest).hex(),
    )
