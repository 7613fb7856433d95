"""The scenes that a search means: there are a handful, so their pages are read and ranked in memory, without an index.

Words and related words count as for atoms (`ranking`). A page is as near by meaning as the nearest atom that it rests
on: nothing has to be embedded, and it holds for every model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches

from mcp_memory.core.errors import NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Scene, SceneHit
from mcp_memory.language.words import fold, index_terms
from mcp_memory.longterm.l2_scenes.page import ended_since, standing
from mcp_memory.longterm.search.question import Question, read
from mcp_memory.longterm.search.ranking import SIGNALS, WEIGHTS, of_atoms
from mcp_memory.longterm.search.search import Ranked
from mcp_memory.store.forgotten import left_of
from mcp_memory.store.protocol import Filters, Posting, Store

__all__ = ["MIN_COSINE", "current", "found", "matching", "named", "text_of"]

MIN_COSINE = 0.6  # what shares no word must at least be near
_SHOWN = 4
_OF_THE_BEST = 0.4  # the share of the best one's score that is worth showing


def current(store: Store, space: str) -> list[Scene]:
    """Return the scenes, the hottest first, without what has ended since they were written."""
    told = [(scene, {old.id for old, _ in ended_since(store, space, scene)}) for scene in standing(store, space)]
    left = (left_of(scene, ended) for scene, ended in told)
    return [scene for scene in left if scene.body]


def named(store: Store, space: str, filters: Filters) -> Filters:
    """Return the filters with the scene's slug where they name one, by slug or title. NotFound names near ones."""
    if filters.scene is None:
        return filters
    wanted = fold(filters.scene.strip().removesuffix(".md"))
    scenes = standing(store, space)
    for scene in scenes:
        if wanted in (fold(scene.slug), fold(scene.title)):
            return replace(filters, scene=scene.slug)
    slugs = {fold(scene.slug): scene.slug for scene in scenes}
    near = [slugs[one] for one in get_close_matches(wanted, slugs, n=3, cutoff=0.5)]
    if not scenes:
        known = "No scenes have been made: leave scene out."
    elif near:
        known = f"Did you mean {' or '.join(near)}?"
    else:
        known = f"Scenes: {', '.join(scene.slug for scene in scenes[:15])}."
    raise NotFound(f"There is no scene {one_line(filters.scene, 40)!r} in this space. {known}")


def matching(
    store: Store, space: str, query: str, *, filters: Filters, atoms: Sequence[Ranked], at: datetime
) -> list[SceneHit]:
    """Return the scenes that a memory search shows, best first; `atoms` are those that it found.

    Filters that a page does not know (kind and times) leave all out: it tells of any kind, as things stand now.
    """
    if any((filters.kind, filters.since, filters.until, filters.as_of)):
        return []
    scenes = [scene for scene in current(store, space) if filters.scene in (None, scene.slug)]
    if filters.entity is not None:
        names = _names_of(store, space, filters.entity)
        scenes = [scene for scene in scenes if names.intersection(map(fold, scene.entities))]
    if filters.scene is not None or (filters.entity is not None and not query.strip()):
        return [SceneHit(scene=scene, score=0.0, found_by={"named": 1.0}) for scene in scenes[:_SHOWN]]
    return found(scenes, query, atoms=atoms, at=at)[:_SHOWN] if query.strip() else []


def found(scenes: Sequence[Scene], query: str, *, atoms: Sequence[Ranked], at: datetime) -> list[SceneHit]:
    """Return the scenes that share a word with the query or are near to it, best first."""
    import numpy as np

    if not scenes:
        return []
    question = read(query, at)
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
    """Return the places of scenes that lie near, nearest first, and how near."""
    cosines = {hit.id: hit.cosine for hit in atoms if hit.cosine is not None}
    near = [max((cosines[id] for id in scene.atoms if id in cosines), default=-1.0) for scene in scenes]
    nearest = sorted(range(len(scenes)), key=lambda place: -near[place])
    return {place: near[place] for place in nearest if near[place] >= MIN_COSINE}


def _postings(scenes: Sequence[Scene], question: Question) -> list[Posting]:
    """Return where the question's words and their relatives stand, as a store would."""
    import numpy as np

    terms = [set(index_terms(text_of(scene))) for scene in scenes]
    wanted = dict.fromkeys([*question.words, *(term for group in question.related for term in group)])
    rows = {term: [place for place, held in enumerate(terms) if term in held] for term in wanted}
    return [
        Posting(term=term, rows=np.array(places, np.int64), documents=len(places))
        for term, places in rows.items()
        if places
    ]


def _names_of(store: Store, space: str, entity: str) -> set[str]:
    """Return all names of an entity, folded, by any of them."""
    wanted = fold(entity)
    for one in store.entities(space, prefix=entity):
        names = {fold(name) for name in (one.name, *one.aliases)}
        if wanted in names:
            return names
    return {wanted}
