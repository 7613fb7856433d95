"""Converts the values of rows: between columns of the database, fields of row classes, and lines of JSON.

A row class is a dataclass whose fields are named like columns of its table (`_TABLES` lists them). The form of a column
says how its value is written:

    form          column                   field          line
    Id            number, 12               "t12"          "t12"
    SESSION       number of the session    its name       its name
    TIME          ms since 1970            datetime       ISO 8601
    LOCAL_TIME    ISO 8601                 datetime       ISO 8601
    FLAG          0 or 1                   bool           true or false
    DIGEST        bytes                    hexadecimal    hexadecimal
    JSON          text                     the value      the value

Other columns have the same value everywhere. The journals, records, canvases and tombstones of a home, exports, imports
and rebuilds use this module, so each of these facts is written once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from mcp_memory.core.types import Atom, MaskedPlace, PersonaVersion, Record, Ref, Scene, Spend, Turn
from mcp_memory.store.row_types import (
    AtomRow,
    FactRow,
    FeedbackRow,
    PersonaRow,
    RecordRow,
    RefRow,
    ReviewRow,
    SceneRow,
    SessionRow,
    TombstoneRow,
    TurnRow,
    VersionRow,
)
from mcp_memory.store.sql import quarantine_rows, schema
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, Value, from_ms, to_ms
from mcp_memory.store.values import (
    Feedback,
    FollowedLog,
    Imported,
    MessageEdit,
    NewAtom,
    RecallEntry,
    Saving,
    Token,
    Work,
)

Row = TypeVar("Row")

_TABLES: dict[type, str] = {
    Atom: "atom",
    NewAtom: "atom",
    Feedback: "feedback",
    FollowedLog: "followed",
    Imported: "imported",
    MessageEdit: "message_edit",
    PersonaVersion: "persona",
    RecallEntry: "recall",
    Record: "record",
    Ref: "ref",
    Saving: "saving",
    Scene: "scene",
    Spend: "spend",
    Token: "token",
    Turn: "turn",
    Work: "work",
    AtomRow: "atom",
    FactRow: "fact",
    FeedbackRow: "feedback",
    PersonaRow: "persona",
    RecordRow: "record",
    RefRow: "ref",
    ReviewRow: "held",
    SceneRow: "scene",
    SessionRow: "session",
    TombstoneRow: "tombstone",
    TurnRow: "turn",
    VersionRow: "canvas_version",
}


class Form(NamedTuple):
    """How a value is converted: `column` makes the column of a field, and `field` makes the field of a column.

    NULL becomes `empty`, and None becomes `null`.
    """

    column: Callable[[Any], Value]
    field: Callable[[Any], Any]
    empty: Any = None
    null: Value = None


def exact_number(prefix: str, id: str) -> int:
    """Return the number in an id: 12 for `t12`. Raises ValueError or TypeError for any other value.

    `transaction.number_of` is for ids that people and agents give.
    """
    if not re.fullmatch(rf"{prefix}\d{{1,18}}", id, re.ASCII):
        raise ValueError(f"{id!r} does not look like {prefix}12")
    return int(id[1:])


def _id_of(prefix: str, number: int) -> str:
    return f"{prefix}{number}"


def _id(prefix: str) -> Form:
    return Form(partial(exact_number, prefix), partial(_id_of, prefix))


def _same(value: Any) -> Any:
    return value


def _hexadecimal(digest: Any) -> str:
    return bytes(digest).hex()


def _list_of(text: str) -> tuple[Any, ...]:
    return tuple(json.loads(text))


def _places(text: str) -> tuple[MaskedPlace, ...]:
    return tuple(MaskedPlace(*place) for place in json.loads(text))


def _texts_by_part(text: str) -> dict[int, str]:
    return {int(part): value for part, value in json.loads(text).items()}


def _json_unless_empty(value: Any) -> str | None:
    return json.dumps(value) if value else None


_PLAIN = Form(_same, _same)
_SESSION = Form(_same, _same)
_TIME = Form(to_ms, from_ms)
_LOCAL_TIME = Form(datetime.isoformat, datetime.fromisoformat)
_FLAG = Form(_same, bool)
_DIGEST = Form(bytes.fromhex, _hexadecimal)
_JSON = Form(json.dumps, json.loads)
_JSON_VALUE = Form(json.dumps, json.loads, null="null")
_LIST = Form(partial(json.dumps, ensure_ascii=False), _list_of)
_REASONS = Form(json.dumps, _list_of, empty=())
_PLACES = Form(_json_unless_empty, _places, empty=())

_FORMS: dict[str, dict[str, Form]] = {
    "atom": {
        "id": _id("a"),
        "valid_from": _TIME,
        "valid_to": _TIME,
        "learned_at": _TIME,
        "superseded_by": _id("a"),
        "by_model": _FLAG,
        "held": _REASONS,
        "doubts": _REASONS,
        "is_sentence": _FLAG,
    },
    "canvas_version": {
        "session": _SESSION,
        "folded": _FLAG,
        "updated": _TIME,
        "work": _id("w"),
        "by_model": _FLAG,
    },
    "fact": {"single_valued": _FLAG},
    "feedback": {"words": _LIST, "at": _TIME, "undone_at": _TIME},
    "followed": {"at": _TIME},
    "held": {"at": _TIME, "reviewed_at": _TIME},
    "imported": {"at": _TIME},
    "message_edit": {"texts": Form(json.dumps, _texts_by_part), "refs": _LIST},
    "persona": {"at": _TIME, "by_model": _FLAG, "reason": Form(_same, _same, empty="")},
    "recall": {"at": _TIME, "ids": _LIST, "words": Form(_json_unless_empty, _list_of, empty=())},
    "record": {"id": _id("k"), "session": _SESSION, "timestamp": _LOCAL_TIME, "forgotten": _FLAG},
    "ref": {"arguments": _JSON_VALUE, "timestamp": _LOCAL_TIME, "masked": _PLACES},
    "saving": {"at": _TIME},
    "scene": {
        "atoms": _LIST,
        "entities": _LIST,
        "created": _TIME,
        "at": _TIME,
        "updated": _TIME,
        "by_model": _FLAG,
    },
    "session": {"project": _PLAIN, "client": _PLAIN},
    "spend": {"at": _TIME},
    "token": {"spaces": _LIST, "at": _TIME, "until": _TIME, "used_at": _TIME, "revoked_at": _TIME},
    "tombstone": {"id": _id("x"), "at": _TIME, "undone_at": _TIME, "purged_at": _TIME},
    "turn": {
        "id": _id("t"),
        "session": _SESSION,
        "said_at": _TIME,
        "dated": _FLAG,
        "learned_at": _TIME,
        "sha256": _DIGEST,
        "told": _JSON,
        "reasons": _REASONS,
    },
    "work": {
        "id": _id("w"),
        "session": _SESSION,
        "until": _TIME,
        "at": _TIME,
        "done_at": _TIME,
        "outcome": _JSON,
    },
}
_COLUMN_OF = {
    ("followed", "offset"): "upto",
    ("record", "node_id"): "node",
    ("ref", "file"): "path",
    ("ref", "size"): "bytes",
    ("scene", "updated"): "at",
    ("session", "canvas"): "active_canvas",
    ("token", "right"): "rights",
}
"""Fields that are not named like their columns."""

_LISTS = {("atom", "evidence")}
"""Fields with rows of another table, although a column has their name."""

_DERIVED = {
    ("atom", "by_model"): "r.work IS NOT NULL",
    ("atom", "held"): quarantine_rows.OF_ATOM,
    ("atom", "doubts"): quarantine_rows.DOUBTS_OF_ATOM,
    ("atom", "is_sentence"): "r.reader IS NOT NULL",
    ("canvas_version", "by_model"): "r.work IS NOT NULL",
    ("persona", "by_model"): "r.work IS NOT NULL",
    ("record", "forgotten"): "EXISTS (SELECT 1 FROM ref g WHERE g.space = r.space AND g.id = r.ref"
    " AND g.tombstone IS NOT NULL)",
    ("scene", "by_model"): "r.work IS NOT NULL",
    ("session", "project"): "r.project",
    ("session", "client"): "r.client",
    ("turn", "reasons"): "(SELECT h.reasons FROM held h WHERE h.space = r.space AND h.id = 't' || r.id"
    f" AND h.reasons <> {quarantine_rows.ONLY_UNJUDGED})",
}
"""Fields that are read from the database and never written from a line."""


class Column(NamedTuple):
    """A field, the column that stores it, and the form of its values."""

    field: str
    name: str
    form: Form


@cache
def stored_columns(kind: type) -> tuple[Column, ...]:
    """Return the columns that store fields of a row class."""
    table = _TABLES[kind]
    columns = (
        Column(field.name, _COLUMN_OF.get((table, field.name), field.name), _FORMS[table].get(field.name, _PLAIN))
        for field in fields(kind)
        if (table, field.name) not in _DERIVED and (table, field.name) not in _LISTS
    )
    return tuple(column for column in columns if column.name in schema.table(table).columns)


@cache
def _read_columns(kind: type) -> tuple[Column, ...]:
    table, names = _TABLES[kind], {field.name for field in fields(kind)}
    derived = (
        Column(field, sql, _FORMS[table][field])
        for (of, field), sql in _DERIVED.items()
        if of == table and field in names
    )
    return (*stored_columns(kind), *derived)


@cache
def columns(kind: type) -> str:
    """Return the columns to select for a row class, of its table `r` and, for the name of a session, `s`."""
    stored = stored_columns(kind)
    names = (
        "s.name" if column.form is _SESSION else f"r.{column.name}" if column in stored else column.name
        for column in _read_columns(kind)
    )
    return ", ".join(names)


@cache
def tables(kind: type) -> str:
    """Return `FROM` with the tables of a row class, and `WHERE` with the condition on the space, if it has one."""
    table = _TABLES[kind]
    session = "LEFT JOIN session s ON s.space = r.space AND s.id = r.session" if "s.name" in columns(kind) else ""
    space = "r.space = :space AND " if "space" in schema.table(table).columns else ""
    return f"FROM {table} r {session} WHERE {space}"


def fields_of(kind: type, row: Sequence[Any]) -> dict[str, Any]:
    """Return the fields of a row class from a row of its `columns`; fields that are not in the table are missing."""
    names, converted = _read_plan(kind)
    fields = dict(zip(names, row, strict=True))
    for name, form in converted:
        value = fields[name]
        fields[name] = form.empty if value is None else form.field(value)
    return fields


@cache
def _read_plan(kind: type) -> tuple[Sequence[str], Sequence[tuple[str, Form]]]:
    """Return the fields of the columns to read, and those of them whose values are converted."""
    read = _read_columns(kind)
    return [column.field for column in read], [(column.field, column.form) for column in read if column.form != _PLAIN]


def read(tx: HomeTransaction, kind: type, which: str, *values: Value) -> Iterator[dict[str, Any]]:
    """Yield the fields of rows, as `fields_of` returns them.

    `which` is an SQL condition on the row `r`, which may end with ORDER BY and LIMIT.
    """
    for row in tx.each(f"SELECT {columns(kind)} {tables(kind)}{which}", *values):
        yield fields_of(kind, row)


def rows(tx: HomeTransaction, kind: type[Row], which: str, *values: Value, **others: Any) -> Iterator[Row]:
    """Yield the rows that `read` reads, as objects of their class. `others` are fields that no column has."""
    for row in read(tx, kind, which, *values):
        yield kind(**row, **others)


def is_moment(column: Column) -> bool:
    return column.form in (_TIME, _LOCAL_TIME)


def has_zone(column: Column) -> bool:
    """Return whether a column has a moment with its time zone."""
    return column.form is _LOCAL_TIME


def table_of(row: object) -> schema.Table:
    return schema.table(_TABLES[type(row)])


def values_of(row: object) -> dict[str, Value]:
    """Return the columns of a row with their values. The column `session` has the name of the session.

    Raises ValueError, TypeError or OverflowError for a value that no row can have.
    """
    values = dict[str, Value]()
    for field, column, form in stored_columns(type(row)):
        value = getattr(row, field)
        values[column] = form.null if value is None else form.column(value)
    return values


def columns_of(tx: Transaction, row: object) -> dict[str, Value]:
    """Insert the session of a row if it is new, and return the columns of the row with their values."""
    values = values_of(row)
    if any(form is _SESSION for _, _, form in stored_columns(type(row))):
        values["session"] = tx.make_session(str(values["session"]))
    return values
