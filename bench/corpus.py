"""Generates the data of the latency bench: an invented conversation of any length, questions about it, and a log.

Everything is generated from a seed and copied from nowhere. The words are made of syllables and drawn by Zipf's law
among real English function words; sessions have topics; turns have 10 to 300 words, including names, numbers, dates and
code identifiers; one in 25 is in another script. Batch `n` depends only on the seed and `n`, so a short conversation is
the beginning of a longer one.

The text has no meaning: it serves to time a search, not to judge its results. New words are slightly more frequent than
in real conversations: 9 in a hundred over 600,000 words, compared with 5 in LongMemEval's conversations; so caches of
words help less here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate

from bench.words import FUNCTION_WORDS
from mcp_memory.core.types import NewTurn

BATCH = 50
BATCHES_A_SESSION = 4
KINDS = ("rare", "common", "long", "script")

_START = datetime(2023, 1, 1, 8, tzinfo=UTC)
_VOCABULARY = 40_000
_TOPICS, _TOPIC_WORDS = 60, 400
_GLUE = tuple(word for word in FUNCTION_WORDS if len(word) > 1 or word in "ai")
_ONSETS = "b br c ch d dr f fl g gl h j k kl l m n p pl qu r s sh sk st t th tr v w z"
_VOWELS = "a e i o u ai ea io ou"
_CODAS = "n r l s t m nd rk st"
_ALPHABETS = {  # letters by code point, and what stands between words
    "Cyrillic": (range(0x430, 0x450), " "),
    "Greek": (range(0x3B1, 0x3CA), " "),
    "Arabic": (range(0x628, 0x63B), " "),
    "Han": (range(0x4E00, 0x5000), ""),
    "kana": (range(0x3042, 0x308E), ""),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Words with their cumulative weights, for `random.choices`."""

    words: Sequence[str]
    weights: Sequence[float]

    def draw(self, rng: random.Random, count: int) -> list[str]:
        return rng.choices(self.words, cum_weights=self.weights, k=count)


def _by_zipf(*parts: tuple[float, Sequence[str]]) -> _Drawn:
    """Return words to draw from: each part has its share of all draws, distributed by Zipf's law within it."""
    weights: list[float] = []
    for share, words in parts:
        law = [1 / (rank + 2.7) for rank in range(len(words))]
        total = sum(law)
        weights += [share * weight / total for weight in law]
    return _Drawn([word for _, words in parts for word in words], list(accumulate(weights)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Language:
    words: Sequence[str]
    """Invented words, the most frequent first; these are shorter, as in any language."""
    names: Sequence[str]
    scripts: dict[str, _Drawn]


@cache
def _language(seed: int) -> _Language:
    rng = random.Random(f"language {seed}")
    invented = [word for word in dict.fromkeys(_words(rng, _VOCABULARY)) if word not in _GLUE]
    return _Language(
        words=sorted(invented, key=lambda word: len(word) * rng.uniform(0.5, 1.5)),
        names=[word.capitalize() for word in _words(rng, 500)],
        scripts={
            script: _by_zipf((1, ["".join(map(chr, rng.choices(letters, k=rng.randint(1, 7)))) for _ in range(1_000)]))
            for script, (letters, _) in _ALPHABETS.items()
        },
    )


def _words(rng: random.Random, count: int) -> list[str]:
    onsets, vowels, codas = _ONSETS.split(), _VOWELS.split(), ["", *_CODAS.split()]
    return [
        "".join(
            onset + vowel
            for onset, vowel in zip(rng.choices(onsets, k=syllables), rng.choices(vowels, k=syllables), strict=True)
        )
        + rng.choice(codas)
        for syllables in rng.choices((1, 2, 3, 4), weights=(2, 5, 4, 1), k=count)
    ]


@cache
def _topic(number: int, seed: int) -> _Drawn:
    words = _language(seed).words
    own = random.Random(f"topic {number} {seed}").sample(words, _TOPIC_WORDS)
    return _by_zipf((0.5, _GLUE), (0.33, words), (0.17, own))


# --- turns ------------------------------------------------------------------------------------------


def batches(count: int, *, seed: int = 0) -> Iterator[list[NewTurn]]:
    """Yield `count` turns in batches of 50 (the last may be shorter), oldest first."""
    for number in range(-(-count // BATCH)):
        yield _batch(number, seed)[: count - number * BATCH]


def session_of(number: int) -> str:
    """Return the session of batch `number`; a session has four batches."""
    return f"session-{number // BATCHES_A_SESSION:06d}"


def _batch(number: int, seed: int) -> list[NewTurn]:
    language = _language(seed)
    topic = _topic(random.Random(f"{session_of(number)} {seed}").randrange(_TOPICS), seed)
    rng = random.Random(f"batch {number} {seed}")
    start = _START + timedelta(hours=number)
    return [
        NewTurn(
            role="assistant" if place % 2 else "user",
            content=_content(rng, language, topic),
            said_at=start + timedelta(seconds=37 * place),
        )
        for place in range(BATCH)
    ]


def _content(rng: random.Random, language: _Language, topic: _Drawn) -> str:
    length = round(10 * 30 ** rng.random())  # 10 to 300 words, short ones as likely as long ones
    if rng.random() < 0.04:
        return _foreign(rng, language, length)
    words = topic.draw(rng, length)
    for place in range(rng.randrange(20), len(words), 29):
        words[place] = _special(rng, language)
    return _sentences(rng, words, " ", ".")


def _foreign(rng: random.Random, language: _Language, length: int) -> str:
    script = rng.choice(list(_ALPHABETS))
    joiner = _ALPHABETS[script][1]
    return _sentences(rng, language.scripts[script].draw(rng, length), joiner, "." if joiner else "。")


def _sentences(rng: random.Random, words: Sequence[str], joiner: str, stop: str) -> str:
    sentences: list[str] = []
    place = 0
    while place < len(words):
        size = rng.randint(5, 20)
        sentence = joiner.join(words[place : place + size])
        sentences.append(sentence[:1].upper() + sentence[1:] + stop)
        place += size
    return (joiner and " ").join(sentences)


def _special(rng: random.Random, language: _Language) -> str:
    """Return a name, number, date or identifier, for which people search by its exact form."""
    one, two = (word.lower() for word in rng.choices(language.names, k=2))
    match rng.randrange(10):
        case 0 | 1 | 2 | 3:
            return one.capitalize()
        case 4:
            return f"{rng.randint(1, 99_999):,}"
        case 5:
            return f"{_START.date() + timedelta(days=rng.randrange(1_500))}"
        case 6:
            return f"{one}_{two}.py:{rng.randint(1, 900)}"
        case 7:
            return f"{one}{two.capitalize()}{rng.choice(('Count', 'Id', 'Timeout'))}"
        case 8:
            return f"PR#{rng.randint(100, 99_999)}"
        case _:
            return f"{rng.randint(1, 999) / 10}%"


# --- questions --------------------------------------------------------------------------------------


def queries(count: int, *, turns: int, seed: int = 0) -> list[Query]:
    """Return `count` queries for a conversation of `turns` turns, of each kind in turn.

    `rare`: the two rarest words of a turn. `common`: four of the most frequent words. `long`: a natural question of
    some 20 to 35 words that includes words of a turn. `script`: a few words in another script.
    """
    language = _language(seed)
    rng = random.Random(f"queries {seed}")
    rank = {word: place for place, word in enumerate((*_GLUE, *language.words))}

    def said() -> list[str]:
        content = rng.choice(_batch(rng.randrange(-(-turns // BATCH)), seed)).content
        words = [word.strip(".") for word in content.split()]
        return words if content.isascii() and len(words) > 15 else said()

    def text(kind: str) -> str:
        match kind:
            case "rare":
                return " ".join(sorted(said(), key=lambda word: -rank.get(word.lower(), _VOCABULARY * 2))[:2])
            case "common":
                return " ".join([*rng.sample(_GLUE[:40], 2), *rng.sample(language.words[:60], 2)])
            case "long":
                words = said()[: rng.randint(12, 26)]
                return f"What did {rng.choice(language.names)} tell me about {' '.join(words)}, and when was that?"
            case _:
                script = rng.choice(list(_ALPHABETS))
                return _ALPHABETS[script][1].join(language.scripts[script].draw(rng, 3))

    return [Query(kind=kind, text=text(kind)) for kind in (KINDS[place % len(KINDS)] for place in range(count))]


# --- a tool result ----------------------------------------------------------------------------------


def log(size: int, *, seed: int = 0) -> str:
    """Return a service log of `size` bytes: mostly routine lines, some warnings, occasional tracebacks."""
    rng = random.Random(f"log {seed}")
    language = _language(0)
    moment = _START
    lines: list[str] = []
    room = size
    while room >= 0:
        moment += timedelta(milliseconds=rng.randrange(4_000))
        new = _log_lines(rng, language, f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}")
        lines += new
        room -= sum(len(line) + 1 for line in new)
    return "\n".join(lines)[:size]


def _log_lines(rng: random.Random, language: _Language, stamp: str) -> list[str]:
    module, other = (word.lower() for word in rng.choices(language.names, k=2))
    said = " ".join(rng.choices(language.words[:2_000], k=rng.randint(3, 9)))
    chance = rng.random()
    if chance > 0.004:
        level = "WARNING" if chance > 0.96 else "INFO"
        return [f"{stamp} {level} {module}.{other}: {said} id={rng.randrange(16**8):08x} took {rng.randrange(900)} ms"]
    return [
        f"{stamp} ERROR {module}.{other}: {said}",
        "Traceback (most recent call last):",
        f'  File "/srv/{module}/{other}.py", line {rng.randint(10, 900)}, in {other}',
        f"    {module} = {other}({rng.randrange(100)})",
        f"ValueError: {said}",
    ]
