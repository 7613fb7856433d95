"""What a model's words name that stands nowhere in what it was shown."""

from __future__ import annotations

import re

__all__ = ["invented"]

_PARTICULAR = re.compile(
    r"\d[\d.,:]*\d|[\w.-]*(?:[/\\][\w.-]+)+|[A-Za-z_]\w*(?:\.\w+)+|\w+_\w+|\b[a-z]+[A-Z]\w*|\b[A-Z]\w*[a-z][A-Z]\w*"
)
"""Numbers of two digits and more, paths, dotted names, and names of several words in one."""
_WORDS = re.compile(r"[A-Za-z]+(?:/[A-Za-z]+)+\Z")  # `read/write` and `he/she` are no paths


def invented(words: str, shown: str) -> list[str]:
    """Return the numbers, paths and names of code in `words` that are not part of `shown`.

    Case, the kind of slash and separators of thousands do not matter.
    """
    known = _plain(shown)
    return [one for one in _PARTICULAR.findall(words) if not _WORDS.match(one) and not _stands(one, known)]


def _stands(particular: str, known: str) -> bool:
    return _plain(particular).strip(".:,-/") in known


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text.casefold().replace("\\", "/"))
