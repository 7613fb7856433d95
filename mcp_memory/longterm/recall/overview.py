"""Recall for questions about many things: the order of events, counts, lists, sums, summaries.

The best row answers a question about one fact; these questions need many rows, each of which may be short. Every
exchange gets one line: a user's turn represents the reply as well, and a statement the turn that it was extracted from.
`layout` drops the least relevant lines if the budget is exceeded, counts them, and sorts the remaining lines by time.

The first hits of the search keep more of their text, and the lines of an ordinary recall follow if there is room, so a
question that is taken for one about many things by mistake still gets its answer.

Choosing by maximal marginal relevance (each row unlike those chosen before, by stored vectors) was tried: it loses 3 to
9 points of the evidence of BEAM's questions about the order of events. Their events are alike, and short lines leave
room for nearly all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.types import Atom, Turn
from mcp_memory.language.sentences import sentences
from mcp_memory.language.snippet import matches
from mcp_memory.longterm.recall.line import RecallLine
from mcp_memory.longterm.recall.lines import (
    distinct_turns,
    is_shown_in,
    of_atom,
    of_turns,
    without_quarantined,
)
from mcp_memory.longterm.search.answerability import find_rows
from mcp_memory.longterm.search.changed import pairs_of_one_topic, replaced_by
from mcp_memory.longterm.search.query import speaker_intent
from mcp_memory.longterm.search.question_words import is_echo
from mcp_memory.longterm.search.search import Ranked, SearchContext
from mcp_memory.longterm.validity import end_of, is_past
from mcp_memory.longterm.verification.trust import speakers_of
from mcp_memory.models.embed.classifiers import asks_for_many_things
from mcp_memory.store.sql import atom_rows

CANDIDATES = 100
"""Hits of each layer to choose from."""

_LONGEST_QUESTION = 400  # characters; a longer text is a passage
_SHARE = 0.4  # share of the best hit's score; rows below it are not about the question
_BEST, _BEST_WIDTH = 4, 240  # the first hits, and characters of each
_SENTENCE = 600  # characters looked at of a long sentence
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_COMPARED_TURNS = 45  # turns compared in pairs to find changed values
_ALL_CHARS, _LEAST_WIDTH = 3_600, 90  # characters: of all lines together, and at least of each line


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A row that may be shown: its id, the turn that it is or was extracted from, and its relevance from 0 to 1."""

    id: str
    turn: str
    relevance: float


def asks_for_overview(question: str) -> bool:
    """Return whether a question asks about many things rather than for one fact; False without the encoder's files."""
    try:
        return 0 < len(question.strip()) <= _LONGEST_QUESTION and asks_for_many_things(question)
    except EmbeddingFailed:
        return False


def overview_lines(
    context: SearchContext, question: str, in_context: Collection[str], words: AbstractSet[str], shown_text: str,
    replaced: Mapping[str, Turn],
) -> list[RecallLine]:  # fmt: skip
    """Return lines for a question about many things, from turns and statements, the most relevant first.

    `replaced` maps the turns of ended rules to the turns that ended them; changes in other turns are found here.
    """
    asks_assistant = speaker_intent(question) == "assistant"
    hits = without_quarantined(context, find_rows(context, "turn", question, CANDIDATES))
    turn_relevance = relevance([hit for hit in hits if hit.id not in in_context])
    (distinct,), _ = distinct_turns(context, list(turn_relevance))
    fresh = [turn for turn in distinct if not is_echo(turn.content, question)]
    turns = {turn.id: turn for turn in (fresh if asks_assistant else without_replies(fresh))}
    has_atoms = context.store.totals(context.space, "atom").rows > 0
    stated = (
        relevance(without_quarantined(context, find_rows(context, "atom", question, CANDIDATES))) if has_atoms else {}
    )
    atoms = {
        atom.id: atom
        for atom in context.store.read(context.space, atom_rows.by_ids, stated)
        if atom.evidence not in in_context and not atom.held and not is_shown_in(atom, shown_text)
    }
    rows = [
        *(Candidate(id=id, turn=id, relevance=turn_relevance.get(id, 0.0)) for id in turns),
        *(Candidate(id=atom.id, turn=atom.evidence, relevance=stated[atom.id]) for atom in atoms.values()),
    ]
    speakers = speakers_of(context.store, context.space, list(atoms.values()))
    pairs = pairs_of_one_topic(context.store, context.space, list(turns.values())[:_COMPARED_TURNS])
    newer = {**replaced_by(context.store, context.space, pairs), **replaced}
    return list(lines_of(choose(rows), turns, atoms, words=words, speakers=speakers, newer=newer, at=context.now))


def relevance(hits: Sequence[Ranked]) -> dict[str, float]:
    """Return the scores of the hits of a layer by id, divided by the best score, without those below 0.4."""
    best = max((hit.score for hit in hits), default=0.0)
    return {hit.id: hit.score / best for hit in hits if hit.score >= _SHARE * best}


def without_replies(turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns, best first, without the assistant's replies to the user's turns among them.

    The first four turns are always kept.
    """
    asked = {(turn.session, turn.position) for turn in turns if turn.role == "user"}
    return [
        turn
        for place, turn in enumerate(turns)
        if place < _BEST or turn.role != "assistant" or (turn.session, turn.position - 1) not in asked
    ]


def choose(rows: Collection[Candidate]) -> list[str]:
    """Return the ids of the rows, most relevant first: either a turn or its statements, whichever is more relevant."""
    chosen: list[str] = []
    turns: set[str] = set()
    with_statement: set[str] = set()
    for row in sorted(rows, key=lambda row: -row.relevance):
        is_turn = row.id == row.turn
        if row.turn in turns or (is_turn and row.turn in with_statement):
            continue
        (turns if is_turn else with_statement).add(row.turn)
        chosen.append(row.id)
    return chosen


def lines_of(
    chosen: Sequence[str],
    turns: Mapping[str, Turn],
    atoms: Mapping[str, Atom],
    *,
    words: AbstractSet[str],
    speakers: Mapping[str, str | None],
    newer: Mapping[str, Turn],
    at: datetime,
) -> Iterator[RecallLine]:
    """Yield a short line for each chosen row: the more rows, the shorter. `newer` maps turns to their replacements."""
    width = min(_BEST_WIDTH, max(_LEAST_WIDTH, _ALL_CHARS // max(1, len(chosen))))
    for place, id in enumerate(chosen):
        if id in atoms:
            yield _of_statement(atoms[id], at, speakers.get(id))
        elif id in turns:
            chars = _BEST_WIDTH if place < _BEST else width
            turn = _shorten(turns[id], words, chars)
            for line in of_turns([turn], words=words, widths=(chars,), group="overview", newer=newer):
                yield replace(line, newer=None)  # a statement may already give the newer value


def _shorten(turn: Turn, words: AbstractSet[str], width: int) -> Turn:
    """Return a turn; if it is longer than `width`, without code, beginning at the sentence with the most `words`.

    That sentence is kept whole up to 600 characters.
    """
    if len(turn.content) <= width:
        return turn
    text = _CODE.sub(" ", turn.content).strip() or turn.content
    positions = matches(text, words)
    spans = list(sentences(text)) or [(0, len(text))]
    start, end = max(
        spans, key=lambda span: len({match.term for match in positions if span[0] <= match.start < span[1]})
    )
    return replace(turn, content=text[start : max(end, start + width)][:_SENTENCE])


def _of_statement(atom: Atom, at: datetime, speaker: str | None) -> RecallLine:
    line, end = of_atom(atom, at, speaker), end_of(atom)
    until = f" (until {end:%Y-%m-%d})" if end is not None and is_past(atom, at) else ""
    return replace(line, group="overview", text=f"{line.text}{until}", said_at=atom.valid_from)
