"""The two searches as they are answered: pages of turns in their context, and of atoms, facts and turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcp_memory.errors import InvalidInput, NotFound
from mcp_memory.longterm.pages import MAX_OFFSET, next_cursor, offset_of
from mcp_memory.longterm.rerank import FIRST, Rerank, as_found
from mcp_memory.longterm.search import Ranked, Search
from mcp_memory.store.protocol import Filters, Store, Vectors
from mcp_memory.text import fold, index_terms, query_terms
from mcp_memory.types import AtomHit, Fact, MemoryResults, TurnHit, TurnResults

__all__ = ["memories", "turns"]

_MIN_COSINE = 0.6  # an atom that shares no word must at least be near: its absence lets turns speak
_FACTS = 20

Embedded = Callable[[], Sequence[Vectors]]


def turns(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embedded: Embedded,
    filters: Filters,
    neighbours: int,
    limit: int,
    cursor: str | None,
    rerank: Rerank = as_found,
) -> TurnResults:
    """Return a page of turns that match, best first, each with its neighbours. Raises InvalidInput."""
    if not query.strip():
        raise InvalidInput("The query is empty. Say what to look for, in the words you would expect to find.")
    if filters.session is not None and not store.session_turns(space, filters.session, limit=1):
        raise NotFound(f"There is no session {filters.session!r} in this space. Leave it out to search all of them.")
    asked = ("turns", space, query, filters)
    start = offset_of(cursor, asked)
    found = search(space, "turn", query, embedded=embedded, filters=filters, limit=max(FIRST, start + limit + 1))
    ranked = rerank(space, query, found, start)
    return TurnResults(
        hits=_turn_hits(store, space, ranked.hits[start : start + limit], neighbours),
        cursor=_more(ranked.hits, start + limit, asked),
        note=ranked.note,
    )


def memories(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embedded: Embedded,
    filters: Filters,
    limit: int,
    cursor: str | None,
    rerank: Rerank = as_found,
) -> MemoryResults:
    """Return a page of atoms, best first, then of verbatim turns where atoms are few; facts on the first page.

    Without a query the atoms that pass the filters are listed, standing instructions first.
    """
    asked = ("memories", space, query, filters)
    start = offset_of(cursor, asked)
    wanted = max(FIRST, start + limit + 1)
    if query.strip():
        atoms = [
            hit
            for hit in search(space, "atom", query, embedded=embedded, filters=filters, limit=wanted)
            if "words" in hit.found_by or (hit.cosine or 0.0) >= _MIN_COSINE
        ]
    else:
        listed = store.list_atoms(space, filters=filters, limit=wanted)
        atoms = [Ranked(id=atom.id, score=0.0, found_by=["listed"], cosine=None) for atom in listed]
    said = _said(store, search, space, query, embedded, filters, wanted - len(atoms), {hit.id for hit in atoms})
    ranked = rerank(space, query, [*atoms, *said], start)
    page = ranked.hits[start : start + limit]
    return MemoryResults(
        atoms=_atom_hits(store, space, [hit for hit in page if hit.id[0] == "a"]),
        facts=_facts(store, space, query, filters) if start == 0 else [],
        turns=_turn_hits(store, space, [hit for hit in page if hit.id[0] == "t"], 0),
        cursor=_more(ranked.hits, start + limit, asked),
        note=ranked.note,
    )


def _said(
    store: Store,
    search: Search,
    space: str,
    query: str,
    embedded: Embedded,
    filters: Filters,
    limit: int,
    atoms: set[str],
) -> list[Ranked]:
    """Return turns to fill up with; filters that only atoms know leave them out."""
    if limit <= 0 or not query.strip() or filters.kind or filters.entity:
        return []
    until = filters.until if filters.as_of is None else min(filters.as_of, filters.until or filters.as_of)
    evidence = {atom.evidence for atom in store.atoms(space, atoms)}
    hits = search(
        space,
        "turn",
        query,
        embedded=embedded,
        filters=Filters(since=filters.since, until=until),
        limit=limit + len(evidence),
    )
    return [hit for hit in hits if hit.id not in evidence][:limit]


def _facts(store: Store, space: str, query: str, filters: Filters) -> list[Fact]:
    """Return the facts of the entity asked for, or those whose entity or value the query names."""
    facts = store.facts(space, filters=filters, limit=500)
    if filters.entity is None:
        words = set(query_terms(query))
        facts = [fact for fact in facts if _named(fact, words)]
    return facts[:_FACTS]


def _named(fact: Fact, words: set[str]) -> bool:
    if fold(fact.entity) == "user":
        return bool(words & set(index_terms(fact.relation.replace("_", " "))))
    return bool(words & set(index_terms(fact.entity)))


def _turn_hits(store: Store, space: str, hits: Sequence[Ranked], neighbours: int) -> list[TurnHit]:
    found = {turn.id: turn for turn in store.turns(space, [hit.id for hit in hits])}
    return [
        TurnHit(
            turn=found[hit.id],
            score=round(hit.score, 5),
            found_by=hit.found_by,
            neighbours=(store.neighbours(space, hit.id, before=neighbours, after=neighbours) if neighbours else []),
        )
        for hit in hits
        if hit.id in found
    ]


def _atom_hits(store: Store, space: str, hits: Sequence[Ranked]) -> list[AtomHit]:
    found = {atom.id: atom for atom in store.atoms(space, [hit.id for hit in hits])}
    return [
        AtomHit(atom=found[hit.id], score=round(hit.score, 5), found_by=hit.found_by) for hit in hits if hit.id in found
    ]


def _more(hits: Sequence[Ranked], end: int, asked: object) -> str | None:
    return next_cursor(end, asked) if len(hits) > end and end < MAX_OFFSET else None
