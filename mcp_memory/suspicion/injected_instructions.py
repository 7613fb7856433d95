"""Detects instructions to a model in a text, in twenty-eight languages.

A sign (`signs.txt`) is a set of concepts of the lexicon that are close together in one language. A single concept means
nothing: manuals explain how to send, mails ask to be ignored, articles mention assistants. The signs are the same for
all languages.

Flags: `drop` cancels earlier instructions, whoever writes it. `heed` addresses a model, changes its role, or has it
hide something from its user. `keep` has it store something. `leak` has it send private data. `role` gives an
instruction in the name of a system or its makers.

Long texts are read in pieces; a cheap test of their concepts excludes most. `without_examples` removes short quotations
that are named as examples. `mean_instructions` asks the bundled encoder about texts without a sign; it gets each
sentence with the concepts in it, and only the two ends of a long text.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.language import blocks_of
from mcp_memory.suspicion.lexicon import ANY, CONCEPTS, LANGUAGES, Match, concepts_of, folded, matches, spoken_together


@dataclass(frozen=True)
class Sign:
    """A pattern of concepts: `first` and, for each entry of `near`, any of its concepts within its distance.

    Distances below `_SENTENCE` must be within a sentence. A concept of `never` within its distance excludes a match.
    """

    flag: str
    first: str
    near: Sequence[tuple[Sequence[str], int]]
    never: Sequence[tuple[Sequence[str], int]]

    @cached_property
    def groups(self) -> list[Sequence[str]]:
        return [[self.first], *(concepts for concepts, _ in self.near)]


@cache
def signs() -> list[Sign]:
    """Return the rows of `signs.txt`."""
    rows: list[Sign] = []
    for row, _ in blocks_of("mcp_memory.suspicion", "signs.txt"):
        flag, first, *parts = row.split(" | ")
        spans = [(concepts, int(span)) for *concepts, span in map(str.split, parts)]
        never = [(concepts[1:], span) for concepts, span in spans if concepts[0] == "not"]
        rows.append(Sign(flag, first, [part for part in spans if part[0][0] != "not"], never))
    return rows


_SENTENCE = 80
SENTENCE_END = re.compile(
    r"[.!?][\"'”»)]*\s|[。！？]|(?<![^\n]{40})\n|\n\s*\n|\n\s*(?:[-*•#]|\d+[.)])\s"
)  # or a wrapped line
_DENSE = re.compile("[\u0e00-\u0e7f\u2e80-\uffef]")  # scripts that need half the characters
_PLACE = re.compile(
    r"https?:|www\.|[\w.+-]+@[\w-]+\.\w|\b(?:webhook|pastebin|ngrok)|\b[a-z0-9-]+\.(?:example|com|net|org|io|dev|ru|cn|xyz)\b",
    re.IGNORECASE,
)
_SPEAKER = re.compile(r"(?:^[^\w\n]{0,8}|\brole\W{1,6})([^\W_][^\n:：>\]】]{0,30})[:：>\]】]", re.MULTILINE)
_LABEL = re.compile(
    r"(?:^|<!--|/\*|//|[#(\[\"'{|:]|[.!?。]\s)[^\w\n]{0,8}(?=([^\W_][^\n:：]{0,50})[:：])", re.MULTILINE
)
_OPENING = 8  # characters at the start of a label that name the addressee
_CALL = re.compile(
    r"(?:^|[.!?。\"'“„«(:|]\s?)[^\w\n]{0,8}(?:[^\W_]{1,8}[,!]\s)?(?=([^\W_][^\n:：,，、]{1,40})[,，、])", re.MULTILINE
)
_QUOTATION = re.compile(
    r"\"[^\"\n]{8,120}\"|[“„][^“”„\n]{4,120}[“”]|«[^«»\n]{4,120}»|»[^«»\n]{4,120}«|[「『][^」』\n]{4,120}[」』]"
    r"|(?<!\w)['‘‚][^'‘’\n]{8,120}['’](?!\w)"
)
_CITED = 100  # characters around a quotation that may name it as an example
_PIECE, _OVERLAP = 600, 200


def instructions_in(text: str) -> set[str]:
    """Return the flags of the signs that a text has."""
    shown = folded(text)
    flags: set[str] = set()
    for piece in _pieces(shown):
        languages = concepts_of(piece)
        if not languages:
            continue  # as for nearly all text read backwards or shifted
        if "boss" in languages and (speaking := _languages_of_speakers(piece)):
            languages["speaker"] = speaking
        named = languages.get("machine", 0) | languages.get("helper", 0)
        if named and _LABEL.search(piece):
            languages["addressed"] = languages["requested"] = named
        if named and _CALL.search(piece):
            languages["called"] = named
        if "secret" in languages and _PLACE.search(piece):
            languages["place"] = ANY
        likely = [sign for sign in signs() if sign.flag not in flags and spoken_together(languages, sign.groups)]
        if likely:
            by_concept = _by_concept(piece)
            flags |= {sign.flag for sign in likely if _has(sign, by_concept, piece)}
    return flags


def without_examples(text: str) -> str:
    """Return a text without the short quotations that it names as examples: `attackers write "..."`.

    A quotation with an address in it stays, since it is a complete instruction.
    """
    return _QUOTATION.sub(lambda quotation: "" if _is_cited(text, quotation) else quotation[0], text)


def _is_cited(text: str, quotation: re.Match[str]) -> bool:
    before = text[max(0, quotation.start() - _CITED) : quotation.start()].rpartition("\n")[2]
    after = text[quotation.end() : quotation.end() + _CITED].partition("\n")[0]
    return not _PLACE.search(quotation[0]) and "cites" in concepts_of(folded(f"{before} {after}"))


def drops(text: str) -> bool:
    """Return whether a text instructs a model to ignore other instructions."""
    return "drop" in instructions_in(text)


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces that overlap by the largest distance between concepts."""
    start = 0
    while len(text) - start > _PIECE + _OVERLAP:
        yield text[start : start + _PIECE + _OVERLAP]
        start += _PIECE
    yield text[start:]


def _by_concept(text: str) -> dict[str, list[Match]]:
    """Return the matches of a text by concept, except matches in harmless phrases such as "do not forget"."""
    all_of_them = matches(text)
    harmless = [match for match in all_of_them if match.concept == "none"]
    by_concept: dict[str, list[Match]] = {}
    for match in all_of_them:
        if not (harmless and any(match.start < phrase.end and phrase.start < match.end for phrase in harmless)):
            by_concept.setdefault(match.concept, []).append(match)
    by_concept["place"] = [Match(place.start(), place.end(), "place", ANY) for place in _PLACE.finditer(text)]
    named = [place.span(1) for place in _SPEAKER.finditer(text)]
    by_concept["speaker"] = [
        boss
        for boss in by_concept.get("boss", ())
        if any(start == boss.start and boss.end <= end for start, end in named)
    ]
    by_concept |= _named_in_front(text, by_concept)
    return by_concept


def _named_in_front(text: str, by_concept: dict[str, list[Match]]) -> dict[str, list[Match]]:
    """Return the addressees before an instruction, each match extended to the end of its label.

    `addressed` is a model in a label ("Note for AI:"), `requested` an assistant that a label is for or that reads the
    text ("To the bot that reads this:"), but not a speaker ("Assistant:"); `called` is either of them in a
    salutation ("Hey Claude,").
    """
    machines, helpers = by_concept.get("machine", []), by_concept.get("helper", [])
    if not machines and not helpers:
        return {}
    labels = [place.span(1) for place in _LABEL.finditer(text)]
    calls = {place.end(1): place.start(1) for place in _CALL.finditer(text)}
    openers = [match.start for concept in ("heed", "only") for match in by_concept.get(concept, ())]
    openers_of_models = [*openers, *(match.start for match in machines)]
    reading = [match.start for match in by_concept.get("reads", ())]
    addressed: list[Match] = []
    requested: list[Match] = []
    for start, end in labels:
        inside = [match for match in machines if start <= match.start and match.end <= end]
        if any(0 <= opener - start <= _OPENING for opener in openers_of_models):
            addressed += [match._replace(end=end) for match in inside]
        inside = [match for match in helpers if start < match.start and match.end <= end]
        is_for = any(0 <= opener - start <= _OPENING for opener in (*openers, *(match.start for match in inside)))
        if is_for or any(start <= at < end for at in reading):
            requested += [match._replace(end=end) for match in inside]
    starts = {match.start for match in (*machines, *helpers)}
    called = [
        match
        for match in (*machines, *helpers)
        if match.start - calls.get(match.end, -_PIECE) in range(_OPENING + 1)
        and starts.isdisjoint(range(match.end, match.end + 4))  # else it is a list of models
    ]
    return {"addressed": sorted(addressed), "requested": sorted(requested), "called": sorted(called)}


def _languages_of_speakers(text: str) -> int:
    """Return, as bits, the languages in which a text may have words of a system or its makers: "System: ..."."""
    languages = 0
    for place in _SPEAKER.finditer(text):
        languages |= concepts_of(place[1]).get("boss", 0)
    return languages


def _has(sign: Sign, by_concept: dict[str, list[Match]], text: str) -> bool:
    for first in by_concept.get(sign.first, ()):
        scale = 0.5 if _DENSE.match(text, first.start) else 1.0
        languages = first.languages
        for concepts, span in sign.near:
            languages &= _around(first, concepts, int(span * scale), by_concept, text if span <= _SENTENCE else None)
            if not languages:
                break
        else:
            if not any(_around(first, concepts, int(span * scale), by_concept, text) for concepts, span in sign.never):
                return True
    return False


def _around(
    first: Match, concepts: Sequence[str], span: int, by_concept: dict[str, list[Match]], sentence_of: str | None
) -> int:
    """Return, as bits, the languages in which any of the concepts is within `span` characters of a match.

    With the text `sentence_of`, both must be in the same sentence of that text.
    """
    languages = 0
    for concept in concepts:
        rows = by_concept.get(concept, ())
        for match in rows[bisect_left(rows, (first.start - span - _OVERLAP,)) :]:
            if match.start > first.end + span:
                break
            is_near = match.end >= first.start - span and match[:2] != first[:2]
            if is_near and (
                sentence_of is None or not SENTENCE_END.search(sentence_of, *sorted((match.start, first.start)))
            ):
                languages |= match.languages
    return languages


_END_CHARS = 140_000  # characters at either end of a text
_SHORTEST, _LONGEST = 8, 300  # characters of a sentence; longer sentences are cut

logger = logging.getLogger(__name__)


def mean_instructions(texts: Sequence[str]) -> list[bool]:
    """Return for each text whether any of its sentences reads like an instruction injected for a model.

    Logs the problem and returns False for every text if the model's files cannot be read.
    """
    if not texts:
        return []
    if not texts:
        return []
    from mcp_memory.models.embed.classifiers import detect_injected

    ends = (text if len(text) <= 2 * _END_CHARS else f"{text[:_END_CHARS]}\n\n{text[-_END_CHARS:]}" for text in texts)
    try:
        return detect_injected([sentences(text) for text in ends], traits)
    except EmbeddingFailed as error:
        logger.warning("Texts are judged by their words alone. %s", error)
        return [False] * len(texts)


_DESCRIBES_ITSELF = re.compile(
    r"\W*(?:(?:sorry|but|and|unfortunately|however|though|although|since|because|yes|no)\b\W*){0,3}"
    r"(?:as an?|I am|I['’]m|als|ich bin|en tant qu\w*|je suis|como|soy|eu sou|sou|come|(?:io )?sono|in quanto"
    r"|ik ben|jako|jestem|som|jag är|jeg er|я|как|будучи)\b|\W*(?:作为|作為|身为|身為|我是|我只是|私は|저는|나는)",
    re.IGNORECASE,
)
_NAMED_WITHIN = 30  # characters after the beginning that may name the model
_HARMFUL = {"drop", "secret", "quiet", "keep"}


def without_self_reference(text: str) -> str:
    """Return a model's text without the sentences that begin with a description of itself: "As an AI, I cannot …".

    A model may repeat an attack that begins like this, so a sentence stays if it cancels, stores, hides or names
    secrets, instructs its reader, or has an address.
    """
    kept: list[str] = []
    start = 0
    for end in [*(boundary.end() for boundary in SENTENCE_END.finditer(text)), len(text)]:
        sentence, start = text[start:end], end
        kept.append("\n" if _only_describes_itself(sentence) else sentence)
    return "".join(kept)


def _only_describes_itself(sentence: str) -> bool:
    begins = _DESCRIBES_ITSELF.match(sentence)
    if begins is None or _PLACE.search(sentence):
        return False
    named = concepts_of(folded(sentence[begins.end() : begins.end() + _NAMED_WITHIN])).keys() & {"machine", "helper"}
    spoken = {concept for concept, has in zip(CONCEPTS, traits(sentence), strict=True) if has}
    certain = spoken & {match.concept for match in matches(folded(sentence))}
    has_order = {"you", "must"} <= spoken  # ambiguous words count too: "I need you to"
    return bool(named) and certain.isdisjoint(_HARMFUL) and not has_order


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, long sentences in parts, without line breaks and without very short parts."""
    lines = (" ".join(sentence.split()) for sentence in SENTENCE_END.split(text))
    parts = (line[at : at + _LONGEST] for line in lines for at in range(0, len(line), _LONGEST))
    return [part for part in parts if len(part) >= _SHORTEST]


def traits(sentence: str) -> list[bool]:
    """Return which concepts a sentence has in the language of most of its concepts."""
    languages_of = concepts_of(folded(sentence))
    bits = [1 << place for place in range(len(LANGUAGES))]
    spoken = max(bits, key=lambda bit: sum(1 for languages in languages_of.values() if languages & bit))
    return [bool(languages_of.get(concept, 0) & spoken) for concept in CONCEPTS]
