"""What `store.protocol` promises of logs of clients."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.core.errors import NotFound, Refused
from mcp_memory.core.types import CanvasRow, NewTurn, Record
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import record_rows, ref_rows, tombstone_rows, turn_rows
from mcp_memory.store.values import FollowedLog, NewRef

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LOG = FollowedLog(
    path="/logs/a.jsonl",
    client="claude-code",
    session="claude-code-3f2a9c1e",
    offset=120,
    head="aa",
    tail="bb",
    state='{"calls": {}}',
    at=NOON,
)


def new_ref(data: bytes, call: str | None = None) -> NewRef:
    return NewRef(
        data=data,
        tool="Bash",
        arguments={},
        tool_call_id=call,
        session="s",
        timestamp=NOON,
        content_type="text/plain",
    )


def test_a_log_is_known_by_its_path_and_stands_where_it_was_noted_last(store: Store) -> None:
    other = replace(LOG, path="/logs/b.jsonl", client="codex", at=NOON + timedelta(minutes=1))
    store.write("me", turn_rows.note_followed_log, LOG)
    store.write("me", turn_rows.note_followed_log, other)
    assert store.read("me", turn_rows.followed_logs) == [other, LOG]
    further = replace(LOG, offset=300, tail="cc", state="{}", at=NOON + timedelta(minutes=2))
    store.write("me", turn_rows.note_followed_log, further)
    assert store.read("me", turn_rows.followed_logs) == [further, other]
    assert store.read("me", turn_rows.followed_logs, path=LOG.path) == [further]
    assert store.read("me", turn_rows.followed_logs, path="/logs/none.jsonl") == []
    assert store.read("other", turn_rows.followed_logs) == []


def test_a_message_is_known_by_its_id_in_any_session_of_its_space_forgotten_or_not(store: Store) -> None:
    for session, id in (("one", "m1"), ("two", "m2"), ("two", None)):
        store.write(
            "me",
            turn_rows.append,
            session,
            turn_rows.prepare([NewTurn(role="user", content="Hello", client_id=id)]),
            now=NOON,
        )
    store.write("me", tombstone_rows.forget, ["t1"], reason="", now=NOON)
    wanted = ["m1", "m2", "m3", *(f"x{n}" for n in range(1_200))]
    assert store.read("me", turn_rows.known_client_ids, wanted) == {"m1": True, "m2": False}
    assert (
        store.read("other", turn_rows.known_client_ids, wanted)
        == store.read("me", turn_rows.known_client_ids, [])
        == {}
    )


def test_a_tool_call_is_known_by_its_id_whether_its_result_is_on_a_canvas_or_not(store: Store) -> None:
    plain, shown = (
        store.write("me", ref_rows.put, new_ref(b"one", "call-1")),
        store.write("me", ref_rows.put, new_ref(b"two")),
    )
    record = Record(
        timestamp=NOON,
        node_id="001-N1",
        tool_call="Bash()",
        summary="two",
        result_ref=shown.path,
        tool_call_id="call-2",
        offloaded=True,
        session="s",
        score=5,
        tokens_raw=900,
        tokens_kept=90,
        ref=shown.id,
    )
    canvas = CanvasRow(
        number=1,
        label="task",
        session="s",
        text="flowchart TD",
        status="doing",
        folded=False,
        groups={},
        updated=NOON,
        version=0,
    )
    store.write("me", record_rows.commit_step, record=record, canvas=canvas, expected=0)
    store.write("me", tombstone_rows.forget, [plain.id], reason="", now=NOON)
    assert store.read("me", turn_rows.stored_calls, "s", ["call-1", "call-2", "call-3"]) == {"call-1", "call-2"}
    assert (
        store.read("me", turn_rows.stored_calls, "other", ["call-1"])
        == store.read("other", turn_rows.stored_calls, "s", ["call-1"])
        == set()
    )


def test_the_bytes_of_a_forgotten_ref_do_not_bring_it_back(store: Store) -> None:
    held = store.write("me", ref_rows.put, new_ref(b"once"))
    store.write("me", tombstone_rows.forget, [held.id], reason="", now=NOON)
    assert store.write("me", ref_rows.put, new_ref(b"once"), refuse=False) == held
    with pytest.raises(NotFound, match="forgotten"):
        store.read("me", ref_rows.by_id, held.id)
    with pytest.raises(Refused, match="undo='x1'"):
        store.write("me", ref_rows.put, new_ref(b"once"))
    store.write("me", tombstone_rows.undo, "x1", now=NOON)
    assert store.write("me", ref_rows.put, new_ref(b"once")) == store.read("me", ref_rows.by_id, held.id) == held


def test_a_session_keeps_its_first_project_and_sessions_are_listed_by_project(store: Store) -> None:
    store.write("me", turn_rows.note_project, "nowhere", "/srv/web")  # there is no such session
    for session, project in (("one", "/srv/web"), ("two", "/srv/api"), ("three", None)):
        hello = turn_rows.prepare([NewTurn(role="user", content="Hello")])
        store.write("me", turn_rows.append, session, hello, now=NOON)
        if project:
            store.write("me", turn_rows.note_project, session, project)
    store.write("me", turn_rows.note_project, "one", "/srv/other")

    def listed(project: str | None) -> list[str]:
        return [info.session for info in store.read("me", turn_rows.sessions, project=project)]

    assert store.read("me", turn_rows.project_of_session, "one") == "/srv/web"
    assert store.read("me", turn_rows.project_of_session, "three") is None
    assert store.read("me", turn_rows.project_of_session, "nowhere") is None
    assert listed("/srv/web") == ["one"]
    assert listed("") == ["three"]
    assert listed(None) == ["three", "two", "one"]
    assert listed("/srv/other") == []
