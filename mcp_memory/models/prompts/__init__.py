"""The questions that models are asked, one text file each, with holes for what they are asked about.

A file is what the system says and, after a line `---`, what the user says. A hole is `{{name}}`. What fills one is
data: it is put in as it stands, and holes or lines in it mean nothing.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

from mcp_memory.language.hidden_characters import revealed
from mcp_memory.models.llm import ChatMessage

__all__ = ["fenced", "prompt"]

_HOLE = re.compile(r"\{\{(\w+)\}\}")


def prompt(name: str, **holes: str) -> tuple[ChatMessage, ChatMessage]:
    """Return a question's two messages, its holes filled. KeyError for a hole that is not given."""
    text = (resources.files("mcp_memory.models.prompts") / f"{name}.md").read_text(encoding="utf-8")
    system, user = text.split("\n---\n", 1)
    return ChatMessage(role="system", text=_filled(system, holes)), ChatMessage(role="user", text=_filled(user, holes))


def fenced(text: str, *tags: str) -> str:
    """Return data that goes between tags of a question, with `‹` for the `<` of what reads like one of these tags.

    Whatever stands for the `<`, and whatever nobody sees between it and the name, is looked through.
    """
    return _tag_like(tags).sub("‹", revealed(text))


@cache
def _tag_like(tags: tuple[str, ...]) -> re.Pattern[str]:
    unseen = r"[\s\u200b-\u200f\u2060\ufeff\u00ad]*"
    opening = r"(?:[<＜﹤]|&lt;|&#0*60;|&#x0*3c;|\\u003c)"
    return re.compile(rf"{opening}(?={unseen}[/／]?{unseen}(?:{'|'.join(tags)})\b)", re.IGNORECASE)


def _filled(text: str, holes: dict[str, str]) -> str:
    return _HOLE.sub(lambda hole: holes[hole[1]], text).strip()
