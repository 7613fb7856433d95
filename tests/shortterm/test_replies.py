"""Replies of a good model to the questions about tasks, over results of our own, as they came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp_memory.core.token_counts import token_counter
from mcp_memory.models.llm import parse
from mcp_memory.shortterm.canvas.flowchart import read
from mcp_memory.shortterm.canvas_stage import CANVAS
from mcp_memory.shortterm.summary_stage import SUMMARIES
from mcp_memory.store.sql import canvas_rows, record_rows
from tests.shortterm.agent import Agent
from tests.shortterm.asking import asked

FIXTURES = Path(__file__).parents[2] / "fixtures"


def kept(name: str) -> dict[str, Any]:
    return json.loads((FIXTURES / "replies" / f"{name}.json").read_text(encoding="utf-8"))


def test_summaries_of_a_log_a_module_a_page_and_a_diff_hold_as_they_came(agent: Agent) -> None:
    case = kept("summaries")
    agent.counter = token_counter("o200k_base")
    for call in case["calls"]:
        result = (FIXTURES / call["result"]).read_text(encoding="utf-8")
        agent.offload(result, tool=call["tool"], arguments=call["arguments"], task=case["task"])
    asking = asked(SUMMARIES, agent.store)
    reply = parse(case["reply"], SUMMARIES.reply)
    applied = asking.answer(reply.model_dump())
    lines = {each.id: each.summary for each in reply.summaries}
    records = dict(enumerate(agent.store.read("default", record_rows.list_records), start=1))
    assert asking.basis.records == [number for number, each in records.items() if each.summary_by == "model"]
    assert len(asking.basis.records) >= 3  # of the others a program says enough
    for number in asking.basis.records:
        assert (records[number].summary, records[number].score) == (lines[number], case["scores"][number - 1])
    assert [told for told in applied.refused if "was not asked about" not in told] == []


def test_an_order_for_a_canvas_holds_but_for_what_its_rules_forbid(agent: Agent) -> None:
    case = kept("canvas")
    for at, call in enumerate(case["calls"]):
        after = (f"001-N{at}",) if at else ()
        agent.offload("line\n" * 50, task=case["task"], after=after, **call)
    applied = asked(CANVAS, agent.store).answer(parse(case["reply"], CANVAS.reply).model_dump(by_alias=True))
    row = agent.store.read("default", canvas_rows.canvas, 1)
    drawn = read(row)
    assert {id: each.title for id, each in row.groups.items()} == case["groups"]
    assert {node.id: node.title for node in drawn.nodes if node.id in case["titles"]} == case["titles"]
    assert {edge.target: edge.label for edge in drawn.edges if edge.label} == case["edges"]
    assert len(applied.refused) == len(case["refused"])
    assert all(why in told for why, told in zip(case["refused"], applied.refused, strict=True))
