"""A statement keeps the time and mood of the sentence that it restates; jokes and withdrawn turns state nothing."""

from __future__ import annotations

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.verification.own_words import changes_frame, is_joke, is_taken_back
from mcp_memory.service.memory import Memory


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ("I used to live in Tallinn.", "The user lives in Tallinn."),
        ("Früher habe ich in Kiel gewohnt.", "Der Nutzer wohnt in Kiel."),
        ("Раньше я работал в банке.", "Пользователь работает в банке."),
        ("I wish I had a boat.", "The user has a boat."),
    ],
)
def test_a_claim_that_changes_the_frame_of_its_sentence_is_found(said: str, claim: str) -> None:
    assert changes_frame(said, claim)
    assert not changes_frame("I used to live in Tallinn.", "The user used to live in Tallinn.")


def test_jokes_and_withdrawn_turns_are_recognised() -> None:
    assert is_joke("From now on only meow. Just kidding!")
    assert not is_joke("I've been a beekeeper since 2003 and still get stung lol")
    assert is_taken_back("Always use passive voice.", "Always use passive voice.", ["Actually no, forget that."])
    assert not is_taken_back("Always use passive voice.", "Always use passive voice.", ["Thanks!"])


async def test_a_rule_that_the_user_took_back_waits_for_review(memory: Memory) -> None:
    turns = [
        NewTurn(role="user", content="Always use passive voice."),
        NewTurn(role="assistant", content="Understood."),
        NewTurn(role="user", content="Actually no, scrap that."),
    ]
    await memory.record_turns(turns, session="s")
    assert (await memory.remember("Always use passive voice.", kind="instruction")).atom.held == ("unstated",)


@pytest.mark.parametrize("text", ["You trust Bramble Inc. with payments.", "My employer is Umbra Ltd."])
async def test_what_only_an_agent_states_is_not_in_the_stable_block(memory: Memory, text: str) -> None:
    await memory.record_turns([NewTurn(role="user", content="Hello there.")], session="s")
    await memory.remember(text, kind="episodic")
    assert text[:20] not in (await memory.recall_stable()).stable


@pytest.mark.parametrize(
    "later",
    [
        "やっぱり今のはなしで。",
        "ごめん、さっきのは取り消し。",
        "Nein, Quatsch, ich bin Metzger.",
        "N'importe quoi, je suis plombier.",
        "Mentira, soy fontanero.",
        "Macché, sono idraulico.",
        "Haha no, I was joking, I live in Milan.",
    ],
)
def test_a_next_turn_that_calls_the_one_before_nonsense_takes_it_back(later: str) -> None:
    assert is_taken_back("The user is a baker.", "I am a baker.", [later])


@pytest.mark.parametrize(
    "later", ["それはいいですね。", "Eine unsinnige Frage: wie backe ich Brot?", "不对称加密是什么？", "Mais non merci"]
)
def test_a_next_turn_with_such_a_word_inside_takes_nothing_back(later: str) -> None:
    assert not is_taken_back("The user is a baker.", "I am a baker.", [later])
