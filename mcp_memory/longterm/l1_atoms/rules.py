"""What a decision on a new statement may not do. Where it breaks a rule, the statement becomes an atom of its own.

* A standing instruction (priority -1) is closed by an instruction alone.
* What was told explicitly is closed by something stated, not implied, and with a reason.
* A new text says nothing that neither side says: no other numbers, mostly their words.
* Joining loses no fact: two facts of different relations stay two statements.
* What is dropped as old news has no number and no value of a fact that the other statement lacks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_memory.core.text import iso, one_line, well_formed
from mcp_memory.core.types import SAID_BY, Atom, Evidence
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.trust import told_less
from mcp_memory.store.protocol import NewAtom

__all__ = ["Held", "cannot_join", "fact_of", "lacking", "protected", "same_words", "usable"]

_STATED = 0.9
_LONGEST = 600
_OWN_WORDS = 0.5  # share of a new text's words that one of the old ones has
_SMALL = 12  # numbers that people write as words too


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A current atom with all words that it rests on; `told`: the user said it explicitly, with `remember`."""

    atom: Atom
    told: bool
    evidence: Sequence[Evidence]


def protected(held: Held, draft: NewAtom, reason: str) -> str | None:
    """Return why a draft may not close a held statement."""
    id = held.atom.id
    if draft.held:
        return "the new statement is held for review, and closes nothing until then"
    if told_less(draft.source, held.atom.source):
        return f"{id} is the word of {SAID_BY[held.atom.source]}, which {SAID_BY[draft.source]} does not replace"
    if held.atom.priority < 0 and draft.kind != "instruction":
        return f"{id} is a standing instruction, which only an instruction replaces"
    if held.told and draft.confidence < _STATED:
        return f"{id} was told explicitly, and this is only implied"
    if held.told and not reason.strip():
        return f"{id} was told explicitly, and no reason is given"
    return None


def usable(text: str, sources: Sequence[NewAtom | Atom]) -> str:
    """Return a new text, on one line, if it says nothing that its sources do not; else nothing."""
    clean = one_line(text, _LONGEST + 1)
    if not clean or len(clean) > _LONGEST or not well_formed(clean):
        return ""
    words = set(query_terms(clean))
    known = {term for source in sources for term in index_terms(source.text)}
    told = {number for source in sources for number in _numbers(_dated(source))}
    invented = {number for number in _numbers(clean) - told if number > _SMALL}
    return clean if not invented and len(words & known) >= _OWN_WORDS * len(words) else ""


def cannot_join(drafts: Sequence[NewAtom], onto: Sequence[Held], text: str) -> str | None:
    """Return why statements cannot become one with this text."""
    if not text:
        return "there is no text that says what all of them say, in their words and numbers"
    facts = [fact for one in (*drafts, *(held.atom for held in onto)) if (fact := fact_of(one))]
    lost = next((fact for fact in facts if fact[:2] != facts[0][:2] or not _same_value(fact, facts[0])), None)
    return f"the fact {lost[1]} {lost[2]!r} would be lost" if lost else None


def lacking(draft: NewAtom, others: Sequence[NewAtom | Atom]) -> str | None:
    """Return what a draft says that the others do not: another value of a fact, a number."""
    fact = fact_of(draft)
    theirs = [their for other in others if (their := fact_of(other)) and fact and their[:2] == fact[:2]]
    if fact and theirs and not any(_same_value(fact, their) for their in theirs):
        return f"{fact[1]} {fact[2]!r}"
    new = _numbers(draft.text) - {number for other in others for number in _numbers(_dated(other))}
    return f"the number {min(new)}" if new else None


def _same_value(one: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    return one[2] == other[2] or bool(set(index_terms(one[2])) & set(index_terms(other[2])))


def _dated(one: NewAtom | Atom) -> str:
    return f"{one.text} {iso(one.valid_from)[:10]}"


def _numbers(text: str) -> set[int]:
    return {int(digits) for digits in re.findall(r"\d{1,18}", text)}


def fact_of(atom: NewAtom | Atom) -> tuple[str, str, str] | None:
    """Return a fact in a form that compares."""
    if isinstance(atom, Atom):
        fact = atom.fact
        return (fold(fact.entity), fact.relation, fold(fact.value)) if fact else None
    given = atom.entity and atom.relation and atom.value
    return (fold(atom.entity or ""), atom.relation or "", fold(atom.value or "")) if given else None


def same_words(one: NewAtom, other: NewAtom | Atom) -> bool:
    same_day = one.valid_from.date() == other.valid_from.date()
    return (
        one.kind == other.kind
        and _bare(one.text) == _bare(other.text)
        and fact_of(one) in (None, fact_of(other))
        and (same_day or one.kind != "episodic")  # the same may happen again
    )


def _bare(text: str) -> str:
    return " ".join(fold(text).split()).rstrip(".!。！")
