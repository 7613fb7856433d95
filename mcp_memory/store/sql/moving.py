"""Moves a memory to another engine: copies all rows in batches, and computes digests that prove the copy.

The tables are the same on all engines (`schema`), so one loop copies them all. Rows are read in the order of their
keys, from one snapshot of the source. Each batch is one transaction of the target, with the index terms, vectors and
raw results of its rows, so after a kill the move continues behind the last committed batch. While the target is loaded
it has no foreign keys, and no indexes except its primary keys; the table `move` has the statements that create them.
That table exists until the move is proven, and no engine opens a memory that has it.

Rows that each engine derives itself are not copied, such as queues, the change feed, and chunks of results, which the
target indexes again.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from mcp_memory.core.errors import Refused, StoreUnavailable
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import schema
from mcp_memory.store.sql.schema import Table
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, marks
from mcp_memory.store.sql.word_index import forget_chunks, terms_of_row
from mcp_memory.store.stored_vectors import EMBEDDED_LAYERS
from mcp_memory.store.values import Layer

T = TypeVar("T")
Key = Sequence[Any]

_BATCH = 1_000
_MADE_AGAIN = {"queue", "due", "change", "chunk", "vector_index"}
_STATE = {"ref": {"indexed"}}
"""Columns with the progress of derived data, which is made again."""

_ROWS = {"number": "kind <> 'chunk'"}
"""Conditions on the rows that are moved, for tables of which not all rows are moved."""


class Movable(Store, Protocol):
    """A store that can be the source or the target of a move. A target has the table `move` until `Move.accept`."""

    name: str

    def read_still(self, work: Callable[[HomeTransaction], T]) -> T:
        """Call `work` on one snapshot while no other program writes.

        Raises StoreUnavailable if another program has the memory open.
        """
        ...

    def reopen(self) -> Movable:
        """Open a second store on the same memory. Inside `read_still`, only the second store can be used."""
        ...

    def in_space(self, tx: HomeTransaction, space: str) -> Transaction:
        """Return a transaction of a space inside a transaction of the home."""
        ...

    def is_unfinished(self, tx: HomeTransaction) -> bool:
        """Return whether the table `move` exists."""
        ...

    def constraints(self, tx: HomeTransaction) -> list[tuple[str, str]]:
        """Return the constraints and indexes that slow down loading, as pairs of a DROP and a CREATE statement."""
        ...


@dataclass(frozen=True, slots=True)
class Digest:
    """The number of rows, and the sum of their SHA-256 hashes modulo 2^256.

    The sum does not depend on the order of the rows, which differs because engines sort texts differently.
    """

    rows: int = 0
    total: int = 0

    @property
    def sha256(self) -> str:
        return f"{self.total:064x}"

    def with_row(self, row: Key) -> Digest:
        canonical = json.dumps(row, default=bytes.hex).encode()
        return Digest(self.rows + 1, (self.total + int.from_bytes(hashlib.sha256(canonical).digest())) % 2**256)


Digests = dict[str, Digest]
"""Digests by name of the space; "" for rows of the home."""


def tables() -> list[Table]:
    """Return the tables that are copied, with only the columns that are copied."""
    return [
        Table(table.name, {c: t for c, t in table.columns.items() if c not in _STATE.get(table.name, ())}, table.key)
        for table in schema.tables()
        if table.name not in _MADE_AGAIN
    ]


class Move:
    """Copies the store `origin` to `target`; `source` is the snapshot of `origin` from which everything is read."""

    def __init__(self, origin: Movable, source: HomeTransaction, target: Movable) -> None:
        self._origin = origin
        self._source = source
        self._target = target

    @cached_property
    def _names(self) -> dict[int, str]:
        return dict(self._source.all("SELECT id, name FROM space"))

    @cached_property
    def _models(self) -> list[str]:
        return self._source.column("SELECT identity FROM vector_index ORDER BY id")

    def count(self) -> int:
        """Return the number of rows in the tables to copy."""
        counts = (self._source.get(f"SELECT count(*) FROM {table.name}") for table in tables())
        return sum(counts)

    # --- copying ----------------------------------------------------------------------------------------

    def begin(self) -> bool:
        """Prepare the target. Return whether it already has a part of this move.

        Raises Refused if the target has any other rows.
        """
        return self._target.write_home(self._begin)

    def _begin(self, tx: HomeTransaction) -> bool:
        identity = self._source.all("SELECT id, uuid, key FROM home")[0]
        resumed = self._target.is_unfinished(tx)
        if not resumed:
            _must_be_empty(tx, self._target.name)
        elif tx.get("SELECT uuid FROM home") != identity[1]:
            raise Refused(
                f"{self._target.name} has a part of another memory, whose move was not finished. Finish that one, or "
                "name an empty target."
            )
        constraints = self._target.constraints(tx)
        if not resumed:
            tx.run("CREATE TABLE move (statement TEXT NOT NULL)")
            tx.run("DELETE FROM home")
            tx.run("INSERT INTO home (id, uuid, key) VALUES (?, ?, ?)", *identity)
        for take_off, put_back in constraints:
            tx.insert("move", statement=put_back)
            tx.run(take_off)
        return resumed

    def copy(self, *, resumed: bool, tell: Callable[[int], None]) -> None:
        """Copy all rows, and call `tell` after each batch with the number of its rows.

        If `resumed`, the target has some of the rows, and the source may have changed since.
        """
        for table in tables():
            if table.name != "home":
                self._copy(table, resumed=resumed, tell=tell)

    def _copy(self, table: Table, *, resumed: bool, tell: Callable[[int], None]) -> None:
        if not resumed:
            self._copy_after(None, table, tell)
        elif not self._is_same(table):
            if all(table.columns[name] == "INTEGER" for name in table.key):  # all engines sort integers alike
                self._copy_after(self._target.read_home(_last_key, table), table, tell)
            if not self._is_same(table):
                self._empty(table)
                self._copy_after(None, table, tell)

    def _copy_after(self, key: Key | None, table: Table, tell: Callable[[int], None]) -> None:
        for rows in _pages(self._source, table, key):
            self._target.write_home(self._put, table, rows)
            tell(len(rows))

    def _is_same(self, table: Table) -> bool:
        return self._target.read_home(_digest, table) == _digest(self._source, table)

    def _put(self, tx: HomeTransaction, table: Table, rows: Sequence[Key]) -> None:
        tx.many(f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({marks(list(table.columns))})", rows)
        if table.name not in (*EMBEDDED_LAYERS, "ref"):
            return
        for number, of_space in groupby(rows, itemgetter(0)):
            name = self._names[number]
            source, target = self._origin.in_space(self._source, name), self._target.in_space(tx, name)
            fields = [dict(zip(table.columns, row, strict=True)) for row in of_space]
            if table.name == "ref":
                _copy_results(source, target, fields)
            else:
                self._index(source, target, table.name, fields)  # type: ignore[arg-type]

    def _index(self, source: Transaction, target: Transaction, layer: Layer, rows: Sequence[dict[str, Any]]) -> None:
        target.index.put_terms(layer, [(row["id"], _terms(layer, row)) for row in rows])
        for identity in self._models:
            vectors = source.index.stored_vectors(layer, [row["id"] for row in rows], identity)
            if vectors:
                import numpy as np

                target.index.put_stored(layer, list(vectors), identity, np.stack(list(vectors.values())))

    def _empty(self, table: Table) -> None:
        """Delete the rows of a table in the target, and everything derived from them."""
        while rows := self._target.read_home(_page, table, None):
            self._target.write_home(self._remove, table, rows)

    def _remove(self, tx: HomeTransaction, table: Table, rows: Sequence[Key]) -> None:
        for number, of_space in groupby(rows, itemgetter(0)):
            fields = [dict(zip(table.columns, row, strict=True)) for row in of_space]
            match table.name:
                case "turn" | "atom":
                    target = self._target.in_space(tx, tx.get("SELECT name FROM space WHERE id = ?", number))
                    target.index.remove(table.name, [row["id"] for row in fields])
                case "ref":
                    target = self._target.in_space(tx, tx.get("SELECT name FROM space WHERE id = ?", number))
                    for row in fields:
                        forget_chunks(target, row["id"])
                        if row["path"]:  # empty for a purged ref
                            target.files.remove(row["path"])
                case _:
                    pass
        key = " AND ".join(f"{name} = ?" for name in table.key)
        places = [list(table.columns).index(name) for name in table.key]
        tx.many(f"DELETE FROM {table.name} WHERE {key}", [[row[place] for place in places] for row in rows])

    def finish(self) -> None:
        """Create the foreign keys and indexes again. The target stays unfinished until `accept`."""

        def put_back(tx: HomeTransaction) -> None:
            for statement in tx.column("SELECT statement FROM move"):
                tx.run(statement)
            tx.run("DELETE FROM move")

        self._target.write_home(put_back)

    def accept(self) -> None:
        """Drop the table `move`, so that the target is a memory that can be opened."""
        self._target.write_home(lambda tx: tx.run("DROP TABLE move"))


def unfinished_error(name: str) -> StoreUnavailable:
    """Return the error that is raised if a target with an unfinished move is opened."""
    return StoreUnavailable(
        f"A move to {name} was not finished, so it has a part of a memory. Call the same `mcp-memory move` again: it "
        "goes on where it stopped."
    )


def proof(store: Movable, tx: HomeTransaction, tell: Callable[[int], None]) -> Iterator[tuple[str, Digests]]:
    """Yield digests by space: of each table, of the raw results, and of the vectors of each model and layer.

    `tell` is called with 1 for each row of a table.
    """
    names = dict(tx.all("SELECT id, name FROM space"))

    def of(rows: Iterator[Key]) -> Digests:
        by_space = defaultdict[str, Digest](Digest)
        for number, *row in rows:
            space = names.get(number, "")
            by_space[space] = by_space[space].with_row(row)
        return dict(by_space)

    for table in tables():
        yield table.name, of(_report_each(_rows(tx, table), tell))
    yield "results", of(_results(store, tx, names))
    for identity in tx.column("SELECT identity FROM vector_index ORDER BY identity"):
        for layer in EMBEDDED_LAYERS:
            yield f"{layer} vectors by {identity}", of(_vectors(store, tx, names, layer, identity))


def _report_each(rows: Iterator[Key], tell: Callable[[int], None]) -> Iterator[Key]:
    for row in rows:
        tell(1)
        yield row


def _rows(tx: HomeTransaction, table: Table) -> Iterator[Key]:
    """Yield the rows of a table, each preceded by the number of its space, 0 for rows of the home."""
    of_space = "space" in table.columns
    return (row if of_space else (0, *row) for page in _pages(tx, table, None) for row in page)


def _results(store: Movable, tx: HomeTransaction, names: dict[int, str]) -> Iterator[Key]:
    refs = next(table for table in tables() if table.name == "ref")
    for page in _pages(tx, refs, None):
        for number, rows in groupby(page, itemgetter(0)):
            files = store.in_space(tx, names[number]).files
            for row in rows:
                path = row[list(refs.columns).index("path")]
                data = files.read(path)
                yield number, path, None if data is None else hashlib.sha256(data).hexdigest()


def _vectors(store: Movable, tx: HomeTransaction, names: dict[int, str], layer: Layer, identity: str) -> Iterator[Key]:
    rows = Table(layer, {"space": "INTEGER", "id": "INTEGER"}, ("space", "id"))
    for page in _pages(tx, rows, None):
        for number, of_space in groupby(page, itemgetter(0)):
            index = store.in_space(tx, names[number]).index
            for id, vector in sorted(index.stored_vectors(layer, [id for _, id in of_space], identity).items()):
                yield number, id, vector.tobytes()


# --- pages of a table -------------------------------------------------------------------------------


def _pages(tx: HomeTransaction, table: Table, after: Key | None) -> Iterator[list[Key]]:
    while rows := _page(tx, table, after):
        yield rows
        after = [rows[-1][list(table.columns).index(name)] for name in table.key]


def _page(tx: HomeTransaction, table: Table, after: Key | None) -> list[Key]:
    """Return the next rows of a table in the order of their keys."""
    key = ", ".join(table.key)
    which = _ROWS.get(table.name, "TRUE") + ("" if after is None else f" AND ({key}) > ({marks(table.key)})")
    return tx.all(
        f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {which} ORDER BY {key} LIMIT {_BATCH}",
        *(after or ()),
    )


def _last_key(tx: HomeTransaction, table: Table) -> Key | None:
    order = ", ".join(f"{name} DESC" for name in table.key)
    return tx.one(f"SELECT {', '.join(table.key)} FROM {table.name} ORDER BY {order} LIMIT 1")


def _digest(tx: HomeTransaction, table: Table) -> Digest:
    digest = Digest()
    for row in _rows(tx, table):
        digest = digest.with_row(row)
    return digest


def _must_be_empty(tx: HomeTransaction, name: str) -> None:
    for table in tables():
        if table.name != "home" and tx.one(f"SELECT 1 FROM {table.name} LIMIT 1") is not None:
            spaces = ", ".join(tx.column("SELECT name FROM space ORDER BY id LIMIT 3"))
            raise Refused(
                f"{name} has a memory already ({f'spaces: {spaces}' if spaces else f'rows of {table.name}'}). Nothing "
                "was changed. Name an empty target; into a memory that is there, `mcp-memory import` takes an export."
            )


def _terms(layer: Layer, row: dict[str, Any]) -> Sequence[str] | None:
    if row["tombstone"] is not None or row.get("role") == "note":
        return None
    return terms_of_row(layer, row["content" if layer == "turn" else "text"], row.get("name"))


def _copy_results(source: Transaction, target: Transaction, refs: Sequence[dict[str, Any]]) -> None:
    """Copy the raw bytes of results, except results that the source has lost or purged."""
    for row in refs:
        data = source.files.read(row["path"])
        if data is not None:
            target.files.write(row["path"], data)
