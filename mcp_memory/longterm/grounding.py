"""Checks each extracted statement against the turn that it cites, and makes an atom of it.

A statement is kept if a new turn contains its quote, its priority reaches the minimum of its kind, and it is no order
that somebody planted for a model. The evidence is the span in the turn, never the model's copy.

`verification.support` checks each part: of a rule that the user's words do not state, these words are kept, as said on
that day; a part that only the assistant's words
support is attributed to the assistant; anything else without support is quarantined. Quotations of others are not the
user's words. Whether a statement follows from its words is left to the model.

`locate` finds a quote in a turn: exactly, then without case, width, white space, quotation marks, dashes and Markdown,
then without its outer punctuation and with marked omissions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Evidence, Kind, Source, Turn
from mcp_memory.language.sentences import FILL, own_part, sentences
from mcp_memory.language.words import base_terms, query_terms
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.names import USER, Names, is_person, name_words
from mcp_memory.longterm.standing_rules import possible_rules
from mcp_memory.longterm.statements import ExtractedStatement, Quoted, relation_name
from mcp_memory.longterm.times import holds, with_its_date
from mcp_memory.longterm.turns import own_words
from mcp_memory.longterm.verification.own_words import question_of
from mcp_memory.longterm.verification.support import (
    accepted_offer,
    relates,
    supports_rule,
    swaps_a_value,
    unstated,
    unsupported,
)
from mcp_memory.longterm.verification.trust import (
    fact_states_rule,
    most_trusted,
    quarantined,
    source_of_turn,
    with_allowed_kind,
    without_effects,
)
from mcp_memory.store.values import NewAtom
from mcp_memory.suspicion.flags import flags, worded
from mcp_memory.suspicion.injected_instructions import drops

if TYPE_CHECKING:
    from mcp_memory.longterm.extraction import TurnBatch

__all__ = ["STATED", "GroundedAtom", "Refusal", "grounded", "locate"]

NOTHING_SHOWN: Mapping[str, str] = MappingProxyType({})
LEAST: dict[Kind, int] = {"persona": 50, "episodic": 60, "instruction": 70}
STATED, IMPLIED = 0.9, 0.6  # confidence
MAX_TEXT = 600
_MAX_ENTITIES = 8
_MAX_MORE = 3  # further quotes
_ANSWER = 200  # characters; a shorter turn may answer the turn before it; then its words count too
_SENTENCE_END = re.compile(r"[.!?。！？](?:\s|$)|\n\n")
_A_WISH: dict[str, Any] = {"kind": "episodic", "priority": 70, "fact": None, "ends": []}
"""The user's words where a model made a rule of what may have been meant for once."""
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
    is_verbatim = statement.kind == "instruction" and not _is_rule(text, words, batch, names)
    if is_verbatim:
        own = [(one, span) for one, span in words if _is_the_users(one, span, names)]
        if not own:
            return Refusal(reason=f"a rule has to stand in the user's own words, and {one_line(text, 80)!r} does not")
        told = [*told, f"{one_line(text, 80)!r} goes beyond the user's words, which are kept instead"]
        text = _in_their_words(*own[0])
        statement = statement.model_copy(update={"fact": None} if _states_a_rule(*own[0]) else _A_WISH)
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
    atom, untold = (atom, ()) if is_verbatim else _supported(atom, text, words, batch, names, ended)
    atom = quarantined(atom, _suspicions(statement, atom, words))
    return GroundedAtom(turn=turn, atom=atom, told=(*told, *times.notes, *untold))


def _supported(
    atom: NewAtom, text: str, words: Sequence[Words], batch: TurnBatch, names: Names, ended: Sequence[str]
) -> tuple[NewAtom, Sequence[str]]:
    """Return an atom as far as the turns and the statements that it ends support it, and a remark on the rest.

    The words of people count, the question that a short answer answers, and what is quoted of the assistant beside
    them. Statements supported by the assistant's words alone are the assistant's.
    """
    if atom.source == "quoted":
        return with_allowed_kind(atom), ()
    turns = [*batch.background, *batch.turns]
    known = _known_names(names)
    said = [turn.content for turn in turns]
    if all(
        swaps_a_value(text, turn.content[slice(*span)], [*said, *ended], names=[*known, *names.everyone])
        for turn, span in words
    ):
        remark = f"{one_line(text, 80)!r} has another number or name than the words that it quotes"
        return _verbatim(atom, remark, words, turns, names) or _doubted(atom, "other_value", remark)
    may_deny = _may_deny(turns, words)

    def missing_of(pool: Sequence[str]) -> str | None:
        own, beside = [one for one in pool if one in may_deny], [one for one in pool if one not in may_deny]
        return unsupported(
            text, own, beside=[*beside, *ended], names=known, heard=names.everyone, user=_names_of_user(names)
        )

    if missing_of(_said_by_people(turns, words)) is None:
        return atom, ()
    missing = missing_of(said)
    if missing is None:
        return (with_allowed_kind(replace(atom, source="assistant")) if atom.source == "user" else atom), ()
    if unstated(text, said, beside=ended, names=known, heard=names.everyone) is None:
        return _doubted(atom, "contradicted", f"{one_line(missing, 80)!r} seems to contradict what was said")
    remark = f"{one_line(missing, 80)!r} stands in nothing that was said"
    unsupported_atom = quarantined(atom, ["unsupported"]), [f"{remark}; it waits for review"]
    return _verbatim(atom, remark, words, turns, names) or unsupported_atom


def _verbatim(
    atom: NewAtom, remark: str, words: Sequence[Words], turns: Sequence[Turn], names: Names
) -> tuple[NewAtom, Sequence[str]] | None:
    """Return an atom with the user's own words as its text, None if it quotes none."""
    own = next(((turn, span) for turn, span in words if _is_the_users(turn, span, names)), None)
    if own is None:
        return None
    text = with_its_date(_in_their_words(*own, asked=_asked_before(own[0], turns)), own[0].said_at)
    return without_effects(replace(atom, text=text)), [f"{remark}; the user's words are kept instead"]


def _doubted(atom: NewAtom, doubt: str, remark: str) -> tuple[NewAtom, Sequence[str]]:
    """Return an atom that a check doubts: labelled if it quotes the user's own words, else quarantined."""
    if atom.source == "user":
        return quarantined(atom, [doubt]), [f"{remark}; it is kept with a mark"]
    return quarantined(atom, ["unsupported"]), [f"{remark}; it waits for review"]


def _may_deny(turns: Sequence[Turn], words: Sequence[Words]) -> set[str]:
    """Return the turns that may contradict a statement: of whoever it quotes, and of people if that is a model.

    That one speaker has no dog says nothing against the dog of another.
    """
    quoted = {(turn.role, turn.name) for turn, _ in words}
    by_people = all(is_person(turn) for turn, _ in words)
    return {
        turn.content for turn in turns if (turn.role, turn.name) in quoted or (not by_people and is_person(turn))
    } | {turn.content[slice(*span)] for turn, span in words}


def _said_by_people(turns: Sequence[Turn], words: Sequence[Words]) -> list[str]:
    named = {turn.id for turn, _ in words}
    answered = [
        before.content
        for before, turn in pairwise(turns)
        if turn.id in named and turn.role == "user" and len(turn.content) <= _ANSWER and before.role == "assistant"
    ]
    people = sorted(filter(is_person, turns), key=lambda turn: turn.id not in named)  # the likeliest first
    taken_up = [turn.content[slice(*span)] for turn, span in words[1:] if is_person(words[0][0])]
    return [*(turn.content for turn in people), *answered, *taken_up]


def _names_of_user(names: Names) -> list[str]:
    return [*filter(None, [names.user]), *names.introduced]


def _known_names(names: Names) -> list[str]:
    aliases = [name for entity in names.known for name in (entity.name, *entity.aliases)]
    return [*_names_of_user(names), *names.others, *aliases, *names.relations.values()]


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


def _in_their_words(turn: Turn, span: tuple[int, int], *, asked: str = "") -> str:
    """Return the sentences around a span as a statement; after the question that they answer, if there is one."""
    around = _sentences_around(turn, span)
    words = one_line(turn.content[around[0][0] : around[-1][1]], MAX_TEXT // 2)
    return f'{turn.name or USER}: "{f"{one_line(asked, MAX_TEXT // 3)} – {words}" if asked else words}"'


def _asked_before(turn: Turn, turns: Sequence[Turn]) -> str:
    """Return the assistant's question that a short turn answers; empty if there is none."""
    before = next((one for one, after in pairwise(turns) if after.id == turn.id and one.role == "assistant"), None)
    return question_of(before.content) if before and len(turn.content) <= _ANSWER else ""


def _states_a_rule(turn: Turn, span: tuple[int, int]) -> bool:
    """Tell whether the sentences that contain a span may state a rule."""
    rules = possible_rules(turn.content)
    return any(rule.start < end and start < rule.end for start, end in _sentences_around(turn, span) for rule in rules)


def _is_rule(text: str, words: Sequence[Words], batch: TurnBatch, names: Names) -> bool:
    own = _ordered(words, batch, names)
    return supports_rule(text, own, names=_known_names(names), heard=[*names.everyone, names.said])


def _ordered(words: Sequence[Words], batch: TurnBatch, names: Names) -> list[str]:
    """Return what the user says in the turns of these words that may state a rule, with the offers they accept."""
    own = [turn for turn, span in words if _is_the_users(turn, span, names)]
    theirs = {turn.id for turn in own}
    pairs = pairwise([*batch.background, *batch.turns])
    offers = [
        accepted_offer(one.content, turn.content)
        for one, turn in pairs
        if turn.id in theirs and one.role == "assistant"
    ]
    return [*(turn.content for turn in own), *filter(None, offers)]


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
    is_told = relation in name_words("single-valued") - _ALWAYS_NAMED or relates(
        relation.replace("_", " "), value, said
    )
    return (entity, relation, value) if is_told else None


_READ = 200_000  # characters at either end of a content in which words that changed are looked for
_ELIDED = 1_000  # characters at most from the first to the last word of a quote with an omission


def locate(quote: str, content: str) -> tuple[int, int] | None:
    """Return where the quote stands in the content, None where it does not.

    Of several places the first where it is not part of a longer word.
    """
    if not quote.strip():
        return None
    return _exactly(quote, content) or _exactly(quote.strip(), content) or _nearly(quote, content)


def _exactly(quote: str, content: str) -> tuple[int, int] | None:
    first = at = content.find(quote)
    while at >= 0:
        if not _cuts_a_word(content, at, at + len(quote)):
            return at, at + len(quote)
        at = content.find(quote, at + 1)
    return None if first < 0 else (first, first + len(quote))


def _nearly(quote: str, content: str) -> tuple[int, int] | None:
    wanted = _Plain(quote).text
    for start in dict.fromkeys((0, max(0, len(content) - _READ))):
        held = _plain(content[start : start + _READ])
        found = held.find(wanted) or held.find(wanted.strip(_PUNCTUATION)) or _with_omissions(quote, held)
        if found is not None:
            return found[0] + start, found[1] + start
    return None


def _with_omissions(quote: str, held: _Plain) -> tuple[int, int] | None:
    """Return the span from the first part of a quote to the last, where they follow each other soon enough."""
    parts = [_Plain(part).text.strip(_PUNCTUATION) for part in _OMISSION.split(quote)]
    parts = [part for part in parts if part]
    spans: list[tuple[int, int]] = []
    for part in parts if len(parts) > 1 else ():
        found = held.find(part, spans[-1][1] if spans else 0)
        if found is None:
            return None
        spans.append(found)
    return (spans[0][0], spans[-1][1]) if spans and spans[-1][1] - spans[0][0] <= _ELIDED else None


def _cuts_a_word(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 1) : start + 1], text[end - 1 : end + 1]
    return any(len(edge) == 2 and all(c.isalnum() and c < _NO_SPACES for c in edge) for edge in (before, after))


# --- text made comparable ---------------------------------------------------------------------------

_NO_SPACES = "\u0e00"  # from Thai on scripts have no spaces between words, or words are short
_PUNCTUATION = " .,;:!?'-。、…"
_OMISSION = re.compile(r"\s*[\[(（]?\s*(?:\.{3,}|…+)\s*[\])）]?\s*")
_DASHES = frozenset("-‐‑‒–—―−﹘﹣－")
_SPELLED = {"。": ".", "｡": ".", "、": ",", "､": ","}
# Quotation marks of all scripts, Markdown's marks, invisible characters: joiners, soft hyphens, variation selectors.
_DROPPED = frozenset(
    "\"'´‘’‚‛“”„‟«»‹›「」『』《》〈〉〝〞〟＂＇｢｣`*_~\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff"
)


class _Plain:
    """A text as it is compared, and for each character of that where it comes from."""

    def __init__(self, original: str) -> None:
        pieces = list(_tidied(original))
        self.text = "".join(character for character, _ in pieces)
        self._spans = [span for _, span in pieces]

    def find(self, wanted: str, after: int = 0) -> tuple[int, int] | None:
        """Return the span in the original of text that is plain already, beginning at `after` or later."""
        places: list[tuple[int, int]] = []
        at = self.text.find(wanted) if wanted else -1
        while at >= 0:
            end = at + len(wanted)
            if self._spans[at][0] >= after and self._is_whole(at, end):
                span = self._spans[at][0], self._spans[end - 1][1]
                if not _cuts_a_word(self.text, at, end):
                    return span
                places.append(span)
            at = self.text.find(wanted, at + 1)
        return places[0] if places else None

    def _is_whole(self, start: int, end: int) -> bool:
        """Tell whether no character of the original, with the marks on it, is cut in two."""
        if start and self._spans[start] == self._spans[start - 1]:
            return False
        if end == len(self.text):
            return True
        return self._spans[end] != self._spans[end - 1] and not unicodedata.combining(self.text[end])


@lru_cache(maxsize=32)
def _plain(content: str) -> _Plain:
    return _Plain(content)


@lru_cache(maxsize=8192)
def _simple(character: str) -> str:
    if character in _DROPPED:
        return ""
    if character in _DASHES:
        return "-"
    if character.isspace():
        return " "
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(" " if c.isspace() else _SPELLED.get(c, c) for c in folded if c not in _DROPPED)


def _tidied(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the characters as they are compared, each with its span in the text.

    Between words of scripts that have spaces stands one space, and no other; dashes stand singly.
    """
    last, space = "", None
    for at, original in enumerate(text):
        for character in _simple(original):
            span = at, at + 1
            if character == " ":
                space = space or span
            elif not (character == last == "-"):
                if space and last and not _joins(last) and not _joins(character):
                    yield " ", space
                yield character, span
                last, space = character, None


def _joins(character: str) -> bool:
    return character >= "\u2e80" or not (character.isalnum() or unicodedata.combining(character))


def _is_single_valued(relation: str) -> bool:
    return relation != "status" and relation in name_words("single-valued")  # models call many things a status
