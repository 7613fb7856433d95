"""The frame of every page in a browser: navigation, search, the choice of the space, the keys; and the entry page.

All of it consists of elements, inside the single HTML document that this module writes. The MCP App has no frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mcp_memory import __version__
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import Element, Node, el, html
from mcp_memory.ui.words import t

_PLACES = (
    ("memory", "/"),
    ("conversations", "/conversations"),
    ("tasks", "/tasks"),
    ("review", "/review"),
    ("savings", "/savings"),
    ("live", "/live"),
    ("home", "/home"),
)
_KEYS = (
    ("/", "search"),
    ("j", "next"),
    ("k", "previous"),
    ("Enter", "open"),
    ("e", "evidence"),
    ("?", "keys"),
    ("Esc", "leave"),
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
        title=html(f"{title} · {t('frame.name')}" if title else t("frame.name")),
        static=escape(static),
        script=escape(script),
        body="\n".join(html(node, base=base) for node in body),
    )


def frame_page(page: Page, *, space: str, spaces: Sequence[str], form_token: str, query: str = "") -> list[Node]:
    """Return a page in its frame. `spaces` are the spaces that the reader may open; `query` fills the search field."""
    return [
        el("a", t("frame.skip"), href="#main", class_="skip"),
        el(
            "header",
            el("a", t("frame.name"), href="/", class_="name"),
            el(
                "nav",
                el("ul", (_navigation_entry(name, path, page.here) for name, path in _PLACES)),
                aria_label=t("frame.pages"),
            ),
            _search(query),
            _switch(space, spaces),
            class_="frame",
        ),
        el("main", el("h1", page.title, dir="auto"), page.body, id="main", tabindex="-1"),
        _footer(form_token),
        _keys(),
    ]


def _navigation_entry(name: str, path: str, here: str) -> Element:
    return el("li", el("a", t(f"frame.{name}"), href=path, aria_current="page" if name == here else None))


def _search(query: str) -> Element:
    field = el(
        "input",
        type="search",
        name="q",
        id="search",
        value=query or None,
        placeholder=t("frame.search_hint"),
        aria_label=t("frame.search"),
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
        el("label", t("frame.space"), for_="space"),
        el("select", options, name="space", id="space"),
        el("button", t("frame.go")),
        method="get",
        action="/go",
        class_="inline spaces",
    )


def _footer(form_token: str) -> Element:
    token = el("input", type="hidden", name="form_token", value=form_token)
    leave = el("form", token, el("button", t("frame.leave")), method="post", action="/do/leave", class_="inline")
    return el("footer", el("div", el("span", f"{t('frame.name')} {__version__}"), leave, class_="line"))


def _keys() -> Element:
    rows = ([el("dt", el("code", key)), el("dd", t(f"frame.key_{name}"))] for key, name in _KEYS)
    close = el("form", el("button", t("frame.close")), method="dialog")
    return el(
        "dialog",
        el("h2", t("frame.keys")),
        el("dl", rows, class_="facts"),
        close,
        id="keys",
        aria_label=t("frame.keys"),
    )


def plain_page(title: str, *content: Node) -> list[Node]:
    """Return the content of a page without a session: a heading and some text."""
    return [el("main", el("h1", title), content, id="main", tabindex="-1")]


def entry_page(action: str, note: str | None = None, *, has_tokens: bool = False) -> list[Node]:
    """Return the page with the form for a key or, if `has_tokens`, a token of the server."""
    kind = "token" if has_tokens else "key"
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
        el("label", t(f"entry.{kind}"), for_="key"),
        field,
        el("button", t("entry.open"), class_="main"),
        method="post",
        action=action,
        id="entry",
    )
    alert = el("p", note, class_="note bad", role="alert") if note else None
    return plain_page(t("entry.title"), *([alert] if alert else []), el("p", t(f"entry.about_{kind}")), form)
