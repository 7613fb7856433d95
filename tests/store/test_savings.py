"""Edits of message lists and the ledger of savings: a contract of every store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import saving_rows
from mcp_memory.store.values import Conflict, MessageEdit, Saved, Saving

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OFFLOAD = Saving(session="s", at=NOON, kind="offload", saved=1_000, spent=200)
EDIT = MessageEdit(session="s", before="a", after="b", shown="x", texts={1: "…"}, refs=("r-9f2c1a7b3d4e",))
NOTHING = Saving(session="s", at=NOON, kind="compress")


def test_a_saving_counts_again_for_each_later_call_that_the_ledger_proves(store: Store) -> None:
    for saving in (
        OFFLOAD,
        replace(OFFLOAD, at=NOON + timedelta(milliseconds=400)),  # parallel tool calls: one call of the model
        replace(OFFLOAD, at=NOON + timedelta(seconds=9), kind="expand", saved=0, spent=300),
        replace(OFFLOAD, at=NOON + timedelta(seconds=20), kind="compress", saved=500, spent=60, cache_broken=700),
        replace(OFFLOAD, session="other", at=NOON + timedelta(seconds=30)),
    ):
        store.write("default", saving_rows.add_saving, saving)
    store.write("elsewhere", saving_rows.add_saving, OFFLOAD)
    nothing = Saved(kind="compress", times=1, saved=500, spent=60, cache_broken=700, saved_later=0, spent_later=0)
    assert store.read("default", saving_rows.savings) == [
        nothing,
        Saved(kind="expand", times=1, saved=0, spent=300, cache_broken=0, saved_later=0, spent_later=300),
        Saved(kind="offload", times=3, saved=3_000, spent=600, cache_broken=0, saved_later=4_000, spent_later=800),
    ]
    assert [one.kind for one in store.read("default", saving_rows.savings, since=NOON + timedelta(seconds=15))] == [
        "compress",
        "offload",
    ]


def test_after_a_compaction_no_later_call_repeats_what_was_saved_before_it(store: Store) -> None:
    for seconds, kind in ((0, "offload"), (10, "expand"), (20, "compacted"), (30, "offload"), (40, "expand")):
        at = NOON + timedelta(seconds=seconds)
        saved, spent = (1_000, 200) if kind == "offload" else (0, 50) if kind == "expand" else (0, 0)
        store.write("default", saving_rows.add_saving, Saving(session="s", at=at, kind=kind, saved=saved, spent=spent))
    assert [
        (one.kind, one.times, one.saved, one.saved_later) for one in store.read("default", saving_rows.savings)
    ] == [
        ("expand", 2, 0, 0),
        ("offload", 2, 2_000, 3_000),  # the first in two calls, of which the second is that of the compaction
    ]


def test_edits_are_found_by_what_they_show_and_by_where_they_reach(store: Store) -> None:
    note = replace(EDIT, before="", after="c", shown="y", texts={}, note="gone", calls=3)
    store.write("default", saving_rows.put_message_edits, [EDIT, note], seen=0, saving=NOTHING)
    first, second = replace(EDIT, id=1), replace(note, id=2)
    assert store.read("default", saving_rows.message_edits, shown=["x", "y"]) == [first, second]
    assert store.read("default", saving_rows.message_edits, reaching=["c"], shown=["y"]) == [second]
    assert store.read("elsewhere", saving_rows.message_edits, shown=["x"]) == []


def test_an_edit_of_what_another_edited_meanwhile_is_a_conflict(store: Store) -> None:
    store.write("default", saving_rows.put_message_edits, [EDIT], seen=0, saving=NOTHING)
    with pytest.raises(Conflict):
        store.write(
            "default",
            saving_rows.put_message_edits,
            [replace(EDIT, before="z", after="z"), EDIT],
            seen=0,
            saving=NOTHING,
        )
    assert len(store.read("default", saving_rows.message_edits, reaching=["b", "z"])) == 1
    store.write("default", saving_rows.put_message_edits, [EDIT], seen=1, saving=NOTHING)
