"""A page as models write it: what is put around it by habit, and names in its summary that the page does not say.

Pure text. What a summary says in other words than its page is beyond it.
"""

from __future__ import annotations

import re

from mcp_memory.language.words import fold, languages_of
from mcp_memory.models.llm import without_fence

__all__ = ["heading_of", "undressed", "unnamed"]

_UNREADABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_FRONT_MATTER = re.compile(r"\s*---\n.*?\n---\n", re.DOTALL)
_TITLE_LINE = re.compile(r"\s*# (?P<title>[^\n]*)(\n|$)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WITHIN = re.compile(r"(?<=[^\W_])[ ,;]+[\"'“‘„«(]*([^\W\d_][\w'’-]*)")  # words that begin no sentence
_CAPITAL_NOUNS = {"de", "lb"}
_STEM = 4


def undressed(text: str) -> str:
    """Return a body without what models put around it: a Markdown fence, front matter, the title once more."""
    text = _UNREADABLE.sub("", text.replace("\r\n", "\n"))
    if text.lstrip()[:3] in ("---", "```"):
        text = _FRONT_MATTER.sub("", without_fence(text), count=1)
    return _TITLE_LINE.sub("", text, count=1).strip() if _TITLE_LINE.match(text) else text.strip()


def heading_of(body: str) -> str:
    """Return the title that a body brings along, empty where it brings none."""
    found = _TITLE_LINE.match(body)
    return found["title"].strip() if found else ""


def unnamed(summary: str, page: str) -> list[str]:
    """Return the numbers of a summary that do not stand in its page, and the names, each once.

    Names are told by their capitals, so only in scripts and languages that give those to nothing else. They may be
    bent as languages bend them.
    """
    said = fold(page)
    numbers = set(_NUMBER.findall(page))
    strange = [number for number in _NUMBER.findall(summary) if number not in numbers]
    if _CAPITAL_NOUNS.isdisjoint(languages_of(summary.lower().split())[:1]):
        names = [word for word in _WITHIN.findall(summary) if word[0].isupper()]
        strange += [name for name in names if _stem(name) not in said]
    return list(dict.fromkeys(strange))


def _stem(name: str) -> str:
    """Return what is left of a name without what cases and possession put to its end."""
    word = fold(re.split("['’]", name)[0])
    return word[: max(_STEM, len(word) - 2)]
