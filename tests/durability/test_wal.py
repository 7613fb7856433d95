"""A WAL that was torn or garbled, and homes that were copied while they were written to."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.service.upkeep.repair import repair
from mcp_memory.store.sqlite.store import open_store
from tests.durability.filling import NOON, capture, keep, said

WORDS = [f"Word {number}, which was acknowledged." for number in range(8)]


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """A home as a power cut leaves it, with how long its WAL was after each word."""
    home, copy = tmp_path_factory.mktemp("whole") / "home", tmp_path_factory.mktemp("torn") / "home"
    open_store(home).close()
    store = open_store(home)
    lengths: list[int] = []
    for word in WORDS:
        capture(store, word)
        lengths.append((home / "memory.db-wal").stat().st_size)
    shutil.copytree(home, copy)
    (copy / "memory.db-shm").unlink()
    store.close()
    return copy, lengths


@settings(max_examples=25)
@given(place=st.floats(0, 1), garbled=st.booleans())
def test_what_reached_the_disk_before_the_tear_is_there_and_a_repair_adds_the_rest_from_the_journal(
    place: float, garbled: bool, torn: tuple[Path, list[int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    source, lengths = torn
    home = tmp_path_factory.mktemp("cut") / "home"
    shutil.copytree(source, home)
    wal = home / "memory.db-wal"
    cut = int(place * wal.stat().st_size)
    data = wal.read_bytes()
    wal.write_bytes(data[:cut] + (bytes(byte ^ 0x5A for byte in data[cut : cut + 8]) + data[cut + 8 :]) * garbled)
    kept = sum(length <= cut for length in lengths)
    with closing(open_store(home)) as store:
        assert said(store) == WORDS[:kept]
        assert (store.problems() == []) == (kept == len(WORDS))
    assert repair(home, now=NOON).left == []
    with closing(open_store(home)) as store:
        assert said(store) == WORDS
        capture(store, "After the tear.")
        assert (said(store), store.problems()) == ([*WORDS, "After the tear."], [])


def database_first(home: Path, copy: Path, between: Callable[[], object]) -> None:
    shutil.copy(home / "memory.db", copy / "memory.db")
    between()
    shutil.copy(home / "memory.db-wal", copy / "memory.db-wal")
    between()
    shutil.copytree(home / "spaces", copy / "spaces")


def files_first(home: Path, copy: Path, between: Callable[[], object]) -> None:
    shutil.copytree(home / "spaces", copy / "spaces")
    between()
    shutil.copy(home / "memory.db", copy / "memory.db")
    between()
    shutil.copy(home / "memory.db-wal", copy / "memory.db-wal")


@pytest.mark.parametrize("copied", [database_first, files_first])
def test_a_home_that_was_copied_while_open_has_all_that_either_part_has(
    copied: Callable[[Path, Path, Callable[[], object]], None], home: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    open_store(home).close()
    store = open_store(home)
    told: list[str] = []

    def between() -> None:
        told.append(f"Told while it was copied, {len(told)}.")
        capture(store, told[-1])
        keep(store, told[-1].encode())

    between()
    copied(home, copy, between)
    store.close()
    left = repair(copy, now=NOON).left
    with closing(open_store(copy)) as again:
        stored = said(again)
        if copied is files_first:  # rows are ahead of the files
            assert stored == told[: len(stored)]
            assert any("is missing: refs/" in problem for problem in left)
        else:
            assert (stored, left) == (told, [])
        capture(again, "Goes on.")
        assert said(again) == [*stored, "Goes on."]
        assert not any(".jsonl" in problem for problem in again.problems())
