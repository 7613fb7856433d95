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
SEARCH_HINT = "Search the memory ( / )"
ENTRY_TITLE = "Open the memory"
PLACES = (
    ("today", "Today", "/"),
    ("memory", "Memory", "/memory"),
    ("people", "People", "/people"),
    ("conversations", "Conversations", "/conversations"),
    ("tasks", "Tasks", "/tasks"),
    ("review", "Review", "/review"),
    ("savings", "Savings", "/savings"),
    ("live", "Live", "/live"),
    ("home", "Upkeep", "/home"),
)
"""The navigation: what `Page.here` calls an entry, its text and its address."""
_KEYS = (
    ("/", "search"),
    ("j", "next row of a list"),
    ("k", "previous row"),
    ("Enter", "open what the row is about"),
    ("e", "open the evidence"),
    ("?", "show these keys"),
    ("Esc", "leave a field, close this"),
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
            el(
                "nav",
                el("ul", (_navigation_entry(text, path, is_here=name == page.here) for name, text, path in PLACES)),
                aria_label="Pages",
            ),
            _search(query),
            _switch(space, spaces),
            class_="frame",
        ),
        el("main", el("h1", page.title, dir="auto"), page.body, id="main", tabindex="-1"),
        _footer(form_token),
        _keys(),
    ]


def _navigation_entry(text: str, path: str, *, is_here: bool) -> Element:
    return el("li", el("a", text, href=path, aria_current="page" if is_here else None))


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
    return el("footer", el("div", el("span", f"{NAME} {__version__}"), leave, class_="line"))


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
