"""Whatever write the disk fails at: what was acknowledged is there, what was refused is not, and a word says so."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.token_counts import token_counter
from mcp_memory.shortterm.offload import OffloadRequest, offload
from mcp_memory.store.sql import atom_rows, record_rows, ref_rows
from mcp_memory.store.sqlite.store import SQLiteStore, open_store
from mcp_memory.store.values import Filters, NewAtom
from tests.durability.faults import failing_disk, no_file_over
from tests.durability.filling import NOON, RESULT, capture, fill, keep, said

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits and modes of files")


def remember(store: SQLiteStore, text: str) -> str:
    atom = NewAtom(text=text, kind="persona", session="first", priority=80, confidence=1.0, valid_from=NOON)
    return store.write("default", atom_rows.add, atom, now=NOON).atom.id


def put_away(store: SQLiteStore, text: str) -> str:
    request = OffloadRequest(
        tool_name="bash", result=f"{text}\n".encode() + RESULT, session="first", tool_call_id=text, task="look around"
    )
    return offload(store, "default", request=request, counter=token_counter("cl100k_base"), now=NOON).ref


DEEDS: dict[str, Callable[[SQLiteStore, str], str]] = {"capture": capture, "remember": remember, "offload": put_away}


def refusal(deed: Callable[[SQLiteStore, str], str], store: SQLiteStore, text: str) -> str | None:
    """Return why a deed was refused, None where it was done."""
    try:
        deed(store, text)
    except StoreUnavailable as reason:
        assert "Nothing was written" in str(reason)  # noqa: PT017  most deeds go well
        return str(reason)
    return None


def held(store: SQLiteStore) -> dict[str, list[str]]:
    atoms = store.read("default", atom_rows.list_atoms, filters=Filters(), limit=1_000)
    calls = [record.tool_call_id or "" for record in store.read("default", record_rows.list_records, limit=1_000)]
    return {"capture": said(store), "remember": [atom.text for atom in atoms], "offload": calls}


def check(store: SQLiteStore, told: dict[str, list[str]]) -> None:
    there = held(store)
    for kind, texts in told.items():
        assert sorted(text for text in there[kind] if text.startswith("deed")) == sorted(texts)
    for record in store.read("default", record_rows.list_records, limit=1_000):
        assert store.read("default", ref_rows.read_bytes, record.ref or "")
    assert store.problems() == []


@pytest.mark.slow
@pytest.mark.parametrize(("error", "for_good"), [(apsw.FullError, True), (apsw.IOError, False)], ids=["full", "broken"])
def test_a_disk_that_fails_at_any_write_loses_nothing_acknowledged(
    error: type[apsw.Error], for_good: bool, home: Path
) -> None:
    anyio.run(fill, home)
    told: dict[str, list[str]] = {kind: [] for kind in DEEDS}
    refused = 0
    with failing_disk() as disk:
        store = open_store(home)
        for kind, deed in DEEDS.items():
            for at in range(1, 200):
                text = f"deed {kind} {at}"
                disk.arm(at, error, for_good=for_good)
                reason = refusal(deed, store, text)
                finished, disk.at = not disk.failed, 0
                if reason is None:
                    told[kind].append(text)
                else:
                    refused += 1
                    assert ("free some disk space" in reason) == (error is apsw.FullError)
                if finished:
                    break
            check(store, told)
        store.close()
    assert refused > len(DEEDS)
    store = open_store(home)
    check(store, told)
    capture(store, "deed capture last")
    store.close()


@settings(max_examples=12)
@given(limits=st.lists(st.integers(0, 9_000) | st.integers(0, 200_000), min_size=1, max_size=6))
def test_files_that_cannot_grow_are_as_they_were(limits: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    store = open_store(tmp_path_factory.mktemp("quota") / "home")
    capture(store, "before")
    kept = keep(store, RESULT)
    told: dict[str, list[str]] = {kind: [] for kind in DEEDS}
    for number, limit in enumerate(limits):
        for kind, deed in DEEDS.items():
            text = f"deed {kind} {number}"
            with no_file_over(limit):
                reason = refusal(deed, store, text)
            if reason is None:
                told[kind].append(text)
    check(store, told)
    assert store.read("default", ref_rows.read_bytes, kept) == RESULT
    store.close()
