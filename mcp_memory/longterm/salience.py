"""Which statements tell most about the user: ranked for the page and for the start of a session, without a model.

Sentences of the user that a program extracted (`Atom.is_sentence`), explicit and imported statements are ranked by
`salience`. Left out are statements that are past, statements that a later one may have replaced (`contradiction`) or
that another one repeats, plans whose day was more than two weeks ago, and all that `suspicion.flags` flags.

The ranking depends on the stored statements, the log of recalls up to yesterday, and the day: it changes at most once a
day unless a statement was added, ended or forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from mcp_memory.core.lru import LRU
from mcp_memory.core.types import Atom, Kind
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.language.when.intervals import Span
from mcp_memory.language.words import base_terms, fold, function_words_of
from mcp_memory.longterm.kept import KeptValues
from mcp_memory.longterm.names import USER
from mcp_memory.longterm.page_lines import SAID
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

Section = Literal["rules", "user", "people", "plans", "promises", "changed", "events"]
_SECTION_OF_KIND: dict[Kind, Section] = {"instruction": "rules", "persona": "user", "episodic": "events"}

_AHEAD, _BEHIND = timedelta(days=30), timedelta(days=14)  # of plans
_READ, _READ_FIRST = 2_000, 200  # the newest statements, and those of the highest priority
_LISTED = 150  # statements of the highest salience, which are more than a page can list
_COMPARED = 150  # of these, each with the nearest later ones
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
    """Yield what a page may list, the most salient first.

    Nothing if no statement was extracted without a model. Dates are read one by one as they are asked for: reading
    them takes most of the time, and a page has room for few of the statements.
    """
    stored = _stored(store, space)
    if not any(atom.is_sentence for atom in stored):
        return
    at = at or max(atom.learned_at for atom in stored)
    current = [atom for atom in stored if _is_fit(atom) and not is_past(atom, at)]
    recalled = _recalled(store, space, before=_midnight(at))
    weights = {atom.id: salience(atom, recalled) for atom in current}
    former = {atom.superseded_by: atom for atom in stored if _is_former(atom)}
    for id, atom in former.items():
        if id in weights:
            weights[id] = max(weights[id], salience(atom, recalled))
    left_out = _replaced_and_repeated(store, space, current, weights, at)
    likely = [atom for atom in current if weights[atom.id] >= _LEAST and atom.id not in left_out]
    for atom in sorted(likely, key=lambda atom: (-weights[atom.id], -number_of(atom))):
        if _may_be_listed(atom, at):
            day, before = planned_day(atom), former.get(atom.id)
            section = _section(atom, before, day)
            yield Candidate(
                atom=atom,
                section=section,
                salience=weights[atom.id],
                former=before if section == "changed" else None,
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


def _section(atom: Atom, former: Atom | None, day: Span | None) -> Section:
    """Return the section of a statement by what is known of it; its likeliest label alone is often wrong."""
    if atom.label == "promise":
        return "promises"
    if atom.kind == "instruction":
        return "rules"
    if former is not None and atom.is_sentence:
        return "changed"
    if day is not None:
        return "plans"
    if not atom.is_sentence:
        return _SECTION_OF_KIND[atom.kind]
    names_somebody = any(fold(name) != USER for name in atom.entities)
    return "people" if names_somebody and atom.label == "person" else "user"


def _is_timely(atom: Atom, day: Span | None, at: datetime) -> bool:
    """Tell whether a statement is for a page at this moment: plans are for some weeks."""
    today = _midnight(at)
    if day is None:
        return atom.label != "plan" or atom.valid_from > today - _AHEAD
    return today - _BEHIND < day.end


def _may_be_listed(atom: Atom, at: datetime) -> bool:
    return _is_timely(atom, planned_day(atom), at) and not flags(atom.text, "user")


def _midnight(at: datetime) -> datetime:
    local = at.astimezone()
    return datetime.combine(local.date(), time.min, local.tzinfo)


def _recalled(store: Store, space: str, *, before: datetime) -> Counter[str]:
    """Return how many prompts brought a row, up to the day before: later ones must not change the page."""
    log = store.recalls(space, limit=_RECALLS)
    return Counter(id for entry in log if entry.how == "prompt" and entry.at < before for id in entry.ids)


# --- salience ---------------------------------------------------------------------------------------

_EXPLICIT = 1.0  # of what somebody took the trouble to have remembered
_RECALLED = 0.1
_LEAST = (
    0.3  # of 29 authors left out, 75 % of the lines are right with this limit, and 72 % of the best sentences shown
)


def salience(atom: Atom, recalled: Mapping[str, int]) -> float:
    """Return how much a statement tells about the user, 0 to about 1.1.

    That is the worth of a sentence (`models.embed.sentence_labels`), which is its priority, and a little more if a
    prompt brought it. How new a sentence is, how often its words return and how specific they are tells no more: the
    worth alone ranks as well.
    """
    worth = atom.priority / 100 if atom.is_sentence else _EXPLICIT
    return worth + _RECALLED * (atom.id in recalled)


def content_terms(atom: Atom) -> frozenset[str]:
    """Return the base terms of a statement, without function words and added dates."""
    return _content_terms(ADDITION.sub("", atom.text))


@lru_cache(maxsize=4096)
def _content_terms(text: str) -> frozenset[str]:
    terms = base_terms(text)
    return frozenset(terms) - function_words_of(terms)


# --- pairs ------------------------------------------------------------------------------------------


def _replaced_and_repeated(
    store: Store, space: str, atoms: Sequence[Atom], weights: dict[str, float], at: datetime
) -> set[str]:
    """Return the ids of statements that a later one may have replaced, or that another one repeats.

    The one that stays gets the salience of the other in `weights`: a new value matters as much as the old one did,
    however briefly it is put. `atoms` are in the order in which they were stored. The most salient are compared with
    the later ones nearest to them, so the time is about the same for a large memory. Promises replace nothing: each is
    kept until it is fulfilled.
    """
    import numpy as np

    from mcp_memory.models.embed.bundled import IDENTITY

    vectors = store.vectors_of(space, "atom", [atom.id for atom in atoms], IDENTITY)
    compared = [atom for atom in atoms if atom.id in vectors and atom.label != "promise"]
    left_out: set[str] = set()
    if not compared:
        return left_out
    data = np.stack([vectors[atom.id] for atom in compared])
    by_salience = sorted(range(len(compared)), key=lambda place: -weights[compared[place].id])
    for place in sorted(by_salience[:_COMPARED]):
        older = compared[place]
        cosines = data[place + 1 :] @ data[place]
        nearest: list[int] = np.argsort(-cosines, kind="stable")[:_NEWER].tolist()
        for newer in (compared[place + 1 + step] for step in nearest if cosines[step] >= _ONE_TOPIC):
            pair = None if {older.id, newer.id} & left_out else _choice(older, newer, vectors, weights)
            if pair is not None and _may_be_listed(pair.stays, at):
                weights[pair.stays.id] = max(weights[older.id], weights[newer.id])
                left_out.add(pair.goes.id)
    return left_out


class _Choice(NamedTuple):
    stays: Atom
    goes: Atom


def _choice(
    older: Atom, newer: Atom, vectors: Mapping[str, NDArray[np.float32]], weights: Mapping[str, float]
) -> _Choice | None:
    """Return of two statements the one that stays and the one that gives way; None if both stay.

    The user's own words never give way to what somebody else said or a check doubts; of two that say the same, the
    less trusted one gives way, else the less salient.
    """
    if newer.evidence == older.evidence:
        return None
    pair = _compared(older, newer, vectors)
    if pair.is_change and newer.valid_from >= older.valid_from and not _is_weaker(newer, older):
        return _Choice(stays=newer, goes=older)
    if not pair.is_same:
        return None
    if _is_weaker(newer, older) or (not _is_weaker(older, newer) and weights[older.id] > weights[newer.id]):
        return _Choice(stays=older, goes=newer)
    return _Choice(stays=newer, goes=older)


def _is_weaker(atom: Atom, other: Atom) -> bool:
    """Tell whether a statement is less trusted than another: by its source, or because only it has doubts."""
    if atom.source != other.source:
        return is_less_trusted(atom.source, other.source)
    return bool(atom.doubts) and not other.doubts


class _Pair(NamedTuple):
    is_change: bool
    """The newer one may contradict or update the older: `remember` would ask. Of a rule: surely does."""
    is_same: bool
    """One has nearly all words of the other."""


_pairs = LRU[tuple[str, str], _Pair](8192)


def _compared(older: Atom, newer: Atom, vectors: Mapping[str, NDArray[np.float32]]) -> _Pair:
    from mcp_memory.longterm.contradiction import pair_features, pair_model

    def compare() -> _Pair:
        known = {older.text: vectors[older.id], newer.text: vectors[newer.id]}
        (features,) = pair_features(newer.text, [older.text], known)
        model = pair_model()
        least = (
            model.sure if older.kind == "instruction" else model.unsure
        )  # a rule holds until it is surely taken back
        return _Pair(model.probability(features) >= least, features.shared >= _SAME)

    return _pairs.get_or_put((older.text, newer.text), compare)


def number_of(atom: Atom) -> int:
    """Return the number of an atom, 12 for a12; later ones have higher numbers."""
    return int(atom.id[1:])


# --- the ranking ------------------------------------------------------------------------------------


def ranked(store: Store, space: str, *, at: datetime | None = None) -> Sequence[Candidate]:
    """Return the first candidates. The answer is kept until the memory or the day changes."""
    if at is None:
        return tuple(islice(candidates(store, space, at=at), _LISTED))

    def compute() -> tuple[Sequence[Candidate], datetime]:
        found = tuple(islice(candidates(store, space, at=at), _LISTED))
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
