"""Finds values of rows that cannot be read: times, JSON and names changed by another program or by a fault.

SQLite checks only whether a value is a number or text; the required form of each text column is defined here. Readers
parse without checks; when a reader fails, this module finds the row at fault, if any.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, cast, get_args

import apsw

from mcp_memory.core.rights import Right
from mcp_memory.core.text import one_line
from mcp_memory.store.citations import cited_atoms
from mcp_memory.store.sql.canvas_rows import groups_of
from mcp_memory.store.sql.copies import is_line_file
from mcp_memory.store.sqlite.index import vector_blocks

WRONG = (
    *(AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError),
    *(apsw.ConstraintError, apsw.MismatchError),
)
"""Errors that a reader raises on a damaged value."""
NEXT_STEP = (
    "It was changed outside this program. `mcp-memory doctor --repair` rebuilds the database from its files, keeps "
    "this file, and lists the values that no file has."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A value that cannot be read. Its row is found by the SQL condition `key` with the parameters `values`."""

    table: str
    column: str
    key: str
    values: tuple[Any, ...]

    @property
    def is_derived(self) -> bool:
        """Whether the value can be derived from other values."""
        return (self.table, self.column) in _DERIVED

    def __str__(self) -> str:
        of_space = self.key.startswith("space = ")
        which = " of ".join(one_line(str(value), 100) for value in reversed(self.values[of_space:]))
        which += f" of space {self.values[0]}" if of_space else ""
        return f"The {self.column} of row {which} in the table {self.table} cannot be read."


@dataclass(frozen=True, slots=True)
class _Form:
    """The required form of a column: `read` raises an error of WRONG for any other value.

    `instead` is an SQL expression that replaces such a value; if None, its row is deleted.
    """

    read: Callable[[Any], object]
    instead: str | None = None


def _json_reader(kind: type, each: type = object) -> Callable[[Any], object]:
    """Return a reader of JSON of type `kind`; the elements of a list have to be of type `each`."""

    def read(text: str) -> object:
        value: Any = json.loads(text)
        elements = cast("list[Any]", value) if isinstance(value, list) else list[Any]()
        if not isinstance(value, kind) or not all(isinstance(element, each) for element in elements):
            raise ValueError
        return value  # pyright: ignore[reportUnknownVariableType]

    return read


def _atoms(text: str) -> None:
    for id in json.loads(text):
        int(id.removeprefix("a"))


def _right(text: str) -> None:
    if text not in get_args(Right):
        raise ValueError


def _file_name(text: str) -> None:
    if not text or "\0" in text:
        raise ValueError


def _path(text: str) -> None:
    if not is_line_file(text) or "\0" in text:
        raise ValueError


_ENTITIES = (
    "(SELECT json_group_array(name ORDER BY many DESC, id) FROM (SELECT n.name, n.id, count(*) AS many"
    " FROM json_each(cited(body)) c JOIN mention m ON m.space = scene.space"
    " AND m.atom = CAST(substr(c.value, 2) AS INTEGER)"
    " JOIN entity_name n ON n.space = m.space AND n.id = m.entity WHERE n.key <> 'user' GROUP BY n.id))"
)
"""The names of the entities that the statements cited by a scene are about, most often mentioned first."""
_DERIVED = {("scene", "atoms"), ("scene", "entities"), ("vector_index", "id"), ("file", "path")}

_FORMS: dict[str, dict[str, _Form]] = {
    "turn": {"told": _Form(_json_reader(dict), "NULL")},
    "ref": {
        "arguments": _Form(json.loads, "'null'"),
        "timestamp": _Form(datetime.fromisoformat),
        "masked": _Form(_json_reader(list, list), "NULL"),
    },
    "record": {"timestamp": _Form(datetime.fromisoformat), "step": _Form(_json_reader(dict), "NULL")},
    "canvas": {"label": _Form(_file_name, "cleaned(label)"), "groups": _Form(groups_of, "'{}'")},
    "canvas_version": {"label": _Form(_file_name, "cleaned(label)"), "delta": _Form(json.loads, "NULL")},
    "tombstone": {"took": _Form(_json_reader(dict), "NULL")},
    # Without a row, a space and a session are known by the journals that name them.
    "space": {"name": _Form(_file_name)},
    "session": {"name": _Form(_file_name)},
    "scene": {
        "slug": _Form(_file_name, "cleaned(slug)"),
        "atoms": _Form(_atoms, "cited(body)"),
        "entities": _Form(_json_reader(list, str), _ENTITIES),
    },
    "work": {"basis": _Form(_json_reader(dict), "'{}'"), "outcome": _Form(_json_reader(dict), "'{}'")},
    "draft": {"atom": _Form(_json_reader(dict))},
    "held": {"reasons": _Form(_json_reader(list, str), "'[]'")},
    "token": {"spaces": _Form(_json_reader(list, str)), "rights": _Form(_right)},
    "message_edit": {"texts": _Form(_json_reader(dict)), "refs": _Form(_json_reader(list, str))},
    "recall": {
        "ids": _Form(_json_reader(list, str), "'[]'"),
        "words": _Form(_json_reader(list, str), "NULL"),
    },
    "feedback": {"words": _Form(_json_reader(list, str), "'[]'")},
    "followed": {"state": _Form(json.loads)},
    "file": {"path": _Form(_path)},
}


def unreadable_values(con: apsw.Connection) -> Iterator[Unreadable]:
    """Yield every value that its reader cannot read. Reads all rows."""
    for table, forms in _FORMS.items():
        keys = _key(con, table)
        columns = ", ".join((*keys, *forms))
        for row in con.execute(f"SELECT {columns} FROM {table}"):
            for (column, form), value in zip(forms.items(), row[len(keys) :], strict=True):
                try:
                    if value is not None:
                        form.read(value)
                except WRONG:
                    condition = " AND ".join(f"{key} = ?" for key in keys)
                    yield Unreadable(table=table, column=column, key=condition, values=row[: len(keys)])
    vector_indexes: Any = con.execute("SELECT id, dimensions FROM vector_index").fetchall()
    for index, dimensions in vector_indexes:
        made = "SELECT count(*) = 2 FROM main.sqlite_master WHERE name IN (?, ?) AND instr(sql, ?)"
        if not con.execute(made, (f"turn_vec_{index}", f"atom_vec_{index}", vector_blocks.size_check(dimensions))).get:
            yield Unreadable(table="vector_index", column="id", key="id = ?", values=(index,))


def leave_out(con: apsw.Connection) -> list[Unreadable]:
    """Replace unreadable values in a copy of a database, or delete their rows; return the values.

    A rebuild then takes most of these values from the files.
    """
    con.create_scalar_function("cited", _cited_json, 1, deterministic=True)
    con.create_scalar_function("cleaned", _unique_file_name, 1, deterministic=True)
    damaged = list(unreadable_values(con))
    if damaged:
        con.execute("DROP TRIGGER IF EXISTS turn_is_evidence")
    for value in damaged:
        instead = _FORMS[value.table][value.column].instead if value.table in _FORMS else None
        what = (
            f"DELETE FROM {value.table}" if instead is None else f"UPDATE {value.table} SET {value.column} = {instead}"
        )
        con.execute(f"{what} WHERE {value.key}", value.values)
    return damaged


def _cited_json(*body: Any) -> str:
    return json.dumps(cited_atoms(str(body[0])))


def _unique_file_name(*name: Any) -> str:
    """Return a valid file name for an invalid name, with a digest so that no other row has it."""
    text = str(name[0])
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{one_line(text, 80).replace(' ', '-')}-{digest}"


def _key(con: apsw.Connection, table: str) -> list[str]:
    rows = con.execute("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", (table,))
    return [str(name) for (name,) in rows]
