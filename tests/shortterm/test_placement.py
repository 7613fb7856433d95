"""Where steps go, and which task a call belongs to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import CanvasRow
from mcp_memory.shortterm.canvas.flowchart import Canvas, parse, render
from mcp_memory.shortterm.canvas.placement import CanvasStep
from mcp_memory.shortterm.canvas.tasks import check_task, choose_task, find_task, label_of
from tests.shortterm.agent import taken

AT = datetime(2026, 4, 16, 12, tzinfo=UTC)
EMPTY = Canvas(1, "task", "doing", AT, AT)
SOLID, DEAD = "", "dead end"


def walk(*steps: dict[str, Any]) -> Canvas:
    """Place steps one second apart."""
    canvas = EMPTY
    for at, given_ in enumerate(steps, 1):
        step = {"title": f"tool {at}", "summary": f"sum {at}", "now": AT + timedelta(seconds=at)} | given_
        after = step.pop("after", ())
        canvas = taken(canvas, CanvasStep(**step, after=dict.fromkeys(after, "")))
    return canvas


def shape(canvas: Canvas) -> tuple[list[str], list[str]]:
    """`N1 done` for each node, `N1>N2` or `N1-x>N2` for each edge."""
    edges = [f"{e.source[4:]}{'-x>' if e.dashed else '>'}{e.target[4:]}" for e in canvas.edges]
    return [f"{node.id[4:]} {node.status}" for node in canvas.nodes], edges


def test_a_new_step_follows_the_last_which_is_then_done() -> None:
    assert shape(walk({"name": "a"}, {"name": "b"})) == (["N1 done", "N2 doing"], ["N1>N2"])


def test_the_same_step_in_any_case_and_spacing_or_by_its_id_continues_its_node() -> None:
    canvas = walk({"name": "Fix  Skew"}, {"name": "fix skew", "status": "done"}, {"name": "001-N1"})
    assert shape(canvas) == (["N1 doing"], [])
    assert (canvas.nodes[0].title, canvas.nodes[0].summary) == ("Fix Skew", "sum 3")


def test_a_dead_end_is_dashed_and_what_comes_next_follows_what_was_before_it() -> None:
    canvas = walk({"name": "a"}, {"name": "b", "status": "blocked"}, {"name": "c", "status": "blocked"}, {"name": "d"})
    assert shape(canvas) == (
        ["N1 done", "N2 blocked", "N3 blocked", "N4 doing"],
        ["N1-x>N2", "N1-x>N3", "N1>N4"],
    )
    assert [edge.label for edge in canvas.edges] == [DEAD, DEAD, SOLID]


def test_a_dead_end_that_turns_out_well_gets_its_edge_back() -> None:
    canvas = walk({"name": "a"}, {"name": "b", "status": "blocked"}, {"name": "b"}, {"name": "b", "status": "done"})
    assert shape(canvas) == (["N1 done", "N2 done"], ["N1>N2"])
    assert shape(walk({"name": "b", "status": "blocked"}, {"name": "b"}))[0] == ["N1 blocked"]


def test_branches_stay_visible_and_join_again() -> None:
    canvas = walk(
        {"name": "a"},
        {"name": "b", "after": ("001-N1",)},
        {"name": "c", "after": ("001-N1",)},
        {"name": "d", "after": ("001-N2", "001-N3")},
        {"name": "d", "after": ("001-N1", "001-N2", "001-N4")},
    )
    assert shape(canvas)[0] == ["N1 done", "N2 done", "N3 done", "N4 doing"]
    assert shape(canvas)[1] == ["N1>N2", "N1>N3", "N2>N4", "N3>N4", "N1>N4"]


def test_a_branch_leaves_the_other_branch_as_it_is() -> None:
    canvas = walk({"name": "a"}, {"name": "b"}, {"name": "c", "after": ("001-N1",)}, {"status": "paused", "name": "c"})
    assert shape(canvas)[0] == ["N1 done", "N2 doing", "N3 paused"]


def test_a_dead_end_at_the_very_start_leads_nowhere() -> None:
    assert shape(walk({"name": "a", "status": "blocked"}, {"name": "b"})) == (["N1 blocked", "N2 doing"], [])


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"name": "001-N9"}, "step names '001-N9', which is not a node of canvas 001. Its nodes are: 001-N1."),
        ({"name": "x", "after": ("002-N1",)}, "after names '002-N1', which is not a node of canvas 001."),
    ],
)
def test_an_id_that_is_not_there_is_refused_with_those_that_are(step: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        walk({"name": "a"}, step)
    assert str(refused.value).startswith(says)


calls = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from([None, "a", "b", "C", "d", "e"]),
            "status": st.sampled_from([None, "done", "blocked", "paused"]),
        },
        optional={"after": st.sampled_from([(), ("001-N1",)])},
    ),
    min_size=1,
    max_size=12,
)


@given(calls)
def test_any_walk_gives_one_canvas_that_can_be_written_and_read(steps: list[dict[str, Any]]) -> None:
    steps = [{"name": "first"}, *steps]
    canvas = walk(*steps)
    assert walk(*steps) == canvas
    assert parse(render(canvas)) == canvas
    ids = [node.id for node in canvas.nodes]
    assert ids == [f"001-N{at}" for at in range(1, len(ids) + 1)]
    by_id = {node.id: node for node in canvas.nodes}
    assert all(edge.dashed == (by_id[edge.target].status == "blocked") for edge in canvas.edges)
    assert len({(edge.source, edge.target) for edge in canvas.edges}) == len(canvas.edges)
    assert not any(edge.source == edge.target for edge in canvas.edges)


# --- tasks ------------------------------------------------------------------------------------------


def row(number: int, goal: str, session: str = "s") -> CanvasRow:
    text = render(Canvas(number, goal, "doing", AT, AT, (), ()))
    return CanvasRow(
        number=number, label=label_of(goal), session=session, text=text, status="doing", updated=AT, version=1
    )


@pytest.mark.parametrize(
    ("task", "label"),
    [
        ("Fix failing login test", "fix-failing-login-test"),
        ("fix src/auth/login.py", "fix-src-auth-login-py"),
        ("Починить вход пользователя", "починить-вход-пользователя"),
        ("修复登录测试", "修复登录测试"),
        ("लॉगिन ठीक करें", "लॉगिन-ठीक-करें"),
        ("con: x", "con-x"),
        ("Con!", "con-task"),
        ("😀", "task"),
        ("x" * 90, "x" * 30),
        ("a very long task that goes on and on", "a-very-long-task-that-goes-on"),
    ],
)
def test_a_label_is_the_words_of_the_task(task: str, label: str) -> None:
    assert label_of(check_task(task)) == label


@given(st.text(max_size=300))
def test_a_label_is_short_never_empty_and_safe_in_a_file_name(goal: str) -> None:
    label = label_of(goal)
    assert 1 <= len(label) <= 30
    assert not set(label) & set('/\\<>:"|?*. ')
    assert label == label.strip("-")
    label.encode()


@pytest.mark.parametrize(
    "task",
    ["", "  ", "../../x", "a/../b", "..", "./x", "/etc/passwd", "\\\\host\\share", "C:\\x", "c:/x", "C:", "~/x", "CON",
     "nul.txt", "com1", "LPT9", "a\x00b", "a\nb", "x" * 201],
)  # fmt: skip
def test_a_task_that_is_named_like_a_path_is_refused(task: str) -> None:
    with pytest.raises(InvalidInput, match="Say in a few words what is being done"):
        check_task(task)


def test_tasks_are_found_by_number_label_file_or_goal_and_told_apart_by_goal() -> None:
    long = "compare the answers of both search engines on set "
    rows = [row(4, long + "A"), row(3, long + "B"), row(2, "Fix login"), row(1, "😀")]
    assert rows[0].label == rows[1].label
    found = [
        find_task(rows, each)
        for each in (long + "b", "fix login!", "fix-login", "002", "mmds/002-fix-login.mmd", "😀", "🚀")
    ]
    assert [each.number if each else None for each in found] == [3, 2, 2, 2, 2, 1, None]


def test_the_choice_of_a_task() -> None:
    active, other = row(2, "Fix login"), row(1, "Write docs")

    def choice(task: str | None, *, now: CanvasRow | None = active, hint: str = "") -> tuple[int | None, str, str]:
        chosen = choose_task(task=task, active=now, earlier=[other], goal_hint=hint, tool="Read")
        return (chosen.row.number if chosen.row else None, chosen.label, chosen.goal)

    assert choice(None)[:2] == (2, "fix-login")
    assert choice("FIX login")[:2] == (2, "fix-login")
    assert choice("write docs")[:2] == (1, "write-docs")
    assert choice("New thing") == (None, "new-thing", "New thing")
    assert choice(None, now=None, hint="Why so\nslow?") == (None, "why-so-slow", "Why so slow?")
    assert choice(None, now=None) == (None, "work-with-read", "Work with Read")
