"""The lines of recall's dynamic block, for a question and the current conversation, before they are cut to the budget.

In order of priority: scenes, facts of the entities that the question names, then atoms and verbatim turns alternately
(an atom is shorter, a turn is exact), and after the first few the standing rules nearest to the question. Then a line
or two of tool results, marked as program output.

`relevance` judges which rows are relevant. The others come last, as `unsure`, in the order of the search: they hold the
answers to questions in other words, and a client would believe a denial. Atoms and facts are current; turns whose value
changed later are marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, zip_longest

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Source, Turn
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.l1_atoms import noise
from mcp_memory.longterm.recall import lines
from mcp_memory.longterm.recall.changed import changed, promoted
from mcp_memory.longterm.recall.lines import Group, Line
from mcp_memory.longterm.recall.relevance import ABOUT, NEAR, Asked, Weighed, asked, terms_of, weighed, weights_of
from mcp_memory.longterm.recall.resuming import asks_to_go_on
from mcp_memory.longterm.search.question import read
from mcp_memory.longterm.search.results import results
from mcp_memory.longterm.search.scenes import current, text_of
from mcp_memory.longterm.search.whose import whose
from mcp_memory.longterm.trust import held_ids, of_others
from mcp_memory.store.citations import cited
from mcp_memory.store.naming import address
from mcp_memory.store.protocol import Filters
from mcp_memory.suspicion import flags

__all__ = ["Reach", "end_of_last", "is_small_talk", "needed", "surest"]

_ATOMS, _SCENES, _FACTS, _OUTPUTS = 15, 3, 5, 2
_FIRST = 6  # turns of a search that are about a question too, where anything is: the ranking knows more than the words
_MOST_THERE = 100  # turns that are there already and may be found before others
_SUREST = 500  # atoms, those of the highest priorities, that are ordered where nothing is asked
_CONTEXT_CHARS = 300
_ENTITIES = 1_000
_SESSIONS, _ENDING, _ENDING_CHARS = 20, 6, 600  # the latest sessions; turns of one
_CLOSE = 0.1  # cosine: where nothing shares a word, and nothing is as near as this, nothing is known
_SAME = 0.85  # share of a turn's words that another one has too


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How many rows to read and how much of each to show; the defaults are those of an explicit recall.

    Widths are characters of the first, second, ... turn; the last holds for all further ones.
    """

    turns: int = 45
    rules: int = 6
    rules_for_question: int = 3
    """A question seldom needs rules; a task does."""
    before_rules: int = 4
    """Lines above the rules."""
    rule_width: int = 400
    widths: Sequence[int] = (900, 600, 600, *[400] * 5, 320)
    assistant_widths: Sequence[int] = (2_400, 1_200, 600, *[400] * 5, 320)
    """Used instead of `widths` for questions about the assistant's words: its turns are long."""
    unsure_widths: Sequence[int] = (320,)
    certain: Group = "turn"
    unsure: Group = "unsure"
    outputs: bool = True
    """Whether to show lines of tool results: numbers match by chance."""


TRUST: dict[Source, float] = {
    "user": 1.0,
    "assistant": 0.95,
    "import": 0.95,
    "quoted": 0.85,
    "tool": 0.85,
    "web": 0.7,
}
"""Factor of an atom's rank by its source: of two equal answers the user's comes first."""


def surest(desk: Desk, *, known: str) -> Iterator[Line]:
    """Yield the atoms by confidence alone, without those in `known`."""
    atoms = desk.store.list_atoms(desk.space, filters=Filters(unheld=True), limit=_SUREST)
    ordered = sorted(atoms, key=lambda one: -one.confidence * TRUST[one.source])
    return lines.sound(desk, (lines.of_atom(atom) for atom in ordered if not lines.is_told(atom, known)))


def needed(
    desk: Desk,
    question: str,
    context: Sequence[Turn],
    *,
    known: str,
    there: Collection[str] = (),
    reach: Reach = Reach(),
    gate: Callable[[Sequence[Weighed]], bool] = lambda rows: True,
) -> Iterator[Line]:
    """Yield lines for the question and the turns of the context, without anything in `known` or these turns.

    The turns `there`, and atoms extracted from them, are left out too. Yields nothing where the `gate` rejects the rows
    found. Lines are made lazily: those beyond the budget cost nothing.
    """
    talk = [one_line(turn.content, _CONTEXT_CHARS) for turn in context if noise.label(turn) is None]
    asking = "" if is_small_talk(question, desk.now) else question
    apart = {*there, *(turn.id for turn in context)}
    wanted = asked(desk, [asking])
    found = _found(desk, wanted, asked(desk, talk), apart, reach, gate)
    if found is None:
        return iter(())
    words = frozenset(query_terms("\n".join([question, *talk])))
    rules = _rules(wanted, apart, reach) if wanted and (found.turns or found.unsure) else []
    outputs = _outputs(wanted, words) if wanted and reach.outputs else []
    made = _lines(desk, question, wanted, found, words, rules, outputs, known=known, there=there, reach=reach)
    return lines.sound(desk, _with_end(desk, question, apart, made))


def is_small_talk(question: str, now: datetime) -> bool:
    """Tell whether a question is a greeting or the like, as a turn would be."""
    turn = Turn(
        id="", session="", position=0, role="user", name=None, content=question, said_at=now, learned_at=now, sha256=""
    )
    return noise.label(turn) is not None


# --- what is found ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """Search results by id, each in the order of its search. `unsure` turns may be irrelevant."""

    turns: dict[str, Weighed] = field(default_factory=dict[str, Weighed])
    atoms: dict[str, Weighed] = field(default_factory=dict[str, Weighed])
    scenes: dict[str, Line] = field(default_factory=dict[str, Line])
    unsure: dict[str, Weighed] = field(default_factory=dict[str, Weighed])


def _found(
    desk: Desk, question: Asked | None, talk: Asked | None, there: set[str], reach: Reach,
    gate: Callable[[Sequence[Weighed]], bool],
) -> _Found | None:  # fmt: skip
    """Return rows for the question, then for the conversation, without the turns already `there`."""
    found = _Found()
    aside = {one.id for one in desk.store.held(desk.space, limit=_MOST_THERE) if one.id.startswith("t")}
    many = reach.turns + min(len(there) + len(aside), _MOST_THERE)
    for wanted in (question, talk):
        if wanted is None:
            continue
        said = [row for row in weighed(wanted, "turn", limit=many) if row.id not in there]
        aside = held_ids(desk.store, desk.space, [row.id for row in said])
        said = [row for row in said if row.id not in aside]
        held = (
            _borne_out(desk, weighed(wanted, "atom", limit=_ATOMS), said) if desk.store.size(desk.space, "atom") else []
        )
        if not gate((*said, *held)):
            return None
        said = [row for row in said if not row.is_echo]
        pages = _scenes(wanted, held)
        about = bool(pages) or any(row.weight >= ABOUT for row in (*said, *held))
        if about:
            _join(found.turns, (row for place, row in enumerate(said) if row.weight >= NEAR or place < _FIRST))
            _join(found.atoms, (row for row in held if row.weight >= NEAR))
            for page in pages:
                found.scenes.setdefault(page.id, page)
        if wanted is question and (about or _anything(said, held)):
            _join(found.atoms, (row for row in held if row.weight < NEAR and row.cosine >= _CLOSE))
            _join(found.unsure, (row for row in said if row.id not in found.turns))
    return found


def _anything(said: Sequence[Weighed], held: Sequence[Weighed]) -> bool:
    """Tell whether any row could be an answer: it shares a telling word or is near in meaning."""
    return any(row.weight >= NEAR / 2 or row.cosine >= _CLOSE for row in (*said, *held))


def _join(found: dict[str, Weighed], rows: Iterable[Weighed]) -> None:
    """Add the rows; a row found twice keeps its first place and its better scores."""
    for row in rows:
        before = found.get(row.id, row)
        found[row.id] = max(before, row, key=lambda one: (one.weight, one.cosine))


def _borne_out(desk: Desk, held: Sequence[Weighed], said: Sequence[Weighed]) -> list[Weighed]:
    """Return the atoms, each with at least the weight of the turn that it was extracted from, if that was found."""
    turns = {row.id: row.weight for row in said}
    evidence = {atom.id: atom.evidence for atom in desk.store.atoms(desk.space, [row.id for row in held])}
    return [replace(row, weight=max(row.weight, turns.get(evidence.get(row.id, ""), 0.0))) for row in held]


# --- in the order in which they find room -----------------------------------------------------------


def _lines(
    desk: Desk, question: str, wanted: Asked | None, found: _Found, words: AbstractSet[str], rules: Sequence[Line],
    outputs: Sequence[Line], *, known: str, there: Collection[str], reach: Reach,
) -> Iterator[Line]:  # fmt: skip
    held = [atom for atom in desk.store.atoms(desk.space, found.atoms) if atom.valid_to is None]
    holding = [atom for atom in held if atom.evidence not in there and not atom.held]
    ranked = sorted(holding, key=lambda atom: -_rank(desk, atom, found.atoms[atom.id]))
    ranked = [atom for atom in ranked if not lines.is_told(atom, known)]
    about, unsure = _distinct(desk, list(found.turns), list(found.unsure))
    replaced, maybe = changed(wanted, about, unsure) if wanted else ({}, {})
    about, unsure = promoted(about, unsure, {**maybe, **replaced})
    notes = {old: f"until {new.said_at:%Y-%m-%d}, see {new.id}" for old, new in replaced.items()}
    notes |= _replaced(desk, holding)
    widths = reach.assistant_widths if whose(question) == "assistant" else reach.widths
    verbatim = list(lines.of_turns(about, words=words, widths=widths, group=reach.certain, notes=notes))
    verbatim.sort(key=lambda line: line.source in ("tool", "web"))  # stable: people first, each in the search's order
    bearing_out = {atom.evidence for atom in ranked}
    fresh = [line for line in verbatim if line.id not in bearing_out]
    by_turns = [line for line in chain.from_iterable(zip_longest(map(lines.of_atom, ranked), fresh)) if line]
    first, further = by_turns[: reach.before_rules], by_turns[reach.before_rules :]
    yield from list(found.scenes.values())[:_SCENES]
    yield from _facts(desk, question, {*cited(known), *(atom.id for atom in held)})
    yield from first
    said = {line.id for line in first}
    yield from (rule for rule in rules if rule.id not in said)
    ruled = {rule.id for rule in rules}
    yield from (line for line in further if line.id not in ruled)
    yield from (line for line in verbatim if line.id in bearing_out)
    yield from outputs
    further_turns = [turn for turn in unsure if turn.id not in ruled]
    yield from lines.of_turns(further_turns, words=words, widths=reach.unsure_widths, group=reach.unsure, notes=notes)


def _rank(desk: Desk, atom: Atom, row: Weighed) -> float:
    similarity = min(1.0, max(row.weight, row.cosine))
    rank = desk.settings.recall_similarity * similarity + desk.settings.recall_confidence * atom.confidence
    return rank * TRUST[atom.source]


_WORD = re.compile(r"\w+")
_COMPARED = 1_500  # characters


def _distinct(desk: Desk, *groups: Sequence[str]) -> tuple[list[Turn], ...]:
    """Return the turns of the groups without near-duplicates of earlier ones.

    Of a user's turn and the assistant's echo of it, the user's is kept, whichever was found first.
    """
    ids = [id for group in groups for id in group]
    turns = {turn.id: turn for turn in desk.store.turns(desk.space, ids)}
    words = {turn.id: frozenset(_WORD.findall(fold(turn.content[:_COMPARED]))) for turn in turns.values()}
    place = {(turn.session, turn.position): turn.id for turn in turns.values()}
    kept: dict[str, None] = {}
    for id in ids:
        turn = turns.get(id)
        if turn is None or any(_says_no_more(words[id], words[other]) for other in kept):
            continue
        before = place.get((turn.session, turn.position - 1))
        if turn.role == "assistant" and before is not None and turns[before].role == "user":
            id = before if _says_no_more(words[id], words[before]) else id
        kept.setdefault(id)
    return tuple([turns[id] for id in group if id in kept] for group in groups)


def _says_no_more(words: AbstractSet[str], than: AbstractSet[str]) -> bool:
    """Tell whether another text has nearly all of these words, and every number among them."""
    if len(than) < _SAME * len(words):
        return False
    extra = words - than
    return len(extra) <= (1 - _SAME) * len(words) and not any(word[0].isdigit() for word in extra)


def _replaced(desk: Desk, holding: Sequence[Atom]) -> Mapping[str, str]:
    """Return the turns whose statements these atoms replaced, and by which."""
    old = desk.store.replaced(desk.space, [atom.id for atom in holding]) if holding else []
    return {atom.evidence: f"since replaced by {atom.superseded_by}" for atom in old}


# --- rules, facts, scenes, tool results -------------------------------------------------------------


def _rules(wanted: Asked, there: Collection[str], reach: Reach) -> list[Line]:
    """Return standing rules that the user stated, the nearest to the question first."""
    desk = wanted.desk
    hits = desk.search(
        desk.space,
        "turn",
        wanted.text,
        embed=wanted.embed,
        filters=Filters(role="user", states_rule=True),
        limit=reach.rules_for_question if "?" in wanted.text or "？" in wanted.text else reach.rules,
        at=desk.now,
    )
    aside = held_ids(desk.store, desk.space, [hit.id for hit in hits])
    turns = desk.store.turns(desk.space, [hit.id for hit in hits if hit.id not in there and hit.id not in aside])
    others = of_others(desk.store, desk.space, turns)
    theirs = [turn for turn in turns if turn.id not in others]
    return [line for turn in theirs if (line := lines.of_rule(turn, reach.rule_width))]


def _facts(desk: Desk, question: str, shown: set[str]) -> list[Line]:
    """Return facts of the entities that the question names in full, except the user, whose atoms are not shown."""
    words = set(index_terms(question))
    named = [
        one.name
        for one in desk.store.entities(desk.space, limit=_ENTITIES)
        if fold(one.name) != "user" and any(_is_in(name, words) for name in (one.name, *one.aliases))
    ]
    facts = {
        fact.atom: fact
        for name in named[:_FACTS]
        for fact in desk.store.facts(desk.space, filters=Filters(entity=name, unheld=True), limit=_FACTS)
        if fact.atom not in shown
    }
    return [lines.of_fact(fact) for fact in list(facts.values())[:_FACTS]]


def _is_in(name: str, words: set[str]) -> bool:
    terms = set(index_terms(name))
    return bool(terms) and terms <= words


def _scenes(wanted: Asked, held: Sequence[Weighed]) -> list[Line]:
    """Return a line for each scene that is relevant, or has an atom that is."""
    desk = wanted.desk
    scenes = current(desk.store, desk.space)
    if not scenes:
        return []
    atoms = {row.id: row.weight for row in held}
    own = weights_of(wanted, "turn", {scene.slug: terms_of(text_of(scene)) for scene in scenes})
    weights = {scene.slug: max([own[scene.slug], *(atoms.get(id, 0.0) for id in scene.atoms)]) for scene in scenes}
    about = sorted((scene for scene in scenes if weights[scene.slug] >= ABOUT), key=lambda one: -weights[one.slug])
    words = frozenset(query_terms(wanted.text))
    return [lines.of_scene(scene, words) for scene in about[:_SCENES]]


def _outputs(wanted: Asked, words: AbstractSet[str]) -> list[Line]:
    """Return relevant lines of tool results; they need the weight that a turn would need."""
    desk = wanted.desk
    if not desk.store.size(desk.space, "chunk"):
        return []
    read_as = read(wanted.text, desk.now, relatives=False)
    hits = {
        address(hit.ref, hit.lines): hit
        for hit in results(desk.store, desk.space, read_as, filters=Filters(), limit=_OUTPUTS)
    }
    weights = weights_of(wanted, "chunk", {at: terms_of(hit.text) for at, hit in hits.items()})
    return [
        lines.of_output(hit, words)
        for at, hit in hits.items()
        if weights[at] >= ABOUT and not flags(f"{hit.call}\n{hit.text}", "tool")
    ]


# --- the end of the last conversation ---------------------------------------------------------------


def _with_end(desk: Desk, question: str, there: Collection[str], found: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines, after the end of the last conversation if the question asks to continue it."""
    end = end_of_last(desk, there) if asks_to_go_on(question) else []
    shown = {line.id for line in end}
    yield from end
    yield from (line for line in found if line.id not in shown)


def end_of_last(desk: Desk, there: Collection[str]) -> list[Line]:
    """Return the last turns of the latest conversation, other than the one that is `there`."""
    sessions = sorted(desk.store.sessions(desk.space, limit=_SESSIONS), key=lambda one: one.last, reverse=True)
    for one in sessions:
        said = desk.store.last_turns(desk.space, one.session, limit=_ENDING, roles=("user", "assistant"))
        aside = held_ids(desk.store, desk.space, [turn.id for turn in said])
        said = [turn for turn in said if turn.id not in aside]
        if said and not any(turn.id in there for turn in said):
            head = f"- The last conversation, session {one.session}, ended so on {one.last:%Y-%m-%d}, latest first:"
            turns = lines.of_turns(said[::-1], words=frozenset(), widths=(_ENDING_CHARS,), group="end")
            return [Line(group="end", id=one.session, text=head), *turns]
    return []
