"""Replies to merge questions, the rules that their decisions must follow, and the atoms that result.

An invalid decision is dropped with a note and never affects the others; an unknown action is `add`. If a decision
breaks a rule, its draft is added unchanged, with a note (see `merging`). The rules:

* A doubtful statement closes nothing, and no statement is closed by a less trusted source.
* A standing instruction (priority -1) is closed by an instruction only.
* An explicit statement is closed only for a reason, and not by an implied statement.
* At least half the words of a new text, and all its numbers above 12, come from the statements that it combines.
* Joining loses no fact: facts of different relations stay two statements.
* A dropped draft has no number and no fact value that the other statement lacks.

A joined atom has the lowest confidence of its parts. It is valid from the latest date that a part names, or, if none
names a date, from when the last of them was said. A draft that replaces another draft waits until that draft is an
atom.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, Field

from mcp_memory.core.text import iso, one_line, well_formed
from mcp_memory.core.types import SAID_BY, Atom, Evidence, Kind, Source
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.grounding import STATED
from mcp_memory.longterm.value_clauses import calls_former
from mcp_memory.longterm.verification.trust import (
    is_less_trusted,
    least_trusted,
    most_trusted,
    quarantine,
    with_allowed_kind,
)
from mcp_memory.models.replies import Text, TolerantReply, as_list, choice
from mcp_memory.store.values import NewAtom, quarantines
from mcp_memory.suspicion.flags import flags

# --- the reply --------------------------------------------------------------------------------------

Action = Literal["add", "update", "merge", "skip"]
_ACTIONS: dict[str, Action] = {
    "add": "add", "store": "add", "new": "add", "create": "add", "keep": "add",
    "update": "update", "replace": "update", "correct": "update", "supersede": "update",
    "merge": "merge", "join": "merge", "combine": "merge",
    "skip": "skip", "drop": "skip", "duplicate": "skip", "ignore": "skip", "none": "skip",
}  # fmt: skip
_KINDS = {"persona": "persona", "episodic": "episodic", "instruction": "instruction"}


def _id(value: Any, letter: str) -> str:
    """Return an id from `a12`, `[A12]` or a bare `12`, which gets the letter."""
    text = str(value).strip(" \t\n[](){}\"'`.:").casefold()
    return letter + text if text.isdigit() else text


def _atom_ids(value: Any) -> list[str]:
    words = " ".join(str(item) for item in as_list(value) if isinstance(item, str | int))
    return [_id(word, "a") for word in re.split(r"[\s,;]+", words) if word]


def _whole_number(value: Any) -> int | None:
    digits = re.fullmatch(r"\s*(-?\d{1,6})(\.\d*)?\s*", str(value))
    return int(digits[1]) if digits else None


class Decision(BaseModel):
    """The resolution of a new statement."""

    draft: Annotated[
        str, BeforeValidator(lambda value: _id(value, "d")), Field(description="Id of the new statement, such as d7")
    ]
    action: Annotated[Action, choice(_ACTIONS, "add")] = "add"
    targets: Annotated[list[str], BeforeValidator(_atom_ids)] = Field(
        [], description="Ids that it is compared with: held ones (a12) or new ones (d3)"
    )
    text: Text = Field("", description="For merge, and for update where it reads better: the statement in full")
    kind: Annotated[Kind | None, choice(_KINDS)] = None
    priority: Annotated[int | None, BeforeValidator(_whole_number)] = Field(
        None, description="0 to 100; left out, it stays as it is"
    )
    reason: Text = Field("", description="Why, in one short sentence")


class MergeReply(TolerantReply):
    """One decision for each new statement."""

    decisions: list[Decision]


# --- the rules --------------------------------------------------------------------------------------

_MAX_TEXT = 600
_OWN_WORDS = 0.5  # least share of a new text's words that must come from its sources
_SMALL = 12  # numbers that people write as words too
_MAX_RISE = 10  # most that a merge may add to a priority


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTarget:
    """A current atom with its evidence, and whether the user asked to remember it."""

    atom: Atom
    is_explicit: bool
    evidence: Sequence[Evidence]


def why_protected(target: MergeTarget, draft: NewAtom, reason: str) -> str | None:
    """Return why a draft may not close a current statement, None if it may."""
    id = target.atom.id
    if draft.held:
        doubt = "is held for review" if quarantines(draft.held) else "is doubtful"
        return f"the new statement {doubt}, and closes nothing"
    if is_less_trusted(draft.source, target.atom.source):
        return f"{id} is the word of {SAID_BY[target.atom.source]}, which {SAID_BY[draft.source]} does not replace"
    if target.atom.priority < 0 and draft.kind != "instruction":
        return f"{id} is a standing instruction, which only an instruction replaces"
    if target.is_explicit and draft.confidence < STATED:
        return f"{id} was told explicitly, and this is only implied"
    if target.is_explicit and not reason.strip():
        return f"{id} was told explicitly, and no reason is given"
    return None


def usable_text(text: str, sources: Sequence[NewAtom | Atom]) -> str:
    """Return a new text on one line; empty if it is too long or says something that its sources do not."""
    clean = one_line(text, _MAX_TEXT + 1)
    if not clean or len(clean) > _MAX_TEXT or not well_formed(clean):
        return ""
    words = set(query_terms(clean))
    source_words = {term for source in sources for term in index_terms(source.text)}
    invented = {number for number in _numbers(clean) - _numbers_with_dates(sources) if number > _SMALL}
    return clean if not invented and len(words & source_words) >= _OWN_WORDS * len(words) else ""


def obstacle_to_joining(drafts: Sequence[NewAtom], onto: Sequence[MergeTarget], text: str) -> str | None:
    """Return why statements cannot be joined under this text, None if they can."""
    if not text:
        return "there is no text that says what all of them say, in their words and numbers"
    facts = [fact for atom in (*drafts, *(target.atom for target in onto)) if (fact := fact_key(atom))]
    lost = next((fact for fact in facts if fact[:2] != facts[0][:2] or not _is_same_value(fact, facts[0])), None)
    return f"the fact {lost[1]} {lost[2]!r} would be lost" if lost else None


def news_in(draft: NewAtom, others: Sequence[NewAtom | Atom]) -> str | None:
    """Return a number that only the draft has, or its fact's value if the other statements have another; else None."""
    fact = fact_key(draft)
    comparable = [other for atom in others if fact and (other := fact_key(atom)) and other[:2] == fact[:2]]
    if fact and comparable and not any(_is_same_value(fact, other) for other in comparable):
        return f"{fact[1]} {fact[2]!r}"
    new = _numbers(draft.text) - _numbers_with_dates(others)
    return f"the number {min(new)}" if new else None


def _numbers(text: str) -> set[int]:
    return {int(digits) for digits in re.findall(r"\d{1,18}", text)}


def _numbers_with_dates(atoms: Iterable[NewAtom | Atom]) -> set[int]:
    return {number for atom in atoms for number in _numbers(f"{atom.text} {iso(atom.valid_from)[:10]}")}


def fact_key(atom: NewAtom | Atom) -> tuple[str, str, str] | None:
    """Return entity, relation and value of a statement's fact in a comparable form, None without a complete fact."""
    fact = atom.fact if isinstance(atom, Atom) else atom
    if fact is None or not (fact.entity and fact.relation and fact.value):
        return None
    return fold(fact.entity), fact.relation, fold(fact.value)


def _is_same_value(fact: tuple[str, str, str], other: tuple[str, str, str]) -> bool:
    return fact[2] == other[2] or not set(index_terms(fact[2])).isdisjoint(index_terms(other[2]))


def is_repetition(draft: NewAtom, other: NewAtom | Atom) -> bool:
    is_same_day = draft.valid_from.date() == other.valid_from.date()
    return (
        draft.kind == other.kind
        and _comparable(draft.text) == _comparable(other.text)
        and fact_key(draft) in (None, fact_key(other))
        and (is_same_day or draft.kind != "episodic")  # the same event may happen again
    )


def _comparable(text: str) -> str:
    return " ".join(fold(text).split()).rstrip(".!。！")


# --- the atom of a draft ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What becomes of a draft: an atom, or a part of another draft or atom."""

    action: Action = "add"
    onto: Sequence[MergeTarget] = ()
    """Current statements that it replaces or joins, or that its words are added to."""
    leader: str | None = None
    """The draft that includes this draft."""
    waits: bool = False
    """It replaces another draft; once that is an atom, this draft is asked about again."""
    text: str = ""
    kind: Kind | None = None
    priority: int | None = None
    reason: str = ""
    followers: list[NewAtom] = field(default_factory=list[NewAtom])
    """Drafts that this draft includes."""


def resolved_atom(draft: NewAtom, resolution: Resolution, said_at: Mapping[str, datetime]) -> NewAtom:
    """Return the atom to store for a draft; `said_at` maps turn ids to the times of the turns."""
    parts = [draft, *resolution.followers]
    old = [target.atom for target in resolution.onto]
    text = resolution.text or draft.text
    is_joined = resolution.action == "merge"
    kept = [target for target in resolution.onto if is_joined or _keeps_words(text, target.atom, parts)]
    sources = [*parts, *(target.atom for target in kept)]
    kind = _kind(draft, resolution, old)
    source = _source(text, parts, kept)
    confidences = [atom.confidence for atom in sources]
    atom = replace(
        draft,
        text=text,
        kind=kind,
        source=source,
        priority=_priority(resolution, [*parts, *old]),
        confidence=min(confidences) if is_joined or kept else max(confidences),
        valid_from=_valid_from(draft, resolution, text, said_at),
        valid_to=None if is_joined else draft.valid_to,
        evidence=tuple(dict.fromkeys(quote for part in (*parts, *kept) for quote in part.evidence)),
        entities=_entity_names(sources),
        supersedes=tuple(atom.id for atom in old),
        because=_because(draft, resolution),
        **_fact_fields(draft, text, [*resolution.followers, *_with_lasting_facts(resolution, text, kind)]),
    )
    if is_less_trusted(source, most_trusted(part.source for part in parts)):
        atom = with_allowed_kind(atom)
    return quarantine(atom, [*(doubt for source in sources for doubt in source.held), *flags(text, source)])


def _source(text: str, parts: Sequence[NewAtom], kept: Sequence[MergeTarget]) -> Source:
    """Return the least trusted of the sources that the text takes words from."""
    first = most_trusted(part.source for part in parts)
    own = [part for part in parts if part.source == first]
    others = [*(part for part in parts if part not in own), *(target.atom for target in kept)]
    return least_trusted([first, *(other.source for other in others if _keeps_words(text, other, own))])


def _keeps_words(text: str, old: NewAtom | Atom, parts: Sequence[NewAtom]) -> bool:
    """Return whether a text has at least two words that only the old statement has; one word may be mere wording."""
    new = {term for part in parts for term in index_terms(part.text)}
    words = {term for term in query_terms(text) if len(term) > 1} - new
    return len(words & set(index_terms(old.text))) > 1


def _valid_from(draft: NewAtom, resolution: Resolution, text: str, said_at: Mapping[str, datetime]) -> datetime:
    """Return when the atom of a draft becomes valid.

    A date that the draft names counts, unless the draft is joined with others. Otherwise the latest date that any part
    names counts. If no part names a date, it is the time at which the draft, or the last of the joined parts, was said.
    """

    def named_dates(evidence: Sequence[Evidence], since: datetime) -> list[datetime]:
        return [] if since in (said_at.get(quote.turn) for quote in evidence) else [since]

    is_joined = resolution.action == "merge"
    own = named_dates(draft.evidence, draft.valid_from)
    if own and not is_joined:
        return draft.valid_from
    onto = [target for target in resolution.onto if is_joined or _keeps_date(draft, target.atom, text)]
    new = [date for part in resolution.followers for date in named_dates(part.evidence, part.valid_from)]
    old = [date for target in onto for date in named_dates(target.evidence, target.atom.valid_from)]
    if dates := [*own, *new, *old]:
        return max(dates)
    parts = [*resolution.followers, *(target.atom for target in onto)] if is_joined else []
    return max(part.valid_from for part in (draft, *parts))


def _keeps_date(draft: NewAtom, old: Atom, text: str) -> bool:
    """Return whether a new statement keeps an old statement's date: `text` has the year, and no fact value changes."""
    new_fact, old_fact = fact_key(draft), fact_key(old)
    is_changed = new_fact and old_fact and new_fact[:2] == old_fact[:2] and new_fact != old_fact
    return not is_changed and str(old.valid_from.year) in text


def _kind(draft: NewAtom, resolution: Resolution, old: Sequence[Atom]) -> Kind:
    atoms = (draft, *old)
    if any(atom.priority < 0 for atom in atoms):
        return "instruction"
    kinds = {atom.kind for atom in atoms}
    if resolution.kind == "persona" and "persona" not in kinds and all(atom.source != "user" for atom in atoms):
        return draft.kind  # a trait needs a person's word
    allowed = kinds if "instruction" in kinds else {"persona", "episodic"}
    return resolution.kind if resolution.kind in allowed else draft.kind


def _priority(resolution: Resolution, sources: Sequence[NewAtom | Atom]) -> int:
    priorities = [source.priority for source in sources]
    if min(priorities) < 0:
        return -1
    highest = max(priorities)
    return min(max(highest, resolution.priority or 0), highest + _MAX_RISE, 100)


def _because(draft: NewAtom, resolution: Resolution) -> str:
    if resolution.reason.strip():
        return one_line(resolution.reason, 300)
    if draft.single_valued:
        return one_line(f"{draft.relation} is {draft.value} now", 300)
    default = {"merge": "joined with a newer statement", "update": "replaced by a newer statement"}
    return default.get(resolution.action, "")


def _fact_fields(draft: NewAtom, text: str, others: Sequence[NewAtom | Atom]) -> dict[str, Any]:
    """Return the fields of the first other fact whose value the text names; none if the draft has its own fact."""
    if draft.entity:
        return {}
    words = set(index_terms(text))
    for other in others:
        fact = other.fact if isinstance(other, Atom) else other
        if fact is not None and fact.entity and fact.value and words.issuperset(index_terms(fact.value)):
            is_single = isinstance(other, NewAtom) and other.single_valued
            return {"entity": fact.entity, "relation": fact.relation, "value": fact.value, "single_valued": is_single}
    return {}


def _entity_names(atoms: Iterable[NewAtom | Atom]) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for atom in atoms:
        for name in atom.entities:
            names.setdefault(fold(name), name)
    return tuple(names.values())


def _with_lasting_facts(resolution: Resolution, text: str, kind: Kind) -> list[Atom]:
    """Return the old statements whose facts the new atom may keep.

    A replaced statement's fact lasts only if the text names its value literally, and not as a former value: "submitted
    her screenplay" ends the goal "submit her screenplay", "X instead of Y" ends Y. An event or a rule keeps no fact of
    a statement of another kind.
    """
    old = [target.atom for target in resolution.onto]
    if resolution.action == "merge":
        return old
    return [
        atom
        for atom in old
        if atom.fact
        and kind in (atom.kind, "persona")
        and fold(atom.fact.value) in fold(text)
        and not calls_former(text, atom.fact.value)
    ]
