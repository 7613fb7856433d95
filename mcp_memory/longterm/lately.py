"""What is new in a memory: what it learned and what changed within some days, and what is planned next.

It needs no model: new statements are the user's sentences, ranked as for the page about the user (`digest`), and
explicit statements. Plans are not ranked: all current statements about a coming day are listed. Quarantined and
suspicious statements are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import partial
from itertools import islice

from mcp_memory.core.types import Atom, MentionedEntity
from mcp_memory.language import pattern_of
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.language.when.intervals import local
from mcp_memory.language.words import content_terms
from mcp_memory.longterm import digest
from mcp_memory.longterm.promises import open_promises
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.statement_cache import StatementCache
from mcp_memory.longterm.validity import coming_day, count_current
from mcp_memory.store.sql import atom_rows, entity_rows
from mcp_memory.store.values import Filters
from mcp_memory.suspicion.flags import flags

_LEARNED, _CHANGED, _PROMISES, _ENTITIES = 12, 8, 8, 12
_COUNTED, _READ_AT_ONCE = 1_000, 100  # changes
_words = partial(pattern_of, "mcp_memory.longterm", "words/sentences.txt")
_YEAR, _DAY = re.compile(r"(?<!\d)\d{4}(?!\d)"), re.compile(r"(?<!\d)\d{1,2}(?!\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A statement that ceased to be true, and the statement that replaced it, stored at `at`.

    If nothing took its place, the other only records that it ended (`corrections.is_ending`).
    """

    old: Atom
    new: Atom

    @property
    def at(self) -> datetime:
        """When the change became known."""
        return self.new.learned_at


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
    points_back: bool
    """Whether it is a sentence that goes on from another: it begins with a small letter or a pronoun."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lately:
    """What is new since the first of the days, and what is planned."""

    since: date
    learned: Sequence[Atom]
    """The most telling new statements, most telling first, without those in `changed`."""
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
    new = digest.newest_statements(store, space, learned_since=midnight(since))
    changes = list(islice(changes_since(context, midnight(since)), _COUNTED))
    changed = changes[:_CHANGED]
    shown = {atom.id for change in changed for atom in (change.old, change.new)}
    fresh = (candidate.atom for candidate in digest.candidates_among(store, space, new, at=now))
    return Lately(
        since=since,
        learned=list(islice((atom for atom in fresh if atom.id not in shown and atom.label != "promise"), _LEARNED)),
        learned_total=count_current(store, space, Filters(learned_since=midnight(since), unheld=True), now),
        changed=changed,
        changed_total=len(changes),
        planned=planned(context),
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
            if digest.is_former(old) and digest.is_fit(new):
                yield Replaced(old=old, new=new)
        after = pairs[-1][0].id


def planned(context: SearchContext) -> Sequence[Planned]:
    """Return the current statements about a day that is not over, next day first, except rules and promises.

    Cached until a statement changes or the day is over.
    """
    store, space, now = context.store, context.space, context.now
    tomorrow = midnight(local(now).date() + timedelta(days=1))
    return _plans.get(store, space, lambda: (planned_among(digest.considered(store, space), now), tomorrow), at=now)


_plans = StatementCache[Sequence[Planned]]()


def planned_among(atoms: Iterable[Atom], now: datetime) -> list[Planned]:
    """Return the plans among statements, as `planned` does.

    A statement is left out if another about the same day has all of its words.
    """
    plans = [
        Planned(day=local(day.start).date(), atom=atom, points_back=_points_back(atom))
        for atom in atoms
        if atom.valid_to is None and atom.kind != "instruction" and _may_name_day(atom, now) and digest.is_fit(atom)
        if (day := coming_day(atom, now)) is not None and not flags(atom.text, "user")
    ]
    kept: list[tuple[Planned, frozenset[str]]] = []
    said = [(plan, frozenset(content_terms(ADDITION.sub("", plan.atom.text)))) for plan in plans]
    for plan, terms in sorted(said, key=lambda entry: -len(entry[1])):
        if not any(plan.day == other.day and terms <= others for other, others in kept):
            kept.append((plan, terms))
    return sorted((plan for plan, _ in kept), key=lambda plan: (plan.day, digest.number_of(plan.atom)))


def _may_name_day(atom: Atom, now: datetime) -> bool:
    """Return whether a statement may name a coming day, which takes a millisecond to find out.

    A statement that was extracted names the years of its days; an explicit one may lack them.
    """
    if any(int(year) >= now.year for year in _YEAR.findall(atom.text)):
        return True
    return atom.confidence >= 1 and _DAY.search(atom.text) is not None


def _points_back(atom: Atom) -> bool:
    return atom.is_sentence and (atom.text[:1].islower() or _words("PRONOUN").match(atom.text) is not None)
