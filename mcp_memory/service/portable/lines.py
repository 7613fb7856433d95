"""Export rows as lines of JSON, and the other way.

Times are in UTC, those of tasks in the zone in which they were noted; all are in milliseconds, as in the files of a
home. Fields with their default value are left out. Reading a line returns the same row, or refuses it in a sentence.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import iso, one_line, well_formed, zoned
from mcp_memory.store import export_model as model
from mcp_memory.store import files

__all__ = ["line_of", "row_of"]

_ZONED = (model.ExportedRef, model.ExportedRecord)
_MOST = 2**62


def line_of(row: model.ExportedRow) -> bytes:
    """Return the line of a row, with its end; half characters are escaped."""
    return files.json_line(_plain(row))


def row_of(kind: type[model.ExportedRow], line: bytes) -> model.ExportedRow:
    """Return the row of a line. Raises InvalidInput with the reason."""
    try:
        found: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidInput("is not JSON") from None
    if not isinstance(found, dict):
        raise InvalidInput("is no JSON object")
    try:
        _must_be_sound(found, "it")
        row = _reader(kind).validate_python(found)
        _must_be_aware(row)
        return row
    except RecursionError:
        raise InvalidInput("is JSON that cannot be read") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"has {one_line(where, 60) or 'a field'} wrong: {one_line(first['msg'], 120)}") from None


@cache
def _reader(kind: type[model.ExportedRow]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _told(kind: Any) -> list[tuple[str, Any]]:
    """Return the fields of a row that a line has, each with the value at which it is left out."""
    return [(one.name, one.default) for one in fields(kind) if one.name != "data"]


def _plain(value: Any, *, zoned: bool = False) -> Any:
    match value:
        case None | str() | int() | float():
            return value
        case datetime():
            return iso(value) if zoned else iso(value.astimezone(UTC)).replace("+00:00", "Z")
        case tuple():
            return [_plain(one, zoned=zoned) for one in cast("tuple[Any, ...]", value)]
        case _ if is_dataclass(value):
            row, here = cast("Any", value), isinstance(value, _ZONED)
            return {
                name: _plain(held, zoned=here)
                for name, default in _told(row.__class__)
                if (held := getattr(row, name)) != default
            }
        case _:
            return value


def _must_be_sound(value: Any, where: str) -> None:
    """Raise InvalidInput for what JSON can say and a store cannot keep."""
    match value:
        case str() if not well_formed(value):
            raise InvalidInput(f"has half a character in {where}")
        case bool():
            return
        case int() if abs(value) > _MOST:
            raise InvalidInput(f"has a number in {where} that is too large")
        case float() if not isfinite(value):
            raise InvalidInput(f"has a number in {where} that is none")
        case list():
            for one in cast("list[Any]", value):
                _must_be_sound(one, where)
        case dict():
            for key, one in cast("dict[str, Any]", value).items():
                if key != "arguments":  # of a result: kept whatever they hold
                    _must_be_sound(one, one_line(key, 60) or "a field")
        case _:
            return


def _must_be_aware(row: Any) -> None:
    for name, _ in _told(row.__class__):
        held = getattr(row, name)
        if isinstance(held, datetime) and held.tzinfo is None:
            raise InvalidInput(f"has a time without its zone in {name}")
        if isinstance(held, datetime):
            try:
                zoned(held)
            except ValueError:
                raise InvalidInput(f"has a time that is out of range in {name}") from None
        if isinstance(held, tuple):
            for inner in cast("tuple[Any, ...]", held):
                if is_dataclass(inner):
                    _must_be_aware(inner)
