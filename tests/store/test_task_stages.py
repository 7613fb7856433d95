"""What a model betters of tasks: thin summaries and grown canvases are found, and replaced together or not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import CanvasRow, Record, Stage
from mcp_memory.store.protocol import EmbeddedStore, Store
from mcp_memory.store.sql import canvas_rows, job_rows, record_rows, ref_rows, stage_outputs, tombstone_rows
from mcp_memory.store.values import Amended, CanvasChange, CanvasGrowth, CanvasPatch, Conflict, NewRef, Summaries, Work
from tests.store.embedded import problems

NOW = datetime(2026, 5, 7, 12, tzinfo=UTC)


def row(number: int = 1, *, version: int = 0, text: str = "flowchart TD\n", updated: datetime = NOW) -> CanvasRow:
    return CanvasRow(
        number=number, label=f"task-{number}", session="s", text=text, status="doing", updated=updated, version=version
    )


def take_step(
    store: Store, node: str = "001-N1", *, updated: datetime = NOW, kind: str = "text/plain", **more: Any
) -> Record:
    """Put a result and its record on the canvas of the node."""
    number = int(node.partition("-")[0])
    version = next((held.version for held in store.read("me", canvas_rows.list_canvases) if held.number == number), 0)
    count = len(store.read("me", record_rows.list_records, limit=-1))
    ref = store.write(
        "me", ref_rows.put,
        NewRef(
            data=b"result %d" % count, tool="Read", arguments=None, tool_call_id=None, session="s", timestamp=NOW,
            content_type=kind,
        ),
    )  # fmt: skip
    given: dict[str, Any] = {
        "timestamp": NOW, "node_id": node, "tool_call": f"Read {count}", "summary": f"line {count}",
        "result_ref": ref.path, "tool_call_id": None, "offloaded": True, "session": "s", "score": 3,
        "tokens_raw": 1_000, "tokens_kept": 10, "ref": ref.id, "summary_by": "synopsis",
    }  # fmt: skip
    record = Record(**given | more)
    store.write("me", record_rows.commit_step, record=record, canvas=row(number, updated=updated), expected=version)
    return record


def thin(store: Store, *, after: int = 0, since: datetime = NOW) -> list[int]:
    found = store.read(
        "me", record_rows.thin_records, after=after, since=since, most_score=5, least_tokens=800, limit=9
    )
    return [each.number for each in found]


def take(store: Store, stage: Stage, **basis: Any) -> Work:
    work = store.write(
        "me", job_rows.lease, stage, None, json.dumps(basis), holder="h", lease=timedelta(hours=1), now=NOW
    )
    assert work is not None
    return work


def commit(
    store: Store, work: Work, amended: Sequence[Amended], canvases: Sequence[CanvasRow] = (), upto: int = 9
) -> None:
    store.write(
        "me",
        stage_outputs.commit,
        work.id,
        Summaries(amended=amended, canvases=canvases, upto=upto),
        outcome={"summarised": len(amended)},
        now=NOW,
    )


# --- summaries --------------------------------------------------------------------------------------


def test_thin_are_large_texts_of_a_low_score_that_a_program_summed_up_on_canvases_touched_lately(store: Store) -> None:
    take_step(store)
    take_step(store, score=6)
    take_step(store, tokens_raw=799)
    take_step(store, summary_by="agent")
    take_step(store, summary_by=None)
    take_step(store, kind="application/octet-stream")
    forgotten = take_step(store)
    take_step(store, "002-N1", updated=NOW - timedelta(days=9))
    store.write("me", tombstone_rows.forget, [forgotten.ref], reason="no", now=NOW)
    assert thin(store) == [1]
    assert thin(store, since=NOW - timedelta(days=9)) == [1, 8]
    assert thin(store, after=1, since=NOW - timedelta(days=9)) == [8]
    assert store.read("me", record_rows.count) == 8
    assert store.read("nobody", record_rows.count) == 0


def test_a_thin_record_knows_the_call_after_it_and_whether_its_node_went_on(store: Store) -> None:
    take_step(store)
    take_step(store, "001-N2")
    take_step(store, "001-N1")
    found = store.read("me", record_rows.summarised_by_program, [3, 1, 99])
    assert [(each.number, each.then, each.newest) for each in found] == [(1, "Read 1", False), (3, "", True)]


def test_better_summaries_the_canvas_and_the_cursor_land_together(store: Store) -> None:
    old = take_step(store)
    work = take(store, "summaries", after=0)
    better = row(text="flowchart TD\n    better\n", version=1)
    commit(store, work, [Amended(number=1, summary="told better", score=7)], [better], upto=1)
    new = replace(old, summary="told better", score=7, summary_by="model")
    assert store.read("me", record_rows.list_records) == [new]
    assert store.read("me", canvas_rows.canvas, 1).text == better.text
    assert store.read("me", job_rows.stage_states)["summaries"].position == 1
    assert [(done.stage, done.outcome) for done in store.read("me", job_rows.stage_totals)] == [
        ("summaries", {"summarised": 1})
    ]
    with pytest.raises(Conflict):
        commit(store, work, [Amended(number=1, summary="again", score=9)])
    assert (
        store.write(
            "me", job_rows.lease, "summaries", None, '{"after": 0}', holder="x", lease=timedelta(hours=1), now=NOW
        )
        is None
    )


def test_a_better_summary_is_a_line_more_in_the_file_of_its_session(embedded: EmbeddedStore) -> None:
    old = take_step(embedded)
    take_step(embedded, summary_by="agent")
    amended = [Amended(number=number, summary="told better", score=7) for number in (1, 2)]
    commit(embedded, take(embedded, "summaries", after=0), amended)
    lines = (embedded.folder("me") / "offload-s.jsonl").read_text().splitlines()
    assert [json.loads(line)["summary"] for line in lines] == [old.summary, "line 1", "told better"]


def test_where_a_canvas_moved_on_nothing_is_stored(store: Store) -> None:
    take_step(store)
    work = take(store, "summaries", after=0)
    take_step(store, "002-N1")
    take_step(store, "002-N1")
    rows = [row(text="new", version=1), row(2, text="late", version=1)]
    with pytest.raises(Conflict):
        commit(store, work, [Amended(number=1, summary="told better", score=7)], rows)
    assert store.read("me", canvas_rows.canvas, 1).text == row().text
    assert {each.summary_by for each in store.read("me", record_rows.list_records)} == {"synopsis"}
    assert store.read("me", job_rows.by_id, work.id).state == "open"
    assert problems(store) == []


def test_what_an_agent_summed_up_is_never_replaced(store: Store) -> None:
    take_step(store, summary_by="agent")
    commit(store, take(store, "summaries", after=0), [Amended(number=1, summary="told better", score=7)])
    assert [each.summary for each in store.read("me", record_rows.list_records)] == ["line 0"]


# --- canvases ---------------------------------------------------------------------------------------


def test_growth_counts_the_records_since_the_last_look_and_leaves_out_what_was_not_touched(store: Store) -> None:
    for node in ("001-N1", "001-N2", "002-N1"):
        take_step(store, node)
    take_step(store, "003-N1", updated=NOW - timedelta(days=9))
    first = CanvasGrowth(canvas=1, status="doing", steps=2, upto=2)
    assert store.read("me", canvas_rows.growth, since=NOW)[0] == first
    work = take(store, "canvas", canvas=1, upto=2)
    store.write("me", stage_outputs.commit, work.id, CanvasPatch(), outcome={}, now=NOW)
    assert [each.canvas for each in store.read("me", canvas_rows.growth, since=NOW)] == [2]
    take_step(store, "001-N3")
    assert CanvasGrowth(canvas=1, status="doing", steps=1, upto=5) in store.read("me", canvas_rows.growth, since=NOW)


def test_an_order_that_was_asked_for_lands_with_its_edit_or_not_at_all(store: Store) -> None:
    take_step(store)
    work = take(store, "canvas", canvas=1, upto=1)
    assert (
        store.write("me", job_rows.lease, "canvas", None, "{}", holder="x", lease=timedelta(hours=1), now=NOW) is None
    )

    def order(expected: int) -> None:
        change = CanvasChange(row=row(text="ordered", version=expected), kind="patched")
        store.write("me", stage_outputs.commit, work.id, CanvasPatch(changes=[change]), outcome={"kept": 1}, now=NOW)

    with pytest.raises(Conflict):
        order(7)
    assert store.read("me", job_rows.by_id, work.id).state == "open"
    order(1)
    assert store.read("me", canvas_rows.canvas, 1).text == "ordered"
    kept = store.read("me", canvas_rows.versions, 1)[-1]
    assert (kept.kind, kept.work) == ("patched", work.id)
    assert (
        store.write(
            "me",
            job_rows.lease,
            "canvas",
            None,
            '{"canvas": 1, "upto": 1}',
            holder="x",
            lease=timedelta(hours=1),
            now=NOW,
        )
        is None
    )
    with pytest.raises(NotFound):
        store.read("me", job_rows.by_id, "w99")
