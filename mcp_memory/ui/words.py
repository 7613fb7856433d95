"""The catalogue: every word that the interface says itself, by page. What the memory holds is never in here.

`t("search.none")` returns a text; `{name}` in it is filled in. A text with a count has two forms, divided by `|`.
"""

from __future__ import annotations

__all__ = ["WORDS", "t"]

WORDS: dict[str, str] = {
    # the frame around every page
    "frame.name": "mcp-memory",
    "frame.skip": "Skip to the content",
    "frame.search": "Search",
    "frame.search_hint": "Search the memory ( / )",
    "frame.memory": "Memory",
    "frame.conversations": "Conversations",
    "frame.tasks": "Tasks",
    "frame.review": "Review",
    "frame.savings": "Savings",
    "frame.live": "Live",
    "frame.home": "Home",
    "frame.more": "More",
    "frame.not_found": "Not found",
    "frame.error": "That did not work",
    "frame.back": "Back to the memory",
    # words that several pages share
    "shared.undo": "Undo",
    "shared.held": "waits for review",
    "shared.none": "none",
    "shared.now": "now",
}


def t(key: str, /, *, count: int | None = None, **values: object) -> str:
    """Return a text of the catalogue with its values; `count` chooses its form and fills in `{count}`."""
    text = WORDS[key]
    if count is not None:
        one, _, many = text.partition("|")
        text = one if count == 1 or not many else many
        values["count"] = f"{count:,}"
    return text.format(**values) if values else text
