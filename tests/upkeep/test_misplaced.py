"""Files that are in the wrong space, or only look longer, bring nothing into a database: they are named, and put right."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mcp_memory.service.memory import open_memory
from mcp_memory.service.upkeep.rebuild import agreement
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.store.sqlite.store import open_store

Lived = Callable[[Path], Path]
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def rows(home: Path) -> list[object]:
    with closing(sqlite3.connect(home / "memory.db")) as con:
        return [
            con.execute(f"SELECT {what}").fetchall()
            for what in ("id, space, session, content FROM turn", "id, space, name FROM session", "name FROM space")
        ]


def told(home: Path) -> list[str]:
    with closing(open_store(home)) as store:
        return [*store.problems(), *agreement(home).problems]


def journals(home: Path) -> list[Path]:
    return [min((home / "spaces" / space / "conversations").glob("*.jsonl")) for space in ("default", "work")]


def test_the_journal_of_another_space_is_named_and_none_of_it_taken_in(home: Path, lived: Lived) -> None:
    before = rows(lived(home))
    ours, theirs = journals(home)
    first, second = ours.read_bytes(), theirs.read_bytes()
    ours.write_bytes(second + second.splitlines(keepends=True)[-1])
    theirs.write_bytes(first)
    assert any("has lines of the space work" in one for one in told(home))
    assert rows(home) == before

    repair(home, now=NOW)
    assert told(home) == []
    assert rows(home) == before
    assert (ours.read_bytes(), theirs.read_bytes()) == (first, second)


def test_a_folder_of_a_space_that_was_renamed_is_named_and_gets_its_name_back(home: Path, lived: Lived) -> None:
    before = rows(lived(home))
    (home / "spaces" / "work").rename(home / "spaces" / "work2")
    assert any("has lines of the space work" in one for one in told(home))

    done = repair(home, now=NOW)
    assert "The folder spaces/work2 has the files of the space work, and its name again." in done.mended
    assert done.left == []
    assert told(home) == []
    assert rows(home) == before
    assert not (home / "spaces" / "work2").exists()


@pytest.mark.parametrize("pattern", ["conversations/*.jsonl", "offload-*.jsonl", "canvases.jsonl", "tombstones.jsonl"])
@pytest.mark.parametrize("change", ["twice", "line ends", "mark"])
def test_lines_that_the_database_has_are_not_told_to_be_recovered(
    home: Path, lived: Lived, pattern: str, change: str
) -> None:
    before = rows(lived(home))
    path = min((home / "spaces" / "default").glob(pattern))
    held = path.read_bytes()
    changed = {"twice": held * 2, "line ends": held.replace(b"\n", b"\r\n"), "mark": b"\xef\xbb\xbf" + held}
    path.write_bytes(changed[change])
    with closing(open_store(home)) as store:
        assert store.recovered_lines == []
        assert store.recovered("default") == []
    assert rows(home) == before
    assert told(home) == []


async def test_a_session_that_has_ended_its_task_is_not_told_to_be_recovered(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        await memory.offload_tool_result("shell", "port 7\n" * 90, session="s", task="Fix the build")
        await memory.fold_canvas(task="Fix the build", action="complete", session="s")
    path = home / "spaces" / "default" / "canvases.jsonl"
    path.write_bytes(path.read_bytes() * 2)
    async with open_memory(home=home, embedder="none") as memory:
        assert (await memory.status())["recovered"] == []


def test_a_copy_of_a_journal_under_a_name_of_ones_own_is_none_of_ours(home: Path, lived: Lived) -> None:
    before = rows(lived(home))
    ours, _ = journals(home)
    ours.with_name(f"A {ours.name}").write_bytes(ours.read_bytes())
    assert told(home) == []
    done = repair(home, now=NOW)
    assert (done.mended, done.left, rows(home)) == ([], [], before)
