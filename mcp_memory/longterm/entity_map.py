"""The map of a memory: its entities and topics as nodes, linked by the statements that mention both.

It needs no model; topics are on it if a model has written scenes. Quarantined and forgotten statements are left out.
So is the user, whom nearly every statement would link. Of a large memory only the newest statements are read: 50,000
mentions of entities.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from mcp_memory.core.types import MapLink, MapNode, MemoryMap, Scene
from mcp_memory.longterm.scenes import stored_scenes
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows
from mcp_memory.store.sql.transaction import from_ms, numbers_of

K = TypeVar("K")
_READ = 50_000
_LINKS = 3  # for each node on average, the strongest


@dataclass(slots=True)
class _Count:
    """Statements, and their times in ms since 1970."""

    current: int = 0
    past: int = 0
    first: int = 2**63
    last: int = 0
    end: int = 0

    def add(self, start: int, end: int | None) -> None:
        self.first, self.last = min(self.first, start), max(self.last, start)
        if end is None:
            self.current += 1
        else:
            self.past, self.end = self.past + 1, max(self.end, end)


def entity_map(store: Store, space: str, *, about: str | None = None, limit: int) -> MemoryMap:
    """Return the nodes with the most statements, at most `limit`, and the links with the most statements.

    `about` is the main name of an entity; then only this entity and those that share current statements with it are
    returned, and topics with statements about any of them.
    """
    among = None if about is None else store.read(space, entity_rows.with_related, about, limit=limit)
    periods, members = dict[int, tuple[int, int | None]](), defaultdict[int, list[int | str]](list)
    for atom, entity, start, end in store.read(space, entity_rows.newest_mentions, among=among, limit=_READ):
        periods[atom] = (start, end)
        members[atom].append(entity)
    scenes = {scene.slug: scene for scene in stored_scenes(store, space)}
    for slug, scene in scenes.items():
        for atom in numbers_of(scene.atoms, "a"):
            if about is None or atom in members:
                members[atom].append(slug)
    periods |= store.read(space, atom_rows.periods, [atom for atom in members if atom not in periods])
    counts = _counts(members, periods)
    chosen = sorted(counts, key=lambda node: (-counts[node].current - counts[node].past, str(node)))[:limit]
    entities = sorted(node for node in chosen if isinstance(node, int))
    topics = sorted((scenes[node] for node in chosen if isinstance(node, str)), key=lambda scene: scene.created)
    names = store.read(space, entity_rows.names_by_number, entities)
    place: dict[int | str, int] = {node: at for at, node in enumerate([*entities, *(scene.slug for scene in topics)])}
    pairs = {
        atom: combinations(sorted(place[node] for node in nodes if node in place), 2) for atom, nodes in members.items()
    }
    shared = _counts(pairs, periods)
    strongest = sorted(shared, key=lambda ends: (-shared[ends].current - shared[ends].past, ends))[: _LINKS * limit]
    return MemoryMap(
        nodes=[
            *(_node(names[entity], counts[entity]) for entity in entities),
            *(_node(scene.title, counts[scene.slug], scene) for scene in topics),
        ],
        links=[_link(ends, shared[ends]) for ends in sorted(strongest)],
        total=len(counts),
    )


def _counts(members: Mapping[int, Iterable[K]], periods: Mapping[int, tuple[int, int | None]]) -> dict[K, _Count]:
    """Count the atoms of each member; atoms without a period, which are forgotten, do not count."""
    counts = defaultdict[K, _Count](_Count)
    for atom, listed in members.items():
        if atom in periods:
            for member in listed:
                counts[member].add(*periods[atom])
    return counts


def _node(name: str, count: _Count, scene: Scene | None = None) -> MapNode:
    return MapNode(
        name=name,
        topic=scene.slug if scene else None,
        statements=count.current,
        past=count.past,
        first=from_ms(count.first),
        last=from_ms(count.last),
        until=None if count.current else from_ms(count.end),
    )


def _link(ends: tuple[int, int], count: _Count) -> MapLink:
    return MapLink(
        ends=ends,
        statements=count.current + count.past,
        first=from_ms(count.first),
        until=None if count.current else from_ms(count.end),
    )
