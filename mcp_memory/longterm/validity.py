"""When a statement is valid: whether it is past, current or begins later, and the times that its text names.

A statement about the future is valid as a plan, from when it was said. A statement about the past is valid as a memory,
without an end: its text says when it was. Only a present condition that ends on a known day gets an end; events never
do. An unreadable time is replaced by the time of the turn.

A future end is part of the statement's text, so that exports and rebuilds keep it: "until 10 November", or
`[until 2026-11-10]`, which `remember` adds for `valid_until`. The store has a future `valid_to` only if a value that
begins later replaces the current value (`Filters.at`). Only dates with a certain year count, which is written or can
be added by `with_dates`.

A time is stored as a moment: a year, month, week or day as the midnight with which it begins, in the zone of this
machine, and the time of a turn unchanged. `date_of` shows it as precisely as the text of the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal

from mcp_memory.core.text import with_zone
from mcp_memory.core.types import Atom, Fact
from mcp_memory.language import pattern_of
from mcp_memory.language.when.annotate import ADDITION, with_dates
from mcp_memory.language.when.intervals import Span, back, spans_in
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.values import Filters

if TYPE_CHECKING:
    from mcp_memory.store.protocol import Store

Validity = Literal["past", "current", "ahead"]
_pattern = partial(pattern_of, "mcp_memory.longterm", "words/validity.txt")
_EAST_ASIAN = re.compile(r"(\d{1,2}([月월]) ?\d{1,2}[日号號일]) ((?:19|20|21)\d\d)")
_ONE_OF_SEVERAL = re.compile(r"\d\W*(?:(?:or|and|oder|und|ou|et|o|y|e|и|или)\W+)?$")  # "12 or" before "13 November"
_COUNT_EXACTLY = 1_000  # more statements than this are not read to be counted
_CLOCKS_DIFFER = timedelta(minutes=1)  # tolerance for the clocks of two machines, and for searches in whole seconds
_ADDED_END = re.compile(r"\[until \d{4}-\d\d-\d\d\]\s*$")  # added by `with_end`
_YEAR = re.compile(r"(?<!\d)(?:19|20|21)\d\d(?!\d)")
_ONLY_YEAR = re.compile(r" \[\d{4}\]")


def end_of(atom: Atom) -> datetime | None:
    """Return when a statement ended or will end; None if that is not known."""
    return atom.valid_to or stated_end(atom.text, atom.valid_from)


def validity(atom: Atom, at: datetime) -> Validity:
    end = end_of(atom)
    if end is not None and (end <= at or end <= atom.valid_from):  # the latter was never true
        return "past"
    return "ahead" if atom.valid_from - at > _CLOCKS_DIFFER else "current"


def is_past(atom: Atom, at: datetime) -> bool:
    return validity(atom, at) == "past"


def without_past(atoms: Iterable[Atom], at: datetime) -> list[Atom]:
    return [atom for atom in atoms if not is_past(atom, at)]


def current_atoms(
    store: Store,
    space: str,
    filters: Filters,
    at: datetime,
    *,
    limit: int,
    after: str | None = None,
    newest_first: bool = False,
) -> list[Atom]:
    """Return the first `limit` statements after `after` that are not past, in the order of `atom_rows.list_atoms`.

    Includes statements that begin later and, with `filters.ended`, past statements. If fewer than `limit` are returned,
    there are no more.
    """
    filters = replace(filters, at=at)
    atoms: list[Atom] = []
    while len(atoms) < limit:
        page = store.read(
            space, atom_rows.list_atoms, filters=filters, after=after, limit=limit, newest_first=newest_first
        )
        atoms += page if filters.ended else without_past(page, filters.as_of or at)
        if len(page) < limit:
            break
        after = page[-1].id
    return atoms[:limit]


def count_current(store: Store, space: str, filters: Filters, at: datetime) -> int:
    """Return the number of statements that pass the filters.

    Statements whose text names a past end are left out, unless the filters include ended statements or there are more
    than `_COUNT_EXACTLY`: leaving them out requires reading all.
    """
    total = store.read(space, atom_rows.count, filters=replace(filters, at=at))
    if filters.ended or not 0 < total <= _COUNT_EXACTLY:
        return total
    return len(current_atoms(store, space, filters, at, limit=_COUNT_EXACTLY))


def read_statements_first(store: Store, space: str, lists: Iterable[tuple[Filters, int]], at: datetime) -> None:
    """Read together what a snapshot will need of `current_atoms`: lists, given as their filters and limits."""
    store.read(space, atom_rows.read_lists, [(replace(filters, at=at), limit) for filters, limit in lists])


def current_facts(store: Store, space: str, facts: Iterable[Fact], at: datetime) -> list[Fact]:
    """Return the facts whose statements are current at a moment, in the order of `facts`."""
    facts = list(facts)
    atoms = {atom.id: atom for atom in store.read(space, atom_rows.by_ids, [fact.atom for fact in facts])}
    return [fact for fact in facts if fact.atom in atoms and validity(atoms[fact.atom], at) == "current"]


def time_note(atom: Atom, at: datetime) -> str:
    """Return `from 1 March 2027` before a statement begins, `was planned for 31 October 2026` after the day of a plan.

    Empty for all other statements. Only an event is planned for a day: the day in a rule or a trait is its beginning or
    its limit. Whether a plan was carried out is unknown.
    """
    if validity(atom, at) == "ahead":
        return f"from {_day_in_words(atom.valid_from)}"
    planned = planned_day(atom)
    return f"was planned for {_day_in_words(planned.start)}" if planned and planned.end <= at else ""


def planned_day(atom: Atom) -> Span | None:
    """Return the day for which a statement plans something; None if it plans nothing or names no single certain day."""
    return named_day(atom) if atom.kind == "episodic" else None


def named_day(atom: Atom) -> Span | None:
    """Return the only certain day that a statement names, whatever its kind, if that was in the future when said."""
    return _named_day(atom.text, atom.valid_from) if end_of(atom) is None else None


def coming_day(atom: Atom, at: datetime) -> Span | None:
    """Return the day that a statement names (`named_day`) if it is not over at a moment, else None.

    A birthday or anniversary without a year is on its next day.
    """
    if end_of(atom) is not None:
        return None
    today = datetime.combine(at.astimezone().date(), time.min).astimezone()
    day = _named_day(atom.text, atom.valid_from) or _day_of_each_year(atom.text, atom.valid_from, today)
    return day if day is not None and day.end > at else None


# --- days that a statement names --------------------------------------------------------------------


def with_end(text: str, end: datetime, said_at: datetime) -> str:
    """Return a statement with its last day added, unless it names that day; `end` is exclusive."""
    if stated_end(text, said_at) == end:
        return text
    return f"{text} [until {end.astimezone() - timedelta(microseconds=1):%Y-%m-%d}]"


def stated_end(text: str, said_at: datetime) -> datetime | None:
    """Return the end that a statement names, if it was in the future when said: the moment after its last day.

    None if it names no end, several ends, or an uncertain end. An end in words counts only in a text with one clause:
    the second half of "do not merge until 10 November and always ask" does not end. An added `[until …]` always counts.
    """
    end = _named_end(text, said_at)
    return end if end is not None and end > said_at else None


def states_end(text: str, said_at: datetime, end: datetime) -> bool:
    """Return whether a text names this end, even if it had passed when the text was said."""
    return _named_end(text, said_at) == end


@lru_cache(maxsize=4096)
def _named_end(text: str, said_at: datetime) -> datetime | None:
    if added := _ADDED_END.search(text):
        text = added[0]
    if not (_pattern("UNTIL").search(text) or _pattern("UNTIL_AFTER").search(text)):
        return None
    dated, spans = _sure_dates(text, said_at)
    spans = [
        span
        for span in spans
        if _pattern("UNTIL_BEFORE").search(dated[: span.at[0]]) or _pattern("UNTIL_AFTER").match(dated, span.at[1])
    ]
    ends = {span.end for span in spans}
    return ends.pop() if len(ends) == 1 and _is_one_clause(dated, spans[0]) else None


def _is_one_clause(text: str, date: Span) -> bool:
    before, after = text[: date.at[0]], text[date.at[1] :]
    if _pattern("UNTIL_BEFORE").fullmatch(before.strip() + " "):
        after = after.lstrip(" ,，、")  # "Until 10 November, write in English"
    return not any(_pattern("SEVERAL_CLAUSES").search(part) for part in (before, after))


@lru_cache(maxsize=4096)
def _named_day(text: str, said_at: datetime) -> Span | None:
    """Return the only day that a statement names, if it was in the future when said and is not a limit, else None.

    "From 10 November", "after 10 November" and "by 10 November" name limits.
    """
    dated, spans = _sure_dates(text, said_at)
    if any(_is_limit(dated, span) for span in spans):
        return None
    days = {(span.start, span.end): span for span in spans}
    span = next(iter(days.values())) if len(days) == 1 else None
    is_day = span is not None and (span.end - span.start).days <= 1 and not span.slack
    return span if span and is_day and span.start > said_at else None


@lru_cache(maxsize=4096)
def _day_of_each_year(text: str, said_at: datetime, today: datetime) -> Span | None:
    """Return the next day, from the midnight `today` on, of the birthday or anniversary that a statement dates.

    None if the statement names a year, or a day by other words than its number and month.
    """
    event, before = _pattern("YEARLY"), today - timedelta(microseconds=1)
    if not event.search(text) or _sure_dates(text, said_at)[1]:
        return None
    as_appointment = event.sub("day", text)  # a birthday gets no year, because it may be the day of a birth
    added = ADDITION.findall(with_dates(as_appointment, before))
    return _named_day(as_appointment, before) if len(added) == 1 and _ONLY_YEAR.fullmatch(added[0]) else None


def _is_limit(text: str, date: Span) -> bool:
    before, after = _pattern("LIMIT_BEFORE"), _pattern("LIMIT_AFTER")
    return before.search(text[: date.at[0]]) is not None or after.match(text, date.at[1]) is not None


def _sure_dates(text: str, said_at: datetime) -> tuple[str, list[Span]]:
    """Return the text with the years of its dates added if they are certain, and the times that name a year."""
    dated = with_dates(text, said_at)
    dated = ADDITION.sub(lambda added: added[0].replace("[", "").replace("]", ""), dated).replace("[", " ")
    dated = _EAST_ASIAN.sub(lambda date: f"{date[3]}{'년 ' if date[2] == '월' else '年'}{date[1]}", dated)
    spans = [span for span in spans_in(dated, said_at) if _YEAR.search(span.text)]
    return dated, [span for span in spans if not _ONE_OF_SEVERAL.search(dated[: span.at[0]])]


def _day_in_words(moment: datetime) -> str:
    local = moment.astimezone()
    return f"{local.day} {local:%B %Y}"


# --- times of a new statement -----------------------------------------------------------------------

_A_DAY = timedelta(days=1)
_YEARS = 1000, 2200  # a year outside is a misreading


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityPeriod:
    """When a statement is valid. `notes` explain times that were ignored."""

    since: datetime
    until: datetime | None
    now: bool
    """Whether it is valid when it is said, and so may state a fact."""
    notes: Sequence[str]


def validity_period(
    valid_from: str | None, valid_to: str | None, said_at: datetime, *, lasting: bool
) -> ValidityPeriod:
    """Return when a statement of a turn is valid; `lasting` if it states a condition, not an event."""
    since, until = _moment(valid_from, said_at), _moment(valid_to, said_at, end=True)
    notes: list[str] = []
    if valid_from and _BEFORE_DATE.match(valid_from):
        since = None  # the day is unknown
    elif valid_from and since is None:
        notes.append(f"{valid_from!r} is no date; it counts as true from {said_at:%Y-%m-%d}, when it was said")
    if valid_to and until is None:
        notes.append(f"{valid_to!r} is no date; it counts as open")
    to_come = since is not None and since - said_at > _A_DAY
    over = until is not None and until <= said_at
    return ValidityPeriod(
        since=min(since, said_at) if since else said_at,
        until=until if lasting and not over else None,
        now=not to_come and not over,
        notes=notes,
    )


_BEFORE_DATE = re.compile(r"\s*(?:before|until|by|<)(?![a-z])", re.IGNORECASE)
_WRITTEN = re.compile(r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?)?[月年]?")


def _moment(text: str | None, said_at: datetime, *, end: bool = False) -> datetime | None:
    """Return a date or time as a moment, for `end` the moment when it is over; None if it is unreadable."""
    text = (text or "").strip()
    try:
        if written := _WRITTEN.fullmatch(text):
            year, month, day = (int(part) if part else None for part in written.groups())
            start = datetime(year or 0, month or 1, day or 1)
            moment = _end_of_unit(start, "day" if day else "month" if month else "year") if end else start
        else:
            moment = datetime.fromisoformat(text)
        # Not said_at's offset: a day begins at midnight in summer and in winter.
        moment = with_zone(moment)
    except (ValueError, OverflowError):
        return _moment_in_words(text, said_at, end=end)
    return moment if _YEARS[0] <= moment.year <= _YEARS[1] else None


def _moment_in_words(text: str, said_at: datetime, *, end: bool) -> datetime | None:
    """Return the time that words such as "six months ago" mean; None unless most of the text is a single time."""
    spans = spans_in(text, said_at) if text else []
    if len(spans) != 1 or 2 * len(spans[0].text) < len(text):
        return None
    return spans[0].end if end else spans[0].start


def _end_of_unit(start: datetime, unit: str) -> datetime:
    """Return when a day, month or year that begins at a moment is over, at most the end of the calendar."""
    try:
        return back(start, unit, -1)
    except (ValueError, OverflowError):
        return datetime.max.replace(tzinfo=start.tzinfo)


def _shown_span(start: datetime, end: datetime) -> str:
    """Return a time as a day, a month, a year, or its first and last day."""
    last = end - timedelta(microseconds=1)
    if start.date() == last.date():
        return f"{start:%Y-%m-%d}"
    if start.day == 1 and _end_of_unit(start, "month").date() == end.date():
        return f"{start:%Y-%m}"
    if start.day == start.month == 1 and _end_of_unit(start, "year").date() == end.date():
        return f"{start:%Y}"
    return f"{start:%Y-%m-%d} – {last:%Y-%m-%d}"


# --- shown ------------------------------------------------------------------------------------------
_ABOUT = re.compile(r"\b(?:in )?(?:about|around|circa|roughly|etwa|ungefähr|vers|hacia) (?=\d{4}\b)", re.IGNORECASE)
_WEEK = re.compile(
    r"\bweek of\b|\bwoche\b|\bsemaine\b|\bsemana\b|\bsettimana\b|\bнедел|\b주\b|\b주간|星期"
    r"|[一每这這那该該本当當][个個]?[周週]",  # 周 alone is a surname, too
    re.IGNORECASE,
)


def date_of(moment: datetime, text: str) -> str:
    """Return the time of a statement for people and models, as precise as its text.

    `2022`, `2022-05`, `2022-05-09`, `2022-05-09 – 2022-05-15`; `told 2022-05-09` if only the day it was said is known.
    """
    span = span_of(moment, text)
    return _shown_span(*span) if span else f"told {moment:%Y-%m-%d}"


def span_of(moment: datetime, text: str, *, named: bool = False) -> tuple[datetime, datetime] | None:
    """Return the time of a statement as its first moment and the end (exclusive), as precise as its text.

    None if only the day it was said is known; with `named`, also if the text does not name the time.
    """
    named_span = _span_named_in(moment, text)
    if moment.time() != time() or (named and named_span is None):
        return None
    start, end = named_span or (moment, _end_of_unit(moment, _unit_that_begins(moment)))
    if moment.weekday() == 0 and end - start <= _A_DAY and _WEEK.search(text):
        return moment, _end_of_unit(moment, "week")
    return start, end


_SOME = re.compile(r"(?<=[日号號])(?:前不久|不久前|前[后後]?)")  # else 28日前 may be 28 days ago


def with_its_date(text: str, said_at: datetime) -> str:
    """Return a statement with dates added to words such as "yesterday"; unchanged if it names a year."""
    names_year = any(_YEAR.search(span.text) for span in spans_in(text, said_at))
    return text if names_year else with_dates(text, said_at)


def without_dates(text: str) -> str:
    """Return a text without the days, months and years that it names by numbers; people may have said "yesterday"."""
    text = _SOME.sub("", text)
    dates = [span.at for span in spans_in(text, datetime.now(UTC)) if any(map(str.isdigit, span.text))]
    return "".join(text[start:stop] for start, stop in _gaps(dates, len(text)))


def _gaps(spans: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    at = 0
    for start, stop in sorted(spans):
        yield at, start
        at = stop
    yield at, length


def _unit_that_begins(moment: datetime) -> str:
    """Return the largest unit (year, month or day) that begins at a midnight; on 1 January it is the year."""
    return "day" if moment.day > 1 else "month" if moment.month > 1 else "year"


def _span_named_in(moment: datetime, text: str) -> tuple[datetime, datetime] | None:
    """Return the most precise time in a text that contains the moment, None if there is none."""
    spans = spans_in(_ABOUT.sub("in ", text), moment)
    around = [(span.start, span.end) for span in spans if span.start <= moment < span.end]
    return min(around, key=lambda span: span[1] - span[0], default=None)
