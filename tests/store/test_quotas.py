"""Quotas of a space, on every engine: exact, whoever writes, and in force for nobody else."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcp_memory.core.errors import NoRoom, Refused
from mcp_memory.core.types import NewTurn, Spend
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.postgres.store import open_store as open_postgres
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import home_rows, quota_rows, ref_rows, space_rows, tombstone_rows, turn_rows
from mcp_memory.store.sql.quota_rows import DOLLAR, Quota, QuotaKind
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.usage_ledger import StoreLedger
from mcp_memory.store.values import NewRef
from tests.postgres_server import KEY

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def put(store: Store, what: QuotaKind, most: int | None, space: str = "work") -> None:
    store.write(space, quota_rows.put_quota, what, most, now=NOON)


def quotas(store: Store, now: datetime = NOON) -> list[Quota]:
    return store.read("work", quota_rows.list_quotas, now=now)


def append(store: Store, *texts: str, space: str = "work", session: str = "one") -> list[str]:
    turns = turn_rows.prepare([NewTurn(role="user", content=text) for text in texts])
    return [turn.id for turn in store.write(space, turn_rows.append, session, turns, now=NOON).stored]


def offload(store: Store, data: bytes) -> None:
    new = NewRef(
        tool="shell",
        arguments=None,
        tool_call_id=None,
        session="one",
        timestamp=NOON,
        data=data,
        content_type="text/plain",
    )
    store.write("work", ref_rows.put, new)


def test_a_call_that_would_exceed_a_quota_stores_nothing_and_says_what_to_do(store: Store) -> None:
    put(store, "turns", 3)
    append(store, "one", "two")
    with pytest.raises(NoRoom, match=r"quota of turns\. Nothing was stored\..*mcp-memory status"):
        append(store, "three", "four")
    assert quotas(store) == [Quota(what="turns", most=3, used=2)]
    append(store, "three")
    assert quotas(store)[0].is_used_up
    append(store, "another space has no quota", "nor this", "nor", "x", space="home")
    put(store, "turns", None)
    append(store, "four", "five")
    assert quotas(store) == []


def test_what_is_stored_already_counts_and_a_lower_quota_only_stops_what_is_new(store: Store) -> None:
    append(store, "caf\u00e9", "two", "three")
    put(store, "turns", 2)
    put(store, "bytes", 1_000)
    assert quotas(store) == [Quota(what="turns", most=2, used=3), Quota(what="bytes", most=1_000, used=13)]
    with pytest.raises(NoRoom):
        append(store, "four")
    assert append(store, "caf\u00e9", "two", "three") == []  # nothing new


def test_bytes_are_those_of_turns_and_results_until_they_are_purged(store: Store) -> None:
    put(store, "bytes", 100)
    append(store, "caf\u00e9")
    offload(store, b"x" * 60)
    with pytest.raises(NoRoom, match="quota of bytes"):
        offload(store, b"y" * 60)
    assert quotas(store) == [Quota(what="bytes", most=100, used=65)]
    tombstone = store.write("work", tombstone_rows.forget, ["t1"], reason="", now=NOON)
    assert quotas(store)[0].used == 65
    store.purge("work", Purge(tombstones=[tombstone.id]), now=NOON)
    assert quotas(store)[0].used == 60


def test_servers_that_write_at_once_never_exceed_a_quota_together(store: Store, home: Path) -> None:
    put(store, "turns", 20)
    other = open_store(home) if store.has_files else open_postgres(store._db._conninfo, key=KEY)  # type: ignore[attr-defined]
    refused: list[str] = []

    def write(at: Store, name: str) -> None:
        for number in range(15):
            try:
                append(at, f"{name} {number}", session=name)
            except NoRoom as error:
                refused.append(str(error))

    threads = [threading.Thread(target=write, args=(at, str(n))) for n, at in enumerate((store, other, store, other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert quotas(store) == [Quota(what="turns", most=20, used=20)]
    assert store.totals("work", "turn").rows == 20
    assert len(refused) == 4 * 15 - 20


def test_model_calls_use_the_quotas_of_their_month(store: Store) -> None:
    ledger = StoreLedger(store)
    put(store, "tokens", 100)
    put(store, "cost", 2 * DOLLAR)
    call = Spend(at=NOON, purpose="extract", model="m", prompt_tokens=30, completion_tokens=10, cost=1.5)
    ledger.require_quota("work", now=NOON)
    ledger.add_spend(call, "work")
    ledger.add_spend(call, "home")
    ledger.add_spend(call)
    ledger.require_quota("work", now=NOON)
    ledger.add_spend(call, "work")
    assert quotas(store) == [
        Quota(what="tokens", most=100, used=80), Quota(what="cost", most=2 * DOLLAR, used=3 * DOLLAR)
    ]  # fmt: skip
    with pytest.raises(Refused, match=r"quota of \$2.00 a month is used up"):
        ledger.require_quota("work", now=NOON)
    ledger.require_quota("home", now=NOON)
    december = NOON + timedelta(days=15)
    ledger.require_quota("work", now=december)
    assert [quota.used for quota in quotas(store, december)] == [0, 0]


def test_a_deleted_space_leaves_no_row_and_its_name_is_free_again(store: Store) -> None:
    put(store, "turns", 10)
    append(store, "one", "two")
    append(store, "stays", space="home")
    offload(store, b"a result")
    store.write("work", space_rows.empty_indexes)
    for table in space_rows.tables():
        store.write("work", space_rows.empty_table, table)
    store.write_home(space_rows.retire, "work")
    assert store.read_home(home_rows.spaces) == ["home"]
    assert append(store, "again") == ["t1"]
    assert quotas(store) == []
    assert store.read("home", turn_rows.by_ids, ["t1"])[0].content == "stays"
    assert [(row.name, row.turns) for row in store.read_home(space_rows.summaries, now=NOON)] == [
        ("home", 1),
        ("work", 1),
    ]
