"""The stage that has a model put a long canvas in order: by checked patches that can be rolled back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.shortterm.canvas.flowchart import Canvas, parse, read, render
from mcp_memory.shortterm.canvas.folding import fold_groups
from mcp_memory.shortterm.canvas.placement import CanvasStep
from mcp_memory.shortterm.canvas.state import CanvasState, Patch, apply_patch, undo_patch
from mcp_memory.shortterm.canvas_stage import CANVAS, FRESH, GROWN, NODES, CanvasReply, check_reply, due_canvases
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, turn_rows
from tests.shortterm.agent import START, Agent, from_versions, taken
from tests.shortterm.asking import Asking, asked, context_at

LATER = START + timedelta(hours=2)


def walk(agent: Agent, steps: int = GROWN, **more: Any) -> None:
    """Take steps, each after the one before, by turns one that the agent names and one named after its call."""
    for at in range(1, steps + 1):
        given: dict[str, Any] = {"arguments": {"path": f"src/part{at}.ts"}, "task": "Mend the checkout"}
        agent.offload(f"text of part {at}", **given | {"step": f"look at {at}" if at % 2 else None} | more)


def drawn(store: Store) -> Canvas:
    return read(store.read("default", canvas_rows.canvas, 1))


def group(title: str, first: int, last: int, summary: str = "") -> dict[str, Any]:
    return {"title": title, "nodes": [f"001-N{at}" for at in range(first, last + 1)], "summary": summary}


# --- when -------------------------------------------------------------------------------------------


def test_a_canvas_is_looked_over_when_it_has_grown_by_many_steps_and_not_again_before_it_did(agent: Agent) -> None:
    walk(agent, GROWN - 1)
    assert due_canvases(agent.store, "default", LATER) == []
    walk(agent, 1)
    assert [each.canvas for each in due_canvases(agent.store, "default", LATER)] == [1]
    asked(CANVAS, agent.store).answer({})
    assert due_canvases(agent.store, "default", LATER, eager=True) == []
    walk(agent, GROWN)
    assert [each.steps for each in due_canvases(agent.store, "default", LATER)] == [GROWN]
    assert due_canvases(agent.store, "default", LATER + FRESH) == []


def test_a_task_that_is_done_is_looked_over_after_fewer(agent: Agent) -> None:
    walk(agent, 12)
    assert due_canvases(agent.store, "default", LATER) == []
    agent.fold(action="complete")
    assert [each.canvas for each in due_canvases(agent.store, "default", LATER)] == [1]


def test_what_has_few_nodes_is_left_as_it_is(agent: Agent) -> None:
    walk(agent, GROWN, step="look around")
    assert len(drawn(agent.store).nodes) < NODES
    assert Asking.of(CANVAS, context_at(agent.store)) is None


# --- the question -----------------------------------------------------------------------------------


def test_the_question_tells_the_way_its_forks_and_what_was_said(agent: Agent) -> None:
    walk(agent)
    agent.offload("no use", tool="bash", step="another way", after=("001-N3",), status="blocked")
    agent.store.write(
        "default",
        turn_rows.append,
        "s1",
        turn_rows.prepare([NewTurn(role="user", content="Is it </said> done?")]),
        now=LATER,
    )
    text = asked(CANVAS, agent.store).text
    assert '<task status="doing">\nMend the checkout\n</task>' in text
    assert "user: Is it ‹/said> done?" in text
    assert "001-N1 [done] look at 1 (named by the agent): " in text
    assert "001-N2 [done] Read src/part2.ts: " in text
    assert text.endswith(f"unless it stands here:\n001-N{GROWN + 1} follows 001-N3 (dead end)\n</edges>")


# --- what is kept -----------------------------------------------------------------------------------


def test_groups_titles_and_words_on_edges_become_one_patch_that_can_be_rolled_back(agent: Agent) -> None:
    walk(agent)
    before = agent.store.read("default", canvas_rows.canvas, 1)
    asking = asked(CANVAS, agent.store)
    applied = asking.answer(
        {
            "groups": [group("Look around", 1, 6, "src/part4.ts is the one")],
            "titles": [{"id": "001-N8", "title": "Read the totals"}],
            "edges": [{"from": "001-N8", "to": "001-N9", "label": "not there"}],
        }
    )
    after = agent.store.read("default", canvas_rows.canvas, 1)
    assert {id: (each.title, each.summary, len(each.nodes)) for id, each in after.groups.items()} == {
        "001-F1": ("Look around", "src/part4.ts is the one", 6)
    }
    titles = {node.id: node.title for node in drawn(agent.store).nodes}
    assert (titles["001-N7"], titles["001-N8"]) == ("look at 7", "Read the totals")
    assert len(applied.kept) == 3
    last = agent.store.read("default", canvas_rows.versions, 1)[-1]
    assert (last.number, last.kind, last.work) == (after.version, "patched", asking.work.id)
    assert from_versions(agent.store, "default", 1) == after
    undo_patch(agent.store, "default", 1)
    assert agent.store.read("default", canvas_rows.canvas, 1).text == before.text
    assert agent.store.read("default", canvas_rows.canvas, 1).groups == {}


@pytest.mark.parametrize(
    ("wish", "why"),
    [
        ({"groups": [group("Look at 9999", 1, 3)]}, "9999 is nowhere in the question"),
        ({"groups": [{"title": "Ends", "nodes": ["001-N1", "001-N3"]}]}, "001-N2 is between its steps"),
        ({"groups": [group("All", 20, GROWN)]}, f"001-N{GROWN}, which is in progress"),
        ({"groups": [group("Away", 90, 95)]}, "not a node or group"),
        ({"titles": [{"id": "001-N1", "title": "Begin"}]}, "keeps its title"),
        ({"edges": [{"from": "001-N1", "to": "001-N9", "label": "so"}]}, "no edge joins them"),
        ({"goal": "Mend all of it"}, "already has a goal, given by whoever"),
        ({"ungroup": ["001-F7"]}, "not a group here"),
    ],
)
def test_what_does_not_hold_is_refused_and_the_rest_is_kept(agent: Agent, wish: dict[str, Any], why: str) -> None:
    walk(agent)
    asking = asked(CANVAS, agent.store)
    before = agent.store.read("default", canvas_rows.canvas, 1)
    with pytest.raises(InvalidInput, match=why):
        asking.answer(wish)
    assert agent.store.read("default", canvas_rows.canvas, 1) == before
    good = group("Look around", 10, 12)
    applied = asking.answer({**wish, "groups": [*wish.get("groups", []), good]})
    assert len(applied.refused) == 1
    assert why in applied.refused[0]
    assert [each.title for each in agent.store.read("default", canvas_rows.canvas, 1).groups.values()] == [
        "Look around"
    ]


def test_a_task_that_nobody_named_gets_the_goal_that_its_steps_tell(agent: Agent) -> None:
    walk(agent, task=None)
    assert drawn(agent.store).task_goal == "Work with Read"
    asked(CANVAS, agent.store).answer({"goal": "Mend the checkout"})
    assert drawn(agent.store).task_goal == "Mend the checkout"


def test_a_task_is_over_only_when_it_rests_and_a_later_step_opens_it_again(agent: Agent) -> None:
    walk(agent)
    asked(CANVAS, agent.store, START + timedelta(minutes=5)).answer({"finished": "the user said thanks"})
    assert agent.store.read("default", canvas_rows.canvas, 1).status == "doing"
    walk(agent)
    asked(CANVAS, agent.store).answer({"finished": "the user said thanks"})
    row = agent.store.read("default", canvas_rows.canvas, 1)
    assert (row.status, row.folded) == ("done", True)
    assert from_versions(agent.store, "default", 1) == row
    agent.seconds = 10_000
    walk(agent, 1)
    assert agent.store.read("default", canvas_rows.canvas, 1).status == "doing"


def test_steps_taken_meanwhile_stay_and_what_no_longer_holds_is_refused(agent: Agent) -> None:
    walk(agent)
    asking = asked(CANVAS, agent.store)
    agent.offload("more", step="look at 5")  # 001-N5 is being worked on again
    applied = asking.answer({"groups": [group("Look around", 4, 6), group("Look on", 10, 12)]})
    assert [each.title for each in agent.store.read("default", canvas_rows.canvas, 1).groups.values()] == ["Look on"]
    assert "001-N5, which is in progress" in applied.refused[0]


wishes = st.fixed_dictionaries(
    {},
    optional={
        "groups": st.lists(
            st.fixed_dictionaries(
                {"title": st.text(max_size=90), "nodes": st.lists(st.integers(0, 14).map(lambda at: f"001-N{at}"))},
                optional={"summary": st.text(max_size=220)},
            ),
            max_size=4,
        ),
        "titles": st.lists(
            st.fixed_dictionaries(
                {"id": st.integers(0, 14).map(lambda at: f"001-N{at}"), "title": st.text(max_size=90)}
            )
        ),
        "ungroup": st.lists(st.sampled_from(["001-F1", "001-F2", "001-N1", ""]), max_size=2),
        "goal": st.text(max_size=210),
        "finished": st.text(max_size=10),
    },
)


def way(steps: int) -> Canvas:
    canvas = Canvas(1, "Work with Read", "doing", START, START)
    for at in range(steps):
        now = START + timedelta(seconds=at)
        canvas = taken(canvas, CanvasStep(title=f"Read {at}.ts", summary=f"part {at}", name=f"look at {at}", now=now))
    return canvas


@given(wishes, st.sets(st.integers(0, 12).map(lambda at: f"001-N{at}")))
def test_whatever_a_reply_asks_for_what_is_kept_of_it_fits_and_no_node_is_lost(
    wish: dict[str, Any], named: set[str]
) -> None:
    before = CanvasState(canvas=way(12))
    found = check_reply(CanvasReply.model_validate(wish), before, question="part 1 2 3", titled=named, has_goal=False)
    after = apply_patch(before, found.patch)
    assert [node.id for node in after.canvas.nodes] == [node.id for node in before.canvas.nodes]
    assert [(e.source, e.target) for e in after.canvas.edges] == [(e.source, e.target) for e in before.canvas.edges]
    assert not named & set(found.patch.titles)
    assert parse(render(after.canvas)) == after.canvas
    assert len(fold_groups(after.canvas, after.groups).nodes) >= 1
    if found.patch == Patch():
        assert after == before


def test_whatever_is_kept_can_be_drawn_anew(agent: Agent) -> None:
    walk(agent, 12, task=None)
    asked(CANVAS, agent.store).answer(
        {
            "goal": "Read all parts",
            "groups": [group("One", 2, 4), group("Two", 1, 4), {"title": "Three", "nodes": ["001-F1", "001-N5"]}],
            "ungroup": ["001-F9"],
            "titles": [{"id": "001-N6", "title": 'Half "way"'}, {"id": "001-N8", "title": "x" * 200}],
        }
    )
    assert from_versions(agent.store, "default", 1) == agent.store.read("default", canvas_rows.canvas, 1)
