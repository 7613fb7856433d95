"""Known-item questions, mined: what somebody might ask who remembers one turn of the talk, and that turn.

Four kinds, from remembering well to remembering what it was about; `KINDS` says of each what is asked and what
its figure cannot tell. Words come from a passage of the turn, more often the rarer ones and those that the talk
around it uses too, because that is what it was about. Turns too short to be asked for, and those that another
turn nearly repeats, are left out; so are words that stand in more than three turns of a hundred.

Why no paraphrase: words replaced by their nearest neighbours in the bundled model would be found by the bundled
model, and the figure would praise the leg that wrote the questions. Why no memories (atoms): what was told
with `remember` rests on a note of the same words, and asking one for the other measures nothing.

Deterministic: the same talk, seed and count give the same questions, in the same order.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from mcp_memory.cli.evaluation.talk import Talk, clean, is_unspaced, words_of
from mcp_memory.core.types import Turn
from mcp_memory.language.words import function_words_of

__all__ = ["KINDS", "Kind", "Question", "mine"]

_COMMON, _ALWAYS_RARE = 0.03, 5  # of all turns: a word that stands in more tells little
_LEAST_TELLING, _LEAST_TOPICS = 5, 2
_PASSAGE = 60  # words of a long turn that a question is drawn from
_TOPIC_WEIGHT = 6.0
_CONTRACTED = re.compile("['’]")  # don't, they're: function words of every list but the short ones
_SENTENCE = re.compile(r"[^.!?。！？؟\n]+[.!?。！？؟]?")
_QUESTION_MARKS = ("?", "？", "؟")
_QUESTION_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`text` is asked, `target` is sought; `left_out` has turns that the words come from and that count for nobody."""

    kind: str
    text: str
    target: Turn
    left_out: frozenset[str] = frozenset()

    def finds(self, turn: Turn) -> bool:
        """Tell whether a turn answers: the target, or one that says exactly the same."""
        return turn.id == self.target.id or clean(turn.content) == clean(self.target.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`asks` and `caution` are for people; `make` makes the question of the turn at a place, or None."""

    asks: str
    caution: str
    make: Callable[[Talk, int, random.Random], Question | None]


def mine(talk: Talk, kind: str, count: int, *, seed: int) -> list[Question]:
    """Return at most `count` questions of a kind, no text twice, spread evenly over the sessions.

    The turns, in order, are cut into `count` stretches, and one is drawn of each: every session gives as many
    as its share of the turns.
    """
    questions: dict[str, Question] = {}
    total = len(talk.turns)
    for stretch in range(count):
        places = range(stretch * total // count, (stretch + 1) * total // count)
        rng = random.Random(f"{seed} {kind} {stretch}")
        for place in rng.sample(places, len(places)):
            question = KINDS[kind].make(talk, place, rng)
            if question and clean(question.text) not in questions and _is_askable(talk, place):
                questions[clean(question.text)] = question
                break
    return list(questions.values())


def _is_askable(talk: Talk, place: int) -> bool:
    """Tell whether somebody might want a turn back: it tells something, and not what another turn tells."""
    telling = _telling(talk, place)
    if len(telling) < _LEAST_TELLING:
        return False
    topics = sum(talk.is_topic(word, place) for word in telling)
    return topics >= _LEAST_TOPICS and not talk.has_twin(place)


# --- the kinds --------------------------------------------------------------------------------------


def _words(talk: Talk, place: int, rng: random.Random) -> Question | None:
    telling = _telling(talk, place, passage=rng)
    words = _drawn(talk, place, telling, min(5, max(3, len(telling) // 3)), rng)
    return Question(kind="words", text=" ".join(words), target=talk.turns[place]) if len(words) >= 3 else None


def _dim(talk: Talk, place: int, rng: random.Random) -> Question | None:
    turn = talk.turns[place]
    topics = [word for word in _telling(talk, place, passage=rng) if talk.is_topic(word, place)]
    words = {rng.choice(talk.forms.get(word) or [word]) for word in _drawn(talk, place, topics, 2, rng)}
    said_by = [turn.name] if turn.name else []
    return Question(kind="dim", text=" ".join([*said_by, *sorted(words)]), target=turn) if len(words) == 2 else None


def _around(talk: Talk, place: int, rng: random.Random) -> Question | None:
    there = set(words_of(talk.turns[place].content))
    beside = [other for other in (place - 1, place + 1) if talk.are_beside(place, other)]
    own = [word for word in _telling(talk, place) if talk.is_topic(word, place)]
    words = _drawn(talk, place, own, 1, rng)
    for other in beside:
        near = [word for word in _telling(talk, other, passage=rng) if word not in there and talk.is_topic(word, other)]
        words += _drawn(talk, other, near, 2, rng)
    if len(set(words)) < 3:
        return None
    return Question(
        kind="around",
        text=" ".join(dict.fromkeys(words)),
        target=talk.turns[place],
        left_out=frozenset(talk.turns[other].id for other in beside),
    )


def _reply(talk: Talk, place: int, rng: random.Random) -> Question | None:
    if not talk.are_beside(place, place - 1):
        return None
    before, turn = talk.turns[place - 1], talk.turns[place]
    sentences = (" ".join(sentence.split()) for sentence in reversed(_SENTENCE.findall(before.content)))
    asked = next((sentence for sentence in sentences if sentence.endswith(_QUESTION_MARKS)), None)
    if (before.role, before.name) == (turn.role, turn.name) or asked is None or len(asked) > _QUESTION_CHARACTERS:
        return None
    words = set(words_of(asked))
    telling = words.intersection(_telling(talk, place - 1))
    if len(telling) < 3 or not any(talk.is_topic(word, place - 1) for word in telling):
        return None  # "And what did you do then?"
    if words >= set(words_of(turn.content)):
        return None  # the reply says it again and no more
    return Question(kind="reply", text=asked, target=turn, left_out=frozenset({before.id}))


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "words": Kind(
            asks="three to five of the turn's own words: it is remembered well",
            caution="Every word stands in the turn, which suits BM25; real questions bring words of their own.",
            make=_words,
        ),
        "dim": Kind(
            asks="two of its words, in other forms where this memory knows some, and who said it",
            caution="Its words are in the question, in some form, which suits BM25. Other turns may answer as well; "
            "only the one that the words came from counts.",
            make=_dim,
        ),
        "around": Kind(
            asks="one of its words and some of the turns beside it: what the talk was about",
            caution="Suits a search that reads turns with their neighbours. The turns beside it count for nobody.",
            make=_around,
        ),
        "reply": Kind(
            asks="a question that was really asked; sought is the turn that replied",
            caution="It is verbatim and stood beside the reply, which suits a search that reads neighbours. The turn "
            "that asked counts for nobody, though who finds it can read on.",
            make=_reply,
        ),
    }
)


# --- what a turn offers -----------------------------------------------------------------------------


def _telling(talk: Talk, place: int, *, passage: random.Random | None = None) -> list[str]:
    """Return the words of a turn, or of a passage of it, that tell what it is about, in order."""
    words = list(words_of(talk.turns[place].content))
    idle = function_words_of(words)
    if passage is not None and len(words) > _PASSAGE:
        start = passage.randrange(len(words) - _PASSAGE)
        words = words[start : start + _PASSAGE]
    most = max(_ALWAYS_RARE, _COMMON * len(talk.turns))
    return [
        word
        for word in dict.fromkeys(words)
        if word not in idle and len(talk.places[word]) <= most and talk.is_word(word) and not _CONTRACTED.search(word)
    ]


def _drawn(talk: Talk, place: int, words: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Return some of the words in no order, each as likely as it is telling.

    Weighted without putting back (Efraimidis and Spirakis, 2006): the largest of chance to the power of 1/weight.
    """

    def key(word: str) -> float:
        weight = talk.rarity(word) * (_TOPIC_WEIGHT if talk.is_topic(word, place) else 1.0)
        return rng.random() ** (1.0 / weight)

    phrases: list[str] = []
    for word in sorted(words, key=key, reverse=True):
        phrase = talk.phrase(word, place)
        if len(phrases) < count and not (is_unspaced(word) and any(word in other for other in phrases)):
            phrases.append(phrase)
    return phrases
