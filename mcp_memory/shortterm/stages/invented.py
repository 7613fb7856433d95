"""What a model's words name that stands nowhere in what they are about."""

from __future__ import annotations

import re

__all__ = ["invented", "numbers"]

_PARTICULAR = re.compile(
    r"\d[\d.,:]*\d|[\w.-]*(?:[/\\][\w.-]+)+|[A-Za-z_]\w*(?:\.\w+)+|\w+_\w+|\b[a-z]+[A-Z]\w*|\b[A-Z]\w*[a-z][A-Z]\w*"
)
"""Numbers of two digits and more, paths, dotted names, and names of several words in one."""
_JOINT = re.compile(r"[./\\:]+")
_APART = re.compile(r"[\W_]+")


def invented(words: str, known: str) -> list[str]:
    """Return the numbers, paths and names of code in `words` that are not part of `known`.

    A name may be put together of parts that stand there (`Field.reduce`, `read/write`), and be spelled with other
    separators or case. Numbers are compared without those of thousands.
    """
    plain = _plain(known)
    squeezed = _APART.sub("", plain)

    def stands(one: str) -> bool:
        bare = _plain(one).strip(".:,-/")
        if bare in plain or one[0].isdigit():
            return bare in plain
        return all(_APART.sub("", part) in squeezed for part in _JOINT.split(bare))

    return [one for one in _PARTICULAR.findall(words) if not stands(one)]


def numbers(particulars: list[str]) -> list[str]:
    """Return those of `invented` that are numbers."""
    return [one for one in particulars if one[0].isdigit()]


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text.casefold().replace("\\", "/"))
