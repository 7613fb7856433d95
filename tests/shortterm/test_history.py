"""Other tasks by their metadata."""

from __future__ import annotations

from mcp_memory.shortterm.canvas.view import history
from tests.shortterm.agent import Agent, tear


def told(agent: Agent, budget: int = 1000, **asked: object) -> list[str]:
    text = history(agent.store, agent.space, budget_tokens=budget, counter=agent.counter, **asked)  # type: ignore[arg-type]
    assert agent.counter.count(text) <= budget
    return text.splitlines()


def work(agent: Agent) -> None:
    agent.offload("a", task="Fix login", step="Look", summary="the clock is off")
    agent.offload("b", task="Fix login", step="Try", summary="no", status="blocked")
    Agent(agent.store, session="other", seconds=30).offload("c", task="Plan a trip", summary="trains are full")
    agent.offload("d", task="Write docs", summary="half of it")


def test_tasks_are_told_in_a_line_each_the_one_worked_on_last_first(agent: Agent) -> None:
    work(agent)
    assert told(agent) == [
        "002 plan-a-trip: Plan a trip (doing, 1 step, 2026-04-16 12:00); last: trains are full",
        "003 write-docs: Write docs (doing, 1 step, 2026-04-16 12:00); last: half of it",
        "001 fix-login: Fix login (paused, 2 steps, 1 dead end, 2026-04-16 12:00); last: no",
    ]
    assert [line[:3] for line in told(agent, session="s1", but=[3])] == ["001"]
    assert told(agent, session="nobody") == []


def test_a_small_budget_tells_less_and_leaves_out_the_oldest(agent: Agent) -> None:
    work(agent)
    assert [line[:3] for line in told(agent, 40)] == ["002", "003"]
    assert told(agent, 14) == []


def test_a_canvas_that_cannot_be_read_is_told_by_its_row(agent: Agent) -> None:
    agent.offload("a", task="Fix login")
    tear(agent.store, 1, "torn")
    assert told(agent)[0].startswith("001 fix-login (doing, 2026-04-16 ")
