"""Statements about a result, and the choice of those that fit into a preview.

Every format turns a result into statements: quoted lines, counts, values. They compete by one rule: a statement's
worth, times the new words that it would tell, against its length. Choosing greedily by gain per cost is the usual
approximation for coverage under a budget (Lin and Bilmes 2010).
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, clean, clip, one_line

TERMS = re.compile(r"[^\W\d_]{3,}|\d[\d.,:]*\d|\d|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]{2}")
QUOTED = 10
"""The place of a quoted line is its number plus this: statements about the whole text come before them."""
FACT, LINE = 300, 160
"""Characters of a format's fact, and of a line that it picks."""
FIRST = 20.0
"""The worth of a format's first fact; those of lines are up to 6."""
KNOWN = 0.12
"""What a word that the reader already knows counts, relative to a new word."""
OVERHEAD = 25
"""Characters added to a statement's length, so that a very short statement does not win by its length alone."""
ALIKE = 0.4
"""How much each chosen statement of a group lowers the worth of the others."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement about a result. `place` orders the chosen statements.

    Statements of one `group` tell similar things: each chosen one makes the others worth less.
    """

    text: str
    worth: float
    place: float = 0.0
    group: object = None


def choose(statements: Iterable[Statement], *, room: int, known: str = "") -> list[Statement]:
    """Return the best statements that fit into `room` characters with a newline each, the best first.

    The reader knows the words of `known` already.
    """
    known_terms = set(map(str.lower, TERMS.findall(known)))
    used: dict[object, int] = {}
    waiting: list[tuple[float, int, Statement, frozenset[str]]] = []
    for number, statement in enumerate(statements):
        if terms := frozenset(map(str.lower, TERMS.findall(statement.text))):
            waiting.append((-_gain(statement, terms, known_terms, 0), number, statement, terms))
    heapq.heapify(waiting)
    chosen: list[Statement] = []
    while waiting and room > 8:
        _, number, statement, terms = heapq.heappop(waiting)
        if len(statement.text) + 1 > room:
            continue
        gain = _gain(statement, terms, known_terms, used.get(statement.group, 0))
        if waiting and -gain > waiting[0][0]:  # it has become worse than another: gains only fall
            heapq.heappush(waiting, (-gain, number, statement, terms))
            continue
        chosen.append(statement)
        known_terms |= terms
        room -= len(statement.text) + 1
        if statement.group is not None:
            used[statement.group] = used.get(statement.group, 0) + 1
    return chosen


def _gain(statement: Statement, terms: frozenset[str], known: set[str], alike: int) -> float:
    new = (KNOWN * len(terms) + len(terms - known)) ** 0.5
    return statement.worth * new / ((1 + ALIKE * alike) * (len(statement.text) + OVERHEAD) ** 0.8)


def statements_of_facts(facts: Iterable[str]) -> list[Statement]:
    """Return what a format says about a result: in its order, and before all lines."""
    texts = [clip(clean(fact), FACT) for fact in facts if fact]
    return [Statement(text, FIRST / (1 + at / 6), at / 1_000) for at, text in enumerate(texts)]


def statements_of_picks(lines: Iterable[PageLine], picks: Mapping[int, float], focus: Focus) -> list[Statement]:
    """Return the lines that a format picks by their numbers, with their weights, and those that match the call."""
    statements: list[Statement] = []
    for line in lines:
        weight = picks.get(line.number, 0.0) + focus.of(line.text)
        if weight > 0 and line.text.strip():
            shown = f"{line.name or line.number} {clip(one_line(line.text), LINE)}"
            statements.append(Statement(shown, weight, QUOTED + line.number))
    return statements


def in_order(statements: Sequence[Statement]) -> list[str]:
    """Return the texts of statements by their places."""
    return [statement.text for statement in sorted(statements, key=lambda statement: statement.place)]
