"""Keys of one use, sessions, and the limit on wrong keys."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.ui.sessions import (
    IDLE_SECONDS,
    KEY_SECONDS,
    OneTimeKeys,
    Reader,
    Sessions,
    TooManyKeys,
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


SECRET = b"s" * 32
NOW = 1_800_000_000.0


def cookie_of(sessions: Sessions, *, now: float = NOW) -> str:
    return sessions.cookie(sessions.start(READER, now=now))


@pytest.mark.parametrize("wrong", ["", ".", "ключ", "\ud800", "x" * 100_000, "\0", "e30=.00"])
async def test_no_text_is_a_key_or_a_cookie_by_chance(wrong: str) -> None:
    keys, sessions = OneTimeKeys(READER), Sessions(SECRET)
    key, cookie = keys.new(), cookie_of(sessions)
    assert await keys.authenticate(wrong, "here") is None
    assert sessions.of(wrong, now=NOW) is None
    assert await keys.authenticate(key, "here") == READER
    assert sessions.of(cookie, now=NOW) is not None


async def test_keys_are_not_kept_as_they_are() -> None:
    keys = OneTimeKeys(READER)
    assert keys.new() not in repr(vars(keys))


@given(st.integers(min_value=0), st.integers(1, 255))
def test_a_cookie_with_a_changed_byte_or_of_another_secret_is_none(place: int, change: int) -> None:
    sessions = Sessions(SECRET)
    cookie = cookie_of(sessions)
    changed = bytearray(cookie.encode())
    changed[place % len(changed)] ^= change
    assert sessions.of(changed.decode("latin-1"), now=NOW) is None
    assert Sessions(b"t" * 32).of(cookie, now=NOW) is None


def test_a_session_ends_after_twelve_hours_without_use() -> None:
    sessions = Sessions(SECRET)
    later = NOW + IDLE_SECONDS - 1
    session = sessions.of(cookie_of(sessions), now=later)
    assert session is not None
    used = sessions.used(session, now=later)
    assert used is not None
    assert sessions.of(sessions.cookie(used), now=later + IDLE_SECONDS - 1) == used
    assert sessions.of(sessions.cookie(used), now=later + IDLE_SECONDS) is None
    assert not sessions.is_open(session, now=later + 1)


def test_a_use_is_noted_once_a_minute() -> None:
    sessions = Sessions(SECRET)
    session = sessions.start(READER, now=NOW)
    assert sessions.used(session, now=NOW + 59) is None
    assert sessions.used(session, now=NOW + 60) == replace(session, used_at=NOW + 60)


def test_a_session_that_was_left_has_ended_in_each_of_its_cookies() -> None:
    sessions = Sessions(SECRET)
    session = sessions.start(READER, now=NOW)
    later = sessions.used(session, now=NOW + 100)
    assert later is not None
    sessions.end(session)
    assert [sessions.of(sessions.cookie(one), now=NOW + 100) for one in (session, later)] == [None, None]


def test_a_form_is_of_one_session_on_every_server() -> None:
    here, there = Sessions(SECRET), Sessions(SECRET)
    session, other = here.start(READER, now=NOW), here.start(READER, now=NOW)
    assert there.is_form_token(session, here.form_token(session))
    assert not there.is_form_token(session, here.form_token(other))
    assert not there.is_form_token(session, "")
    assert not there.is_form_token(session, "é")


def test_a_credential_too_large_for_a_cookie_is_refused() -> None:
    sessions = Sessions(SECRET)
    with pytest.raises(InvalidInput, match="opens more spaces than the pages can show"):
        sessions.cookie(sessions.start(Reader(space="default", proof="x" * 4_000), now=NOW))
