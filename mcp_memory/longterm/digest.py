"""The page about the user where no model has written one: chosen from the statements, in the user's own words.

The first statements of `salience.ranked` that fit are listed by section, each line with its id and cut at a clause.
Nothing is paraphrased, and two calls return the same bytes until the ranking changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import day_in_words, one_line, without_bullet
from mcp_memory.core.types import ATTRIBUTION, Atom
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.longterm.salience import Candidate, Section, number_of, ranked
from mcp_memory.longterm.verification.trust import doubt_mark
from mcp_memory.store.citations import plain
from mcp_memory.store.protocol import Store

MAX_CHARS = 2_000
"""Of a page about the user, whoever wrote it."""

HEADINGS: dict[Section, str] = {
    "rules": "Rules",
    "user": "About the user and their work",
    "people": "People",
    "dates": "Dates",
    "promises": "Promises, open",
    "changed": "Changed lately",
    "events": "What happened",
}
_READ = 1_000  # characters of a text, of which the first line is shown
_LINE = 140  # characters of a statement
_FORMER = 60  # of one that has ended
_RULES = 320  # characters of that section: a session starts with more rules, see `recall.opening`


def page(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the page, at most 2,000 characters, as read at a moment; empty if it would list no sentence of the user.

    Without a moment: as it was when the newest statement was stored, whatever the day.
    """
    return _composed(ranked(store, space, at=at))


# --- lines ------------------------------------------------------------------------------------------


def line(candidate: Candidate) -> str:
    """Return the line of a statement with its id, and with the one that it ended: `… (a9), until 3 May: … (a2)`."""
    atom, former, when = candidate.atom, candidate.former, candidate.note
    text = statement_text(atom, _LINE)
    if not when and candidate.day is not None and (ADDITION.search(text) or text.endswith("…")):
        when = day_in_words(candidate.day.astimezone().date(), after=atom.valid_from.date())
    if not when and candidate.section == "events":
        when = f"{atom.valid_from:%Y-%m-%d}"
    if when:  # then the date that was added to the words repeats it
        text = statement_text(replace(atom, text=ADDITION.sub("", atom.text)), _LINE)
    said = f"{when}: {text}" if when else text
    if former is None:
        return f"- {said} ({atom.id})"
    end = day_in_words((former.valid_to or atom.valid_from).astimezone().date())
    return f"- {said} ({atom.id}); until {end}: {statement_text(former, _FORMER)} ({former.id})"


def statement_text(atom: Atom, limit: int) -> str:
    """Return a statement on one line of at most `limit` characters, marked unless the user is sure to have said it."""
    text = shown_text(atom.text, limit)
    marks = ", ".join(filter(None, (ATTRIBUTION[atom.source], doubt_mark(atom))))
    return f"{marks}: {text}" if marks else text


def shown_text(text: str, limit: int) -> str:
    """Return words on one line of at most `limit` characters, without bullets, citations, links and secrets.

    Of a question with its answer, the question is cut first.
    """
    shown = one_line(plain(without_bullet(mask(text[:_READ]))), 4 * limit)
    question, mark, answer = shown.partition(_ANSWER)
    if len(shown) <= limit or not mark:
        return clause(shown, limit)
    room = limit - len(f"…{mark}{answer}")
    if room < _SHORTEST_QUESTION:
        return clause(answer, limit)
    return f"…{question[-room:].partition(' ')[2] or question[-room:]}{mark}{answer}"


_ANSWER = "? – "  # between the two, see `sentence_statements`
_SHORTEST_QUESTION = 20  # characters


_CLAUSE_END = re.compile(r"[,;:.!?–—](?=\s)|[、，。；！？]")


def clause(text: str, limit: int) -> str:
    """Return a text cut to `limit` characters, after a clause where one ends in the second half, with an ellipsis."""
    if len(text) <= limit:
        return text
    ends = [end.start() for end in _CLAUSE_END.finditer(text, 0, limit) if end.start() >= limit // 2]
    cut = ends[-1] if ends else max(text.rfind(" ", limit // 2, limit), 0) or limit - 1
    return text[:cut].rstrip() + "…"


def _composed(found: Iterable[Candidate]) -> str:
    """Return the page with the first candidates that fit; within a section by time."""
    chosen: dict[Section, list[tuple[Candidate, str]]] = {}
    rules = left = 0
    room = MAX_CHARS - len("# Persona\n") - _MORE_CHARS
    for candidate in found:
        text = line(candidate)
        section = candidate.section
        cost = len(text) + 1 + (0 if section in chosen else len(HEADINGS[section]) + 5)
        if section == "rules" and rules + cost > _RULES:
            left += 1
            continue
        room -= cost
        if room < 0:  # no shorter one takes the place: it would tell less
            left += 1
            continue
        rules += cost if section == "rules" else 0
        chosen.setdefault(section, []).append((candidate, text))
    if not chosen:
        return ""
    parts = ["# Persona"]
    for section, heading in HEADINGS.items():
        if section in chosen:
            lines = sorted(chosen[section], key=lambda entry: _place(entry[0]))
            parts.append(f"## {heading}\n\n" + "\n".join(text for _, text in lines))
    more = f"\n- … and {left} more: memory_search without a query lists them\n" if left else "\n"
    return "\n\n".join(parts) + more


_MORE_CHARS = 70


def _place(candidate: Candidate) -> tuple[bool, datetime, int]:
    atom = candidate.atom
    is_later_rule = candidate.section == "rules" and atom.priority >= 0  # standing rules come first
    return is_later_rule, candidate.day or atom.valid_from, number_of(atom)
