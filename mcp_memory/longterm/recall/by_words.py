"""Recall by words alone, for a hook that answers before the daemon is ready.

It has no vectors and loads no model and no numpy, so it is careful: it shows only what the user said (`WordRows`),
which needs no judgement by a model, and nothing unless the question's words say that the memory knows (the first
regression of `search.answerability`, with the features that words give). The block has the form of `blocks.automatic`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import chain, repeat
from typing import Protocol

from mcp_memory.core.text import without_bullet
from mcp_memory.core.token_counts import TokenCounter
from mcp_memory.language.when.annotate import with_dates
from mcp_memory.longterm.recall.layout import fit
from mcp_memory.longterm.recall.line import RecallLine, excerpt_of, head_of
from mcp_memory.longterm.search.question_words import COMMON, content_words, is_echo
from mcp_memory.longterm.search.ranking import rarity
from mcp_memory.longterm.search.regressions import QuestionFeatures, answerability, question_size
from mcp_memory.longterm.turns import recall_block, small_talk_kind
from mcp_memory.suspicion.flags import flags

_LAYERS = ("atom", "turn")
_WORDS = 64
_READ = 60  # rows of each layer, those with the largest shares
_SHOWN = 12
_FEW = 30  # rows; of fewer it does not follow that a word is common
_WIDTHS = (320, 240, 160, 160, 120)
_RULES, _RULE_CHARS, _RULE_TOKENS = 20, 220, 260


class WordRow(Protocol):
    """A row that may be shown, see `store.sqlite.word_rows`."""

    @property
    def id(self) -> str: ...
    @property
    def turn(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def session(self) -> str: ...
    @property
    def position(self) -> int: ...


class WordRows(Protocol):
    """The rows of a space by words, see `store.sqlite.word_rows`."""

    def total(self, layer: str) -> int: ...
    def with_term(self, layer: str, term: str) -> list[int]: ...
    def usable(self, layer: str, rows: Sequence[int], *, session: str) -> Sequence[WordRow]: ...
    def rules(self, *, limit: int) -> Sequence[WordRow]: ...


def recall_by_words(rows: WordRows, question: str, *, session: str, shown: str, budget: int) -> str:
    """Return a dynamic block for a prompt, at most `budget` tokens by an estimate, without rows that are in `shown`.

    Empty if the memory is unlikely to know.
    """
    if small_talk_kind(question) is not None:
        return ""
    found = _find(rows, question, session)
    words = frozenset(content_words(question))
    widths = chain(_WIDTHS, repeat(_WIDTHS[-1]))
    lines = (_line(row, words, width) for row, width in zip(_new(found, shown), widths, strict=False))
    sound = (line for line in lines if not flags(line.text, "user", is_turn=True))
    return fit(sound, TokenCounter.estimating(), budget)[0]


def rules_by_words(rows: WordRows, *, shown: str) -> str:
    """Return a stable block with the user's standing rules that are not in `shown`; empty without any."""
    counter, text = TokenCounter.estimating(), ""
    for row in _new(rows.rules(limit=_RULES), shown):
        rule = f"- {excerpt_of(without_bullet(row.text), frozenset(), _RULE_CHARS)} ({row.id})"
        longer = f"{text}\n{rule}" if text else f"Always:\n{rule}"
        if counter.fits(longer, _RULE_TOKENS) and not flags(rule, "user"):
            text = longer
    return recall_block(text, part="stable") if text else ""


def _find(rows: WordRows, question: str, session: str) -> list[WordRow]:
    """Return the rows with the largest shares of the question's words; none if the memory is unlikely to know."""
    words = [word for word in content_words(question) if "\0" not in word][:_WORDS]
    with_word = {layer: {word: rows.with_term(layer, word) for word in words} for layer in _LAYERS}
    documents = {word: max(len(with_word[layer][word]) for layer in _LAYERS) for word in words}
    turns = rows.total("turn")
    total = max(_FEW, turns, *documents.values()) if documents else _FEW
    worth = {word: rarity(documents[word], total) / math.log(total + 2) + COMMON for word in words}
    whole = sum(worth.values()) or 1.0
    shares: dict[str, float] = {}
    found: list[WordRow] = []
    for layer in _LAYERS:
        share: dict[int, float] = {}
        for word, numbers in with_word[layer].items():
            for number in numbers:
                share[number] = share.get(number, 0.0) + worth[word] / whole
        best = sorted(share, key=lambda number: (-share[number], -number))[:_READ]
        usable = [row for row in rows.usable(layer, best, session=session) if not is_echo(row.text, question)]
        shares |= {row.id: share[int(row.id[1:])] for row in usable}
        found += usable
    features = QuestionFeatures(
        prompt=math.nan,
        named=0.0,
        share=max(shares.values(), default=0.0),
        unknown=sum(worth[word] for word in words if not documents[word]) / whole,
        sense=math.nan,
        size=question_size(turns),
    )
    model = answerability()
    if not found or model.question.probability(features) < model.unlikely:
        return []
    about = [row for row in found if shares[row.id] >= features.share / 2]
    return sorted(about, key=lambda row: (-shares[row.id], row.id[0], -int(row.id[1:])))[:_SHOWN]


def _new(rows: Sequence[WordRow], shown: str) -> Iterator[WordRow]:
    """Yield the rows that a text does not show, and no turn whose statement was yielded before."""
    seen = set(re.findall(r"(?<=[\[( ])[at]\d+(?=[\]), ])", shown))
    for row in rows:
        if row.id not in seen and not (row.id == row.turn and row.turn in seen):
            seen |= {row.id, row.turn}
            yield row


def _line(row: WordRow, words: frozenset[str], width: int) -> RecallLine:
    if row.id != row.turn:
        from mcp_memory.longterm.validity import date_of, span_of  # a tenth of the time of a recall of turns

        text = excerpt_of(without_bullet(row.text), words, width)
        when = "" if span_of(row.at, text, named=True) else date_of(row.at, row.text)
        return RecallLine(group="atom", id=row.id, text=f"{head_of(row.id, when)} {text}", source="user")
    return RecallLine(
        group="maybe",
        id=row.id,
        text=f"{head_of(row.id)} {with_dates(excerpt_of(row.text, words, width), row.at)}",
        source="user",
        said_at=row.at,
        session=row.session,
        position=row.position,
    )
