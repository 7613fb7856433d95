"""Finds the newest messages with a name. Nothing is ranked, so it takes a small part of the time of a search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from mcp_memory.core.types import Turn
from mcp_memory.language.words import base_terms, fold
from mcp_memory.longterm.search.marking import excerpt, marks
from mcp_memory.longterm.search.query import parse_query
from mcp_memory.longterm.search.question_words import content_words
from mcp_memory.longterm.search.ranking import rows_with_all
from mcp_memory.longterm.verification.trust import quarantined_ids
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.values import Filters

_AT_ONCE, _MOST = 20, 400  # turns with the terms of the name that are read
_SHORTEST = 3  # characters of a first word by which somebody may be named


@dataclass(frozen=True, slots=True, kw_only=True)
class NamingMessage:
    """A message with a name: the part of its content that has it, without secrets, and the places of its words."""

    turn: Turn
    text: str
    marks: Sequence[tuple[int, int]]


def newest_naming(store: Store, space: str, name: str, *, limit: int, at: datetime) -> list[NamingMessage]:
    """Return the newest messages with a name, or with its first word, newest first. Quarantined ones are left out.

    Only the 400 newest with the terms of that word are read.
    """
    whole, first = fold(name), next(iter(fold(name).split()), "")
    terms = base_terms(first if len(first) >= _SHORTEST else whole)
    postings = store.postings(space, "turn", terms, filters=Filters())
    if not postings:
        return []
    newest = rows_with_all(postings)[: -_MOST - 1 : -1].tolist()

    def is_named(text: str) -> bool:
        return whole in text or (len(first) >= _SHORTEST and first in re.findall(r"\w+", text))

    found: list[Turn] = []
    for start in range(0, len(newest), _AT_ONCE):
        turns = store.read(space, turn_rows.by_ids, [f"t{number}" for number in newest[start : start + _AT_ONCE]])
        named = [turn for turn in turns if turn.role != "note" and is_named(fold(turn.content))]
        quarantined = quarantined_ids(store, space, [turn.id for turn in named])
        found += [turn for turn in named if turn.id not in quarantined]
        if len(found) >= limit:
            break
    words, literals = frozenset(content_words(name)), parse_query(name, at).literals
    return [
        NamingMessage(turn=turn, text=text, marks=marks(text, literals, words))
        for turn in found[:limit]
        for text in [excerpt(turn.content, words)]
    ]
