"""Reindex rows that have the terms of an earlier version of `text.index_terms`, in batches, newest first.

Terms are a projection of the words in the rows. Until a row is reindexed it is found by its old terms. Reading and
cutting into terms hold no lock; then one transaction writes a batch with the range it covers, after checking which
rows were forgotten meanwhile. A kill repeats one batch; two processes at once repeat some.

FTS5 merges its segments inside the commit that makes one too many, which made other writers wait for up to a second.
So during reindexing automatic merges are off, and a share is merged after each batch; `settle` finishes the merge and
restores the settings. They are stored in the database, so that any process can continue after a kill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from mcp_memory.core.text import spoken
from mcp_memory.store.sql.word_index import INDEXED, terms_of_atom, terms_of_spoken
from mcp_memory.store.sqlite.index import terms
from mcp_memory.store.sqlite.index.terms import cover, gaps
from mcp_memory.store.values import Layer

__all__ = ["Batch", "commit", "cut", "merge", "next_batch", "settle", "stale", "unsettled"]

_LAYERS: tuple[Layer, ...] = ("atom", "turn")
_COUNTED = 1_000
_CHARACTERS = 25_000  # of text in a batch: some 15 ms to write
_PAGES = 64  # merged at a time: some 20 ms
_MERGING = {"automerge": (0, 4), "crisismerge": (64, 16)}
"""Settings of FTS5 while rows are renewed, and at other times (its defaults)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The newest rows of a space that wait, as (number, text as it is indexed).

    `first` to `last` is the stretch that they fill: no other row waits in it.
    """

    layer: Layer
    space: int
    first: int
    last: int
    rows: Sequence[tuple[int, str]]


def stale(con: apsw.Connection) -> int:
    """See `Store.stale_terms`. In long gaps all row numbers are counted, which is cheap."""
    count = 0
    for layer in _LAYERS:
        for space, first, last in gaps(con, layer):
            if last - first < _COUNTED:
                sql = f"SELECT count(*) FROM {layer} WHERE space = ? AND id BETWEEN ? AND ? AND {INDEXED[layer]}"
                count += con.execute(sql, (space, first, last)).get
            else:
                count += last - first + 1
    return count


def next_batch(con: apsw.Connection, *, limit: int) -> Batch | None:
    """Return the next rows to reindex; None if all have the terms of this version."""
    for layer in _LAYERS:
        for space, first, last in gaps(con, layer):
            columns = "content, name" if layer == "turn" else "text, NULL"
            rows: list[tuple[int, str]] = []
            size = 0
            for number, content, name in con.execute(
                f"SELECT id, {columns} FROM {layer} WHERE space = ? AND id BETWEEN ? AND ? AND {INDEXED[layer]}"
                " ORDER BY id DESC LIMIT ?",
                (space, first, last, limit),
            ):
                rows.append((number, spoken(content, name)))
                size += len(content)
                if size >= _CHARACTERS:
                    break
            whole = len(rows) < limit and size < _CHARACTERS
            return Batch(layer=layer, space=space, first=first if whole else rows[-1][0], last=last, rows=rows)
    return None


def cut(batch: Batch) -> list[list[str]]:
    """Return the terms of a batch's rows, in their order."""
    terms_of = terms_of_spoken if batch.layer == "turn" else terms_of_atom
    return [terms_of(text) for _, text in batch.rows]


def commit(con: apsw.Connection, batch: Batch, found: Sequence[Sequence[str]]) -> None:
    """Replace the old terms of a batch with the new ones, and record its range.

    Rows forgotten meanwhile stay out. If a row was restored meanwhile, the batch is left for a later call.
    """
    layer, space = batch.layer, batch.space
    sql = f"SELECT id FROM {layer} WHERE space = ? AND id BETWEEN ? AND ? AND {INDEXED[layer]}"
    live = {number for (number,) in con.execute(sql, (space, batch.first, batch.last))}
    if live - {number for number, _ in batch.rows}:
        return
    if not _is_quiet(con, layer):
        _set(con, layer, {name: value for name, (value, _) in _MERGING.items()})
    rows = [(number, new) for (number, _), new in zip(batch.rows, found, strict=True) if number in live]
    terms.delete(con, layer, space, [number for number, _ in rows])
    terms.insert(con, layer, space, rows)
    cover(con, layer, space, batch.first, batch.last)


def merge(con: apsw.Connection, layer: Layer) -> bool:
    """Merge a share of FTS5's segments; return whether there was any left."""
    before = con.total_changes()
    con.execute(f"INSERT INTO {layer}_terms ({layer}_terms, rank) VALUES ('merge', ?)", (_PAGES,))
    return con.total_changes() - before >= 2  # what its manual says


def unsettled(con: apsw.Connection) -> list[Layer]:
    """Return the layers with segments left to merge."""
    return [layer for layer in _LAYERS if _is_quiet(con, layer)]


def settle(con: apsw.Connection, layer: Layer) -> None:
    """Merge the next share of segments; when all are merged, restore the automatic merges of FTS5."""
    if not merge(con, layer):
        _set(con, layer, {name: value for name, (_, value) in _MERGING.items()})


def _is_quiet(con: apsw.Connection, layer: Layer) -> bool:
    return con.execute(f"SELECT v FROM {layer}_terms_config WHERE k = 'automerge'").get == 0


def _set(con: apsw.Connection, layer: Layer, settings: dict[str, int]) -> None:
    for name, value in settings.items():
        con.execute(f"INSERT INTO {layer}_terms ({layer}_terms, rank) VALUES (?, ?)", (name, value))
