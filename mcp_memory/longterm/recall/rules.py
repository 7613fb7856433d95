"""The standing rules that govern a prompt, for recall.

A rule is shown if it is about the work that a prompt asks for, or about every answer (`embed.rule_relevance`); none is
shown just because it is the nearest. A rule that a later message replaced or took back is not shown: that message is
shown in its place; one that only may have ended it is shown in front of it. Without the encoder's files no rule is
judged, and none is shown.

Rules are statements of the user that a model has noted, and sentences of turns that no model has read yet. Of a rule,
the user's later turns that are nearest to it are read for what ended it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.types import Turn
from mcp_memory.language.rule_cues import CUES, cues_of
from mcp_memory.longterm.recall.lines import RecallLine, is_shown_in, of_rule, of_stated_rule, of_turns
from mcp_memory.longterm.recall.relevance import RecallQuery
from mcp_memory.longterm.search.search import Ranked, SearchContext
from mcp_memory.longterm.standing_rules import standing_rules
from mcp_memory.longterm.verification.trust import quarantined_ids, turns_of_others
from mcp_memory.models.embed.bundled import IDENTITY
from mcp_memory.models.embed.rule_relevance import Governing, ending, general_query, governing
from mcp_memory.store.values import Filters, Layer, Scored, Vectors

if TYPE_CHECKING:
    from mcp_memory.longterm.recall.dynamic import RecallLimits

__all__ = ["RulesForPrompt", "rules_for", "tells_change"]

GOVERNS = 0.15
"""Probability from which a rule about some work is shown: one that is missing costs more than one too many."""
GENERAL = 0.4
"""Probability from which a rule counts as one about every answer."""
ENDS, MAY_END = 0.5, 0.25
"""Probabilities from which a later message is shown instead of a rule, and in front of it."""

_STATEMENTS, _TURNS, _GENERAL_TURNS = 50, 24, 12  # that are judged: nearest to the prompt, most about every answer
_LATER = 8  # turns nearest to a rule, that may end it
_READ = 600  # characters of a message
_CHANGE_CUES = [CUES.index(name) for name in ("withdraw", "henceforth")]


@dataclass(frozen=True, slots=True)
class RulesForPrompt:
    """The lines of rules for a prompt, and notes for the turns of rules that have ended, by id."""

    lines: tuple[RecallLine, ...] = ()
    notes: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class _Rule:
    line: RecallLine
    sentences: tuple[str, ...]
    turn: Turn | None
    """The turn that states it; None if that is gone."""


def rules_for(wanted: RecallQuery, there: Collection[str], limits: RecallLimits, known: str) -> RulesForPrompt:
    """Return the rules that govern a prompt, likeliest first, without those in `known` or of the turns `there`.

    Rules about the prompt's work come before those about every answer; of each kind there are at most
    `limits.rules_for_question`, together at most `limits.rules`.
    """
    try:
        rules = list(_candidates(wanted, there, limits, known))
        judged = [(rule, _likeliest(wanted.text, rule.sentences)) for rule in rules]
        return _in_place(wanted.desk, _chosen(judged, limits), there, limits)
    except EmbeddingFailed:
        return RulesForPrompt()


def tells_change(text: str) -> bool:
    """Tell whether a message has words that change or take back something: "from now on", "no longer", "instead"."""
    from mcp_memory.longterm.changes import announces_change

    cues = cues_of(text)
    return any(cues[place] for place in _CHANGE_CUES) or announces_change(text)


# --- candidates -------------------------------------------------------------------------------------


def _candidates(wanted: RecallQuery, there: Collection[str], limits: RecallLimits, known: str) -> Iterator[_Rule]:
    """Yield rules that the user stated: statements, then unread turns."""
    desk = wanted.desk
    ids = _nearest(desk, "atom", wanted.text, Filters(kind="instruction", unheld=True), _STATEMENTS, there)
    atoms = [
        atom
        for atom in desk.store.atoms(desk.space, ids)
        if atom.source == "user" and atom.evidence not in there and not is_shown_in(atom, known)
    ]
    evidence = {turn.id: turn for turn in desk.store.turns(desk.space, [atom.evidence for atom in atoms])}
    for atom in atoms:
        yield _Rule(of_stated_rule(atom), (atom.text,), evidence.get(atom.evidence))
    filters = Filters(role="user", states_rule=True)
    ids = _nearest(desk, "turn", wanted.text, filters, _TURNS, there)
    general = Vectors(identity=IDENTITY, data=general_query())
    hits = desk.store.nearest(desk.space, "turn", general, filters=filters, limit=_GENERAL_TURNS)
    ids = list(dict.fromkeys([*ids, *_unheld(desk, hits, there)]))
    for turn in _by_user(desk, _unread(desk, desk.store.turns(desk.space, ids))):
        line = of_rule(turn, limits.rule_width)
        if line is not None:
            rules = standing_rules(turn.content)
            yield _Rule(line, tuple(turn.content[rule.start : rule.end] for rule in rules), turn)


def _nearest(
    desk: SearchContext, layer: Layer, text: str, filters: Filters, limit: int, there: Collection[str]
) -> list[str]:
    hits = desk.search(desk.space, layer, text, embed=desk.of_query, filters=filters, limit=limit, at=desk.now)
    return _unheld(desk, hits, there)


def _unheld(desk: SearchContext, hits: Sequence[Ranked] | Sequence[Scored], there: Collection[str]) -> list[str]:
    """Return the ids of hits that are neither quarantined nor `there`."""
    aside = quarantined_ids(desk.store, desk.space, [hit.id for hit in hits])
    return [hit.id for hit in hits if hit.id not in aside and hit.id not in there]


def _by_user(desk: SearchContext, turns: Sequence[Turn]) -> list[Turn]:
    others = turns_of_others(desk.store, desk.space, turns)
    return [turn for turn in turns if turn.id not in others]


def _unread(desk: SearchContext, turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns that no model has read yet."""
    waiting = [
        part for session in {turn.session for turn in turns} for part in desk.store.backlog(desk.space, session=session)
    ]
    start = {part.session: part.start for part in waiting}
    return [turn for turn in turns if turn.session in start and turn.position >= start[turn.session]]


# --- relevance --------------------------------------------------------------------------------------


def _likeliest(prompt: str, sentences: Sequence[str]) -> Governing:
    found = governing(prompt, sentences)
    return Governing(max(one.general for one in found), max(one.scoped for one in found))


def _chosen(judged: Sequence[tuple[_Rule, Governing]], limits: RecallLimits) -> list[_Rule]:
    general = [(rule, found.general) for rule, found in judged if found.general >= GENERAL]
    scoped = [(rule, found.scoped) for rule, found in judged if found.general < GENERAL and found.scoped >= GOVERNS]
    most = limits.rules_for_question
    ranked = [sorted(some, key=lambda pair: -pair[1])[:most] for some in (scoped, general)]
    return [rule for some in ranked for rule, _ in some][: limits.rules]


# --- rules that have ended --------------------------------------------------------------------------


def _in_place(
    desk: SearchContext, rules: Sequence[_Rule], there: Collection[str], limits: RecallLimits
) -> RulesForPrompt:
    """Return the lines of the rules, with the message that ended a rule in its place."""
    lines: dict[str, RecallLine] = {}
    notes: dict[str, str] = {}
    for rule in rules:
        newer, chance = _ended_by(desk, rule)
        if newer is not None and newer.id not in there:
            lines.setdefault(newer.id, _line_of(newer, limits))
        if newer is not None and rule.turn is not None and chance >= ENDS:
            notes[rule.turn.id] = f"until {newer.said_at:%Y-%m-%d}, see {newer.id}"
        else:
            lines.setdefault(rule.line.id, rule.line)
    return RulesForPrompt(tuple(line for id, line in lines.items() if id not in notes)[: limits.rules], notes)


def _line_of(turn: Turn, limits: RecallLimits) -> RecallLine:
    """Return the line of a message that ended a rule; it need not state one itself."""
    notes = {turn.id: f"{turn.said_at:%Y-%m-%d}"}
    (line,) = of_turns([turn], words=frozenset(), widths=(limits.rule_width,), group="rule", notes=notes)
    return of_rule(turn, limits.rule_width) or line


def _ended_by(desk: SearchContext, rule: _Rule) -> tuple[Turn | None, float]:
    """Return the message of the user that replaced a rule or took it back, among the nearest to it, and its chance.

    Of several it is the latest; of those that only may have, the likeliest.
    """
    if rule.turn is None:
        return None, 0.0
    filters = Filters(role="user", since=rule.turn.said_at)
    vectors = desk.store.vectors_of(desk.space, "turn", [rule.turn.id], IDENTITY)
    if vectors:  # twenty times as fast as a search by words too
        near = Vectors(identity=IDENTITY, data=vectors[rule.turn.id][None, :])
        hits = desk.store.nearest(desk.space, "turn", near, filters=filters, limit=_LATER)
        ids = _unheld(desk, hits, {rule.turn.id})
    else:
        ids = _nearest(desk, "turn", " ".join(rule.sentences), filters, _LATER, {rule.turn.id})
    later = [turn for turn in desk.store.turns(desk.space, ids) if _is_after(turn, rule.turn)]
    chances = {turn.id: max(_ends(turn.content, sentence) for sentence in rule.sentences) for turn in later}
    found = _by_user(desk, [turn for turn in later if chances[turn.id] >= MAY_END])
    surely = [turn for turn in found if chances[turn.id] >= ENDS]
    newer = max(surely, key=lambda turn: (turn.said_at, turn.position), default=None)
    newer = newer or max(found, key=lambda turn: chances[turn.id], default=None)
    return newer, chances[newer.id] if newer else 0.0


def _is_after(turn: Turn, older: Turn) -> bool:
    if turn.session == older.session:
        return turn.position > older.position
    return turn.said_at > older.said_at


@lru_cache(maxsize=2_048)
def _ends(newer: str, older: str) -> float:
    """Return how likely a message ends a rule; 0 where no sentence has words of change."""
    changing = [sentence for sentence in _sentences(newer[:_READ]) if tells_change(sentence)]
    return max((ending(older, sentence, tells_change=True) for sentence in changing), default=0.0)


def _sentences(text: str) -> list[str]:
    from mcp_memory.longterm.verification.comparison import sentences_of

    return list(dict.fromkeys([text, *sentences_of(text)]))
