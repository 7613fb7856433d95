"""Checks each extracted statement against the turn that it cites, and makes an atom of it.

A statement is kept if a new turn contains its quote, its priority reaches the minimum of its kind, and it is not an
order that somebody planted for a model. The evidence is the span in the turn, never the model's copy.

A statement that quotes the user keeps the model's words. It is labelled if the user's words lack any of its numbers,
dates or names (`verification.values`), or if it denies its quote; merging shows it to the model again (`doubts`). If a
clause shares no word with the user's, the statement is attributed to the assistant if the assistant said it, and is
otherwise replaced by the user's own words. The user's words also replace a rule that has another value or drops a
limit. A statement that quotes only other speakers is quarantined if it has a clause or a value that nobody said. What
the user quotes from others does not count as the user's words. Whether a statement follows from its words is left to
the model; `why` shows both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Evidence, Kind, Source, Turn
from mcp_memory.language.sentences import FILL, is_negative, own_part, sentences
from mcp_memory.language.words import base_terms, function_words_of, query_terms
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.names import USER, Names, is_person, name_words
from mcp_memory.longterm.quotes import locate
from mcp_memory.longterm.standing_rules import may_be_order
from mcp_memory.longterm.statements import ExtractedStatement, Quoted, relation_name
from mcp_memory.longterm.turns import own_words
from mcp_memory.longterm.validity import validity_period, with_its_date, without_dates
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
from mcp_memory.suspicion.flags import flags, wording_flags
from mcp_memory.suspicion.injected_instructions import drops

if TYPE_CHECKING:
    from mcp_memory.longterm.turn_batches import TurnBatch


LEAST: dict[Kind, int] = {"persona": 50, "episodic": 60, "instruction": 70}
STATED, IMPLIED = 0.9, 0.6  # confidence
MAX_TEXT = 600
_MAX_ENTITIES = 8
_MAX_MORE = 3  # further quotes
_ANSWER = 200  # characters; a shorter turn may answer the turn before, whose words then count too
_SENTENCE_END = re.compile(r"[.!?。！？](?:\s|$)|\n\n")
_A_WISH: dict[str, Any] = {"kind": "episodic", "priority": 70, "valid_from": None, "fact": None, "ends": []}
"""Changes to a statement that a model called a rule, although the user's words are no order."""
_SOME_MEANING = 0.38  # cosine of a clause to a passage with a similar meaning
_FEWEST = 3  # words of a clause; fewer may be said in other words
_STEM = 5  # letters
_LIMIT_MEANING = 0.45  # cosine of a limit to a piece of the rule
_SAME_WORDS = 0.5  # share of the words of a clause and a statement in each other
_RELATION, _RELATION_WORD = 0.6, 0.65  # cosine of a fact's relation with its value, and of each word of it
_WORDS_READ = 200
_OF_A_FACT = 0.5  # share of the value's words that the statement or its evidence must have
_ALWAYS_NAMED = {"boss", "manager", "married_to", "partner", "reports_to", "spouse"}
"""Single-valued relations that a text has to name. The others may follow: "moved to" implies "lives in"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundedAtom:
    """A valid statement to store, with remarks on the corrections made to it."""

    turn: Turn
    atom: NewAtom
    remarks: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a statement is not kept. `unquoted` is true if the fault is in its quote, which can be corrected."""

    reason: str
    unquoted: bool = False


class Passage(NamedTuple):
    """A span of a turn."""

    turn: Turn
    span: tuple[int, int]

    @property
    def text(self) -> str:
        return self.turn.content[slice(*self.span)]

    @property
    def dated(self) -> DatedText:
        return DatedText(self.text, self.turn.said_at)


def ground_statement(
    statement: ExtractedStatement, batch: TurnBatch, names: Names, *, shown: Mapping[str, str]
) -> GroundedAtom | Refusal:
    """Return a statement as it can be stored, or why it cannot.

    `shown` maps the ids of the current atoms in the question to their texts; the statement may end only these.
    """
    text = one_line(statement.text, MAX_TEXT + 1)
    if not any(character.isalnum() for character in text):
        return Refusal(reason="it says nothing")
    if len(text) > MAX_TEXT:
        return Refusal(reason=f"it is longer than {MAX_TEXT} characters, and a note says one thing")
    evidence = _find_evidence(statement, batch)
    if isinstance(evidence, Refusal):
        return evidence
    passages, remarks = evidence
    if refusal := _why_unfit(statement, text, passages):
        return Refusal(reason=refusal)
    is_verbatim = False
    if statement.kind == "instruction":
        statement, text, remark = _check_rule(statement, text, passages, batch, names)
        if not text:
            return Refusal(reason=remark)
        if remark:
            is_verbatim = True
            remarks = [*remarks, remark]
    turn = passages[0].turn
    said_at = max(passage.turn.said_at for passage in passages) if statement.valid_from else turn.said_at
    times = validity_period(statement.valid_from, statement.valid_to, said_at, lasting=statement.kind != "episodic")
    fact = _fact(statement, names, " ".join([text, *(passage.turn.content for passage in passages)]))
    entity, relation, value = fact if fact and times.now else (None, None, None)
    entities = [entity, *(names.main_name(named.name) for named in statement.entities), *names.mentioned(text)]
    atom = NewAtom(
        kind=statement.kind,
        text=with_its_date(text, turn.said_at),
        priority=statement.priority,
        confidence=IMPLIED if statement.implied else STATED,
        session=turn.session,
        valid_from=times.since,
        valid_to=times.until,
        entity=entity,
        relation=relation,
        value=value,
        supersedes=tuple(dict.fromkeys(id for id in map(str.lower, statement.ends) if id in shown)),
        single_valued=relation is not None and _is_single_valued(relation) and not statement.implied,
        source=most_trusted(map(_source, passages)),
        evidence=tuple(Evidence(turn=part.turn.id, span=part.span, quote=part.text) for part in passages),
        entities=tuple(dict.fromkeys(filter(None, entities)))[:_MAX_ENTITIES],
    )
    if not is_verbatim:
        atom, doubts = _check_words(atom, text, passages, batch, names, shown)
        remarks = [*remarks, *doubts]
    atom = quarantine(atom, _suspicions(statement, atom, passages))
    return GroundedAtom(turn=turn, atom=atom, remarks=(*remarks, *times.notes))


# --- checks against the quoted words ----------------------------------------------------------------


def _check_words(
    atom: NewAtom,
    text: str,
    passages: Sequence[Passage],
    batch: TurnBatch,
    names: Names,
    shown: Mapping[str, str],
) -> tuple[NewAtom, Sequence[str]]:
    """Check the words of an atom against what was said, and return the accepted atom with remarks.

    A statement of the user may be labelled, attributed to the assistant, or replaced by the user's own words. A
    statement of others is quarantined if nobody said it. What the user only quotes is not checked. The texts in `shown`
    count as said.
    """
    if atom.source == "quoted":
        return with_allowed_kind(atom), ()
    turns = [*batch.background, *batch.turns]
    ended = [DatedText(shown[id]) for id in atom.supersedes]
    near = [*(passage.dated for passage in passages), *map(_dated, _answered_turns(turns, passages)), *ended]
    own = [*near, *map(DatedText, shown.values()), *map(_dated, filter(is_person, turns))]
    everyone = [*own, *map(_dated, turns)]
    known_names = _known_names(names)
    strange = [*KnownValues(everyone, known_names).missing(text), *_strange_clauses(text, everyone, known_names)]
    if atom.source != "user":
        if not strange:
            return atom, ()
        remark = f"{one_line(strange[0], 80)!r} stands in nothing that was said; it waits for review"
        return quarantine(atom, ["unsupported"]), [remark]
    clauses = _strange_clauses(text, own, known_names)
    values = [] if clauses else _other_values(text, passages, own, near, known_names)
    if (clauses or values) and not strange:
        return with_allowed_kind(replace(atom, source="assistant")), ()
    if clauses:
        remark = f"{one_line(clauses[0], 80)!r} stands in nothing that was said; the user's words are kept instead"
        first = passages[0]
        atom = replace(atom, text=_own_sentences(first), valid_from=first.turn.said_at, valid_to=None)
        return without_effects(atom), [remark]
    if values:
        remark = f"check {values[0]!r} in {one_line(text, 80)!r}: its quote lacks it"
        return quarantine(atom, ["other_value"]), [remark]
    if _denies_quote(text, passages):
        remark = f"check {one_line(text, 80)!r}: its quote seems to say the opposite"
        return quarantine(atom, ["contradicted"]), [remark]
    return atom, ()


def _other_values(
    text: str, passages: Sequence[Passage], own: Sequence[DatedText], near: Sequence[DatedText], names: Sequence[str]
) -> list[str]:
    """Return the numbers, dates and names of a statement that are missing in its quotes and the texts near them.

    If a statement repeats all numbers of its quotes, other values may come from any of the user's `own` texts.
    """
    quoted_turns = [_dated(passage.turn) for passage in passages if is_person(passage.turn)]
    values = KnownValues([*near, *quoted_turns], names)
    strange = values.missing(text)
    if not strange or any(values.lacks_number_of(passage.text, text) for passage in passages):
        return strange
    return KnownValues(own, names).missing(text)


def _strange_clauses(text: str, texts: Sequence[DatedText], names: Sequence[str]) -> list[str]:
    """Return the clauses of a statement that share no word, except names, and no meaning with any of the texts.

    Clauses of fewer than three words are left out, because few words may be said in other words.
    """
    texts_terms, name_terms = known_terms(*(dated.text for dated in texts)), known_terms(*names)
    strange: list[str] = []
    for clause in filter(None, pattern("CUT").split(without_dates(text))):
        terms = terms_of(clause) - name_terms
        is_strange = len(terms) >= _FEWEST and terms.isdisjoint(texts_terms)
        if is_strange and all(nearest(clause, pieces_of(dated.text)) < _SOME_MEANING for dated in texts):
            strange.append(clause.strip())
    return strange


def _dated(turn: Turn) -> DatedText:
    return DatedText(turn.content, turn.said_at)


def _answered_turns(turns: Sequence[Turn], passages: Sequence[Passage]) -> list[Turn]:
    """Return the assistant's turns before the quoted short turns of the user."""
    quoted = {passage.turn.id for passage in passages}
    return [
        before
        for before, turn in pairwise(turns)
        if turn.id in quoted and turn.role == "user" and len(turn.content) <= _ANSWER and before.role == "assistant"
    ]


def _denies_quote(text: str, passages: Sequence[Passage]) -> bool:
    """Return whether a statement denies what a quote affirms, or the reverse.

    It differs in negation from every clause that the quotes overlap, and shares at least half of the words with one.
    """
    clauses = [clause for passage in passages for clause in _clauses_around(passage)]
    terms, is_denial = known_terms(text), is_negative(text)
    return all(is_negative(clause) != is_denial for clause in clauses) and any(
        share_of(text, known_terms(clause)) >= _SAME_WORDS and share_of(clause, terms) >= _SAME_WORDS
        for clause in clauses
    )


def _is_opposite(text: str, clauses: Sequence[str]) -> bool:
    """Return whether the clauses that share the most words with a text all differ from it in negation."""
    shares = [share_of(text, known_terms(clause)) for clause in clauses]
    nearest_clauses = [clause for clause, share in zip(clauses, shares, strict=True) if share == max(shares)]
    is_denial = is_negative(text)
    return all(is_negative(clause) != is_denial for clause in nearest_clauses)


def _clauses_around(passage: Passage) -> list[str]:
    """Return the clauses that a quote overlaps, and all of them together."""
    content, (first, last) = passage.turn.content, passage.span
    spans: list[tuple[int, int]] = []
    for start, end in _sentences_around(passage):
        cuts = [match.span() for match in pattern("CLAUSE").finditer(content, start, end)]
        edges = [(start, start), *cuts, (end, end)]
        clauses = [(before[1], after[0]) for before, after in pairwise(edges)]
        spans += [clause for clause in clauses if clause[0] < last and clause[1] > first]
    together = [content[spans[0][0] : spans[-1][1]]] if spans else []
    return [*dict.fromkeys([*(content[start:end] for start, end in spans), *together])]


def _known_names(names: Names) -> list[str]:
    aliases = [name for entity in names.known for name in (entity.name, *entity.aliases)]
    user = [*filter(None, [names.user]), *names.introduced]
    return [*user, *names.others, *aliases, *names.relations.values(), *names.everyone]


def _source(passage: Passage) -> Source:
    return "quoted" if passage.turn.role == "user" and _is_quotation(passage) else source_of_turn(passage.turn)


def _is_quotation(passage: Passage) -> bool:
    """Return whether the passage is mostly a quotation of others."""
    own = own_part(passage.turn.content)[slice(*passage.span)]
    return own.count(FILL) > len(own) / 2


# --- the evidence of a statement --------------------------------------------------------------------


def _find_evidence(statement: ExtractedStatement, batch: TurnBatch) -> tuple[list[Passage], list[str]] | Refusal:
    """Return the quoted passages, those of new turns first, and remarks on further quotes that were not found.

    Returns the refusal of the first quote if no new turn has a quote. A further quote may be in the background, such as
    the question that a new turn answers.
    """
    first = _find_quote(statement, batch)
    more = [(quoted, _find_quote(quoted, batch, background=True)) for quoted in statement.more[:_MAX_MORE]]
    passages = [place for place in (first, *(place for _, place in more)) if not isinstance(place, Refusal)]
    new = [passage for passage in passages if passage.turn in batch.turns]
    if not new and isinstance(first, Refusal):
        return first
    remarks = [
        f"{one_line(quoted.quote, 80)!r} is left out: {place.reason}"
        for quoted, place in more
        if isinstance(place, Refusal) and quoted.quote
    ]
    return list(dict.fromkeys([*new, *passages])), remarks


def _find_quote(
    quoted: ExtractedStatement | Quoted, batch: TurnBatch, *, background: bool = False
) -> Passage | Refusal:
    """Return the passage in the named turn, or in the only turn that has the quote; otherwise a refusal."""
    if not quoted.quote:
        return Refusal(reason="it quotes nothing", unquoted=True)
    id = re.sub(r"^\D*", "t", quoted.turn) if re.search(r"\d", quoted.turn) else ""
    turns = [*batch.turns, *(batch.background if background else ())]
    passages = [Passage(turn, span) for turn in turns if (span := _span_of(quoted.quote, turn))]
    named = [passage for passage in passages if passage.turn.id == id]
    if named or len(passages) == 1:
        return (named or passages)[0]
    if passages:
        return Refusal(reason="its words stand in several turns, and none of them is named", unquoted=True)
    if any(_span_of(quoted.quote, turn) for turn in batch.background):
        return Refusal(reason="its words stand in the background, which was read before")
    where = id if any(turn.id == id for turn in batch.turns) else "any of the turns"
    return Refusal(reason=f"its quote does not stand in {where}", unquoted=True)


def _span_of(quote: str, turn: Turn) -> tuple[int, int] | None:
    """Return the span of a quote in a turn's own words; None if it is missing or too short to mean something."""
    own = own_words(typed_text(turn.content) if turn.role == "user" else turn.content)
    span = locate(quote, own)
    if span is None:
        return None
    words = own[slice(*span)]
    weight = sum(2 if character >= "\u2e80" else 1 for character in words if character.isalnum())
    start = turn.content.find(words)
    return (start, start + len(words)) if start >= 0 and (weight >= 2 or words == own) else None


# --- statements that are refused in any case --------------------------------------------------------


def _why_unfit(statement: ExtractedStatement, text: str, passages: Sequence[Passage]) -> str | None:
    if statement.kind == "persona" and not any(is_person(passage.turn) for passage in passages):
        return "what is true of a person has to stand in that person's words, not in the assistant's"
    if 0 <= statement.priority < LEAST[statement.kind]:
        return f"its priority is under {LEAST[statement.kind]}, the least for {statement.kind}"
    is_order = drops(text)
    orders = [passage.turn.id for passage in passages if is_order or _is_in_order(passage)]
    is_report = statement.kind == "episodic" and is_order
    return f"it repeats an order to a model that stands in {orders[0]}" if orders and not is_report else None


def _is_in_order(passage: Passage) -> bool:
    content, (start, end) = passage.turn.content, passage.span
    paragraph = content.rfind("\n\n", 0, start) + 1
    sentence_end = _SENTENCE_END.search(content, end)
    return drops(content[paragraph : sentence_end.start() if sentence_end else len(content)])


def _sentences_around(passage: Passage) -> list[tuple[int, int]]:
    first, last = passage.span
    around = [(start, end) for start, end in sentences(passage.turn.content) if start < last and end > first]
    return around or [passage.span]


def _own_sentences(passage: Passage) -> str:
    """Return the sentences around a passage as a statement."""
    turn, around = passage.turn, _sentences_around(passage)
    return f'{turn.name or USER}: "{one_line(turn.content[around[0][0] : around[-1][1]], MAX_TEXT // 2)}"'


def _check_rule(
    statement: ExtractedStatement, text: str, passages: Sequence[Passage], batch: TurnBatch, names: Names
) -> tuple[ExtractedStatement, str, str]:
    """Return a rule with its text and a remark; the text is empty if the rule quotes no words of the user.

    The model's text is kept if the user's words may be an order or accept an offer, and have all values of the text.
    Unless they accept an offer, the text must also keep their negation and limits. Otherwise the text is the user's own
    words, and if these are no order, the statement becomes an episode.
    """
    users = [passage for passage in passages if passage.turn.role == "user" and not names.is_other(passage.turn)]
    own = [passage for passage in users if not _is_quotation(passage)]
    if not own:
        return statement, "", f"a rule has to stand in the user's own words, and {one_line(text, 80)!r} does not"
    turns = [*batch.background, *batch.turns]
    own_ids = {passage.turn.id for passage in own}
    is_accepted_offer = any(
        turn.id in own_ids and before.role == "assistant" and accepted_offer(before.content, turn.content)
        for before, turn in pairwise(turns)
    )
    sentences = [passage.turn.content[start:end] for passage in own for start, end in _sentences_around(passage)]
    is_joking = any(is_joke(passage.turn.content) for passage in own)
    is_rule = is_accepted_offer or (any(map(may_be_order, sentences)) and not is_joking)
    clauses = [clause for passage in own for clause in _clauses_around(passage)]
    keeps_meaning = is_accepted_offer or not (_is_opposite(text, clauses) or _drops_limit(text, sentences))
    near = [*(passage.dated for passage in own), *map(_dated, _answered_turns(turns, own))]
    if is_rule and keeps_meaning and not _other_values(text, own, near, near, _known_names(names)):
        return statement, text, ""
    change: dict[str, Any] = {"fact": None, "valid_from": None} if is_rule else _A_WISH
    remark = f"{one_line(text, 80)!r} goes beyond the user's words, which are kept instead"
    return statement.model_copy(update=change), _own_sentences(own[0]), remark


def _drops_limit(rule: str, sentences: Sequence[str]) -> bool:
    """Return whether a rule drops a limit of each sentence that it quotes, such as "in project X"."""
    stems = {term[:_STEM] for term in known_terms(rule)}

    def is_dropped(limit: str) -> bool:
        terms = terms_of(limit)
        if not terms or pattern("FOR_GOOD").search(limit):  # "in future" limits nothing
            return False
        return stems.isdisjoint(term[:_STEM] for term in terms) and nearest(limit, pieces_of(rule)) < _LIMIT_MEANING

    limits = [[match[0].strip(" ,:;") for match in pattern("SCOPE").finditer(sentence)] for sentence in sentences]
    return bool(limits) and all(any(map(is_dropped, of_sentence)) for of_sentence in limits)


def _suspicions(statement: ExtractedStatement, atom: NewAtom, passages: Sequence[Passage]) -> list[str]:
    """Return the reasons to quarantine a statement.

    A model wrote its words, so flags for an assistant's text count too, unless a cited turn has them.
    """
    parts = [atom.text, *(name for named in statement.entities for name in (named.name, *named.also))]
    if statement.fact is not None:
        parts += [statement.fact.entity, statement.fact.relation, statement.fact.value]
    text = "\n".join(parts)
    if statement.kind == "instruction":
        return [*flags(text, "user")]  # the user's own words carry it, or it is refused
    cited_flags = {flag for passage in passages for flag in wording_flags(passage.turn.content)} | {
        "keep"
    }  # rules say "keep"
    added = [flag for flag in flags(text, "assistant") if flag not in cited_flags]
    return [*dict.fromkeys([*flags(text, atom.source), *added])]


# --- facts ------------------------------------------------------------------------------------------


def _fact(statement: ExtractedStatement, names: Names, context: str) -> tuple[str, str, str] | None:
    """Return entity, relation and value of the statement's fact, if `context` states it; else None.

    `context` is the text of the statement and of its turns.
    """
    if statement.fact is None or _share_of_words(statement.fact.value, context) < _OF_A_FACT:
        return None
    entity, relation = names.main_name(statement.fact.entity), relation_name(one_line(statement.fact.relation, 60))
    value = one_line(statement.fact.value, 200)
    if not entity or not value or fact_states_rule(relation, value):
        return None
    is_implied = relation in name_words("single-valued") - _ALWAYS_NAMED
    return (entity, relation, value) if is_implied or _names_relation(context, relation, value) else None


def _share_of_words(text: str, context: str) -> float:
    words = set(base_terms(text)) & set(query_terms(text))
    return len(words & set(base_terms(context))) / len(words) if words else 1.0


def _names_relation(context: str, relation: str, value: str) -> bool:
    """Return whether a text names a fact's relation: by its words, or by a similar meaning."""
    relation = relation.replace("_", " ")
    terms, words = terms_of(relation), words_in(relation)
    if terms and terms <= known_terms(context):
        return True
    context_words = list(dict.fromkeys(words_in(context)))[:_WORDS_READ]
    content_words = [word for word in words if word.lower() not in function_words_of(words)]
    if min((nearest(word, context_words) for word in content_words), default=0.0) >= _RELATION_WORD:
        return True
    return nearest(f"{relation} {value}", pieces_of(context)) >= _RELATION


def _is_single_valued(relation: str) -> bool:
    return relation != "status" and relation in name_words("single-valued")  # models call many things a status
