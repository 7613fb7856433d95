"""Transactions in which the SQL of this package runs, on the rows of a space or of the home.

SQL is written once for every engine. `?` is the placeholder of a value and `:space` that of the number of the space;
every statement on rows of a space, and every join of them, must name the space. An engine implements `Connection`,
`Files` and `Index`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, ParamSpec, Protocol, TypeVar

from mcp_memory.core.errors import NotFound
from mcp_memory.core.keyed_hash import keyed_hash
from mcp_memory.core.secrets.masking import require_no_key
from mcp_memory.core.text import one_line
from mcp_memory.store.values import DISTIL, Layer, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Value = str | int | float | bytes | None

NOW = "CAST(1000 * unixepoch('now', 'subsec') AS BIGINT)"
"""The moment of a transaction by the clock of the database, in milliseconds since 1970."""

_AT_ONCE = 500
_MOST_DIGITS = 18
_ROWS = 50  # per INSERT statement: engines cache a prepared statement for each number of rows
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_STATEMENTS = 2_048  # cached statement texts; some contain numbers
_PARAMETER = re.compile(r"'(?:[^']|'')*'|:space\b|\?")


class Connection(Protocol):
    """A connection to the database of an engine, during a transaction. Placeholders are `?`; rows are tuples.

    Statements run in order. The error of a statement whose rows are not read may be raised by a later call.
    """

    def execute(self, sql: str, values: Sequence[Value], /) -> Iterator[Any]: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Value]], /) -> object: ...


class Files(Protocol):
    """The files of a space, named by their paths in its folder: raw results, and readable copies of rows.

    Results (`refs/…`) are stored with the transaction. Copies are written after its commit, with content from
    `sql.copies`. An engine without a folder has no copies.
    """

    def read(self, path: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""
        ...

    def display_path(self, path: str) -> str:
        """Return the path of a file as shown in messages to the user."""
        ...

    def read_results(self, spans: Sequence[tuple[str, int, tuple[int, int]]]) -> list[bytes | None]:
        """Return parts of raw results, each given as (path, size, span).

        `size` is the number of raw bytes, which are the last bytes of the file, and `span` a range of them. None is
        returned for a file that is torn, missing or temporarily unreachable.
        """
        ...

    def write(self, path: str, data: bytes) -> None:
        """Store a result, or write a copy that is not made from rows."""
        ...

    def remove(self, path: str) -> None:
        """Delete the file of a result or a page."""
        ...

    def append(self, path: str, lines: Iterable[bytes]) -> None:
        """Append lines to a line file without changing its other lines."""
        ...

    def outdate(self, *paths: str) -> None:
        """Mark copies as outdated: they are rewritten from their rows, or deleted if they have no rows any more."""
        ...


class Index(Protocol):
    """The word and vector indexes of a space."""

    def put_terms(self, layer: Layer, rows: Sequence[tuple[int, Sequence[str] | None]]) -> None:
        """Index new rows by their terms. `rows` are pairs (number, terms), in ascending order.

        A row whose terms are None cannot be found by words.
        """
        ...

    def put_vectors(
        self, layer: Layer, numbers: Sequence[int], new: Vectors, *, rows: Sequence[int] | None = None
    ) -> None:
        """Store vectors for rows without vectors.

        `rows` are the indexes of their vectors in `new.data`; by default, the vectors are in the order of `numbers`.
        """
        ...

    def put_stored(self, layer: Layer, numbers: Sequence[int], identity: str, data: NDArray[np.int8]) -> None:
        """Store vectors for rows without vectors, in the form in which another engine stored them.

        `identity` is the model; `data` has a row for each number.
        """
        ...

    def stored_vectors(self, layer: Layer, numbers: Sequence[int], identity: str) -> dict[int, NDArray[np.int8]]:
        """Return the stored vectors of a model by the number of the row; rows without a vector are left out."""
        ...

    def with_all_terms(self, layer: Layer, query_terms: Sequence[str]) -> list[int]:
        """Return the numbers of the rows that have all of these index terms."""
        ...

    def remove(self, layer: Layer, numbers: Sequence[int]) -> None:
        """Remove rows from the word index and the vectors of every model."""
        ...


class HomeTransaction:
    """Runs statements on rows of the home, such as spaces, tokens, spend and queues.

    `skip_locked` is appended to a SELECT that claims a row, so that rows claimed by other transactions are skipped.
    `known` are the values that `once` has read in this snapshot; None outside of a snapshot, where rows may change.
    """

    space = 0
    skip_locked = ""
    known: dict[str, dict[Any, Any]] | None = None

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def all(self, sql: str, *values: Value) -> list[Any]:
        """Run a statement and return its rows, as tuples."""
        text, order = _layout(sql)
        return list(self.connection.execute(text, self._ordered(order, values)))

    def each(self, sql: str, *values: Value) -> Iterator[Any]:
        """Run a statement and yield its rows, without keeping them all in memory."""
        text, order = _layout(sql)
        return self.connection.execute(text, self._ordered(order, values))

    def one(self, sql: str, *values: Value) -> Any | None:
        """Run a statement and return its first row, or None."""
        rows = self.all(sql, *values)
        return rows[0] if rows else None

    def get(self, sql: str, *values: Value) -> Any:
        """Run a statement and return the first column of its first row, or None."""
        rows = self.all(sql, *values)
        return rows[0][0] if rows else None

    def column(self, sql: str, *values: Value) -> list[Any]:
        """Run a statement and return the first column of all its rows."""
        return [row[0] for row in self.all(sql, *values)]

    def once(self, kind: str, keys: Iterable[K], read: Callable[[list[K]], Mapping[K, V]]) -> dict[K, V]:
        """Return values by key, in the order of the keys, as `read` returns them; keys without a value are left out.

        In a snapshot, `read` gets only keys of this `kind` that were not read before. Values must not be changed.
        """
        unique = list(dict.fromkeys(keys))
        known = {} if self.known is None else self.known.setdefault(kind, {})
        if missing := [key for key in unique if key not in known]:
            found = read(missing)
            known.update((key, found.get(key)) for key in missing)
        return {key: value for key in unique if (value := known[key]) is not None}

    def note_known(self, kind: str, values: Mapping[Any, Any]) -> None:
        """Let `once` return these values without reading them."""
        if self.known is not None:
            self.known.setdefault(kind, {}).update(values)

    def among(self, sql: str, members: Iterable[Value], *values: Value) -> list[Any]:
        """Run a statement that contains `IN ({})` for the members, and return its rows.

        `IN ({})` must come after all other placeholders. The statement runs once for each batch of members, because
        engines limit the number of values.
        """
        return [row for share in _shares(members) for row in self.all(sql.format(marks(share)), *values, *share)]

    def run_among(self, sql: str, members: Iterable[Value], *values: Value) -> None:
        """Run a statement with `IN ({})` like `among`, and ignore its rows."""
        for share in _shares(members):
            self.run(sql.format(marks(share)), *values, *share)

    def run(self, sql: str, *values: Value) -> None:
        """Run a statement and ignore its rows, if it has any."""
        text, order = _layout(sql)
        self.connection.execute(text, self._ordered(order, values))

    def many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Run a statement for each row of values."""
        text, order = _layout(sql)
        self.connection.executemany(text, (self._ordered(order, row) for row in rows))

    def run_rows(self, sql: str, values: str, rows: Sequence[Sequence[Value]]) -> None:
        """Run a statement that contains `VALUES {}` for rows, in batches, and ignore the rows that it returns.

        `values` is the form of each row, such as `(:space, ?)`.
        """
        for start in range(0, len(rows), _ROWS):
            share = rows[start : start + _ROWS]
            self.run(sql.format(", ".join([values] * len(share))), *(value for row in share for value in row))

    def insert(self, table: str, **values: Value) -> None:
        self.run(_insert(table, tuple(values)), *values.values())

    def _ordered(self, order: tuple[bool, ...], values: Sequence[Value]) -> Sequence[Value]:
        """Return the values in the order of the placeholders, with the number of the space for each `:space`."""
        if not any(order):
            return values
        remaining = iter(values)
        return [self.space if is_space else next(remaining) for is_space in order] + list(remaining)


def neutral_session(key: bytes, name: str) -> str:
    """Return a meaningless replacement for a session's name. Without the home's key, the two cannot be linked."""
    return f"session-{keyed_hash(key, 'session', name, digits=8)}"


def _shares(members: Iterable[Value]) -> Iterator[list[Value]]:
    unique = list(dict.fromkeys(members))
    return (unique[start : start + _AT_ONCE] for start in range(0, len(unique), _AT_ONCE))


def in_home(
    connection: Connection, work: Callable[Concatenate[HomeTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs
) -> T:
    """Call `work` with a transaction of the home, on a connection that is in a transaction."""
    return work(HomeTransaction(connection), *args, **kwargs)


class Transaction(HomeTransaction):
    """Runs statements on the rows of a space. `space` is the number of the space, 0 while it has no rows.

    The subclass of each engine provides `files` and `index`, and may add `facts`: SQL expressions about the space.
    `epoch` is an SQL expression for a number higher than that of any change that the store may have lost.
    """

    epoch = "0"
    facts: ClassVar[Mapping[str, str]] = {
        **{
            table: f"(SELECT coalesce(max(id), 0) FROM {table} WHERE space = :space)"
            for table in ("turn", "atom", "chunk", "tombstone")
        },
        "change": "coalesce((SELECT last FROM number WHERE space = :space AND kind = 'change'), 0)",
        **{
            f"any {table}": f"EXISTS (SELECT 1 FROM {table} WHERE space = :space)"
            for table in (
                *("held", "persona", "scene", "citation", "fact", "mention", "entity_name", "followed"),
                "feedback",
            )
        },
    }

    files: Files
    index: Index

    def __init__(self, connection: Connection, name: str) -> None:
        super().__init__(connection)
        self.name = name
        self.space: int = self.get("SELECT id FROM space WHERE name = ?", name) or 0

    def newest(self, table: str) -> int:
        """Return the highest number of the rows of a table in this space, or 0."""
        return self.fact(table)

    def last_change(self) -> int:
        """Return the number of the last change of the space in the change feed, or 0."""
        return self.fact("change")

    def has_any(self, table: str) -> bool:
        """Return whether the space has rows in a table; always True outside of a snapshot, where this takes a query."""
        return self.known is None or bool(self.fact(f"any {table}"))

    def fact(self, name: str) -> Any:
        """Return the value of an expression in `facts`. A snapshot reads all of them together: verbs need most."""
        known = {} if self.known is None else self.known.setdefault("fact", {})
        if name not in known:
            names = [name] if self.known is None else list(self.facts)
            (row,) = self.all(f"SELECT {', '.join(self.facts[name] for name in names)}")
            known.update(zip(names, row, strict=True))
        return known[name]

    def next(self, kind: str, count: int = 1) -> int:
        """Allocate the next numbers for a kind of row in this space, and return the first of them.

        Numbers are in the order of commits, because the row of the counter is locked until the commit. They have no
        gaps, and none is given twice.
        """
        last: int = self.get(
            "INSERT INTO number (space, kind, last) VALUES (:space, ?, ?) ON CONFLICT (space, kind)"
            " DO UPDATE SET last = number.last + excluded.last RETURNING last",
            *(kind, count),
        )
        return last - count + 1

    def set_last(self, kind: str, last: int) -> None:
        """Allocate all numbers up to `last`, from a counter that was read in this transaction.

        Unlike `next`, it does not wait for an answer of the database.
        """
        self.run(
            "INSERT INTO number (space, kind, last) VALUES (:space, ?, ?) ON CONFLICT (space, kind)"
            " DO UPDATE SET last = excluded.last",
            *(kind, last),
        )

    def last(self, kind: str) -> int:
        """Return the last number that was allocated for a kind of row, or 0."""
        return self.get("SELECT last FROM number WHERE space = :space AND kind = ?", kind) or 0

    def together(self) -> AbstractContextManager[None]:
        """Let the engine send the INSERT statements of a block as one, unless their rows are read.

        It may run them in any order, and none sees the rows of another: each row may be inserted or changed once.
        """
        return nullcontext()

    def make_space(self) -> None:
        """Insert the row of the space if it is new. Raises InvalidInput if its name looks like it contains a key."""
        if not self.space:
            require_no_key(self.name, "space")
            self.space = 1 + (self.get("SELECT max(id) FROM space") or 0)
            self.run("INSERT INTO space (id, name) VALUES (?, ?)", self.space, self.name)

    def insert(self, table: str, **values: Value) -> None:
        """Insert a row of this space."""
        self.run(_insert(table, ("space", *values)), *values.values())

    def insert_all(self, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Insert rows of this space, all with the same columns."""
        if rows:
            columns = ("space", *rows[0])
            sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {{}}"
            self.run_rows(sql, _values(columns), [tuple(row.values()) for row in rows])

    def session(self, name: str) -> int | None:
        """Return the number of a session, or None if it does not exist.

        A session that a purge has renamed is also found by its former name.
        """
        return self.once("session", [name], self._read_sessions).get(name)

    def _read_sessions(self, names: Sequence[str]) -> dict[str, int]:
        sql = "SELECT id FROM session WHERE space = :space AND name = ?"
        numbers = ((name, self.get(sql, name) or self.get(sql, self.purged_name(name))) for name in names)
        return {name: number for name, number in numbers if number is not None}

    def purged_name(self, session: str) -> str:
        """Return the name that a purge gives to a session."""
        return neutral_session(bytes(self.get("SELECT key FROM home")), session)

    def make_session(self, name: str) -> int:
        """Insert a session if it is new, and return its number."""
        number = self.session(name)
        if number is None:
            self.make_space()
            number = self.next("session")
            self.insert("session", id=number, name=name)
        return number

    def make_due(self, *kinds: str, but: str = "") -> None:
        """Mark the space as due in all queues of these kinds, except the queue `but`.

        The kind of a queue is the first word of its name.
        """
        of_a_kind = " OR ".join(["name || ' ' LIKE ?"] * len(kinds))
        self.run(
            f"INSERT INTO due (space, queue, at, token, until) SELECT :space, name, {NOW}, '', 0 FROM queue"
            f" WHERE ({of_a_kind}) AND name <> ?"
            " ON CONFLICT (space, queue) DO UPDATE SET at = excluded.at WHERE due.at > excluded.at",
            *(f"{kind} %" for kind in kinds),
            but,
        )

    def touch(self, *topics: str, due: Sequence[str] = (), but: str = "") -> None:
        """Record in the change feed that topics of the space changed, and mark the space as due for the scheduler.

        The space is also marked as due in the queues of the kinds `due`, except the queue `but`.
        """
        self.make_due(DISTIL, *due, but=but)
        self.announce(*topics)

    def announce(self, *topics: str) -> None:
        """Record in the change feed that topics of the space changed."""
        following = f"CASE WHEN coalesce(n.last, 0) <= {self.epoch} THEN {self.epoch} ELSE n.last END + 1"
        self.run_rows(  # from the counter as it was before the statement after this one
            f"INSERT INTO change (space, topic, seq) SELECT :space, t.column1, {following} FROM (VALUES {{}}) t"
            " LEFT JOIN number n ON n.space = :space AND n.kind = 'change' WHERE 1 = 1"
            " ON CONFLICT (space, topic) DO UPDATE SET seq = excluded.seq",
            "(?)",
            [(topic,) for topic in dict.fromkeys(topics)],
        )
        self.run(
            f"INSERT INTO number (space, kind, last) VALUES (:space, 'change', {self.epoch} + 1)"
            " ON CONFLICT (space, kind) DO UPDATE"
            " SET last = CASE WHEN number.last < excluded.last THEN excluded.last ELSE number.last + 1 END"
        )


@lru_cache(maxsize=_STATEMENTS)
def _layout(sql: str) -> tuple[str, tuple[bool, ...]]:
    """Return a statement with `?` for every placeholder, and for each whether it represents the number of the space."""
    order: list[bool] = []

    def placeholder(match: re.Match[str]) -> str:
        if match[0].startswith("'"):
            return match[0]
        order.append(match[0] == ":space")
        return "?"

    return _PARAMETER.sub(placeholder, sql), tuple(order)


@lru_cache(maxsize=_STATEMENTS)
def _insert(table: str, columns: tuple[str, ...]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {_values(columns)}"


@lru_cache(maxsize=_STATEMENTS)
def _values(columns: tuple[str, ...]) -> str:
    return f"({', '.join(':space' if column == 'space' else '?' for column in columns)})"


# --- the store --------------------------------------------------------------------------------------


class Engine(Protocol):
    """A store that runs functions of this package in transactions: `store.read(space, turn_rows.by_ids, ids)`.

    `work` is called with a transaction and the other arguments, and its result is returned. A writing transaction is
    committed when `work` returns and rolled back when it raises. `work` may be called again after a transient failure,
    so it must change nothing but the database.
    """

    def read(
        self, space: str, work: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function on the rows of a space. It sees one consistent state and never waits for writers."""
        ...

    def write(
        self, space: str, work: Callable[Concatenate[Transaction, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a function that changes rows of a space. Rows, index entries and files are committed together."""
        ...

    def read_home(self, work: Callable[Concatenate[HomeTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function on the rows of the home."""
        ...

    def in_snapshot(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function, all of whose reads, in this thread, see one consistent state and share a transaction.

        Rows are read once. Writes inside raise NestedCall. `work` may be called again after a transient failure.
        """
        ...

    def outside_snapshot(self) -> AbstractContextManager[None]:
        """Leave this thread's snapshot during the block, and end its transaction; later reads see a newer state.

        Use it for a long wait, as for a model, since the snapshot holds a connection. The block may write.
        """
        ...

    def write_home(self, work: Callable[Concatenate[HomeTransaction, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that changes rows of the home."""
        ...


# --- values -----------------------------------------------------------------------------------------


def to_ms(moment: datetime) -> int:
    """Return a moment with a time zone as whole milliseconds since 1970; earlier moments are negative."""
    return (moment - _EPOCH) // _MILLISECOND


def milliseconds(span: timedelta) -> int:
    return span // _MILLISECOND


def optional_ms(moment: datetime | None) -> int | None:
    return None if moment is None else to_ms(moment)


def from_ms(ms: int) -> datetime:
    """Return a moment, given in milliseconds since 1970, in the time zone of this machine."""
    try:
        moment = _EPOCH + ms * _MILLISECOND
    except OverflowError:  # a row that another program wrote
        return datetime.max.replace(tzinfo=UTC) if ms > 0 else datetime.min.replace(tzinfo=UTC)
    try:
        return moment.astimezone()
    except (OverflowError, OSError, ValueError):  # some systems have no local time for distant years
        return moment


def number_of(id: str, prefix: str) -> int:
    """Return the number in an id: 812 for `t812`. Raises NotFound, whose message shows the form of such ids."""
    stripped = id.strip()
    digits = stripped[len(prefix) :]
    if not (stripped.startswith(prefix) and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise NotFound(f"There is no {one_line(id, 40)!r}. Ids of this kind look like {prefix}12.")
    return int(digits)


def named_rows(numbers: Iterable[int], prefix: str) -> list[str]:
    """Return ids for the numbers of rows: `["t3", "t8"]` for the turns 3 and 8."""
    return [f"{prefix}{number}" for number in numbers]


def numbers_of(ids: Iterable[str], prefix: str) -> list[int]:
    return [number_of(id, prefix) for id in ids]


def marks(values: Sequence[object]) -> str:
    """Return a placeholder for each value: `?, ?, ?`. Without values, return `NULL`, which equals nothing."""
    return ", ".join("?" * len(values)) or "NULL"


_NUMBERED = (
    *("session", "tombstone", "turn", "atom", "entity_name", "work", "draft", "record", "chunk", "saving"),
    *("message_edit", "recall", "feedback"),
)


def counters_behind(tx: Transaction) -> list[str]:
    """Return the tables that have rows with numbers above their counter."""
    return [
        table
        for table in _NUMBERED
        if (tx.get(f"SELECT max(id) FROM {table} WHERE space = :space") or 0) > tx.last(table)
    ]


def catch_up_counters(tx: Transaction) -> None:
    """Set every counter that is behind to the highest number in its table."""
    for table in counters_behind(tx):
        tx.run(
            f"INSERT INTO number (space, kind, last) SELECT space, ?, max(id) FROM {table} WHERE space = :space"
            " GROUP BY space ON CONFLICT (space, kind) DO UPDATE SET last = excluded.last",
            table,
        )
