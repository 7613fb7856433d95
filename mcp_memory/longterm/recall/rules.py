"""The standing rules that govern a prompt, for recall.

A rule is shown if it is about the work that a prompt asks for, or about every answer (`embed.rule_relevance`). A
question gets no rule just because it is the nearest; a task gets the nearest rules, up to three in all. If a later
message surely replaced a rule or took it back, that message is shown instead; if it only may have ended the rule, both
are shown, the message first. Without the encoder's files no rule is shown.

Rules are statements of the user: sentences that the extractor found, and notes of a model or an agent. Candidates are
found by their stored vectors, or by an ordinary search if another model made the vectors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.types import Atom, Turn
from mcp_memory.language.rule_words import CUES, cues_of
from mcp_memory.language.words import fold
from mcp_memory.longterm.recall.line import RecallLine
from mcp_memory.longterm.recall.lines import is_shown_in, of_rule, of_turns
from mcp_memory.longterm.search.changed import is_before
from mcp_memory.longterm.search.ranking import without_names
from mcp_memory.longterm.search.search import SearchContext, atom_turns
from mcp_memory.longterm.validity import is_past
from mcp_memory.longterm.verification.trust import quarantined_ids, turns_of_others
from mcp_memory.models.embed.bundled import IDENTITY, encoder_halves, encoder_vectors
from mcp_memory.models.embed.rule_relevance import (
    Governing,
    ending_probabilities,
    general_query,
    governing,
    scoped_query,
)
from mcp_memory.store.sql import atom_rows, turn_rows
from mcp_memory.store.values import Filters, Layer, NearestQuery, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.longterm.recall.lines import RecallLimits


GOVERNS = 0.15
"""Probability from which a rule about some work is shown; a missing rule costs more than a needless rule."""
GENERAL = 0.4
"""Probability from which a rule counts as a rule about every answer."""
ENDS = 0.5
"""Probability from which a message that takes something back (`takes_back`) is shown instead of a rule."""
MAY_END = 0.25
"""Probability from which a message with words of change (`tells_change`) is shown in front of a rule."""

_SCOPED, _GENERAL = 48, 32  # rows of a layer that are judged: nearest to the prompt's work, and most general
_REPLACED = 16  # nearest replaced sentences that are judged too
_MAX_REPLACED = 100  # longest chain of versions of a rule
_SEARCHED = 24
_ASKS = re.compile("[?？؟]")
_LATER = 64  # turns nearest to all chosen rules, that may end one
_READ = 600  # characters of a message
_TAKING_BACK = [CUES.index(name) for name in ("withdraw", "henceforth")]


@dataclass(frozen=True, slots=True)
class RulesForPrompt:
    """The lines of rules for a prompt, and what recall needs to show no row twice."""

    lines: tuple[RecallLine, ...] = ()
    replaced: dict[str, Turn] = field(default_factory=dict[str, Turn])
    """The message that ended a rule, by the id of the rule's turn."""
    repeats: dict[str, str] = field(default_factory=dict[str, str])
    """The id of a shown line, by the ids of rows that state its rule in the same words."""
    in_part: frozenset[str] = frozenset()
    """Turns of which only the rules, or the beginning, are shown, so that they may get an ordinary line too."""

    @property
    def covered(self) -> set[str]:
        """The ids of rows that need no further line."""
        return {*self.repeats, *(line.id for line in self.lines)} - self.in_part


@dataclass(frozen=True)
class _Rule:
    atom: Atom
    turn: Turn | None
    """The last turn that states the rule; None if no such turn is left."""

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the atom and of the turns that state the rule."""
        return (self.atom.id, *atom_turns(self.atom))

    @property
    def said_at(self) -> tuple[float, int]:
        return (self.turn.said_at.timestamp(), self.turn.position) if self.turn else (0.0, 0)


def rules_for(
    context: SearchContext, prompt: str, in_context: Collection[str], limits: RecallLimits, shown_text: str
) -> RulesForPrompt:
    """Return the rules that govern a prompt, likeliest first.

    Rules in `shown_text` and rules of the turns `in_context` are left out.

    Rules about the prompt's work come before those about every answer; of each kind there are at most
    `limits.rules_for_question`, together at most `limits.rules`. If a prompt without a question mark has fewer than
    `limits.rules_for_question`, the nearest rules of an ordinary search follow, since the models miss some tersely
    worded rules. A rule stated several times is shown as stated last.
    """
    try:
        stated: dict[str, list[Atom]] = {}
        for atom in _candidates(context, prompt, in_context, shown_text):
            stated.setdefault(_words(atom), []).append(atom)
        latest = _latest(context, stated.values())
        chosen = _choose(context, prompt, latest, limits)
        if not _ASKS.search(prompt) and len(chosen) < limits.rules_for_question:
            chosen += _nearest_in_words(context, prompt, latest, chosen)[: limits.rules_for_question - len(chosen)]
        rules = _with_turns(context, chosen)
        rows, replaced = _with_newer(context, rules, in_context)
    except EmbeddingFailed:
        return RulesForPrompt()
    rows = dict(islice(rows.items(), limits.rules))
    shown_ids = {id for row in rows.values() for id in ((row.id,) if isinstance(row, Turn) else row.ids)}
    ended = [
        rule for rule in rules if rule.turn and rule.turn.id in replaced and replaced[rule.turn.id].id in shown_ids
    ]
    shown = {*rows, *(rule.atom.id for rule in ended)}  # an ended rule is shown by the message that ended it
    same = [
        (rule, other)
        for rule in rules
        if rule.atom.id in shown
        for other in _with_turns(context, stated[_words(rule.atom)])
    ]
    return RulesForPrompt(
        lines=tuple(_line_of(row, limits) for row in rows.values()),
        replaced=replaced,
        repeats={id: rule.atom.id for rule, other in same for id in other.ids},
        in_part=frozenset(turn.id for turn in _turns_of(rows.values(), same) if len(turn.content) > limits.rule_width),
    )


def _turns_of(rows: Iterable[_Rule | Turn], same: Iterable[tuple[_Rule, _Rule]]) -> Iterator[Turn]:
    yield from (row for row in rows if isinstance(row, Turn))
    yield from (rule.turn for _, rule in same if rule.turn is not None)


def takes_back(text: str) -> bool:
    """Return whether a message has words that revoke an order or give a lasting one ("from now on")."""
    cues = cues_of(text)
    return any(cues[place] for place in _TAKING_BACK)


def tells_change(text: str) -> bool:
    """Return whether a message takes an order back, or has words that change a value ("instead", "is now")."""
    from mcp_memory.longterm.value_clauses import announces_change

    return takes_back(text) or announces_change(text)


# --- candidates -------------------------------------------------------------------------------------


def _candidates(context: SearchContext, prompt: str, in_context: Collection[str], shown_text: str) -> list[Atom]:
    """Return the rules that the user stated, without those in `shown_text` and those of the turns `in_context`."""
    if not context.store.totals(context.space, "atom").rows:
        return []
    ids = _nearest(context, prompt)
    return [
        atom
        for atom in context.store.read(context.space, atom_rows.by_ids, ids)
        if (_is_replaced(atom) or not is_past(atom, context.now))
        and atom.source == "user"
        and atom.label != "promise"
        and not any(id in in_context for id in atom_turns(atom))
        and not is_shown_in(atom, shown_text)
    ]


def _words(atom: Atom) -> str:
    return " ".join(fold(atom.text).split())


def _latest(context: SearchContext, stated: Collection[Sequence[Atom]]) -> list[Atom]:
    """Return the atom of each group that was said last."""
    repeated = _with_turns(context, [atom for atoms in stated if len(atoms) > 1 for atom in atoms])
    rules = {rule.atom.id: rule for rule in repeated}
    return [max(atoms, key=lambda atom: rules[atom.id].said_at) if len(atoms) > 1 else atoms[0] for atoms in stated]


def _with_turns(context: SearchContext, atoms: Sequence[Atom]) -> list[_Rule]:
    ids = [id for atom in atoms for id in atom_turns(atom)]
    turns = {turn.id: turn for turn in context.store.read(context.space, turn_rows.by_ids, ids)} if ids else {}
    stating = ([turns[id] for id in atom_turns(atom) if id in turns] for atom in atoms)
    return [
        _Rule(atom, max(stating_turns, key=lambda turn: (turn.said_at, turn.position), default=None))
        for atom, stating_turns in zip(atoms, stating, strict=True)
    ]


def _is_replaced(atom: Atom) -> bool:
    """Return whether an atom is a sentence that a later sentence of the user replaced."""
    return atom.is_sentence and atom.superseded_by is not None


def _nearest(context: SearchContext, prompt: str) -> list[str]:
    """Return the ids of the rules that are nearest to the prompt's work or to rules about every answer.

    Replaced rules are found by a separate search, because many of them would leave no room for current rules.
    """
    found, found_ended = _search(context, prompt)
    current_ids = dict.fromkeys(found)
    ended = [id for id in found_ended if id not in current_ids]
    replaced = [atom for atom in context.store.read(context.space, atom_rows.by_ids, ended) if _is_replaced(atom)]
    last = _last_of(context, replaced)
    nearest: dict[str, str] = {}  # of several versions of a rule only one
    for atom in sorted(replaced, key=lambda atom: ended.index(atom.id)):
        nearest.setdefault(last[atom.id], atom.id)
    return [*current_ids, *islice(nearest.values(), _REPLACED)]


def _last_of(context: SearchContext, replaced: Sequence[Atom]) -> dict[str, str]:
    """Return the id of the last successor of each replaced statement, by the statement's id."""
    last = {atom.id: atom.superseded_by or atom.id for atom in replaced}
    for _ in range(_MAX_REPLACED):
        newer = {
            atom.id: atom.superseded_by
            for atom in context.store.read(context.space, atom_rows.by_ids, set(last.values()))
        }
        if not any(newer.values()):
            break
        last = {id: newer.get(of) or of for id, of in last.items()}
    return last


def _search(context: SearchContext, prompt: str) -> tuple[list[str], list[str]]:
    """Return the ids of the current rules nearest to a prompt, and those nearest among all, including ended rules."""
    current = Filters(kind="instruction", unheld=True, at=context.now)
    every = replace(current, ended=True)
    if not _is_bundled(context, prompt):
        found, of_every = (context.hits("atom", prompt, filters=each, limit=_SCOPED) for each in (current, every))
        return [hit.id for hit in found], [hit.id for hit in of_every]
    kinds = ((scoped_query(prompt), _SCOPED), (general_query(), _GENERAL))
    queries = [
        NearestQuery(Vectors(identity=IDENTITY, data=data), filters, limit)
        for filters in (current, replace(every, only_ended=True))  # few rules have ended, so few are compared twice
        for data, limit in kinds
    ]
    hits = context.store.nearest_to_each(context.space, "atom", queries)
    of_every = [
        sorted(dict.fromkeys([*found, *ended]), key=lambda hit: -hit.score)[:limit]
        for found, ended, (_, limit) in zip(hits[:2], hits[2:], kinds, strict=True)
    ]
    return [hit.id for hit in chain(*hits[:2])], [hit.id for hit in chain(*of_every)]


def _is_bundled(context: SearchContext, prompt: str) -> bool:
    """Return whether the memory's vectors are those of the bundled model."""
    vectors = context.of_query(without_names(prompt, context.store.totals(context.space, "turn").names))
    return bool(vectors) and vectors[0].identity == IDENTITY


# --- relevance --------------------------------------------------------------------------------------


def _choose(context: SearchContext, prompt: str, rules: Sequence[Atom], limits: RecallLimits) -> list[Atom]:
    """Return the likeliest rules within the limits, those about the prompt's work before those about every answer."""
    general: list[tuple[float, Atom]] = []
    scoped: list[tuple[float, Atom]] = []
    for rule, chance in zip(rules, _judge(context, prompt, rules), strict=True):
        if chance.general >= GENERAL:
            general.append((chance.general, rule))
        elif chance.scoped >= GOVERNS:
            scoped.append((chance.scoped, rule))
    chosen: list[Atom] = []
    for some in (scoped, general):
        likeliest = sorted(some, key=lambda pair: -pair[0])
        chosen += [rule for _, rule in likeliest[: limits.rules_for_question]]
    return chosen[: limits.rules]


def _judge(context: SearchContext, prompt: str, rules: Sequence[Atom]) -> list[Governing]:
    """Return how likely each rule governs the prompt."""
    return governing(prompt, _vectors_of_rules(context, rules))


def _nearest_in_words(context: SearchContext, prompt: str, rules: Sequence[Atom], chosen: Sequence[Atom]) -> list[Atom]:
    """Return the rules that an ordinary search finds for the prompt, nearest first, without the `chosen` rules."""
    candidates = {rule.id: rule for rule in rules if rule not in chosen}
    filters = Filters(kind="instruction", unheld=True)
    hits = context.hits("atom", prompt, filters=filters, limit=_SEARCHED) if candidates else []
    return [candidates[hit.id] for hit in hits if hit.id in candidates]


# --- rules that have ended --------------------------------------------------------------------------


def _with_newer(
    context: SearchContext, rules: Sequence[_Rule], in_context: Collection[str]
) -> tuple[dict[str, _Rule | Turn], dict[str, Turn]]:
    """Return the rules and messages to show, by id, and the messages that ended a rule, by the id of the rule's turn.

    The messages to show are those that ended a rule or may have; those that are already `in_context` are not shown.
    """
    rows: dict[str, _Rule | Turn] = {}
    replaced: dict[str, Turn] = {}
    own = {rule.turn.id for rule in rules if rule.turn}
    later = _find_turns_near(context, rules)
    for rule, endings in zip(rules, _endings(context, rules, later), strict=True):
        ended, newer = _ended_by(context, rule, endings)
        if newer is not None and newer.id not in in_context and newer.id not in own:
            rows.setdefault(newer.id, newer)
        if ended and newer is not None and rule.turn is not None:
            replaced[rule.turn.id] = newer
        elif not ended:
            rows.setdefault(rule.atom.id, rule)
    return rows, replaced


def _find_turns_near(context: SearchContext, rules: Sequence[_Rule]) -> list[Turn]:
    """Return the user's turns that are near to some of the rules.

    One search with the sum of the rules' vectors finds them: a turn near to one rule is nearer to the sum than most
    other turns are.
    """
    import numpy as np

    store, space = context.store, context.space
    turns = [rule.turn.id for rule in rules if rule.turn]
    if not turns:
        return []
    vectors = dict(store.vectors_of(space, "turn", turns, IDENTITY))
    notes = [rule.atom.id for rule in rules if rule.turn and rule.turn.id not in vectors]
    vectors |= store.vectors_of(space, "atom", notes, IDENTITY) if notes else {}
    if vectors:
        near = Vectors(identity=IDENTITY, data=np.sum(list(vectors.values()), axis=0)[None, :])
        ids = [hit.id for hit in store.nearest(space, "turn", near, filters=Filters(), limit=2 * _LATER)]
    else:
        words = "\n".join(_words(rule.atom) for rule in rules)
        ids = [hit.id for hit in context.hits("turn", words, filters=Filters(role="user"), limit=_LATER)]
    aside = quarantined_ids(store, space, ids)
    return [
        turn
        for turn in store.read(space, turn_rows.by_ids, [id for id in ids if id not in aside])
        if turn.role == "user"
    ][:_LATER]


def _ended_by(context: SearchContext, rule: _Rule, endings: Sequence[_Ending]) -> tuple[bool, Turn | None]:
    """Return whether a rule has ended, and the message that did or may have ended it, if any.

    `endings` are messages that announce a change. Of several it is the latest that surely ended the rule, or else the
    likeliest.
    """
    if _is_replaced(rule.atom):
        return True, _turn_that_replaced(context, rule.atom)
    if rule.turn is None:
        return False, None
    likely = [
        ending
        for ending in endings
        if ending.changes >= MAY_END
        and is_before(rule.turn, ending.turn)
        and not turns_of_others(context.store, context.space, [ending.turn])
    ]
    surely = [ending.turn for ending in likely if ending.takes_back >= ENDS]
    if surely:
        return True, max(surely, key=lambda turn: (turn.said_at, turn.position))
    likeliest = max(likely, key=lambda ending: ending.changes, default=None)
    return False, likeliest and likeliest.turn


def _turn_that_replaced(context: SearchContext, atom: Atom) -> Turn | None:
    """Return the turn of the last statement in the chain of successors of an atom.

    A turn that is quarantined or somebody else's replaces nothing, so the statements after it do not count. None if
    the turns are gone, or if the chain is longer than `_MAX_REPLACED`.
    """
    last_turn: Turn | None = None
    for _ in range(_MAX_REPLACED):
        newer = context.store.read(context.space, atom_rows.by_ids, filter(None, [atom.superseded_by]))
        turns = context.store.read(
            context.space, turn_rows.by_ids, [id for successor in newer for id in atom_turns(successor)]
        )
        if not turns:
            return last_turn
        latest = max(turns, key=lambda turn: (turn.said_at, turn.position))
        if quarantined_ids(context.store, context.space, [latest.id]) or turns_of_others(
            context.store, context.space, [latest]
        ):
            return last_turn
        last_turn, (atom,) = latest, newer
    return None


class _Ending(NamedTuple):
    """How likely a message ends a rule: by its sentences of change, and by those that take something back."""

    turn: Turn
    changes: float
    takes_back: float


def _endings(context: SearchContext, rules: Sequence[_Rule], later: Sequence[Turn]) -> list[list[_Ending]]:
    """Return for each rule how likely each of the messages ends it.

    Messages that announce no change or were said before all rules are left out.
    """
    after = [turn for turn in later if any(rule.turn and is_before(rule.turn, turn) for rule in rules)]
    changes = {turn.id: sentences for turn in after if (sentences := _changes(turn.content))}
    if not changes:
        return [[] for _ in rules]
    changing = [turn for turn in after if turn.id in changes]
    texts = list(dict.fromkeys(text for sentences in changes.values() for text, _ in sentences))
    places = {text: place for place, text in enumerate(texts)}

    def ending(turn: Turn, chances: Sequence[float]) -> _Ending:
        of_sentences = [(chances[places[text]], surely) for text, surely in changes[turn.id]]
        return _Ending(
            turn,
            max(chance for chance, _ in of_sentences),
            max((chance for chance, surely in of_sentences if surely), default=0.0),
        )

    # The stored vector of a longer message is nearly that of its start: the encoder reads no more of it.
    starts = {turn.id: turn.content[:_READ] for turn in changing}
    messages = _encoder_vectors(context, "turn", starts, texts)
    chances = ending_probabilities(_vectors_of_rules(context, [rule.atom for rule in rules]), messages)
    return [[ending(turn, of_rule) for turn in changing] for of_rule in chances.tolist()]


def _vectors_of_rules(context: SearchContext, rules: Sequence[Atom]) -> NDArray[np.float32]:
    texts = {rule.id: rule.text for rule in rules}
    return _encoder_vectors(context, "atom", texts, list(texts.values()))


def _encoder_vectors(
    context: SearchContext, layer: Layer, rows: Mapping[str, str], texts: Sequence[str]
) -> NDArray[np.float32]:
    """Return the vectors of texts by the encoder, a row each: stored ones of the texts that are `rows`, by id."""
    import numpy as np

    wanted = set(texts)
    stored = context.store.vectors_of(
        context.space, layer, [id for id, text in rows.items() if text in wanted], IDENTITY
    )
    halves = encoder_halves(np.stack(list(stored.values()))) if stored else ()
    vectors = dict(zip((rows[id] for id in stored), halves, strict=True))
    missing = [text for text in texts if text not in vectors]
    vectors |= zip(missing, encoder_vectors(missing), strict=True)
    return np.stack([vectors[text] for text in texts]) if texts else encoder_vectors(())


@lru_cache(maxsize=4_096)
def _changes(text: str) -> list[tuple[str, bool]]:
    """Return the sentences of a message that announce a change, each with whether it takes something back."""
    from mcp_memory.longterm.verification.comparison import sentences_of

    start = text[:_READ]
    sentences = dict.fromkeys([start, *sentences_of(start)]) if tells_change(start) else ()
    return [(sentence, takes_back(sentence)) for sentence in sentences if tells_change(sentence)]


def _line_of(row: _Rule | Turn, limits: RecallLimits) -> RecallLine:
    """Return the line of a rule, or of a message that may have ended one."""
    if isinstance(row, _Rule):
        return of_rule(row.atom, row.turn)
    notes = {row.id: f"{row.said_at:%Y-%m-%d}"}
    (line,) = of_turns([row], words=frozenset(), widths=(limits.rule_width,), group="rule", notes=notes)
    return line
