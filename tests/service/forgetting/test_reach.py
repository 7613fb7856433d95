"""What a forgetting takes: as much as was shown before, and brought back whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.store.citations import cited_atoms
from mcp_memory.store.forgetting import Which
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, home_rows, page_rows, stage_outputs, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Filters, NewAtom, SceneChanges, SceneEdit
from mcp_memory.testing import FixedClock

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def everything(store: Store) -> dict[str, Any]:
    """All that a space tells, whoever asks."""
    turns = [
        turn
        for one in store.read("me", turn_rows.sessions)
        for turn in store.read("me", turn_rows.session_turns, one.session)
    ]
    atoms = store.read("me", atom_rows.list_since, 0, limit=999)
    return {
        "turns": turns,
        "atoms": atoms,
        "evidence": [store.read("me", atom_rows.evidence, atom.id) for atom in atoms],
        "facts": store.read("me", atom_rows.facts, filters=Filters()),
        "scenes": store.read("me", page_rows.scenes),
        "pages": [path.read_bytes() for path in sorted((store.folder("me") / "scenes").glob("*"))],
        "found": sorted(store.read("me", tombstone_rows.matching, Which(terms=("thing",)))),
        "counts": store.read("me", home_rows.counts),
    }


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[int]], list[bool], list[str]]:
    """Turns that each atom rests on; which atoms are told too; and ids to forget."""
    drawn = draw(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True), max_size=5))
    told = draw(st.lists(st.booleans(), max_size=3))
    ids = st.sampled_from([*(f"t{n}" for n in range(1, 6)), *(f"a{n}" for n in range(1, len(drawn) + len(told) + 1))])
    return drawn, told, draw(st.lists(ids, min_size=1, max_size=4, unique=True))


def build(store: Store, drawn: list[list[int]], told: list[bool]) -> None:
    said = [NewTurn(role="user", content=f"Some thing, number {n}.") for n in range(1, 6)]
    store.write("me", turn_rows.append, "s", turn_rows.prepare(said), now=NOON)
    for place, turns in enumerate(drawn):
        words = tuple(Evidence(turn=f"t{turn}", span=(5, 10), quote="thing") for turn in turns)
        new = NewAtom(
            kind="episodic", text=f"Drew thing {place}", priority=50, confidence=0.9, session="s", valid_from=NOON,
            evidence=words, entity="thing", relation=f"is {place}", value=str(place),
        )  # fmt: skip
        store.write("me", atom_rows.add, new, now=NOON)
    for place, _ in enumerate(told):
        new = NewAtom(
            kind="persona", text=f"Told thing {place}", priority=80, confidence=1.0, session="s", valid_from=NOON
        )
        store.write("me", atom_rows.add, new, now=NOON)
    atoms = [atom.id for atom in store.read("me", atom_rows.list_since, 0, limit=99)]
    if atoms:
        body = "\n".join(f"A line of it ({id})." for id in atoms)
        edit = SceneEdit(
            action="create", slug="things", reason="r", title="Things", summary="s", body=body, atoms=atoms
        )
        store.write("me", stage_outputs.commit, None, SceneChanges(edits=[edit], upto=0), outcome={}, now=NOON)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=8)
@given(history=histories())
def test_what_goes_is_what_was_shown_and_all_of_it_comes_back(
    tmp_path_factory: pytest.TempPathFactory, history: tuple[list[list[int]], list[bool], list[str]]
) -> None:
    drawn, told, ids = history
    store = open_store(tmp_path_factory.mktemp("home"))
    try:
        build(store, drawn, told)
        before = everything(store)
        shown = store.read("me", tombstone_rows.reach_of, ids)
        assert everything(store) == before
        gone = store.write("me", tombstone_rows.forget, ids, reason="", now=NOON)
        assert sorted(gone.ids) == sorted(shown.ids)
        left = everything(store)
        assert not {turn.id for turn in left["turns"]} & {*shown.turns, *shown.notes}
        assert not {atom.id for atom in left["atoms"]} & set(shown.atoms)
        assert all(left["evidence"])  # nothing that is left rests on nothing
        store.write("me", tombstone_rows.undo, gone.id, now=NOON)
        assert everything(store) == before
        assert store.problems() == []
    finally:
        store.close()


def test_a_forgetting_is_told_in_a_file_without_a_word_of_it(store: Store) -> None:
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="user", content="The safe opens with 4711.")]),
        now=NOON,
    )
    gone = store.write("me", tombstone_rows.forget, ["t1"], reason="asked", how="query", now=NOON)
    store.write("me", tombstone_rows.undo, gone.id, now=NOON + timedelta(hours=1))
    first, last = (json.loads(line) for line in (store.folder("me") / "tombstones.jsonl").read_text().splitlines())
    assert (first["tombstone"], first["ids"], first["how"], first["undone_at"]) == ("x1", ["t1"], "query", None)
    assert (last["undone_at"], last["digests"]) == ("2026-11-20T13:00:00.000+00:00", [])
    assert "4711" not in json.dumps([first, last])


# --- how it is said ---------------------------------------------------------------------------------


async def fill(memory: Memory, clock: FixedClock) -> None:
    await memory.record_turns([NewTurn(role="user", content="The key lies under the red pot.")], session="keys")
    await memory.remember("The red pot is on the balcony.", session="keys", typed=True)
    clock.advance(days=10)
    await memory.record_turns([NewTurn(role="user", content="The red boat leaves at noon.")], session="boats")
    await memory.offload_tool_result("shell", "red paint\n" * 90, session="boats", task="Paint", step="Buy paint")


async def test_words_session_and_time_are_filters_that_combine(memory: Memory, clock: FixedClock) -> None:
    await fill(memory, clock)
    (ref,) = [record.ref for record in await memory.records()]
    for asked, ids in (
        ({"query": "red"}, ["t1", "t3", "a1", ref]),
        ({"query": "red pot"}, ["t1", "a1"]),
        ({"session": "keys"}, ["t1", "a1"]),
        ({"session": "boats"}, ["t3", ref]),
        ({"since": "yesterday"}, ["t3", ref]),
        ({"until": "yesterday"}, ["t1", "a1"]),
        ({"query": "red", "session": "boats"}, ["t3", ref]),
        ({"query": "noon", "until": "yesterday"}, []),
        ({"ids": ["t1", "t3"], "session": "boats"}, ["t3"]),
    ):
        shown = await memory.forget(**asked)  # pyright: ignore[reportArgumentType]
        assert (shown.dry_run, shown.ids, shown.total) == (True, ids, len(ids)), asked


async def test_a_query_means_all_that_holds_its_words_however_much_that_is(memory: Memory) -> None:
    said = [NewTurn(role="user", content=f"Anna said number {n}.") for n in range(260)]
    await memory.record_turns(said, session="s")
    shown = await memory.forget(query="Anna said")
    assert (shown.total, len(shown.ids)) == (260, 200)
    done = await memory.forget(query="Anna said", dry_run=False)
    assert (done.total, (await memory.forget(query="Anna said")).ids) == (260, [])


async def test_what_goes_along_and_what_still_says_it_is_told(memory: Memory, clock: FixedClock) -> None:
    await fill(memory, clock)
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    words = Evidence(turn="t1", span=(4, 7), quote="key")
    new = NewAtom(
        kind="episodic", text="Has a key", priority=50, confidence=0.9, session="keys", valid_from=clock(),
        evidence=[words], entity="user", relation="has", value="key",
    )  # fmt: skip
    drawn = (await to_thread.run_sync(lambda: store.write(memory.space, atom_rows.add, new, now=clock()))).atom.id
    assert any("t1 stays" in line for line in (await memory.forget([drawn], dry_run=True)).along)
    shown = await memory.forget(["t1"], dry_run=True)
    assert shown.ids == ["t1", drawn]
    assert any(drawn in line for line in shown.along)
    assert "1 fact with it." in shown.along


def test_a_page_whose_name_has_an_id_in_it_is_no_evidence() -> None:
    assert cited_atoms("- There is a page of it ([[from-a1]])\n- And a statement ([[from-a1]], a2)") == ["a2"]


# --- tasks ------------------------------------------------------------------------------------------


@pytest.mark.files
async def test_the_words_of_a_forgotten_result_leave_its_task_and_come_back(memory: Memory, clock: FixedClock) -> None:
    task: dict[str, Any] = {"session": "s", "task": "Find the leak"}
    done = await memory.offload_tool_result(
        "shell", "secret valve 9\n" * 90, step="Read the valves", arguments={"cmd": "valves"},
        summary="Valve 9 leaks", **task,
    )  # fmt: skip
    await memory.offload_tool_result("shell", "all dry\n" * 90, step="Look at the roof", summary="It is dry", **task)
    before, file = await memory.canvas(1), memory._parts.store.folder(memory.space) / "mmds"  # pyright: ignore[reportPrivateUsage]
    gone = await memory.forget([done.ref])
    hidden = await memory.canvas(1)
    told = [hidden.text, *(path.read_text() for path in file.iterdir()), *map(str, await memory.records())]
    assert not [text for text in told if "alve" in text]
    assert "Look at the roof" in hidden.text
    clock.advance(minutes=5)
    await memory.offload_tool_result("shell", "it rains\n" * 90, step="Wait for rain", **task)
    assert await memory.problems() == []
    await memory.forget(undo=gone.tombstone)
    after = await memory.canvas(1)
    valves = [line for line in before.text.splitlines() if "Read the valves" in line]
    assert [line for line in after.text.splitlines() if "Valve 9 leaks" in line] == valves
    assert "Wait for rain" in after.text
    assert await memory.problems() == []


async def test_a_task_that_stays_and_says_the_words_is_named(memory: Memory) -> None:
    await memory.offload_tool_result("shell", "Anna was here\n" * 90, session="s", task="Find Anna", step="Ask around")
    await memory.offload_tool_result("shell", "nobody\n" * 90, session="s", task="Find Anna", step="Look outside")
    assert (await memory.forget(query="Anna")).also == ["001"]
    assert "001" not in (await memory.forget(query="around")).also


@pytest.mark.files
async def test_a_task_of_which_all_is_forgotten_loses_its_goal_and_its_name(memory: Memory, home: Path) -> None:
    done = await memory.offload_tool_result("shell", "x y z\n" * 90, session="s", task="Find Anna", step="Ask around")
    before = await memory.canvas(1)
    gone = await memory.forget([done.ref])
    assert "Anna" not in (await memory.canvas(1)).text
    assert [path.name for path in (home / "spaces/default/mmds").iterdir()] == ["001-forgotten.mmd"]
    await memory.forget(undo=gone.tombstone)
    after = await memory.canvas(1)
    assert (after.text, after.label) == (before.text, before.label)
    assert [path.name for path in (home / "spaces/default/mmds").iterdir()] == [f"001-{before.label}.mmd"]


async def test_two_forgettings_of_one_task_are_undone_in_any_order(memory: Memory) -> None:
    refs = [
        (await memory.offload_tool_result("shell", f"{word}\n" * 90, session="s", task="T", step="Same step")).ref
        for word in ("alpha", "beta", "gamma")
    ]
    before = (await memory.canvas(1)).text
    first, second = await memory.forget(refs[1:2]), await memory.forget(refs[2:])
    assert "alpha" in (await memory.canvas(1)).text
    await memory.forget(undo=first.tombstone)
    assert "beta" in (await memory.canvas(1)).text
    await memory.forget(undo=second.tombstone)
    assert (await memory.canvas(1)).text == before
    with pytest.raises(NotFound):
        await memory.forget(undo=second.tombstone)
