"""Replaces sentences (statements that a program extracted) by statements of a model, or by explicit statements.

A replaced sentence ends when it began, as if it was never true. Nothing has changed for the user, so lists of ended
statements leave it out (`supersession.REPLACED_SENTENCE`). Its successor is the statement that is based on the same
words, if there is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_memory.store.sql import evidence_rows, quarantine_rows, supersession
from mcp_memory.store.sql.transaction import Transaction, numbers_of
from mcp_memory.store.values import READ_BY_A_MODEL

_BY_USER = "t.space = :space AND t.role = 'user' AND t.tombstone IS NULL"


@dataclass(frozen=True, slots=True, order=True)
class _Overlap:
    """A statement whose evidence overlaps that of a sentence. The greatest of the overlaps replaces the sentence."""

    is_open: bool
    characters: int
    number: int


def end_replaced(tx: Transaction, *, waits: bool) -> None:
    """End the sentences whose turns a model has read completely.

    A statement with overlapping evidence replaces the sentence. If there is none, the sentence is withdrawn, unless it
    is a promise, it overlaps a quarantined statement, or drafts wait to be merged (`waits`).
    """
    sentences = _fully_read_sentences(tx)
    overlaps, hidden = _overlaps(tx, list(sentences))
    for number, (label, newer, is_newer_sentence) in sentences.items():
        onto = max(overlaps.get(number, ()), default=None)
        if newer is not None and not is_newer_sentence and (onto is None or newer not in _numbers(overlaps[number])):
            continue  # a later statement ended it
        if onto is not None:
            join(tx, number, onto.number, label)
        elif not (waits or label == "promise" or number in hidden):
            _withdraw(tx, number)


def _numbers(overlaps: Sequence[_Overlap]) -> set[int]:
    return {overlap.number for overlap in overlaps}


def _fully_read_sentences(tx: Transaction) -> dict[int, tuple[str, int | None, bool]]:
    """Return the sentences of which a model has read all turns, except those that were replaced or withdrawn.

    Each number is mapped to its label, the atom that ended it, and whether that atom is a sentence.
    """
    rows = tx.all(
        "SELECT r.id, r.label, r.superseded_by, n.reader IS NOT NULL FROM atom r"
        " LEFT JOIN atom n ON n.space = r.space AND n.id = r.superseded_by"
        " WHERE r.space = :space AND r.label IS NOT NULL AND r.tombstone IS NULL AND r.reader IS NOT NULL"
        " AND (r.valid_to IS NULL OR (r.valid_to > r.valid_from AND r.superseded_by IS NOT NULL))"
        " AND NOT EXISTS (SELECT 1 FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " LEFT JOIN progress p ON p.space = t.space AND p.session = t.session WHERE e.space = r.space"
        " AND e.atom = r.id AND t.tombstone IS NULL AND t.position >= coalesce(p.position, 0))"
        " ORDER BY r.id"
    )
    return {number: (label, newer, bool(is_sentence)) for number, label, newer, is_sentence in rows}


def _overlaps(tx: Transaction, sentences: Sequence[int]) -> tuple[dict[int, list[_Overlap]], set[int]]:
    """Return the overlapping statements of each sentence, and the sentences that overlap quarantined statements."""
    rows = tx.among(
        "SELECT e.atom, r.id, r.valid_to IS NULL, e.span_start, e.span_end, o.span_start, o.span_end,"
        f" {quarantine_rows.PASSES} FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " JOIN evidence o ON o.space = e.space AND o.turn = e.turn"
        " AND o.span_start < e.span_end AND e.span_start < o.span_end"
        f" JOIN atom r ON r.space = o.space AND r.id = o.atom WHERE e.space = :space AND {_BY_USER}"
        " AND r.reader IS NULL AND r.tombstone IS NULL AND e.atom IN ({})",
        sentences,
    )
    overlaps, hidden = defaultdict[int, list[_Overlap]](list), set[int]()
    for sentence, number, is_open, start, end, first, last, passes in rows:
        if passes:
            overlaps[sentence].append(_Overlap(bool(is_open), min(end, last) - max(start, first), number))
        else:
            hidden.add(sentence)
    return overlaps, hidden


def join(tx: Transaction, number: int, onto: int, label: str | None, *, because: str = READ_BY_A_MODEL) -> None:
    """Replace a sentence by the statement `onto`.

    The statement inherits the quotes of the sentence, its label if it is a promise, and the atoms that it ended.
    """
    copy_words(tx, [number], onto)
    if label == "promise":
        tx.run("UPDATE atom SET label = ? WHERE space = :space AND id = ?", label, onto)
    older = [atom for atom in _ended_by(tx, number) if atom != onto]
    tx.run_among("UPDATE atom SET superseded_by = ? WHERE space = :space AND id IN ({})", older, onto)
    retire(tx, number, by=onto, because=because)
    if onto in _ended_by(tx, number):  # the sentence had ended this older statement
        supersession.reopen(tx, [onto])
    tx.touch(f"atom:a{onto}", *(f"atom:a{atom}" for atom in older))


def _withdraw(tx: Transaction, number: int) -> None:
    """End a sentence in which a model found no statement, and reopen the statements that it ended.

    A statement stays ended if its single-valued fact has another current value.
    """
    older = _ended_by(tx, number)
    retire(tx, number, by=None)
    for atom in older:
        if not _has_other_value(tx, atom):
            supersession.reopen(tx, [atom])


def _ended_by(tx: Transaction, number: int) -> list[int]:
    sql = "SELECT id FROM atom WHERE space = :space AND superseded_by = ? AND tombstone IS NULL"
    return tx.column(sql, number)


def _has_other_value(tx: Transaction, number: int) -> bool:
    """Return whether the single-valued fact of an atom has another current value."""
    sql = (
        "SELECT 1 FROM fact old JOIN fact now ON now.space = old.space AND now.entity_key = old.entity_key"
        " AND now.relation = old.relation AND now.atom <> old.atom WHERE old.space = :space AND old.atom = ?"
        " AND old.single_valued = 1 AND now.single_valued = 1 AND now.valid_to IS NULL AND now.tombstone IS NULL"
    )
    return tx.one(sql, number) is not None


def retire(tx: Transaction, number: int, *, by: int | None, because: str = READ_BY_A_MODEL) -> None:
    """End a sentence at the moment when it began, as if it was never true. `by` is its successor."""
    tx.run(
        "UPDATE atom SET valid_to = valid_from, superseded_by = ?, closed_because = ? WHERE space = :space AND id = ?",
        *(by, because, number),
    )
    tx.run("UPDATE fact SET valid_to = valid_from WHERE space = :space AND atom = ?", number)
    tx.touch(f"atom:a{number}")


def copy_words(tx: Transaction, sentences: Sequence[int], onto: int) -> None:
    """Add those quotes of sentences that are the user's words to the evidence of the statement `onto`."""
    quotes = tx.among(
        "SELECT e.turn, e.span_start, e.span_end FROM evidence e"
        f" JOIN turn t ON t.space = e.space AND t.id = e.turn WHERE e.space = :space AND {_BY_USER}"
        " AND e.atom IN ({})",
        sentences,
    )
    evidence_rows.add_quotes(tx, onto, [tuple(quote) for quote in quotes])


def open_sentences(tx: Transaction, ids: Sequence[str]) -> list[int]:
    """Return the numbers of the open atoms in `ids` if all of them are sentences, otherwise an empty list."""
    rows = tx.among(
        "SELECT id, reader IS NOT NULL FROM atom WHERE space = :space AND valid_to IS NULL AND tombstone IS NULL"
        " AND id IN ({})",
        numbers_of(ids, "a"),
    )
    return [number for number, _ in rows] if all(is_sentence for _, is_sentence in rows) else []
