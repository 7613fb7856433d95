"""Jobs, which are questions to a model: their leases, the progress of each stage, and the log of their results.

Each stage has at most one unfinished job (extraction: one for each session). A process that takes over a job gives it a
new id, so that a late answer under the old id is refused. Cursors move in the transaction that stores the output of a
job, and never backwards. Leases, and the waits of parked jobs, end by the clock of the database.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, get_args

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Stage
from mcp_memory.store.sql import row_codec
from mcp_memory.store.sql.queues import LONGEST_LEASE
from mcp_memory.store.sql.transaction import (
    NOW,
    Transaction,
    Value,
    from_ms,
    marks,
    milliseconds,
    number_of,
    numbers_of,
    to_ms,
)
from mcp_memory.store.values import Backlog, Conflict, Done, Outcome, StageState, Work

# --- for commits of a stage -------------------------------------------------------------------------


def finish(tx: Transaction, work: str, *, outcome: Outcome, now: datetime) -> int:
    """Log a job as done, in the transaction that stores its results, and return its number.

    Raises Conflict if it is done already, or was taken over under a new id. A request for its stage is cleared, unless
    it was made after the job was leased.
    """
    number = number_of(work, "w")
    stage = tx.get(
        "UPDATE work SET state = 'done', done_at = ?, outcome = ? WHERE space = :space AND id = ? AND state <> 'done'"
        " RETURNING stage",
        *(to_ms(now), json.dumps(outcome), number),
    )
    if stage is None:
        raise Conflict(f"{work} was answered already, or taken by another.")
    tx.run(
        "UPDATE stage_cursor SET wanted = NULL WHERE space = :space AND stage = ? AND wanted_after < ?", stage, number
    )
    tx.touch("work")
    return number


def advance_stage(tx: Transaction, stage: Stage, upto: int, *, now: datetime) -> None:
    """Record that a stage ran and has read all atoms (`read`: turns) up to this number. Its cursor never moves back."""
    tx.run(
        "INSERT INTO stage_cursor (space, stage, position, at) VALUES (:space, ?, ?, ?) ON CONFLICT (space, stage)"
        " DO UPDATE SET at = excluded.at, position = CASE WHEN stage_cursor.position > excluded.position"
        " THEN stage_cursor.position ELSE excluded.position END",
        *(stage, upto, to_ms(now)),
    )


def advance_sessions(tx: Transaction, job: int | None, upto: Mapping[str, int]) -> None:
    """Move the read cursors of sessions to these positions.

    Other unfinished extraction jobs of these sessions are deleted, because their turns are read now. Raises Conflict
    (with `job` in its message) if a session was already read up to its position, and NotFound for an unknown session.
    """
    for session, position in upto.items():
        number = _session(tx, session)
        moved = tx.get(
            "INSERT INTO progress (space, session, position, batches, flush) VALUES (:space, ?, ?, 1, 0)"
            " ON CONFLICT (space, session) DO UPDATE SET position = excluded.position, batches = progress.batches + 1"
            " WHERE progress.position < excluded.position RETURNING 1",
            *(number, position),
        )
        if moved is None:
            raise Conflict(f"w{job} reads turns that were read already.")
        sql = "DELETE FROM work WHERE space = :space AND stage = 'extract' AND state <> 'done' AND session = ?"
        tx.run(sql, number)


# --- leasing and giving back ------------------------------------------------------------------------


def lease(
    tx: Transaction,
    stage: Stage,
    session: str | None,
    basis: str,
    *,
    holder: str,
    lease: timedelta,
    now: datetime,
    eager: bool = False,
) -> Work | None:
    """Create a job of a stage (for `extract`: of a session), and lease it to `holder` for the time `lease`.

    The same holder with the same basis gets the same job, with a longer lease. Any other unfinished job of the stage is
    replaced; the new job keeps its attempts and error, but has a new id, so that a commit under the old id raises
    Conflict. Returns None if another holder has the lease, if the job is parked and its wait has not ended (unless
    `eager`), or if another job has committed since `basis` was planned. A job with an empty `holder` asks no model.
    Raises NotFound for an unknown session.
    """
    tx.make_space()
    session_no = _session(tx, session)
    left = _find_unfinished(tx, stage, session_no)
    if left is not None and _is_waiting(tx, left):
        if left.state == "open" and left.holder == holder and left.basis == basis:
            return _extend_lease(tx, number_of(left.id, "w"), lease)
        anothers = left.state == "open" and left.holder != holder
        resting = left.state == "parked" and not eager
        if anothers or resting:
            return None
    if _has_moved_on(tx, stage, basis):
        return None
    if left is not None:
        tx.run("DELETE FROM work WHERE space = :space AND id = ?", number_of(left.id, "w"))
    attempts, error = (left.attempts, left.error) if left is not None else (0, None)
    number = tx.next("work")
    tx.insert(
        "work",
        id=number,
        stage=stage,
        session=session_no,
        basis=basis,
        state="open",
        holder=holder,
        until=0,
        attempts=attempts,
        error=error,
        at=to_ms(now),
    )
    tx.touch("work")
    return _extend_lease(tx, number, lease)


def _session(tx: Transaction, session: str | None) -> int | None:
    if session is None:
        return None
    number = tx.session(session)
    if number is None:
        raise NotFound(f"There is no session {one_line(session, 60)!r} in this space.")
    return number


def _find_unfinished(tx: Transaction, stage: Stage, session: int | None) -> Work | None:
    """Return the unfinished job of this stage (and session), or None."""
    which = "r.stage = ? AND coalesce(r.session, 0) = ? AND r.state <> 'done'"
    return next(row_codec.rows(tx, Work, which, stage, session or 0), None)


def _is_waiting(tx: Transaction, work: Work) -> bool:
    """Return whether the lease of a job, or the wait of a parked job, has not expired yet."""
    lasting = f"until > {NOW} AND until <= {NOW} + ?"
    sql = f"SELECT 1 FROM work WHERE space = :space AND id = ? AND {lasting}"
    return tx.one(sql, number_of(work.id, "w"), milliseconds(LONGEST_LEASE)) is not None


def _extend_lease(tx: Transaction, number: int, lease: timedelta) -> Work:
    """Extend the lease of a job to `lease` from now, unless it lasts longer already, and return the job."""
    tx.run(
        f"UPDATE work SET until = {NOW} + ? WHERE space = :space AND id = ? AND until < {NOW} + ?",
        *(milliseconds(lease), number, milliseconds(lease)),
    )
    return _read_job(tx, number)


def _has_moved_on(tx: Transaction, stage: Stage, basis: str) -> bool:
    """Return whether the stage has advanced since a job with this basis was planned.

    Once a job is leased, no other job moves the position of its stage. But an extraction may read further sessions that
    another job also reads; then the later commit is refused. The basis has the position as the `start` of its `parts`
    (extract), `drafts` (merge), `after` (read, scenes, summaries), `version` (persona) or `upto` (canvas).
    """
    planned: dict[str, Any] = json.loads(basis)
    match stage:
        case "extract":
            parts: list[dict[str, Any]] = planned.get("parts", [])
            return any(part["start"] < _read_to(tx, part["session"]) for part in parts)
        case "merge":
            drafts = numbers_of(planned.get("drafts", ()), "d")
            left = tx.get(f"SELECT count(*) FROM draft WHERE space = :space AND id IN ({marks(drafts)})", *drafts)
            return left < len(drafts)
        case "scenes" | "summaries" | "read":
            at = tx.get("SELECT position FROM stage_cursor WHERE space = :space AND stage = ?", stage) or 0
            return planned.get("after", at) < at
        case "persona":
            at = tx.get("SELECT max(version) FROM persona WHERE space = :space AND work > 0") or 0
            return planned.get("version", at) < at
        case "canvas":
            at = last_reviewed(tx).get(planned.get("canvas"), 0)
            return planned.get("upto", at + 1) <= at


def _read_to(tx: Transaction, session: str) -> int:
    sql = "SELECT position FROM progress WHERE space = :space AND session = ?"
    return tx.get(sql, _session(tx, session)) or 0


def last_reviewed(tx: Transaction) -> dict[Any, int]:
    """Return the number of the last record that a model has reviewed, by canvas, from the bases of finished jobs."""
    last: dict[Any, int] = {}
    for basis in tx.column("SELECT basis FROM work WHERE space = :space AND stage = 'canvas' AND state = 'done'"):
        planned: dict[str, Any] = json.loads(basis)
        if "canvas" in planned:
            last[planned["canvas"]] = max(last.get(planned["canvas"], 0), planned.get("upto", 0))
    return last


def park(tx: Transaction, id: str, *, error: str, wait: timedelta) -> None:
    """Record that a job failed. Until `wait` is over, `lease` leases it only with `eager`.

    Does nothing if the job is done or gone.
    """
    change = f"state = 'parked', attempts = attempts + 1, error = ?, until = {NOW} + ?"
    _change(tx, id, change, error, milliseconds(wait))


def release(tx: Transaction, id: str) -> None:
    """Release a job that was not tried, so that the next holder may lease it at once.

    Its row and its count of failures are kept.
    """
    _change(tx, id, "until = 0", only="state = 'open'")


def _change(tx: Transaction, id: str, change: str, *values: Value, only: str = "state <> 'done'") -> None:
    sql = f"UPDATE work SET {change} WHERE space = :space AND id = ? AND {only} RETURNING 1"
    if tx.get(sql, *values, number_of(id, "w")):
        tx.touch("work")


# --- reading ----------------------------------------------------------------------------------------


def list_jobs(tx: Transaction, *, stage: Stage | None = None) -> list[Work]:
    """Return open and parked jobs, oldest first."""
    of_stage = "" if stage is None else "AND r.stage = ?"
    which = f"r.state <> 'done' {of_stage} ORDER BY r.id"
    return list(row_codec.rows(tx, Work, which, *(() if stage is None else (stage,))))


def next_retry(tx: Transaction) -> timedelta | None:
    """Return how long until `lease` without `eager` may lease an open or parked job; None without jobs."""
    wait: int | None = tx.get(f"SELECT min(until) - {NOW} FROM work WHERE space = :space AND state <> 'done'")
    return None if wait is None else max(timedelta(0), timedelta(milliseconds=wait))


def by_id(tx: Transaction, id: str) -> Work:
    """Return a job, even if it is done. Raises NotFound if it is unknown or was taken over under a new id."""
    return _read_job(tx, number_of(id, "w"))


def _read_job(tx: Transaction, number: int) -> Work:
    work = next(row_codec.rows(tx, Work, "r.id = ?", number), None)
    if work is None:
        raise NotFound(
            f"There is no question w{number} in this space now. If it was handed out, its time ran out and another "
            "took it: ask for the next question instead."
        )
    return work


def stage_totals(tx: Transaction) -> list[Done]:
    """Return the totals of all finished jobs, by stage."""
    # Most jobs have one of a few outcomes, so grouping them first leaves little JSON to parse.
    rows = tx.all(
        "SELECT stage, coalesce(outcome, '{}'), count(*), count(CASE WHEN holder <> '' THEN 1 END),"
        " max(coalesce(done_at, at)) FROM work WHERE space = :space AND state = 'done' GROUP BY stage, outcome"
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


# --- how far each stage has come --------------------------------------------------------------------


def backlog(tx: Transaction, *, session: str | None = None, limit: int = 1_000) -> list[Backlog]:
    """Return sessions with turns of users and assistants that no extraction has read, the last written first."""
    only = "" if session is None else "AND s.id = ?"
    # Join order: sessions first, in the order of the covering index of turns: a session that was fully read costs one
    # lookup, half a microsecond. 10,000 of them take 6 ms, 100,000 unread turns 45 ms.
    rows = tx.all(
        "WITH unread AS MATERIALIZED ("
        " SELECT s.id, s.name, count(*) AS turns, count(CASE WHEN t.role = 'user' THEN 1 END) AS asked,"
        "  max(t.id) AS newest FROM session s LEFT JOIN progress p ON p.space = s.space AND p.session = s.id"
        " CROSS JOIN turn t ON t.space = s.space AND t.session = s.id AND t.position >= coalesce(p.position, 0)"
        "  AND t.role IN ('user', 'assistant')"
        "  AND t.id NOT IN (SELECT g.id FROM turn g WHERE g.space = :space AND g.tombstone IS NOT NULL)"
        f" WHERE s.space = :space {only} GROUP BY s.id, s.name ORDER BY newest DESC LIMIT ?)"
        " SELECT u.name, coalesce(p.position, 0), u.turns, u.asked, coalesce(p.batches, 0), t.learned_at,"
        "  coalesce(p.flush, 0) FROM unread u"
        " LEFT JOIN progress p ON p.space = :space AND p.session = u.id"
        " JOIN turn t ON t.space = :space AND t.id = u.newest ORDER BY u.newest DESC",
        *(() if session is None else (tx.session(session),)),
        limit,
    )
    return [
        Backlog(
            session=name,
            start=start,
            turns=turns,
            asked=asked,
            batches=batches,
            last=from_ms(last),
            flush=flush_to,
        )
        for name, start, turns, asked, batches, last, flush_to in rows
    ]


MOST_UNDISTILLED = 200
UNDISTILLED = (
    "(SELECT count(*) FROM (SELECT 1 FROM (SELECT s.id, coalesce(p.position, 0) AS start FROM session s"
    " LEFT JOIN progress p ON p.space = s.space AND p.session = s.id WHERE s.space = :space"
    " ORDER BY s.id DESC LIMIT 1000) unread"
    " CROSS JOIN turn ut ON ut.space = :space AND ut.session = unread.id AND ut.position >= unread.start"
    " AND ut.role IN ('user', 'assistant') AND ut.tombstone IS NULL"
    f" LIMIT {MOST_UNDISTILLED}) undistilled)"
)
"""The number of turns in the newest thousand sessions of a space that no extraction has read.

It is counted up to `MOST_UNDISTILLED`, so that it takes a tenth of a millisecond.
"""


def flush(tx: Transaction, session: str) -> None:
    """Request the extraction of all turns of a session, without waiting for more turns."""
    asked = tx.get(
        "INSERT INTO progress (space, session, position, batches, flush)"
        " SELECT space, session, 0, 0, max(position) + 1 FROM turn WHERE space = :space AND session = ?"
        " GROUP BY space, session ON CONFLICT (space, session) DO UPDATE SET flush = excluded.flush"
        " WHERE progress.flush < excluded.flush RETURNING 1",
        tx.session(session),
    )
    if asked is not None:
        tx.touch("work")


def stage_states(tx: Transaction) -> dict[Stage, StageState]:
    """Return the progress of the stages that have a cursor in the space.

    Stages that never ran and were not requested are left out.
    """
    rows = tx.all(
        "SELECT stage, position, at, wanted FROM stage_cursor WHERE space = :space AND (at > 0 OR wanted IS NOT NULL)"
    )
    return {stage: StageState(position=position, at=from_ms(at), wanted=reason) for stage, position, at, reason in rows}


def request_stage(tx: Transaction, stage: Stage, reason: str) -> None:
    """Request a stage before it is due. The request ends with the commit of a job that was created after it.

    A stage that never ran gets a cursor before all rows, dated 1970.
    """
    tx.make_space()
    tx.run(
        "INSERT INTO stage_cursor (space, stage, position, at, wanted, wanted_after) VALUES (:space, ?, 0, 0, ?, ?)"
        " ON CONFLICT (space, stage) DO UPDATE SET wanted = excluded.wanted, wanted_after = excluded.wanted_after",
        *(stage, reason, tx.last("work")),
    )
    tx.touch("work")
