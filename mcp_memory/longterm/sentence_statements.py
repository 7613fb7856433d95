"""Makes statements of a user's sentences without a model, adding only dates and the questions that they answer.

A classifier gives each sentence the probabilities of its labels and its worth (`models.embed.sentence_labels`); a
sentence that is worth something later becomes a statement. Its text is verbatim: lead-ins such as "ok so" and a
trailing "lol" are cut, a long sentence is cut at a clause, relative dates are followed by absolute dates, and the
assistant's question is put before a short answer. A sentence that is unclear alone ("She is a nurse.") forms one
statement with the sentence before it.

The words of other people, questions, secrets, and paragraphs that resemble an attack are left out. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mcp_memory.core.private_passages import without_private
from mcp_memory.core.secrets.masking import is_redacted, states_secret
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Evidence, Kind, Label, Turn
from mcp_memory.language import pattern_of
from mcp_memory.language.sentences import FILL, is_question, own_part, sentences
from mcp_memory.language.when.annotate import with_dates
from mcp_memory.language.words import function_words_of, query_terms
from mcp_memory.longterm.introductions import certain_names, introduced
from mcp_memory.longterm.names import USER
from mcp_memory.longterm.promise_parts import asks_for_later
from mcp_memory.longterm.statements import relation_name
from mcp_memory.longterm.turns import own_words, small_talk_kind, without_lead_in
from mcp_memory.longterm.verification.own_words import question_of
from mcp_memory.longterm.verification.values import ADDRESS
from mcp_memory.models.embed.sentence_labels import Classified, SentenceInTurn
from mcp_memory.store.values import NewAtom
from mcp_memory.suspicion.flags import flags, flags_of

READER = 1
"""The version of the reader that statements are stored with."""

_LEAST_WORTH = 0.2
"""The least worth of a statement.

Measured on 562 sentences of six memories that the classifier had not seen. Of the sentences kept, 89 % state something
by their labels. Of the sentences that state something, 78 % are kept; of those that a later conversation needs, 93 %.
"""
_LEAST_RULE = 0.5
"""The least probability of a rule, high because an agent obeys it."""
_LEAST_PROMISE = 0.2
"""The least probability of a promise that says when it is due (`asks_for_later`).

Of 72 promises (`fixtures/promises`) 55 are recognised, of 120 sentences written to resemble promises 9, of 698 other
sentences none.
"""

_KINDS: Mapping[Label, Kind] = {
    "trait": "persona",
    "person": "persona",
    "rule": "instruction",
    "promise": "instruction",
    "decision": "episodic",
    "plan": "episodic",
    "event": "episodic",
}
"""The kind of the statements of each label, the most lasting label first."""
_HIGHEST = 89
"""The highest priority: from 90 on, a statement is recalled with every question (`recall.blocks`)."""

_FRAGMENT = 0.5  # probability of a fragment, which is stored together with the sentence before it
_LONGEST = 300  # characters of a statement
_SHORTEST_CUT = 80  # least characters that remain of a cut sentence
_READ = 4_000  # characters of a turn
_FEW_TERMS = 6  # most terms of an answer that makes no sense without its question
_FEWEST_TERMS = 2  # least terms of a sentence that makes sense alone
_QUESTION_CHARS = 160
_PARAGRAPH = re.compile(r"[^\n]+(?:\n[^\n]+)*")

_pattern = partial(pattern_of, "mcp_memory.longterm", "words/sentences.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSentence:
    """A sentence in the user's own words, `turn.content[start:end]`."""

    turn: Turn
    before: Turn | None
    """The previous turn, if it is the assistant's."""
    before_is_held: bool = False
    """Whether that turn is quarantined: then its question is not quoted."""
    start: int
    end: int
    is_first: bool
    """Whether nothing of the turn is before it."""

    @property
    def text(self) -> str:
        return self.turn.content[self.start : self.end]


def sentences_of(turn: Turn, before: Turn | None, *, before_is_held: bool = False) -> list[TurnSentence]:
    """Return the sentences of a user's turn that are their own words, in order; none if the turn is small talk.

    A paragraph that reads like an attack was pasted, and so were the sentences around the one that gives it away.
    `before_is_held` means that the previous turn is quarantined.
    """
    content = turn.content[:_READ]
    if small_talk_kind(content, before) is not None:
        return []
    masked, own = own_part(content), own_words(content)
    attacks = _attacks(content)
    own_sentences: list[TurnSentence] = []
    for start, end in sentences(masked):
        shown = masked[start:end]
        start, end = start + len(shown) - len(shown.lstrip()), start + len(shown.rstrip())
        is_own = 2 * shown.count(FILL) < len(shown) and content[start:end] in own
        is_own = is_own and not any(first < end and start < last for first, last in attacks)
        if is_own and any(character.isalnum() for character in content[start:end]):
            reply_to = before if before is not None and before.role == "assistant" else None
            own_sentences.append(
                TurnSentence(
                    turn=turn,
                    before=reply_to,
                    before_is_held=before_is_held,
                    start=start,
                    end=end,
                    is_first=not content[:start].strip(),
                )
            )
    return own_sentences


def _attacks(content: str) -> list[tuple[int, int]]:
    """Return the spans of the paragraphs whose wording is that of an attack."""

    def is_attack(text: str) -> bool:
        return bool(flags_of([(text, "web")], meaning=False)[0])

    if not is_attack(content):
        return []
    return [match.span() for match in _PARAGRAPH.finditer(content) if is_attack(match[0])]


def in_context(turn_sentences: Sequence[TurnSentence]) -> list[SentenceInTurn]:
    """Return the sentences of a turn as the classifier reads them."""
    texts = ["", *(sentence.text for sentence in turn_sentences), ""]
    return [
        SentenceInTurn(
            text=sentence.text,
            before=texts[place],
            after=texts[place + 2],
            reply_to=sentence.before.content[-_READ:] if sentence.before else "",
        )
        for place, sentence in enumerate(turn_sentences)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Labelled:
    sentence: TurnSentence
    label: Label | None
    chance: float
    """The probability that the sentence states anything lasting."""
    classified: Classified


def statements_of(turn_sentences: Sequence[TurnSentence], classes: Sequence[Classified]) -> list[NewAtom]:
    """Return the statements of a turn from its sentences and the results of the classifier for them.

    The priority of a statement is the worth of its best sentence, 1 to 89, and less if it lacks its context.
    """
    labelled = [_labelled(*pair) for pair in zip(turn_sentences, classes, strict=True)]
    groups: list[list[_Labelled]] = []
    for member in labelled:
        if groups and member.label and _needs(member, groups[-1]):
            groups[-1].append(member)
        else:
            groups.append([member])
    return [atom for group in groups if any(member.label for member in group) and (atom := _statement(group))]


def _labelled(sentence: TurnSentence, classified: Classified) -> _Labelled:
    label = _label(sentence, classified.chances)
    states_anything = min(1.0, sum(classified.chances.values()))
    is_kept = label is not None and classified.worth >= _LEAST_WORTH and _may_be_stated(sentence.text)
    return _Labelled(sentence=sentence, label=label if is_kept else None, chance=states_anything, classified=classified)


def _label(sentence: TurnSentence, chances: Mapping[Label, float]) -> Label | None:
    """Return the likeliest label; None without candidates. A rule needs a minimum probability.

    A sentence with the form of a promise is a promise even if that is not its likeliest label.
    """
    is_likely = chances.get("promise", 0.0) >= _LEAST_PROMISE
    if is_likely and asks_for_later(sentence.text, sentence.turn.said_at):
        return "promise"
    is_rule = chances.get("rule", 0.0) >= _LEAST_RULE
    possible: list[Label] = [label for label in chances if label != "promise" and (label != "rule" or is_rule)]
    return max(possible, key=lambda label: chances[label], default=None)


def _may_be_stated(text: str) -> bool:
    """Return whether a sentence is fit for later conversations: no question, and nothing unsafe."""
    return not is_question(text.lower()) and _is_safe(text)


def _is_safe(text: str) -> bool:
    """Return whether a text is free of secrets, private passages, what is left of them, and attacks."""
    return not (is_redacted(text) or states_secret(text) or without_private(text) != text or flags(text, "user"))


def _needs(labelled: _Labelled, group: Sequence[_Labelled]) -> bool:
    """Return whether a sentence is unclear without the sentences before it, and these may be stated."""
    before, sentence = group[-1].sentence, labelled.sentence
    is_near = not sentence.turn.content[before.end : sentence.start].strip()
    if not is_near or sentence.end - group[0].sentence.start > _LONGEST or not _may_be_stated(before.text):
        return False
    return labelled.classified.fragment >= _FRAGMENT


def _statement(group: Sequence[_Labelled]) -> NewAtom | None:
    """Return the statement of some sentences.

    None if they cannot be cut, are not safe, or are too few words to mean anything alone ("weekend!").
    """
    first, last = group[0].sentence, group[-1].sentence
    turn = first.turn
    label: Label = next(label for label in _KINDS if any(member.label == label for member in group))
    span = _cut(turn.content, first.start, last.end)
    if span is None:
        return None
    start, end = span
    question = _question(first.before) if first.before else None
    # A word or a number may be a secret only because of the question that it answers.
    if not _is_safe(f"{question.quote} – {turn.content[start:end]}" if question else turn.content[start:end]):
        return None
    kind = _KINDS[label]
    asked = question if kind != "instruction" and _answers(first, turn.content[start:end]) else None
    if asked is None and not _makes_sense_alone(turn.content[start:end]):
        return None
    text = with_dates(one_line(turn.content[start:end], _LONGEST), turn.said_at)
    evidence = [Evidence(turn=turn.id, span=(start, end), quote=turn.content[start:end])]
    if asked is not None:
        text = f"{one_line(asked.quote, _QUESTION_CHARS)} – {text}"
        evidence.append(asked)
    atom = NewAtom(
        kind=kind,
        text=text,
        priority=_priority(group, is_answer=asked is not None),
        confidence=round(max(member.chance for member in group if member.label == label), 3),
        session=turn.session,
        valid_from=turn.said_at,
        evidence=tuple(evidence),
        label=label,
        reader=READER,
    )
    return _with_people(atom, turn, start, end)


def _priority(group: Sequence[_Labelled], *, is_answer: bool) -> int:
    """Return the worth of the best sentence, 1 to 89, reduced if the first is unclear alone and not an answer."""
    clarity = 1.0 if is_answer else 1 - group[0].classified.fragment
    return max(1, round(_HIGHEST * clarity * max(member.classified.worth for member in group)))


def _makes_sense_alone(text: str) -> bool:
    """Return whether a text is more than a word ("weekend!") and more than function words ("Yes, I do.")."""
    words = re.findall(r"\w+", text.lower())
    is_answer = small_talk_kind(text) is not None or set(words) <= function_words_of(words)
    return not is_answer and len(set(query_terms(text))) >= _FEWEST_TERMS


def _with_people(atom: NewAtom, turn: Turn, start: int, end: int) -> NewAtom:
    """Return a statement with the people whom it introduces; a single person becomes its fact."""
    text = turn.content[start:end]
    people = introduced(text, opening=turn.position == 0, language_of=turn.content)
    own = {person.name for person in people if person.relation == "name"}
    others = dict.fromkeys([*(person.name for person in people), *certain_names(text, language_of=turn.content)])
    atom = replace(atom, entities=tuple(name for name in others if name not in own))
    if len(people) != 1:
        return atom
    return replace(atom, entity=USER, relation=relation_name(people[0].relation), value=people[0].name)


def _cut(content: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span without a lead-in and a trailing comment, shortened if it is too long.

    It is cut at the last end of a clause within the limit, else at the last space; None if there is no such place, as
    in a sentence with a long address.
    """
    start, end = without_lead_in(content, start, end)
    if end - start <= _LONGEST:
        return start, end
    first, limit = start + _SHORTEST_CUT, start + _LONGEST
    clause = max((match.start() for match in _pattern("CLAUSE").finditer(content, first, limit)), default=-1)
    cut = clause if clause >= 0 else content.rfind(" ", first, limit)
    return (start, cut) if cut >= 0 else None


def _question(before: Turn) -> Evidence | None:
    """Return the question at the end of the assistant's turn; None if there is none, or not verbatim."""
    asked = question_of(before.content)
    at = before.content.rfind(asked) if asked else -1
    return Evidence(turn=before.id, span=(at, at + len(asked)), quote=asked) if at >= 0 else None


def _answers(sentence: TurnSentence, text: str) -> bool:
    """Return whether a sentence is a short answer whose question may be quoted.

    A question with an address, or of a turn that resembles an attack, may come from a page that the assistant read.
    """
    if sentence.before is None or not sentence.is_first or sentence.before_is_held:
        return False
    if len(set(query_terms(text))) > _FEW_TERMS:
        return False
    content = sentence.before.content[-_READ:]
    asked = question_of(content)
    flagged = flags_of([(content, "assistant"), (asked, "assistant")], are_turns=True)
    return not ADDRESS.search(asked.lower()) and not any(flagged)
