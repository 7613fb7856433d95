"""Corrections: what a statement keeps of those that it replaces, judged by which names stand in its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcp_memory.core.types import Atom, Fact
from mcp_memory.language.words import fold
from mcp_memory.longterm.names import USER, entities_in, stands_in
from mcp_memory.longterm.search.scenes import names_of
from mcp_memory.store.protocol import Store


def fact_still_stated(store: Store, space: str, text: str, older: Iterable[Atom]) -> Fact | None:
    """Return the first fact of the replaced statements whose entity and value stand in the new text.

    The user is meant without being named.
    """

    def stands(name: str) -> bool:
        return stands_in(names_of(store, space, name), text)

    facts = (one.fact for one in older if one.fact)
    return next(
        (fact for fact in facts if (fold(fact.entity) == USER or stands(fact.entity)) and stands(fact.value)), None
    )


def entities_of_correction(
    store: Store, space: str, text: str, older: Sequence[Atom], *, value: str | None = None
) -> list[str]:
    """Return the entities that a new text is about.

    They are those that it names, the user if one of the replaced statements is about the user, and the `value` of its
    fact where an older value of it was one.
    """
    about = {name for one in older for name in one.entities}
    values = {one.fact.value for one in older if one.fact}
    found = [*(name for name in (USER,) if name in about), *entities_in(store, space, text)]
    return list(dict.fromkeys([*found, *([value] if value and values & about else [])]))
