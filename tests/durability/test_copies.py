"""Copies of rows are written after the commit: whoever is killed before leaves them behind, and the next writes them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.shortterm.canvas.state import amend
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.sql import canvas_rows, job_rows, record_rows, ref_rows, tombstone_rows, turn_rows
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.sqlite import copies
from mcp_memory.store.sqlite.store import SQLiteStore, open_store
from tests.durability.filling import NOON, RESULT, SAID, capture, fill, keep, said


class Killed(BaseException):
    """The process is gone at this point; no code of ours may catch it."""


def files_of(home: Path) -> dict[str, bytes]:
    found = [path for path in (home / "spaces").rglob("*") if path.is_file()]
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in found}


def fold(store: SQLiteStore) -> None:
    amend(
        store,
        "default",
        store.read("default", canvas_rows.list_canvases)[0],
        lambda canvas: replace(canvas, folded=True),
        kind="folded",
    )


def forget(store: SQLiteStore) -> None:
    store.write("default", tombstone_rows.forget, ["t1"], reason="", now=NOON)


WRITES: list[Callable[[SQLiteStore], object]] = [lambda store: capture(store, "new"), fold, forget]


@pytest.fixture
def filled(home: Path) -> Path:
    anyio.run(fill, home)
    return home


def killed(*args: object, **given: object) -> None:
    raise Killed


@pytest.mark.parametrize("write", WRITES)
def test_copies_of_a_process_that_was_killed_after_its_commit_are_written_at_the_next_opening(
    filled: Path, tmp_path: Path, write: Callable[[SQLiteStore], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(filled, whole)
    with closing(open_store(whole)) as store:
        write(store)
    with closing(open_store(filled)) as store, monkeypatch.context() as patch:
        store.write("default", job_rows.flush, "first")  # it looks at the copies that the last transaction wrote
        patch.setattr(copies._Write, "run", killed)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(Killed):
            write(store)
        assert store.problems() != []
    with closing(open_store(filled)) as store, closing(open_store(whole)) as other:
        assert store.problems() == []
        assert said(store) == said(other)
        assert store.read("default", canvas_rows.list_canvases) == other.read("default", canvas_rows.list_canvases)


@pytest.mark.parametrize("write", [*WRITES, lambda store: keep(store, b"never")])
def test_a_transaction_that_fails_leaves_the_files_as_they_were(
    filled: Path, write: Callable[[SQLiteStore], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_of(filled)
    with closing(open_store(filled)) as store:
        monkeypatch.setattr(Transaction, "touch", killed)
        with pytest.raises(Killed):
            write(store)
        assert files_of(filled) == before
        assert (store.problems(), said(store)) == ([], SAID)


def test_another_process_writes_the_copies_that_a_killed_one_left_behind(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(filled)) as dying, closing(open_store(filled)) as living:
        dying.write("default", job_rows.flush, "first")
        with monkeypatch.context() as patch:
            patch.setattr(copies._Write, "run", killed)  # pyright: ignore[reportPrivateUsage]
            for write in (lambda: capture(dying, "from one"), lambda: fold(dying)):
                with pytest.raises(Killed):
                    write()
        capture(living, "from another")
        fold(living)
        assert living.problems() == []
        assert said(living) == [*SAID, "from one", "from another"]


def test_a_copy_that_cannot_be_written_keeps_nobody_from_writing_rows(filled: Path) -> None:
    journal = next((filled / "spaces").glob("*/conversations/*.jsonl"))
    content = journal.read_bytes()
    journal.unlink()
    journal.mkdir()
    (journal / "in the way").touch()
    with closing(open_store(filled)) as store:
        capture(store, "stored all the same")
        assert said(store) == [*SAID, "stored all the same"]
    shutil.rmtree(journal, ignore_errors=True)
    with closing(open_store(filled)) as store:
        capture(store, "and this")
        assert store.problems() == []
    assert journal.read_bytes().startswith(content)


# --- a database that is older than its files ----------------------------------------------------------


def older(home: Path, tmp_path: Path, *texts: str) -> Path:
    """Return a copy of a home with an older database: it lacks these turns, which its files have."""
    copy = tmp_path / "older"
    shutil.copytree(home, copy)
    store = open_store(home)
    store.write(
        "default",
        turn_rows.append,
        "first",
        turn_rows.prepare([NewTurn(role="user", content=text) for text in texts]),
        now=NOON,
    )
    store.close()
    shutil.copytree(home / "spaces", copy / "spaces", dirs_exist_ok=True)
    return copy


@pytest.mark.parametrize("after", [[], ["After it."]], ids=["at once", "after others were stored"])
def test_turns_that_an_older_database_lacks_are_kept_beside_and_added_by_a_repair(
    filled: Path, tmp_path: Path, after: list[str]
) -> None:
    home = older(filled, tmp_path, "Only in the journal.", "ok", "ok")
    with closing(open_store(home)) as store:
        assert said(store) == SAID
        (problem,) = store.problems()
        assert "2026-11-20.jsonl.beyond-1 has 3 lines, some of which the database may lack" in problem
        for text in after:
            capture(store, text)
    for _ in range(2):
        assert repair(home, now=NOON).left == []
        with closing(open_store(home)) as store:
            assert said(store) == [*SAID, *after, "Only in the journal.", "ok", "ok"]
            assert (store.kept_beside("default"), store.problems()) == ([], [])


def test_a_journal_that_was_edited_is_never_read_back(filled: Path) -> None:
    journal = next((filled / "spaces").glob("*/conversations/*.jsonl"))
    whole = journal.read_bytes()
    journal.write_bytes(whole.replace(b"bees", b"wasps"))
    with closing(open_store(filled)) as store:
        assert said(store) == SAID
        assert ["beyond-1 has 3 lines" in problem for problem in store.problems()] == [True]
    assert journal.read_bytes() == whole
    assert [b"wasps" in path.read_bytes() for path in journal.parent.glob("*.beyond-*")] == [True]


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
    with closing(open_store(filled)) as store:
        assert said(store) == SAID
        assert (
            store.read("default", ref_rows.read_bytes, store.read("default", record_rows.list_records)[0].ref or "")
            == RESULT
        )


# --- the folder -------------------------------------------------------------------------------------


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


def test_after_a_purge_a_line_is_appended_and_the_file_not_written_anew(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(filled)) as store:
        gone = store.write("default", tombstone_rows.forget, ["t1"], reason="", now=NOON)
        store.purge("default", Purge(tombstones=[gone.id]), now=NOON)
        offsets: list[tuple[str, int | None]] = []
        run = copies._Write.run  # pyright: ignore[reportPrivateUsage]

        def recorded(write: copies._Write) -> bool:  # pyright: ignore[reportPrivateUsage]
            offsets.append((write.path.name, write.offset))
            return run(write)

        monkeypatch.setattr(copies._Write, "run", recorded)  # pyright: ignore[reportPrivateUsage]
        for text in ("one", "two"):
            capture(store, text)
        journals = [offset for name, offset in offsets if name == "2026-11-20.jsonl"]
        assert (journals[0], journals[1] is not None) == (None, True)
        assert store.problems() == []


def test_what_a_purge_erased_never_comes_back_from_a_copy_that_is_behind(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(filled)) as store, monkeypatch.context() as patch:
        gone = store.write("default", tombstone_rows.forget, ["t1"], reason="", now=NOON)
        store.write("default", job_rows.flush, "first")
        patch.setattr(copies._Write, "run", killed)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(Killed):
            store.purge("default", Purge(tombstones=[gone.id]), now=NOON)
    journal = next((filled / "spaces/default/conversations").glob("*.jsonl"))
    erased = SAID[0].encode()
    assert erased in journal.read_bytes()
    kept = journal.with_name(f"{journal.name}.beyond-1")  # as an earlier version may have left it
    kept.write_bytes(journal.read_bytes())
    open_store(filled).close()
    assert erased not in journal.read_bytes()
    assert [path.name for path in journal.parent.glob("*.beyond-*")] == [kept.name]
    assert repair(filled, now=NOON).left == []
    with closing(open_store(filled)) as store:
        assert SAID[0] not in said(store)


def test_an_id_that_the_database_gave_to_another_turn_since_is_not_forgotten_in_its_place(
    filled: Path, tmp_path: Path
) -> None:
    home = tmp_path / "older"
    shutil.copytree(filled, home)
    with closing(open_store(filled)) as store:
        lost = capture(store, "Lost, and forgotten.")
        store.write("default", tombstone_rows.forget, [lost], reason="", now=NOON)
    shutil.copytree(filled / "spaces", home / "spaces", dirs_exist_ok=True)
    with closing(open_store(home)) as store:
        assert capture(store, "Another turn.") == lost
    assert repair(home, now=NOON).left == []
    with closing(open_store(home)) as store:
        assert said(store) == [*SAID, "Another turn."]
        assert store.problems() == []
