"""Sources of turns and statements, and the rights of each: the user's, the assistant's, a tool's, a web page's.

A rule for the agent and a trait of the user need the user's own statement; a statement from a less trusted source is
stored as an episode. Text that reads like an attack (`suspicion`) is quarantined: it is stored and found by searches,
but not recalled until a person has reviewed it. Turns are stored unjudged, as quarantined for the reason `UNJUDGED`,
and the background judges them (`judge_waiting`).

To find a text in stored rows, the share of its terms that occur close together is measured.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import get_args

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.text import one_line
from mcp_memory.core.types import ATTRIBUTION, Atom, NewTurn, Role, Source, Turn
from mcp_memory.language.sentences import FILL, own_part
from mcp_memory.language.words import base_terms, query_terms
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.names import MAX_NAME, contains_name, is_person, name_words, names_in
from mcp_memory.store.citations import mark_citations
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import quarantine_rows, turn_rows, word_index
from mcp_memory.store.values import UNJUDGED, Filters, Layer, NewAtom
from mcp_memory.suspicion.flags import MEANINGS, Flag, flags, flags_of, wording_flags

logger = logging.getLogger(__name__)

REASONS: dict[str, str] = {
    **MEANINGS,
    "unstated": "no recorded turn of the user states it",
    "unsupported": "a part of it stands in nothing that was said",
    "other_value": "another number or name stands in its words",
    "contradicted": "its words seem to say otherwise",
}
"""Reasons for quarantine in words for people, and doubts that label a statement (`store.values.DOUBTS`)."""


_VOICES: tuple[Source, ...] = get_args(Source)
_WEB = re.compile(
    r"(?i)(?:^|[^a-z])(?:web|fetch|browser?|brows(?:e|ing)|url|https?|curl|wget|crawl(?:er)?|scrape[r]?|navigate|page|playwright"
    r"|puppeteer|selenium|firecrawl|tavily|exa|serp(?:api)?|bing|duckduckgo|google|brave|perplexity|search_web|internet|online)"
    r"(?:$|[^a-z])"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SAME_SHARE = 0.75  # share of a statement's terms: it repeats the text
MIN_TERMS = 3  # terms; fewer occur together by chance
_READ = 8  # rows
_SPOKEN = 50  # turns of a session, for who speaks in it
MAX_ROW_CHARS = 60_000  # characters of a row
_WAITING = 200  # unjudged turns, read at once
_TOGETHER = 20  # turns judged at once
_LONG = 20_000  # characters, about 0.2 s to judge; longer turns wait for the others
_PASTED_CHARS = 2_000  # characters of a line; a longer line was pasted
_ROOM = 3  # its terms may be spread over three times its length


# --- the source -------------------------------------------------------------------------------------


def source_of_tool(name: str | None) -> Source:
    """Return the source of a tool's output by the tool's name: `web` for tools that read the web, else `tool`."""
    return "web" if name and _WEB.search(_CAMEL.sub("_", name)) else "tool"


def source_of_turn(turn: Turn | NewTurn) -> Source:
    """Return the source of a turn. A note counts as the user's; its exact source is that of its atom."""
    return source_of_role(turn.role, turn.name)


def source_of_role(role: Role, name: str | None) -> Source:
    if role == "tool":
        return source_of_tool(name)
    return "user" if role in ("user", "note") else "assistant"


def turns_of_others(store: Store, space: str, turns: Iterable[Turn]) -> set[str]:
    """Return the ids of the turns of role `user` whose speaker, by name, is somebody else, as in a group chat."""
    named = [turn for turn in turns if turn.role == "user" and turn.name]
    others: set[str] = set()
    for session in dict.fromkeys(turn.session for turn in named):
        spoken = store.read(space, turn_rows.last_turns, session, limit=_SPOKEN, roles=("user",))
        here = [turn for turn in named if turn.session == session]
        names = names_in(store, space, [*spoken, *here])
        others |= {turn.id for turn in here if names.is_other(turn)}
    return others


def most_trusted(sources: Iterable[Source]) -> Source:
    """Return the most trusted of some sources; `user` if there are none."""
    voices = list(sources)
    return min(voices, key=_VOICES.index) if voices else "user"


def least_trusted(sources: Iterable[Source]) -> Source:
    """Return the least trusted of some sources, which is the source of a text that combines their words."""
    return max(sources, key=_VOICES.index)


def is_less_trusted(voice: Source, other: Source) -> bool:
    """Return whether one source is trusted less than another."""
    return _VOICES.index(voice) > _VOICES.index(other)


def with_allowed_kind(atom: NewAtom) -> NewAtom:
    """Return an atom, made episodic unless it is the user's. Only the user may state rules, traits and promises."""
    if atom.source == "user" or (atom.kind == "episodic" and atom.label != "promise"):
        return atom
    label = None if atom.label == "promise" else atom.label
    return replace(atom, kind="episodic", label=label, priority=70 if atom.priority < 0 else atom.priority)


# --- quarantine -------------------------------------------------------------------------------------


def judge_turns(store: Store, space: str, turns: Sequence[Turn], *, has_attacks: bool) -> list[tuple[str, ...]]:
    """Return for each stored turn the reasons to quarantine it; most turns have none.

    The user may talk of attacks; an attack from tool output is still an attack if the user pasted it. `has_attacks` is
    `quarantine_rows.may_have_attacks`.
    """
    outputs = [turn.content for turn in turns if turn.role == "tool"]

    def is_pasted(line: str) -> bool:
        return _share(line, outputs) >= SAME_SHARE or largest_share(store, space, line, TOOL_OUTPUTS) >= SAME_SHARE

    reasons: list[tuple[str, ...]] = []
    judged = flags_of([(turn.content, source_of_turn(turn)) for turn in turns], are_turns=True)
    for turn, suspicions in zip(turns, judged, strict=True):
        why: list[Flag] = [*suspicions, *(flags(turn.name, "tool") if turn.name else ())]
        if turn.role == "user" and has_attacks and (suspected := wording_flags(turn.content)):
            lines = (line[:_PASTED_CHARS] for line in turn.content.splitlines() if wording_flags(line))
            lines = list(islice(lines, 5)) or [turn.content[:_PASTED_CHARS]]
            why += sorted(suspected) if any(map(is_pasted, lines)) else []
        reasons.append(tuple(dict.fromkeys(why)))
    return reasons


def judge_waiting(store: Store, space: str, going_on: Callable[[], bool], *, now: datetime) -> bool:
    """Judge the oldest unjudged turns of a space: release them, or quarantine them for the reasons found.

    Returns whether turns were waiting. Of the long turns among them, only one is judged, after the others. If
    `going_on` returns False before a write, nothing more is written, because the store may be closed. Several processes
    may judge the same turns.
    """
    waiting = store.read(space, quarantine_rows.unjudged, limit=_WAITING)
    has_attacks = bool(waiting) and store.read(space, quarantine_rows.may_have_attacks)
    for turns in filter(None, _groups(store, space, waiting)):
        reasons = _judge_each_if_it_fails(store, space, turns, has_attacks)
        if not going_on():
            break
        ids = [turn.id for turn in turns]
        store.write(space, quarantine_rows.judge, dict(zip(ids, reasons, strict=True)), now=now)
    return bool(waiting)


def _groups(store: Store, space: str, ids: Sequence[str]) -> Iterator[list[Turn]]:
    """Yield the turns to judge together, and at the end the first long turn."""
    long_turns: list[Turn] = []
    for start in range(0, len(ids), _TOGETHER):
        turns = store.read(space, turn_rows.by_ids, ids[start : start + _TOGETHER])
        long_turns += [turn for turn in turns if len(turn.content) > _LONG][: 1 - len(long_turns)]
        yield [turn for turn in turns if len(turn.content) <= _LONG]
    yield long_turns


def _judge_each_if_it_fails(
    store: Store, space: str, turns: Sequence[Turn], has_attacks: bool
) -> list[tuple[str, ...]]:
    """Return the reasons against turns. A turn that cannot be judged is quarantined, so that later turns are judged."""
    try:
        return judge_turns(store, space, turns, has_attacks=has_attacks)
    except McpMemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # its text may quote the turn, so only its type is logged
        if len(turns) > 1:
            return [why for turn in turns for why in _judge_each_if_it_fails(store, space, [turn], has_attacks)]
        logger.error("turn %s cannot be judged and is quarantined: %s", turns[0].id, type(error).__name__)
        return [("failed",)]


def fit_for_pages(atom: Atom) -> bool:
    """Return whether pages may use an atom: not quarantined, and from the user, the assistant or an import."""
    return not atom.held and atom.source in ("user", "assistant", "import")


def attribute_page(page: str, atoms: Iterable[Atom], speakers: Mapping[str, str]) -> str:
    """Return a page with the source of statements that are not the user's, and doubts, before their citations.

    A citation gets no mark if any of its atoms has none, or if its sentence already names the source.
    """
    marks: dict[str, str] = {}
    names = {ATTRIBUTION["assistant"]: name_words("assistant") - {"you"}}
    for atom in atoms:
        if speaker := speakers.get(atom.id):
            marks[atom.id] = f"said by {speaker}"
            names[marks[atom.id]] = frozenset([speaker])
        elif ATTRIBUTION[atom.source]:
            marks[atom.id] = ATTRIBUTION[atom.source]
        if mark := doubt_mark(atom):
            marks[atom.id] = ", ".join(filter(None, (marks.get(atom.id), mark)))
    return mark_citations(page, marks, says_mark=lambda mark, words: contains_name(names.get(mark, ()), words))


def doubt_mark(atom: Atom) -> str:
    """Return the mark of a statement that a check doubts, which names the turn to compare it with; else ""."""
    return f"check {atom.evidence}" if atom.doubts else ""


def speakers_of(store: Store, space: str, atoms: Iterable[Atom]) -> dict[str, str]:
    """Return, by atom id, the names of people who spoke as `assistant`, in conversations between people."""
    by_others = [atom for atom in atoms if atom.source == "assistant" and atom.evidence]
    turns = {turn.id: turn for turn in store.read(space, turn_rows.by_ids, [atom.evidence for atom in by_others])}
    people = {id: one_line(turn.name or "", MAX_NAME) for id, turn in turns.items() if turn.name and is_person(turn)}
    return {atom.id: people[atom.evidence] for atom in by_others if atom.evidence in people}


def quarantine(atom: NewAtom, why: Sequence[str]) -> NewAtom:
    """Return an atom quarantined for some reasons, so that it states no fact and ends nothing; unchanged without any.

    Doubts alone (`store.values.DOUBTS`) label it, and do not quarantine it.
    """
    if not why:
        return atom
    return replace(without_effects(atom), held=tuple(dict.fromkeys((*atom.held, *why))))


def without_effects(atom: NewAtom) -> NewAtom:
    """Return an atom that states no fact and ends nothing."""
    return replace(atom, entity=None, relation=None, value=None, single_valued=False, supersedes=())


def quarantined_ids(store: Store, space: str, ids: Iterable[str]) -> set[str]:
    """Return the ids of the rows that are quarantined or not judged yet, which automatic recall leaves out."""
    return {row.id for row in store.read(space, quarantine_rows.list_quarantined, ids) if row.is_quarantined}


def suspicious_ids(store: Store, space: str, turns: Iterable[Turn]) -> set[str]:
    """Return the ids of the turns that are quarantined; turns that are not judged yet are judged now, if not long.

    For decisions that a later judgement would not correct. The judgements are not stored.
    """
    by_id = {turn.id: turn for turn in turns}
    rows = [row for row in store.read(space, quarantine_rows.list_quarantined, by_id) if row.is_quarantined]
    waiting = (by_id[row.id] for row in rows if row.reasons == (UNJUDGED,))
    unjudged = [turn for turn in waiting if len(turn.content) <= _LONG]
    has_attacks = bool(unjudged) and store.read(space, quarantine_rows.may_have_attacks)
    reasons = _judge_each_if_it_fails(store, space, unjudged, has_attacks)
    return {row.id for row in rows} - {turn.id for turn, why in zip(unjudged, reasons, strict=True) if not why}


# --- rows that contain a statement's words ----------------------------------------------------------

USER_TURNS: Sequence[tuple[Layer, Role | None]] = (("turn", "user"),)
TOOL_OUTPUTS: Sequence[tuple[Layer, Role | None]] = (("chunk", None), ("turn", "tool"))


def largest_share(store: Store, space: str, text: str, places: Sequence[tuple[Layer, Role | None]]) -> float:
    """Return the largest share of a text's terms that occur close together in a row of these layers and roles.

    0 for a text of fewer than three terms.
    """
    words = list(content_terms(text))
    if len(words) < MIN_TERMS:
        return 0.0
    return max(_share(text, rows_with(store, space, layer, role, words)) for layer, role in places)


def rows_with(store: Store, space: str, layer: Layer, role: Role | None, words: Sequence[str]) -> list[str]:
    ids = row_ids_with(store, space, layer, role, words)
    if layer == "chunk":
        return [
            data.decode("utf-8", "replace")[:MAX_ROW_CHARS]
            for _, data in store.read(space, word_index.chunks_by_id, ids)
        ]
    texts = [turn.content[:MAX_ROW_CHARS] for turn in store.read(space, turn_rows.by_ids, ids)]
    return [own_part(typed_text(text)).replace(FILL, " ") for text in texts] if role == "user" else texts


def row_ids_with(store: Store, space: str, layer: Layer, role: Role | None, words: Sequence[str]) -> list[str]:
    import numpy as np

    if not store.totals(space, layer).rows:
        return []
    scores: dict[int, float] = {}
    for posting in store.postings(space, layer, words, filters=Filters()):
        for row in posting.rows.tolist():
            scores[row] = scores.get(row, 0.0) + 1 / (1 + posting.documents)
    first = sorted(scores, key=lambda row: (-scores[row], -row))
    if layer == "chunk":
        return [f"c{row}" for row in first[:_READ]]
    # Turn metadata filters by role at once. As a filter of the postings it would check every row of every common
    # word: seconds for a million turns with few or none of a tool.
    turns = store.turn_metadata(space, np.array(first, np.int64), filters=Filters(role=role))
    return [f"t{row}" for row in turns.passing(first)[:_READ]]


def _share(text: str, places: Iterable[str]) -> float:
    """Return the largest share of a text's terms that occur close together in any of the texts `places`."""
    terms = content_terms(text)
    return max((_together(terms, place) for place in places), default=0.0) if len(terms) >= MIN_TERMS else 0.0


def content_terms(text: str) -> set[str]:
    return set(query_terms(text)) & set(base_terms(text)) - {"user"}


def _together(terms: set[str], place: str) -> float:
    """Return the largest share of the terms in any stretch of a text; the stretch grows with the number of terms."""
    place_terms = base_terms(place)
    room = _ROOM * len(terms) + 4
    where: dict[str, int] = {}
    most = 0
    for at, term in enumerate(place_terms):
        if term in terms:
            where[term] = at
            most = max(most, sum(1 for last in where.values() if last > at - room))
    return most / len(terms)
