"""The MCP App: one HTML file with everything in it, made of the files in `static/`.

A host shows it in a sandboxed frame where nothing can be fetched. So the file includes the style sheet and the
scripts, and gets its content through the tool `memory_view`.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from mcp_memory.ui.elements import Element, el, html, svg
from mcp_memory.ui.words import t

MOST_BYTES = 60_000
"""Of the file."""

_STYLES = ("page.css", "app.css")
_SCRIPTS = ("build.js", "app.js")
_OF_MODULES = re.compile(r'^(?:export (?=\w)|import .+ from "\./[\w.-]+";$)', re.MULTILINE)
_ENDING = re.compile(r"</(?:script|style)|<!--", re.IGNORECASE)
_ENTRIES = (
    ("/", "frame.memory"),
    ("/conversations", "frame.conversations"),
    ("/tasks", "frame.tasks"),
    ("/review", "frame.review"),
    ("/savings", "frame.savings"),
    ("/home", "frame.home"),
)


@cache
def app_file() -> str:
    """Return the file. Reads from disk the first time."""
    style = "\n".join(map(_read, _STYLES))
    script = "\n".join(_OF_MODULES.sub("", _read(name)) for name in _SCRIPTS)
    if found := _ENDING.search(style + script):
        raise ValueError(f"{found[0]!r} would end the style sheet or the script")
    parts = {"title": html(t("frame.name")), "style": style, "script": script, "body": html(_body())}
    return re.sub(r"\{\{(\w+)\}\}", lambda hole: parts[hole[1]], _read("app.html"))


def _read(name: str) -> str:
    return (resources.files("mcp_memory.ui") / "static" / name).read_text(encoding="utf-8")


def _body() -> Element:
    """Return the elements around the page. `app.js` finds them by their ids, and its texts in data attributes."""
    hint = t("frame.search_hint")
    entries = (el("li", el("a", t(word), href=path)) for path, word in _ENTRIES)
    field = el("input", type="search", name="q", id="search", aria_label=hint, placeholder=hint, autocomplete="off")
    said = {f"data_{name}": t(f"app.{name}") for name in ("cancelled", "closed", "silent")}
    return el(
        "div",
        el(
            "header",
            _button("back", "M10 3 5 8l5 5"),
            el("nav", el("ul", entries), aria_label=t("app.pages")),
            el("form", field, action="/search", role="search", class_="search"),
            _button("wide", "M9.5 2.5h4v4M6.5 13.5h-4v-4M13 3 9 7M3 13l4-4", data_less=t("app.narrow")),
            class_="frame",
        ),
        el("main", el("p", t("app.waiting"), role="status"), id="view", tabindex="-1", **said),
        class_="in-app",
    )


def _button(name: str, shape: str, **more: str) -> Element:
    said = t(f"app.{name}")
    sign = svg(16, 16, el("path", d=shape), label=said, class_="sign")
    return el("button", sign, id=name, type="button", title=said, aria_label=said, hidden=True, **more)
