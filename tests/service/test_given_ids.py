"""A digest that a client gives as an id is kept nowhere in a home, and recognised all the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory
from mcp_memory.testing import FixedClock

SECRET = "The wifi password is hunter2222."


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256", "sha512"])
async def test_a_digest_that_a_client_gives_is_stored_nowhere(name: str, home: Path) -> None:
    id = hashlib.new(name, SECRET.encode()).hexdigest()
    turn = NewTurn(role="user", content=SECRET, client_id=id)
    async with open_memory(home=home, now=FixedClock(), embedder="none") as memory:
        assert len((await memory.record_turns([turn], session="s")).stored) == 1
        assert (await memory.record_turns([turn], session="s")).duplicates == 1
        for _ in range(2):
            kept = await memory.offload_tool_result("bash", "ok\n" * 50, session="s", step="look", tool_call_id=id)
        assert await memory.kept_calls("s", [id, "other"]) == {id}
        assert len(await memory.records(ref=kept.ref)) == 1
    contents = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
    assert contents
    assert not any(id.encode() in content for content in contents)
