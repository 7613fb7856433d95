"""L1: the statements of an extraction reply, and explicit statements (`remember`).

The fields of a note are in the best order for reasoning: the words first, then what follows from them. Optional fields
may be left out, because a word of a reply costs more than a word of a question. Parsing tolerates many deviations from
the schema (`models.replies`), such as names of other systems, numbers as words, or single values for lists. Unreadable
values become the least specific value; `grounding` checks whether they are valid.

An explicit statement needs no model. It is certain (confidence 1). An explicit instruction always applies (priority
−1), unless it is a promise, which waits for its occasion.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import mask_values, states_secret
from mcp_memory.core.text import is_blank, well_formed
from mcp_memory.core.types import Kind, Source, StatementKind
from mcp_memory.language.words import fold
from mcp_memory.longterm.names import USER, name_words
from mcp_memory.models.replies import Text, TextList, TolerantReply, as_list, is_nothing, object_fields
from mcp_memory.store.values import NewAtom

_DEFAULT_PRIORITY: dict[Kind, int] = {"persona": 70, "episodic": 70, "instruction": 80}
_KINDS: dict[str, Kind] = {
    "persona": "persona", "preference": "persona", "profile": "persona", "trait": "persona", "fact": "persona",
    "habit": "persona", "relationship": "persona", "skill": "persona", "goal": "persona",
    "episodic": "episodic", "episode": "episodic", "event": "episodic", "plan": "episodic", "decision": "episodic",
    "instruction": "instruction", "instruct": "instruction", "rule": "instruction",
}  # fmt: skip
_WEIGHTS = {
    "critical": 95, "core": 90, "high": 85, "important": 85, "medium": 70, "ordinary": 70, "normal": 70, "low": 40,
}  # fmt: skip
_STATED = {"", "stated", "explicit", "direct", "certain", "sure", "high", "true", "yes"}
_FIELD_NAMES = {
    "turn_id": "turn", "id": "turn", "source": "turn", "source_message_ids": "turn", "message_ids": "turn",
    "evidence": "quote", "source_quote": "quote", "content": "text", "statement": "text", "memory": "text",
    "type": "kind", "category": "kind", "importance": "priority", "confidence": "certainty", "about": "entities",
    "from": "valid_from", "start": "valid_from", "to": "valid_to", "end": "valid_to", "triple": "fact",
    "facts": "fact", "supersedes": "ends", "replaces": "ends",
}  # fmt: skip


def _lower(value: Any) -> str:
    return "" if value is None else str(value).strip().lower()


def _priority(value: Any) -> int | None:
    text = _lower(value)
    if text in _WEIGHTS:
        return _WEIGHTS[text]
    number = re.match(r"[-−]?\d{1,9}(?:\.\d{1,9})?", text)
    if number is None or isinstance(value, bool):
        return None
    amount = float(number[0].replace("−", "-"))
    is_share = "." in number[0] and 0 < amount <= 1
    return max(-1, min(100, round(amount * 100 if is_share else amount)))


def _is_implied(certainty: Any) -> bool:
    text = _lower(certainty)
    number = re.fullmatch(r"[01](?:\.\d+)?", text)
    return not (text in _STATED or (number and float(text) >= 0.75))


Moment = Annotated[Text | None, BeforeValidator(lambda value: None if is_nothing(value) else value)]
_NAMES = WithJsonSchema({"type": "array", "items": {"type": "string"}})


class NamedEntity(BaseModel):
    """The subject of a statement: a person or thing. `also`: further names for it in the turns."""

    name: Text
    also: TextList = []

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        fields = object_fields(data, {"aliases": "also", "alias": "also", "same_as": "also", "entity": "name"})
        if fields is not None:
            return {"name": "", **fields}
        name, *also = str(data).strip().split(" = ")
        if USER in also:  # models write the names in either order
            name, also = USER, [name, *(other for other in also if other != USER)]
        return {"name": name, "also": also}


class Triple(BaseModel):
    """A fact: a property of an entity in one or two words."""

    entity: Text
    relation: Text
    value: Text


def _triple(value: Any) -> Any:
    """Return the first complete triple: an object, a list of three texts, or a list of these."""
    if isinstance(value, list):
        parts = cast("list[Any]", value)
        if len(parts) == 3 and all(isinstance(part, str) for part in parts):
            return dict(zip(Triple.model_fields, parts, strict=True))
        return next((triple for part in parts if (triple := _triple(part))), None)
    fields = object_fields(value, {"subject": "entity", "predicate": "relation", "object": "value"}) or {}
    return None if any(is_nothing(fields.get(name)) for name in Triple.model_fields) else fields


class Quoted(BaseModel):
    """Further words that support a statement, and their turn: the question that was answered."""

    turn: Text
    quote: Text


def _quotes(value: Any, turn: Any) -> list[dict[str, Any]]:
    """Return one or several quotes as objects, each with its turn (`turn` if it names none)."""
    quotes: list[dict[str, Any]] = []
    for part in cast("list[Any]", value) if isinstance(value, list) else [value]:
        if part is not None:
            fields = object_fields(part, _FIELD_NAMES)
            fields = {"quote": part} if fields is None else fields
            quotes.append({"turn": _first(fields.get("turn", turn)), "quote": fields.get("quote")})
    return quotes


def _first(value: Any) -> Any:
    return next(iter(as_list(value)), None)


class ExtractedStatement(BaseModel):
    """One atom, as the model proposes it. `ends`: ids of the current atoms that it replaces."""

    model_config = ConfigDict(populate_by_name=True)

    turn: Text
    quote: Text
    more: list[Quoted] = []
    text: Text
    kind: Kind
    priority: int = _DEFAULT_PRIORITY["persona"]
    implied: bool = False
    valid_from: Moment = Field(None, alias="from")
    valid_to: Moment = Field(None, alias="to")
    entities: Annotated[list[NamedEntity], BeforeValidator(as_list), _NAMES] = Field([], alias="about")
    fact: Annotated[Triple | None, BeforeValidator(_triple), _NAMES] = None
    ends: TextList = []

    @model_validator(mode="before")
    @classmethod
    def _read(cls, data: Any) -> Any:
        fields = object_fields(data, _FIELD_NAMES)
        if fields is None or "text" not in fields:
            return data
        fields = dict.fromkeys(cls.model_fields) | fields
        kind, priority = _KINDS.get(_lower(fields["kind"]), "episodic"), _priority(fields["priority"])
        if priority is None or (priority < 0 and kind != "instruction"):
            priority = _DEFAULT_PRIORITY[kind]
        quotes = [*_quotes(fields["quote"], fields["turn"]), *_quotes(fields["more"], None)]
        first = quotes[0] if quotes else {"turn": _first(fields["turn"]), "quote": ""}
        implied = fields["implied"] is True or _is_implied(fields.pop("certainty", None))
        return {**fields, **first, "more": quotes[1:], "kind": kind, "priority": priority, "implied": implied}


_GROUPS = ("notes", "atoms", "memories", "statements", "scenes", "facts")


def _statements(value: Any) -> list[Any]:
    """Return the statements of a reply; some models group them, for instance by topic."""
    if isinstance(value, list):
        return [statement for part in cast("list[Any]", value) for statement in _statements(part)]
    fields = object_fields(value)
    if fields is None:
        return [] if value is None else [value]
    groups = [fields[name] for name in _GROUPS if name in fields]
    return [fields] if _is_statement(fields) or not groups else _statements(groups)


def _is_statement(fields: dict[str, Any]) -> bool:
    return not fields.keys().isdisjoint(("text", "content", "statement", "memory")) and not isinstance(
        fields.get("atoms"), list
    )


class Extracted(TolerantReply):
    """The reply: the statements of a batch worth keeping, in order."""

    notes: list[ExtractedStatement]

    @classmethod
    def arranged(cls, data: Any) -> Any:
        fields = object_fields(data)
        if fields is None or (fields.keys().isdisjoint(_GROUPS) and not _is_statement(fields)):
            return data
        return {"notes": _statements(fields)}


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
    """Return the atom to store for a call of `remember`, without private passages.

    Raises InvalidInput if there is nothing to store, and for an incomplete fact, a text that is too long or malformed,
    a secret, or an end that is not after the beginning.
    """
    text = without_private(text)
    triple = {"entity": entity, "relation": relation, "value": value}
    public = {name: without_private(part).strip() for name, part in triple.items() if part is not None}
    fact = {name: part for name, part in public.items() if not is_blank(part)}
    if fact and len(fact) < 3:
        missing = " and ".join(sorted(triple.keys() - fact.keys()))
        raise InvalidInput(f"A fact needs entity, relation and value together; add {missing}. Nothing was stored.")
    words = " ".join(fact.values()) if is_blank(text) else text.strip()
    if not words:
        raise InvalidInput("There is nothing to remember: text is empty, or has no visible character.")
    if len(words) > MAX_CHARS:
        raise InvalidInput(
            f"{len(words)} characters are more than one statement (at most {MAX_CHARS}). Split it into several, or "
            "keep the words with record_turns. Nothing was stored."
        )
    if not all(map(well_formed, (words, *fact.values()))):
        raise InvalidInput("The text has a lone surrogate, which is not text. Nothing was stored.")
    if valid_to is not None and valid_to <= valid_from:
        raise InvalidInput(
            "valid_until is before valid_from. Give the last day on which it is true; nothing was stored."
        )
    named_value = {fact["relation"]: fact["value"]} if fact else {}
    if any(map(states_secret, (words, *fact.values()))) or mask_values(named_value) != named_value:
        raise InvalidInput(
            "This looks like a key or password, and what is remembered is shown in later conversations. Nothing was "
            "stored. Leave the value out; where it is kept may be remembered."
        )
    name = relation_name(fact["relation"]) if fact else None
    return NewAtom(
        kind="instruction" if kind == "promise" else kind,
        label="promise" if kind == "promise" else None,
        text=words,
        priority=_EXPLICIT_PRIORITY[kind],
        confidence=1.0,
        session=session,
        valid_from=valid_from,
        valid_to=valid_to,
        entity=fact.get("entity"),
        relation=name,
        value=fact.get("value"),
        single_valued=name in name_words("single-valued"),
        cites=tuple(cites),
        supersedes=tuple(supersedes),
        source=source,
    )


def relation_name(name: str) -> str:
    """Return the stored form of a relation: `Lives in`, `livesIn` and `lives-in` become `lives_in`."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return "_".join(re.findall(r"[\w']+", fold(spaced))) or "is"
