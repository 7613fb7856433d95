"""Reranking of the first results of a search by a language model that reads them.

It changes the order of at most 20 results and nothing else: none is lost, none is added, and any failure (no answer in
time, a refusal, an invalid reply, the daily token limit) keeps the search's order, with a note. The results are sent as
data behind fences that they cannot close; an instruction written into a memory can at worst change the order of these
20 results.

All pages of a question use one order, which costs one call: this process keeps the order for the question and its
results. A failure is kept only for further pages: a repeated first page asks again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.core.lru import LRU
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Turn
from mcp_memory.language.snippet import matches, snippet
from mcp_memory.language.words import query_terms
from mcp_memory.longterm.search.search import Ranked
from mcp_memory.longterm.validity import date_of
from mcp_memory.models.metered import MeteredModel, ModelQuestion
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, turn_rows

FIRST = 20
_WIDTH = 700  # characters of a result; 20 of them and the rules are some 4,000 tokens
_SHORT, _BEFORE = 200, 160  # a turn this short often makes sense only after the one before it
_KEPT_ORDERS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranked:
    """The results in their new order; if the model gave no order, in their old order with the reason as `note`."""

    hits: list[Ranked]
    note: str | None = None


class Order(BaseModel):
    """The model's reply: numbers of results, the best first."""

    order: list[int]


Rerank = Callable[[str, str, Sequence[Ranked], int], Reranked]
"""Takes the space, the question, all results, and the index at which the requested page begins."""


def keep_order(space: str, query: str, hits: Sequence[Ranked], start: int) -> Reranked:
    """Leave the order as it is: the default for a search without a model."""
    return Reranked(hits=list(hits))


def make_rerank(store: Store, model: MeteredModel | None, settings: Settings) -> Rerank:
    """Return a `ModelRerank` if there is a model and `settings.rerank` is on, else `keep_order`."""
    if model is None or not settings.rerank:
        return keep_order
    return ModelRerank(store, model, timeout=settings.rerank_timeout)


class ModelRerank:
    """A `Rerank` that asks a model and remembers its replies."""

    def __init__(self, store: Store, model: MeteredModel, *, timeout: float) -> None:
        self._store = store
        self._model = model
        self._timeout = timeout
        self._orders = LRU[tuple[str, str, tuple[str, ...]], list[int] | str](_KEPT_ORDERS)
        """For each search, the model's order, or the reason why there is none."""

    def __call__(self, space: str, query: str, hits: Sequence[Ranked], start: int) -> Reranked:
        head, rest = hits[:FIRST], hits[FIRST:]
        if start >= FIRST or len(head) < 2 or not query.strip():
            return keep_order(space, query, hits, start)
        key = (space, query, tuple(hit.id for hit in head))
        order = self._orders.get(key)
        if order is None or (isinstance(order, str) and start == 0):
            order = self._orders.put(key, self._ask(space, query, head))
        if isinstance(order, str):
            return Reranked(hits=list(hits), note=order)
        return Reranked(hits=[*_in_order(head, order), *rest])

    def _ask(self, space: str, query: str, head: Sequence[Ranked]) -> list[int] | str:
        question = ModelQuestion(
            purpose="rerank",
            messages=prompt(
                "rerank", question=_fence(mask(query[:2_000])), results=_results(self._store, space, query, head)
            ),
            reply=Order,
            max_tokens=2_000,  # the order takes a hundred; a model that thinks first takes more
            timeout=self._timeout,
            repeats=1,
            corrections=0,
        )
        try:
            with self._store.outside_snapshot():
                return _check_order(self._model.complete(question, space=space), len(head))
        except McpMemoryError as error:
            return f"The model did not rank these results; they stand as words and meaning found them. {error}"


def _check_order(reply: Order, many: int) -> list[int]:
    """Return the distinct numbers of a reply, in order. Raises InvalidInput for a number that no result has."""
    unknown = [number for number in reply.order if not 1 <= number <= many]
    if unknown:
        raise InvalidInput(f"It named result {unknown[0]}, and there are {many}.")
    return list(dict.fromkeys(reply.order))


def _in_order(head: Sequence[Ranked], order: Sequence[int]) -> Iterator[Ranked]:
    """Yield the results in `order`, then the remaining results; the scores are reassigned, highest first."""
    named = [
        replace(head[number - 1], found_by={**head[number - 1].found_by, "model": place})
        for place, number in enumerate(order, start=1)
    ]
    others = [hit for number, hit in enumerate(head, start=1) if number not in order]
    scores = sorted((hit.score for hit in head), reverse=True)
    for hit, score in zip([*named, *others], scores, strict=True):
        yield replace(hit, score=score)


# --- what the model reads ---------------------------------------------------------------------------


def _results(store: Store, space: str, query: str, head: Sequence[Ranked]) -> str:
    ids = [hit.id for hit in head]
    near = store.read(space, turn_rows.context_windows, [id for id in ids if id[0] == "t"], around=1)
    turns = {turn.id: turn for turn in near}
    places = {(turn.session, turn.position): turn for turn in near}
    atoms = {atom.id: atom for atom in store.read(space, atom_rows.by_ids, [id for id in ids if id[0] == "a"])}
    terms = frozenset(query_terms(query))
    shown: list[str] = []
    for number, id in enumerate(ids, start=1):
        if turn := turns.get(id):
            date, by, text = f"{turn.said_at:%Y-%m-%d}", _speaker(turn), _turn(turn, places, terms)
        elif atom := atoms.get(id):
            date, by, text = date_of(atom.valid_from, atom.text), "a note", _atom(atom)
        else:  # forgotten since it was found
            continue
        shown.append(f'<result number="{number}" date="{date}" by="{by}">\n{_fence(text)}\n</result>')
    return "\n".join(shown)


def _turn(turn: Turn, near: dict[tuple[str, int], Turn], terms: frozenset[str]) -> str:
    text = _excerpt(turn.content, terms)
    before = near.get((turn.session, turn.position - 1))
    if len(turn.content) > _SHORT or before is None:
        return text
    return f"[{_speaker(before)} just before: {one_line(before.content, _BEFORE)}]\n{text}"


def _atom(atom: Atom) -> str:
    fact = f" ({atom.fact.entity}: {atom.fact.relation} {atom.fact.value})" if atom.fact else ""
    ended = f" [until {atom.valid_to:%Y-%m-%d}]" if atom.valid_to else ""
    return one_line(atom.text, _WIDTH) + fact + ended


def _speaker(turn: Turn) -> str:
    return re.sub(r'[<>"&\s]+', " ", turn.name or turn.role)[:40]


def _excerpt(text: str, terms: frozenset[str]) -> str:
    return text if len(text) <= _WIDTH else snippet(text, _WIDTH, matches(text, terms))[0]


def _fence(text: str) -> str:
    return fenced(text, "results?", "question")
