"""Keys of one use, sign-ins, sessions, and the limit on wrong keys."""

from __future__ import annotations

import os
import stat
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from pathlib import Path

import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.ui.local_address import AddressFile
from mcp_memory.ui.sessions import (
    IDLE_SECONDS,
    KEY_SECONDS,
    SIGN_IN_SECONDS,
    OneTimeKeys,
    Reader,
    Sessions,
    TooManyKeys,
    sign_key,
)

pytestmark = pytest.mark.anyio

READER = Reader(space="default")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def read(path: Path) -> AddressFile:
    return await anyio.to_thread.run_sync(AddressFile, path)


async def opens(keys: OneTimeKeys, key: str) -> bool:
    return await keys.authenticate(key, "here") is not None


async def test_a_key_is_signed_with_256_bits_and_opens_once() -> None:
    keys = OneTimeKeys(READER)
    key = keys.new()
    assert len(urlsafe_b64decode(key)) == 6 + 16 + 32
    assert [await opens(keys, key), await opens(keys, key)] == [True, False]


async def test_a_key_opens_for_a_minute() -> None:
    clock = Clock()
    keys = OneTimeKeys(READER, clock=clock)
    early, late = keys.new(), keys.new()
    clock.now += KEY_SECONDS - 1
    assert await opens(keys, early)
    clock.now += 1
    assert not await opens(keys, late)


async def test_a_new_key_leaves_the_others_as_they_are() -> None:
    keys = OneTimeKeys(READER)
    first, second = keys.new(), keys.new()
    assert await opens(keys, second)
    assert await opens(keys, first)


async def test_another_process_of_the_home_can_make_a_key_and_one_without_its_secret_cannot(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "ui.json"
    keys = OneTimeKeys(READER, await read(path), clock=clock)
    await signed_in(keys)
    secret = (await read(path)).address.secret
    assert not await opens(keys, sign_key(b"t" * 32, now=clock.now))
    assert await opens(keys, sign_key(secret, now=clock.now))


async def test_a_key_of_an_earlier_process_opens_nothing() -> None:
    clock, file = Clock(), AddressFile(None)
    key = OneTimeKeys(READER, file, clock=clock).new()
    clock.now += 1
    assert not await opens(OneTimeKeys(READER, file, clock=clock), key)


@given(place=st.integers(0, 53), change=st.integers(1, 255))
async def test_a_key_with_a_changed_byte_opens_nothing(place: int, change: int) -> None:
    keys = OneTimeKeys(READER)
    changed = bytearray(urlsafe_b64decode(keys.new()))
    changed[place] ^= change
    assert not await opens(keys, urlsafe_b64encode(changed).decode())


async def test_after_twenty_wrong_keys_in_a_minute_the_answer_is_to_wait_and_a_right_key_opens_all_the_same() -> None:
    clock = Clock()
    keys = OneTimeKeys(READER, clock=clock)
    for n in range(20):
        assert not await opens(keys, f"wrong {n}")
    clock.now += 20
    with pytest.raises(TooManyKeys) as many:
        await keys.authenticate("", "here")
    assert many.value.seconds == 40
    assert await opens(keys, keys.new())
    clock.now += 40
    assert not await opens(keys, "wrong again")


# --- sign-ins ---------------------------------------------------------------------------------------


async def signed_in(keys: OneTimeKeys) -> str:
    reader = await keys.authenticate(keys.new(), "here")
    assert reader is not None
    return reader.proof


async def test_a_sign_in_lasts_a_month_also_when_the_program_runs_again(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "ui.json"
    proof = await signed_in(OneTimeKeys(READER, await read(path), clock=clock))
    again = OneTimeKeys(READER, await read(path), clock=clock)
    clock.now += SIGN_IN_SECONDS - 1
    assert await again.resume(proof) == replace(READER, proof=proof)
    clock.now += 1
    assert await again.resume(proof) is None


async def test_who_signs_out_is_out_for_good_and_others_stay_until_all_are_signed_out(tmp_path: Path) -> None:
    path = tmp_path / "ui.json"
    keys = OneTimeKeys(READER, await read(path))
    one, two, three = [await signed_in(keys) for _ in range(3)]
    await keys.leave(one)

    async def still_in(keys: OneTimeKeys) -> list[bool]:
        return [await keys.resume(proof) is not None for proof in (one, two, three)]

    assert await still_in(keys) == await still_in(OneTimeKeys(READER, await read(path))) == [False, True, True]
    await keys.leave(two, everywhere=True)
    assert await still_in(keys) == await still_in(OneTimeKeys(READER, await read(path))) == [False, False, False]


async def test_ended_sign_ins_are_not_kept(tmp_path: Path) -> None:
    clock = Clock()
    keys = OneTimeKeys(READER, await read(tmp_path / "ui.json"), clock=clock)
    await signed_in(keys)
    clock.now += SIGN_IN_SECONDS
    last = await signed_in(keys)
    assert [*(await read(tmp_path / "ui.json")).address.sign_ins] == [last]
    assert keys.sign_ins() == 1


@pytest.mark.skipif(os.name == "nt", reason="modes have no effect there")
async def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    await signed_in(OneTimeKeys(READER, await read(tmp_path / "ui.json")))
    assert stat.S_IMODE((tmp_path / "ui.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"port": 1}', '{"port": 1, "base": "/x", "secret": 3, "sign_ins": {}}']
)
async def test_a_damaged_file_signs_everybody_out(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ui.json"
    keys = OneTimeKeys(READER, await read(path))
    proof, secret = await signed_in(keys), await keys.secret()
    path.write_text(text)
    again = OneTimeKeys(READER, await read(path))
    assert await again.resume(proof) is None
    assert await again.secret() != secret


async def test_without_a_place_for_the_file_sign_ins_last_as_long_as_the_process(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("no folder")
    keys = OneTimeKeys(READER, await read(tmp_path / "home" / "ui.json"))
    assert await keys.resume(await signed_in(keys)) is not None


SECRET = b"s" * 32
NOW = 1_800_000_000.0


def cookie_of(sessions: Sessions, *, now: float = NOW) -> str:
    return sessions.cookie(sessions.start(READER, now=now))


@pytest.mark.parametrize("wrong", ["", ".", "ключ", "\ud800", "x" * 100_000, "\0", "e30=.00"])
async def test_no_text_is_a_key_or_a_cookie_by_chance(wrong: str) -> None:
    keys, sessions = OneTimeKeys(READER), Sessions(SECRET)
    key, cookie = keys.new(), cookie_of(sessions)
    assert not await opens(keys, wrong)
    assert sessions.of(wrong, now=NOW) is None
    assert await opens(keys, key)
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
