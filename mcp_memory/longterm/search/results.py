"""Searches offloaded tool results by their lines.

This is a separate search over the same kind of index as that of turns and atoms. Its hits are listed separately, since
their scores are on another scale, and tool output is not a statement of a person. The search has two steps. Words find
runs of lines: each word counts once, by its rarity. Then the text of the first 40 runs is read and scored by its best
line, the line with the most words of the question and the fewest other words, so that a function's definition ranks
before its calls. The lines around the best line are shown, with secrets masked. Runs, and lines of a run, that contain
an identifier or a quoted phrase of the question come first (`literals`).

Together with other rows, a run is shown only if it has two fifths of the question's words, so that questions about
other things bring no results. `bench/result_search.py` measures all of this. Vectors, the words of the call
and the words of the lines around a run were tried and brought no improvement. Who looks for a command finds its results
by `results_of_call`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from mcp_memory.core.errors import NotFound
from mcp_memory.core.secrets.masking import mask_lines
from mcp_memory.core.types import Record, ResultHit
from mcp_memory.language.snippet import matches, snippet
from mcp_memory.language.words import base_terms, content_terms, query_terms
from mcp_memory.longterm.search.literals import VERBATIM, Literal, literals_in, share_in
from mcp_memory.longterm.search.query import MAX_CHARS
from mcp_memory.longterm.search.ranking import rarity
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import project_file_rows, record_rows, ref_rows, word_index
from mcp_memory.store.values import PROJECT_FILE, Chunk, Filters, Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


SHOWN = 5
"""The number of results shown with turns, unless only results are requested."""

ABOUT = 0.4
"""The least share of the question's words, weighted by rarity, in lines that are shown as being about it."""

_LOOKED_AT = 40  # runs
_LINE = 0.4  # weight of the best line; its run has weight 1
_ELSE = 0.3  # part of a line's score that depends on how few other terms it has
_FEW = 30  # runs; of fewer it does not follow that a word is common
_A_RESULT = 2  # hits
_LINES, _CHARS = 5, 700  # lines and characters of a hit
_CALL = 150  # characters
_CALLS = 500


@dataclass(frozen=True, slots=True)
class _RunLines:
    """A run of lines that was read; `matching` has the terms of lines with a word of the question, by index."""

    chunk: Chunk
    lines: list[str]
    matching: Mapping[int, frozenset[str]]
    terms: frozenset[str]
    """All terms of the matching lines."""
    words: float
    """The run's score by words, relative to the best run."""
    verbatim: Mapping[int, float]
    """The share of the question's literals in the lines with any of them, by index."""

    @property
    def best_verbatim(self) -> float:
        return max(self.verbatim.values(), default=0.0)


@dataclass(frozen=True, slots=True)
class _Worth:
    """Scores by the weights of the words of a question (`of`), which sum to 1."""

    of: Mapping[str, float]

    def share(self, terms: Iterable[str]) -> float:
        return math.fsum(self.of.get(term, 0.0) for term in terms)  # the same in whatever order sets are walked

    def line(self, terms: frozenset[str]) -> float:
        return self.share(terms) * (1 - _ELSE + _ELSE * len(terms & self.of.keys()) / len(terms))

    def score(self, run: _RunLines) -> float:
        return (run.words + _LINE * max(map(self.line, run.matching.values()), default=0.0)) / (1 + _LINE)


def result_filters(filters: Filters) -> Filters | None:
    """Return the filters for results; None for filters of atoms or of a role other than `tool`."""
    if filters.kind or filters.entity or filters.scene or filters.role not in (None, "tool"):
        return None
    return replace(filters, role=None, upto=None)


def results(
    store: Store, space: str, query: str, *, filters: Filters, limit: int, least: float = ABOUT, files: bool = True
) -> list[ResultHit]:
    """Return excerpts with the best lines of tool results, best first: at most `limit`, at most two of each result.

    A run of lines must have at least the share `least` of the question's words, weighted by rarity, or a line with one
    of its literals. Without `files`,
    the files of projects are left out.
    """
    total = store.totals(space, "chunk").rows
    query = query[:MAX_CHARS]
    words = list(dict.fromkeys(query_terms(query))) if total else []
    postings = store.postings(space, "chunk", words, filters=filters) if words else []
    if not postings:
        return []
    literals, _ = literals_in(query)
    runs = _read_runs(store, space, postings, words, literals, max(_FEW, total))
    worth = _weigh_words(query, words, postings, runs, max(_FEW, total))
    about = [run for run in runs if run.verbatim or worth.share(run.terms) >= least]
    about.sort(key=lambda run: (-run.best_verbatim, -round(worth.score(run), 9), -int(run.chunk.id[1:])))
    return list(islice(_hits(store, space, about, worth, files=files), limit))


def results_of_call(
    store: Store, space: str, query: str, *, session: str | None = None, limit: int = SHOWN
) -> list[ResultHit]:
    """Return the newest results whose call has all words of the query, with their first lines, newest first.

    At most `limit`, among the last `_CALLS` calls of the space.
    """
    words = frozenset(content_terms(query[:MAX_CHARS]))
    called: dict[str, Record] = {}
    for record in store.read(space, record_rows.list_newest, limit=_CALLS) if words else ():
        if session in (None, record.session) and words.issubset(base_terms(record.tool_call)):
            called.setdefault(record.ref, record)
    records = list(called.values())[:limit]
    chunks = store.read(space, word_index.first_chunks, [record.ref for record in records]) if records else {}
    texts = {chunk.ref: data for chunk, data in store.read(space, word_index.chunks_by_id, list(chunks.values()))}
    literals, _ = literals_in(query[:MAX_CHARS])
    hits: list[ResultHit] = []
    for record in records:
        if (data := texts.get(record.ref)) is None:
            continue
        lines = mask_lines(data.decode("utf-8", "replace").removesuffix("\n")).split("\n")[:_LINES]
        verbatim = share_in(record.tool_call, literals)
        hits.append(
            ResultHit(
                ref=record.ref,
                lines=(1, len(lines)),
                text="\n".join(lines)[:_CHARS],
                call=record.tool_call,
                node=record.node_id,
                at=record.timestamp,
                session=record.session,
                score=1.0,
                found_by={"call": 1.0, **({VERBATIM: round(verbatim, 3)} if verbatim else {})},
                share=1.0,
            )
        )
    return hits


# --- runs -------------------------------------------------------------------------------------------


def _read_runs(
    store: Store,
    space: str,
    postings: Sequence[Posting],
    words: Sequence[str],
    literals: Sequence[Literal],
    total: int,
) -> list[_RunLines]:
    """Return the best runs by words, newest first among equals; results that were forgotten or lost since are skipped.

    Terms are computed only for lines that contain the beginning of a word, since there may be thousands of lines.
    """
    import numpy as np

    rows: NDArray[np.int64] = np.concatenate([np.zeros(0, np.int64), *(posting.rows for posting in postings)])
    counts = np.concatenate(
        [np.zeros(0), *(np.full(len(posting.rows), rarity(posting.documents, total)) for posting in postings)]
    )
    distinct, places = np.unique(rows, return_inverse=True)
    scores = np.round(np.bincount(places, counts, minlength=len(distinct)), 9)
    order = np.lexsort((-distinct, -scores))[:_LOOKED_AT].tolist()
    first = {f"c{distinct[place]}": float(scores[place] / scores[order[0]]) for place in order}
    beginnings = [word[: max(2, len(word) - 2)] for word in words]
    runs: list[_RunLines] = []
    for chunk, data in store.read(space, word_index.chunks_by_id, first):
        lines = data.decode("utf-8", "replace").removesuffix("\n").split("\n")
        matching: dict[int, frozenset[str]] = {}
        verbatim: dict[int, float] = {}
        for place, line in enumerate(lines):
            folded = line.casefold()
            if any(beginning in folded for beginning in beginnings):
                terms = frozenset(base_terms(line))
                if not terms.isdisjoint(words):
                    matching[place] = terms
                    if share := share_in(line, literals):
                        verbatim[place] = share
        terms = frozenset[str]().union(*matching.values())
        runs.append(
            _RunLines(
                chunk=chunk, lines=lines, matching=matching, terms=terms, words=first[chunk.id], verbatim=verbatim
            )
        )
    return runs


def _weigh_words(
    query: str, words: list[str], postings: Sequence[Posting], runs: Sequence[_RunLines], total: int
) -> _Worth:
    """Weigh the question's words by rarity; only base terms count, so that each word counts once.

    A word without postings either occurs in no run, or is so common that the index left it out. In the second case it
    occurs in the runs that were read, and its weight is 0.
    """
    documents = {posting.term: posting.documents for posting in postings}
    in_runs = frozenset[str]().union(*(run.terms for run in runs))
    forms = set(base_terms(query))
    words = [word for word in words if word in forms] or words
    worth = {word: rarity(documents.get(word, 0), total) for word in words if word in documents or word not in in_runs}
    whole = sum(worth.values()) or 1.0
    return _Worth({word: value / whole for word, value in worth.items()})


# --- the answer -------------------------------------------------------------------------------------


def _hits(store: Store, space: str, runs: Sequence[_RunLines], worth: _Worth, *, files: bool) -> Iterator[ResultHit]:
    """Yield a hit for each run, without repeated texts and without more than two places of the same result."""
    seen: set[str] = set()
    places: Counter[str] = Counter()
    files_of_ref = store.read(space, project_file_rows.files_of_refs, [run.chunk.ref for run in runs])
    for run in runs:
        of_file = files_of_ref.get(run.chunk.ref, ())
        if of_file and not files:
            continue
        lines, text = _excerpt(run, worth)
        places[run.chunk.ref] += 1
        if text.strip() in seen or places[run.chunk.ref] > _A_RESULT:
            continue
        seen.add(text.strip())
        try:
            ref = store.read(space, ref_rows.by_id, run.chunk.ref)
        except NotFound:  # forgotten a moment ago
            continue
        records = store.read(space, record_rows.list_records, ref=ref.id)
        if ref.tool == PROJECT_FILE and not (of_file or records):  # the file has changed a moment ago
            continue
        best = max(map(worth.line, run.matching.values()), default=0.0)
        call = records[-1].tool_call if records else ref.tool[:_CALL]
        yield ResultHit(
            ref=ref.id,
            lines=lines,
            text=text,
            call=", ".join(file.label for file in of_file)[:_CALL] or call,
            node=records[-1].node_id if records else None,
            at=ref.timestamp,
            session=records[-1].session if records else ref.session,
            score=round(worth.score(run), 5),
            found_by={
                **({VERBATIM: round(run.best_verbatim, 3)} if run.verbatim else {}),
                "words": round(run.words, 3),
                "line": round(best, 3),
            },
            share=worth.share(run.terms),
            of_file=bool(of_file),
        )


def _excerpt(run: _RunLines, worth: _Worth) -> tuple[tuple[int, int], str]:
    """Return the numbers of the first and last line to show, and their text with secrets masked."""
    lines = mask_lines("\n".join(run.lines)).split("\n")

    def rank(place: int) -> tuple[float, float, int]:
        return run.verbatim.get(place, 0.0), worth.line(run.matching[place]), -place

    first, last = _window(lines, max(run.matching, key=rank, default=0))
    text = "\n".join(lines[first : last + 1])
    if len(text) > _CHARS:  # a single line is too long
        text = snippet(text, _CHARS, matches(text, worth.of.keys()))[0]
    return (run.chunk.lines[0] + first, run.chunk.lines[0] + last), text


def _window(lines: Sequence[str], best: int) -> tuple[int, int]:
    """Return the first and the last index of the lines to show around the best line."""
    first = last = best
    room = _CHARS - len(lines[best])
    for place in (place for step in range(1, _LINES) for place in (best + step, best - step)):
        if not 0 <= place < len(lines) or last - first + 1 >= _LINES or len(lines[place]) >= room:
            continue
        if place in (first - 1, last + 1):
            first, last, room = min(place, first), max(place, last), room - len(lines[place]) - 1
    while last > best and not lines[last].strip():
        last -= 1
    while first < best and not lines[first].strip():
        first += 1
    return first, last
