"""Time that passes for leases and queues: they go by the clock of the database, which no test can set."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from mcp_memory.store.sql.transaction import HomeTransaction, milliseconds


def pass_time(store: Any, span: timedelta) -> None:
    """Let `span` pass for all leases, waits, queues and rates of a store."""
    store.write_home(_older, milliseconds(span))


def _older(tx: HomeTransaction, span: int) -> None:
    tx.run("UPDATE work SET until = until - ?", span)
    tx.run("UPDATE due SET until = until - ?, at = at - ?", span, span)
    tx.run("UPDATE request_rate SET at = at - ?", span)
