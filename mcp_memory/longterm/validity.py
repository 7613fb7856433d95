"""Decides whether a statement is past, current or begins later, and whether the day of a plan has passed.

A future end is part of the statement's text: "until 10 November", or `[until 2026-11-10]`, which `remember` adds for
`valid_until`; in the text, exports and rebuilds keep it. The store has a future `valid_to` only where a value that
begins later replaces this one: until then this one is current (`Filters.at`). Only certain dates count: the year is
written, or `with_dates` can add it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Literal

from mcp_memory.core.types import Atom, Fact
from mcp_memory.language import pattern_of
from mcp_memory.language.when.annotate import ADDITION, with_dates
from mcp_memory.language.when.intervals import Span, spans_in
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Filters

Validity = Literal["past", "current", "ahead"]

_pattern = partial(pattern_of, "mcp_memory.longterm", "words/validity.txt")
_EAST_ASIAN = re.compile(r"(\d{1,2}([月월]) ?\d{1,2}[日号號일]) ((?:19|20|21)\d\d)")
_ONE_OF_SEVERAL = re.compile(r"\d\W*(?:(?:or|and|oder|und|ou|et|o|y|e|и|или)\W+)?$")  # "12 or" before "13 November"
_CLOCKS_DIFFER = timedelta(minutes=1)  # of two machines; a search's moment is in whole seconds
_ADDED_END = re.compile(r"\[until \d{4}-\d\d-\d\d\]\s*$")  # by `with_end`
_FULL_DATE = re.compile(r"(?<!\d)(?:19|20|21)\d\d(?!\d)")


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
    store: Store, space: str, filters: Filters, at: datetime, *, limit: int, after: str | None = None
) -> list[Atom]:
    """Return the first `limit` statements after `after` that are not past, in the order of `Store.list_atoms`.

    Those that begin later are included, and with `filters.ended` the past ones too. Fewer than `limit` are the last.
    """
    filters = replace(filters, at=at)
    found: list[Atom] = []
    while len(found) < limit:
        listed = store.list_atoms(space, filters=filters, after=after, limit=limit)
        found += listed if filters.ended else without_past(listed, filters.as_of or at)
        if len(listed) < limit:
            break
        after = listed[-1].id
    return found[:limit]


def current_facts(store: Store, space: str, facts: Iterable[Fact], at: datetime) -> list[Fact]:
    """Return the facts whose statements hold at a moment, in the given order."""
    facts = list(facts)
    atoms = {atom.id: atom for atom in store.atoms(space, [fact.atom for fact in facts])}
    return [fact for fact in facts if fact.atom in atoms and validity(atoms[fact.atom], at) == "current"]


def time_note(atom: Atom, at: datetime) -> str:
    """Return `from 1 March 2027` before a statement begins, `was planned for 31 October 2026` after the day of a plan.

    Empty for all others. Only an event is planned for a day: the day in a rule or a trait is when it begins, or its
    limit. That a plan came about is not known, so the note does not say so.
    """
    if validity(atom, at) == "ahead":
        return f"from {_day(atom.valid_from)}"
    planned = planned_day(atom)
    return f"was planned for {_day(planned.start)}" if planned and planned.end <= at else ""


def planned_day(atom: Atom) -> Span | None:
    """Return the day for which a statement plans something; None if it is no plan or names no single sure day."""
    if atom.kind != "episodic" or end_of(atom) is not None:
        return None
    return _planned_day(atom.text, atom.valid_from)


def with_end(text: str, end: datetime, said_at: datetime) -> str:
    """Return a statement with its last day, unless its words name it; `end` is the first moment after that day."""
    if stated_end(text, said_at) == end:
        return text
    return f"{text} [until {end.astimezone() - timedelta(microseconds=1):%Y-%m-%d}]"


def stated_end(text: str, said_at: datetime) -> datetime | None:
    """Return the end that a statement names and that was yet to come when it was said: the moment after its last day.

    None if it names none, several, or one that is not sure. An end in words counts only in a text of one clause: of
    "do not merge until 10 November and always ask", the second half does not end. An added `[until …]` always counts.
    """
    end = _named_end(text, said_at)
    return end if end is not None and end > said_at else None


def states_end(text: str, said_at: datetime, end: datetime) -> bool:
    """Return whether a text names this end, which may have been over when it was said."""
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
def _planned_day(text: str, said_at: datetime) -> Span | None:
    """Return the only day that a statement names, if it was yet to come when it was said and is not a limit.

    "From 10 November", "after 10 November" and "by 10 November" name limits.
    """
    dated, spans = _sure_dates(text, said_at)
    if any(_is_limit(dated, span) for span in spans):
        return None
    days = {(span.start, span.end): span for span in spans}
    span = next(iter(days.values())) if len(days) == 1 else None
    is_day = span is not None and (span.end - span.start).days <= 1 and not span.slack
    return span if span and is_day and span.start > said_at else None


def _is_limit(text: str, date: Span) -> bool:
    before, after = _pattern("LIMIT_BEFORE"), _pattern("LIMIT_AFTER")
    return before.search(text[: date.at[0]]) is not None or after.match(text, date.at[1]) is not None


def _sure_dates(text: str, said_at: datetime) -> tuple[str, list[Span]]:
    """Return a text in which each date has its year where that is sure, and the times that name a year."""
    dated = with_dates(text, said_at)
    dated = ADDITION.sub(lambda added: added[0].replace("[", "").replace("]", ""), dated).replace("[", " ")
    dated = _EAST_ASIAN.sub(lambda date: f"{date[3]}{'년 ' if date[2] == '월' else '年'}{date[1]}", dated)
    spans = [span for span in spans_in(dated, said_at) if _FULL_DATE.search(span.text)]
    return dated, [span for span in spans if not _ONE_OF_SEVERAL.search(dated[: span.at[0]])]


def _day(moment: datetime) -> str:
    local = moment.astimezone()
    return f"{local.day} {local:%B %Y}"
