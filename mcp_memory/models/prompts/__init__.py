"""Prompts: a text file each, with placeholders.

A file has the system message and, after a line `---`, the user message. A placeholder is `{{name}}`. Its value is
data: it is inserted unchanged, and placeholders or lines in it have no meaning.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from mcp_memory.core.text import remove_hidden
from mcp_memory.models.llm import ChatMessage

_HOLE = re.compile(r"\{\{(\w+)\}\}")


def prompt(name: str, **holes: str) -> tuple[ChatMessage, ChatMessage]:
    """Return the two messages of a prompt with its placeholders filled. Raises KeyError for a missing value."""
    text = (resources.files("mcp_memory.models.prompts") / f"{name}.md").read_text(encoding="utf-8")
    system, user = text.split("\n---\n", 1)
    return ChatMessage(role="system", text=_filled(system, holes)), ChatMessage(role="user", text=_filled(user, holes))


def fenced(text: str, *tags: str) -> str:
    """Return data to put between tags of a prompt, with `‹` for the `<` of anything that reads like such a tag.

    Encoded forms of `<` and tags with invisible characters before the name count too. Hidden text is removed.
    """
    return _tag_like(tags).sub("‹", remove_hidden(text))


@cache
def _tag_like(tags: tuple[str, ...]) -> re.Pattern[str]:
    unseen = r"[\s\u200b-\u200f\u2060\ufeff\u00ad]*"
    opening = r"(?:[<＜﹤]|&lt;|&#0*60;|&#x0*3c;|\\u003c)"
    return re.compile(rf"{opening}(?={unseen}[/／]?{unseen}(?:{'|'.join(tags)})\b)", re.IGNORECASE)


def _filled(text: str, holes: dict[str, str]) -> str:
    return _HOLE.sub(lambda hole: holes[hole[1]], text).strip()
