"""Finds other rows with the content of forgotten rows: by evidence, and by the similarity of their texts.

A user who says "forget that" means the content wherever it is: in the turn, in the assistant's echo, in a tool result.
Only the named rows are forgotten; the rows found here are offered to the user.

Agents repeat the user in goals of tasks, names of steps and summaries, so these texts are compared too
(`shortterm.canvas.forgetting`).

Two texts are compared by the weighted overlap of their terms (Dice's coefficient), so each must cover most of the
other, and a name that both mention is not enough. The shorter text is compared with each passage of about its length in
the longer text. Rare terms weigh more, by BM25's inverse document frequency, but copies of the text do not make its
terms common, and no term weighs less than half of another.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mcp_memory.language.words import base_terms, content_terms
from mcp_memory.longterm.search.ranking import rarity
from mcp_memory.longterm.search.search import row_texts
from mcp_memory.longterm.verification.evidence import call_of
from mcp_memory.store.forgetting import Reach
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import word_index
from mcp_memory.store.values import Filters, Layer, Posting

_TEXTS = 30
"""Number of forgotten texts that are compared with the other rows."""
_TERMS, _CANDIDATES = 60, 200
_SIMILAR = 0.6
_SHARED = 3
"""The least number of terms that similar texts share, unless one text has no other terms; "Ada likes" is not enough."""
_LAYERS: tuple[Layer, ...] = ("turn", "atom", "chunk")
_PREFIX: Mapping[Layer, str] = {"turn": "t", "atom": "a", "chunk": "c"}


def restatements(
    store: Store,
    space: str,
    reach: Reach,
    agent_texts: Iterable[tuple[str, str]],
    *,
    query: str | None = None,
    other_space: str | None = None,
) -> dict[str, str]:
    """Return the ids of other rows with the content of rows in `reach`, each with the agent's text that matched, or "".

    The turns that are evidence come first, then the most similar rows. `agent_texts` are (id, text) pairs that are
    compared too; they also match if they have all words of `query`. With `other_space`, the rows are those of that
    space, and `reach` and `agent_texts` are of `space`.
    """
    forgotten = {*reach.ids, *reach.notes} if other_space is None else set[str]()
    scores, matching_text = defaultdict[str, float](float), dict[str, str]()
    row_ids = [id for id in reach.ids if id[0] in "ta"][:_TEXTS]
    texts = list(dict.fromkeys(row_texts(store, space, row_ids).values()))
    calls = [call_of(store, space, ref) for ref in reach.refs[:_TEXTS]]
    for text in (*texts, *calls):
        for id, score in _similar(store, other_space or space, text):
            scores[id] = max(scores[id], score)
    # Calls are left out here: an agent calls the same tool often.
    for id, (score, text) in _similarities(texts, agent_texts, words=base_terms(query or "")).items():
        scores[id] = max(scores[id], score)
        matching_text[id] = text
    said_in = reach.said_in if other_space is None else ()
    ranked = sorted(scores, key=lambda id: (-scores[id], len(id), id))
    return {id: matching_text.get(id, "") for id in [*said_in, *ranked] if id not in forgotten}


def repeating(texts: Iterable[str], agent_texts: Iterable[tuple[str, str]]) -> list[str]:
    """Return the ids of the agents' texts that repeat erased texts. Erased texts of one or two terms are ignored."""
    distinct = [text for text in texts if len({*content_terms(text)}) >= _SHARED]
    return sorted(_similarities(distinct, agent_texts))


def _similar(store: Store, space: str, text: str) -> Iterator[tuple[str, float]]:
    """Yield the ids of rows with the content of a text, with their similarity up to 1."""
    terms = content_terms(text)
    distinct = list(dict.fromkeys(terms))[:_TERMS]
    for layer in _LAYERS if terms else ():
        total = store.totals(space, layer).rows
        postings = store.postings(space, layer, distinct, filters=Filters(ended=layer == "atom")) if total else []
        weights = _weights(postings, len(distinct), total)
        for id, other in _row_texts(store, space, layer, _candidates(postings, weights)):
            similarity = _similarity(terms, content_terms(other), weights)
            if similarity >= _SIMILAR:
                yield id, similarity


def _similarities(
    texts: Iterable[str], agent_texts: Iterable[tuple[str, str]], *, words: Iterable[str] = ()
) -> dict[str, tuple[float, str]]:
    """Return the ids whose text is similar to any of `texts` or has all `words`, with the similarity and the text."""
    all_terms, by_term = [content_terms(text) for text in dict.fromkeys(texts)], defaultdict[str, list[int]](list)
    for number, terms in enumerate(all_terms):
        for term in set(terms):
            by_term[term].append(number)
    words, similar = set(words), dict[str, tuple[float, str]]()
    for id, text in agent_texts if by_term or words else ():
        best = 1.0 if words and words <= set(base_terms(text)) else 0.0
        terms = content_terms(text)
        shared = Counter(number for term in set(terms) for number in by_term.get(term, ()))
        for number, count in shared.items():
            # Short texts, such as `Run the tests`, occur in others by chance.
            if count >= _SHARED or set(terms) == set(all_terms[number]):
                best = max(best, _similarity(all_terms[number], terms, {}))
        if best >= max(_SIMILAR, similar[id][0] if id in similar else 0.0):
            similar[id] = best, text
    return similar


def _weights(postings: Sequence[Posting], terms: int, total: int) -> dict[str, float]:
    """Return the weights of a text's terms, from 0.5 to 1; a term that is missing weighs 1.

    Rows with at least half of its terms may be copies. They do not count as documents that make a term common.
    """
    shared = Counter(row for posting in postings for row in posting.rows.tolist())
    copies = sum(1 for count in shared.values() if 2 * count >= terms)
    most = rarity(1, total) or 1.0
    return {
        posting.term: max(0.5, min(1.0, rarity(max(1, posting.documents - copies), total) / most))
        for posting in postings
    }


def _candidates(postings: Sequence[Posting], weights: Mapping[str, float]) -> list[int]:
    """Return the numbers of the rows that have the most of the terms, newest first among equals."""
    shared = defaultdict[int, float](float)
    for posting in postings:
        for row in posting.rows.tolist():
            shared[row] += weights[posting.term]
    return sorted(shared, key=lambda row: (-shared[row], -row))[:_CANDIDATES]


def _row_texts(store: Store, space: str, layer: Layer, rows: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield the texts of rows with their ids; the id of a chunk is that of its result."""
    ids = [f"{_PREFIX[layer]}{row}" for row in rows]
    if layer == "chunk":
        yield from (
            (chunk.ref, data.decode("utf-8", "replace"))
            for chunk, data in store.read(space, word_index.chunks_by_id, ids)
        )
    else:
        yield from row_texts(store, space, ids).items()


def _similarity(terms: Sequence[str], other_terms: Sequence[str], weights: Mapping[str, float]) -> float:
    """Return Dice's coefficient of the shorter text and the most similar passage of the longer text."""
    shorter, longer = sorted((terms, other_terms), key=len)
    distinct = {*shorter}
    whole = _weight(distinct, weights)
    # Every passage of the shorter text's length lies inside one of these windows.
    step = max(1, len(shorter) // 2)
    size = len(shorter) + step
    best = 0.0
    for start in range(0, max(1, len(longer) - len(shorter) + step), step):
        passage = {*longer[start : start + size]}
        shared = passage & distinct
        if len(shared) >= _SHARED or shared == distinct:
            best = max(best, 2 * _weight(shared, weights) / (whole + _weight(passage, weights)))
    return best


def _weight(terms: set[str], weights: Mapping[str, float]) -> float:
    return sum(weights.get(term, 1.0) for term in terms)
