"""The usage ledger: one row for each call to a language model, made by any process of the home."""

from __future__ import annotations

from datetime import datetime

from mcp_memory.store.sql.transaction import HomeTransaction, to_ms
from mcp_memory.store.values import Spend, Spent

__all__ = ["add", "sums"]


def add(tx: HomeTransaction, spend: Spend) -> None:
    tx.insert(
        "spend",
        at=to_ms(spend.at),
        purpose=spend.purpose,
        model=spend.model,
        prompt_tokens=spend.prompt_tokens,
        completion_tokens=spend.completion_tokens,
        cost=spend.cost,
        error=spend.error,
    )


def sums(tx: HomeTransaction, *, since: datetime, until: datetime | None = None) -> list[Spent]:
    before = () if until is None else (to_ms(until),)
    rows = tx.all(
        "SELECT purpose, model, count(*), count(error), sum(prompt_tokens), sum(completion_tokens), sum(cost)"
        f" FROM spend WHERE at >= ? {'AND at < ?' if before else ''} GROUP BY purpose, model ORDER BY purpose, model",
        *(to_ms(since), *before),
    )
    names = ("purpose", "model", "calls", "failed", "prompt_tokens", "completion_tokens", "cost")
    return [Spent(**dict(zip(names, row, strict=True))) for row in rows]
