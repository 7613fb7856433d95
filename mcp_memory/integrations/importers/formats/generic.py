"""What the objects of a history say: turns, conversations, and seeds of TencentDB Agent Memory. No I/O, no state.

    turn           {role, content, session?, name?, said_at?, id?}
    conversation   {session?, turns: [turn, …]}, or `messages`
    seed           {sessionKey, sessionId?, conversations: [[turn, …], …]}, alone or in {sessions: [seed, …]}

Each is told by its shape. Names that exports use for the same thing are known (`timestamp`, `session_id`, the role
`human` …); what else an object has is passed over and named. A turn may be without text, as where a model only called
a tool: it is told all the same, empty, so that those after it are counted as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.formats.told import (
    LONGEST_ID,
    Passed,
    Told,
    Unfit,
    Wrong,
    inside,
    kind_of,
    list_of,
    mended,
    moment,
    object_of,
    shown,
)
from mcp_memory.longterm.l0_turns import MAX_TURN_BYTES

__all__ = ["told"]

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


def told(value: Any, where: str, number: int, passed: Passed, *, seeds_only: bool = False) -> Iterator[Told | Wrong]:
    """Yield the turns of the object that is number `number` in its file."""
    thing = object_of(value)
    if thing is None:
        yield Wrong(where=where, what=f"is {kind_of(value)}, and has to be an object such as {{role, content}}.")
        return
    try:
        if (seeds := list_of(thing.get("sessions"))) is not None:
            for at, seed in enumerate(seeds):
                yield from told(seed, inside(where, f"sessions[{at}]"), number, passed, seeds_only=True)
        elif seeds_only or "conversations" in thing:
            yield from _of_seed(thing, where, passed)
        elif any(key in thing for key in _TURNS):
            yield from _of_conversation(thing, where, number, passed)
        else:
            yield _turn(thing, where, passed)
    except Unfit as unfit:
        yield Wrong(where=where, what=str(unfit))


def _of_seed(seed: dict[str, Any], where: str, passed: Passed) -> Iterator[Told | Wrong]:
    passed.keys |= seed.keys() - _OF_SEED
    key, id = _name(seed, "sessionKey"), _name(seed, "sessionId")
    if key is None:
        raise Unfit("a session of a seed needs a sessionKey.")
    rounds = list_of(seed.get("conversations"))
    if rounds is None:
        raise Unfit(f"conversations is {kind_of(seed.get('conversations'))}, and has to be a list of lists of turns.")
    for at, one in enumerate(rounds):
        place, turns = inside(where, f"conversations[{at}]"), list_of(one)
        if turns is None:
            yield Wrong(where=place, what=f"is {kind_of(one)}, and has to be a list of turns.")
            continue
        for nth, turn in enumerate(turns):
            yield _turn(turn, f"{place}[{nth}]", passed, session=f"{key}@{id}" if id else key)


def _of_conversation(thing: dict[str, Any], where: str, number: int, passed: Passed) -> Iterator[Told | Wrong]:
    passed.keys |= thing.keys() - _OF_CONVERSATION
    key = next(key for key in _TURNS if key in thing)
    turns = list_of(thing[key])
    if turns is None:
        raise Unfit(f"{key} is {kind_of(thing[key])}, and has to be a list of turns.")
    began, session = moment(thing, _BEGAN, passed), _session(thing) or _name(thing, "id")
    for nth, turn in enumerate(turns):
        place = inside(where, f"{key}[{nth}]")
        yield _turn(turn, place, passed, session=session, conversation=number, began=began)


def _turn(
    thing: Any,
    where: str,
    passed: Passed,
    *,
    session: str | None = None,
    conversation: int = 0,
    began: datetime | None = None,
) -> Told | Wrong:
    turn = object_of(thing)
    if turn is None:
        return Wrong(where=where, what=f"is {kind_of(thing)}, and has to be an object {{role, content}}.")
    try:
        found = Told(
            where=where,
            role=_role(turn),
            content=_content(turn, passed),
            name=mended(_name(turn, "name"), passed),
            said_at=moment(turn, _TIME, passed),
            id=_id(turn, passed),
            session=mended(session or _session(turn), passed),
            conversation=conversation,
            began=began,
        )
    except Unfit as unfit:
        return Wrong(where=where, what=str(unfit))
    if not turn.keys() <= _OF_TURN:
        passed.keys |= turn.keys() - _OF_TURN
    return found


# --- fields -----------------------------------------------------------------------------------------


def _role(turn: Mapping[str, Any]) -> Role:
    role = turn.get("role")
    if role is None:
        raise Unfit("has no role. A turn is {role, content}, a conversation {session, turns: [turn, …]}.")
    known = _ROLES.get(role.strip().lower().replace("_", "")) if isinstance(role, str) else None
    if known is None:
        raise Unfit(f"role is {shown(role)}, and has to be user, assistant, system or tool.")
    return known


def _content(turn: Mapping[str, Any], passed: Passed) -> str:
    content = turn.get("content")
    if content is None:
        if "content" not in turn and not any(key in turn for key in _CALLS):
            raise Unfit("has no content. A turn is {role, content}.")
        return ""
    given = list_of(content)
    if given is None and not isinstance(content, str | dict):
        raise Unfit(f"content is {kind_of(content)}, and has to be a string or a list of parts.")
    parts: list[Any] = [content] if given is None else given
    texts = [text for part in parts if (text := _text(part)) is not None]
    passed.parts += len(parts) - len(texts)
    text = mended("\n".join(texts), passed) or ""
    if len(text) > MAX_TURN_BYTES or len(text.encode()) > MAX_TURN_BYTES:
        raise Unfit(f"content is larger than {MAX_TURN_BYTES // 2**20} MiB. Shorten it, or take it out.")
    return text


def _text(part: Any) -> str | None:
    """Return the text of a part of a content: a string, or the `text` of an object; None where it has none."""
    while (fields := object_of(part)) is not None:
        part = fields.get("text", fields.get("value"))
    return part if isinstance(part, str) else None


def _name(thing: Mapping[str, Any], key: str) -> str | None:
    name = thing.get(key)
    if name is None:
        return None
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise Unfit(f"{key} is {kind_of(name)}, and has to be a string.")
    return str(name).strip() or None


def _id(turn: Mapping[str, Any], passed: Passed) -> str | None:
    id = mended(_name(turn, "id"), passed)
    if id is not None and len(id) > LONGEST_ID:
        raise Unfit(f"id is longer than {LONGEST_ID} characters. Shorten it, or leave it out.")
    return id


def _session(thing: Mapping[str, Any]) -> str | None:
    return next((name for key in _SESSION if (name := _name(thing, key))), None)
