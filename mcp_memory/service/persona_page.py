"""Keeps the page about the user and its file up to date. Without a model, the page lists explicit statements."""

from __future__ import annotations

from datetime import datetime

from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import page_rows, stage_outputs
from mcp_memory.store.values import PersonaPage


def write_persona(store: Store, space: str, now: datetime) -> None:
    """If the page is due, update it from the stored statements unless a model wrote it, and write its file."""
    from mcp_memory.longterm import persona

    if persona.due(store, space) is None:
        return
    version = store.read(space, page_rows.persona)
    if version is None or not version.by_model:
        store.write(
            space, stage_outputs.commit, None, PersonaPage(text=persona.listed_page(store, space)), outcome={}, now=now
        )
    written, page = None, persona.whole(store, space)
    while written != page:  # another process may have changed the page since it was read
        store.write_persona_file(space, page)
        written, page = page, persona.whole(store, space)
