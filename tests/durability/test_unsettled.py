"""What a transaction wrote to files and never committed: the next one undoes it, and nothing else."""

from __future__ import annotations

import os
import shutil
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import apsw
import pytest
from mcp_memory.store.sqlite.upkeep.recovery import settle_files
from mcp_memory.store.write_intents import left, note

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.shortterm.canvas.state import amend
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.store import SQLiteStore, open_store
from tests.durability.filling import NOON, RESULT, SAID, capture, fill, keep, said


class Killed(BaseException):
    """The process is gone at this point; no code of ours may catch it."""


def files_of(home: Path) -> dict[str, bytes]:
    found = [path for path in (home / "spaces").rglob("*") if path.is_file()]
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in found}


def fold(store: SQLiteStore) -> None:
    amend(store, "default", store.canvases("default")[0], lambda held: replace(held, folded=True), kind="folded")


@pytest.fixture
def filled(home: Path) -> Path:
    anyio.run(fill, home)
    return home


@pytest.fixture
def cut_short(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home where a process died in the middle of each kind of write, after the file and before the commit."""
    store = open_store(filled)
    monkeypatch.setattr(Transaction, "touch", killed)
    monkeypatch.setattr("mcp_memory.store.sqlite.upkeep.recovery.settle_files", settles_nothing)
    for write in (lambda: capture(store, "never"), lambda: keep(store, b"never"), lambda: fold(store)):
        with pytest.raises(Killed):
            write()
    store.close()
    monkeypatch.undo()
    return filled


def killed(*args: object, **given: object) -> None:
    raise Killed


def settles_nothing(*args: object) -> list[Path]:
    return []


def test_what_was_never_committed_is_gone_from_the_files_when_the_next_one_opens_the_home(filled: Path) -> None:
    before = files_of(filled)
    with pytest.MonkeyPatch.context() as patch:
        store = open_store(filled)
        patch.setattr(Transaction, "touch", killed)
        # Each write finds the mark of the one before, as the next process would.
        for write in (lambda: keep(store, b"never"), lambda: fold(store), lambda: capture(store, "never")):
            with pytest.raises(Killed):
                write()
        store.close()
    assert files_of(filled) != before
    store = open_store(filled)
    assert files_of(filled) == before
    assert list((filled / "unsettled").iterdir()) == []
    assert (store.problems(), said(store)) == ([], SAID)
    store.close()


def test_marks_of_several_that_died_are_settled_together(cut_short: Path) -> None:
    store = open_store(cut_short)
    assert list((cut_short / "unsettled").iterdir()) == []
    assert (store.problems(), said(store)) == ([], SAID)
    assert [path.name for path in store.folder("default").glob("refs/*")] == [
        Path(store.ref("default", store.records("default")[0].ref or "").path).name
    ]
    store.close()


def test_a_mark_stands_until_what_settled_it_is_committed(cut_short: Path) -> None:
    marks = sorted(left(cut_short))
    con = apsw.Connection(str(cut_short / "memory.db"))
    con.execute("BEGIN IMMEDIATE")
    assert sorted(settle_files(con, cut_short, marks)) == marks
    con.close()  # killed before its commit
    assert sorted(left(cut_short)) == marks
    store = open_store(cut_short)
    assert (left(cut_short), store.problems(), said(store)) == ([], [], SAID)
    store.close()


def test_a_write_that_fails_and_one_that_goes_well_leave_no_mark(filled: Path) -> None:
    store = open_store(filled)
    capture(store, "more")
    keep(store, RESULT + b"!")
    assert list((filled / "unsettled").iterdir()) == []
    store.close()


def behind(home: Path, tmp_path: Path, *texts: str) -> Path:
    """Return a copy of a home whose database has lost what its files have since."""
    older = tmp_path / "older"
    shutil.copytree(home, older)
    store = open_store(home)
    store.append_turns("default", "first", [NewTurn(role="user", content=text) for text in texts], now=NOON)
    store.close()
    shutil.copytree(home / "spaces", older / "spaces", dirs_exist_ok=True)
    return older


def test_lines_that_the_database_has_lost_come_back_when_it_is_opened_and_are_told_of(
    filled: Path, tmp_path: Path
) -> None:
    older = behind(filled, tmp_path, "Only in the journal.", "And this.")
    files, whole = files_of(older), open_store(filled)
    store = open_store(older)
    assert said(store) == said(whole) == [*SAID, "Only in the journal.", "And this."]
    assert store.session_turns("default", "first") == whole.session_turns("default", "first")
    assert files_of(older) == files
    assert [(one.path, one.lines, one.renumbered) for one in store.recovered("default")] == [
        ("conversations/2026-11-20.jsonl", 2, 0)
    ]
    assert (capture(store, "After it."), store.problems()) == (capture(whole, "After it."), [])
    store.close()
    whole.close()


def test_they_come_back_where_others_have_their_numbers_too(filled: Path, tmp_path: Path) -> None:
    """As in a home in which an earlier version moved them aside and wrote on."""
    older = behind(filled, tmp_path, "Only in the journal.", "ok", "ok")
    (journal,) = (older / "spaces" / "default" / "conversations").glob("2026-11-20.jsonl")
    with closing(apsw.Connection(str(older / "memory.db"))) as con:
        length = con.execute("SELECT bytes FROM file WHERE path LIKE 'conversations/2026-11-20%'").get or 0
    lines = journal.read_bytes()
    journal.write_bytes(lines[:length])
    (journal.parent / f"{journal.name}.beyond-1").write_bytes(lines[length:])
    store = open_store(older)
    capture(store, "After it.")
    (problem,) = store.problems()
    assert "beyond-1 has 3 lines that were moved aside. `mcp-memory doctor --repair`" in problem
    assert store.set_aside("default") == [f"{journal.name}.beyond-1"]
    store.close()
    for _ in range(2):
        done = repair(older, now=NOON)
        assert done.left == []
        store = open_store(older)
        assert said(store) == [*SAID, "After it.", "Only in the journal.", "ok", "ok"]
        assert (store.set_aside("default"), store.problems()) == ([], [])
        store.close()


def test_lines_that_were_committed_outlive_a_writer_that_died_on_a_database_that_had_lost_them(
    filled: Path, tmp_path: Path
) -> None:
    older = behind(filled, tmp_path, "Only in the journal.")
    journal = older / "spaces" / "default" / "conversations" / "2026-11-20.jsonl"
    length = journal.stat().st_size
    with journal.open("ab") as file:
        file.write(b'{"never": "committed"}\n')
    mark = older / "unsettled" / "1-1-aaaaaaaa"
    mark.parent.mkdir(exist_ok=True)
    mark.write_bytes(b"+%d:spaces/default/conversations/2026-11-20.jsonl\n" % length)
    store = open_store(older)
    assert (said(store), store.problems()) == ([*SAID, "Only in the journal."], [])
    assert journal.stat().st_size == length
    store.close()


@pytest.mark.parametrize("how", ["deleted", "emptied"])
def test_a_home_whose_database_is_gone_is_not_begun_anew(filled: Path, how: str) -> None:
    before = files_of(filled)
    (filled / "memory.db").unlink()
    if how == "emptied":
        (filled / "memory.db").touch()
    with pytest.raises(StoreUnavailable, match="doctor --repair"):
        open_store(filled)
    assert files_of(filled) == before
    assert repair(filled, now=NOON).left == []
    store = open_store(filled)
    assert said(store) == SAID
    store.close()


@pytest.mark.skipif(os.name == "nt", reason="modes")
def test_a_home_of_before_is_made_private_when_it_is_opened(filled: Path) -> None:
    for path in (filled, filled / "spaces", filled / "memory.db"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    open_store(filled).close()
    assert {path.stat().st_mode & 0o077 for path in (filled, filled / "spaces", filled / "memory.db")} == {0}


@pytest.mark.skipif(os.name == "nt", reason="modes")
def test_a_home_that_is_set_up_to_be_shared_stays_so(filled: Path) -> None:
    filled.chmod(0o2770)
    open_store(filled).close()
    assert filled.stat().st_mode & 0o7777 == 0o2770


def test_lines_of_one_who_died_while_another_waited_to_write_are_undone_by_that_one(filled: Path) -> None:
    """The one who waits had looked for marks before there was any."""
    store, dying = open_store(filled), Database(filled)
    journal = next((filled / "spaces").glob("*/conversations/*.jsonl"))
    before = journal.read_bytes()
    begun, gone = threading.Event(), threading.Event()

    def die(con: apsw.Connection) -> None:
        note(journal, whole=False)
        with journal.open("ab") as file:
            file.write(b'{"never": "committed"}\n')
        begun.set()
        gone.wait(10)
        raise Killed

    def killed_in_the_middle() -> None:
        with pytest.raises(Killed):
            dying.write(die)

    first = threading.Thread(target=killed_in_the_middle)
    first.start()
    assert begun.wait(10)
    second = threading.Thread(target=lambda: capture(store, "after"))
    second.start()
    gone.set()
    first.join()
    second.join()
    store.close()
    dying.close()
    assert journal.read_bytes().startswith(before)
    assert b"never" not in journal.read_bytes()
    assert not list(journal.parent.glob("*.beyond-*"))
