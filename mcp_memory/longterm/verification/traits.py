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

import re
from collections.abc import Collection, Sequence

from mcp_memory.language.sentences import FILL, is_negative, is_question, is_reported, own_part, sentences
from mcp_memory.longterm.verification.comparison import (
    contradicted_part,
    cosines,
    differ,
    known_terms,
    nearest,
    pattern,
    pieces_of,
    share_of,
    terms_of,
    words_in,
)
from mcp_memory.longterm.verification.frame import breaks_frame, changes_subject, has_rival, invents_reason, is_joke
from mcp_memory.longterm.verification.own_words import Said, is_personal, question_of
from mcp_memory.longterm.verification.support import agrees, refuses, unknown_values

__all__ = ["supports_trait"]

_ALL_WORDS, _MOST_WORDS, _FEW_WORDS = (0.99, 0.44), (0.5, 0.53), (0.0, 0.56)
"""Shares of a statement's words in a sentence of the first person, and the cosine that suffices with each."""
_IMPERSONAL = (0.4, 0.72)
"""The same for a sentence without the first person."""
_ANSWER = (0.5, 0.45)
"""The same for a question with its short answer; the first is also the share of the answer's words in the statement."""
_SHORT_ANSWER = 8  # words
_ASKED_ABROAD = 0.44  # cosine of a statement to a question in another language
_SAME_WORD = 0.45  # cosine of a word to its translation
_ABROAD, _IMPERSONAL_ABROAD = 0.5, 0.65
"""Cosine of a statement to a sentence in another language, of the first person and without it."""
_HEAD = re.compile(r"[,;.!–—、，。！]\s*|\s+-\s+")


def supports_trait(statement: str, said: Sequence[Said], *, names: Collection[str] = ()) -> bool:
    """Tell whether the user said what a statement says of them. `names` may stand for the user."""
    said = [turn for turn in said if not is_joke(turn.text)]
    if _is_supported(statement, said, names):
        return True
    parts = _merged(statement)
    return len(parts) > 1 and all(_is_supported(part, said, names) for part in parts)


def _merged(statement: str) -> list[str]:
    """Return what a statement says of the user in several clauses, each as a statement of its own."""
    user = pattern("THE_USER").match(statement.lower())
    if user is None:
        return []
    rest = [part.strip(" ,.") for part in pattern("CLAUSE").split(statement[user.end() :])]
    joined = [pattern("AND").sub("", part) for part in rest if terms_of(part)]
    return [f"{statement[: user.end()]} {part}." for part in joined]


def _is_supported(statement: str, said: Sequence[Said], names: Collection[str]) -> bool:
    own = [own_part(turn.text).replace(FILL, " ") for turn in said]
    whole = "\n".join(own)
    if invents_reason(whole, statement):
        return False
    if not unknown_values(statement, whole, names) and any(
        _states(statement, sentence, names) and not has_rival(statement, text)
        for text in own
        for sentence in _declared(text)
    ):
        return True
    return any(
        _answers(statement, question, text) and not unknown_values(statement, f"{whole}\n{question}", names)
        for turn, text in zip(said, own, strict=True)
        if turn.before and (question := question_of(turn.before))
    )


def _declared(text: str) -> list[str]:
    """Return what a text declares: its sentences without questions, reports and suppositions."""
    found: list[str] = []
    for start, end in sentences(text):
        sentence = text[start:end].strip()
        if is_question(sentence.lower()):  # "I'm diabetic, what can I eat?"
            parts = [part.strip() for part in pattern("CUT").split(sentence) if part and part.strip()]
            declared = [part for part in parts[:-1] if not is_question(part.lower()) and is_personal(part)]
            found += declared if len(parts) > 1 else []
        elif any(map(str.isalnum, sentence)):
            found.append(sentence)
    return [one for one in found if not is_reported(one.lower()) and not pattern("IMAGINED").search(one.lower())]


def _states(statement: str, sentence: str, names: Collection[str]) -> bool:
    if changes_subject(sentence, statement) or _contradicts(statement, sentence, names):
        return False
    if breaks_frame(sentence, statement):
        return False
    share = share_of(statement, known_terms(sentence)) if terms_of(statement) else 0.0
    meaning = nearest(statement, pieces_of(sentence))
    is_own = is_personal(sentence)
    is_abroad = differ(sentence, statement) and is_negative(sentence) == is_negative(statement)
    if is_abroad and meaning >= (_ABROAD if is_own else _IMPERSONAL_ABROAD):
        return True
    enough = (_ALL_WORDS, _MOST_WORDS, _FEW_WORDS) if is_own else (_IMPERSONAL,)
    return any(share >= words and meaning >= least for words, least in enough)


def _contradicts(statement: str, said: str, names: Collection[str]) -> bool:
    return contradicted_part([statement], [said], names=names) is not None


def _answers(statement: str, question: str, answer: str) -> bool:
    """Tell whether a question and a short answer to it state it together."""
    words = words_in(answer)
    if is_joke(answer) or len(words) > _SHORT_ANSWER or changes_subject(question, statement):
        return False
    head, _, rest = (part.strip() for part in _HEAD.sub("\n", answer, count=1).partition("\n"))
    if agrees(answer) or (agrees(head) and not is_negative(rest) and _is_kept(rest, statement)):
        return is_negative(statement) == is_negative(question) and _is_asked(statement, question, rest)
    if refuses(head) and (is_negative(rest) or not terms_of(rest)):
        return is_negative(statement) != is_negative(question) and _is_asked(statement, question, rest)
    if (
        not any(map(str.isalnum, answer))
        or is_question(answer.lower())
        or is_negative(answer) != is_negative(statement)
    ):
        return False
    return _is_chosen(statement, question, answer)


def _is_asked(statement: str, question: str, rest: str) -> bool:
    """Tell whether a question, with what an answer adds to yes or no, is about a statement."""
    together = f"{question} {rest}"
    if differ(question, statement):
        return nearest(statement, [question, together]) >= _ASKED_ABROAD
    share, meaning = share_of(statement, known_terms(together)), nearest(statement, [question, together])
    return any(share >= words and meaning >= least for words, least in (_ALL_WORDS, _MOST_WORDS, _FEW_WORDS))


def _is_kept(said: str, statement: str) -> bool:
    """Tell whether a statement has what was said: its words, or words of near meaning."""
    if not terms_of(said):
        return True
    if not differ(said, statement) and share_of(said, known_terms(statement)) >= _ANSWER[0]:
        return True
    return nearest(said, [*words_in(statement), *pieces_of(statement)]) >= _SAME_WORD


def _is_chosen(statement: str, question: str, answer: str) -> bool:
    """Tell whether a statement has the value that answers a question, and not another one that was offered."""
    together = f"{question} {answer}"
    share, least = _ANSWER
    if differ(question, answer):
        return False
    if not differ(together, statement):
        numbers = {word for word in answer.split() if word.isdigit()}
        has_value = share_of(answer, known_terms(statement)) >= share and bool(terms_of(answer))
        has_value = has_value or bool(numbers and numbers <= {*re.findall(r"\d+", statement)})
        return (
            has_value
            and share_of(statement, known_terms(together)) >= share
            and nearest(statement, [together]) >= least
        )
    options = [option for option in pattern("OR").split(question) if terms_of(option)] if answer else []
    others = [option for option in options if not terms_of(answer) & known_terms(option)]
    theirs = nearest(answer, words_in(statement))
    return (
        len(options) > 1
        and len(others) < len(options)
        and theirs >= _SAME_WORD
        and nearest(statement, [answer, together]) >= _ASKED_ABROAD
        and _place(answer, statement) < min((_place(option, statement) for option in others), default=_SHORT_ANSWER)
    )


def _place(value: str, statement: str) -> int:
    """Return which word of a statement is nearest to a value."""
    scores = cosines(value, words_in(statement))
    return scores.index(max(scores)) if scores else 0
