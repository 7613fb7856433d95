"""What the store promises of tokens."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Token

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LAPTOP = Token(id="ab12", name="laptop", spaces=("work", "日本"), right="write", at=NOW, hash=b"\x01" * 32)


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
