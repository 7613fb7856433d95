"""What a memory's talk says, read once: its turns in order, and which of them use which word.

From that alone, in any language and without a model, it tells how rare a word is, whether the talk around a
turn uses it too, in which other forms the talk knows it, and whether another turn says nearly the same.

Words here are what stands in the text, not the index's terms: what is asked must not know how the index cuts
words. In scripts written without spaces every pair of characters counts as one, which is a word often enough.
A large memory is read in part, whole sessions drawn by chance: `Talk.held` against `len(Talk.turns)` tells.
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
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_memory.core.types import Turn
    from mcp_memory.service.memory import Memory

__all__ = ["Talk", "clean", "is_unspaced", "of", "read", "words_of"]

MOST_TURNS = 20_000  # read into this process: some 200 MB and 10 s
_PAGE = 1_000
_CHARACTERS = 20_000  # of a turn; a longer one is a file

# Han, kana, Thai, Lao, Khmer, Burmese: written without spaces.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED_RUN = re.compile(rf"[{_UNSPACED}]+")
# A word with what may join one inside: `night-boat`, `don't`, `foo_bar.py`, `TRF-90457`.
_RUN = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}](?:[\w'’.@#+-](?<![{_UNSPACED}]))*(?<![.'’@+-])")
_LONGEST = 30  # characters; a longer word is an address or a hash
_AROUND = 6  # turns before and after, in which a word that is talked about comes again
_TOGETHER = 0.03  # of the product of two characters' turns: the square of the turns that have them as a pair
_PHRASE = 6  # characters
_CLUMPED = 3.0  # times as often near its other uses as chance would have it
_TWIN = 0.7  # of two turns' words: as many are in both, and so two of the three rarest of each
_LOOKED_AT = 200
_STEM, _ENDING, _ENDINGS_SEEN = 5, 3, 5


@dataclass(frozen=True, eq=False)
class Talk:
    """`turns` session after session, each in order; `places` has, for each word, the turns that use it.

    `held` counts the turns, and `sessions` the sessions, of the whole space.
    """

    turns: Sequence[Turn]
    places: Mapping[str, Sequence[int]]
    held: int
    sessions: int
    _clumping: dict[str, float] = field(default_factory=dict[str, float], repr=False)

    def rarity(self, word: str) -> float:
        """Return the inverse document frequency of a word of some turn: more than 0, and more for a rarer word."""
        return math.log((len(self.turns) + 1) / len(self.places[word]))

    def is_word(self, word: str) -> bool:
        """Tell whether people would call it one: a pair of unspaced characters has to stand together often."""
        if not is_unspaced(word):
            return len(word) > 1
        if len(word) == 1:
            return False
        pair, left, right = (len(self.places[part]) for part in (word, *word))
        return pair * pair >= _TOGETHER * left * right

    def is_topic(self, word: str, place: int) -> bool:
        """Tell whether a turn's word is what was talked about: the talk around it uses it too, as words of topics do.

        Words of any talk (`feel`, `probably`) come again near a turn only as often as they come anywhere.
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
        """Return a turn's word as somebody would write it: a pair of unspaced characters with those it hangs on to."""
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
        """Tell whether there is a turn at the other place, and it is of the same session."""
        return 0 <= other < len(self.turns) and self.turns[other].session == self.turns[place].session

    def has_twin(self, place: int) -> bool:
        """Tell whether another turn says nearly the same in nearly the same words; one that is equal is none."""
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
        """Each word's other forms in this talk: the same beginning, and two endings that change places often.

        That (`ing`, `ed`) or (`en`, `t`) are endings and (`nt`, `xt`) are not shows in how many beginnings take
        both: no list of any language is needed.
        """
        endings: dict[str, set[str]] = defaultdict(set)
        for word in self.places:
            if word.isalpha() and not is_unspaced(word):
                for cut in range(max(_STEM, len(word) - _ENDING), len(word) + 1):
                    endings[word[:cut]].add(word[cut:])
        changes = [
            (stem, one, other)
            for stem, ends in endings.items()
            for one, other in combinations(sorted(ends), 2)
            if one[:1] != other[:1]  # else the beginning they share is a longer one
        ]
        seen = Counter((one, other) for _, one, other in changes)
        forms: dict[str, list[str]] = defaultdict(list)
        for stem, one, other in changes:
            if seen[one, other] >= _ENDINGS_SEEN:
                forms[stem + one].append(stem + other)
                forms[stem + other].append(stem + one)
        return forms


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text as they are counted, without case; of unspaced scripts, characters and pairs."""
    for run in _RUN.findall(text[:_CHARACTERS]):
        if is_unspaced(run):
            yield from run
            yield from (left + right for left, right in pairwise(run))
        elif len(run) <= _LONGEST:
            yield run.casefold().removesuffix("'s").removesuffix("’s")


def is_unspaced(word: str) -> bool:
    return _UNSPACED_RUN.match(word) is not None


def clean(text: str) -> str:
    """Return the text without case and with single spaces: two turns of one clean text say the same."""
    return " ".join(text.casefold().split())


async def read(
    memory: Memory, *, seed: int, most: int = MOST_TURNS, progress: Callable[[int], None] = lambda _: None
) -> Talk:
    """Read a space's talk, or of a large one as many sessions drawn by chance as hold `most` turns.

    `progress` is told how many turns were read so far.
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
    return of(turns, held=sum(info.turns for info in sessions), sessions=len(sessions))


def of(turns: Sequence[Turn], *, held: int, sessions: int) -> Talk:
    """Return the talk of these turns, which stand session after session and each in order."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, turn in enumerate(turns):
        for word in dict.fromkeys(words_of(turn.content)):
            places[word].append(place)
    return Talk(turns=turns, places=dict(places), held=held, sessions=sessions)
