"""Compression through the memory: awaited, at once, and what the ledger tells of real use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import mcp_memory
from mcp_memory.core.errors import InvalidInput
from mcp_memory.service.memory import open_memory
from tests.service.compression.lists import long_talk, openai

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


async def test_what_a_program_compresses_is_found_and_opened_again(home: Path) -> None:
    messages = openai(long_talk(30))
    async with open_memory(home=home, embedder="none") as memory:
        done = await memory.compress(messages, window=8_000, level="aggressive", target=0.2, result_tokens=600)
        assert (await memory.compress(done.messages, window=8_000)).messages == done.messages
        found = await memory.conversation_search("part_0", session=done.session)
        assert found.hits[0].turn.content == "I look at part_0."
        record = (await memory.records(session=done.session))[0]
        opened = await memory.expand_node(record.ref, grep="part_0 line 17")
        assert "value_0_17" in opened.text
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"milde": 0.2}, "There is no rule 'milde'"),
            ({"window": "8000"}, "window is '8000'; it has to be a number"),
            ({"overhead": "1"}, "overhead is '1'"),
            ({"level": "some"}, "level 'some' is unknown. Allowed: none, mild"),
        ]
        for options, says in wrong:
            with pytest.raises(InvalidInput, match=says):
                await memory.compress(messages, **{"window": 8_000, **options})


def test_at_once_it_is_one_call(home: Path) -> None:
    messages = openai(long_talk(2))
    done = mcp_memory.compress(messages, window=1_000, home=home)
    assert done.edits
    again = mcp_memory.compress(done.messages, window=1_000, home=home)
    assert (again.messages, again.edits) == (done.messages, 0)


async def test_at_once_is_refused_where_it_would_block_an_event_loop(home: Path) -> None:
    with pytest.raises(InvalidInput, match="await memory"):
        mcp_memory.compress([], window=1_000, home=home)


async def test_status_tells_what_was_saved_once_and_later_and_what_was_spent(home: Path) -> None:
    clock = [NOON]
    async with open_memory(home=home, embedder="none", now=lambda: clock[0]) as memory:
        log = "".join(f"row {n} of the log of the quay\n" for n in range(400))
        done = await memory.offload_tool_result("shell", log, session="s", replaced=True)
        await memory.offload_tool_result("shell", "ok", session="s", tool_call_id="1", replaced=True)
        await memory.offload_tool_result("shell", "ok", session="s", tool_call_id="1", replaced=True)
        clock[0] += timedelta(seconds=30)
        opened = await memory.expand_node(done.ref, grep="row 7")
        savings = (await memory.status())["savings"]
        kinds = {one.kind: one for one in await memory.savings()}
    assert kinds["offload"].times == 2
    assert kinds["offload"].saved - kinds["offload"].spent == savings["saved_once"] == savings["saved_later"]
    assert savings["spent"] == {"expand": opened.tokens}
    assert savings["net_tokens"] == 2 * savings["saved_once"] - opened.tokens
    assert savings["saved_once"] < savings["net_cost"] + opened.tokens < 1.2 * savings["saved_once"]
