"""Standing instructions for agents, in Markdown: `CLAUDE.md`, `AGENTS.md`, `GEMINI.md` and the like.

Each bullet or paragraph is a statement of the file, not of the user, although the user may have written it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.markdown_notes import front_matter, markdown_passages, note_records
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue
from mcp_memory.integrations.importers.statements import MemoryRecord

_OF_A_PROGRAM = {".claude", ".codex", ".gemini", ".qwen", ".github", "rules"}
"""Folders in the folder that the instructions are for."""


def instruction_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the statements of a file with instructions."""
    path = PurePosixPath(source.path or source.where)
    folder = next((name for name in reversed(path.parts[:-1]) if name not in _OF_A_PROGRAM), "")
    _, body, first = front_matter(str(source.value))
    speaker = f"{path.name} of {folder}" if folder.strip("/") else path.name
    yield from note_records(source, skipped, markdown_passages(body, first), speaker=speaker, program="instructions")


FORMAT = Format(
    title="instructions for agents",
    location="`CLAUDE.md`, `AGENTS.md`, `GEMINI.md`, `QWEN.md`, `.claude/rules`, `.github/copilot-instructions.md`",
    unit="text",
    path=r"(?:^|/)(?:(?:CLAUDE|AGENTS|GEMINI|QWEN)(?:\.local|\.override)?|\.claude/rules/.+|\.github/copilot-instructions)"
    r"\.md$",
    before=("basic-memory", "mempalace"),
    records=instruction_records,
)
