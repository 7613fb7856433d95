"""Check and store replies of models: names they made up, and commits while agents go on taking steps."""

from __future__ import annotations

import re
from collections.abc import Callable

from mcp_memory.core.errors import NotFound
from mcp_memory.models.metered import StageContext
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Conflict, Work

_PARTICULAR = re.compile(
    r"\d[\d.,:]*\d|[\w.-]*(?:[/\\][\w.-]+)+|[A-Za-z_]\w*(?:\.\w+)+|\w+_\w+|\b[a-z]+[A-Z]\w*|\b[A-Z]\w*[a-z][A-Z]\w*"
)
"""Numbers of two digits and more, paths, dotted names, and names of several words in one."""
_JOINT = re.compile(r"[./\\:]+")
_APART = re.compile(r"[\W_]+")


def invented(words: str, known: str) -> list[str]:
    """Return the numbers, paths and names of code in `words` that are not part of `known`.

    A name may combine known parts (`Field.reduce`, `read/write`), and differ in separators or case. Numbers are
    compared without thousands separators.
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


_ATTEMPTS = 20


def commit(context: StageContext[Store], work: Work, store: Callable[[], None]) -> None:
    """Call `store` until no writer of a canvas was first. Conflict where the work is done or another's by now."""
    for _ in range(_ATTEMPTS):
        try:
            return store()
        except Conflict:
            if not _is_open(context, work):
                raise
    raise Conflict("The canvas is being written to by many others at once.")


def _is_open(context: StageContext[Store], work: Work) -> bool:
    try:
        return context.store.job(context.space, work.id).state != "done"
    except NotFound:  # another took it, under a new id
        return False
