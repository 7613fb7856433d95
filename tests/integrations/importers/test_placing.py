"""Sessions, times and ids of turns: the same history is recognised, and repeated words are two turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.placement import TurnPlacement
from mcp_memory.integrations.importers.records import ImportedTurn

START = datetime(2026, 5, 7, 8, 0, tzinfo=UTC)


def says(content: str = "ok", **more: Any) -> ImportedTurn:
    fields: dict[str, Any] = {"where": "line 1", "role": "user", "name": None, "said_at": None, "id": None}
    return ImportedTurn(**{**fields, "session": "s", "content": content, **more})


def placed(*turns: ImportedTurn, default: str | None = "file", start: datetime = START) -> list[tuple[str, NewTurn]]:
    places = TurnPlacement(default=default, start=start)
    return [(placed_turn.session, placed_turn.turn) for placed_turn in map(places.place, turns)]


def ids(*turns: ImportedTurn, **more: Any) -> list[str | None]:
    return [turn.client_id for _, turn in placed(*turns, **more)]


def test_a_turn_with_its_own_id_and_time_is_placed_as_it_is() -> None:
    assert placed(says(id="m1", said_at=START, name="Maya")) == [
        ("s", NewTurn(role="user", content="ok", name="Maya", said_at=START, client_id="m1"))
    ]


def test_turns_without_a_time_follow_each_other_and_say_that_it_is_a_guess() -> None:
    later = START + timedelta(hours=1)
    turns = [says(), says(session="other"), says(said_at=later), says(), says(), says(session="other")]
    assert [(turn.said_at, turn.guessed) for _, turn in placed(*turns)] == [
        (START, True),
        (START + timedelta(milliseconds=100), True),
        (later, False),
        (later + timedelta(milliseconds=100), True),
        (later + timedelta(milliseconds=200), True),
        (START + timedelta(milliseconds=200), True),
    ]


def test_a_conversation_that_says_when_it_began_has_times_from_there() -> None:
    began = START + timedelta(days=3)
    assert [turn.said_at for _, turn in placed(says(began=began), says(began=began))] == [
        began,
        began + timedelta(milliseconds=100),
    ]


def _talk(steps: list[tuple[str, str, int | None]]) -> list[ImportedTurn]:
    """Return turns of (words, session, seconds since the turn before; None: without a time)."""
    at, turns = START, list[ImportedTurn]()
    for content, session, seconds in steps:
        at += timedelta(seconds=seconds or 0)
        turns.append(says(content, session=session, said_at=None if seconds is None else at))
    return turns


steps = st.tuples(st.sampled_from(["ok", "yes"]), st.sampled_from(["a", "b"]), st.sampled_from([None, 0, 1]))


@given(st.lists(steps, max_size=12).map(_talk))
def test_ids_are_all_different_and_hang_neither_on_the_start_nor_on_other_sessions(turns: list[ImportedTurn]) -> None:
    everything = ids(*turns)
    assert len(set(everything)) == len(turns)
    assert ids(*turns, start=START + timedelta(days=1), default="moved") == everything
    only_a = [turn for turn in turns if turn.session == "a"]
    assert ids(*only_a) == [id for turn, id in zip(turns, everything, strict=True) if turn.session == "a"]


def test_turns_without_a_session_get_the_default_and_conversations_a_session_each() -> None:
    turns = [says(session=None, conversation=number) for number in (0, 1, 2, 3)]
    assert [session for session, _ in placed(*turns)] == ["file", "file", "file-2", "file-3"]


def test_without_a_default_a_turn_must_name_its_session() -> None:
    with pytest.raises(InvalidInput, match=r"line 1 has no session. Pass --session"):
        placed(says(session=None), default=None)


def test_names_that_cannot_be_file_names_are_changed_and_stay_different() -> None:
    places = TurnPlacement(default=None, start=START)
    names = ["agent:main", "agent/main", "con", "x" * 200, "x" * 201, "会" * 90, "///", "fine"]
    kept = [places.place(says(session=name)).session for name in names]
    assert len(set(kept)) == len(names)
    assert (kept[0], kept[-1]) == ("agent-main-f331f0", "fine")
    assert places.renamed == dict(zip(names[:-1], kept[:-1], strict=True))
