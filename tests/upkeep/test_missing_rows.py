"""A database that lost rows which others point at keeps those others, and says by name what it lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_memory.cli.doctor import run_checks
from mcp_memory.core.errors import McpMemoryError, StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.service.upkeep.rebuild import rebuild
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.store.sql import atom_rows, canvas_rows, page_rows, tombstone_rows
from mcp_memory.store.sqlite.store import open_store
from tests.portable.homes import fill, memory

NOW = datetime(2026, 5, 8, 8, 0, tzinfo=UTC)
KEPT = (
    "turn",
    "atom",
    "fact",
    "evidence",
    "scene",
    "persona",
    "ref",
    "record",
    "canvas",
    "space",
    "session",
    "mention",
)

COLUMNS = {"ref": "space, id, path, sha256, tombstone"}  # results are indexed anew in the background


@pytest.fixture
def filled(home: Path) -> Path:
    """A home with something of everything in each of three spaces."""

    async def live() -> None:
        for space in ("one", "two", "three"):
            async with memory(home, space) as held:
                await (fill(held) if space == "one" else held.remember(f"Ana is in {space}", typed=True))
                await held.record_turns([NewTurn(role="user", content=f"Said in {space}.")], session=f"of {space}")

    anyio.run(live)
    repair(home, now=NOW)
    return home


def rows(home: Path, *but: str) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(home / "memory.db")) as con:
        return {
            table: con.execute(f"SELECT {COLUMNS.get(table, '*')} FROM {table} ORDER BY 1, 2").fetchall()
            for table in KEPT
            if table not in but
        }


def spoil(home: Path, sql: str) -> None:
    with closing(sqlite3.connect(home / "memory.db")) as con, con:
        con.execute("DROP TRIGGER turn_is_evidence")
        con.execute(sql)


@pytest.mark.parametrize("sql", ["DELETE FROM turn", "DELETE FROM session"])
def test_what_rests_on_rows_that_can_be_made_again_is_kept(filled: Path, sql: str) -> None:
    before = rows(filled)
    spoil(filled, sql)
    done = repair(filled, now=NOW)
    assert done.left == []
    assert rows(filled) == before
    assert "Lost" not in str(done.mended)


@pytest.mark.parametrize(
    ("sql", "columns"),
    [("UPDATE atom SET superseded_by = 99999", "superseded_by"), ("UPDATE atom SET tombstone = 0", "tombstone")],
)
def test_a_reference_to_nothing_is_cleared_and_its_row_kept(filled: Path, sql: str, columns: str) -> None:
    before = rows(filled, "atom")
    spoil(filled, sql)
    done = repair(filled, now=NOW)
    assert done.left == []
    assert rows(filled, "atom") == before
    with closing(sqlite3.connect(filled / "memory.db")) as con:
        assert con.execute(f"SELECT count(*), sum({columns} > 90) FROM atom").fetchone()[1] in (None, 0)
        assert con.execute("SELECT count(*) FROM atom").fetchone()[0] == 6


def test_what_is_lost_is_named(filled: Path) -> None:
    spoil(filled, "DELETE FROM atom WHERE work IS NOT NULL")
    done = repair(filled, now=NOW)
    assert done.left == []
    assert "Lost: Rows that referred to missing rows: 1 of evidence, 1 of fact, 1 of mention." in str(done.mended)


def test_a_space_that_lost_its_name_is_named_and_nothing_is_changed(filled: Path) -> None:
    whole = rows(filled)
    spoil(filled, "DELETE FROM space WHERE id = 2")
    before = rows(filled)
    assert any(check.state == "fail" for check in run_checks(home=str(filled), embedder="none"))
    with pytest.raises(StoreUnavailable, match=r"has lost the name of space 2\. Nothing was changed"):
        repair(filled, now=NOW)
    assert rows(filled) == before
    (filled / "memory.db").rename(filled / "damaged.db")
    assert repair(filled, now=NOW).left == []
    assert sorted(str(row[5]) for row in rows(filled)["turn"]) == sorted(str(row[5]) for row in whole["turn"])


def test_what_was_forgotten_stays_forgotten_where_its_tombstone_is_lost(filled: Path) -> None:
    with closing(open_store(filled)) as store:
        gone = store.write("one", tombstone_rows.forget, ["a4"], reason="", now=NOW)
    (filled / "spaces/one/tombstones.jsonl").unlink()
    spoil(filled, "DELETE FROM tombstone")
    assert repair(filled, now=NOW).left == []
    with closing(open_store(filled)) as store:
        assert store.read("one", atom_rows.by_ids, ["a4"]) == []
        store.write("one", tombstone_rows.undo, gone.id, now=NOW)
        assert [atom.id for atom in store.read("one", atom_rows.by_ids, ["a4"])] == ["a4"]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE scene SET slug = 'a' || char(0) || 'b'",
        "UPDATE canvas SET label = 'a' || char(0) || 'b'",
        "UPDATE session SET name = 'a' || char(0) || 'b' WHERE id = 2",
    ],
)
def test_a_name_with_a_character_that_no_file_can_have_is_told_and_mended(
    filled: Path, sql: str, tmp_path: Path
) -> None:
    before = rows(filled, "scene", "canvas")
    spoil(filled, sql)
    found = [check.found for check in run_checks(home=str(filled), embedder="none") if check.state == "fail"]
    assert found
    assert "\0" not in "".join(found)

    async def export() -> None:
        async with memory(filled, "one") as held:
            await held.export(tmp_path / f"{len(list(tmp_path.iterdir()))}.zip")

    with suppress(McpMemoryError):  # refused or not, it ends in a sentence
        anyio.run(export)
    with suppress(McpMemoryError):
        rebuild(filled, check=True, now=NOW)
    assert repair(filled, now=NOW).left == []
    assert rows(filled, "scene", "canvas") == before
    with closing(open_store(filled)) as store:
        assert [scene.title for scene in store.read("one", page_rows.scenes)] == ["Moving"]
        assert [canvas.number for canvas in store.read("one", canvas_rows.list_canvases)] == [1]
    anyio.run(export)
