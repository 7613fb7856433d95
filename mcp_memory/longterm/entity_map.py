"""The map of a memory: its entities and topics as nodes, linked by the statements that mention both.

It needs no model; topics are on it if a model has written scenes. Quarantined and forgotten statements are left out.
So is the user, whom nearly every statement would link. Of a large memory only the newest statements are read: 50,000
mentions of entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_memory.core.types import MapLink, MapNode, MemoryMap, Scene
from mcp_memory.longterm.scenes import stored_scenes
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows
from mcp_memory.store.sql.entity_rows import OPEN
from mcp_memory.store.sql.transaction import from_ms, numbers_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_READ = 50_000
_LINKS = 3  # for each node on average, the strongest
_RELATED = 40


@dataclass(frozen=True, slots=True)
class _Mentions:
    """Mentions of nodes by atoms, in columns: the numbers of the atom and the node, start and end in ms or `OPEN`.

    The number of an entity is that of its row; topics have negative numbers.
    """

    atoms: Integers
    nodes: Integers
    starts: Integers
    ends: Integers


@dataclass(frozen=True, slots=True)
class _Counts:
    """Statements of each key, in ascending order of the keys, and their times in ms since 1970."""

    keys: Integers
    current: Integers
    past: Integers
    first: Integers
    last: Integers
    end: Integers
    """The last end; that of keys without past statements means nothing."""


def entity_map(store: Store, space: str, *, about: str | None = None, limit: int) -> MemoryMap:
    """Return the nodes with the most statements, at most `limit`, and the links with the most statements.

    `about` is the main name of an entity; then only this entity and those that share current statements with it are
    returned, and topics with statements about any of them.
    """
    import numpy as np

    centre, among, related = None, None, list[tuple[int, str, int]]()
    if about is not None:
        centre = store.read(space, entity_rows.number_of, about)
        related = store.read(space, entity_rows.find_related, about, limit=max(limit, _RELATED))
        among = [] if centre is None else [centre, *(number for number, _, _ in related[:limit])]
    scenes = stored_scenes(store, space)
    mentions = _mentions(store, space, among, scenes)
    counts = _count(mentions.nodes, mentions.starts, mentions.ends)
    nodes: list[int] = counts.keys.tolist()
    many = dict(zip(nodes, (counts.current + counts.past).tolist(), strict=True))

    def rank(node: int) -> tuple[bool, int, str]:
        return node != centre, -many[node], str(node) if node > 0 else scenes[~node].slug

    chosen = sorted(nodes, key=rank)[:limit]
    entities = sorted(node for node in chosen if node > 0)
    topics = sorted((node for node in chosen if node < 0), key=lambda node: scenes[~node].created)
    names = store.read(space, entity_rows.names_by_number, entities)
    shown = [*entities, *topics]
    links = _links(mentions, np.array(shown, np.int64))
    strongest = np.lexsort((links.keys, -links.current - links.past))[: _LINKS * limit]
    places = {node: place for place, node in enumerate(nodes)}
    return MemoryMap(
        nodes=[
            *(_node(names[entity], None, counts, places[entity]) for entity in entities),
            *(_node(scenes[~topic].title, scenes[~topic].slug, counts, places[topic]) for topic in topics),
        ],
        links=[_link(links, place, len(shown)) for place in np.sort(strongest).tolist()],
        total=len(nodes),
        related=[(name, shared) for _, name, shared in related[:_RELATED]],
    )


def _mentions(store: Store, space: str, among: Sequence[int] | None, scenes: Sequence[Scene]) -> _Mentions:
    """Return the mentions of entities (only of those `among`, if given) and topics by atoms that are not forgotten."""
    import numpy as np

    rows = store.read(space, entity_rows.newest_mentions, among=among, limit=_READ)
    read = {row[0] for row in rows} if among is not None and scenes else None
    cited = [(atom, ~place) for place, scene in enumerate(scenes) for atom in numbers_of(scene.atoms, "a")]
    cited = [(atom, topic) for atom, topic in cited if read is None or atom in read]
    periods = store.read(space, atom_rows.periods, [atom for atom, _ in cited])
    topics = [
        (atom, topic, start, OPEN if end is None else end)
        for atom, topic in cited
        if atom in periods
        for start, end in [periods[atom]]
    ]
    return _Mentions(*np.array([*rows, *topics], np.int64).reshape(-1, 4).T)


def _count(keys: Integers, starts: Integers, ends: Integers) -> _Counts:
    import numpy as np

    order = np.argsort(keys, kind="stable")
    keys, starts, ends = keys[order], starts[order], ends[order]
    begins = np.flatnonzero(np.diff(keys, prepend=keys[:1] - 1))
    is_past = ends != OPEN
    past = np.add.reduceat(is_past.astype(np.int64), begins)
    return _Counts(
        keys=keys[begins],
        current=np.diff(begins, append=len(keys)) - past,
        past=past,
        first=np.minimum.reduceat(starts, begins),
        last=np.maximum.reduceat(starts, begins),
        end=np.maximum.reduceat(np.where(is_past, ends, starts), begins),
    )


def _links(mentions: _Mentions, nodes: Integers) -> _Counts:
    """Count the atoms that mention two of these nodes.

    The key of a pair is the place of the first node times the number of nodes, plus the place of the second.
    """
    import numpy as np

    order = np.argsort(nodes)
    at = np.searchsorted(nodes, mentions.nodes, sorter=order).clip(max=len(nodes) - 1)
    places = order[at]
    inside = nodes[places] == mentions.nodes
    places, atoms = places[inside], mentions.atoms[inside]
    starts, ends = mentions.starts[inside], mentions.ends[inside]
    order = np.lexsort((places, atoms))
    places, atoms, starts, ends = places[order], atoms[order], starts[order], ends[order]
    keys, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for step in range(1, len(atoms)):
        same = np.flatnonzero(atoms[step:] == atoms[:-step])
        if not len(same):
            break
        keys.append(places[same] * len(nodes) + places[same + step])
        rows.append(same)
    chosen = np.concatenate(rows)
    return _count(np.concatenate(keys), starts[chosen], ends[chosen])


def _node(name: str, topic: str | None, counts: _Counts, place: int) -> MapNode:
    current = int(counts.current[place])
    return MapNode(
        name=name,
        topic=topic,
        statements=current,
        past=int(counts.past[place]),
        first=from_ms(int(counts.first[place])),
        last=from_ms(int(counts.last[place])),
        until=None if current else from_ms(int(counts.end[place])),
    )


def _link(counts: _Counts, place: int, nodes: int) -> MapLink:
    one, other = divmod(int(counts.keys[place]), nodes)
    current = int(counts.current[place])
    return MapLink(
        ends=(one, other),
        statements=current + int(counts.past[place]),
        first=from_ms(int(counts.first[place])),
        until=None if current else from_ms(int(counts.end[place])),
    )
