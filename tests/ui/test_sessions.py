"""Keys of one use, sessions, and the limit on wrong keys."""

from __future__ import annotations

import re

import pytest

from mcp_memory.ui.sessions import (
    IDLE_SECONDS,
    KEY_SECONDS,
    OneTimeKeys,
    Reader,
    Sessions,
    TooManyKeys,
    is_form_token,
)

pytestmark = pytest.mark.anyio

READER = Reader(space="default")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_key_has_256_bits_and_opens_once() -> None:
    keys = OneTimeKeys(READER)
    key = keys.new()
    assert re.fullmatch(r"[\w-]{43}", key)
    assert [await keys.authenticate(key, "here"), await keys.authenticate(key, "here")] == [READER, None]


async def test_a_key_opens_for_a_minute() -> None:
    clock = Clock()
    keys = OneTimeKeys(READER, clock=clock)
    early, late = keys.new(), keys.new()
    clock.now += KEY_SECONDS - 1
    assert await keys.authenticate(early, "here") == READER
    clock.now += 1
    assert await keys.authenticate(late, "here") is None


async def test_a_new_key_leaves_the_others_as_they_are() -> None:
    keys = OneTimeKeys(READER)
    first, second = keys.new(), keys.new()
    assert await keys.authenticate(second, "here") == READER
    assert await keys.authenticate(first, "here") == READER


async def test_after_twenty_wrong_keys_in_a_minute_the_answer_is_to_wait_and_a_right_key_opens_all_the_same() -> None:
    clock = Clock()
    keys = OneTimeKeys(READER, clock=clock)
    for n in range(20):
        assert await keys.authenticate(f"wrong {n}", "here") is None
    clock.now += 20
    with pytest.raises(TooManyKeys) as many:
        await keys.authenticate("", "here")
    assert many.value.seconds == 40
    assert await keys.authenticate(keys.new(), "here") == READER
    clock.now += 40
    assert await keys.authenticate("wrong again", "here") is None


@pytest.mark.parametrize("wrong", ["", "ключ", "\ud800", "x" * 100_000, "\0"])
async def test_no_text_is_a_key_or_a_cookie_by_chance(wrong: str) -> None:
    keys, sessions = OneTimeKeys(READER), Sessions()
    key, cookie = keys.new(), sessions.start(READER)
    assert await keys.authenticate(wrong, "here") is None
    assert sessions.of(wrong) is None
    assert await keys.authenticate(key, "here") == READER
    assert sessions.of(cookie) is not None


async def test_neither_keys_nor_cookies_are_kept_as_they_are() -> None:
    keys, sessions = OneTimeKeys(READER), Sessions()
    key, cookie = keys.new(), sessions.start(READER)
    kept = repr([vars(keys), vars(sessions)])
    assert key not in kept
    assert cookie not in kept


def test_a_session_ends_after_twelve_hours_without_use() -> None:
    clock = Clock()
    sessions = Sessions(clock=clock)
    cookie = sessions.start(READER)
    clock.now += IDLE_SECONDS - 1
    assert sessions.of(cookie) is not None
    clock.now += IDLE_SECONDS - 1
    session = sessions.of(cookie)
    assert session is not None
    clock.now += IDLE_SECONDS
    assert not sessions.is_open(session)
    assert sessions.of(cookie) is None


def test_what_a_page_asks_for_without_its_reader_does_not_keep_a_session() -> None:
    clock = Clock()
    sessions = Sessions(clock=clock)
    cookie = sessions.start(READER)
    clock.now += IDLE_SECONDS / 2
    assert sessions.of(cookie, by_reader=False) is not None
    clock.now += IDLE_SECONDS / 2
    assert sessions.of(cookie) is None


def test_a_form_is_of_one_session() -> None:
    sessions = Sessions()
    one, other = (sessions.of(sessions.start(READER)) for _ in range(2))
    assert one is not None
    assert other is not None
    assert is_form_token(one, one.form_token)
    assert not is_form_token(one, other.form_token)
    assert not is_form_token(one, "")
    assert not is_form_token(one, "é")


def test_the_least_recently_used_session_makes_room() -> None:
    sessions = Sessions()
    first, second = sessions.start(READER), sessions.start(READER)
    assert sessions.of(first) is not None
    for _ in range(999):
        sessions.start(READER)
    assert sessions.of(first) is not None
    assert sessions.of(second) is None
