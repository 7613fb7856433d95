"""Which statements tell most about the user: ranked for the page and for the start of a session, without a model.

Sentences of the user that a program extracted (`Atom.is_sentence`), explicit and imported statements are ranked by
`salience`. Left out are statements that are past, statements that a later one may have replaced (`contradiction`) or
that another one repeats, plans whose day was more than two weeks ago, and all that `suspicion.flags` flags.

The ranking depends on the stored statements, the log of recalls up to yesterday, and the day: it changes at most once a
day unless a statement was added, ended or forgotten.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from mcp_memory.core.lru import LRU
from mcp_memory.core.types import Atom, Kind, Label
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.language.when.intervals import Span
from mcp_memory.language.words import base_terms, fold, function_words_of
from mcp_memory.longterm.changes import announces_change
from mcp_memory.longterm.kept import KeptValues
from mcp_memory.longterm.page_lines import SAID
from mcp_memory.longterm.standing_rules import possible_rules
from mcp_memory.longterm.validity import end_of, is_past, planned_day, time_note
from mcp_memory.longterm.verification.trust import fit_for_pages, is_less_trusted
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Filters
from mcp_memory.suspicion.flags import flags

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Candidate", "Section", "candidates", "content_terms", "is_of_the_user", "number_of", "ranked", "salience",
]  # fmt: skip

Section = Literal["rules", "user", "people", "decisions", "plans", "promises", "changed", "events"]
_SECTION_OF: dict[Label, Section] = {
    "rule": "rules",
    "trait": "user",
    "person": "people",
    "decision": "decisions",
    "plan": "plans",
    "event": "plans",  # of a day that is yet to come; of others, only changes are listed
    "promise": "promises",
}
_SECTION_OF_KIND: dict[Kind, Section] = {"instruction": "rules", "persona": "user", "episodic": "events"}

_AHEAD, _BEHIND = timedelta(days=30), timedelta(days=14)  # of plans
_READ, _READ_FIRST = 2_000, 200  # the newest statements, and those of the highest priority
_COMPARED = 150  # statements of the highest salience, which are more than a page can list
_NEWER, _ONE_TOPIC = 4, 0.3  # later statements that one is compared with, and their least cosine
_SAME = 0.85  # share of the shorter one's words that the other has
_RECALLS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A statement that the page may list. `former`: the statement that it ended, if there is one."""

    atom: Atom
    section: Section
    salience: float
    former: Atom | None = None
    day: datetime | None = None
    """The day of a plan, if it names one."""
    note: str = ""
    """As `validity.time_note` has it: `was planned for 3 May 2026`, `from 1 March 2027`."""


# --- candidates -------------------------------------------------------------------------------------


def candidates(store: Store, space: str, *, at: datetime | None = None) -> Iterator[Candidate]:
    """Yield what a page may list, the most salient first, duplicates and replaced statements included.

    Nothing if no statement was extracted without a model. Dates are read one by one as they are asked for: reading
    them takes most of the time, and a page has room for few of the statements.
    """
    stored = _stored(store, space)
    if not any(atom.is_sentence for atom in stored):
        return
    at = at or max(atom.learned_at for atom in stored)
    former = {atom.superseded_by: atom for atom in stored if _is_former(atom)}
    current = [atom for atom in stored if _is_fit(atom) and not is_past(atom, at)]
    sections: dict[str, Section] = {atom.id: _section(atom, former.get(atom.id)) for atom in current}
    context = _Context.of(current, _recalled(store, space, before=_midnight(at)))
    weights = {atom.id: salience(atom, sections[atom.id], context) for atom in current}
    for atom in sorted(current, key=lambda atom: (-weights[atom.id], -number_of(atom))):
        day, section = planned_day(atom), sections[atom.id]
        if section != "plans" or _is_timely(atom, day, at):
            yield Candidate(
                atom=atom,
                section=section,
                salience=weights[atom.id],
                former=former.get(atom.id) if section == "changed" else None,
                day=day.start if day else None,
                note=time_note(atom, at),
            )


def _stored(store: Store, space: str) -> list[Atom]:
    """Return the newest statements and those of the highest priority, oldest first, ended ones too."""
    newest = store.totals(space, "atom").newest
    first = store.list_atoms(space, filters=Filters(unheld=True), limit=_READ_FIRST)
    recent = store.atoms_since(space, max(0, newest - _READ), limit=_READ)
    return sorted({atom.id: atom for atom in (*first, *recent)}.values(), key=number_of)


def _is_fit(atom: Atom) -> bool:
    return fit_for_pages(atom) and (atom.is_sentence or atom.confidence >= SAID) and is_of_the_user(atom)


_MATTERS = 80  # priority; 70 is usual


def is_of_the_user(atom: Atom) -> bool:
    """Tell whether a statement is more than an episode of others: about the user, lasting, told outright, or told by
    the user as something that matters, such as an offer for their shop.
    """
    about_user = not atom.entities or "user" in map(fold, atom.entities)
    told = atom.confidence >= 1 or (atom.source == "user" and (atom.is_sentence or atom.priority >= _MATTERS))
    return about_user or atom.kind != "episodic" or told


def _is_former(atom: Atom) -> bool:
    """Tell whether a statement has given way to another one, and may be shown beside it."""
    is_replaced = atom.superseded_by is not None and atom.valid_to is not None
    return is_replaced and _is_fit(atom) and not flags(atom.text, "user")


def _section(atom: Atom, former: Atom | None) -> Section:
    label = atom.label
    if label is None:
        return _SECTION_OF_KIND[atom.kind]
    if label not in ("rule", "promise") and (former is not None or (label == "event" and announces_change(atom.text))):
        return "changed"
    return _SECTION_OF[label]


def _is_timely(atom: Atom, day: Span | None, at: datetime) -> bool:
    """Tell whether a plan or an event is for a page at this moment."""
    today = _midnight(at)
    if day is None:
        return atom.label == "plan" and atom.valid_from > today - _AHEAD
    return today - _BEHIND < day.end and day.start < today + _AHEAD + timedelta(days=1)


def _midnight(at: datetime) -> datetime:
    local = at.astimezone()
    return datetime.combine(local.date(), time.min, local.tzinfo)


def _recalled(store: Store, space: str, *, before: datetime) -> Counter[str]:
    """Return how many prompts brought a row, up to the day before: later ones must not change the page."""
    log = store.recalls(space, limit=_RECALLS)
    return Counter(id for entry in log if entry.how == "prompt" and entry.at < before for id in entry.ids)


# --- salience ---------------------------------------------------------------------------------------

_KIND: dict[Section, float] = {
    "rules": 1.5,
    "changed": 1.0,
    "people": 1.0,
    "decisions": 1.0,
    "promises": 1.0,
    "user": 0.9,
    "plans": 0.8,
    "events": 0.0,
}
"""In order of the share of labelled sentences of a kind that a careful reader would put on the page."""
_EXPLICIT = 1.0  # somebody took the trouble to have it remembered
_TERMS = 8  # content words of a sentence that says all it can
_CHANGED, _NAMED, _NUMBER, _SMALL = 0.75, 0.5, 0.25, 0.25
_ORDER = 0.75  # a sentence that may be a standing rule
_NAME = re.compile(r"(?<=[^\s.!?:…] )[\"'“„«(]?[^\W\d_a-zà-ÿ]\w+|\w[A-Z]|\w[-_./]\w|[A-Z]{2}")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class _Context:
    """What the salience of one statement takes from the others."""

    order: Mapping[str, int]
    said_in: Mapping[str, int]
    """In how many statements a content word is."""
    recalled: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def of(cls, atoms: Sequence[Atom], recalled: Mapping[str, int]) -> _Context:
        said = Counter(term for atom in atoms for term in content_terms(atom))
        return cls({atom.id: place for place, atom in enumerate(atoms)}, said, recalled)


def salience(atom: Atom, section: Section, context: _Context) -> float:
    """Return how much a statement tells about the user, about 0 to 4.

    Most of it is the kind, how specific the words are, and whether they announce a change: a sentence with names,
    numbers and many content words tells more than a vague one, and a new value more than one that nobody disputed. What
    the user keeps coming back to, said lately or had recalled counts a little. On the
    statements of six people, a logistic regression on the same features ranks no better on a person left out.
    """
    text = ADDITION.sub("", atom.text)
    terms = content_terms(atom)
    specific = min(1.0, len(terms) / _TERMS)
    specific += _NAMED * bool(_NAME.search(text)) + _NUMBER * bool(_DIGIT.search(text))
    changed = _CHANGED * announces_change(text)
    repeated = sum(context.said_in[term] > 1 for term in terms) / (1 + len(terms))
    recent = context.order[atom.id] / len(context.order)
    recalled = min(1, context.recalled.get(atom.id, 0))
    explicit = _EXPLICIT if not atom.is_sentence else 0.0
    return _KIND[section] + explicit + specific + changed + _SMALL * (repeated + recent + recalled)


def content_terms(atom: Atom) -> frozenset[str]:
    """Return the base terms of a statement, without function words and added dates."""
    return _content_terms(ADDITION.sub("", atom.text))


@lru_cache(maxsize=4096)
def _content_terms(text: str) -> frozenset[str]:
    terms = base_terms(text)
    return frozenset(terms) - function_words_of(terms)


# --- choice -----------------------------------------------------------------------------------------


def ranked(store: Store, space: str, *, at: datetime | None = None) -> Sequence[Candidate]:
    """Return the candidates, the most salient first, without what says the same as an earlier one, or what a later
    statement may have replaced. The answer is kept until the memory or the day changes.
    """
    if at is None:
        return tuple(_ranked(store, space, at))

    def compute() -> tuple[Sequence[Candidate], datetime]:
        found = tuple(_ranked(store, space, at))
        moments = (_next_midnight(at), *(moment for one in found for moment in _turning_points(one.atom)))
        return found, min((moment for moment in moments if moment > at), default=at)

    return _kept.get(store, space, compute, at=at)


_kept = KeptValues[Sequence[Candidate]]()


def _next_midnight(at: datetime) -> datetime:
    try:
        return _midnight(at) + timedelta(days=1)
    except OverflowError:  # the last day of the calendar
        return datetime.max.replace(tzinfo=UTC)


def _turning_points(atom: Atom) -> Iterator[datetime]:
    """Yield the moments at which a statement begins and ends."""
    yield atom.valid_from
    if (end := end_of(atom)) is not None:
        yield end


def _ranked(store: Store, space: str, at: datetime | None) -> Iterator[Candidate]:
    from mcp_memory.models.embed.bundled import IDENTITY

    first = islice(candidates(store, space, at=at), _COMPARED)
    fit = (_weighed(candidate) for candidate in first if not flags(candidate.atom.text, "user"))
    found = sorted(fit, key=lambda candidate: (-candidate.salience, -number_of(candidate.atom)))
    vectors = store.vectors_of(space, "atom", [candidate.atom.id for candidate in found], IDENTITY)
    later = _later(found, vectors)
    shown: set[str] = set()
    for candidate in found:
        atom = candidate.atom
        if not any(_gives_way(atom, other, shown, vectors) for other in later.get(atom.id, [])):
            shown.add(atom.id)
            yield candidate


def _weighed(candidate: Candidate) -> Candidate:
    """Return a sentence with more salience if it may be a standing rule, whatever its label.

    The model of standing rules takes some milliseconds a sentence, so only those that may be listed are judged.
    """
    is_order = candidate.atom.is_sentence and possible_rules(candidate.atom.text)
    return replace(candidate, salience=candidate.salience + _ORDER) if is_order else candidate


def _later(found: Sequence[Candidate], vectors: Mapping[str, NDArray[np.float32]]) -> dict[str, list[Atom]]:
    """Return for each statement those of one topic that it is compared with, the nearest first.

    Promises have none: each is kept until it is fulfilled, and replaces no statement.
    """
    import numpy as np

    atoms = [candidate.atom for candidate in found if candidate.atom.id in vectors and candidate.section != "promises"]
    if len(atoms) < 2:
        return {}
    data = np.stack([vectors[atom.id] for atom in atoms])
    cosines = np.einsum("ik,jk->ij", data, data)
    near: dict[str, list[Atom]] = {}
    for place, atom in enumerate(atoms):
        order: list[int] = np.argsort(-cosines[place], kind="stable").tolist()
        others = (atoms[other] for other in order if other != place and cosines[place, other] >= _ONE_TOPIC)
        near[atom.id] = [other for other in others if other.evidence != atom.evidence][: 2 * _NEWER]
    return near


def _gives_way(atom: Atom, other: Atom, shown: Collection[str], vectors: Mapping[str, NDArray[np.float32]]) -> bool:
    """Tell whether a later statement may have replaced this one, or one that is shown says the same.

    The user's own words never give way to what somebody else said or a check doubts; of two that say the same, the
    less trusted one gives way, whichever is more salient.
    """
    if _is_weaker(other, atom):
        return False
    stays = other.id in shown or _is_weaker(atom, other)
    is_older = (atom.valid_from, number_of(atom)) < (other.valid_from, number_of(other))
    if not (is_older or stays):
        return False
    older, newer = (atom, other) if is_older else (other, atom)
    pair = _compared(older, newer, vectors)
    return (is_older and pair.is_change) or (stays and pair.is_same)


def _is_weaker(atom: Atom, other: Atom) -> bool:
    """Tell whether a statement is less trusted than another: by its source, or because only it has doubts."""
    if atom.source != other.source:
        return is_less_trusted(atom.source, other.source)
    return bool(atom.doubts) and not other.doubts


class _Pair(NamedTuple):
    is_change: bool
    """The newer one may contradict or update the older: `remember` would ask."""
    is_same: bool
    """One has nearly all words of the other."""


_pairs = LRU[tuple[str, str], _Pair](8192)


def _compared(older: Atom, newer: Atom, vectors: Mapping[str, NDArray[np.float32]]) -> _Pair:
    from mcp_memory.longterm.contradiction import pair_features, pair_model

    def compare() -> _Pair:
        known = {older.text: vectors[older.id], newer.text: vectors[newer.id]}
        (features,) = pair_features(newer.text, [older.text], known)
        model = pair_model()
        return _Pair(model.probability(features) >= model.unsure, features.shared >= _SAME)

    return _pairs.get_or_put((older.text, newer.text), compare)


def number_of(atom: Atom) -> int:
    """Return the number of an atom, 12 for a12; later ones have higher numbers."""
    return int(atom.id[1:])
