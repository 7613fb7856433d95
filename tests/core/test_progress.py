"""What long work tells of how far it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_memory.core.progress import step_counter
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory


@pytest.mark.parametrize("of", [1, 7, 100, 12_345])
def test_steps_are_told_some_hundred_times_and_the_last_one_always(of: int) -> None:
    told: list[tuple[str, int, int]] = []
    step = step_counter("copying", of, lambda *now: told.append(now))
    for _ in range(of):
        step(1)
    assert told[-1] == ("copying", of, of)
    assert len(told) <= 101


async def test_an_export_and_a_verification_tell_how_far_they_are_to_the_end(home: Path) -> None:
    told: dict[str, tuple[int, int]] = {}

    def tell(doing: str, done: int, of: int) -> None:
        told[doing] = done, of

    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns([NewTurn(role="user", content=f"Tide {n} is high.") for n in range(5)], session="s")
        await memory.remember("The boat is called Dora.", typed=True)
        await memory.offload_tool_result("shell", "line\n" * 500, session="s")
        await memory.export(home / "out.zip", tell=tell)
        await memory.verify(tell=tell)
    assert set(told) == {"reading rows", "packing", "checking statements"}
    assert all(done >= of > 0 for done, of in told.values())
