"""The word index: its segments and the rows without one give what a dictionary gives, whatever happens between."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from threading import Event
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.language.words import base_terms
from mcp_memory.store.postgres import migrations, term_rows, term_segments, terms
from mcp_memory.store.postgres.database import migrate
from mcp_memory.store.postgres.migrations import STEPS
from mcp_memory.store.postgres.store import PostgresStore
from mcp_memory.store.postgres.transaction import PostgresTransaction
from mcp_memory.store.sql import postings, tombstone_rows, turn_rows
from mcp_memory.store.values import Filters
from tests.postgres.notes import as_owner, opened, sql
from tests.postgres_server import PostgresServer, running
from tests.store.test_contract import NOW

pytestmark = pytest.mark.postgres

WORDS = ["apple", "birch", "cedar", "dogwood", "elder"]
COMMON = 6
PLAIN = Filters()
OF_USER = Filters(role="user")

_POSTINGS = """
    SELECT s.layer, s.first + r.row, s.keys[i]
    FROM term_segment s, generate_subscripts(s.keys, 1) i, unnest(s.rows[coalesce(s.ends[i - 1], 0) + 1 : s.ends[i]]) r (row)
    WHERE s.space = {space}
"""
_KEYS_OF_RANGES = " UNION ALL ".join(
    f"SELECT '{layer}', t.id, k FROM term_segment s JOIN {layer}_terms t ON t.space = s.space AND t.id BETWEEN"
    f" s.first AND s.last, unnest(t.keys) k WHERE s.layer = '{layer}' AND s.bucket = 0 AND s.space = {{space}}"
    for layer in ("turn", "atom", "chunk")
)
_OVERLAPS = """
    SELECT 1 FROM term_segment s JOIN term_segment o ON o.space = s.space AND o.layer = s.layer AND o.first <> s.first
        AND o.first BETWEEN s.first AND s.last WHERE s.space = {space}
"""


@pytest.fixture(autouse=True)
def _small(request: pytest.FixtureRequest) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Make segments, blocks and common terms small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(term_segments, "SIZES", (16, 4))
        patch.setattr(term_segments, "_BUCKET_BYTES", 32)
        patch.setattr(terms, "BLOCK", 32)
        for module in (postings, term_rows):
            patch.setattr(module, "COMMON", COMMON)
        yield


def of_space(name: str) -> str:
    """Return SQL for the number of a space."""
    return f"(SELECT id FROM space WHERE name = '{name}')"


def check_segments(url: str, space: str = "me") -> None:
    """Check that segments do not overlap, and that each has exactly the keys of the rows in its range."""
    overlaps, found, expected = (
        sql(url, question.format(space=of_space(space))) for question in (_OVERLAPS, _POSTINGS, _KEYS_OF_RANGES)
    )
    assert overlaps == []
    assert sorted(found) == sorted(expected)


def say(store: PostgresStore, space: str, *texts: str) -> None:
    """Store turns, one after another; an empty text is a note, and an odd length a turn of the user."""
    new = [
        NewTurn(role="user" if len(text) % 2 else "assistant" if text else "note", content=text or "a note")
        for text in texts
    ]
    store.write(space, turn_rows.append, "s", turn_rows.prepare(new), now=NOW)


def rows_with(store: PostgresStore, space: str, word: str, filters: Filters = PLAIN) -> list[int]:
    (term,) = base_terms(word)
    return [row for found in store.postings(space, "turn", [term], filters=filters) for row in found.rows.tolist()]


def read_words(tx: PostgresTransaction, filters: Filters) -> list[list[int]]:
    """Return the newest rows with each of the words that pass."""
    rows = term_rows.SegmentRows(tx, "turn", filters).rows([*map("".join, map(base_terms, WORDS))], passing=True)
    return [of_word.tolist() for of_word in rows]


def merge(store: PostgresStore, steps: int = 1_000) -> None:
    for _ in range(steps):
        if not store.maintain_indexes(limit=3):
            break


def segments(url: str) -> list[Any]:
    return sql(url, "SELECT layer, first, last FROM term_segment WHERE bucket = 0 ORDER BY 1, 2")


# --- like a dictionary ------------------------------------------------------------------------------


class _Dictionary:
    """The turns of a space: their numbers and words, and those that are forgotten, by tombstone."""

    def __init__(self) -> None:
        self.texts = list[str]()
        self.forgotten = dict[str, set[int]]()

    def rows(self, word: str) -> list[int]:
        gone = {number for numbers in self.forgotten.values() for number in numbers}
        return [
            number
            for number in range(len(self.texts), 0, -1)
            if number not in gone and word in self.texts[number - 1].split()
        ]

    def newest(self, word: str, *, of_user: bool = False) -> list[int]:
        rows = [row for row in self.rows(word) if not of_user or len(self.texts[row - 1]) % 2]
        return rows[:COMMON]


@pytest.fixture(scope="module")
def shared(postgres: PostgresServer) -> Iterator[tuple[str, PostgresStore, Iterator[int]]]:
    """A memory for all examples, each of which has a space of its own."""
    url = postgres.create_memory()
    with opened(url) as store:
        yield url, store, count(1)
    postgres.drop_database(url)


texts = st.lists(st.sampled_from(WORDS), max_size=4, unique=True).map(" ".join)
Step = tuple[str, Any]
steps: st.SearchStrategy[Step] = st.one_of(
    st.tuples(st.just("say"), st.lists(texts, min_size=1, max_size=9)),
    st.tuples(st.just("merge"), st.integers(1, 9)),
    st.tuples(st.just("forget"), st.lists(st.integers(0, 99), min_size=1, max_size=3)),
    st.tuples(st.just("undo"), st.integers(0, 99)),
    st.tuples(st.just("outdate"), st.integers(0, 99)),
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(steps, min_size=4, max_size=15))
def test_words_are_found_as_in_a_dictionary(shared: tuple[str, PostgresStore, Iterator[int]], done: list[Step]) -> None:
    url, store, numbers = shared
    space, known = f"space {next(numbers)}", _Dictionary()
    known.texts += ["apple cedar", "", "birch"]
    say(store, space, *known.texts)
    for step, value in done:
        match step:
            case "say":
                new = [f"{text} {number}" for number, text in enumerate(value, len(known.texts))]
                say(store, space, *new, "")
                known.texts += [*new, ""]
            case "forget":
                alive = sorted({row for word in WORDS for row in known.rows(word)})
                chosen: set[int] = {alive[place % len(alive)] for place in value if alive}
                if chosen:
                    ids = [f"t{number}" for number in chosen]
                    made = store.write(space, tombstone_rows.forget, ids, reason="wrong", now=NOW)
                    known.forgotten[made.id] = chosen
            case "undo" if known.forgotten:
                tombstone = sorted(known.forgotten)[int(value) % len(known.forgotten)]
                store.write(space, tombstone_rows.undo, tombstone, now=NOW)
                del known.forgotten[tombstone]
            case "outdate":  # as if an earlier version had indexed it
                sql(url, f"UPDATE turn_terms SET version = 0 WHERE id % 7 = {value % 7} AND space = {of_space(space)}")
            case _:
                merge(store, value if step == "merge" else 1)
        check_segments(url, space)
        for filters in (PLAIN, OF_USER):
            found = store.read(space, read_words, filters)
            assert found == [known.newest(word, of_user=filters == OF_USER) for word in WORDS], filters
        both = store.read(space, lambda tx: tx.index.with_all_terms("turn", base_terms("apple cedar")))
        assert both == sorted({*known.rows("apple")} & {*known.rows("cedar")})
    with opened(url) as another:  # which does not know of rows that were restored or changed
        merge(another)
        check_segments(url, space)
        assert another.read_home(term_segments.unmerged) == []


# --- what a segment may not show --------------------------------------------------------------------


def test_no_key_of_a_forgotten_turn_remains(url: str) -> None:
    with opened(url) as store:
        say(store, "me", *(f"apple {number}" for number in range(40)), "elder")
        say(store, "me", *(f"cedar {number}" for number in range(40)))
        merge(store)
        ((keys,),) = sql(url, "SELECT keys FROM turn_terms WHERE id = 41")
        with_key = f"SELECT first FROM term_segment WHERE keys && '{{{','.join(map(str, keys))}}}'"
        assert sql(url, with_key) == [(32,)]
        store.write("me", tombstone_rows.forget, ["t41"], reason="wrong", now=NOW)
        assert sql(url, with_key) == []
        assert segments(url) == [("turn", 0, 15), ("turn", 16, 31), ("turn", 48, 63), ("turn", 64, 79)]
        assert rows_with(store, "me", "elder") == []
        merge(store)
        assert sql(url, with_key) == []
        assert ("turn", 32, 47) in segments(url)


def test_a_row_that_any_program_changes_leaves_its_segment(url: str) -> None:
    with opened(url) as store:
        say(store, "me", *["apple"] * 40)
        say(store, "other", *["apple"] * 40)
        merge(store)
        whole = segments(url)
        sql(url, f"DELETE FROM turn_terms WHERE id = 20 AND space = {of_space('me')}")
        assert len(segments(url)) == len(whole) - 1
        sql(
            url,
            f"UPDATE turn_terms SET keys = '{{}}' WHERE id IN (4, 33) AND space = {of_space('me')}",
        )
        assert len(segments(url)) == len(whole) - 3
        check_segments(url)


# --- several programs -------------------------------------------------------------------------------


@pytest.mark.slow
def test_servers_that_write_forget_and_merge_at_once_agree(url: str) -> None:
    with opened(url) as one, opened(url) as other, ThreadPoolExecutor(4) as threads:
        stop = Event()

        def write() -> None:
            try:
                for number in range(1, 61):
                    say(one, "me", f"apple {number}", f"cedar birch {number}")
                    if number % 10 == 0:
                        one.write("me", tombstone_rows.forget, [f"t{number}"], reason="wrong", now=NOW)
            finally:
                stop.set()

        def keep_merging(store: PostgresStore) -> None:
            while not stop.is_set():
                store.write_home(term_segments.merge, 1, "turn")

        running = [threads.submit(keep_merging, one), threads.submit(keep_merging, other), threads.submit(write)]
        try:
            while not stop.is_set():
                rows = rows_with(other, "me", "cedar")
                assert rows == sorted(set(rows), reverse=True)
        finally:
            stop.set()
        for done in running:
            done.result()
        merge(other)
        check_segments(url)
        assert [(first, last) for _, first, last in segments(url)] == [
            *((first, first + 15) for first in range(0, 112, 16)), (112, 115), (116, 119),
        ]  # fmt: skip


def test_a_snapshot_does_not_see_a_later_merge(url: str) -> None:
    with opened(url) as store, opened(url) as other:
        say(store, "me", *["apple"] * 3, *["birch"] * 30)

        def read() -> tuple[list[int], list[int]]:
            before = rows_with(store, "me", "apple")
            with ThreadPoolExecutor(1) as threads:
                threads.submit(merge, other).result()
                threads.submit(other.write, "me", tombstone_rows.forget, ["t3"], reason="wrong", now=NOW).result()
            return before, rows_with(store, "me", "apple", Filters(session="s"))

        assert store.in_snapshot(read) == ([3, 2, 1], [3, 2, 1])
        assert rows_with(store, "me", "apple") == [2, 1]


@pytest.mark.slow
def test_a_server_that_is_killed_while_it_merges_leaves_all_or_nothing() -> None:
    with running({}) as server:
        server.make_template()
        url = server.create_memory()
        with opened(url, timeout=3.0) as store:
            say(store, "me", *["apple"] * 40)
            store.maintain_indexes(limit=1)
            whole = segments(url)
            sql(
                url,
                "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(30); RETURN NULL; END';"
                "CREATE TRIGGER wait AFTER INSERT ON term_segment FOR EACH STATEMENT EXECUTE FUNCTION wait()",
            )
            with ThreadPoolExecutor(1) as threads:
                merging = threads.submit(store.maintain_indexes, limit=1)
                until = time.monotonic() + 20
                while not sql(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
                    assert time.monotonic() < until
                    time.sleep(0.02)
                server.kill()
                with suppress(StoreUnavailable):
                    merging.result()
            server.start()
            assert segments(url) == whole
            check_segments(url)
            sql(url, "DROP TRIGGER wait ON term_segment")
        with opened(url) as store:
            merge(store)
            check_segments(url)
            assert rows_with(store, "me", "apple") == list(range(40, 40 - COMMON, -1))
            assert len(segments(url)) > len(whole)


@pytest.mark.slow
def test_a_standby_reads_segments() -> None:
    with running() as primary:
        primary.make_template()
        url = primary.create_memory()
        with primary.standby() as standby, opened(url, reads=standby.url(url.rpartition("/")[2], "memory")) as store:
            say(store, "me", *["apple"] * 4, *["birch"] * 30)
            merge(store)
            until = time.monotonic() + 30
            while True:
                rows, is_standby = store.in_snapshot(
                    lambda: (
                        rows_with(store, "me", "apple"),
                        store.read("me", lambda tx: tx.get("SELECT pg_is_in_recovery()")),
                    )
                )
                assert rows == [4, 3, 2, 1]
                if is_standby:
                    break
                assert time.monotonic() < until
                time.sleep(0.02)


# --- upgrades ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_memory_of_an_older_version_is_searched_before_and_after_its_rows_are_merged(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create_database(owner="owner")
    sql(url, "CREATE EXTENSION vector")
    with monkeypatch.context() as older:
        older.setattr(migrations, "STEPS", [step for step in STEPS if step.number < 8])
        with opened(as_owner(url)) as store:
            say(store, "me", *["apple"] * 5, *["birch"] * 60)
    functions = "SELECT proname FROM pg_proc WHERE proname LIKE '%_rows_with'"
    with opened(as_owner(url)) as store:
        assert len(sql(url, functions)) == 3
        assert segments(url) == []
        assert rows_with(store, "me", "apple") == [5, 4, 3, 2, 1]
        say(store, "me", "apple again")
        merge(store, 2)
        assert [first for _, first, _ in segments(url)] == [0, 16]
        assert migrate(as_owner(url)) == [
            ("0002-keyed-identifiers", "backfill"),
            ("0008-term-segments", "backfill"),
            ("0011-smaller-rows", "backfill"),
        ]
        assert [first for _, first, _ in segments(url)] == [0, 16, 32, 48]
        check_segments(url)
        assert ("0008-term-segments", "contract") in migrate(as_owner(url), contract=True)
        assert sql(url, functions) == sql(url, "SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%USING gin%'") == []
        assert rows_with(store, "me", "apple") == [66, 5, 4, 3, 2, 1]
    postgres.drop_database(url)
