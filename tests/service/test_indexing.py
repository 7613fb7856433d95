"""Vectors in the background: remote models, failures, and a change of model."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import apsw
import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import Refused
from mcp_memory.core.types import NewTurn
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.service import indexing
from mcp_memory.service.indexing import IndexState
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import word_index
from mcp_memory.testing import HashEmbedder
from tests.durability.faults import failing_disk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TURNS = [NewTurn(role="user", content=f"remark {i} on kettles") for i in range(10)]


class Held(HashEmbedder):
    """Embeds many texts once it may go on."""

    def __init__(self, identity: str) -> None:
        super().__init__(identity)
        self.go_on = threading.Event()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) > 1:
            self.go_on.wait(20)
        return super().embed(texts)


async def until(memory: Memory, wanted: Callable[[IndexState], bool]) -> IndexState:
    with anyio.fail_after(20):
        while True:
            state = IndexState(**(await memory.status())["embedding"])
            if wanted(state):
                return state
            await anyio.sleep(0.01)


async def nothing_due(home: Path) -> None:
    """Wait until the background has released every space until tomorrow."""
    with anyio.fail_after(20):
        while True:
            con = apsw.Connection(str(home / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
            soonest = con.execute("SELECT min(at) FROM due").get
            con.close()
            if soonest is not None and soonest / 1000 > time.time() + 3_600:
                break
            await anyio.sleep(0.01)


async def unindexed_turns(memory: Memory) -> int:
    return (await memory.status())["embedding"]["terms_waiting"]


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the background wait for a pause that does not come."""
    monkeypatch.setattr(indexing, "_PAUSE_S", 60.0)
    monkeypatch.setattr(indexing, "_FIRST_WAIT_S", 60.0)


async def test_a_model_far_away_follows_in_the_background(home: Path) -> None:
    far = HashEmbedder("far/64", local=False)
    async with open_memory(home=home, embedder=far) as memory:
        await memory.record_turns(TURNS, session="s")
        state = await until(memory, lambda state: state.embedded == 10)
        assert state == IndexState(model="far/64", embedded=10, total=10, error=None)
        (hit, *_) = (await memory.conversation_search("remark 3 on kettles")).hits
        assert list(hit.found_by) == ["words", "context", "meaning"]


@pytest.mark.usefixtures("paused")
async def test_turns_are_embedded_together_once_calls_pause_or_a_search_wants_them(home: Path) -> None:
    embedder = HashEmbedder()
    async with open_memory(home=home, embedder=embedder) as memory:
        for turn in TURNS:
            await memory.record_turns([turn], session="s")
        assert embedder.calls == []
        (hit, *_) = (await memory.conversation_search("remark 3 on kettles")).hits
        assert "meaning" in hit.found_by
        assert [len(texts) for texts in embedder.calls] == [10, 1]


@pytest.mark.files
@pytest.mark.usefixtures("paused")
async def test_a_recorded_turn_is_found_by_its_words_at_once_in_every_process(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory, open_memory(home=home, embedder="none") as other:
        await memory.record_turns(TURNS, session="s")
        assert await unindexed_turns(memory) == 10
        for searching in (other, memory):
            (hit, *_) = (await searching.conversation_search("remark 3", role="user")).hits
            assert hit.turn.content == "remark 3 on kettles"
        assert await unindexed_turns(memory) == 0
        (hit, *_) = (await other.conversation_search("remark 3")).hits
        assert hit.turn.content == "remark 3 on kettles"


@pytest.mark.files
@pytest.mark.usefixtures("paused")
async def test_a_search_finds_new_turns_though_a_full_disk_keeps_them_from_the_index(home: Path) -> None:
    with failing_disk() as disk:
        async with open_memory(home=home, embedder="none") as memory:
            await memory.record_turns(TURNS, session="s")
            disk.arm(1, apsw.FullError, for_good=True)
            (hit, *_) = (await memory.conversation_search("remark 3", role="user")).hits
            assert hit.turn.content == "remark 3 on kettles"
            assert await unindexed_turns(memory) == 10
            disk.at = 0


@pytest.mark.files
@pytest.mark.usefixtures("paused")
async def test_forgetting_by_words_reaches_turns_that_are_not_indexed_yet(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns(TURNS, session="s")
        found = await memory.forget(query="remark 3")
        assert (found.dry_run, found.ids) == (True, ["t4"])
        await memory.forget(found.ids)
        assert "t4" not in [hit.turn.id for hit in (await memory.conversation_search("remark 3")).hits]
        assert await memory.problems() == []


@pytest.mark.files
@pytest.mark.usefixtures("paused")
async def test_very_many_new_turns_are_indexed_by_the_call_that_records_them(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_MOST_NEW", 15)
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns(TURNS, session="s")
        await memory.record_turns(TURNS, session="t")
        assert await unindexed_turns(memory) == 0


@pytest.mark.files
async def test_turns_of_a_killed_process_are_found_and_indexed_by_the_next(home: Path) -> None:
    program = (
        "import anyio, os, signal, sys\n"
        "from mcp_memory.core.types import NewTurn\n"
        "from mcp_memory.service.memory import open_memory\n"
        "async def main():\n"
        "    async with open_memory(home=sys.argv[1], embedder='none') as memory:\n"
        "        await memory.record_turns([NewTurn(role='user', content='the kettle is blue')], session='s')\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "anyio.run(main)\n"
    )
    killed = await anyio.run_process([sys.executable, "-c", program, str(home)], check=False)
    assert killed.returncode == -signal.SIGKILL
    async with open_memory(home=home, embedder="none") as memory:
        assert [hit.turn.id for hit in (await memory.conversation_search("blue kettle")).hits] == ["t1"]
        await until(memory, lambda state: state.terms_waiting == 0)
        assert await memory.problems() == []


async def test_the_background_works_when_no_call_is_served(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_PAUSE_S", 0.0)
    order: list[str] = []
    worked = threading.Event()

    def step(*_: object) -> bool:
        order.append("step")
        worked.set()
        return False

    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns(TURNS, session="s")
        part = memory._parts.indexing  # pyright: ignore[reportPrivateUsage]
        await nothing_due(home)
        monkeypatch.setattr(part, "_judge_turns", step)
        with part.serving():
            await anyio.to_thread.run_sync(
                lambda: memory._parts.store.write(memory.space, word_index.make_due)  # pyright: ignore[reportPrivateUsage]
            )
            part.stored()
            order.append("served")
        assert await anyio.to_thread.run_sync(worked.wait, 20)
    assert order[:2] == ["served", "step"]


async def test_a_search_does_not_wait_for_a_long_history_to_be_embedded(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_CATCHING_UP_S", 60.0)
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns([NewTurn(role="user", content=f"remark {i} on tea") for i in range(300)], session="s")
    held = Held("held/64")
    async with open_memory(home=home, embedder=held) as memory:
        await memory.record_turns(TURNS, session="t")
        with anyio.fail_after(20):
            (hit, *_) = (await memory.conversation_search("remark 3 on kettles")).hits
        assert "meaning" not in hit.found_by
        held.go_on.set()


async def test_a_model_that_fails_is_shown_and_tried_again(home: Path) -> None:
    far = HashEmbedder("far/64", local=False)
    far.failing = True
    async with open_memory(home=home, embedder=far) as memory:
        await memory.record_turns(TURNS, session="s")
        state = await until(memory, lambda state: state.error is not None)
        assert state.error == "far/64 does not answer."
        far.failing = False
        await memory.record_turns([NewTurn(role="user", content="one more")], session="s")
        await until(memory, lambda state: state.embedded == 11 and state.error is None)


async def test_sentences_are_read_while_the_model_fails(home: Path) -> None:
    far = HashEmbedder("far/64", local=False)
    far.failing = True
    async with open_memory(home=home, embedder=far, read_sentences=True) as memory:
        await memory.record_turns([NewTurn(role="user", content="I live in Oslo with my two cats.")], session="s")
        await until(memory, lambda state: state.error is not None)
        assert [atom.text for atom in await memory.atoms()] == ["I live in Oslo with my two cats."]


@pytest.mark.files
async def test_a_full_disk_in_the_background_is_told_in_a_sentence(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    far = HashEmbedder("far/64", local=False)
    far.failing = True
    with failing_disk() as disk:
        async with open_memory(home=home, embedder=far) as memory:
            await memory.record_turns(TURNS, session="s")
            await until(memory, lambda state: state.error is not None)
            disk.arm(1, apsw.FullError, for_good=True)
            far.failing = False
            memory._parts.indexing.stored()  # pyright: ignore[reportPrivateUsage]
            state = await until(memory, lambda state: state.error != "far/64 does not answer.")
            assert "free some disk space and try again" in str(state.error)
            disk.at = 0
    assert [record for record in caplog.records if record.exc_info] == []


async def test_search_by_meaning_goes_on_while_a_new_model_is_indexed(home: Path) -> None:
    settings = Settings(home=home, read_sentences=False)
    bundled = make_embedder(settings)
    assert bundled is not None
    async with open_memory(settings) as memory:
        await memory.record_turns([NewTurn(role="user", content="My automobile would not start")], session="s")
    slow = HashEmbedder("new/64", local=False)
    slow.failing = True
    async with open_memory(settings, embedder=slow) as memory:
        await until(memory, lambda state: state.error is not None)
        results = await memory.conversation_search("car trouble")
        assert [list(hit.found_by) for hit in results.hits] == [["related", "meaning"]]
        slow.failing = False
        await memory.record_turns([NewTurn(role="user", content="Unrelated")], session="s")
        await until(memory, lambda state: state.embedded == state.total == 2)


async def test_vectors_of_earlier_models_go_when_they_are_told_to_and_are_needed_no_more(home: Path) -> None:
    async with open_memory(home=home, embedder=HashEmbedder("old/64")) as memory:
        await memory.record_turns(TURNS, session="s")
    slow = HashEmbedder("new/64", local=False)
    slow.failing = True
    async with open_memory(home=home, embedder=slow) as memory:
        with pytest.raises(Refused, match="has embedded 0 of 10 rows"):
            await memory.drop_old_vectors()
        slow.failing = False
        await memory.record_turns([NewTurn(role="user", content="one more")], session="s")
        await until(memory, lambda state: state.embedded == state.total == 11)
        assert await memory.drop_old_vectors() == ["old/64"]
        assert await memory.drop_old_vectors() == []


async def test_two_servers_embed_each_row_once_in_every_space(home: Path) -> None:
    spaces = [f"tenant-{number}" for number in range(6)]
    async with open_memory(home=home, embedder="none") as memory:
        for space in spaces:
            await memory.in_space(space).record_turns(TURNS, session="s")
    models = HashEmbedder(), HashEmbedder()
    async with (
        open_memory(home=home, embedder=models[0]) as memory,
        open_memory(home=home, embedder=models[1]),
    ):
        await until(memory, lambda state: state.embedded == len(spaces) * len(TURNS))
    embedded = [text for model in models for batch in model.calls for text in batch]
    assert len(embedded) == len(spaces) * len(TURNS)
