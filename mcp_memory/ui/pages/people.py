"""People and things: all entities that current statements mention, with counts and the last mention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import get_args

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import plural, remove_hidden
from mcp_memory.core.types import EntityOrder, Fact, MentionedEntity
from mcp_memory.language.sentences import is_person
from mcp_memory.language.words import fold
from mcp_memory.longterm.names import USER
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el

_PAGE = 100
_ORDERS: Mapping[EntityOrder, str] = {"statements": "most mentioned", "last": "last mentioned", "name": "A to Z"}
_NONE = "No statement names anybody yet. Names are read from what you say in conversations, in the background."


async def people(view: View) -> Page:
    """List the entities; the query has a part of their names (`q`), the order and the first place (`start`)."""
    text, order, start = view.query.get("q", "").strip(), _order(view), ui.start_of(view.query)
    found = await view.memory.mentioned_entities(text, order=order, start=start, limit=_PAGE + 1)
    entities, facts = found[:_PAGE], await facts_of_user(view)
    following = str(start + _PAGE) if len(found) > _PAGE else None
    nothing = f"No name contains “{remove_hidden(text)}”." if text else _NONE
    return Page(
        title="People and things",
        here="people",
        body=ui.body(
            ui.search_form(
                "/people", "Part of a name", text, *ui.hidden({} if order == "statements" else {"order": order})
            ),
            _order_links(order, text) if found else None,
            _lists(entities, order, facts) if entities else ui.empty(nothing),
            el("p", ui.link("/people", "More", q=text, order=order, start=following), class_="pager")
            if following
            else None,
        ),
    )


def _order(view: View) -> EntityOrder:
    return next((order for order in get_args(EntityOrder) if order == view.query.get("order")), "statements")


def _order_links(chosen: EntityOrder, text: str) -> Element:
    return ui.chosen_of(
        "Order",
        ((words, ui.address("/people", q=text, order=order), order == chosen) for order, words in _ORDERS.items()),
    )


async def facts_of_user(view: View) -> dict[str, Fact]:
    """Return the current facts about the user by their folded values, which name what people are to the user."""
    try:
        facts = await view.memory.facts_about(USER)
    except NotFound:
        return {}
    return {fold(fact.value): fact for fact in facts if fact.valid_to is None and fold(fact.entity) == USER}


def role_text(name: str, facts: Mapping[str, Fact]) -> str | None:
    """Return who a person is to the user, `your daughter`; None if that is not known, or it is no person."""
    fact = facts.get(fold(name))
    is_known = fact and is_person(fact.relation.rpartition("_")[2])
    return f"your {ui.relation_words(fact.relation)}" if fact and is_known else None


def _lists(entities: Sequence[MentionedEntity], order: EntityOrder, facts: Mapping[str, Fact]) -> list[Element]:
    """Return the rows: people whose relation to the user is known first, or by name under the first letters."""

    def rows(several: Iterable[MentionedEntity]) -> Element:
        return ui.rows(_row(entity, role_text(entity.name, facts)) for entity in several)

    if order == "name":
        return [ui.section(letter, rows(several)) for letter, several in groupby(entities, _letter)]
    people = [entity for entity in entities if role_text(entity.name, facts)]
    others = [entity for entity in entities if entity not in people]
    if not people:
        return [rows(others)]
    return [ui.section("People", rows(people)), *([ui.section("Also mentioned", rows(others))] if others else [])]


def _letter(entity: MentionedEntity) -> str:
    return fold(entity.name)[:1].upper()


def _row(entity: MentionedEntity, role: str | None) -> Element:
    about = f"{role}, " if role else ""
    return ui.dated_row(
        el(
            "p",
            ui.link(f"/entity/{ui.part(entity.name)}", ui.memory_text(entity.name)),
            " ",
            el("small", about, plural(entity.statements, "statement")),
            class_="said",
        ),
        when=ui.moment(entity.last, day=True),
    )
