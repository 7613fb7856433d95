"""Turns (layer L0) with their index terms, vectors and journal lines.

Also records which files were imported and which logs are followed, since turns come from both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

from mcp_memory.core.types import NewTurn, Role, SessionInfo, Turn
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.row_types import TurnRow
from mcp_memory.store.sql import digests, evidence_rows, job_rows, quarantine_rows, row_codec, word_index
from mcp_memory.store.sql.filters import where
from mcp_memory.store.sql.line_forms import line_of
from mcp_memory.store.sql.transaction import Transaction, Value, from_ms, marks, number_of, numbers_of, to_ms
from mcp_memory.store.values import PROJECT_FILE, Appended, ClientTurn, Filters, FollowedLog, Imported, Vectors

_COLUMNS = row_codec.columns(Turn)
SPOKEN = "t.role <> 'note' AND t.id NOT IN (SELECT g.id FROM turn g WHERE g.space = :space AND g.tombstone IS NOT NULL)"
"""The condition that a turn `t` is neither a note nor forgotten, which is tested by indexes alone."""
_OF_NAME = "(SELECT id FROM session WHERE space = :space AND name = ?)"
_LOOK_BACK = 1000


@dataclass(frozen=True)
class IncomingTurn:
    """A turn that a client sent, with values derived from it once, preferably before the transaction."""

    turn: NewTurn
    is_indexed_later: bool = False
    """Whether `Store.index_new_turns` indexes its words, instead of the transaction that stores it."""

    @cached_property
    def hash(self) -> bytes:
        return evidence_hash(self.turn)

    @cached_property
    def terms(self) -> list[str] | None:
        """The index terms of the turn; None for a note, because searches find its atom, which has the same text."""
        turn = self.turn
        return None if turn.role == "note" else word_index.terms_of_turn(turn.content, turn.name)


_AHEAD = 10
"""Number of the last turns of a call whose terms `prepare` computes."""


def prepare(new: Sequence[NewTurn], *, are_indexed_later: bool = False) -> list[IncomingTurn]:
    """Compute index terms of turns before their transaction, so that other writers do not wait, and return the turns.

    This is done only for the last turns: when a client sends its history again, most earlier turns are stored already.
    It is not done if the turns are indexed later: then the caller has `Store.index_new_turns` called soon.
    """
    turns = [IncomingTurn(turn, are_indexed_later) for turn in new]
    for turn in () if are_indexed_later else turns[-_AHEAD:]:
        turn.terms  # noqa: B018
    return turns


_Key = tuple[str | None, bytes]
"""The client id of a turn, as it is stored, and its hash."""


@dataclass(frozen=True, slots=True)
class _ClientId:
    """The stored form of the id that a client gave to a turn.

    `others` are further forms under which the same turn may have been stored.
    """

    stored: str | None = None
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _KnownTurn:
    """A turn of the session that may equal a new turn. A purged turn has a keyed hash."""

    key: _Key
    is_forgotten: bool
    is_purged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """The state of a session, and of its space, at the start of a transaction.

    `number` is None for a new session; `name` differs from the client's if a purge has renamed it. `position` is that
    of its next turn. `last_turn` and `last_session` are the last numbers of the space. `latest` are its turns, newest
    first, back to the first that may equal the first new turn; `same_id` the turns with the client ids of new turns.
    """

    name: str
    number: int | None
    position: int
    last_turn: int
    last_session: int
    any_forgotten: bool
    undistilled: int
    ids: Sequence[_ClientId]
    latest: Sequence[_KnownTurn]
    same_id: Sequence[_KnownTurn]


def _read_session(
    tx: Transaction, session: str, new: Sequence[IncomingTurn], *, called: str | None = None, is_counting: bool = False
) -> _Session:
    """Read everything that decides what is stored of the turns, in one query if nothing was ever forgotten.

    `called` is the client's name of a session that a purge has renamed. `undistilled` is counted if `is_counting`.
    """
    given = [incoming.turn.client_id for incoming in new]
    has_digests = any(id is not None and digests.derived_id(id) is not None for id in given)
    key = digests.key_of(tx) if has_digests else None
    at = _query_session(tx, session, new, [_client_id(key, called or session, turn) for turn in new], is_counting)
    if at.any_forgotten and key is None and any(id is not None for id in given):
        key = digests.key_of(tx)  # purged turns have keyed ids
        at = _query_session(tx, session, new, [_client_id(key, called or session, turn) for turn in new], is_counting)
    if at.number is None and at.any_forgotten and called is None and tx.session(session) is not None:
        return _read_session(tx, tx.purged_name(session), new, called=session, is_counting=is_counting)
    return at


def _query_session(
    tx: Transaction, session: str, new: Sequence[IncomingTurn], ids: Sequence[_ClientId], is_counting: bool
) -> _Session:
    columns, values = ("position", "client_id", "sha256", "tombstone", "purged_at"), list[Value]()
    latest, known = "", list[str]()
    if any(id.stored is None for id in ids):
        latest = (
            f"WITH latest AS (SELECT {', '.join(columns)} FROM turn WHERE space = :space AND session = {_OF_NAME}"
            " AND role <> 'note' ORDER BY position DESC LIMIT ?) "
        )
        known.append(
            "SELECT 1 AS of_run, latest.* FROM latest WHERE position >= (SELECT min(position) FROM latest"
            " WHERE purged_at IS NOT NULL OR (client_id IS NOT DISTINCT FROM ? AND sha256 = ?))"
        )
        values += [session, len(new) + _LOOK_BACK]
    undistilled = job_rows.UNDISTILLED if is_counting else "0"
    state = (
        "SELECT s.id,"
        f" (SELECT coalesce(max(position), -1) + 1 FROM turn WHERE space = :space AND session = {_OF_NAME}),"
        f" coalesce(n.last, 0), coalesce(l.last, 0), {digests.ANY}, {undistilled},"
        f" k.of_run, {', '.join(f'k.{column}' for column in columns)} FROM (SELECT 1) one"
        " LEFT JOIN session s ON s.space = :space AND s.name = ?"
        " LEFT JOIN number n ON n.space = :space AND n.kind = 'turn'"
        " LEFT JOIN number l ON l.space = :space AND l.kind = 'session'"
    )
    values += [session, session]
    if known:
        values += [ids[0].stored, new[0].hash]
    if forms := list(dict.fromkeys(form for id in ids if id.stored is not None for form in (id.stored, *id.others))):
        known.append(
            f"SELECT 0 AS of_run, {', '.join(columns)} FROM turn WHERE space = :space AND session = {_OF_NAME}"
            f" AND client_id IN ({marks(forms)})"
        )
        values += [session, *forms]
    known = known or [f"SELECT NULL AS of_run, {', '.join(f'NULL AS {column}' for column in columns)}"]
    rows = tx.all(f"{latest}{state} LEFT JOIN ({' UNION ALL '.join(known)}) k ON 1 = 1", *values)
    number, position, last_turn, last_session, any_forgotten, undistilled_turns = rows[0][:6]
    turns = [
        (of_run, _KnownTurn((client_id, bytes(sha256)), tombstone is not None, purged_at is not None))
        for of_run, _, client_id, sha256, tombstone, purged_at in sorted(
            (row[6:] for row in rows if row[6] is not None), key=lambda row: -row[1]
        )
    ]
    return _Session(
        name=session,
        number=number,
        position=position,
        last_turn=last_turn,
        last_session=last_session,
        any_forgotten=bool(any_forgotten),
        undistilled=undistilled_turns,
        ids=ids,
        latest=[turn for of_run, turn in turns if of_run],
        same_id=[turn for of_run, turn in turns if not of_run],
    )


def append(
    tx: Transaction,
    session: str,
    new: Sequence[IncomingTurn],
    *,
    now: datetime,
    vectors: Vectors | None = None,
    earlier: str | None = None,
    is_counting: bool = False,
) -> Appended:
    """Append turns in order, with their index terms, vectors (one per turn) and journal lines.

    Turns that the session already has are counted as duplicates and not stored. A turn with a `client_id` is a
    duplicate if the session has a turn with the same id and hash. Turns without an id are duplicates if they are part
    of the longest run at the start of `new` that repeats the end of the session, because some clients send their
    history again. The hash includes `said_at` only if the client knew that time. Forgotten turns are not stored again:
    these are turns with forgotten words that were said before the words were forgotten, or that have no time and belong
    to a session that had these words.

    `earlier` is given if the client named no session, and its conversations share one: the one that it had before. A
    call that is sent again is then recognised there too, and although others were stored meanwhile: a single turn is a
    duplicate if it is long enough to be recognised by its words alone. With `is_counting`, the turns that no extraction
    has read are counted.

    If a purge has renamed the session, the turns get the new name.
    """
    tx.make_space()
    if not new:
        return Appended(stored=[], duplicates=0, session=session)
    at = _read_session(tx, session, new, is_counting=is_counting)
    if at.number is None and earlier is not None:
        before = _read_session(tx, earlier, new, is_counting=is_counting)
        fresh, gone = _not_yet_stored(tx, before, new, is_shared=True)
        if not fresh:
            return Appended(stored=[], duplicates=len(new) - gone, forgotten=gone, session=earlier)
    lacking, gone = _not_yet_stored(tx, at, new, is_shared=earlier is not None)
    again = [new[i].turn for i in lacking]
    forgotten = digests.forgotten_turns(tx, session, again) if at.any_forgotten else set[int]()
    fresh = [i for place, i in enumerate(lacking) if place not in forgotten]
    with tx.together():
        stored = _insert(tx, at, [new[i] for i in fresh], ids=[at.ids[i] for i in fresh], now=now)
        if stored:
            if vectors is not None:
                tx.index.put_vectors("turn", [number_of(turn.id, "t") for turn in stored], vectors, rows=fresh)
            word_index.touch(tx, f"session:{at.name}", vectors=vectors)
    if stored:
        write_journal(tx, stored, now=now)
    return Appended(
        stored=stored,
        duplicates=len(new) - len(lacking) - gone,
        forgotten=len(forgotten) + gone,
        session=session,
        undistilled=at.undistilled + sum(turn.role in ("user", "assistant") for turn in stored),
    )


def count_forgotten(tx: Transaction, session: str, new: Sequence[NewTurn]) -> int:
    """Count the turns that `append` would refuse because they were forgotten. Writes nothing."""
    if not new:
        return 0
    turns = [IncomingTurn(turn) for turn in new]
    lacking, gone = _not_yet_stored(tx, _read_session(tx, session, turns), turns)
    return gone + len(digests.forgotten_turns(tx, session, [new[i] for i in lacking]))


def insert(
    tx: Transaction,
    session: str,
    new: Sequence[NewTurn],
    *,
    now: datetime,
    statement: dict[str, Any] | None = None,
) -> list[Turn]:
    """Append turns to their session, with their index terms, but without their journal lines.

    Unlike `append`, it also stores duplicates and forgotten turns. For a note, `statement` has the fields of its atom.
    """
    if not new:
        return []
    turns = [IncomingTurn(turn) for turn in new]
    key = digests.key_of(tx) if any(turn.client_id is not None for turn in new) else None
    ids = [_client_id(key, session, turn) for turn in turns]
    at = _read_session(tx, session, [])
    with tx.together():
        return _insert(tx, at, turns, ids=ids, now=now, statement=statement)


def _insert(
    tx: Transaction,
    at: _Session,
    new: Sequence[IncomingTurn],
    *,
    ids: Sequence[_ClientId],
    now: datetime,
    statement: dict[str, Any] | None = None,
) -> list[Turn]:
    if not new:
        return []
    session = at.number
    if session is None:
        session = at.last_session + 1
        tx.set_last("session", session)
        tx.insert("session", id=session, name=at.name)
    first_id = at.last_turn + 1
    tx.set_last("turn", at.last_turn + len(new))
    learned = from_ms(to_ms(now))
    stored = [
        Turn(
            id=f"t{first_id + place}",
            session=at.name,
            position=at.position + place,
            role=turn.role,
            name=turn.name,
            content=turn.content,
            said_at=learned if turn.said_at is None else from_ms(to_ms(turn.said_at)),
            learned_at=learned,
            sha256=incoming.hash.hex(),
        )
        for place, incoming in enumerate(new)
        for turn in (incoming.turn,)
    ]
    tx.insert_all(
        "turn",
        [
            {
                "id": id,
                "session": session,
                "position": row.position,
                "role": turn.role,
                "name": turn.name,
                "content": turn.content,
                "client_id": client.stored,
                "said_at": to_ms(row.said_at),
                "dated": turn.said_at is not None and not turn.guessed,
                "learned_at": to_ms(now),
                "sha256": incoming.hash,
                "told": None if statement is None else json.dumps(statement),
            }
            for id, (row, incoming, client) in enumerate(zip(stored, new, ids, strict=True), start=first_id)
            for turn in (incoming.turn,)
        ],
    )
    if not new[0].is_indexed_later:
        tx.index.put_terms("turn", [(id, incoming.terms) for id, incoming in enumerate(new, start=first_id)])
    quarantine_rows.note(tx, {row.id: incoming.turn.held for row, incoming in zip(stored, new, strict=True)}, now=now)
    for turn in stored:
        if turn.role != "note":
            evidence_rows.note_citations(tx, turn.id, turn.content)
    return stored


def _client_id(key: digests.Key | None, session: str, incoming: IncomingTurn) -> _ClientId:
    """Return the id of a turn; without the key, only the form of an id that is no digest."""
    id = incoming.turn.client_id
    if id is None:
        return _ClientId()
    if key is None:
        return _ClientId(id)
    if (kind := digests.derived_id(id)) is None:
        return _ClientId(id, (digests.purged_id(key, id),))
    is_dated = incoming.turn.said_at is not None and not incoming.turn.guessed
    return _ClientId(
        digests.keyed_id(key, id), (digests.words_id(key, kind, session, incoming.hash),) if is_dated else ()
    )


def _not_yet_stored(
    tx: Transaction, at: _Session, new: Sequence[IncomingTurn], *, is_shared: bool = False
) -> tuple[list[int], int]:
    """Return the indexes in `new` of turns that the session lacks, and how many of the other turns are forgotten."""
    new_keys = [(client.stored, incoming.hash) for incoming, client in zip(new, at.ids, strict=True)]
    state_of = _state_lookup(at.same_id, {client.stored: client.others for client in at.ids})
    oldest_first = [*reversed(at.latest)]
    stored_keys, compared_keys = [turn.key for turn in oldest_first], new_keys
    if any(turn.is_purged for turn in oldest_first):  # purged turns have only a keyed hash
        key = digests.key_of(tx)
        stored_keys = [
            (turn.key[0], turn.key[1] if turn.is_purged else digests.purged_hash(key, turn.key[1]))
            for turn in oldest_first
        ]
        compared_keys = [(id, digests.purged_hash(key, digest)) for id, digest in new_keys]
    is_whole = len(new) > 1 or (is_shared and digests.is_distinct(new[0].turn.content))
    start, repeated = _find_repeated_run(stored_keys, compared_keys, is_whole=is_whole)
    seen: set[_Key] = set()
    fresh: list[int] = []
    gone = 0
    for place, key in enumerate(new_keys):
        if key[0] is None:
            if place >= repeated:
                fresh.append(place)
            else:
                gone += oldest_first[start + place].is_forgotten
        elif key in seen:
            continue
        elif (state := state_of(key)) is None:
            seen.add(key)
            fresh.append(place)
        else:
            gone += state == "forgotten"
    return fresh, gone


def _find_repeated_run(stored: Sequence[object], new: Sequence[object], *, is_whole: bool) -> tuple[int, int]:
    """Return the start and the length of a run in `stored` that is also the beginning of `new`; (0, 0) if none.

    Either the run ends with the last stored turn, as when a client sends its growing history again, or it is all of
    `new`, as when an earlier call is repeated, which only counts if `is_whole`: a single turn that equals an earlier
    turn, but not the last, was usually said twice.
    """
    for start in range(max(0, len(stored) - len(new)), len(stored)):
        if list(stored[start:]) == list(new[: len(stored) - start]):
            return start, len(stored) - start
    if is_whole:
        for start in range(len(stored) - len(new) + 1):
            if stored[start] == new[0] and list(stored[start : start + len(new)]) == list(new):
                return start, len(new)
    return 0, 0


def _state_lookup(
    same_id: Sequence[_KnownTurn], others: Mapping[str | None, Sequence[str]]
) -> Callable[[_Key], Literal["here", "forgotten"] | None]:
    """Return a function that maps the key of a new turn with an id to its state: None if the session lacks it."""
    of_id: dict[str | None, list[_KnownTurn]] = {}
    for turn in same_id:
        of_id.setdefault(turn.key[0], []).append(turn)

    def state_of(key: _Key) -> Literal["here", "forgotten"] | None:
        turns = [turn for id in (key[0], *others[key[0]]) for turn in of_id.get(id, ())]
        same = [turn for turn in turns if turn.is_purged or turn.key[1] == key[1]]
        return None if not same else "forgotten" if all(turn.is_forgotten for turn in same) else "here"

    return state_of


def write_journal(tx: Transaction, stored: Sequence[Turn], *, now: datetime) -> None:
    """Append turns with consecutive numbers to the journal of the day (in UTC) on which they were learned."""
    day = now.astimezone(UTC).date()
    numbers = number_of(stored[0].id, "t"), number_of(stored[-1].id, "t")
    tx.files.append(f"conversations/{day.isoformat()}.jsonl", _journal_lines(tx, "r.id BETWEEN ? AND ?", *numbers))


def day_lines(tx: Transaction, day: date) -> Iterator[bytes]:
    """Yield the lines of the journal of a day, in UTC."""
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    span = to_ms(start), to_ms(start) + 86_400_000
    return _journal_lines(tx, "r.learned_at >= ? AND r.learned_at < ?", *span)


def _journal_lines(tx: Transaction, which: str, *values: Value) -> Iterator[bytes]:
    yield from map(line_of, row_codec.rows(tx, TurnRow, f"{which} ORDER BY r.id", *values))


def by_ids(tx: Transaction, ids: Iterable[str]) -> list[Turn]:
    """Return turns that exist and are not forgotten, in the order of `ids`."""
    return list(tx.once("turn", numbers_of(ids, "t"), partial(_by_numbers, tx)).values())


def _by_numbers(tx: Transaction, numbers: Sequence[int]) -> dict[int, Turn]:
    # Join order: the rows first. With old statistics PostgreSQL may underestimate the number of turns.
    rows = tx.all(
        f"WITH r AS MATERIALIZED (SELECT * FROM turn WHERE space = :space AND id IN ({marks(numbers)}) AND tombstone"
        f" IS NULL) SELECT {_COLUMNS} FROM r JOIN session s ON s.space = r.space AND s.id = r.session",
        *numbers,
    )
    return {number_of(turn.id, "t"): turn for turn in map(_turn, rows)}


def session_turns(tx: Transaction, session: str, *, start: int = 0, limit: int = 100) -> list[Turn]:
    """Return turns of a session from position `start`, in order. Empty for an unknown session."""
    return _select(tx, session, "r.position >= ? ORDER BY r.position LIMIT ?", start, limit)


def last_turns(tx: Transaction, session: str, *, limit: int, roles: Sequence[Role] = ()) -> list[Turn]:
    """Return the newest turns of a session (of these roles), oldest first."""
    only = f"r.role IN ({marks(roles)}) AND " if roles else ""
    return _select(tx, session, f"{only}1 = 1 ORDER BY r.position DESC LIMIT ?", *roles, limit)[::-1]


def list_turns(tx: Transaction, *, filters: Filters, after: str | None = None, limit: int = 100) -> list[Turn]:
    """Return turns that pass the filters, without notes, the newest (by `said_at`, then id) first.

    With `after`, only the turns that follow that turn in this order.
    """
    condition, values = where(tx, "turn", filters)
    if after is not None:
        condition += " AND (r.said_at, r.id) < (SELECT said_at, id FROM turn WHERE space = :space AND id = ?)"
        values.append(number_of(after, "t"))
    sql = f"SELECT r.id FROM turn r WHERE {condition} AND r.role <> 'note' ORDER BY r.said_at DESC, r.id DESC LIMIT ?"
    return by_ids(tx, [f"t{number}" for number in tx.column(sql, *values, limit)])


def context_windows(tx: Transaction, ids: Iterable[str], *, around: int) -> list[Turn]:
    """Return these turns and up to `around` turns before and after each, every turn once, session by session."""
    rows: dict[int, _WindowRow] = {}
    for window in _windows(tx, dict.fromkeys(numbers_of(ids, "t"), around)):
        rows |= window
    return [turn for _, turn in sorted(rows.values(), key=lambda row: (row.session, row.turn.position))]


def read_ahead(tx: Transaction, reach: Mapping[str, int]) -> None:
    """Read turns that a snapshot will need, each with as many turns before and after it as `reach` says, at once."""
    if tx.known is not None:
        _windows(tx, {number_of(id, "t"): around for id, around in reach.items()})


class _WindowRow(NamedTuple):
    """A turn of a window, and the number of its session."""

    session: int
    turn: Turn


_Window = Mapping[int, _WindowRow]
"""The turns around a turn, and the turn itself unless it is forgotten, by number."""


def _windows(tx: Transaction, reach: Mapping[int, int]) -> list[_Window]:
    """Return the windows of turns; in a snapshot, only windows that were not read before are read."""
    known: dict[int, tuple[int, _Window]] = {} if tx.known is None else tx.known.setdefault("window", {})
    missing = {number: around for number, around in reach.items() if known.get(number, (-1,))[0] < around}
    new: Mapping[int, _Window] = _read_windows(tx, missing) if missing else {}
    # A window that lacks its turn, which is forgotten, cannot be made narrower later.
    known.update((number, (missing[number], window)) for number, window in new.items() if number in window)
    return [
        new[number] if number in new else _narrowed(known[number][1], number, around)
        for number, around in reach.items()
    ]


def _narrowed(window: _Window, number: int, around: int) -> _Window:
    own = window[number].turn.position
    return {other: row for other, row in window.items() if abs(row.turn.position - own) <= around}


def _read_windows(tx: Transaction, reach: Mapping[int, int]) -> Mapping[int, _Window]:
    # Join order: the hits first, so that each window is one range scan in the index of its session.
    found = tx.all(
        f"SELECT h.id, r.id, r.session, {_COLUMNS} FROM (VALUES {', '.join(['(?, ?)'] * len(reach))}) hits"
        " CROSS JOIN turn h ON h.space = :space AND h.id = hits.column1 CROSS JOIN turn r"
        " ON r.space = h.space AND r.session = h.session"
        " AND r.position BETWEEN h.position - hits.column2 AND h.position + hits.column2"
        " JOIN session s ON s.space = r.space AND s.id = r.session"
        " WHERE r.tombstone IS NULL AND (r.role <> 'note' OR r.id = h.id)",
        *(value for pair in reach.items() for value in pair),
    )
    windows: dict[int, dict[int, _WindowRow]] = {number: {} for number in reach}
    rows: dict[int, _WindowRow] = {}
    for center, number, session, *columns in found:
        if number not in rows:
            rows[number] = _WindowRow(session, _turn(columns))
        windows[center][number] = rows[number]
    tx.note_known("turn", {number: row.turn for number, row in rows.items()})
    return windows


def sessions(
    tx: Transaction, *, prefix: str = "", project: str | None = None, limit: int = 100, start: int = 0
) -> list[SessionInfo]:
    """Return sessions that have turns, the last written first, from the index `start` on.

    With `project`, only the sessions of that project are returned; with "", only sessions without a known project.
    """
    chosen = () if project is None else (project,)
    of_project = "1 = 1" if project is None else "coalesce(s.project, '') = ?"
    # Turns are counted only for the returned sessions. For all others only the newest turn is looked up, in the index
    # by session: 500 sessions with 100,000 turns take 2 ms. CROSS JOIN keeps that order.
    rows = tx.all(
        "WITH latest AS MATERIALIZED (SELECT s.id, s.name, (SELECT t.id FROM turn t WHERE t.space = s.space"
        f" AND t.session = s.id AND {SPOKEN} ORDER BY t.position DESC LIMIT 1) AS newest FROM session s"
        f" WHERE s.space = :space AND substr(s.name, 1, length(?)) = ? AND {of_project}),"
        " listed AS MATERIALIZED (SELECT * FROM latest WHERE newest IS NOT NULL"
        " ORDER BY newest DESC LIMIT ? OFFSET ?)"
        " SELECT l.name, count(*), min(t.said_at), max(t.said_at) FROM listed l"
        f" CROSS JOIN turn t ON t.space = :space AND t.session = l.id AND {SPOKEN}"
        " GROUP BY l.id, l.name, l.newest ORDER BY l.newest DESC",
        *(prefix, prefix, *chosen, limit, start),
    )
    return [
        SessionInfo(session=name, turns=count, first=from_ms(first), last=from_ms(newest))
        for name, count, first, newest in rows
    ]


def project_of_session(tx: Transaction, session: str) -> str | None:
    """Return the project of a session; None if it is unknown."""
    row = tx.one("SELECT id, project FROM session WHERE space = :space AND name = ?", session)
    if row is not None:
        tx.note_known("session", {session: row[0]})
        return row[1]
    return tx.get("SELECT project FROM session WHERE space = :space AND id = ?", tx.session(session))


def note_project(tx: Transaction, session: str, project: str) -> None:
    """Record the project of a session that exists and has none yet."""
    number = tx.session(session)
    tx.run("UPDATE session SET project = ? WHERE space = :space AND id = ? AND project IS NULL", project, number)


def _select(tx: Transaction, session: str, rest: str, *values: Value) -> list[Turn]:
    which = f"r.session = ? AND r.tombstone IS NULL AND {rest}"
    return list(row_codec.rows(tx, Turn, which, tx.session(session), *values))


def _turn(row: Sequence[Any]) -> Turn:
    return Turn(**row_codec.fields_of(Turn, row))


# --- imports and logs of clients --------------------------------------------------------------------


def imported_files(tx: Transaction) -> list[Imported]:
    """Return files whose turns were stored, latest first."""
    return list(row_codec.rows(tx, Imported, "1 = 1 ORDER BY r.at DESC, r.path"))


def note_imported_file(tx: Transaction, file: Imported) -> None:
    """Record that all turns of a file are stored.

    If a file with the same content was recorded under another path, the new path replaces it.
    """
    tx.make_space()
    tx.run(
        "INSERT INTO imported (space, sha256, path, modified, turns, at) VALUES (:space, ?, ?, ?, ?, ?)"
        " ON CONFLICT (space, sha256) DO UPDATE SET path = excluded.path, modified = excluded.modified,"
        " turns = excluded.turns, at = excluded.at",
        *(file.sha256, file.path, file.modified, file.turns, to_ms(file.at)),
    )


def followed_logs(tx: Transaction, *, path: str | None = None) -> list[FollowedLog]:
    """Return client logs that were read (or only the log at a path), latest read first."""
    which = "r.client <> ?" if path is None else "r.client <> ? AND r.path = ?"
    values = (PROJECT_FILE,) if path is None else (PROJECT_FILE, path)
    return list(row_codec.rows(tx, FollowedLog, f"{which} ORDER BY r.at DESC, r.path", *values))


def note_followed_log(tx: Transaction, log: FollowedLog) -> None:
    """Record how far a log was read."""
    tx.make_space()
    tx.run("DELETE FROM followed WHERE space = :space AND path = ?", log.path)
    tx.insert("followed", **row_codec.columns_of(tx, log))


def known_client_ids(tx: Transaction, ids: Sequence[str]) -> dict[str, bool]:
    """Map the client ids that turns of any session have to whether all of these turns are forgotten.

    Other ids are left out.
    """
    key = digests.key_of(tx) if ids else b""
    ids_by_form = digests.stored_ids(key, ids)
    query = "SELECT client_id FROM turn WHERE space = :space {} AND client_id IN ({{}})"
    here = {ids_by_form[form] for (form,) in tx.among(query.format("AND tombstone IS NULL"), ids_by_form)}
    return {ids_by_form[form]: ids_by_form[form] not in here for (form,) in tx.among(query.format(""), ids_by_form)}


def client_turns(tx: Transaction, ids: Sequence[str]) -> dict[str, list[ClientTurn]]:
    """Return the turns of any session that have these client ids, forgotten ones too; other ids are left out."""
    key = digests.key_of(tx) if ids else b""
    ids_by_form = digests.stored_ids(key, ids)
    query = (
        "SELECT r.client_id, s.name, r.content, r.said_at, r.dated, r.tombstone IS NOT NULL, r.purged_at IS NOT NULL"
        " FROM turn r JOIN session s ON s.space = r.space AND s.id = r.session"
        " WHERE r.space = :space AND r.client_id IN ({})"
    )
    found: dict[str, list[ClientTurn]] = {}
    for form, session, content, said_ms, is_dated, is_forgotten, is_purged in tx.among(query, ids_by_form):
        turn = ClientTurn(
            session=session,
            content=None if is_purged else content,
            said_at=from_ms(said_ms) if is_dated else None,
            forgotten=bool(is_forgotten),
        )
        found.setdefault(ids_by_form[form], []).append(turn)
    return found


def stored_calls(tx: Transaction, session: str, ids: Sequence[str]) -> set[str]:
    """Return which of these tool calls of a session have a stored result, even if the result was forgotten."""
    query = "SELECT tool_call_id FROM {} WHERE space = :space AND session = ? AND tool_call_id IN ({{}})"
    key = digests.key_of(tx) if ids else b""
    ids_by_form = digests.stored_ids(key, ids)
    of_session = tx.session(session)
    records = tx.among(query.format("record"), ids_by_form, of_session)
    refs = tx.among(query.format("ref"), ids_by_form, session)
    return {ids_by_form[form] for (form,) in (*records, *refs)}
