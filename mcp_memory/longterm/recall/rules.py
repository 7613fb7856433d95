"""The standing rules that govern a prompt, for recall.

A rule is shown if it is about the work that a prompt asks for, or about every answer (`embed.rule_relevance`). For a
question none is shown just because it is the nearest; for a task the nearest ones follow, up to three in all. A rule
that a later message surely replaced or took back is not shown: that message is shown in its place. One that only may
have ended a rule is shown in front of it. Without the encoder's files no rule is judged, and none is shown.

Rules are statements of the user that a model has noted, and sentences of turns that no model has read yet. Candidates
are found by their stored vectors, or by a search where another model made those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.types import Atom, Turn
from mcp_memory.language.rule_cues import CUES, cues_of
from mcp_memory.language.words import fold
from mcp_memory.longterm.recall.lines import RecallLine, is_shown_in, of_rule, of_stated_rule, of_turns
from mcp_memory.longterm.search.changed import is_before
from mcp_memory.longterm.search.ranking import without_names
from mcp_memory.longterm.search.search import SearchContext, atom_turns
from mcp_memory.longterm.standing_rules import standing_rules
from mcp_memory.longterm.validity import without_past
from mcp_memory.longterm.verification.trust import quarantined_ids, turns_of_others
from mcp_memory.models.embed.bundled import IDENTITY
from mcp_memory.models.embed.rule_relevance import ending, general_query, governing, governing_by_vectors, scoped_query
from mcp_memory.store.values import Filters, Layer, Vectors

if TYPE_CHECKING:
    from mcp_memory.longterm.recall.dynamic import RecallLimits

__all__ = ["RulesForPrompt", "rules_for", "takes_back", "tells_change"]

GOVERNS = 0.15
"""Probability from which a rule about some work is shown: one that is missing costs more than one too many."""
GENERAL = 0.4
"""Probability from which a rule counts as one about every answer."""
ENDS = 0.5
"""Probability from which a message that takes something back (`takes_back`) is shown instead of a rule."""
MAY_END = 0.25
"""Probability from which a message that tells of a change is shown in front of a rule."""

_SCOPED, _GENERAL = 48, 32  # rows of a layer that are judged: nearest to the prompt's work, and most general
_JUDGED = 8  # turns, of those whose vectors as a whole reach one of these limits
_SEARCHED = 24  # turns that may state a rule, of which most state none
_ASKS = re.compile("[?？؟]")
_LATER = 64  # turns nearest to all chosen rules, that may end one
_READ = 600  # characters of a message
_TAKING_BACK = [CUES.index(name) for name in ("withdraw", "henceforth")]


@dataclass(frozen=True, slots=True)
class RulesForPrompt:
    """The lines of rules for a prompt, and what recall has to know of other rows to show none of them twice."""

    lines: tuple[RecallLine, ...] = ()
    replaced: dict[str, Turn] = field(default_factory=dict[str, Turn])
    """By the ids of turns whose rule has ended: the message that ended it."""
    repeats: dict[str, str] = field(default_factory=dict[str, str])
    """By the ids of rows that state a shown rule in the same words: the id of its line."""
    in_part: frozenset[str] = frozenset()
    """The turns of which a line shows only the rules, or the beginning: they may have a line of their own as well."""

    @property
    def covered(self) -> set[str]:
        """The ids of rows that need no further line."""
        return {*self.repeats, *(line.id for line in self.lines)} - self.in_part


@dataclass(frozen=True)
class _Rule:
    row: Atom | Turn
    sentences: tuple[str, ...]
    turn: Turn | None
    """The turn that states it; None if that is gone."""

    @cached_property
    def words(self) -> str:
        return " ".join(fold(" ".join(self.sentences)).split())


def rules_for(
    desk: SearchContext, prompt: str, there: Collection[str], limits: RecallLimits, known: str
) -> RulesForPrompt:
    """Return the rules that govern a prompt, likeliest first, without those in `known` or of the turns `there`.

    Rules about the prompt's work come before those about every answer; of each kind there are at most
    `limits.rules_for_question`, together at most `limits.rules`. If a task has fewer than `limits.rules_for_question`,
    the nearest rules of an ordinary search follow: the models miss some that are worded tersely, and a missing rule
    costs more than one too many. A rule stated several times is shown as stated last.
    """
    try:
        stated: dict[str, list[_Rule]] = {}
        for rule in _candidates(desk, prompt, there, known):
            stated.setdefault(rule.words, []).append(rule)
        rules = _chosen(desk, prompt, list(stated.values()), limits)
        if not _ASKS.search(prompt):
            rules += _nearest_in_words(desk, prompt, rules, there, limits.rules_for_question - len(rules))
        rows, replaced = _with_newer(desk, rules, there)
    except EmbeddingFailed:
        return RulesForPrompt()
    rows = dict(islice(rows.items(), limits.rules))
    ended = [rule for rule in rules if rule.turn and rule.turn.id in replaced and replaced[rule.turn.id].id in rows]
    shown = {*rows, *(rule.row.id for rule in ended)}  # those by what ended them
    same = [(rule, other) for rule in rules if rule.row.id in shown for other in stated.get(rule.words, [rule])]
    own = (*rows.values(), *(rule.row for rule in ended), *(other.row for _, other in same))
    return RulesForPrompt(
        lines=tuple(_line_of(row, limits) for row in rows.values()),
        replaced=replaced,
        repeats={other.row.id: rule.row.id for rule, other in same},
        in_part=frozenset(row.id for row in own if isinstance(row, Turn) and len(row.content) > limits.rule_width),
    )


def takes_back(text: str) -> bool:
    """Tell whether a message has words that take an order back, or give one from now on."""
    cues = cues_of(text)
    return any(cues[place] for place in _TAKING_BACK)


def tells_change(text: str) -> bool:
    """Tell whether a message takes an order back, or has words that change a value ("instead", "is now")."""
    from mcp_memory.longterm.changes import announces_change

    return takes_back(text) or announces_change(text)


# --- candidates -------------------------------------------------------------------------------------


def _candidates(desk: SearchContext, prompt: str, there: Collection[str], known: str) -> Iterator[_Rule]:
    """Yield rules that the user stated: statements, then turns."""
    noted: list[str] = []
    if desk.store.totals(desk.space, "atom").rows:
        noted = _nearest(desk, prompt, "atom", Filters(kind="instruction", unheld=True))
    said = _nearest(desk, prompt, "turn", Filters(role="user", states_rule=True))
    hidden = {*there, *quarantined_ids(desk.store, desk.space, [*noted, *said])}
    atoms = [
        atom
        for atom in without_past(desk.store.atoms(desk.space, [id for id in noted if id not in hidden]), desk.now)
        if atom.source == "user"
        and atom.label != "promise"
        and atom.evidence not in there
        and not is_shown_in(atom, known)
    ]
    shown = _likely(desk, prompt, [id for id in said if id not in hidden])
    evidence = [id for atom in atoms for id in atom_turns(atom)]
    turns = {turn.id: turn for turn in desk.store.turns(desk.space, [*shown, *evidence])}
    for atom in atoms:
        stating = [turns[id] for id in atom_turns(atom) if id in turns]
        yield _Rule(atom, (atom.text,), max(stating, key=lambda turn: (turn.said_at, turn.position), default=None))
    for turn in (turns[id] for id in shown if id in turns):
        if sentences := _stated_in(turn):
            yield _Rule(turn, sentences, turn)


def _nearest(desk: SearchContext, prompt: str, layer: Layer, filters: Filters) -> list[str]:
    """Return the ids of the rows that are likeliest about the prompt's work, and likeliest about every answer."""
    if not _is_bundled(desk, prompt):
        return [hit.id for hit in desk.hits(layer, prompt, filters=filters, limit=_SCOPED)]
    found: dict[str, None] = {}
    for data, limit in ((scoped_query(prompt), _SCOPED), (general_query(), _GENERAL)):
        query = Vectors(identity=IDENTITY, data=data)
        hits = desk.store.nearest(desk.space, layer, query, filters=filters, limit=limit)
        found |= dict.fromkeys(hit.id for hit in hits)
    return list(found)


def _is_bundled(desk: SearchContext, prompt: str) -> bool:
    """Tell whether the memory's vectors are those of the bundled model."""
    vectors = desk.of_query(without_names(prompt, desk.store.totals(desk.space, "turn").names))
    return bool(vectors) and vectors[0].identity == IDENTITY


def _likely(desk: SearchContext, prompt: str, ids: Sequence[str]) -> list[str]:
    """Return the turns that govern the prompt if they state a rule, without those that their vectors rule out.

    Whether a turn states a rule takes the encoder some milliseconds for each sentence.
    """
    import numpy as np

    vectors = desk.store.vectors_of(desk.space, "turn", ids, IDENTITY)
    if not vectors:
        return list(ids[:_JUDGED])
    judged = governing_by_vectors(prompt, np.stack(list(vectors.values())))
    chances = {
        id: max(found.general / GENERAL, found.scoped / GOVERNS) for id, found in zip(vectors, judged, strict=True)
    }
    likely = sorted((id for id in chances if chances[id] >= 1), key=lambda id: -chances[id])
    unknown = [id for id in ids if id not in vectors]  # embedded by another model meanwhile
    return [*likely[:_JUDGED], *unknown[:_JUDGED]]


# --- relevance --------------------------------------------------------------------------------------


def _chosen(desk: SearchContext, prompt: str, stated: Sequence[Sequence[_Rule]], limits: RecallLimits) -> list[_Rule]:
    """Return the likeliest rules; `stated` has for each rule every time that it was stated."""
    judged = iter(governing(prompt, list(chain.from_iterable(rules[0].sentences for rules in stated))))
    general: list[tuple[float, Sequence[_Rule]]] = []
    scoped: list[tuple[float, Sequence[_Rule]]] = []
    for rules in stated:
        sentences = list(islice(judged, len(rules[0].sentences)))
        chance = max(sentence.general for sentence in sentences)
        if chance >= GENERAL:
            general.append((chance, rules))
        elif (chance := max(sentence.scoped for sentence in sentences)) >= GOVERNS:
            scoped.append((chance, rules))
    chosen: list[_Rule] = []
    is_unread = _unread(desk)
    for some in (scoped, general):
        latest = (_latest(desk, rules, is_unread) for _, rules in sorted(some, key=lambda pair: -pair[0]))
        chosen += islice(filter(None, latest), limits.rules_for_question)
    return chosen[: limits.rules]


def _nearest_in_words(
    desk: SearchContext, prompt: str, chosen: Sequence[_Rule], there: Collection[str], limit: int
) -> list[_Rule]:
    """Return up to `limit` rules in turns that no model has read, nearest to the prompt by an ordinary search."""
    filters = Filters(role="user", states_rule=True)
    ids = [hit.id for hit in desk.hits("turn", prompt, filters=filters, limit=_SEARCHED)] if limit > 0 else []
    hidden = {*there, *quarantined_ids(desk.store, desk.space, ids), *(rule.row.id for rule in chosen)}
    is_unread = _unread(desk)
    found = {rule.words: rule for rule in chosen}
    for turn in desk.store.turns(desk.space, [id for id in ids if id not in hidden]):
        if len(found) >= len(chosen) + limit:
            break
        sentences = _stated_in(turn)
        if sentences and is_unread(turn) and _by_user(desk, turn):
            rule = _Rule(turn, sentences, turn)
            found.setdefault(rule.words, rule)
    return list(found.values())[len(chosen) :]


def _stated_in(turn: Turn) -> tuple[str, ...]:
    return tuple(turn.content[rule.start : rule.end] for rule in standing_rules(turn.content))


def _latest(desk: SearchContext, rules: Sequence[_Rule], is_unread: Callable[[Turn], bool]) -> _Rule | None:
    """Return the rule as it was stated last, in a statement or in a turn that no model has read; None if in neither."""
    for rule in sorted(rules, key=_said, reverse=True):
        if isinstance(rule.row, Atom) or (is_unread(rule.row) and _by_user(desk, rule.row)):
            return rule
    return None


def _said(rule: _Rule) -> tuple[float, int]:
    return (rule.turn.said_at.timestamp(), rule.turn.position) if rule.turn else (0.0, 0)


def _by_user(desk: SearchContext, turn: Turn) -> bool:
    return not turns_of_others(desk.store, desk.space, [turn])


def _unread(desk: SearchContext) -> Callable[[Turn], bool]:
    """Return a function that tells whether no model has read a turn yet."""

    @cache
    def starts(session: str) -> list[int]:
        return [part.start for part in desk.store.backlog(desk.space, session=session)]

    return lambda turn: any(turn.position >= start for start in starts(turn.session))


# --- rules that have ended --------------------------------------------------------------------------


def _with_newer(
    desk: SearchContext, rules: Sequence[_Rule], there: Collection[str]
) -> tuple[dict[str, Atom | Turn], dict[str, Turn]]:
    """Return what to show by id, the rules and the messages that may have ended them, and the rules replaced.

    Messages that are `there` already are not shown.
    """
    rows: dict[str, Atom | Turn] = {}
    replaced: dict[str, Turn] = {}
    later = _near(desk, rules)
    own = {rule.turn.id for rule in rules if rule.turn}
    for rule in rules:
        ended, newer = _ended_by(desk, rule, later)
        if newer is not None and newer.id not in there and newer.id not in own:
            rows.setdefault(newer.id, newer)
        if ended and newer is not None and rule.turn is not None:
            replaced[rule.turn.id] = newer
        else:
            rows.setdefault(rule.row.id, rule.row)
    return rows, replaced


def _near(desk: SearchContext, rules: Sequence[_Rule]) -> list[Turn]:
    """Return the user's turns that are near to some of the rules.

    One search for the sum of their vectors: a turn that is near to one rule is nearer to it than most others are.
    """
    import numpy as np

    store, space = desk.store, desk.space
    turns = [rule.turn.id for rule in rules if rule.turn]
    if not turns:
        return []
    vectors = dict(store.vectors_of(space, "turn", turns, IDENTITY))
    notes = [rule.row.id for rule in rules if isinstance(rule.row, Atom) and rule.turn and rule.turn.id not in vectors]
    vectors |= store.vectors_of(space, "atom", notes, IDENTITY) if notes else {}
    if vectors:
        near = Vectors(identity=IDENTITY, data=np.sum(list(vectors.values()), axis=0)[None, :])
        ids = [hit.id for hit in store.nearest(space, "turn", near, filters=Filters(), limit=2 * _LATER)]
    else:
        words = "\n".join(rule.words for rule in rules)
        ids = [hit.id for hit in desk.hits("turn", words, filters=Filters(role="user"), limit=_LATER)]
    aside = quarantined_ids(store, space, ids)
    return [turn for turn in store.turns(space, [id for id in ids if id not in aside]) if turn.role == "user"][:_LATER]


def _ended_by(desk: SearchContext, rule: _Rule, later: Sequence[Turn]) -> tuple[bool, Turn | None]:
    """Return whether a rule has ended, and the message that ended it or may have: the latest, or else the likeliest."""
    if rule.turn is None:
        return False, None
    after = (turn for turn in later if is_before(rule.turn, turn))
    chances = [(turn, _ends(turn.content, rule.sentences)) for turn in after]
    found = [pair for pair in chances if pair[1].changes >= MAY_END and _by_user(desk, pair[0])]
    surely = [turn for turn, chance in found if chance.takes_back >= ENDS]
    if surely:
        return True, max(surely, key=lambda turn: (turn.said_at, turn.position))
    return False, max(found, key=lambda pair: pair[1].changes, default=(None,))[0]


class _Ending(NamedTuple):
    """How likely a message ends a rule: by any sentence with words of change, and by one that takes something back."""

    changes: float = 0.0
    takes_back: float = 0.0


@lru_cache(maxsize=8_192)
def _ends(newer: str, older: tuple[str, ...]) -> _Ending:
    chances = [
        (ending(rule, sentence, tells_change=True), surely) for sentence, surely in _changes(newer) for rule in older
    ]
    return _Ending(
        max((chance for chance, _ in chances), default=0.0),
        max((chance for chance, surely in chances if surely), default=0.0),
    )


@lru_cache(maxsize=4_096)
def _changes(text: str) -> list[tuple[str, bool]]:
    """Return the sentences of a message with words of change, and whether each takes something back."""
    from mcp_memory.longterm.verification.comparison import sentences_of

    start = text[:_READ]
    sentences = dict.fromkeys([start, *sentences_of(start)]) if tells_change(start) else ()
    return [(sentence, takes_back(sentence)) for sentence in sentences if tells_change(sentence)]


def _line_of(row: Atom | Turn, limits: RecallLimits) -> RecallLine:
    """Return the line of a rule, or of a message that may have ended one and need not state one itself."""
    if isinstance(row, Atom):
        return of_stated_rule(row)
    if (line := of_rule(row, limits.rule_width)) is not None:
        return line
    notes = {row.id: f"{row.said_at:%Y-%m-%d}"}
    (line,) = of_turns([row], words=frozenset(), widths=(limits.rule_width,), group="rule", notes=notes)
    return line
