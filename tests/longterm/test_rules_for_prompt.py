"""The standing rules that recall shows: those that govern the prompt, and what ended one in its place."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from anyio import to_thread

from bench.ours import until_indexed
from bench.rule_relevance import Message, Prompt, RuleMemory, Shown, read_memories, table
from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.recall.lines import RecallLimits
from mcp_memory.longterm.recall.rules import RulesForPrompt, rules_for, tells_change
from mcp_memory.models.embed.bundled import encoder_vectors
from mcp_memory.models.embed.rule_relevance import ending_probabilities, governing
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import atom_rows
from tests.longterm.by_hand import SPACE, ByHand, say, vectors_of

RULES = [
    "For orders above 500 euros ask Petra before you place them.",
    "Always answer in German.",
    "Always write commit messages in the imperative mood.",
    "When you write SQL, put the keywords in capitals.",
    "Never schedule meetings before ten in the morning.",
    "Recipes always in grams, never in cups.",
]
ORDERS, GERMAN, COMMITS, SQL, MEETINGS, RECIPES = RULES
_TOPICS = ("bees", "Lisbon", "the moon")
_LIMITS = RecallLimits()


@dataclass
class Said:
    """A memory of turns of the user, each of a day of its own, and their ids by text."""

    memory: Memory
    ids: dict[str, str]

    async def rules(self, prompt: str, *, there: Sequence[str] = (), limits: RecallLimits = _LIMITS) -> RulesForPrompt:
        return await to_thread.run_sync(self._rules, prompt, there, limits)

    def _rules(self, prompt: str, there: Sequence[str], limits: RecallLimits) -> RulesForPrompt:
        context = self.memory._parts.scheduler.context().cached()  # pyright: ignore[reportPrivateUsage]
        return rules_for(context, prompt, [self.ids[text] for text in there], limits, "")

    async def shown(self, prompt: str, *, there: Sequence[str] = (), limits: RecallLimits = _LIMITS) -> list[str]:
        """Return the texts of the turns whose rules are shown."""
        texts = {id: text for text, id in self.ids.items()}
        rules = await self.rules(prompt, there=there, limits=limits)
        turns = [re.findall(r"\bt\d+\b", line.text)[0] for line in rules.lines]
        return [texts[turn] for turn in turns]


@asynccontextmanager
async def said(home: Path, *texts: str) -> AsyncGenerator[Said]:
    start = datetime(2026, 1, 1, 9, tzinfo=UTC)
    async with open_memory(Settings(home=home), now=lambda: start + timedelta(days=100)) as memory:
        ids: dict[str, str] = {}
        for day, text in enumerate(texts):
            turn = NewTurn(role="user", content=text, said_at=start + timedelta(days=day))
            (ids[text],) = (await memory.record_turns([turn], session=f"day-{day}")).stored
        await until_indexed(memory)
        yield Said(memory, ids)


async def test_the_rule_that_governs_a_task_is_shown_with_those_about_every_answer(home: Path) -> None:
    governed = {
        "Order twelve office chairs, the ones at 139 each": ORDERS,
        "Commit the changes in the parser": COMMITS,
        "Write a query that lists customers with three open invoices": SQL,
        "Find a time this week to sit down with the design team": MEETINGS,
    }
    async with said(home, *RULES) as memory:
        for prompt, rule in governed.items():
            shown = await memory.shown(prompt)
            assert {rule, GERMAN} <= set(shown)
            assert len(shown) <= 4
        beside = await memory.shown("Commit the changes in the parser", there=[COMMITS, GERMAN])
        assert {COMMITS, GERMAN}.isdisjoint(beside)


async def test_a_question_that_no_rule_is_about_gets_only_those_about_every_answer(home: Path) -> None:
    async with said(home, *RULES) as memory:
        assert await memory.shown("Why is the sky blue?") == [GERMAN]
        assert await memory.shown("What is the name of my dog?") == [GERMAN]


async def test_rules_are_limited_of_each_kind_and_together(home: Path) -> None:
    prompt = "Order a cake, schedule a meeting, commit the changes and write an SQL query"
    async with said(home, *RULES, "Never use emojis in your answers.", "Always keep your answers short.") as memory:
        assert len(await memory.shown(prompt, limits=RecallLimits(rules_for_question=1))) <= 2
        assert len(await memory.shown(prompt, limits=RecallLimits(rules=2))) <= 2


@pytest.mark.parametrize(
    ("older", "newer", "prompt"),
    [
        (COMMITS, "You no longer have to write commit messages in the imperative mood.", "Commit the changes"),
        (ORDERS, "From now on ask Petra before you place orders above 800 euros.", "Order twelve office chairs"),
        ("Antworte immer auf Deutsch.", "Antworte ab jetzt immer auf Englisch.", "Plane meine Woche"),
    ],
)
async def test_a_message_that_ended_a_rule_is_shown_in_its_place(
    home: Path, older: str, newer: str, prompt: str
) -> None:
    async with said(home, *dict.fromkeys([SQL, older]), newer) as memory:
        assert newer in await memory.shown(prompt)
        assert older not in await memory.shown(prompt)
        replaced = {(id, turn.id) for id, turn in (await memory.rules(prompt)).replaced.items()}
        assert replaced <= {(memory.ids[older], memory.ids[newer])}  # none if the reader ended the older statement
        dynamic = (await memory.memory.recall(prompt)).dynamic
        assert newer in dynamic.partition("Rules the user stated")[2]
        assert older not in dynamic or f"changed 2026-01-03, see {memory.ids[newer]}" in dynamic


async def test_a_message_that_only_may_have_ended_a_rule_comes_before_it_and_neither_is_marked(home: Path) -> None:
    newer = "The limit for orders without asking Petra is now 800 euros."
    async with said(home, SQL, ORDERS, newer) as memory:
        prompt = "Order twelve office chairs"
        shown = await memory.shown(prompt)
        assert shown.index(newer) < shown.index(ORDERS)
        assert (await memory.rules(prompt)).replaced == {}


async def test_a_rule_that_was_stated_twice_is_shown_once_as_stated_last(home: Path) -> None:
    again = COMMITS.replace("Always", "always")
    async with said(home, COMMITS, SQL, again) as memory:
        shown = await memory.shown("Commit the changes in the parser")
        assert again in shown
        assert COMMITS not in shown
        dynamic = (await memory.memory.recall("Commit the changes in the parser")).dynamic
        assert dynamic.count("the imperative mood") == 1


async def test_rules_are_found_among_many_other_messages(home: Path) -> None:
    others = [f"Please always tell me more about {topic} number {place}." for place in range(40) for topic in _TOPICS]
    async with said(home, *RULES, *others) as memory:
        assert {COMMITS, GERMAN} <= set(await memory.shown("Commit the changes in the parser"))


async def test_a_message_of_change_about_something_else_ends_no_rule(home: Path) -> None:
    async with said(home, SQL, "From now on commit messages have to name the ticket, always.") as memory:
        prompt = "Write the SQL query for the report"
        assert SQL in await memory.shown(prompt)
        assert (await memory.rules(prompt)).replaced == {}


def test_each_message_of_change_is_recognised_by_its_words() -> None:
    assert tells_change("From now on answer in English.")
    assert tells_change("You no longer have to ask me.")
    assert not tells_change("The cat sleeps.")


def test_chances_are_probabilities_for_any_text() -> None:
    for text in ("", " ", "a", "¿?", "回答", RULES[0] * 50):
        (found,) = governing(text, encoder_vectors([RULES[0]]))
        assert 0 <= found.general <= 1
        assert 0 <= found.scoped <= 1
        assert 0 <= ending_probabilities(encoder_vectors([text]), encoder_vectors([RULES[0]])).item() <= 1
    assert governing("Order a chair", encoder_vectors([])) == []


def test_the_memories_name_only_rules_that_they_have_and_that_hold() -> None:
    for memory in read_memories():
        rules = {message.id for message in memory.current if not message.general}
        assert len({message.id for message in memory.said}) == len(memory.said)
        assert all(prompt.rules <= rules for prompt in memory.prompts)
        assert memory.ended <= {message.id for message in memory.said if message.is_rule}


def test_the_report_counts_right_outdated_and_unneeded_rules() -> None:
    said = [
        Message(id=id, text=text, is_rule=True, general=general, ends=ends)
        for id, text, general, ends in [
            ("old", COMMITS, False, ()), ("new", SQL, False, ("old",)), ("all", GERMAN, True, ()),
        ]
    ]  # fmt: skip
    prompts = [Prompt(text="Commit", rules=frozenset(["new"])), Prompt(text="Why?", rules=frozenset())]
    memory = RuleMemory(name="one", said=said, prompts=prompts)
    recognised = frozenset(["old", "new", "all"])
    found = [
        Shown(memory=memory, prompt=prompt, nearest=nearest, governing=governing, recognised=recognised)
        for prompt, nearest, governing in [
            (prompts[0], ["old", "all"], ["new", "all"]), (prompts[1], ["old"], ["all"]),
        ]
    ]  # fmt: skip
    _, nearest, governed, by_memory = (line.split() for line in table(found))
    assert nearest == ["nearest", "2", "1.5", "33.3%", "33.3%", "33.3%", "100.0%", "0.0%"]
    assert governed == ["governing", "2", "1.5", "100.0%", "100.0%", "100.0%", "0.0%", "100.0%"]
    assert by_memory[1:] == governed[1:]


async def test_the_rule_of_a_long_turn_does_not_hide_what_else_it_says(home: Path) -> None:
    trip = "In Geiranger we booked cabin 14, the one with the red door, for the second week of July. "
    text = f"Always answer in German. {trip}{'The ferry was late, and it rained. ' * 9}"
    async with said(home, text, *(f"We talked about {topic} for a while." for topic in _TOPICS)) as memory:
        found = await memory.memory.recall("Which cabin did we book in Geiranger?")
    assert "cabin 14" in found.dynamic


PROMPT = "Commit the changes in the parser"


def state(hand: ByHand, text: str, *, replacing: str = "", name: str | None = None) -> tuple[str, str]:
    """Store a rule of the user; return the ids of the statement and of the turn."""
    rule = say(hand, text, "rule", embedded=True, name=name, supersedes=(replacing,) if replacing else ())
    return rule, hand.store.read(SPACE, atom_rows.evidence, rule)[0].turn


def rules(hand: ByHand) -> RulesForPrompt:
    context = replace(hand.context(), of_query=lambda text: [vectors_of(text)])
    return rules_for(context, PROMPT, [], RecallLimits(), "")


def turns_shown(hand: ByHand) -> list[str]:
    return [re.findall(r"\bt\d+\b", line.text)[0] for line in rules(hand).lines]


def test_a_rule_that_was_replaced_twice_is_shown_as_stated_last(hand: ByHand) -> None:
    first, _ = state(hand, "Always write commit messages in the past tense.")
    second, turn = state(hand, "From now on write commit messages in the present tense.", replacing=first)
    _, last = state(hand, "From now on write commit messages in the imperative mood.", replacing=second)
    assert last in turns_shown(hand)
    assert turn not in turns_shown(hand)
    assert {turn.id for turn in rules(hand).replaced.values()} == {last}


def test_a_rule_is_not_replaced_by_the_words_of_somebody_else(hand: ByHand) -> None:
    first, _ = state(hand, "Always write commit messages in the past tense.")
    second, turn = state(hand, "From now on write commit messages in the present tense.", replacing=first)
    _, other = state(hand, "From now on write commit messages in Latin.", replacing=second, name="Bruno")
    assert turn in {turn.id for turn in rules(hand).replaced.values()}
    assert other not in {turn.id for turn in rules(hand).replaced.values()}


def test_many_replaced_rules_leave_room_for_the_one_that_holds(hand: ByHand) -> None:
    _, current = state(hand, "Commit messages name the ticket and are never longer than a line, always.")
    rule, _ = state(hand, "Always commit the changes in the parser.")
    for number in range(60):
        rule, _ = state(hand, f"From now on commit the changes in the parser {number} times.", replacing=rule)
    assert current in turns_shown(hand)
