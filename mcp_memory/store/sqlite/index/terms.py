"""The word index: an FTS5 table per layer, of the terms of `store.sql.word_index`; `term_rows` reads it.

The table `term_range` has ranges of a space's row numbers with the version of `words.index_terms` they were indexed
with. A row in no range is not indexed yet, because its writer did not wait for that (`turn_rows.prepare`), or it was
indexed by an older program, which recorded no range. Searches read the new turns that are not indexed yet.

Rows with the terms of an earlier version are reindexed in batches, newest first. Until then a row is found by its old
terms. Reading and cutting into terms need no lock; then one transaction writes a batch with the range it covers, after
checking which rows were forgotten meanwhile. After a kill one batch is repeated; two processes may repeat a batch.

FTS5 merges its segments inside the commit that exceeds their number, which made other writers wait for up to a second.
So during reindexing automatic merges are off, and a share is merged after each batch; `settle_segments` finishes the
merge and restores the settings. They are stored in the database, so that any process can continue after a kill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import apsw

from mcp_memory.language.words import TERMS_VERSION
from mcp_memory.store.sql.word_index import INDEXED, INDEXED_COLUMNS, terms_of_row
from mcp_memory.store.sqlite.index.rowids import ID_BITS, ID_MASK, rowid, span
from mcp_memory.store.values import Layer


def quote_term(term: str) -> str:
    """Return a term quoted for FTS5's query language."""
    return '"' + term.replace('"', '""') + '"'


Rows = Sequence[tuple[int, Sequence[str] | None]]
"""Rows of a space as (number, terms); the terms are None if the word index must not find the row."""


def put(con: apsw.Connection, layer: Layer, space: int, rows: Rows) -> None:
    """Index consecutive rows, and record that they have the terms of this version."""
    if rows:
        insert(con, layer, space, rows)
        cover(con, layer, space, rows[0][0], rows[-1][0])


def insert(con: apsw.Connection, layer: Layer, space: int, rows: Rows) -> None:
    con.executemany(
        f"INSERT INTO {layer}_terms (rowid, terms) VALUES (?, ?)",
        [(rowid(space, number), " ".join(terms)) for number, terms in rows if terms is not None],
    )


def delete(con: apsw.Connection, layer: Layer, space: int, numbers: Sequence[int]) -> None:
    con.executemany(f"DELETE FROM {layer}_terms WHERE rowid = ?", [(rowid(space, number),) for number in numbers])


def with_all(con: apsw.Connection, layer: Layer, space: int, query_terms: Sequence[str]) -> list[int]:
    """Return the rows of a space that have all of these terms, also those that are not indexed yet."""
    match = " AND ".join(quote_term(term) for term in dict.fromkeys(query_terms) if "\0" not in term)
    rows = con.execute(
        f"SELECT rowid & {ID_MASK} FROM {layer}_terms WHERE {layer}_terms MATCH ? AND rowid BETWEEN ? AND ?",
        (match, *span(space)),
    )
    new = new_rows(con, layer, space) if layer == "turn" else {}
    asked = set(query_terms)
    return [*(int(number) for (number,) in rows), *(number for number, own in new.items() if asked <= own)]


def new_rows(con: apsw.Connection, layer: Layer, space: int) -> dict[int, set[str]]:
    """Return the terms of the rows of a space that are not indexed yet, by their numbers; few rows, as a rule."""
    rows: dict[int, set[str]] = {}
    for _, first, last in gaps(con, layer, version=0, space=space):
        sql = (
            f"SELECT id, {INDEXED_COLUMNS[layer]} FROM {layer} WHERE space = ? AND id BETWEEN ? AND ?"
            f" AND {INDEXED[layer]} AND space << {ID_BITS} | id NOT IN (SELECT id FROM {layer}_terms_docsize)"
        )
        for number, *row in con.execute(sql, (space, first, last)):
            rows[number] = set(terms_of_row(layer, *row))
    return rows


def cover(con: apsw.Connection, layer: Layer, space: int, first: int, last: int) -> None:
    """Record that the rows from `first` to `last` have the terms of this version.

    Adjacent ranges are merged, also across rows that are not indexed, so there is usually one range.
    """
    key = (space, layer, TERMS_VERSION)
    preceding: Any = con.execute(
        "SELECT first, last FROM term_range WHERE space = ? AND layer = ? AND version = ? AND first <= ?"
        " ORDER BY first DESC LIMIT 1",
        (*key, first),
    ).fetchone()
    if preceding is not None and (
        preceding[1] >= first - 1 or not _holds_any(con, layer, space, preceding[1] + 1, first - 1)
    ):
        first, last = preceding[0], max(preceding[1], last)
    con.execute(
        "DELETE FROM term_range WHERE space = ? AND layer = ? AND version = ? AND first >= ? AND last <= ?",
        (*key, first, last),
    )
    following: Any = con.execute(
        "DELETE FROM term_range WHERE space = ? AND layer = ? AND version = ? AND first > ? AND first <= ? + 1"
        " RETURNING last",
        (*key, first, last),
    ).get
    con.execute(
        "INSERT INTO term_range (space, layer, version, first, last) VALUES (?, ?, ?, ?, ?)",
        (*key, first, last if following is None else following),
    )


def gaps(
    con: apsw.Connection, layer: Layer, *, version: int = TERMS_VERSION, space: int | None = None
) -> Iterator[tuple[int, int, int]]:
    """Yield (space, first row, last row) of each stretch without terms of this or a later version, newest first."""
    of_space = "" if space is None else f"AND n.space = {space:d}"
    rows: Any = con.execute(
        "SELECT n.space, n.last, r.first, r.last FROM number n LEFT JOIN term_range r ON r.space = n.space"
        f" AND r.layer = n.kind AND r.version >= ? WHERE n.kind = ? {of_space} ORDER BY n.space, r.last DESC, r.first",
        (version, layer),
    ).fetchall()
    for (number, newest), ranges in groupby(rows, key=lambda row: row[:2]):
        after: int = newest + 1
        for _, _, first, last in ranges:
            if first is None:
                continue
            if last + 1 < after:
                yield number, last + 1, after - 1
            after = min(after, first)
        if after > 1:
            yield number, 1, after - 1


def _holds_any(con: apsw.Connection, layer: Layer, space: int, first: int, last: int) -> bool:
    sql = f"SELECT 1 FROM {layer} WHERE space = ? AND id BETWEEN ? AND ? AND {INDEXED[layer]} LIMIT 1"
    return con.execute(sql, (space, first, last)).get is not None


# --- rows that are indexed later --------------------------------------------------------------------


_LAYERS: tuple[Layer, ...] = ("atom", "turn")
_COUNTED = 1_000
_CHARACTERS = 25_000  # of text in a batch: some 15 ms to write
_NEW_CHARACTERS = 250_000  # of new turns in a batch: searches are quicker without any
_PAGES = 64  # merged at a time: some 20 ms
_MERGING = {"automerge": (0, 4), "crisismerge": (64, 16)}
"""Settings of FTS5 while rows are reindexed, and at other times (its defaults)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReindexBatch:
    """The newest rows of a space that have to be indexed, as (number, *`INDEXED_COLUMNS`), newest first.

    No other row from `first` to `last` has to be indexed. If they `are_new`, none has terms yet.
    """

    layer: Layer
    space: int
    first: int
    last: int
    rows: Sequence[tuple[int, str, str | None]]
    are_new: bool = False


def stale_terms(con: apsw.Connection) -> int:
    """Count the rows with terms of an earlier version. In long gaps all row numbers are counted, which is cheap."""
    count = 0
    for layer in _LAYERS:
        for space, first, last in gaps(con, layer):
            if last - first < _COUNTED:
                sql = f"SELECT count(*) FROM {layer} WHERE space = ? AND id BETWEEN ? AND ? AND {INDEXED[layer]}"
                count += con.execute(sql, (space, first, last)).get
            else:
                count += last - first + 1
    return count


def next_batch(con: apsw.Connection, *, limit: int) -> ReindexBatch | None:
    """Return the next rows to reindex; None if all have the terms of this version."""
    for layer in _LAYERS:
        for gap in gaps(con, layer):
            return _batch(con, layer, *gap, limit=limit, characters=_CHARACTERS)
    return None


def new_batch(con: apsw.Connection, space: str, *, limit: int) -> ReindexBatch | None:
    """Return the next turns of a space that have no terms yet; None if all have some."""
    number = con.execute("SELECT id FROM space WHERE name = ?", (space,)).get
    for gap in gaps(con, "turn", version=0, space=number) if number else ():
        batch = _batch(con, "turn", *gap, limit=limit, characters=_NEW_CHARACTERS)
        newest = [rowid(number, row) for row, *_ in batch.rows[:1]]
        if not newest or con.execute("SELECT 1 FROM turn_terms_docsize WHERE id = ?", newest).get is None:
            return replace(batch, are_new=True)
    return None  # those in other gaps have terms of an older program


def _batch(
    con: apsw.Connection, layer: Layer, space: int, first: int, last: int, *, limit: int, characters: int
) -> ReindexBatch:
    """Return the newest rows of a gap, about so many characters."""
    rows: list[tuple[int, str, str | None]] = []
    size = 0
    for number, text, name in con.execute(
        f"SELECT id, {INDEXED_COLUMNS[layer]} FROM {layer} WHERE space = ? AND id BETWEEN ? AND ?"
        f" AND {INDEXED[layer]} ORDER BY id DESC LIMIT ?",
        (space, first, last, limit),
    ):
        rows.append((number, text, name))
        size += len(text)
        if size >= characters:
            break
    is_whole = len(rows) < limit and size < characters
    return ReindexBatch(layer=layer, space=space, first=first if is_whole else rows[-1][0], last=last, rows=rows)


def terms_of_batch(batch: ReindexBatch) -> list[list[str]]:
    """Return the terms of a batch's rows, in their order."""
    return [terms_of_row(batch.layer, text, name) for _, text, name in batch.rows]


def commit_batch(con: apsw.Connection, batch: ReindexBatch, new_terms: Sequence[Sequence[str]]) -> None:
    """Replace the terms of a batch with `new_terms`, and record its range.

    Rows forgotten meanwhile are skipped. If a row was restored meanwhile, the batch is left for a later call.
    """
    layer, space = batch.layer, batch.space
    sql = f"SELECT id FROM {layer} WHERE space = ? AND id BETWEEN ? AND ? AND {INDEXED[layer]}"
    live = {number for (number,) in con.execute(sql, (space, batch.first, batch.last))}
    if live - {number for number, *_ in batch.rows}:
        return
    if not batch.are_new and not _is_quiet(con, layer):
        _set(con, layer, {name: value for name, (value, _) in _MERGING.items()})
    rows = [(number, new) for (number, *_), new in zip(batch.rows, new_terms, strict=True) if number in live][::-1]
    delete(con, layer, space, [number for number, _ in rows])
    insert(con, layer, space, rows)
    cover(con, layer, space, batch.first, batch.last)


def merge_segments(con: apsw.Connection, layer: Layer) -> bool:
    """Merge a share of FTS5's segments; return whether there was anything to merge."""
    before = con.total_changes()
    con.execute(f"INSERT INTO {layer}_terms ({layer}_terms, rank) VALUES ('merge', ?)", (_PAGES,))
    return con.total_changes() - before >= 2  # what its manual says


def unsettled_layers(con: apsw.Connection) -> list[Layer]:
    """Return the layers with segments left to merge."""
    return [layer for layer in _LAYERS if _is_quiet(con, layer)]


def settle_segments(con: apsw.Connection, layer: Layer) -> None:
    """Merge the next share of segments; when all are merged, restore the automatic merges of FTS5."""
    if not merge_segments(con, layer):
        _set(con, layer, {name: value for name, (_, value) in _MERGING.items()})


def _is_quiet(con: apsw.Connection, layer: Layer) -> bool:
    return con.execute(f"SELECT v FROM {layer}_terms_config WHERE k = 'automerge'").get == 0


def _set(con: apsw.Connection, layer: Layer, settings: dict[str, int]) -> None:
    for name, value in settings.items():
        con.execute(f"INSERT INTO {layer}_terms ({layer}_terms, rank) VALUES (?, ?)", (name, value))
