"""Databases of other programs are read, and never changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.importers.sqlite_file import open_database


def make_database(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE item (key TEXT, value BLOB); INSERT INTO item VALUES ('chat:2', 'two'), ('chat:1', 'one'),"
            " ('other', x'00ff')"
        )
    return path


def test_rows_are_objects_selected_by_values_and_beginnings_in_the_order_of_a_column(tmp_path: Path) -> None:
    with open_database(make_database(tmp_path / "state.vscdb")) as database:
        assert database.columns("item") == ["key", "value"]
        assert [row["value"] for row in database.rows("item", prefix={"key": "chat:"}, order="key")] == ["one", "two"]
        assert list(database.rows("item", equal={"key": "other"})) == [{"key": "other", "value": b"\0\xff"}]
        assert list(database.rows("missing")) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.vscdb"]


def test_rows_that_a_running_program_has_written_are_seen(tmp_path: Path) -> None:
    path = make_database(tmp_path / "state.vscdb")
    with closing(sqlite3.connect(path)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.execute("INSERT INTO item VALUES ('chat:3', 'three')")
        running.commit()
        with open_database(path) as database:
            assert len(list(database.rows("item", prefix={"key": "chat:"}))) == 3


def test_a_file_that_is_not_a_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    path.write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(InvalidInput, match="cannot be read as a database"), open_database(path) as database:
        list(database.rows("item"))
