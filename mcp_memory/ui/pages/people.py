"""People and things: all entities that current statements mention, with counts and the last mention."""

from __future__ import annotations

from mcp_memory.core.text import plural
from mcp_memory.core.types import MentionedEntity
from mcp_memory.ui import components as ui
from mcp_memory.ui.components import Page, View
from mcp_memory.ui.elements import Element, el

_LISTED = 200
_NONE = "No statement names anybody yet. Names are read from what you say in conversations, in the background."


async def people(view: View) -> Page:
    """List the entities, those with the most statements first; `q` in the query is the beginning of their names."""
    begins = view.query.get("q", "").strip()
    entities = await view.memory.mentioned_entities(prefix=begins, limit=_LISTED + 1)
    nothing = f"No name begins with “{begins}”." if begins else _NONE
    return Page(
        title="People and things",
        here="people",
        body=ui.body(
            ui.search_form("/people", "Beginning of a name", begins),
            ui.rows(map(_row, entities[:_LISTED])) if entities else ui.empty(nothing),
            el("p", f"These are the first {_LISTED}.") if len(entities) > _LISTED else None,
        ),
    )


def _row(entity: MentionedEntity) -> list[Element]:
    return [
        el("p", ui.link(f"/entity/{ui.part(entity.name)}", ui.memory_text(entity.name)), class_="said"),
        ui.line(plural(entity.statements, "statement"), el("span", "last on ", ui.moment(entity.last, day=True))),
    ]
