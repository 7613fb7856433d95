"""The table of formats that can be imported, and how a value's format is recognised.

To add a format of JSON: its name in `Format`, a function that recognises a value, a function that yields its records,
and an entry in `_JSON_FORMATS`. Logs of coding agents, which are followed as they grow, are in `agent_logs.FORMATS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from mcp_memory.integrations.importers import chat_exports, other_memories
from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
    SourceValue,
    generic_records,
    seed_records,
)

Format = Literal["auto", "jsonl", "seed", "chatgpt", "claude-ai", "memory-server", "mem0", "basic-memory", "mempalace"]
AnyRecord = ImportedTurn | ImportedResult | ImportedStatement | ImportProblem


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A format of JSON values: a test for a value, and a function that yields the records of a value."""

    matches: Callable[[Any], bool]
    records: Callable[[SourceValue, SkippedParts], Iterator[AnyRecord]]


_JSON_FORMATS: Mapping[Format, JsonFormat] = {
    "chatgpt": JsonFormat(chat_exports.is_chatgpt_conversation, chat_exports.chatgpt_records),
    "claude-ai": JsonFormat(chat_exports.is_claude_ai_conversation, chat_exports.claude_ai_records),
    "memory-server": JsonFormat(other_memories.is_graph, other_memories.memory_server_records),
    "mem0": JsonFormat(other_memories.is_mem0, other_memories.mem0_records),
    "seed": JsonFormat(lambda _: False, seed_records),  # recognised by `generic_records`
}
"""In the order in which they are tried. A value that matches no format is read as generic JSON, `jsonl`."""


def json_records(source: SourceValue, format: Format, skipped: SkippedParts) -> Iterator[AnyRecord]:  # noqa: A002
    """Yield the records of a JSON value, in the given format or, with `auto`, in the first format that matches."""
    if format in ("basic-memory", "mempalace"):
        yield ImportProblem(where=source.where, what=f"is JSON, and what {format} exports is Markdown.")
        return
    if format == "auto":
        reader = next((form.records for form in _JSON_FORMATS.values() if form.matches(source.value)), generic_records)
    else:
        reader = _JSON_FORMATS[format].records if format in _JSON_FORMATS else generic_records
    yield from reader(source, skipped)


def note_records(source: SourceValue, format: Format, skipped: SkippedParts) -> Iterator[AnyRecord]:  # noqa: A002
    """Yield the records of a Markdown file; a file of unknown format is counted as left out."""
    text = str(source.value)
    if format != "basic-memory" and other_memories.is_room(text):
        yield from other_memories.mempalace_records(source, skipped)
    elif format != "basic-memory" and other_memories.is_index(text):
        skipped.left_out["indexes"] += 1
    elif format == "basic-memory" or (format == "auto" and other_memories.is_note(text)):
        yield from other_memories.basic_memory_records(source, skipped)
    else:
        skipped.left_out["other files of Markdown"] += 1
