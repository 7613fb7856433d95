"""Resolves the decisions of a merge reply into rows to commit: each draft ends in exactly one atom, or waits.

Replies are read tolerantly: a wrong decision never spoils the others, an unknown action is `add`. A decision that
breaks a rule leaves its draft to be added unchanged, with a note. The rules:

* A standing instruction (priority -1) is closed by an instruction only.
* An explicit statement is closed by a stated one, not an implied one, and with a reason.
* A new text contains nothing that neither side says: no other numbers, mostly their words.
* Joining loses no fact: facts of different relations stay two statements.
* A dropped draft has no number and no fact value that the other statement lacks.

A joined atom has the lowest confidence of its parts and holds from when all of them did. A draft that replaces another
draft waits until that is an atom.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import takewhile
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, BeforeValidator, Field, field_validator

from mcp_memory.core.text import iso, one_line, well_formed
from mcp_memory.core.types import SAID_BY, Atom, Evidence, Kind, Source
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.changes import calls_former
from mcp_memory.longterm.doubts import with_corrections
from mcp_memory.longterm.grounding import STATED
from mcp_memory.longterm.verification.trust import (
    is_less_trusted,
    least_trusted,
    most_trusted,
    quarantine,
    with_allowed_kind,
)
from mcp_memory.models.metered import Applied
from mcp_memory.store.values import Draft, Merging, NewAtom, quarantines
from mcp_memory.suspicion.flags import flags

Action = Literal["add", "update", "merge", "skip"]
_ACTIONS: dict[str, Action] = {
    "add": "add", "store": "add", "new": "add", "create": "add", "keep": "add",
    "update": "update", "replace": "update", "correct": "update", "supersede": "update",
    "merge": "merge", "join": "merge", "combine": "merge",
    "skip": "skip", "drop": "skip", "duplicate": "skip", "ignore": "skip", "none": "skip",
}  # fmt: skip
_KINDS = ("persona", "episodic", "instruction")


def _id(value: Any, letter: str) -> str:
    """`a12`, `[A12]` and, where only one sort is meant, `12`."""
    text = str(value).strip(" \t\n[](){}\"'`.:").casefold()
    return letter + text if text.isdigit() else text


def _ids(value: Any) -> list[str]:
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    written = " ".join(str(one) for one in listed if isinstance(one, str | int))
    return [_id(part, "a") for part in re.split(r"[\s,;]+", written) if part]


def _known_kind(value: Any) -> str | None:
    kind = str(value).strip().casefold()
    return kind if kind in _KINDS else None


def _whole_number(value: Any) -> int | None:
    found = re.fullmatch(r"\s*(-?\d{1,6})(\.\d*)?\s*", str(value))
    return int(found[1]) if found else None


Words = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]


class Decision(BaseModel):
    """The resolution of one new statement."""

    draft: Annotated[
        str, BeforeValidator(lambda value: _id(value, "d")), Field(description="Id of the new statement, such as d7")
    ]
    action: Annotated[Action, BeforeValidator(lambda value: _ACTIONS.get(str(value).strip().casefold(), "add"))] = "add"
    targets: Annotated[list[str], BeforeValidator(_ids)] = Field(
        [], description="Ids that it is compared with: held ones (a12) or new ones (d3)"
    )
    text: Words = Field("", description="For merge, and for update where it reads better: the statement in full")
    kind: Annotated[Kind | None, BeforeValidator(_known_kind)] = None
    priority: Annotated[int | None, BeforeValidator(_whole_number)] = Field(
        None, description="0 to 100; left out, it stays as it is"
    )
    reason: Words = Field("", description="Why, in one short sentence")


class MergeReply(BaseModel):
    """One decision for each new statement."""

    decisions: list[Decision]

    @field_validator("decisions", mode="before")
    @classmethod
    def _decisions(cls, value: Any) -> Any:
        """A decision that names no statement decides nothing; the others still do."""
        if not isinstance(value, list):
            return value
        items = cast("list[Any]", value)
        return [item for item in items if isinstance(item, Decision) or (isinstance(item, dict) and "draft" in item)]


_LONGEST = 600
_OWN_WORDS = 0.5  # share of a new text's words that one of the old ones has
_SMALL = 12  # numbers that people write as words too


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTarget:
    """A current atom with its evidence, and whether the user asked to remember it."""

    atom: Atom
    told: bool
    evidence: Sequence[Evidence]


def protected(held: MergeTarget, draft: NewAtom, reason: str) -> str | None:
    """Return why a draft may not close a held statement."""
    id = held.atom.id
    if draft.held:
        because = "is held for review" if quarantines(draft.held) else "is doubtful"
        return f"the new statement {because}, and closes nothing"
    if is_less_trusted(draft.source, held.atom.source):
        return f"{id} is the word of {SAID_BY[held.atom.source]}, which {SAID_BY[draft.source]} does not replace"
    if held.atom.priority < 0 and draft.kind != "instruction":
        return f"{id} is a standing instruction, which only an instruction replaces"
    if held.told and draft.confidence < STATED:
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


def cannot_join(drafts: Sequence[NewAtom], onto: Sequence[MergeTarget], text: str) -> str | None:
    """Return why statements cannot become one with this text."""
    if not text:
        return "there is no text that says what all of them say, in their words and numbers"
    facts = [fact for one in (*drafts, *(held.atom for held in onto)) if (fact := fact_of(one))]
    lost = next((fact for fact in facts if fact[:2] != facts[0][:2] or not _same_value(fact, facts[0])), None)
    return f"the fact {lost[1]} {lost[2]!r} would be lost" if lost else None


def lacking(draft: NewAtom, others: Sequence[NewAtom | Atom]) -> str | None:
    """Return the content of a draft that the others lack: another value of a fact, a number."""
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


_RISE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The resolution of a draft."""

    action: Action = "add"
    onto: Sequence[MergeTarget] = ()
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


def resolved_atom(draft: NewAtom, fate: Resolution, said_at: Mapping[str, datetime]) -> NewAtom:
    """Return the atom to store; `said_at` gives the times of its turns."""
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
        evidence=tuple(dict.fromkeys(one for source in (*parts, *kept) for one in source.evidence)),
        entities=_names(told),
        supersedes=tuple(one.id for one in old),
        because=_because(draft, fate),
        **_fact(draft, text, [*fate.followers, *_goes_on(fate, text, kind)]),
    )
    if is_less_trusted(source, most_trusted(part.source for part in parts)):
        atom = with_allowed_kind(atom)
    return quarantine(atom, [*(why for part in told for why in part.held), *flags(text, source)])


def _voice(text: str, parts: Sequence[NewAtom], kept: Sequence[MergeTarget]) -> Source:
    first = most_trusted(part.source for part in parts)
    own = [part for part in parts if part.source == first]
    others = [*(part for part in parts if part not in own), *(held.atom for held in kept)]
    return least_trusted([first, *(other.source for other in others if _keeps(text, other, own))])


def _keeps(text: str, old: NewAtom | Atom, parts: Sequence[NewAtom]) -> bool:
    """Return whether a text says something that only the old statement says; one word of it is no more than wording."""
    new = {term for part in parts for term in index_terms(part.text)}
    words = {term for term in query_terms(text) if len(term) > 1} - new
    return len(words & set(index_terms(old.text))) > 1


def _since(draft: NewAtom, fate: Resolution, text: str, said_at: Mapping[str, datetime]) -> datetime:

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
    """Return whether a replacement is valid since then: it names the year and has no other value of the fact."""
    new, fact = fact_of(draft), fact_of(old)
    changed = new is not None and fact is not None and new[:2] == fact[:2] and new != fact
    return not changed and str(old.valid_from.year) in text


def _kind(draft: NewAtom, fate: Resolution, old: Sequence[Atom]) -> Kind:
    if any(one.priority < 0 for one in (draft, *old)):
        return "instruction"
    kinds: set[Kind] = {draft.kind, *(one.kind for one in old)}
    allowed: set[Kind] = kinds if "instruction" in kinds else {"persona", "episodic"}
    if fate.kind == "persona" and "persona" not in kinds and all(one.source != "user" for one in (draft, *old)):
        return draft.kind  # a trait needs a person's word
    return fate.kind if fate.kind in allowed else draft.kind


def _priority(fate: Resolution, sources: Sequence[NewAtom | Atom]) -> int:
    levels = [one.priority for one in sources]
    if min(levels) < 0:
        return -1
    most = max(levels)
    return min(max(most, fate.priority or 0), most + _RISE, 100)


def _because(draft: NewAtom, fate: Resolution) -> str:
    if fate.reason.strip():
        return one_line(fate.reason, 300)
    if draft.single_valued:
        return one_line(f"{draft.relation} is {draft.value} now", 300)
    return {"merge": "joined with a newer statement", "update": "replaced by a newer statement"}.get(fate.action, "")


def _fact(draft: NewAtom, text: str, others: Sequence[NewAtom | Atom]) -> dict[str, Any]:
    if draft.entity:
        return {}
    words = set(index_terms(text))
    for other in others:
        told = other.fact if isinstance(other, Atom) else other
        if told is not None and told.entity and told.value and set(index_terms(told.value)) <= words:
            single = isinstance(other, NewAtom) and other.single_valued
            return {"entity": told.entity, "relation": told.relation, "value": told.value, "single_valued": single}
    return {}


def _goes_on(fate: Resolution, text: str, kind: Kind) -> list[Atom]:
    """Return the old statements whose facts may go on.

    Of those that are replaced, where the text names the value as it stands, and not as a former one: "submitted her
    screenplay" ends the goal "submit her screenplay", "X instead of Y" ends Y. What happened states no fact that lasts.
    """
    old = [held.atom for held in fate.onto]
    if fate.action == "merge":
        return old
    words = fold(text)
    lasting = [one for one in old if one.fact and kind in (one.kind, "persona")]
    return [
        one for one in lasting if one.fact and fold(one.fact.value) in words and not calls_former(text, one.fact.value)
    ]


def _names(parts: Sequence[NewAtom | Atom]) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for part in parts:
        for name in part.entities:
            names.setdefault(fold(name), name)
    return tuple(names.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeContext:
    """The content of a question: new statements, current ones, and which of all each new one is compared with."""

    drafts: Mapping[str, Draft]
    held: Mapping[str, MergeTarget]
    near: Mapping[str, Sequence[str]]
    known: Mapping[str, Collection[str]]
    """What the extraction of each draft was shown, and the other drafts that it made."""
    said_at: Mapping[str, datetime]
    """When the turns were said that they rest on."""


def same_statement(shown: MergeContext, draft: str) -> str | None:
    """Return the atom or the earlier draft with the same content in the same words: no question is needed."""
    earlier = list(takewhile(lambda id: id != draft, shown.drafts))
    for id in sorted(shown.near.get(draft, ()), key=lambda id: (id not in shown.held, len(id), id)):
        other = shown.held[id].atom if id in shown.held else shown.drafts[id].atom if id in earlier else None
        if other is not None and same_words(shown.drafts[draft].atom, other):
            return id
    return None


def resolve_merge(shown: MergeContext, decisions: Iterable[Decision]) -> tuple[list[Merging], Applied]:
    """Return the rows to commit and a report of the accepted and refused decisions."""
    decisions = list(decisions)
    texts = {decision.draft: decision.text for decision in reversed(decisions)}
    shown = replace(shown, drafts=with_corrections(shown.drafts, texts, shown.said_at))
    settling = _Resolver(shown)
    settling.take(decisions)
    merged: list[Merging] = []
    done = Applied(outcome={}, refused=settling.refused)
    for id in shown.drafts:
        fate, leader = settling.fates[id], settling.fates[settling.leader(id)]
        if leader.waits:
            done.kept.append(f"{id} waits until the statement that it replaces is stored, and is asked about again.")
            continue
        atom = settling.atom(id) if fate.action != "skip" else None
        onto = [held.atom.id for held in leader.onto] if leader.action == "skip" else []
        merged.append(Merging(draft=id, atom=atom, onto=onto))
        what, line = _told(id, fate, atom, onto)
        done.outcome[what] = done.outcome.get(what, 0) + 1
        done.kept.append(line)
    return merged, done


class _Resolver:
    """Process the decisions in the order of the drafts; `fates` has the resolutions so far."""

    def __init__(self, shown: MergeContext) -> None:
        self._shown = shown
        self.fates = {id: Resolution() for id in shown.drafts}
        self.refused: list[str] = []
        self._part_of: dict[str, str] = {}
        """Held statements that a new one has joined, and which."""

    def take(self, decisions: Iterable[Decision]) -> None:
        said = {decision.draft: decision for decision in reversed(list(decisions))}  # of several the first
        strange = [id for id in said if id not in self.fates]
        self.refused += [f"{one_line(id, 20)!r} is no new statement of this question." for id in strange]
        for id in self.fates:
            same = same_statement(self._shown, id)
            if same is not None and (now := self._now([same], id)):
                problem = self._drop(id, now)
            elif id not in said:
                continue
            elif (leader := self.leader(id)) == id:
                problem = self._settle(id, said[id])
            else:
                self._passed_over(id, said[id], leader)
                continue
            if problem:
                self.refused.append(f"{id} was added as it stands: {problem}.")
        for id, fate in self.fates.items():  # dropped drafts whose target was joined later
            whose = {self._part_of.get(held.atom.id) for held in fate.onto} if fate.action == "skip" else set[str]()
            if None not in whose and (leader := next(iter(whose), None)):
                self.fates[id] = Resolution(action="skip", same=leader)

    def leader(self, id: str) -> str:
        """Return the draft that speaks for this one in the end, itself where none does."""
        while (same := self.fates[id].same) is not None:
            id = same
        return id

    def atom(self, id: str) -> NewAtom:
        draft, *followers = self._spoken(id)
        fate = replace(self.fates[id], followers=followers)
        return self._without_clash(resolved_atom(draft, fate, self._shown.said_at), fate)

    # one decision; each returns why it cannot be applied

    def _settle(self, id: str, said: Decision) -> str | None:
        if said.action == "add":
            return None
        targets = [other for other in dict.fromkeys(said.targets) if other != id]
        known = [other for other in targets if other in self._shown.held or other in self.fates]
        if not known:
            named = ", ".join(one_line(other, 20) for other in targets)
            return f"{said.action} names {named}, which was not shown" if named else f"{said.action} names no target"
        now = self._now(known, id)
        if not now:  # its targets were dropped for it, or joined with it, before
            text = self._text(id, said, self._spoken(id))
            self.fates[id] = Resolution(text=text, kind=said.kind, priority=said.priority)
            return None
        match said.action:
            case "skip":
                return self._drop(id, now)
            case "update":
                return self._replace(id, said, now)
            case "merge":
                return self._join(id, said, now)

    def _drop(self, id: str, targets: Sequence[str]) -> str | None:
        onto = self._held(targets)
        leaders = [other for other in targets if other in self.fates and not self.fates[other].waits]
        others = [held.atom for held in onto] or [self._shown.drafts[other].atom for other in leaders]
        if not others:
            return "what it is said to repeat is dropped itself, or waits"
        if (what := lacking(self._shown.drafts[id].atom, others)) is not None:
            return f"{what} is new beside {', '.join(targets)}"
        self.fates[id] = Resolution(action="skip", onto=onto, same=None if onto else leaders[0])
        return None

    def _replace(self, id: str, said: Decision, targets: Sequence[str]) -> str | None:
        onto = self._held(targets)
        draft = self._shown.drafts[id].atom
        waits = any(other in self.fates and not self.fates[other].waits for other in targets)
        if not onto and not waits:
            return "the statement that it replaces is not there to be replaced"
        problem = self._why_not(draft, onto, said)
        if problem is None:
            text = self._text(id, said, [*self._spoken(id), *(held.atom for held in onto)])
            self.fates[id] = _fate(said, onto, text, waits=waits)
        return problem

    def _join(self, id: str, said: Decision, targets: Sequence[str]) -> str | None:
        onto = [held for held in self._held(targets) if held.atom.id not in self._part_of]
        draft = self._shown.drafts[id].atom
        joined = [other for other in targets if other in self.fates and self._is_free(other)]
        if not onto and not joined:
            return "what it was to join is part of another statement by now"
        drafts = [draft, *(self._shown.drafts[other].atom for other in joined)]
        text = usable(said.text, [*self._spoken(id), *drafts, *(held.atom for held in onto)])
        problem = self._why_not(draft, onto, said) or cannot_join(drafts, onto, text)
        if problem is None:
            self.fates[id] = _fate(said, onto, text)
            self.fates.update({other: Resolution(action="skip", same=id) for other in joined})
            self._part_of.update({held.atom.id: id for held in onto})
        return problem

    def _passed_over(self, id: str, said: Decision, leader: str) -> None:
        """Tell of a decision on a draft that another joined before, where it would have ended something else."""
        mine = {held.atom.id for held in self.fates[leader].onto}
        lost = [other for other in said.targets if other in self._shown.held and other not in mine]
        if said.action in ("update", "merge") and lost:
            self.refused.append(
                f"{id} was joined by {leader}: its own {said.action} of {', '.join(lost)} was not done."
            )

    def _text(self, id: str, said: Decision, sources: Sequence[NewAtom | Atom]) -> str:
        text = usable(said.text, sources)
        if said.text.strip() and not text:
            self.refused.append(f"{id} keeps its own text: the new one says more than the statements do.")
        return text

    # drafts and targets

    def _spoken(self, id: str) -> list[NewAtom]:
        """Return a draft and those that it speaks for."""
        followers = [other for other in self.fates if other != id and self.leader(other) == id]
        return [self._shown.drafts[one].atom for one in (id, *followers)]

    def _now(self, targets: Sequence[str], id: str) -> list[str]:
        now: dict[str, None] = {}
        for target in targets:
            if target in self._shown.held:
                now[self._part_of.get(target, target)] = None
                continue
            leader = self.leader(target)
            said_by = self.fates[leader].onto if self.fates[leader].action == "skip" else ()
            now.update(dict.fromkeys([held.atom.id for held in said_by] or [leader]))
        return [target for target in now if target != id]

    def _held(self, targets: Sequence[str]) -> list[MergeTarget]:
        return [self._shown.held[id] for id in targets if id in self._shown.held]

    def _why_not(self, draft: NewAtom, onto: Sequence[MergeTarget], said: Decision) -> str | None:
        return next((why for held in onto if (why := protected(held, draft, said.reason))), None)

    def _is_free(self, id: str) -> bool:
        """Return whether nothing is settled of a draft, and it speaks for no other."""
        return self.fates[id] == Resolution() and all(fate.same != id for fate in self.fates.values())

    def _without_clash(self, atom: NewAtom, fate: Resolution) -> NewAtom:
        """Leave out a fact of one value that would end, unasked, what must not end so."""
        fact = fact_of(atom) if atom.single_valued else None
        for held in self._shown.held.values():
            theirs = fact_of(held.atom)
            clash = fact and theirs and fact[:2] == theirs[:2] and held not in fate.onto
            if clash and (why := protected(held, atom, "")):
                self.refused.append(f"{one_line(atom.text, 60)!r} was stored without its fact: {why}.")
                return replace(atom, entity=None, relation=None, value=None, single_valued=False)
        return atom


def _fate(said: Decision, onto: Sequence[MergeTarget], text: str, *, waits: bool = False) -> Resolution:
    given = said.model_dump(include={"action", "kind", "priority", "reason"})
    return Resolution(onto=onto, waits=waits, text=text, **given)


def _told(id: str, fate: Resolution, atom: NewAtom | None, onto: Sequence[str]) -> tuple[str, str]:
    said = f": {one_line(atom.text, 100)}" if atom else ""
    old = ", ".join(held.atom.id for held in fate.onto)
    match fate.action:
        case "add":
            return "added", f"{id} was added{said}"
        case "update":
            return "updated", f"{id} replaces {old}{said}"
        case "merge":
            return "merged", f"{id} was joined with {old or 'others of these'}{said}"
        case "skip":
            return "skipped", f"{id} says what {', '.join(onto) or fate.same} says; its words were added there"
