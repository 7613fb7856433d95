"""L1, extraction: reads the next turns of a session once, and stores durable statements as drafts of atoms.

One question for each batch of turns. Drafts, names of entities and the cursors of the sessions are committed together.
A batch is the next turns with content of one session, with some earlier turns as background; where there is room left,
short sessions near it that wait too. The same positions always give the same batch. The question shows current
statements that the turns may repeat or end, so that it is not asked twice what they mean. Turns go to the model as data
behind tags that nothing in them can close; very long ones are cut in the middle.

`statements` reads the reply, `grounding` checks each statement, `names` and `times` resolve who and when.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import nlargest
from typing import TypeAlias

from pydantic import BaseModel

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Turn
from mcp_memory.language.sentences import sentences
from mcp_memory.language.words import fold, languages_of, query_terms
from mcp_memory.longterm.grounding import GroundedAtom, Refusal, grounded
from mcp_memory.longterm.names import MAX_NAME, USER, Names, entities_in, is_person, names_in, names_table, with_told
from mcp_memory.longterm.quotes import locate
from mcp_memory.longterm.search.known import judge
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.statements import Extracted, ExtractedStatement, NamedEntity, Triple, relation_name
from mcp_memory.longterm.times import date_of
from mcp_memory.longterm.turns import own_words, small_talk_kind
from mcp_memory.models.metered import Applied, ModelQuestion, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import UNJUDGED, Backlog, Extraction, Filters, Work

MAX_ATOMS = 60
_REPLY_TOKENS = 6_000


class SessionPart(BaseModel):
    """Turns of a session from position `start` up to `stop`, without it."""

    session: str
    start: int
    stop: int


class ExtractionBasis(BaseModel):
    """The turns of a batch, oldest session first, and the current atoms shown beside them."""

    parts: list[SessionPart] = []
    held: list[str] = []


# --- asking -----------------------------------------------------------------------------------------


def plan(context: SearchContext, *, session: str | None, smaller: int) -> ExtractionBasis | None:
    """Return the batch that begins where the session was read to; None where nothing was said since."""
    waiting = {one.session: one for one in context.store.backlog(context.space)}
    first = waiting.pop(session or "", None)
    if first is None:
        return None
    most = max(1, context.settings.batch_turns >> smaller)
    batches = [_next_batch(context, first, most)]
    if not smaller:  # else a session that no model can read would keep others from being read
        batches += _short_sessions(
            context, first, waiting.values(), most - len(batches[0].turns), batches[0].characters
        )
    batches.sort(key=lambda batch: (batch.turns[0].said_at if batch.turns else context.now, batch.parts[0].session))
    parts = [part for batch in batches for part in batch.parts if part.stop > part.start]
    return ExtractionBasis(parts=parts, held=_near_statements(context, parts)) if parts else None


def _next_batch(context: SearchContext, waits: Backlog, most: int) -> TurnBatch:
    part = SessionPart(session=waits.session, start=waits.start, stop=waits.start + _MOST_READ)
    return read_batch(context.store, context.space, [part], most=most)


def _short_sessions(
    context: SearchContext, first: Backlog, others: Iterable[Backlog], room: int, characters: int
) -> Iterator[TurnBatch]:
    """Yield whole sessions that have ended and fit into the question too, those that were said nearest first.

    A session has ended some time after its last turn was said: those of an import have when they come.
    """
    ended = context.now - timedelta(seconds=context.settings.idle_seconds)
    short = sorted((one for one in others if one.turns <= room), key=lambda one: abs(one.last - first.last))
    start = _begins(context, first)
    for waits in sorted(short[:_SHORT_SESSIONS], key=lambda one: (abs(_begins(context, one) - start), one.session)):
        if waits.turns > room:
            continue
        batch = _next_batch(context, waits, room)
        last = max((turn.said_at for turn in batch.turns), default=waits.last)
        if characters + batch.characters <= MAX_CHARS and (last <= ended or waits.flush > waits.start):
            room, characters = room - len(batch.turns), characters + batch.characters
            yield batch


_SHORT_SESSIONS = 40  # looked at for one question


def _begins(context: SearchContext, waits: Backlog) -> datetime:
    """Return when the first unread turn of a session was said."""
    turns = context.store.session_turns(context.space, waits.session, start=waits.start, limit=1)
    return turns[0].said_at if turns else waits.last


_HELD = 24  # statements shown beside the turns
_HELD_FOR_ONE = 3  # of their sentences
_HELD_CHARS = 200


def _near_statements(context: SearchContext, parts: Sequence[SessionPart]) -> list[str]:
    """Return the ids of the current atoms that turns may repeat or end.

    These are all of a small memory, else the most probable ones for each of the sentences, alone and after the one
    before: a turn may speak of three things, or say "only two of them" of what was named before. Then come those of
    the entities that the sessions have named.
    """
    current = Filters(unheld=True)
    few = context.store.list_atoms(context.space, filters=current, limit=_HELD + 1)
    if len(few) <= _HELD:
        return sorted((atom.id for atom in few), key=_number)
    chances: dict[str, float] = {}
    context = context.cached()
    batches = [
        read_batch(context.store, context.space, [part], background=context.settings.background_turns) for part in parts
    ]
    for text in dict.fromkeys(text for batch in batches for text in _sentences_with_context(batch)):
        hits = context.hits("atom", text, filters=current, limit=_HELD_FOR_ONE)
        judged = judge(context.store, context.space, text, (), hits, embed=context.of_query, at=context.now)
        for id, chance in judged.rows.items():
            chances[id] = max(chances.get(id, 0.0), chance)
    named = "\n".join(turn.content for batch in batches for turn in (*batch.background, *batch.turns))
    for entity in entities_in(context.store, context.space, named)[:_HELD]:
        if fold(entity) != USER:
            about = context.store.list_atoms(
                context.space, filters=Filters(entity=entity, unheld=True), limit=_HELD_FOR_ONE
            )
            chances = {atom.id: 0.0 for atom in about} | chances
    return sorted(nlargest(_HELD, chances, key=lambda id: (chances[id], _number(id))), key=_number)


def _sentences_with_context(batch: TurnBatch) -> Iterator[str]:
    """Yield the new sentences of people that say something, each alone and after the one before, whoever said that."""
    before = ""
    new = {turn.id for turn in batch.turns}
    for turn in (*batch.background, *batch.turns):
        text = own_words(turn.content)[:BACKGROUND_CHARS]
        for start, end in sentences(text):
            sentence = text[start:end]
            if turn.id in new and is_person(turn) and query_terms(sentence):
                yield sentence
                if before:
                    yield f"{before} {sentence}"
            before = sentence


def _number(id: str) -> int:
    return int(id[1:])


def question(context: SearchContext, basis: ExtractionBasis) -> ModelQuestion[Extracted] | None:
    """Return the model's question about the batch; None if all of it is noise."""
    batch = _read_basis(context, basis)
    if not batch.turns:
        return None
    names = names_in(context.store, context.space, [*batch.background, *batch.turns])
    held = [atom for atom in context.store.atoms(context.space, basis.held) if atom.valid_to is None]
    return ModelQuestion(
        purpose="extract",
        messages=prompt(
            "extract",
            people=_people(names),
            known=names_table(names),
            held="\n".join(map(_held_line, held)) or "nothing",
            background=shown(batch.background, background=True),
            turns=shown(batch.turns),
            most=str(MAX_ATOMS),
        ),
        reply=Extracted,
        max_tokens=_REPLY_TOKENS,
    )


def _held_line(atom: Atom) -> str:
    text = fenced(one_line(atom.text, _HELD_CHARS), *_TAGS)
    return f"{atom.id} {date_of(atom.valid_from, atom.text)}: {text}"


def _read_basis(context: SearchContext, basis: ExtractionBasis) -> TurnBatch:
    return read_batch(context.store, context.space, basis.parts, background=context.settings.background_turns)


def _people(names: Names) -> str:
    lines = [
        f"The user is {names.user}: call them so."
        if names.user
        else 'The user has told no name: call them "the user", in the language of the turns. Note a name they tell.'
    ]
    for name in names.others:
        known = f" A {names.relations[name]} of the user." if name in names.relations else ""
        lines.append(f"{name}: they speak too, for themselves; call them by this name.{known}")
    if len(names.others) > len(names.relations):
        lines.append(
            'What others are to the user, such as a friend, is worth one note ("implied") if the turns show it.'
        )
    return one_line(" ".join(lines).replace("<", " "), 600)


# --- answering --------------------------------------------------------------------------------------


def apply(context: SearchContext, work: Work, basis: ExtractionBasis, reply: Extracted | None) -> Applied:
    """Store the valid part of the reply, and mark these turns as read.

    Raises InvalidInput if nothing is valid because quotes are missing, or all is in a language that no speaker used. A
    job that failed before is accepted with whatever it gives, so that a weak model does not block a session forever.
    """
    batch = _read_basis(context, basis)
    names = names_in(context.store, context.space, [*batch.background, *batch.turns])
    statements = reply.notes if reply else []
    names = with_told(names, context.store, context.space, [one.text for one in statements])
    aliases = _aliases(statements, names)
    if own := aliases.get(USER):  # a name that is told here counts for all statements of the reply
        names = replace(names, user=names.user or own[0], introduced=(*names.introduced, *own))
    shown = {atom.id: atom.text for atom in context.store.atoms(context.space, basis.held)}
    judged = [(one, grounded(one, batch, names, shown=shown)) for one in statements]
    if work.attempts == 0:
        _demand(judged, batch)
    kept, refused = _sorted_out(judged)
    outcome = {"turns": batch.read, "skipped": batch.skipped, "held": batch.quarantined}
    outcome |= {"atoms": len(kept), "refused": len(refused)}
    context.store.commit(
        context.space,
        work.id,
        Extraction(
            upto={part.session: part.stop for part in basis.parts},
            drafts=[one.atom for one in kept],
            aliases=aliases,
        ),
        outcome=outcome,
        now=context.now,
    )
    return Applied(
        outcome=outcome,
        kept=[f"{one.turn.id}: {one.atom.text}" for one in kept],
        refused=[*refused, *(f"{one.turn.id}: {told}" for one in kept for told in one.told)],
    )


Judged: TypeAlias = "Sequence[tuple[ExtractedStatement, GroundedAtom | Refusal]]"


def _demand(judged: Judged, batch: TurnBatch) -> None:
    """Raise InvalidInput where the reply is worth mending as a whole."""
    unquoted = [(one, found) for one, found in judged if isinstance(found, Refusal) and found.unquoted]
    if judged and len(unquoted) == len(judged):
        statement, why = unquoted[0]
        raise InvalidInput(
            f"None of the {len(judged)} notes can be kept: {why.reason} ({one_line(statement.quote, 80)!r}). Copy each "
            "quote letter by letter from the turn that `turn` names, and name new turns only."
        )
    texts = [found.atom.text for _, found in judged if isinstance(found, GroundedAtom)]
    if texts and in_a_strange_language(texts, [turn.content for turn in (*batch.background, *batch.turns)]):
        raise InvalidInput(
            "The notes are in another language than the conversation. Write name and text in the language of the turns."
        )


def _sorted_out(judged: Judged) -> tuple[list[GroundedAtom], list[str]]:
    held: dict[str, GroundedAtom] = {}
    refused: list[str] = []
    for statement, found in judged:
        if isinstance(found, Refusal):
            refused.append(f"{one_line(statement.text, 80)!r} is not kept: {found.reason}.")
            continue
        key = fold(found.atom.text)
        if key in held:
            evidence = dict.fromkeys((*held[key].atom.evidence, *found.atom.evidence))
            found = replace(held[key], atom=replace(held[key].atom, evidence=tuple(evidence)))
        held[key] = found
    by_weight = sorted(held.values(), key=_weight, reverse=True)
    most = {id(one) for one in by_weight[:MAX_ATOMS]}
    refused += [
        f"{one_line(one.atom.text, 80)!r} is not kept: a batch has at most {MAX_ATOMS} notes, and others weigh more."
        for one in by_weight[MAX_ATOMS:]
    ]
    return [one for one in held.values() if id(one) in most], refused


def _weight(kept: GroundedAtom) -> int:
    """Return a priority such that what always applies comes first."""
    return kept.atom.priority if kept.atom.priority >= 0 else 101


def _aliases(statements: Iterable[ExtractedStatement], names: Names) -> dict[str, Sequence[str]]:
    """Return the further names that were said of entities, and the user's own."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    if names.user:
        found[USER][names.user] = None
    for statement in statements:
        for named in [*statement.entities, *_told_name(statement, names)]:
            for alias in _said_aliases(named, names):
                found[names.chief(named.name) or named.name][alias] = None
    return {name: tuple(aliases) for name, aliases in found.items()}


def _told_name(statement: ExtractedStatement, names: Names) -> list[NamedEntity]:
    """Return the user under the name that a fact of the statement tells."""
    match statement.fact:
        case Triple(entity=entity, relation=relation, value=name) if relation_name(relation) == "name":
            return [NamedEntity(name=USER, also=[name])] if names.chief(entity) == USER else []
        case _:
            return []


def _said_aliases(named: NamedEntity, names: Names) -> list[str]:
    """Return the further names of an entity that were really said and belong to no other entity."""
    chief = names.chief(named.name)
    if chief is None:
        return []
    given = [name for also in named.also if (name := one_line(also, MAX_NAME))]
    new = [name for name in given if names.chief(name) == name and fold(name) != fold(chief)]
    return [name for name in dict.fromkeys(new) if locate(name, names.said) and names.may_be(chief, name)]


MAX_CHARS = 24_000  # of a batch
TURN_CHARS = {"user": 6_000, "assistant": 600}  # an assistant's turns are long, and seldom evidence
BACKGROUND_CHARS = 500  # of a turn that was read before
_MOST_READ = 1_000  # turns at once, where nearly all are noise
_PAGE = 100
_LOOK_BACK = 40
_TALK = ("user", "assistant")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBatch:
    """Turns to extract from, which are new and say something.

    `read` counts all that people and assistants said; of these, `skipped` is small talk and `quarantined` waits for
    review.
    """

    turns: Sequence[Turn]
    background: Sequence[Turn]
    read: int
    skipped: int
    quarantined: int
    parts: Sequence[SessionPart]
    """The positions that are passed, session by session."""

    @property
    def characters(self) -> int:
        return sum(len(_shortened(turn)) for turn in self.turns)


def read_batch(
    store: Store, space: str, parts: Sequence[SessionPart], *, most: int | None = None, background: int = 0
) -> TurnBatch:
    """Return the batch of these parts; with `most` each ends after so many turns that are not small talk."""
    batches = [_read_part(store, space, part, most=most, background=background) for part in parts]
    return TurnBatch(
        turns=[turn for batch in batches for turn in batch.turns],
        background=[turn for batch in batches for turn in batch.background],
        read=sum(batch.read for batch in batches),
        skipped=sum(batch.skipped for batch in batches),
        quarantined=sum(batch.quarantined for batch in batches),
        parts=[part for batch in batches for part in batch.parts],
    )


def _read_part(store: Store, space: str, part: SessionPart, *, most: int | None, background: int) -> TurnBatch:
    back = max(0, part.start - _LOOK_BACK)
    earlier = _turns(store, space, part.session, back, part.start)
    before = [turn for turn, reasons in earlier if turn.role in _TALK and not reasons]
    said = list(before)
    new: list[Turn] = []
    read = skipped = quarantined = characters = 0
    end = part.start
    for turn, reasons in _turns(store, space, part.session, part.start, part.stop):
        if turn.role in _TALK:
            if UNJUDGED in reasons:
                break  # it is read once it has been judged
            is_quarantined = bool(reasons)
            is_chatter = not is_quarantined and small_talk_kind(turn.content, said[-1] if said else None) is not None
            is_read = not (is_quarantined or is_chatter)
            size = len(_shortened(turn))
            full = most is not None and new and (len(new) == most or characters + size > MAX_CHARS)
            if full and is_read:
                break
            said.append(turn)
            read, skipped, quarantined = read + 1, skipped + is_chatter, quarantined + is_quarantined
            if is_read:
                new.append(turn)
                characters += size
        end = turn.position + 1
    telling: list[Turn] = []
    if background:
        pairs = zip(before, [None, *before], strict=False)
        telling = [turn for turn, prior in pairs if small_talk_kind(turn.content, prior) is None][-background:]
    passed = SessionPart(session=part.session, start=part.start, stop=end)
    return TurnBatch(turns=new, background=telling, read=read, skipped=skipped, quarantined=quarantined, parts=[passed])


def _turns(store: Store, space: str, session: str, start: int, stop: int) -> Iterator[tuple[Turn, Sequence[str]]]:
    """Yield the turns between two positions, each with the reasons for which it is quarantined."""
    while start < stop:
        page = store.session_turns(space, session, start=start, limit=min(_PAGE, stop - start))
        rows = store.quarantined(space, [turn.id for turn in page])
        reasons = {row.id: row.reasons for row in rows if row.is_quarantined}
        yield from ((turn, reasons.get(turn.id, ())) for turn in page if turn.position < stop)
        if not page:
            return
        start = page[-1].position + 1


# --- as a model reads them --------------------------------------------------------------------------


_TAGS = ("turns?", "background", "known", "held", "people", "question", "day", "session", r"t\d+")


def shown(turns: Sequence[Turn], *, background: bool = False) -> str:
    """Return turns as the question shows them: their day where it changes, and each with its id and speaker."""
    lines: list[str] = []
    day = session = None
    for turn in turns:
        if turn.session != session and session is not None:
            lines.append("<session>another conversation</session>")
        if (turn.session, turn.said_at.date()) != (session, day):
            lines.append(f"<day>{turn.said_at:%Y-%m-%d %A}</day>")
        session, day = turn.session, turn.said_at.date()
        lines.append(_shown(turn, background=background))
    return "\n".join(lines) or "none"


def _shown(turn: Turn, *, background: bool) -> str:
    # Without its id a turn of the background cannot be cited.
    id = "turn" if background else turn.id
    text = _cut(own_words(turn.content), BACKGROUND_CHARS) if background else _shortened(turn)
    return f"<{id} {speaker(turn)}> {fenced(text, *_TAGS)}"


def speaker(turn: Turn) -> str:
    name = one_line(re.sub(r'[<>"&]', " ", turn.name or ""), 40)
    return f"{name} ({turn.role})" if name else turn.role


def _shortened(turn: Turn) -> str:
    return _cut(own_words(turn.content), TURN_CHARS[turn.role])


def _cut(text: str, limit: int) -> str:
    """Return the text without its middle where it is longer than `limit`."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"


_TELLING_WORDS = 12
_A_TRACE = 0.02  # of the letters; less of a script is names and quotes


def in_a_strange_language(texts: Sequence[str], turns: Sequence[str]) -> bool:
    """Return whether most of the texts is in a script, or all in a language, that no turn has."""
    script, spoken = _scripts(texts), _scripts(turns)
    if script and spoken[script.most_common(1)[0][0]] < _A_TRACE * spoken.total():
        return True
    words = " ".join(texts).split()
    languages = set(languages_of(words)) if len(words) >= _TELLING_WORDS else set[str]()
    heard = {language for turn in turns for language in languages_of(turn.split())}
    return bool(languages and heard) and languages.isdisjoint(heard)


def _scripts(texts: Sequence[str]) -> Counter[str]:
    """Return how many letters of each script texts have; Chinese and Japanese share theirs."""
    letters = (character for text in texts for character in text if character.isalpha())
    names = (unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    return Counter("CJK" if name in ("HIRAGANA", "KATAKANA") else name for name in names)


EXTRACT = StageDefinition(
    name="extract", basis=ExtractionBasis, reply=Extracted, plan=plan, question=question, apply=apply
)
