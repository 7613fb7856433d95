"""What a line of the reference memory server's file says (`memory.jsonl`, before that `memory.json`). No I/O, no state.

    entity     {type: "entity", name, entityType, observations: [text, …]}
    relation   {type: "relation", from, to, relationType}

As its source writes and reads them: modelcontextprotocol/servers, src/memory/index.ts (`saveGraph`, `loadGraph`); and
the graph as its tool `read_graph` gives it, {entities: [entity, …], relations: [relation, …]}. Each observation is a
statement about its entity, each relation a fact; a type is a fact too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_memory.core.text import is_blank
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
    object_of,
)

__all__ = ["is_graph", "told"]


def is_graph(value: Any) -> bool:
    thing = object_of(value)
    if thing is None:
        return False
    if list_of(thing.get("entities")) is not None and list_of(thing.get("relations")) is not None:
        return True
    return (thing.get("type") == "entity" and "observations" in thing) or (
        thing.get("type") == "relation" and "relationType" in thing
    )


def told(value: Any, where: str, passed: Passed) -> Iterator[Statement | Told | Wrong]:
    """Yield what a line, or a whole graph, says."""
    thing = object_of(value) or {}
    if (entities := list_of(thing.get("entities"))) is not None:
        for name, held, kind in (("entities", entities, "entity"), ("relations", thing.get("relations"), "relation")):
            for nth, one in enumerate(list_of(held) or ()):
                place, fields = inside(where, f"{name}[{nth}]"), object_of(one)
                if fields is None:
                    yield Wrong(where=place, what=f"is {kind_of(one)}, and has to be an object.")
                else:
                    yield from told({"type": kind, **fields}, place, passed)
        return
    try:
        if thing.get("type") == "entity":
            yield from _entity(thing, where, passed)
        elif thing.get("type") == "relation":
            one, other = _text(thing, "from"), _text(thing, "to")
            yield statement(where, passed, fact=(one, _text(thing, "relationType"), other), about=(one, other))
        else:
            yield Wrong(where=where, what="is neither an entity nor a relation of the reference memory server.")
    except Unfit as unfit:
        yield Wrong(where=where, what=str(unfit))


def _entity(thing: Mapping[str, Any], where: str, passed: Passed) -> Iterator[Statement | Told]:
    name = _text(thing, "name")
    observed = list_of(thing.get("observations"))
    if observed is None:
        raise Unfit(f"observations is {kind_of(thing.get('observations'))}, and has to be a list of texts.")
    kind = thing.get("entityType")
    if isinstance(kind, str) and kind.strip():
        yield statement(where, passed, fact=(name, "is a", kind.strip()), about=(name,))
    for nth, one in enumerate(observed):
        if not isinstance(one, str):
            raise Unfit(f"observations[{nth}] is {kind_of(one)}, and has to be a text.")
        if one.strip():
            yield statement(
                inside(where, f"observations[{nth}]"), passed, text=_about(name, one), words=one, about=(name,)
            )


def _about(name: str, text: str) -> str:
    """Return an observation as a statement that stands alone."""
    return text.strip() if name.casefold() in text.casefold() else f"{name}: {text.strip()}"


def _text(thing: Mapping[str, Any], key: str) -> str:
    value = thing.get(key)
    if not isinstance(value, str) or is_blank(value):
        raise Unfit(f"{key} is {kind_of(value) if not isinstance(value, str) else 'empty'}, and has to be a text.")
    return value.strip()
