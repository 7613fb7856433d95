"""The first pass over a file: is all of it right, and what would be stored? Nothing is.

`turns` is what both passes read by, so that the second stores exactly what the first has seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.secrets import holds_key, mask
from mcp_memory.core.text import is_blank, safe_name
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.cost import Size
from mcp_memory.integrations.importers.formats import (
    basic_memory,
    chatgpt,
    claude_ai,
    generic,
    mem0,
    memory_server,
    mempalace,
)
from mcp_memory.integrations.importers.formats.exports import OWN
from mcp_memory.integrations.importers.formats.told import Passed, Result, Statement, Told, Wrong
from mcp_memory.integrations.importers.placing import STEP, Places
from mcp_memory.integrations.importers.reader import At, Layout, Source, Value, layout, remarks, values
from mcp_memory.integrations.importers.results import worth

__all__ = ["STDIN", "Asked", "Survey", "default_session", "start", "survey", "turns"]

STDIN = "-"
Format = Literal["auto", "jsonl", "seed", "chatgpt", "claude-ai", "memory-server", "mem0", "basic-memory", "mempalace"]
_SHOWN = 20
"""Wrong places that are kept to be shown."""
_ENOUGH = 10_000
"""Wrong places after which a file is not read on: none of it will be stored, and it may be no history at all."""
Anything = Told | Result | Statement | Wrong
_ENDINGS = re.compile(r"(\.(jsonl|ndjson|json|txt|zip))?(\.gz)?$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for. `session` is where turns belong that name none; without it, the file's name."""

    session: str | None = None
    format: Format = "auto"
    skip_bad: bool = False
    again: bool = False
    """Read files, too, that were read before."""


@dataclass(kw_only=True)
class Survey:
    """What a file holds."""

    layout: Layout
    turns: int = 0
    sessions: int = 0
    statements: int = 0
    """What another memory held to be true."""
    undated: int = 0
    """Turns without a time."""
    without_text: int = 0
    kept: int = 0
    """Results of tools that are large enough to be kept; the `small` ones are not."""
    small: int = 0
    first: datetime | None = None
    last: datetime | None = None
    """Of the times that are told."""
    bad: int = 0
    wrong: list[Wrong] = field(default_factory=list[Wrong])
    """The first of the bad ones."""
    torn: Wrong | None = None
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    passed: Passed = field(default_factory=Passed)
    remarks: list[str] = field(default_factory=list[str])
    """What is passed over in the file as a whole."""


def survey(source: Source, asked: Asked, *, at: At, size: Size | None = None) -> Survey:
    """Read all of a file. What is wrong is counted, and told by its place; `size` is added to."""
    seen = _layout(source, asked)
    found = Survey(layout=seen, remarks=remarks(source, seen))
    places = Places(default=default_session(source, asked), start=start(source, 0))
    for one in turns(source, asked, found.layout, passed=found.passed, at=at):
        match one:
            case Told():
                _count(found, one, places.place(one), size)
            case Result():
                match worth(one):
                    case "large":
                        found.kept += 1
                    case "small":
                        found.small += 1
                    case "ours":
                        found.passed.left[OWN] += 1
            case Statement():
                found.statements += 1
            case Wrong(torn=True):
                found.torn = one
            case Wrong():
                found.bad += 1
                found.wrong += [one] if found.bad <= _SHOWN else []
                if found.bad == _ENOUGH and not asked.skip_bad:
                    break
    found.sessions, found.undated, found.renamed = places.sessions, places.undated, places.renamed
    return found


def turns(source: Source, asked: Asked, layout: Layout, *, passed: Passed, at: At) -> Iterator[Anything]:
    """Yield what a file tells, in order."""
    for value in values(source, layout, at=at):
        match value:
            case Value() if layout == "notes":
                yield from _noted(value, asked, passed)
            case Value():
                yield from _told(value, asked, passed)
            case Wrong():
                yield value


def _noted(value: Value, asked: Asked, passed: Passed) -> Iterator[Anything]:
    """Yield what a file of Markdown tells: a room of MemPalace, or a note of basic-memory."""
    text, name = str(value.value), value.where
    match asked.format:
        case "auto" | "mempalace" if mempalace.is_room(text):
            yield from mempalace.told(text, name, passed)
        case "auto" | "mempalace" if mempalace.is_index(text):
            passed.left["indexes"] += 1
        case "auto" | "basic-memory" if asked.format == "basic-memory" or basic_memory.is_note(text):
            yield from basic_memory.told(text, name, passed)
        case _:
            passed.left["other files of Markdown"] += 1


def _told(value: Value, asked: Asked, passed: Passed) -> Iterator[Anything]:
    """Yield what a value tells: as it was asked to be read, else as its shape says."""
    given = value.value, value.where, value.number, passed
    match asked.format:
        case "jsonl" | "seed":
            yield from generic.told(*given, seeds_only=asked.format == "seed")
        case "chatgpt":
            yield from chatgpt.told(*given)
        case "claude-ai":
            yield from claude_ai.told(*given)
        case "memory-server":
            yield from memory_server.told(value.value, value.where, passed)
        case "mem0":
            yield from mem0.told(value.value, value.where, passed)
        case "basic-memory" | "mempalace":
            yield Wrong(where=value.where, what=f"is JSON, and what {asked.format} exports is Markdown.")
        case "auto" if chatgpt.is_conversation(value.value):
            yield from chatgpt.told(*given)
        case "auto" if claude_ai.is_conversation(value.value):
            yield from claude_ai.told(*given)
        case "auto" if memory_server.is_graph(value.value):
            yield from memory_server.told(value.value, value.where, passed)
        case "auto" if mem0.is_mem0(value.value):
            yield from mem0.told(value.value, value.where, passed)
        case "auto":
            yield from generic.told(*given)


def _layout(source: Source, asked: Asked) -> Layout:
    seen = layout(source)  # also where it is told: it refuses what is no text
    match asked.format:
        case "jsonl" | "seed" | "chatgpt" | "claude-ai" | "memory-server" | "mem0" if seen == "notes":
            raise InvalidInput(f"{source.name} is Markdown. Leave --format out, or say basic-memory or mempalace.")
        case "auto" | "chatgpt" | "claude-ai" | "memory-server" | "mem0" | "basic-memory" | "mempalace":
            return seen
        case "jsonl" | "seed" if seen == "archive":
            raise InvalidInput(f"{source.name} is a zip archive. Leave --format out, or unpack it first.")
        case "jsonl":
            return "lines"
        case "seed":
            return "document"


def _count(found: Survey, told: Told, placed: tuple[str, NewTurn], size: Size | None) -> None:
    if is_blank(told.content):
        found.without_text += 1
        return
    found.turns += 1
    if size is not None:
        size.add(*placed)
    if told.said_at is not None:
        found.first = min(found.first or told.said_at, told.said_at)
        found.last = max(found.last or told.said_at, told.said_at)


def default_session(source: Source, asked: Asked) -> str | None:
    """Return where turns belong that name no session: as asked, or the file's name without its endings."""
    if asked.session is not None:
        return safe_name(asked.session, what="session")
    if source.name == STDIN:
        return None
    name = _ENDINGS.sub("", source.path.name) or source.path.name
    return mask(name) if holds_key(name) else name


def start(source: Source, undated: int) -> datetime:
    """Return the guess for the first turn without a time, such that the last one has the time of the file."""
    return datetime.fromtimestamp(source.modified / 1000, UTC) - STEP * undated
