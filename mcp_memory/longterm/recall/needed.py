"""What a question, and what is being talked of, need to know: the lines of recall's dynamic block, unfitted.

In the order in which they are to find room: scenes, facts of those whom the question names, then atoms and verbatim
turns by turns, for an atom says more in fewer words and a turn says it as it was. Turns that only bear out an atom of
these come after, and last a line or two of tool results, marked as what a program printed. `relevance` says what is
needed; only what holds now is told, and of what was said, what was replaced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain, zip_longest
from typing import Literal, get_args

from mcp_memory.function_words import function_words_of
from mcp_memory.longterm.desk import Desk
from mcp_memory.longterm.l1_atoms import noise
from mcp_memory.longterm.l1_atoms.times import date_of
from mcp_memory.longterm.recall.relevance import (
    ABOUT,
    NEAR,
    Asked,
    Weighed,
    asked,
    terms_of,
    weighed,
    weights_of,
)
from mcp_memory.longterm.recall.resuming import asks_to_go_on
from mcp_memory.longterm.search.question import read
from mcp_memory.longterm.search.results import results
from mcp_memory.longterm.search.scenes import current, text_of
from mcp_memory.longterm.trust import SAID_BY, held_ids, of_tool, of_turn
from mcp_memory.secrets import mask
from mcp_memory.snippet import matches, snippet
from mcp_memory.store.citations import cited, plain
from mcp_memory.store.naming import address
from mcp_memory.store.protocol import Filters
from mcp_memory.suspicion import flags
from mcp_memory.text import fold, index_terms, one_line, query_terms
from mcp_memory.types import Atom, Role, Source, Turn

__all__ = ["Line", "is_told", "needed", "surest", "told", "unasked"]

_ATOMS, _TURNS, _SCENES, _FACTS, _OUTPUTS = 15, 12, 3, 5, 2
_FEW_WORDS = 2
_MOST_THERE = 100  # turns that are there already and may be found before others
_SUREST = 500  # atoms, those of the highest priorities, that are ordered where nothing is asked
_ATOM_CHARS, _TURN_CHARS, _SCENE_CHARS = 220, 320, 200
_CONTEXT_CHARS = 300
_ENTITIES = 1_000
_SESSIONS, _ENDING, _ENDING_CHARS = 20, 6, 600  # the latest sessions; turns of one

_TRUST: dict[Source, float] = {"user": 1.0, "assistant": 0.95, "tool": 0.85, "web": 0.7}
"""What an atom's rank is worth by whose word it is: of two that answer alike, the user's comes first."""

Group = Literal["scene", "fact", "atom", "turn", "output", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of the dynamic block, and the id that names what it tells of."""

    group: Group
    id: str
    text: str
    source: Source = "assistant"
    """Whose words it tells; of a model's pages, the model's."""


def told(atom: Atom) -> str:
    """Return an atom's statement as recall tells it, whichever block it stands in."""
    return one_line(atom.text, _ATOM_CHARS)


def is_told(atom: Atom, text: str) -> bool:
    """Tell whether a text has an atom's statement as a line of its own, or as the persona's page lists it."""
    return f"- {told(atom)}\n" in text or f"{told(atom)} ({atom.id}" in text


def surest(desk: Desk, *, known: str) -> list[Line]:
    """Return the atoms by confidence alone, but those that `known` tells already."""
    atoms = desk.store.list_atoms(desk.space, filters=Filters(unheld=True), limit=_SUREST)
    ordered = sorted(atoms, key=lambda one: -one.confidence * _TRUST[one.source])
    return _sound(desk, (_atom(atom) for atom in ordered if not is_told(atom, known)))


def _sound(desk: Desk, lines: Iterable[Line]) -> list[Line]:
    """Return the lines that do not read like an attack: what came before there were flags, what a model wrote since.

    What a person has released is told all the same.
    """
    given = list(lines)
    suspect = {line.id for line in given if flags(line.text, line.source)}
    rows = [id for id in suspect if id[:1] in "at" and id[1:].isdigit()]
    suspect -= {one.id for one in desk.store.held(desk.space, rows) if one.verdict == "released"} if rows else set()
    return [line for line in given if line.id not in suspect]


def needed(desk: Desk, question: str, context: Sequence[Turn], *, known: str) -> list[Line]:
    """Return what is relevant to the question or to the turns of the context; none of it is in `known` or these."""
    talk = [one_line(turn.content, _CONTEXT_CHARS) for turn in context if noise.label(turn) is None]
    is_noise = _is_noise(question, desk.now)
    there = {turn.id for turn in context}
    found = _found(desk, "" if is_noise else question, talk, there, least=NEAR)
    words = set(query_terms("\n".join([question, *talk])))
    outputs = [] if is_noise else _outputs(desk, question, words)
    return _sound(
        desk, _with_end(desk, question, there, [*_lines(desk, question, found, words, known=known), *outputs])
    )


def unasked(desk: Desk, prompt: str, *, known: str, there: Collection[str]) -> list[Line]:
    """Return what is relevant to a prompt whose writer asked for nothing to be recalled: rather too little.

    None of it is in `known`, nor in the turns `there` or drawn from them. What is talked of lends nothing, for it is
    before the reader. Of tool results nothing is told: numbers match by chance. A prompt has to say what it is about.
    """
    words = set(query_terms(prompt))
    if _is_noise(prompt, desk.now) or len(words & _telling(prompt)) < _FEW_WORDS:
        lines: list[Line] = []
    else:
        found = _found(desk, prompt, [], set(there), least=ABOUT)
        lines = _lines(desk, prompt, found, words, known=known, there=there)
    return _sound(desk, lines if there else _with_end(desk, prompt, there, lines))  # else it goes on where it is


def _with_end(desk: Desk, question: str, there: Collection[str], lines: Sequence[Line]) -> list[Line]:
    """Return the lines, behind the end of the last conversation where the question is to go on from there."""
    if not asks_to_go_on(question):
        return list(lines)
    end = _end_of_last(desk, there)
    shown = {line.id for line in end}
    return [*end, *(line for line in lines if line.id not in shown)]


def _telling(prompt: str) -> set[str]:
    """Return the terms that may say what a prompt is about: of words that have a meaning of their own."""
    words = [word for word in re.findall(r"\w+", prompt) if not word.isdecimal()]
    idle = function_words_of(words)
    return set(index_terms(" ".join(word for word in words if word.lower() not in idle)))


def _lines(
    desk: Desk, question: str, found: _Found, words: set[str], *, known: str, there: Collection[str] = ()
) -> list[Line]:
    """Return what was found in the order in which it is to find room."""
    held = [atom for atom in desk.store.atoms(desk.space, found.atoms) if atom.valid_to is None]
    holding = [atom for atom in held if atom.evidence not in there and not atom.held]
    ranked = sorted(holding, key=lambda atom: -_rank(desk, atom, found.atoms[atom.id]))
    ranked = [atom for atom in ranked if not is_told(atom, known)]
    verbatim = _turns(desk, _each_once(desk, list(found.turns))[:_TURNS], holding, words=words)
    verbatim.sort(key=lambda line: line.source in ("tool", "web"))  # stable: people first, each in the search's order
    bearing_out = {atom.evidence for atom in ranked}
    fresh = [line for line in verbatim if line.id not in bearing_out]
    by_turns = chain.from_iterable(zip_longest(map(_atom, ranked), fresh))
    return [
        *list(found.scenes.values())[:_SCENES],
        *_facts(desk, question, {*cited(known), *(atom.id for atom in held)}),
        *(line for line in by_turns if line),
        *(line for line in verbatim if line.id in bearing_out),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What is relevant, by id; turns and scenes in the order of their search."""

    turns: dict[str, Weighed] = field(default_factory=dict[str, Weighed])
    atoms: dict[str, Weighed] = field(default_factory=dict[str, Weighed])
    scenes: dict[str, Line] = field(default_factory=dict[str, Line])


def _found(desk: Desk, question: str, talk: Sequence[str], there: set[str], *, least: float) -> _Found:
    """Return what is relevant to the question, then what is to the talk; turns that are there already are not.

    Beside what is about it there may be what weighs at `least` so much.
    """
    found = _Found()
    aside = {one.id for one in desk.store.held(desk.space, limit=_MOST_THERE) if one.id.startswith("t")}
    many = _TURNS + min(len(there) + len(aside), _MOST_THERE)
    for wanted in (asked(desk, [question]), asked(desk, talk)):
        if wanted is None:
            continue
        said = [row for row in weighed(wanted, "turn", limit=many) if row.id not in there]
        aside = held_ids(desk.store, desk.space, [row.id for row in said])
        said = [row for row in said if row.id not in aside]
        held = _borne_out(desk, weighed(wanted, "atom", limit=_ATOMS), said)
        said = [row for row in said if not row.is_echo]
        pages = _scenes(wanted, held)
        if pages or any(row.weight >= ABOUT for row in (*said, *held)):
            _join(found.turns, said, least)
            _join(found.atoms, held, NEAR)
            for page in pages:
                found.scenes.setdefault(page.id, page)
    return found


def _is_noise(question: str, now: datetime) -> bool:
    """Tell whether a question is a greeting or the like, as a turn would be."""
    turn = Turn(
        id="", session="", position=0, role="user", name=None, content=question, said_at=now, learned_at=now, sha256=""
    )
    return noise.label(turn) is not None


def _join(found: dict[str, Weighed], rows: Iterable[Weighed], least: float) -> None:
    """Add the rows that weigh enough; one that is known keeps its place, and its better figures."""
    for row in rows:
        if row.weight >= least:
            before = found.get(row.id, row)
            found[row.id] = max(before, row, key=lambda one: (one.weight, one.cosine))


# --- atoms and facts --------------------------------------------------------------------------------


def _borne_out(desk: Desk, held: Sequence[Weighed], said: Sequence[Weighed]) -> list[Weighed]:
    """Return the atoms, weighing no less than the turn that each was drawn from, if that was found."""
    turns = {row.id: row.weight for row in said}
    evidence = {atom.id: atom.evidence for atom in desk.store.atoms(desk.space, [row.id for row in held])}
    return [replace(row, weight=max(row.weight, turns.get(evidence.get(row.id, ""), 0.0))) for row in held]


def _rank(desk: Desk, atom: Atom, row: Weighed) -> float:
    similarity = min(1.0, max(row.weight, row.cosine))
    rank = desk.settings.recall_similarity * similarity + desk.settings.recall_confidence * atom.confidence
    return rank * _TRUST[atom.source]


def _atom(atom: Atom) -> Line:
    whose = "" if atom.source == "user" else f" · said by {SAID_BY[atom.source]}"
    head = f"- [{atom.id} · {date_of(atom.valid_from, atom.text)}{whose}]"
    return Line(group="atom", id=atom.id, text=f"{head} {told(atom)}", source=atom.source)


def _facts(desk: Desk, question: str, shown: set[str]) -> list[Line]:
    """Return facts of the entities that the question names in full, the user aside, whose atoms are not shown."""
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
    return [
        Line(
            group="fact",
            id=fact.atom,
            text=f"- [{fact.atom} · {fact.valid_from:%Y-%m-%d}] "
            + " · ".join(one_line(part, 80) for part in (fact.entity, fact.relation.replace("_", " "), fact.value)),
        )
        for fact in list(facts.values())[:_FACTS]
    ]


def _is_in(name: str, words: set[str]) -> bool:
    terms = set(index_terms(name))
    return bool(terms) and terms <= words


# --- scenes and turns -------------------------------------------------------------------------------


def _scenes(wanted: Asked, held: Sequence[Weighed]) -> list[Line]:
    """Return a line of each scene that is about what is asked, or rests on an atom that is."""
    desk = wanted.desk
    scenes = current(desk.store, desk.space)
    if not scenes:
        return []
    atoms = {row.id: row.weight for row in held}
    own = weights_of(wanted, "turn", {scene.slug: terms_of(text_of(scene)) for scene in scenes})
    weights = {scene.slug: max([own[scene.slug], *(atoms.get(id, 0.0) for id in scene.atoms)]) for scene in scenes}
    about = sorted((scene for scene in scenes if weights[scene.slug] >= ABOUT), key=lambda one: -weights[one.slug])
    words = set(query_terms(wanted.text))
    return [
        Line(
            group="scene",
            id=scene.slug,
            text=f"- [scene {scene.slug} · {scene.updated:%Y-%m-%d}] {one_line(scene.title, 80)}: "
            + _around(plain(scene.body), words, _SCENE_CHARS),
        )
        for scene in about[:_SCENES]
    ]


def _end_of_last(desk: Desk, there: Collection[str]) -> list[Line]:
    """Return what was said last in the latest conversation but the one that is `there`."""
    sessions = sorted(desk.store.sessions(desk.space, limit=_SESSIONS), key=lambda one: one.last, reverse=True)
    for one in sessions:
        said = desk.store.last_turns(desk.space, one.session, limit=_ENDING, roles=("user", "assistant"))
        aside = held_ids(desk.store, desk.space, [turn.id for turn in said])
        said = [turn for turn in said if turn.id not in aside]
        if said and not any(turn.id in there for turn in said):
            head = f"- The last conversation, session {one.session}, ended so on {one.last:%Y-%m-%d}, latest first:"
            latest_first = [turn.id for turn in reversed(said)]
            turns = _turns(desk, latest_first, [], words=set(), width=_ENDING_CHARS)
            return [Line(group="end", id=one.session, text=head), *(replace(turn, group="end") for turn in turns)]
    return []


def _each_once(desk: Desk, ids: Sequence[str]) -> list[str]:
    """Return the turns but those that say word for word what one before them says."""
    once: dict[str, str] = {}
    for turn in desk.store.turns(desk.space, ids):
        once.setdefault(fold(turn.content), turn.id)
    return list(once.values())


def _turns(
    desk: Desk, ids: Sequence[str], holding: Sequence[Atom], *, words: set[str], width: int = _TURN_CHARS
) -> list[Line]:
    replaced = _replaced(desk, holding)
    return [
        Line(
            group="turn",
            id=turn.id,
            text=f"- [{turn.id} · {turn.said_at:%Y-%m-%d} · {_speaker(turn)}"
            f"{replaced.get(turn.id, '')}] {_around(turn.content, words, width)}",
            source=of_turn(turn),
        )
        for turn in desk.store.turns(desk.space, ids)
    ]


def _speaker(turn: Turn) -> str:
    """Return who said a turn: a person by name, and of a tool that it was one, whatever it is called."""
    source = of_turn(turn)
    if source in ("tool", "web"):
        return f"output of {SAID_BY[source]}" + (f", {one_line(turn.name, 40)}" if turn.name else "")
    posing = turn.name is not None and fold(turn.name.strip()) in get_args(Role)
    return turn.role if posing else one_line(turn.name or turn.role, 40)


def _replaced(desk: Desk, holding: Sequence[Atom]) -> Mapping[str, str]:
    """Return the turns whose statements these atoms replaced, and by which."""
    old = desk.store.replaced(desk.space, [atom.id for atom in holding]) if holding else []
    return {atom.evidence: f" · since replaced by {atom.superseded_by}" for atom in old}


def _outputs(desk: Desk, question: str, words: set[str]) -> list[Line]:
    """Return lines of tool results, where they are about the question as a turn would have to be."""
    wanted = asked(desk, [question])
    if wanted is None or not desk.store.newest("chunk"):
        return []
    read_as = read(question, desk.now, relatives=False)
    hits = {
        address(hit.ref, hit.lines): hit
        for hit in results(desk.store, desk.space, read_as, filters=Filters(), limit=_OUTPUTS)
    }
    weights = weights_of(wanted, "chunk", {at: terms_of(hit.text) for at, hit in hits.items()})
    return [
        Line(
            group="output",
            id=at,
            text=f"- [{at} · {hit.at:%Y-%m-%d} · {_printed(hit.call)}] " + _around(hit.text, words, _TURN_CHARS),
            source=of_tool(hit.call.partition(" ")[0]),
        )
        for at, hit in hits.items()
        if weights[at] >= ABOUT and not flags(f"{hit.call}\n{hit.text}", "tool")
    ]


def _printed(call: str) -> str:
    whose = "output of" if of_tool(call.partition(" ")[0]) == "tool" else "from the web,"
    return f"{whose} {one_line(call, 60)}"


def _around(text: str, words: set[str], width: int) -> str:
    """Return the part of a text that speaks of what is asked, on one line, its secrets masked."""
    return mask(one_line(snippet(text, width, matches(text, words))[0] if len(text) > width else text, width + 2))
