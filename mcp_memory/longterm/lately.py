"""What is new in a memory: what it learned and what changed within some days, and what is planned next.

It needs no model: statements are the user's sentences, ranked as for the page about the user (`digest`), and explicit
statements. Quarantined and suspicious statements are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice

from mcp_memory.core.types import Atom, MentionedEntity
from mcp_memory.language.when.intervals import local
from mcp_memory.longterm import digest
from mcp_memory.longterm.corrections import is_ending
from mcp_memory.longterm.promises import open_promises
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.validity import count_current
from mcp_memory.store.sql import atom_rows, entity_rows
from mcp_memory.store.values import Filters

_LEARNED, _CHANGED, _PLANNED, _PROMISES, _ENTITIES = 12, 8, 8, 8, 12
_COUNTED, _READ_AT_ONCE = 1_000, 100  # changes
_AHEAD = timedelta(days=31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A statement that ceased to be true, and the statement that replaced it."""

    old: Atom
    new: Atom


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePage:
    """A page of changes, newest first. `cursor` is that of the next page, None on the last."""

    changes: Sequence[Replaced]
    cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A statement about a day that is not over."""

    day: date
    atom: Atom


@dataclass(frozen=True, slots=True, kw_only=True)
class Lately:
    """What is new since the first of the days, and what is planned for the next month."""

    since: date
    learned: Sequence[Atom]
    """The most telling new statements, most telling first, without those in `changed` and `planned`."""
    learned_total: int
    """The number of all new statements that are current."""
    changed: Sequence[Replaced]
    """Newest change first."""
    changed_total: int
    """The number of all changes, at most 1,000."""
    planned: Sequence[Planned]
    """Next day first; statements that were learned earlier are included."""
    promises: Sequence[Atom]
    """What the user asked to be told when something comes up, newest first."""
    entities: Sequence[MentionedEntity]
    """The people, projects, places and things in the new statements, those that most of them mention first."""


def lately(context: SearchContext, *, days: int) -> Lately:
    """Return what is new since the midnight before the last `days` days began."""
    store, space, now = context.store, context.space, context.now
    since = first_day(now, days)
    newest = digest.newest_statements(store, space)
    new = [atom for atom in newest if local(atom.learned_at).date() >= since]
    changes = list(islice(changes_since(context, midnight(since)), _COUNTED))
    changed, planned = changes[:_CHANGED], _planned(context)
    shown = {atom.id for change in changed for atom in (change.old, change.new)} | {plan.atom.id for plan in planned}
    fresh = (candidate.atom for candidate in digest.candidates_among(store, space, new, at=now))
    return Lately(
        since=since,
        learned=list(islice((atom for atom in fresh if atom.id not in shown and atom.label != "promise"), _LEARNED)),
        learned_total=count_current(store, space, Filters(learned_since=midnight(since), unheld=True), now),
        changed=changed,
        changed_total=len(changes),
        planned=planned,
        promises=[promise.atom for promise in open_promises(context)[:_PROMISES]],
        entities=store.read(space, entity_rows.mentioned, after=digest.number_of(new[0]) - 1, limit=_ENTITIES)
        if new
        else [],
    )


def first_day(now: datetime, days: int) -> date:
    """Return the day before the last `days` days began."""
    return local(now).date() - timedelta(days=days)


def midnight(day: date) -> datetime:
    """Return the moment at which a day begins in the zone of this machine."""
    return datetime.combine(day, time.min).astimezone()


def changes_since(context: SearchContext, since: datetime, *, after: str | None = None) -> Iterator[Replaced]:
    """Yield the statements that statements stored at `since` or later replaced, the newest change first. Lazy.

    With `after`, the id of a replaced statement, only the changes behind it are yielded.
    """
    while pairs := context.store.read(
        context.space, atom_rows.list_replaced, since=since, after=after, limit=_READ_AT_ONCE
    ):
        for old, new in pairs:
            if digest.is_former(old) and digest.is_fit(new) and not is_ending(new) and old.text != new.text:
                yield Replaced(old=old, new=new)
        after = pairs[-1][0].id


def _planned(context: SearchContext) -> list[Planned]:
    today = local(context.now).date()
    days = (
        (local(candidate.day).date(), candidate.atom)
        for candidate in digest.ranked(context.store, context.space, at=context.now)
        if candidate.day is not None and candidate.section != "promises"
    )
    ahead = [Planned(day=day, atom=atom) for day, atom in days if today <= day <= today + _AHEAD]
    return sorted(ahead, key=lambda plan: (plan.day, digest.number_of(plan.atom)))[:_PLANNED]
