"""Finds the user's own words that an agent's statement restates, and decides whether they support it.

An agent rewords its memories of the user, and may drop a limit ("in project X"), a tense or a name. So the words that
the user typed are kept in place of the agent's: whole sentences, which carry their own limits. Terms and meaning
(bundled encoder, across languages) decide whether a sentence is about the same matter as the statement. A sentence
without the first person has to be nearer. Questions, quotations and reported speech are not the user's
statements. A short answer is kept with the question before it: "Are you vegetarian? – Yes".

Also read here: changes of time and mood (`changes_frame`), turns that are jokes or retracted (`words/frames.txt`), and
rules that the user agrees to (`accepted_offer`): "Shall I always answer in French?" and "Yes, please" state a rule
together. The offer has to be permanent ("always", "from now on"), and the answer has to agree and say nothing else
(`words/small_talk.txt`); "yes, but …" does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

from mcp_memory.language import pattern_of
from mcp_memory.language.sentences import (
    FILL,
    is_negative,
    is_question,
    is_reported,
    own_part,
    sentences,
)
from mcp_memory.language.words import fold, languages_of
from mcp_memory.longterm.standing_rules import possible_rules
from mcp_memory.longterm.turns import bare, kinds_of_phrases
from mcp_memory.longterm.verification.comparison import (
    SHORT,
    capitals_of,
    dense,
    differ,
    known_terms,
    nearest,
    pattern,
    pieces_of,
    places_of,
    sentences_of,
    share_of,
    terms_of,
    word_list,
    words_in,
)
from mcp_memory.longterm.verification.values import numbers_in, spelled_numbers

_frame = partial(pattern_of, "mcp_memory.longterm", "words/frames.txt")
_NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
_SAID = 0.5  # share of a claim's words in a sentence that withdraws something


def changes_frame(sentence: str, claim: str) -> bool:
    """Return whether a claim drops a limit of a sentence: that it is past, uncertain, or true on this occasion only.

    For example, "The user lives in Graz" drops the past of "I used to live in Graz".
    """
    sentence, claim = sentence.lower().replace("’", "'"), claim.lower().replace("’", "'")
    is_over = _has("ENDED", sentence) and not (is_negative(sentence) and is_negative(claim))  # "never do that any more"
    return (
        (is_over and not _has("OF_THE_PAST", claim) and not _has("ENDED", claim))
        or (_has("UNSURE", sentence) and not _has("MAY_BE", claim) and not _has("UNSURE", claim))
        or (_has("FOR_ONCE", sentence) and not _has("FOR_ONCE", claim))
    )


def _has(name: str, text: str) -> bool:
    return _frame(name).search(text) is not None


# --- whole turns ------------------------------------------------------------------------------------
def is_joke(text: str) -> bool:
    """Return whether a turn is marked as a joke: "just kidding", "yeah sure, and I'm the Queen 😂"."""
    return _has("JOKES", text.lower().replace("’", "'"))


def is_taken_back(claim: str, turn: str, later: Sequence[str]) -> bool:
    """Return whether the user retracts a claim that they made in a turn, in the turn itself or in `later` turns.

    The next turn retracts everything ("scrap that", "just kidding"), a further turn only claims with a word in common.
    A next turn that corrects a typing mistake retracts claims with a number or name that it does not repeat.
    """
    sentences = sentences_of(turn)
    own = [
        sentence
        for place, sentence in enumerate(sentences)
        if place and _withdraws(sentence) and not _only_this(claim, sentence)
    ]
    if own or any(_withdraws(text) and (not place or _shares(claim, text)) for place, text in enumerate(later)):
        return True
    if not later:
        return False
    if is_joke(later[0]):
        return True
    return _has("CORRECTS", later[0].lower()) and bool(_values(claim) & _values(turn) - _values(later[0]))


def _only_this(claim: str, sentence: str) -> bool:
    return share_of(claim, known_terms(sentence)) >= _SAID


def _withdraws(text: str) -> bool:
    return any(_frame("WITHDRAWS").match(sentence.strip().lower().replace("’", "'")) for sentence in sentences_of(text))


def _shares(claim: str, text: str) -> bool:
    return bool(terms_of(claim) & known_terms(text))


def _values(text: str) -> set[str]:
    return {*_NUMBER.findall(text), *(name for name in capitals_of(text) if terms_of(name))}


_SAME, _SAME_MEANING = 0.75, 0.6  # share of a statement's words in a text that repeats it, and its cosine
_SMALL = 12  # numbers that people write as words too


def repeats(statement: str, text: str) -> bool:
    """Return whether a text says the same as a statement, in nearly the same words or with a similar meaning."""
    shares = [share_of(statement, known_terms(place)) for place in places_of(text)]
    if len(terms_of(statement)) >= SHORT and max(shares, default=0.0) >= _SAME:
        return True
    return nearest(statement, pieces_of(text)) >= _SAME_MEANING


def lacks_a_number(statement: str, text: str) -> bool:
    """Return whether a statement has a number that a text has neither in digits nor in words.

    Small numbers count only if the text has digits.
    """
    theirs = numbers_in(text)
    missing = numbers_in(statement) - theirs - spelled_numbers(text)
    return any(number > _SMALL or theirs for number in missing)


_LONGEST_ANSWER = 80  # characters of an answer
_FEW_WORDS = 4  # words of a question such as "Is that all right?" about the sentence before it


def accepted_offer(offer: str, answer: str) -> str | None:
    """Return the order that an answer agrees to; None if it agrees to nothing.

    An offer is the question that ends the turn before, if it is about a permanent rule.
    """
    if not agrees(answer):
        return None
    own = own_part(offer[-_READ:]).replace(FILL, " ")
    offer_sentences = [sentence.strip() for sentence in sentences_of(own)]
    if not offer_sentences or not (
        is_question(offer_sentences[-1].lower()) or pattern("OFFERS").match(offer_sentences[-1])
    ):
        return None
    asked = offer_sentences[-1]
    if len(asked.split()) <= _FEW_WORDS and len(offer_sentences) > 1 and asked < "\u2e80":
        asked = offer_sentences[-2]
    if not pattern("FOR_GOOD").search(asked):
        return None
    return re.sub(r"[?？]\W*$", ".", pattern("PROMISES").sub("", pattern("ASKS").sub("", asked)))


def agrees(answer: str) -> bool:
    """Return whether an answer says yes and nothing else, in the languages of `words/small_talk.txt`."""
    if len(answer) > _LONGEST_ANSWER:
        return False
    rest = pattern("POLITELY").sub("", answer)
    if not is_negative(answer):
        rest = pattern("FOR_GOOD").sub("", rest)  # "absolutely, every time"
    kinds = kinds_of_phrases(answer) or kinds_of_phrases(rest)
    agrees = bool(kinds and kinds & {"assent", "agreement", "continuation"}) or (
        rest != answer and not any(map(str.isalnum, rest))
    )
    return agrees and _noes().isdisjoint(bare(answer).split())


@cache
def _noes() -> frozenset[str]:
    return frozenset(map(bare, word_list("noes")))


_NEAR = ((0.99, 0.35), (0.5, 0.45), (0.0, 0.52))
"""Shares of a statement's terms in a sentence, and the cosine that suffices with each."""
_NEAR_ABROAD = 0.47  # cosine of a statement to a sentence in another language
_IMPERSONAL, _IMPERSONAL_ABROAD = ((0.4, 0.72),), 0.65
"""The same for a sentence without the first person."""
_PROBABLE, _PROBABLE_SHARE = 0.33, 0.5  # cosine or share of terms of words that a statement probably goes back to
_SHORT_ANSWER = 8  # words
_SHORT_QUESTION = 4  # words; "Is that OK?" asks about the sentence before
_READ = 2_000  # characters at the end of a question
_MAX_SENTENCES = 3
_LONGEST = 600  # characters of a sentence
_PRO_DROP = frozenset(("es", "it", "pt", "pl", "tr", "cs", "fi", "hu", "sr", "sk", "ro"))
"""Languages that leave the pronoun out."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the user: its text, the assistant's words before it, and its time.

    `message` is the user's whole turn.
    """

    text: str
    before: str = ""
    at: datetime | None = None
    message: str = ""

    def __str__(self) -> str:
        return f"{self.before} – {self.text}" if self.before else self.text


@dataclass(frozen=True, slots=True)
class _Words:
    """Words of the user; if `is_impersonal`, they have to be nearer to a statement."""

    said: Said
    is_impersonal: bool = False

    @property
    def text(self) -> str:
        return str(self.said)


def own_words(statement: str, messages: Sequence[Said], *, rule: bool) -> list[Said]:
    """Return the user's words that a statement restates: at most three sentences, or an empty list.

    A short answer comes with its question as `before`. With `rule`, only words that state a standing rule count.
    """
    parts = _clauses(statement)
    # Judging rules is slow: skip turns without any sentence near to the statement.
    near = (turn for turn in messages if any(is_near(part, str(turn)) for part in (statement, *parts)))
    turns = [turn for turn in near if not is_joke(turn.text)]
    candidates = [words for turn in turns for words in (_rules_in(turn) if rule else _statements_in(turn))]
    candidates = [words for words in candidates if len(words.text) <= _LONGEST]
    each = [_best(part, candidates) for part in parts]
    distinct = list(dict.fromkeys(filter(None, each)))
    whole = _best(statement, candidates)
    if all(each) and len(distinct) <= _MAX_SENTENCES and (len(distinct) > 1 or whole is None):
        return distinct
    return [whole] if whole else []


def probable_words(statement: str, messages: Sequence[Said], *, rule: bool, ended: Sequence[str] = ()) -> Said | None:
    """Return the user's sentence that a statement was probably derived from, or None.

    The sentence may say something else than the statement, so callers keep the sentence and drop the statement. With
    `rule`, only sentences that state a standing rule are considered. Sentences in `ended` have been replaced and are
    ignored.
    """
    best: tuple[float, Said] | None = None
    turns = [turn for turn in messages if not is_joke(turn.text)]
    candidates = [words.said for turn in turns for words in (_rules_in(turn) if rule else _statements_in(turn))]
    past = [bare for text in ended if (bare := _bare(text))]
    for words in candidates:
        text = str(words)
        is_withdrawal = is_taken_back(text, "", [words.text])  # such as "Scrap that", which withdraws an earlier turn
        if is_withdrawal or _denies(words, statement, rule=rule) or _is_one_of(words.text, past):
            continue
        meaning, share = nearest(statement, [text]), share_of(statement, known_terms(text))
        is_near = meaning >= _PROBABLE or (len(terms_of(statement)) > 1 and share >= _PROBABLE_SHARE)
        if is_near and len(text) <= _LONGEST and (best is None or meaning + share >= best[0]):
            best = meaning + share, words
    return best[1] if best else None


def _denies(words: Said, statement: str, *, rule: bool) -> bool:
    """Return whether an answer declines what a statement says ("Shall I …? – No thanks"), or a rule is the opposite."""
    if words.before and is_negative(words.text):
        return not is_negative(statement)
    return rule and is_negative(statement) != is_negative(str(words))


def _is_one_of(sentence: str, texts: Sequence[str]) -> bool:
    bare = _bare(sentence)
    return any(bare in text or text in bare for text in texts)


def _bare(text: str) -> str:
    return fold(text).strip(' .!。！"')


def _best(statement: str, candidates: Sequence[_Words]) -> Said | None:
    """Return the words nearest to a statement, of equally near words the last; None if no words are near enough."""
    best: tuple[float, Said] | None = None
    for words in candidates:
        score = _nearness(statement, words)
        if score is not None and (best is None or score >= best[0]):
            best = score, words.said
    return best[1] if best else None


def is_near(statement: str, words: str) -> bool:
    """Return whether words are about the same matter as a statement."""
    return _nearness(statement, _Words(Said(words))) is not None


def _nearness(statement: str, words: _Words) -> float | None:
    """Return how near words are to a statement, or None if they are about something else."""
    if lacks_a_number(statement, words.text):
        return None
    near, near_abroad = (_IMPERSONAL, _IMPERSONAL_ABROAD) if words.is_impersonal else (_NEAR, _NEAR_ABROAD)
    share = share_of(statement, known_terms(words.text)) if terms_of(statement) else 0.0
    meaning = nearest(statement, pieces_of(words.text))
    is_near = any(share >= least and meaning >= cosine for least, cosine in near)
    is_near = is_near or (differ(words.text, statement) and meaning >= near_abroad)
    return share + meaning if is_near else None


def _clauses(statement: str) -> list[str]:
    """Return the clauses of a statement, each as a separate statement."""
    user = pattern("THE_USER").match(statement.lower())
    head, rest = (statement[: user.end()], statement[user.end() :]) if user else ("", statement)
    parts = [pattern("AND").sub("", part.strip(" ,.")) for part in pattern("CLAUSE").split(rest)]
    return [f"{head} {part}".strip() for part in parts if terms_of(part)]


# --- what the user said -----------------------------------------------------------------------------
def _rules_in(turn: Said) -> Iterator[_Words]:
    """Yield the sentences of a turn that may state a rule, and an answer that accepts or chooses an offered rule."""
    for rule in possible_rules(turn.text):
        yield _Words(replace(turn, text=turn.text[rule.start : rule.end].strip(), before=""))
    answered = _short_answer(turn)
    if answered and (accepted_offer(turn.before, answered.text) or _chooses(answered)):
        yield _Words(answered)


def _chooses(answered: Said) -> bool:
    """Return whether an answer names an option of a question about a rule."""
    may_be_rule = bool(possible_rules(re.sub(r"[?？]", ".", str(answered))))
    has_options = pattern("OR").search(answered.before) is not None
    return may_be_rule and has_options and bool(terms_of(answered.text) & known_terms(answered.before))


def _statements_in(turn: Said) -> Iterator[_Words]:
    """Yield the sentences in which the user states something, and a short answer with its question."""
    own = own_part(turn.text)
    for start, end in sentences(own):
        sentence = own[start:end].replace(FILL, " ").strip()
        lower = sentence.lower()
        if not any(map(str.isalnum, sentence)) or is_reported(lower) or pattern("IMAGINED").search(lower):
            continue
        if is_question(lower):  # "I'm diabetic, what can I eat?"
            parts = [part.strip() for part in pattern("CUT").split(sentence) if part and part.strip()]
            declared = [part for part in parts[:-1] if not is_question(part.lower()) and is_personal(part)]
            yield from (_Words(replace(turn, text=part, before="")) for part in declared)
        else:
            yield _Words(replace(turn, text=sentence, before=""), is_impersonal=not is_personal(sentence))
    if answered := _short_answer(turn):
        yield _Words(answered)


def _short_answer(turn: Said) -> Said | None:
    """Return a short answer with the question before it, "Are you vegetarian? – Yes"; None if it is no such answer."""
    answer = own_part(turn.text).replace(FILL, " ").strip()
    if not turn.before or is_question(answer.lower()) or not 0 < len(words_in(answer)) <= _SHORT_ANSWER:
        return None
    question = question_of(turn.before)
    return replace(turn, text=answer, before=question) if question else None


def question_of(turn: str) -> str:
    """Return the question in the last two sentences of a turn, after the sentence before it if it is short; else ""."""
    asked = [sentence.strip() for sentence in sentences_of(own_part(turn[-_READ:]).replace(FILL, " "))]
    for place in range(len(asked) - 1, max(len(asked) - 3, -1), -1):
        if is_question(asked[place].lower()) or pattern("OFFERS").match(asked[place]):
            is_short = len(asked[place].split()) <= _SHORT_QUESTION and place and asked[place] < "\u2e80"
            return f"{asked[place - 1]} {asked[place]}" if is_short else asked[place]
    return ""


def is_personal(sentence: str) -> bool:
    """Return whether a sentence is in the first person, as far as its language shows that."""
    if pattern("FIRST_PERSON").search(sentence.lower()):
        return True
    return dense(sentence) == 2 or not _PRO_DROP.isdisjoint(languages_of(sentence.split()))
