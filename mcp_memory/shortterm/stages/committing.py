"""Storing what came of a reply while agents go on taking steps: an answer that was paid for is not lost to one."""

from __future__ import annotations

from collections.abc import Callable

from mcp_memory.core.errors import NotFound
from mcp_memory.models.stage import StageContext
from mcp_memory.store.protocol import Conflict, Store, Work

__all__ = ["commit"]

_ATTEMPTS = 20


def commit(desk: StageContext[Store], work: Work, store: Callable[[], None]) -> None:
    """Call `store` until no writer of a canvas was first. Conflict where the work is done or another's by now."""
    for _ in range(_ATTEMPTS):
        try:
            return store()
        except Conflict:
            if not _is_open(desk, work):
                raise
    raise Conflict("The canvas is being written to by many others at once.")


def _is_open(desk: StageContext[Store], work: Work) -> bool:
    try:
        return desk.store.work(desk.space, work.id).state != "done"
    except NotFound:  # another took it, under a new id
        return False
