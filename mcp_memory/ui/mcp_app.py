"""The MCP App: a single HTML file made of the files in `static/`, and the pages it shows, as JSON.

A host shows the file in a sandboxed frame where nothing can be fetched, so it includes the style sheet and the
scripts, and gets each page through the tool `memory_view`: title, tree and path, of at most 100 kB. The reader can
change nothing, because the view has no form token, without which pages have no forms that change anything. A correction
is a message to the conversation, whose agent makes it: the page of a statement has forms with the text in
`data-message`, which `app.js` sends.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic_core import to_json

from mcp_memory.core.rights import Right
from mcp_memory.core.text import one_line, remove_hidden
from mcp_memory.ui.components import Page, View, address, note
from mcp_memory.ui.elements import Element, el, html, svg, tree
from mcp_memory.ui.frame import NAME, PLACES, SEARCH_HINT
from mcp_memory.ui.pages import ADDRESSES, no_page, page_at
from mcp_memory.ui.times import in_zone

if TYPE_CHECKING:
    from mcp_memory.core.types import Atom
    from mcp_memory.service.memory import Memory
MOST_PAGE_BYTES = 100_000
"""Size limit of an answer; hosts withhold results from about 150,000 characters on."""
_ROOM = MOST_PAGE_BYTES - 6_000  # the rest is for the title, the path and the note about omitted parts
_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\\]{0,2000}")
_STATEMENT = re.compile(r"/(a[1-9][0-9]*)(?:\?|$)")
_MESSAGE_CHARS = 500
_AT_HOME = frozenset(("", "memory", "overview"))
_NOT_HERE = "/forget"  # the page of a form


@dataclass(frozen=True, slots=True, kw_only=True)
class AppView:
    """A page and its path; `tree` is the list of the JSON trees of its body."""

    title: str
    tree: list[Any]
    path: str


def path_of(what: str) -> str:
    """Return the path of a page to show: from a path, an id, the name of a page, or words to search."""
    what = what.strip()
    if what.startswith("/"):
        return what.replace(" ", "%20")
    if what.lower() in _AT_HOME:
        return "/"
    for path in (f"/{quote(name)}" for name in (what, what.lower(), what.upper())):
        if path != _NOT_HERE and any(re.fullmatch(pattern, path) for pattern in ADDRESSES):
            return path
    return address("/search", q=what[:500])


async def app_view(memory: Memory, path: str, *, right: Right, is_owner: bool, zone: str = "") -> AppView:
    """Return the page at a path, with times in the IANA time zone `zone`, or in this machine's if it is empty.

    Raises NotFound if there is no such page, and the errors of its verbs.
    """
    if not _PATH.fullmatch(path):
        raise no_page(path)
    with in_zone(zone):
        page = await page_at(path, View(memory=memory, right=right, is_owner=is_owner))
    if match := _STATEMENT.match(path):
        for statement in await memory.statements_by_id([match[1]]):
            page = replace(page, body=(*page.body[:1], *_corrections(statement), *page.body[1:]))
    return fit_page(page, path)


def _corrections(statement: Atom) -> list[Element]:
    """Return the forms whose messages ask an agent to correct a statement; none for one that has ended.

    The words of a statement that waits for review are left out, because a message speaks for the user.
    """
    if statement.valid_to is not None:
        return []
    words = "" if statement.held else f" says “{one_line(remove_hidden(statement.text), _MESSAGE_CHARS)}”"
    named = f"Please correct my memory: statement {statement.id}{words}."
    field = el("input", type="text", name="text", aria_label="What it should say", dir="auto", autocomplete="off")
    correct = el("form", field, " ", el("button", "Correct this"), data_message=f"{named} It should say: ")
    ended = el("form", el("button", "This is no longer true"), data_message=f"{named} This is no longer true.")
    return [el("div", correct, ended, class_="corrections")]


def fit_page(page: Page, path: str) -> AppView:
    """Return a page as JSON of at most MOST_PAGE_BYTES; a larger page is cut and ends with a note."""
    whole = [tree(node) for node in el("main", page.body).children]
    trees = _fit_trees(whole, _ROOM)
    if trees is not whole:
        trees = [
            *trees,
            tree(note("This page is too large to be shown here whole; the rest is left out.", kind="warn")),
        ]
    return AppView(title=one_line(tree(page.title), 500), tree=trees, path=path)


def _fit_trees(trees: list[Any], room: int) -> list[Any]:
    """Return trees cut to `room` bytes of JSON.

    If all trees except the largest fit into half of the room, only the largest is cut. Otherwise the first tree that
    does not fit is cut, and the trees after it are left out.
    """
    sizes = [len(to_json(node)) + 1 for node in trees]
    if sum(sizes) <= room:
        return trees
    largest = max(range(len(trees)), key=sizes.__getitem__)
    others = sum(sizes) - sizes[largest]
    if others <= room // 2:  # so that links to the rest of a long text stay
        return [*trees[:largest], _cut(trees[largest], room - others), *trees[largest + 1 :]]
    fitting = next(place for place, size in enumerate(accumulate(sizes)) if size > room)
    return [*trees[:fitting], _cut(trees[fitting], room - sum(sizes[:fitting]))]


def _cut(node: Any, room: int) -> Any:
    if isinstance(node, str):
        fitting = bisect_left(range(len(node)), room - 4, key=lambda end: len(to_json(node[:end])))
        return node[: max(0, fitting - 1)] + "…"
    tag, attributes, children = node
    frame = len(to_json([tag, attributes, []])) + 1
    return [tag, attributes, _fit_trees(children, room - frame)] if frame < room else "…"


MOST_FILE_BYTES = 60_000
"""Size limit of the file."""
_STYLES = ("page.css", "app.css")
_SCRIPTS = ("build.js", "app.js")
_OF_MODULES = re.compile(r'^(?:export (?=\w)|import .+ from "\./[\w.-]+";$)', re.MULTILINE)
_ENDING = re.compile(r"</(?:script|style)|<!--", re.IGNORECASE)


@cache
def app_file() -> str:
    """Return the HTML file. The first call reads from disk."""
    style = "\n".join(map(_read, _STYLES))
    script = "\n".join(_OF_MODULES.sub("", _read(name)) for name in _SCRIPTS)
    if ending := _ENDING.search(style + script):
        raise ValueError(f"{ending[0]!r} would end the style sheet or the script")
    parts = {"title": html(NAME), "style": style, "script": script, "body": html(_body())}
    return re.sub(r"\{\{(\w+)\}\}", lambda hole: parts[hole[1]], _read("app.html"))


def _read(name: str) -> str:
    return (resources.files("mcp_memory.ui") / "static" / name).read_text(encoding="utf-8")


def _body() -> Element:
    """Return the elements around the page. `app.js` finds them by their ids, and its texts in data attributes."""
    entries = (el("li", el("a", text, href=path)) for name, text, path in PLACES if name != "live")
    field = el(
        "input",
        type="search",
        name="q",
        id="search",
        aria_label=SEARCH_HINT,
        placeholder=SEARCH_HINT,
        autocomplete="off",
    )
    return el(
        "div",
        el(
            "header",
            _button("back", "Back", "M10 3 5 8l5 5"),
            el("nav", el("ul", entries), aria_label="Pages of the memory"),
            el("form", field, action="/search", role="search", class_="search"),
            _button(
                "wide",
                "Full screen",
                "M9.5 2.5h4v4M6.5 13.5h-4v-4M13 3 9 7M3 13l4-4",
                data_less="Back to the conversation",
            ),
            class_="bar",
        ),
        el(
            "main",
            el("p", "Opening the memory …", role="status"),
            id="view",
            tabindex="-1",
            data_cancelled="The request was cancelled.",
            data_closed="This program shows the App but does not let it read the memory. "
            "Run mcp-memory ui for the same pages in a browser.",
            data_sent="This was handed to the conversation: the agent can make the correction now.",
            data_copied="This was copied. Put it into the conversation, and the agent can make the correction.",
            data_copy="Copy this into the conversation, and the agent can make the correction.",
            data_silent="The memory did not answer. Try again, or ask for it once more.",
        ),
        class_="in-app",
    )


def _button(id_: str, label: str, shape: str, **more: str) -> Element:
    sign = svg(16, 16, el("path", d=shape), label=label, class_="sign")
    return el("button", sign, id=id_, type="button", title=label, aria_label=label, hidden=True, **more)
