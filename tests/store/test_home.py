"""What the store promises of the rows of the home: tokens of HTTP clients, and what calls to a model came to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Spend, Spent, Token

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LAPTOP = Token(id="ab12", name="laptop", spaces=("work", "日本"), right="write", at=NOW, hash=b"\x01" * 32)
CALL = Spend(at=NOW, purpose="rerank", model="openai/m", prompt_tokens=900, completion_tokens=20, cost=0.25)


def test_a_token_comes_back_as_it_was_kept_and_an_unknown_one_is_none(store: Store) -> None:
    until = replace(LAPTOP, id="cd34", name="ci", until=NOW + timedelta(days=90))
    store.add_token(LAPTOP)
    store.add_token(until)
    assert store.tokens() == [LAPTOP, until]
    assert (store.token("cd34"), store.token("ef56")) == (until, None)
    assert "hash" not in repr(LAPTOP)


def test_a_name_is_free_again_once_its_token_is_revoked(store: Store) -> None:
    store.add_token(LAPTOP)
    second = replace(LAPTOP, id="cd34")
    with pytest.raises(InvalidInput, match="laptop"):
        store.add_token(second)
    store.revoke_token("ab12", now=NOW)
    store.revoke_token("ab12", now=NOW + timedelta(days=1))
    store.add_token(second)
    assert store.tokens() == [replace(LAPTOP, revoked_at=NOW), second]


def test_use_is_noted_to_the_hour(store: Store) -> None:
    store.add_token(LAPTOP)
    noted: list[datetime | None] = []
    for minutes in (0, 30, 59, 61):
        store.note_token_used("ab12", now=NOW + timedelta(minutes=minutes))
        token = store.token("ab12")
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
        store.add_spend(spend)
    one = Spent(
        purpose="atoms", model="openai/m", calls=1, failed=0, prompt_tokens=900, completion_tokens=20, cost=0.25
    )
    assert store.spent(since=NOW) == [
        one,
        replace(one, purpose="rerank", model="ollama/q", cost=None),
        replace(one, purpose="rerank", calls=2, failed=1, prompt_tokens=1800),
    ]
    assert store.spent(since=NOW + timedelta(milliseconds=1)) == []
