"""Upkeep on a disk that is full: it says so and what to do, changes nothing, and leaves nothing behind."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mcp_memory.core.errors import NoRoom
from mcp_memory.core.types import NewTurn
from mcp_memory.service.upkeep.backup import verify
from mcp_memory.service.upkeep.rebuild import rebuild
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.service.upkeep.restore import restore
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.index import vectors as vector_tables
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Vectors
from tests.durability.faults import no_file_over
from tests.upkeep.conftest import NOW, Lived, backed_up

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of files")

ROOM = 60_000
"""Bytes that a file may have: too few for any copy of the database."""


def contents(home: Path) -> dict[str, bytes]:
    """All that counts in a home; what it locks with, and the log of writes that each opening makes, does not."""
    kept = (path for path in sorted(home.rglob("*")) if path.is_file() and path.parent.name != "run")
    return {str(path.relative_to(home)): path.read_bytes() for path in kept if "memory.db-" not in path.name}


VERBS: dict[str, Callable[[Path, Path], object]] = {
    "rebuild": lambda home, _: rebuild(home, now=NOW),
    "repair": lambda home, _: repair(home, now=NOW),
    "restore": lambda home, backup: restore(backup, home, now=NOW),
    "backup": lambda home, _: backed_up(home),
    "verify": lambda _, backup: verify(backup),
}


@pytest.mark.parametrize("verb", VERBS)
def test_upkeep_on_a_full_disk_is_refused_in_a_sentence_and_changes_nothing(
    home: Path, lived: Lived, verb: str
) -> None:
    home = lived(home)
    backup = backed_up(home, to=home.parent / "elsewhere").path
    if verb == "repair":  # or there is nothing to make
        (home / "memory.db").unlink()
    before, beside = contents(home), sorted(backup.parent.iterdir())
    with (
        no_file_over(ROOM),
        pytest.raises(NoRoom, match=r"No room to write in .*; free some disk space and try again\."),
    ):
        VERBS[verb](home, backup)
    assert contents(home) == before
    assert sorted(backup.parent.iterdir()) == beside
    assert [*home.rglob("*.tmp")] == []
    VERBS[verb](home, backup)


def test_vectors_that_a_full_disk_does_not_take_are_no_bug(home: Path) -> None:
    with closing(open_store(home)) as store:
        store.write(
            "default",
            turn_rows.append,
            "s",
            turn_rows.prepare([NewTurn(role="user", content="The night boat sails.")]),
            now=NOW,
        )
        store.write("default", lambda tx: vector_tables.ensure(tx.con, "hash", 16_384))
        vectors = Vectors(identity="hash", data=np.ones((1, 16_384), np.float32))
        with no_file_over(2_000_000), pytest.raises(NoRoom, match="free some disk space"):
            store.put_vectors([("default", "t1")], vectors)
        store.put_vectors([("default", "t1")], vectors)
