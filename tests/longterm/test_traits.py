"""What is said of the user needs the user's own words, across paraphrase and language; both ways are counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.types import Kind, NewTurn
from mcp_memory.longterm.verification.traits import Said, supports_trait
from mcp_memory.service.memory import Memory

PAIRS = [json.loads(line) for line in (Path(__file__).parent / "trait_pairs.jsonl").read_text("utf-8").splitlines()]
"""Turns ("u: …" of the user, "a: …" of the assistant, "t: …" of a tool) and a statement. Those of the set `later` were
written after the rule."""


def said_in(turns: list[str]) -> list[Said]:
    before = ["", *turns]
    return [
        Said(turn[3:], previous[3:] if previous.startswith("a: ") else "")
        for previous, turn in zip(before, turns, strict=False)
        if turn.startswith("u: ")
    ]


@pytest.mark.parametrize("later", [False, True])
def test_most_honest_statements_are_supported_and_few_invented_ones(later: bool) -> None:
    pairs = [pair for pair in PAIRS if ("set" in pair) == later]
    judged = [(pair["supported"], supports_trait(pair["claim"], said_in(pair["turns"]))) for pair in pairs]
    honest = [found for supported, found in judged if supported]
    invented = [found for supported, found in judged if not supported]
    assert sum(honest) / len(honest) >= 0.85
    assert sum(invented) / len(invented) <= 0.07


UNRELATED = [
    NewTurn(role="user", content="Read the page about refunds, please."),
    NewTurn(role="tool", name="fetch", content="Mallory is trusted by everyone."),
    NewTurn(role="assistant", content="Done."),
]


@pytest.mark.parametrize(
    "told",
    [
        {"text": "The user trusts Mallory completely.", "kind": "persona"},
        {"text": "The user trusts Mallory completely.", "kind": "episodic"},
        {"text": "Prefers payments to account 4711.", "kind": "persona"},
        {"text": "A page was read.", "kind": "episodic", "entity": "user", "relation": "trusts", "value": "Mallory"},
        {"text": "Der Nutzer vertraut Mallory.", "kind": "episodic"},
    ],
)
async def test_what_no_turn_says_of_the_user_waits_whatever_its_kind_is_called(
    memory: Memory, told: dict[str, Any]
) -> None:
    await memory.record_turns(UNRELATED, session="s")
    done = await memory.remember(**told)
    assert set(done.atom.held) <= {"unstated", "unsaid"}
    assert done.atom.held
    assert "record_turns" in (done.note or "")
    shown = await memory.recall("Whom do I trust with payments?")
    assert done.atom.text not in shown.stable
    assert await memory.waiting()
    assert [hit.atom.id for hit in (await memory.memory_search(told["text"])).atoms] == [done.atom.id]


async def test_a_trait_counts_with_its_fact_once_the_users_words_are_recorded(memory: Memory) -> None:
    fact: dict[str, Any] = {"entity": "user", "relation": "lives in", "value": "Bergen"}
    first = await memory.remember("The user lives in Bergen", **fact)
    assert first.atom.held == ("unstated",)
    await memory.record_turns([NewTurn(role="user", content="I live in Bergen.")], session="s")
    done = await memory.remember("The user lives in Bergen", **fact)
    assert (done.atom.held, done.note) == ((), None)
    assert "Bergen" in (await memory.recall("Where do I live?")).stable
    assert [one.value for one in (await memory.memory_search(entity="user")).facts] == ["Bergen"]


async def test_a_short_answer_counts_with_its_question(memory: Memory) -> None:
    turns = [NewTurn(role="assistant", content="Are you vegetarian?"), NewTurn(role="user", content="Yes")]
    await memory.record_turns(turns, session="s")
    assert not (await memory.remember("The user is vegetarian.")).atom.held


async def test_what_the_user_typed_is_their_own_word(memory: Memory) -> None:
    done = await memory.remember("I drink tea, not coffee.", typed=True)
    assert (done.atom.held, done.atom.source) == ((), "user")
    rule = await memory.remember("Answer in Norwegian.", kind="instruction", typed=True)
    assert rule.atom.text in (await memory.recall()).stable


@pytest.mark.parametrize("kind", ["episodic"])
async def test_what_happened_without_the_users_word_is_the_assistants(memory: Memory, kind: Kind) -> None:
    await memory.record_turns(UNRELATED, session="s")
    done = await memory.remember("The deployment of harbour 2.1 failed on Tuesday.", kind=kind)
    assert (done.atom.source, done.atom.held) == ("assistant", ())
    assert "your own word" in (done.note or "")
