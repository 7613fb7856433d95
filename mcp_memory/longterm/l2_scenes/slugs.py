"""The addresses of scenes: what a title becomes so that it can be a file's name on every system. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from itertools import count

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import safe_name

__all__ = ["free_slug", "slug_of"]

_CHARACTERS, _BYTES = 60, 100
_NAMELESS = "scene"


def slug_of(title: str) -> str:
    """Return the title in small letters of its own script, with `-` for all else.

    The same title always gives the same slug. One of no letters gives `scene`, a name that a system reserves
    gets that put before it.
    """
    words = re.sub(r"(?<=\w)['’](?=\w)", "", unicodedata.normalize("NFKC", title).lower())
    kept = "".join(c if _is_letter(c) else " " for c in words)
    slug = unicodedata.normalize("NFC", "-".join(re.findall(r"[^\W_]\S*", kept)))
    slug = _cut(slug) or _NAMELESS
    try:
        return safe_name(slug, what="name of a scene")
    except InvalidInput:
        return f"{_NAMELESS}-{slug}"


def free_slug(title: str, taken: Collection[str]) -> str:
    """Return the slug of a title, numbered where others have it."""
    slug = slug_of(title)
    return next(name for n in count(1) if (name := slug if n == 1 else f"{slug}-{n}") not in taken)


def _is_letter(c: str) -> bool:
    """Tell letters, digits and the signs that scripts put on them; the signs that emoji have stand alone."""
    return unicodedata.category(c)[0] in "LNM" and not "\ufe00" <= c <= "\ufe0f"


def _cut(slug: str) -> str:
    slug = slug[:_CHARACTERS]
    while len(slug.encode()) > _BYTES:
        slug = slug[:-1]
    return slug.strip("-")
