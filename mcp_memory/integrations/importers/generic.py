"""Generic JSON turns and conversations, and seeds of TencentDB Agent Memory. No I/O.

    turn           {role, content, session?, name?, said_at?, id?}
    conversation   {session?, turns: [turn, …]}, or `messages`
    seed           {sessionKey, sessionId?, conversations: [[turn, …], …]}, alone or in {sessions: [seed, …]}, of
                   TencentDB Agent Memory

Common synonyms of field names are recognised (`timestamp`, `session_id`, the role `human` …); other fields are skipped
and listed in the report. A turn without text, as when a model only called a tool, is yielded empty, so that later turns
keep their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.parts import part_text
from mcp_memory.integrations.importers.records import (
    MAX_ID_CHARS,
    ROLES,
    ImportedTurn,
    ImportProblem,
    InvalidRecord,
    SkippedParts,
    SourceValue,
    is_too_large,
    kind_of,
    list_of,
    object_of,
    parse_time,
    place_inside,
    quote_value,
    replace_surrogates,
)
from mcp_memory.longterm.turns import MAX_TURN_BYTES

_ROLES: dict[str, Role] = {**ROLES, "system": "system", "developer": "system"}
_SESSION = ("session", "session_id", "sessionId", "sessionKey", "conversation_id", "conversation_hash", "thread_id")
_TIME = (
    "said_at",
    "timestamp",
    "created_at",
    "createdAt",
    "create_time",
    "ts",
    "time",
    "date",
    "datetime",
    "sent_at",
    "createdDate",
    "created",
)
_BEGAN = (*_TIME, "started_at", "startedAt", "start_time", "inserted_at")
_TURNS = ("turns", "messages", "conversation", "history")
_CONTENT = ("content", "text", "say")
_CALLS = ("tool_calls", "function_call")
_OF_TURN = frozenset({"role", *_CONTENT, "name", "id", *_SESSION, *_TIME})
_OF_CONVERSATION = frozenset({*_SESSION, *_BEGAN, *_TURNS, "id"})
_OF_SEED = frozenset({"sessionKey", "sessionId", "conversations"})


def generic_records(source: SourceValue, skipped: SkippedParts) -> Iterator[ImportedTurn | ImportProblem]:
    """Yield the turns in a JSON object, and its problems.

    The object is a turn, a conversation, a seed, or has a list of seeds as `sessions`.
    """
    yield from _value_records(source.value, source.where, source.number, skipped, seeds_only=False)


def seed_records(source: SourceValue, skipped: SkippedParts) -> Iterator[ImportedTurn | ImportProblem]:
    """Yield the turns of a seed, or of a list of seeds; any other value is a problem."""
    yield from _value_records(source.value, source.where, source.number, skipped, seeds_only=True)


def _value_records(
    value: Any, where: str, number: int, skipped: SkippedParts, *, seeds_only: bool
) -> Iterator[ImportedTurn | ImportProblem]:
    thing = object_of(value)
    if thing is None:
        yield ImportProblem(
            where=where, what=f"is {kind_of(value)}, and has to be an object such as {{role, content}}."
        )
        return
    try:
        if (seeds := list_of(thing.get("sessions"))) is not None:
            for index, seed in enumerate(seeds):
                place = place_inside(where, f"sessions[{index}]")
                yield from _value_records(seed, place, number, skipped, seeds_only=True)
        elif seeds_only or "conversations" in thing:
            yield from _seed_turns(thing, where, skipped)
        elif any(key in thing for key in _TURNS[:2]) or any(list_of(thing.get(key)) for key in _TURNS[2:]):
            yield from _conversation_turns(thing, where, number, skipped)
        else:
            yield _turn(thing, where, skipped)
    except InvalidRecord as invalid:
        yield ImportProblem(where=where, what=str(invalid))


def _seed_turns(seed: dict[str, Any], where: str, skipped: SkippedParts) -> Iterator[ImportedTurn | ImportProblem]:
    skipped.keys |= seed.keys() - _OF_SEED
    key, id = _name(seed, "sessionKey"), _name(seed, "sessionId")
    if key is None:
        raise InvalidRecord("a session of a seed needs a sessionKey.")
    rounds = list_of(seed.get("conversations"))
    if rounds is None:
        raise InvalidRecord(
            f"conversations is {kind_of(seed.get('conversations'))}, and has to be a list of lists of turns."
        )
    for at, turns_of_round in enumerate(rounds):
        place, turns = place_inside(where, f"conversations[{at}]"), list_of(turns_of_round)
        if turns is None:
            yield ImportProblem(where=place, what=f"is {kind_of(turns_of_round)}, and has to be a list of turns.")
            continue
        for nth, turn in enumerate(turns):
            yield _turn(turn, f"{place}[{nth}]", skipped, session=f"{key}@{id}" if id else key)


def _conversation_turns(
    thing: dict[str, Any], where: str, number: int, skipped: SkippedParts
) -> Iterator[ImportedTurn | ImportProblem]:
    skipped.keys |= thing.keys() - _OF_CONVERSATION
    key = next(key for key in _TURNS if key in thing and (key in _TURNS[:2] or list_of(thing[key])))
    turns = list_of(thing[key])
    if turns is None:
        raise InvalidRecord(f"{key} is {kind_of(thing[key])}, and has to be a list of turns.")
    began, session = parse_time(thing, _BEGAN, skipped), _session(thing) or _name(thing, "id")
    for nth, turn in enumerate(turns):
        place = place_inside(where, f"{key}[{nth}]")
        yield _turn(turn, place, skipped, session=session, conversation=number, began=began)


def _turn(
    thing: Any,
    where: str,
    skipped: SkippedParts,
    *,
    session: str | None = None,
    conversation: int = 0,
    began: datetime | None = None,
) -> ImportedTurn | ImportProblem:
    turn = object_of(thing)
    if turn is None:
        return ImportProblem(where=where, what=f"is {kind_of(thing)}, and has to be an object {{role, content}}.")
    try:
        result = ImportedTurn(
            where=where,
            role=_role(turn),
            content=_content(turn, skipped),
            name=replace_surrogates(_name(turn, "name"), skipped),
            said_at=parse_time(turn, _TIME, skipped),
            id=_id(turn, skipped),
            session=replace_surrogates(session or _session(turn), skipped),
            conversation=conversation,
            began=began,
        )
    except InvalidRecord as invalid:
        return ImportProblem(where=where, what=str(invalid))
    if not turn.keys() <= _OF_TURN:
        skipped.keys |= turn.keys() - _OF_TURN
    return result


# --- fields -----------------------------------------------------------------------------------------


def _role(turn: Mapping[str, Any]) -> Role:
    role = turn.get("role")
    if role is None:
        raise InvalidRecord("has no role. A turn is {role, content}, a conversation {session, turns: [turn, …]}.")
    canonical = _ROLES.get(role.strip().lower()) if isinstance(role, str) else None
    if canonical is None:
        raise InvalidRecord(f"role is {quote_value(role)}, and has to be user, assistant, system or tool.")
    return canonical


def _content(turn: Mapping[str, Any], skipped: SkippedParts) -> str:
    content = next((turn[key] for key in _CONTENT if turn.get(key) is not None), None)
    if content is None:
        if not any(key in turn for key in _CONTENT) and not any(key in turn for key in _CALLS):
            raise InvalidRecord("has no content. A turn is {role, content}.")
        return ""
    listed = list_of(content)
    if listed is None and not isinstance(content, str | dict):
        raise InvalidRecord(f"content is {kind_of(content)}, and has to be a string or a list of parts.")
    parts: list[Any] = [content] if listed is None else listed
    texts = [text for part in parts if (text := _part_text(part)) is not None]
    skipped.parts += len(parts) - len(texts)
    text = replace_surrogates("\n".join(texts), skipped) or ""
    if is_too_large(text):
        raise InvalidRecord(f"content is larger than {MAX_TURN_BYTES // 2**20} MiB. Shorten it, or take it out.")
    return text


def _part_text(part: Any) -> str | None:
    return part if isinstance(part, str) else part_text(object_of(part) or {})


def _name(thing: Mapping[str, Any], key: str) -> str | None:
    name = thing.get(key)
    if name is None:
        return None
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise InvalidRecord(f"{key} is {kind_of(name)}, and has to be a string.")
    return str(name).strip() or None


def _id(turn: Mapping[str, Any], skipped: SkippedParts) -> str | None:
    id = replace_surrogates(_name(turn, "id"), skipped)
    if id is not None and len(id) > MAX_ID_CHARS:
        raise InvalidRecord(f"id is longer than {MAX_ID_CHARS} characters. Shorten it, or leave it out.")
    return id


def _session(thing: Mapping[str, Any]) -> str | None:
    return next((name for key in _SESSION if (name := _name(thing, key))), None)
