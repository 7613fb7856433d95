"""Ten clients at once on a home that is not there yet, and an older version that is still at work when a newer comes."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import anyio
import apsw
import pytest

from bench.torture.by_stdio import Server
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.sqlite import open_store
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.migrations import SCHEMA
from tests.durability.filling import NOON, capture, said

SCHEMAS = Path(__file__).parents[2] / "fixtures" / "schemas"
CLIENTS = 10
MS = int(NOON.timestamp() * 1000)


def test_ten_clients_that_start_at_the_same_moment_on_an_empty_home_lose_nothing(home: Path, tmp_path: Path) -> None:
    greeted = Barrier(CLIENTS)

    def client(number: int) -> list[str]:
        server = Server(home, tmp_path / f"{number}.log")
        try:
            server.greet()
            greeted.wait(60)  # the first call opens the home
            turn = {"role": "user", "content": f"I am client {number}."}
            answer = anyio.run(server.call, "record_turns", {"turns": [turn], "session": "all"})
            return answer["stored"]
        finally:
            server.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        stored = [id for ids in pool.map(client, range(CLIENTS)) for id in ids]
    assert sorted(stored) == sorted(f"t{number}" for number in range(1, CLIENTS + 1))
    store = open_store(home)
    assert sorted(said(store, session="all")) == [f"I am client {number}." for number in range(CLIENTS)]
    (journal,) = store.folder("default").glob("conversations/*.jsonl")
    assert len(journal.read_text(encoding="utf-8").splitlines()) == CLIENTS
    assert store.problems() == []
    store.close()


# --- an older version at work -----------------------------------------------------------------------


class Older:
    """What version 0.1 of this program holds open and does: its own SQLite, its statements, its files."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "spaces" / "default"
        self.con = apsw.Connection(str(home / "memory.db"))
        self.con.set_busy_timeout(30_000)
        self.con.execute("PRAGMA journal_mode = WAL")

    def capture(self, text: str) -> None:
        con = self.con
        con.execute("BEGIN IMMEDIATE")
        last: int = con.execute("SELECT seq FROM sqlite_sequence WHERE name = 'turn'").get
        session, space = con.execute("SELECT id, space FROM session WHERE name = 'first'").get
        position: int = con.execute("SELECT max(position) + 1 FROM turn WHERE session = ?", (session,)).get
        digest = evidence_hash(NewTurn(role="user", content=text))
        con.execute(
            "INSERT INTO turn (id, space, session, position, role, name, content, client_id, said_at, dated,"
            " learned_at, sha256, told) VALUES (?, ?, ?, ?, 'user', NULL, ?, NULL, ?, 0, ?, ?, NULL)",
            (last + 1, space, session, position, text, MS, MS, digest),
        )
        con.execute(
            "INSERT INTO turn_terms (rowid, space, terms) VALUES (?, ?, ?)", (last + 1, f"sp{space}", text.lower())
        )
        path = f"conversations/{NOON.date()}.jsonl"
        held: int = con.execute("SELECT bytes FROM file WHERE space = ? AND path = ?", (space, path)).get or 0
        (self.folder / "conversations").mkdir(parents=True, exist_ok=True)
        with (self.folder / path).open("ab") as file:
            file.truncate(min(held, file.tell()))
            file.write(json.dumps({"turn": f"t{last + 1}", "content": text}).encode() + b"\n")
            length = file.tell()
        con.execute("INSERT OR REPLACE INTO file (space, path, bytes) VALUES (?, ?, ?)", (space, path, length))
        con.execute("COMMIT")


@pytest.fixture
def older(home: Path) -> Older:
    home.mkdir()
    shutil.copy(SCHEMAS / "0007-clients.db", home / "memory.db")
    return Older(home)


def test_an_older_version_that_is_still_at_work_goes_on_and_both_see_all(older: Older, home: Path) -> None:
    older.capture("Said to the old one.")
    store = open_store(home)
    assert store.schema() == SCHEMA[-1][0]
    capture(store, "Said to the new one.")
    older.capture("Said to the old one again.")
    capture(store, "And to the new one.")
    assert said(store)[-4:] == [
        "Said to the old one.",
        "Said to the new one.",
        "Said to the old one again.",
        "And to the new one.",
    ]
    assert [problem for problem in store.problems() if " is missing" not in problem] == []
    older.con.close()
    store.close()


def test_a_newer_version_waits_for_the_write_of_an_older_one_and_takes_it_in(older: Older, home: Path) -> None:
    older.con.execute("BEGIN IMMEDIATE")
    older.con.execute("UPDATE session SET active_canvas = NULL")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(open_store, home)
        older.con.execute("COMMIT")
        store = opening.result(timeout=30)
    assert store.schema() == SCHEMA[-1][0]
    older.con.close()
    store.close()


def test_an_older_version_that_starts_afterwards_says_what_to_do(
    older: Older, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(home).close()
    monkeypatch.setattr("mcp_memory.store.sqlite.migrations.SCHEMA", SCHEMA[:-1])  # the older one knows no more
    with pytest.raises(StoreUnavailable, match=r"newer mcp-memory.*Nothing was changed"):
        Database(home)
    older.con.close()
