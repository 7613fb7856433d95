"""The reference memory server: a line of `memory.jsonl`, before that `memory.json` (modelcontextprotocol/servers,
src/memory/index.ts), or the graph of its tool `read_graph`, {entities: [entity, …], relations: [relation, …]}.

    entity     {type: "entity", name, entityType, observations: [text, …]}
    relation   {type: "relation", from, to, relationType}

Each observation is a statement about its entity, each relation a fact; a type is a fact too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_memory.core.text import is_blank
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.records import (
    ImportProblem,
    InvalidRecord,
    SkippedParts,
    SourceValue,
    items_of,
    kind_of,
    list_of,
    object_of,
    place_inside,
)
from mcp_memory.integrations.importers.statements import MemoryRecord, statement


def is_graph(value: Any) -> bool:
    thing = object_of(value)
    if thing is None:
        return False
    if list_of(thing.get("entities")) is not None and list_of(thing.get("relations")) is not None:
        return True
    return (thing.get("type") == "entity" and "observations" in thing) or (
        thing.get("type") == "relation" and "relationType" in thing
    )


def memory_server_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the records of a line, or of a whole graph."""
    thing, where = object_of(source.value) or {}, source.where
    if list_of(thing.get("entities")) is not None:
        for key, kind in (("entities", "entity"), ("relations", "relation")):
            for index, value in enumerate(items_of(thing, key)):
                place, fields = place_inside(where, f"{key}[{index}]"), object_of(value)
                if fields is None:
                    yield ImportProblem(where=place, what=f"is {kind_of(value)}, and has to be an object.")
                else:
                    yield from memory_server_records(SourceValue({"type": kind, **fields}, place), skipped)
        return
    try:
        if thing.get("type") == "entity":
            yield from _entity(thing, where, skipped)
        elif thing.get("type") == "relation":
            start, target = _text(thing, "from"), _text(thing, "to")
            yield statement(where, skipped, fact=(start, _text(thing, "relationType"), target), about=(start, target))
        else:
            yield ImportProblem(where=where, what="is neither an entity nor a relation of the reference memory server.")
    except InvalidRecord as invalid:
        yield ImportProblem(where=where, what=str(invalid))


def _entity(thing: Mapping[str, Any], where: str, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    name = _text(thing, "name")
    observed = list_of(thing.get("observations"))
    if observed is None:
        raise InvalidRecord(f"observations is {kind_of(thing.get('observations'))}, and has to be a list of texts.")
    kind = thing.get("entityType")
    if isinstance(kind, str) and kind.strip():
        yield statement(where, skipped, fact=(name, "is a", kind.strip()), about=(name,))
    for nth, observation in enumerate(observed):
        if not isinstance(observation, str):
            raise InvalidRecord(f"observations[{nth}] is {kind_of(observation)}, and has to be a text.")
        if observation.strip():
            place, text = place_inside(where, f"observations[{nth}]"), observation.strip()
            if name.casefold() not in observation.casefold():  # a statement names its entity
                text = f"{name}: {text}"
            yield statement(place, skipped, text=text, words=observation, about=(name,))


def _text(thing: Mapping[str, Any], key: str) -> str:
    value = thing.get(key)
    if not isinstance(value, str) or is_blank(value):
        what = "empty" if isinstance(value, str) else kind_of(value)
        raise InvalidRecord(f"{key} is {what}, and has to be a text.")
    return value.strip()


FORMAT = Format(
    title="a file of the reference memory server",
    location="its `memory.jsonl`, or the answer of `read_graph`",
    matches=is_graph,
    records=memory_server_records,
)
