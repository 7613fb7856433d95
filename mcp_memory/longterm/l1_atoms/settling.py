"""From decisions on new statements to what is committed: each draft ends under exactly one atom, or waits.

A draft is stored, or its words go to a held atom that says the same, or to another draft of the question that does. One
that is to replace another draft waits until that is an atom: the next question asks about it again, and something is
committed each time, so none waits for ever. A decision that is missing, names what was not shown, or breaks a rule
of `rules` leaves its draft to be added as it stands, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom
from mcp_memory.longterm.l1_atoms.decisions import Decision
from mcp_memory.longterm.l1_atoms.fates import Fate, made
from mcp_memory.longterm.l1_atoms.rules import Held, cannot_join, fact_of, lacking, protected, same_words, usable
from mcp_memory.store.protocol import Draft, Merging, NewAtom, Outcome

__all__ = ["Settled", "Shown", "settled", "twin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a question shows: new statements, held ones, and which of all each new one is compared with."""

    drafts: Mapping[str, Draft]
    held: Mapping[str, Held]
    near: Mapping[str, Sequence[str]]
    said_at: Mapping[str, datetime]
    """When the turns were said that they rest on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What to commit, and sentences of what was kept and what was refused."""

    merged: list[Merging]
    outcome: Outcome
    kept: list[str]
    refused: list[str]


def twin(shown: Shown, draft: str) -> str | None:
    """Return the atom or the earlier draft that says the very same in the same words: nobody has to be asked."""
    earlier = list(takewhile(lambda id: id != draft, shown.drafts))
    for id in sorted(shown.near.get(draft, ()), key=lambda id: (id not in shown.held, len(id), id)):
        other = shown.held[id].atom if id in shown.held else shown.drafts[id].atom if id in earlier else None
        if other is not None and same_words(shown.drafts[draft].atom, other):
            return id
    return None


def settled(shown: Shown, decisions: Iterable[Decision]) -> Settled:
    """Return what the decisions come to."""
    settling = _Settling(shown)
    settling.take(decisions)
    done = Settled(merged=[], outcome={}, kept=[], refused=settling.refused)
    for id in shown.drafts:
        fate, leader = settling.fates[id], settling.fates[settling.leader(id)]
        if leader.waits:
            done.kept.append(f"{id} waits until the statement that it replaces is stored, and is asked about again.")
            continue
        atom = settling.atom(id) if fate.action != "skip" else None
        onto = [held.atom.id for held in leader.onto] if leader.action == "skip" else []
        done.merged.append(Merging(draft=id, atom=atom, onto=onto))
        what, line = _told(id, fate, atom, onto)
        done.outcome[what] = done.outcome.get(what, 0) + 1
        done.kept.append(line)
    return done


class _Settling:
    """Works through the decisions in the order of the drafts; `fates` is what is settled so far."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self.fates = {id: Fate() for id in shown.drafts}
        self.refused: list[str] = []
        self._part_of: dict[str, str] = {}
        """Held statements that a new one has joined, and which."""

    def take(self, decisions: Iterable[Decision]) -> None:
        said = {decision.draft: decision for decision in reversed(list(decisions))}  # of several the first
        strange = [id for id in said if id not in self.fates]
        self.refused += [f"{one_line(id, 20)!r} is no new statement of this question." for id in strange]
        for id in self.fates:
            same = twin(self._shown, id)
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
        for id, fate in self.fates.items():  # what was dropped before another joined what it repeats
            whose = {self._part_of.get(held.atom.id) for held in fate.onto} if fate.action == "skip" else set[str]()
            if None not in whose and (leader := next(iter(whose), None)):
                self.fates[id] = Fate(action="skip", same=leader)

    def leader(self, id: str) -> str:
        """Return the draft that speaks for this one in the end, itself where none does."""
        while (same := self.fates[id].same) is not None:
            id = same
        return id

    def atom(self, id: str) -> NewAtom:
        draft, *followers = self._spoken(id)
        fate = replace(self.fates[id], followers=followers)
        return self._without_clash(made(draft, fate, self._shown.said_at), fate)

    # one decision; each returns why it cannot be what was said

    def _settle(self, id: str, said: Decision) -> str | None:
        if said.action == "add":
            return None
        targets = [other for other in dict.fromkeys(said.targets) if other != id]
        known = [other for other in targets if other in self._shown.held or other in self.fates]
        if not known:
            named = ", ".join(one_line(other, 20) for other in targets)
            return f"{said.action} names {named}, which was not shown" if named else f"{said.action} names no target"
        now = self._now(known, id)
        if not now:  # what it names was dropped in its favour before, or joined: it speaks for all of them
            text = self._text(id, said, self._spoken(id))
            self.fates[id] = Fate(text=text, kind=said.kind, priority=said.priority)
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
        self.fates[id] = Fate(action="skip", onto=onto, same=None if onto else leaders[0])
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
            self.fates.update({other: Fate(action="skip", same=id) for other in joined})
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

    # what holds of drafts and targets

    def _spoken(self, id: str) -> list[NewAtom]:
        """Return a draft and those that it speaks for."""
        followers = [other for other in self.fates if other != id and self.leader(other) == id]
        return [self._shown.drafts[one].atom for one in (id, *followers)]

    def _now(self, targets: Sequence[str], id: str) -> list[str]:
        """Return what stands for targets by now: drafts that they are part of, atoms that say what they say."""
        now: dict[str, None] = {}
        for target in targets:
            if target in self._shown.held:
                now[self._part_of.get(target, target)] = None
                continue
            leader = self.leader(target)
            said_by = self.fates[leader].onto if self.fates[leader].action == "skip" else ()
            now.update(dict.fromkeys([held.atom.id for held in said_by] or [leader]))
        return [target for target in now if target != id]

    def _held(self, targets: Sequence[str]) -> list[Held]:
        return [self._shown.held[id] for id in targets if id in self._shown.held]

    def _why_not(self, draft: NewAtom, onto: Sequence[Held], said: Decision) -> str | None:
        return next((why for held in onto if (why := protected(held, draft, said.reason))), None)

    def _is_free(self, id: str) -> bool:
        """Tell whether nothing is settled of a draft, and it speaks for no other."""
        return self.fates[id] == Fate() and all(fate.same != id for fate in self.fates.values())

    def _without_clash(self, atom: NewAtom, fate: Fate) -> NewAtom:
        """Leave out a fact of one value that would end, unasked, what must not end so."""
        fact = fact_of(atom) if atom.single_valued else None
        for held in self._shown.held.values():
            theirs = fact_of(held.atom)
            clash = fact and theirs and fact[:2] == theirs[:2] and held not in fate.onto
            if clash and (why := protected(held, atom, "")):
                self.refused.append(f"{one_line(atom.text, 60)!r} was stored without its fact: {why}.")
                return replace(atom, entity=None, relation=None, value=None, single_valued=False)
        return atom


def _fate(said: Decision, onto: Sequence[Held], text: str, *, waits: bool = False) -> Fate:
    return Fate(
        action=said.action,
        onto=onto,
        waits=waits,
        text=text,
        kind=said.kind,
        priority=said.priority,
        reason=said.reason,
    )


def _told(id: str, fate: Fate, atom: NewAtom | None, onto: Sequence[str]) -> tuple[str, str]:
    """Return what is counted, and a sentence."""
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
