"""Checks that a statement keeps the frame of the sentence that it rephrases: time, mood, subject, order and limits.

A statement can repeat the words of a sentence and still say something else. `breaks_frame` finds these changes:

    time        "I used to live in Graz" became "lives in Graz"
    mood        "I might move to Graz" became "moves to Graz"
    polarity    "don't stop asking" became "stop asking"
    order       "from Ghent to Bruges" became "from Bruges to Ghent"; "2 sons and 5 nephews" became "5 sons"
    clause      "Carla is my lawyer, Denise my dentist" became "Denise is the lawyer"

`drops_limit` finds an order that lost the words that limit it. `is_joke` and `is_taken_back` judge whole turns. All
work across languages, by the words of `words/frames.txt` and the cosines of the bundled encoder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import pairwise

from mcp_memory.language import lines_of, pattern_of
from mcp_memory.language.sentences import is_negative, is_person, others
from mcp_memory.language.words import function_words_of, languages_of
from mcp_memory.longterm.verification.comparison import (
    capitals_of,
    cosines,
    dense,
    differ,
    known_terms,
    nearest,
    pattern,
    pieces_of,
    sentences_of,
    share_of,
    terms_of,
    words_in,
)

__all__ = [
    "breaks_frame",
    "changes_subject",
    "drops_limit",
    "invents_reason",
    "is_joke",
    "is_own_habit",
    "is_taken_back",
]

_FILE = "mcp_memory.longterm", "words/frames.txt"
_frame = partial(pattern_of, *_FILE)

_OPENING_MARKS = "\"'«“¿¡ "
_SAME_PERSON = 0.35  # cosine of what somebody is to the user in two languages
_OWNER = re.compile(r"(\w+)['’]s \w")
_TOKEN = re.compile(r"\d[\d.,:]*\d|\d|[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_NAME = re.compile(r"(?<![\w'’-])[^\W\d_a-zа-яё][\w-]+")
_DISTANCE = 3  # words between a number and the noun that it counts
_CLEARLY = 0.08  # cosine by which a noun is nearer to another number's noun
_SAME_NOUN = 0.4  # cosine of a noun to its translation
_LIMIT_KEPT, _LIMIT_MEANING = 0.5, 0.6  # share of a limit's words, or the cosine of one of them in another language
_SYNONYM = 0.7  # its cosine in the same language


def breaks_frame(said: str, claim: str) -> bool:
    """Tell whether a claim changes the time, mood, polarity or order of the sentence that it rephrases."""
    clause = _carrying_clause(said, claim).lower().replace("’", "'")
    lower = claim.lower().replace("’", "'")
    return (
        _is_over(clause, lower)
        or (_has("UNSURE", clause) and not _has("MAY_BE", lower) and not _has("UNSURE", lower))
        or (_has("FOR_ONCE", clause) and not _has("FOR_ONCE", lower))
        or _reverses_stop(said.lower().replace("’", "'"), lower)
        or _swaps_numbers(said, claim)
        or _swaps_directions(said, claim)
        or _swaps_compared(said, claim)
        or _mixes_clauses(said, claim)
    )


def _is_over(clause: str, claim: str) -> bool:
    if is_negative(clause) and is_negative(claim):  # "never do that any more"
        return False
    return _has("ENDED", clause) and not _has("OF_THE_PAST", claim) and not _has("ENDED", claim)


def changes_subject(said: str, claim: str) -> bool:
    """Tell whether a sentence is about somebody whom a claim about the user does not mention: "My sister is …".

    A claim in another language may name them by another word of near meaning. A claim in which the user does what the
    others do, as in "the user taught their sister" of "my sister taught me", is about somebody else, too.
    """
    subject = others().match(said.lower().lstrip(_OPENING_MARKS))
    if subject is None:
        return False
    owner = _OWNER.search(subject[0])
    if owner and is_person(owner[1]) and not terms_of(owner[1]) <= known_terms(claim):
        return True
    if differ(said, claim):
        is_mentioned = nearest(words_in(subject[0])[-1], filter(is_person, words_in(claim))) >= _SAME_PERSON
    else:
        is_mentioned = bool(known_terms(subject[0]) & terms_of(claim))
    if not is_mentioned:
        return True
    clause = _carrying_clause(said, claim).lower().lstrip(_OPENING_MARKS)
    return bool(_has("USER_ACTS", claim.lower()) and others().match(clause))


def _has(name: str, text: str) -> bool:
    return _frame(name).search(text) is not None


# --- clauses ----------------------------------------------------------------------------------------


def _clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence; one without its own subject stays with the clause before it."""
    clauses: list[str] = []
    for piece in pattern("CLAUSE").split(sentence):
        has_subject = pattern("FIRST_PERSON").search(piece.lower()) or _has("NOW", piece.lower())
        if clauses and not has_subject and pattern("FIRST_PERSON").search(clauses[-1].lower()):
            clauses[-1] = f"{clauses[-1]}, {piece.strip()}"
        elif _content(piece):
            clauses.append(piece.strip())
    return clauses


def _carrying_clause(said: str, claim: str) -> str:
    """Return the clause of a sentence that is nearest to a claim, by its words and then by its meaning."""
    clauses = _clauses(said)
    if len(clauses) < 2:
        return said
    scores = cosines(claim, clauses) or [0.0] * len(clauses)
    has_words = bool(terms_of(claim))
    ranked = [
        (share_of(claim, known_terms(clause)) if has_words else 0.0, score)
        for clause, score in zip(clauses, scores, strict=True)
    ]
    return clauses[ranked.index(max(ranked))]


def _content(text: str) -> set[str]:
    return terms_of(text) | _numbers_in(text)


def _mixes_clauses(said: str, claim: str) -> bool:
    """Tell whether a claim of one clause joins words of two clauses, and a name or number from the wrong one of them.

    It is the wrong one where the clause with the other words has a name or number too. Scripts without spaces have no
    capitals: there each clause has to say something else besides.
    """
    wanted = _content(claim)
    german = "de" in languages_of(said.split())  # any noun has a capital there
    if len(wanted) < 2 or len(_clauses(claim)) > 1 or differ(said, claim) or german:
        return False
    pieces = [piece for piece in pattern("CLAUSE").split(said) if _content(piece)]
    shared = [wanted & (known_terms(piece) | _content(piece)) for piece in pieces]
    if len(pieces) < 2 or max(map(len, shared)) == len(frozenset[str]().union(*shared)):
        return False
    without_capitals = dense(said) == 2
    # The capital of the first word comes from its place.
    first: set[str] = set() if pattern("ACTS").match(said) else set(words_in(said.lower())[:1])
    for one, there in zip(pieces, shared, strict=True):
        for other, here in zip(pieces, shared, strict=True):
            if not (there - here and here - there):
                continue
            if without_capitals and all(_content(piece) - wanted for piece in (one, other)):
                return True
            if any(values & _words(claim) and rivals - first for values, rivals in _rivals(one, other, claim)):
                return True
    return False


def _rivals(one: str, other: str, claim: str) -> Iterator[tuple[set[str], set[str]]]:
    """Yield names, and then numbers: those of one clause alone, and those of the other that a claim does not have."""
    for kind in (_names_in, _numbers_in):
        yield kind(one) - kind(other), kind(other) - kind(one) - _words(claim)


def _names_in(text: str) -> set[str]:
    return {name for name in capitals_of(text) if terms_of(name)}


def _numbers_in(text: str) -> set[str]:
    return {token for token in _TOKEN.findall(text) if token[0].isdigit()}


def _words(text: str) -> set[str]:
    return {token.lower() for token in _TOKEN.findall(text)}


def has_rival(claim: str, text: str) -> bool:
    """Tell whether the clauses of a text with the words of a claim have another name: "I live in Oslo"."""
    names = _names_in(claim) & _names_in(text)
    rest = terms_of(claim) - known_terms(*names)
    if not names or not rest or differ(text, claim) or "de" in languages_of(text.split()):
        return False
    clauses = [clause for sentence in sentences_of(text) for clause in pattern("CLAUSE").split(sentence)]
    carrying = [_names_in(clause) for clause in clauses if rest <= known_terms(clause)]
    return any(there - names for there in carrying) and not any(names & there for there in carrying)


# --- polarity and order -----------------------------------------------------------------------------


def _reverses_stop(said: str, claim: str) -> bool:
    """Tell whether one text says not to stop something and the other says to stop it."""
    not_to_stop = _has("NOT_TO_STOP", said), _has("NOT_TO_STOP", claim)
    to_stop = _has("TO_STOP", said), _has("TO_STOP", claim)
    return not_to_stop[0] != not_to_stop[1] and all(to_stop)


def _counted(text: str) -> list[tuple[str, str]]:
    """Return the numbers of a text, each with the word that it counts."""
    tokens = _TOKEN.findall(text)
    counted: list[tuple[str, str]] = []
    for place, token in enumerate(tokens):
        if token[0].isdigit():
            after = tokens[place + 1 : place + 1 + _DISTANCE]
            if noun := next((word for word in after if not word[0].isdigit() and terms_of(word)), None):
                counted.append((token, noun))
    return counted


def _swaps_numbers(said: str, claim: str) -> bool:
    """Tell whether a number counts something else in a claim: "2 sons and 5 nephews" became "5 sons"."""
    there, here = _counted(said), _counted(claim)
    for number, noun in here:
        units = {_unit(other) for one, other in there if one == number} - {None}
        if units and (unit := _unit(noun)) and unit not in units:
            return True
        own = [other for one, other in there if one == number]
        others = [other for one, other in there if one != number]
        if own and others and nearest(noun, others) >= max(_SAME_NOUN, nearest(noun, own) + _CLEARLY):
            return True
    return False


@cache
def _units() -> dict[str, int]:
    return {word: place for place, line in enumerate(lines_of(*_FILE, "units")) for word in line.split()}


def _unit(noun: str) -> int | None:
    return _units().get(noun.lower())


def _swaps_directions(said: str, claim: str) -> bool:
    """Tell whether a claim exchanges where something comes from and where it goes to."""
    theirs, mine = _directions(said), _directions(claim)
    if not {"FROM", "TO"} <= set(theirs.values()):
        return False
    past = _has("OF_THE_PAST", claim.lower())
    for name in {name.lower() for name in _NAME.findall(claim)} & set(theirs):
        if name in mine and mine[name] != theirs[name]:
            return True
        if name not in mine and theirs[name] == "FROM" and not past:
            others = {other for other, way in theirs.items() if way == "TO"}
            if others.isdisjoint(word.lower() for word in words_in(claim)):
                return True
    return False


@cache
def _ways() -> dict[str, str]:
    return {word: way for way in ("FROM", "TO") for word in pattern_of(*_FILE, way).pattern.split("|")}


def _directions(text: str) -> dict[str, str]:
    """Return the names of a text that stand behind a preposition of direction."""
    tokens = _TOKEN.findall(text)
    return {
        name.lower(): _ways()[before.lower()]
        for before, name in pairwise(tokens)
        if before.lower() in _ways() and name[:1].isupper()
    }


def _swaps_compared(said: str, claim: str) -> bool:
    """Tell whether a claim prefers what the sentence puts last: "cats more than dogs" became "dogs more than cats"."""
    (before, after), (first, last) = _compared(said), _compared(claim)
    if not (terms_of(before) and terms_of(after) and terms_of(first) and terms_of(last)):
        return False
    straight = nearest(first, [before]) + nearest(last, [after])
    return nearest(first, [after]) + nearest(last, [before]) > straight + _CLEARLY


def _compared(text: str) -> tuple[str, str]:
    """Return the words on both sides of what compares them, without what compares; empty where nothing is compared."""
    lower = text.lower()
    verb = _frame("COMPARES").search(lower)
    than = _frame("THAN").search(lower, verb.end()) if verb else None
    if verb is None or than is None:
        return "", ""
    before = f"{_frame('USER').sub('', lower[: verb.start()])} {lower[verb.end() : than.start()]}"
    return before.strip(), lower[than.end() :].strip(" .!")


def invents_reason(text: str, claim: str) -> bool:
    """Tell whether a claim gives a reason that is not in a text: "… because of a divorce"."""
    reason = _frame("BECAUSE").search(claim.lower())
    if reason is None or not terms_of(reason[0]):
        return False
    has_words = share_of(reason[0], known_terms(text)) >= _LIMIT_KEPT
    return not has_words and nearest(reason[0], pieces_of(text)) < _SAME_NOUN


# --- limits -----------------------------------------------------------------------------------------


def drops_limit(said: str, rule: str) -> bool:
    """Tell whether a rule drops the limit that an order begins with: "in the legacy branch never rebase"."""
    if (found := _frame("DENSE_LIMIT").match(said)) and dense(said) == 2:
        limit = found[0]
    elif (found := _frame("LEADING").match(said.lower())) and not pattern("FOR_GOOD").match(found["limit"]):
        limit = said[slice(*found.span("limit"))]
    else:
        return False
    order = _frame("ORDER").search(limit.lower())
    whole = words_in(limit[: order.start()] if order else limit)
    telling = set(whole) - {word for word in whole if word.lower() in function_words_of(whole)}
    words = [word for word in whole if word in telling and terms_of(word) and (len(word) > 2 or dense(word) == 2)]
    if dense(said) != 2 and not order:
        words = words[:1]  # where the order begins is unknown
    if not words:
        return False
    if not differ(said, rule):
        share = share_of(" ".join(words), known_terms(rule))
        return share < _LIMIT_KEPT and _is_far(words, rule, _SYNONYM)
    return _is_far(words, rule, _LIMIT_MEANING)


def _is_far(words: Sequence[str], rule: str, least: float) -> bool:
    theirs = list(dict.fromkeys((*words_in(rule), *pieces_of(rule))))
    return max((nearest(word, theirs) for word in (*words, " ".join(words))), default=0.0) < least


def is_own_habit(said: str, rule: str) -> bool:
    """Tell whether a sentence says what the user does, and a rule asks it of somebody else: "I always walk to work"."""
    return _has("HABIT", said.lower()) and not pattern("THE_USER").match(rule.lower())


# --- whole turns ------------------------------------------------------------------------------------


def is_joke(text: str) -> bool:
    """Tell whether a turn is marked as not meant: "just kidding", "yeah sure, and I'm the Queen 😂"."""
    return _has("JOKES", text.lower().replace("’", "'"))


def is_taken_back(claim: str, said: str, later: Sequence[str]) -> bool:
    """Tell whether the user takes back a turn in their later turns of the session.

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
    return share_of(claim, known_terms(sentence)) >= _LIMIT_KEPT


def _withdraws(text: str) -> bool:
    return any(_frame("WITHDRAWS").match(sentence.strip().lower().replace("’", "'")) for sentence in sentences_of(text))


def _shares(claim: str, text: str) -> bool:
    return bool(terms_of(claim) & known_terms(text))


def _values(text: str) -> set[str]:
    return {*_numbers_in(text), *_names_in(text)}
