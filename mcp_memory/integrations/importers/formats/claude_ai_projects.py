"""Projects of Claude.ai, `projects.json` of its export.

    project   {uuid, name, description, prompt_template, is_starter_project, created_at, updated_at,
               docs: [{uuid, filename, content, created_at}]}

The description and the instructions are statements about the project; a document is a turn of role `tool` in a session
of the project. The project with which Claude.ai introduces itself is counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcp_memory.integrations.importers.format import AnyRecord, Format, has
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    id_of,
    items_of,
    name_of,
    object_of,
    parse_time,
    place_inside,
    session_name,
    text_of,
)
from mcp_memory.integrations.importers.statements import as_turn, statement

STARTERS = "projects that introduce Claude.ai"
_TEXTS = {"description": "about", "prompt_template": "with the instructions"}


def claude_ai_project_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the texts and documents of a project."""
    thing, where = object_of(source.value) or {}, source.where
    if thing.get("is_starter_project") is True:
        skipped.left_out[STARTERS] += 1
        return
    name, id = name_of(thing, "name") or "without a name", id_of(thing, "uuid")
    at = parse_time(thing, ("updated_at", "created_at"), skipped)
    session = session_name("claude-ai-project", id or name)
    for key, link in _TEXTS.items():
        if words := text_of(thing, key):
            text = f"The user has a project in Claude.ai named {name} {link}: {words}"
            own_id = id and f"claude-ai:{id}:{key}"
            yield statement(where, skipped, text=text, words=words, about=(name,), said_at=at, id=own_id)
    for nth, doc in enumerate(map(object_of, items_of(thing, "docs"))):
        place = place_inside(where, f"docs[{nth}]")
        if doc is not None and (content := text_of(doc, "content")):
            text = f"[attached: {name_of(doc, 'filename', 'name') or 'text'}]\n{content}"
            said_at, own_id = parse_time(doc, ("created_at",), skipped), id_of(doc, "uuid")
            yield as_turn(place, text, skipped, program="project", said_at=said_at, id=own_id, session=session)


FORMAT = Format(
    title="projects of Claude.ai",
    location="projects.json of its export",
    matches=has("prompt_template", docs=list),
    records=claude_ai_project_records,
)
