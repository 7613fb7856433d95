"""The frame of every page in a browser: navigation, search, the choice of the space, the keys; and the entry page.

All of it consists of elements, inside the single HTML document that this module writes. The MCP App has no frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mcp_memory import __version__
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import Element, Node, el, html

NAME = "mcp-memory"
SEARCH_HINT = "Search"
ENTRY_TITLE = "Open the memory"
PLACES = (
    ("today", "Today", "/"),
    ("memory", "Memory", "/memory"),
    ("people", "People", "/people"),
    ("conversations", "Conversations", "/conversations"),
    ("map", "Map", "/map"),
    ("live", "Agents", "/live"),
    ("tasks", "Tasks", "/tasks"),
    ("savings", "Savings", "/savings"),
    ("review", "Review", "/review"),
    ("home", "Export and settings", "/home"),
)
"""The navigation: what `Page.here` calls an entry, its text and its address."""
_LETTERS = {"map": "o", "tasks": "k"}
"""The letters that lead to entries after the key g; other entries have their initial."""
_GROUP_STARTS = frozenset(("live", "review"))
_ICONS = {
    "today": "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.5v3M10.5 2.5v3",
    "memory": "M3 3.5c2-.8 4-.5 5 .5 1-1 3-1.3 5-.5v9c-2-.8-4-.5-5 .5-1-1-3-1.3-5-.5zM8 4v9",
    "people": "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8zM2.8 13.5c.6-2.6 2.6-4 5.2-4s4.6 1.4 5.2 4",
    "map": "M5 5.5 10.5 4M4.5 6l3 5M11 5.5l-2 5.5M3 5a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0M10.5 3.8a1.5 1.5 0 1 0 3 0 "
    "1.5 1.5 0 1 0-3 0M6.7 12.3a1.5 1.5 0 1 0 3 0 1.5 1.5 0 1 0-3 0",
    "conversations": "M2.5 3.5h11v7.5H7.6l-3.1 2.5V11h-2z",
    "live": "M2 8h2.6L6.3 3.5l3.2 9L11.3 8H14",
    "tasks": "m2.5 4.6 1.2 1.2 2.3-2.4M8.5 4.8h5M2.5 10.8 3.7 12 6 9.6M8.5 11h5",
    "savings": "M3.5 13.5V9M8 13.5v-8M12.5 13.5v-11",
    "review": "m8 2.2 5 1.8v4c0 3-2.2 5-5 6-2.8-1-5-3-5-6V4zM5.8 8l1.6 1.6 2.9-3",
    "home": "M2.5 5h5.7M12 5h1.5M2.5 11H4M7.8 11h5.7M10.1 3.3v3.4M5.9 9.3v3.4",
}
"""The shape of the picture beside each entry of the navigation, in a square of 16."""
_KEYS = (
    ("/", "search"),
    ("j", "next row of a list"),
    ("k", "previous row"),
    ("Enter", "open what the row is about"),
    ("e", "open the evidence of a statement, or the message itself"),
    ("c x f", "correct a statement, say that it ended, forget it"),
    ("u", "undo what was just done, or what the row is about"),
    ("h w", "on what an agent got: helpful, wrong here"),
    ("r q", "on what waits for review: release, keep out"),
    ("Ctrl Enter", "send the form"),
    ("g", "then the letter that appears beside a page, or its number: go to it"),
    ("n p", "in a result: next and previous hit"),
    ("+ - 0", "on the map: closer, farther, all"),
    ("?", "show these keys"),
    ("Esc", "leave a field, close a form or this"),
)
_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="{static}/page.css">
<link rel="icon" type="image/svg+xml" href="{static}/icon.svg">
<script type="module" src="{static}/{script}"></script>
</head>
<body>
{body}
</body>
</html>
"""


def document(title: str, body: Sequence[Node], *, base: str, static: str, script: str) -> str:
    """Return a whole document; addresses in `body` are under `base`, the style sheet and the script under `static`."""
    return _DOCUMENT.format(
        title=html(f"{title} · {NAME}" if title else NAME),
        static=escape(static),
        script=escape(script),
        body="\n".join(html(node, base=base) for node in body),
    )


def frame_page(page: Page, *, space: str, spaces: Sequence[str], form_token: str, query: str = "") -> list[Node]:
    """Return a page in its frame. `spaces` are the spaces that the reader may open; `query` fills the search field."""
    return [
        el("a", "Skip to the content", href="#main", class_="skip"),
        el(
            "header",
            el("a", NAME, href="/", class_="name"),
            _search(query),
            el("button", "Menu", popovertarget="menu", class_="open-menu"),
            el("div", _navigation(page.here), _switch(space, spaces), id="menu", popover="auto"),
            class_="frame",
        ),
        el("main", el("h1", page.title, dir="auto"), page.body, id="main", tabindex="-1"),
        _footer(form_token),
        _keys(),
    ]


def _navigation(here: str) -> Element:
    return el(
        "nav",
        el("ul", (_navigation_entry(name, text, path, is_here=name == here) for name, text, path in PLACES)),
        aria_label="Pages",
    )


def _navigation_entry(name: str, text: str, path: str, *, is_here: bool) -> Element:
    icon = el("svg", el("path", d=_ICONS[name]), viewBox="0 0 16 16", width=16, height=16, aria_hidden="true")
    letter = _LETTERS.get(name, text[0].lower())
    entry = el("a", icon, text, href=path, aria_current="page" if is_here else None, data_go=letter)
    return el("li", entry, class_="group" if name in _GROUP_STARTS else None)


def _search(query: str) -> Element:
    field = el(
        "input",
        type="search",
        name="q",
        id="search",
        value=query or None,
        placeholder=SEARCH_HINT,
        aria_label="Search",
        aria_keyshortcuts="/",
        autocomplete="off",
        maxlength=2000,
    )
    return el("form", field, method="get", action="/search", role="search", class_="search")


def _switch(space: str, spaces: Sequence[str]) -> Element | None:
    if len(spaces) < 2:
        return None
    options = (el("option", name, value=name, selected=name == space) for name in spaces)
    return el(
        "form",
        el("label", "Space", for_="space"),
        el("select", options, name="space", id="space"),
        el("button", "Go"),
        method="get",
        action="/go",
        class_="inline spaces",
    )


def _footer(form_token: str) -> Element:
    token = el("input", type="hidden", name="form_token", value=form_token)
    leave = el("form", token, el("button", "Log out"), method="post", action="/do/leave", class_="inline")
    keys = el("button", "Keys ", el("code", "?"), type="button", id="open-keys", hidden=True)
    return el("footer", el("div", el("span", f"{NAME} {__version__}"), keys, leave, class_="line"))


def _keys() -> Element:
    rows = ([el("dt", el("code", key)), el("dd", text)] for key, text in _KEYS)
    close = el("form", el("button", "Close"), method="dialog")
    return el(
        "dialog",
        el("h2", "Keys"),
        el("dl", rows, class_="facts"),
        close,
        id="keys",
        aria_label="Keys",
    )


def plain_page(title: str, *content: Node) -> list[Node]:
    """Return the content of a page without a session: a heading and some text."""
    return [el("main", el("h1", title), content, id="main", tabindex="-1")]


def entry_page(action: str, note: str | None = None, *, has_tokens: bool = False) -> list[Node]:
    """Return the page with the form for a key or, if `has_tokens`, a token of the server."""
    if has_tokens:
        label = "Token"
        about = "Paste a token of this server. The owner of the memory makes one with mcp-memory token create."
    else:
        label = "Key"
        about = (
            "Paste the key: what follows # in the address that mcp-memory ui printed. "
            "A key opens the memory once, within a minute; start the command again for a new one."
        )
    field = el(
        "input",
        type="text",
        name="key",
        id="key",
        autocomplete="off",
        spellcheck="false",
        required=True,
        maxlength=4096,
    )
    form = el(
        "form",
        el("label", label, for_="key"),
        field,
        el("button", "Open", class_="main"),
        method="post",
        action=action,
        id="entry",
    )
    alert = el("p", note, class_="note bad", role="alert") if note else None
    return plain_page(ENTRY_TITLE, *([alert] if alert else []), el("p", about), form)
