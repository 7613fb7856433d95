"""Standing rules that a user states in passing: "no ORM, ever", "siezen, nie duzen", "I'm allergic to nuts".

`standing_rules` finds the sentences of a turn that instruct for good (kind `instruction`) or state a lasting limit of
a person (kind `constraint`), by the grammar of sixteen languages and without a model. It is meant to be precise: a
rule found here is put in front of an agent. Stories ("I have never been there"), questions, orders of the moment
("don't commit that yet"), quotations and code are not rules.

Works on one sentence at a time. It does not know what a rule is about, whether it still holds, or whether "no photos"
is meant for today or for good: `strength` says how surely the wording is that of a lasting rule. Rules that are stated
as plain facts ("table names are singular") are found only under a heading such as "rules:". Pure text; never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from mcp_memory.language.quoted import FILL, own_part
from mcp_memory.language.standing_rules.grammar import Grammar, RuleKind, RulePattern, grammar
from mcp_memory.language.standing_rules.reported import is_reported

__all__ = ["READ", "Rule", "is_question", "sentences", "standing_rules"]

READ = 4_000
"""Characters of a text that are read; what follows is a document more often than words of a person."""

_LONG = 1_200  # characters from which a text is likely to be pasted, so that only clear wording counts
_SURE = 0.6
_HEADING, _UNDER_HEADING = 0.7, 0.55
_LISTED = 5  # sentences under a heading


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence that states a standing rule: `text[start:end]`, with its `strength` in (0, 1]."""

    start: int
    end: int
    strength: float
    kind: RuleKind


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
        if _HEADINGS.search(sentence):
            listed = _LISTED
            rule = max(rule or ("instruction", _HEADING), ("instruction", _HEADING), key=lambda one: one[1])
        elif listed > 0 and rule is None and len(sentence) > _SHORTEST:
            rule = ("instruction", _UNDER_HEADING)
        if rule and rule[1] >= least:
            rules.append(Rule(inner, reached, rule[1], rule[0]))
    return rules


# --- text to sentences ------------------------------------------------------------------------------

_SHORTEST = 8  # characters of a sentence under a heading
_SPOKEN_BY_OTHERS = re.compile(
    r"`[^`\n]{1,200}`|https?://\S+"
    r"|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|»[^«\n]{1,300}«"
    r"|「[^」\n]{1,300}」|『[^』\n]{1,300}』",
    re.DOTALL | re.MULTILINE,
)
_ENDING = re.compile(r"[.!?…]+[)\]’'*_]*(?=\s|$)|[。！？]+|\n+|;\s")
_ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|z\.b|d\.h|u\.a|etc|vs|dr|mr|mrs|ms|st|no|nr|ca|bzw|p\.ej|sr|sra|prof|approx"
    r"|\d{1,2}|\w)\.$"
)


def _masked(text: str) -> str:
    """Return a text in lower case and of the same length, with quotations and code made unreadable."""
    own = own_part(text)
    lower = own.lower()
    if len(lower) != len(own):  # a few capital letters become two
        lower = "".join(one if len(one := c.lower()) == 1 else c for c in own)
    lower = lower.replace("’", "'")
    return _SPOKEN_BY_OTHERS.sub(lambda quote: FILL * len(quote[0]), lower)


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences and of lines."""
    start = 0
    for ending in _ENDING.finditer(text):
        if ending[0] == "." and _ABBREVIATED.search(text[max(start, ending.end() - 12) : ending.end()]):
            continue
        if text[start : ending.end()].strip():
            yield start, ending.end()
        start = ending.end()
    if text[start:].strip():
        yield start, len(text)


_QUESTION = re.compile(
    r"[?？]\W*$|(?:吗|嗎|呢|か)[。\s]*$"
    r"|^\W*(?:can|could|would|will|do|does|did|is|are|what|how|why|when (?:is|are|do|did|will)|where|who"
    r"|which|should) (?:i|you|we|it|that|the)\b.*[^.]$"
)
_TAG = re.compile(
    r",\s*(?:ok|okay|right|yes|please|got it|deal|agreed|ja|klar|gut|oder|verstanden|bitte|oké|goed|d'accord"
    r"|vale|sí|de acuerdo|va bene|está bem"
    r"|tá|ладно|хорошо|好吗|好嗎|可以吗)\s*[?？]\W*$"
)


def is_question(sentence: str) -> bool:
    """Tell whether a sentence, in lower case, only asks: "no emoji, ok?" does not."""
    return _QUESTION.search(sentence) is not None and _TAG.search(sentence) is None


# --- sentences to rules -----------------------------------------------------------------------------

_HEADINGS = re.compile(
    r"^\W*(?:(?!i\b|i'm|we're|is\b|are\b|here)[\w'’-]+ ){0,4}?(?:(?<!day )rules?|conventions?|guidelines"
    r"|(?:'s|my|her|his|their|our) wishes"
    r"|(?:\w+)?regeln?|vorgaben|konventionen?|wünsche|règles?|consignes|reglas?|normas|regole?|regras?"
    r"|regels?|afspraken"
    r"|правил[ао]|требования|zasady|regler|kurallar)\b(?:,? (?:yes|ja|sí|oui|sì|да)\s*[.!]|[^.:?!¤]{0,50}:(?!\d))"
    r"|^.{0,12}(?:规则|規則|要求|约定|ルール|決まり|규칙)[^。？！:：]{0,20}[:：]"
)
_CLAUSE = re.compile(
    r"[,;:()–—、，；：]| - |\b(?:before|unless|until|when|if|because|since|bevor|wenn|weil|damit|sobald|omdat"
    r"|voordat|als er|cuando|porque|parce que"
    r"|quando|perché|потому)\b"
)
_WORD = re.compile(r"\w+")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_SPACED = ("en", "de", "nl", "sv", "fr", "es", "pt", "it", "ru", "pl", "tr")


def _rule_of(sentence: str) -> tuple[RuleKind, float] | None:
    """Return kind and strength of the strongest rule in a sentence."""
    best: tuple[RuleKind, float] | None = None
    for spoken, row in _candidates(sentence):
        if (best is None or row.strength > best[1]) and _states(sentence, spoken, row):
            best = (row.kind, row.strength)
    return best


def _candidates(sentence: str) -> Iterator[tuple[Grammar, RulePattern]]:
    """Yield the patterns that have one of their words in the sentence."""
    seen: set[int] = set()
    by_word = _by_word()
    for word in set(_WORD.findall(sentence)):
        for row in by_word.get(word, ()):
            if id(row[1]) not in seen:
                seen.add(id(row[1]))
                yield row
    if _DENSE.search(sentence):
        spoken = grammar("ko" if _HANGUL.search(sentence) else "ja" if _KANA.search(sentence) else "zh")
        yield from ((spoken, row) for row in spoken.patterns)


def _states(sentence: str, spoken: Grammar, row: RulePattern) -> bool:
    """Tell whether a pattern matches outside of narrative clauses."""
    if row.guard == "none":
        return row.pattern.search(sentence) is not None
    for match in row.pattern.finditer(sentence):
        start, end = _clause(sentence, match)
        if not spoken.tells.search(sentence[start : match.end() if row.guard == "before" else end]):
            return True
    return False


def _clause(sentence: str, match: re.Match[str]) -> tuple[int, int]:
    """Return the span of the clause in which a match ends."""
    last = max(match.start(), match.end() - 1)
    start = 0
    for boundary in _CLAUSE.finditer(sentence):
        if boundary.end() > last:
            return min(start, match.end()), max(boundary.start(), match.end())
        start = boundary.end()
    return min(start, match.end()), len(sentence)


@cache
def _by_word() -> dict[str, tuple[tuple[Grammar, RulePattern], ...]]:
    """Return the patterns of all languages with spaces, by each word that may call for one."""
    index: dict[str, tuple[tuple[Grammar, RulePattern], ...]] = {}
    for spoken in map(grammar, _SPACED):
        for row in spoken.patterns:
            for word in dict.fromkeys(_WORD.findall(row.words)):
                index[word] = (*index.get(word, ()), (spoken, row))
    return index
