"""A key that was said, offloaded or handed to a verb stands in no file of the home afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mcp_memory.memory import open_memory
from mcp_memory.testing import HashEmbedder
from mcp_memory.types import NewTurn

KEY = "ghp_" + "Zq7w" * 9
CARD = "4012 8888 8888 1881"


def standing(home: Path, *secrets: str) -> list[str]:
    """The files of a home in which one of the secrets can be read."""
    return [
        str(path.relative_to(home))
        for path in sorted(home.rglob("*"))
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


async def fill(home: Path, *, keep_secrets: bool) -> None:
    async with open_memory(home=home, embedder="none", keep_secrets=keep_secrets) as memory:
        recorded = await memory.record_turns(
            [NewTurn(role="user", content=f"Use {KEY} and card {CARD}."), NewTurn(role="assistant", content="I will.")],
            session="s1",
        )
        assert recorded.masked == 1
        done = await memory.offload_tool_result(
            "bash", f"remote: {KEY}\n" + "line\n" * 400, arguments={"command": f"curl -u ann:{KEY}", "card": CARD}
        )
        await memory.keep_tool_result("fetch", json.dumps({"token": KEY, "card": CARD}))
        messages = [
            {"role": "user", "content": f"Clone with {KEY}. " + "It is a long story. " * 400},
            {"role": "assistant", "content": f"Paid with {CARD}. " + "Done and dusted. " * 400},
            {"role": "user", "content": "And now?"},
        ]
        await memory.compress(messages, window=1_000, level="emergency")
        await memory.conversation_search(f"where is {KEY}")
        await memory.forget([done.ref], reason="no longer wanted")


@pytest.mark.parametrize("keep_secrets", [False, True])
async def test_a_key_stands_in_no_file_but_in_those_of_results_where_it_is_wanted(
    home: Path, keep_secrets: bool
) -> None:
    await fill(home, keep_secrets=keep_secrets)
    kept = standing(home, KEY, CARD)
    assert bool(kept) == keep_secrets, kept
    assert all("/refs/" in path or path.startswith("memory.db") for path in kept)


async def test_a_question_goes_to_no_model_with_a_key_in_it(home: Path) -> None:
    asked: list[str] = []

    class Listening(HashEmbedder):
        def embed_query(self, text: str) -> NDArray[np.float32]:
            asked.append(text)
            return super().embed_query(text)

    async with open_memory(home=home, embedder=Listening()) as memory:
        await memory.record_turns([NewTurn(role="user", content="The boat sails at two.")])
        await memory.conversation_search(f"does {KEY} open the boat?")
    assert asked == ["does ghp_••• open the boat?"]
