"""Samples of the store for `/metrics`, in addition to the metrics that this process counts itself."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_memory.core.metrics import Sample
from mcp_memory.store.sql.measures import Measures
from mcp_memory.store.values import Replication


def samples_of(measures: Measures) -> Iterator[Sample]:
    yield Sample("mcp_memory_spaces", "Spaces of the store.", measures.spaces)
    yield Sample("mcp_memory_turns_stored_total", "Turns that were ever stored, over all spaces.", measures.turns)
    yield Sample(
        "mcp_memory_valid_tokens", "Tokens of HTTP clients that are neither revoked nor expired.", measures.tokens
    )
    for backlog in measures.backlogs:
        labels = {"queue": backlog.kind}
        yield Sample(
            "mcp_memory_queue_spaces", "Spaces that wait in a queue of background work.", backlog.spaces, labels
        )
        yield Sample(
            "mcp_memory_queue_oldest_seconds", "For how long the first of them has been due.", backlog.oldest, labels
        )


def replication_samples(found: Replication | None) -> Iterator[Sample]:
    if found is not None:
        yield Sample("mcp_memory_standbys", "Standbys that are connected to the primary.", found.connected)
        if found.lag is not None:
            text = "Bytes of the log that the slowest standby has not replayed."
            yield Sample("mcp_memory_standby_lag_bytes", text, found.lag)
