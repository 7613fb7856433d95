"""Feedback: what people said of turns and atoms that were recalled for a question.

It is appended and never changed, except that it may be undone. Feedback on a forgotten row is neither listed nor
counted, and is there again if the row is brought back; a purge deletes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime

from mcp_memory.core.errors import NotFound
from mcp_memory.language.word_hashes import word_hash
from mcp_memory.language.words import base_terms, query_terms
from mcp_memory.store.row_types import FeedbackRow
from mcp_memory.store.sql import row_codec
from mcp_memory.store.sql.quarantine_rows import THERE
from mcp_memory.store.sql.transaction import Transaction, to_ms
from mcp_memory.store.values import Feedback, FeedbackVerdict

COUNTED = 1_000
"""The latest feedback of a space, as much as counts in searches."""

_THERE = THERE.format(id="r.target", space="r.space")


def add(
    tx: Transaction, target: str, verdict: FeedbackVerdict, *, words: Sequence[str], recall: int, now: datetime
) -> Feedback:
    """Store what a person said of a row that the recall number `recall` returned."""
    feedback = Feedback(
        id=tx.next("feedback"), target=target, verdict=verdict, words=tuple(words), recall=recall, at=now
    )
    tx.insert("feedback", **row_codec.values_of(feedback))
    return feedback


def undo(tx: Transaction, id: int, *, now: datetime) -> Feedback:
    """Let feedback not count any more. Raises NotFound if there is no such feedback, or it was undone before."""
    found = next(row_codec.rows(tx, Feedback, f"r.id = ? AND r.undone_at IS NULL AND {_THERE}", id), None)
    if found is None:
        raise NotFound("There is no such feedback, or it was undone already. Nothing was changed.")
    tx.run("UPDATE feedback SET undone_at = ? WHERE space = :space AND id = ?", to_ms(now), id)
    return found


def counted(tx: Transaction) -> Sequence[tuple[str, FeedbackVerdict, frozenset[str]]]:
    """Return the target, verdict and words of the feedback that counts in searches, newest first.

    That on forgotten rows may be among it, since no search finds them.
    """
    if not tx.has_any("feedback"):
        return ()

    def read(_: object) -> dict[str, list[tuple[str, FeedbackVerdict, frozenset[str]]]]:
        rows = tx.all(
            "SELECT target, verdict, words FROM feedback WHERE space = :space AND undone_at IS NULL"
            " ORDER BY id DESC LIMIT ?",
            COUNTED,
        )
        return {"": [(target, verdict, frozenset(json.loads(words))) for target, verdict, words in rows]}

    return tx.once("feedback", [""], read)[""]


def on(tx: Transaction, *, target: str | None = None, recall: int | None = None) -> list[Feedback]:
    """Return the feedback on a row or on the rows of a recall that was not undone, newest first."""
    conditions, values = ["r.undone_at IS NULL", _THERE], list[str | int]()
    for column, value in (("target", target), ("recall", recall)):
        if value is not None:
            conditions.append(f"r.{column} = ?")
            values.append(value)
    return list(row_codec.rows(tx, Feedback, f"{' AND '.join(conditions)} ORDER BY r.id DESC LIMIT {COUNTED}", *values))


def bring(tx: Transaction, row: FeedbackRow) -> None:
    """Store feedback of another memory, unless it is stored already; then only its undoing."""
    columns = row_codec.values_of(row)
    known = tx.get(
        "SELECT id FROM feedback WHERE space = :space AND target = ? AND verdict = ? AND at = ?",
        *(columns[name] for name in ("target", "verdict", "at")),
    )
    if known is None:
        tx.insert("feedback", **columns, id=tx.next("feedback"))
    else:
        undone = "UPDATE feedback SET undone_at = ? WHERE space = :space AND id = ? AND undone_at IS NULL"
        tx.run(undone, columns["undone_at"], known)


def erase_questions(tx: Transaction, texts: Iterable[str]) -> None:
    """Delete the feedback on questions all of whose words are in one of these texts, which are erased."""
    asked = {id: json.loads(words) for id, words in tx.all("SELECT id, words FROM feedback WHERE space = :space")}
    gone = set[int]()
    for text in texts if asked else ():
        erased = {word_hash(term) for term in (*base_terms(text), *query_terms(text))}
        gone |= {id for id, words in asked.items() if erased.issuperset(words)}
    tx.run_among("DELETE FROM feedback WHERE space = :space AND id IN ({})", gone)
