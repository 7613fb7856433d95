"""Whatever value or file of a home is damaged, it is told in a sentence, and nothing ends in a traceback.

A few damages are drawn at each run, the same ones each time; `DAMAGES=all` tries all of them, which takes minutes.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result

from mcp_memory.cli.main import program
from mcp_memory.core.errors import DamagedRow
from mcp_memory.store.sql import record_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.testing import HashEmbedder
from tests.portable.homes import fill, memory

VALUES: dict[str, tuple[Any, ...]] = {
    "INTEGER": (-1, 2**61, None),
    "TEXT": ("", "x", "{", None),
    "BLOB": (b"", b"x", None),
    "REAL": (-1.0, None),
}
UNREADABLE = [
    *(
        ("record", "timestamp"),
        ("ref", "timestamp"),
        ("canvas_version", "delta"),
        ("work", "outcome"),
        ("scene", "atoms"),
    ),
    *(("scene", "entities"), ("canvas", "groups")),
]
BROKE = [
    *(*UNREADABLE, ("canvas_version", "label"), ("work", "done_at"), ("vector_index", "id"), ("file", "path")),
    *(("home", "key"), ("migration", "name"), ("atom", "id"), ("turn", "told")),
]
"""Columns whose damages ended in a traceback once."""
FILES = ("conversations/*.jsonl", "offload-*.jsonl", "canvases.jsonl", "refs/*.md", "scenes/*.md", "mmds/*.mmd")
COMMANDS = (("doctor",), ("status",), ("rebuild", "--check"), ("verify",), ("doctor", "--repair"))
DRAWN = 3


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("filled") / "home"

    async def run() -> None:
        async with memory(home, embedder=HashEmbedder()) as held:
            await fill(held)

    anyio.run(run)
    return home


def columns(con: sqlite3.Connection) -> Iterator[tuple[str, str, str]]:
    """Yield (table, column, type) of all that has rows and is no part of an index."""
    tables = con.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        " AND name NOT GLOB '*_terms_*' AND name NOT GLOB '*_vec_*' AND name NOT GLOB 'sqlite_*'"
    ).fetchall()
    for (table,) in tables:
        if con.execute(f"SELECT 1 FROM {table}").fetchone():
            for _, column, kind, *_ in con.execute(f"PRAGMA table_info({table})").fetchall():
                yield table, column, kind


def damaged(home: Path, table: str, column: str, value: Any) -> bool:
    """Give a column of one row a value, past the program and its triggers; return whether SQLite took it."""
    with closing(sqlite3.connect(home / "memory.db")) as con, con:
        con.execute("DROP TRIGGER turn_is_evidence")
        con.execute("PRAGMA ignore_check_constraints = ON")
        keys = [row[1] for row in con.execute(f"PRAGMA table_info({table})") if row[5]]
        *key, old = con.execute(
            f"SELECT {', '.join(keys)}, {column} FROM {table} ORDER BY {column} IS NULL, {', '.join(keys)}"
        ).fetchone()
        try:
            con.execute(
                f"UPDATE {table} SET {column} = ? WHERE {' AND '.join(f'{one} IS ?' for one in keys)}", (value, *key)
            )
        except sqlite3.Error:
            return False
        return value != old


def told(home: Path, *words: str) -> Result:
    """Run a command; only an exit is an answer."""
    done = CliRunner().invoke(program, ["--home", str(home), *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"{' '.join(words)} ended in {done.exception!r}") from done.exception
    return done


@pytest.fixture
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    monkeypatch.setenv("MCP_MEMORY_EMBEDDER", "none")


def drawn(filled: Path) -> list[tuple[str, str, Any]]:
    with closing(sqlite3.connect(filled / "memory.db")) as con:
        every = [(table, column, value) for table, column, kind in columns(con) for value in VALUES[kind]]
    if os.environ.get("DAMAGES") == "all":
        return every
    draw = Random(7)
    return [*draw.sample(every, DRAWN), *draw.sample([one for one in every if one[:2] in BROKE], DRAWN)]


@pytest.mark.slow
@pytest.mark.usefixtures("_plain")
def test_a_damaged_value_never_ends_in_a_traceback(filled: Path, tmp_path: Path) -> None:
    for number, (table, column, value) in enumerate(drawn(filled)):
        home = Path(shutil.copytree(filled, tmp_path / f"{number}"))
        if damaged(home, table, column, value):
            for words in COMMANDS:
                told(home, *words)
        shutil.rmtree(home)


@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize(("table", "column"), UNREADABLE)
def test_a_value_that_cannot_be_read_is_named_and_mended_and_status_answers_meanwhile(
    filled: Path, tmp_path: Path, table: str, column: str
) -> None:
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    assert damaged(home, table, column, "{")
    examined = told(home, "doctor")
    assert examined.exit_code == 1
    assert f"The {column} of row" in " ".join(examined.output.split())
    assert f"in the table {table} cannot be read." in " ".join(examined.output.split())
    assert told(home, "status").exit_code == 0
    told(home, "doctor", "--repair")
    assert "cannot be read" not in (again := told(home, "doctor")).output
    assert again.exit_code == 0, again.output
    if table == "scene":  # other values of the row tell it again
        assert json.loads(first(home, table, column)) == json.loads(first(filled, table, column))


def first(home: Path, table: str, column: str) -> str:
    with closing(sqlite3.connect(home / "memory.db")) as con:
        return con.execute(f"SELECT {column} FROM {table}").fetchone()[0]


def test_what_reads_a_damaged_row_says_which_it_is_and_what_to_do_next(filled: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    assert damaged(home, "record", "timestamp", "x")
    with closing(open_store(home)) as store, pytest.raises(DamagedRow) as refused:
        store.read("default", record_rows.list_records, limit=9)
    assert str(refused.value).startswith("The timestamp of row 1 of space 1 in the table record cannot be read.")
    assert "`mcp-memory doctor --repair`" in str(refused.value)


@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize("pattern", FILES)
def test_a_folder_in_the_place_of_a_file_is_named_and_what_rows_tell_of_it_is_written_anew(
    filled: Path, tmp_path: Path, pattern: str
) -> None:
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    path = min((home / "spaces" / "default").glob(pattern))
    path.unlink()
    path.mkdir()
    for words in COMMANDS[:4]:
        told(home, *words)
    assert path.name in told(home, "doctor").output
    told(home, "doctor", "--repair")
    assert path.is_file() or pattern.startswith("refs/")


@pytest.mark.usefixtures("_plain")
@pytest.mark.parametrize("table", ["evidence", "home", "migration", "vector_index"])
def test_a_row_that_was_lost_is_made_again_of_what_else_tells_it(filled: Path, tmp_path: Path, table: str) -> None:
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    identity = (home / "identity.json").read_bytes()
    with closing(sqlite3.connect(home / "memory.db")) as con, con:
        con.execute(f"DELETE FROM {table} WHERE rowid = 1" if table == "home" else f"DELETE FROM {table}")
    for words in (*COMMANDS, ("why", "a1")):
        told(home, *words)
    assert (well := told(home, "doctor")).exit_code == 0, well.output
    assert (home / "identity.json").read_bytes() == identity
