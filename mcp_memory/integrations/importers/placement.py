"""Gives each imported turn its session, time and id, and recognises turns that are already stored."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import holds_key, mask
from mcp_memory.core.text import safe_name, with_zone
from mcp_memory.core.types import IMPORTED, NewTurn
from mcp_memory.integrations.importers.follow import stored_words
from mcp_memory.integrations.importers.records import ImportedResult, ImportedTurn
from mcp_memory.integrations.importers.report import ImportCounts
from mcp_memory.service.memory import Memory
from mcp_memory.store.values import ClientTurn

STEP = timedelta(milliseconds=100)
"""The time between two turns without times."""


@dataclass(slots=True)
class _SessionClock:
    """A session, the last known time in it, and the number of turns since."""

    name: str
    clock: datetime | None = None
    since: int = 0
    place: int = 0
    """The number of turns in the session."""
    equal_turns: Counter[bytes] = field(default_factory=Counter[bytes])
    """The number of equal turns without an id, by the hash of role, name and words."""


class PlacedTurn(NamedTuple):
    """A turn, its session, and other ids that it may have been stored with: see `TurnPlacement`."""

    session: str
    turn: NewTurn
    others: Sequence[str] = ()

    @property
    def ids(self) -> Sequence[str]:
        return (str(self.turn.client_id), *self.others)


class TurnPlacement:
    """Gives each turn of a file its session, its time, and an id by which it is recognised.

    `default` is the session of turns without a session. A turn without a time gets a guessed time, 100 ms after the
    turn before; `start` is the guess for the first turn. The id depends on the turn and not on the file: it is the
    turn's own id, otherwise computed from its session, role, name and words, and from the number of equal turns
    before it in the session, so that two equal turns are stored twice. Times are not part of it, so a turn is
    recognised whether its time can be read or not. `others` are the ids of earlier versions, with the time and the
    number of turns since; the first of them is the id of a turn that repeats the words of a stored turn at another
    time.
    """

    def __init__(self, *, default: str | None, start: datetime) -> None:
        self._default = default
        self._next = start
        self._sessions: dict[str, _SessionClock] = {}
        self.renamed: dict[str, str] = {}
        """Invalid session names, and their replacements."""
        self.undated = 0

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def place(self, source_turn: ImportedTurn) -> PlacedTurn:
        """Place the next turn, without private passages, so its id ignores them.

        Raises InvalidInput if neither the turn nor `default` names a session.
        """
        if source_turn.role != "tool":
            source_turn = replace(
                source_turn,
                content=without_private(source_turn.content),
                name=source_turn.name and without_private(source_turn.name),
            )
        session = self._session(source_turn.where, source_turn.session, source_turn.conversation)
        said_at = source_turn.said_at
        if said_at is not None and said_at != session.clock:
            session.clock, session.since = said_at, 0
        id, others = source_turn.id, ()
        if id is None:
            id, others = _content_ids(session, source_turn)
        turn = NewTurn(
            role=source_turn.role,
            content=source_turn.content,
            name=source_turn.name,
            said_at=said_at or self._guess(session, source_turn.began),
            client_id=id,
            guessed=said_at is None,
        )
        session.since += 1
        session.place += 1
        return PlacedTurn(session.name, turn, others)

    def _guess(self, session: _SessionClock, began: datetime | None) -> datetime:
        self.undated += 1
        base = session.clock or began
        if base is None:
            self._next += STEP
            return self._next - STEP
        try:
            return with_zone(base + STEP * session.since)
        except (OverflowError, ValueError):  # past the last possible time
            return base

    def session_of(self, result: ImportedResult) -> str:
        """Return the session of a tool result. Raises InvalidInput if neither it nor `default` names one."""
        return self._session(result.where, result.session, result.conversation).name

    def _session(self, where: str, name: str | None, conversation: int) -> _SessionClock:
        if not name and self._default is None:
            raise InvalidInput(f"{where} has no session. Pass --session to name the session of such turns.")
        if not name:
            name = f"{self._default}-{conversation}" if conversation > 1 else str(self._default)
        if name not in self._sessions:
            self._sessions[name] = _SessionClock(self._storable_name(name))
        return self._sessions[name]

    def _storable_name(self, name: str) -> str:
        """Return the session's name, or a similar one if it contains a secret or cannot be part of a file name.

        A changed name is recorded in `renamed`.
        """
        try:
            if not holds_key(name):
                return safe_name(name, what="session")
        except InvalidInput:
            pass
        shown = mask(name)
        mark = hashlib.sha256(shown.encode()).hexdigest()[:6]
        like = _FORBIDDEN.sub("-", shown).encode()[:_MAX_NAME_BYTES].decode(errors="ignore").strip(" .-")
        self.renamed[name] = f"{like or 'session'}-{mark}"
        return self.renamed[name]


_FORBIDDEN = re.compile(r'[.<>:"/\\|?*\x00-\x1f\x7f]+')
_MAX_NAME_BYTES = 100  # file systems allow 255: the rest is for a hash


def _content_ids(session: _SessionClock, turn: ImportedTurn) -> tuple[str, tuple[str, str]]:
    """Return the id of a turn without one, and the ids of earlier versions: with its time, and as if without time."""
    words = turn.role, turn.name or "", turn.content
    digest = _hash_fields(b"mcp-memory import 2\n", session.name, *words)
    session.equal_turns[digest] += 1
    id = _hash_fields(b"mcp-memory import 2\n", session.name, str(session.equal_turns[digest]), *words)
    clock = "" if session.clock is None else session.clock.astimezone(UTC).isoformat()
    dated = _hash_fields(b"mcp-memory import 1\n", session.name, clock, str(session.since), *words)
    undated = _hash_fields(b"mcp-memory import 1\n", session.name, "", str(session.place), *words)
    shown = [f"{IMPORTED}{digest.hex()[:24]}" for digest in (id, dated, undated)]
    return shown[0], (shown[1], shown[2])


def _hash_fields(start: bytes, *fields: str) -> bytes:
    digest = hashlib.sha256(start)
    for part in fields:
        data = part.encode()
        digest.update(b"%d:" % len(data) + data)
    return digest.digest()


# --- turns that are stored already ---


async def without_stored(
    memory: Memory, session: str, placed: Sequence[PlacedTurn], counts: ImportCounts
) -> list[NewTurn]:
    """Return the turns of a session that are not stored yet, and count the others in `counts`.

    A turn with an id from its file equals a stored turn with the same id and words if just one of them has a time.
    A turn without one equals a stored turn with the same words unless both have times, and the times differ.
    """
    stored = await memory.client_turns([id for each in placed for id in each.ids])
    new: list[NewTurn] = []
    for each in placed:
        turn, same = each.turn, _same_turns(each, session, stored)
        if not same and each.others and str(turn.client_id) in stored:
            turn = replace(turn, client_id=each.others[0])  # the same words again, at another time
        if not same:
            new.append(turn)
        elif all(row.forgotten for row in same):
            counts.forgotten += 1
        else:
            counts.duplicates += 1
    return new


def _same_turns(placed: PlacedTurn, session: str, stored: Mapping[str, Sequence[ClientTurn]]) -> list[ClientTurn]:
    turn = placed.turn
    rows = [row for row in stored.get(str(turn.client_id), ()) if row.session == session]
    said_at = None if turn.guessed else turn.said_at
    if placed.others:
        same = [row for row in rows if None in (said_at, row.said_at) or _is_at(row.said_at, said_at)]
        return same or [row for id in placed.others for row in stored.get(id, ())]
    return [
        row for row in rows if (row.said_at is None) != (said_at is None) and row.content in (None, stored_words(turn))
    ]


def _is_at(stored: datetime | None, said_at: datetime | None) -> bool:
    return stored is not None and said_at is not None and abs(stored - said_at) < timedelta(milliseconds=1)
