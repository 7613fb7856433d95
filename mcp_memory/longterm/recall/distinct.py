"""Which turns found by a search get a line of recall: none that waits for review, is small talk or says nothing new."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from typing import TypeVar

from mcp_memory.core.types import Turn
from mcp_memory.language.words import fold
from mcp_memory.longterm.search.search import Ranked, SearchContext
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.longterm.verification.trust import quarantined_ids

_SAME = 0.85  # share of a turn's words that another one has too
_WORD = re.compile(r"\w+")
_COMPARED = 1_500  # characters
_SENTENCE = 10  # characters; a shorter turn such as "Tuesday." may answer different questions

_Row = TypeVar("_Row", Turn, Ranked)


def unheld(context: SearchContext, rows: Sequence[_Row]) -> list[_Row]:
    """Return the rows that are not quarantined."""
    aside = quarantined_ids(context.store, context.space, [row.id for row in rows])
    return [row for row in rows if row.id not in aside]


def distinct_turns(context: SearchContext, *groups: Sequence[str]) -> tuple[list[list[Turn]], dict[str, set[date]]]:
    """Return the turns of the groups without small talk and near-duplicates of earlier ones.

    Of a user's turn and the assistant's echo of it, the user's is kept, whichever was found first. The second value
    maps the id of a user's turn to the other days on which they said the same words.
    """
    ids = [id for group in groups for id in group]
    turns = {turn.id: turn for turn in context.store.turns(context.space, ids)}
    words = {turn.id: frozenset(_WORD.findall(fold(turn.content[:_COMPARED]))) for turn in turns.values()}
    place = {(turn.session, turn.position): turn.id for turn in turns.values()}
    kept: dict[str, None] = {}
    noise = _small_talk(context, list(turns.values()))
    for id in ids:
        turn = turns.get(id) if id not in noise else None
        if turn is None or any(_repeats(turn, words[id], words[other]) for other in kept):
            continue
        before = place.get((turn.session, turn.position - 1))
        if turn.role == "assistant" and before is not None and turns[before].role == "user":
            id = before if _says_no_more(words[id], words[before]) else id
        kept.setdefault(id)
    return [[turns[id] for id in group if id in kept] for group in groups], _other_days(turns.values())


def _other_days(turns: Collection[Turn]) -> dict[str, set[date]]:
    """Return the other days on which the user said the same words, in the same order, by the ids of the turns."""
    words = {
        turn.id: " ".join(_WORD.findall(fold(turn.content)))
        for turn in turns
        if turn.role == "user" and not turn.name and len(turn.content) <= _COMPARED
    }
    days: dict[str, set[date]] = {}
    for turn in turns:
        if len(words.get(turn.id, "")) >= _SENTENCE:
            days.setdefault(words[turn.id], set()).add(turn.said_at.date())
    return {turn.id: days.get(words.get(turn.id, ""), set()) - {turn.said_at.date()} for turn in turns}


def _small_talk(context: SearchContext, turns: Sequence[Turn]) -> set[str]:
    """Return the ids of turns that say nothing, such as "lol"; a "yes" to a question says something."""
    short = [turn for turn in turns if turn.role in ("user", "assistant") and small_talk_kind(turn.content)]
    near = context.store.context_windows(context.space, [turn.id for turn in short], around=1) if short else []
    before = {(turn.session, turn.position + 1): turn for turn in near}
    return {turn.id for turn in short if small_talk_kind(turn.content, before.get((turn.session, turn.position)))}


def _repeats(turn: Turn, words: AbstractSet[str], others: AbstractSet[str]) -> bool:
    """Return whether a turn only repeats another one. Of a user's, one word more or less may be what changed."""
    return words == others if turn.role == "user" else _says_no_more(words, others)


def _says_no_more(words: AbstractSet[str], than: AbstractSet[str]) -> bool:
    """Return whether another text has nearly all of these words, and every number among them."""
    if len(than) < _SAME * len(words):
        return False
    extra = words - than
    return len(extra) <= (1 - _SAME) * len(words) and not any(word[0].isdigit() for word in extra)
