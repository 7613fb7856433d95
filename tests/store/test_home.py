"""What the store promises of the rows of the home: tokens of HTTP clients, the usage ledger and the pause."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from uuid import uuid4

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Spend, Spent
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import home_rows, page_rows, stage_outputs
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import PersonaPage, Token
from tests.leases import pass_time

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LAPTOP = Token(id="ab12", name="laptop", spaces=("work", "日本"), right="write", at=NOW, hash=b"\x01" * 32)
CALL = Spend(
    at=NOW, purpose="rerank", model="openai/m", prompt_tokens=900, completion_tokens=20, cached_tokens=600, cost=0.25
)


def test_a_token_comes_back_as_it_was_kept_and_an_unknown_one_is_none(store: Store) -> None:
    until = replace(LAPTOP, id="cd34", name="ci", until=NOW + timedelta(days=90))
    store.write_home(home_rows.add_token, LAPTOP)
    store.write_home(home_rows.add_token, until)
    assert store.read_home(home_rows.tokens) == [LAPTOP, until]
    assert (store.read_home(home_rows.token, "cd34"), store.read_home(home_rows.token, "ef56")) == (until, None)
    assert "hash" not in repr(LAPTOP)


def test_a_name_is_free_again_once_its_token_is_revoked(store: Store) -> None:
    store.write_home(home_rows.add_token, LAPTOP)
    second = replace(LAPTOP, id="cd34")
    with pytest.raises(InvalidInput, match="laptop"):
        store.write_home(home_rows.add_token, second)
    store.write_home(home_rows.revoke_token, "ab12", now=NOW)
    store.write_home(home_rows.revoke_token, "ab12", now=NOW + timedelta(days=1))
    store.write_home(home_rows.add_token, second)
    assert store.read_home(home_rows.tokens) == [replace(LAPTOP, revoked_at=NOW), second]


def test_use_is_noted_to_the_hour(store: Store) -> None:
    store.write_home(home_rows.add_token, LAPTOP)
    noted: list[datetime | None] = []
    for minutes in (0, 30, 59, 61):
        store.write_home(home_rows.note_token_used, "ab12", now=NOW + timedelta(minutes=minutes))
        token = store.read_home(home_rows.token, "ab12")
        noted.append(token and token.used_at)
    assert noted == [NOW, NOW, NOW, NOW + timedelta(minutes=61)]


def test_a_token_is_good_until_it_ends_or_is_revoked() -> None:
    ending = replace(LAPTOP, until=NOW)
    assert LAPTOP.is_good(NOW)
    assert ending.is_good(NOW - timedelta(seconds=1))
    assert not ending.is_good(NOW)
    assert not replace(LAPTOP, revoked_at=NOW).is_good(NOW)


def test_calls_are_summed_by_purpose_and_model_from_a_moment_on(store: Store) -> None:
    free = replace(CALL, model="ollama/q", cost=None)
    for spend in (
        replace(CALL, at=NOW - timedelta(milliseconds=1)),
        CALL,
        replace(CALL, completion_tokens=0, cost=None, error="no answer in time"),
        replace(CALL, purpose="atoms"),
        free,
    ):
        store.write_home(home_rows.add_spend, spend)
    one = Spent(
        purpose="atoms", model="openai/m", calls=1, failed=0,
        prompt_tokens=900, completion_tokens=20, cached_tokens=600, cost=0.25,
    )  # fmt: skip
    assert store.read_home(home_rows.spent, since=NOW) == [
        one,
        replace(one, purpose="rerank", model="ollama/q", cost=None),
        replace(one, purpose="rerank", calls=2, failed=1, prompt_tokens=1800, cached_tokens=1200),
    ]
    assert store.read_home(home_rows.spent, since=NOW + timedelta(milliseconds=1)) == []


@pytest.mark.files
def test_calls_of_a_home_that_had_no_cached_tokens_are_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_memory.store.sqlite.migrations.SCHEMA", SCHEMA[:3])
    open_store(home).close()
    monkeypatch.undo()
    con = apsw.Connection(str(home / "memory.db"))
    row = (int(NOW.timestamp() * 1000), "rerank", "openai/m", 900, 20, 0.25)
    con.execute(
        "INSERT INTO spend (at, purpose, model, prompt_tokens, completion_tokens, cost) VALUES (?, ?, ?, ?, ?, ?)", row
    )
    con.close()
    with closing(open_store(home)) as store:
        store.write_home(home_rows.add_spend, CALL)
        assert store.read_home(home_rows.spent, since=NOW) == [
            Spent(
                purpose="rerank", model="openai/m", calls=2, failed=0,
                prompt_tokens=1800, completion_tokens=40, cached_tokens=600, cost=0.5,
            )
        ]  # fmt: skip


def test_of_many_who_add_a_token_of_one_name_at_once_one_does(store: Store) -> None:
    def add(number: int) -> bool:
        try:
            store.write_home(home_rows.add_token, replace(LAPTOP, id=f"{number}"))
        except InvalidInput:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(add, range(8))) == 1
    assert len(store.read_home(home_rows.tokens)) == 1


# --- rates of requests ------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(a_minute=st.integers(1, 100), steps=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=20))
def test_a_client_takes_no_more_than_its_bucket_and_what_came_back(
    store: Store, a_minute: int, steps: list[tuple[int, int]]
) -> None:
    key, passed, taken = uuid4().hex, 0, 0
    began = monotonic()
    for seconds, wanted in steps:
        pass_time(store, timedelta(seconds=seconds))
        passed += seconds
        got = store.write_home(home_rows.take_requests, key, count=wanted, a_minute=a_minute)
        assert 0 <= got <= wanted
        taken += got
        assert taken <= a_minute + (passed + monotonic() - began) * a_minute / 60 + 1
    pass_time(store, MINUTE)
    assert store.write_home(home_rows.take_requests, key, count=1_000, a_minute=a_minute) == a_minute


def test_one_who_has_taken_all_waits_and_others_do_not(store: Store) -> None:
    assert store.write_home(home_rows.take_requests, "one", count=9, a_minute=6) == 6
    assert store.write_home(home_rows.take_requests, "one", count=1, a_minute=6) == 0
    assert store.write_home(home_rows.take_requests, "other", count=1, a_minute=6) == 1
    pass_time(store, timedelta(seconds=10))
    assert store.write_home(home_rows.take_requests, "one", count=9, a_minute=6) == 1


def test_a_clock_that_is_set_back_gives_nothing_away(store: Store) -> None:
    assert store.write_home(home_rows.take_requests, "one", count=1, a_minute=1) == 1
    pass_time(store, -timedelta(days=300))
    assert store.write_home(home_rows.take_requests, "one", count=1, a_minute=1) == 0


def test_many_who_take_at_once_take_no_more_than_there_is(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        taken = pool.map(lambda _: store.write_home(home_rows.take_requests, "one", count=3, a_minute=10), range(8))
    assert sum(taken) == 10


# --- the pause --------------------------------------------------------------------------------------


def test_models_are_paused_for_a_reason_until_they_are_resumed(store: Store) -> None:
    assert store.read_home(home_rows.paused) is None
    store.write_home(home_rows.pause, "the budget is spent", now=NOW)
    assert store.read_home(home_rows.paused) == ("the budget is spent", NOW)
    store.write_home(home_rows.pause, "by hand \x00", now=NOW + MINUTE)
    assert store.read_home(home_rows.paused) == ("by hand \x00", NOW + MINUTE)
    store.write_home(home_rows.resume)
    assert store.read_home(home_rows.paused) is None
    store.write_home(home_rows.resume)
    assert store.read_home(home_rows.paused) is None


def test_a_store_that_can_be_written_to_is_not_read_only(store: Store) -> None:
    assert store.read_only is None


# --- the engine -------------------------------------------------------------------------------------


def test_a_store_names_its_schema_before_and_after_a_write(store: Store) -> None:
    name = store.schema()
    assert name
    store.write_home(home_rows.pause, "", now=NOW)
    assert store.schema() == name


def test_writing_the_file_of_the_persona_changes_no_row(store: Store) -> None:
    store.write("me", stage_outputs.commit, None, PersonaPage(text="# A"), outcome={}, now=NOW)
    before = store.read("me", page_rows.persona_versions), store.read("me", home_rows.last_change)
    for _ in range(2):
        store.write_persona_file("me", "# A\n\n- work\n")
    assert (store.read("me", page_rows.persona_versions), store.read("me", home_rows.last_change)) == before
