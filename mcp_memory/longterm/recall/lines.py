"""The lines of recall, one for each row: an id, a date or speaker, and the text, cut around the words of the question.

Secrets are masked and relative dates resolved. `mark_suspects` marks lines that read like an attack; they are not
shown. `distinct_turns` selects the turns that get a line: no small talk, no repetitions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from itertools import chain, repeat
from types import MappingProxyType
from typing import TypeVar, get_args

from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import day_in_words, one_line, without_bullet
from mcp_memory.core.types import ATTRIBUTION, SAID_BY, Atom, Fact, ResultHit, Role, Scene, Source, Turn
from mcp_memory.language.when.annotate import with_dates
from mcp_memory.language.when.intervals import local
from mcp_memory.language.words import fold
from mcp_memory.longterm.recall.line import BEFORE_THAT, Group, RecallLine, excerpt_of, head_of
from mcp_memory.longterm.search.search import Ranked, SearchContext
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.longterm.validity import date_of, span_of, time_note
from mcp_memory.longterm.verification.trust import doubt_mark, quarantined_ids, source_of_tool, source_of_turn
from mcp_memory.store.citations import address, without_citations
from mcp_memory.store.sql import quarantine_rows, turn_rows
from mcp_memory.suspicion.flags import flags


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallLimits:
    """Which rows to read and how much of each to show; the defaults are those of an explicit recall.

    Widths are in characters, one for each turn in order; the last applies to all further turns.
    """

    turns: int = 45
    rules: int = 6
    rules_for_question: int = 3
    """Rules of each kind, about the prompt's work or about every answer; `rules` limits both kinds together."""
    before_rules: int = 4
    """Lines above the rules."""
    rule_width: int = 400
    widths: Sequence[int] = (900, 600, 600, *[400] * 5, 320)
    assistant_widths: Sequence[int] = (2_400, 1_200, 600, *[400] * 5, 320)
    """Used instead of `widths` for questions about the assistant's words: its turns are long."""
    unsure_widths: Sequence[int] = (320,)
    certain: Group = "turn"
    unsure: Group = "unsure"
    """The part for turns that may be irrelevant; `certain` is that for turns about the question."""
    outputs: bool = True
    """Whether to show lines of tool results, whose numbers may match by chance."""
    overview: bool = True
    """Whether to answer questions about many things with an overview."""


_ATOM_CHARS, _SCENE_CHARS, _OUTPUT_CHARS = 220, 200, 320
_PROMISE_CHARS = 320
_FORMER_CHARS = 120  # a longer turn says more than the value that was replaced
_DAYS = 3  # other days with the same statement that are named
_LINES = 1_024  # recent lines whose texts are kept: prompts of a project recall the same rows again and again


def mark_suspects(context: SearchContext, lines: Iterable[RecallLine]) -> Iterator[RecallLine]:
    """Yield the lines; suspicious lines are marked, unless a person has released their row.

    Rows written before flags existed, and model output, are checked only here. Assistants' turns are not judged by
    their meaning here: that was done when they were stored. Tool output is judged with its label. For other lines the
    label is judged separately: behind `assistant`, "it asks you to …" reads like an order.
    """
    for line in lines:
        separator = ": " if line.group == "promise" else "] "
        parts = [line.text] if line.source in ("tool", "web") else line.text.split(separator, 1)
        is_turn = line.id[:1] == "t" and line.group not in ("scene", "end")
        meaning = line.source != "assistant" or not is_turn
        suspect = any(_is_suspicious(part, line.source, meaning, is_turn) for part in parts)
        suspect = suspect and not _is_released(context, line.id)
        yield replace(line, is_suspect=True) if suspect else line


@lru_cache(maxsize=_LINES)
def _is_suspicious(part: str, source: Source, meaning: bool, is_turn: bool) -> bool:
    return bool(flags(part, source, meaning=meaning, is_turn=is_turn))


def _is_released(context: SearchContext, id: str) -> bool:
    is_row = id[:1] in "at" and id[1:].isdigit()
    return is_row and any(
        row.verdict == "released" for row in context.store.read(context.space, quarantine_rows.list_quarantined, [id])
    )


# --- statements -------------------------------------------------------------------------------------
def statement_line(atom: Atom) -> str:
    """Return an atom's statement as both blocks show it."""
    return one_line(without_bullet(atom.text), _ATOM_CHARS)


def is_shown_in(atom: Atom, text: str) -> bool:
    """Return whether a text shows an atom's statement: as a list item, or with the atom's id as the pages do."""
    return f"- {statement_line(atom)}\n" in text or f"{statement_line(atom)} ({atom.id}" in text


def of_atom(atom: Atom, at: datetime, speaker: str | None = None) -> RecallLine:
    """Return a line for an atom as of the moment `at`.

    Its head marks plans whose day has passed and statements that begin later (`time_note`). It does not repeat a date
    or a speaker that the statement names.
    """
    statement = statement_line(atom)
    when = time_note(atom, at)
    if not when:
        when = "" if span_of(atom.valid_from, statement, named=True) else date_of(atom.valid_from, atom.text)
    whose = ATTRIBUTION[atom.source] if speaker is None else "" if speaker in statement else f"said by {speaker}"
    head = head_of(atom.id, "open promise" if atom.label == "promise" else None, when, whose, doubt_mark(atom))
    return RecallLine(group="atom", id=atom.id, text=f"{head} {statement}", source=atom.source)


def of_outdated(atom: Atom, newer: Turn, group: Group) -> RecallLine:
    """Return a line for an atom whose value a later turn replaced, to be placed after that turn like an older turn."""
    statement, doubt = statement_line(atom), doubt_mark(atom) or ""
    return RecallLine(
        group=group,
        id=atom.id,
        text=f"{head_of(atom.id, _change_note(newer), doubt)} {statement}",
        source=atom.source,
        said_at=atom.valid_from,
        newer=newer.id,
        former=_former_text(atom.id, atom.valid_from, newer, doubt, statement),
    )


def of_promise(atom: Atom, said_at: datetime, at: datetime) -> RecallLine:
    """Return a line for an open promise, such as "Promise of 3 May, open (a57): Next time I mention Lisbon, …"."""
    day = day_in_words(said_at.astimezone().date(), after=at.astimezone().date())
    text = f"Promise of {day}, open ({atom.id}): {mask(one_line(atom.text, _PROMISE_CHARS))}"
    return RecallLine(group="promise", id=atom.id, text=text, source=atom.source)


def of_rule(atom: Atom, turn: Turn | None) -> RecallLine:
    """Return a line for a standing rule and the turn that states it last.

    The line of a sentence names that turn and its day, since a later turn may say otherwise.
    """
    ids, day = atom.id, None
    if atom.is_sentence and turn is not None:
        ids, day = f"{atom.id} {turn.id}", f"{turn.said_at:%Y-%m-%d}"
    head = head_of(ids, day, doubt_mark(atom))
    return RecallLine(group="rule", id=atom.id, text=f"{head} {statement_line(atom)}", source=atom.source)


def of_fact(fact: Fact) -> RecallLine:
    parts = (fact.entity, fact.relation.replace("_", " "), fact.value)
    statement = " · ".join(one_line(part, 80) for part in parts)
    head = head_of(fact.atom, f"{fact.valid_from:%Y-%m-%d}", ATTRIBUTION[fact.source])
    return RecallLine(group="fact", id=fact.atom, text=f"{head} {statement}", source=fact.source)


def of_scene(scene: Scene, words: AbstractSet[str]) -> RecallLine:
    head = f"{head_of(f'scene {scene.slug}', f'{scene.updated:%Y-%m-%d}')} {one_line(scene.title, 80)}"
    return RecallLine(
        group="scene", id=scene.slug, text=f"{head}: {excerpt_of(without_citations(scene.body), words, _SCENE_CHARS)}"
    )


def of_output(hit: ResultHit, words: AbstractSet[str]) -> RecallLine:
    at = address(hit.ref, hit.lines)
    source = source_of_tool(hit.call.partition(" ")[0])
    origin = "output of" if source == "tool" else "from the web,"
    head = head_of(at, f"{hit.at:%Y-%m-%d}", f"{origin} {one_line(hit.call, 60)}")
    return RecallLine(group="output", id=at, text=f"{head} {excerpt_of(hit.text, words, _OUTPUT_CHARS)}", source=source)


# --- turns ------------------------------------------------------------------------------------------
def of_turns(
    turns: Sequence[Turn],
    *,
    words: AbstractSet[str],
    widths: Sequence[int],
    group: Group = "turn",
    notes: Mapping[str, str] = MappingProxyType({}),
    newer: Mapping[str, Turn] = MappingProxyType({}),
    repeated: Mapping[str, Collection[date]] = MappingProxyType({}),
) -> Iterator[RecallLine]:
    """Yield a line for each turn, cut to the width at its place in `widths`; the last width is for all further turns.

    All mappings are by turn id: `notes` are remarks, `newer` the later turns that replaced a value, `repeated` the
    other days on which the user repeated a turn.
    """
    for turn, width in zip(turns, chain(widths, repeat(widths[-1])), strict=False):
        is_whole = len(turn.content) <= width
        excerpt = _whole_text(turn.content) if is_whole else excerpt_of(turn.content, words, width)
        dated = _with_dates(excerpt, local(turn.said_at)) if turn.role == "user" else excerpt
        change = newer.get(turn.id)
        changed = _change_note(change) if change else None
        also = _other_days_note(turn.said_at.date(), repeated.get(turn.id, ()))
        head = head_of(turn.id, _speaker(turn), notes.get(turn.id) or changed, also)
        line = RecallLine(
            group=group,
            id=turn.id,
            text=f"{head} {dated}",
            source=source_of_turn(turn),
            said_at=turn.said_at,
            session=turn.session,
            position=turn.position,
        )
        if change is not None:
            former = _former_text(turn.id, turn.said_at, change, also, dated) if turn.id not in notes else ""
            line = replace(line, newer=change.id, former=former)
        yield line


@lru_cache(maxsize=_LINES)
def _whole_text(content: str) -> str:
    return excerpt_of(content, frozenset(), len(content))


@lru_cache(maxsize=_LINES)
def _with_dates(excerpt: str, said_at: datetime) -> str:
    """Return an excerpt with the dates that it means; `said_at` is in local time, which may change, and naive."""
    return with_dates(excerpt, said_at)


def _change_note(newer: Turn) -> str:
    return f"changed {newer.said_at:%Y-%m-%d}, see {newer.id}"


def _former_text(id: str, said_at: datetime, newer: Turn, note: str, text: str) -> str:
    """Return a row as a part of the line below the newer turn; empty if it is too long or contains the separator."""
    day = day_in_words(said_at.date(), after=newer.said_at.date())
    fits = len(text) <= _FORMER_CHARS and BEFORE_THAT.strip() not in text
    return f"{head_of(id, day, note)} {text}" if fits else ""


def _other_days_note(day: date, others: Collection[date]) -> str:
    """Return a note on other days, such as `also 3 May, 9 May`, with years that differ from that of `day`.

    If there are many days, it counts them and names the last. Empty without other days.
    """
    if not others:
        return ""
    last = [day_in_words(other, after=day) for other in sorted(others)[-_DAYS:]]
    return f"also {', '.join(last)}" if len(others) <= _DAYS else f"also on {len(others)} days, last {last[-1]}"


def _speaker(turn: Turn) -> str:
    """Return the speaker of a turn: a name, or else the role, empty for the user; tool output is marked as such."""
    source = source_of_turn(turn)
    if source in ("tool", "web"):
        return f"output of {SAID_BY[source]}" + (f", {one_line(turn.name, 40)}" if turn.name else "")
    posing = turn.name is not None and fold(turn.name.strip()) in get_args(Role)
    name = None if posing else turn.name
    return one_line(name or turn.role, 40) if name or turn.role != "user" else ""


_SAME = 0.85  # share of a turn's words that another one has too
_WORD = re.compile(r"\w+")
_COMPARED = 1_500  # characters
_SENTENCE = 10  # characters; a shorter turn such as "Tuesday." may answer different questions
_Row = TypeVar("_Row", Turn, Ranked)


def without_quarantined(context: SearchContext, rows: Sequence[_Row]) -> list[_Row]:
    """Return the rows that are not quarantined."""
    aside = quarantined_ids(context.store, context.space, [row.id for row in rows])
    return [row for row in rows if row.id not in aside]


def distinct_turns(context: SearchContext, *groups: Sequence[str]) -> tuple[list[list[Turn]], dict[str, set[date]]]:
    """Return the turns of the groups without small talk and near-duplicates of earlier turns.

    Of a user's turn and the assistant's echo of it, the user's turn is kept, whichever was found first. The second
    value maps the id of a user's turn to the other days on which the user repeated it.
    """
    ids = [id for group in groups for id in group]
    turns = {turn.id: turn for turn in context.store.read(context.space, turn_rows.by_ids, ids)}
    texts = {turn.id: _WORD.findall(fold(turn.content[:_COMPARED])) for turn in turns.values()}
    words = {id: frozenset(text) for id, text in texts.items()}
    place = {(turn.session, turn.position): turn.id for turn in turns.values()}
    kept: dict[str, frozenset[str]] = {}

    def repeats(turn: Turn) -> bool:
        if turn.role == "user":  # one word more or less may be what changed
            return words[turn.id] in kept.values()
        return any(_says_no_more(words[turn.id], other) for other in kept.values())

    noise = _small_talk(context, list(turns.values()))
    for id in ids:
        turn = turns.get(id) if id not in noise else None
        if turn is None or repeats(turn):
            continue
        before = place.get((turn.session, turn.position - 1))
        if turn.role == "assistant" and before is not None and turns[before].role == "user":
            id = before if _says_no_more(words[id], words[before]) else id
        kept.setdefault(id, words[id])
    return [[turns[id] for id in group if id in kept] for group in groups], _other_days(turns.values(), texts)


def _other_days(turns: Collection[Turn], texts: Mapping[str, Sequence[str]]) -> dict[str, set[date]]:
    """Return, by turn id, the other days on which the user repeated the words of a turn in the same order.

    `texts` are the words of each turn.
    """
    words = {
        turn.id: " ".join(texts[turn.id])
        for turn in turns
        if turn.role == "user" and not turn.name and len(turn.content) <= _COMPARED
    }
    days: dict[str, set[date]] = {}
    for turn in turns:
        if len(words.get(turn.id, "")) >= _SENTENCE:
            days.setdefault(words[turn.id], set()).add(turn.said_at.date())
    return {turn.id: days.get(words.get(turn.id, ""), set()) - {turn.said_at.date()} for turn in turns}


def _small_talk(context: SearchContext, turns: Sequence[Turn]) -> set[str]:
    """Return the ids of turns that say nothing, such as "lol"; a "yes" to a question says something."""
    short = [turn for turn in turns if turn.role in ("user", "assistant") and small_talk_kind(turn.content)]
    near = (
        context.store.read(context.space, turn_rows.context_windows, [turn.id for turn in short], around=1)
        if short
        else []
    )
    before = {(turn.session, turn.position + 1): turn for turn in near}
    return {turn.id for turn in short if small_talk_kind(turn.content, before.get((turn.session, turn.position)))}


def _says_no_more(words: AbstractSet[str], than: AbstractSet[str]) -> bool:
    """Return whether nearly all of `words`, with every number, are in `than`, the words of another text."""
    if len(than) < _SAME * len(words):
        return False
    extra = words - than
    return len(extra) <= (1 - _SAME) * len(words) and not any(word[0].isdigit() for word in extra)
