"""The batched policy is the product: it saves tokens, gives bytes back, and its prompts name what they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.batched import WINDOW, Batched
from bench.cutting import Arrival
from bench.trajectories import Ledger, Trajectory
from mcp_memory.service.compression.plan import CompressionRules
from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.store import open_store
from tests.service.compression.lists import long_talk, openai

CALLS = 24


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    opened = open_store(home)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def run() -> Trajectory:
    messages = openai(long_talk(CALLS, lines=80))
    for message in messages:
        message["content"] = message["content"] or ""
        for call in message.get("tool_calls", ()):
            call.update(call["function"])
    return Trajectory.model_validate({"instance_id": "quay", "messages": messages})


def test_batches_save_tokens_and_every_byte_of_a_result_comes_back(store: Store, run: Trajectory) -> None:
    policy, ledger = Batched(store, rules=CompressionRules(window=WINDOW, mild=0, keep_calls=3)), Ledger()
    ledger.add(run, policy)
    assert ledger.tokens < 0.6 * ledger.whole_tokens
    assert ledger.cost < ledger.whole_cost
    assert policy.recovered.put_away == policy.recovered.the_same > 0


def test_each_prompt_stands_for_all_messages_before_its_call(store: Store, run: Trajectory) -> None:
    policy = Batched(store, first=Arrival(store))
    ends = [place for place, message in enumerate(run.messages) if message.role == "assistant"]
    for end, prompt in zip(ends, policy.prompts(run), strict=True):
        assert [place for sent in prompt.sent for place in sent.of] == list(range(end))
