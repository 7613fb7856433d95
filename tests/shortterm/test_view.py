"""Folding and the way down, through the real store and the real Mermaid."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mermaidx.engine import Engine

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.types import CanvasRow, Group, StepStatus
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, parse, render
from mcp_memory.shortterm.canvas.folding import dissolve, fold_groups
from mcp_memory.shortterm.canvas.placement import CanvasStep
from mcp_memory.shortterm.canvas.view import CONFIG, illustrate, view
from mcp_memory.store.sql import canvas_rows, record_rows
from tests.shortterm.agent import Agent, FourCharacters, taken

AT = datetime(2026, 4, 16, 12, tzinfo=UTC)
COUNTER = FourCharacters()


def row_of(canvas: Canvas, **fields: Any) -> CanvasRow:
    values = {"number": canvas.number, "label": "task", "session": "s", "text": render(canvas), "status": canvas.status}
    return CanvasRow(**{**values, "updated": AT, "version": 1, **fields})


def long_canvas(length: int, *, blocked_every: int = 7) -> Canvas:
    canvas = Canvas(3, "a long task", "doing", AT, AT)
    for at in range(1, length + 1):
        status: StepStatus | None = "blocked" if at % blocked_every == 0 else None
        moment = AT + timedelta(seconds=at)
        canvas = taken(
            canvas, CanvasStep(title="t", summary=f"what came of it {at}", now=moment, name=f"step {at}", status=status)
        )
    return canvas


def shown(text: str) -> tuple[list[str], list[str]]:
    canvas = parse(text)
    edges = [f"{e.source}{'-x>' if e.dashed else '>'}{e.target}" for e in canvas.edges]
    return [node.id for node in canvas.nodes], edges


# --- groups -----------------------------------------------------------------------------------------


def test_a_group_is_one_node_with_its_edges_rewired() -> None:
    canvas = long_canvas(5, blocked_every=3)  # 1 > 2 -x> 3, 2 > 4 > 5
    folded = fold_groups(canvas, {"003-F1": Group(("003-N2", "003-N3", "003-N4"))})
    assert folded.nodes[1] == Node(
        "003-F1",
        "3 steps, 1 dead end: step 2 · step 4",
        "done",
        "dead end: step 3; what came of it 4",
        AT + timedelta(seconds=4),
    )
    assert folded.edges == (Edge("003-N1", "003-F1"), Edge("003-F1", "003-N5"))
    assert fold_groups(canvas, {"003-F1": Group(("003-N3",))}).edges[1] == Edge("003-N2", "003-F1", "dead end", True)


nodes_and_groups = st.tuples(
    st.integers(2, 14), st.integers(2, 5), st.sets(st.integers(1, 14)), st.sets(st.integers(1, 14))
)


@given(nodes_and_groups, st.integers(60, 1200), st.booleans())
def test_a_view_fits_its_budget_and_is_a_canvas_or_the_metadata(
    drawn: tuple[int, int, set[int], set[int]], budget: int, whole: bool
) -> None:
    length, every, first, second = drawn
    canvas = long_canvas(length, blocked_every=every)
    ids = [node.id for node in canvas.nodes]
    one = [id_ for at, id_ in enumerate(ids, 1) if at in first]
    two = [id_ for at, id_ in enumerate(ids, 1) if at in second and id_ not in one]
    groups = {id_: Group(tuple(held)) for id_, held in (("003-F1", one), ("003-F2", two)) if held}
    row = row_of(canvas, groups=groups, folded=whole)
    seen = view(row, canvas, address="mmds/a.mmd", counter=COUNTER, budget_tokens=budget)
    assert seen.tokens == COUNTER.count(seen.text) <= budget
    assert seen == view(row, canvas, address="mmds/a.mmd", counter=COUNTER, budget_tokens=budget)
    assert seen.nodes == length
    if seen.folded:
        assert list(json.loads(seen.text)) == ["taskGoal", "status", "updatedTime", "mmdFilePath"]
    else:
        assert render(parse(seen.text)) == seen.text


def test_over_budget_the_oldest_finished_steps_fold_and_the_newest_stays() -> None:
    canvas = long_canvas(40)
    seen = view(row_of(canvas), canvas, address="mmds/a.mmd", counter=COUNTER, budget_tokens=700)
    ids, edges = shown(seen.text)
    assert ids[:3] == ["003-F1-7", "003-F8-14", "003-F15-21"]
    assert ids[-4:] == [f"003-N{at}" for at in range(37, 41)]
    assert edges[:2] == ["003-F1-7>003-F8-14", "003-F8-14>003-F15-21"]


def test_a_long_task_folds_phases_of_phases_and_the_text_changes_where_it_ends() -> None:
    canvas = long_canvas(200)
    before, shared = "", 0.0
    for length in range(180, 200):
        ids = {node.id for node in canvas.nodes[:length]}
        edges = tuple(edge for edge in canvas.edges if edge.target in ids)
        cut = replace(canvas, nodes=canvas.nodes[:length], edges=edges)
        text = view(row_of(cut), cut, address="mmds/a.mmd", counter=COUNTER, budget_tokens=1000).text
        nodes = [node.id for node in parse(text).nodes]
        assert nodes[0].startswith("003-F1-")
        assert nodes[-1] == f"003-N{length}"
        assert 5 <= len(nodes) <= 30
        shared += sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, text, strict=False))) / len(
            text
        )
        before = text
    assert shared / 20 > 0.4


def test_phases_are_called_by_what_was_written_run_and_looked_at() -> None:
    canvas = Canvas(3, "calls", "doing", AT, AT)
    titles = [
        "Look: app.py, login.py",
        "Write token.py",
        "pytest tests/test_login.py -x",
        "Edit token.py",
        "cat token.py",
    ]
    for at, title in enumerate(titles * 3):
        step = CanvasStep(
            title=title, summary=f"what came of it, and quite at length {at}", now=AT + timedelta(seconds=at)
        )
        canvas = taken(canvas, step)
    seen = parse(view(row_of(canvas), canvas, address="mmds/a.mmd", counter=COUNTER, budget_tokens=500).text)
    assert seen.nodes[0].title == "9 steps: write token.py; run test_login.py; look at app.py"


def test_what_is_unfinished_is_not_folded_to_fit() -> None:
    canvas = long_canvas(20)
    nodes = tuple(
        n if n.id != "003-N3" else Node(n.id, n.title, "paused", n.summary, n.timestamp) for n in canvas.nodes
    )
    canvas = Canvas(3, canvas.task_goal, "doing", AT, AT, nodes, canvas.edges)
    ids, _ = shown(view(row_of(canvas), canvas, address="mmds/a.mmd", counter=COUNTER, budget_tokens=600).text)
    assert ids[:3] == ["003-F1-2", "003-N3", "003-F4-7"]


def test_a_folded_canvas_is_its_four_metadata_fields(agent: Agent) -> None:
    agent.offload(step="Look", task="Fix the login")
    seen = agent.fold(action="fold")
    fields = {"taskGoal": "Fix the login", "status": "doing", "updatedTime": "2026-04-16T12:00:01.000+00:00"}
    fields["mmdFilePath"] = "mmds/001-fix-the-login.mmd"
    assert seen.text == json.dumps(fields, separators=(",", ":"))
    assert [seen.task_goal, seen.status, seen.updated_time, seen.mmd_file_path] == list(fields.values())
    assert (seen.canvas, seen.folded, seen.nodes) == ("001", True, 1)


def test_a_budget_too_small_for_the_metadata_is_refused_with_the_least_there_is() -> None:
    canvas = long_canvas(3)
    with pytest.raises(InvalidInput, match=r"budget_tokens is 5; the metadata of this canvas alone takes \d+\."):
        view(row_of(canvas), canvas, address="mmds/a.mmd", counter=COUNTER, budget_tokens=5)


def test_a_picture_has_colours_a_legend_and_the_words_of_every_node(mermaid: Engine) -> None:
    canvas = long_canvas(3, blocked_every=2)
    node = Node("003-N3", '`a` "b" <b> & %% $$x$$ fa:fa-car C:\\new', "paused", "", AT)
    canvas = fold_groups(replace(canvas, nodes=(*canvas.nodes[:2], node)), {"003-F1": Group(("003-N1",))})
    svg = mermaid.render_svg(illustrate(canvas), "default", CONFIG, None).replace("\u2060", "")
    for words in (
        "✓ 1 step: step 1",
        "✗ step 2",
        "⏸ `a` &quot;b&quot; &lt;b&gt; &amp; %% $$x$$ fa:fa-car C:\\new",
        "done: 1",
        "blocked: 1",
        "paused: 1",
    ):
        assert words in svg or words.replace("&quot;", '"') in svg
    assert "doing: " not in svg
    assert illustrate(Canvas(1, "empty", "doing", AT, AT)).startswith("flowchart TD\n")


def test_a_long_task_is_drawn_in_columns_within_so_many_boxes(mermaid: Engine) -> None:
    text = illustrate(long_canvas(57), boxes=9)
    boxes = [line for line in text.splitlines() if ":::" in line and "legend-" not in line]
    assert len(boxes) <= 9
    assert "NOW" in boxes[-1]
    assert "class 003-N57 active" in text
    svg = mermaid.render_svg(text, "default", CONFIG, None)
    assert "1 · earlier" in svg
    assert "7 steps, 1 dead end: step 50" in svg


def test_folded_views_are_valid_for_the_real_mermaid(mermaid: Engine) -> None:
    canvas = long_canvas(9, blocked_every=3)
    row = row_of(canvas, groups={"003-F1": Group(("003-N8", "003-N9"))})
    seen = view(row, canvas, address="mmds/a.mmd", counter=COUNTER, budget_tokens=270)
    assert shown(seen.text)[0] == ["003-F1-6", "003-N7", "003-F1"]
    svg = mermaid.render_svg(seen.text, "default", None, None)
    assert "6 steps, 2 dead ends: step 1 … step 5" in svg
    assert "2 steps, 1 dead end: step 8" in svg


# --- fold_canvas ------------------------------------------------------------------------------------


def four_steps(agent: Agent) -> None:
    for step in ("One", "Two", "Three", "Four"):
        agent.offload(f"{step}\n" * 99, step=step, task="Fix login")


@pytest.mark.parametrize(
    "fold",
    [[], ["001-N3"], ["001-N4", "001-N3"], ["001-F1"], ["001-F1", "001-N3"], ["001-F1-3"]],
)
def test_unfolding_gives_back_what_folding_took(agent: Agent, fold: list[str]) -> None:
    four_steps(agent)
    agent.fold(action="fold", nodes=["001-N1", "001-N2"])
    before = agent.store.read("default", canvas_rows.canvas, 1)
    agent.fold(action="fold", nodes=fold)
    after = agent.store.read("default", canvas_rows.canvas, 1)
    assert after != before
    agent.fold(action="unfold", nodes=["001-F2"] if fold else [])
    assert replace(agent.store.read("default", canvas_rows.canvas, 1), version=before.version) == before


def test_folding_leaves_the_file_whole(agent: Agent) -> None:
    four_steps(agent)
    text = agent.store.read("default", canvas_rows.canvas, 1).text
    seen = agent.fold(action="fold", nodes=["001-N1", "001-N2"])
    assert shown(seen.text) == (["001-F1", "001-N3", "001-N4"], ["001-F1>001-N3", "001-N3>001-N4"])
    agent.fold(action="fold")
    assert agent.store.read("default", canvas_rows.canvas, 1).text == text
    assert agent.fold(action="unfold").text == seen.text
    assert agent.fold(action="unfold", nodes=["001-N2"]).text == text


def test_a_group_inside_a_group_opens_by_itself(agent: Agent) -> None:
    four_steps(agent)
    agent.fold(action="fold", nodes=["001-N1", "001-N2"])
    agent.fold(action="fold", nodes=["001-F1", "001-N3"])
    assert agent.store.read("default", canvas_rows.canvas, 1).groups == {
        "001-F1": Group(("001-N1", "001-N2")),
        "001-F2": Group(("001-F1", "001-N3")),
    }
    agent.fold(action="unfold", nodes=["001-F1"])
    assert agent.store.read("default", canvas_rows.canvas, 1).groups == {
        "001-F2": Group(("001-N1", "001-N2", "001-N3"))
    }


def test_complete_marks_and_folds_the_task_and_the_next_call_starts_another(agent: Agent) -> None:
    four_steps(agent)
    agent.fold(action="complete", nodes=["001-N4"])
    canvas = parse(agent.store.read("default", canvas_rows.canvas, 1).text)
    assert (canvas.status, canvas.nodes[3].status) == ("doing", "done")
    seen = agent.fold(action="complete")
    assert (seen.status, seen.folded) == ("done", True)
    assert agent.fold().canvas == "001"
    assert agent.offload(hint="Next thing").canvas == "002"


def test_switch_folds_the_task_it_leaves_and_opens_the_other(agent: Agent) -> None:
    agent.offload(task="Fix login")
    agent.fold(action="fold")
    agent.offload(task="Write docs")
    seen = agent.fold(action="switch", task="fix LOGIN")
    assert (seen.canvas, seen.folded) == ("001", False)
    assert agent.store.read("default", canvas_rows.canvas, 2).folded
    assert agent.offload().canvas == "001"


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        ({"action": "burn"}, InvalidInput, "Allowed: show, fold, unfold, complete, switch."),
        ({"task": "nothing"}, NotFound, r"There is no task 'nothing'\. Known tasks: 001 fix-login \(doing\)\."),
        ({"action": "switch"}, InvalidInput, "needs `task`"),
        ({"action": "show", "nodes": ["001-N1"]}, InvalidInput, "takes no `nodes`"),
        ({"action": "fold", "nodes": ["001-N9"]}, InvalidInput, "It has: 001-N1, 001-N2, 001-N3, 001-N4"),
        ({"action": "unfold", "nodes": ["001-N1"]}, InvalidInput, "is not in a group"),
    ],
)
def test_what_cannot_be_folded_is_refused_with_what_can(
    agent: Agent, asked: dict[str, Any], error: type[Exception], says: str
) -> None:
    four_steps(agent)
    with pytest.raises(error, match=says):
        agent.fold(**asked)


def test_a_part_of_a_group_is_not_folded_again(agent: Agent) -> None:
    four_steps(agent)
    agent.fold(action="fold", nodes=["001-N1", "001-N2"])
    with pytest.raises(InvalidInput, match="001-F1 is folded already and contains 001-N2 too"):
        agent.fold(action="fold", nodes=["001-N1", "001-N3"])


def test_without_any_task_there_is_nothing_to_show(agent: Agent) -> None:
    with pytest.raises(NotFound, match=r"Session 's1' has no task\. There is no task yet\."):
        agent.fold()


# --- expand -----------------------------------------------------------------------------------------


def test_a_node_opens_into_its_records_and_a_record_into_its_lines(agent: Agent) -> None:
    first = agent.offload("a\nb\nc\n" * 50, step="Look", arguments={"path": "a.py"}, summary="found a")
    second = agent.offload("x\ny\nz\n" * 50, step="Look", arguments={"path": "b.py"}, summary="found b")
    records = agent.expand("001-N1")
    assert records.text == (
        '001-N1 "Look" (doing): 2 records\n'
        f"001-N1 04-16 12:00 Read path=a.py → found a ({first.ref}, 75 tokens)\n"
        f"001-N1 04-16 12:00 Read path=b.py → found b ({second.ref}, 75 tokens)"
    )
    lines = agent.expand("001-N1", lines="2-3")
    assert lines.ref == second.ref
    assert lines.text.startswith(f"001-N1, newest of 2 results ({first.ref} Read path=a.py): {second.ref} lines 2–3")
    assert agent.expand(first.ref, view="raw", lines="2").text.endswith("2\tb")
    assert agent.expand(first.path, grep="b").view == "grep"
    assert agent.expand(first.ref, view="records").text.startswith(f"{first.ref}: 1 record\n001-N1 ")


def test_a_search_of_a_node_opens_the_newest_result_that_it_matches(agent: Agent) -> None:
    words = ("tide", "berth", "tide too", "crane")
    held = [agent.offload(f"{word}\nb\nc\n" * 50, step="Look", arguments={"path": f"{word}.py"}) for word in words]
    found = agent.expand("001-N1", grep="tide")
    assert found.ref == held[2].ref
    assert found.text.startswith(f"001-N1, newest of 2 results with a match ({held[0].ref} Read path=tide.py): ")
    assert agent.expand("001-N1", grep="tide", cursor=found.cursor).ref == held[2].ref
    assert agent.expand("001-N1", grep="berth").text.startswith("001-N1, the one result with a match: ")
    nothing = agent.expand("001", grep="anchor")
    assert nothing.ref == held[3].ref
    assert "newest of 4 results (" in nothing.text


def test_a_search_of_a_node_passes_over_a_result_whose_file_is_torn(agent: Agent) -> None:
    held = [agent.offload(f"{word}\n" * 50, step="Look", arguments={"path": word}) for word in ("tide", "berth")]
    (agent.store.folder("default") / held[1].path).write_bytes(b"torn")
    assert agent.expand("001-N1", grep="tide").ref == held[0].ref
    with pytest.raises(Damaged):
        agent.expand("001-N1", grep="anchor")


def test_pages_of_records_show_each_once_within_the_budget(agent: Agent) -> None:
    for at in range(12):
        agent.offload(step=f"step {at}", summary="s" * (at % 4) * 60, task="Fix login")
    nodes = [record.node_id for record in agent.store.read("default", record_rows.list_records)]
    for budget in (50, 63, 100, 151, 400, 5000):
        cursor, seen = None, list[str]()
        while cursor is not None or not seen:
            page = agent.expand("001", max_tokens=budget, cursor=cursor)
            assert page.tokens == agent.counter.count(page.text) <= budget
            seen += [line.split()[0] for line in page.text.split("\n")[1:] if line.startswith("001-N")]
            cursor = page.cursor
        assert seen == nodes


def test_groups_stretches_tasks_and_canvases_open_into_records(agent: Agent) -> None:
    four_steps(agent)
    agent.fold(action="fold", nodes=["001-N1", "001-N2"])
    targets = ("001-F1", "001-F2-4", "001", "fix-login", "Fix login")
    heads = [agent.expand(target).text.split("\n")[0] for target in targets]
    assert heads[:2] == ["001-F1, 2 steps: 2 records", "001-F2-4, 3 steps: 3 records"]
    assert set(heads[2:]) == {"001 fix-login (doing): 4 records"}


def test_a_result_that_is_not_text_is_said_to_be_none(agent: Agent) -> None:
    answer = agent.offload(b"\x89PNG\xff\xfe", tool="shot")
    assert answer.summary == "PNG image, 6 bytes, not text"
    assert re.search(
        rf"{answer.ref} is not text: 6 bytes (in|at) {re.escape(answer.path)}", agent.expand(answer.ref).text
    )
    with pytest.raises(InvalidInput, match="it has no lines"):
        agent.expand(answer.ref, lines="1")


@pytest.mark.parametrize(
    ("target", "asked", "error", "says"),
    [
        ("001-N44", {}, NotFound, r"There is no 001-N44\. Near it on canvas 001: 001-N4"),
        ("009", {}, NotFound, "There is no canvas 009"),
        ("r-000000000000", {}, NotFound, "Near it: r-"),
        ("nonsense", {}, NotFound, r"There is no task 'nonsense'\. .* A target is a node \(003-N4\)"),
        ("001-N1", {"view": "x-ray"}, InvalidInput, "Allowed: records, raw, lines, grep, json_path"),
        ("001-N1", {"lines": "1", "grep": "x"}, InvalidInput, "Give one of lines, grep and json_path"),
        ("001-N1", {"cursor": "r9"}, InvalidInput, "does not continue these records"),
        ("001-N1", {"cursor": "?"}, InvalidInput, "not a cursor"),
        ("001-N1", {"max_tokens": 3}, InvalidInput, "the least that can be shown is 50"),
    ],
)
def test_what_cannot_be_expanded_is_refused_with_what_can(
    agent: Agent, target: str, asked: dict[str, Any], error: type[Exception], says: str
) -> None:
    four_steps(agent)
    with pytest.raises(error, match=says):
        agent.expand(target, **asked)


def test_a_node_is_no_group_that_could_be_taken_apart() -> None:
    groups = {"003-F1": Group(("003-N1", "003-N2"))}
    assert dissolve(groups, ["003-N1"]) == groups
