"""A memory as one file: the same bytes for the same store, and taken in elsewhere each row once."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest
from anyio import to_thread

from mcp_memory.errors import InvalidInput, NotFound
from mcp_memory.portable import is_parcel, opened
from tests.portable.homes import export, extract, fill, leave, lived_in, loosely, memory, rows, store_of, take_in

pytestmark = pytest.mark.anyio


async def test_the_same_store_gives_the_same_bytes(home: Path, tmp_path: Path) -> None:
    async with lived_in(home) as held:
        once = await export(held, tmp_path / "a.zip")
        again = await export(held, tmp_path / "b.zip")
    async with memory(home) as held:
        later = await export(held, tmp_path / "c.zip")
    assert once.read_bytes() == again.read_bytes() == later.read_bytes()


async def test_what_comes_out_again_is_what_went_in(home: Path, tmp_path: Path) -> None:
    async with lived_in(home) as held:
        first = await export(held, tmp_path / "a.zip")
    async with memory(tmp_path / "other") as held:
        await take_in(held, first)
        assert await to_thread.run_sync(store_of(held).problems) == []
        assert (await held.verify()).problems == []
        second = await export(held, tmp_path / "b.zip")
    async with memory(tmp_path / "third", "mine") as held:
        await take_in(held, second)
        third = await export(held, tmp_path / "c.zip")
    assert loosely(rows(first)) == loosely(rows(second)) == loosely(rows(third, "mine"))
