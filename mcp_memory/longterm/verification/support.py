"""Checks whether words support a statement, part by part, across paraphrase and language.

`unsupported` returns the first part of a statement that nothing in the given turns supports. `supports_rule` decides
whether the user stated a rule: one of their sentences has to state it as permanent (`longterm.standing_rules`), and the
rule must keep what limits that sentence ("in project X"). A part is supported by its words or by its meaning (bundled
encoder); addresses and large numbers only by themselves. Quotations of others do not count.

Negations, swapped names and changed values are found (`comparison`); a falsehood in other words is not. Of 30
honest rules and 15 invented ones that were written after the code, 28 and 1 are supported; on earlier sets, in near
words 48 of 49, paraphrased or translated 37 of 44, of invented ones 2 of 106.

`accepted_offer` reads rules that the user agrees to: "Shall I always answer in French?" and "Yes, please" state one
together. The offer has to be permanent ("always", "from now on"), and the answer has to agree and say nothing else, in
the languages of `words/small_talk.txt`; "yes, but …" does not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from mcp_memory.core.secrets.values import is_word
from mcp_memory.language.sentences import FILL, READ, is_negative, is_question, own_part, sentences
from mcp_memory.language.when.vocabulary import LANGUAGES, lexicon
from mcp_memory.language.words import function_words_of, languages_of
from mcp_memory.longterm.standing_rules import STATES, SUPPORTS, judged, standing_rules
from mcp_memory.longterm.times import is_only_a_time, without_dates
from mcp_memory.longterm.turns import bare, phrases_of
from mcp_memory.longterm.verification.comparison import (
    SHORT,
    contradicted_part,
    cosines,
    dense,
    differ,
    dismisses,
    known_terms,
    nearest,
    parts_of,
    pattern,
    pieces_of,
    places_of,
    sentences_of,
    share_of,
    terms_of,
    unknown_name,
    word_list,
    words_in,
)
from mcp_memory.longterm.verification.frame import breaks_frame, drops_limit, invents_reason, is_joke, is_own_habit

__all__ = [
    "accepted_offer", "agrees", "lacks_a_number", "refuses", "relates", "repeats", "supports_rule",
    "swaps_a_value", "unknown_values", "unstated", "unsupported",
]  # fmt: skip

_WORDS = 0.5  # share of a part's words that suffices
_MEANING = 0.38  # cosine of a part to a piece of the evidence that suffices
_NO_WORDS = 0.5  # cosine for a part of some length that shares no word, where the rest of the statement shares many
_SHORT_MEANING = 0.35  # words of a part that hardly says anything, and its cosine
_TINY_MEANING = 0.2  # of a single word
_AS_NEAR = 0.15  # cosine
_SAME, _SAME_MEANING = 0.75, 0.6
_RELATION, _RELATION_WORD = 0.6, 0.65  # cosine of a fact's relation with its value, and of each word of it
_SMALL = 12  # numbers that people write as words too
_WORDS_READ = 200
_PHRASE, _MARKS = 60, "\"'«»“”„‚‘’「」『』 "  # characters of a phrase to write, and the marks around it

# A sentence that states a rule, by its grammar, carries one that is as close as this; in another language the same
# words are missing and cosines are lower. A sentence without such a grammar may be a request of the moment.
_RULE, _RULE_ABROAD = 0.58, 0.49
_RULE_WORDS, _RULE_WITH_WORDS = 0.5, 0.5
_PLAIN, _PLAIN_ABROAD = 0.78, 0.67
_PLAIN_WORDS = ((0.3, 0.66), (0.5, 0.6), (0.75, 0.5))  # shares of its words, and the cosine that suffices with each
# Each word of a rule has a word of the sentence that is near to it: mean of these cosines, the least of them, and the
# cosine of the whole that suffices then. Where they are apart, that of the whole says less.
_RULE_PAIRED, _PLAIN_PAIRED = (0.63, 0.48, 0.4), (0.7, 0.55, 0.6)
_SCOPE_KEPT, _SCOPE_MEANING = 0.5, 0.45  # share of the words of a scope that the rule has too, or its cosine to a piece
_FARTHEST = 0.4  # cosine of the whole below which nothing is carried
_PARAPHRASED, _UNPAIRED, _UNPAIRED_RULE, _PAIRS = 0.7, 0.6, 0.66, 3
# Cosine of a name to a word in another language; of a noun with a capital; of one that no list of words has.
_SAME_NAME, _SAME_NOUN, _SAME_STRANGE_NOUN = 0.57, 0.4, 0.55

ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w|(?:[\w-]+\.)+[a-z]{2,}\b(?:/[\w.-]+)*")
_NAME = re.compile(r"(?<=[a-z0-9,;] )[A-Z][\w'’-]*\b|\b[A-Z]{2,}\b")
"""A word with a capital inside a sentence."""
_MASKED = re.compile(f"{re.escape(FILL)}+")
_CODE = re.compile(r"`[^`\n]{1,1000}`")
_COINED = re.compile(r"\b[A-Z]?[a-z]+[A-Z]\w*")  # AcmeVPN
_NUMBER = re.compile(r"\d{1,18}")
_GROUPED = re.compile(r"(?<=\d)[.,' \u00a0](?=\d{3}\b)")
_LAST_DAY, _YEARS = 31, range(1900, 2101)


def unsupported(
    statement: str,
    said: Sequence[str],
    *,
    beside: Sequence[str] = (),
    names: Collection[str] = (),
    heard: Collection[str] = (),
    user: Collection[str] = (),
) -> str | None:
    """Return the first part of a statement that the spoken texts do not support, None if all is supported.

    The texts `beside`, of other speakers and of the statements that it ends, only support it. `names` are of people
    and things that are known: a statement may use them for "she" and "there". `heard` are further ones, which were said
    elsewhere; any other name has to be in the spoken texts. `user` are names of the user.
    """
    if missing := unstated(statement, said, beside=beside, names=names, heard=heard):
        return missing
    spoken = [own_part(text).replace(FILL, " ") for text in said]
    return contradicted_part(_claims(_parts(statement)), spoken, names=names, user=user)


def unstated(
    statement: str,
    said: Sequence[str],
    *,
    beside: Sequence[str] = (),
    names: Collection[str] = (),
    heard: Collection[str] = (),
) -> str | None:
    """Return the first part or name of a statement that stands in none of the texts, None if all of it does.

    The arguments are those of `unsupported`, which also finds what the texts contradict.
    """
    spoken = [own_part(text).replace(FILL, " ") for text in said]
    texts = [*spoken, *beside]
    if strange := _strange(ADDRESS.findall(statement), [*texts, *names]):
        return strange[0]
    parts = _parts(statement)
    places = [known_terms(place, *names) for text in texts for place in places_of(text)]
    shares = [max((share_of(part, place) for place in places), default=0.0) for part in parts]
    alike = max(shares, default=0.0) >= _WORDS  # some words are shared, so the language is the same
    for part, share in zip(parts, shares, strict=True):
        least = _least(part, share, alike=alike)
        if share < _WORDS and not any(nearest(part, pieces_of(text)) >= least for text in texts):
            return part
    # A title in quotation marks is named.
    return unknown_name(_claims(parts), spoken, [*names, *heard, *said, *beside])


def _parts(statement: str) -> list[str]:
    return [part for part in parts_of(without_dates(statement)) if not is_only_a_time(part)]


def _claims(parts: Sequence[str]) -> list[str]:
    """Return the parts without those that only say where or when a rule holds."""
    return [part for part in parts if len(parts) == 1 or not pattern("SCOPE").fullmatch(f"{part},", endpos=len(part))]


def _least(part: str, share: float, *, alike: bool) -> float:
    words = len(terms_of(part))
    if words <= SHORT:
        return _TINY_MEANING if words < SHORT else _SHORT_MEANING
    return _NO_WORDS if alike and share == 0 else _MEANING


def supports_rule(rule: str, turns: Iterable[str], *, names: Collection[str] = (), heard: Collection[str] = ()) -> bool:
    """Tell whether one of a user's turns states a rule. `names` and `heard` are those of `unsupported`."""
    return any(
        _states(turn, rule, names) and unsupported(rule, [turn], names=names, heard=heard) is None for turn in turns
    )


def relates(relation: str, value: str, said: str) -> bool:
    """Tell whether a text names a fact's relation: by its words, or by a meaning that is near to it."""
    return _names_relation(relation, said) or nearest(f"{relation} {value}", pieces_of(said)) >= _RELATION


def _names_relation(relation: str, said: str) -> bool:
    """Tell whether a text has the words of a fact's relation, or for each of them one of near meaning."""
    terms, words = terms_of(relation), words_in(relation)
    if terms and terms <= known_terms(said):
        return True
    theirs = list(dict.fromkeys(words_in(said)))[:_WORDS_READ]
    telling = [word for word in words if word.lower() not in function_words_of(words)]
    return min((nearest(word, theirs) for word in telling), default=0.0) >= _RELATION_WORD


def swaps_a_value(statement: str, quote: str, said: Sequence[str], *, names: Collection[str] = ()) -> bool:
    """Tell whether a statement has a number or name that was not said, and lacks one of the words that it quotes.

    Derived values, such as a date for "in two weeks", replace nothing. Names in other languages and German
    nouns are not judged.
    """
    if differ(statement, quote):
        return False
    whole = "\n".join((*said, *names))
    others = _numbers(statement) - _numbers(whole) - _spelled_numbers(whole) - _of_written_dates(statement, quote)
    others -= {hour + 12 for hour in _numbers(quote)}  # 4 pm is 16:00
    if others and _numbers(quote) - _numbers(statement) - _spelled_numbers(statement):
        return True
    if "de" in languages_of(statement.split()):
        return False
    known, told = whole.casefold(), statement.casefold()
    strange = [name for name in _NAME.findall(statement) if name.casefold().removesuffix("'s") not in known]
    lost = [name for name in _NAME.findall(quote) if name != "I" and name.casefold() not in told]
    return not {_kind_of(one) for one in strange}.isdisjoint(map(_kind_of, lost))


def _of_written_dates(statement: str, quote: str) -> set[int]:
    """Return the numbers that writing out a date may add: its year, if the quote names none; its month, if the quote
    names that; all of them, if the quote names no date.
    """
    dated = _numbers(statement) - _numbers(without_dates(statement))
    dated |= set(map(int, _year_after_a_month().findall(statement)))
    if _names_a_date(statement.lower()) and not _names_a_date(quote.lower()):
        return {number for number in dated if number <= _LAST_DAY or number in _YEARS}
    years = set[int]() if _numbers(quote).intersection(_YEARS) else dated.intersection(_YEARS)
    months = _named_in_calendars("MONTH")
    return years | {months[word] for word in words_in(quote.lower()) if word in months} & dated


def repeats(statement: str, text: str) -> bool:
    """Tell whether a text supports a statement: in nearly the same words, or close in meaning."""
    shares = [share_of(statement, known_terms(place)) for place in places_of(text)]
    if len(terms_of(statement)) >= SHORT and max(shares, default=0.0) >= _SAME:
        return True
    return nearest(statement, pieces_of(text)) >= _SAME_MEANING


# --- rules ------------------------------------------------------------------------------------------


class _UserSentence(NamedTuple):
    """A sentence of a user that states a rule; where `is_rule` is false it only may."""

    text: str
    is_rule: bool


def _states(turn: str, rule: str, names: Collection[str]) -> bool:
    if unknown_values(rule, turn, names) or is_joke(turn) or invents_reason(turn, rule):
        return False
    said = [sentence for sentence in _sentences(turn) if not _breaks(sentence.text, rule)]
    return any(_says(sentence, wording) for wording in _wordings(rule, said) for sentence in said)


def _breaks(said: str, rule: str) -> bool:
    return breaks_frame(said, rule) or drops_limit(said, rule) or is_own_habit(said, rule)


def unknown_values(statement: str, said: str, names: Collection[str]) -> bool:
    """Tell whether a statement has an address, a name or a large number that is neither said nor known."""
    numbers = {number for number in _numbers(statement) - _numbers(said) if number > _SMALL}
    words = [*ADDRESS.findall(statement), *_COINED.findall(statement), *_named(statement, said)]
    return bool(numbers or _strange(words, [said, *names]))


def _wordings(rule: str, said: Sequence[_UserSentence]) -> Iterator[str]:
    yield rule
    limbs = pattern("LIMB").split(rule)
    against = [known_terms(limb) for one in said for limb in pattern("LIMB").split(one.text) if is_negative(limb)]
    tails = [limb for limb in limbs[1:] if is_negative(limb)]
    if tails and all(any(share_of(tail, one) >= _WORDS for one in against) for tail in tails):
        yield ", ".join(limb for limb in limbs if limb not in tails)


def _named(rule: str, turn: str) -> list[str]:
    """Return the names in a rule that the turn has to have too.

    In another language a name may be spelled otherwise, and in German, where nouns have capitals, it may be no name.
    """
    names = _NAME.findall(rule)
    if dense(rule) != dense(turn):
        return []  # they are written in other letters
    german = "de" in languages_of(rule.split())
    if not german and not _is_abroad(rule, turn):
        return [name for name in names if name.lower() not in word_list("calendar")]
    said = list(dict.fromkeys(words_in(turn)))
    return [
        name
        for name in names
        if name.lower() not in _common_words()
        and nearest(name, said) < (_SAME_NAME if not german else _SAME_NOUN if is_word(name) else _SAME_STRANGE_NOUN)
    ]


@cache
def _common_words() -> frozenset[str]:
    """Return what the user is called, and the words that make an order a rule."""
    return word_list("users") | word_list("often")


def _is_abroad(rule: str, said: str) -> bool:
    return not share_of(rule, known_terms(said)) or differ(rule, said)


def _says(said: _UserSentence, rule: str) -> bool:
    if _is_denied(said, rule) or _is_refused(said, rule) or _widens(said.text, rule):
        return False
    meaning, words = nearest(rule, pieces_of(said.text)), share_of(rule, known_terms(said.text))
    if meaning < _FARTHEST:
        return False
    abroad, pairs = _is_abroad(rule, said.text), _pairs(rule, said.text)
    mean = sum(pairs) / len(pairs) if pairs else 0.0
    least, apart, whole = _RULE_PAIRED if said.is_rule else _PLAIN_PAIRED
    if abroad and pairs and mean >= least and min(pairs) >= apart and meaning >= whole:
        return True
    if said.is_rule:
        unpaired = abroad and len(pairs) >= _PAIRS and mean < _UNPAIRED and meaning < _UNPAIRED_RULE
        near = meaning >= _RULE or (abroad and meaning >= _RULE_ABROAD)
        near = near or (max(words, mean - _PARAPHRASED + _RULE_WORDS) >= _RULE_WORDS and meaning >= _RULE_WITH_WORDS)
        return near and not unpaired
    near = meaning >= (_PLAIN_ABROAD if abroad else _PLAIN)
    return near or any(words >= share and meaning >= least for share, least in _PLAIN_WORDS)


def _pairs(rule: str, said: str) -> list[float]:
    """Return for each word of a rule that says something the cosine of the word nearest to it."""
    words, theirs = words_in(rule), list(dict.fromkeys(words_in(said)))
    common = function_words_of(words) | _common_words()
    return [nearest(word, theirs) for word in words if len(word) > 1 and word.lower() not in common]


def _is_denied(said: _UserSentence, rule: str) -> bool:
    """Tell whether a rule says the opposite of a sentence, and of all its pieces that are about as near to it."""
    negative = is_negative(rule)
    if any(is_negative(text) == negative for text in (said.text, *_heads(said.text))) or dismisses(said.text):
        return False
    pieces = pieces_of(said.text)
    scores = cosines(rule, pieces)
    near = [piece for piece, score in zip(pieces, scores, strict=False) if score >= max(scores) - _AS_NEAR]
    return all(is_negative(piece) != negative for piece in near if 2 * len(piece) >= len(rule))


def _is_refused(said: _UserSentence, rule: str) -> bool:
    """Tell whether a rule asks for something that a sentence only refuses: "in English", of "in German, not English".

    A clause with "before" or "without" is a condition and does not count.
    """
    asked = terms_of(" ".join(_asked(said.text)))
    refused = terms_of(said.text) - asked
    if not asked or not refused or is_negative(pattern("LIMB").split(rule)[0]):
        return False
    wanted = (limb for limb in _asked(pattern("CONDITION").sub("", rule)) if not is_negative(limb))
    return bool(terms_of(" ".join(wanted)) & refused)


def _widens(said: str, rule: str) -> bool:
    """Tell whether a rule drops what limits a sentence: "in project X", "when you write to clients"."""
    known = known_terms(rule)
    scopes = [found[0].strip(" ,:;") for found in pattern("SCOPE").finditer(said)]
    return any(
        share_of(scope, known) < _SCOPE_KEPT and nearest(scope, pieces_of(rule)) < _SCOPE_MEANING
        for scope in scopes
        if terms_of(scope) and not pattern("FOR_GOOD").search(scope)  # "in future" limits nothing
    )


def _asked(text: str) -> list[str]:
    """Return the limbs of a sentence without those that refuse something: "in German, not in English"."""
    return [limb for limb in pattern("LIMB").split(text) if limb.strip() and not pattern("REFUSES").match(limb)]


def _heads(text: str) -> list[str]:
    return [head for head in (", ".join(_asked(text)), pattern("UNLESS").sub("", text)) if terms_of(head)]


@lru_cache(maxsize=256)
def _sentences(turn: str) -> tuple[_UserSentence, ...]:
    own = _CODE.sub(lambda code: FILL * len(code[0]) if standing_rules(code[0][1:-1]) else code[0], own_part(turn))[
        :READ
    ]
    rules = judged(turn)
    found: list[_UserSentence] = []
    for start, end in sentences(own):
        text = own[start:end].replace(FILL, " ").strip()
        strength = max((rule.strength for rule in rules if rule.start < end and start < rule.end), default=0.0)
        if strength < SUPPORTS:
            continue
        is_rule = strength >= STATES
        if is_rule:  # it may say what to write: end every letter with "Best wishes from the yard"
            phrases = [turn[slice(*one.span())].strip(_MARKS) for one in _MASKED.finditer(own, start, end)]
            if all(len(phrase) <= _PHRASE and not standing_rules(phrase) for phrase in phrases):
                text = turn[start:end].strip()
        listed = list(_listed(text)) if is_rule else []
        found += [_UserSentence(one, is_rule) for one in listed]
        if not listed and any(map(str.isalnum, text)):
            found.append(_UserSentence(text, is_rule))
    return tuple(found)


def _listed(sentence: str) -> Iterator[str]:
    """Yield the items of a list behind a label, each with the label: "code rules: no new packages, small functions"."""
    label, colon, rest = sentence.partition(": ")
    items = [item for item in pattern("LIMB").split(rest) if terms_of(item)]
    label = pattern("LIMB").split(label)[0]  # "a rule for the scripts, before it becomes a jungle"
    if colon and len(items) > 1:
        yield from (f"{label}: {pattern('WITHOUT').sub('no ', item)}".lower() for item in items)


def _strange(names: Iterable[str], said: Sequence[str]) -> list[str]:
    whole = "\n".join(said).casefold()
    return [name for name in names if name.casefold() not in whole]


def _numbers(text: str) -> set[int]:
    return set(map(int, _NUMBER.findall(_GROUPED.sub("", text))))


def lacks_a_number(statement: str, said: str) -> bool:
    """Tell whether a statement has a number that a text has neither in digits nor in words.

    Small ones only count where the text has digits.
    """
    theirs = _numbers(said)
    missing = _numbers(statement) - theirs - _spelled_numbers(said)
    return any(number > _SMALL or theirs for number in missing)


def _spelled_numbers(text: str) -> set[int]:
    """Return the numbers that a text may have as words; "one" need not be one."""
    spelled = _named_in_calendars("WORD")
    return {spelled[word] for word in words_in(text.lower()) if word in spelled}


def _kind_of(name: str) -> str:
    """Return whether a word with a capital is a weekday, a month or a name: "20 May" may be "last Saturday"."""
    if name.lower() not in word_list("calendar"):
        return "name"
    return "weekday" if name.lower() in _named_in_calendars("WEEKDAY") else "month"


@cache
def _named_in_calendars(what: str) -> dict[str, int]:
    return {name: value for language in LANGUAGES for name, value in lexicon(language).words.get(what, {}).items()}


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
    """Tell whether an answer says yes and nothing else, in the languages of `words/small_talk.txt`."""
    if len(answer) > _LONGEST:
        return False
    rest = pattern("POLITELY").sub("", answer)
    if not is_negative(answer):
        rest = pattern("FOR_GOOD").sub("", rest)  # "absolutely, every time"
    kinds = phrases_of(answer) or phrases_of(rest)
    agrees = bool(kinds and kinds & {"assent", "agreement"}) or (rest != answer and not any(map(str.isalnum, rest)))
    return agrees and _noes().isdisjoint(bare(answer).split())


def refuses(answer: str) -> bool:
    """Tell whether an answer says no and nothing else."""
    return bool(answer) and len(answer) <= _LONGEST and {*bare(answer).split()} <= _noes()


@cache
def _noes() -> frozenset[str]:
    return frozenset(map(bare, word_list("noes")))


@cache
def _year_after_a_month() -> re.Pattern[str]:
    """Match a date in languages whose grammar of dates is not known: "10 marca 2024"."""
    return re.compile(rf"(?i)\b(?:{'|'.join(word_list('calendar'))})\W{{1,3}}(?:\w{{1,3}}\W)?((?:19|20)\d\d)\b")


def _names_a_date(text: str) -> bool:
    return bool(re.search(rf"\b(?:{'|'.join(word_list('calendar'))}|(?:19|20)\d\d)\b|\d[./-]\d", text))
