"""Decides whether a newer text changes a value that an older text states.

Values (a date, amount or name) are compared if the words around them agree, or if both belong to the same relation
("rent"). `slot_score` rates possible contradictions and updates, for a reader to decide about; `replaces` is certain
enough to mark the older text as outdated. Both are pure and read no clock. Synonyms are recognized only by `cosine`
and a few relations.

The model of `contradiction` reads the result of `slot_score`, but cannot replace it: on the 120 pairs of
tests/longterm/changes_pairs.jsonl the model has a precision of 44 % at a recall of 85 %, these rules have 92 and 85 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product

from mcp_memory.language.sentences import is_negative
from mcp_memory.longterm.change_values import DENSE_FROM, StatedValue, ValueKind, comparable, differ
from mcp_memory.longterm.value_clauses import LEAST_STEM, ValueClause, first_clauses, have_one_stem, words_alike

CONTRADICTS = 0.6
"""The least score of a contradiction; a lower score means that the texts may be about the same thing."""

# Cosines by the bundled model. Measured on 120 invented pairs in ten languages (tests/longterm/changes_pairs.jsonl):
# recall of same_slot 85 %, precision 92 %; of replaces 55 and 100 %. `fixtures/changes` has 598 later pairs
# (`python -m bench.marks`): recall of replaces 61 %, precision 99 %. Before the faults that they showed were fixed, 45
# of the 14,280 pairs of a newer text with the older text of another pair were marked or reported as contradictions,
# most of them plausible.
_SAME = 0.9  # a repetition
_CLOSE = 0.6  # a paraphrase
_NEAR = 0.4  # the same topic
_APART = 0.3  # two long turns that share one clause
_FAR = 0.2  # below it, shared words are a coincidence
_UNKNOWN = 0.5  # assumed for a pair without a cosine
_FEW_WORDS = 2


def same_slot(newer: str, older: str, *, cosine: float | None = None) -> bool:
    """Return whether the newer text may contradict or update the older: another value for the same thing.

    `cosine`, -1 to 1, is that of the two texts by the bundled model; None if it is unknown or another model's.
    """
    return any(score > 0.0 for score in _scores(newer, older, cosine))


def slot_score(newer: str, older: str, *, cosine: float | None = None) -> float:
    """Return how likely the newer text contradicts or updates the older, 0 (not at all) to 1, to rank candidates."""
    return max(_scores(newer, older, cosine), default=0.0)


def _scores(newer: str, older: str, cosine: float | None) -> Iterator[float]:
    """Yield the scores of the pairs of clauses that may contradict."""
    if newer == older:
        return
    cosine = _UNKNOWN if cosine is None else cosine
    for pair in product(first_clauses(newer), first_clauses(older)):
        if _may_contradict(*pair):
            yield _score(Comparison(*pair), cosine)


def replaces(newer: str, older: str, *, cosine: float | None = None, asked: str = "") -> bool:
    """Return whether the newer text surely gives another value for what the older says.

    `cosine` as in `same_slot`. `asked` is the text that the older text answers, such as the turn before it; it shows
    what a bare "1 September" is about. Changes are missed rather than invented: there must be a word of change ("now",
    "moved", "not 14 but 12": see `announces_change`), a value of the same kind that differs, and the same words around
    both values.
    """
    cosine = _UNKNOWN if cosine is None else cosine
    new_clauses = first_clauses(newer)
    changes = [new for new in new_clauses if (new.changed or new.former) and new.is_stated and not _is_denied(new)]
    if not changes or newer == older:
        return False
    old_clauses = first_clauses(older)
    answers = _with_words_of_question(old_clauses, asked) if asked else ()
    return any(
        any(_is_replaced(new, old, cosine) for new in changes) and not any(_restates(new, old) for new in new_clauses)
        for old in (*old_clauses, *answers)
        if old.is_stated
    )


def _is_denied(clause: ValueClause) -> bool:
    """Return whether a clause denies its value: "is not moved to 19 June", but not "not 14 but 19"."""
    return bool(clause.values) and not clause.former and is_negative(clause.text)


def is_bare_value(text: str) -> bool:
    """Return whether the first clause of a text is a value without other words, as in the answer to a question."""
    return _bare_value(first_clauses(text)) is not None


def _bare_value(clauses: tuple[ValueClause, ...]) -> ValueClause | None:
    """Return the first clause if it is a value without other words."""
    first = next(iter(clauses), None)
    return first if first is not None and first.values and not first.words else None


def _with_words_of_question(answer: tuple[ValueClause, ...], asked: str) -> Iterator[ValueClause]:
    """Yield the first clause of an answer, if it is a bare value, extended by the words of the last question."""
    first = _bare_value(answer)
    if first is None:
        return
    questions = [clause for clause in first_clauses(asked) if clause.text.rstrip().endswith(("?", "？"))]
    if questions:
        yield first.answering(questions[-1])


# --- two clauses ------------------------------------------------------------------------------------


def _score(pair: Comparison, cosine: float) -> float:
    if pair.equal_value and not (pair.values_differ or pair.revokes):
        return 0.0
    if pair.revokes and (pair.shared_words or pair.relation or cosine >= _NEAR):
        return 1.0
    has_other_value = pair.values_differ or pair.names_differ
    if not has_other_value and (not pair.changed or cosine >= _SAME):
        return 0.0
    certainty = 0.1 * min(1.0, max(0.0, cosine)) + 0.2 * pair.changed
    is_other_name = pair.other_names and not (pair.by_name or pair.same_name)
    differences = pair.unshared_words + (pair.values_differ and is_other_name)
    score = _score_of_values if has_other_value else _score_of_change
    return score(pair, cosine, differences, certainty)


def _score_of_values(pair: Comparison, cosine: float, differences: int, certainty: float) -> float:
    """Score two clauses with values, or names in one relation, that differ."""
    is_one_thing = (
        ((pair.shared_words > 0 or pair.same_name) and cosine >= _FAR)
        or (pair.sole and cosine >= _APART)
        or (pair.alone and cosine >= _UNKNOWN)
    )
    if is_one_thing and not differences:
        return CONTRADICTS + certainty
    if not pair.changed or cosine < _CLOSE:
        return 0.0
    if not pair.shared_words and not pair.relation:
        return 0.3 + certainty
    return 0.2 + certainty if pair.shared_words >= 2 else 0.0


def _score_of_change(pair: Comparison, cosine: float, differences: int, certainty: float) -> float:
    """Score a newer clause with a word of change and without a value that differs."""
    if pair.dense and pair.by_name and differences <= 1 and cosine >= _NEAR:
        return 0.4 + certainty
    if pair.adds_name and cosine >= _NEAR and (pair.shared_words or pair.same_name or cosine >= _CLOSE):
        return 0.0 if differences else 0.4 + certainty
    return 0.2 + certainty if pair.shared_words and differences <= 1 and cosine >= _CLOSE else 0.0


def _restates(newer: ValueClause, older: ValueClause) -> bool:
    pair = Comparison(newer, older)
    return (
        pair.equal_value
        and not (pair.values_differ or pair.revokes)
        and pair.shared_words > 0
        and pair.unshared_words == 0
    )


def _is_replaced(newer: ValueClause, older: ValueClause, cosine: float) -> bool:
    if not newer.former and (cosine < _APART or not _may_differ(newer, older)):
        return False  # most pairs; the comparison below takes ten times as long
    pair = Comparison(newer, older)
    if pair.revokes and (pair.shared_words or pair.equal_value or (cosine >= _NEAR and pair.same_units)):
        return True
    if cosine < _APART or not (pair.values_differ or pair.names_differ) or pair.may_be_label or pair.two_things:
        return False
    if pair.same_name and pair.values_differ and len(older.words) <= _FEW_WORDS:
        return True
    if pair.other_names and not pair.by_name:
        return False
    return pair.shared_words > 0 or (pair.sole and not pair.of_tool)


_BY_NAME = frozenset(["home", "job", "tool"])
"""Relations whose value is a name."""
_SOLE = _BY_NAME | {"rent", "due", "open"}
"""Relations that identify a value without further words."""


def _may_contradict(newer: ValueClause, older: ValueClause) -> bool:
    """Return whether two clauses have anything that could contradict; most pairs do not, and this is fast."""
    return newer.changed or bool(newer.former) or _may_differ(newer, older)


def _may_differ(newer: ValueClause, older: ValueClause) -> bool:
    """Return whether both have values of the same kind, or the same relation whose value is a name."""
    return not newer.kinds.isdisjoint(older.kinds) or not (newer.relations & older.relations).isdisjoint(_BY_NAME)


class Comparison:
    """How a newer clause relates to an older clause. What takes long is found when it is first asked for."""

    def __init__(self, newer: ValueClause, older: ValueClause) -> None:
        self._newer, self._older = newer, older
        self.changed = newer.changed or bool(newer.former)
        self.revokes = any(_revokes(former, value) for former in newer.former for value in older.values)
        self.same_units = any(  # a number without a unit fits each unit
            new.kind == old.kind and (new.unit == old.unit or not (new.unit and old.unit))
            for new in newer.values
            for old in older.values
        )
        differing, self.equal_value = _compare_values(newer.values, older.values)
        self.values_differ = bool(differing)
        # The number that differs may name a thing: it follows a name that is not a product ("Step 4" and "Step 5"), or
        # other values differ as well ("ticket 44 is due on 3 May").
        amounts = min(sum(value.kind == "amount" for value in clause.values) for clause in (newer, older))
        self.may_be_label = ("version" in differing and "tool" not in newer.relations | older.relations) or (
            "amount" in differing and (amounts > 1 or bool(differing - {"amount", "clock"}))
        )

        relations = newer.relations & older.relations
        self.relation, self.of_tool = bool(relations), "tool" in relations
        self.by_name = not relations.isdisjoint(_BY_NAME)
        self._is_sole = not relations.isdisjoint(_SOLE)

        self.same_name = not newer.names.isdisjoint(older.names)
        self.adds_name = bool(newer.names - older.names)
        self.other_names = self.adds_name and bool(older.names - newer.names)
        one_name = min(len(newer.names), len(older.names)) == 1  # with more names, and none shared, two subjects
        self.names_differ = self.by_name and self.other_names and (self.same_name or one_name)

    @property
    def sole(self) -> bool:
        """Whether the relation identifies the value, and neither clause says more about it."""
        return self._is_sole and not (self._newer.words or self._older.words)

    @property
    def alone(self) -> bool:
        """Whether the relation identifies the value, and at most one clause says more about it."""
        return self._is_sole and not (self._newer.words and self._older.words)

    @cached_property
    def _words_alike(self) -> tuple[int, int]:
        return words_alike(self._newer.words, self._older.words)

    @property
    def shared_words(self) -> int:
        return min(self._words_alike)

    @property
    def unshared_words(self) -> int:
        new_alike, old_alike = self._words_alike
        return min(len(self._newer.words) - new_alike, len(self._older.words) - old_alike)

    @property
    def dense(self) -> bool:
        """Whether both clauses have words, all in scripts without spaces."""
        new, old = self._newer.words, self._older.words
        return bool(new and old) and min(*new, *old) > DENSE_FROM

    @property
    def two_things(self) -> bool:
        """Whether the clauses are about two different things.

        Usually each then has a word, name or relation that the other lacks: "the invoice of Kestrel" and "the invoice
        of Marlow", "Zahnarzttermin" and "Termin beim Augenarzt", the pool and the car park of the pool. A person such
        as "my sister" in the newer clause is enough, as is a new name if the older clause is about the user.
        """
        newer, older = self._newer, self._older
        if newer.is_further and not older.is_further:
            return True
        if _is_about_part(newer, older) or _is_about_part(older, newer):
            return True
        new_alike, old_alike = self._words_alike
        new_names, old_names = (frozenset[str](), frozenset[str]()) if self.names_differ else (newer.names, older.names)
        new = len(newer.words) - new_alike + len(new_names - old_names) + len(newer.plain_relations - older.relations)
        old = len(older.words) - old_alike + len(old_names - new_names) + len(older.relations - newer.relations)
        new += _unshared_modifiers(newer.words, older.words)
        old += _unshared_modifiers(older.words, newer.words)
        names_another = older.is_of_user and new_names - old_names
        return (new > 0 and old > 0) or bool(names_another or newer.people - older.people)


def _is_about_part(clause: ValueClause, other: ValueClause) -> bool:
    """Return whether a clause is about a part ("the pool's car park") and the other about its whole ("the pool")."""
    return any(
        part <= clause.words and not any(words_alike(part, other.words)) and any(words_alike(whole, other.words))
        for part, whole in clause.parts
    )


def _unshared_modifiers(words: frozenset[str], others: frozenset[str]) -> int:
    """Count the compounds of which `others` has only the last part: "termin" of "zahnarzttermin", not "zahnarzt"."""
    modifiers = (
        word.removesuffix(other)
        for word in words - others
        for other in others
        if LEAST_STEM <= len(other) < len(word) and word.endswith(other)
    )
    return sum(not any(have_one_stem(modifier, other) for other in others) for modifier in modifiers)


def _compare_values(newer: tuple[StatedValue, ...], older: tuple[StatedValue, ...]) -> tuple[set[ValueKind], bool]:
    """Return the kinds of value that the clauses share but never agree on, and whether any values are equal.

    An amount whose number is in both does not differ, whatever its unit.
    """
    pairs = [(new, old) for new in newer for old in older if comparable(new, old)]
    kinds: set[ValueKind] = {new.kind for new, _ in pairs}
    agreeing: set[ValueKind] = {new.kind for new, old in pairs if not differ(new, old)}
    numbers = {value.reading for value in older if value.kind == "amount"}
    repeated: set[ValueKind] = {new.kind for new in newer if new.kind == "amount" and new.reading in numbers}
    return kinds - agreeing - repeated, bool(agreeing)


def _revokes(former: StatedValue, old: StatedValue) -> bool:
    """Return whether the older text has the value that the newer calls former: "not 14" revokes 14:00 and 14 mugs."""
    if former.kind == "amount" and not former.unit:
        reading = old.reading / 60 if old.kind == "clock" and isinstance(old.reading, float) else old.reading
        return former.reading == reading
    return comparable(former, old) and not differ(former, old)
