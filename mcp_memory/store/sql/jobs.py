"""Questions to a model in SQLite: who holds which, how far each stage has come, and the log of what came of them.

At most one work of a stage (of a session, for extraction) is not done, and only its id can be committed: whoever takes
it over makes a new id, so a late answer to the old one finds nothing. Cursors move with the commit, never backwards.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, get_args

import apsw

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Stage
from mcp_memory.store.protocol import Backlog, Conflict, Done, Outcome, StageState, Work
from mcp_memory.store.sql.leases import LONGEST
from mcp_memory.store.sql.rows import (
    from_ms,
    marks,
    number_of,
    numbers_of,
    session_id,
    space_for,
    space_id,
    to_ms,
    touch,
)

__all__ = [
    "backlog",
    "by_id",
    "done",
    "extracted",
    "finish",
    "flush",
    "move",
    "park",
    "release",
    "stage_states",
    "take",
    "waiting",
    "want",
]

_COLUMNS = "w.id, w.stage, s.name, w.basis, w.state, w.holder, w.until, w.attempts, w.error, w.at, w.done_at, w.outcome"
_FROM = "FROM work w LEFT JOIN session s ON s.id = w.session"


# --- for the verbs that commit a stage --------------------------------------------------------------


def finish(con: apsw.Connection, space: int, work: str, *, outcome: Outcome, now: datetime) -> None:
    """Log a work as done, in the transaction that stores what came of it.

    Raises Conflict when it is done already, or was taken by another under a new id. Its stage is no longer wanted,
    unless that was said after the work was taken, which cannot have heeded it.
    """
    number = number_of(work, "w")
    stage = con.execute(
        "UPDATE work SET state = 'done', done_at = ?, outcome = ? WHERE id = ? AND space = ? AND state <> 'done'"
        " RETURNING stage",
        (to_ms(now), json.dumps(outcome), number, space),
    ).get
    if stage is None:
        raise Conflict(f"{work} was answered already, or taken by another.")
    con.execute(
        "UPDATE stage_cursor SET wanted = NULL WHERE space = ? AND stage = ? AND wanted_after < ?",
        (space, stage, number),
    )
    touch(con, space, "work")


def move(con: apsw.Connection, space: int, stage: Stage, upto: int, *, now: datetime) -> None:
    """Note that a stage ran and has seen all atoms up to this number. It never moves backwards."""
    con.execute(
        "INSERT INTO stage_cursor (space, stage, position, at) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET position = max(position, excluded.position), at = excluded.at",
        (space, stage, upto, to_ms(now)),
    )


def extracted(con: apsw.Connection, space: int, work: str, *, upto: int, scene: str) -> None:
    """Move the cursor of the session that a work reads to position `upto`; without a name, the scene goes on.

    Raises Conflict when the session was read that far already.
    """
    session: int = con.execute("SELECT session FROM work WHERE id = ? AND space = ?", (number_of(work, "w"), space)).get
    moved = con.execute(
        "INSERT INTO progress (session, position, batches, flush, scene) VALUES (?1, ?2, 1, 0, ?3) ON CONFLICT"
        " DO UPDATE SET position = ?2, batches = batches + 1, scene = coalesce(?3, scene) WHERE position < ?2"
        " RETURNING 1",
        (session, upto, scene or None),
    ).get
    if moved is None:
        raise Conflict(f"{work} reads turns that were read already.")


# --- taking and giving back -------------------------------------------------------------------------


def take(
    con: apsw.Connection,
    space: str,
    stage: Stage,
    session: str | None,
    basis: str,
    *,
    holder: str,
    until: datetime,
    now: datetime,
    eager: bool,
) -> Work | None:
    """See `Store.take_work`."""
    space_no = space_for(con, space)
    session_no = _session(con, space_no, session)
    left = _left(con, space_no, stage, session_no)
    if left is not None and now < left.until <= now + LONGEST:
        if left.state == "open" and left.holder == holder and left.basis == basis:
            return _prolonged(con, space_no, left, until)
        anothers = left.state == "open" and left.holder != holder
        resting = left.state == "parked" and not eager
        if anothers or resting:
            return None
    if _has_moved_on(con, space_no, stage, session_no, basis):
        return None
    if left is not None:
        con.execute("DELETE FROM work WHERE id = ?", (number_of(left.id, "w"),))
    attempts, error = (left.attempts, left.error) if left is not None else (0, None)
    number: int = con.execute(
        "INSERT INTO work (space, stage, session, basis, state, holder, until, attempts, error, at)"
        " VALUES (?, ?, ?, ?, 'open', ?, ?, ?, ?, ?) RETURNING id",
        (space_no, stage, session_no, basis, holder, to_ms(until), attempts, error, to_ms(now)),
    ).get
    touch(con, space_no, "work")
    return _found(con, number, space_no)


def _session(con: apsw.Connection, space: int, session: str | None) -> int | None:
    if session is None:
        return None
    number = session_id(con, space, session)
    if number is None:
        raise NotFound(f"There is no session {one_line(session, 60)!r} in this space.")
    return number


def _left(con: apsw.Connection, space: int, stage: Stage, session: int | None) -> Work | None:
    """Return the one work of this stage that is not done."""
    row: Any = con.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE w.space = ? AND w.stage = ? AND coalesce(w.session, 0) = ?"
        " AND w.state <> 'done'",
        (space, stage, session or 0),
    ).fetchone()
    return None if row is None else _work(row)


def _prolonged(con: apsw.Connection, space: int, work: Work, until: datetime) -> Work:
    """Give the same question to its holder again, who has as long for it as if it were new."""
    number = number_of(work.id, "w")
    con.execute("UPDATE work SET until = max(until, ?) WHERE id = ?", (to_ms(until), number))
    return _found(con, number, space)


def _has_moved_on(con: apsw.Connection, space: int, stage: Stage, session: int | None, basis: str) -> bool:
    """Return whether another committed between the planning of this basis and its taking.

    From the taking on nobody can: what a stage has read moves with the one work that is not done. A basis says where
    its stage stood, as `start` (extract), `drafts` (merge), `after` (scenes, summaries), `version` (persona)
    or `upto` (canvas).
    """
    planned: dict[str, Any] = json.loads(basis)
    match stage:
        case "extract":
            stands = con.execute("SELECT position FROM progress WHERE session = ?", (session,)).get
            return planned.get("start", stands or 0) < (stands or 0)
        case "merge":
            drafts = numbers_of(planned.get("drafts", ()), "d")
            left = con.execute(f"SELECT count(*) FROM draft WHERE id IN ({marks(drafts)})", drafts).get
            return left < len(drafts)
        case "scenes" | "summaries":
            stands = con.execute("SELECT position FROM stage_cursor WHERE space = ? AND stage = ?", (space, stage)).get
            return planned.get("after", stands or 0) < (stands or 0)
        case "persona":
            stands = con.execute("SELECT max(version) FROM persona WHERE space = ? AND work > 0", (space,)).get
            return planned.get("version", stands or 0) < (stands or 0)
        case "canvas":
            stands = con.execute(
                "SELECT max(basis ->> 'upto') FROM work WHERE space = ? AND stage = ? AND state = 'done'"
                " AND basis ->> 'canvas' = ?",
                (space, stage, planned.get("canvas")),
            ).get
            return planned.get("upto", (stands or 0) + 1) <= (stands or 0)


def park(con: apsw.Connection, space: str, id: str, *, error: str, until: datetime) -> None:
    """See `Store.park_work`."""
    _change(con, space, id, "state = 'parked', attempts = attempts + 1, error = ?, until = ?", error, to_ms(until))


def release(con: apsw.Connection, space: str, id: str) -> None:
    """See `Store.release_work`. The row stays, for what it knows of failures; its time is over."""
    _change(con, space, id, "until = at", only="state = 'open'")


def _change(
    con: apsw.Connection, space: str, id: str, change: str, *values: object, only: str = "state <> 'done'"
) -> None:
    space_no = space_id(con, space)
    changed = con.execute(
        f"UPDATE work SET {change} WHERE id = ? AND space = ? AND {only} RETURNING 1",
        (*values, number_of(id, "w"), space_no),  # pyright: ignore[reportArgumentType]
    ).get
    if changed is not None and space_no is not None:
        touch(con, space_no, "work")


# --- seeing -----------------------------------------------------------------------------------------


def waiting(con: apsw.Connection, space: str, *, stage: Stage | None) -> list[Work]:
    """See `Store.works`."""
    rows = con.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE w.space = ?1 AND w.state <> 'done' AND (?2 IS NULL OR w.stage = ?2)"
        " ORDER BY w.id",
        (space_id(con, space), stage),
    )
    return [_work(row) for row in rows]


def by_id(con: apsw.Connection, space: str, id: str) -> Work:
    """See `Store.work`."""
    return _found(con, number_of(id, "w"), space_id(con, space))


def _found(con: apsw.Connection, number: int, space: int | None) -> Work:
    row: Any = con.execute(f"SELECT {_COLUMNS} {_FROM} WHERE w.id = ? AND w.space = ?", (number, space)).fetchone()
    if row is None:
        raise NotFound(
            f"There is no question w{number} in this space now. If it was handed out, its time ran out and another "
            "took it: ask for the next question instead."
        )
    return _work(row)


def _work(row: Sequence[Any]) -> Work:
    number, stage, session, basis, state, holder, until, attempts, error, at, done_at, outcome = row
    return Work(
        id=f"w{number}",
        stage=stage,
        session=session,
        basis=basis,
        state=state,
        holder=holder,
        until=from_ms(until),
        attempts=attempts,
        error=error,
        at=from_ms(at),
        done_at=None if done_at is None else from_ms(done_at),
        outcome=None if outcome is None else json.loads(outcome),
    )


def done(con: apsw.Connection, space: str) -> list[Done]:
    """See `Store.done`."""
    # Most works come to one of a few outcomes, so grouping them first leaves little JSON to read.
    rows: Any = con.execute(
        "SELECT stage, coalesce(outcome, '{}'), count(*), sum(holder <> ''), max(coalesce(done_at, at)) FROM work"
        " WHERE space = ? AND state = 'done' GROUP BY stage, outcome",
        (space_id(con, space),),
    )
    works, asked, last = Counter[Stage](), Counter[Stage](), Counter[Stage]()
    sums = defaultdict[Stage, Counter[str]](Counter)
    for stage, outcome, count, questions, done_at in rows:
        works[stage] += count
        asked[stage] += questions
        last[stage] = max(last[stage], done_at)
        sums[stage].update({what: number * count for what, number in json.loads(outcome).items()})
    return [
        Done(
            stage=stage,
            works=works[stage],
            asked=asked[stage],
            last=from_ms(last[stage]),
            outcome=dict(sorted(sums[stage].items())),
        )
        for stage in get_args(Stage)
        if stage in works
    ]


# --- how far it has come ----------------------------------------------------------------------------


def backlog(con: apsw.Connection, space: str, *, session: str | None, limit: int) -> list[Backlog]:
    """See `Store.backlog`. What a model is to read is what users and assistants say; cursors pass the rest."""
    space_no = space_id(con, space)
    of, those = ("space", space_no) if session is None else ("id", session_id(con, space_no, session))
    # Sessions lead, in the order of the index, which has all that is asked of their turns: a session that was read
    # to its end costs one look there, half a microsecond. 10,000 of them take 6 ms, 100,000 unread turns 45 ms.
    rows: Any = con.execute(
        "WITH unread AS MATERIALIZED ("
        " SELECT s.id, s.name, count(*) AS turns, sum(t.role = 'user') AS asked, max(t.id) AS newest"
        " FROM session s NOT INDEXED LEFT JOIN progress p ON p.session = s.id CROSS JOIN turn t INDEXED BY turn_outline"
        " ON t.session = s.id AND t.position >= coalesce(p.position, 0) AND t.role IN ('user', 'assistant')"
        " AND t.id NOT IN (SELECT id FROM turn INDEXED BY turn_forgotten WHERE tombstone IS NOT NULL)"
        f" WHERE s.{of} = ? GROUP BY s.id ORDER BY newest DESC LIMIT ?)"
        " SELECT u.name, coalesce(p.position, 0), u.turns, u.asked, coalesce(p.batches, 0), coalesce(p.scene, ''),"
        " t.learned_at, coalesce(p.flush, 0) FROM unread u LEFT JOIN progress p ON p.session = u.id"
        " JOIN turn t ON t.id = u.newest ORDER BY u.newest DESC",
        (those, limit),
    )
    return [
        Backlog(
            session=name,
            start=start,
            turns=turns,
            asked=asked,
            batches=batches,
            scene=scene,
            last=from_ms(last),
            flush=flush_to,
        )
        for name, start, turns, asked, batches, scene, last, flush_to in rows
    ]


def flush(con: apsw.Connection, space: str, session: str) -> None:
    """See `Store.flush`."""
    space_no = space_id(con, space)
    asked = con.execute(
        "INSERT INTO progress (session, position, batches, flush)"
        " SELECT session, 0, 0, max(position) + 1 FROM turn WHERE session = ? GROUP BY session"
        " ON CONFLICT DO UPDATE SET flush = excluded.flush WHERE flush < excluded.flush RETURNING 1",
        (session_id(con, space_no, session),),
    ).get
    if asked is not None and space_no is not None:
        touch(con, space_no, "work")


def stage_states(con: apsw.Connection, space: str) -> dict[Stage, StageState]:
    """See `Store.stage_states`."""
    rows: Any = con.execute(
        "SELECT stage, position, at, wanted FROM stage_cursor WHERE space = ? AND (at > 0 OR wanted IS NOT NULL)",
        (space_id(con, space),),
    )
    return {stage: StageState(position=position, at=from_ms(at), wanted=wanted) for stage, position, at, wanted in rows}


def want(con: apsw.Connection, space: str, stage: Stage, reason: str) -> None:
    """See `Store.want`. A stage that never ran did so in 1970: all there is has changed since."""
    space_no = space_for(con, space)
    con.execute(
        "INSERT INTO stage_cursor (space, stage, position, at, wanted, wanted_after)"
        " VALUES (?, ?, 0, 0, ?, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'work'), 0))"
        " ON CONFLICT DO UPDATE SET wanted = excluded.wanted, wanted_after = excluded.wanted_after",
        (space_no, stage, reason),
    )
    touch(con, space_no, "work")
