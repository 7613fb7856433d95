"""Makes a page about the user without a model: the user's most telling statements, in their own words.

`ranked` orders statements by salience: the user's sentences that were extracted without a model (`Atom.is_sentence`),
and explicit and imported statements. It leaves out past statements, statements that a later statement may have replaced
(`contradiction`) or that another repeats, sentences about a day more than two weeks ago, and all that
`suspicion.flags` flags. `page` lists the first statements that fit, by section, each with its id and cut at a clause.
Nothing is paraphrased.

The ranking depends on the stored statements, the log of recalls up to yesterday, and the day: it changes at most once a
day unless a statement was added, ended or forgotten. Until then two calls return the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from mcp_memory.core.lru import LRU
from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import day_in_words, one_line, without_bullet
from mcp_memory.core.types import ATTRIBUTION, Atom, Kind
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.language.when.intervals import Span
from mcp_memory.language.words import fold
from mcp_memory.longterm.contradiction import pair_features, pair_model
from mcp_memory.longterm.names import USER
from mcp_memory.longterm.page_lines import SAID
from mcp_memory.longterm.statement_cache import StatementCache
from mcp_memory.longterm.validity import end_of, is_past, named_day, planned_day, time_note
from mcp_memory.longterm.verification.trust import doubt_mark, fit_for_pages, is_less_trusted
from mcp_memory.store.citations import without_citations
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, recall_rows
from mcp_memory.store.values import Filters
from mcp_memory.suspicion.flags import flags

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Section = Literal["rules", "user", "people", "dates", "promises", "changed", "events"]

HEADINGS: dict[Section, str] = {
    "rules": "Rules",
    "user": "About the user and their work",
    "people": "People",
    "dates": "Dates",
    "promises": "Promises, open",
    "changed": "Changed lately",
    "events": "What happened",
}
MAX_CHARS = 2_000
"""The length limit of a page about the user, whether a model wrote it or not."""
_RULES = 320  # characters of the section of rules: a session starts with more, see `recall.opening`
_MORE = 70  # characters of the last line


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A statement that the page may list. `former` is the statement that it replaced, if the page shows both."""

    atom: Atom
    section: Section
    salience: float
    former: Atom | None = None
    day: datetime | None = None
    """The day of a plan (`validity.planned_day`), or the coming day that a statement about a person names."""
    note: str = ""
    """The note of `validity.time_note`: `was planned for 3 May 2026`, `from 1 March 2027`."""


def page(store: Store, space: str, *, at: datetime | None = None) -> str:
    """Return the page at a moment, at most 2,000 characters; empty if no statement can be listed.

    Without `at`, the moment is when the newest statement was stored, so the page does not depend on the day.
    """
    chosen: dict[Section, list[tuple[Candidate, str]]] = {}
    rules = left = 0
    room = MAX_CHARS - len("# Persona\n") - _MORE
    for candidate in ranked(store, space, at=at):
        text, section = line(candidate), candidate.section
        cost = len(text) + 1 + (0 if section in chosen else len(HEADINGS[section]) + 5)
        if section == "rules" and rules + cost > _RULES:
            left += 1
            continue
        room -= cost
        if room < 0:  # a shorter line of less salience does not take the place
            left += 1
            continue
        rules += cost if section == "rules" else 0
        chosen.setdefault(section, []).append((candidate, text))
    if not chosen:
        return ""
    parts = ["# Persona"]
    for section, heading in HEADINGS.items():
        if section in chosen:
            lines = sorted(chosen[section], key=lambda entry: _order_in_section(entry[0]))
            parts.append(f"## {heading}\n\n" + "\n".join(text for _, text in lines))
    more = f"\n- … and {left} more: memory_search without a query lists them\n" if left else "\n"
    return "\n\n".join(parts) + more


def _order_in_section(candidate: Candidate) -> tuple[bool, datetime, int]:
    atom = candidate.atom
    is_later_rule = candidate.section == "rules" and atom.priority >= 0  # standing rules come first
    return is_later_rule, candidate.day or atom.valid_from, number_of(atom)


# --- lines ------------------------------------------------------------------------------------------

_READ = 1_000  # characters of a text, of which the first line is shown
_LINE = 140  # characters of a statement
_FORMER = 60  # characters of a replaced statement
_BETWEEN = "? – "  # between a question and its answer, see `sentence_statements`
_SHORTEST_QUESTION = 20  # characters
_CLAUSE_END = re.compile(r"[,;:.!?–—](?=\s)|[、，。；！？]")


def line(candidate: Candidate) -> str:
    """Return the line of a statement with its id, and the statement it replaced: `… (a9); until 3 May: … (a2)`."""
    atom, former, when = candidate.atom, candidate.former, candidate.note
    text = statement_text(atom, _LINE)
    if not when and candidate.day is not None and (ADDITION.search(text) or text.endswith("…")):
        when = day_in_words(candidate.day.astimezone().date(), after=atom.valid_from.date())
    if not when and candidate.section == "events":
        when = f"{atom.valid_from:%Y-%m-%d}"
    if when:  # a date that was added to the words would repeat it
        text = statement_text(replace(atom, text=ADDITION.sub("", atom.text)), _LINE)
    shown = f"- {when}: {text} ({atom.id})" if when else f"- {text} ({atom.id})"
    if former is None:
        return shown
    end = day_in_words((former.valid_to or atom.valid_from).astimezone().date())
    return f"{shown}; until {end}: {statement_text(former, _FORMER)} ({former.id})"


def statement_text(atom: Atom, limit: int) -> str:
    """Return a statement on one line of at most `limit` characters, marked unless it is certainly the user's."""
    text = shown_text(atom.text, limit)
    marks = ", ".join(filter(None, (ATTRIBUTION[atom.source], doubt_mark(atom))))
    return f"{marks}: {text}" if marks else text


@lru_cache(maxsize=1024)  # looking for secrets takes half a millisecond, and a page tries up to 200 statements
def shown_text(text: str, limit: int) -> str:
    """Return a text on one line of at most `limit` characters, without bullets, citations, links and secrets.

    If it is a question with its answer, the question is cut first.
    """
    shown = one_line(without_citations(without_bullet(mask(text[:_READ]))), 4 * limit)
    question, mark, answer = shown.partition(_BETWEEN)
    if len(shown) <= limit or not mark:
        return clause(shown, limit)
    room = limit - len(f"…{mark}{answer}")
    if room < _SHORTEST_QUESTION:
        return clause(answer, limit)
    return f"…{question[-room:].partition(' ')[2] or question[-room:]}{mark}{answer}"


def clause(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters.

    A longer text is cut at the last end of a clause within its second half, or else at a space, and gets an ellipsis.
    """
    if len(text) <= limit:
        return text
    ends = [end.start() for end in _CLAUSE_END.finditer(text, 0, limit) if end.start() >= limit // 2]
    cut = ends[-1] if ends else max(text.rfind(" ", limit // 2, limit), 0) or limit - 1
    return text[:cut].rstrip() + "…"


# --- the ranking ------------------------------------------------------------------------------------

_LISTED = 150  # statements of the highest salience, which are more than a page can list


def ranked(store: Store, space: str, *, at: datetime | None = None) -> Sequence[Candidate]:
    """Return the most salient candidates.

    With `at`, they are cached until a statement changes, one of the candidates begins or ends, or the day is over.
    """
    if at is None:
        return tuple(islice(candidates(store, space, at=at), _LISTED))

    def compute() -> tuple[Sequence[Candidate], datetime]:
        first = tuple(islice(candidates(store, space, at=at), _LISTED))
        moments = (_next_midnight(at), *(moment for candidate in first for moment in _turning_points(candidate.atom)))
        return first, min((moment for moment in moments if moment > at), default=at)

    return _rankings.get(store, space, compute, at=at)


_rankings = StatementCache[Sequence[Candidate]]()


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


# --- candidates -------------------------------------------------------------------------------------

_SECTION_OF_KIND: dict[Kind, Section] = {"instruction": "rules", "persona": "user", "episodic": "events"}
_BEHIND = timedelta(days=14)  # how long a past day is still listed
_NEWEST, _FIRST = 2_000, 200  # the newest statements, and those of the highest priority
_RECALLS = 500


def candidates(store: Store, space: str, *, at: datetime | None = None) -> Iterator[Candidate]:
    """Yield the statements that a page may list, the most salient first.

    Yields nothing if no statement was extracted without a model. Lazy, because reading the dates in a statement
    takes most of the time, and a page has room for few statements.
    """
    if not store.read(space, atom_rows.has_sentences):
        return
    stored = considered(store, space)
    if any(atom.is_sentence for atom in stored):
        yield from candidates_among(store, space, stored, at=at)


def considered(store: Store, space: str) -> list[Atom]:
    """Return the 2,000 newest statements and the 200 current ones of the highest priority, oldest first."""
    first = store.read(space, atom_rows.list_atoms, filters=Filters(unheld=True), limit=_FIRST)
    return sorted({atom.id: atom for atom in (*first, *newest_statements(store, space))}.values(), key=number_of)


def candidates_among(
    store: Store, space: str, stored: Sequence[Atom], *, at: datetime | None = None
) -> Iterator[Candidate]:
    """Yield those of these statements, given oldest first, that a page may list, the most salient first. Lazy."""
    if not stored:
        return
    at = at or max(atom.learned_at for atom in stored)
    ended = [atom for atom in stored if is_former(atom)]
    weights = _weights(stored, ended, _recalled(store, space, before=_midnight(at)))
    current = [atom for atom in stored if is_fit(atom) and not is_past(atom, at)]
    left_out = _replaced_and_repeated(store, space, current, weights, at)
    former = {atom.superseded_by: atom for atom in ended}
    listed = [
        atom
        for atom in current
        if atom.id not in left_out and (weights[atom.id] >= _LEAST or _is_planned_after(atom, at))
    ]
    for atom in sorted(listed, key=lambda atom: (-weights[atom.id], -number_of(atom))):
        if _is_timely_and_safe(atom, at):
            day, before = _dated_day(atom, at), former.get(atom.id)
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
    """Return the salience of all stored statements by id; `ended` are the replaced statements, the oldest first.

    A new value has at least the salience of the value that it replaced, even if its statement is shorter.
    """
    weights = {atom.id: salience(atom, recalled) for atom in stored}
    for atom in ended:
        if atom.superseded_by in weights:
            weights[atom.superseded_by] = max(weights[atom.superseded_by], weights[atom.id])
    return weights


def newest_statements(
    store: Store, space: str, count: int = _NEWEST, *, learned_since: datetime | None = None
) -> list[Atom]:
    """Return about `count` statements stored last, oldest first, with those that have ended.

    With `learned_since`, only those of them that were stored then or later.
    """
    newest = store.totals(space, "atom").newest
    return store.read(space, atom_rows.list_since, max(0, newest - count), limit=count, learned_since=learned_since)


def is_fit(atom: Atom) -> bool:
    """Return whether a statement may be listed on a page about the user."""
    return fit_for_pages(atom) and (atom.is_sentence or atom.confidence >= SAID) and is_of_the_user(atom)


_MATTERS = 80  # priority; 70 is usual


def is_of_the_user(atom: Atom) -> bool:
    """Return whether a statement belongs on a page about the user, unlike a mere episode in somebody else's life.

    It belongs if it is about the user, lasting, explicit, or by the user and important, such as a price in their
    shop.
    """
    about_user = not atom.entities or "user" in map(fold, atom.entities)
    matters = atom.confidence >= 1 or (atom.source == "user" and (atom.is_sentence or atom.priority >= _MATTERS))
    return about_user or atom.kind != "episodic" or matters


def is_former(atom: Atom) -> bool:
    """Return whether a statement was replaced, and may be shown beside its successor."""
    is_replaced = atom.superseded_by is not None and atom.valid_to is not None
    return is_replaced and is_fit(atom) and not flags(atom.text, "user")


def _section(atom: Atom, former: Atom | None, day: Span | None) -> Section:
    """Return the section of a statement. Its likeliest label alone is often wrong."""
    if atom.label == "promise":
        return "promises"
    if atom.kind == "instruction":
        return "rules"
    if atom.is_sentence and former is not None:
        return "changed"
    if day is not None:
        return "dates"
    if not atom.is_sentence:
        return _SECTION_OF_KIND[atom.kind]
    names_somebody = any(fold(name) != USER for name in atom.entities)
    return "people" if names_somebody and atom.label == "person" else "user"


def _dated_day(atom: Atom, at: datetime) -> Span | None:
    """Return the day for which a statement plans something, or a coming day that a statement about a person names."""
    day = named_day(atom) if atom.kind == "persona" else None
    return day if day is not None and day.end > at else planned_day(atom)


def _is_timely_and_safe(atom: Atom, at: datetime) -> bool:
    """Return whether a statement has no flags and, if it is a sentence, names no planned day that is long past."""
    day = planned_day(atom) if atom.is_sentence else None
    is_timely = day is None or _midnight(at) - _BEHIND < day.end
    return is_timely and not flags(atom.text, "user")


def _is_planned_after(atom: Atom, at: datetime) -> bool:
    """Return whether a statement is a plan for a day that is not over yet at a moment."""
    day = planned_day(atom) if atom.label == "plan" else None
    return day is not None and day.end > at


def _midnight(at: datetime) -> datetime:
    local = at.astimezone()
    return datetime.combine(local.date(), time.min, local.tzinfo)


def _recalled(store: Store, space: str, *, before: datetime) -> set[str]:
    """Return the ids of rows that prompts recalled before a moment; later prompts must not change the page."""
    log = store.read(space, recall_rows.list_recalls, limit=_RECALLS)
    return {id for entry in log if entry.how == "prompt" and entry.at < before for id in entry.ids}


# --- salience ---------------------------------------------------------------------------------------

_EXPLICIT = 1.0  # worth of an explicit statement
_RECALLED = 0.1
_LEAST = 0.3  # salience of a line: of 29 authors left out, 74 % of the lines are right, 69 % without a limit


def salience(atom: Atom, recalled: Collection[str]) -> float:
    """Return how informative a statement is about the user, 0 to 1.1; `recalled` are the ids that prompts recalled.

    For a sentence, the base is its priority, a percentage: the worth of its words (`models.embed.sentence_labels`).
    Recency, repetition and specificity of its words improved the order on none of the measured memories.
    """
    worth = atom.priority / 100 if atom.is_sentence else _EXPLICIT
    return worth + _RECALLED * (atom.id in recalled)


# --- pairs ------------------------------------------------------------------------------------------

_COMPARED = 150  # statements of the highest salience that are compared with the nearest later statements
_LATER, _ONE_TOPIC = 4, 0.3  # how many later statements, and their least cosine
_REPLACES_RULE = 0.5  # probability from which a rule counts as replaced; for others it is `PairModel.unsure`
_SAME = 0.85  # share of the shorter statement's words from which two have the same content


def _replaced_and_repeated(
    store: Store, space: str, atoms: Sequence[Atom], weights: dict[str, float], at: datetime
) -> set[str]:
    """Find the statements that a later statement may have replaced or that another repeats, and return their ids.

    Changes `weights`: the statement that stays gets the higher salience of the two. Only the most salient statements
    are compared, each with the nearest later statements, so that the time hardly grows with the memory. Promises are
    not compared: each stays open until it is kept.
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
        for newer in islice(others, _LATER):
            choice = _choice(older, newer, vectors, weights)
            if choice is None or not _is_timely_and_safe(choice.stays, at):
                continue
            weights[choice.stays.id] = max(weights[older.id], weights[newer.id])
            left_out.add(choice.goes.id)
            if choice.goes is older:
                chosen.add(newer.id)  # it may have been replaced too
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
    """Decide which of two statements stays; None if both stay.

    The newer statement stays if it probably changes the older and is not less trusted. Of two statements with the same
    content, the more trusted stays, else the more salient, else the newer.
    """
    pair, model = _compare(older, newer, vectors), pair_model()
    is_rule = older.kind == "instruction"
    if pair.change >= (_REPLACES_RULE if is_rule else model.unsure) and not _is_weaker(newer, older):
        return _Choice(stays=newer, goes=older)
    if pair.shared < _SAME:
        return None
    if _is_weaker(newer, older) or (not _is_weaker(older, newer) and weights[older.id] > weights[newer.id]):
        return _Choice(stays=older, goes=newer)
    return _Choice(stays=newer, goes=older)


def _is_weaker(atom: Atom, other: Atom) -> bool:
    """Return whether a statement is less trusted than another: by its source, or if only it has doubts."""
    if atom.source != other.source:
        return is_less_trusted(atom.source, other.source)
    return bool(atom.doubts) and not other.doubts


class _Pair(NamedTuple):
    change: float
    """The probability that the newer statement contradicts or updates the older."""
    shared: float
    """The share of the shorter statement's words that the other has."""


_pairs = LRU[tuple[str, str], _Pair](8192)


def _compare(older: Atom, newer: Atom, vectors: Mapping[str, NDArray[np.float32]]) -> _Pair:
    def compare() -> _Pair:
        bundled = {older.text: vectors[older.id], newer.text: vectors[newer.id]}
        (features,) = pair_features(newer.text, [older.text], bundled)
        return _Pair(pair_model().probability(features), features.shared)

    return _pairs.get_or_put((older.text, newer.text), compare)


def number_of(atom: Atom) -> int:
    """Return the number of an atom, 12 for a12; an atom that was stored later has a higher number."""
    return int(atom.id[1:])
