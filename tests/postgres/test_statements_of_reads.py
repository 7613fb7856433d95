"""The statements, transactions and round trips of the verbs that read, as they reach PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread
import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn, Role
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock
from tests.postgres.statements import wire_to
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.postgres, pytest.mark.anyio, pytest.mark.slow]

ROLES: tuple[Role, Role] = ("user", "assistant")
QUESTION = "Which day is the deploy of Falcon?"
SAID = (
    "Which day is the deploy of Falcon?",
    "The deploy of Falcon is on Tuesday, by Ana.",
    "Please always write the tests first.",
    "I will write the tests first.",
    "The deploy of Falcon moved to Thursday.",
    "Noted: Thursday.",
)


class Most(NamedTuple):
    """The most statements of a verb beside BEGIN and COMMIT, transactions, and waits for an answer."""

    statements: int
    transactions: int
    round_trips: int


VERBS: dict[str, tuple[Callable[[Memory], Awaitable[object]], Most]] = {
    "conversation_search": (lambda memory: memory.conversation_search(QUESTION), Most(10, 1, 10)),
    "memory_search": (lambda memory: memory.memory_search(QUESTION), Most(15, 1, 15)),
    "find": (lambda memory: memory.find(QUESTION), Most(23, 1, 23)),
    "recall": (lambda memory: memory.recall_answer(QUESTION, session="days"), Most(33, 1, 33)),
    "prompt": (
        lambda memory: memory.recall_beyond(QUESTION, known="", session="days", is_rehearsal=True), Most(22, 1, 22),
    ),
    "start": (lambda memory: memory.recall_stable(session="new"), Most(15, 1, 15)),
    "expand": (lambda memory: memory.expand_node("001-N1"), Most(9, 2, 7)),
    "scenes": (lambda memory: memory.scenes(), Most(3, 1, 3)),
    "persona": (lambda memory: memory.read_persona(), Most(3, 1, 3)),
    "status": (lambda memory: memory.status(brief=True), Most(45, 5, 38)),
}  # fmt: skip
"""The limits are what these verbs take now: `expand` notes what it has spent, and `status` looks at the whole home."""


async def remember_days(memory: Memory) -> None:
    for number in range(8):
        said = [NewTurn(role=ROLES[place % 2], content=text) for place, text in enumerate(SAID)]
        said.append(NewTurn(role="user", content=f"And the boat {number} of Maya has a red kettle, does it not?"))
        await memory.record_turns(said, session=f"day {number}".replace(" ", "-"))
    await memory.record_turns([NewTurn(role="user", content="What is next for Falcon?")], session="days")
    for text in ("Answer in German, always.", "Maya's boat is called Osprey.", "Remind me of Maya when I plan a trip."):
        await memory.remember(text, typed=True)
    log = "\n".join(f"step {number}: Falcon deployed to host {number}" for number in range(400))
    await memory.offload_tool_result("bash", log, arguments={"command": "deploy Falcon"}, session="days")


async def test_reads_take_few_statements_and_one_transaction(
    url: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    taken: dict[str, Most] = {}
    with wire_to(postgres.port) as wire:
        settings = Settings(home=tmp_path, store=wire.url(url), personal_space="none")
        async with open_memory(settings, now=FixedClock()) as memory:
            await remember_days(memory)
            for verb, _ in VERBS.values():  # models are loaded, statements prepared
                for _ in range(6):
                    await verb(memory)
            await memory.record_turns([NewTurn(role="user", content="Who deploys Falcon?")], session="days")
            await memory.conversation_search("Falcon")  # waits until the background has read the turn
            for name, (verb, _) in VERBS.items():
                await memory.recalls()  # waits until the log of recalls is written
                await anyio.to_thread.run_sync(wire.settle)
                with wire.recording() as sent:
                    await verb(memory)
                taken[name] = Most(sent.statements, sent.transactions, sent.round_trips)
    over = {
        name: (taken[name], most)
        for name, (_, most) in VERBS.items()
        if any(count > limit for count, limit in zip(taken[name], most, strict=True))
    }
    assert not over, taken
