"""What mem0 gives of what it holds (`get_all`, and exports of such answers). No I/O, no state.

    memory     {id, memory, user_id | agent_id | run_id, hash, metadata, categories, created_at, updated_at}
    relation   {source, relationship, target | destination}

alone, in a list, or in {results: [memory, …], relations: [relation, …]} (`memories` in older answers), as its
documentation shows them: docs.mem0.ai, "Get all memories" and "Export stored memories". An export by a schema of
one's own has the fields that its owner chose; of those, texts under `memory` are read and no others.

Each memory is a statement, known again by its id, so that one that mem0 worded anew replaces what it said before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_memory.core.text import is_blank
from mcp_memory.integrations.importers.formats.exports import id_of
from mcp_memory.integrations.importers.formats.statements import statement
from mcp_memory.integrations.importers.formats.told import (
    Passed,
    Statement,
    Told,
    Unfit,
    Wrong,
    inside,
    kind_of,
    list_of,
    moment,
    object_of,
)

__all__ = ["is_mem0", "told"]

_LISTS = ("results", "memories")
_OURS = frozenset({"role", "content", "turns", "messages"})


def is_mem0(value: Any) -> bool:
    thing = object_of(value)
    if thing is None:
        return False
    if any(_is_memory(one) for key in _LISTS for one in (list_of(thing.get(key)) or ())[:1]):
        return True
    return _is_memory(thing)


def _is_memory(value: Any) -> bool:
    thing = object_of(value)
    return thing is not None and isinstance(thing.get("memory"), str) and not _OURS & thing.keys()


def told(value: Any, where: str, passed: Passed) -> Iterator[Statement | Told | Wrong]:
    """Yield what a memory, or an answer with many, says."""
    thing = object_of(value) or {}
    listed = next((key for key in _LISTS if list_of(thing.get(key)) is not None), None)
    if listed is None:
        yield _memory(thing, where, passed)
        return
    for nth, one in enumerate(list_of(thing[listed]) or ()):
        place, fields = inside(where, f"{listed}[{nth}]"), object_of(one)
        if fields is None:
            yield Wrong(where=place, what=f"is {kind_of(one)}, and has to be a memory of mem0.")
        else:
            yield _memory(fields, place, passed)
    for nth, one in enumerate(list_of(thing.get("relations")) or ()):
        place, fields = inside(where, f"relations[{nth}]"), object_of(one) or {}
        names = [fields.get("source"), fields.get("relationship"), fields.get("target", fields.get("destination"))]
        match names:
            case [str(source), str(relation), str(target)] if source.strip() and relation.strip() and target.strip():
                yield statement(place, passed, fact=(source, relation, target), about=(source, target))
            case _:
                yield Wrong(where=place, what="is no relation of mem0: {source, relationship, target}.")


def _memory(thing: Mapping[str, Any], where: str, passed: Passed) -> Statement | Told | Wrong:
    text = thing.get("memory")
    if not isinstance(text, str) or is_blank(text):
        return Wrong(where=where, what=f"has a memory that is {kind_of(text)}, and it has to be a text.")
    id = id_of(thing, "id")
    try:
        return statement(
            where,
            passed,
            text=text,
            said_at=moment(thing, ("updated_at", "created_at"), passed),
            id=None if id is None else f"mem0:{id}",
            program="mem0",
        )
    except Unfit as unfit:
        return Wrong(where=where, what=str(unfit))
