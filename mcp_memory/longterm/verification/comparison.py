"""Compares a statement with words that were said: what they have in common, and which part they contradict.

Terms of the index and the bundled encoder say what they have in common. A statement is compared part by part (its
clauses); a text by its pieces: the whole, its sentences, neighbouring ones together, and their clauses. About 2 ms for
a sentence. Where the encoder cannot be read, words alone count.

A contradiction is a denial, a swapped name or value, or an unknown name: "I never drink" does not support "the user
drinks"; "Anna moved to Bergen, Tom to Oslo" does not support "Tom moved to Bergen". These are light checks of the
words; paraphrases and scripts without capitals are not covered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.language import lines_of, pattern_of, words_of
from mcp_memory.language.sentences import is_negative, is_question, people, sentences
from mcp_memory.language.words import base_terms, function_words, index_terms, languages_of, query_terms
from mcp_memory.longterm.names import introduces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SHORT = 2
"""Words of a part that hardly says anything."""
_PIECES = 200  # of a text, for their meaning
_WORD = re.compile(r"[^\W\d_]+")
_HAN_PAIR = re.compile("(?=([\u3040-\u30ff\u3400-\u9fff]{2}))")

pattern = partial(pattern_of, "mcp_memory.longterm", "words/verification.txt")
word_list = partial(words_of, "mcp_memory.longterm", "words/verification.txt")


def differ(one: str, other: str) -> bool:
    """Tell whether two texts are in different languages, as far as that shows."""
    mine, theirs = languages_of(one.split()), languages_of(other.split())
    return dense(one) != dense(other) or bool(mine and theirs and set(mine).isdisjoint(theirs))


def dense(text: str) -> int:
    """Return which of three kinds of script a text is mostly in: Latin, others with an alphabet, those without."""
    letters = [2 if letter >= "\u2e80" else 1 if letter >= "\u0370" else 0 for letter in text if letter.isalpha()]
    return max(set(letters), key=letters.count, default=0)


# --- parts and pieces -------------------------------------------------------------------------------


def parts_of(statement: str) -> Iterator[str]:
    """Yield the clauses of a statement; one that says next to nothing stays with the one before."""
    kept = ""
    for part in pattern("CUT").split(statement):
        if not part or not part.strip():
            continue
        if kept and len(terms_of(part)) >= SHORT:
            yield kept
            kept = part.strip()
        else:
            kept = f"{kept}, {part.strip()}" if kept else part.strip()
    if kept and terms_of(kept):
        yield kept


def sentences_of(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


def places_of(text: str) -> list[str]:
    """Return the sentences of a text, each with the one after it: words count where they stand together."""
    single = [sentence.strip() for sentence in sentences_of(text)]
    return [f"{one} {other or ''}" for one, other in zip_longest(single, single[1:])]


@lru_cache(maxsize=64)
def pieces_of(text: str) -> tuple[str, ...]:
    """Return the candidates for comparison with a part: a text and its pieces, each once."""
    pieces = [text, *places_of(text)]
    for sentence in sentences_of(text):
        pieces.append(sentence.strip())
        pieces += [part.strip() for part in pattern("CUT").split(sentence) if part and len(part.strip()) > 1]
    return tuple(dict.fromkeys(pieces))[:_PIECES]


# --- words ------------------------------------------------------------------------------------------


def words_in(text: str) -> list[str]:
    """Return the words of a text; of scripts without spaces, pairs of characters."""
    return [part for word in _WORD.findall(text) for part in (_HAN_PAIR.findall(word) or [word])]


def terms_of(text: str) -> set[str]:
    """Return the words that say something; of whom, if it is of the user, and when, are judged elsewhere."""
    words = set(query_terms(text)) & set(base_terms(text)) - _user_terms()
    return {word for word in words if not any(map(str.isdigit, word))}


@cache
def _user_terms() -> frozenset[str]:
    return frozenset(base_terms(" ".join(word_list("users"))))


@lru_cache(maxsize=1_024)
def known_terms(*texts: str) -> frozenset[str]:
    """Return all terms of some texts."""
    return frozenset(term for text in texts for term in (*index_terms(text), *base_terms(text)))


def share_of(text: str, known: Collection[str]) -> float:
    """Return the share of a text's terms that are known; all where it has none."""
    words = terms_of(text)
    return len(words.intersection(known)) / len(words) if words else 1.0


# --- meaning ----------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _vectors(texts: tuple[str, ...]) -> NDArray[np.float32] | None:
    from mcp_memory.models.embed.bundled import shared_encoder

    try:
        return shared_encoder().embed(texts)
    except EmbeddingFailed:
        return None


def cosines(text: str, others: Iterable[str]) -> list[float]:
    """Return the cosine of a text to each of some others; none where the encoder cannot be read."""
    theirs = tuple(others)
    vectors, vector = (_vectors(theirs), _vectors((text,))) if theirs else (None, None)
    return [] if vectors is None or vector is None else (vectors @ vector[0]).tolist()


def nearest(text: str, others: Iterable[str]) -> float:
    """Return the cosine of a text to the nearest of some others; 0 where there are none."""
    return max(cosines(text, others), default=0.0)


_SAME_WORDS = 0.6  # share of a part's words in what denies it
_NEARLY_ALL = 0.75  # share of the words of a part with a negation in what contradicts it
_SOME_WORDS, _SAME_MEANING = 0.4, 0.58  # share and cosine of what denies it in other forms
_MEANING_ABROAD = 0.65  # cosine of what denies it in another language
_SAME_NAME = 0.45  # cosine of a name to one that was said
_MOST_WORDS = 200  # of all turns, searched for other spellings of names
_USER = "\0"  # stands for the user among names

_INFLECTED = frozenset(("tr", "cs", "fi", "hu", "sr", "sk"))
"""Languages in which verbs deny in their endings or beginnings, or of which few negative words are known."""
_CAPITAL = re.compile(r"(?<![\w'’])[^\W\d_a-zа-яё][\w-]*")
_INNER_CAPITAL = re.compile(r"(?<=[^\W_][ ,;])[ ]?([^\W\d_a-zа-яё][\w-]*)")


def contradicted_part(
    parts: Sequence[str],
    texts: Sequence[str],
    *,
    names: Collection[str],
    user: Collection[str] = (),
) -> str | None:
    """Return the first part of a statement that contradicts these texts.

    `names` are of people and things that "she" and "there" may mean here; `user` are names of the user, besides those
    that the texts introduce.
    """
    sentences = [sentence for text in texts for sentence in sentences_of(text)]
    clauses = [clause for sentence in sentences for clause in _clauses(sentence)]
    own = _names_of_user(clauses, user)
    clauses = [clause._replace(named=_as_user(clause.named, own)) for clause in clauses]
    subject: frozenset[str] | None = None
    for before, part in pairwise(["", *parts]):
        named = _named(part, clauses, own)
        if subject is None and named:
            subject = named & {_USER}
        named = named | (subject or frozenset[str]()) if pattern("GOES_ON").match(part) else named
        if (
            (not _denies(before) and _is_denied(part, sentences, names))  # "does not know why, and what to do"
            or _is_another(part, texts, sentences)
            or _is_swapped(part, named, clauses, names)
        ):
            return part
    return None


# --- denied -----------------------------------------------------------------------------------------


def _is_denied(part: str, sentences: Sequence[str], names: Collection[str]) -> bool:
    """Tell whether all sentences with the words of a part say the opposite: "I don't trust him" is no trust."""
    said = {_denies(limb) for limb in _pieces(part)}
    all_capital = dense(part) or "de" in languages_of(part.split())  # German nouns
    capitals = () if all_capital else capitals_of(part)
    rest = terms_of(part) - known_terms(*capitals, *names)
    found = False
    for sentence in sentences if len(said) == 1 and rest else ():
        terms = known_terms(sentence)
        is_near = differ(part, sentence) or not rest.isdisjoint(terms)  # else they share a name alone
        if said == {True} and not differ(part, sentence):  # the opposite has the same words without the negation
            is_near = share_of(part, terms) >= _NEARLY_ALL
        if is_near and _says(sentence, part):
            if _allows(sentence, part, negative=said == {True}):
                return False
            found = True
    return found


def _allows(sentence: str, part: str, *, negative: bool) -> bool:
    pieces = _pieces(sentence)
    near = [piece for piece in pieces if share_of(part, known_terms(piece)) >= _SAME_WORDS] or pieces
    if dismisses(sentence) or is_question(sentence.lower()) or pattern("WHETHER").search(sentence):
        return True
    return any(_denies(piece) == negative for piece in near)


def dismisses(sentence: str) -> bool:
    """Tell whether a sentence names something to ignore: "Forget the rules of grammar"."""
    return pattern("DISMISSES").match(sentence) is not None


def _pieces(sentence: str) -> list[str]:
    """Return the clauses of a sentence, and the limbs of those that are not negative: "I don't think that …"."""
    pieces: list[str] = []
    for clause in pattern("CLAUSE").split(sentence):
        limbs = pattern("SUBORDINATE").split(clause)
        pieces += [clause] if is_negative(limbs[0]) else limbs
    return [piece for piece in pieces if terms_of(piece)]


def _says(said: str, part: str) -> bool:
    """Tell whether a sentence has most words of a part, or some of them and its meaning."""
    words = share_of(part, known_terms(said)) if terms_of(part) else 0.0
    if words >= _SAME_WORDS:
        return True
    abroad = not words and differ(said, part) and _INFLECTED.isdisjoint(languages_of(said.split()))
    if words < _SOME_WORDS and not abroad:
        return False
    return nearest(part, [said]) >= (_MEANING_ABROAD if abroad else _SAME_MEANING)


def _denies(piece: str) -> bool:
    return is_negative(pattern("CONFIRMS").sub(" ", piece))


# --- one word for another ---------------------------------------------------------------------------

_ALIKE = (frozenset(("short", "brief", "concise")), frozenset(("kurz", "knapp")), frozenset(("long", "detailed")))


@cache
def _excluding() -> list[frozenset[str]]:
    return [known_terms(line) for line in lines_of("mcp_memory.longterm", "words/verification.txt", "excluding")]


def _is_another(part: str, texts: Sequence[str], sentences: Sequence[str]) -> bool:
    words = terms_of(part)
    for group in _excluding():
        for word in words & group - known_terms(*texts):
            alike = next((some for some in _ALIKE if word in some), frozenset[str]())
            others, rest = group - {word} - alike, words - {word}
            for said in map(known_terms, sentences):
                if said & others and not said & alike and 2 * len(rest & said) >= len(rest):
                    return True
    return False


# --- swapped ----------------------------------------------------------------------------------------


class _Clause(NamedTuple):
    """A clause of the spoken text, its terms, and the people and things it names, in lower case.

    `first` is its first word, which may have its capital from the place alone: it names nothing beside "I" and "me".
    `behind` is a name that stands alone behind it: "a gift from my grandma in my home country, Sweden".
    """

    text: str
    terms: frozenset[str]
    named: frozenset[str]
    first: str
    behind: frozenset[str]


def _clauses(sentence: str) -> Iterator[_Clause]:
    """Yield the clauses of a sentence; one that is only a name goes with the next: "Anna and Tom moved"."""
    kept = ""
    pieces = pattern("CLAUSE").split(sentence)
    for place, (piece, following) in enumerate(pairwise([*pieces, ""]), start=1):
        kept = f"{kept}, {piece}" if kept else piece.strip()
        if kept and (place == len(pieces) or len(terms_of(kept)) > 1):
            names = capitals_of(following)
            behind = names if names >= {*words_in(following.lower())} else frozenset[str]()
            lower = kept.lower()
            named = {*capitals_of(kept), *(found[1] for found in people().finditer(lower))}
            if pattern("FIRST_PERSON").search(people().sub(" ", lower)):
                named.add(_USER)
            yield _Clause(kept, known_terms(kept), frozenset(named), next(iter(words_in(lower)), ""), behind)
            kept = ""


def _names_of_user(clauses: Sequence[_Clause], known: Collection[str]) -> frozenset[str]:
    """Return the words by which the user is named: those of known names, and those of "I'm Anna"."""
    told = {name for clause in clauses for name in clause.named - {_USER} if introduces(clause.text, name)}
    return frozenset({*told, *(word for name in known for word in name.lower().split())})


def _as_user(named: frozenset[str], own: frozenset[str]) -> frozenset[str]:
    return named - own | {_USER} if named & own else named


def _named(part: str, clauses: Sequence[_Clause], own: frozenset[str]) -> frozenset[str]:
    said = frozenset(name for clause in clauses for name in clause.named)
    sure = frozenset(name for clause in clauses for name in clause.named if name != clause.first)
    user = {_USER} if pattern("THE_USER").search(part.lower()) else set[str]()
    capitals = capitals_of(part)
    user |= {_USER} if capitals & own else set[str]()
    return capitals & said - own | {*words_in(part.lower())} & sure - own | user


def capitals_of(text: str) -> frozenset[str]:
    """Return the words with a capital, in lower case; the first only if it is no function word."""
    names = [name.lower() for name in _CAPITAL.findall(text)]
    if text.lstrip()[:1].isupper() and names and names[0] in _first_words():
        names = names[1:]
    return frozenset(name for name in names if len(name) > 1) - word_list("calendar") - word_list("polite")


@cache
def _first_words() -> frozenset[str]:
    return function_words(("en", "de", "fr", "es", "nl", "ru"))


def _is_swapped(part: str, named: frozenset[str], clauses: Sequence[_Clause], names: Collection[str]) -> bool:
    """Tell whether the clauses with the other words of a part have another name, and none has all that it names."""
    known = {word for name in names for word in name.lower().split()}
    if "de" in languages_of(part.split()):  # any noun has a capital there
        named &= {*known, _USER}
    names_of_part = known_terms(" ".join(named - {_USER})) if named else frozenset[str]()
    words = {word for word in terms_of(part) - names_of_part if len(word) > 1}
    carrying = [clause for clause in clauses if words and words <= clause.terms]
    subject = {*words_in(part.lower())[:1]}  # "I like the car, Mel" is not what Mel likes
    if not named or not carrying or (len(named) > 1 and any(named <= clause.named for clause in clauses)):
        return False
    for clause in carrying:
        apposed = (clause.behind & named) - subject
        missing, extra = named - clause.named - apposed, clause.named - named
        if _USER in extra:
            extra -= {clause.first}
        extra = {name for name in extra if words.isdisjoint(known_terms(name))}  # "Training for …" is not a name
        extra -= _beside(named, clause.text)
        is_the_users = {_USER} >= extra or (apposed and _USER in clause.named)
        if is_the_users and all(_may_be_the_user(name, clauses, known) for name in missing):
            return False
        if not missing or not extra or pattern("THIRD_PERSON").search(people().sub(" ", clause.text.lower())):
            return False
    return True


_TWO_CAPITALS = re.compile(r"\b([A-Z][\w'’-]+) (?=([A-Z][\w'’-]+))")


def _beside(named: frozenset[str], text: str) -> set[str]:
    """Return the names that stand right before one of these, as a part of it: "Delta SkyMiles"."""
    return {one.lower() for one, other in _TWO_CAPITALS.findall(text) if other.lower() in named}


def _may_be_the_user(name: str, clauses: Sequence[_Clause], known: Collection[str]) -> bool:
    return name in known or any({name, _USER} <= clause.named for clause in clauses)


# --- unknown names ----------------------------------------------------------------------------------


def unknown_name(parts: Sequence[str], texts: Sequence[str], names: Collection[str]) -> str | None:
    """Return the first name in the parts of a statement that is neither in these texts nor known."""
    whole = "\n".join((*texts, *names)).casefold()
    inner = pattern("GERMAN_NAME") if "de" in languages_of(" ".join(parts).split()) else _INNER_CAPITAL
    found: list[str] = [name for part in parts for name in inner.findall(part)]
    if parts and (first := pattern("ACTS").match(parts[0])) and first[1].lower() not in _first_words():
        found.append(first[1])
    strange = [
        name
        for name in found
        if name.casefold() not in whole
        and name.lower() not in word_list("calendar")
        and not any(map(str.isdigit, name))
        and len(name) > 1
    ]
    if not strange:
        return None
    said = list(dict.fromkeys(word for text in (*texts, *names) for word in words_in(text)))[:_MOST_WORDS]
    return next((name for name in strange if nearest(name, said) < _SAME_NAME), None)
