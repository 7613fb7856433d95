"""Rows are the same after a way through the columns of the database, or through a line of a file."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import NewTurn
from mcp_memory.store import deltas
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.row_types import RecordRow, SessionRow, TombstoneRow, TurnRow, VersionRow
from mcp_memory.store.sql import row_codec
from mcp_memory.store.sql.line_forms import LineRow, line_of, row_of

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NUMBER = st.integers(0, 2**40)
MOMENT = st.integers(0, 10**9).map(lambda seconds: datetime(2001, 1, 1, tzinfo=UTC) + timedelta(milliseconds=seconds))
IDS = st.lists(st.integers(1, 10**6).map("t{}".format), max_size=3).map(tuple)


def _with_hash(row: TurnRow) -> TurnRow:
    turn = NewTurn(role=row.role, name=row.name, content=row.content, said_at=row.said_at if row.dated else None)
    return replace(row, sha256=evidence_hash(turn).hex())


TURNS = st.builds(
    TurnRow,
    id=NUMBER.map("t{}".format),
    session=TEXT,
    position=NUMBER,
    role=st.sampled_from(["user", "assistant", "tool"]),
    name=st.none() | TEXT,
    content=st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
    said_at=MOMENT,
    dated=st.booleans(),
    learned_at=MOMENT,
    client_id=st.none() | TEXT,
    sha256=st.just(""),
    reasons=st.lists(TEXT, max_size=2).map(tuple),
).map(_with_hash)
RECORDS = st.builds(
    RecordRow,
    id=NUMBER.map("k{}".format),
    canvas=st.just(3),
    node_id=NUMBER.map("003-N{}".format),
    session=TEXT,
    timestamp=MOMENT,
    tool_call=TEXT,
    summary=TEXT,
    result_ref=TEXT,
    tool_call_id=st.none() | TEXT,
    score=st.integers(0, 10),
    tokens_raw=NUMBER,
    tokens_kept=NUMBER,
    ref=TEXT,
    summary_by=st.none() | st.sampled_from(["agent", "model"]),
    step=st.none() | TEXT,
)
VERSIONS = st.builds(
    VersionRow,
    canvas=NUMBER,
    version=NUMBER,
    kind=TEXT,
    detail=TEXT,
    label=TEXT,
    session=TEXT,
    status=st.sampled_from(["doing", "done"]),
    folded=st.booleans(),
    updated=MOMENT,
    by_model=st.just(False),
    work=st.none() | NUMBER.map("w{}".format),
    crc=NUMBER,
    delta=st.none() | TEXT.map(deltas.as_json),
)
SESSIONS = st.builds(
    SessionRow,
    name=TEXT,
    read=st.none(),
    batches=st.just(0),
    scene=st.none(),
    canvas=st.none() | NUMBER,
    activated_at=st.none() | NUMBER,
)
TOMBSTONES = st.builds(
    TombstoneRow,
    id=NUMBER.map("x{}".format),
    at=MOMENT,
    reason=TEXT,
    gone=st.just(()),
    undone_at=st.none() | MOMENT,
    purged_at=st.none() | MOMENT,
    how=st.sampled_from(["ids", "correction"]),
    ids=IDS,
    digests=st.lists(st.binary(min_size=4, max_size=4).map(bytes.hex), max_size=2).map(tuple),
)


@given(TURNS | RECORDS | VERSIONS | SESSIONS | TOMBSTONES)
def test_a_row_comes_back_from_its_line(row: LineRow) -> None:
    assert row_of(json.loads(line_of(row))) == row


@given(TURNS | RECORDS | VERSIONS | SESSIONS | TOMBSTONES)
def test_a_field_comes_back_from_its_column(row: LineRow) -> None:
    values = row_codec.values_of(row)
    for field, column, form in row_codec.stored_columns(type(row)):
        value = values[column]
        assert (form.empty if value is None else form.field(value)) == getattr(row, field)


@given(TURNS, st.sampled_from([{"content": "Something else"}, {"role": "note"}, {"name": "Somebody else"}]))
def test_a_line_whose_words_were_changed_is_damaged(row: TurnRow, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="does not match its hash"):
        row_of({**json.loads(line_of(row)), **change})
