"""Checks whether the user said what a statement says of them, in their own words, in any of sixteen languages.

A statement about the user is supported by one sentence in which the user speaks of themselves: declarative, neither
reported nor imagined, in the first person, and near to the statement by its words or its meaning. A short answer is
read with the question before it: "Are you vegetarian?" and "Yes" state it together. The names, addresses and numbers
of the statement have to be in the user's words. Languages that leave the pronoun out are read without it; elsewhere a
sentence without the first person ("dark mode, please") has to be nearer.

`tests/longterm/trait_pairs.jsonl` has labelled pairs of turns and statements, and its test says how many are judged
right. A lie in words that are near to a truth is not found: a bid for a job and the job are close.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mcp_memory.language.sentences import FILL, is_negative, is_question, is_reported, own_part, people, sentences
from mcp_memory.language.words import languages_of
from mcp_memory.longterm.verification.comparison import (
    contradicted_part,
    dense,
    differ,
    known_terms,
    nearest,
    pattern,
    pieces_of,
    share_of,
    terms_of,
    words_in,
)
from mcp_memory.longterm.verification.support import agrees, unknown_values

__all__ = ["Said", "supports_trait"]

_ALL_WORDS, _MOST_WORDS, _FEW_WORDS = (0.99, 0.44), (0.5, 0.53), (0.0, 0.56)
"""Shares of a statement's words in a sentence of the first person, and the cosine that suffices with each."""
_IMPERSONAL = (0.4, 0.72)
"""The same for a sentence without the first person."""
_ANSWER = (0.5, 0.5)
"""The same for a question with its short answer; the first is also the share of the answer's words in the statement."""
_SHORT_ANSWER = 8  # words
_READ = 2_000  # characters at the end of a question
_PRO_DROP = frozenset(("es", "it", "pt", "pl", "tr", "cs", "fi", "hu", "sr", "sk", "ro"))


@dataclass(frozen=True, slots=True)
class Said:
    """A user's turn, and the assistant's turn right before it."""

    text: str
    before: str = ""


def supports_trait(statement: str, said: Sequence[Said], *, names: Collection[str] = ()) -> bool:
    """Tell whether the user said what a statement says of them. `names` may stand for the user."""
    own = [own_part(turn.text).replace(FILL, " ") for turn in said]
    whole = "\n".join(own)
    if not unknown_values(statement, whole, names) and any(
        _states(statement, sentence, names) for text in own for sentence in _declared(text)
    ):
        return True
    return any(
        _answers(statement, question, text) and not unknown_values(statement, f"{whole}\n{question}", names)
        for turn, text in zip(said, own, strict=True)
        if turn.before and (question := _question_of(turn.before))
    )


def _declared(text: str) -> list[str]:
    """Return what a text declares: its sentences without questions, reports and suppositions."""
    found: list[str] = []
    for start, end in sentences(text):
        sentence = text[start:end].strip()
        if is_question(sentence.lower()):  # "I'm diabetic, what can I eat?"
            parts = [part.strip() for part in pattern("CUT").split(sentence) if part and part.strip()]
            declared = [part for part in parts[:-1] if not is_question(part.lower()) and _is_personal(part)]
            found += declared if len(parts) > 1 else []
        elif any(map(str.isalnum, sentence)):
            found.append(sentence)
    return [one for one in found if not is_reported(one.lower()) and not pattern("IMAGINED").search(one.lower())]


def _states(statement: str, sentence: str, names: Collection[str]) -> bool:
    if _is_about_others(sentence, statement) or _contradicts(statement, sentence, names):
        return False
    share = share_of(statement, known_terms(sentence)) if terms_of(statement) else 0.0
    meaning = nearest(statement, pieces_of(sentence))
    enough = (_ALL_WORDS, _MOST_WORDS, _FEW_WORDS) if _is_personal(sentence) else (_IMPERSONAL,)
    return any(share >= words and meaning >= least for words, least in enough)


def _contradicts(statement: str, said: str, names: Collection[str]) -> bool:
    return contradicted_part([statement], [said], names=names, heard=[statement]) is not None


def _is_personal(sentence: str) -> bool:
    """Tell whether a sentence is in the first person, as far as its language shows that."""
    if pattern("FIRST_PERSON").search(sentence.lower()):
        return True
    return dense(sentence) == 2 or not _PRO_DROP.isdisjoint(languages_of(sentence.split()))


def _is_about_others(sentence: str, statement: str) -> bool:
    """Tell whether a sentence begins with somebody else, whom the statement does not mention: "My sister is …"."""
    lower = sentence.lower()
    subject = people().match(lower.lstrip("\"'«“¿¡ "))
    return subject is not None and not known_terms(subject[0]) & terms_of(statement)


def _question_of(turn: str) -> str:
    """Return the question that ends a turn; empty if none does."""
    asked = own_part(turn[-_READ:]).replace(FILL, " ")
    spans = list(sentences(asked))
    last = asked[slice(*spans[-1])].strip() if spans else ""
    return last if is_question(last.lower()) else ""


def _answers(statement: str, question: str, answer: str) -> bool:
    """Tell whether a question and a short answer to it state it together."""
    if agrees(answer):
        share, meaning = share_of(statement, known_terms(question)), nearest(statement, [question])
        is_near = any(share >= words and meaning >= least for words, least in (_ALL_WORDS, _MOST_WORDS, _FEW_WORDS))
        return is_near and is_negative(statement) == is_negative(question)
    words = words_in(answer)
    if not words or len(words) > _SHORT_ANSWER or is_negative(answer) != is_negative(statement):
        return False
    together = f"{question} {answer}"
    share, least = _ANSWER
    return (
        share_of(answer, known_terms(statement)) >= share
        and share_of(statement, known_terms(together)) >= share
        and nearest(statement, [together]) >= least
        and not differ(question, answer)
    )
