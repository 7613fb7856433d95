"""The nouns of every format, and how fields that formats share are read. No I/O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from mcp_memory.core.text import one_line, well_formed, zoned
from mcp_memory.core.types import Role

__all__ = [
    "LONGEST_ID",
    "Passed",
    "Result",
    "Statement",
    "Told",
    "Unfit",
    "Wrong",
    "inside",
    "kind_of",
    "list_of",
    "mended",
    "moment",
    "object_of",
    "shown",
]

LONGEST_ID = 200
"""Characters. What is longer is no id of a turn or a call."""

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A turn as its file tells it."""

    where: str
    role: Role
    content: str
    """Empty where it has no text."""
    name: str | None
    said_at: datetime | None
    id: str | None
    session: str | None
    conversation: int = 0
    """Which object of the file it was told in, counted from 1; 0 for a turn on its own."""
    began: datetime | None = None
    """A time near it, where that is told: when its conversation began, or when the line before was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a tool answered, as its file tells it. `tool` is empty where the call is not there."""

    where: str
    tool: str
    arguments: Any
    call: str | None
    text: str
    said_at: datetime | None
    whole: str | None = None
    """The name of a file of the same conversation with all of it, where `text` is a part."""
    session: str | None = None
    """Where it belongs, in a file of many conversations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What another memory holds to be true. `fact` is (entity, relation, value); `about` are names.

    `id` is what that memory calls it, for as long as it says the same thing in other words. It is a program's word,
    whoever it heard it from.
    """

    where: str
    text: str
    said_at: datetime | None = None
    id: str | None = None
    fact: tuple[str, str, str] | None = None
    about: tuple[str, ...] = ()
    words: str = ""
    """The text as that memory has it, where a subject was put before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """What cannot be taken, where, and what to do. `torn`: the last line of a file that is still being written."""

    where: str
    what: str
    torn: bool = False

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(kw_only=True)
class Passed:
    """What was passed over in the objects of a file."""

    keys: set[str] = field(default_factory=set[str])
    parts: int = 0
    """Parts of contents that are no text: images, calls of tools."""
    mended: int = 0
    """Texts with half a character, which stands as U+FFFD now."""
    misdated: int = 0
    """Times that cannot be read."""
    left: Counter[str] = field(default_factory=Counter[str])
    """What is no part of the talk, by what it is: how many calls of tools, thoughts, messages on other branches."""


class Unfit(Exception):
    """Why a field cannot be taken; becomes a Wrong."""


def inside(where: str, path: str) -> str:
    """Return the place of what stands in a value, for people: `line 3, turns[2].messages[0]`."""
    return f"{where}.{path}" if where.endswith("]") else f"{where}, {path}"


def mended(text: str | None, passed: Passed) -> str | None:
    if text is None or well_formed(text):
        return text
    passed.mended += 1
    return _SURROGATES.sub("\ufffd", text)


# --- times ------------------------------------------------------------------------------------------

_EPOCH = re.compile(r"\d{9,16}(?:\.\d+)?")
_FIRST_S, _FIRST_MS, _LAST_MS = 1e8, 1e11, 1e14  # 1973 to 5138
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def moment(thing: Mapping[str, Any], keys: tuple[str, ...], passed: Passed) -> datetime | None:
    """Return the time under the first of the keys that holds one: ISO 8601, or seconds or milliseconds since 1970.

    None where none does, which is counted where something else stands there: a turn is not lost for its time.
    """
    given = [value for key in keys if (value := thing.get(key)) not in (None, "")]
    found = next((at for value in given if (at := _time(value)) is not None), None)
    passed.misdated += bool(given) and found is None
    return found


def _time(value: Any) -> datetime | None:
    if isinstance(value, str):
        value = value.strip()
        if _EPOCH.fullmatch(value):
            value = float(value)
    try:
        match value:
            case str():
                return zoned(datetime.fromisoformat(value))
            case int() | float() if not isinstance(value, bool) and _FIRST_S <= value < _LAST_MS:
                ms = round(value * 1000 if value < _FIRST_MS else value)
                return _1970 + timedelta(milliseconds=ms)  # exact, where fractions of seconds are not
            case _:
                return None
    except ValueError:  # also of one that UTC does not have
        return None


# --- what JSON holds ------------------------------------------------------------------------


def object_of(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def list_of(value: object) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


def kind_of(value: object) -> str:
    match value:
        case None:
            return "missing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "an object"


def shown(value: object) -> str:
    return repr(one_line(value, 40)) if isinstance(value, str) else one_line(repr(value), 40)
