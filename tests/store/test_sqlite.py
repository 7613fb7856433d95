"""What only the embedded engine promises: processes that share a home, readers that cannot write, the schema."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.store.sql import home_rows, turn_rows
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.index.outlines import Outlines
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.values import Filters

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

WRITER = """
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.core.types import NewTurn

home, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
store = open_store(home)
for i in range(count):
    turn = NewTurn(role="user", content=f"{name} {i}", client_id=f"{name}-{i}")
    store.write("me", turn_rows.append, "shared", turn_rows.prepare([turn]), now=datetime.now(UTC))
    print(i, flush=True)
store.close()
"""


def writers(home: Path, names: list[str], count: int) -> list[subprocess.Popen[str]]:
    """Start writers that all wait for one starting shot, on a home that does not exist yet."""
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(home), name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return started


@pytest.mark.slow
def test_processes_that_start_together_on_an_empty_home_lose_nothing(home: Path) -> None:
    processes = writers(home, ["a", "b", "c"], 15)
    for process in processes:
        process.communicate(timeout=60)
        assert process.returncode == 0
    store = open_store(home)
    turns = store.read("me", turn_rows.session_turns, "shared", limit=1000)
    assert [turn.position for turn in turns] == list(range(45))
    for name in "abc":
        assert [t.content for t in turns if t.content[0] == name] == [f"{name} {i}" for i in range(15)]
    assert store.problems() == []
    journal = [line for path in store.folder("me").glob("conversations/*") for line in path.read_bytes().splitlines()]
    assert len(journal) == 45
    store.close()


def test_what_was_acknowledged_survives_a_kill(home: Path) -> None:
    (process,) = writers(home, ["k"], 10_000)
    assert process.stdout is not None
    acknowledged = [int(process.stdout.readline()) for _ in range(20)]
    os.kill(process.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in process.communicate(timeout=60)[0].split()]
    store = open_store(home)
    held = {turn.content for turn in store.read("me", turn_rows.session_turns, "shared", limit=20_000)}
    assert {f"k {i}" for i in acknowledged} <= held
    store.write("me", turn_rows.append, "shared", turn_rows.prepare([NewTurn(role="user", content="after")]), now=NOW)
    assert store.problems() == []
    store.close()


def test_a_reader_cannot_write(home: Path) -> None:
    database = Database(home)
    with pytest.raises(StoreUnavailable):
        database.read(lambda con: con.execute("INSERT INTO space (name) VALUES ('x')").fetchall())
    assert database.read(lambda con: con.execute("SELECT count(*) FROM space").get) == 0
    database.close()


def test_a_reader_sees_one_moment_and_waits_for_no_writer(home: Path) -> None:
    store = open_store(home)
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="one")]), now=NOW)
    database = Database(home)
    writing, may_end = threading.Event(), threading.Event()

    def hold(con: apsw.Connection) -> None:
        con.execute("DELETE FROM number")
        writing.set()
        assert may_end.wait(30)

    writer = threading.Thread(target=lambda: database.write(hold))
    writer.start()
    assert writing.wait(30)
    assert store.read("me", home_rows.last_change) == 1
    may_end.set()
    writer.join()
    database.close()
    store.close()


def test_a_reader_that_failed_half_way_holds_no_earlier_moment_for_the_next(home: Path) -> None:
    store = open_store(home)
    database = Database(home)
    turns = [NewTurn(role="user", content=f"{i}") for i in range(2)]
    store.write("me", turn_rows.append, "s", turn_rows.prepare(turns), now=NOW)

    def fails(con: apsw.Connection) -> None:
        rows = con.execute("SELECT id FROM turn")
        raise ValueError(f"in the middle, after {next(rows)}")

    held: list[ValueError] = []
    for _ in range(8):  # each of its connections
        with pytest.raises(ValueError, match="in the middle") as failed:
            database.read(fails)
        held.append(failed.value)  # and what its frames hold
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="after")]), now=NOW)
    seen = [database.read(lambda con: con.execute("SELECT count(*) FROM turn").get) for _ in held]
    assert seen == [3] * 8
    database.close()
    store.close()


def test_a_write_that_failed_half_way_through_a_query_keeps_nobody_from_writing(home: Path) -> None:
    store = open_store(home)
    database = Database(home)
    turns = [NewTurn(role="user", content=f"{i}") for i in range(2)]
    store.write("me", turn_rows.append, "s", turn_rows.prepare(turns), now=NOW)

    def fails(con: apsw.Connection) -> None:
        rows = con.execute("SELECT id FROM turn")
        raise ValueError(f"in the middle, after {next(rows)}")

    with pytest.raises(ValueError, match="in the middle") as failed:
        database.write(fails)
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="after")]), now=NOW)
    assert database.write(lambda con: con.execute("SELECT count(*) FROM turn").get) == 3
    assert failed.value.__traceback__ is not None  # what its frames hold is held until here
    database.close()
    store.close()


def test_a_reader_of_an_earlier_moment_can_use_what_a_later_one_learned(home: Path) -> None:
    store = open_store(home)
    earlier, later, outlines = Database(home), Database(home), Outlines()
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="one")]), now=NOW)

    def between(con: apsw.Connection) -> list[list[int]]:
        con.execute("SELECT count(*) FROM turn").fetchall()  # its moment is chosen
        store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="two")]), now=NOW)
        seen = [
            later.read(lambda newer: outlines.passing(SqliteTransaction(newer, home, "me"), Filters())),
            outlines.passing(SqliteTransaction(con, home, "me"), Filters()),
        ]
        return [rows.tolist() for rows in seen]

    assert earlier.read(between) == [[1, 2], [1, 2]]
    earlier.close()
    later.close()
    store.close()


def test_turns_cannot_be_rewritten_even_by_hand(home: Path) -> None:
    store = open_store(home)
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="one")]), now=NOW)
    database = Database(home)
    with pytest.raises(apsw.ConstraintError, match="never rewritten"):
        database.write(lambda con: con.execute("UPDATE turn SET content = 'two'").fetchall())
    database.close()
    store.close()


def test_a_change_of_words_outside_this_program_is_found(home: Path) -> None:
    store = open_store(home)
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="one")]), now=NOW)
    database = Database(home)

    def forge(con: apsw.Connection) -> None:
        con.execute("DROP TRIGGER turn_is_evidence; UPDATE turn SET content = 'two'")

    database.write(forge)
    assert store.problems() == [
        "me: Turn t1 does not match its hash: its words were changed outside this program. "
        "`mcp-memory doctor --repair` takes the words that its journal proves, and keeps this database.",
        "me: conversations/2026-11-20.jsonl is not what the database has; `mcp-memory doctor --repair` writes it from "
        "the database.",
    ]
    database.close()
    store.close()


def test_a_counter_that_was_lost_is_named_and_goes_on_behind_the_last_row(home: Path) -> None:
    store = open_store(home)
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="one")]), now=NOW)
    database = Database(home)
    database.write(lambda con: con.execute("DELETE FROM number WHERE kind = 'turn'").fetchall())
    database.close()
    assert any("the last number of turn rows is lost" in problem for problem in store.problems())
    store.repair(lambda path: None)
    assert store.problems() == []
    (turn,) = store.write(
        "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="two")]), now=NOW
    ).stored
    assert turn.id == "t2"
    store.close()


def test_a_write_that_fails_leaves_no_trace(home: Path) -> None:
    database = Database(home)

    def fail(con: apsw.Connection) -> None:
        con.execute("INSERT INTO space (name) VALUES ('x')")
        raise KeyError("in the middle")

    with pytest.raises(KeyError):
        database.write(fail)
    assert database.read(lambda con: con.execute("SELECT count(*) FROM space").get) == 0
    database.close()


# --- homes that cannot be used ----------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="modes")
def test_what_is_kept_is_its_users_alone_to_read_in_a_folder_that_all_can_look_into(home: Path) -> None:
    home.mkdir(mode=0o755, exist_ok=True)
    home.chmod(0o755)
    store = open_store(home)
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="Hello")]), now=NOW)
    assert {path.name: path.stat().st_mode & 0o077 for path in home.iterdir() if path.stat().st_mode & 0o077} == {}
    store.close()


def test_a_home_that_is_a_file_says_what_to_do(home: Path) -> None:
    home.write_text("not a folder")
    with pytest.raises(StoreUnavailable, match="MCP_MEMORY_HOME"):
        open_store(home)


def test_a_database_that_is_not_one_is_left_as_it_is(home: Path) -> None:
    home.mkdir()
    (home / "memory.db").write_bytes(b"this is not a database, it is a poem" * 99)
    with pytest.raises(StoreUnavailable, match="doctor"):
        open_store(home)
    assert (home / "memory.db").read_bytes() == b"this is not a database, it is a poem" * 99


def test_a_database_from_a_newer_version_is_refused_untouched(home: Path) -> None:
    database = Database(home)
    database.write(lambda con: con.execute("INSERT INTO migration VALUES ('9999-later', '2030')").fetchall())
    database.close()
    with pytest.raises(StoreUnavailable, match="newer mcp-memory"):
        open_store(home)


def test_a_full_disk_is_called_that(home: Path) -> None:
    database = Database(home)
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(
        StoreUnavailable, match=r"No room to write in .* \(No space left on device\).* free some disk space"
    ):
        database.write(lambda _: (_ for _ in ()).throw(full))
    database.close()


def test_a_closed_store_says_so(home: Path) -> None:
    store = open_store(home)
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        store.read("me", home_rows.last_change)


# --- the schema -------------------------------------------------------------------------------------


def test_a_database_from_before_the_first_release_is_refused_untouched_with_what_to_do(home: Path) -> None:
    home.mkdir()
    con = apsw.Connection(str(home / "memory.db"))
    con.execute(
        "CREATE TABLE migration (name TEXT PRIMARY KEY, at TEXT); INSERT INTO migration VALUES ('0001-first', '')"
    )
    con.close()
    with pytest.raises(StoreUnavailable, match=r"before the first release.*doctor --repair"):
        open_store(home)
    con = apsw.Connection(str(home / "memory.db"))
    assert con.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall() == [("migration",)]
    con.close()


def test_a_step_of_the_schema_that_fails_leaves_the_old_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(home).close()

    def half(con: apsw.Connection) -> None:
        con.execute("CREATE TABLE later (id)")
        raise apsw.FullError("disk full in the middle")

    monkeypatch.setattr("mcp_memory.store.sqlite.migrations.SCHEMA", [*SCHEMA, ("9999-later", half)])
    with pytest.raises(StoreUnavailable, match="free some disk space"):
        open_store(home)
    monkeypatch.undo()
    database = Database(home)
    assert not database.read(lambda con: con.table_exists("main", "later"))
    database.close()
