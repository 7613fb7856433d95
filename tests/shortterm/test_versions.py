"""Canvases at their versions, and patches that are checked, kept and rolled back."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput, McpMemoryError, NotFound
from mcp_memory.core.types import Group
from mcp_memory.shortterm.canvas.flowchart import Canvas, parse, render
from mcp_memory.shortterm.canvas.folding import members, nodes_of
from mcp_memory.shortterm.canvas.state import (
    CanvasState,
    EdgeLabel,
    NewGroup,
    Patch,
    apply_patch,
    canvas_problems,
    state_of,
    undo_patch,
)
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows
from tests.shortterm.agent import START, Agent, from_versions, patch_canvas, tear

SPACES = count()

ids = st.sampled_from(["001-N1", "001-N2", "001-N3", "001-N4", "001-N5", "001-F1", "001-F2"])
words = st.sampled_from(["Look", "Fix it", 'a "b"', "tests red"])
patches = st.builds(
    Patch,
    goal=st.sampled_from(["", "Better words"]),
    ungroup=st.lists(ids, max_size=1).map(tuple),
    groups=st.lists(
        st.builds(NewGroup, title=words, nodes=st.lists(ids, min_size=2, max_size=4).map(tuple)), max_size=2
    ).map(tuple),
    titles=st.dictionaries(ids, words, max_size=2),
    summaries=st.dictionaries(ids, words, max_size=2),
    statuses=st.dictionaries(ids, st.sampled_from(["done", "blocked", "paused"]), max_size=1),
    edges=st.lists(st.builds(EdgeLabel, source=ids, target=ids, label=words), max_size=1).map(tuple),
)
asked: dict[str, st.SearchStrategy[Any]] = {
    "step": st.sampled_from(["a", "b", "c", "d", "001-N1"]),
    "status": st.sampled_from(["done", "blocked", "paused"]),
    "after": st.sampled_from([["001-N1"], ["001-N2 when red", "001-F1"]]),
    "task": st.sampled_from(["One thing", "Another"]),
    "arguments": st.sampled_from([{"path": "a.py"}, {"command": "pytest -q"}]),
}
calls: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"verb": st.just("offload")}, optional=asked),
    st.fixed_dictionaries(
        {"verb": st.just("fold"), "action": st.sampled_from(["fold", "unfold", "complete", "switch"])},
        optional={"nodes": st.lists(ids, min_size=1, max_size=3), "task": st.sampled_from(["001", "another"])},
    ),
    st.fixed_dictionaries({"verb": st.just("patch"), "patch": patches}),
    st.fixed_dictionaries({"verb": st.just("rollback")}),
)


def act(agent: Agent, verb: str, **asked: Any) -> None:
    """Do it, or be refused, which must leave no trace."""
    try:
        match verb:
            case "offload":
                agent.offload(f"{agent.seconds}", **asked)
            case "fold":
                agent.fold(**asked)
            case "patch":
                patch_canvas(agent.store, agent.space, 1, asked["patch"])
            case _:
                undo_patch(agent.store, agent.space, 1)
    except McpMemoryError:
        pass


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(calls, max_size=16))
def test_whatever_was_done_what_is_rebuilt_is_what_is_stored(store: Store, done: list[dict[str, Any]]) -> None:
    agent = Agent(store, space=f"space-{next(SPACES)}")
    agent.offload(task="One thing", step="a")
    for each in done:
        act(agent, **each)
    for row in store.read(agent.space, canvas_rows.list_canvases):
        held = state_of(row)
        assert from_versions(store, agent.space, row.number) == row
        assert parse(render(held.canvas)) == held.canvas
        nodes = [node for id_ in held.groups for node in held.groups[id_].nodes]
        assert len(nodes) == len(set(nodes))
        assert all(nodes_of(held.canvas, held.groups, node) for node in nodes)


def test_a_canvas_whose_row_and_file_were_lost_comes_back(agent: Agent) -> None:
    for step in ("Look", "Fix", "Test"):
        agent.offload(step=step, task="Fix login")
    row = agent.store.read("default", canvas_rows.canvas, 1)
    tear(agent.store, 1, "%% nothing\n")
    (agent.store.folder("default") / "mmds/001-fix-login.mmd").unlink()
    assert [each[:10] for each in canvas_problems(agent.store, "default")] == ["Canvas 001"]
    assert agent.store.write("default", canvas_rows.redraw, 1) == (row, True)
    assert (agent.store.folder("default") / "mmds/001-fix-login.mmd").read_text() == row.text
    assert agent.store.write("default", canvas_rows.redraw, 1) == (row, False)


def test_versions_go_on_after_a_row_was_changed_from_outside(agent: Agent) -> None:
    agent.offload(step="Look", task="Fix login")
    tear(agent.store, 1, agent.store.read("default", canvas_rows.canvas, 1).text.replace("Look", "Stare"))
    agent.offload(step="Fix")
    row = agent.store.read("default", canvas_rows.canvas, 1)
    assert "Stare" in row.text
    assert from_versions(agent.store, "default", 1) == row
    assert "Look" in agent.store.read("default", canvas_rows.canvas, 1, version=1).text


@pytest.mark.slow
def test_the_versions_of_a_long_task_are_about_as_large_as_its_last(agent: Agent) -> None:
    for step in range(60):
        agent.offload(step=f"Step number {step}, with some words of its own", task="Fix login")
    held = (agent.store.folder("default") / "canvases.jsonl").stat().st_size
    assert held < 3 * len(agent.store.read("default", canvas_rows.canvas, 1).text)


# --- patches ----------------------------------------------------------------------------------------


@pytest.fixture
def patched(agent: Agent) -> Agent:
    for step in ("Look", "Read", "Fix", "Test"):
        agent.offload(step=step, task="Fix login")
    return agent


def drawn(agent: Agent) -> CanvasState:
    return state_of(agent.store.read("default", canvas_rows.canvas, 1))


def test_a_patch_names_groups_joins_and_marks(patched: Agent) -> None:
    patch = Patch(
        goal="Fix the login test",
        groups=(NewGroup(title="Understand the code", nodes=("001-N1", "001-N2"), summary="the clock is off"),),
        titles={"001-N3": "Fix the clock", "001-F1": "Understand"},
        summaries={"001-N3": "leeway 30 s"},
        statuses={"001-N3": "blocked"},
        edges=(EdgeLabel(source="001-N2", target="001-N4", label="instead"),),
    )
    row = patch_canvas(patched.store, "default", 1, patch)
    held = state_of(row)
    assert held.canvas.task_goal == "Fix the login test"
    assert held.groups == {"001-F1": Group(("001-N1", "001-N2"), "Understand", "the clock is off")}
    assert [(edge.source[4:], edge.target[4:], edge.label, edge.dashed) for edge in held.canvas.edges] == [
        ("N1", "N2", "", False),
        ("N2", "N3", "dead end", True),
        ("N3", "N4", "", False),
        ("N2", "N4", "instead", False),
    ]
    assert "2 steps: Understand<br/>status: done<br/>summary: the clock is off" in patched.fold().text


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        (Patch(titles={"001-N9": "x"}), "001-N9 in titles is not on this canvas."),
        (Patch(statuses={"001-F1": "done"}), "001-F1 in statuses is not on this canvas."),
        (Patch(titles={"001-N1": "x" * 81}), "has 81 characters; 80 are allowed."),
        (Patch(titles={"001-N1": " "}), "A title is empty."),
        (Patch(ungroup=("001-F1",)), "'001-F1' in ungroup is not a group here."),
        (Patch(groups=(NewGroup(title="x", nodes=("001-N1",)),)), "has fewer than two nodes."),
        (Patch(groups=(NewGroup(title="x", nodes=("001-N3", "001-N4")),)), "contains 001-N4, which is in progress."),
        (
            Patch(groups=tuple(NewGroup(title="x", nodes=(f"001-N{n}", f"001-N{n + 1}")) for n in (1, 2))),
            "001-F1 is folded already and contains 001-N1 too.",
        ),
        (Patch(edges=(EdgeLabel(source="001-N1", target="001-N1", label="x"),)), "joins 001-N1 to itself."),
    ],
)
def test_a_patch_that_cannot_be_is_refused_whole(patched: Agent, patch: Patch, says: str) -> None:
    before = patched.store.read("default", canvas_rows.canvas, 1)
    with pytest.raises(InvalidInput, match="Nothing was changed") as refused:
        patch_canvas(patched.store, "default", 1, replace(patch, goal="Other words"))
    assert says in str(refused.value)
    assert patched.store.read("default", canvas_rows.canvas, 1) == before


def test_rollback_undoes_the_last_patch_and_keeps_what_was_done_since(patched: Agent) -> None:
    group = NewGroup(title="Understand", nodes=("001-N1", "001-N2"))
    patch_canvas(patched.store, "default", 1, Patch(titles={"001-N3": "First"}))
    patch_canvas(patched.store, "default", 1, Patch(groups=(group,), goal="Second"))
    patched.offload(step="Write it up", after=["001-F1"])
    undo_patch(patched.store, "default", 1)
    held = drawn(patched)
    assert (held.groups, held.canvas.task_goal) == ({}, "Fix login")
    assert [node.title for node in held.canvas.nodes] == ["Look", "Read", "First", "Test", "Write it up"]
    undo_patch(patched.store, "default", 1)
    assert drawn(patched).canvas.nodes[2].title == "Fix"
    with pytest.raises(NotFound, match="Canvas 001 has no patch to undo"):
        undo_patch(patched.store, "default", 1)


@given(patches)
def test_a_patch_loses_no_node(patch: Patch) -> None:
    nodes = tuple(replace(node, id=f"001-N{at}") for at, node in enumerate(parse(_LINE).nodes * 5, 1))
    drawing = CanvasState(canvas=Canvas(1, "g", "doing", START, START + timedelta(seconds=1), nodes))
    try:
        changed = apply_patch(drawing, patch)
    except InvalidInput:
        return
    assert [node.id for node in changed.canvas.nodes] == [node.id for node in nodes]
    held = [node for id_ in changed.groups for node in changed.groups[id_].nodes]
    assert len(held) == len(set(held))
    assert all(id_ not in members(changed.groups, node) for id_ in changed.groups for node in held if node != id_)


_LINE = (
    '%% {"taskGoal":"g","status":"doing","createdTime":"2026-04-16T12:00:00.000+00:00",'
    '"updatedTime":"2026-04-16T12:00:00.000+00:00"}\nflowchart TD\n'
    '001-N1["t<br/>status: done<br/>summary: s<br/>Timestamp: 2026-04-16T12:00:00.000+00:00"]\n'
)
