"""What doctor finds is mended where it can be, the rest is named, and nothing that was there is lost."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import anyio
import apsw
import pytest

from mcp_memory.cli.doctor import run_checks
from mcp_memory.core.errors import NotFound
from mcp_memory.service.upkeep.repair import Repaired, repair
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.sql import tombstone_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store
from tests.portable.homes import lived_in, memory
from tests.upkeep.conftest import NOW, Lived, backed_up, problems


def repaired(home: Path) -> Repaired:
    """Repair, and again: the second time there is nothing to do."""
    done = repair(home, now=NOW)
    again = repair(home, now=NOW)
    assert (again.mended, again.left, again.aside) == ([], done.left, None)
    return done


def every_file(home: Path) -> set[str]:
    """The contents of all files of the spaces and of what was set aside, by their hashes."""
    folders = [home / "spaces", *(home / "backups").glob("aside-*")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return {hashlib.sha256(path.read_bytes()).hexdigest() for path in files if not path.name.startswith("memory.db")}


def test_a_sound_home_is_left_as_it_is(home: Path, lived: Lived) -> None:
    lived(home)
    before = every_file(home)
    done = repaired(home)
    assert (done.mended, done.left, done.aside, done.rebuilt) == ([], [], None, None)
    assert every_file(home) == before


def test_what_rows_can_make_again_is_made_again_and_what_was_there_is_kept(home: Path, lived: Lived) -> None:
    folder = lived(home) / "spaces/default"
    (folder / "conversations/2026-03-01.jsonl").unlink()
    torn = folder / "offload-trip.jsonl"
    torn.write_bytes(torn.read_bytes()[:40])
    first, second = sorted((folder / "mmds").iterdir())
    first.unlink()
    second.write_bytes(b"flowchart TD\n  edited by hand\n")
    (folder / "scenes").mkdir()
    (folder / "scenes/left.md").write_bytes(b'---\ncreated: "x"\natoms: []\n---\n')
    os.utime(folder / "scenes/left.md", (0, 0))
    before = every_file(home) - {hashlib.sha256(torn.read_bytes()).hexdigest()}  # the rows have all of it
    assert len(problems(home)) == 3  # line files that are behind were written when it was opened
    done = repaired(home)
    assert len(done.mended) == 3
    assert done.left == problems(home) == []
    assert done.aside is not None
    assert before <= every_file(home)


def test_rows_that_the_word_index_lacks_or_has_too_many_of(home: Path, lived: Lived) -> None:
    lived(home)
    con = apsw.Connection(str(home / "memory.db"))
    con.execute("DELETE FROM turn_terms WHERE rowid = 1 << 40 | 1; DELETE FROM atom_terms WHERE rowid = 1 << 40 | 1")
    con.execute("DELETE FROM chunk_terms")
    con.close()
    assert len(problems(home)) == 3
    done = repaired(home)
    assert len(done.mended) == 3
    assert problems(home) == []


def test_results_come_back_from_the_newest_backup_that_has_them(home: Path, lived: Lived) -> None:
    lived(home)
    backed_up(home)
    first, second, *_ = sorted((home / "spaces/default/refs").iterdir())
    held = first.read_bytes(), second.read_bytes()
    first.unlink()
    second.write_bytes(held[1][:-3])
    done = repaired(home)
    assert (first.read_bytes(), second.read_bytes()) == held
    assert [line.split(" is restored")[0] for line in done.mended] == [
        f"default/refs/{first.name}",
        f"default/refs/{second.name}",
    ]
    assert done.aside is not None
    assert (done.aside / "spaces/default/refs" / second.name).read_bytes() == held[1][:-3]


def test_a_backup_that_is_torn_gives_the_results_that_are_whole_in_it(home: Path, lived: Lived) -> None:
    lived(home)
    backed_up(home)
    torn, whole, *_ = sorted((home / "spaces/default/refs").iterdir())
    (backup,) = (home / "backups").glob("*.zip")
    with zipfile.ZipFile(backup) as packed:
        info = packed.getinfo(torn.relative_to(home).as_posix())
    with backup.open("r+b") as file:
        file.seek(info.header_offset + 30 + len(info.filename))
        file.write(b"\xff" * info.compress_size)
    held = whole.read_bytes()
    torn.unlink()
    whole.unlink()
    done = repair(home, now=NOW)
    assert whole.read_bytes() == held
    assert [torn.name in line for line in done.left] == [True]


def test_a_damaged_result_that_no_backup_has_can_be_forgotten_or_moved_away(home: Path, lived: Lived) -> None:
    lived(home)
    damaged, other = sorted((home / "spaces").glob("*/refs/*.md"))[:2]
    damaged.write_bytes(damaged.read_bytes()[:-3])
    (found,) = repaired(home).left
    assert re.search(
        r"is damaged: .* `mcp-memory doctor --repair` restores it from a backup; else `mcp-memory forget r-\w+`\.$",
        found,
    )
    store = open_store(home)
    store.write(
        damaged.parent.parent.name,
        tombstone_rows.forget,
        [found.partition("The file of ")[2].split()[0]],
        reason="",
        now=NOW,
    )
    store.close()
    assert problems(home) == []
    stray = other.with_name(f"2026-01-01-{other.name}")
    stray.write_bytes(damaged.read_bytes())
    os.utime(stray, (0, 0))
    (found,) = problems(home)
    assert found.endswith("belongs to no row; `mcp-memory doctor --repair` moves it to quarantine.")


def test_a_canvas_that_was_changed_outside_is_drawn_anew(home: Path, lived: Lived) -> None:
    lived(home)
    con = apsw.Connection(str(home / "memory.db"))
    con.execute("UPDATE canvas SET text = 'nonsense' WHERE space = 1 AND number = 1")
    con.close()
    done = repaired(home)
    assert "default: canvas 001-fix-the-build is redrawn from its records." in done.mended
    assert done.left == []


@pytest.mark.parametrize("backup", [True, False], ids=["with a backup", "without"])
@pytest.mark.parametrize("damage", ["gone", "no database", "a torn page", "cut off"])
def test_a_damaged_database_is_made_anew_of_its_files(home: Path, lived: Lived, damage: str, backup: bool) -> None:
    lived(home)
    if backup:
        backed_up(home)
    path = home / "memory.db"
    said = rows(path)
    match damage:
        case "gone":
            path.unlink()
        case "no database":
            path.write_bytes(b"nothing of the kind" * 1_000)
        case "a torn page":
            page = page_of(path, "turn")
            with path.open("r+b") as file:
                file.seek(page * 4096 - 4096)
                file.write(b"\xff" * 4096)
        case _:
            path.write_bytes(path.read_bytes()[: 40 * 4096])
    done = repaired(home)
    assert done.rebuilt is not None
    assert done.rebuilt.damage
    assert (done.rebuilt.source or "").endswith(".zip") == backup
    assert rows(path) == said
    assert done.left == []


def rows(path: Path) -> list[list[object]]:
    con = sqlite3.connect(path)
    try:
        return [
            con.execute(sql).fetchall()
            for sql in (
                "SELECT id, position, role, content, said_at, sha256, tombstone IS NULL FROM turn ORDER BY id",
                "SELECT id, text, valid_to, superseded_by, tombstone IS NULL FROM atom ORDER BY id",
                "SELECT atom, entity, relation, value, valid_to FROM fact ORDER BY atom",
                "SELECT id, path, sha256 FROM ref ORDER BY space, id",
                "SELECT id, node, summary, step FROM record ORDER BY id",
                "SELECT number, label, text, status, folded, groups, updated FROM canvas ORDER BY space, number",
                "SELECT id, reason, at, undone_at FROM tombstone ORDER BY id",
            )
        ]
    finally:
        con.close()


def page_of(path: Path, table: str) -> int:
    con = sqlite3.connect(path)
    try:
        return con.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
    finally:
        con.close()


def test_a_home_copied_without_its_log_of_writes_gets_what_the_files_have(home: Path, lived: Lived) -> None:
    lived(home)
    early = (home / "memory.db").read_bytes()
    store = open_store(home)
    from mcp_memory.core.types import NewTurn

    store.write(
        "default", turn_rows.append, "late", turn_rows.prepare([NewTurn(role="user", content="Said later.")]), now=NOW
    )
    store.write(
        "default",
        turn_rows.append,
        "trip",
        turn_rows.prepare([NewTurn(role="user", content="And this.")]),
        now=datetime(2026, 3, 1, tzinfo=UTC),
    )
    store.close()
    late = rows(home / "memory.db")
    (home / "memory.db").write_bytes(early)
    done = repaired(home)
    assert done.rebuilt is not None
    assert (done.rebuilt.added, done.rebuilt.damage) == ({"turns": 2}, [])
    assert rows(home / "memory.db") == late
    assert done.left == []


def test_the_working_copies_of_what_was_killed_are_deleted(home: Path, lived: Lived) -> None:
    lived(home)
    backed_up(home)
    kept = every_file(home)
    for name in (".rebuild-x.tmp/new", ".restore-y.tmp/spaces", "backups/.mcp-memory-z.tmp"):
        (home / name).mkdir(parents=True)
        (home / name / "copy").write_bytes(b"half of it")
    (home / "backups/.mcp-memory-w.tmp").write_bytes(b"half of it")
    assert len(repaired(home).mended) == 4
    assert [path.name for path in home.rglob(".*")] == []
    assert every_file(home) == kept


def test_where_there_is_nothing_nothing_is_made(home: Path) -> None:
    with pytest.raises(NotFound, match="There is no memory"):
        repair(home, now=NOW)
    assert not home.exists()


@pytest.mark.parametrize("purged", [False, True], ids=["forgotten", "purged"])
def test_what_was_forgotten_since_the_backup_that_stands_in_stays_forgotten(home: Path, purged: bool) -> None:
    async def live() -> None:
        async with lived_in(home):
            pass

    async def forget() -> tuple[str, str, str]:
        async with memory(home) as held:
            drawn = next(one for one in await held.atoms() if one.text == "Maya lives in Lisbon")
            kept = next(one.ref for one in await held.records() if one.ref)
            gone = await held.forget([drawn.id, drawn.evidence, kept])
            assert gone.tombstone
            if purged:
                await held.purge([gone.tombstone])
            return drawn.id, kept, gone.tombstone

    async def look(atom: str, ref: str, tombstone: str) -> None:
        async with memory(home) as held:
            assert "Lisbon" not in str(await held.memory_search("Where does Maya live?"))
            for gone in (held.atom(atom), held.ref(ref)):
                with pytest.raises(NotFound):
                    await gone
            if purged:
                assert (await held.purge([tombstone])).is_proven
            else:
                await held.forget(undo=tombstone)
                assert (await held.atom(atom)).text == "Maya lives in Lisbon"

    anyio.run(live)
    backed_up(home)
    gone = anyio.run(forget)
    (home / "memory.db").write_bytes(b"torn" * 4_096)
    done = repair(home, now=NOW)
    assert done.left == []
    assert done.rebuilt is not None
    assert [gone[2] in one for one in done.rebuilt.back] == ([True] if purged else [])
    anyio.run(look, *gone)


def test_a_purge_that_was_killed_is_told_by_doctor_and_finished(home: Path, lived: Lived) -> None:
    store = open_store(lived(home))
    gone = store.write("default", tombstone_rows.forget, ["t1"], reason="", now=NOW)
    store.purge("default", Purge(tombstones=[gone.id]), now=NOW)  # and no more: it is killed here
    store.close()
    assert [check.name for check in run_checks(home=str(home)) if check.state == "warn"].count("purge") == 1
    assert [line for line in repaired(home).mended if line.startswith("An interrupted purge is finished.")]
    assert "purge" not in [check.name for check in run_checks(home=str(home))]


def test_a_folder_in_the_place_of_the_file_that_says_which_memory_this_is_is_named_and_set_aside(
    home: Path, lived: Lived
) -> None:
    path = lived(home) / "identity.json"
    held = path.read_bytes()
    path.unlink()
    path.mkdir()
    (path / "kept.txt").touch()
    assert [line.split()[0] for line in problems(home)] == ["identity.json"]
    done = repaired(home)
    assert done.mended == ["identity.json was not a file: it is rewritten, and the old entry kept."]
    assert (done.left, path.read_bytes()) == ([], held)
