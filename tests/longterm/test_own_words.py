"""What an agent says of the user is kept in the user's own words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from mcp_memory.core.types import Kind, NewTurn
from mcp_memory.longterm.verification.own_words import Said, changes_frame, is_joke, is_taken_back, own_words
from mcp_memory.service.memory import Memory


@pytest.mark.parametrize(
    ("said", "claim", "kind"),
    [
        ("In project Kestrel never push to main.", "Never push to main.", "instruction"),
        ("I used to live in Graz.", "The user lives in Graz.", "persona"),
        ("I might move to Ottawa, nothing is decided.", "The user is moving to Ottawa.", "persona"),
        ("My sister is allergic to peanuts.", "The user is allergic to peanuts.", "persona"),
        ("Davi is my son and Caio is my nephew.", "Caio is the user's son and Davi their nephew.", "persona"),
        ("I don't eat fish any more.", "The user eats fish.", "persona"),
        ("I have 3 chickens and 8 ducks.", "The user has 8 chickens and 3 ducks.", "persona"),
        ("Ich war früher Lehrerin.", "The user is a teacher.", "persona"),
    ],
)
async def test_a_paraphrase_that_changes_the_meaning_is_not_shown(
    memory: Memory, said: str, claim: str, kind: Kind
) -> None:
    await memory.record_turns([NewTurn(role="user", content=said)])
    done = await memory.remember(claim, kind=kind)
    assert (done.atom.text, done.atom.kind, done.atom.held) == (said, kind, ())
    assert said in (done.note or "")
    assert claim not in str(await memory.recall(claim))


async def test_an_answer_is_kept_with_its_question(memory: Memory) -> None:
    turns = [
        NewTurn(role="assistant", content="Are you left-handed? It matters for the scissors."),
        NewTurn(role="user", content="yep"),
    ]
    await memory.record_turns(turns)
    done = await memory.remember("The user is left-handed.", kind="persona")
    assert (done.atom.text, done.atom.held) == ("Are you left-handed? – yep", ())


async def test_a_statement_with_two_sentences_keeps_both(memory: Memory) -> None:
    said = "I work as a paramedic in Halifax. What a week! My two greyhounds sleep on the sofa."
    await memory.record_turns([NewTurn(role="user", content=said)])
    done = await memory.remember("The user is a paramedic in Halifax, and owns two greyhounds.", kind="persona")
    assert done.atom.text == "I work as a paramedic in Halifax. My two greyhounds sleep on the sofa."


FACT: dict[str, Any] = {"entity": "user", "relation": "lives in"}


async def test_a_fact_of_a_changed_meaning_is_not_stated_and_ends_nothing(memory: Memory) -> None:
    home = await memory.remember("I live in Graz.", **FACT, value="Graz", typed=True)
    await memory.record_turns([NewTurn(role="user", content="My sister lives in Oslo.")])
    done = await memory.remember("The user lives in Oslo.", **FACT, value="Oslo", supersedes=[home.atom.id])
    assert (done.atom.text, done.atom.fact, done.replaced) == ("My sister lives in Oslo.", None, [])
    assert "replaces nothing" in (done.note or "")
    assert [fact.value for fact in (await memory.memory_search(entity="user")).facts] == ["Graz"]


async def test_a_fact_that_the_user_states_replaces_the_one_before(memory: Memory) -> None:
    home = await memory.remember("I live in Graz.", **FACT, value="Graz", typed=True)
    await memory.record_turns([NewTurn(role="user", content="I live in Oslo now.")])
    done = await memory.remember("The user lives in Oslo now.", **FACT, value="Oslo", supersedes=[home.atom.id])
    assert (done.atom.text, [one.id for one in done.replaced]) == ("I live in Oslo now.", [home.atom.id])


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ("Do I have to be allergic to nuts to see the nurse?", "The user is allergic to nuts."),
        ('She wrote "I am moving to Ghent and I hate it there".', "The user is moving to Ghent."),
        ("Suppose I were a diabetic.", "The user is a diabetic."),
        ("I live in Graz. Just kidding!", "The user lives in Graz."),
        ("The weather is fine today.", "The user is a beekeeper."),
    ],
)
def test_questions_quotations_suppositions_and_jokes_state_nothing(said: str, claim: str) -> None:
    assert own_words(claim, [Said(said)], rule=False) == []


def test_a_rule_needs_a_sentence_that_states_a_rule() -> None:
    assert own_words("Always answer in French.", [Said("I answered in French yesterday.")], rule=True) == []
    said = "Thanks! From now on always answer in French, please. How is the weather?"
    assert own_words("Always answer in French.", [Said(said)], rule=True) == [
        Said("From now on always answer in French, please.")
    ]


async def test_what_is_not_about_the_user_keeps_the_agents_words(memory: Memory) -> None:
    await memory.record_turns(
        [NewTurn(role="user", content="The build of Kestrel fails since we moved to libfoo 2.3.")]
    )
    claim = "The build of Kestrel fails with libfoo 2.3, because it no longer exports foo_open."
    done = await memory.remember(claim, kind="episodic")
    assert (done.atom.text, done.atom.held) == (claim, ())


@pytest.mark.parametrize(
    ("said", "claim", "fact", "is_stated"),
    [
        ("Oslo is the capital of Norway.", "The user lives in Oslo.", ("user", "lives in", "Oslo"), False),
        ("I grew up in Oslo.", "The user lives in Oslo.", ("user", "lives in", "Oslo"), False),
        ("I decided against moving to Oslo.", "The user moves to Oslo.", ("user", "lives in", "Oslo"), False),
        ("My birthday is on 4 June.", "The user's birthday is on 4 June.", ("user", "birthday", "24 June"), False),
        ("My rent is 900 euros.", "The user's rent is 900 euros.", ("user", "rent", "1900 euros"), False),
        ("I don't like olives.", "The user does not like olives.", ("user", "likes", "olives"), False),
        ("I used to drive a Saab.", "The user used to drive a Saab.", ("user", "drives", "Saab"), False),
        ("I live in Graz.", "The user lives in Graz.", ("user", "born in", "Graz"), False),
        ("I live in Graz.", "The user lives in Graz.", ("Anna", "lives in", "Graz"), False),
        ("My son is allergic to bees.", "The user's son is allergic to bees.", ("user", "allergic to", "bees"), False),
        ("I live in Graz.", "The user lives in Graz.", ("user", "lives in", "Graz"), True),
        ("By the way, my name is Maya.", "The user's name is Maya.", ("user", "name", "Maya"), True),
        ("My rent is 940 euros now.", "The user's rent is 940 euros now.", ("user", "rent", "940 euros"), True),
        ("My sister Ines keeps bees.", "Ines, the user's sister, keeps bees.", ("Ines", "keeps", "bees"), True),
        ("I work at Siemens since May.", "The user works at Siemens.", ("user", "works at", "Siemens"), True),
        ("I'm allergic to nuts.", "The user is allergic to nuts.", ("user", "allergic to", "nuts"), True),
    ],
)
async def test_a_fact_is_stated_only_if_its_fields_say_what_the_user_says(
    memory: Memory, said: str, claim: str, fact: tuple[str, str, str], is_stated: bool
) -> None:
    entity, relation, value = fact
    await memory.record_turns([NewTurn(role="user", content=said)])
    done = await memory.remember(claim, entity=entity, relation=relation, value=value)
    assert (done.atom.fact and done.atom.fact.value) == (value if is_stated else None)
    assert done.atom.held == () or not is_stated
    assert is_stated or f"{relation}: {value}" not in (await memory.recall()).stable


async def test_a_rule_brings_no_fact_that_it_does_not_state(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content="From now on always run the tests.")])
    done = await memory.remember("Always run the tests.", kind="instruction", **FACT, value="Oslo")
    assert (done.atom.kind, done.atom.held, done.atom.fact) == ("instruction", (), None)


@pytest.mark.parametrize(
    ("old", "said", "claim", "kind"),
    [
        ("I am allergic to hazelnuts.", "I like green tea.", "The user likes green tea.", "persona"),
        ("I am allergic to hazelnuts.", "My son eats hazelnuts.", "The user eats hazelnuts.", "persona"),
        ("Never push to main.", "Always run the tests.", "Always run the tests.", "instruction"),
        ("I am a vegetarian.", "I would never eat meat.", "The user eats meat.", "persona"),
    ],
)
async def test_a_true_statement_is_not_ended_by_another_matter_or_a_changed_meaning(
    memory: Memory, old: str, said: str, claim: str, kind: Kind
) -> None:
    await memory.record_turns([NewTurn(role="user", content=old), NewTurn(role="user", content=said)])
    first = await memory.remember(old, kind=kind)
    done = await memory.remember(claim, kind=kind, supersedes=[first.atom.id])
    assert done.replaced == []


async def test_words_said_earlier_do_not_end_what_was_said_later(memory: Memory) -> None:
    await memory.record_turns(
        [NewTurn(role="user", content="I live in Oslo.", said_at=datetime(2026, 3, 1, 12, tzinfo=UTC))]
    )
    await memory.record_turns(
        [NewTurn(role="user", content="I live in Graz now.", said_at=datetime(2026, 3, 9, 12, tzinfo=UTC))]
    )
    now = await memory.remember("The user lives in Graz now.", **FACT, value="Graz")
    await memory.remember("The user lives in Oslo.", **FACT, value="Oslo", supersedes=[now.atom.id])
    assert [fact.value for fact in (await memory.memory_search(entity="user")).facts] == ["Graz"]


@pytest.mark.parametrize(
    "answer", ["over my dead body", "maybe", "only on Fridays", "lol", "wait", "um Gottes willen", "solo esta vez"]
)
def test_an_answer_that_does_not_agree_states_no_rule(answer: str) -> None:
    offer = "Should I always push straight to main from now on?"
    assert own_words("Always push straight to main.", [Said(answer, offer)], rule=True) == []
    assert own_words("Always push straight to main.", [Said("Yes, please", offer)], rule=True) != []


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
