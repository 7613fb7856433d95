"""Rows from home to home, as every store has to do it; `tests/portable` holds what comes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.store.protocol import Store
from mcp_memory.store.row_types import NOTHING, UNDONE, AtomRow, Origin, QuoteRow, Row, TurnRow, gone_by, origin_of
from mcp_memory.store.sql import atom_rows, exporting, importing, tombstone_rows, turn_rows
from mcp_memory.store.values import NewAtom
from tests.store.embedded import problems

NOW = datetime(2026, 5, 7, 10, 0, tzinfo=UTC)


def all_of(store: Store, *spaces: str) -> list[Row]:
    rows: list[Row] = []
    store.export_rows(spaces, lambda _, row: rows.append(row))
    return rows


def fill(store: Store) -> Origin:
    store.write(
        "a", turn_rows.append, "talk", turn_rows.prepare([NewTurn(role="user", content="Hi", client_id="m1")]), now=NOW
    )
    told = NewAtom(
        kind="persona", text="Likes tea", priority=80, confidence=1.0, session="talk", valid_from=NOW, entities=["Maya"]
    )
    store.write("a", atom_rows.add, told, now=NOW)
    return Origin(store.read_home(exporting.home_id), "a")


def test_rows_come_in_once_under_names_of_their_own(store: Store) -> None:
    of = fill(store)
    rows = all_of(store, "a")
    store.write(
        "b", turn_rows.append, "talk", turn_rows.prepare([NewTurn(role="user", content="Here before")]), now=NOW
    )
    done = store.write("b", importing.import_rows, rows, of=of, names={}, now=NOW + timedelta(days=1))
    assert done.names == {"t1": "t2", "t2": "t3", "a1": "a1"}
    assert [turn.content for turn in store.read("b", turn_rows.session_turns, "talk")] == [
        "Here before",
        "Hi",
        "Likes tea",
    ]
    (atom,) = store.read("b", atom_rows.by_ids, ["a1"])
    assert (atom.text, atom.evidence, atom.entities) == ("Likes tea", "t3", ("Maya",))
    again = store.write("b", importing.import_rows, rows, of=of, names={}, now=NOW + timedelta(days=2))
    assert (again.names, again.stored, again.changed) == (done.names, 0, frozenset())
    assert problems(store) == []


def test_a_row_is_known_by_where_it_came_from_and_when_it_was_learned_there(store: Store) -> None:
    of = fill(store)
    store.write("b", importing.import_rows, all_of(store, "a"), of=of, names={}, now=NOW)
    mine, other = origin_of(of, "t1", NOW), origin_of(of, "t1", NOW + timedelta(seconds=1))
    assert store.read("b", importing.known_as, [mine, other]) == {mine: "t1"}
    assert store.read("a", importing.known_as, [mine, other]) == {mine: "t1"}  # its own, and no other of that number
    assert store.read("nowhere", importing.known_as, [mine]) == {}


def test_what_was_forgotten_elsewhere_before_it_came_stays_away_until_that_is_undone(store: Store) -> None:
    of = fill(store)
    rows = all_of(store, "a")
    tombstone, turn = origin_of(of, "x1", NOW), origin_of(of, "t1", NOW)
    store.write("b", importing.note_origins, {tombstone: NOTHING, turn: gone_by(tombstone)})
    assert store.read("b", importing.known_as, [turn]) == {turn: ""}
    assert store.write("b", importing.import_rows, rows, of=of, names={}, now=NOW).names["t1"] == ""
    store.write("b", importing.note_origins, {tombstone: UNDONE})
    assert store.write("b", importing.import_rows, rows, of=of, names={}, now=NOW).names["t1"] == "t2"


def test_a_quote_that_its_turn_does_not_say_stores_nothing(store: Store) -> None:
    of = fill(store)
    turn, atom = (row for row in all_of(store, "a") if isinstance(row, TurnRow | AtomRow) and row.id != "t2")
    assert isinstance(turn, TurnRow)
    assert isinstance(atom, AtomRow)
    words = QuoteRow("t1", 0, 3, "Ho!")
    false = replace(atom, evidence=(words,))
    with pytest.raises(InvalidInput, match="which does not say that"):
        store.write("b", importing.import_rows, [turn, false], of=of, names={}, now=NOW)
    assert store.read("b", turn_rows.session_turns, "talk") == []


def test_statements_that_were_forgotten_are_known(store: Store) -> None:
    fill(store)
    store.write("a", tombstone_rows.forget, ["a1"], reason="", now=NOW)
    assert store.read("a", importing.forgotten_statements, [["Coffee"], ["No", "likes  TEA."]]) == {1}
    assert store.read("b", importing.forgotten_statements, [["likes tea"]]) == set()
