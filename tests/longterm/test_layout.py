"""The order of the lines of a recall, their dates and headings, and which of them fit a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.token_counts import token_counter
from mcp_memory.longterm.recall.blocks import ids_in
from mcp_memory.longterm.recall.layout import FORMER, fit, layout
from mcp_memory.longterm.recall.line import Group, RecallLine

COUNTER = token_counter("o200k_base")
TODAY = datetime(2026, 3, 12, tzinfo=UTC)


def line(
    number: int,
    text: str = "",
    *,
    session: str = "a",
    days_ago: int = 0,
    group: Group = "turn",
    newer: int | None = None,
    is_short: bool = False,
    beside: int | None = None,
) -> RecallLine:
    """Return the line of the turn with this number, at this position in its session; odd ones are the assistant's.

    Short ones need no line of their own if a newer turn replaced their value.
    """
    return RecallLine(
        group=group, id=f"t{number}", text=f"[t{number}] {text}", source="assistant" if number % 2 else "user",
        said_at=TODAY - timedelta(days=days_ago), session=session, position=number, newer=f"t{newer}" if newer else None,
        former=f"[t{number}] {text}" if newer and is_short else "", beside=f"t{beside}" if beside else None,
    )  # fmt: skip


def ids(texts: Sequence[str]) -> list[int]:
    return [int(id[1:]) for id in ids_in("\n".join(texts))]


def test_exchanges_come_by_rank_and_turns_within_one_as_they_were_said() -> None:
    lines = [line(7), line(20), line(2), line(6), line(3), line(21)]
    assert ids(list(layout(lines))) == [6, 7, 20, 21, 2, 3]


def test_a_question_comes_before_its_answer() -> None:
    assert ids(list(layout([line(4, "Nine hundred."), line(3, "What is the rent?"), line(5)]))) == [3, 4, 5]


def test_turns_of_other_sessions_are_not_of_an_exchange() -> None:
    assert ids(list(layout([line(3, session="a"), line(8), line(2, session="b")]))) == [3, 8, 2]


def test_a_reply_stands_in_the_part_of_the_turn_that_it_replies_to() -> None:
    lines = [line(2), line(3, group="unsure"), line(8, group="unsure")]
    assert list(layout(lines)) == [
        "About this:", "12 March 2026:", "[t2] ", "[t3] ", "Closest, unsure:", "12 March:", "[t8] "
    ]  # fmt: skip


def test_a_date_is_shown_where_it_changes_and_its_year_where_that_changes() -> None:
    lines = [line(2), line(4), line(6, days_ago=2), line(8, days_ago=300), line(10, days_ago=301)]
    assert [text for text in layout(lines) if text.endswith(":")] == [
        "About this:", "12 March 2026:", "10 March:", "16 May 2025:", "15 May:"
    ]  # fmt: skip


def test_an_outdated_turn_follows_the_one_with_the_current_value_even_within_one_exchange() -> None:
    rent = [line(4, newer=7), line(2, newer=4), line(3), line(7), line(6)]
    assert ids(list(layout(rent))) == [6, 7, 4, 2, 3]


def test_short_outdated_turns_share_a_line_below_the_turn_that_replaced_them_the_oldest_last() -> None:
    rent = [
        line(2, "It is 900.", newer=12, is_short=True, days_ago=9), line(12, "It is 980.", days_ago=1),
        line(13, "Noted."), line(6, "It is 940.", newer=12, is_short=True, days_ago=5),
    ]  # fmt: skip
    assert [text for text in layout(rent) if not text.endswith(":")] == [
        "[t12] It is 980.", "  before: [t6] It is 940. ← [t2] It is 900.", "[t13] Noted."
    ]  # fmt: skip


def test_an_outdated_turn_whose_reply_is_shown_has_its_own_line_above_that_and_below_the_current_value() -> None:
    rent = [line(4, newer=8, is_short=True), line(20), line(5), line(8), line(9)]
    assert ids(list(layout(rent))) == [8, 9, 4, 5, 20]
    assert not any(text.startswith(FORMER) for text in layout(rent))


def test_two_turns_that_may_contradict_each_other_are_neighbours_the_later_one_first() -> None:
    flask = [line(2, beside=12), line(20), line(3), line(13), line(12)]
    assert ids(list(layout(flask))) == [12, 2, 13, 20, 3]


def test_the_answer_comes_before_rules_and_rules_before_unsure_turns() -> None:
    rule = replace(line(50), group="rule")
    assert ids(list(layout([rule, line(8, group="unsure"), line(2)]))) == [2, 50, 8]


def test_an_outdated_turn_is_left_out_where_the_newer_one_does_not_fit() -> None:
    long = line(8, "The rent is 980 now. " * 20)
    block, left_out = fit([line(2, "The rent is 900.", newer=8), long, line(4, "Fine.")], COUNTER, 80)
    assert ids(block.splitlines()) == [4]
    assert left_out == ["t8", "t2"]


@st.composite
def ranked(draw: st.DrawFn) -> list[RecallLine]:
    """Return turns in any order of rank, some of them outdated by a later one."""
    numbers = draw(st.lists(st.integers(0, 30), unique=True, max_size=12))
    later = {number: [other for other in numbers if other > number] for number in numbers}
    return [
        line(
            number,
            "rent? " * draw(st.integers(0, 9)),
            session=draw(st.sampled_from("ab")),
            days_ago=30 - number,
            group=draw(st.sampled_from(["turn", "maybe", "unsure"])),
            newer=draw(st.none() | st.sampled_from(later[number])) if later[number] else None,
            is_short=draw(st.booleans()),
            beside=draw(st.none() | st.sampled_from(later[number])) if later[number] else None,
        )
        for number in numbers
    ]


@given(ranked())
def test_every_turn_is_shown_once_and_no_outdated_one_before_the_newer(lines: list[RecallLine]) -> None:
    shown = ids(list(layout(lines)))
    assert sorted(shown) == sorted(int(one.id[1:]) for one in lines)
    assert all(shown.index(int(one.newer[1:])) < shown.index(int(one.id[1:])) for one in lines if one.newer)


@given(ranked(), st.integers(20, 200))
def test_a_block_fits_its_budget_and_has_no_outdated_turn_without_the_newer(
    lines: list[RecallLine], budget: int
) -> None:
    block, _ = fit(lines, COUNTER, budget)
    shown = ids(block.splitlines())
    assert not block or COUNTER.fits(block, budget)
    assert all(int(one.newer[1:]) in shown for one in lines if one.newer and int(one.id[1:]) in shown)
