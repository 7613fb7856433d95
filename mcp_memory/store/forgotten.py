"""What is left of a scene when atoms that it rests on are forgotten: no word that rested on them alone.

Title and summary name no evidence. They are kept as far as what is left says the same words, and made from it where
it does not. The slug stays: it is the scene's address. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Scene
from mcp_memory.language.words import base_terms, fold, query_terms
from mcp_memory.store.citations import cited, plain, without

__all__ = ["gist", "left_of"]

_TITLE, _SUMMARY = 60, 160


def left_of(scene: Scene, gone: Collection[str]) -> Scene:
    """Return the scene without what rests on these atoms alone; with an empty body where that was all."""
    if set(gone).isdisjoint(scene.atoms) and set(gone).isdisjoint(cited(scene.body)):
        return scene
    body = without(scene.body, gone)
    said = plain(body)
    entities = tuple(name for name in scene.entities if fold(name) in fold(said))
    return replace(
        scene,
        title=scene.title if _says(said, scene.title) else one_line(", ".join(entities) or gist(body), _TITLE),
        summary=scene.summary if _says(said, scene.summary) else gist(body),
        body=body,
        atoms=tuple(cited(body)),
        entities=entities,
    )


def gist(body: str) -> str:
    """Return the first statement of a page as a line of its own."""
    lines = (plain(line).lstrip(" -*+•>") for line in body.splitlines() if cited(line) and not line.startswith("#"))
    return one_line(next(lines, "Nothing is left of it."), _SUMMARY)


def _says(said: str, words: str) -> bool:
    return set(query_terms(words)) <= set(base_terms(said))
