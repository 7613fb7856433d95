"""Sentences of a user's text: which are quoted, negative, questions, reported, or standing rules. Pure; never raises.

`own_part` masks other people's words: quotations, code, mails, and text after "she wrote:", after a request to
translate, summarise or correct it, after a line that presents it ("from the readme:"), a file name, a copied line of a
chat or the heading of a document. A mail is recognised by its headers, by a formal salutation, or by a salutation or a
colon before a signature, and extends to the end of the text. When in doubt, words count as the user's: quotations of up
to four words, quotations to be remembered, mails to an assistant, and texts pasted without any sign of that. Sixteen
languages (`data/quoted.txt`).

`is_negative` recognises sentences that forbid, deny or exclude, in twenty-seven languages (`data/negation.txt`). Two
separate negations cancel each other ("never … without"); adjacent negations count once ("никогда не", "ne … jamais").
Verbs such as avoid, stop and skip count. Verbs negated by an affix, as in Turkish and Czech, are not recognised.

`rule_candidates` finds the sentences of a user's turn that may state a standing rule ("no ORM, ever", "siezen, nie
duzen"), by their words and cues (`rule_words`) or because they are listed under a heading such as "rules:". It has high
recall and low precision, without a model; `longterm.standing_rules` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import NamedTuple

from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.rule_words import word_score
from mcp_memory.language.words import languages_of

FILL = "\u00a4"
"""Replaces each character of other people's words in `own_part`."""

_FEWEST_WORDS = 5  # words of a quotation
_SPACE = re.compile(r"\s*")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_quoted = partial(pattern_of, "mcp_memory.language", "data/quoted.txt")


@lru_cache(maxsize=32)  # the reader asks about a turn and the reply before it for each statement
def own_part(text: str) -> str:
    """Return the text with `FILL` for each character of other people's words, except line ends; the length is kept."""
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
    """Yield the spans of other people's words; they may overlap."""
    for block in _quoted("BLOCKS").finditer(text):
        yield block.span()
    for quote in _quoted("INLINE").finditer(text):
        words = quote[0][1:-1]
        is_speech = len(words.split()) + len(_WIDE.findall(words)) // 2 >= _FEWEST_WORDS
        if is_speech and not _quoted("TO_KEEP").search(text, max(0, quote.start() - 80), quote.start()):
            yield quote.span()
    forwarded = _quoted("TO_THE_END").search(text)
    if forwarded is not None:
        yield forwarded.end() if forwarded[0].rstrip().endswith((":", "：")) else forwarded.start(), len(text)
    mail = _mail(text)
    if mail is not None:
        yield mail, len(text)
    for start in _pasted(text):
        yield start, len(text)
    for introduction in _quoted("INTRODUCED").finditer(text):
        start = _SPACE.match(text, introduction.end()).end()  # pyright: ignore[reportOptionalMemberAccess]  # always one
        quotes = (_quoted(kind).match(text, start) for kind in ("BLOCKS", "INLINE", "SINGLE"))
        ending = next((quote.end() for quote in quotes if quote), len(text))
        yield start, ending
        if ending == len(text):
            return


def _pasted(text: str) -> Iterator[int]:
    """Yield the starts of pasted text: a chat, a document, or text after a line about it."""
    if chat := _quoted("CHAT").search(text):
        yield chat.start()
    if presented := _quoted("PRESENTED").search(text):
        yield presented.end()
    heading = _quoted("HEADING").search(text)
    if heading is not None and not _quoted("WISHED").search(text, 0, heading.end()):
        yield heading.start()


def _mail(text: str) -> int | None:
    """Return the start of a mail without headers, a formal salutation or any salutation before a signature; or None."""
    signed = max((signature.start() for signature in _quoted("SIGNATURE").finditer(text)), default=-1)
    for salutation in _quoted("SALUTATIONS").finditer(text):
        if salutation["informal"] is None or salutation.end() <= signed:
            return salutation.start()
    return None


_ELSEWHERE = {"nu": {"ro"}, "sin": {"es"}, "mai": {"it", "ro"}, "non": {"it", "fr"}}
"""Words that are negative only in these languages."""
_NEGATION_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_AFTER_NE = frozenset(["pas", "jamais", "aucun", "aucune", "rien"])
"""Words that form one negation with a French "ne", however far apart: "ne me propose plus jamais"."""
_TOGETHER = 3  # most words between the two parts of a negation
_FILE = "mcp_memory.language", "data/negation.txt"
_CONCORD = frozenset(("es", "fr", "it", "pt", "ru", "uk", "pl", "cs", "sr"))
"""Languages in which two plain negations count once: "no lo uses nunca"."""


def is_negative(text: str) -> bool:
    """Return whether a sentence denies something or forbids it."""
    negative, independent = words_of(*_FILE, "negative"), words_of(*_FILE, "apart")
    words = [word.replace("’", "'") for word in _NEGATION_WORD.findall(text.lower())]
    count, last, is_apart = 0, -_TOGETHER - 1, False
    for at, word in enumerate(words):
        if word == "ne" and not _AFTER_NE.isdisjoint(words[at + 1 :]):
            continue
        if (word in negative or word.endswith("n't")) and (
            word not in _ELSEWHERE or not _ELSEWHERE[word].isdisjoint(languages_of(words))
        ):
            is_new = at - last > _TOGETHER and not (count and not is_apart and _CONCORD & set(languages_of(words)))
            count += is_new or word in independent
            is_apart = word in independent
            last = at
    return (count + bool(pattern_of(*_FILE, "inside").search(text))) % 2 == 1


READ = 4_000
"""Most characters of a text that are read; longer texts are mostly documents."""

_LISTED = 5  # sentences under a heading
_SHORTEST = 8  # characters of a sentence under a heading
_POSSIBLE = -1.5  # log-odds by words: of 100 rules, 3 score less


class RuleCandidate(NamedTuple):
    """A sentence of a user's turn, `turn[start:end]`, that may state a standing rule.

    `text` is the sentence with `FILL` for quotations and code, `context` the same with its neighbour sentences.
    It is `listed` if it is under a heading such as "rules:".
    """

    start: int
    end: int
    text: str
    context: str
    listed: bool


_in_sentences = partial(pattern_of, "mcp_memory.language", "data/sentences.txt")
_reported = partial(pattern_of, "mcp_memory.language", "data/reported.txt")


def people() -> re.Pattern[str]:
    """Return the pattern that matches people by their relation to the speaker, such as "my sister" or "mein Chef".

    The sentence must be in lower case.
    """
    return _reported("RELATIVES")


def is_person(word: str) -> bool:
    """Return whether a word is a relation between people: "sister", "Chef", "友達"."""
    names = ("PEOPLE", "DENSE_PEOPLE", "JAPANESE_PEOPLE", "KOREAN_PEOPLE")
    return any(_reported(name).fullmatch(word.lower()) for name in names)


def is_reported(sentence: str) -> bool:
    """Return whether a lower-case sentence is about other people, imagined, or about a single occasion."""
    plain = sentence.replace("’", "'")
    return _reported("REPORTED").search(plain) is not None or (
        _reported("ONCE").search(plain) is not None and _reported("HENCEFORTH").search(plain) is None
    )


def is_question(sentence: str) -> bool:
    """Return whether a lower-case sentence is only a question, unlike "no emoji, ok?"."""
    return _in_sentences("QUESTION").search(sentence) is not None and _in_sentences("TAG").search(sentence) is None


def rule_candidates(text: str, *, least: float = _POSSIBLE) -> Iterator[RuleCandidate]:
    """Yield the sentences of a user's turn that may state a standing rule; the first `READ` characters are read.

    Their words, or those of their context, have log-odds of at least `least`, or they are listed under a heading.
    """
    listed = 0  # remaining sentences that may belong to a heading such as "rules:"
    reached = 0  # end of the previous sentence, without white space
    masked = _without_quotations(text[:READ])
    spans = list(sentences(masked))
    for at, (start, end) in enumerate(spans):
        sentence = masked[start:end]
        inner = start + len(sentence) - len(sentence.lstrip())
        new_paragraph = "\n\n" in masked[reached:inner] and listed < _LISTED  # a list may begin below its heading
        listed = 0 if new_paragraph else listed - 1
        reached = start + len(sentence.rstrip())
        if _in_sentences("HEADINGS").search(sentence.lower()):
            listed = _LISTED
        is_listed = listed > 0 and len(sentence) > _SHORTEST
        shown = masked_quotations(sentence.strip())
        around = masked[spans[max(at - 1, 0)][0] : spans[min(at + 1, len(spans) - 1)][1]]
        context = masked_quotations(around.strip())
        if is_listed or max(word_score(shown), word_score(context)) >= least:
            yield RuleCandidate(inner, reached, shown, context, is_listed)


def may_state_rule(text: str) -> bool:
    """Return whether a user's text may state a standing rule; false negatives are rare."""
    return next(rule_candidates(text), None) is not None


_FILLED = re.compile(f"{FILL}+")


def masked_quotations(text: str) -> str:
    """Return a text with a single `FILL` for each quotation, code passage or address."""
    return _FILLED.sub(FILL, _without_quotations(text))


def _without_quotations(text: str) -> str:
    """Return a text with `FILL` for each character of quotations, code and addresses."""
    own = own_part(text).replace("’", "'")
    return _in_sentences("SPOKEN_BY_OTHERS").sub(lambda quotation: FILL * len(quotation[0]), own)


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
