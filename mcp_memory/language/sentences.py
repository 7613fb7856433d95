"""Sentences of a user's text: which are quoted, negative, questions, reported, or standing rules. Pure; never raises.

`own_part` masks the words of others: quotations, code, mails, what follows "she wrote:" or "translate:". A mail is
recognised by its headers, by a formal salutation, or by a salutation or a colon before a signature; one that addresses
an assistant is the user's. A text to translate, summarise or correct is not the user's, up to the end of its quotation
marks where it has some. When in doubt the words are the user's: a quotation of four words or fewer is a name or a
title, one that they ask to remember is theirs, and so is a text that is pasted without any sign of it. Text after a
mail counts as a part of it, because nothing marks where a mail ends. Sixteen languages (`data/quoted.txt`).

`is_negative` tells whether a sentence forbids, denies or leaves out, in twenty-seven languages (`data/negation.txt`).
Two negations that stand apart cancel each other ("never … without"); those that stand together are one ("никогда не",
"ne … jamais"). Verbs that leave out (avoid, stop, skip) count. Verbs that are negated inside a word, as in Turkish and
Czech, are not recognised; of these languages only words are known.

`standing_rules` finds rules that a user states in passing ("no ORM, ever", "siezen, nie duzen", "I'm allergic to
nuts"): the sentences of a turn that instruct for good (kind `instruction`) or state a lasting limit of a person (kind
`constraint`), by the grammar of sixteen languages. It is precise rather than complete: a rule found here is put in
front of an agent. Stories ("I have never been there"), questions, orders of the moment ("don't commit that yet"),
quotations and code are not rules, nor is what somebody else says, wants or imagines (`is_reported`); a person by their
own name looks like a thing. It works on one sentence at a time. Subject and duration of a rule stay unknown: `strength`
says how surely the wording is that of a lasting rule. Rules that are stated as plain facts ("table names are singular")
are found only under a heading such as "rules:".

`data/standing_rules/` has one file a language; `sv` is Swedish, Danish and Norwegian:

    narrative                               words of a narrative clause
        \\b(?:i|he|she)\\b
    instruction 0.9 before: never ever      kind, strength, guard, and the words of which a sentence needs one
        \\bnever {DO}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, cast

from mcp_memory.language import pattern_of, patterns_of, words_of
from mcp_memory.language.words import languages_of

FILL = "\u00a4"
"""Replaces each character of others in `own_part`."""

_FEWEST_WORDS = 5  # of a quotation
_SPACE = re.compile(r"\s*")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_quoted = partial(pattern_of, "mcp_memory.language", "data/quoted.txt")


def own_part(text: str) -> str:
    """Return the text in its length, with `FILL` for each character that is not the author's but for line ends."""
    spans = list(_spans(text))
    if not spans:
        return text
    shown = list(text)
    for start, end in spans:
        for place in range(start, end):
            if shown[place] != "\n":
                shown[place] = FILL
    return "".join(shown)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for found in _quoted("BLOCKS").finditer(text):
        yield found.span()
    for found in _quoted("INLINE").finditer(text):
        if _is_speech(found[0][1:-1]) and not _quoted("TO_KEEP").search(
            text, max(0, found.start() - 80), found.start()
        ):
            yield found.span()
    forwarded = _quoted("TO_THE_END").search(text)
    if forwarded is not None:
        yield forwarded.end() if forwarded[0].rstrip().endswith((":", "：")) else forwarded.start(), len(text)
    mail = _mail(text)
    if mail is not None:
        yield mail, len(text)
    for introduction in _quoted("INTRODUCED").finditer(text):
        start = _SPACE.match(text, introduction.end()).end()  # pyright: ignore[reportOptionalMemberAccess]  # always one
        places = (_quoted(kind).match(text, start) for kind in ("BLOCKS", "INLINE", "SINGLE"))
        ending = next((found.end() for found in places if found), len(text))
        yield start, ending
        if ending == len(text):
            return


def _mail(text: str) -> int | None:
    """Return where a mail without headers begins: at a formal salutation, or at any that a signature follows."""
    signed = max((found.start() for found in _quoted("SIGNATURE").finditer(text)), default=-1)
    for found in _quoted("SALUTATIONS").finditer(text):
        if found["informal"] is None or found.end() <= signed:
            return found.start()
    return None


def _is_speech(words: str) -> bool:
    return len(words.split()) + len(_WIDE.findall(words)) // 2 >= _FEWEST_WORDS


_ELSEWHERE = {"nu": {"ro"}, "sin": {"es"}, "mai": {"it", "ro"}, "non": {"it", "fr"}}
"""Words that are negative in these languages and something else in others."""
_NEGATION_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_AFTER_NE = frozenset(["pas", "jamais", "aucun", "aucune", "rien"])
"""Words that are one negation with a French "ne", however far apart: "ne me propose plus jamais"."""
_TOGETHER = 3  # words between negations that are one


_FILE = "mcp_memory.language", "data/negation.txt"


_CONCORD = frozenset(("es", "fr", "it", "pt", "ru", "uk", "pl", "cs", "sr"))
"""Languages in which two plain negations are one: "no lo uses nunca"."""


def is_negative(text: str) -> bool:
    """Tell whether a sentence says that something is not so, or is not to be done."""
    negative, apart = words_of(*_FILE, "negative"), words_of(*_FILE, "apart")
    words = [word.replace("’", "'") for word in _NEGATION_WORD.findall(text.lower())]
    count, last, is_apart = 0, -_TOGETHER - 1, False
    for at, word in enumerate(words):
        if word == "ne" and not _AFTER_NE.isdisjoint(words[at + 1 :]):
            continue
        if (word in negative or word.endswith("n't")) and (
            word not in _ELSEWHERE or not _ELSEWHERE[word].isdisjoint(languages_of(words))
        ):
            is_new = at - last > _TOGETHER and not (count and not is_apart and _CONCORD & set(languages_of(words)))
            count += is_new or word in apart
            is_apart = word in apart
            last = at
    return (count + bool(pattern_of(*_FILE, "inside").search(text))) % 2 == 1


RuleKind = Literal["instruction", "constraint"]
Guard = Literal["none", "before", "clause"]

READ = 4_000
"""Characters of a text that are read; what follows is a document more often than words of a person."""

_LONG = 1_200  # characters from which a text is likely to be pasted, so that only clear wording counts
_SURE = 0.6
_HEADING, _UNDER_HEADING = 0.7, 0.55
_LISTED = 5  # sentences under a heading
_SHORTEST = 8  # characters of a sentence under a heading
_WORD = re.compile(r"\w+")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_SPACED = ("en", "de", "nl", "sv", "fr", "es", "pt", "it", "ru", "pl", "tr")


@dataclass(frozen=True, slots=True)
class RulePattern:
    """One way to say a rule in one language.

    `words`: the pattern is tried only on sentences with one of these words (lower case); none: on every sentence.
    `strength`: how surely a match is a lasting rule, in (0, 1].
    `source`: a regular expression over a sentence in lower case, its quotations masked with `FILL`.
    `guard`: which part of the clause around the match has to be free of `narrative` words: nothing, the part up to the
    end of the match, or the clause.
    """

    kind: RuleKind
    strength: float
    words: str
    source: str
    guard: Guard
    narrative: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence that states a standing rule: `text[start:end]`, with its `strength` in (0, 1]."""

    start: int
    end: int
    strength: float
    kind: RuleKind


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)


@cache
def _rule_patterns(language: str) -> list[RulePattern]:
    patterns: list[RulePattern] = []
    narrative = ""
    for head, source in patterns_of("mcp_memory.language", "data", "standing_rules", f"{language}.txt"):
        if head == "narrative":
            narrative = source
        elif not head.startswith("define "):
            how, _, words = head.partition(":")
            kind, strength, guard = how.split()
            patterns.append(
                RulePattern(cast("RuleKind", kind), float(strength), words, source, cast("Guard", guard), narrative)
            )
    return patterns


@cache
def _by_word() -> dict[str, list[RulePattern]]:
    """Return the patterns of all languages with spaces, by each word that may call for one."""
    index: dict[str, list[RulePattern]] = {}
    for language in _SPACED:
        for row in _rule_patterns(language):
            for word in dict.fromkeys(_WORD.findall(row.words)):
                index.setdefault(word, []).append(row)
    return index


_in_sentences = partial(pattern_of, "mcp_memory.language", "data/sentences.txt")
_reported = partial(pattern_of, "mcp_memory.language", "data/reported.txt")


def people() -> re.Pattern[str]:
    """Return a pattern of people by their relation to the speaker, in lower case: "my sister", "mein Chef"."""
    return _reported("RELATIVES")


def others() -> re.Pattern[str]:
    """Return a pattern of a sentence, in lower case, that begins with people other than its speaker: "my sister is"."""
    return _reported("OTHERS")


def is_person(word: str) -> bool:
    """Tell whether a word says what somebody is to another: "sister", "Chef", "友達"."""
    names = ("PEOPLE", "DENSE_PEOPLE", "JAPANESE_PEOPLE", "KOREAN_PEOPLE")
    return any(_reported(name).fullmatch(word.lower()) for name in names)


def is_reported(sentence: str) -> bool:
    """Tell whether a sentence, in lower case, is not a lasting order: about others, imagined, or for once."""
    plain = sentence.replace("’", "'")
    return _reported("REPORTED").search(plain) is not None or (
        _reported("ONCE").search(plain) is not None and _reported("HENCEFORTH").search(plain) is None
    )


def is_question(sentence: str) -> bool:
    """Tell whether a sentence, in lower case, only asks: "no emoji, ok?" does not."""
    return _in_sentences("QUESTION").search(sentence) is not None and _in_sentences("TAG").search(sentence) is None


def standing_rules(text: str) -> list[Rule]:
    """Return the standing rules that a user's turn states, in the order of the text; at most one for each sentence."""
    rules: list[Rule] = []
    listed = 0  # sentences that may still belong under a heading such as "rules:"
    reached = 0  # where the sentence before ends, without white space
    masked = _masked(text[:READ])
    least = 0.0 if len(text) <= _LONG else _SURE
    for start, end in sentences(masked):
        sentence = masked[start:end]
        inner = start + len(sentence) - len(sentence.lstrip())
        new_paragraph = "\n\n" in masked[reached:inner] and listed < _LISTED  # a list may begin below its heading
        listed = 0 if new_paragraph else listed - 1
        reached = start + len(sentence.rstrip())
        if is_question(sentence):
            continue
        rule = _rule_of(sentence)
        if rule and rule[0] == "instruction" and is_reported(sentence):
            rule = None
        if _in_sentences("HEADINGS").search(sentence):
            listed = _LISTED
            rule = max(rule or ("instruction", _HEADING), ("instruction", _HEADING), key=lambda one: one[1])
        elif listed > 0 and rule is None and len(sentence) > _SHORTEST:
            rule = ("instruction", _UNDER_HEADING)
        if rule and rule[1] >= least:
            rules.append(Rule(inner, reached, rule[1], rule[0]))
    return rules


def _masked(text: str) -> str:
    """Return a text in lower case and of the same length, with quotations and code made unreadable."""
    own = own_part(text)
    lower = own.lower()
    if len(lower) != len(own):  # a few capital letters become two
        lower = "".join(one if len(one := c.lower()) == 1 else c for c in own)
    return _in_sentences("SPOKEN_BY_OTHERS").sub(lambda quote: FILL * len(quote[0]), lower.replace("’", "'"))


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences and of lines."""
    start = 0
    for ending in _in_sentences("ENDING").finditer(text):
        abbreviated = _in_sentences("ABBREVIATED").search(text[max(start, ending.end() - 12) : ending.end()])
        if ending[0] == "." and abbreviated:
            continue
        if text[start : ending.end()].strip():
            yield start, ending.end()
        start = ending.end()
    if text[start:].strip():
        yield start, len(text)


def _rule_of(sentence: str) -> tuple[RuleKind, float] | None:
    """Return kind and strength of the strongest rule in a sentence."""
    best: tuple[RuleKind, float] | None = None
    for row in _candidates(sentence):
        if (best is None or row.strength > best[1]) and _states(sentence, row):
            best = (row.kind, row.strength)
    return best


def _candidates(sentence: str) -> Iterator[RulePattern]:
    """Yield the patterns that have one of their words in the sentence, each once."""
    by_word = _by_word()
    yield from {id(row): row for word in set(_WORD.findall(sentence)) for row in by_word.get(word, ())}.values()
    if _DENSE.search(sentence):
        yield from _rule_patterns("ko" if _HANGUL.search(sentence) else "ja" if _KANA.search(sentence) else "zh")


def _states(sentence: str, row: RulePattern) -> bool:
    """Tell whether a pattern matches outside of narrative clauses."""
    if row.guard == "none":
        return _compiled(row.source).search(sentence) is not None
    for match in _compiled(row.source).finditer(sentence):
        start, end = _clause(sentence, match)
        if not _compiled(row.narrative).search(sentence[start : match.end() if row.guard == "before" else end]):
            return True
    return False


def _clause(sentence: str, match: re.Match[str]) -> tuple[int, int]:
    """Return the span of the clause in which a match ends."""
    last = max(match.start(), match.end() - 1)
    start = 0
    for boundary in _in_sentences("CLAUSE").finditer(sentence):
        if boundary.end() > last:
            return min(start, match.end()), max(boundary.start(), match.end())
        start = boundary.end()
    return min(start, match.end()), len(sentence)
