"""Names hold no keys: those that somebody gives are refused, those of other programs are stored masked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.follow import follow_log
from mcp_memory.integrations.importers.records import session_name
from mcp_memory.service.memory import open_memory

pytestmark = pytest.mark.files

KEY = "ghp_" + "Zk3vQ9mT2xWb7Lr5Yd8Nf1Hc6Js4PgA0uEiO"
TURN = NewTurn(role="user", content="I like tea.")


def _with_key(home: Path) -> list[str]:
    return [
        str(path)
        for path in home.rglob("*")
        if KEY in path.name or (path.is_file() and KEY in path.read_text("latin-1"))
    ]


async def test_a_space_a_session_and_a_token_are_not_named_with_a_key(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        for refused in (
            lambda: memory.in_space(f"s-{KEY}").record_turns([TURN], session="s"),
            lambda: memory.in_space(f"s-{KEY}").offload_tool_result("bash", "a\n" * 400),
            lambda: memory.record_turns([TURN], session=f"s-{KEY}"),
            lambda: memory.create_token(f"t {KEY}"),
            lambda: memory.create_token("t", spaces=[f"s-{KEY}"]),
        ):
            with pytest.raises(InvalidInput, match="seems to contain a key or password"):
                await refused()
        await memory.record_turns([TURN], session="4012888888881881")  # a number may name one
    async with open_memory(home=home, space=f"s-{KEY}", embedder="none") as memory:
        with pytest.raises(InvalidInput, match="name of the space"):
            await memory.remember("The user likes tea.")
        assert _with_key(home) == []


async def test_a_followed_log_is_stored_without_keys_in_its_path_its_ids_and_its_open_calls(
    home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / f"project {KEY}"
    folder.mkdir()
    log, about = folder / "log.jsonl", {"sessionId": f"s-{KEY}", "timestamp": "2026-11-20T09:00:00Z"}
    call = {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {"command": f"curl -H 'token: {KEY}'"}}
    said = {**about, "type": "user", "uuid": "u1", "message": {"role": "user", "content": "I like tea."}}
    called = {**about, "type": "assistant", "uuid": "u2", "message": {"role": "assistant", "content": [call]}}
    log.write_text("".join(json.dumps(line) + "\n" for line in (said, called)))
    async with open_memory(home=home, embedder="none") as memory:
        assert (await follow_log(memory, log, live=False, client="claude-code")).stored == 1
        log.write_text(log.read_text() + json.dumps({**said, "uuid": "u3"}) + "\n")
        again = await follow_log(memory, log, live=False, client="claude-code")
        assert (again.stored, again.duplicates) == (1, 0)  # read on, from the position reached
        (session,) = await memory.sessions()
        assert session.session == session_name("claude-code", f"s-{KEY}")
    assert _with_key(home) == []
