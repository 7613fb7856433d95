"""Which statements tell most about the user: ranked for the page and for the start of a session, without a model.

Sentences of the user that a program extracted (`Atom.is_sentence`), explicit and imported statements are ranked by
`salience`. Left out are statements that are past, statements that a later one may have replaced (`contradiction`) or
that another one repeats, sentences about a day more than two weeks ago, and all that `suspicion.flags` flags.

The ranking depends on the stored statements, the log of recalls up to yesterday, and the day: it changes at most once a
day unless a statement was added, ended or forgotten.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from mcp_memory.core.lru import LRU
from mcp_memory.core.types import Atom, Kind
from mcp_memory.language.when.intervals import Span
from mcp_memory.language.words import fold
from mcp_memory.longterm.contradiction import pair_features, pair_model
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


Section = Literal["rules", "user", "people", "dates", "promises", "changed", "events"]
_SECTION_OF_KIND: dict[Kind, Section] = {"instruction": "rules", "persona": "user", "episodic": "events"}

_BEHIND = timedelta(days=14)  # for which a day that has passed is listed
_READ, _READ_FIRST = 2_000, 200  # the newest statements, and those of the highest priority
_LISTED = 150  # statements of the highest salience, which are more than a page can list
_COMPARED = 150  # statements of the highest salience that are compared with the nearest later ones
_NEWER, _ONE_TOPIC = 4, 0.3  # how many later ones, and their least cosine
_REPLACES_RULE = 0.5  # probability from which a rule gives way: others do where `remember` would ask
_SAME = 0.85  # share of the shorter one's words from which two say the same
_RECALLS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A statement that the page may list. `former`: the statement that it ended, if there is one."""

    atom: Atom
    section: Section
    salience: float
    former: Atom | None = None
    day: datetime | None = None
    """The only day that it names, if that was to come when it was said (`validity.planned_day`)."""
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
    ended = [atom for atom in stored if _is_former(atom)]
    weights = _weights(stored, ended, _recalled(store, space, before=_midnight(at)))
    current = [atom for atom in stored if _is_fit(atom) and not is_past(atom, at)]
    left_out = _replaced_and_repeated(store, space, current, weights, at)
    former = {atom.superseded_by: atom for atom in ended}
    listed = [
        atom
        for atom in current
        if atom.id not in left_out and (weights[atom.id] >= _LEAST or _is_planned_after(atom, at))
    ]
    for atom in sorted(listed, key=lambda atom: (-weights[atom.id], -number_of(atom))):
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


def _weights(stored: Sequence[Atom], ended: Sequence[Atom], recalled: Collection[str]) -> dict[str, float]:
    """Return the salience of all stored statements. `ended`: those that gave way to another, the oldest first.

    A new value matters as much as the one that it ended, however briefly it is put.
    """
    weights = {atom.id: salience(atom, recalled) for atom in stored}
    for atom in ended:
        if atom.superseded_by in weights:
            weights[atom.superseded_by] = max(weights[atom.superseded_by], weights[atom.id])
    return weights


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
    """Return whether a statement is more than an episode of others: about the user, lasting, told outright, or told by
    the user as something that matters, such as an offer for their shop.
    """
    about_user = not atom.entities or "user" in map(fold, atom.entities)
    told = atom.confidence >= 1 or (atom.source == "user" and (atom.is_sentence or atom.priority >= _MATTERS))
    return about_user or atom.kind != "episodic" or told


def _is_former(atom: Atom) -> bool:
    """Return whether a statement has given way to another one, and may be shown beside it."""
    is_replaced = atom.superseded_by is not None and atom.valid_to is not None
    return is_replaced and _is_fit(atom) and not flags(atom.text, "user")


def _section(atom: Atom, former: Atom | None, day: Span | None) -> Section:
    """Return the section of a statement by what is known of it; its likeliest label alone is often wrong."""
    if atom.label == "promise":
        return "promises"
    if not atom.is_sentence or atom.kind == "instruction":
        return _SECTION_OF_KIND[atom.kind]
    if former is not None:
        return "changed"
    if day is not None:
        return "dates"
    names_somebody = any(fold(name) != USER for name in atom.entities)
    return "people" if names_somebody and atom.label == "person" else "user"


def _may_be_listed(atom: Atom, at: datetime) -> bool:
    """Return whether a statement is harmless and, if it is a sentence, about no day that is long past."""
    day = planned_day(atom) if atom.is_sentence else None
    is_timely = day is None or _midnight(at) - _BEHIND < day.end
    return is_timely and not flags(atom.text, "user")


def _is_planned_after(atom: Atom, at: datetime) -> bool:
    """Return whether a sentence plans something for a day that is yet to come, which is wanted until then."""
    day = planned_day(atom) if atom.label == "plan" else None
    return day is not None and day.end > at


def _midnight(at: datetime) -> datetime:
    local = at.astimezone()
    return datetime.combine(local.date(), time.min, local.tzinfo)


def _recalled(store: Store, space: str, *, before: datetime) -> set[str]:
    """Return the rows that a prompt brought up to the day before: later prompts must not change the page."""
    log = store.recalls(space, limit=_RECALLS)
    return {id for entry in log if entry.how == "prompt" and entry.at < before for id in entry.ids}


# --- salience ---------------------------------------------------------------------------------------

_EXPLICIT = 1.0  # of what somebody took the trouble to have remembered
_RECALLED = 0.1
_LEAST = 0.3  # salience of a line: of 29 authors left out, 74 % of the lines are right, 69 % without a limit


def salience(atom: Atom, recalled: Collection[str]) -> float:
    """Return how much a statement tells about the user, 0 to 1.1; `recalled` are the ids that prompts brought.

    For a sentence that is its priority, a percentage: what its words are worth alone (`models.embed.sentence_labels`).
    How new a sentence is, how often its words return and how specific they are improved the order on no memory.
    """
    worth = atom.priority / 100 if atom.is_sentence else _EXPLICIT
    return worth + _RECALLED * (atom.id in recalled)


# --- pairs ------------------------------------------------------------------------------------------


def _replaced_and_repeated(
    store: Store, space: str, atoms: Sequence[Atom], weights: dict[str, float], at: datetime
) -> set[str]:
    """Return the ids of statements that a later one may have replaced, or that another one repeats.

    The one that stays gets the salience of the other in `weights`. The most salient are compared with the nearest of
    those said later, so the time is about the same for a large memory. Promises replace nothing: each is kept until it
    is fulfilled.
    """
    import numpy as np

    from mcp_memory.models.embed.bundled import IDENTITY

    vectors = store.vectors_of(space, "atom", [atom.id for atom in atoms], IDENTITY)
    compared = sorted((atom for atom in atoms if atom.id in vectors and atom.label != "promise"), key=_said_order)
    left_out: set[str] = set()
    if not compared:
        return left_out
    data = np.stack([vectors[atom.id] for atom in compared])
    chosen = {atom.id for atom in sorted(compared, key=lambda atom: -weights[atom.id])[:_COMPARED]}
    for place, older in enumerate(compared):
        if older.id not in chosen:
            continue
        cosines = np.einsum("ij,j->i", data[place + 1 :], data[place])
        nearest: list[int] = np.argsort(-cosines, kind="stable").tolist()
        near = (compared[place + 1 + step] for step in nearest if cosines[step] >= _ONE_TOPIC)
        others = (newer for newer in near if newer.id not in left_out and newer.evidence != older.evidence)
        for newer in islice(others, _NEWER):
            choice = _choice(older, newer, vectors, weights)
            if choice is None or not _may_be_listed(choice.stays, at):
                continue
            weights[choice.stays.id] = max(weights[older.id], weights[newer.id])
            left_out.add(choice.goes.id)
            if choice.goes is older:
                chosen.add(newer.id)  # it may have been replaced in its turn
                break
    return left_out


def _said_order(atom: Atom) -> tuple[datetime, int]:
    return atom.valid_from, number_of(atom)


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
    pair, model = _compared(older, newer, vectors), pair_model()
    is_rule = older.kind == "instruction"
    if pair.change >= (_REPLACES_RULE if is_rule else model.unsure) and not _is_weaker(newer, older):
        return _Choice(stays=newer, goes=older)
    if pair.shared < _SAME:
        return None
    if _is_weaker(newer, older) or (not _is_weaker(older, newer) and weights[older.id] > weights[newer.id]):
        return _Choice(stays=older, goes=newer)
    return _Choice(stays=newer, goes=older)


def _is_weaker(atom: Atom, other: Atom) -> bool:
    """Return whether a statement is less trusted than another: by its source, or because only it has doubts."""
    if atom.source != other.source:
        return is_less_trusted(atom.source, other.source)
    return bool(atom.doubts) and not other.doubts


class _Pair(NamedTuple):
    change: float
    """The probability that the newer one contradicts or updates the older."""
    shared: float
    """The share of the shorter one's words that the other has."""


_pairs = LRU[tuple[str, str], _Pair](8192)


def _compared(older: Atom, newer: Atom, vectors: Mapping[str, NDArray[np.float32]]) -> _Pair:
    def compare() -> _Pair:
        known = {older.text: vectors[older.id], newer.text: vectors[newer.id]}
        (features,) = pair_features(newer.text, [older.text], known)
        return _Pair(pair_model().probability(features), features.shared)

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
