"""What of a reply can be kept: each statement is held against the turn that it says it comes from.

A statement is kept if words that it quotes stand in a new turn, it is worth its kind's least priority, and it is no
order that somebody wrote into a turn for a model to find. What is kept rests on the turns' words, not on the model's
copy of them; entities have the names that are known, and times are moments (`times`).

Each part of it has to be carried by what was said (`support`): a rule by the user's own words, or it is refused; of
others, what only the assistant's words carry is the assistant's word, and what nothing carries is held for review. What
a user quotes of others is not their word.

It does not know whether a statement follows from words that carry each part of it; that is the model's to judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Evidence, Kind, Source, Turn
from mcp_memory.language.quoted import FILL, own_part
from mcp_memory.language.words import base_terms, query_terms
from mcp_memory.longterm.l1_atoms.batch import Batch
from mcp_memory.longterm.l1_atoms.names import Names, is_person
from mcp_memory.longterm.l1_atoms.noise import own_words
from mcp_memory.longterm.l1_atoms.quotes import locate
from mcp_memory.longterm.l1_atoms.reply import Quoted, Statement
from mcp_memory.longterm.l1_atoms.times import dated, holds
from mcp_memory.longterm.l1_atoms.told import SINGLE_VALUED, relation_name
from mcp_memory.longterm.offers import accepted
from mcp_memory.longterm.support import carried, relates, swaps_a_value, unsupported
from mcp_memory.longterm.trust import best, entitled, held_for, of_turn, tells_a_rule
from mcp_memory.store.protocol import NewAtom
from mcp_memory.suspicion import drops, flags, worded

__all__ = ["Kept", "Refusal", "grounded"]

LEAST: dict[Kind, int] = {"persona": 50, "episodic": 60, "instruction": 70}
CONFIDENCE = {"stated": 0.9, "implied": 0.6}
MAX_TEXT = 600
_MAX_ENTITIES = 8
_MAX_MORE = 3  # further quotes
_ANSWER = 200  # characters; what is shorter may answer the turn before it, and says what that says
_SENTENCE_END = re.compile(r"[.!?。！？](?:\s|$)|\n\n")
_OF_A_FACT = 0.5  # of the words of its value in the statement, or what that rests on
_SELDOM_NAMED = SINGLE_VALUED - {"boss", "manager", "married_to", "partner", "reports_to", "spouse"}
"""Relations that follow from other words: who moved to a place lives there. What somebody is to the user is named."""
_ONE_AT_A_TIME = SINGLE_VALUED - {"status"}  # models call many things the status of a person


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A statement that holds, as it is stored. `told`: what of it was put right."""

    turn: Turn
    atom: NewAtom
    told: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a statement is not kept. `unquoted`: because of its quote, which whoever answers could mend."""

    reason: str
    unquoted: bool = False


def grounded(statement: Statement, batch: Batch, names: Names, session: str) -> Kept | Refusal:
    """Return a statement as it can be stored, or why it cannot."""
    text = one_line(statement.text, MAX_TEXT + 1)
    if not any(character.isalnum() for character in text):
        return Refusal(reason="it says nothing")
    if len(text) > MAX_TEXT:
        return Refusal(reason=f"it is longer than {MAX_TEXT} characters, and a note says one thing")
    found = _evidence(statement, batch)
    if isinstance(found, Refusal):
        return found
    words, told = found
    refusal = _unfit(statement, text, words, batch, names)
    if refusal is not None:
        return Refusal(reason=refusal)
    turn = words[0][0]
    times = holds(statement.valid_from, statement.valid_to, turn.said_at, lasting=statement.kind != "episodic")
    said = " ".join([text, *(one.content for one, _ in words)])
    fact = _fact(statement, names, said) if times.now else None
    chiefs = [fact[0] if fact else None, *(names.chief(named.name) for named in statement.entities)]
    chiefs += names.mentioned(text)
    atom = NewAtom(
        kind=statement.kind,
        text=dated(text, turn.said_at),
        priority=statement.priority,
        confidence=CONFIDENCE[statement.certainty],
        session=session,
        valid_from=times.since,
        valid_to=times.until,
        entity=fact[0] if fact else None,
        relation=fact[1] if fact else None,
        value=fact[2] if fact else None,
        single_valued=bool(fact) and fact[1] in _ONE_AT_A_TIME and statement.certainty == "stated",
        source=best(_voice(one, span) for one, span in words),
        evidence=tuple(Evidence(turn=one.id, span=span, quote=one.content[slice(*span)]) for one, span in words),
        entities=tuple(dict.fromkeys(chief for chief in chiefs if chief))[:_MAX_ENTITIES],
    )
    atom, untold = _supported(atom, text, words, batch, names)
    atom = held_for(atom, _suspicions(statement, atom, words))
    return Kept(turn=turn, atom=atom, told=(*told, *times.told, *untold))


def _supported(
    atom: NewAtom, text: str, words: Sequence[Words], batch: Batch, names: Names
) -> tuple[NewAtom, Sequence[str]]:
    """Return an atom as far as what was said carries it, and a remark on what does not.

    The words of people count, and the question that a short answer answers. What the assistant's words alone carry is
    the assistant's.
    """
    if atom.source == "quoted":
        return entitled(atom), ()
    turns = [*batch.background, *batch.turns]
    known = _known_names(names)
    said = [turn.content for turn in turns]
    if all(
        swaps_a_value(text, turn.content[slice(*span)], said, names=[*known, *names.everyone]) for turn, span in words
    ):
        return held_for(atom, ["unsupported"]), [
            f"{one_line(text, 80)!r} has another value than the words that it quotes; it waits for review"
        ]
    if unsupported(text, _said_by_people(turns, words), names=known, heard=names.everyone) is None:
        return atom, ()
    missing = unsupported(text, said, names=known, heard=names.everyone)
    if missing is None:
        return (entitled(replace(atom, source="assistant")) if atom.source == "user" else atom), ()
    return held_for(atom, ["unsupported"]), [
        f"{one_line(missing, 80)!r} stands in nothing that was said; it waits for review"
    ]


def _said_by_people(turns: Sequence[Turn], words: Sequence[Words]) -> list[str]:
    named = {turn.id for turn, _ in words}
    answered = [
        before.content
        for before, turn in pairwise(turns)
        if turn.id in named and turn.role == "user" and len(turn.content) <= _ANSWER and before.role == "assistant"
    ]
    people = sorted(filter(is_person, turns), key=lambda turn: turn.id not in named)  # the likeliest first
    return [*(turn.content for turn in people), *answered]


def _known_names(names: Names) -> list[str]:
    aliases = [name for entity in names.known for name in (entity.name, *entity.aliases)]
    return [*filter(None, [names.user]), *names.introduced, *names.others, *aliases, *names.relations.values()]


def _voice(turn: Turn, span: tuple[int, int]) -> Source:
    """Return whose word a place in a turn is: what a user quotes of others is not theirs."""
    return "quoted" if turn.role == "user" and _is_quoted(turn, span) else of_turn(turn)


def _is_quoted(turn: Turn, span: tuple[int, int]) -> bool:
    own = own_part(turn.content)[slice(*span)]
    return own.count(FILL) > len(own) / 2


# --- the words it rests on --------------------------------------------------------------------------


Words = tuple[Turn, tuple[int, int]]
"""A turn, and where in it the words stand."""


def _evidence(statement: Statement, batch: Batch) -> tuple[Sequence[Words], Sequence[str]] | Refusal:
    """Return where the words stand, those of a new turn first, and what of the further ones was left out.

    A further quote may stand in the background, where what a new turn answers was asked.
    """
    first = _place(statement, batch)
    more = [(quoted, _place(quoted, batch, background=True)) for quoted in statement.more[:_MAX_MORE]]
    places = [place for place in (first, *(place for _, place in more)) if not isinstance(place, Refusal)]
    new = [place for place in places if place[0] in batch.turns]
    if not new and isinstance(first, Refusal):
        return first
    told = [
        f"{one_line(quoted.quote, 80)!r} is left out: {place.reason}"
        for quoted, place in more
        if isinstance(place, Refusal) and quoted.quote
    ]
    words = dict.fromkeys([*new, *(place for place in places if place not in new)])
    return list(words), told


def _place(quoted: Statement | Quoted, batch: Batch, *, background: bool = False) -> Words | Refusal:
    """Return the turn that holds a quote, and where: the one named, or else the only one that does."""
    if not quoted.quote:
        return Refusal(reason="it quotes nothing", unquoted=True)
    id = _turn_id(quoted)
    turns = [*batch.turns, *(batch.background if background else ())]
    found = [(turn, span) for turn in turns if (span := _stands(quoted.quote, turn))]
    named = [place for place in found if place[0].id == id]
    if named or len(found) == 1:
        return (named or found)[0]
    if found:
        return Refusal(reason="its words stand in several turns, and none of them is named", unquoted=True)
    return _nowhere(quoted, batch)


def _nowhere(quoted: Statement | Quoted, batch: Batch) -> Refusal:
    if any(_stands(quoted.quote, turn) for turn in batch.background):
        return Refusal(reason="its words stand in the background, which was read before")
    id = _turn_id(quoted)
    where = id if any(turn.id == id for turn in batch.turns) else "any of the turns"
    return Refusal(reason=f"its quote does not stand in {where}", unquoted=True)


def _turn_id(quoted: Statement | Quoted) -> str:
    return re.sub(r"^\D*", "t", quoted.turn) if re.search(r"\d", quoted.turn) else ""


def _stands(quote: str, turn: Turn) -> tuple[int, int] | None:
    """Return where a quote stands in a turn's own words, if it says anything."""
    own = own_words(turn.content)
    span = locate(quote, own)
    if span is None:
        return None
    words = own[slice(*span)]
    telling = sum(2 if character >= "\u2e80" else 1 for character in words if character.isalnum())
    start = turn.content.find(words)
    return (start, start + len(words)) if start >= 0 and (telling >= 2 or words == own) else None


# --- what is not kept whatever it rests on ----------------------------------------------------------


def _unfit(statement: Statement, text: str, words: Sequence[Words], batch: Batch, names: Names) -> str | None:
    """Return why a statement that rests on words is not kept, None if it is."""
    if statement.kind == "persona" and not any(is_person(turn) for turn, _ in words):
        return "what is true of a person has to stand in that person's words, not in the assistant's"
    if 0 <= statement.priority < LEAST[statement.kind]:
        return f"its priority is under {LEAST[statement.kind]}, the least for {statement.kind}"
    is_order = drops(text)
    reports = statement.kind == "episodic" and is_order
    ordered = [turn.id for turn, span in words if is_order or _in_an_order(turn.content, span)]
    if ordered and not reports:
        return f"it repeats an order to a model that stands in {ordered[0]}"
    if statement.kind == "instruction":
        own = _ordered(words, batch, names)
        if not carried(text, own, names=_known_names(names), heard=[*names.everyone, names.said]):
            missing = unsupported(text, own, names=_known_names(names)) if own else None
            return f"a rule has to stand in the user's own words, and {one_line(missing or text, 80)!r} does not"
    return None


def _ordered(words: Sequence[Words], batch: Batch, names: Names) -> list[str]:
    """Return what the user says in the turns of these words that may state a rule, with the offers they accept."""
    own = [turn for turn, span in words if turn.role == "user" and not _is_quoted(turn, span)]
    own = [turn for turn in own if not names.is_other(turn)]
    theirs = {turn.id for turn in own}
    pairs = pairwise([*batch.background, *batch.turns])
    offers = [
        accepted(one.content, turn.content) for one, turn in pairs if turn.id in theirs and one.role == "assistant"
    ]
    return [*(turn.content for turn in own), *filter(None, offers)]


def _suspicions(statement: Statement, atom: NewAtom, words: Sequence[Words]) -> list[str]:
    """Return what a statement is to be held for.

    Its words are a model's, whoever said what it rests on: what the turns themselves have no sign of was put there.
    """
    parts = [atom.text, *(named.name for named in statement.entities)]
    parts += [also for named in statement.entities for also in named.also]
    if statement.fact is not None:
        parts += [statement.fact.entity, statement.fact.relation, statement.fact.value]
    given = "\n".join(parts)
    if statement.kind == "instruction":
        return [*flags(given, "user")]  # the user's own words carry it, or it is refused
    known = {flag for one, _ in words for flag in worded(one.content)} | {"keep"}  # a rule tells what to keep to
    put = [flag for flag in flags(given, "assistant") if flag not in known]
    return [*dict.fromkeys([*flags(given, atom.source), *put])]


def _share(text: str, said: str) -> float:
    """Return the share of a text's words that stand in what was said; all of them where it has none."""
    words = set(base_terms(text)) & set(query_terms(text))
    return len(words & set(base_terms(said))) / len(words) if words else 1.0


def _in_an_order(content: str, span: tuple[int, int]) -> bool:
    """Tell whether a place lies in an order, which goes on to the end of its paragraph."""
    start = content.rfind("\n\n", 0, span[0]) + 1
    sentence = _SENTENCE_END.search(content, span[1])
    return drops(content[start : sentence.start() if sentence else len(content)])


# --- facts ------------------------------------------------------------------------------------------


def _fact(statement: Statement, names: Names, said: str) -> tuple[str, str, str] | None:
    """Return the fact of a statement, its entity by the name that is known; None for one that nobody `said`."""
    if statement.fact is None or _share(statement.fact.value, said) < _OF_A_FACT:
        return None
    entity, relation = names.chief(statement.fact.entity), relation_name(one_line(statement.fact.relation, 60))
    value = one_line(statement.fact.value, 200)
    if not entity or not value or tells_a_rule(relation, value):
        return None
    is_told = relation in _SELDOM_NAMED or relates(relation.replace("_", " "), value, said)
    return (entity, relation, value) if is_told else None
