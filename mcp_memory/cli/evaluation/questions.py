"""Known-item questions mined from a memory's turns: questions that somebody who remembers a turn might ask.

The turns are read once. Everything is computed from them alone, in any language and without a model: how rare a word
is, whether nearby turns use it too, its other forms, and whether another turn says nearly the same. Words are taken
from the text, not from the index's terms, because a question must not know how the index cuts words. In scripts written
without spaces every pair of characters counts as a word. Of a large memory, random sessions are read; compare
`Talk.turn_count` with `len(Talk.turns)`.

There are four kinds of questions, from a well remembered turn to a vaguely remembered topic; `KINDS` describes them and
the limits of their figures. Words come from a passage of the turn, preferably rarer words that nearby turns use too.
Turns that are too short, or nearly repeated elsewhere, are left out; so are words in more than three of a hundred
turns.

Paraphrases are left out: words replaced by their nearest neighbours in the bundled model would be found by that model,
and the figure would favour the leg that wrote the questions. Memories (atoms) are left out too: `remember` keeps a note
of the same words, and finding the note by the memory measures nothing.

Deterministic: the same turns, seed and count give the same questions, in the same order.
"""

from __future__ import annotations

import math
import random
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING

from mcp_memory.core.types import Turn
from mcp_memory.language.words import function_words_of

if TYPE_CHECKING:
    from mcp_memory.core.types import Turn
    from mcp_memory.service.memory import Memory

MOST_TURNS = 20_000  # read into this process: some 200 MB and 10 s
_PAGE = 1_000
_CHARACTERS = 20_000  # characters of a turn; a longer text is a pasted file

# Han, kana, Thai, Lao, Khmer, Burmese: written without spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
# A word with internal joints: `night-boat`, `don't`, `foo_bar.py`, `TRF-90457`.
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}](?:[\w'’.@#+-](?<![{_UNSPACED}]))*(?<![.'’@+-])")
_LONGEST = 30  # characters; a longer word is an address or a hash
_AROUND = 6  # turns before and after, in which a topic word recurs
_TOGETHER = 0.03  # least ratio of pair_turns ** 2 to the product of both characters' turns
_PHRASE = 6  # characters
_CLUMPED = 3.0  # times as often near its other uses as by chance
_TWIN = 0.7  # share of words in both turns; then two of the three rarest are shared
_LOOKED_AT = 200
_STEM, _ENDING, _ENDINGS_SEEN = 5, 3, 5


@dataclass(frozen=True, eq=False)
class Talk:
    """The turns to mine questions from, indexed by word.

    `turns` has one session after another, each in order; `places` has, for each word, the indexes of the turns that
    use it.
    `turn_count` and `sessions` are the numbers of the whole space, of which only a part may have been read.
    """

    turns: Sequence[Turn]
    places: Mapping[str, Sequence[int]]
    turn_count: int
    sessions: int
    _clumping: dict[str, float] = field(default_factory=dict[str, float], repr=False)

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word of some turn; always positive."""
        return math.log((len(self.turns) + 1) / len(self.places[word]))

    def is_word(self, word: str) -> bool:
        """Return whether a word has two or more characters; an unspaced pair must also be frequent as a pair."""
        if not is_unspaced(word):
            return len(word) > 1
        if len(word) == 1:
            return False
        pair, left, right = (len(self.places[part]) for part in (word, *word))
        return pair * pair >= _TOGETHER * left * right

    def is_topic(self, word: str, place: int) -> bool:
        """Return whether a turn's word is its topic: nearby turns use it too, more often than chance.

        Words of any conversation (`feel`, `probably`) recur near a turn only as often as anywhere.
        """
        if word not in self._clumping:
            used = self.places[word]
            chance = 1 - (1 - len(used) / len(self.turns)) ** (2 * _AROUND)
            self._clumping[word] = sum(self._comes_again(word, other) for other in used) / (len(used) * chance)
        return self._clumping[word] >= _CLUMPED and self._comes_again(word, place)

    def _comes_again(self, word: str, place: int) -> bool:
        used = self.places[word]
        near = used[bisect_left(used, place - _AROUND) : bisect_right(used, place + _AROUND)]
        return any(other != place and self.are_beside(place, other) for other in near)

    def phrase(self, word: str, place: int) -> str:
        """Return a word as somebody would write it: an unspaced pair is extended to a word of at most 6 characters."""
        if not is_unspaced(word):
            return word
        text = self.turns[place].content
        start = text.find(word)
        end = start + len(word)
        while end - start < _PHRASE and self._hangs(text[end - 1 : end + 1]):
            end += 1
        while end - start < _PHRASE and start > 0 and self._hangs(text[start - 1 : start + 1]):
            start -= 1
        return text[start:end]

    def _hangs(self, pair: str) -> bool:
        return pair in self.places and self.is_word(pair)

    def are_beside(self, place: int, other: int) -> bool:
        """Return whether `other` is the place of a turn of the same session."""
        return 0 <= other < len(self.turns) and self.turns[other].session == self.turns[place].session

    def has_twin(self, place: int) -> bool:
        """Return whether another, not identical turn says nearly the same in nearly the same words."""
        words = dict.fromkeys(words_of(self.turns[place].content))
        rarest = sorted(words, key=lambda word: len(self.places[word]))[:3]
        shared = Counter(other for word in rarest for other in self.places[word][:_LOOKED_AT])
        least = min(2, len(rarest))
        return any(
            self._alike(set(words), place, other)
            for other, count in shared.items()
            if count >= least and other != place
        )

    def _alike(self, words: set[str], place: int, other: int) -> bool:
        if clean(self.turns[other].content) == clean(self.turns[place].content):
            return False
        theirs = set(words_of(self.turns[other].content))
        return len(words & theirs) >= _TWIN * len(words | theirs)

    @cached_property
    def forms(self) -> Mapping[str, Sequence[str]]:
        """Other forms of each word in these turns: words with the same stem and an alternative ending.

        Two endings, such as `ing` and `ed`, are alternatives if many stems occur with both, so no word list of any
        language is needed.
        """
        endings: dict[str, set[str]] = defaultdict(set)
        for word in self.places:
            if word.isalpha() and not is_unspaced(word):
                for cut in range(max(_STEM, len(word) - _ENDING), len(word) + 1):
                    endings[word[:cut]].add(word[cut:])
        changes = [
            (stem, first, second)
            for stem, ends in endings.items()
            for first, second in combinations(sorted(ends), 2)
            if first[:1] != second[:1]  # else they share a longer stem
        ]
        seen = Counter((first, second) for _, first, second in changes)
        forms: dict[str, list[str]] = defaultdict(list)
        for stem, first, second in changes:
            if seen[first, second] >= _ENDINGS_SEEN:
                forms[stem + first].append(stem + second)
                forms[stem + second].append(stem + first)
        return forms


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text, case-folded and without `'s`; of unspaced scripts, characters and pairs.

    Words of more than 30 characters are left out, and so is the text after 20,000 characters.
    """
    for run in _RUN.findall(text[:_CHARACTERS]):
        if is_unspaced(run):
            yield from run
            yield from (left + right for left, right in pairwise(run))
        elif len(run) <= _LONGEST:
            yield run.casefold().removesuffix("'s").removesuffix("’s")


def is_unspaced(word: str) -> bool:
    return _UNSPACED_RUN.match(word) is not None


def clean(text: str) -> str:
    """Return the text case-folded and with single spaces, to compare turns."""
    return " ".join(text.casefold().split())


async def read_talk(
    memory: Memory, *, seed: int, most: int = MOST_TURNS, progress: Callable[[int], None] = lambda _: None
) -> Talk:
    """Read what users and assistants said in a space; of a large space, random sessions until `most` turns are read.

    `progress` receives the number of turns read so far.
    """
    sessions = await memory.sessions(limit=1_000_000)
    drawn = random.Random(f"{seed} sessions").sample(sessions, len(sessions))
    turns: list[Turn] = []
    for info in drawn:
        if len(turns) >= most:
            break
        start = 0
        while page := await memory.session_turns(info.session, start=start, limit=_PAGE):
            turns += [turn for turn in page if turn.role in ("user", "assistant")]
            start = page[-1].position + 1
            progress(len(turns))
    return index_turns(turns, turn_count=sum(info.turns for info in sessions), sessions=len(sessions))


def index_turns(turns: Sequence[Turn], *, turn_count: int, sessions: int) -> Talk:
    """Index turns by word. They must be in order, one session after another."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, turn in enumerate(turns):
        for word in dict.fromkeys(words_of(turn.content)):
            places[word].append(place)
    return Talk(turns=turns, places=dict(places), turn_count=turn_count, sessions=sessions)


_COMMON, _ALWAYS_RARE = 0.03, 5  # share of all turns, and number of turns; a word in more turns identifies none
_LEAST_TELLING, _LEAST_TOPICS = 5, 2
_PASSAGE = 60  # words of a long turn from which a question is made
_TOPIC_WEIGHT = 6.0
_CONTRACTED = re.compile("['’]")  # such as "don't" and "they're", which only the long stop-word lists contain
_SENTENCE = re.compile(r"[^.!?。！？؟\n]+[.!?。！？؟]?")
_QUESTION_MARKS = ("?", "？", "؟")
_QUESTION_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedQuestion:
    """A question and its `target`, the turn to be found.

    `left_out` has the ids of turns from which the question took words; they are removed from the results.
    """

    kind: str
    text: str
    target: Turn
    left_out: frozenset[str] = frozenset()

    def finds(self, turn: Turn) -> bool:
        """Return whether a turn is the target or has exactly the same text."""
        return turn.id == self.target.id or clean(turn.content) == clean(self.target.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of question. `asks` describes it for people, `caution` the limits of its figures.

    `make` returns the question for the turn at a place, or None.
    """

    asks: str
    caution: str
    make: Callable[[Talk, int, random.Random], MinedQuestion | None]


def mine(talk: Talk, kind: str, count: int, *, seed: int) -> list[MinedQuestion]:
    """Return at most `count` different questions of a kind, spread evenly over the sessions.

    The turns are cut into `count` stretches, and a question is drawn from each, so every session contributes in
    proportion to its turns.
    """
    questions: dict[str, MinedQuestion] = {}
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
    """Return whether somebody might look for a turn: it has content and topics, and no other turn nearly repeats it."""
    telling = _content_words(talk, place)
    if len(telling) < _LEAST_TELLING:
        return False
    topics = sum(talk.is_topic(word, place) for word in telling)
    return topics >= _LEAST_TOPICS and not talk.has_twin(place)


# --- the kinds --------------------------------------------------------------------------------------


def _words_question(talk: Talk, place: int, rng: random.Random) -> MinedQuestion | None:
    telling = _content_words(talk, place, passage=rng)
    words = _sample_words(talk, place, telling, min(5, max(3, len(telling) // 3)), rng)
    return MinedQuestion(kind="words", text=" ".join(words), target=talk.turns[place]) if len(words) >= 3 else None


def _dim_question(talk: Talk, place: int, rng: random.Random) -> MinedQuestion | None:
    turn = talk.turns[place]
    topics = [word for word in _content_words(talk, place, passage=rng) if talk.is_topic(word, place)]
    words = {rng.choice(talk.forms.get(word) or [word]) for word in _sample_words(talk, place, topics, 2, rng)}
    said_by = [turn.name] if turn.name else []
    return (
        MinedQuestion(kind="dim", text=" ".join([*said_by, *sorted(words)]), target=turn) if len(words) == 2 else None
    )


def _around_question(talk: Talk, place: int, rng: random.Random) -> MinedQuestion | None:
    own_words = set(words_of(talk.turns[place].content))
    beside = [other for other in (place - 1, place + 1) if talk.are_beside(place, other)]
    own = [word for word in _content_words(talk, place) if talk.is_topic(word, place)]
    words = _sample_words(talk, place, own, 1, rng)
    for other in beside:
        near = [
            word
            for word in _content_words(talk, other, passage=rng)
            if word not in own_words and talk.is_topic(word, other)
        ]
        words += _sample_words(talk, other, near, 2, rng)
    if len(set(words)) < 3:
        return None
    return MinedQuestion(
        kind="around",
        text=" ".join(dict.fromkeys(words)),
        target=talk.turns[place],
        left_out=frozenset(talk.turns[other].id for other in beside),
    )


def _reply_question(talk: Talk, place: int, rng: random.Random) -> MinedQuestion | None:
    if not talk.are_beside(place, place - 1):
        return None
    before, turn = talk.turns[place - 1], talk.turns[place]
    sentences = (" ".join(sentence.split()) for sentence in reversed(_SENTENCE.findall(before.content)))
    asked = next((sentence for sentence in sentences if sentence.endswith(_QUESTION_MARKS)), None)
    if (before.role, before.name) == (turn.role, turn.name) or asked is None or len(asked) > _QUESTION_CHARACTERS:
        return None
    words = set(words_of(asked))
    telling = words.intersection(_content_words(talk, place - 1))
    if len(telling) < 3 or not any(talk.is_topic(word, place - 1) for word in telling):
        return None  # "And what did you do then?"
    if words >= set(words_of(turn.content)):
        return None  # the reply only repeats it
    return MinedQuestion(kind="reply", text=asked, target=turn, left_out=frozenset({before.id}))


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        "words": Kind(
            asks="three to five of the turn's own words: it is remembered well",
            caution="Every word is in the turn, which suits BM25; real questions use other words.",
            make=_words_question,
        ),
        "dim": Kind(
            asks="two of its words, in other forms where this memory knows some, and who said it",
            caution="Its words are in the question, in some form, which suits BM25. Other turns may answer as well; "
            "only the source of the words counts.",
            make=_dim_question,
        ),
        "around": Kind(
            asks="one of its words and some of adjacent turns: what the talk was about",
            caution="Suits a search that reads turns with their neighbours. Adjacent turns are not counted.",
            make=_around_question,
        ),
        "reply": Kind(
            asks="a question that was really asked; sought is the turn that replied",
            caution="It is verbatim and adjacent to the reply, which suits a search that reads neighbours. The turn "
            "that asked is not counted, though whoever finds it can read on.",
            make=_reply_question,
        ),
    }
)


# --- words of a turn -----------------------------------------------------------------------------


def _content_words(talk: Talk, place: int, *, passage: random.Random | None = None) -> list[str]:
    """Return the content words that few turns have, of a turn or of a random passage of it, in order."""
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


def _sample_words(talk: Talk, place: int, words: Sequence[str], count: int, rng: random.Random) -> list[str]:
    """Return at most `count` of the words, as phrases, in a random sample that prefers rarer words and topics.

    Weighted sampling without replacement (Efraimidis and Spirakis, 2006): the largest of random ** (1/weight).
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
