"""Reads whether a text says what a statement says, and which order an answer agrees to.

`accepted_offer` reads rules that the user agrees to: "Shall I always answer in French?" and "Yes, please" state one
together. The offer has to be permanent ("always", "from now on"), and the answer has to agree and say nothing else, in
the languages of `words/small_talk.txt`; "yes, but …" does not.
"""

from __future__ import annotations

import re
from functools import cache

from mcp_memory.language.sentences import FILL, is_negative, is_question, own_part
from mcp_memory.longterm.turns import bare, phrases_of
from mcp_memory.longterm.verification.comparison import (
    SHORT,
    known_terms,
    nearest,
    pattern,
    pieces_of,
    places_of,
    sentences_of,
    share_of,
    terms_of,
    word_list,
)
from mcp_memory.longterm.verification.values import numbers_in, spelled_numbers

_SAME, _SAME_MEANING = 0.75, 0.6  # share of a statement's words in a text that repeats it, and its cosine
_SMALL = 12  # numbers that people write as words too


def repeats(statement: str, text: str) -> bool:
    """Return whether a text supports a statement: in nearly the same words, or close in meaning."""
    shares = [share_of(statement, known_terms(place)) for place in places_of(text)]
    if len(terms_of(statement)) >= SHORT and max(shares, default=0.0) >= _SAME:
        return True
    return nearest(statement, pieces_of(text)) >= _SAME_MEANING


def lacks_a_number(statement: str, said: str) -> bool:
    """Return whether a statement has a number that a text has neither in digits nor in words.

    Small ones only count where the text has digits.
    """
    theirs = numbers_in(said)
    missing = numbers_in(statement) - theirs - spelled_numbers(said)
    return any(number > _SMALL or theirs for number in missing)


_LONGEST = 80  # characters of an answer
_READ = 2_000  # characters at the end of an offer
_FEW_WORDS = 4  # of "Is that all right?", which asks about the sentence before


def accepted_offer(offer: str, answer: str) -> str | None:
    """Return the order that an answer agrees to; None if it agrees to nothing.

    An offer is the question that ends the turn before, if it is about a permanent rule.
    """
    if not agrees(answer):
        return None
    own = own_part(offer[-_READ:]).replace(FILL, " ")
    said = [sentence.strip() for sentence in sentences_of(own)]
    if not said or not (is_question(said[-1].lower()) or pattern("OFFERS").match(said[-1])):
        return None
    asked = said[-1]
    if len(asked.split()) <= _FEW_WORDS and len(said) > 1 and asked < "\u2e80":
        asked = said[-2]
    if not pattern("FOR_GOOD").search(asked):
        return None
    return re.sub(r"[?？]\W*$", ".", pattern("PROMISES").sub("", pattern("ASKS").sub("", asked)))


def agrees(answer: str) -> bool:
    """Return whether an answer says yes and nothing else, in the languages of `words/small_talk.txt`."""
    if len(answer) > _LONGEST:
        return False
    rest = pattern("POLITELY").sub("", answer)
    if not is_negative(answer):
        rest = pattern("FOR_GOOD").sub("", rest)  # "absolutely, every time"
    kinds = phrases_of(answer) or phrases_of(rest)
    agrees = bool(kinds and kinds & {"assent", "agreement"}) or (rest != answer and not any(map(str.isalnum, rest)))
    return agrees and _noes().isdisjoint(bare(answer).split())


@cache
def _noes() -> frozenset[str]:
    return frozenset(map(bare, word_list("noes")))
