"""L1: statements as they come in: those of an extraction reply, and explicit ones (`remember`).

The fields of a note stand in the best order for reasoning: the words first, then what follows from them. Those without
use are left out: a reply costs more than a question, word for word. Parsing tolerates the many ways in which models
miss the schema: names of other systems, numbers as words, a single value for a list, nothing where nothing is meant.
Unreadable values become the least specific value; `grounding` checks whether they are valid.

An explicit statement needs no model. It is certain (confidence 1), and an explicit instruction always applies (priority
−1, as upstream marks a global rule); a promise does not, it waits for its occasion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private import without_private
from mcp_memory.core.secrets.masking import mask_values, states_secret
from mcp_memory.core.text import is_blank, well_formed
from mcp_memory.core.types import Kind, Source, StatementKind
from mcp_memory.language.words import fold
from mcp_memory.longterm.names import name_words
from mcp_memory.store.values import NewAtom

_PRIORITY: dict[Kind, int] = {"persona": 70, "episodic": 70, "instruction": 80}  # where a reply gives none

T = TypeVar("T")

_KINDS: dict[str, Kind] = {
    "persona": "persona", "preference": "persona", "profile": "persona", "trait": "persona", "fact": "persona",
    "habit": "persona", "relationship": "persona", "skill": "persona", "goal": "persona",
    "episodic": "episodic", "episode": "episodic", "event": "episodic", "plan": "episodic", "decision": "episodic",
    "instruction": "instruction", "instruct": "instruction", "rule": "instruction",
}  # fmt: skip
_WEIGHTS = {
    "critical": 95, "core": 90, "high": 85, "important": 85, "medium": 70, "ordinary": 70, "normal": 70, "low": 40,
}  # fmt: skip
_STATED = {"stated", "explicit", "direct", "certain", "sure", "high", "true", "yes"}
_NOTHING = {
    "", "null", "none", "nil", "n/a", "na", "unknown", "undefined", "-", "?", "now", "present", "ongoing", "current",
}  # fmt: skip


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)


def _or_none(value: Any) -> str | None:
    text = _text(value)
    return None if text.lower() in _NOTHING else text


def _listed(value: Any) -> list[Any]:
    if value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING):
        return []
    return cast("list[Any]", value) if isinstance(value, list) else [value]


def _kind(value: Any) -> Kind:
    return _KINDS.get(_text(value).lower(), "episodic")


def _priority(value: Any) -> int | None:
    text = _text(value).lower()
    if text in _WEIGHTS:
        return _WEIGHTS[text]
    number = re.match(r"[-−]?\d{1,9}(?:\.\d{1,9})?", text)
    if number is None or isinstance(value, bool):
        return None
    amount = float(number[0].replace("−", "-"))
    share = "." in number[0] and 0 < amount <= 1
    return max(-1, min(100, round(amount * 100 if share else amount)))


def _is_implied(certainty: Any) -> bool:
    text = _text(certainty).lower()
    number = re.fullmatch(r"[01](?:\.\d+)?", text)
    return not (text in _STATED | {""} or (number and float(text) >= 0.75))


Text = Annotated[str, BeforeValidator(_text)]
Moment = Annotated[str | None, BeforeValidator(_or_none)]
_NAMES = WithJsonSchema({"type": "array", "items": {"type": "string"}})


def _renamed(data: Any, names: Mapping[str, str]) -> Any:
    """Return a reply's object with the fields it has, under our names; `names` maps others to them."""
    if not isinstance(data, dict):
        return data
    fields = cast("dict[str, Any]", data)
    return {name: fields[key] for key in fields for name in [names.get(key, key)] if key == name or name not in fields}


class NamedEntity(BaseModel):
    """The subject of a statement: a person or thing. `also`: further names for it in the turns."""

    name: Text
    also: Annotated[list[Text], BeforeValidator(_listed)] = []

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            name, *also = _text(data).split(" = ")
            if "user" in also:  # models write either one first
                name, also = "user", [name, *(other for other in also if other != "user")]
            return {"name": name, "also": also}
        renamed = _renamed(data, {"aliases": "also", "alias": "also", "same_as": "also", "entity": "name"})
        return {"name": "", **renamed}


class Triple(BaseModel):
    """A fact: a property of an entity in one or two words."""

    entity: Text
    relation: Text
    value: Text


def _triple(value: Any) -> Any:
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        if len(parts) == 3 and all(isinstance(part, str) for part in parts):
            return dict(zip(("entity", "relation", "value"), parts, strict=True))
        return next((found for part in parts if (found := _triple(part))), None)
    read = _renamed(value, {"subject": "entity", "predicate": "relation", "object": "value"})
    fields = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    return fields if all(_or_none(fields.get(name)) for name in Triple.model_fields) else None


class Quoted(BaseModel):
    """Further words that support a statement, and their turn: the question that was answered."""

    turn: Text
    quote: Text


def _quoted(value: Any, turn: Any) -> list[dict[str, Any]]:
    """Return the quotes that stand where one or several are asked for, each with its turn."""
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    found: list[dict[str, Any]] = []
    for part in parts:
        if part is not None:
            read = cast("dict[str, Any]", _renamed(part, _OTHER_NAMES)) if isinstance(part, dict) else {"quote": part}
            found.append({"turn": _first(read.get("turn", turn)), "quote": read.get("quote")})
    return found


class ExtractedStatement(BaseModel):
    """One atom, as the model would have it. `ends`: ids of the current atoms that it takes the place of."""

    model_config = ConfigDict(populate_by_name=True)

    turn: Text
    quote: Text
    more: list[Quoted] = []
    text: Text
    kind: Annotated[Kind, BeforeValidator(_kind)]
    priority: int = _PRIORITY["persona"]
    implied: bool = False
    valid_from: Moment = Field(None, alias="from")
    valid_to: Moment = Field(None, alias="to")
    entities: Annotated[list[NamedEntity], BeforeValidator(_listed), _NAMES] = Field([], alias="about")
    fact: Annotated[Triple | None, BeforeValidator(_triple), _NAMES] = None
    ends: Annotated[list[Text], BeforeValidator(_listed)] = []

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        fields = cast("dict[str, Any]", _renamed(data, _OTHER_NAMES))
        if not isinstance(data, dict) or "text" not in fields:
            return cast("Any", data)
        fields = dict.fromkeys(cls.model_fields) | fields
        kind, priority = _kind(fields["kind"]), _priority(fields["priority"])
        if priority is None or (priority < 0 and kind != "instruction"):
            priority = _PRIORITY[kind]
        words = [*_quoted(fields["quote"], fields["turn"]), *_quoted(fields["more"], None)]
        said = words[0] if words else {"turn": _first(fields["turn"]), "quote": ""}
        implied = fields["implied"] is True or _is_implied(fields.pop("certainty", None))
        return {**fields, **said, "more": words[1:], "kind": kind, "priority": priority, "implied": implied}


_OTHER_NAMES = {
    "turn_id": "turn", "id": "turn", "source": "turn", "source_message_ids": "turn", "message_ids": "turn",
    "evidence": "quote", "source_quote": "quote", "content": "text", "statement": "text", "memory": "text",
    "type": "kind", "category": "kind", "importance": "priority", "confidence": "certainty", "about": "entities",
    "from": "valid_from", "start": "valid_from", "to": "valid_to", "end": "valid_to", "triple": "fact",
    "facts": "fact", "supersedes": "ends", "replaces": "ends",
}  # fmt: skip


def _first(value: Any) -> Any:
    return next(iter(_listed(value)), None)


_GROUPS = ("notes", "atoms", "memories", "statements", "scenes", "facts")


def _statements(value: Any) -> list[Any]:
    """Return the statements of a reply; some models group them, for instance by topic."""
    if isinstance(value, list):
        return [one for part in cast("list[Any]", value) for one in _statements(part)]
    if not isinstance(value, dict):
        return [] if value is None else [value]
    fields = cast("dict[str, Any]", value)
    groups = [fields[name] for name in _GROUPS if name in fields]
    return [fields] if _is_statement(fields) or not groups else _statements(groups)


def _is_statement(fields: dict[str, Any]) -> bool:
    says = {"text", "content", "statement", "memory"} & fields.keys()
    return bool(says) and not isinstance(fields.get("atoms"), list)


class Extracted(BaseModel):
    """The reply: the statements of a batch worth keeping, in order."""

    notes: list[ExtractedStatement]

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        fields = cast("dict[str, Any]", data)
        known = _is_statement(fields) or any(name in fields for name in _GROUPS)
        return {"notes": _statements(fields)} if known else fields


MAX_CHARS = 2_000
_EXPLICIT_PRIORITY: dict[StatementKind, int] = {"persona": 80, "episodic": 70, "instruction": -1, "promise": 80}


def explicit_atom(
    text: str,
    *,
    kind: StatementKind,
    session: str,
    entity: str | None,
    relation: str | None,
    value: str | None,
    supersedes: Sequence[str],
    valid_from: datetime,
    valid_to: datetime | None = None,
    cites: Sequence[str] = (),
    source: Source = "user",
) -> NewAtom:
    """Return the atom that a `remember` asks for, without private passages. Raises InvalidInput."""
    text = without_private(text)
    asked = {"entity": entity, "relation": relation, "value": value}
    parts = {name: part and without_private(part) for name, part in asked.items()}
    given = {name: part.strip() for name, part in parts.items() if part is not None and not is_blank(part)}
    if given and len(given) < 3:
        lacking = " and ".join(sorted(parts.keys() - given.keys()))
        raise InvalidInput(f"A fact needs entity, relation and value together; add {lacking}. Nothing was stored.")
    words = " ".join(given.values()) if is_blank(text) else text.strip()
    if not words:
        raise InvalidInput("There is nothing to remember: text is empty, or has no visible character.")
    if len(words) > MAX_CHARS:
        raise InvalidInput(
            f"{len(words)} characters are more than one statement (at most {MAX_CHARS}). Split it into several, or "
            "keep the words with record_turns. Nothing was stored."
        )
    if not all(map(well_formed, (words, *given.values()))):
        raise InvalidInput("The text has a lone surrogate, which is not text. Nothing was stored.")
    if valid_to is not None and valid_to <= valid_from:
        raise InvalidInput(
            "valid_until is before valid_from. Give the last day on which it is true; nothing was stored."
        )
    fact = {given["relation"]: given["value"]} if given else {}
    if any(map(states_secret, (words, *given.values()))) or mask_values(fact) != fact:
        raise InvalidInput(
            "This looks like a key or password, and what is remembered is shown in later conversations. Nothing was "
            "stored. Leave the value out; where it is kept may be remembered."
        )
    name = relation_name(given["relation"]) if given else None
    return NewAtom(
        kind="instruction" if kind == "promise" else kind,
        label="promise" if kind == "promise" else None,
        text=words,
        priority=_EXPLICIT_PRIORITY[kind],
        confidence=1.0,
        session=session,
        valid_from=valid_from,
        valid_to=valid_to,
        entity=given.get("entity"),
        relation=name,
        value=given.get("value"),
        single_valued=name in name_words("single-valued"),
        cites=tuple(cites),
        supersedes=tuple(supersedes),
        source=source,
    )


def relation_name(name: str) -> str:
    """Return how a relation is stored: `Lives in`, `livesIn` and `lives-in` are one, `lives_in`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return "_".join(re.findall(r"[\w']+", fold(spaced))) or "is"
