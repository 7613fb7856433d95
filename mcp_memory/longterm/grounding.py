"""Checks each extracted statement against the turn that it cites, and makes an atom of it.

A statement is kept if a new turn contains its quote, its priority reaches the minimum of its kind, and it is no order
that somebody planted for a model. The evidence is the span in the turn, never the model's copy.

A statement that quotes the user stays as the model wrote it. It is labelled if the user's words lack one of its
numbers, dates or names (`verification.values`), or if it denies its quote; merging shows it to the model once more
(`doubts`). With a clause that has no word of the user, it becomes the assistant's if the assistant said that, and
otherwise the user's own words replace it. They also replace the text of a rule that has another value or drops a limit.
A statement that quotes others alone is quarantined if nobody said it. Quotations of others are not the user's words.
Whether a statement follows from its words is left to the model; `why` shows both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Evidence, Kind, Source, Turn
from mcp_memory.language.sentences import FILL, is_negative, own_part, sentences
from mcp_memory.language.words import base_terms, function_words_of, query_terms
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.names import USER, Names, is_person, name_words
from mcp_memory.longterm.quotes import locate
from mcp_memory.longterm.standing_rules import may_be_order
from mcp_memory.longterm.statements import ExtractedStatement, Quoted, relation_name
from mcp_memory.longterm.times import holds, with_its_date, without_dates
from mcp_memory.longterm.turns import own_words
from mcp_memory.longterm.verification.claims import fact_states_rule
from mcp_memory.longterm.verification.comparison import (
    known_terms,
    nearest,
    pattern,
    pieces_of,
    share_of,
    terms_of,
    words_in,
)
from mcp_memory.longterm.verification.own_words import accepted_offer, is_joke
from mcp_memory.longterm.verification.trust import (
    most_trusted,
    quarantine,
    source_of_turn,
    with_allowed_kind,
    without_effects,
)
from mcp_memory.longterm.verification.values import DatedText, KnownValues
from mcp_memory.store.values import NewAtom
from mcp_memory.suspicion.flags import flags, worded
from mcp_memory.suspicion.injected_instructions import drops

if TYPE_CHECKING:
    from mcp_memory.longterm.extraction import TurnBatch


NOTHING_SHOWN: Mapping[str, str] = MappingProxyType({})
LEAST: dict[Kind, int] = {"persona": 50, "episodic": 60, "instruction": 70}
STATED, IMPLIED = 0.9, 0.6  # confidence
MAX_TEXT = 600
_MAX_ENTITIES = 8
_MAX_MORE = 3  # further quotes
_ANSWER = 200  # characters; a shorter turn may answer the turn before it; then its words count too
_SENTENCE_END = re.compile(r"[.!?。！？](?:\s|$)|\n\n")
_A_WISH: dict[str, Any] = {"kind": "episodic", "priority": 70, "valid_from": None, "fact": None, "ends": []}
"""The user's words where a model made a rule of what may have been meant for once."""
_SOME_MEANING = 0.38  # cosine of a clause to what says something like it
_FEWEST = 3  # words of a clause; fewer may be said in other words
_STEM = 5  # letters
_LIMIT_MEANING = 0.45  # cosine of a limit to a piece of the rule
_SAME_WORDS = 0.5  # share of the words of a clause and a statement in each other
_RELATION, _RELATION_WORD = 0.6, 0.65  # cosine of a fact's relation with its value, and of each word of it
_WORDS_READ = 200
_OF_A_FACT = 0.5  # share of the value's words that the statement or its evidence must have
_ALWAYS_NAMED = {"boss", "manager", "married_to", "partner", "reports_to", "spouse"}
"""Relations that follow from other words: who moved to a place lives there. What somebody is to the user is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundedAtom:
    """A valid statement to store, with remarks on the corrections made to it."""

    turn: Turn
    atom: NewAtom
    told: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a statement is not kept. `unquoted`: because of its quote, which whoever answers could mend."""

    reason: str
    unquoted: bool = False


def grounded(
    statement: ExtractedStatement, batch: TurnBatch, names: Names, *, shown: Mapping[str, str] = NOTHING_SHOWN
) -> GroundedAtom | Refusal:
    """Return a statement as it can be stored, or why it cannot.

    `shown` are the texts of the current atoms beside the turns, by their ids: it may end these.
    """
    text = one_line(statement.text, MAX_TEXT + 1)
    if not any(character.isalnum() for character in text):
        return Refusal(reason="it says nothing")
    if len(text) > MAX_TEXT:
        return Refusal(reason=f"it is longer than {MAX_TEXT} characters, and a note says one thing")
    found = _evidence(statement, batch)
    if isinstance(found, Refusal):
        return found
    words, told = found
    refusal = _unfit(statement, text, words)
    if refusal is not None:
        return Refusal(reason=refusal)
    turn = words[0][0]
    is_verbatim = False
    if statement.kind == "instruction":
        statement, text, remark = _as_rule(statement, text, words, batch, names)
        if not text:
            return Refusal(reason=remark)
        is_verbatim = bool(remark)
        told = [*told, remark] if remark else told
    said_at = max(one.said_at for one, _ in words) if statement.valid_from else turn.said_at
    times = holds(statement.valid_from, statement.valid_to, said_at, lasting=statement.kind != "episodic")
    said = " ".join([text, *(one.content for one, _ in words)])
    fact = _fact(statement, names, said) if times.now else None
    chiefs = [fact[0] if fact else None, *(names.chief(named.name) for named in statement.entities)]
    chiefs += names.mentioned(text)
    atom = NewAtom(
        kind=statement.kind,
        text=with_its_date(text, turn.said_at),
        priority=statement.priority,
        confidence=IMPLIED if statement.implied else STATED,
        session=turn.session,
        valid_from=times.since,
        valid_to=times.until,
        entity=fact[0] if fact else None,
        relation=fact[1] if fact else None,
        value=fact[2] if fact else None,
        supersedes=tuple(dict.fromkeys(id for id in map(str.lower, statement.ends) if id in shown)),
        single_valued=bool(fact) and _is_single_valued(fact[1]) and not statement.implied,
        source=most_trusted(_voice(one, span) for one, span in words),
        evidence=tuple(Evidence(turn=one.id, span=span, quote=one.content[slice(*span)]) for one, span in words),
        entities=tuple(dict.fromkeys(chief for chief in chiefs if chief))[:_MAX_ENTITIES],
    )
    ended = [shown[id] for id in atom.supersedes]  # it may say again what still holds of them
    if not is_verbatim:
        atom, doubts = _checked(atom, text, words, batch, names, ended, [*shown.values()])
        told = [*told, *doubts]
    atom = quarantine(atom, _suspicions(statement, atom, words))
    return GroundedAtom(turn=turn, atom=atom, told=(*told, *times.notes))


# --- checked against its words ----------------------------------------------------------------------


def _checked(
    atom: NewAtom,
    text: str,
    words: Sequence[Words],
    batch: TurnBatch,
    names: Names,
    ended: Sequence[str],
    shown: Sequence[str],
) -> tuple[NewAtom, Sequence[str]]:
    """Return an atom as its words allow: labelled, given to the assistant, or quarantined; and a remark on that.

    `ended` are the texts of the statements that it ends, and `shown` of all that were shown: it may repeat them.
    """
    if atom.source == "quoted":
        return with_allowed_kind(atom), ()
    turns = [*batch.background, *batch.turns]
    near = [*_quotes(words), *map(_dated, _answered(turns, words)), *map(DatedText, ended)]
    own = [*near, *map(DatedText, shown), *map(_dated, filter(is_person, turns))]
    everyone = [*own, *map(_dated, turns)]
    known = _known_names(names)
    strange = [*KnownValues(everyone, known).missing(text), *_strange_clauses(text, everyone, known)]
    if atom.source != "user":
        if not strange:
            return atom, ()
        remark = f"{one_line(strange[0], 80)!r} stands in nothing that was said; it waits for review"
        return quarantine(atom, ["unsupported"]), [remark]
    if clauses := _strange_clauses(text, own, known):
        if not strange:
            return with_allowed_kind(replace(atom, source="assistant")), ()
        remark = f"{one_line(clauses[0], 80)!r} stands in nothing that was said; the user's words are kept instead"
        own_words = _in_their_words(*words[0])
        return without_effects(replace(atom, text=own_words, valid_from=words[0][0].said_at, valid_to=None)), [remark]
    if other := _other_values(text, words, own, near, known):
        if not strange:
            return with_allowed_kind(replace(atom, source="assistant")), ()
        return quarantine(atom, ["other_value"]), [f"check {other[0]!r} in {one_line(text, 80)!r}: its quote lacks it"]
    if _is_denied(text, words):
        return quarantine(atom, ["contradicted"]), [
            f"check {one_line(text, 80)!r}: its quote seems to say the opposite"
        ]
    return atom, ()


def _other_values(
    text: str, words: Sequence[Words], own: Sequence[DatedText], near: Sequence[DatedText], known: Sequence[str]
) -> list[str]:
    """Return the numbers, dates and names of a statement that the user's words do not hold.

    These are the quotes with their turns, and what is near to them. Where a statement repeats all numbers of its
    quotes, a further one may come from any of their `own` texts.
    """
    values = KnownValues([*near, *(_dated(turn) for turn, _ in words if is_person(turn))], known)
    strange = values.missing(text)
    if not strange or any(values.lacks_number_of(one.text, text) for one in _quotes(words)):
        return strange
    return KnownValues(own, known).missing(text)


def _strange_clauses(text: str, said: Sequence[DatedText], known: Sequence[str]) -> list[str]:
    """Return the clauses of which no text has a word, besides known names, or the meaning."""
    heard, named = known_terms(*(one.text for one in said)), known_terms(*known)
    found: list[str] = []
    for clause in filter(None, pattern("CUT").split(without_dates(text))):
        terms = terms_of(clause) - named
        if len(terms) >= _FEWEST and terms.isdisjoint(heard) and _is_far(clause, said):
            found.append(clause.strip())
    return found


def _is_far(clause: str, said: Sequence[DatedText]) -> bool:
    return all(nearest(clause, pieces_of(one.text)) < _SOME_MEANING for one in said)


def _quotes(words: Sequence[Words]) -> list[DatedText]:
    return [DatedText(turn.content[slice(*span)], turn.said_at) for turn, span in words]


def _dated(turn: Turn) -> DatedText:
    return DatedText(turn.content, turn.said_at)


def _answered(turns: Sequence[Turn], words: Sequence[Words]) -> list[Turn]:
    """Return the assistant's turns before the short turns of the user that a statement quotes."""
    quoted = {turn.id for turn, _ in words}
    return [
        before
        for before, turn in pairwise(turns)
        if turn.id in quoted and turn.role == "user" and len(turn.content) <= _ANSWER and before.role == "assistant"
    ]


def _is_denied(text: str, words: Sequence[Words]) -> bool:
    """Return whether a statement says the same as a clause that it quotes, but only one of them is negative."""
    pieces = [piece for turn, span in words for piece in _quoted_clauses(turn, span)]
    known, negative = known_terms(text), is_negative(text)
    return all(is_negative(piece) != negative for piece in pieces) and any(
        share_of(text, known_terms(piece)) >= _SAME_WORDS and share_of(piece, known) >= _SAME_WORDS for piece in pieces
    )


def _is_opposite(text: str, pieces: Sequence[str]) -> bool:
    """Return whether of all pieces with most words of a text the text or the piece alone is negative."""
    shares = [share_of(text, known_terms(piece)) for piece in pieces]
    near = [piece for piece, share in zip(pieces, shares, strict=True) if share == max(shares)]
    negative = is_negative(text)
    return all(is_negative(piece) != negative for piece in near)


def _quoted_clauses(turn: Turn, span: tuple[int, int]) -> list[str]:
    """Return the clauses that a quote is of, and all of them together."""
    found: list[tuple[int, int]] = []
    for start, end in _sentences_around(turn, span):
        cuts = [match.span() for match in pattern("CLAUSE").finditer(turn.content, start, end)]
        edges = [(start, start), *cuts, (end, end)]
        clauses = [(one[1], other[0]) for one, other in pairwise(edges)]
        found += [(first, last) for first, last in clauses if first < span[1] and last > span[0]]
    whole = [turn.content[found[0][0] : found[-1][1]]] if found else []
    return [*dict.fromkeys([*(turn.content[first:last] for first, last in found), *whole])]


def _known_names(names: Names) -> list[str]:
    aliases = [name for entity in names.known for name in (entity.name, *entity.aliases)]
    user = [*filter(None, [names.user]), *names.introduced]
    return [*user, *names.others, *aliases, *names.relations.values(), *names.everyone]


def _voice(turn: Turn, span: tuple[int, int]) -> Source:
    return "quoted" if turn.role == "user" and _is_quoted(turn, span) else source_of_turn(turn)


def _is_quoted(turn: Turn, span: tuple[int, int]) -> bool:
    own = own_part(turn.content)[slice(*span)]
    return own.count(FILL) > len(own) / 2


# --- the evidence of a statement --------------------------------------------------------------------


Words = tuple[Turn, tuple[int, int]]
"""A turn, and where in it the words stand."""


def _evidence(statement: ExtractedStatement, batch: TurnBatch) -> tuple[Sequence[Words], Sequence[str]] | Refusal:
    """Return the positions of the words, those of a new turn first, and the further words that were left out.

    A further quote may be in the background, where the question that a new turn answers was asked.
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


def _place(quoted: ExtractedStatement | Quoted, batch: TurnBatch, *, background: bool = False) -> Words | Refusal:
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


def _nowhere(quoted: ExtractedStatement | Quoted, batch: TurnBatch) -> Refusal:
    if any(_stands(quoted.quote, turn) for turn in batch.background):
        return Refusal(reason="its words stand in the background, which was read before")
    id = _turn_id(quoted)
    where = id if any(turn.id == id for turn in batch.turns) else "any of the turns"
    return Refusal(reason=f"its quote does not stand in {where}", unquoted=True)


def _turn_id(quoted: ExtractedStatement | Quoted) -> str:
    return re.sub(r"^\D*", "t", quoted.turn) if re.search(r"\d", quoted.turn) else ""


def _stands(quote: str, turn: Turn) -> tuple[int, int] | None:
    """Return where a quote stands in a turn's own words, if it says anything."""
    own = own_words(typed_text(turn.content) if turn.role == "user" else turn.content)
    span = locate(quote, own)
    if span is None:
        return None
    words = own[slice(*span)]
    telling = sum(2 if character >= "\u2e80" else 1 for character in words if character.isalnum())
    start = turn.content.find(words)
    return (start, start + len(words)) if start >= 0 and (telling >= 2 or words == own) else None


# --- statements that are refused in any case --------------------------------------------------------


def _unfit(statement: ExtractedStatement, text: str, words: Sequence[Words]) -> str | None:
    if statement.kind == "persona" and not any(is_person(turn) for turn, _ in words):
        return "what is true of a person has to stand in that person's words, not in the assistant's"
    if 0 <= statement.priority < LEAST[statement.kind]:
        return f"its priority is under {LEAST[statement.kind]}, the least for {statement.kind}"
    is_order = drops(text)
    reports = statement.kind == "episodic" and is_order
    ordered = [turn.id for turn, span in words if is_order or _in_an_order(turn.content, span)]
    if ordered and not reports:
        return f"it repeats an order to a model that stands in {ordered[0]}"
    return None


def _is_the_users(turn: Turn, span: tuple[int, int], names: Names) -> bool:
    return turn.role == "user" and not _is_quoted(turn, span) and not names.is_other(turn)


def _sentences_around(turn: Turn, span: tuple[int, int]) -> list[tuple[int, int]]:
    return [(start, end) for start, end in sentences(turn.content) if start < span[1] and end > span[0]] or [span]


def _in_their_words(turn: Turn, span: tuple[int, int]) -> str:
    """Return the sentences around a span as a statement."""
    around = _sentences_around(turn, span)
    return f'{turn.name or USER}: "{one_line(turn.content[around[0][0] : around[-1][1]], MAX_TEXT // 2)}"'


def _as_rule(
    statement: ExtractedStatement, text: str, words: Sequence[Words], batch: TurnBatch, names: Names
) -> tuple[ExtractedStatement, str, str]:
    """Return a rule with its text, or the user's own words in place of that, and why these; no text if they have none.

    A sentence of the user that may be an order suffices, or an offer that they accept. Its text is the model's where
    the sentence has its values, its negation and its limits.
    """
    own = [(turn, span) for turn, span in words if _is_the_users(turn, span, names)]
    if not own:
        return statement, "", f"a rule has to stand in the user's own words, and {one_line(text, 80)!r} does not"
    turns = [*batch.background, *batch.turns]
    offers = [offer for before, turn in pairwise(turns) if turn.id in {one.id for one, _ in own}
              and before.role == "assistant" and (offer := accepted_offer(before.content, turn.content))]  # fmt: skip
    sentences = [turn.content[start:end] for turn, span in own for start, end in _sentences_around(turn, span)]
    is_rule = bool(offers) or (any(map(may_be_order, sentences)) and not any(is_joke(turn.content) for turn, _ in own))
    clauses = [clause for turn, span in own for clause in _quoted_clauses(turn, span)]
    is_kept = bool(offers) or not (_is_opposite(text, clauses) or _drops_limit(text, sentences))
    near = [*_quotes(own), *map(_dated, _answered(turns, own))]
    if is_rule and is_kept and not _other_values(text, own, near, near, _known_names(names)):
        return statement, text, ""
    change: dict[str, Any] = {"fact": None, "valid_from": None} if is_rule else _A_WISH
    remark = f"{one_line(text, 80)!r} goes beyond the user's words, which are kept instead"
    return statement.model_copy(update=change), _in_their_words(*own[0]), remark


def _drops_limit(rule: str, sentences: Sequence[str]) -> bool:
    """Return whether a rule has no word of what limits the sentences that it quotes: "in project X"."""
    stems = {term[:_STEM] for term in known_terms(rule)}

    def is_dropped(limit: str) -> bool:
        terms = terms_of(limit)
        if not terms or pattern("FOR_GOOD").search(limit):  # "in future" limits nothing
            return False
        return stems.isdisjoint(term[:_STEM] for term in terms) and nearest(limit, pieces_of(rule)) < _LIMIT_MEANING

    limits = [[found[0].strip(" ,:;") for found in pattern("SCOPE").finditer(one)] for one in sentences]
    return bool(limits) and all(any(map(is_dropped, each)) for each in limits)


def _suspicions(statement: ExtractedStatement, atom: NewAtom, words: Sequence[Words]) -> list[str]:
    """Return the reasons to quarantine a statement.

    A model wrote its words, whoever said the words it cites. A sign that the cited turns do not have counts against it.
    """
    parts = [atom.text, *(named.name for named in statement.entities)]
    parts += [also for named in statement.entities for also in named.also]
    if statement.fact is not None:
        parts += [statement.fact.entity, statement.fact.relation, statement.fact.value]
    given = "\n".join(parts)
    if statement.kind == "instruction":
        return [*flags(given, "user")]  # the user's own words carry it, or it is refused
    known = {flag for one, _ in words for flag in worded(one.content)} | {"keep"}  # rules say "keep"
    put = [flag for flag in flags(given, "assistant") if flag not in known]
    return [*dict.fromkeys([*flags(given, atom.source), *put])]


def _share(text: str, said: str) -> float:
    words = set(base_terms(text)) & set(query_terms(text))
    return len(words & set(base_terms(said))) / len(words) if words else 1.0


def _in_an_order(content: str, span: tuple[int, int]) -> bool:
    start = content.rfind("\n\n", 0, span[0]) + 1
    sentence = _SENTENCE_END.search(content, span[1])
    return drops(content[start : sentence.start() if sentence else len(content)])


# --- facts ------------------------------------------------------------------------------------------


def _fact(statement: ExtractedStatement, names: Names, said: str) -> tuple[str, str, str] | None:
    if statement.fact is None or _share(statement.fact.value, said) < _OF_A_FACT:
        return None
    entity, relation = names.chief(statement.fact.entity), relation_name(one_line(statement.fact.relation, 60))
    value = one_line(statement.fact.value, 200)
    if not entity or not value or fact_states_rule(relation, value):
        return None
    is_told = relation in name_words("single-valued") - _ALWAYS_NAMED or _relates(
        relation.replace("_", " "), value, said
    )
    return (entity, relation, value) if is_told else None


def _relates(relation: str, value: str, said: str) -> bool:
    """Return whether a text names a fact's relation: by its words, or by a meaning that is near to it."""
    terms, words = terms_of(relation), words_in(relation)
    if terms and terms <= known_terms(said):
        return True
    theirs = list(dict.fromkeys(words_in(said)))[:_WORDS_READ]
    telling = [word for word in words if word.lower() not in function_words_of(words)]
    if min((nearest(word, theirs) for word in telling), default=0.0) >= _RELATION_WORD:
        return True
    return nearest(f"{relation} {value}", pieces_of(said)) >= _RELATION


def _is_single_valued(relation: str) -> bool:
    return relation != "status" and relation in name_words("single-valued")  # models call many things a status
