"""Scenes in a memory search: the scenes that match a query, and the scene and entity that its filters name.

There are few scenes, so their terms are computed here and ranked by the same formula as atoms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from functools import lru_cache

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Scene, SceneHit
from mcp_memory.language.words import fold, index_terms
from mcp_memory.longterm.scenes import computed_scenes, readable_scenes, stored_scenes, without_ended
from mcp_memory.longterm.search.entity_names import find_entity
from mcp_memory.longterm.search.query import ParsedQuery, parse_query
from mcp_memory.longterm.search.ranking import SIGNALS, WEIGHTS, of_atoms
from mcp_memory.longterm.search.search import Ranked
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import entity_rows, page_rows
from mcp_memory.store.values import Filters, Posting

MIN_COSINE = 0.6  # least cosine of a row that shares no word with the query
_SHOWN = 4
_OF_THE_BEST = 0.4  # share of the best score from which a scene is shown


def current_scenes(store: Store, space: str) -> list[Scene]:
    """Return the stored scenes, the hottest first, without what has ended since they were written."""
    return without_ended(store, space, stored_scenes(store, space))


def resolve_filters(store: Store, space: str, filters: Filters) -> tuple[Filters, str | None]:
    """Return the filters with the slug of their scene and the main name of their entity, and any note for the reader.

    A scene may be given by slug or title, an entity in any spelling (`entity_names`). Raises NotFound with near names.
    """
    note = None
    if filters.entity is not None:
        entity, note = find_entity(store, space, filters.entity)
        filters = replace(filters, entity=entity)
    if filters.scene is not None:
        filters = _with_slug(store, space, filters, filters.scene)
    return filters, note


def _with_slug(store: Store, space: str, filters: Filters, name: str) -> Filters:
    folded = fold(name.strip().removesuffix(".md"))
    scenes = readable_scenes(store, space)
    for scene in scenes:
        if folded in (fold(scene.slug), fold(scene.title)):
            is_stored = any(scene.slug == stored.slug for stored in store.read(space, page_rows.scenes))
            return replace(filters, scene=scene.slug, scene_atoms=None if is_stored else scene.atoms)
    slugs = {fold(scene.slug): scene.slug for scene in scenes}
    near = [slugs[title] for title in get_close_matches(folded, slugs, n=3, cutoff=0.5)]
    if not scenes:
        advice = "No scenes have been made: leave scene out."
    elif near:
        advice = f"Did you mean {' or '.join(near)}?"
    else:
        advice = f"Scenes: {', '.join(scene.slug for scene in scenes[:15])}."
    raise NotFound(f"There is no scene {one_line(name, 40)!r} in this space. {advice}")


def scenes_for(
    store: Store, space: str, query: str, *, filters: Filters, atoms: Sequence[Ranked], at: datetime
) -> list[SceneHit]:
    """Return the scenes that a memory search shows, best first; `atoms` are the atoms that the search found.

    Empty with filters on kind or time, since a scene mixes kinds and describes the present. A computed scene is shown
    only if the filters name it, since its lines are statements, which the search finds.
    """
    if any((filters.kind, filters.since, filters.until, filters.as_of)):
        return []
    scenes = computed_scenes(store, space) if filters.scene_atoms is not None else current_scenes(store, space)
    scenes = [scene for scene in scenes if filters.scene in (None, scene.slug)]
    if filters.entity is not None:
        names = names_of(store, space, filters.entity)
        scenes = [scene for scene in scenes if names.intersection(map(fold, scene.entities))]
    if filters.scene is not None or (filters.entity is not None and not query.strip()):
        return [SceneHit(scene=scene, score=0.0, found_by={"named": 1.0}) for scene in scenes[:_SHOWN]]
    return find_scenes(scenes, query, atoms=atoms, at=at)[:_SHOWN] if query.strip() else []


def find_scenes(scenes: Sequence[Scene], query: str, *, atoms: Sequence[Ranked], at: datetime) -> list[SceneHit]:
    """Return the scenes that share a word with the query or contain one of `atoms` near to it, best first.

    Scenes that score far less than the best are left out.
    """
    import numpy as np

    if not scenes:
        return []
    question = parse_query(query, at)
    near = _near(scenes, atoms)
    among = (np.array(list(near), np.int64), np.array(list(near.values()), np.float64))
    ranked = of_atoms(question, _postings(scenes, question), [among], total=len(scenes))
    scores = ranked.signals @ np.array(WEIGHTS) / sum(WEIGHTS)
    rows: list[int] = ranked.rows.tolist()
    hits = [
        SceneHit(
            scene=scenes[row],
            score=round(score, 5),
            found_by={name: round(value, 3) for name, value in zip(SIGNALS, signals, strict=True) if value > 0},
        )
        for row, score, signals in zip(rows, scores.tolist(), ranked.signals.tolist(), strict=True)
    ]
    hits = [hit for hit in hits if "words" in hit.found_by or "meaning" in hit.found_by]
    hits.sort(key=lambda hit: (-hit.score, -hit.scene.heat, hit.scene.slug))
    return [hit for hit in hits if hit.score >= _OF_THE_BEST * hits[0].score]


def text_of(scene: Scene) -> str:
    return f"{scene.title}\n{scene.summary}\n{scene.body}"


def _near(scenes: Sequence[Scene], atoms: Sequence[Ranked]) -> dict[int, float]:
    cosines = {hit.id: hit.cosine for hit in atoms if hit.cosine is not None}
    near = [max((cosines[id] for id in scene.atoms if id in cosines), default=-1.0) for scene in scenes]
    nearest = sorted(range(len(scenes)), key=lambda place: -near[place])
    return {place: near[place] for place in nearest if near[place] >= MIN_COSINE}


def _postings(scenes: Sequence[Scene], question: ParsedQuery) -> list[Posting]:
    """Return the postings of the question's words and related words in the scenes, as a store would."""
    import numpy as np

    terms = [_terms_of(text_of(scene)) for scene in scenes]
    question_terms = dict.fromkeys([*question.words, *(term for group in question.related for term in group)])
    rows = {term: [place for place, scene_terms in enumerate(terms) if term in scene_terms] for term in question_terms}
    return [
        Posting(term=term, rows=np.array(places, np.int64), documents=len(places))
        for term, places in rows.items()
        if places
    ]


@lru_cache(maxsize=256)
def _terms_of(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))


def names_of(store: Store, space: str, entity: str) -> set[str]:
    """Return all names of an entity in folded form; `entity` is any of its names, or the only name if it is unknown."""
    return {fold(name) for name in store.read(space, entity_rows.names, [entity]).get(entity, (entity,))}
