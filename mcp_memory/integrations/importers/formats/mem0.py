"""mem0: the answer of `get_all`, and exports of such answers (docs.mem0.ai, "Get all memories",
"Export stored memories").

    memory     {id, memory, user_id | agent_id | run_id, hash, metadata, categories, created_at, updated_at}
    relation   {source, relationship, target | destination}

alone, in a list, or in {results: [memory, …], relations: [relation, …]} (`memories` in older answers). Of an export
with a custom schema, texts under `memory` are read. Each memory is a statement, identified by its id, so that a memory
reworded by mem0 replaces its older version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_memory.core.text import is_blank
from mcp_memory.integrations.importers.format import Format, first_of
from mcp_memory.integrations.importers.records import (
    ImportProblem,
    SkippedParts,
    SourceValue,
    id_of,
    items_of,
    kind_of,
    list_of,
    object_of,
    parse_time,
    place_inside,
)
from mcp_memory.integrations.importers.statements import MemoryRecord, statement

_LISTS = ("results", "memories")
_OURS = frozenset({"role", "content", "turns", "messages"})


def _is_memory(value: Any) -> bool:
    thing = object_of(value)
    return thing is not None and isinstance(thing.get("memory"), str) and not _OURS & thing.keys()


def mem0_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the records of a memory, or of a list of memories."""
    thing, where = object_of(source.value) or {}, source.where
    key = next((key for key in _LISTS if list_of(thing.get(key)) is not None), None)
    if key is None:
        yield _memory(thing, where, skipped)
        return
    for index, value in enumerate(items_of(thing, key)):
        place, fields = place_inside(where, f"{key}[{index}]"), object_of(value)
        if fields is None:
            yield ImportProblem(where=place, what=f"is {kind_of(value)}, and has to be a memory of mem0.")
        else:
            yield _memory(fields, place, skipped)
    for index, value in enumerate(items_of(thing, "relations")):
        place, fields = place_inside(where, f"relations[{index}]"), object_of(value) or {}
        names = [fields.get("source"), fields.get("relationship"), fields.get("target", fields.get("destination"))]
        match names:
            case [str(start), str(relation), str(target)] if start.strip() and relation.strip() and target.strip():
                yield statement(place, skipped, fact=(start, relation, target), about=(start, target))
            case _:
                yield ImportProblem(where=place, what="is not a relation of mem0: {source, relationship, target}.")


def _memory(thing: Mapping[str, Any], where: str, skipped: SkippedParts) -> MemoryRecord:
    text = thing.get("memory")
    if not isinstance(text, str) or is_blank(text):
        return ImportProblem(where=where, what=f"has a memory that is {kind_of(text)}, and it has to be a text.")
    id = id_of(thing, "id")
    said_at = parse_time(thing, ("updated_at", "created_at"), skipped)
    return statement(where, skipped, text=text, said_at=said_at, id=id and f"mem0:{id}", program="mem0")


FORMAT = Format(
    title="memories of mem0",
    location="the answer of its `get_all`, or an export",
    matches=lambda value: _is_memory(value) or any(first_of(key, _is_memory)(value) for key in _LISTS),
    records=mem0_records,
)
