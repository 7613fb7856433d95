"""Export rows as pages for people: conversations, scenes and the persona. Import does not read them. Pure."""

from __future__ import annotations

from datetime import UTC

from mcp_memory.core.text import iso
from mcp_memory.core.types import Scene
from mcp_memory.store import export_model as model
from mcp_memory.store import files

__all__ = ["persona_page", "scene_page", "session_head", "spoken"]


def session_head(name: str) -> str:
    return f"# {name}\n"


def spoken(turn: model.ExportedTurn) -> str:
    """Return a turn as it stands on its session's page."""
    who = f"{turn.role} {turn.name}" if turn.name else turn.role
    at = iso(turn.said_at.astimezone(UTC)).replace("+00:00", "Z")
    return f"\n## {turn.id} · {who} · {at}\n\n{turn.content.rstrip()}\n"


def scene_page(row: model.ExportedScene) -> bytes:
    """Return a scene as its file in the home has it."""
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


def persona_page(row: model.ExportedPersona) -> bytes:
    return (row.text.rstrip() + "\n").encode("utf-8", "backslashreplace")
