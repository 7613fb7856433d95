"""Tasks: the list, a canvas as picture and outline with its versions, and a step down to its results."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import anyio.to_thread
import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import StepStatus
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, render
from mcp_memory.shortterm.canvas.state import NewGroup, Patch, amend, apply_patch
from mcp_memory.store.sql import canvas_rows
from mcp_memory.ui.elements import html
from tests.ui.holding import at
from tests.ui.shown import elements, forms, links, text

T0 = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
STEPS: tuple[tuple[str, StepStatus], ...] = (
    ("Read the log", "done"),
    ("Try another parser", "blocked"),
    ("Build the key from UTC", "doing"),
)


@pytest.fixture
async def memory(memory: Memory) -> Memory:
    after: list[str] = []
    for title, status in STEPS:
        done = await memory.offload_tool_result(
            "shell", f"{title}\n" * 400, arguments={"command": title}, session="s", task="Mend the import",
            step=title, after=after, status=status, summary=f"What came of: {title}",
        )  # fmt: skip
        after = [done.node]
    return memory


async def saved(memory: Memory, canvas: Canvas) -> None:
    store, row = memory._parts.store, await memory.canvas(1)  # pyright: ignore[reportPrivateUsage]
    changed = replace(row, text=render(canvas))
    await anyio.to_thread.run_sync(
        lambda: store.write(memory.space, canvas_rows.save, changed, expected=row.version, kind="edited")
    )


async def patched(memory: Memory, patch: Patch) -> None:
    store, row = memory._parts.store, await memory.canvas(1)  # pyright: ignore[reportPrivateUsage]

    def commit() -> None:
        amend(store, memory.space, row, lambda state: apply_patch(state, patch), kind="patched")

    await anyio.to_thread.run_sync(commit)


async def test_the_list_has_each_task_with_its_goal_status_and_steps(memory: Memory) -> None:
    shown = await at(memory, "/tasks")
    assert "Mend the import" in text(shown)
    assert "3 steps" in text(shown)
    assert "1 dead end" in text(shown)
    assert links(shown) == ["/001"]


async def test_a_canvas_is_a_picture_and_an_outline_that_lead_to_steps_and_results(memory: Memory) -> None:
    shown = await at(memory, "/001")
    refs = [record.ref for record in await memory.records(node="001")]
    assert shown.title == "Mend the import"
    for number in (1, 2, 3):
        assert links(shown).count(f"/001-N{number}") == 2
    assert {f"/{ref}" for ref in refs} <= set(links(shown))
    assert all(f"What came of: {title}" in text(shown) for title, _ in STEPS)


async def test_chosen_steps_are_folded_by_one_form(memory: Memory) -> None:
    (fold,) = [one for one in forms(await at(memory, "/001")) if "nodes" in one.values and len(one.values["nodes"]) > 1]
    assert fold.action == "/do/fold"
    assert fold.values["nodes"] == ["001-N1", "001-N2", "001-N3"]
    assert (fold.values["number"], fold.values["action"]) == (["1"], ["fold"])


async def test_a_folded_group_is_one_box_that_can_be_unfolded(memory: Memory) -> None:
    await memory.fold_canvas(task="001", nodes=["001-N1", "001-N2"], action="fold")
    shown = await at(memory, "/001")
    assert "/001-F1" in links(shown)
    assert "/001-N1" not in links(shown)
    unfold = [one for one in forms(shown) if one.values.get("action") == ["unfold"]]
    assert {tuple(one.values["nodes"]) for one in unfold} == {("001-F1",), ("",)}


async def test_a_group_shows_its_steps_and_stands_out_in_the_picture(memory: Memory) -> None:
    await memory.fold_canvas(task="001", nodes=["001-N1", "001-N2"], action="fold")
    shown = await at(memory, "/001-F1")
    assert {"/001-N1", "/001-N2", "/001"} <= set(links(shown))
    selected = [one for one in elements(shown) if "selected" in one.attributes.get("class", "")]
    assert [one.attributes["href"] for one in selected] == ["/001-F1"]


async def test_a_long_task_is_a_page_of_40_kilobytes_and_its_old_steps_are_one_link_away(memory: Memory) -> None:
    nodes = tuple(
        Node(f"001-N{n}", f"A step with a title of usual length, {n}", "done", "What came of it. " * 9, T0)
        for n in range(1, 151)
    )
    edges = tuple(Edge(one.id, other.id) for one, other in pairwise(nodes))
    long = Canvas(1, "A long task", "done", T0, T0, nodes, edges)
    await saved(memory, long)
    shown = await at(memory, "/001")
    assert sum(len(html(node)) for node in shown.body) < 40_000
    stretches = [href for href in links(shown) if href.startswith("/001-F")]
    assert stretches
    inside = await at(memory, stretches[0])
    assert "/001-N1" in links(inside)


async def test_versions_are_listed_and_the_last_patch_can_be_undone(memory: Memory) -> None:
    await patched(memory, Patch(groups=(NewGroup(title="Look and try", nodes=("001-N1", "001-N2")),)))
    shown = await at(memory, "/001")
    assert "patched: words, groups or edges" in text(shown)
    assert "3 results added" in text(shown)
    (undo,) = [one for one in forms(shown) if one.action == "/do/undo_patch"]
    assert undo.values["number"] == ["1"]
    await memory.undo_patch(1)
    again = await at(memory, "/001")
    assert "patch undone" in text(again)
    assert not [one for one in forms(again) if one.action == "/do/undo_patch"]


async def test_a_step_shows_its_results_and_its_neighbours(memory: Memory) -> None:
    shown = await at(memory, "/001-N2")
    (record,) = await memory.records(node="001-N2")
    assert shown.title == "Try another parser"
    assert {"/001", "/001-N1", "/001-N3", f"/{record.ref}"} <= set(links(shown))
    assert "What came of: Try another parser" in text(shown)
    assert "dead end" in text(shown)


async def test_a_step_that_is_not_there_is_not_found(memory: Memory) -> None:
    with pytest.raises(NotFound, match="no step or group 001-N99"):
        await at(memory, "/001-N99")
    with pytest.raises(NotFound):
        await at(memory, "/099")


async def test_a_reader_sees_no_form_and_a_writer_may_fold_but_not_undo(memory: Memory) -> None:
    await patched(memory, Patch(goal="Mend it"))
    assert forms(await at(memory, "/001", right="read")) == []
    assert {one.action for one in forms(await at(memory, "/001", right="write"))} == {"/do/fold"}


async def test_hostile_words_are_shown_as_text(home: Path) -> None:
    bad = '"><svg/onload=alert(1)>'
    async with open_memory(home=home, embedder="none", llm="none") as opened:
        await opened.offload_tool_result(bad, "x\n" * 500, session="s", task=bad, step=bad, summary=bad)
        for address in ("/tasks", "/001", "/001-N1"):
            shown = await at(opened, address)
            assert bad in text(shown)
            assert not [one for one in elements(shown) if "onload" in one.attributes]
