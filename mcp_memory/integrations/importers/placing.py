"""Gives each turn of a history its session, its time and an id by which it is known again. No I/O.

The id rests on what the file says of the turn and not on the file: its own id; else its session, role, name, words
and time, and how many turns of the session were told since that time, so that what was said twice is stored twice.
A time that is not told is a guess, 100 ms after the turn before; a guess is no part of the id or of the turn's hash,
so that the same history is known again in a file of another date.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.secrets import holds_key, mask
from mcp_memory.core.text import safe_name, zoned
from mcp_memory.core.types import IMPORTED, NewTurn
from mcp_memory.integrations.importers.formats.told import Told

__all__ = ["STEP", "Places"]

STEP = timedelta(milliseconds=100)

_FORBIDDEN = re.compile(r'[.<>:"/\\|?*\x00-\x1f\x7f]+')
_LONGEST = 100  # bytes, so that there is room for what tells two names apart


@dataclass(slots=True)
class _Session:
    name: str
    clock: datetime | None = None
    """The last time told in it."""
    since: int = 0
    """Turns since then."""


class Places:
    """Where the turns of one file belong, one pass over it.

    `default` is the session of turns that name none, `start` the guess for the first one without a time.
    """

    def __init__(self, *, default: str | None, start: datetime) -> None:
        self._default = default
        self._next = start
        self._sessions: dict[str, _Session] = {}
        self.renamed: dict[str, str] = {}
        """Names that could not be kept, and what stands for them."""
        self.undated = 0

    @property
    def sessions(self) -> int:
        return len(self._sessions)

    def place(self, told: Told) -> tuple[str, NewTurn]:
        """Return the session's name and the turn."""
        session = self._session(told)
        said_at = told.said_at
        if said_at is not None and said_at != session.clock:
            session.clock, session.since = said_at, 0
        turn = NewTurn(
            role=told.role,
            content=told.content,
            name=told.name,
            said_at=said_at or self._guess(session, told.began),
            client_id=told.id or _known_by(session, told),
            guessed=said_at is None,
        )
        session.since += 1
        return session.name, turn

    def _guess(self, session: _Session, began: datetime | None) -> datetime:
        self.undated += 1
        known = session.clock or began
        if known is not None:
            return _after(known, session.since)
        self._next += STEP
        return self._next - STEP

    def _session(self, told: Told) -> _Session:
        told_name = told.session or self._without_name(told)
        session = self._sessions.get(told_name)
        if session is None:
            session = self._sessions[told_name] = _Session(self._kept(told_name))
        return session

    def _without_name(self, told: Told) -> str:
        if self._default is None:
            raise InvalidInput(f"{told.where} names no session. Say with --session where such turns belong.")
        return self._default if told.conversation < 2 else f"{self._default}-{told.conversation}"

    def _kept(self, name: str) -> str:
        """Return the name, or one like it where it cannot be part of a file name; two that differ stay two."""
        try:
            if not holds_key(name):
                return safe_name(name, what="session")
            raise InvalidInput("a key is no name")
        except InvalidInput:
            mark = hashlib.sha256(name.encode()).hexdigest()[:6]
            like = _FORBIDDEN.sub("-", mask(name)).encode()[:_LONGEST].decode(errors="ignore").strip(" .-")
            self.renamed[name] = f"{like or 'session'}-{mark}"
            return self.renamed[name]


def _after(known: datetime, turns: int) -> datetime:
    try:
        return zoned(known + STEP * turns)
    except (OverflowError, ValueError):  # there is no later moment
        return known


def _known_by(session: _Session, told: Told) -> str:
    clock = "" if session.clock is None else session.clock.astimezone(UTC).isoformat()
    digest = hashlib.sha256(b"mcp-memory import 1\n")
    for field in (session.name, clock, str(session.since), told.role, told.name or "", told.content):
        data = field.encode()
        digest.update(b"%d:" % len(data) + data)
    return f"{IMPORTED}{digest.hexdigest()[:24]}"
