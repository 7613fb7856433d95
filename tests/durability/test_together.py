"""Five clients at once on a home that is not there yet, and an older version that is still at work when a newer comes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import anyio
import pytest

from bench.torture.by_stdio import Server
from mcp_memory.store.sqlite.store import open_store
from tests.durability.filling import NOON, said

CLIENTS = 5
MS = int(NOON.timestamp() * 1000)


@pytest.mark.slow
def test_five_clients_that_start_at_the_same_moment_on_an_empty_home_lose_nothing(home: Path, tmp_path: Path) -> None:
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
