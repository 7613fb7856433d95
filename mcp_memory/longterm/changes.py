"""Detects that a newer text changes a value that an older one states.

A *value* is a date, weekday, time, amount, version or name; its *slot* is given by the words around it ("rent",
"deadline of the draft"). `same_slot` finds possible contradictions and updates (a reader decides); `replaces` is
certain enough to mark the older text as outdated. Both are pure and read no clock. Synonyms are known only by `cosine`
and a few relations. Word lists are in `words/changes.txt`, values in `change_values`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import pairwise

from mcp_memory.language import pattern_of
from mcp_memory.language.sentences import is_negative, is_person
from mcp_memory.language.words import fold, function_words, languages_of
from mcp_memory.longterm.change_values import (
    Forms,
    StatedValue,
    ValueKind,
    any_of,
    blocks,
    comparable,
    differ,
    forms_of,
    values_in,
)

CONTRADICTS = 0.6
"""Slot scores from here on: another value in the same words. Below, the words differ too."""

# Cosines by the bundled model. Measured on 120 invented pairs in ten languages (tests/longterm/changes_pairs.jsonl),
# before and after fixing the faults they showed: recall of same_slot 82 and 85 %, precision 87 and 89 %; of replaces
# 60 and 58 %, 96 and 100 %. On 40 more pairs, before fixing their faults: recall and precision 80 and 84 % (same_slot),
# 60 and 100 % (replaces). Each newer text with every older text of another pair: 45 of 14,280 are marked or reported as
# contradictions, most of them plausible. `fixtures/changes` has 598 later pairs (`python -m bench.marks`).
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
    """Return whether the newer text may contradict or update the older: the same slot with another value.

    `cosine`, -1 to 1, is that of the two texts by the bundled model; None where it is not known or another model's.
    """
    return slot_score(newer, older, cosine=cosine) > 0.0


def slot_score(newer: str, older: str, *, cosine: float | None = None) -> float:
    """Return how likely the newer text contradicts or updates the older, 0 (not at all) to 1, to rank candidates."""
    if newer == older:
        return 0.0
    near = _UNKNOWN if cosine is None else cosine
    pairs = ((new, old) for new in _first(newer) for old in _first(older))
    return max((_slot(Comparison(*pair), near) for pair in pairs if _may_contradict(*pair)), default=0.0)


@lru_cache(maxsize=4_096)
def announces_change(text: str) -> bool:
    """Return whether a text can make `replaces` return True; a fast check."""
    text = text[:_READ]
    return _announces(text) or _forms("former").are_in(text)


def replaces(newer: str, older: str, *, cosine: float | None = None, asked: str = "") -> bool:
    """Return whether the newer text surely gives another value for what the older says.

    `cosine` as in `same_slot`. `asked` is what the older text answers, such as the turn before it: the slot of a bare
    "1 September" is in the question. Prefers to miss a change: it needs a word of change ("now", "moved", "not 14 but
    12": see `announces_change`), a value of the same kind that differs, and the same words around both.
    """
    near = _UNKNOWN if cosine is None else cosine
    said = _first(newer)
    changes = [new for new in said if (new.changed or new.former) and new.is_stated and not _is_denied(new)]
    if not changes or newer == older:
        return False
    told = _first(older)
    answered = _answered(told, asked) if asked else ()
    return any(
        any(_is_replaced(new, old, near) for new in changes) and not any(_restates(new, old) for new in said)
        for old in (*told, *answered)
        if old.is_stated
    )


def _is_denied(clause: ValueClause) -> bool:
    """Return whether a clause says that its value does not hold: "is not moved to 19 June", but not "not 14 but 19"."""
    return bool(clause.values) and not clause.former and is_negative(clause.text)


def _answered(answer: tuple[ValueClause, ...], asked: str) -> Iterator[ValueClause]:
    """Yield the first statement of an answer, with the slot words of the question."""
    first = next(iter(answer), None)
    if first is None or not first.values or first.words:
        return
    questions = [one for one in _first(asked) if one.text.rstrip().endswith(("?", "？"))]
    if questions:
        last = questions[-1]
        yield replace(first, words=last.words, relations=last.relations, names=first.names | last.names)


def _first(text: str) -> tuple[ValueClause, ...]:
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


def _restates(newer: ValueClause, older: ValueClause) -> bool:
    found = Comparison(newer, older)
    return found.equal and not (found.values or found.revoked) and found.common > 0 and found.apart == 0


def _is_replaced(newer: ValueClause, older: ValueClause, near: float) -> bool:
    if not newer.former and (near < _APART or not _may_differ(newer, older)):
        return False  # most pairs; what follows takes ten times as long
    found = Comparison(newer, older)
    if found.revoked and (found.common or found.equal or (near >= _NEAR and found.same_units)):
        return True
    if near < _APART or not (found.values or found.names) or found.numbered or found.two_things:
        return False
    if found.same_names and found.values and len(older.words) <= _FEW_WORDS:
        return True
    if found.other_names and not found.held:
        return False
    return found.common > 0 or (found.sole and not found.tool)


_HELD = frozenset(["home", "job", "tool"])
"""Relations whose value is a name."""
_SOLE = _HELD | {"rent", "due", "open"}
"""Relations that are a slot without further words."""


def _may_contradict(newer: ValueClause, older: ValueClause) -> bool:
    """Return whether two clauses have anything that could contradict; most pairs do not, and this is fast."""
    return newer.changed or bool(newer.former) or _may_differ(newer, older)


def _may_differ(newer: ValueClause, older: ValueClause) -> bool:
    """Return whether both have values of a kind, or of a relation whose value is a name."""
    return not newer.kinds.isdisjoint(older.kinds) or not (newer.relations & older.relations).isdisjoint(_HELD)


class Comparison:
    """How a newer clause relates to an older one."""

    def __init__(self, newer: ValueClause, older: ValueClause) -> None:
        self.changed = newer.changed or bool(newer.former)  # the newer says that something is otherwise than before
        self.revoked = any(_revokes(gone, value) for gone in newer.former for value in older.values)
        self.same_units = any(  # a number without a unit fits each unit
            new.kind == old.kind and (new.unit == old.unit or not (new.unit and old.unit))
            for new in newer.values
            for old in older.values
        )
        differing, self.equal = _compared(newer.values, older.values)
        self.values = bool(differing)
        # A number that may be a thing's name differs: it follows a name that nothing calls a product ("Step 4" and
        # "Step 5"), or it is not all that differs ("ticket 44 is due on 3 May").
        amounts = min(sum(value.kind == "amount" for value in clause.values) for clause in (newer, older))
        self.numbered = ("version" in differing and "tool" not in newer.relations | older.relations) or (
            "amount" in differing and (amounts > 1 or bool(differing - {"amount", "clock"}))
        )

        relations = newer.relations & older.relations
        self.relation, self.tool = bool(relations), "tool" in relations
        self.held = not relations.isdisjoint(_HELD)
        is_slot = not relations.isdisjoint(_SOLE)
        self.sole = is_slot and not (newer.words or older.words)  # all that both say of what the value is of
        self.alone = is_slot and not (newer.words and older.words)  # all that one of them says of it

        self.same_names = not newer.names.isdisjoint(older.names)
        self.more_names = bool(newer.names - older.names)
        self.other_names = self.more_names and bool(older.names - newer.names)
        one_name = min(len(newer.names), len(older.names)) == 1  # with more, and none shared, they have two subjects
        self.names = self.held and self.other_names and (self.same_names or one_name)

        had, has = words_alike(newer.words, older.words)
        self.common = min(had, has)
        self.apart = min(len(newer.words) - had, len(older.words) - has)
        self.two_things = self._two_things(newer, older, had, has)
        in_both = newer.words and older.words
        self.dense = bool(in_both) and min(*newer.words, *older.words) > "\u0e00"  # scripts without spaces

    def _two_things(self, newer: ValueClause, older: ValueClause, had: int, has: int) -> bool:
        """Return whether each says of what its value is something that the other does not: a word, name or relation.

        "The invoice of Kestrel" and "the invoice of Marlow" have one word in common and are two things; so are
        "Zahnarzttermin" and "Termin beim Augenarzt", or the pool and the car park of the pool. So is what only the
        newer says of a person, such as "my sister"; of a name, only if the older is about the user.
        """
        if newer.is_further and not older.is_further:
            return True
        if _says_of_a_part(newer, older) or _says_of_a_part(older, newer):
            return True
        names = (newer.names, older.names) if not self.names else (frozenset[str](), frozenset[str]())
        new = len(newer.words) - had + len(names[0] - names[1]) + len(newer.plain_relations - older.relations)
        old = len(older.words) - has + len(names[1] - names[0]) + len(older.relations - newer.relations)
        new += _unshared_modifiers(newer.words, older.words)
        old += _unshared_modifiers(older.words, newer.words)
        named = older.is_of_user and names[0] - names[1]
        return (new > 0 and old > 0) or bool(named or newer.people - older.people)


def _says_of_a_part(clause: ValueClause, other: ValueClause) -> bool:
    """Return whether a clause is about a part (a car park) and the other about its whole (the pool)."""
    return any(
        part <= clause.words and not any(words_alike(part, other.words)) and any(words_alike(whole, other.words))
        for part, whole in clause.parts
    )


def _unshared_modifiers(words: frozenset[str], others: frozenset[str]) -> int:
    """Count the compounds of which the others have only the last part: "termin", but nothing like "zahnarzt"."""
    modifiers = (
        word.removesuffix(other)
        for word in words - others
        for other in others
        if _LEAST_STEM <= len(other) < len(word) and word.endswith(other)
    )
    return sum(not any(_same_stem(modifier, other) for other in others) for modifier in modifiers)


def _compared(newer: tuple[StatedValue, ...], older: tuple[StatedValue, ...]) -> tuple[set[ValueKind], bool]:
    """Return the kinds of which all values of the two differ, and whether they have an equal value.

    A number that both have does not differ, whatever word follows it.
    """
    pairs = [(new, old) for new in newer for old in older if comparable(new, old)]
    kinds: set[ValueKind] = {new.kind for new, _ in pairs}
    agreeing: set[ValueKind] = {new.kind for new, old in pairs if not differ(new, old)}
    numbers = {value.reading for value in older if value.kind == "amount"}
    repeated: set[ValueKind] = {new.kind for new in newer if new.kind == "amount" and new.reading in numbers}
    return kinds - agreeing - repeated, bool(agreeing)


def _revokes(gone: StatedValue, old: StatedValue) -> bool:
    """Return whether the older text has the value that the newer calls former: "not 14" revokes 14:00 and 14 mugs."""
    if gone.kind == "amount" and not gone.unit:
        return gone.reading == (
            old.reading / 60 if old.kind == "clock" and isinstance(old.reading, float) else old.reading
        )
    return comparable(gone, old) and not differ(gone, old)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueClause:
    """One clause. `words` tell what its values are of: no function words, numbers, change words, names, or
    words of a relation.

    `names` are capitalised words inside it, folded; in languages that capitalise every noun only those after a
    preposition. `former` are values that it says are no longer so ("not 14", "instead of Tuesday");
    `kinds` are those of `values`.
    """

    text: str
    values: tuple[StatedValue, ...]
    former: tuple[StatedValue, ...]
    kinds: frozenset[ValueKind]
    names: frozenset[str]
    words: frozenset[str]
    parts: tuple[tuple[frozenset[str], frozenset[str]], ...]
    """The words of a part and of its whole: "car park of the pool", "the pool's car park"."""
    people: frozenset[str]
    """Words such as "sister", folded."""
    relations: frozenset[str]
    plain_relations: frozenset[str]
    """Without those that only a word of change names, such as "moved to"."""
    changed: bool
    is_further: bool
    """Whether its sentence introduces a further thing ("another shelf") or one of several ("the last bus")."""
    is_of_user: bool
    """Whether it is in the first person."""
    is_stated: bool
    """Whether its sentence says that something is so; questions, conditions and wishes do not."""


@lru_cache(maxsize=4_096)
def statements(text: str) -> tuple[ValueClause, ...]:
    """Return the statements of a text, in order, one a clause."""
    languages = languages_of(_WORD.findall(text)[:60])
    return tuple(
        _statement(clause, sentence, languages)
        for sentence in map(str.strip, _sentences(text))
        if sentence
        for clause in _clauses(sentence)
    )


def words_alike(some: frozenset[str], others: frozenset[str]) -> tuple[int, int]:
    """Return how many words of each have one of the same stem, or a compound with it, among the other's."""
    same = some & others
    left, right = _by_ends(some), _by_ends(others)
    pairs = [  # few words begin or end alike: only these are compared, each with each
        (one, other)
        for end in left.keys() & right.keys()
        for one in left[end]
        if one not in same
        for other in right[end]
        if other not in same and _same_stem(one, other)
    ]
    return len(same) + len({one for one, _ in pairs}), len(same) + len({other for _, other in pairs})


# --- reading ----------------------------------------------------------------------------------------

_SENTENCE = re.compile(r"(?<=[.!?;])\s+(?=\S)|(?<=[。！？；])|\n+")
_TOPIC_END = re.compile(r"[:：]\s")  # "another thing: dinner is at 8 now"
_COMMA = re.compile(r"[,;:]\s|\s[-–—]\s|[，、；]")
_MOST_CLAUSES = 12
_QUOTATION = re.compile(r"«[^»]*»|“[^”]*”|„[^“”]*[“”]|\"[^\"]*\"|「[^」]*」|『[^』]*』")
_QUOTED_SENTENCE = 14  # characters with the quotation marks; shorter quotations are mostly names
_ABBREVIATED = re.compile(r"(?:\b\w{1,2}|\d|\b(?:Dr|Mrs?|Ms|Prof|Sr|Sra|St|Nr|ca|approx))\.$")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_CLITIC = re.compile(r"^(?:[dlnsmtcj]|qu|dell|nell|all|sull|un)['’]|['’](?:s|ll|re|ve|d|m|t)$")
_DENSE = re.compile(r"[\u4e00-\u9fff]+|[\u30a0-\u30ff]{2,}|[\uac00-\ud7a3]+")
_PARTICLES = re.compile(
    "[的了是在我你您他她们們到把从從和也都很就]|[上下]午|午[前後]|오전|오후|이에요|예요|에요|어요|아요|해요|입니다|합니다|습니다|까지"
)
_A_WORD = r"[^\W\d_\u0e00-\uffff]+"
_PART_OF = re.compile(
    rf"\b(?P<part>{_A_WORD})\s(?:(?:of|for|at|de|du|des|del|della|do|da|von|vom|van|zum|zur|für|beim|pour|para|per|voor)\s|d['’]|dell['’])"
    rf"(?:(?:the|my|our|la|le|les|el|los|las|dem|den|der|het|een)\s|l['’])?(?P<whole>{_A_WORD})"
    rf"|\b(?P<owner>{_A_WORD})['’]s\s(?P<owned>{_A_WORD})"
    r"|(?P<dense_whole>[\u30a0-\u30ff\u4e00-\u9fff]{2,})[的の](?P<dense>[\u30a0-\u30ff\u4e00-\u9fff]{2,})"
)
_NAME_WORD = r"[A-ZÀ-ÖØ-ÞА-ЯЁ][\w+#]*(?:[.-][A-Za-z]\w*)*"
_NAME = re.compile(rf"(?<![^\W_]){_NAME_WORD}(?:\.?\s{_NAME_WORD})*")
_POSSESSIVE = re.compile(r"['’]s\s")
_PREPOSITION = re.compile(r"(?:^|\s)(?:in|nach|bei|aus|von|zu|auf|an|Praxis|Dr\.|Frau|Herrn?)\s$")
_FORMER_REACH = 24
_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "nl", "ru", "pl", "tr", "sv")
_LEAST_STEM = 4
_STEM_SHARE = 0.6


def _sentences(text: str) -> Iterator[str]:
    begun = ""
    for part in _SENTENCE.split(text):
        begun = f"{begun} {part}" if begun else part
        if not _ABBREVIATED.search(begun[-12:]):
            yield begun
            begun = ""
    yield begun


def _clauses(sentence: str) -> Iterator[str]:
    """Yield the parts between commas; a part without content words stays with the part before it."""
    places = [0, *(match.end() for match in _COMMA.finditer(sentence)), len(sentence)]
    parts = [sentence[start:end] for start, end in pairwise(places)]
    if len(parts) == 1 or len(parts) > _MOST_CLAUSES:
        yield sentence
        return
    begun = parts[0]
    for part in parts[1:]:
        if _says(begun) and _says(part):
            yield begun
            begun = part
        else:
            begun += part
    yield begun


def _says(part: str) -> bool:
    plain = _forms("changed").taken_out(_blanked(part, [value.at for value in values_in(part)]))
    return bool(_content(_without(_relations_in(plain), plain)))


def _relations_in(text: str) -> dict[str, Forms]:
    return {name: forms for name, forms in _relations() if forms.are_in(text)}


def _without(relations: Mapping[str, Forms], text: str) -> str:
    for forms in relations.values():
        text = forms.taken_out(text)
    return text


def _statement(text: str, sentence: str, languages: tuple[str, ...]) -> ValueClause:
    values = values_in(text)
    bare = _blanked(text, [value.at for value in values])
    # "Fiona has swapped a shift, so they come on Sunday", but not "I slept for eight hours, no longer tired"
    so_far = sentence[: sentence.find(text) + len(text)]
    changed = _announces(so_far)
    names = list(_names(bare, languages))
    plain = _forms("changed").taken_out(_blanked(bare, names))
    apart, overlapping = _relations_in(plain), _relations_in(bare)  # "switched to" is a change and a relation
    plain = _without(overlapping, _forms("changed").taken_out(_without(apart, plain)))
    plain = _forms("month").taken_out(plain)  # "from June" is when, not what
    former = [value for value in values if _is_former(text, value, changed=changed)]
    return ValueClause(
        text=text,
        values=tuple(value for value in values if value not in former),
        former=tuple(former),
        kinds=frozenset(value.kind for value in values if value not in former),
        names=frozenset(fold(text[start:end]) for start, end in names).union(
            fold(value.unit) for value in values if value.kind == "version"
        ),
        words=_content(plain),
        parts=tuple(_parts(bare)),
        people=frozenset(fold(word) for word in (*_WORD.findall(text), *_dense_words(text)) if is_person(word)),
        relations=frozenset(apart | overlapping),
        plain_relations=frozenset(apart),
        changed=changed,
        is_further=_forms("further").are_in(_TOPIC_END.split(so_far)[-1]),
        is_of_user=bool(_first_person().search(text.lower())),
        is_stated=not _supposes(sentence) and not _quotes_values(sentence, text, values),
    )


def _announces(text: str) -> bool:
    return _forms("changed").are_in(text) or _forms("new").are_in(text)


def _supposes(sentence: str) -> bool:
    """Return whether a sentence asks, is a condition, or says what may be."""
    if sentence.rstrip().endswith(("?", "？")) or _forms("condition").are_in(sentence):
        return True
    return bool(pattern_of("mcp_memory.longterm", "words/frames.txt", "UNSURE").search(sentence.lower()))


def _quotes_values(sentence: str, clause: str, values: Sequence[StatedValue]) -> bool:
    """Return whether a quotation contains a value of the clause: another person may have said it."""
    start = sentence.find(clause)
    spans = [found.span() for found in _QUOTATION.finditer(sentence) if len(found[0]) >= _QUOTED_SENTENCE]
    return any(first <= start + value.at[0] < last for first, last in spans for value in values)


def _is_former(text: str, value: StatedValue, *, changed: bool) -> bool:
    """Return whether the words around a value say that it held before: not 14, instead of 14, moved from 14 to 12."""
    start, end = value.at
    before, after = text[max(0, start - _FORMER_REACH) : start], text[end : end + 12]
    if _forms("former").are_in(before) and _former().search(before):
        return True
    return changed and bool(_from().search(before)) and bool(_to().match(after))


def calls_former(text: str, words: str) -> bool:
    """Return whether a text has words only where it says that they held before: "Praxis Wallmann instead of Physio"."""
    lower, wanted = text.lower(), words.lower()
    places = [match.start() for match in re.finditer(re.escape(wanted), lower)] if wanted else []
    before = [text[max(0, start - _FORMER_REACH) : start] for start in places]
    return bool(before) and all(_forms("former").are_in(one) and _former().search(one) for one in before)


def _blanked(text: str, places: Sequence[tuple[int, int]]) -> str:
    for start, end in places:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _names(text: str, languages: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    idle = frozenset(map(fold, function_words(languages))) if languages else _idle()
    for match in _NAME.finditer(text):
        word, start = match[0], match.start()
        acronym = any(len(part) > 1 and part[1:].lower() != part[1:] for part in word.split())
        if "de" in languages and not acronym and not _PREPOSITION.search(text[max(0, start - 8) : start]):
            continue
        inside = text[:start].strip(" \"'“„«*-") or _POSSESSIVE.match(text, match.end())
        if (inside or acronym) and fold(word) not in idle:
            yield match.span()


def _parts(text: str) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for match in _PART_OF.finditer(text):
        part = match["part"] or match["owned"] or match["dense"]
        whole = match["whole"] or match["owner"] or match["dense_whole"]
        if (words := _content(part)) and (of := _content(whole)):
            yield words, of


def _content(text: str) -> frozenset[str]:
    words = (word if word.isalpha() else _CLITIC.sub("", word) for word in _WORD.findall(fold(text)))
    found = frozenset(word for word in words if word < "\u0e00" and len(word) > 1) - _idle()
    return found if text.isascii() else found.union(_dense_words(text))


def _dense_words(text: str) -> Iterator[str]:
    """Yield pairs of characters of Chinese and Japanese words, and the start of each Korean one."""
    for run in _DENSE.findall(_PARTICLES.sub(" ", text)):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)) if run < "\uac00" or not at)


@lru_cache(maxsize=4_096)
def _by_ends(words: frozenset[str]) -> Mapping[str, Sequence[str]]:
    """Return the words by their first and last letters: words of one stem share the first, compounds the last."""
    found: dict[str, list[str]] = {}
    for word in words:
        for end in {word[:_LEAST_STEM], word[-_LEAST_STEM:]}:
            found.setdefault(end, []).append(word)
    return found


def _same_stem(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(short) < _LEAST_STEM or short > "\u0e00":
        return False
    if long.endswith(short):
        return True
    if len(short) == _LEAST_STEM and len(long) > 2 * _LEAST_STEM:
        return False
    needed = max(_LEAST_STEM, round(_STEM_SHARE * len(long)) if len(long) < 2 * len(short) else len(short))
    return short[:needed] == long[:needed]


# --- patterns, built once ---------------------------------------------------------------------------


@cache
def _idle() -> frozenset[str]:
    return frozenset(map(fold, function_words(_LANGUAGES))) | frozenset(map(fold, " ".join(blocks()["light"]).split()))


@cache
def _forms(kind: str) -> Forms:
    return Forms(forms_of(kind).values())


@cache
def _relations() -> list[tuple[str, Forms]]:
    return [(name, Forms([forms])) for name, forms in forms_of("relation").items()]


@cache
def _first_person() -> re.Pattern[str]:
    spaced = pattern_of("mcp_memory.longterm", "words/verification.txt", "FIRST_PERSON").pattern
    return re.compile(rf"{spaced}|[我咱私僕俺저]|우리|나는|내 ")


_ARTICLES = r"(?:\s?(?:the|at|on|am|um|den|der|dem|le|la|las|il|los|de|bei))?"


@cache
def _former() -> re.Pattern[str]:
    return re.compile(rf"(?:{any_of(forms_of('former').values())}){_ARTICLES}\s*[(\"]?$", re.IGNORECASE)


@cache
def _from() -> re.Pattern[str]:
    return re.compile(rf"(?:{any_of(forms_of('from').values())}){_ARTICLES}\s*$", re.IGNORECASE)


@cache
def _to() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{any_of(forms_of('to').values())})", re.IGNORECASE)
