"""Finds other rows with the content of forgotten ones: by evidence, and by the rare words that they share.

A user who says "forget that" means the content wherever it is: in the turn, in the assistant's echo, in a tool result.
Only the named rows are forgotten; these are offered.

A row counts if it shares at least `_SHARE` of the weight of the words of a forgotten text (or of its own text), and one
of the shared words is rare. Words are weighted by BM25's inverse document frequency, from the index of the search.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from mcp_memory.language.words import base_terms, function_words_of
from mcp_memory.longterm.search.ranking import rarity
from mcp_memory.longterm.search.search import row_texts
from mcp_memory.longterm.verification.evidence import call_of
from mcp_memory.store.forgetting import Reach
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Filters, Layer, Posting

__all__ = ["restatements"]

LIMIT = 12
_TEXTS = 30
"""Number of forgotten texts that are compared with the other rows."""
_TERMS, _CANDIDATES = 60, 60
_SHARE = 0.4
_RARE_ROWS, _RARE_SHARE = 3, 0.02
_LAYERS: tuple[Layer, ...] = ("turn", "atom", "chunk")
_PREFIX: Mapping[Layer, str] = {"turn": "t", "atom": "a", "chunk": "c"}


def restatements(store: Store, space: str, reach: Reach) -> list[str]:
    """Return the ids of other rows with the content of the rows in `reach`, evidence first; at most LIMIT."""
    going = {*reach.ids, *reach.notes}
    found = dict.fromkeys(id for id in reach.said_in if id not in going)
    scores = defaultdict[str, float](float)
    for text in _texts(store, space, reach):
        for id, score in _similar(store, space, text):
            if id not in going:
                scores[id] = max(scores[id], score)
    return list(found | dict.fromkeys(sorted(scores, key=lambda id: (-scores[id], id))))[:LIMIT]


def _texts(store: Store, space: str, reach: Reach) -> list[str]:
    ids = reach.ids[:_TEXTS]
    texts = row_texts(store, space, [id for id in ids if id[0] != "r"])
    return [*dict.fromkeys(texts.values()), *(call_of(store, space, id) for id in ids if id[0] == "r")]


def _similar(store: Store, space: str, text: str) -> Iterator[tuple[str, float]]:
    """Yield the ids of rows with the content of a text, with scores in (0, 1]."""
    terms = list(dict.fromkeys(base_terms(text)))
    common = function_words_of(terms)
    terms = [term for term in terms if term not in common][:_TERMS]
    for layer in _LAYERS if terms else ():
        total = store.totals(space, layer).rows
        postings = store.postings(space, layer, terms, filters=Filters(ended=layer == "atom")) if total else []
        yield from _of_layer(store, space, layer, terms, postings, total)


def _of_layer(
    store: Store, space: str, layer: Layer, terms: Sequence[str], postings: Sequence[Posting], total: int
) -> Iterator[tuple[str, float]]:
    worth = {term: rarity(1, total) for term in terms} | {one.term: rarity(one.documents, total) for one in postings}
    rare = {one.term for one in postings if one.documents <= max(_RARE_ROWS, _RARE_SHARE * total)}
    shared = defaultdict[int, set[str]](set)
    for one in postings:
        for row in one.rows.tolist():
            shared[row].add(one.term)
    weights = {row: sum(worth[term] for term in terms) for row, terms in shared.items() if terms & rare}
    best = sorted(weights, key=lambda row: -weights[row])[:_CANDIDATES]
    whole = sum(worth.values())
    if layer == "chunk":
        ids = [f"c{row}" for row in best if weights[row] >= _SHARE * whole]
        refs = {chunk.id: chunk.ref for chunk, _ in store.chunks(space, ids)}
        yield from ((refs[id], weights[int(id[1:])] / whole) for id in ids if id in refs)
        return
    named = {f"{_PREFIX[layer]}{row}": row for row in best}
    for id, own in row_texts(store, space, list(named)).items():
        weight = weights[named[id]]
        share = max(weight / whole, weight / _weight(own, worth, unknown=rarity(1, total)))
        if share >= _SHARE:
            yield id, min(1.0, share)


def _weight(text: str, worth: Mapping[str, float], *, unknown: float) -> float:
    """Return the weight of all words of a text; those without a weight count as rare."""
    terms: Collection[str] = set(base_terms(text))
    common = function_words_of(list(terms))
    return sum(worth.get(term, unknown) for term in terms if term not in common) or unknown
