"""The open promises that a recall shows first: those that a prompt calls for, and those whose day has come.

A promise is shown until it is closed, but not for the prompt that states it, and not again in a context that shows it
already. One for a day alone is shown from that day on, at the start of a session and at the first prompt, for a month;
after that only a search finds it.
"""

from __future__ import annotations

from datetime import timedelta

from mcp_memory.language.when.intervals import local
from mcp_memory.longterm.promises import Promise, called_for, open_promises
from mcp_memory.longterm.recall.lines import RecallLine, of_promise, sound
from mcp_memory.longterm.search.search import SearchContext

__all__ = ["due_promises", "promises_for"]

_SHOWN = 5
_DUE_FOR = timedelta(days=31)


def due_promises(desk: SearchContext, *, known: str = "") -> list[RecallLine]:
    """Return lines for the open promises for a day that has come, latest first, without those in `known`."""
    return _lines(desk, _due(desk, open_promises(desk)), known)


def promises_for(desk: SearchContext, prompt: str, *, known: str = "", with_due: bool = True) -> list[RecallLine]:
    """Return lines for the open promises that a prompt calls for, then for those whose day has come.

    Promises in `known` are left out.
    """
    promises = open_promises(desk)
    if not promises:
        return []
    due = _due(desk, promises) if with_due else []
    return _lines(desk, [*called_for(promises, prompt, desk.now), *due], known)


def _due(desk: SearchContext, promises: list[Promise]) -> list[Promise]:
    today = local(desk.now).date()
    due = [
        (one.parts.due, one)
        for one in promises
        if one.parts.is_date and one.parts.due and today - _DUE_FOR <= one.parts.due <= today
    ]
    return [promise for _, promise in sorted(due, key=lambda pair: pair[0], reverse=True)]


def _lines(desk: SearchContext, promises: list[Promise], known: str) -> list[RecallLine]:
    fresh = [one for one in promises if f", open ({one.atom.id}):" not in known]
    lines = (of_promise(one.atom, one.said_at, desk.now) for one in fresh[:_SHOWN])
    return list(sound(desk, lines))
