"""A change of one byte of a copy, or of one value of a row that copies show, is named with a next step."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.cli.doctor import run_checks
from mcp_memory.service.upkeep.backup import back_up
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.service.upkeep.restore import restore
from mcp_memory.store.sqlite.store import open_store
from tests.upkeep.conftest import NOW, Lived, problems

# Columns whose values are in copies of rows, or are proven by a hash or by other columns.
CHANGES = {
    "turn": "position role name content client_id said_at dated learned_at sha256 told",
    "atom": "text folded tombstone",
    "fact": "entity entity_key valid_from valid_to tombstone",
    "evidence": "span_start span_end",
    "ref": "path tool arguments session timestamp bytes sha256 content_type masked",
    "record": "canvas node tool_call summary result_ref tool_call_id timestamp score tokens_raw tokens_kept ref"
    " summary_by step",
    "canvas": "label text status folded groups updated version",
    "canvas_version": "kind detail label status folded updated crc delta",
    "session": "name active_canvas activated_at",
    "tombstone": "reason at undone_at purged_at",
}
_OTHER: dict[str, Any] = {
    "role": "system",
    "kind": "persona",
    "source": "web",
    "told": '{"atom": "a1"}',
    "arguments": '{"other": 1}',
    "masked": "[[1, 2, 'key']]",
    "groups": '{"other": []}',
    "sha256": b"0" * 32,
    "status": "paused",
    "step": "{}",
    "delta": '"other"',
    "timestamp": "2026-03-01T10:00:00+00:00",
    "at": "2026-03-01T10:00:00+00:00",
    "undone_at": "2026-03-01T10:00:00+00:00",
    "learned_at": 5,
    "purged_at": 5,
}
_NUMBERS = {("canvas", "folded"): 0, ("tombstone", "at"): 5, ("tombstone", "undone_at"): 5, ("ref", "sha256"): "0" * 64}


def changed(home: Path, table: str, column: str) -> None:
    """Change one value of one row, as a hand or a fault would: past the program and its triggers."""
    with closing(sqlite3.connect(home / "memory.db")) as con, con:
        con.execute("DROP TRIGGER turn_is_evidence")
        con.execute("PRAGMA ignore_check_constraints = ON")
        key = ", ".join(name for (name,) in con.execute("SELECT name FROM pragma_table_info(?) WHERE pk", (table,)))
        *of, old = con.execute(
            f"SELECT {key}, {column} FROM {table} ORDER BY {column} IS NULL, {key} LIMIT 1"
        ).fetchone()
        new = _NUMBERS.get((table, column), _OTHER.get(column))
        if new is None or new == old:
            new = old + 1_000 if isinstance(old, int) else old / 2 if isinstance(old, float) else f"{old or ''}x"
        if (old is None or column == "tombstone") and column in (
            *("valid_to", "superseded_by", "tombstone", "activated_at", "active_canvas", "updated"),
        ):
            new = 1
        con.execute(f"UPDATE {table} SET {column} = ? WHERE ({key}) = ({', '.join('?' * len(of))})", (new, *of))


@pytest.mark.parametrize(
    ("table", "column"), [(table, column) for table, columns in CHANGES.items() for column in columns.split()]
)
def test_a_value_that_was_changed_is_told_with_what_to_do_next(
    home: Path, lived: Lived, table: str, column: str
) -> None:
    lived(home)
    changed(home, table, column)
    found = problems(home)
    assert found
    assert all("`mcp-memory " in line or "refers to a missing row" in line for line in found)


def words_of(home: Path) -> Iterator[tuple[Path, int]]:
    """Yield a place in the middle of a word of each kind of file."""
    folder = home / "spaces" / "work"
    for pattern in (*("conversations/*.jsonl", "offload-*.jsonl", "canvases.jsonl", "tombstones.jsonl"),
                    *("refs/*.md", "mmds/*.mmd")):  # fmt: skip
        path = sorted(folder.glob(pattern))[0]
        letters = [match.start() for match in re.finditer(rb"(?<=[a-z])[a-z](?=[a-z])", path.read_bytes())]
        # Of lines about the same thing the last counts, so these are of the end.
        last = (0.9, 0.93, 0.96, 0.99) if path.stem == "tombstones" else (0.85, 0.9, 0.95, 0.99)
        for share in (0.1, 0.4, 0.7, 0.95) if pattern[:4] in ("conv", "refs", "mmds") else last:
            yield path.relative_to(home), letters[int(share * len(letters))]


PLACES = range(24)


@pytest.mark.parametrize("number", PLACES)
def test_a_letter_that_was_changed_in_any_file_is_told(home: Path, lived: Lived, number: int) -> None:
    path, place = list(words_of(lived(home)))[number]
    data = bytearray((home / path).read_bytes())
    data[place] = ord("q") if data[place] != ord("q") else ord("z")
    (home / path).write_bytes(bytes(data))
    assert [line for line in problems(home) if "`mcp-memory " in line]


def test_a_turn_that_was_changed_outside_is_as_its_journal_proves_after_a_repair(home: Path, lived: Lived) -> None:
    lived(home)
    journals = {path: path.read_bytes() for path in (home / "spaces").glob("*/conversations/*")}
    changed(home, "turn", "content")
    assert repair(home, now=NOW).left == []
    assert problems(home) == []
    assert {path: path.read_bytes() for path in journals} == journals


def test_files_of_no_row_are_set_aside_once_nobody_can_be_writing_them(home: Path, lived: Lived) -> None:
    folder = lived(home) / "spaces" / "default"
    canvas, result = min((folder / "mmds").iterdir()), min((folder / "refs").iterdir())
    for path in (canvas.with_name(f"009-{canvas.name[4:]}"), result.with_name(f"2020-{result.name}")):
        path.write_bytes(result.read_bytes())
        assert problems(home) == []
        os.utime(path, (0, 0))
        assert [f"{path.name} belongs to no row" in problem for problem in problems(home)] == [True]
        done = repair(home, now=NOW)
        assert (done.left, path.exists()) == ([], False)


@pytest.mark.parametrize("page", [None, "The page of an hour ago.\n"])
def test_a_page_about_the_user_that_is_behind_is_told_and_is_no_damage(
    home: Path, lived: Lived, page: str | None
) -> None:
    """A program that is killed after a write has not made the page yet; whoever distils next does."""
    path = lived(home) / "spaces" / "default" / "persona.md"
    held = path.read_bytes()
    path.unlink()
    if page is not None:
        path.write_text(page)
    assert problems(home) == []
    checks = [check for check in run_checks(home=str(home), embedder="none") if check.name == "files"]
    assert [(check.state, "persona.md is missing, or not the current" in check.found) for check in checks] == [
        ("warn", True),
        ("ok", False),
    ]
    repair(home, now=NOW)
    assert path.read_bytes() == held


def test_the_page_about_the_user_comes_back_with_a_backup(home: Path, lived: Lived, tmp_path: Path) -> None:
    page = (lived(home) / "spaces" / "default" / "persona.md").read_bytes()
    with closing(open_store(home)) as store:
        made = back_up(store, home, to=tmp_path / "backups", now=NOW)
    restore(made.path, tmp_path / "other", now=NOW)
    assert (tmp_path / "other" / "spaces" / "default" / "persona.md").read_bytes() == page


def test_a_page_about_the_user_from_another_zone_of_the_clock_is_the_same_page(home: Path, lived: Lived) -> None:
    page = lived(home) / "spaces" / "default" / "persona.md"
    page.write_bytes(page.read_bytes().replace(b"2026-03-01", b"2026-02-28"))
    assert b"2026-02-28" in page.read_bytes()
    assert problems(home) == []
