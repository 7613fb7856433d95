"""The two searches, in pages of whole rows; others shorten.

One is for turns, with their neighbours; one for what is known: atoms, facts, scenes, and turns where those are few.
Both bring lines of tool results beside these, in a list of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import one_line
from mcp_memory.core.types import AtomHit, Fact, MemoryResults, ResultHit, Turn, TurnHit, TurnResults
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.search import scenes as find_scenes
from mcp_memory.longterm.search.pages import MAX_SHOWN, Page, after, page_of
from mcp_memory.longterm.search.question import read
from mcp_memory.longterm.search.rerank import FIRST, Rerank, as_found
from mcp_memory.longterm.search.results import SHOWN, allowed, results
from mcp_memory.longterm.search.search import Ranked, Search
from mcp_memory.store.protocol import Filters, Layer, Store, Vectors

__all__ = ["known", "memories", "mixed", "of_turns", "said", "turns"]

_FACTS = 20
_AT_A_TIME = 5
_ENTITIES = 1_000

Embed = Callable[[str], Sequence[Vectors]]
Ask = Callable[[Layer, Filters, int], list[Ranked]]
"""Search a layer for one question: what passes the filters, at most so many."""


def turns(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embed: Embed,
    filters: Filters,
    neighbours: int,
    limit: int,
    cursor: str | None,
    at: datetime,
    rerank: Rerank = as_found,
) -> TurnResults:
    """Return a page of turns that match, best first, each with its neighbours. Raises InvalidInput.

    `limit` counts places: a hit that is shown already, as a neighbour of better ones, takes none, so that a page
    has less than twice as many hits. `at` is
    `pages.asked_at` of the cursor.
    """
    if not query.strip():
        raise InvalidInput("The query is empty. Say what to look for, in the words you would expect to find.")
    if filters.session is not None and not store.session_turns(space, filters.session, limit=1):
        name = one_line(filters.session, 60)
        raise NotFound(f"There is no session {name!r} in this space. Leave it out to search all of them.")
    page = page_of(cursor, ("turns", space, query, filters), at=at, store=store, space=space)
    found = search(
        space,
        "turn",
        query,
        embed=embed,
        filters=_then(filters, page, "turn"),
        limit=max(FIRST, len(page.shown) + 2 * limit),
        at=at,
    )
    ranked = rerank(space, query, found, len(page.shown))
    fresh = _fresh(ranked.hits, page)
    hits = _turn_hits(store, space, fresh[: 2 * limit - 1 if neighbours else limit], neighbours)
    many = _filling(hits, limit)
    return TurnResults(
        hits=hits[:many],
        cursor=_next(page, fresh, many),
        start=page.cursor(),
        note=ranked.note,
        results=_results(store, space, query, filters, page, limit),
    )


def memories(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embed: Embed,
    filters: Filters,
    limit: int,
    cursor: str | None,
    at: datetime,
    rerank: Rerank = as_found,
) -> MemoryResults:
    """Return a page of atoms and verbatim turns, each best first; facts and scenes on the first page.

    Without a query the atoms that pass the filters are listed, standing instructions first. Raises NotFound for a
    scene that is not there.
    """
    filters = find_scenes.named(store, space, filters)
    listing = not query.strip()
    page = page_of(cursor, ("memories", space, query, filters), at=at, store=store, space=space, listing=listing)
    note, atoms = None, list[Ranked]()
    if listing:
        fresh = _listed(store, space, filters, page, limit + 1)
    else:
        wanted = max(FIRST, len(page.shown) + limit + 1)

        def ask(layer: Layer, filters: Filters, limit: int) -> list[Ranked]:
            return search(space, layer, query, embed=embed, filters=filters, limit=limit, at=at)

        atoms = known(ask, _then(filters, page, "atom"), wanted)
        verbatim = said(ask, _then(filters, page, "turn"), wanted)
        ranked = rerank(space, query, mixed(store, space, atoms, verbatim), len(page.shown))
        fresh, note = _fresh(ranked.hits, page), ranked.note
    return MemoryResults(
        atoms=_atom_hits(store, space, [hit for hit in fresh[:limit] if hit.id[0] == "a"]),
        facts=_facts(store, space, query, filters) if page.first else [],
        scenes=find_scenes.matching(store, space, query, filters=filters, atoms=atoms, at=at) if page.first else [],
        turns=_turn_hits(store, space, [hit for hit in fresh[:limit] if hit.id[0] == "t"], 0),
        cursor=_next(page, fresh, limit),
        start=page.cursor(),
        note=note,
        results=[] if listing else _results(store, space, query, filters, page, limit),
    )


# --- pages ------------------------------------------------------------------------------------------


def _then(filters: Filters, page: Page, layer: Layer) -> Filters:
    """Return the filters, held to the rows that there were when the question was first asked."""
    return filters if page.first else replace(filters, upto=page.upto(layer))


def _fresh(hits: Sequence[Ranked], page: Page) -> list[Ranked]:
    return [hit for hit in hits if hit.id not in page.shown]


def _next(page: Page, fresh: Sequence[Ranked], limit: int) -> str | None:
    return after(page.cursor(), [hit.id for hit in fresh[:limit]]) if len(fresh) > limit else None


def _filling(hits: Sequence[TurnHit], limit: int) -> int:
    """Return how many hits, best first, fill `limit` places; a hit that is shown as a neighbour takes none."""
    shown: set[str] = set()
    taken = 0
    for many, hit in enumerate(hits):
        if hit.turn.id not in shown:
            if taken == limit:
                return many
            taken += 1
        shown.update(turn.id for turn in (hit.turn, *hit.neighbours))
    return len(hits)


# --- what is found ----------------------------------------------------------------------------------


def _listed(store: Store, space: str, filters: Filters, page: Page, limit: int) -> list[Ranked]:
    last = next(iter(page.shown), None)
    listed = store.list_atoms(space, filters=_then(filters, page, "atom"), after=last, limit=limit)
    return [Ranked(id=atom.id, score=0.0, found_by={"listed": 1.0}, cosine=None) for atom in listed]


def known(ask: Ask, filters: Filters, limit: int) -> list[Ranked]:
    """Return atoms that share a word with the query or are near in meaning."""
    hits = ask("atom", filters, MAX_SHOWN)
    return [hit for hit in hits if "words" in hit.found_by or (hit.cosine or 0.0) >= find_scenes.MIN_COSINE][:limit]


def said(ask: Ask, filters: Filters, limit: int) -> list[Ranked]:
    """Return verbatim turns; filters that only atoms know leave them out."""
    passing = of_turns(filters)
    return ask("turn", passing, limit) if passing and limit > 0 else []


def of_turns(filters: Filters) -> Filters | None:
    """Return the filters of a memory search as they are for turns; None where they leave out all."""
    if filters.kind or filters.entity or filters.scene:
        return None
    until = filters.until if filters.as_of is None else min(filters.as_of, filters.until or filters.as_of)
    return Filters(since=filters.since, until=until, upto=filters.upto)


def mixed(store: Store, space: str, atoms: Sequence[Ranked], verbatim: Sequence[Ranked]) -> list[Ranked]:
    """Return atoms and turns, some of each in turn, without turns that an atom before them rests on.

    Neither ranks the other: on real conversations atoms in front of all turns hide a tenth of the evidence, and
    together they bring a little more of it than turns alone (`bench.pyramid`).
    """
    rests = {atom.id: {atom.evidence, *(one.turn for one in atom.also)} for atom in store.atoms(space, _ids(atoms))}
    order: list[Ranked] = []
    told: set[str] = set()
    left = iter(verbatim)
    for start in range(0, len(atoms), _AT_A_TIME):
        some = atoms[start : start + _AT_A_TIME]
        told.update(turn for atom in some for turn in rests.get(atom.id, ()))
        order += [*some, *islice((hit for hit in left if hit.id not in told), _AT_A_TIME)]
    return [*order, *(hit for hit in left if hit.id not in told)]


def _results(store: Store, space: str, query: str, filters: Filters, page: Page, limit: int) -> list[ResultHit]:
    """Return lines of tool results, on the first page: a few that are about the query; any, if only they are asked."""
    passing = allowed(filters) if page.first else None
    if passing is None or not store.size(space, "chunk"):
        return []
    question = read(query, page.at, relatives=False)
    if filters.role == "tool":
        return results(store, space, question, filters=passing, limit=limit, least=0.0)
    return results(store, space, question, filters=passing, limit=min(limit, SHOWN))


def _ids(hits: Sequence[Ranked]) -> list[str]:
    return [hit.id for hit in hits]


def _facts(store: Store, space: str, query: str, filters: Filters) -> list[Fact]:
    """Return the facts of the entity or scene asked for, or those whose entity the query names."""
    words = set(query_terms(query))
    filtered = filters.entity is not None or filters.scene is not None
    if not filtered and not words:
        return []
    facts = store.facts(space, filters=replace(filters, unheld=True), limit=500)
    if not filtered:
        names = {fold(one.name): " ".join((one.name, *one.aliases)) for one in store.entities(space, limit=_ENTITIES)}
        facts = [fact for fact in facts if _named(fact, names, words)]
    return facts[:_FACTS]


def _named(fact: Fact, names: Mapping[str, str], words: set[str]) -> bool:
    """Tell whether the words name a fact's entity, by any of its names, or what is told of the user."""
    entity = fold(fact.entity)
    asked = fact.relation.replace("_", " ") if entity == "user" else names.get(entity, fact.entity)
    return bool(words & set(index_terms(asked)))


def _turn_hits(store: Store, space: str, hits: Sequence[Ranked], neighbours: int) -> list[TurnHit]:
    ids = [hit.id for hit in hits]
    near = store.surroundings(space, ids, around=neighbours) if neighbours else store.turns(space, ids)
    found = {turn.id: turn for turn in near}
    held = {one.id: one.reasons for one in store.held(space, found) if one.verdict != "released"}
    return [
        TurnHit(
            turn=found[hit.id],
            score=round(hit.score, 5),
            found_by=dict(hit.found_by),
            neighbours=_around(found[hit.id], near, neighbours) if neighbours else [],
            held=held,
        )
        for hit in hits
        if hit.id in found
    ]


def _around(turn: Turn, near: Sequence[Turn], neighbours: int) -> list[Turn]:
    return [
        other
        for other in near
        if other.session == turn.session and 0 < abs(other.position - turn.position) <= neighbours
    ]


def _atom_hits(store: Store, space: str, hits: Sequence[Ranked]) -> list[AtomHit]:
    found = {atom.id: atom for atom in store.atoms(space, [hit.id for hit in hits])}
    cites = store.citations(space, list(found))
    return [
        AtomHit(
            atom=found[hit.id],
            score=round(hit.score, 5),
            found_by=dict(hit.found_by),
            cites=tuple(cites.get(hit.id, ())),
        )
        for hit in hits
        if hit.id in found
    ]
