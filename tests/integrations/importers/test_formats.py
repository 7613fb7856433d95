"""Turns of generic JSON in every shape, and the problems of objects that cannot be imported."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.importers.generic import generic_records, seed_records
from mcp_memory.integrations.importers.records import (
    ImportedTurn,
    ImportProblem,
    SkippedParts,
    SourceValue,
)
from tests.json_values import json_values

MOMENT = datetime(2026, 5, 7, 8, 0, tzinfo=UTC)


def of(value: Any, records: Any = generic_records) -> list[ImportedTurn | ImportProblem]:
    return list(records(SourceValue(value, "line 1"), SkippedParts()))


def read_turn(**fields: Any) -> ImportedTurn:
    [record] = of({"role": "user", "content": "hi", **fields})
    assert isinstance(record, ImportedTurn), record
    return record


def wrong(value: Any) -> str:
    [record] = of(value)
    assert isinstance(record, ImportProblem), record
    return str(record)


def test_all_fields_of_a_turn_are_read() -> None:
    value = {"role": "user", "content": "hi", "session": "s", "name": "Maya", "said_at": "2026-05-07T10:00:00+02:00"}
    assert of({**value, "id": 7}) == [
        ImportedTurn(where="line 1", role="user", content="hi", name="Maya", said_at=MOMENT, id="7", session="s")
    ]


@pytest.mark.parametrize("key", ["session", "session_id", "sessionId", "sessionKey", "conversation_id"])
def test_a_session_goes_by_many_names(key: str) -> None:
    assert read_turn(**{key: "s"}).session == "s"


@pytest.mark.parametrize(
    ("name", "role"), [("human", "user"), ("AI", "assistant"), ("developer", "system"), ("toolResult", "tool")]
)
def test_roles_of_other_programs_are_known(name: str, role: str) -> None:
    assert read_turn(role=name).role == role


@pytest.mark.parametrize("key", ["said_at", "timestamp", "created_at"])
@pytest.mark.parametrize(
    "value",
    [
        1778140800,
        1778140800.0,
        1778140800000,
        "1778140800",
        "1778140800000",
        "2026-05-07T08:00:00Z",
        "2026-05-07 10:00:00+02:00",
    ],
)
def test_a_time_is_iso_or_seconds_or_milliseconds(key: str, value: Any) -> None:
    assert read_turn(**{key: value}).said_at == MOMENT


@given(st.datetimes(min_value=datetime(1974, 1, 1), max_value=datetime(4000, 1, 1), timezones=st.just(UTC)))
def test_every_time_since_1974_is_read_back_from_milliseconds_and_from_iso(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    assert read_turn(timestamp=round(moment.timestamp() * 1000)).said_at == moment
    assert read_turn(timestamp=moment.astimezone(timezone(timedelta(hours=5))).isoformat()).said_at == moment


def test_a_time_without_a_zone_is_local() -> None:
    assert read_turn(timestamp="2026-05-07 10:00").said_at == datetime(2026, 5, 7, 10, 0).astimezone()


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_time_is_none(empty: Any) -> None:
    assert read_turn(timestamp=empty, created_at=1778140800).said_at == MOMENT


@pytest.mark.parametrize(
    "value",
    [
        12,
        -1,
        True,
        1e18,
        1e300,
        10**400,
        float("nan"),
        "yesterday",
        [1],
        20260507,
        "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_unreadable_times_are_counted_and_their_turns_are_stored(value: Any) -> None:
    skipped = SkippedParts()
    [record] = generic_records(SourceValue({"role": "user", "content": "hi", "timestamp": value}, "line 1"), skipped)
    assert isinstance(record, ImportedTurn)
    assert (record.said_at, skipped.misdated) == (None, 1)
    assert read_turn(timestamp=value, created_at=1778140800).said_at == MOMENT


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (["a", "b"], "a\nb"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": {"value": "b"}}], "a\nb"),
        ({"type": "text", "text": "a"}, "a"),
        ([{"type": "image_url", "image_url": {"url": "x"}}, {"text": "a"}], "a"),
        ([], ""),
        (None, ""),
        ("", ""),
    ],
)
def test_a_content_is_a_text_or_a_list_of_parts(content: Any, text: str) -> None:
    assert read_turn(content=content).content == text


def test_a_call_of_a_tool_needs_no_content() -> None:
    [record] = of({"role": "assistant", "tool_calls": []})
    assert isinstance(record, ImportedTurn)
    assert record.content == ""


def test_a_conversation_gives_its_turns_its_session_its_number_and_when_it_began() -> None:
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "session": "other"}]
    for key in ("turns", "messages"):
        record = list(
            generic_records(SourceValue({"id": "s", key: turns, "started_at": 1778140800}, "line 9", 4), SkippedParts())
        )
        assert record == [
            ImportedTurn(
                where=f"line 9, {key}[{nth}]",
                role=role,
                content=text,
                name=None,
                said_at=None,
                id=None,
                session="s",
                conversation=4,
                began=MOMENT,
            )
            for nth, (role, text) in enumerate([("user", "a"), ("assistant", "b")])
        ]


SEED = {"sessionKey": "agent:main", "sessionId": "x1", "conversations": [[{"role": "user", "content": "a"}], []]}


def test_a_seed_gives_its_rounds_in_order_under_its_key_and_id() -> None:
    [record] = of(SEED)
    assert isinstance(record, ImportedTurn)
    assert (record.session, record.where, record.content) == ("agent:main@x1", "line 1, conversations[0][0]", "a")
    assert of({"sessions": [SEED]}) == [
        ImportedTurn(**{**_fields(record), "where": "line 1, sessions[0].conversations[0][0]"})
    ]
    [keyed] = of({key: value for key, value in SEED.items() if key != "sessionId"})
    assert isinstance(keyed, ImportedTurn)
    assert keyed.session == "agent:main"


def _fields(record: ImportedTurn) -> dict[str, Any]:
    return {name: getattr(record, name) for name in ImportedTurn.__slots__}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "line 1: is a number, and has to be an object such as {role, content}."),
        ({}, "line 1: has no role. A turn is {role, content}, a conversation {session, turns: [turn, …]}."),
        ({"role": "user"}, "line 1: has no content. A turn is {role, content}."),
        (
            {"role": "narrator", "content": "a"},
            "line 1: role is 'narrator', and has to be user, assistant, system or tool.",
        ),
        ({"role": "note", "content": "a"}, "line 1: role is 'note', and has to be user, assistant, system or tool."),
        (
            {"role": "user", "content": 3},
            "line 1: content is a number, and has to be a string or a list of parts.",
        ),
        ({"role": "user", "content": "a", "name": []}, "line 1: name is a list, and has to be a string."),
        ({"turns": {}}, "line 1: turns is an object, and has to be a list of turns."),
        ({"turns": [3]}, "line 1, turns[0]: is a number, and has to be an object {role, content}."),
        ({"conversations": []}, "line 1: a session of a seed needs a sessionKey."),
        (
            {"sessionKey": "k", "conversations": 3},
            "line 1: conversations is a number, and has to be a list of lists of turns.",
        ),
        (
            {"sessionKey": "k", "conversations": [{}]},
            "line 1, conversations[0]: is an object, and has to be a list of turns.",
        ),
        (
            {"role": "user", "content": "x" * (4 * 2**20 + 1)},
            "line 1: content is larger than 4 MiB. Shorten it, or take it out.",
        ),
    ],
)
def test_a_problem_names_its_place_and_the_next_step(value: Any, message: str) -> None:
    assert wrong(value) == message


def test_where_only_seeds_are_asked_for_a_turn_is_none() -> None:
    assert [str(record) for record in of({"role": "user", "content": "a"}, seed_records)] == [
        "line 1: a session of a seed needs a sessionKey."
    ]


KEYS = st.sampled_from(["role", "content", "session", "turns", "conversations", "sessions", "sessionKey", "id", "text"])


@given(json_values(KEYS), st.sampled_from([generic_records, seed_records]))
def test_any_json_is_read_or_refused(value: Any, records: Any) -> None:
    assert all(isinstance(record, ImportedTurn | ImportProblem) for record in of(value, records))
