"""The bench of round trips runs on a small memory, and its figures are those of its calls."""

from __future__ import annotations

import pytest

from bench import round_trips

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.postgres]


@pytest.mark.timeout(600)
def test_a_small_memory_is_measured_with_and_without_latency() -> None:
    found = round_trips.measured(20.0, turns=100, seconds=0.5, asked=3)
    assert found["verbs"]["record_turns"] == {"statements": 6, "transactions": 1, "round_trips": 2}
    assert found["times"]["20"]["SELECT 1"]["p50"] >= 20  # what the proxy adds
    assert found["times"]["20"]["conversation_search"]["p50"] > 20
    rates = found["record_turns"]
    assert list(rates) == ["after a checkpoint", "later", "bare INSERT and COMMIT", "bare SDK server"]
    assert all(one["calls"] for one in rates.values())
    assert all(rates[when]["log_kb_per_turn"] > 0 for when in ("after a checkpoint", "later"))
    assert set(found["cpu_ms"]) == {"serve", "postgresql", "bare SDK server"}
    assert len(list(round_trips.lines(found))) == 2 + 4 + 2 * 4 + 1 + 1 + 4
