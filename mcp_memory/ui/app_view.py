"""A page as the MCP App gets it: title, tree and path as JSON, of at most 100 kB.

The reader may change nothing there: the view has no form token, so pages have no forms that change anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic_core import to_json

from mcp_memory.core.errors import NotFound
from mcp_memory.core.rights import Right
from mcp_memory.core.text import one_line
from mcp_memory.ui.components import address, note
from mcp_memory.ui.elements import el, tree
from mcp_memory.ui.pages import ADDRESSES, page_at
from mcp_memory.ui.views import Page, View
from mcp_memory.ui.words import t

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


MOST_BYTES = 100_000
"""Of an answer; hosts withhold results from some 150,000 characters on."""
_ROOM = MOST_BYTES - 6_000  # for title, path and the note that says what was cut
_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\\]{0,2000}")
_AT_HOME = frozenset(("", "memory", "overview"))
_NOT_HERE = "/forget"  # the page of a form


@dataclass(frozen=True, slots=True, kw_only=True)
class AppView:
    """A page under its path; `tree` is the list of the JSON trees of its body."""

    title: str
    tree: list[Any]
    path: str


def path_of(what: str) -> str:
    """Return the path of what somebody wants to see: a path, an id, the name of a page, or words to search."""
    what = what.strip()
    if what.startswith("/"):
        return what.replace(" ", "%20")
    if what.lower() in _AT_HOME:
        return "/"
    for path in (f"/{quote(name)}" for name in (what, what.lower(), what.upper())):
        if path != _NOT_HERE and any(re.fullmatch(pattern, path) for pattern in ADDRESSES):
            return path
    return address("/search", q=what[:500])


async def app_view(memory: Memory, path: str, *, right: Right, is_owner: bool) -> AppView:
    """Return the page at a path. Raises NotFound, and what its verbs raise."""
    if not _PATH.fullmatch(path):
        raise NotFound(t("frame.no_page", path=one_line(path, 60)))
    return fitted(await page_at(path, View(memory=memory, right=right, is_owner=is_owner)), path)


def fitted(page: Page, path: str) -> AppView:
    """Return a page as JSON of at most MOST_BYTES; one that is larger is cut, and says so at its end."""
    whole = [tree(node) for node in el("main", page.body).children]
    trees = _within(whole, _ROOM)
    if trees is not whole:
        trees = [*trees, tree(note(t("app.cut"), kind="warn"))]
    return AppView(title=one_line(tree(page.title), 500), tree=trees, path=path)


def _within(trees: list[Any], room: int) -> list[Any]:
    """Return trees, cut to `room` bytes of JSON: the largest one if it is most of the content, else from the end."""
    sizes = [len(to_json(node)) + 1 for node in trees]
    if sum(sizes) <= room:
        return trees
    largest = max(range(len(trees)), key=sizes.__getitem__)
    others = sum(sizes) - sizes[largest]
    if others <= room // 2:  # so that what leads to the rest of a long text stays
        return [*trees[:largest], _cut(trees[largest], room - others), *trees[largest + 1 :]]
    fitting = next(place for place, size in enumerate(accumulate(sizes)) if size > room)
    return [*trees[:fitting], _cut(trees[fitting], room - sum(sizes[:fitting]))]


def _cut(node: Any, room: int) -> Any:
    if isinstance(node, str):
        fitting = bisect_left(range(len(node)), room - 4, key=lambda end: len(to_json(node[:end])))
        return node[: max(0, fitting - 1)] + "…"
    tag, attributes, children = node
    frame = len(to_json([tag, attributes, []])) + 1
    return [tag, attributes, _within(children, room - frame)] if frame < room else "…"
