"""Automatic recall: relevant memory for prompts that need it, nothing for the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import NewTurn
from mcp_memory.models.embed.classifiers import leans_on_memory
from mcp_memory.service.memory import Memory

PROMPTS = Path(__file__).parents[2] / "fixtures/prompts/test.jsonl"
SAID = [
    "The pilot at the bakery starts on 9 February, three ovens.",
    "Wouter signs for the bakery, he hates long mails.",
    "From now on every invoice goes out in two languages.",
    "Our landlord is Mrs Dobbs, rent is 840 a month.",
    "The cellar door sticks when it rains.",
]


async def filled(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content=said) for said in SAID], session="before")


async def brought(memory: Memory, prompt: str) -> str:
    return (await memory.recall_beyond(prompt, known="", session="now", budget_tokens=440)).dynamic


@pytest.mark.parametrize(
    ("prompt", "needed"),
    [
        ("when does the pilot at the bakery start?", "9 February"),
        ("who was it that signs for the bakery?", "Wouter"),
        ("write the invoice for the bakery", "two languages"),
    ],
)
async def test_a_prompt_that_leans_on_earlier_talk_brings_it(memory: Memory, prompt: str, needed: str) -> None:
    await filled(memory)
    assert needed in await brought(memory, prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "hi",
        "what is 12.5 % of 3480?",
        "who wrote Moby-Dick?",
        "wie nennt man die Angst vor großen Räumen?",
        "写一首关于雨的俳句",
        "¿en qué año se inventó la imprenta?",
        "translate 'good morning' into French",
    ],
)
async def test_a_prompt_that_stands_alone_brings_nothing(memory: Memory, prompt: str) -> None:
    await filled(memory)
    assert await brought(memory, prompt) == ""


async def test_what_is_known_in_the_context_is_not_brought_again(memory: Memory) -> None:
    await filled(memory)
    first = await brought(memory, "when does the pilot at the bakery start?")
    again = await memory.recall_beyond("when does the pilot at the bakery start?", known=first, session="now")
    assert "9 February" not in again.dynamic


def test_prompts_it_never_saw_are_told_apart() -> None:
    rows = [json.loads(line) for line in PROMPTS.read_text(encoding="utf-8").splitlines()]
    right = sum((leans_on_memory(one["text"]) > 0) == one["needs_memory"] for one in rows)
    assert right / len(rows) >= 0.85


@pytest.mark.parametrize(
    "prompt",
    [
        "rerun the failing test",
        "delete that unused import",
        "i test passano tutti, grazie",
        "formatta questo file",
        "de tests slagen nu allemaal",
        "nog steeds dezelfde fout",
        "testy przechodzą, dzięki",
        "이 파일 포맷해줘",
    ],
)
def test_remarks_during_work_need_no_memory(prompt: str) -> None:
    assert leans_on_memory(prompt) < 0


@given(st.text(max_size=200) | st.text(st.characters(codec=None), max_size=20))
def test_any_text_has_bounded_log_odds(prompt: str) -> None:
    assert -6 <= leans_on_memory(prompt) <= 6
