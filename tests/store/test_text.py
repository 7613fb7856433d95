"""Any text comes out as it went in: with NUL, with noncharacters, in any script, in every place that has words."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.protocol import Store
from mcp_memory.store.row_types import Origin, Row
from mcp_memory.store.sql import (
    atom_rows,
    canvas_rows,
    entity_rows,
    exporting,
    importing,
    page_rows,
    quarantine_rows,
    record_rows,
    ref_rows,
    stage_outputs,
    tombstone_rows,
    turn_rows,
)
from mcp_memory.store.values import Imported, PersonaPage, SceneChanges, SceneEdit
from tests.store.test_contract import ANY, NOW, append, atom, canvas, new_ref, record, user

ODD = st.sampled_from(
    ["\0", "\U0010fffe", "\ufffe", "\uffff", "\x7f", "\u2028", "\ufeff", "0", "1", "'", '"', "\\", "%"]
)
TEXT = st.text(ODD | st.characters(exclude_categories=["Cs"]), max_size=30)
SOME = TEXT.filter(lambda text: bool(text.strip()))
NAME = SOME.map(lambda text: " ".join(text.split()))  # entities are named without more white space
anything = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
ESCAPES = "\U0010fffe0\U0010fffe1\0\U0010fffe"


@anything
@given(content=TEXT, name=st.none() | TEXT, id=st.none() | TEXT)
@example(content=ESCAPES, name=ESCAPES, id=ESCAPES)
def test_a_turn_comes_out_as_it_went_in(store: Store, content: str, name: str | None, id: str | None) -> None:
    space = uuid4().hex  # each example has a space of its own
    new = NewTurn(role="user", content=content, name=name, client_id=id)
    (turn,) = store.write(space, turn_rows.append, "s", turn_rows.prepare([new]), now=NOW).stored
    assert (turn.content, turn.name) == (content, name)
    assert store.read(space, turn_rows.session_turns, "s") == store.read(space, turn_rows.by_ids, ["t1"]) == [turn]
    assert store.write(space, turn_rows.append, "s", turn_rows.prepare([new]), now=NOW).duplicates == 1
    if id is not None:
        assert store.read(space, turn_rows.known_client_ids, [id]) == {id: False}


@anything
@given(names=st.lists(SOME, min_size=1, max_size=4, unique=True))
@example(names=[ESCAPES, "\0", "\U0010fffe"])
def test_sessions_have_their_names_and_no_two_are_taken_for_one(store: Store, names: list[str]) -> None:
    space = uuid4().hex
    for number, session in enumerate(names):
        append(store, user(f"turn {number}"), session=session, space=space, now=NOW + timedelta(minutes=number))
    assert [info.session for info in store.read(space, turn_rows.sessions)] == names[::-1]
    for number, session in enumerate(names):
        (turn,) = store.read(space, turn_rows.session_turns, session)
        assert (turn.session, turn.content) == (session, f"turn {number}")
        if "\0" not in session:  # SQLite reads the beginning of a text up to its first NUL
            assert session in [info.session for info in store.read(space, turn_rows.sessions, prefix=session)]


@anything
@given(text=SOME, entity=NAME, relation=SOME, value=SOME)
@example(text=ESCAPES, entity=ESCAPES, relation=ESCAPES, value=ESCAPES)
def test_a_statement_and_its_fact_come_out_as_they_went_in(
    store: Store, text: str, entity: str, relation: str, value: str
) -> None:
    space = uuid4().hex
    told = store.write(space, atom_rows.add, atom(text, entity=entity, relation=relation, value=value), now=NOW).atom
    assert told.text == text
    assert store.read(space, atom_rows.by_ids, ["a1"]) == store.read(space, atom_rows.list_atoms, filters=ANY) == [told]
    (fact,) = store.read(space, atom_rows.facts, filters=ANY)
    assert (fact.entity, fact.relation, fact.value) == (entity, relation, value)
    assert store.read(space, atom_rows.evidence, "a1") == [Evidence(turn="t1", span=(0, len(text)), quote=text)]
    assert store.read(space, atom_rows.facts, filters=replace(ANY, entity=entity), relation=relation) == [fact]


@anything
@given(before=TEXT, quote=SOME, after=TEXT)
@example(before="\0", quote=ESCAPES, after="\0")
def test_a_quote_is_at_its_place_in_the_turn(store: Store, before: str, quote: str, after: str) -> None:
    space = uuid4().hex
    (turn,) = append(store, user(before + quote + after), space=space)
    place = Evidence(turn=turn, span=(len(before), len(before + quote)), quote=quote)
    store.write(space, atom_rows.add, atom("Said so", evidence=[place]), now=NOW)
    assert store.read(space, atom_rows.evidence, "a1") == [place]


@anything
@given(data=st.binary(max_size=50), tool=TEXT, call=st.none() | TEXT, session=TEXT)
@example(data=ESCAPES.encode(), tool=ESCAPES, call=ESCAPES, session=ESCAPES)
def test_a_result_comes_out_as_it_went_in(store: Store, data: bytes, tool: str, call: str | None, session: str) -> None:
    space = uuid4().hex
    new = new_ref(data, tool=tool, tool_call_id=call, session=session, arguments={tool: [session]})
    ref = store.write(space, ref_rows.put, new)
    assert (ref.tool, ref.tool_call_id, ref.session, ref.arguments) == (tool, call, session, {tool: [session]})
    assert store.read(space, ref_rows.by_id, ref.id) == ref
    assert store.read(space, ref_rows.read_bytes, ref.id) == data


@anything
@given(summary=TEXT, call=TEXT, label=TEXT)
@example(summary=ESCAPES, call=ESCAPES, label=ESCAPES)
def test_a_record_and_its_step_come_out_as_they_went_in(store: Store, summary: str, call: str, label: str) -> None:
    space = uuid4().hex
    new = record(summary=summary, tool_call=call, tool_call_id=call)
    store.write(space, record_rows.commit_step, record=new, canvas=canvas(text=summary), expected=0, step=summary)
    assert (
        store.read(space, record_rows.list_records)
        == store.read(space, record_rows.list_records, tool_call_id=call)
        == [new]
    )
    assert store.read(space, record_rows.last_step, "001-N1") == summary
    assert store.read(space, canvas_rows.canvas, 1).text == summary


@anything
@given(text=TEXT)
@example(text=ESCAPES)
def test_pages_come_out_as_they_went_in(store: Store, text: str) -> None:
    space = uuid4().hex
    store.write(space, stage_outputs.commit, None, PersonaPage(text=text), outcome={}, now=NOW)
    assert [page.text for page in store.read(space, page_rows.persona_versions)] == [text]
    scene = SceneEdit(
        action="create", slug="x", reason=text, title=f"T{text}", summary=text, body=f"- {text}", entities=[text]
    )
    store.write(space, stage_outputs.commit, None, SceneChanges(edits=[scene]), outcome={}, now=NOW)
    (made,) = store.read(space, page_rows.scene_versions, "x")
    assert (made.reason, made.title, made.summary, made.body, made.entities) == (
        text,
        f"T{text}",
        text,
        f"- {text}",
        (text,),
    )


@anything
@given(text=TEXT)
@example(text=ESCAPES)
def test_notes_on_files_and_lists_come_out_as_they_went_in(store: Store, text: str) -> None:
    space = uuid4().hex
    store.write(space, turn_rows.note_imported_file, Imported(sha256=text, path=text, modified=1, turns=1, at=NOW))
    assert [(file.sha256, file.path) for file in store.read(space, turn_rows.imported_files)] == [(text, text)]
    store.write(space, importing.note_origins, {text: "t1"})
    assert store.read(space, importing.known_as, [text]) == {text: "t1"}
    store.write(space, quarantine_rows.quarantine, {append(store, user("x"), space=space)[0]: [text]}, now=NOW)
    assert [held.reasons for held in store.read(space, quarantine_rows.list_quarantined)] == [(text,)]
    assert (
        store.write(space, tombstone_rows.forget, ["t1"], reason=text, now=NOW).reason
        == store.read(space, tombstone_rows.tombstones)[0].reason
        == text
    )


@anything
@given(text=SOME, session=SOME)
@example(text=ESCAPES, session=ESCAPES)
def test_what_is_forgotten_and_purged_is_recognised_whatever_its_characters(
    store: Store, text: str, session: str
) -> None:
    space = uuid4().hex
    new = user(text, said_at=NOW)
    append(store, new, session=session, space=space)
    tombstone = store.write(space, tombstone_rows.forget, ["t1"], reason="", now=NOW)
    assert store.write(space, turn_rows.append, session, turn_rows.prepare([new]), now=NOW).stored == []
    done = store.purge(space, Purge(tombstones=[tombstone.id]), now=NOW)
    assert done.texts == [text.encode()]
    assert store.write(space, turn_rows.append, session, turn_rows.prepare([new]), now=NOW).stored == []


@anything
@given(text=SOME, session=SOME)
@example(text=ESCAPES, session=ESCAPES)
def test_exported_rows_come_in_elsewhere_as_they_were(store: Store, text: str, session: str) -> None:
    here, there = uuid4().hex, uuid4().hex
    append(store, user(text), session=session, space=here)
    store.write(here, atom_rows.add, atom(f"Said {text}", session=session), now=NOW)
    rows: list[Row] = []
    store.export_rows([here], lambda _, row: rows.append(row))
    store.write(
        there, importing.import_rows, rows, of=Origin(store.read_home(exporting.home_id), here), names={}, now=NOW
    )
    assert [turn.content for turn in store.read(there, turn_rows.session_turns, session)] == [text, f"Said {text}"]
    assert [one.text for one in store.read(there, atom_rows.list_atoms, filters=ANY)] == [f"Said {text}"]


def test_a_long_statement_in_any_script_is_stored_once(store: Store) -> None:
    long = "".join(Random(7).choices([chr(code) for code in range(0x4E00, 0x9FFF)], k=2_000))
    told = store.write("me", atom_rows.add, atom(long), now=NOW).atom
    assert (told.text, store.read("me", atom_rows.evidence, told.id)[0].quote) == (long, long)
    assert store.write("me", atom_rows.add, atom(long), now=NOW).duplicate
    assert not store.write("me", atom_rows.add, atom(long[:-1]), now=NOW).duplicate


@pytest.mark.parametrize("bytes_", [500, 2_000])
def test_names_and_ids_may_be_long(store: Store, bytes_: int) -> None:
    long = "".join(Random(7).choices([chr(code) for code in range(0x4E00, 0x9FFF)], k=bytes_ // 3))
    new = user("x", client_id=long, name=long)
    append(store, new, session=long)
    assert store.write("me", turn_rows.append, long, turn_rows.prepare([new]), now=NOW).duplicates == 1
    store.write("me", atom_rows.add, atom("is", entity=long, relation="is", value=long, entities=[long]), now=NOW)
    assert [entity.name for entity in store.read("me", entity_rows.list_entities)] == [long]
    store.write("me", record_rows.commit_step, record=record(tool_call_id=long), canvas=canvas(), expected=0)
    assert len(store.read("me", record_rows.list_records, tool_call_id=long)) == 1
