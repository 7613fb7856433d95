"""The lines of the line files of a home: journals, records, versions of canvases, sessions, and tombstones.

Each line describes a row as it was when the line was written; of lines about the same row, the last counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_memory.core.text import iso
from mcp_memory.core.types import NewTurn
from mcp_memory.store import deltas, files
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.row_types import RecordRow, RefRow, SessionRow, TombstoneRow, TurnRow, VersionRow
from mcp_memory.store.sql.row_codec import Column, has_zone, is_moment, stored_columns, values_of

if TYPE_CHECKING:
    from pydantic import TypeAdapter

LineRow = TurnRow | RecordRow | VersionRow | SessionRow | TombstoneRow | RefRow
"""The rows that files of a home describe."""


class LineForm(NamedTuple):
    """The form of a line.

    `fields` maps the names in the line, in order, to the fields of the row; `constant` has parts that are the same in
    all lines. Names in `optional` are left out if their field is None or an empty tuple. Fields in `raw` are written
    like their columns, fields in `parsed` like the JSON that they contain. `defaults` are the values of required fields
    that a line may lack.
    """

    kind: type[LineRow]
    fields: Mapping[str, str]
    constant: Mapping[str, Any] = {}
    optional: frozenset[str] = frozenset()
    raw: frozenset[str] = frozenset()
    parsed: frozenset[str] = frozenset()
    defaults: Mapping[str, Any] = {}


def _fields(names: str, **renamed: str) -> dict[str, str]:
    """Map the names in a line to fields, which have the same names except those in `renamed`."""
    return {name: renamed.get(name, name) for name in names.split()}


LINES = {
    "turns": LineForm(
        TurnRow,
        _fields(
            "turn session position role name content said_at learned_at client_id sha256 told held",
            turn="id",
            held="reasons",
        ),
        optional=frozenset({"name", "client_id", "told", "held"}),
        defaults={"dated": False, "name": None, "client_id": None},
    ),
    "records": LineForm(
        RecordRow,
        _fields(
            "timestamp node_id tool_call summary result_ref tool_call_id offloaded session score tokens_raw tokens_kept"
            " ref summary_by record step",
            record="id",
        ),
        constant={"offloaded": True},
        raw=frozenset({"id"}),
        defaults={"canvas": 0},
    ),
    "versions of canvases": LineForm(
        VersionRow,
        _fields("canvas label of version updated status folded kind detail work crc delta", of="session"),
        raw=frozenset({"updated", "folded"}),
        parsed=frozenset({"delta"}),
        defaults={"by_model": False},
    ),
    "tombstones": LineForm(
        TombstoneRow,
        _fields("tombstone at reason how ids undone_at purged_at digests", tombstone="id"),
        defaults={"gone": ()},
    ),
    "sessions": LineForm(
        SessionRow,
        _fields("session active activated", session="name", active="canvas", activated="activated_at"),
        defaults={"read": None, "batches": 0, "scene": None},
    ),
}
"""The forms of lines by the name of their kind, as people see it."""

_KIND_BY_NAME = {"turn": "turns", "record": "records", "canvas": "versions of canvases", "tombstone": "tombstones"}
"""The kind of a line by the field that identifies its row. A line with none of these fields is about a session."""

_RESULT = LineForm(
    RefRow,
    _fields(
        "ref tool arguments tool_call_id session timestamp bytes sha256 content_type masked", ref="id", bytes="size"
    ),
    optional=frozenset({"masked"}),
)
"""The form of the front matter of the file of a result."""

_FORM_OF = {form.kind: form for form in LINES.values()}


def key_of(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of row that a line describes, and the name of the row as it is shown to people.

    Raises KeyError if the line lacks the fields that identify a row.
    """
    name = next((name for name in _KIND_BY_NAME if name in fields), "session")
    kind, shown = _KIND_BY_NAME.get(name, "sessions"), str(fields[name])
    if name == "canvas":
        return kind, f"version {fields['version']} of canvas {shown}"
    return kind, shown if name in ("turn", "tombstone", "session") else f"{name} {shown}"


def is_idle(fields: Mapping[str, Any]) -> bool:
    """Return whether a line means that a session never had an active canvas. No row corresponds to such a line."""
    return "active" in fields and fields["active"] is None and fields.get("activated") is None


def line_of(row: LineRow) -> bytes:
    """Return the line of a row. Times are in UTC, so that the line does not depend on the time zone of the machine."""
    form = _FORM_OF[type(row)]
    return files.json_line(_values(row, form))


def _values(row: LineRow, form: LineForm) -> dict[str, Any]:
    columns, values = _columns(form.kind), dict[str, Any]()
    for name, field in form.fields.items():
        value = form.constant[name] if name in form.constant else getattr(row, field)
        if name in form.optional and value in (None, ()):
            continue
        if value is not None and field in form.raw:
            value = columns[field].form.column(value)
        elif value is not None and field in form.parsed:
            value = json.loads(value)
        elif isinstance(value, datetime):
            value = iso(value if has_zone(columns[field]) else value.astimezone(UTC))
        values[name] = value
    return values


@cache
def _columns(kind: type) -> dict[str, Column]:
    return {column.field: column for column in stored_columns(kind)}


# --- reading ----------------------------------------------------------------------------------------


def row_of(fields: Mapping[str, Any]) -> LineRow:
    """Return the row that a line describes.

    Raises KeyError, TypeError, ValueError or OverflowError if the line is damaged.
    """
    row = _parse(LINES[key_of(fields)[0]], fields)
    match row:
        case TurnRow():
            return replace(row, dated=_is_dated(row))
        case RecordRow():
            return replace(row, canvas=int(row.node_id.partition("-")[0]))
        case TombstoneRow():
            return replace(row, digests=tuple(bytes.fromhex(digest).hex() for digest in row.digests))
        case _:
            return row


def result_of(fields: Mapping[str, Any], path: str) -> RefRow:
    """Return the row of a result from the front matter of its file at this path. Raises the errors of `row_of`."""
    return _parse(_RESULT._replace(defaults={"file": path}), fields)


def _parse(form: LineForm, fields: Mapping[str, Any]) -> Any:
    values, columns = dict(form.defaults), _columns(form.kind)
    for name, field in form.fields.items():
        if name in form.constant or (name in form.optional and name not in fields):
            continue
        value = fields[name]
        if value is not None and field in form.raw:
            value = columns[field].form.field(value)
        elif value is not None and field in form.parsed:
            value = deltas.as_json(value)
        elif value is not None and field in columns and is_moment(columns[field]):
            value = datetime.fromisoformat(value)  # pydantic also accepts numbers
        values[field] = value
    row = _validator(form.kind).validate_python(values)
    for value in values_of(row).values():
        if isinstance(value, int) and abs(value) >= 2**63:
            raise OverflowError(f"{value} is too large")
    return row


@cache
def _validator(kind: type) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _is_dated(row: TurnRow) -> bool:
    """Return whether the hash of a turn includes its time.

    Raises ValueError if the hash is neither that of the turn with its time nor that of the turn without it.
    """
    new = NewTurn(role=row.role, name=row.name, content=row.content)
    digest = bytes.fromhex(row.sha256)
    is_dated = evidence_hash(replace(new, said_at=row.said_at)) == digest
    if new.content and not is_dated and evidence_hash(new) != digest:  # a purged turn has only its hash left
        raise ValueError(f"{row.id} does not match its hash")
    return is_dated
