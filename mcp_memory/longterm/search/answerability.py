"""Whether a memory knows about a question, and which rows of a search are about it.

There is always a nearest row, whatever is asked. Two logistic regressions judge the first rows of a search: one says
how likely it is that the memory has an answer, the other how likely it is that a row is part of an answer. Recall, the
searches, hooks and the memory page all use these two probabilities. The features of a question are on absolute
scales, so they do not depend on how its rows compare with each other:

    prompt   log-odds that it needs earlier conversations (`embed.classifiers`)
    named    1 if it names a speaker of the memory
    share    the largest share of its words that a row has; rare words weigh more, and words of turns one or two places
             away count one half or one third
    unknown  the share of its words that no row of the memory has
    sense    the multilingual encoder's part of the cosine, the largest among the rows
    size     logarithm of the number of turns: in a large memory the best of many rows looks good by chance

Statements count as rows for `share`, `unknown` and `sense`. The second regression judges them without a score, since
statements are scored by fewer signals than turns; a statement is as likely to help as its evidence, or likelier.

`python -m bench.known` fits both to questions that a memory answers, questions of other people's memories, and prompts
that need no memory, and writes `answerability.json`. The ranking's own score, the best cosine, the question's form and
its length did not improve the first regression. A feature that cannot be measured (rows that are not embedded yet,
vectors of another model) counts as the mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.text import with_speaker
from mcp_memory.core.types import Known
from mcp_memory.language.words import beginning_of, index_terms, terms_among
from mcp_memory.longterm.search.query import parse_query
from mcp_memory.longterm.search.question_words import COMMON, content_words, is_echo
from mcp_memory.longterm.search.ranking import rarity, without_names
from mcp_memory.longterm.search.regressions import QuestionFeatures, RowFeatures, answerability, question_size
from mcp_memory.longterm.search.search import Ranked, SearchContext, atom_turns
from mcp_memory.models.embed.bundled import IDENTITY, STATIC_DIMENSIONS
from mcp_memory.models.embed.classifiers import leans_on_memory, probability
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, turn_rows
from mcp_memory.store.values import Filters, Layer, Vectors

JUDGED = 15
"""The number of rows of a search that are judged; rows that only repeat the question do not count."""
_SEARCHED = 45  # rows: the first may only repeat the question
_FILTERS: dict[Layer, Filters] = {"turn": Filters(), "atom": Filters(unheld=True, ended=True, sentences=False)}
"""Sentences that were extracted without a model are left out: their turns are found by the same words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The features of a question, and by id the features of the first rows, without rows that only repeat the question.

    A feature that could not be measured is NaN.
    """

    question: QuestionFeatures
    rows: Mapping[str, RowFeatures]
    """Turns, then statements. Their `question` is NaN until the first regression has computed it."""
    evidence: Mapping[str, Sequence[str]]
    """The turns that are evidence of each statement, by the statement's id."""
    worth: Mapping[str, float]
    """The content words of the question with their weights, which sum to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How likely it is that a memory answers a question, and that each of its first rows is part of the answer."""

    probability: float
    known: Known
    rows: Mapping[str, float]
    """The probabilities of the rows by id: turns, best first, then statements.

    Rows that repeat the question are left out.
    """
    close: frozenset[str]
    """The ids of rows that are surely about the question; empty if `known` is "unlikely"."""
    log_odds: float = 0.0
    """Of the question: those of `probability`, by the regression."""
    worth: Mapping[str, float] = field(default_factory=dict[str, float])
    """The content words of the question with their weights, which sum to 1."""

    def chance_by_words(self, share: float) -> float:
        """Return how likely it is that a row with this share of the question's words is part of the answer.

        For rows that are neither turns nor statements: like statements, they are judged without a score.
        """
        features = RowFeatures(
            question=self.log_odds, own=share, share=share, sense=math.nan, score=math.nan, behind=math.nan
        )
        return probability(answerability().row.log_odds(features))

    def share_of_words(self, text: str) -> float:
        """Return the share of the question's words in a text, weighted by rarity."""
        folded = text.casefold()
        if not any(word[: max(2, len(word) - 2)] in folded for word in self.worth):  # many lines have none
            return 0.0
        terms = frozenset(index_terms(text))
        return math.fsum(weight for word, weight in self.worth.items() if word in terms)


def judge_question(context: SearchContext, question: str) -> Judgement | None:
    """Judge whether a memory can answer a question; None if the question is empty.

    With a cached `context`, the results of its other searches are reused.
    """
    if not question.strip():
        return None
    turns, statements = (find_rows(context, layer, question, _SEARCHED) for layer in _FILTERS)
    return judge(context.store, context.space, question, turns, statements, embed=context.of_query, at=context.now)


def find_rows(context: SearchContext, layer: Layer, question: str, limit: int) -> list[Ranked]:
    """Return the best rows for a question.

    The filters of a layer are fixed, so that a cached context searches it once.
    """
    return context.hits(layer, question, filters=_FILTERS[layer], limit=limit)


def judge(
    store: Store, space: str, question: str, turns: Sequence[Ranked], statements: Sequence[Ranked] = (), *,
    embed: Callable[[str], Sequence[Vectors]], at: datetime,
) -> Judgement:  # fmt: skip
    """Judge whether a memory can answer a question by the results of a search, which are best first.

    `embed` returns the vectors of a text; `at` is the time of the question. If a question names a time and nothing
    else, the rows of that time are its answer; of a query of literals alone, the rows with all of them.
    """
    parsed, first = parse_query(question, at), [*turns[:JUDGED], *statements[:JUDGED]]
    factors = {hit.id: 1.0 + hit.opinion for hit in first if hit.opinion}
    answers = [hit for hit in first if hit.verbatim == 1.0] if parsed.literal_only else first
    if parsed.time_only or (parsed.literal_only and answers):
        rows = {hit.id: min(1.0, factors.get(hit.id, 1.0)) for hit in answers}
        close = frozenset(id for id, chance in rows.items() if chance)
        return Judgement(probability=float(bool(rows)), known="likely" if rows else "unlikely", rows=rows, close=close)
    model = answerability()
    measured = measure(store, space, question, turns, statements, embed=embed)
    log_odds = model.question.log_odds(measured.question)
    chance = probability(log_odds)
    rows = {id: probability(model.row.log_odds(row._replace(question=log_odds))) for id, row in measured.rows.items()}
    for id, evidence in measured.evidence.items():
        rows[id] = max(rows[id], *(rows.get(turn, 0.0) for turn in evidence))
    rows |= {id: min(1.0, rows[id] * factor) for id, factor in factors.items() if id in rows}
    known: Known = "likely" if chance >= model.likely else "unsure" if chance >= model.unlikely else "unlikely"
    close = frozenset(id for id, row in rows.items() if known != "unlikely" and row >= model.close)
    return Judgement(
        probability=round(chance, 3), known=known, rows=rows, close=close, log_odds=log_odds, worth=measured.worth
    )


def measure(
    store: Store, space: str, question: str, turns: Sequence[Ranked], statements: Sequence[Ranked] = (), *,
    embed: Callable[[str], Sequence[Vectors]],
) -> Measured:  # fmt: skip
    """Measure the features of a question, and of the first turns and statements that a search for it found."""
    store.read(space, turn_rows.read_ahead, reach_of(turns))
    hits, echoes = without_echoes(store, space, question, turns, limit=JUDGED)
    ids = [hit.id for hit in hits]
    atoms = store.read(space, atom_rows.by_ids, [hit.id for hit in statements[:JUDGED]])
    asked = AskedWords(store, space, "turn", question)
    stated = {atom.id: dict.fromkeys(asked.in_text(atom.text), 1.0) for atom in atoms}
    totals = store.totals(space, "turn")
    presence = words_with_neighbours(store, space, ids, asked)
    words = question_words(asked, [*presence.values(), *stated.values()], total=totals.rows, echoes=echoes)
    worth = {word: rarity + COMMON for word, rarity in words.rarity.items()}
    whole = sum(worth.values()) or 1.0

    def share(terms: TermPresence) -> float:
        return sum(worth[word] * terms.get(word, 0.0) for word in worth) / whole

    nameless = without_names(question, totals.names)
    senses: dict[str, float] = {}
    """The encoder's part of the cosine of each row that the bundled model has embedded."""
    bundled = next((vectors.data for vectors in embed(nameless) if vectors.identity == IDENTITY), None)
    if bundled is not None:
        sense = bundled[0, STATIC_DIMENSIONS:]
        vectors = dict(store.vectors_of(space, "turn", ids, IDENTITY))
        if atoms:
            vectors |= store.vectors_of(space, "atom", list(stated), IDENTITY)
        senses = {id: float(vector[STATIC_DIMENSIONS:] @ sense) for id, vector in vectors.items()}
    try:
        prompt = leans_on_memory(question)
    except EmbeddingFailed:
        prompt = math.nan
    scores = {hit.id: hit.score if hit.by_signals is None else hit.by_signals for hit in hits}
    best = max(scores.values(), default=0.0)
    rows = {
        hit.id: RowFeatures(
            question=math.nan,
            own=sum(worth[word] for word in worth if terms.get(word) == 1.0) / whole,
            share=share(terms),
            sense=senses.get(hit.id, math.nan),
            score=scores[hit.id],
            behind=best - scores[hit.id],
        )
        for hit in hits
        if (terms := presence.get(hit.id)) is not None
    }
    for id, terms in stated.items():
        rows[id] = RowFeatures(
            question=math.nan,
            own=share(terms),
            share=share(terms),
            sense=senses.get(id, math.nan),
            score=math.nan,
            behind=math.nan,
        )
    return Measured(
        question=QuestionFeatures(
            prompt=prompt,
            named=float(nameless != question),
            share=max((row.share for row in rows.values()), default=0.0),
            unknown=sum(worth[word] for word in words.unknown) / whole,
            sense=max(senses.values(), default=math.nan),
            size=question_size(totals.rows),
        ),
        rows=rows,
        evidence={atom.id: atom_turns(atom) for atom in atoms},
        worth={word: weight / whole for word, weight in worth.items()},
    )


def reach_of(turns: Sequence[Ranked]) -> dict[str, int]:
    """Return how many turns around each of these turns a judgement reads, for `turn_rows.read_ahead`."""
    return {hit.id: NEIGHBOURS if place < JUDGED else 0 for place, hit in enumerate(turns)}


def without_echoes(
    store: Store, space: str, question: str, hits: Sequence[Ranked], *, limit: int
) -> tuple[list[Ranked], list[TermPresence]]:
    """Return the first `limit` turns that do not only repeat the question, and the terms of the turns that do."""
    kept: list[Ranked] = []
    echoes: list[TermPresence] = []
    for start in range(0, len(hits), JUDGED):
        some = hits[start : start + JUDGED]
        texts = {turn.id: turn.content for turn in store.read(space, turn_rows.by_ids, [hit.id for hit in some])}
        repeating = {id for id, text in texts.items() if is_echo(text, question)}
        echoes += [terms_of(texts[id]) for id in repeating]
        kept += [hit for hit in some if hit.id in texts and hit.id not in repeating]
        if len(kept) >= limit:
            break
    return kept[:limit], echoes


# --- the words of a question in a row -----------------------------------------------------------------

NEIGHBOURS = 2
"""Turns before and after a row whose words count in part for it."""
_READ = 4_000  # characters of a row
_FEW = 30  # rows; of fewer it does not follow that a word is common
TermPresence = Mapping[str, float]
"""Terms of a row and of the turns around it, with the nearness of each: 1 for a term of the row itself."""
_APART = re.compile(r"[^a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionWords:
    """The content words of a question in one layer of a memory."""

    rarity: Mapping[str, float]
    """The rarity of each word: 0 if most rows have it, 1 if a single row has it."""
    unknown: frozenset[str]
    """Words that no row has."""


class AskedWords:
    """The content words of a question, and the rows of a layer that have them."""

    def __init__(self, store: Store, space: str, layer: Layer, question: str) -> None:
        self.words = content_words(question)
        found = store.postings(space, layer, self.words, filters=Filters(), absent=True)
        self.postings = [posting for posting in found if posting.documents]
        self._rows = {posting.term: frozenset(posting.rows.tolist()) for posting in self.postings}
        left_out = set(self.words).difference(posting.term for posting in found)
        self._known_since = dict.fromkeys(left_out, math.inf) | {
            posting.term: int(posting.rows[-1]) for posting in self.postings if posting.documents > len(posting.rows)
        }
        """The words whose postings lack older rows, with the oldest row that they have; infinity for none."""

    def in_text(self, text: str) -> frozenset[str]:
        """Return the words that the first characters of a text have."""
        return _terms_in(text[:_READ]).intersection(self.words)

    def in_row(self, id: str, text: str) -> frozenset[str]:
        """Return the words that a row has, by the index; words that its postings may lack are looked for in `text`."""
        if len(text) > _READ:
            return self.in_text(text)
        row = int(id[1:])
        indexed = frozenset(word for word, rows in self._rows.items() if row in rows)
        unsure = [word for word, since in self._known_since.items() if row < since and _may_have(text, word)]
        return indexed | terms_among(text, unsure) if unsure else indexed


def _may_have(text: str, word: str) -> bool:
    """Return False only if a text cannot have an index term."""
    if not text.isascii():
        return True
    if not (word.isascii() and word.isalpha()):
        return word.isascii()  # folding leaves ASCII as it is
    return beginning_of(word) in _APART.sub("", text.lower())


def question_words(
    asked: AskedWords, rows_words: Iterable[TermPresence], *, total: int, echoes: Sequence[TermPresence] = ()
) -> QuestionWords:
    """Weigh the words of a question in a layer with `total` rows.

    `rows_words` are the words of rows found for it, `echoes` those of its repetitions, which do not count as rows. A
    word without postings occurs in no row, or is so common that the store left it out; in the second case it occurs in
    `rows_words`.
    """
    present = {word for words in rows_words for word in words}
    rows = {
        posting.term: max(0, posting.documents - sum(posting.term in echo for echo in echoes))
        for posting in asked.postings
    }
    total = max([_FEW, total, *rows.values()])
    return QuestionWords(
        rarity={
            word: 0.0
            if word in present and word not in rows
            else rarity(rows.get(word, 0), total) / math.log(total + 2)
            for word in asked.words
        },
        unknown=frozenset(word for word in asked.words if word not in present and not rows.get(word)),
    )


def terms_of(text: str) -> TermPresence:
    return dict.fromkeys(_terms_in(text[:_READ]), 1.0)


@lru_cache(maxsize=256)  # the turns around the first rows of a question, which are read to judge it and to order them
def _terms_in(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))


def words_with_neighbours(store: Store, space: str, ids: Sequence[str], asked: AskedWords) -> dict[str, TermPresence]:
    """Return the asked words in turns; words of turns one or two places away count one half or one third."""
    near = store.read(space, turn_rows.context_windows, ids, around=NEIGHBOURS)
    words = {turn.id: asked.in_row(turn.id, with_speaker(turn.content, turn.name)) for turn in near}
    turns = {turn.id: turn for turn in near}
    by_place = {(turn.session, turn.position): turn.id for turn in near}
    presence: dict[str, TermPresence] = {}
    for turn in (turns[id] for id in ids if id in turns):
        nearness: dict[str, float] = {}
        for offset in range(-NEIGHBOURS, NEIGHBOURS + 1):
            other = by_place.get((turn.session, turn.position + offset))
            for word in words[other] if other else ():
                nearness[word] = max(nearness.get(word, 0.0), 1 / (1 + abs(offset)))
        presence[turn.id] = nearness
    return presence
