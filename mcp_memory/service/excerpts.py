"""Excerpts of search results that fit a token budget.

An explicit budget is exact for both forms of the answer, text and JSON; without it the answer is about as long as
`BUDGETS` says. Long turns are shortened first, neighbours before hits, each to the part around the matching words; then
hits are dropped from the end, and the cursor returns them first. Lines of tool results are dropped before any hit. Hits
with adjacent neighbours form one passage, each turn once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, remove_hidden, with_speaker
from mcp_memory.core.token_counts import TokenCounter
from mcp_memory.core.types import (
    AtomHit,
    Detail,
    Excerpt,
    Found,
    MemoryResults,
    Passage,
    ResultHit,
    Scene,
    SceneHit,
    ShownAtom,
    ShownMemories,
    ShownResult,
    ShownScene,
    ShownTurns,
    Turn,
    TurnHit,
    TurnResults,
)
from mcp_memory.language.snippet import TermMatch, matches, snippet, words
from mcp_memory.language.words import query_terms
from mcp_memory.longterm.search.literals import VERBATIM
from mcp_memory.longterm.search.pages import after
from mcp_memory.service.render import as_json, render
from mcp_memory.store.citations import address
from mcp_memory.suspicion.flags import flags

BUDGETS: dict[Detail, int] = {"concise": 2_500, "detailed": 6_000}
_BYTES_A_TOKEN = 3
_WHOLE = 1 << 30
_WIDTHS: dict[Detail, tuple[tuple[int, int], ...]] = {  # characters of a hit and of a neighbour
    "concise": ((320, 106), (320, 64), (220, 55), (150, 37), (100, 25), (60, 15), (24, 6)),
    "detailed": tuple(
        (width, width // 3) for width in (_WHOLE, 6_000, 4_000, 2_600, 1_700, 1_100, 700, 450, 300, 200, 120, 60, 24)
    ),
}
_FACTS = (20, 12, 6, 3, 0)
_FACTS_A_SCENE = 5  # facts and scenes are reduced together
_CITES = 5  # citations of an atom

_Shown = TypeVar("_Shown", ShownTurns, ShownMemories)


@dataclass(frozen=True, kw_only=True)
class ExcerptRequest:
    """How to show an answer: detail, budget in tokens, and the query around whose words excerpts are cut."""

    query: str
    detail: Detail
    counter: TokenCounter
    budget: int | None = None

    @cached_property
    def tokens(self) -> int:
        return BUDGETS[self.detail] if self.budget is None else self.budget

    @cached_property
    def terms(self) -> AbstractSet[str]:
        return frozenset(query_terms(self.query))

    def fits(self, answer: ShownTurns | ShownMemories) -> bool:
        """Return whether an answer is within the budget: exactly for an explicit budget, by bytes for the default.

        JSON, the longer of the two forms, has three bytes a token, so this is about right. Most searches then need
        neither the 10 ms of counting nor the 50 MB of a vocabulary.
        """
        data = as_json(answer)
        if self.budget is None:
            return len(data.encode("utf-8", "surrogatepass")) <= self.tokens * _BYTES_A_TOKEN
        return self.counter.fits(data, self.tokens) and self.counter.fits(render(answer), self.tokens)


def shown_turns(results: TurnResults, request: ExcerptRequest) -> ShownTurns:
    """Return the part of the results that fits the budget. Raises InvalidInput if no hit fits."""
    excerpts = _Excerpts(request)

    def draft(count: int, widths: tuple[int, int], facts: int) -> ShownTurns:
        hits, lines = results.hits[:count], _count_results(results.results, facts)
        return ShownTurns(
            passages=[excerpts.passage(passage, *widths) for passage in passages(hits)],
            left_out=len(results.hits) - count,
            cursor=_cursor(results, [hit.turn.id for hit in hits], len(results.hits) - count),
            note=_note_omissions(results.note, 0, [], len(results.results) - lines),
            results=[excerpts.result(hit, widths[0]) for hit in results.results[:lines]],
            known=results.known,
            listed=None if request.query.strip() else True,
        )

    return _fit(draft, len(results.hits), request)


def shown_memories(results: MemoryResults, request: ExcerptRequest) -> ShownMemories:
    """Return the part of the results that fits the budget, atoms first. Raises InvalidInput if no hit fits."""
    excerpts = _Excerpts(request)
    total = len(results.atoms) + len(results.turns)

    def draft(count: int, widths: tuple[int, int], facts: int) -> ShownMemories:
        width, _ = widths
        atoms, turns = results.atoms[:count], results.turns[: max(0, count - len(results.atoms))]
        ids = [*(hit.atom.id for hit in atoms), *(hit.turn.id for hit in turns)]
        scenes, lines = math.ceil(facts / _FACTS_A_SCENE), _count_results(results.results, facts)
        return ShownMemories(
            atoms=[excerpts.atom(hit, width * 2) for hit in atoms],
            facts=results.facts[:facts],
            scenes=[excerpts.scene(hit, width) for hit in results.scenes[:scenes]],
            passages=[excerpts.passage(passage, *widths) for passage in passages(turns)],
            left_out=total - count,
            cursor=_cursor(results, ids, total - count),
            note=_note_omissions(
                results.note,
                len(results.facts) - facts,
                [hit.scene for hit in results.scenes[scenes:]],
                len(results.results) - lines,
            ),
            results=[excerpts.result(hit, width) for hit in results.results[:lines]],
            known=results.known,
        )

    return _fit(draft, total, request)


def _count_results(results: Sequence[ResultHit], facts: int) -> int:
    """Return how many results to show with this number of facts. Both shrink in proportion."""
    return math.ceil(len(results) * facts / _FACTS[0])


def _note_omissions(note: str | None, facts: int, scenes: Sequence[Scene], lines: int) -> str | None:
    """Return the note, extended by what did not fit: the number of facts, the names of scenes, the number of lines."""
    sentences = [note] if note else []
    if facts > 0:
        sentences.append(f"{facts} more facts did not fit: name an entity, or raise budget_tokens.")
    if scenes:
        sentences.append(f"Scenes that did not fit: {', '.join(scene.slug for scene in scenes)}.")
    if lines:
        sentences.append(f"Lines of tool results that did not fit: {lines}. Raise budget_tokens.")
    return " ".join(sentences) or None


def _cursor(results: TurnResults | MemoryResults, shown: Sequence[str], left_out: int) -> str | None:
    return after(results.start, shown) if left_out else results.cursor


def _fit(draft: Callable[[int, tuple[int, int], int], _Shown], total: int, request: ExcerptRequest) -> _Shown:
    """Return the fullest draft that fits: first narrower excerpts and fewer facts, then fewer hits.

    Raises InvalidInput if no hit fits.
    """
    steps = _WIDTHS[request.detail]
    for step, widths in enumerate(steps):
        answer = draft(total, widths, _FACTS[step * len(_FACTS) // len(steps)])
        if request.fits(answer):
            return answer
    fits, too_many = 0, total
    while too_many - fits > 1:
        count = (fits + too_many) // 2
        fits, too_many = (count, too_many) if request.fits(draft(count, steps[-1], 0)) else (fits, count)
    if fits == 0:
        raise InvalidInput(
            f"budget_tokens={request.tokens} is too small for one result with its neighbours. "
            "Raise budget_tokens, or ask for fewer neighbours."
        )
    return next(answer for widths in steps if request.fits(answer := draft(fits, widths, 0)))  # omitted hits leave room


# --- passages ---------------------------------------------------------------------------------------


def passages(hits: Sequence[TurnHit]) -> list[list[TurnHit | Turn]]:
    """Return the hits among their neighbours: adjacent runs are joined, in order; the run of the best hit first."""
    by_id = {hit.turn.id: hit for hit in hits}
    runs: list[list[Turn]] = []
    for hit in hits:
        run = [*hit.neighbours, hit.turn]
        meeting = [other for other in runs if hit.neighbours and _are_adjacent(other, run)]
        merged = {turn.id: turn for turns in (*meeting, run) for turn in turns}
        place = next((i for i, other in enumerate(runs) if other in meeting), len(runs))
        runs = [other for other in runs if other not in meeting]
        runs.insert(place, sorted(merged.values(), key=lambda turn: turn.position))
    return [[by_id.get(turn.id, turn) for turn in run] for run in runs]


def _are_adjacent(run: Sequence[Turn], other: Sequence[Turn]) -> bool:
    if run[0].session != other[0].session:
        return False
    places = {turn.position for turn in other}
    return any(turn.position + step in places for turn in run for step in (-1, 0, 1))


class _Excerpts:
    """Shortens turns and atoms around the words of the query, which are located once for all widths."""

    def __init__(self, request: ExcerptRequest) -> None:
        self._request = request
        self._matches: dict[str, list[TermMatch]] = {}
        self._words: dict[str, list[str]] = {}
        self._flags: dict[str, tuple[str, ...]] = {}
        self._newer: dict[str, Turn] = {}

    def passage(self, run: Iterable[TurnHit | Turn], width: int, beside: int) -> Passage:
        """Return a passage, its hits and their neighbours cut to so many characters."""
        rows = list(run)
        for row in rows:
            if isinstance(row, TurnHit):
                self._flags.update(row.held)
                self._newer.update(row.newer)
        return Passage(
            session=(rows[0].turn if isinstance(rows[0], TurnHit) else rows[0]).session,
            turns=[self._hit(row, width) if isinstance(row, TurnHit) else self._turn(row, beside) for row in rows],
        )

    def atom(self, hit: AtomHit, width: int) -> ShownAtom:
        return ShownAtom(
            atom=replace(hit.atom, text=self._cut(hit.atom.id, hit.atom.text, width)[0]),
            found=self._why(hit.atom.id, hit, hit.atom.text),
            cites=list(dict.fromkeys(address(cite.ref, cite.lines) for cite in hit.cites))[:_CITES],
            when=hit.when,
        )

    def result(self, hit: ResultHit, width: int) -> ShownResult:
        at = address(hit.ref, hit.lines)
        return ShownResult(
            at=at,
            call=one_line(hit.call, max(40, width // 2)),
            node=hit.node,
            taken=hit.at,
            content=remove_hidden(self._cut(at, hit.text, width * 5 // 4)[0]),
            found=self._why(at, hit, hit.text),
            held=flags(f"{hit.call}\n{hit.text}", "tool"),
            changed=hit.changed,
        )

    def scene(self, hit: SceneHit, width: int) -> ShownScene:
        content, hidden = self._cut(hit.scene.slug, hit.scene.body, width)
        return ShownScene(
            slug=hit.scene.slug,
            title=one_line(hit.scene.title, 80),
            summary=one_line(hit.scene.summary, width),
            updated=hit.scene.updated,
            content=content,
            hidden=hidden,
            found=self._why(hit.scene.slug, hit, hit.scene.body),
        )

    def _hit(self, hit: TurnHit, width: int) -> Excerpt:
        found = self._why(hit.turn.id, hit, with_speaker(hit.turn.content, hit.turn.name), close=hit.close)
        return self._turn(hit.turn, width, found)

    def _turn(self, turn: Turn, width: int, found: Found | None = None) -> Excerpt:
        content, hidden = self._cut(turn.id, turn.content, width)
        newer = self._newer.get(turn.id)
        return Excerpt(
            id=turn.id,
            position=turn.position,
            role=turn.role,
            name=one_line(turn.name, 40) if turn.name else None,
            said_at=turn.said_at,
            content=remove_hidden(content),
            hidden=hidden,
            found=found,
            held=self._flags.get(turn.id, ()),
            changed_at=newer.said_at if newer else None,
            changed_by=newer.id if newer else None,
        )

    def _cut(self, id: str, text: str, width: int) -> tuple[str, int]:
        if len(text) <= width * 5 // 4:  # hiding a few words is not worth the mark
            return text, 0
        if id not in self._matches:
            self._matches[id] = matches(text, self._request.terms)
        return snippet(text, width, self._matches[id])

    def _why(
        self, id: str, hit: TurnHit | AtomHit | SceneHit | ResultHit, text: str, *, close: bool | None = None
    ) -> Found:
        verbatim = VERBATIM in hit.found_by or None
        if self._request.detail == "concise":
            return Found(score=hit.score, close=close, verbatim=verbatim)
        if id not in self._words:
            self._words[id] = words(text, self._request.terms)
        return Found(score=hit.score, by=hit.found_by, words=self._words[id], close=close, verbatim=verbatim)
