"""Detects that a newer text changes a value that an older one states.

A *value* is a date, weekday, time, amount, version or name; its *slot* is given by the words around it ("rent",
"deadline of the draft"). Two judgements use the same comparison: `same_slot` finds possible contradictions and updates
(a reader decides), `replaces` is sure enough to mark the older text as outdated. Both are pure and read no clock.

    vocabulary   change words, months, units and relations, one table a language
    values       the values in a text      statements    a text as clauses with values and slot words
    compare      what two statements share and where they differ

It does not know synonyms but through `cosine` and a few relations, and takes two things that are told in the same words
for one. It misses changes that no word of change announces, that need a sentence before, and choices in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mcp_memory.longterm.changes.compare import Comparison
from mcp_memory.longterm.changes.statements import Statement, says_changed, statements

__all__ = ["CONTRADICTS", "announces_change", "replaces", "same_slot", "slot_score"]

CONTRADICTS = 0.6
"""Slot scores from here on: another value in the same words. Below, the words differ too."""

# Cosines by the bundled model. Measured on 120 invented pairs in ten languages (tests/longterm/changes_pairs.jsonl), at
# first and after faults that they showed were mended: same_slot finds 82 and 85 % of the changes, and 87 and 89 % of
# what it finds are changes; replaces finds 60 and 58 %, of which 96 and 100 % are. On 40 more pairs, before their
# faults were mended: 80 and 84 %, 60 and 100 %. Each newer text beside every older one of another pair: 45 of 14,280
# are marked or said to contradict, most of them such as may be.
_SAME = 0.9  # says the same again
_CLOSE = 0.6  # one thing in other words
_NEAR = 0.4  # one topic
_APART = 0.3  # two long turns that share one clause
_FAR = 0.2  # the same words by chance
_UNKNOWN = 0.5  # taken for a pair without a cosine
_FEW_WORDS = 2
_READ, _FEW = 1_500, 24
"""Characters and clauses of a text that are looked at, from its start."""


def same_slot(newer: str, older: str, *, cosine: float | None = None) -> bool:
    """Tell whether the newer text may contradict or update the older: the same slot with another value.

    `cosine`, -1 to 1, is that of the two texts by the bundled model; None where it is not known or another model's.
    """
    return slot_score(newer, older, cosine=cosine) > 0.0


def slot_score(newer: str, older: str, *, cosine: float | None = None) -> float:
    """Return how likely the newer text contradicts or updates the older, 0 (not at all) to 1, to rank candidates."""
    if newer == older:
        return 0.0
    near = _UNKNOWN if cosine is None else cosine
    pairs = (Comparison(new, old) for new in _first(newer) for old in _first(older))
    return max((_slot(pair, near) for pair in pairs if pair.may_contradict), default=0.0)


def announces_change(text: str) -> bool:
    """Tell whether a text can make `replaces` return True; a fast check."""
    return says_changed(text[:_READ])


def replaces(newer: str, older: str, *, cosine: float | None = None, asked: str = "") -> bool:
    """Tell whether the newer text surely gives another value for what the older says.

    `cosine` as in `same_slot`. `asked` is what the older text answers, such as the turn before it: the slot of a bare
    "1 September" is in the question. Prefers to miss a change: it needs a word of change ("now", "moved", "not 14 but
    12": see `announces_change`), a value of the same kind that differs, and the same words around both.
    """
    near = _UNKNOWN if cosine is None else cosine
    said = _first(newer)
    changes = [new for new in said if (new.changed or new.former) and not new.asks]
    if not changes or newer == older:
        return False
    told = _first(older)
    answered = _answered(told, asked) if asked else ()
    return any(
        any(_is_replaced(new, old, near) for new in changes) and not any(_restates(new, old) for new in said)
        for old in (*told, *answered)
        if not old.asks
    )


def _answered(answer: tuple[Statement, ...], asked: str) -> Iterator[Statement]:
    """Yield the first statement of an answer, with the slot words of the question."""
    first = next(iter(answer), None)
    if first is None or not first.values or first.words:
        return
    questions = [one for one in _first(asked) if one.text.rstrip().endswith(("?", "？"))]
    if questions:
        last = questions[-1]
        yield replace(first, words=last.words, relations=last.relations, names=first.names | last.names)


def _first(text: str) -> tuple[Statement, ...]:
    return statements(text[:_READ])[:_FEW]


def _slot(found: Comparison, near: float) -> float:
    if found.equal and not (found.values or found.revoked):
        return 0.0
    if found.revoked and (found.common or found.relation or near >= _NEAR):
        return 1.0
    apart = found.apart + (found.other_names and found.values and not found.held and not found.same_names)
    fits = apart == 0 and (
        ((found.common > 0 or found.same_names) and near >= _FAR)
        or (found.sole and near >= _APART)
        or (found.alone and near >= _UNKNOWN)
    )
    surely = 0.1 * min(1.0, max(0.0, near)) + 0.2 * found.changed
    if found.values or found.names:
        if fits:
            return 0.6 + surely
        if found.changed and not found.common and not found.relation and near >= _CLOSE:
            return 0.3 + surely
        return 0.2 + surely if found.changed and found.common >= 2 and near >= _CLOSE else 0.0
    if not found.changed or found.equal or near >= _SAME:
        return 0.0
    if found.dense and found.held and apart <= 1 and near >= _NEAR:
        return 0.4 + surely
    if found.more_names and near >= _NEAR and (found.common or found.same_names or near >= _CLOSE):
        return 0.4 + surely if apart == 0 else 0.0
    return 0.2 + surely if found.common and apart <= 1 and near >= _CLOSE else 0.0


def _restates(newer: Statement, older: Statement) -> bool:
    found = Comparison(newer, older)
    return found.equal and not (found.values or found.revoked) and found.common > 0 and found.apart == 0


def _is_replaced(newer: Statement, older: Statement, near: float) -> bool:
    found = Comparison(newer, older)
    if found.revoked and (found.common or found.equal or (near >= _NEAR and newer.values)):
        return True
    if near < _APART or not (found.values or found.names) or found.numbered or found.apart:
        return False
    if found.same_names and found.values and len(older.words) <= _FEW_WORDS:
        return True
    if found.other_names and not found.held:
        return False
    return found.common > 0 or (found.sole and not found.tool)
