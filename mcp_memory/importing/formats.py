"""What the objects of a history say: turns, conversations, and seeds of TencentDB Agent Memory. No I/O, no state.

    turn           {role, content, session?, name?, said_at?, id?}
    conversation   {session?, turns: [turn, …]}, or `messages`
    seed           {sessionKey, sessionId?, conversations: [[turn, …], …]}, alone or in {sessions: [seed, …]}

Each is told by its shape. Names that exports use for the same thing are known (`timestamp`, `session_id`, the role
`human` …); what else an object has is passed over and named. A turn may be without text, as where a model only called
a tool: it is told all the same, empty, so that those after it are counted as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from mcp_memory.longterm.l0_turns import MAX_TURN_BYTES
from mcp_memory.text import one_line, well_formed
from mcp_memory.types import Role

__all__ = ["Passed", "Told", "Wrong", "told"]

_ROLES: dict[str, Role] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "toolresult": "tool",
}
_SESSION = ("session", "session_id", "sessionId", "sessionKey", "conversation_id")
_TIME = ("said_at", "timestamp", "created_at")
_BEGAN = (*_TIME, "started_at")
_TURNS = ("turns", "messages")
_CALLS = ("tool_calls", "function_call")
_OF_TURN = frozenset({"role", "content", "name", "id", *_SESSION, *_TIME})
_OF_CONVERSATION = frozenset({*_SESSION, *_BEGAN, *_TURNS, "id"})
_OF_SEED = frozenset({"sessionKey", "sessionId", "conversations"})
_LONGEST_ID = 200
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A turn as its file tells it."""

    where: str
    role: Role
    content: str
    """Empty where it has no text."""
    name: str | None
    said_at: datetime | None
    id: str | None
    session: str | None
    conversation: int = 0
    """Which object of the file it was told in, counted from 1; 0 for a turn on its own."""
    began: datetime | None = None
    """When its conversation began, where that is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What cannot be taken, where, and what to do. `torn`: the last line of a file that is still being written."""

    where: str
    what: str
    torn: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(kw_only=True)
class Passed:
    """What was passed over in the objects of a file."""

    keys: set[str] = field(default_factory=set[str])
    parts: int = 0
    """Parts of contents that are no text: images, calls of tools."""
    mended: int = 0
    """Texts with half a character, which stands as U+FFFD now."""


class _Unfit(Exception):
    """Why a field cannot be taken; becomes a Wrong."""


def told(value: Any, where: str, number: int, passed: Passed, *, seeds_only: bool = False) -> Iterator[Told | Wrong]:
    """Yield the turns of the object that is number `number` in its file."""
    thing = _object(value)
    if thing is None:
        yield Wrong(where=where, what=f"is {_kind(value)}, and has to be an object such as {{role, content}}.")
        return
    try:
        if (seeds := _list(thing.get("sessions"))) is not None:
            for at, seed in enumerate(seeds):
                yield from told(seed, _in(where, f"sessions[{at}]"), number, passed, seeds_only=True)
        elif seeds_only or "conversations" in thing:
            yield from _of_seed(thing, where, passed)
        elif any(key in thing for key in _TURNS):
            yield from _of_conversation(thing, where, number, passed)
        else:
            yield _turn(thing, where, passed)
    except _Unfit as unfit:
        yield Wrong(where=where, what=str(unfit))


def _of_seed(seed: dict[str, Any], where: str, passed: Passed) -> Iterator[Told | Wrong]:
    passed.keys |= seed.keys() - _OF_SEED
    key, id = _name(seed, "sessionKey"), _name(seed, "sessionId")
    if key is None:
        raise _Unfit("a session of a seed needs a sessionKey.")
    rounds = _list(seed.get("conversations"))
    if rounds is None:
        raise _Unfit(f"conversations is {_kind(seed.get('conversations'))}, and has to be a list of lists of turns.")
    for at, one in enumerate(rounds):
        place, turns = _in(where, f"conversations[{at}]"), _list(one)
        if turns is None:
            yield Wrong(where=place, what=f"is {_kind(one)}, and has to be a list of turns.")
            continue
        for nth, turn in enumerate(turns):
            yield _turn(turn, f"{place}[{nth}]", passed, session=f"{key}@{id}" if id else key)


def _of_conversation(thing: dict[str, Any], where: str, number: int, passed: Passed) -> Iterator[Told | Wrong]:
    passed.keys |= thing.keys() - _OF_CONVERSATION
    key = next(key for key in _TURNS if key in thing)
    turns = _list(thing[key])
    if turns is None:
        raise _Unfit(f"{key} is {_kind(thing[key])}, and has to be a list of turns.")
    began, session = _moment(thing, _BEGAN), _session(thing) or _name(thing, "id")
    for nth, turn in enumerate(turns):
        place = _in(where, f"{key}[{nth}]")
        yield _turn(turn, place, passed, session=session, conversation=number, began=began)


def _in(where: str, path: str) -> str:
    return f"{where}.{path}" if where.endswith("]") else f"{where}, {path}"


def _turn(
    thing: Any,
    where: str,
    passed: Passed,
    *,
    session: str | None = None,
    conversation: int = 0,
    began: datetime | None = None,
) -> Told | Wrong:
    turn = _object(thing)
    if turn is None:
        return Wrong(where=where, what=f"is {_kind(thing)}, and has to be an object {{role, content}}.")
    try:
        found = Told(
            where=where,
            role=_role(turn),
            content=_content(turn, passed),
            name=_mended(_name(turn, "name"), passed),
            said_at=_moment(turn, _TIME),
            id=_id(turn, passed),
            session=_mended(session or _session(turn), passed),
            conversation=conversation,
            began=began,
        )
    except _Unfit as unfit:
        return Wrong(where=where, what=str(unfit))
    if not turn.keys() <= _OF_TURN:
        passed.keys |= turn.keys() - _OF_TURN
    return found


# --- fields -----------------------------------------------------------------------------------------


def _role(turn: Mapping[str, Any]) -> Role:
    role = turn.get("role")
    if role is None:
        raise _Unfit("has no role. A turn is {role, content}, a conversation {session, turns: [turn, …]}.")
    known = _ROLES.get(role.strip().lower().replace("_", "")) if isinstance(role, str) else None
    if known is None:
        raise _Unfit(f"role is {_shown(role)}, and has to be user, assistant, system or tool.")
    return known


def _content(turn: Mapping[str, Any], passed: Passed) -> str:
    content = turn.get("content")
    if content is None:
        if "content" not in turn and not any(key in turn for key in _CALLS):
            raise _Unfit("has no content. A turn is {role, content}.")
        return ""
    given = _list(content)
    if given is None and not isinstance(content, str | dict):
        raise _Unfit(f"content is {_kind(content)}, and has to be a string or a list of parts.")
    parts: list[Any] = [content] if given is None else given
    texts = [text for part in parts if (text := _text(part)) is not None]
    passed.parts += len(parts) - len(texts)
    text = _mended("\n".join(texts), passed) or ""
    if len(text) > MAX_TURN_BYTES or len(text.encode()) > MAX_TURN_BYTES:
        raise _Unfit(f"content is larger than {MAX_TURN_BYTES // 2**20} MiB. Shorten it, or take it out.")
    return text


def _text(part: Any) -> str | None:
    """Return the text of a part of a content: a string, or the `text` of an object; None where it has none."""
    while (fields := _object(part)) is not None:
        part = fields.get("text", fields.get("value"))
    return part if isinstance(part, str) else None


def _name(thing: Mapping[str, Any], key: str) -> str | None:
    name = thing.get(key)
    if name is None:
        return None
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise _Unfit(f"{key} is {_kind(name)}, and has to be a string.")
    return str(name).strip() or None


def _id(turn: Mapping[str, Any], passed: Passed) -> str | None:
    id = _mended(_name(turn, "id"), passed)
    if id is not None and len(id) > _LONGEST_ID:
        raise _Unfit(f"id is longer than {_LONGEST_ID} characters. Shorten it, or leave it out.")
    return id


def _session(thing: Mapping[str, Any]) -> str | None:
    return next((name for key in _SESSION if (name := _name(thing, key))), None)


def _mended(text: str | None, passed: Passed) -> str | None:
    if text is None or well_formed(text):
        return text
    passed.mended += 1
    return _SURROGATES.sub("\ufffd", text)


# --- times ------------------------------------------------------------------------------------------

_EPOCH = re.compile(r"\d{9,16}(?:\.\d+)?")
_FIRST_S, _FIRST_MS, _LAST_MS = 1e8, 1e11, 1e14  # 1973 to 5138
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(thing: Mapping[str, Any], keys: tuple[str, ...]) -> datetime | None:
    key = next((key for key in keys if thing.get(key) not in (None, "")), None)
    if key is None:
        return None
    value = thing[key]
    if isinstance(value, str):
        value = value.strip()
        if _EPOCH.fullmatch(value):
            value = float(value)
    try:
        match value:
            case str():
                moment = datetime.fromisoformat(value)
                return moment if moment.tzinfo else moment.astimezone()
            case int() | float() if not isinstance(value, bool) and _FIRST_S <= value < _LAST_MS:
                ms = round(value * 1000 if value < _FIRST_MS else value)
                return _1970 + timedelta(milliseconds=ms)  # exact, where fractions of seconds are not
            case _:
                pass
    except ValueError:
        pass
    raise _Unfit(
        f"{key} is {_shown(value)}, and has to be a time: ISO 8601 such as 2026-05-07T10:00:00+02:00, or seconds or "
        "milliseconds since 1970."
    )


# --- what JSON holds ------------------------------------------------------------------------


def _object(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _list(value: object) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


def _kind(value: object) -> str:
    match value:
        case None:
            return "missing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def _shown(value: object) -> str:
    return repr(one_line(value, 40)) if isinstance(value, str) else one_line(repr(value), 40)
