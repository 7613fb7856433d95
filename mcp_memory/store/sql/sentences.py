"""Statements that a program extracted from the user's sentences, until a model has read the same words.

The sentence reader reads the turns of the user by number; the stage `read` has its cursor. Where a model has read all
the turns behind such a statement, the statement gives way: it ends at the moment when it began, as one that was never
true, so that no reader shows it beside the model's statement or as something that changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mcp_memory.core.types import Turn
from mcp_memory.store.sql import atoms, digests, evidence_rows, jobs, review, supersession, turns, word_index
from mcp_memory.store.sql.transaction import Transaction, marks, number_of, numbers_of
from mcp_memory.store.values import UNJUDGED, NewAtom, Readings, WrittenAtom

__all__ = ["GAVE_WAY", "are_all", "copy_words", "give_way", "put", "skip_read_turns", "unread"]

GAVE_WAY = "A model has read these words."
"""Why a sentence ended that gave way."""

_BY_USER = "t.space = :space AND t.role = 'user' AND t.tombstone IS NULL"
_NO_MODEL = "t.position >= coalesce(p.position, 0)"
_PROGRESS = "LEFT JOIN progress p ON p.space = t.space AND p.session = t.session"
_QUARANTINED = "h.verdict IS NULL OR h.verdict = 'kept'"
_HELD_TURN = "SELECT CAST(substr(h.id, 2) AS BIGINT) FROM held h WHERE h.space = :space AND substr(h.id, 1, 1) = 't'"


# --- which turns are read next ----------------------------------------------------------------------


def unread(tx: Transaction, *, limit: int) -> list[Turn]:
    """Return the turns that the reader reads next; see `Store.unread_turns`."""
    upto, at = tx.one("SELECT position, at FROM stage_cursor WHERE space = :space AND stage = 'read'") or (0, 0)
    released = tx.column(
        f"SELECT t.id FROM turn t {_PROGRESS} WHERE {_BY_USER} AND {_NO_MODEL} AND t.id <= ?"
        f" AND t.id IN ({_HELD_TURN} AND h.verdict = 'released' AND h.reviewed_at > ?) ORDER BY t.id",
        *(upto, at),
    )
    numbers = [*released, *_after(tx, upto, limit=max(0, limit - len(released)))]
    return turns.by_ids(tx, [f"t{number}" for number in numbers])


def _after(tx: Transaction, upto: int, *, limit: int) -> list[int]:
    """Return the next turns, up to the first that is still to be judged."""
    unjudged = _first_unjudged(tx, upto)
    return tx.column(
        f"SELECT t.id FROM turn t {_PROGRESS} WHERE {_BY_USER} AND {_NO_MODEL} AND t.id > ?"
        f" {'' if unjudged is None else 'AND t.id < ?'} AND NOT EXISTS (SELECT 1 FROM held h"
        f" WHERE h.space = t.space AND h.id = 't' || t.id AND ({_QUARANTINED})) ORDER BY t.id LIMIT ?",
        *(upto, *(() if unjudged is None else (unjudged,)), limit),
    )


def _first_unjudged(tx: Transaction, upto: int) -> int | None:
    return tx.get(
        f"SELECT min(t.id) FROM turn t WHERE {_BY_USER} AND t.id > ? AND t.id IN"
        f" ({_HELD_TURN} AND h.verdict IS NULL AND h.reasons LIKE ?)",
        *(upto, f'%"{UNJUDGED}"%'),
    )


def skip_read_turns(tx: Transaction) -> None:
    """Move the cursor past turns that a model has read, so that they are not looked at again each time.

    The time of the cursor stays: turns below it that were released since are still read.
    """
    upto = tx.get("SELECT position FROM stage_cursor WHERE space = :space AND stage = 'read'") or 0
    first = next(iter(_after(tx, upto, limit=1)), None) or _first_unjudged(tx, upto)
    position = tx.last("turn") if first is None else first - 1
    if position > upto:
        tx.run(
            "INSERT INTO stage_cursor (space, stage, position, at) VALUES (:space, 'read', ?, 0)"
            " ON CONFLICT (space, stage) DO UPDATE SET position = excluded.position",
            position,
        )


# --- storing ----------------------------------------------------------------------------------------


def put(tx: Transaction, readings: Readings, *, now: datetime) -> list[WrittenAtom]:
    """Store what was read, and move the cursor.

    Statements are left out whose words were forgotten, and those whose turns a model has read in the meantime.
    """
    written = {
        place: atoms.put(tx, atom, now=now)
        for place, atom in enumerate(readings.atoms)
        if evidence_rows.all_there(tx, atom.evidence) and _is_to_be_stored(tx, atom)
    }
    new = {place: number_of(made.atom.id, "a") for place, made in written.items() if not made.duplicate}
    if readings.vectors is not None and new:
        tx.index.put_vectors("atom", list(new.values()), readings.vectors, rows=list(new))
    word_index.make_due(tx, readings.vectors)
    jobs.move(tx, "read", readings.upto, now=now)
    return list(written.values())


def _is_to_be_stored(tx: Transaction, atom: NewAtom) -> bool:
    quotes = evidence_rows.checked(tx, atom.evidence)
    said_in = [turn for turn, *_ in quotes]
    is_unread = tx.one(
        f"SELECT 1 FROM turn t {_PROGRESS} WHERE t.space = :space AND t.id IN ({marks(said_in)}) AND {_NO_MODEL}",
        *said_in,
    )
    return is_unread is not None and not digests.was_forgotten(tx, atom.text, quotes)


# --- giving way to a model --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, order=True)
class _Overlap:
    """A statement that rests on words of a sentence; the greatest is the one to join."""

    is_open: bool
    characters: int
    number: int


def give_way(tx: Transaction, *, waits: bool) -> None:
    """End the sentences on turns that a model has read.

    One whose words a statement rests on is joined into that statement, with its other quotes. Of the rest, promises
    stay, and while drafts wait to be merged (`waits`) so do all others.
    """
    found = _on_read_turns(tx)
    overlaps, hidden = _overlaps(tx, list(found))
    for number, (label, newer, is_newer_sentence) in found.items():
        onto = max(overlaps.get(number, ()), default=None)
        if newer is not None and not is_newer_sentence and (onto is None or newer not in _numbers(overlaps[number])):
            continue  # what it said has ended since
        if onto is not None:
            _join(tx, number, onto.number, label)
        elif not (waits or label == "promise" or number in hidden):
            _withdraw(tx, number)


def _numbers(overlaps: Sequence[_Overlap]) -> set[int]:
    return {one.number for one in overlaps}


def _on_read_turns(tx: Transaction) -> dict[int, tuple[str, int | None, bool]]:
    """Return sentences that did not give way, with label, the statement that replaced it and if that is a sentence."""
    rows = tx.all(
        "SELECT r.id, r.label, r.superseded_by, n.reader IS NOT NULL FROM atom r"
        " LEFT JOIN atom n ON n.space = r.space AND n.id = r.superseded_by"
        " WHERE r.space = :space AND r.label IS NOT NULL AND r.tombstone IS NULL AND r.reader IS NOT NULL"
        " AND (r.valid_to IS NULL OR (r.valid_to > r.valid_from AND r.superseded_by IS NOT NULL))"
        " AND NOT EXISTS (SELECT 1 FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        f" {_PROGRESS} WHERE e.space = r.space AND e.atom = r.id AND t.tombstone IS NULL AND {_NO_MODEL})"
        " ORDER BY r.id"
    )
    return {number: (label, newer, bool(is_sentence)) for number, label, newer, is_sentence in rows}


def _overlaps(tx: Transaction, sentences: Sequence[int]) -> tuple[dict[int, list[_Overlap]], set[int]]:
    """Return what rests on the user's words of each sentence, and the sentences of which only quarantined ones do."""
    rows = tx.among(
        "SELECT e.atom, r.id, r.valid_to IS NULL, e.span_start, e.span_end, o.span_start, o.span_end,"
        f" {review.PASSES} FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " JOIN evidence o ON o.space = e.space AND o.turn = e.turn"
        " AND o.span_start < e.span_end AND e.span_start < o.span_end"
        f" JOIN atom r ON r.space = o.space AND r.id = o.atom WHERE e.space = :space AND {_BY_USER}"
        " AND r.reader IS NULL AND r.tombstone IS NULL AND e.atom IN ({})",
        sentences,
    )
    found, hidden = defaultdict[int, list[_Overlap]](list), set[int]()
    for sentence, number, is_open, start, end, first, last, passes in rows:
        if passes:
            found[sentence].append(_Overlap(bool(is_open), min(end, last) - max(start, first), number))
        else:
            hidden.add(sentence)
    return found, hidden


def _join(tx: Transaction, number: int, onto: int, label: str) -> None:
    copy_words(tx, [number], onto)
    if label == "promise":
        tx.run("UPDATE atom SET label = ? WHERE space = :space AND id = ?", label, onto)
    older = [one for one in _ended_by(tx, number) if one != onto]
    tx.run_among("UPDATE atom SET superseded_by = ? WHERE space = :space AND id IN ({})", older, onto)
    _end(tx, number, by=onto)
    if onto in _ended_by(tx, number):  # as the older of the two
        supersession.reopen(tx, [onto])
    tx.touch(f"atom:a{onto}", *(f"atom:a{one}" for one in older))


def _withdraw(tx: Transaction, number: int) -> None:
    """End a sentence in which a model found no statement; what it had ended holds again."""
    older = _ended_by(tx, number)
    _end(tx, number, by=None)
    for one in older:
        if not _has_other_value(tx, one):
            supersession.reopen(tx, [one])


def _ended_by(tx: Transaction, number: int) -> list[int]:
    sql = "SELECT id FROM atom WHERE space = :space AND superseded_by = ? AND tombstone IS NULL"
    return tx.column(sql, number)


def _has_other_value(tx: Transaction, number: int) -> bool:
    """Tell whether the single-valued fact of an atom has another value now."""
    sql = (
        "SELECT 1 FROM fact old JOIN fact now ON now.space = old.space AND now.entity_key = old.entity_key"
        " AND now.relation = old.relation AND now.atom <> old.atom WHERE old.space = :space AND old.atom = ?"
        " AND old.single_valued = 1 AND now.single_valued = 1 AND now.valid_to IS NULL AND now.tombstone IS NULL"
    )
    return tx.one(sql, number) is not None


def _end(tx: Transaction, number: int, *, by: int | None) -> None:
    tx.run(
        "UPDATE atom SET valid_to = valid_from, superseded_by = ?, closed_because = ? WHERE space = :space AND id = ?",
        *(by, GAVE_WAY, number),
    )
    tx.run("UPDATE fact SET valid_to = valid_from WHERE space = :space AND atom = ?", number)
    tx.touch(f"atom:a{number}")


def copy_words(tx: Transaction, sentences: Sequence[int], onto: int) -> None:
    """Add the user's words behind sentences to the evidence of a statement."""
    quotes = tx.among(
        "SELECT e.turn, e.span_start, e.span_end, e.quote FROM evidence e"
        f" JOIN turn t ON t.space = e.space AND t.id = e.turn WHERE e.space = :space AND {_BY_USER}"
        " AND e.atom IN ({})",
        sentences,
    )
    evidence_rows.add_quotes(tx, onto, [tuple(quote) for quote in quotes])


def are_all(tx: Transaction, ids: Sequence[str]) -> list[int]:
    """Return the open atoms among these if all of them are sentences, else nothing."""
    rows = tx.among(
        "SELECT id, reader IS NOT NULL FROM atom WHERE space = :space AND valid_to IS NULL AND tombstone IS NULL"
        " AND id IN ({})",
        numbers_of(ids, "a"),
    )
    return [number for number, _ in rows] if all(is_sentence for _, is_sentence in rows) else []
