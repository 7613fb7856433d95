"""Rules that later statements replaced, as recall shows them for a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.longterm.recall.lines import RecallLimits
from mcp_memory.longterm.recall.rules import RulesForPrompt, rules_for
from mcp_memory.longterm.search.search import Search
from mcp_memory.models.embed.bundled import IDENTITY, BundledEmbedder
from mcp_memory.store.sql import stage_outputs, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import NewAtom, Readings, Vectors
from tests.longterm.by_hand import SPACE, ByHand

PROMPT = "Commit the changes in the parser"
AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def hand(home: Path) -> Iterator[ByHand]:
    store = open_store(home)
    search = Search(store, lambda: AT)
    yield ByHand(store=store, search=search, settings=Settings(), now=AT)
    search.close()
    store.close()


def embedded(*texts: str) -> Vectors:
    return Vectors(identity=IDENTITY, data=BundledEmbedder().embed(list(texts)))


def of_query(text: str) -> list[Vectors]:
    return [embedded(text)]


def say(hand: ByHand, text: str, *, replacing: str = "", name: str | None = None) -> tuple[str, str]:
    """Store a rule of the user as the reader would; return the ids of the statement and of the turn."""
    said = NewTurn(role="user", content=text, said_at=hand.tick(), name=name)
    (turn,) = hand.store.write(SPACE, turn_rows.append, "talk", turn_rows.prepare([said]), now=hand.now).stored
    rule = NewAtom(
        kind="instruction",
        text=text,
        priority=80,
        confidence=0.9,
        session="talk",
        valid_from=hand.now,
        evidence=[Evidence(turn=turn.id, span=(0, len(text)), quote=text)],
        label="rule",
        reader=1,
        supersedes=(replacing,) if replacing else (),
    )
    readings = Readings(turns=[turn.id], atoms=[rule], vectors=embedded(text))
    (written,) = hand.store.write(SPACE, stage_outputs.commit, None, readings, outcome={}, now=hand.now).atoms
    return written.atom.id, turn.id


def rules(hand: ByHand) -> RulesForPrompt:
    context = replace(hand.context(), of_query=of_query)
    return rules_for(context, PROMPT, [], RecallLimits(), "")


def turns_shown(hand: ByHand) -> list[str]:
    return [re.findall(r"\bt\d+\b", line.text)[0] for line in rules(hand).lines]


def test_a_rule_that_was_replaced_twice_is_shown_as_stated_last(hand: ByHand) -> None:
    first, _ = say(hand, "Always write commit messages in the past tense.")
    second, turn = say(hand, "From now on write commit messages in the present tense.", replacing=first)
    _, last = say(hand, "From now on write commit messages in the imperative mood.", replacing=second)
    assert last in turns_shown(hand)
    assert turn not in turns_shown(hand)
    assert {turn.id for turn in rules(hand).replaced.values()} == {last}


def test_a_rule_is_not_replaced_by_the_words_of_somebody_else(hand: ByHand) -> None:
    first, _ = say(hand, "Always write commit messages in the past tense.")
    second, turn = say(hand, "From now on write commit messages in the present tense.", replacing=first)
    _, other = say(hand, "From now on write commit messages in Latin.", replacing=second, name="Bruno")
    assert turn in {turn.id for turn in rules(hand).replaced.values()}
    assert other not in {turn.id for turn in rules(hand).replaced.values()}


def test_many_replaced_rules_leave_room_for_the_one_that_holds(hand: ByHand) -> None:
    _, current = say(hand, "Commit messages name the ticket and are never longer than a line, always.")
    rule, _ = say(hand, "Always commit the changes in the parser.")
    for number in range(60):
        rule, _ = say(hand, f"From now on commit the changes in the parser {number} times.", replacing=rule)
    assert current in turns_shown(hand)
