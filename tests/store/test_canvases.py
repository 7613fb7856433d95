"""Canvases and the records on them: what is drawn again, and what is noted of a result that left the context."""

from __future__ import annotations

from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import CanvasRow, Group
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, home_rows, record_rows, saving_rows
from mcp_memory.store.values import Conflict
from tests.store.test_contract import NOW, canvas, record

REF = "r-000000000000"


def take_step(store: Store, node: str = "001-N1", *, space: str = "me", **more: object) -> None:
    at = next((row.version for row in store.read(space, canvas_rows.list_canvases) if row.number == 1), 0)
    given = {"session": "s", **more}
    store.write(
        space,
        record_rows.commit_step,
        record=record(node, **given),
        canvas=canvas(session=given["session"], version=at),
        expected=at,
    )


def test_a_canvas_is_drawn_again_as_its_versions_have_it(store: Store) -> None:
    take_step(store)
    store.write("me", canvas_rows.save, canvas(text="flowchart TD\n    a\n", label="other"), expected=1)
    before = store.read("me", canvas_rows.canvas, 1), store.read("me", canvas_rows.versions, 1)
    assert store.write("me", canvas_rows.redraw, 1) == (before[0], False)
    assert (store.read("me", canvas_rows.canvas, 1), store.read("me", canvas_rows.versions, 1)) == before


@pytest.mark.parametrize(("space", "number"), [("me", 2), ("you", 1)])
def test_a_canvas_that_is_not_there_cannot_be_drawn_again(store: Store, space: str, number: int) -> None:
    take_step(store)
    with pytest.raises(NotFound):
        store.write(space, canvas_rows.redraw, number)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ROWS = st.lists(st.tuples(TEXT, st.booleans(), st.dictionaries(TEXT, TEXT, max_size=2)), min_size=1, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=ROWS)
def test_any_version_of_a_canvas_reads_as_it_was_saved(
    store: Store, drawn: list[tuple[str, bool, dict[str, str]]]
) -> None:
    space = uuid4().hex  # each example has a space of its own
    rows = list[CanvasRow]()
    for version, (text, folded, groups) in enumerate(drawn):
        row = canvas(
            text=text, folded=folded, groups={name: Group(("001-N1",), title) for name, title in groups.items()}
        )
        if version:
            store.write(space, canvas_rows.save, row, expected=version)
        else:
            store.write(space, record_rows.commit_step, record=record(), canvas=row, expected=0)
        rows.append(row)
    read = [store.read(space, canvas_rows.canvas, 1, version=version) for version in range(1, len(rows) + 1)]
    assert [(row.text, row.folded, row.groups) for row in read] == [(row.text, row.folded, row.groups) for row in rows]
    assert store.read(space, canvas_rows.canvas, 1) == read[-1] == store.write(space, canvas_rows.redraw, 1)[0]


def test_of_two_who_save_the_same_version_one_has_a_conflict(store: Store) -> None:
    take_step(store)
    store.write("me", canvas_rows.save, canvas(text="first"), expected=1)
    with pytest.raises(Conflict):
        store.write("me", canvas_rows.save, canvas(text="second"), expected=1)
    assert store.read("me", canvas_rows.canvas, 1).text == "first"


def test_what_replaced_a_result_is_noted_once_on_the_record_of_its_call_and_entered_as_a_saving(store: Store) -> None:
    for call in ("c1", "c2"):
        take_step(store, tokens_raw=100, tokens_kept=100, tool_call_id=call)
    replaced = {"session": "s", "tool_call_id": "c2", "ref": REF}
    assert not store.write("me", record_rows.note_replaced, **replaced, tokens_kept=100, at=NOW)  # that is no less
    assert store.write("me", record_rows.note_replaced, **replaced, tokens_kept=20, at=NOW)
    assert not store.write("me", record_rows.note_replaced, **replaced, tokens_kept=10, at=NOW)  # it is known
    assert [(one.tokens_raw, one.tokens_kept) for one in store.read("me", record_rows.list_records)] == [
        (100, 100),
        (100, 20),
    ]
    (saved,) = store.read("me", saving_rows.savings)
    assert (saved.times, saved.saved, saved.spent) == (1, 100, 20)
    counts = store.read("me", home_rows.counts)
    assert (counts.tokens_raw, counts.tokens_kept) == (100, 20)


@pytest.mark.parametrize(
    ("space", "other"),
    [("you", {}), ("me", {"session": "t"}), ("me", {"tool_call_id": "c2"}), ("me", {"ref": "r-111111111111"})],
)
def test_nothing_is_noted_where_there_is_no_such_record(store: Store, space: str, other: dict[str, str]) -> None:
    take_step(store, tokens_raw=100, tokens_kept=100, tool_call_id="c1")
    given = {"session": "s", "tool_call_id": "c1", "ref": REF, **other}
    assert not store.write(space, record_rows.note_replaced, **given, tokens_kept=20, at=NOW)
    assert [(one.tokens_raw, one.tokens_kept) for one in store.read("me", record_rows.list_records)] == [(100, 100)]
