"""Claude.ai's own memory, `memories.json` of its export: texts in Markdown, of which each line is a statement.

{conversations_memory: text, project_memories: {id: text, …}, memory_files: [{path, content, updated_at}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from mcp_memory.integrations.importers.format import AnyRecord, Format
from mcp_memory.integrations.importers.records import (
    ImportProblem,
    SkippedParts,
    SourceValue,
    items_of,
    object_of,
    objects_in,
    parse_time,
    part_of,
    place_inside,
    text_of,
)
from mcp_memory.integrations.importers.statements import statement

_HEADING = re.compile(r"^(?:#+\s+(.*)|\*\*([^*]+)\*\*:?)$")
_MARK = re.compile(r"^(?:[-*]\s+|\d+\.\s+)?(?:\[(?:stated|inferred)\]\s*)?")
_FIELDS = ("conversations_memory", "project_memories", "memory_files")


def claude_ai_memory_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield a statement for each line of the texts; headings are put before their lines."""
    thing = object_of(source.value) or {}
    if not any(key in thing for key in _FIELDS):
        yield ImportProblem(where=source.where, what="is not a memory of Claude.ai, with its conversations_memory.")
        return
    texts: list[tuple[str, str | None, datetime | None]] = [
        ("conversations_memory", text_of(thing, "conversations_memory"), None)
    ]
    projects = part_of(thing, "project_memories")
    texts += [(f"project_memories.{id}", text_of(projects, id), None) for id in projects]
    for nth, file in enumerate(objects_in(items_of(thing, "memory_files"))):
        at = parse_time(file, ("updated_at",), skipped)
        texts.append((f"memory_files[{nth}]", text_of(file, "content"), at))
    for path, memory, at in texts:
        heading, where = "", place_inside(source.where, path)
        for line in filter(None, map(str.strip, (memory or "").splitlines())):
            if mark := _HEADING.match(line):
                heading = (mark[1] or mark[2]).strip()
                continue
            words = _MARK.sub("", line)
            text = f"Claude noted about the user ({heading}): {words}" if heading else f"Claude noted: {words}"
            yield statement(where, skipped, text=text, words=words, said_at=at, program="claude-ai")


FORMAT = Format(
    title="the memory of Claude.ai",
    location="memories.json of its export",
    matches=lambda value: any(key in (object_of(value) or {}) for key in _FIELDS),
    records=claude_ai_memory_records,
)
