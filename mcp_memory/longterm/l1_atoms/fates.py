"""The atom that a draft becomes: with what it replaces or joins, and with the words of drafts that say the same.

What was joined is as sure as the least sure of its parts, and holds from when all of them did: of times that were
said, or else from when the last of them was told. What replaces others
stands for itself, unless its text keeps something of theirs: then it rests on their words too. It matters as much as
the one of them all that mattered most, and may matter a little more. A fact that its text still tells goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Evidence, Kind, Source
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.l1_atoms.decisions import Action
from mcp_memory.longterm.l1_atoms.rules import Held, fact_of
from mcp_memory.longterm.trust import best, entitled, held_for, told_less, worst
from mcp_memory.store.protocol import NewAtom
from mcp_memory.suspicion import flags

__all__ = ["Fate", "made"]

_RISE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of a draft."""

    action: Action = "add"
    onto: Sequence[Held] = ()
    """Held statements that it replaces or joins, or that its words are added to."""
    same: str | None = None
    """The draft that speaks for this one too."""
    waits: bool = False
    """It replaces another draft, which has to be an atom first: then it is asked about again."""
    text: str = ""
    kind: Kind | None = None
    priority: int | None = None
    reason: str = ""
    followers: list[NewAtom] = field(default_factory=list[NewAtom])
    """Drafts that this one speaks for."""


def made(draft: NewAtom, fate: Fate, said_at: Mapping[str, datetime]) -> NewAtom:
    """Return the atom to store; `said_at` tells when its turns were said."""
    parts = [draft, *fate.followers]
    old = [held.atom for held in fate.onto]
    text = fate.text or draft.text
    kept = [held for held in fate.onto if fate.action == "merge" or _keeps(text, held.atom, parts)]
    told = [*parts, *(held.atom for held in kept)]
    joined = fate.action == "merge"
    kind = _kind(draft, fate, old)
    source = _voice(text, parts, kept)
    atom = replace(
        draft,
        text=text,
        kind=kind,
        source=source,
        priority=_priority(fate, [*parts, *old]),
        confidence=min(part.confidence for part in told) if joined or kept else max(part.confidence for part in parts),
        valid_from=_since(draft, fate, text, said_at),
        valid_to=None if joined else draft.valid_to,
        evidence=_together([*(part.evidence for part in parts), *(held.evidence for held in kept)]),
        entities=_names(told),
        supersedes=tuple(one.id for one in old),
        because=_because(draft, fate),
        **_fact(draft, text, [*fate.followers, *_goes_on(fate, text, kind)]),
    )
    if told_less(source, best(part.source for part in parts)):
        atom = entitled(atom)
    return held_for(atom, [*(why for part in told for why in part.held), *flags(text, source)])


def _voice(text: str, parts: Sequence[NewAtom], kept: Sequence[Held]) -> Source:
    """Return whose word a text is: the least trusted voice of those whose words it has."""
    first = best(part.source for part in parts)
    own = [part for part in parts if part.source == first]
    others = [*(part for part in parts if part not in own), *(held.atom for held in kept)]
    return worst([first, *(other.source for other in others if _keeps(text, other, own))])


def _keeps(text: str, old: NewAtom | Atom, parts: Sequence[NewAtom]) -> bool:
    """Tell whether a text says something that only the old statement says; one word of it is no more than wording."""
    new = {term for part in parts for term in index_terms(part.text)}
    words = {term for term in query_terms(text) if len(term) > 1} - new
    return len(words & set(index_terms(old.text))) > 1


def _since(draft: NewAtom, fate: Fate, text: str, said_at: Mapping[str, datetime]) -> datetime:
    """Return from when an atom holds: from a time that was said, if there is one, rather than from when it was told."""

    def dated(evidence: Sequence[Evidence], since: datetime) -> list[datetime]:
        return [] if since in (said_at.get(one.turn) for one in evidence) else [since]

    own = dated(draft.evidence, draft.valid_from)
    if own and fate.action != "merge":
        return draft.valid_from
    new = [since for part in fate.followers for since in dated(part.evidence, part.valid_from)]
    onto = [held for held in fate.onto if fate.action == "merge" or _same_time(draft, held.atom, text)]
    old = [since for held in onto for since in dated(held.evidence, held.atom.valid_from)]
    if said := [*own, *new, *old]:
        return max(said)
    parts = [*fate.followers, *(held.atom for held in onto)] if fate.action == "merge" else []
    return max(part.valid_from for part in (draft, *parts))


def _same_time(draft: NewAtom, old: Atom, text: str) -> bool:
    """Tell whether what replaces a statement holds since then: it names the year, and is no other value of its fact."""
    new, fact = fact_of(draft), fact_of(old)
    changed = new is not None and fact is not None and new[:2] == fact[:2] and new != fact
    return not changed and str(old.valid_from.year) in text


def _kind(draft: NewAtom, fate: Fate, old: Sequence[Atom]) -> Kind:
    """A standing rule stays a rule; else the decision says, but makes no instruction of what was none."""
    if any(one.priority < 0 for one in (draft, *old)):
        return "instruction"
    kinds: set[Kind] = {draft.kind, *(one.kind for one in old)}
    allowed: set[Kind] = kinds if "instruction" in kinds else {"persona", "episodic"}
    if fate.kind == "persona" and "persona" not in kinds and all(one.source != "user" for one in (draft, *old)):
        return draft.kind  # a trait needs a person's word
    return fate.kind if fate.kind in allowed else draft.kind


def _priority(fate: Fate, sources: Sequence[NewAtom | Atom]) -> int:
    levels = [one.priority for one in sources]
    if min(levels) < 0:
        return -1
    most = max(levels)
    return min(max(most, fate.priority or 0), most + _RISE, 100)


def _because(draft: NewAtom, fate: Fate) -> str:
    if fate.reason.strip():
        return one_line(fate.reason, 300)
    if draft.single_valued:
        return one_line(f"{draft.relation} is {draft.value} now", 300)
    return {"merge": "joined with a newer statement", "update": "replaced by a newer statement"}.get(fate.action, "")


def _fact(draft: NewAtom, text: str, others: Sequence[NewAtom | Atom]) -> dict[str, Any]:
    """Return the first fact of the others that the text still tells, where the draft brings none."""
    if draft.entity:
        return {}
    words = set(index_terms(text))
    for other in others:
        told = other.fact if isinstance(other, Atom) else other
        if told is not None and told.entity and told.value and set(index_terms(told.value)) <= words:
            single = isinstance(other, NewAtom) and other.single_valued
            return {"entity": told.entity, "relation": told.relation, "value": told.value, "single_valued": single}
    return {}


def _goes_on(fate: Fate, text: str, kind: Kind) -> list[Atom]:
    """Return the old statements whose facts may go on.

    Of those that are replaced, where the text still names the value as it stands: "submitted her screenplay" ends the
    goal "submit her screenplay". What happened states no fact that lasts.
    """
    old = [held.atom for held in fate.onto]
    if fate.action == "merge":
        return old
    words = fold(text)
    return [one for one in old if one.fact and fold(one.fact.value) in words and kind in (one.kind, "persona")]


def _together(evidence: Iterable[Sequence[Evidence]]) -> tuple[Evidence, ...]:
    return tuple(dict.fromkeys(one for some in evidence for one in some))


def _names(parts: Sequence[NewAtom | Atom]) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for part in parts:
        for name in part.entities:
            names.setdefault(fold(name), name)
    return tuple(names.values())
