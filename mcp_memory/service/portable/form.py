"""The format of an export: its layout, its rows as lines of JSON and back, and its pages for people. Pure functions.

    README.md                                 explains all of it
    manifest.json                             {format, version, home, spaces: {name: counts},
                                               members: {path: {bytes, sha256}}}
    spaces/<space>/persona.md
                   scenes/<slug>.md
                   sessions/<session>.md      conversations, for people
                   canvases/NNN-<label>.mmd
                   refs/<file>.md             results of tools: front matter, then their bytes
                   data/<kind>.jsonl          one row per line, for import

Members are sorted by name, the manifest last. Import does not read the pages.

In lines, times are in UTC, times of tasks in the time zone of the task; all have milliseconds, as in the files of a
home. Fields with their default value are left out. Reading a line returns the same row, or raises InvalidInput.
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
from mcp_memory.core.text import iso, one_line, well_formed, with_zone
from mcp_memory.core.types import Scene
from mcp_memory.store import files
from mcp_memory.store.row_types import (
    AtomRow,
    CanvasHistory,
    CitationRow,
    EntityRow,
    FeedbackRow,
    PersonaRow,
    RecordRow,
    RefRow,
    ReviewRow,
    Row,
    SceneRow,
    SessionRow,
    StageRow,
    TombstoneRow,
    TurnRow,
)

FORMAT = "mcp-memory export"
VERSION = 1
MANIFEST = "manifest.json"
README_NAME = "README.md"

KINDS: dict[str, type[Row]] = {
    "refs": RefRow,
    "turns": TurnRow,
    "entities": EntityRow,
    "atoms": AtomRow,
    "held": ReviewRow,
    "feedback": FeedbackRow,
    "records": RecordRow,
    "canvases": CanvasHistory,
    "scenes": SceneRow,
    "persona": PersonaRow,
    "citations": CitationRow,
    "sessions": SessionRow,
    "progress": StageRow,
    "tombstones": TombstoneRow,
}
"""The kinds of files in `data/`, in the order of import; a kind without rows has no file."""

_KIND_OF = {row: kind for kind, row in KINDS.items()}


def kind_of(row: Row) -> str:
    return _KIND_OF[type(row)]


def data_name(space: str, kind: str) -> str:
    return f"spaces/{space}/data/{kind}.jsonl"


README = """\
# A memory, exported by mcp-memory

Everything here is plain text. The Markdown is for you; what a program reads back is under `data/`.

| in `spaces/<space>/` | is |
|---|---|
| `persona.md`, `scenes/` | the knowledge of the memory, as pages |
| `sessions/` | the conversations, a page each |
| `canvases/` | tasks as flowcharts, in Mermaid |
| `refs/` | results of tools: a few lines about each, then its bytes unchanged |
| `data/turns.jsonl` | every message, verbatim, with the SHA-256 that proves it unchanged |
| `data/atoms.jsonl` | statements: the words of the turns they are based on (`evidence`), from when until when they \
are valid, when and from whom they were learned (`learned_at`, `source`), the fact they state, and what replaced them |
| `data/entities.jsonl` | names of people, places and things, with their other names |
| `data/records.jsonl`, `data/canvases.jsonl`, `data/refs.jsonl` | steps of tasks, the history of their canvases, \
and a description of each result |
| `data/scenes.jsonl`, `data/persona.jsonl` | the pages, with their versions |
| `data/citations.jsonl` | which turns and statements cite which results |
| `data/held.jsonl` | rows that wait for review before they are recalled |
| `data/feedback.jsonl` | what you said of rows that agents were given, with hashes of the words of the question |
| `data/sessions.jsonl`, `data/progress.jsonl` | how far each conversation was read for statements, and those told |
| `data/tombstones.jsonl` | forgotten rows: when, why and which, without their words |

Rows have the ids of their home: turn `t12`, statement `a5`, result `r-9f2c1a7b3d4e`, step `003-N4`. Together with
the home in `manifest.json` and the time of learning, the id identifies a row everywhere, so `mcp-memory import` stores
each row once, however often it is imported. `origins` lists where a row was itself imported from.

Forgotten rows are not included, and an import of this file forgets them in the other memory too; `forget` can undo
that there. Also not included: indexes and vectors, which are recomputed, the costs of models, tokens, and logs.

`manifest.json` has the size and SHA-256 of every file, and `unzip -t` and `sha256sum` agree with it. The same memory
gives the same bytes, whenever it is exported.
"""


# --- rows as lines of JSON --------------------------------------------------------------------------


_ZONED = (RefRow, RecordRow)
_MAX_NUMBER = 2**62


def line_of(row: Row) -> bytes:
    """Return the line of a row, with its newline; unpaired surrogates are escaped."""
    return files.json_line(_plain(row))


def row_of(kind: type[Row], line: bytes) -> Row:
    """Return the row of a line. Raises InvalidInput with the reason if the line is not a valid row."""
    try:
        fields_of_line: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidInput("is not JSON") from None
    if not isinstance(fields_of_line, dict):
        raise InvalidInput("is not a JSON object")
    try:
        _check_value(fields_of_line, "it")
        row = _reader(kind).validate_python(fields_of_line)
        _check_times(row)
        return row
    except RecursionError:
        raise InvalidInput("is JSON that cannot be read") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"has {one_line(where, 60) or 'a field'} wrong: {one_line(first['msg'], 120)}") from None


@cache
def _reader(kind: type[Row]) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


@cache
def _exported_fields(kind: Any) -> list[tuple[str, Any]]:
    """Return the names and default values of the fields that are written to a line."""
    return [(field.name, field.default) for field in fields(kind) if not field.metadata]


def _plain(value: Any, *, zoned: bool = False) -> Any:
    match value:
        case None | str() | int() | float():
            return value
        case datetime():
            return iso(value) if zoned else iso(value.astimezone(UTC)).replace("+00:00", "Z")
        case tuple():
            return [_plain(element, zoned=zoned) for element in cast("tuple[Any, ...]", value)]
        case _ if is_dataclass(value):
            row, here = cast("Any", value), isinstance(value, _ZONED)
            return {
                name: _plain(field_value, zoned=here)
                for name, default in _exported_fields(row.__class__)
                if (field_value := getattr(row, name)) != default
            }
        case _:
            return value


def _check_value(value: Any, where: str) -> None:
    """Raise InvalidInput for values that JSON allows and a store cannot keep."""
    match value:
        case str() if not well_formed(value):
            raise InvalidInput(f"has half a character in {where}")
        case bool():
            return
        case int() if abs(value) > _MAX_NUMBER:
            raise InvalidInput(f"has a number in {where} that is too large")
        case float() if not isfinite(value):
            raise InvalidInput(f"has a number in {where} that is not finite")
        case list():
            for element in cast("list[Any]", value):
                _check_value(element, where)
        case dict():
            for key, element in cast("dict[str, Any]", value).items():
                if key != "arguments":  # arguments of a result are kept unchecked
                    _check_value(element, one_line(key, 60) or "a field")
        case _:
            return


def _check_times(row: Any) -> None:
    for name, _ in _exported_fields(row.__class__):
        value = getattr(row, name)
        if isinstance(value, datetime) and value.tzinfo is None:
            raise InvalidInput(f"has a time without its zone in {name}")
        if isinstance(value, datetime):
            try:
                with_zone(value)
            except ValueError:
                raise InvalidInput(f"has a time that is out of range in {name}") from None
        if isinstance(value, tuple):
            for inner in cast("tuple[Any, ...]", value):
                if is_dataclass(inner):
                    _check_times(inner)


# --- rows as pages for people -----------------------------------------------------------------------


def session_head(name: str) -> str:
    return f"# {name}\n"


def turn_section(turn: TurnRow) -> str:
    """Return a turn's section of its session's page."""
    who = f"{turn.role} {turn.name}" if turn.name else turn.role
    at = iso(turn.said_at.astimezone(UTC)).replace("+00:00", "Z")
    return f"\n## {turn.id} · {who} · {at}\n\n{turn.content.rstrip()}\n"


def scene_page(row: SceneRow) -> bytes:
    """Return a scene in the format of its file in the home."""
    return files.scene_file(
        Scene(
            slug=row.slug,
            title=row.title,
            summary=row.summary,
            body=row.body,
            heat=row.heat,
            atoms=row.atoms,
            entities=row.entities,
            version=row.version,
            action=row.action,
            reason=row.reason,
            created=row.created,
            updated=row.at,
        )
    )


def persona_page(row: PersonaRow) -> bytes:
    return (row.text.rstrip() + "\n").encode("utf-8", "backslashreplace")
