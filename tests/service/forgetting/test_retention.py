"""What is kept for a while only: off by default, once a day, never without a trace, and never what a statement needs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from anyio import to_thread

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.values import NewAtom
from mcp_memory.testing import FixedClock


async def fill(memory: Memory, clock: FixedClock) -> str:
    """An old turn, an old one that a statement rests on, an old result, and after 100 days a new one of each."""
    said = ["The bus leaves at seven.", "I keep bees in Porto."]
    await memory.record_turns([NewTurn(role="user", content=text) for text in said], session="old")
    words = Evidence(turn="t2", span=(2, 11), quote="keep bees")
    new = NewAtom(
        kind="persona", text="Keeps bees", priority=50, confidence=0.9, session="old", valid_from=clock(), evidence=[words]
    )  # fmt: skip
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    await to_thread.run_sync(lambda: store.write(memory.space, atom_rows.add, new, now=clock()))
    await memory.remember("Answer in Portuguese", kind="instruction", typed=True)
    old = await memory.offload_tool_result("shell", "old rows\n" * 90, session="old", task="Look", step="Once")
    clock.advance(days=100)
    await memory.record_turns([NewTurn(role="user", content="And now it is spring.")], session="new")
    await memory.offload_tool_result("shell", "new rows\n" * 90, session="new", task="Look again", step="Twice")
    return old.ref


async def test_nothing_is_forgotten_where_nothing_was_set(memory: Memory, clock: FixedClock) -> None:
    await fill(memory, clock)
    assert (await memory.retention(), await memory.follow_retention(eager=True)) == ([], [])
    assert await memory.spaces_with_policies() == []


async def test_what_is_older_goes_and_what_a_statement_rests_on_stays(memory: Memory, clock: FixedClock) -> None:
    ref = await fill(memory, clock)
    await memory.set_retention({"turns": 30, "results": 30})
    shown = {one.policy.what: (one.going, one.staying) for one in await memory.retention()}
    assert shown == {"turns": (1, 1), "results": (1, 0)}
    done = {one.policy.what: (one.took, one.tombstones) for one in await memory.follow_retention()}
    assert {what: took for what, (took, _) in done.items()} == {"turns": 1, "results": 1}
    assert [turn.id for turn in await memory.session_turns("old")] == ["t2"]
    assert sorted(atom.text for atom in await memory.atoms()) == ["Answer in Portuguese", "Keeps bees"]
    made = {one.id: (one.how, one.reason, one.ids) for one in await memory.tombstones()}
    assert sorted(made.values()) == sorted(
        [("retention", "kept for 30 days", ["t1"]), ("retention", "kept for 30 days", [ref])]
    )
    for tombstone in made:
        await memory.forget(undo=tombstone)
    assert len(await memory.session_turns("old")) == 2


async def test_it_is_followed_once_a_day(memory: Memory, clock: FixedClock) -> None:
    await fill(memory, clock)
    await memory.set_retention({"turns": 30})
    assert [one.took for one in await memory.follow_retention()] == [1]
    assert await memory.follow_retention() == []
    clock.advance(days=60)
    assert [one.took for one in await memory.follow_retention()] == [1]
    (policy,) = [one.policy for one in await memory.retention()]
    assert (policy.took, policy.ran_at) == (2, clock())
    assert await memory.spaces_with_policies() == [memory.space]


async def test_only_what_a_policy_forgot_is_purged_by_one(memory: Memory, clock: FixedClock) -> None:
    await fill(memory, clock)
    await memory.forget(["a2"])
    await memory.set_retention({"turns": 30, "purge": 10})
    assert [(one.policy.what, one.took) for one in await memory.follow_retention()] == [("turns", 1), ("purge", 0)]
    clock.advance(days=11)
    done = {one.policy.what: one.tombstones for one in await memory.follow_retention()}
    assert done["purge"] == ["x2"]
    assert {one.id: one.purged for one in await memory.tombstones()} == {"x1": False, "x2": True}


async def test_an_old_history_that_comes_today_is_kept_from_today_on(memory: Memory, clock: FixedClock) -> None:
    said = NewTurn(role="user", content="This was years ago.", said_at=clock() - timedelta(days=3_000))
    await memory.record_turns([said], session="imported")
    await memory.set_retention({"turns": 30})
    assert [one.took for one in await memory.follow_retention()] == [0]


@pytest.mark.parametrize("days", [0, -3, 40_000])
async def test_a_time_that_cannot_be_is_refused(memory: Memory, days: int) -> None:
    with pytest.raises(InvalidInput, match="1 to 36,500"):
        await memory.set_retention({"turns": days})
    assert await memory.retention() == []


async def test_it_is_off_again_at_once(memory: Memory, clock: FixedClock) -> None:
    await fill(memory, clock)
    await memory.set_retention({"turns": 30, "results": 30})
    await memory.set_retention({"turns": None, "results": None})
    assert await memory.follow_retention(eager=True) == []
