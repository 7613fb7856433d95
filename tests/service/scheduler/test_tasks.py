"""The stages of tasks in the pipeline: when they are due, what they cost, and who answers."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import reader
from bench.reader import Reader
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import ModelFailed
from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.search.search import Search
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.models.llm import Completion, ModelPrompt
from mcp_memory.models.metered import MeteredModel
from mcp_memory.service.due_stages import LEAST_RESULTS, RECORDS_A_QUESTION, TASK_REST, DueStage, due
from mcp_memory.service.indexing import Indexing
from mcp_memory.service.memory import open_memory
from mcp_memory.service.scheduler import Scheduler
from mcp_memory.shortterm.summary_stage import AT_ONCE
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, job_rows, record_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.usage_ledger import StoreLedger
from mcp_memory.testing import FixedClock
from tests.leases import pass_time
from tests.service.scheduler.rounds import finish, working
from tests.service.scheduler.test_crashes import Died, Mortal
from tests.shortterm.agent import START, Agent, from_versions

PROSE = "\n\n".join(f"On day {day} the sea was calm and the boats lay in the harbour until noon." for day in range(90))
ANSWERS = {
    "extract": reader.extract, "merge": reader.merge, "scenes": reader.scenes, "persona": reader.persona,
    "canvas": reader.canvas, "summaries": reader.summaries,
}  # fmt: skip


def large(agent: Agent, steps: int = 1) -> None:
    """Take steps with large results that say little in a line."""
    for _ in range(steps):
        number = agent.seconds
        agent.offload(f"Log {number}.\n\n{PROSE}", tool="fetch", arguments={"url": f"https://harbour.example/{number}"})


def small(agent: Agent, steps: int) -> None:
    for _ in range(steps):
        agent.offload("it is there", tool="bash", step=f"check {agent.seconds}")


def now_due(agent: Agent, later: timedelta = timedelta(0), *, eager: bool = False, **given: Any) -> list[str]:
    now = START + timedelta(seconds=agent.seconds) + later
    return [one.stage for one in due(agent.store, "default", Settings(**given), now, eager=eager)]


# --- when -------------------------------------------------------------------------------------------


def test_poor_summaries_wait_until_they_fill_a_question_or_the_task_rests(store: Store) -> None:
    agent = Agent(store)
    large(agent, LEAST_RESULTS - 1)
    assert now_due(agent, TASK_REST, eager=True) == []
    large(agent)
    assert now_due(agent) == []
    assert now_due(agent, TASK_REST) == ["summaries"]
    assert now_due(agent, eager=True) == ["summaries"]
    large(agent, AT_ONCE - LEAST_RESULTS)
    assert now_due(agent) == ["summaries"]
    assert now_due(agent, llm_summaries="none") == []


def test_a_canvas_comes_after_its_summaries_and_can_be_left_alone(store: Store) -> None:
    agent = Agent(store)
    small(agent, 30)
    assert now_due(agent) == ["canvas"]
    large(agent, AT_ONCE)
    assert now_due(agent) == ["summaries", "canvas"]
    assert now_due(agent, llm_canvas="none", llm_summaries="none") == []


# --- what it costs ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_task_of_a_hundred_steps_costs_a_few_questions_and_talk_keeps_its_own(store: Store, home: Path) -> None:
    agent, model = Agent(store), Reader()
    settings = Settings(home=home, embedder="none")

    def now() -> Any:
        return START + timedelta(seconds=agent.seconds)

    search = Search(store, now)
    pipeline = Scheduler(store, search, Indexing(store, make_embedder(settings), settings), settings, now=now)
    metered = MeteredModel(model, StoreLedger(store), settings, now=now)
    for at in range(100):
        large(agent) if at % 2 else small(agent, 1)
        while pipeline.run(metered):
            assert len(model.asked) <= 1 + (at + 1) / RECORDS_A_QUESTION + 1
    assert 3 <= len(model.asked) <= 1 + 100 / RECORDS_A_QUESTION
    assert {done.stage for done in store.read("default", job_rows.stage_totals)} == {"summaries", "canvas"}
    assert from_versions(store, "default", 1) == store.read("default", canvas_rows.canvas, 1)
    for said in range(2):
        store.write(
            "default",
            turn_rows.append,
            "talk",
            turn_rows.prepare([NewTurn(role="user", content=f"I cycle {said}.")]),
            now=now(),
        )
    agent.seconds += 600
    assert DueStage(stage="extract", session="talk", at=now()) in list(due(store, "default", settings, now()))


# --- who answers ------------------------------------------------------------------------------------


async def test_the_connected_agent_is_asked_about_tasks_after_what_was_said(home: Path) -> None:
    asked: list[str] = []
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns([NewTurn(role="user", content="I keep bees in Porto.")], session="s")
        for number in range(LEAST_RESULTS):
            asked_for = {"url": f"https://harbour.example/{number}"}
            await memory.offload_tool_result("fetch", f"{number}. {PROSE}", arguments=asked_for, session="s")
        for number in range(12):
            await memory.offload_tool_result("bash", "ok", session="s", step=f"check {number}")
        answer = await memory.distill()
        while answer.next is not None:
            asked.append(answer.next.stage)
            reply = json.dumps(ANSWERS[answer.next.stage](answer.next.question))
            answer = await memory.distill(answer.next.work_id, reply)
        assert asked[0] == "extract"
        assert asked[-2:] == ["summaries", "canvas"]
        assert [each.summary for each in await memory.records(limit=1)] == ["It was read."]


@pytest.mark.slow
async def test_what_fails_is_put_aside_and_asked_again_in_a_smaller_piece(home: Path) -> None:
    class Failing(Reader):
        def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
            said = super().ask(prompt, timeout=timeout)
            return (
                Completion(text="Sorry.", prompt_tokens=1, completion_tokens=1, cost=None)
                if len(self.asked) < 3
                else said
            )

    model = Failing()
    async with open_memory(home=home, embedder="none", llm=model, distil=False) as memory:
        for number in range(AT_ONCE):
            await memory.offload_tool_result("fetch", f"Log {number}.\n\n{PROSE}", session="s")
        with pytest.raises(ModelFailed):
            await memory.consolidate()
        status = (await memory.status())["pyramid"]
        works = status["works"]
        assert (status["waiting"]["poor_summaries"], status["waiting"]["grown_canvases"]) == (AT_ONCE, 0)
        assert [(work["stage"], work["state"], work["attempts"]) for work in works] == [("summaries", "parked", 1)]
        await memory.consolidate()
        shown = [prompt.messages[1].text.count("<result id=") for prompt in model.asked]
        assert shown == [AT_ONCE, AT_ONCE, AT_ONCE // 2, AT_ONCE // 2]
        assert {each.summary_by for each in await memory.records()} == {"model"}


# --- crashes ----------------------------------------------------------------------------------------


def bettered(store: Store) -> tuple[list[tuple[str, str | None]], list[str]]:
    """Return what a model may have changed of a task: its summaries, and its groups."""
    told = [(each.summary, each.summary_by) for each in store.read("default", record_rows.list_records, limit=-1)]
    return told, [each.title for each in store.read("default", canvas_rows.canvas, 1).groups.values()]


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one task that both stages are due for."""
    home = tmp_path_factory.mktemp("task")
    store = open_store(home)
    agent = Agent(store)
    small(agent, 22)
    large(agent, LEAST_RESULTS)
    store.close()
    return home


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=4))
def test_whatever_call_a_worker_dies_at_a_task_is_bettered_once_and_whole(
    task: Path, deaths: list[tuple[int, bool]]
) -> None:
    with TemporaryDirectory() as folder:
        home = Path(shutil.copytree(task, Path(folder) / "home"))
        store, clock = open_store(home), FixedClock(START + timedelta(minutes=5))
        try:
            with working(Mortal(store, deaths), clock, home) as step:
                for _ in range(6):
                    try:
                        step()
                    except Died:
                        clock.advance(hours=1)
                        pass_time(store, timedelta(hours=1))
            finish(store, clock, home)
            told, groups = bettered(store)
            assert told[-LEAST_RESULTS:] == [("It was read.", "model")] * LEAST_RESULTS
            assert groups == ["The way so far"]
            assert from_versions(store, "default", 1) == store.read("default", canvas_rows.canvas, 1)
            lines = (store.folder("default") / "offload-s1.jsonl").read_text().splitlines()
            assert len(lines) == len(told) + LEAST_RESULTS
            assert store.problems() == []
        finally:
            store.close()
