"""Notes that agents keep for themselves, in Markdown: Claude Code, OpenClaw, Hermes and Codex.

    .claude/projects/<folder>/memory/<note>.md      fields name, description and type, then text; MEMORY.md lists them
    .openclaw/workspace/memory/<date>.md            headings and bullets; also MEMORY.md, and USER.md about the user
    .hermes/memories/MEMORY.md                      entries with a line `§` between them; also USER.md

Each bullet, paragraph or entry is a statement of the agent that wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.markdown_notes import (
    Passage,
    divided_passages,
    front_matter,
    markdown_passages,
    note_records,
)
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue, parse_time
from mcp_memory.integrations.importers.session_files import COPIES
from mcp_memory.integrations.importers.statements import MemoryRecord

_AGENTS = (
    ("claude-code", "Claude Code", re.compile(r"/\.claude/projects/-*(?P<project>[^/]+)/memory/.+\.md$")),
    ("claude-code", "Claude Code", re.compile(r"/\.?(?:claude/)?agent-memory(?:-local)?/[^/]+/.+\.md$")),
    (
        "openclaw",
        "OpenClaw",
        re.compile(
            r"/\.(?:openclaw|clawdbot|moltbot)/(?:.+/)?(?:MEMORY|USER|DREAMS|memory/(?P<date>\d{4}-\d\d-\d\d)[^/]*)\.md$"
        ),
    ),
    ("hermes", "Hermes", re.compile(r"/\.hermes/(?:.+/)?memories/(?:MEMORY|USER)\.md$")),
    ("codex", "Codex", re.compile(r"/\.codex/memories/.+\.md$")),
)
_ENTRIES = "§"
_COPY = re.compile(r"\s*# Session: ")
"""The beginning of a note of OpenClaw that repeats a conversation."""
_DATES = ("modified", "updated", "updated_at", "created", "created_at", "date")


def agent_note_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the statements of a note."""
    text = str(source.value)
    program, agent, path = next(
        ((name, title, match) for name, title, path in _AGENTS if (match := path.search(source.path))),
        ("agent-notes", "An agent", None),
    )
    if _COPY.match(text):
        skipped.left_out[COPIES] += 1
        return
    fields, body, first = front_matter(text)
    named = {} if path is None else path.groupdict()
    is_divided = any(line.strip() == _ENTRIES for line in body.splitlines())
    passages = divided_passages(body, _ENTRIES) if is_divided else markdown_passages(body, first)
    name = fields.get("name")
    if description := fields.get("description"):
        passages = chain([Passage(line=1, text=description)], passages)
    if name:
        passages = (replace(passage, headings=(name, *passage.headings)) for passage in passages)
    is_user = source.path.endswith("/USER.md") or fields.get("type") == "user"
    subject = "the user" if is_user else named.get("project")
    speaker = f"{agent} noted about {subject}" if subject else f"{agent} noted"
    said_at = parse_time({"day": named.get("date"), **fields}, (*_DATES, "day"), skipped)
    yield from note_records(source, skipped, passages, speaker=speaker, program=program, said_at=said_at)


FORMAT = Format(
    title="notes of an agent",
    location="the `memory` folders in `~/.claude/projects`; `MEMORY.md`, `USER.md` and `memory/` of OpenClaw; "
    "`~/.hermes/memories`",
    unit="text",
    path="|".join(re.sub(r"\?P<\w+>", "", path.pattern) for _, _, path in _AGENTS),
    before=("basic-memory", "mempalace"),
    records=agent_note_records,
)
