"""Rules that later statements replaced, as recall shows them for a prompt."""

from __future__ import annotations

import re
from dataclasses import replace

from mcp_memory.longterm.recall.lines import RecallLimits
from mcp_memory.longterm.recall.rules import RulesForPrompt, rules_for
from tests.longterm.by_hand import SPACE, ByHand, say, vectors_of

PROMPT = "Commit the changes in the parser"


def state(hand: ByHand, text: str, *, replacing: str = "", name: str | None = None) -> tuple[str, str]:
    """Store a rule of the user; return the ids of the statement and of the turn."""
    rule = say(hand, text, "rule", embedded=True, name=name, supersedes=(replacing,) if replacing else ())
    return rule, hand.store.evidence(SPACE, rule)[0].turn


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
