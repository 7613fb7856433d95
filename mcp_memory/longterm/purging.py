"""Pages about the user, in every version, without what is to be erased: nothing else of them changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from mcp_memory.core.types import PersonaVersion, Scene
from mcp_memory.longterm.l2_scenes.page import called
from mcp_memory.longterm.l2_scenes.slugs import slug_of
from mcp_memory.store.citations import cited, links, without
from mcp_memory.store.protocol import Store

__all__ = ["pages_without"]


def pages_without(store: Store, space: str, atoms: Collection[str]) -> dict[int, str]:
    """Return the versions that change, by number, without the lines that rest on nothing but these atoms.

    A line that names a scene and no atom rests on all that this scene told then: it may say just that.
    """
    gone, scenes = set(atoms), {scene.slug: scene for scene in store.scenes(space)}
    changed: dict[int, str] = {}
    for version in store.persona_versions(space):
        text = without(version.text, gone)
        shaken = {name for name in links(text) if _told(store, space, scenes, name, version, gone)}
        kept = [line for line in text.splitlines(keepends=True) if cited(line) or shaken.isdisjoint(links(line))]
        if (left := "".join(kept)) != version.text:
            changed[version.version] = left
    return changed


def _told(
    store: Store, space: str, scenes: Mapping[str, Scene], name: str, version: PersonaVersion, gone: Collection[str]
) -> bool:
    scene = called(scenes, name)
    told = store.scene_versions(space, scene.slug if scene else slug_of(name))
    then = next((one for one in told if one.updated <= version.at), None)
    return then is not None and not set(gone).isdisjoint(then.atoms)
