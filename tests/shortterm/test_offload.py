"""A tool result on its way in, through the real store: what is kept, what is answered, what is refused."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Record
from mcp_memory.shortterm.canvas.flowchart import parse, read
from mcp_memory.shortterm.offload import MAX_BYTES
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, home_rows, record_rows, ref_rows
from mcp_memory.store.sqlite.store import open_store
from tests.shortterm.agent import Agent, tear

LOG = "\n".join(f"2026-04-16 12:00:{at % 60:02} INFO worker {at} done" for at in range(400))
CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)


def test_a_result_becomes_a_ref_a_record_and_a_step(agent: Agent, home: Path) -> None:
    answer = agent.offload(LOG, tool="Read", arguments={"path": "log/app.log"}, tool_call_id="c1", task="Fix the login")
    assert (answer.node, answer.task, answer.canvas, answer.session) == ("001-N1", "fix-the-login", "001", "s1")
    assert agent.store.read("default", ref_rows.read_bytes, answer.ref) == LOG.encode()
    (record,) = agent.store.read("default", record_rows.list_records)
    assert record == Record(
        timestamp=record.timestamp,
        node_id="001-N1",
        tool_call="Read path=log/app.log",
        summary=answer.summary,
        result_ref=answer.path,
        tool_call_id="c1",
        offloaded=True,
        session="s1",
        score=record.score,
        tokens_raw=answer.tokens_raw,
        tokens_kept=answer.tokens_raw,  # nothing is saved until a client has shown the answer instead
        ref=answer.ref,
        summary_by="synopsis",
    )
    folder = home / "spaces" / "default"
    assert json.loads((folder / "offload-s1.jsonl").read_text())["node_id"] == "001-N1"
    canvas = parse((folder / "mmds" / "001-fix-the-login.mmd").read_text())
    (node,) = canvas.nodes
    assert (node.title, node.status, node.summary) == ("Read log/app.log", "doing", answer.summary)
    assert canvas.task_goal == "Fix the login"


@settings(max_examples=15)
@given(st.one_of(st.text(min_size=1), st.binary(min_size=1)))
def test_what_is_offloaded_reads_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, result: str | bytes
) -> None:
    store = open_store(tmp_path_factory.mktemp("home"))
    try:
        answer = Agent(store).offload(result)
        expected = result.encode("utf-8", "surrogatepass") if isinstance(result, str) else result
        assert store.read("default", ref_rows.read_bytes, answer.ref) == expected
        answer.preview.encode()
        answer.summary.encode()
    finally:
        store.close()


def test_the_agents_own_summary_wins_and_is_cleaned(agent: Agent) -> None:
    assert agent.offload(LOG, summary="  two\nlines ").summary == "two lines"
    assert len(agent.offload(LOG, summary="x" * 999).summary) == 200
    assert agent.offload(LOG, summary=" \n ").summary not in ("", "two lines")


def test_a_small_result_is_offloaded_and_the_answer_says_that_it_saved_nothing(agent: Agent) -> None:
    small, large = agent.offload("ok"), agent.offload(LOG)
    assert small.note == "The result is small (1 tokens): offloading it saved nothing."
    assert large.note is None
    assert large.tokens_kept < large.tokens_raw
    assert agent.offload("ja.py:28 has it", summary="There is a form already").note is None  # the note of a step


def test_the_same_call_with_the_same_bytes_is_taken_in_once(agent: Agent) -> None:
    first = agent.offload(LOG, tool_call_id="c1", step="Look")
    second = agent.offload(LOG, tool_call_id="c1", step="Look")
    assert second == replace(first, note=second.note)
    assert second.note == "This call was offloaded before; nothing was written. Its node and ref are the same."
    other_bytes, other_session = agent.offload("x" * 99, tool_call_id="c1"), Agent(agent.store, session="s2")
    assert other_bytes.ref != first.ref
    assert other_session.offload(LOG, tool_call_id="c1").node == "002-N1"
    assert len(agent.store.read("default", record_rows.list_records)) == 3


def test_the_tokens_of_a_very_long_result_are_estimated_from_samples(agent: Agent) -> None:
    answer = agent.offload("12345678 abcdef\n" * 15_000)
    assert answer.tokens_raw == 60_000
    assert answer.note == "tokens_raw is an estimate: the result has more than 200,000 characters."


@pytest.mark.parametrize("kept", [False, True], ids=["masked", "kept"])
def test_secrets_are_out_of_everything_and_in_the_file_only_where_that_is_wanted(agent: Agent, kept: bool) -> None:
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123"
    answer = agent.offload(
        f"remote: {secret}\n" + LOG,
        arguments={"command": f"git clone https://x:{secret}@example.org/x"},
        task="Clone it",
        keep_secrets=kept,
    )
    (record,) = agent.store.read("default", record_rows.list_records)
    shown = f"{answer.preview}{answer.summary}{record}{agent.store.read('default', canvas_rows.canvas, 1).text}"
    assert secret not in shown
    ref, data = (
        agent.store.read("default", ref_rows.by_id, answer.ref),
        agent.store.read("default", ref_rows.read_bytes, answer.ref),
    )
    assert (secret.encode() in data) == kept
    assert secret not in str(ref.arguments)
    assert [(data[one.start : one.end].decode(), one.kind) for one in ref.masked] == (
        [] if kept else [("•••", "GitHub token")]
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"result": ""}, "result is empty"),
        ({"result": b""}, "result is empty"),
        ({"result": 7}, "result is int. Pass the tool's output as text"),
        ({"status": 'odd"] --> x'}, "status 'odd.*' is unknown. Allowed: doing, done"),
        ({"arguments": {1, 2}}, "arguments are not JSON"),
        ({"arguments": CIRCLE}, "arguments are not JSON"),
        ({"result": b"x" * (MAX_BYTES + 1)}, "over 128 MB. Write it to a file"),
        ({"tool": " \x00"}, "tool_name is empty"),
        ({"tool_call_id": "\ud800"}, "tool_call_id has a lone surrogate"),
        ({"task": "../../x"}, "task '../../x' is a path"),
        ({"step": "001-N7"}, "step names '001-N7', which is not a node of canvas 001. Its nodes are: 001-N1"),
        ({"after": ("nope",)}, "after names 'nope'"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(agent: Agent, wrong: dict[str, object], says: str) -> None:
    agent.offload(LOG)
    before = agent.store.read("default", home_rows.counts)
    with pytest.raises(InvalidInput, match=says):
        agent.offload(**wrong)  # type: ignore[arg-type]
    assert agent.store.read("default", home_rows.counts) == before


def test_calls_without_a_step_merge_while_they_are_the_same_routine(agent: Agent) -> None:
    same = [agent.offload("same", arguments={"path": f"src/m{at}.py"}).node for at in range(5)]
    pytest_run = agent.offload(LOG, tool="bash", arguments={"command": "pytest -x"}).node
    git = agent.offload(LOG, tool="bash", arguments={"command": "git status"}).node
    titles = [node.title for node in read(agent.store.read("default", canvas_rows.canvas, 1)).nodes]
    assert (set(same), pytest_run, git) == ({"001-N1"}, "001-N2", "001-N3")
    assert titles == ["Read src/m0.py (+4 more)", "pytest -x", "git status"]


def test_a_task_goes_on_and_an_earlier_one_is_taken_up_again_by_its_words_or_its_number(agent: Agent) -> None:
    tasks = ("Fix login", "Write docs", None, "fix LOGIN!", "001", "write-docs", "002-write-docs")
    nodes = [agent.offload(task=task).node for task in tasks]
    assert nodes == ["001-N1", "002-N1", "002-N1", "001-N1", "001-N1", "002-N1", "002-N1"]
    active = agent.store.read("default", canvas_rows.active_canvas, "s1")
    assert active is not None
    assert active.label == "write-docs"
    assert agent.offload(task="404").node == "003-N1"  # a number that no task has


def test_without_a_task_the_hint_names_it_and_without_a_hint_the_tool(agent: Agent) -> None:
    assert agent.offload(hint="Why is the login slow?").task == "why-is-the-login-slow"
    assert Agent(agent.store, session="s2").offload().task == "work-with-read"


def test_sessions_are_never_mixed(agent: Agent) -> None:
    other = Agent(agent.store, session="s2")
    nodes = [each.offload(task="Fix login", step=step).node for step in "ab" for each in (agent, other)]
    assert nodes == ["001-N1", "002-N1", "001-N2", "002-N2"]


def test_work_on_a_folded_step_opens_its_group_and_a_folded_canvas(agent: Agent) -> None:
    for step in ("One", "Two", "Three"):
        agent.offload(step=step, task="T")
    agent.fold(action="fold", nodes=["001-N1", "001-N2"])
    after = agent.offload(step="Four", after=("001-F1",))
    assert [
        edge.source
        for edge in read(agent.store.read("default", canvas_rows.canvas, 1)).edges
        if edge.target == after.node
    ] == ["001-N2"]
    agent.fold(action="fold")
    agent.offload(step="one")
    row = agent.store.read("default", canvas_rows.canvas, 1)
    assert (row.folded, row.groups) == (False, {})


def test_writers_of_one_canvas_all_get_their_step(store: Store) -> None:
    Agent(store).offload(task="Shared")
    agents = [Agent(store) for _ in range(6)]
    threads = [
        threading.Thread(target=lambda a=agent, n=at: [a.offload(step=f"step {n}.{k}") for k in range(4)])
        for at, agent in enumerate(agents)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    canvas = read(store.read("default", canvas_rows.canvas, 1))
    assert len(canvas.nodes) == len({node.title for node in canvas.nodes}) == 25
    assert {record.node_id for record in store.read("default", record_rows.list_records)} == {
        node.id for node in canvas.nodes
    }


def test_new_tasks_of_several_sessions_get_numbers_of_their_own(store: Store) -> None:
    def work(session: str) -> None:
        Agent(store, session=session).offload(task="Same name")

    threads = [threading.Thread(target=work, args=(f"s{at}",)) for at in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(row.number for row in store.read("default", canvas_rows.list_canvases)) == [1, 2, 3, 4, 5, 6]


def test_a_canvas_whose_text_was_torn_is_drawn_anew_from_its_records(agent: Agent) -> None:
    agent.offload(task="Torn", step="One")
    row = agent.store.read("default", canvas_rows.canvas, 1)
    tear(agent.store, 1, "flowchart TD\n")
    assert agent.fold().text == row.text
    assert agent.offload(step="Two").node == "001-N2"
    assert [node.title for node in parse(agent.store.read("default", canvas_rows.canvas, 1).text).nodes] == [
        "One",
        "Two",
    ]


def test_what_is_cut_of_the_agents_own_words_is_said(agent: Agent) -> None:
    long = agent.offload(LOG, tool="t" * 150, summary="The worker ends. " * 300, step="Look at it. " * 20)
    assert len(long.summary) == 200
    assert long.note == "Cut to the limits of a node: summary to 200, step to 80, tool_name to 100 characters."
    assert agent.offload(LOG, summary=f"  {'x' * 200}\n", step="y" * 80).note is None
