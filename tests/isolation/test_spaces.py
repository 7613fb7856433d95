"""Several spaces of one open memory: each as if it were alone, and none costs a thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from bench.reader import Reader
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.models.llm import ModelPrompt
from mcp_memory.service.memory import Memory, open_memory


async def known(memory: Memory) -> list[str]:
    """Return what a model drew from the turns of a space, once it has."""
    with anyio.fail_after(30):
        while not (atoms := await memory.atoms()):  # noqa: ASYNC110
            await anyio.sleep(0.02)
    return [atom.text for atom in atoms]


async def test_the_model_reads_all_spaces_that_are_open_in_one_thread_and_never_two_at_once(home: Path) -> None:
    reader = Reader()
    async with open_memory(home=home, embedder="none", llm=reader, batch_turns=2) as memory:
        before = threading.active_count()
        others = [memory.in_space(name) for name in ("anna", "ben")]
        for space, keeps in zip(others, ("bees", "goats"), strict=True):
            await space.record_turns([NewTurn(role="user", content=f"I keep {keeps} in Porto.")], session="s")
            await space.record_turns([NewTurn(role="assistant", content="How many?")], session="s")
        assert [await known(space) for space in others] == [["I keep bees in Porto."], ["I keep goats in Porto."]]
        assert await memory.atoms() == []
        assert sum(thread.name == "scheduler" for thread in threading.enumerate()) == 1
        assert threading.active_count() <= before + 8  # of the pool that calls run in
    questions = ["".join(message.text for message in asked.messages) for asked in reader.asked]
    assert [one for one in questions if "bees" in one and "goats" in one] == []


async def test_a_space_whose_questions_fail_does_not_keep_the_others_waiting(home: Path) -> None:
    class Choosy(Reader):
        def ask(self, prompt: ModelPrompt, *, timeout: float) -> Any:
            if any("goats" in message.text for message in prompt.messages):
                raise RuntimeError("no goats")
            return super().ask(prompt, timeout=timeout)

    async with open_memory(home=home, embedder="none", llm=Choosy(), space="ben") as ben:
        anna = ben.in_space("anna")
        for space, keeps in ((ben, "goats"), (anna, "bees")):
            await space.record_turns([NewTurn(role="user", content=f"I keep {keeps} in Porto.")], session="s")
            await space.record_turns([NewTurn(role="assistant", content="How many?")], session="s")
        with anyio.fail_after(30):
            while not await anna.atoms():
                await anna.flush("s")  # rings; a round that failed waits for that
                await anyio.sleep(0.05)


async def test_a_space_is_the_same_object_while_it_is_open_and_nothing_until_something_is_stored(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_memory.service.memory._OPEN_SPACES", 2)
    async with open_memory(home=home, embedder="none") as memory:
        anna = memory.in_space("anna")
        assert anna.in_space("anna") is anna
        assert anna.in_space("default") is memory
        assert (anna.space, anna.settings.space) == ("anna", "anna")
        assert anna.session != memory.session
        assert (await anna.status())["spaces"] == []
        assert not (home / "spaces" / "anna").exists()
        for name in ("ben", "carl"):
            memory.in_space(name)
        assert memory.in_space("anna") is not anna
        await anna.remember("A space that was pushed out still works.", typed=True)
        assert len(await memory.in_space("anna").atoms()) == 1
        with pytest.raises(InvalidInput, match="space"):
            memory.in_space("../up")
