"""L1, extraction: reads the next turns of a session once, and stores durable statements as drafts of atoms.

The model is asked once per batch of turns. Drafts, names of entities and the cursors of the sessions are committed
together. A batch is the next turns with content of a session, with some earlier turns as background; if there is room
left, it also has short waiting sessions that are near in time. The same positions always give the same batch. The
question also shows current statements that the turns may repeat or end, so that merging need not ask about these
again. Turns go to the model as data between tags that nothing in them can close; very long turns are cut in the middle.

`statements` reads the reply, `grounding` checks each statement, `names` and `validity` resolve who and when.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from heapq import nlargest
from typing import TypeAlias

from pydantic import BaseModel

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Turn
from mcp_memory.language.sentences import sentences
from mcp_memory.language.words import fold, languages_of, query_terms
from mcp_memory.longterm.grounding import GroundedAtom, Refusal, ground_statement
from mcp_memory.longterm.names import (
    MAX_NAME,
    USER,
    Names,
    entities_in,
    is_person,
    names_in,
    names_table,
    with_stated_names,
)
from mcp_memory.longterm.quotes import locate
from mcp_memory.longterm.search.answerability import judge
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.statements import Extracted, ExtractedStatement, NamedEntity, Triple, relation_name
from mcp_memory.longterm.turn_batches import (
    BACKGROUND_CHARS,
    MAX_CHARS,
    MOST_READ,
    SessionPart,
    TurnBatch,
    cut_middle,
    read_batch,
    shorten,
)
from mcp_memory.longterm.turns import own_words
from mcp_memory.longterm.validity import date_of
from mcp_memory.models.metered import Applied, ModelQuestion, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.store.sql import atom_rows, job_rows, stage_outputs, turn_rows
from mcp_memory.store.values import Backlog, Extraction, Filters, Work

MAX_ATOMS = 60
_REPLY_TOKENS = 6_000


class ExtractionBasis(BaseModel):
    """The turns of a batch, oldest session first, and the ids of the current atoms shown with them (`held`)."""

    parts: list[SessionPart] = []
    held: list[str] = []


# --- asking -----------------------------------------------------------------------------------------


def plan(context: SearchContext, *, session: str | None, smaller: int) -> ExtractionBasis | None:
    """Return the batch that begins at the cursor of the session; None if nothing was said since.

    Short sessions that fit are added, unless an attempt has failed (`smaller`).
    """
    waiting = {backlog.session: backlog for backlog in context.store.read(context.space, job_rows.backlog)}
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
    part = SessionPart(session=waits.session, start=waits.start, stop=waits.start + MOST_READ)
    return read_batch(context.store, context.space, [part], most=most)


def _short_sessions(
    context: SearchContext, first: Backlog, others: Iterable[Backlog], room: int, characters: int
) -> Iterator[TurnBatch]:
    """Yield other sessions to add to the question: those that have ended and still fit in whole, nearest in time first.

    A session has ended when its last turn was said `idle_seconds` ago, or when its extraction was requested (`flush`).
    """
    ended = context.now - timedelta(seconds=context.settings.idle_seconds)
    short = sorted((waits for waits in others if waits.turns <= room), key=lambda waits: abs(waits.last - first.last))
    start = _start_time(context, first)
    nearest = sorted(
        short[:_SHORT_SESSIONS], key=lambda waits: (abs(_start_time(context, waits) - start), waits.session)
    )
    for waits in nearest:
        if waits.turns > room:
            continue
        batch = _next_batch(context, waits, room)
        last = max((turn.said_at for turn in batch.turns), default=waits.last)
        if characters + batch.characters <= MAX_CHARS and (last <= ended or waits.flush > waits.start):
            room, characters = room - len(batch.turns), characters + batch.characters
            yield batch


_SHORT_SESSIONS = 40  # looked at for one question


def _start_time(context: SearchContext, waits: Backlog) -> datetime:
    """Return when the first unread turn of a session was said."""
    turns = context.store.read(context.space, turn_rows.session_turns, waits.session, start=waits.start, limit=1)
    return turns[0].said_at if turns else waits.last


_SHOWN = 24  # statements shown with the turns
_PER_SENTENCE = 3
_SHOWN_CHARS = 200


def _near_statements(context: SearchContext, parts: Sequence[SessionPart]) -> list[str]:
    """Return the ids of at most 24 current atoms that the turns may repeat or end, the oldest first.

    In a small memory these are all atoms. In a larger memory they are the most probable atoms for each sentence, alone
    and after the sentence before, because a turn may speak of three things, or say "only two of them" of things named
    before. Atoms about the entities that the turns name fill the remaining places.
    """
    current = Filters(unheld=True)
    few = context.store.read(context.space, atom_rows.list_atoms, filters=current, limit=_SHOWN + 1)
    if len(few) <= _SHOWN:
        return sorted((atom.id for atom in few), key=_number)
    chances: dict[str, float] = {}
    context = context.cached()
    batches = [
        read_batch(context.store, context.space, [part], background=context.settings.background_turns) for part in parts
    ]
    for text in dict.fromkeys(text for batch in batches for text in _sentences_with_context(batch)):
        hits = context.hits("atom", text, filters=current, limit=_PER_SENTENCE, is_question=False)
        judged = judge(context.store, context.space, text, (), hits, embed=context.of_query, at=context.now)
        for id, chance in judged.rows.items():
            chances[id] = max(chances.get(id, 0.0), chance)
    named = "\n".join(turn.content for batch in batches for turn in (*batch.background, *batch.turns))
    for entity in entities_in(context.store, context.space, named)[:_SHOWN]:
        if fold(entity) != USER:
            about = context.store.read(
                context.space, atom_rows.list_atoms, filters=Filters(entity=entity, unheld=True), limit=_PER_SENTENCE
            )
            chances = {atom.id: 0.0 for atom in about} | chances
    return sorted(nlargest(_SHOWN, chances, key=lambda id: (chances[id], _number(id))), key=_number)


def _sentences_with_context(batch: TurnBatch) -> Iterator[str]:
    """Yield each new sentence of a person, alone and after the previous sentence of any speaker."""
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
    """Return the question about the batch; None if all of it is small talk or quarantined."""
    batch = _read_basis(context, basis)
    if not batch.turns:
        return None
    names = names_in(context.store, context.space, [*batch.background, *batch.turns])
    current = [
        atom for atom in context.store.read(context.space, atom_rows.by_ids, basis.held) if atom.valid_to is None
    ]
    return ModelQuestion(
        purpose="extract",
        messages=prompt(
            "extract",
            people=_people(names),
            known=names_table(names),
            held="\n".join(map(_atom_line, current)) or "nothing",
            background=turn_lines(batch.background, background=True),
            turns=turn_lines(batch.turns),
            most=str(MAX_ATOMS),
        ),
        reply=Extracted,
        max_tokens=_REPLY_TOKENS,
    )


def _atom_line(atom: Atom) -> str:
    text = fenced(one_line(atom.text, _SHOWN_CHARS), *_TAGS)
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
        relation = f" A {names.relations[name]} of the user." if name in names.relations else ""
        lines.append(f"{name}: they speak too, for themselves; call them by this name.{relation}")
    if len(names.others) > len(names.relations):
        lines.append(
            'What others are to the user, such as a friend, is worth one note ("implied") if the turns show it.'
        )
    return one_line(" ".join(lines).replace("<", " "), 600)


# --- answering --------------------------------------------------------------------------------------


def apply(context: SearchContext, work: Work, basis: ExtractionBasis, reply: Extracted | None) -> Applied:
    """Store the valid part of the reply, and mark these turns as read.

    Raises InvalidInput if every statement fails for its quote, or if they are in a language that no speaker used.
    After a failed attempt any reply is accepted, so that a weak model does not block a session forever.
    """
    batch = _read_basis(context, basis)
    names = names_in(context.store, context.space, [*batch.background, *batch.turns])
    statements = reply.notes if reply else []
    names = with_stated_names(names, context.store, context.space, [statement.text for statement in statements])
    aliases = _aliases(statements, names)
    if own := aliases.get(USER):  # a name introduced in this reply applies to all its statements
        names = replace(names, user=names.user or own[0], introduced=(*names.introduced, *own))
    shown = {atom.id: atom.text for atom in context.store.read(context.space, atom_rows.by_ids, basis.held)}
    results = [(statement, ground_statement(statement, batch, names, shown=shown)) for statement in statements]
    if work.attempts == 0:
        _check_reply(results, batch)
    kept, refused = _select(results)
    outcome = {"turns": batch.read, "skipped": batch.skipped, "held": batch.quarantined}
    outcome |= {"atoms": len(kept), "refused": len(refused)}
    extraction = Extraction(
        upto={part.session: part.stop for part in basis.parts},
        drafts=[grounded.atom for grounded in kept],
        aliases=aliases,
    )
    context.store.write(context.space, stage_outputs.commit, work.id, extraction, outcome=outcome, now=context.now)
    remarks = [f"{grounded.turn.id}: {remark}" for grounded in kept for remark in grounded.remarks]
    return Applied(
        outcome=outcome,
        kept=[f"{grounded.turn.id}: {grounded.atom.text}" for grounded in kept],
        refused=[*(reply.dropped_items if reply else ()), *refused, *remarks],
    )


Results: TypeAlias = "Sequence[tuple[ExtractedStatement, GroundedAtom | Refusal]]"


def _check_reply(results: Results, batch: TurnBatch) -> None:
    """Raise InvalidInput if no quote was found, or if the statements are in a language that no speaker used."""
    unquoted = [(statement, result) for statement, result in results if isinstance(result, Refusal) and result.unquoted]
    if results and len(unquoted) == len(results):
        statement, refusal = unquoted[0]
        raise InvalidInput(
            f"None of the {len(results)} notes can be kept: {refusal.reason} ({one_line(statement.quote, 80)!r}). Copy "
            "each quote letter by letter from the turn that `turn` names, and name new turns only."
        )
    texts = [result.atom.text for _, result in results if isinstance(result, GroundedAtom)]
    if texts and is_in_strange_language(texts, [turn.content for turn in (*batch.background, *batch.turns)]):
        raise InvalidInput(
            "The notes are in another language than the conversation. Write name and text in the language of the turns."
        )


def _select(results: Results) -> tuple[list[GroundedAtom], list[str]]:
    """Return at most `MAX_ATOMS` atoms to keep, duplicates joined with their evidence, and why the rest was refused."""
    atoms: dict[str, GroundedAtom] = {}
    refused: list[str] = []
    for statement, result in results:
        if isinstance(result, Refusal):
            refused.append(f"{one_line(statement.text, 80)!r} is not kept: {result.reason}.")
            continue
        key = fold(result.atom.text)
        if same := atoms.get(key):
            evidence = dict.fromkeys((*same.atom.evidence, *result.atom.evidence))
            result = replace(same, atom=replace(same.atom, evidence=tuple(evidence)))
        atoms[key] = result
    for key in sorted(atoms, key=lambda key: _weight(atoms[key]), reverse=True)[MAX_ATOMS:]:
        text = one_line(atoms.pop(key).atom.text, 80)
        refused.append(f"{text!r} is not kept: a batch has at most {MAX_ATOMS} notes, and others weigh more.")
    return list(atoms.values()), refused


def _weight(grounded: GroundedAtom) -> int:
    """Return the priority as a sort key. Standing instructions (-1) rank highest."""
    return grounded.atom.priority if grounded.atom.priority >= 0 else 101


def _aliases(statements: Iterable[ExtractedStatement], names: Names) -> dict[str, Sequence[str]]:
    """Return the further names of entities by main name; the user's own name is a further name of `user`."""
    aliases: defaultdict[str, dict[str, None]] = defaultdict(dict)
    if names.user:
        aliases[USER][names.user] = None
    for statement in statements:
        for named in [*statement.entities, *_users_name(statement, names)]:
            for alias in _stated_aliases(named, names):
                aliases[names.main_name(named.name) or named.name][alias] = None
    return {name: tuple(further) for name, further in aliases.items()}


def _users_name(statement: ExtractedStatement, names: Names) -> list[NamedEntity]:
    """Return the user with the name that the statement's fact gives them; empty if the fact is not the user's name."""
    match statement.fact:
        case Triple(entity=entity, relation=relation, value=name) if relation_name(relation) == "name":
            return [NamedEntity(name=USER, also=[name])] if names.main_name(entity) == USER else []
        case _:
            return []


def _stated_aliases(named: NamedEntity, names: Names) -> list[str]:
    """Return the further names of an entity that the turns have and no other entity has; none for the assistant."""
    main_name = names.main_name(named.name)
    if main_name is None:
        return []
    aliases = dict.fromkeys(alias for also in named.also if (alias := one_line(also, MAX_NAME)))
    new = [alias for alias in aliases if names.main_name(alias) == alias and fold(alias) != fold(main_name)]
    return [alias for alias in new if locate(alias, names.text) and names.may_be(main_name, alias)]


# --- as a model reads them --------------------------------------------------------------------------


_TAGS = ("turns?", "background", "known", "held", "people", "question", "day", "session", r"t\d+")


def turn_lines(turns: Sequence[Turn], *, background: bool = False) -> str:
    """Return turns for a question, each with its id and speaker, below a line for each day; "none" without turns.

    With `background` they have no ids, so that they cannot be cited.
    """
    lines: list[str] = []
    day = session = None
    for turn in turns:
        if turn.session != session and session is not None:
            lines.append("<session>another conversation</session>")
        if (turn.session, turn.said_at.date()) != (session, day):
            lines.append(f"<day>{turn.said_at:%Y-%m-%d %A}</day>")
        session, day = turn.session, turn.said_at.date()
        lines.append(_turn_line(turn, background=background))
    return "\n".join(lines) or "none"


def _turn_line(turn: Turn, *, background: bool) -> str:
    # Without its id a turn of the background cannot be cited.
    id = "turn" if background else turn.id
    text = cut_middle(own_words(turn.content), BACKGROUND_CHARS) if background else shorten(turn)
    return f"<{id} {speaker(turn)}> {fenced(text, *_TAGS)}"


def speaker(turn: Turn) -> str:
    name = one_line(re.sub(r'[<>"&]', " ", turn.name or ""), 40)
    return f"{name} ({turn.role})" if name else turn.role


_ENOUGH_WORDS = 12
_A_TRACE = 0.02  # share of the letters; a smaller share of a script comes from names and quotes


def is_in_strange_language(texts: Sequence[str], turns: Sequence[str]) -> bool:
    """Return whether the turns hardly have the main script of the texts, or have none of their languages.

    Languages are compared only if the texts have at least 12 words.
    """
    script, spoken = _scripts(texts), _scripts(turns)
    if script and spoken[script.most_common(1)[0][0]] < _A_TRACE * spoken.total():
        return True
    words = " ".join(texts).split()
    languages = set(languages_of(words)) if len(words) >= _ENOUGH_WORDS else set[str]()
    spoken_languages = {language for turn in turns for language in languages_of(turn.split())}
    return bool(languages and spoken_languages) and languages.isdisjoint(spoken_languages)


def _scripts(texts: Sequence[str]) -> Counter[str]:
    """Return how many letters of each script the texts have. Chinese and Japanese count as a single script."""
    letters = (character for text in texts for character in text if character.isalpha())
    names = (unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    return Counter("CJK" if name in ("HIRAGANA", "KATAKANA") else name for name in names)


EXTRACT = StageDefinition(
    name="extract", basis=ExtractionBasis, reply=Extracted, plan=plan, question=question, apply=apply
)
