"""Calls to a language model, one row each, whatever came of them; several processes add up to one bill."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import apsw

from mcp_memory.store.protocol import Spend, Spent
from mcp_memory.store.sql.rows import to_ms

__all__ = ["add", "sums"]


def add(con: apsw.Connection, spend: Spend) -> None:
    """See `Store.add_spend`."""
    con.execute(
        "INSERT INTO spend (at, purpose, model, prompt_tokens, completion_tokens, cost, error)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            to_ms(spend.at),
            spend.purpose,
            spend.model,
            spend.prompt_tokens,
            spend.completion_tokens,
            spend.cost,
            spend.error,
        ),
    )


def sums(con: apsw.Connection, *, since: datetime, until: datetime | None) -> list[Spent]:
    """See `Store.spent`."""
    rows: Any = con.execute(
        "SELECT purpose, model, count(*), count(error), sum(prompt_tokens), sum(completion_tokens), sum(cost)"
        " FROM spend WHERE at >= ?1 AND (?2 IS NULL OR at < ?2) GROUP BY purpose, model ORDER BY purpose, model",
        (to_ms(since), None if until is None else to_ms(until)),
    )
    return [
        Spent(
            purpose=purpose,
            model=model,
            calls=calls,
            failed=failed,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cost=cost,
        )
        for purpose, model, calls, failed, prompt_tokens, completion_tokens, cost in rows
    ]
