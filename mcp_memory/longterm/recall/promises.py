"""The open promises that a recall shows first: those that a prompt calls for, and those whose day has come.

A promise is shown until it is closed, but not for the prompt that states it, and not in a context that shows it
already. A promise with only a due day is shown for a month from that day on, at the start of a session and at the first
prompt; after that only a search finds it. A promise for the day on which it was made is not shown in the conversation
that made it.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import timedelta
from typing import NamedTuple

from mcp_memory.core.personal_ids import MARK
from mcp_memory.language.when.intervals import local
from mcp_memory.longterm.promises import Promise, called_for, open_promises
from mcp_memory.longterm.recall.line import RecallLine
from mcp_memory.longterm.recall.lines import mark_suspects, of_promise
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.store.sql import turn_rows

_SHOWN = 5
_DUE_FOR = timedelta(days=31)
_TURNS = 200  # newest turns of a session that are searched for promises
_LINE = re.compile(rf"^Promise of [^\n(:]{{1,40}}, open \(((?:{MARK})?a\d+)\):", re.MULTILINE)


class PromiseLines(NamedTuple):
    """Lines for the first promises, and the ids of the promises beyond the limit, which have no line."""

    lines: list[RecallLine]
    left_out: list[str]


def promises_in(block: str) -> frozenset[str]:
    """Return the ids of the promises for which a block has a line."""
    return frozenset(match[1] for match in _LINE.finditer(block))


def due_promises(context: SearchContext, *, session: str | None = None, shown: Collection[str] = ()) -> PromiseLines:
    """Return lines for the open promises whose day has come, oldest first, without those that are `shown`."""
    return _lines(context, _due(context, open_promises(context), session), shown)


def promises_for(
    context: SearchContext,
    prompt: str,
    *,
    session: str | None = None,
    shown: Collection[str] = (),
    shown_due: Collection[str] = (),
) -> PromiseLines:
    """Return lines for the open promises that a prompt calls for, then for those whose day has come, oldest first.

    Promises that are `shown` are left out. Those in `shown_due` are repeated only if the prompt calls for them.
    """
    promises = open_promises(context)
    if not promises:
        return PromiseLines([], [])
    due = (
        promise
        for promise in _due(context, promises, session)
        if promise.atom.id not in shown_due and not promise.is_stated_in(prompt)
    )
    return _lines(context, [*called_for(promises, prompt, context.now), *due], shown)


def _due(context: SearchContext, promises: list[Promise], session: str | None) -> list[Promise]:
    today = local(context.now).date()
    due = [
        (promise.parts.due, promise)
        for promise in promises
        if promise.parts.is_date and promise.parts.due and today - _DUE_FOR <= promise.parts.due <= today
    ]
    made_today = [promise for day, promise in due if day == today == local(promise.said_at).date()]
    if session is not None and made_today:  # the session that made a promise today does not need it today
        turns = context.store.read(context.space, turn_rows.last_turns, session, limit=_TURNS, roles=("user",))
        here = {promise.atom.id for promise in made_today if any(promise.is_stated_in(turn.content) for turn in turns)}
        due = [(day, promise) for day, promise in due if promise.atom.id not in here]
    return [promise for _, promise in sorted(due, key=lambda pair: pair[0])]


def _lines(context: SearchContext, promises: list[Promise], shown: Collection[str]) -> PromiseLines:
    fresh = [promise for promise in promises if promise.atom.id not in shown]
    lines = (of_promise(promise.atom, promise.said_at, context.now) for promise in fresh[:_SHOWN])
    return PromiseLines(list(mark_suspects(context, lines)), [promise.atom.id for promise in fresh[_SHOWN:]])
