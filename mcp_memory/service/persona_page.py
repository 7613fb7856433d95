"""Keeps the page about the user and its file up to date. Without a model, the page lists explicit statements."""

from __future__ import annotations

from datetime import datetime

from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import page_rows, stage_outputs
from mcp_memory.store.values import PersonaPage


def write_persona(store: Store, space: str, now: datetime) -> None:
    """If the page is due, update it from the stored statements unless a model wrote it, and write its file."""
    from mcp_memory.longterm import persona

    def read() -> tuple[str | None, bool]:
        """Return the page to commit, if there is one, and whether the file has to be written."""
        if persona.due(store, space) is None:
            return None, False
        version = store.read(space, page_rows.persona)
        listed = None if version is not None and version.by_model else persona.listed_page(store, space)
        return None if version is not None and version.text == listed else listed, True

    listed, is_due = store.in_snapshot(read)
    if listed is not None:
        store.write(space, stage_outputs.commit, None, PersonaPage(text=listed), outcome={}, now=now)
    if is_due and store.has_files:
        written, page = None, persona.whole(store, space)
        while written != page:  # another process may have changed the page since it was read
            store.write_persona_file(space, page)
            written, page = page, persona.whole(store, space)
