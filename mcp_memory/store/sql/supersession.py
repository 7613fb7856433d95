"""Supersession: which stored statements a new statement ends, and which stored statement has ended it already.

An explicit statement takes precedence: it ends the open atoms that it names and the current value of its single-valued
fact. Extracted statements may arrive in any order, a conversation of last year after today's. Therefore

* values of a single-valued fact are ordered by when they became true, each valid until the next; a late value is
  inserted between them, so the value at any moment does not depend on the order of arrival;
* a statement replaces the atoms that it names if they were said no later; otherwise they replace it;
* a statement with a known end stays outside this order: a summer in Paris does not end the life in Lisbon around it.

No statement ends before it began: a statement that ends at its start was never true, and ends no other.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from mcp_memory.store.sql.entity_rows import key
from mcp_memory.store.sql.transaction import Transaction, from_ms, marks, numbers_of, to_ms
from mcp_memory.store.values import DONE, READ_BY_A_MODEL, STATED_AGAIN, NewAtom

_VALUE = (
    "r.valid_from, (SELECT max(t.said_at) FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
    " WHERE e.space = r.space AND e.atom = r.id), r.folded, r.id, r.valid_to, r.reader IS NOT NULL"
)


REPLACED_SENTENCE = (
    "r.valid_to IS NOT NULL AND r.valid_to = r.valid_from AND r.reader IS NOT NULL"
    f" AND coalesce(r.closed_because, '') IN ('{READ_BY_A_MODEL}', '{STATED_AGAIN}')"
)
"""The condition that a row `r` of atoms is a sentence that was replaced or withdrawn (`replaced_sentences`).

A sentence that the user corrected as never true also ended when it began, but for no such reason.
"""
ENDING = "r.valid_to IS NOT NULL AND r.valid_to = r.valid_from AND r.reader IS NULL AND r.superseded_by IS NULL"
"""The condition that a row `r` of atoms only records that another statement ended (`corrections.ending_of`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """How a new atom and the stored atoms end each other.

    `ends` are the numbers of the atoms that it ends. If a stored atom has ended it already, `until` is its end in ms
    since 1970 and `by` the number of that atom.
    """

    ends: Sequence[int]
    until: int | None = None
    by: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class _TimedAtom:
    """A stored statement that is true from `start` on. Statements are ordered by start, then by when they were said."""

    start: int
    said_at: int
    folded: str
    number: int
    end: int | None
    is_sentence: bool


def of_explicit(tx: Transaction, atom: NewAtom) -> Supersession:
    """Return the atoms that an explicit statement ends. All atoms in its `supersedes` must be open."""
    holders = [value.number for value in _values(tx, atom) if value.end is None]
    return Supersession(ends=sorted({*numbers_of(atom.supersedes, "a"), *holders}))


def of_extracted(tx: Transaction, atom: NewAtom, folded: str, *, said_at: int, now: datetime) -> Supersession:
    """Return how an extracted statement and the stored atoms end each other.

    `said_at` is the time of its last turn in ms since 1970. An end of the statement in the future is ignored, since its
    text mentions it.
    """
    start, named = to_ms(atom.valid_from), _find_named(tx, atom.supersedes)
    ends = {value.number for value in named if value.said_at <= said_at}
    if atom.valid_to is not None and atom.valid_to <= now:
        return Supersession(ends=sorted(ends), until=max(start, to_ms(atom.valid_to)))
    values = {value for value in _values(tx, atom) if value.number not in ends}
    after = {value for value in values if (value.start, value.said_at, value.folded) > (start, said_at, folded)}
    values -= {value for value in after if value.is_sentence}  # no model has read it yet
    later = {value for value in named if value.said_at > said_at} | (after & values)
    if not later:
        return Supersession(ends=sorted(ends | _reaching(values, start)))
    next_one = min(later)
    until = max(start, next_one.start)
    if until > start:
        ends |= _reaching(values - later, start)
    return Supersession(ends=sorted(ends), until=until, by=next_one.number)


def _reaching(values: Collection[_TimedAtom], moment: int) -> set[int]:
    return {value.number for value in values if value.end is None or value.end > moment}


def follows_single(tx: Transaction, atom: NewAtom) -> bool:
    """Return whether an atom supersedes an atom that has a single-valued fact with the same entity and relation."""
    older = numbers_of(atom.supersedes, "a")
    sql = (
        f"SELECT max(single_valued) FROM fact WHERE space = :space AND atom IN ({marks(older)})"
        " AND entity_key = ? AND relation = ?"
    )
    return bool(tx.get(sql, *older, key(atom.entity or ""), atom.relation))


def still_open(tx: Transaction, ids: Collection[str]) -> list[str]:
    """Return the ids of those atoms that have not ended and are not forgotten."""
    numbers = numbers_of(ids, "a")
    sql = f"SELECT id FROM atom WHERE space = :space AND id IN ({marks(numbers)}) AND valid_to IS NULL"
    return [f"a{number}" for number in tx.column(f"{sql} AND tombstone IS NULL", *numbers)]


def end(tx: Transaction, atoms: Sequence[int], *, by: int, at: datetime, because: str) -> None:
    """Record that atom `by` replaces other atoms, from the moment `at` on, for the reason `because`.

    A promise that is replaced by something other than a promise gets the reason `DONE` if no reason is given.
    """
    label: str | None = tx.get("SELECT label FROM atom WHERE space = :space AND id = ?", by)
    for number in atoms:
        began: int = tx.get("SELECT valid_from FROM atom WHERE space = :space AND id = ?", number)
        older: str | None = tx.get("SELECT label FROM atom WHERE space = :space AND id = ?", number)
        ended = max(to_ms(at), began)
        tx.run(
            "UPDATE atom SET valid_to = ?, superseded_by = ?, closed_because = ? WHERE space = :space AND id = ?",
            *(ended, by, because_of(because, label, older), number),
        )
        tx.run("UPDATE fact SET valid_to = ? WHERE space = :space AND atom = ?", ended, number)


def because_of(because: str | None, label: str | None, older: str | None) -> str | None:
    """Return the reason to store with an ended atom.

    `because` is the given reason, `older` the label of the ended atom, and `label` that of the atom that replaces it.
    """
    return because or (DONE if older == "promise" and label != "promise" else None)


def replaced_under(tx: Transaction, tombstone: int) -> list[int]:
    """Return the numbers of the atoms that the explicit atoms under a tombstone replaced.

    A sentence that was stated again in the same words is among them if the explicit atom names it.
    """
    sql = f"SELECT r.id, {REPLACED_SENTENCE} FROM atom r WHERE r.space = :space AND r.superseded_by = ?"
    return [
        older
        for number, *_, named in _replacements(tx, tombstone)
        for older, is_same in tx.all(f"{sql} AND r.tombstone IS NULL ORDER BY r.id", number)
        if older in named or not is_same
    ]


def named_under(tx: Transaction, tombstone: int) -> list[int]:
    """Return the numbers of the atoms that the explicit atoms under a tombstone ended, according to their notes."""
    return [older for *_, named in _replacements(tx, tombstone) for older in named]


def reopen(tx: Transaction, atoms: Sequence[int]) -> None:
    """Make replaced atoms current again."""
    for number in atoms:
        tx.run(
            "UPDATE atom SET valid_to = NULL, superseded_by = NULL, closed_because = NULL"
            " WHERE space = :space AND id = ?",
            number,
        )
        tx.run("UPDATE fact SET valid_to = NULL WHERE space = :space AND atom = ?", number)
    tx.touch(*(f"atom:a{number}" for number in atoms))


def end_again(tx: Transaction, tombstone: int) -> None:
    """End again those atoms that the explicit atoms under a tombstone had ended and that are open now."""
    for number, at, because, older in _replacements(tx, tombstone):
        ended = tx.column(
            f"SELECT id FROM atom WHERE space = :space AND valid_to IS NULL AND id IN ({marks(older)})", *older
        )
        end(tx, ended, by=number, at=at, because=because)
        tx.touch(*(f"atom:a{atom}" for atom in ended))


def _replacements(tx: Transaction, tombstone: int) -> Iterator[tuple[int, datetime, str, list[int]]]:
    """Yield number, start and reason of each explicit atom under a tombstone, with the numbers of the atoms it ended.

    Atoms that ended no other atom are left out.
    """
    for number, start, statement in tx.all(
        "SELECT a.id, a.valid_from, n.told FROM atom a JOIN turn n ON n.space = a.space AND n.id = a.evidence"
        " WHERE a.space = :space AND a.tombstone = ? AND n.told IS NOT NULL ORDER BY a.id",
        tombstone,
    ):
        fields = json.loads(statement)
        older = numbers_of(fields.get("ends", fields["supersedes"]), "a")
        if older:
            yield number, from_ms(start), fields.get("because", ""), older


def _find_named(tx: Transaction, ids: Sequence[str]) -> list[_TimedAtom]:
    numbers = numbers_of(ids, "a")
    rows = tx.all(f"SELECT {_VALUE} FROM atom r WHERE r.space = :space AND r.id IN ({marks(numbers)})", *numbers)
    return [_TimedAtom(*row) for row in rows]


def _values(tx: Transaction, atom: NewAtom) -> list[_TimedAtom]:
    """Return the values of an atom's single-valued fact, each of which is valid until the next.

    Values that were never true and values that ended without a successor are left out.
    """
    if not (atom.single_valued and atom.entity and atom.relation):
        return []
    rows = tx.all(
        f"SELECT {_VALUE} FROM fact f JOIN atom r ON r.space = f.space AND r.id = f.atom"
        " WHERE f.space = :space AND f.entity_key = ? AND f.relation = ? AND f.tombstone IS NULL"
        " AND (r.valid_to IS NULL OR (r.valid_to > r.valid_from AND r.superseded_by IS NOT NULL))",
        *(key(atom.entity), atom.relation),
    )
    return [_TimedAtom(*row) for row in rows]
