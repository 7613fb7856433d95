"""Finds changes of time and mood between a sentence and what restates it, and turns that are not meant or taken back.

Works in several languages, by the words of `words/frames.txt`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from mcp_memory.language import pattern_of
from mcp_memory.language.sentences import is_negative
from mcp_memory.longterm.verification.comparison import capitals_of, known_terms, sentences_of, share_of, terms_of

_frame = partial(pattern_of, "mcp_memory.longterm", "words/frames.txt")

_NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
_SAID = 0.5  # share of a claim's words in a sentence that withdraws something


def changes_frame(said: str, claim: str) -> bool:
    """Return whether a claim turns what was, may be or holds for once into what is: "I used to live in Graz"."""
    said, claim = said.lower().replace("’", "'"), claim.lower().replace("’", "'")
    is_over = _has("ENDED", said) and not (is_negative(said) and is_negative(claim))  # "never do that any more"
    return (
        (is_over and not _has("OF_THE_PAST", claim) and not _has("ENDED", claim))
        or (_has("UNSURE", said) and not _has("MAY_BE", claim) and not _has("UNSURE", claim))
        or (_has("FOR_ONCE", said) and not _has("FOR_ONCE", claim))
    )


def _has(name: str, text: str) -> bool:
    return _frame(name).search(text) is not None


# --- whole turns ------------------------------------------------------------------------------------


def is_joke(text: str) -> bool:
    """Return whether a turn is marked as not meant: "just kidding", "yeah sure, and I'm the Queen 😂"."""
    return _has("JOKES", text.lower().replace("’", "'"))


def is_taken_back(claim: str, said: str, later: Sequence[str]) -> bool:
    """Return whether the user takes back a turn in their later turns of the session.

    The next turn takes back everything ("scrap that"), a further one what it has a word in common with. A next turn
    that corrects a typing mistake replaces the numbers and names of this one.
    """
    sentences = sentences_of(said)
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
    return _has("CORRECTS", later[0].lower()) and bool(_values(claim) & _values(said) - _values(later[0]))


def _only_this(claim: str, sentence: str) -> bool:
    return share_of(claim, known_terms(sentence)) >= _SAID


def _withdraws(text: str) -> bool:
    return any(_frame("WITHDRAWS").match(sentence.strip().lower().replace("’", "'")) for sentence in sentences_of(text))


def _shares(claim: str, text: str) -> bool:
    return bool(terms_of(claim) & known_terms(text))


def _values(text: str) -> set[str]:
    return {*_NUMBER.findall(text), *(name for name in capitals_of(text) if terms_of(name))}
