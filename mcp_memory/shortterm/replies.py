"""Checks models' replies for invented names and numbers, and stores replies while agents add steps."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator

from mcp_memory.core.errors import NotFound
from mcp_memory.models.metered import StageContext
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import job_rows
from mcp_memory.store.values import Conflict, Work


def _text(value: Any) -> Any:
    return "" if value is None else value


Text = Annotated[str, BeforeValidator(_text)]
"""A field of a reply that may be null."""

_PARTICULAR = re.compile(
    r"\d[\d.,:]*\d|[\w.-]*(?:[/\\][\w.-]+)+|[A-Za-z_]\w*(?:\.\w+)+|\w+_\w+|\b[a-z]+[A-Z]\w*|\b[A-Z]\w*[a-z][A-Z]\w*"
)
"""Numbers of two digits and more, paths, dotted names, and names such as `snake_case` and `camelCase`."""
_JOINT = re.compile(r"[./\\:]+")
_SEPARATOR = re.compile(r"[\W_]+")


def invented(text: str, source: str) -> list[str]:
    """Return the numbers, paths and names of code in `text` that are not in `source`.

    A name may combine parts of `source` (`Field.reduce`, `read/write`), and differ from it in separators or case.
    Numbers are compared without thousands separators.
    """
    plain = _plain(source)
    squeezed = _SEPARATOR.sub("", plain)

    def is_in_source(name: str) -> bool:
        bare = _plain(name).strip(".:,-/")
        if bare in plain or name[0].isdigit():
            return bare in plain
        return all(_SEPARATOR.sub("", part) in squeezed for part in _JOINT.split(bare))

    return [name for name in _PARTICULAR.findall(text) if not is_in_source(name)]


def numbers(names: list[str]) -> list[str]:
    """Return the numbers among the results of `invented`."""
    return [name for name in names if name[0].isdigit()]


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d{3})", "", text.casefold().replace("\\", "/"))


_ATTEMPTS = 20


def commit(context: StageContext[Store], work: Work, store: Callable[[], None]) -> None:
    """Call `store`, and call it again after each conflict with another writer.

    Raises Conflict if the job is no longer open, or after 20 conflicts.
    """
    for _ in range(_ATTEMPTS):
        try:
            return store()
        except Conflict:
            if not _is_open(context, work):
                raise
    raise Conflict("The canvas is being written to by many others at once.")


def _is_open(context: StageContext[Store], work: Work) -> bool:
    try:
        return context.store.read(context.space, job_rows.by_id, work.id).state != "done"
    except NotFound:  # leased by another worker under a new id
        return False
