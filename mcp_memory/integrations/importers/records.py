"""The records that every format yields, and the fields they share. No I/O.

`session_name` names the session of a client's conversation, for hooks, imports and followers alike.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast, get_args

from mcp_memory.core.secrets.masking import mask_name
from mcp_memory.core.text import one_line, well_formed, with_zone
from mcp_memory.core.types import Role
from mcp_memory.longterm.turns import MAX_TURN_BYTES

Agent = Literal["claude-code", "codex", "gemini"]
AGENTS: tuple[Agent, ...] = get_args(Agent)

_HEX = re.compile(r"[0-9a-f-]{8,}")
_LENGTH = 8


def agent_named(name: str) -> Agent | None:
    """Return the agent of that name, None if there is no such agent."""
    return next((agent for agent in AGENTS if agent == name), None)


def session_name(client: str, id: str) -> str:
    """Return the session of a client's conversation with this id, as `claude-code-3f2a9c1e`; pure and stable.

    The eight characters are the first of a version-4 UUID, the last hex digits of any other hexadecimal id (a version-7
    UUID begins with the time), and otherwise those of the id's SHA-256. White space and case are ignored.
    """
    text = mask_name(id.strip()).lower()
    digits = text.replace("-", "")
    if not _HEX.fullmatch(text) or len(digits) < _LENGTH:
        mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]
    elif len(digits) == 32 and digits[12] == "4":
        mark = digits[:_LENGTH]
    else:
        mark = digits[-_LENGTH:]
    return f"{client}-{mark}"


MAX_ID_CHARS = 200
"""Maximum length of an id of a turn or a call."""

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class SourceValue:
    """A JSON value of a file, or the text of a note; `where` is its line, or the path of the note, for people."""

    value: Any
    where: str
    number: int = 1
    """The number of the value in the file, from 1."""
    path: str = ""
    """The absolute path of the file, with `/` between its parts; of a member, after that of its archive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTurn:
    """A turn of a file; `where` is its place in the file, for people."""

    where: str
    role: Role
    content: str
    """Empty if it has no text."""
    name: str | None = None
    said_at: datetime | None = None
    id: str | None = None
    session: str | None = None
    conversation: int = 0
    """The number of its conversation in the file, from 1; 0 for a single turn."""
    began: datetime | None = None
    """A known time before it: of the start of its conversation, or of the line before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedResult:
    """A tool result of a file. `tool` is empty if its call is missing."""

    where: str
    tool: str
    text: str
    arguments: Any = None
    call: str | None = None
    said_at: datetime | None = None
    whole: str | None = None
    """The name of a file of the conversation with the full result, if `text` is a part."""
    session: str | None = None
    conversation: int = 0
    """The number of its conversation in the file, from 1, if it has no session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedStatement:
    """A statement of another memory. `fact` is (entity, relation, value); `about` are names.

    `id` is the statement's id in that memory, which stays the same when the statement is reworded. The source of the
    statement is always a program and never the user, wherever that program got it from.
    """

    where: str
    text: str
    said_at: datetime | None = None
    id: str | None = None
    fact: tuple[str, str, str] | None = None
    about: tuple[str, ...] = ()
    words: str = ""
    """The original text, if a subject was put before it."""


_VALUES = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportProblem:
    """A record that cannot be imported: its place, and the reason.

    If `torn`, it is the incomplete last line of a file that is still being written.
    """

    where: str
    what: str
    torn: bool = False

    @property
    def kind(self) -> str:
        """The reason without its values, to group problems of the same kind."""
        return _VALUES.sub("…", self.what)

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(kw_only=True)
class SkippedParts:
    """Counts of skipped parts of a file, and the names of skipped fields (`keys`)."""

    formats: set[str] = field(default_factory=set[str])
    """Titles of the formats in which the file's values were read."""

    keys: set[str] = field(default_factory=set[str])
    parts: int = 0
    """Content parts that are not text, such as images."""
    repaired: int = 0
    """Texts with lone surrogates, which were replaced by U+FFFD."""
    misdated: int = 0
    """Times that cannot be read."""
    seen: set[str] = field(default_factory=set[str])
    """Ids of statements that a format yields once for a file."""
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Messages and parts that are not imported, by category, such as tool calls, thoughts or other branches."""
    unread: dict[str, tuple[str, int]] = field(default_factory=dict[str, "tuple[str, int]"])
    """Members of an archive that are of no known format: the first name and the number, by kind."""

    def note_unread(self, kind: str, name: str) -> None:
        first, count = self.unread.get(kind, (name, 0))
        self.unread[kind] = first, count + 1

    def describe_unread(self) -> str:
        """Describe the unread members: the first of each kind, and the number of the others."""
        return ", ".join(
            f"{one_line(name, 80)} ({kind}{f', and {count - 1:,} more' if count > 1 else ''})"
            for kind, (name, count) in self.unread.items()
        )


OTHER_MEMBERS = "values of no known format"
OTHER_TEXTS = "other files of Markdown"
"""The category of texts of unknown format."""


class InvalidRecord(Exception):
    """A field cannot be imported; becomes an ImportProblem."""


def place_inside(where: str, path: str) -> str:
    """Return the place of a part of a value, for people: `line 3, turns[2].messages[0]`."""
    return f"{where}.{path}" if where.endswith("]") else f"{where}, {path}"


def replace_surrogates(text: str | None, skipped: SkippedParts) -> str | None:
    if text is None or well_formed(text):
        return text
    skipped.repaired += 1
    return _SURROGATES.sub("\ufffd", text)


# --- times ------------------------------------------------------------------------------------------

_EPOCH = re.compile(r"\d{9,16}(?:\.\d+)?")
_FIRST_S, _FIRST_MS, _LAST_MS = 1e8, 1e11, 1e14  # 1973 to 5138
_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(thing: Mapping[str, Any], keys: tuple[str, ...], skipped: SkippedParts) -> datetime | None:
    """Parse the first readable time under the keys: ISO 8601, or seconds or milliseconds since 1970.

    None if no time can be read; this is counted if there are unreadable times.
    """
    values = [value for key in keys if (value := thing.get(key)) not in (None, "")]
    time = next((at for value in values if (at := _time(value)) is not None), None)
    skipped.misdated += bool(values) and time is None
    return time


def _time(value: Any) -> datetime | None:
    while (fields := object_of(value)) is not None:  # as MongoDB exports dates
        value = fields.get("$date", fields.get("$numberLong"))
    if isinstance(value, str):
        value = value.strip()
        if _EPOCH.fullmatch(value):
            value = float(value)
    try:
        match value:
            case str():
                return with_zone(datetime.fromisoformat(value))
            case int() | float() if not isinstance(value, bool) and _FIRST_S <= value < _LAST_MS:
                ms = round(value * 1000 if value < _FIRST_MS else value)
                return _1970 + timedelta(milliseconds=ms)  # exact, unlike fractions of seconds
            case _:
                return None
    except ValueError:  # also for a time outside the range of UTC
        return None


# --- values in JSON -------------------------------------------------------------------------


def find(value: Any, path: str) -> Any:
    """Return the value at a dotted path of keys; `value` for an empty path, None if a key is missing."""
    if "." not in path:
        return value if not path else value.get(path) if isinstance(value, dict) else None  # pyright: ignore
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None  # pyright: ignore
    return value  # pyright: ignore


def find_first(value: Any, paths: Iterable[str]) -> Any:
    """Return the first value at these paths that is neither missing nor empty; None if all are."""
    for path in paths:
        field = find(value, path)
        if field or (field is not None and not isinstance(field, str | list | dict)):
            return field
    return None


def object_of(value: object) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def list_of(value: object) -> list[Any] | None:
    return cast("list[Any]", value) if isinstance(value, list) else None


def objects_in(values: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the values that are objects."""
    return [fields for value in values if (fields := object_of(value)) is not None]


def part_of(thing: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object under a key; empty if there is none."""
    return object_of(thing.get(key)) or {}


def items_of(thing: Any, key: str) -> list[Any]:
    """Return the list under a key; empty if there is none."""
    return list_of((object_of(thing) or {}).get(key)) or []


def text_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first of these fields that is a non-blank string."""
    return next((value for key in keys if isinstance(value := thing.get(key), str) and value.strip()), None)


def name_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    text = text_of(thing, *keys)
    return None if text is None else text.strip()


def id_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first of these fields that is a non-blank string, if it can be stored as an id."""
    id = name_of(thing, *keys)
    return id if id and len(id) <= MAX_ID_CHARS and well_formed(id) else None


def storable_text(text: str, skipped: SkippedParts) -> str:
    """Return the text without lone surrogates. Raises InvalidRecord if it is too large."""
    text = replace_surrogates(text, skipped) or ""
    if is_too_large(text):
        raise InvalidRecord(f"is larger than {MAX_TURN_BYTES // 2**20} MiB. Pass over it with --skip-bad.")
    return text


def is_too_large(text: str) -> bool:
    return len(text) > MAX_TURN_BYTES or len(text.encode()) > MAX_TURN_BYTES


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


def quote_value(value: object) -> str:
    return repr(one_line(value, 40)) if isinstance(value, str) else one_line(repr(value), 40)


ROLES: Mapping[str, Role] = {
    "user": "user",
    "human": "user",
    "request": "user",
    "prompt": "user",
    "usermessage": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "response": "assistant",
    "apimessage": "assistant",
    "tool": "tool",
    "function": "tool",
    "tool_result": "tool",
    "toolresult": "tool",
    "computer": "tool",
}
"""Roles by their names in lower case. Those of instructions, such as `system`, are not among them."""
