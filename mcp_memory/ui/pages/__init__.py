"""The pages by address. `page_at` finds a page and draws it.

today           what is next, what is new           changes         what changed, old and new
memory          overview, persona, scenes           item            a statement with its correction form, a turn
result          a tool result, in windows of lines  canvas          tasks, and a task: picture, outline, versions
search          hits, and why they match            entity          facts over time, the neighbourhood
conversations   sessions and their turns            review          quarantined items
people          all entities, with counts           map             entities and topics as a picture over time
savings         tokens and money, by day            recalls         what agents got, with feedback
activity        what happened, by day
forgetting      the preview and the tombstones      home            spaces, tokens, backups, forgotten items, health
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from urllib.parse import parse_qsl, unquote, urlsplit

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.ui.components import Page, View, no_item

ADDRESSES = {
    r"/": "today:today",
    r"/coming": "today:coming",
    r"/memory": "memory:overview",
    r"/persona": "memory:persona",
    r"/scene/(?P<slug>[^/]+)": "memory:scene",
    r"/(?P<id>a\d{1,18})": "item:statement",
    r"/(?P<id>t\d{1,18})": "item:turn",
    r"/(?P<id>x\d{1,18})": "forgetting:tombstone",
    r"/forget": "forgetting:forget",
    r"/(?P<id>r-[0-9a-f]{12})": "result:result",
    r"/tasks": "canvas:tasks",
    r"/(?P<number>\d{3,9})": "canvas:canvas",
    r"/(?P<number>\d{3,9})-(?P<node>[NF]\d{1,9}(?:-\d{1,9})?)": "canvas:node",
    r"/search": "search:search",
    r"/entity/(?P<name>[^/]+)": "entity:entity",
    r"/people": "people:people",
    r"/map": "map:memory_map",
    r"/conversations": "conversations:conversations",
    r"/session/(?P<session>[^/]+)": "conversations:session",
    r"/review": "review:review",
    r"/savings": "savings:savings",
    r"/live": "recalls:recalls",
    r"/recall/(?P<number>\d{1,18})": "recalls:recall",
    r"/activity": "activity:activity",
    r"/home": "home:home",
    r"/changes": "changes:changes",
}
"""Patterns of paths, each with the module of this package and the function that draws the page."""


async def page_at(address: str, view: View) -> Page:
    """Return the page at `/path?query`; that of a forgotten item says so.

    Raises NotFound if there is no such page or item, and the errors of its verbs.
    """
    split = urlsplit(address)
    for pattern, name in ADDRESSES.items():
        if match := re.fullmatch(pattern, split.path or "/"):
            parts = {part: unquote(value) for part, value in match.groupdict().items() if value is not None}
            query: dict[str, str] = {}
            for key, value in parse_qsl(split.query):  # checkboxes with the same name are joined
                query[key] = f"{query[key]} {value}" if key in query else value
            drawn = replace(view, parts=parts, query=query)
            try:
                return await _page_function(name)(drawn)
            except NotFound:
                if "id" not in parts:
                    raise
                return await _forgotten_page(drawn, parts["id"])
    raise no_page(split.path)


async def _forgotten_page(view: View, id: str) -> Page:
    """Return the page of a forgotten item. Raises NotFound if it was not forgotten: then nothing has this number."""
    if gone := await view.memory.tombstone_over(id):
        return await _page_function("forgetting:forgotten_item")(view, id, gone)
    raise no_item(id) from None


def no_page(path: str) -> NotFound:
    """Return the error for a path where there is no page."""
    return NotFound(f"There is no page {one_line(path, 60)}.")


@cache
def _page_function(name: str) -> Callable[..., Awaitable[Page]]:
    module, _, function = name.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), function)
