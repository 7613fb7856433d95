"""What calls to a model came to: a contract of every store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Spend, Spent

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
CALL = Spend(at=NOON, purpose="rerank", model="openai/m", prompt_tokens=900, completion_tokens=20, cost=0.25)


def test_calls_are_summed_by_purpose_and_model_from_a_moment_on(store: Store) -> None:
    free = replace(CALL, model="ollama/q", cost=None)
    for spend in (
        replace(CALL, at=NOON - timedelta(milliseconds=1)),
        CALL,
        replace(CALL, completion_tokens=0, cost=None, error="no answer in time"),
        replace(CALL, purpose="atoms"),
        free,
    ):
        store.add_spend(spend)
    one = Spent(
        purpose="atoms", model="openai/m", calls=1, failed=0, prompt_tokens=900, completion_tokens=20, cost=0.25
    )
    assert store.spent(since=NOON) == [
        one,
        replace(one, purpose="rerank", model="ollama/q", cost=None),
        replace(one, purpose="rerank", calls=2, failed=1, prompt_tokens=1800),
    ]
    assert store.spent(since=NOON + timedelta(milliseconds=1)) == []
