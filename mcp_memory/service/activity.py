"""What happened in a memory, in pages, newest first: rows were stored, recalled, corrected, reviewed or forgotten.

Each kind of row is read from its newest number down, as many numbers as a page has entries, and the kinds are merged by
time. A cursor has for each kind the number below which the next page begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from heapq import merge
from typing import Any, NamedTuple

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Activity, ActivityEntry
from mcp_memory.longterm.corrections import is_ending
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, quarantine_rows, record_rows, supersession, tombstone_rows, turn_rows
from mcp_memory.store.sql.transaction import number_of
from mcp_memory.store.values import RecallEntry, Tombstone

_CHARS = 200  # characters of a row in an entry
_KINDS = 5
_DECISIONS = 1_000  # reviews, the latest
_CURSOR = re.compile("-".join([r"(\d{1,18})"] * _KINDS), re.ASCII)

Entries = list[tuple[int, ActivityEntry]]
"""Entries with the numbers of their rows, the highest first."""


class _Place(NamedTuple):
    kind: int
    number: int
    entry: ActivityEntry
    at: datetime
    """When it happened, but no later than the rows of its kind with higher numbers: clocks may go back."""


def activity(
    store: Store,
    space: str,
    recalls: Callable[[int | None], Sequence[RecallEntry]],
    *,
    limit: int,
    cursor: str | None,
) -> Activity:
    """Return a page of what happened. `recalls` returns the last recalls before a number, at most `limit`.

    Raises InvalidInput for a cursor that is not one of ours.
    """
    events = list(enumerate(_events(store, space), start=1))
    turns, atoms, results, logged, event = _parse(cursor) if cursor else [*_newest(store, space), 0, len(events) + 1]
    kinds = (
        _turns(store, space, range(max(1, turns - limit), turns)),
        _atoms(store, space, range(max(1, atoms - limit), atoms)),
        _results(store, space, range(max(1, results - limit), results)),
        [
            (row.id, _entry(row.at, "recall", str(row.id), row.session, " ".join(row.ids)))
            for row in recalls(logged or None)
        ],
        _with_rows(store, space, events[max(0, event - 1 - limit) : event - 1][::-1]),
    )
    page: list[_Place] = []
    further = [max(1, end - limit) for end in (turns, atoms, results)]
    further += [kinds[3][-1][0] if len(kinds[3]) == limit else 1, max(1, event - limit)]
    places = (_in_time(kind, entries) for kind, entries in enumerate(kinds))
    for place in merge(*places, key=lambda place: -place.at.timestamp()):
        if len(page) < limit:
            page.append(place)
        else:
            further[place.kind] = max(further[place.kind], place.number + 1)
    clients = {log.session: log.client for log in store.read(space, turn_rows.followed_logs)}
    return Activity(
        entries=[replace(place.entry, client=clients.get(place.entry.session or "")) for place in page],
        cursor="-".join(map(str, further)) if max(further) > 1 else None,
    )


def _newest(store: Store, space: str) -> list[int]:
    """Return the numbers after the newest turn, atom and record."""
    turns, atoms = (store.totals(space, layer).newest + 1 for layer in ("turn", "atom"))
    return [turns, atoms, store.read(space, record_rows.count) + 1]


def _parse(cursor: str) -> list[int]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput("That cursor is not one of ours. Leave it out to start with what happened last.")
    return [int(number) for number in match.groups()]


def _in_time(kind: int, entries: Entries) -> Iterator[_Place]:
    at: datetime | None = None
    for number, entry in entries:
        at = entry.at if at is None else min(at, entry.at)
        yield _Place(kind, number, entry, at)


def _entry(at: datetime, what: Any, id: str | None, session: str | None, text: str) -> ActivityEntry:
    return ActivityEntry(at=at, what=what, id=id, session=session, text=one_line(text, _CHARS), client=None)


def _turns(store: Store, space: str, numbers: range) -> Entries:
    turns = store.read(space, turn_rows.by_ids, [f"t{number}" for number in reversed(numbers)])
    return [
        (int(turn.id[1:]), _entry(turn.learned_at, "turn", turn.id, turn.session, turn.content))
        for turn in turns
        if turn.role != "note"
    ]


def _atoms(store: Store, space: str, numbers: range) -> Entries:
    """Return the statements; one that replaced another is a correction, or its end. Told ones have no session."""
    atoms = store.read(space, atom_rows.list_since, numbers.start - 1, limit=len(numbers))
    atoms = [atom for atom in reversed(atoms) if int(atom.id[1:]) in numbers]
    replaced = store.read(space, atom_rows.superseded_by, [atom.id for atom in atoms])
    said = {turn.id: turn for turn in store.read(space, turn_rows.by_ids, [atom.evidence for atom in atoms])}
    entries: Entries = []
    for atom in atoms:
        older = " ".join(old.id for old in replaced if old.superseded_by == atom.id)
        what = "statement" if not older else "ended" if is_ending(atom) else "correction"
        turn = said.get(atom.evidence)
        session = turn.session if turn is not None and turn.role != "note" else None
        entry = _entry(atom.learned_at, what, atom.id, session, atom.text)
        entries.append((int(atom.id[1:]), replace(entry, reason=older)))
    return entries


def _results(store: Store, space: str, places: range) -> Entries:
    """Return the results of these places in the order in which they were kept."""
    records = store.read(space, record_rows.list_records, start=places.start - 1, limit=len(places))
    return [
        (place, _entry(row.timestamp, "result", row.ref, row.session, row.summary))
        for place, row in reversed(list(zip(places, records, strict=False)))
        if not row.forgotten
    ]


def _events(store: Store, space: str) -> list[ActivityEntry]:
    """Return an entry for each review decision, each forgetting, and each that was undone, oldest first."""
    tombstones: Sequence[Tombstone] = store.read(space, tombstone_rows.tombstones)
    restored = [id for row in tombstones if row.undone for id in row.took if id[0] == "t"]
    notes = {turn.id for turn in store.read(space, turn_rows.by_ids, restored) if turn.role == "note"}
    decided = store.read(space, quarantine_rows.list_quarantined, decided=True, limit=_DECISIONS)
    events = [_entry(row.reviewed_at or row.at, row.verdict, row.id, None, "") for row in decided]
    for row in tombstones:
        entry = ActivityEntry(
            at=row.at,
            what="uncorrected" if row.how == "correction" else "forgotten",
            id=row.id,
            session=None,
            text=" ".join(row.ids or [id for id in row.took if id not in notes]),
            client=None,
            reason=row.reason,
        )
        events.append(entry)
        if row.undone_at is not None:
            events.append(replace(entry, at=row.undone_at, what="back", reason=""))
    return sorted(events, key=lambda entry: entry.at)


def _with_rows(store: Store, space: str, entries: Entries) -> Entries:
    """Return these events with the texts of reviewed rows, and the ids of statements that are true again."""
    reviewed = [entry.id for _, entry in entries if entry.id and entry.what in ("released", "kept")]
    turns = store.read(space, turn_rows.by_ids, [id for id in reviewed if id[0] == "t"])
    atoms = store.read(space, atom_rows.by_ids, [id for id in reviewed if id[0] == "a"])
    texts = {turn.id: turn.content for turn in turns} | {atom.id: atom.text for atom in atoms}
    whole: Entries = []
    for number, entry in entries:
        if entry.what == "uncorrected":
            again = store.read(space, supersession.named_under, number_of(entry.id or "", "x"))
            entry = replace(entry, reason=" ".join(f"a{older}" for older in again))
        elif entry.id in texts:
            entry = replace(entry, text=one_line(texts[entry.id], _CHARS))
        whole.append((number, entry))
    return whole
