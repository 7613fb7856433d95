"""One conversation in SQLite and in PostgreSQL: the same questions have the same hits, to the last digit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcp_memory.core.text import with_speaker
from mcp_memory.core.types import NewTurn, Role
from mcp_memory.longterm.search.query import parse_query
from mcp_memory.longterm.search.ranking import SIGNALS
from mcp_memory.longterm.search.search import Search
from mcp_memory.models.embed.bundled import IDENTITY, STATIC_DIMENSIONS
from mcp_memory.store.postgres import term_rows, term_segments, terms
from mcp_memory.store.postgres.store import open_store as open_postgres
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import postings, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.index import term_rows as sqlite_term_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Filters, Vectors
from mcp_memory.testing import HashEmbedder
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PEOPLE: tuple[tuple[Role, str | None], ...] = (
    ("user", "Ann"), ("assistant", None), ("user", "Bo Li"), ("assistant", "Robin"), ("system", None), ("user", None),
)  # fmt: skip
THINGS = [
    "ferry", "harbour", "tent", "lake", "piano", "garden", "printer", "oak", "bridge", "violin", "kettle", "lantern",
    "钢琴", "花园",
]  # fmt: skip
MORE = [
    "the", "old", "was", "sold", "leaks", "blooms", "again", "on", "Tuesday", "for", "forty", "euros", "because",
    "nobody", "wanted", "it", "any", "more",
]  # fmt: skip
QUESTIONS = [
    "Who sold the piano?", "What did Ann say about the ferry?", "When did you mention the lantern?",
    "Where did we go camping last Tuesday?", "钢琴怎么样？", "Is the old bridge near the lake?", "Bo, what about my kettle?",
    "Which gadget hums?", "the the the", "rule", "what leaked in November 2026, the printer or the kettle or the oak?",
    " ".join(THINGS),
]  # fmt: skip
FILTERS = [
    Filters(),
    Filters(role="assistant"),
    Filters(session="talk 3"),
    Filters(since=NOW - timedelta(days=9), until=NOW - timedelta(days=2)),
    Filters(upto=250),
]

model = HashEmbedder(IDENTITY, dimensions=STATIC_DIMENSIONS + 32)  # so that its encoder is asked alone, too


def embedded(*texts: str) -> Vectors:
    return Vectors(identity=IDENTITY, data=model.embed(texts))


def said(rng: random.Random) -> NewTurn:
    role, name = rng.choice(PEOPLE)
    words = [*rng.choices(THINGS, k=rng.randint(0, 3)), *rng.choices(MORE, k=rng.randint(1, 40))]
    rng.shuffle(words)
    ending = rng.choice([".", "?", "？", "!", "\0"])
    return NewTurn(role=role, name=name, content=" ".join(words) + ending)


def converse(store: Store) -> None:
    """Fill a store: sessions that grow in turns, with notes between the turns, and some turns forgotten."""
    rng = random.Random(19)
    for part in range(60):
        at = NOW - timedelta(days=30 - part / 2)
        turns = [said(rng) for _ in range(rng.randint(5, 25))]
        for number in range(rng.choice([0, 0, 1, 12])):
            turns.insert(rng.randrange(len(turns)), NewTurn(role="note", content=f"note {part} {number}"))
        stored = store.write("me", turn_rows.append, f"talk {part % 7}", turn_rows.prepare(turns), now=at).stored
        rows = [turn for turn in stored if turn.role != "note"]
        store.put_vectors(
            [("me", turn.id) for turn in rows], embedded(*(with_speaker(t.content, t.name) for t in rows))
        )
        store.write("me", tombstone_rows.forget, [turn.id for turn in rows[::9]], reason="wrong", now=at)
        for _ in range(rng.randint(0, 8)):
            store.maintain_indexes(limit=20)
    store.write("other", turn_rows.append, "talk", turn_rows.prepare([said(rng) for _ in range(9)]), now=NOW)


@pytest.fixture(scope="module", params=["no common terms", "common terms, in many blocks"])
def stores(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[list[Store]]:
    folder: Path = tmp_path_factory.mktemp("both")
    url = postgres.create_memory()
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "no common terms":  # as a space of a million turns has them
            patch.setattr(terms, "BLOCK", 64)
            patch.setattr(term_segments, "SIZES", (64, 16, 4))
            for module in (postings, term_rows, sqlite_term_rows):
                patch.setattr(module, "COMMON", 50)
        opened: list[Store] = [open_store(folder / "home"), open_postgres(url)]
        for store in opened:
            converse(store)
        yield opened
        for store in opened:
            store.close()
    postgres.drop_database(url)


def found(store: Store, question: str, filters: Filters) -> dict[int, dict[str, float]]:
    """Return all candidates with every signal."""
    search = Search(store, lambda: NOW)
    rows, _ = search.candidates(
        "me", "turn", parse_query(question, NOW), embed=lambda text: [embedded(text)], filters=filters
    )
    lines = zip(rows.rows.tolist(), rows.signals.tolist(), strict=True)
    return {row: dict(zip(SIGNALS, signals, strict=True)) for row, signals in lines}


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_every_candidate_has_the_same_signals(stores: list[Store], filters: Filters) -> None:
    for question in QUESTIONS:
        sqlite, postgres = (found(store, question, filters) for store in stores)
        assert sqlite == postgres, question
        assert sqlite or filters != Filters()


def test_hits_have_the_same_order_and_scores(stores: list[Store]) -> None:
    for question in QUESTIONS:
        sqlite, postgres = (
            Search(store, lambda: NOW)(
                "me", "turn", question, embed=lambda text: [embedded(text)], filters=Filters(), limit=50
            )
            for store in stores
        )
        assert sqlite == postgres, question


def test_questions_meet_few_turns_and_many_or_common_terms(stores: list[Store]) -> None:
    words = [parse_query(question, NOW).words for question in QUESTIONS]
    found = [stores[0].postings("me", "turn", terms, filters=Filters()) for terms in words]
    met = [len(set[int]().union(*(one.rows.tolist() for one in read))) for read in found]
    assert min(met) < 200
    assert max(met) > 400 or any(one.documents >= postings.COMMON for read in found for one in read)
