"""Baselines of retrieval without this package, over the same turns.

`bm25`: one FTS5 table with the porter stemmer, stop words removed, OR of the other words. Scripts written without
spaces are divided into characters and pairs of characters: FTS5 treats a whole Chinese sentence as one word and would
find nothing (turn R@10 of 1 instead of 82). Text in other scripts is not affected.

`dense`: the cosine of the question to every turn by the bundled model, without approximation; `table` and `encoder` use
one half of that model each. As in the search, names of speakers are removed from the question.

All rank all turns of the haystack that they can find (`bm25`: that share a word), and sessions by their first turn.
BM25 sees a turn's name, if it has one; none sees its date. Among equal scores, the older turn is first.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from time import perf_counter

import apsw
import numpy as np
from numpy.typing import NDArray

from bench.asking import Answer, Ask, ranked
from bench.sets import Haystack, Question, Turn
from bench.words import FUNCTION_WORDS
from mcp_memory.longterm.search.ranking import without_names
from mcp_memory.models.embed.bundled import BundledEmbedder, StaticEmbedder, shared_encoder

Vector = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Vector]

_STOP = frozenset(FUNCTION_WORDS)
_DENSE_RUN = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff]+")
_WORD = re.compile(r"\w+")


def spaced(text: str) -> str:
    """Return the text with runs of Han, kana and Hangul divided into characters and pairs of characters."""
    return _DENSE_RUN.sub(lambda run: f" {' '.join([*run[0], *(a + b for a, b in pairwise(run[0]))])} ", text)


def or_query(text: str) -> str:
    """Return an FTS5 query for any of the words except stop words; for any word if there are only stop words."""
    words = list(dict.fromkeys(_WORD.findall(spaced(text).lower())))
    telling = [word for word in words if word not in _STOP]
    return " OR ".join(f'"{word}"' for word in telling or words)


@asynccontextmanager
async def bm25(haystack: Haystack) -> AsyncGenerator[Ask]:
    con = apsw.Connection(":memory:")
    con.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')")
    said = list(haystack.turns())
    con.executemany("INSERT INTO said (text) VALUES (?)", [(spaced(_text(turn)),) for _, turn in said])

    async def ask(question: Question) -> Answer:
        start = perf_counter()
        query = or_query(question.text)
        found = con.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY bm25(said), rowid", (query,))
        places = [int(number) - 1 for (number,) in found] if query else []
        return ranked(said, places, seconds=perf_counter() - start)

    yield ask
    con.close()


@asynccontextmanager
async def _nearest(haystack: Haystack, *, embed: Embed, embed_query: Callable[[str], Vector]) -> AsyncGenerator[Ask]:
    said = list(haystack.turns())
    vectors = embed([turn.content for _, turn in said])
    names = {turn.name for _, turn in said if turn.name}

    async def ask(question: Question) -> Answer:
        start = perf_counter()
        scores = vectors @ embed_query(without_names(question.text, names))
        places = np.argsort(-scores, kind="stable").tolist()
        return ranked(said, places, seconds=perf_counter() - start)

    yield ask


def dense(haystack: Haystack) -> AbstractAsyncContextManager[Ask]:
    model = BundledEmbedder()
    return _nearest(haystack, embed=model.embed, embed_query=model.embed_query)


def table(haystack: Haystack) -> AbstractAsyncContextManager[Ask]:
    model = StaticEmbedder()
    return _nearest(haystack, embed=model.embed, embed_query=model.embed_query)


def encoder(haystack: Haystack) -> AbstractAsyncContextManager[Ask]:
    model = shared_encoder()
    return _nearest(haystack, embed=model.embed, embed_query=lambda text: model.embed([text])[0])


def _text(turn: Turn) -> str:
    return f"{turn.name}: {turn.content}" if turn.name else turn.content
