"""A statement keeps the frame of the sentence that it rephrases: time, mood, subject, order and limits."""

from __future__ import annotations

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.verification.frame import breaks_frame, drops_limit, is_joke, is_taken_back
from mcp_memory.longterm.verification.own_words import Said
from mcp_memory.longterm.verification.traits import supports_trait
from mcp_memory.service.memory import Memory

CHANGED = [
    ("I used to live in Tallinn.", "The user lives in Tallinn."),
    ("Früher habe ich in Kiel gewohnt.", "Der Nutzer wohnt in Kiel."),
    ("Раньше я работал в банке.", "Пользователь работает в банке."),
    ("I wish I had a boat.", "The user has a boat."),
    ("Carla is my lawyer and Denise is my dentist.", "The user's lawyer is Denise."),
    ("I moved from Ghent to Bruges.", "The user moved from Bruges to Ghent."),
    ("We have 2 sons and 5 nephews.", "The user has 5 sons."),
    ("Don't stop asking before you delete files.", "Stop asking before deleting files."),
]

KEPT = [
    ("I used to live in Tallinn.", "The user used to live in Tallinn."),
    ("I used to live in Kiel, now I live in Bonn.", "The user lives in Bonn."),
    ("Carla is my lawyer and Denise is my dentist.", "The user's lawyer is Carla."),
    ("I moved from Ghent to Bruges.", "The user moved from Ghent to Bruges."),
    ("We have 2 sons and 5 nephews.", "The user has 2 sons."),
]


@pytest.mark.parametrize(("said", "claim"), CHANGED)
def test_a_claim_that_changes_the_frame_of_its_sentence_is_found(said: str, claim: str) -> None:
    assert breaks_frame(said, claim)


@pytest.mark.parametrize(("said", "claim"), KEPT)
def test_a_claim_that_keeps_the_frame_of_its_sentence_passes(said: str, claim: str) -> None:
    assert not breaks_frame(said, claim)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("In the legacy branch never rebase.", "Never rebase."),
        ("For the customer Bramble always quote in dollars", "Always quote in dollars."),
        ("Con i fornitori tedeschi usa sempre il Lei.", "Usare sempre il Lei."),
    ],
)
def test_a_limit_without_a_comma_belongs_to_the_rule(said: str, rule: str) -> None:
    assert drops_limit(said, rule)
    assert not drops_limit(said, said)


def test_jokes_and_withdrawn_turns_are_recognised() -> None:
    assert is_joke("From now on only meow. Just kidding!")
    assert not is_joke("I've been a beekeeper since 2003 and still get stung lol")
    assert is_taken_back("Always use passive voice.", "Always use passive voice.", ["Actually no, forget that."])
    assert not is_taken_back("Always use passive voice.", "Always use passive voice.", ["Thanks!"])


@pytest.mark.parametrize(
    ("question", "answer", "claim", "supported"),
    [
        ("Do you have any pets?", "nope, none", "The user has no pets.", True),
        ("Do you have any pets?", "nope, none", "The user has pets.", False),
        ("Haben Sie Kinder?", "ja, zwei", "The user has two children.", True),
        ("Do you still smoke?", "not since 2019", "The user smokes.", False),
    ],
)
def test_a_short_answer_states_its_question(question: str, answer: str, claim: str, supported: bool) -> None:
    assert supports_trait(claim, [Said(answer, question)]) == supported


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
