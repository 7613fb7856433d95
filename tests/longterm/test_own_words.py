"""What an agent says of the user is kept in the user's own words."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_memory.core.types import Kind, NewTurn
from mcp_memory.longterm.verification.own_words import Said, own_words
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
    assert own_words(claim, [Said(said)], rule=False) is None


def test_a_rule_needs_a_sentence_that_states_a_rule() -> None:
    assert own_words("Always answer in French.", [Said("I answered in French yesterday.")], rule=True) is None
    said = "Thanks! From now on always answer in French, please. How is the weather?"
    assert own_words("Always answer in French.", [Said(said)], rule=True) == (
        "From now on always answer in French, please."
    )


async def test_what_is_not_about_the_user_keeps_the_agents_words(memory: Memory) -> None:
    await memory.record_turns(
        [NewTurn(role="user", content="The build of Kestrel fails since we moved to libfoo 2.3.")]
    )
    claim = "The build of Kestrel fails with libfoo 2.3, because it no longer exports foo_open."
    done = await memory.remember(claim, kind="episodic")
    assert (done.atom.text, done.atom.held) == (claim, ())
