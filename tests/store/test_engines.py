"""One history in both engines: every call and every question has the same answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.types import NewTurn
from mcp_memory.language.words import index_terms
from mcp_memory.store.forgetting import Keeping, Purge, Which
from mcp_memory.store.postgres.store import open_store as open_postgres
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import (
    atom_rows,
    canvas_rows,
    entity_rows,
    exporting,
    home_rows,
    job_rows,
    policy_rows,
    quarantine_rows,
    record_rows,
    ref_rows,
    stage_outputs,
    tombstone_rows,
    turn_rows,
)
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Conflict, Filters, Layer
from tests.postgres_server import PostgresServer
from tests.store.test_contract import ANY, NOW, atom, canvas, new_ref, record

pytestmark = pytest.mark.postgres

Call = Callable[[Store, str], object]
WORDS = [
    "apple",
    "Äpfel",
    "Zoe",
    "émile",
    "茶",
    "٣",
    "_x",
    "A.b",
    "aB",
    "ab",
    "the",
    "and",
    "?",
    "%",
    "\0",
    "\U0010fffe",
]
NAMES = ["Zoe", "zoe", "Émile", "Ångström", "a_b", "a%b", "_", "%", "茶", "user", "User", "ß", "SS", "İ", "ﬁ"]
SESSIONS = ["s", "S", "é", "a_b", "z%"]
MIDDLE = NOW + timedelta(minutes=50)

text = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
name = st.sampled_from(NAMES)
session = st.sampled_from(SESSIONS)
moment = st.integers(0, 100).map(lambda minutes: NOW + timedelta(minutes=minutes))


@st.composite
def turns(draw: st.DrawFn) -> Call:
    new = NewTurn(
        role=draw(st.sampled_from(["user", "assistant", "tool", "system"])),  # type: ignore[arg-type]
        content=draw(text),
        name=draw(st.none() | name),
        client_id=draw(st.sampled_from([None, "id1", "ID1", "é"])),
        said_at=draw(st.none() | moment),
        held=draw(st.sampled_from([(), ("odd",)])),
    )
    where, now = draw(session), draw(moment)
    return lambda store, space: store.write(space, turn_rows.append, where, turn_rows.prepare([new]), now=now)


@st.composite
def atoms(draw: st.DrawFn) -> Call:
    fact: dict[str, Any] = {}
    if draw(st.booleans()):
        relation = draw(st.sampled_from(["likes", "lives_in"]))
        fact = {"entity": draw(name), "relation": relation, "value": draw(text)}
        fact["single_valued"] = relation == "lives_in"
    new = atom(
        draw(text),
        priority=draw(st.sampled_from([-1, 0, 50, 90])),
        entities=draw(st.lists(name, max_size=2)),
        session=draw(session),
        valid_from=draw(moment),
        held=draw(st.sampled_from([(), ("odd",)])),
        **fact,
    )
    now = draw(moment)
    return lambda store, space: store.write(space, atom_rows.add, new, now=now)


@st.composite
def results(draw: st.DrawFn) -> Call:
    new = new_ref(draw(text).encode(), tool=draw(name), session=draw(session), timestamp=draw(moment))
    return lambda store, space: store.write(space, ref_rows.put, new, refuse=False)


@st.composite
def steps(draw: st.DrawFn) -> Call:
    number, where, words, now = draw(st.integers(1, 3)), draw(session), draw(text), draw(moment)
    call, score = draw(st.sampled_from([None, "c1", "é"])), draw(st.integers(0, 9))

    def step(store: Store, space: str) -> object:
        version = next((row.version for row in store.read(space, canvas_rows.list_canvases) if row.number == number), 0)
        made = record(
            f"{number:03}-N{version}", session=where, tool_call_id=call, summary=words, timestamp=now, score=score
        )
        row = canvas(number, session=where, text=words, updated=now)
        return store.write(space, record_rows.commit_step, record=made, canvas=row, expected=version)

    return step


@st.composite
def forgettings(draw: st.DrawFn) -> Call:
    id, number, now = draw(st.sampled_from("ta")), draw(st.integers(1, 9)), draw(moment)
    match draw(st.sampled_from(["forget", "forget", "undo", "purge", "review"])):
        case "forget":
            how = draw(st.sampled_from(["ids", "retention"]))
            return lambda store, space: store.write(
                space, tombstone_rows.forget, [f"{id}{number}"], reason="", now=now, how=how
            )
        case "undo":
            return lambda store, space: store.write(space, tombstone_rows.undo, f"x{number % 3 + 1}", now=now)
        case "review":
            return lambda store, space: store.write(
                space, quarantine_rows.review, [f"{id}{number}"], "released", now=now
            )
        case _:
            purge = Purge(tombstones=[f"x{number % 3 + 1}"])

            def erase(store: Store, space: str) -> object:
                done = store.purge(space, purge, now=now)
                return done.turns, done.atoms, done.refs, sorted(done.texts)

            return erase


FILTERS = (ANY, *(Filters(session=name) for name in SESSIONS), Filters(role="user"), Filters(since=MIDDLE),
           Filters(unheld=True), *(Filters(entity=name) for name in NAMES))  # fmt: skip
LAYERS: tuple[Layer, ...] = ("turn", "atom", "chunk")
KEEPING: tuple[Keeping, ...] = ("turns", "results", "purge")


def answers(store: Store, space: str) -> Iterator[object]:
    """Yield what every question about a space is answered."""
    yield (
        store.read(space, home_rows.counts),
        store.read(space, home_rows.grown, since=MIDDLE),
        [store.totals(space, layer) for layer in LAYERS],
    )
    yield [store.read(space, turn_rows.sessions, prefix=prefix) for prefix in ("", "a_", "S", "z%")]
    yield [store.read(space, turn_rows.session_turns, name) for name in SESSIONS]
    yield [store.read(space, turn_rows.last_turns, name, limit=2, roles=("user", "tool")) for name in SESSIONS]
    yield store.read(space, turn_rows.context_windows, ["t2", "t5", "t8"], around=2)
    yield sorted(store.read(space, turn_rows.known_client_ids, ["id1", "ID1", "é"]).items())
    yield sorted(store.read(space, turn_rows.stored_calls, "s", ["c1", "é"]))
    yield [store.read(space, atom_rows.list_atoms, filters=filters) for filters in FILTERS]
    yield [store.read(space, atom_rows.facts, filters=filters) for filters in FILTERS]
    yield [store.read(space, entity_rows.list_entities, prefix=prefix) for prefix in ("", *NAMES, "a", "e", "s")]
    yield (
        store.read(space, atom_rows.list_since, 2, limit=5),
        [store.read(space, atom_rows.evidence, f"a{number}") for number in range(1, 9)],
    )
    yield (
        store.read(space, tombstone_rows.tombstones),
        store.read(space, quarantine_rows.list_quarantined),
        store.read(space, quarantine_rows.list_quarantined, ["t1", "a1", "t2"]),
    )
    yield [store.read(space, tombstone_rows.matching, which) for which in
           (Which(), Which(session="s"), Which(since=MIDDLE), Which(until=MIDDLE), Which(terms=index_terms("apple")))]  # fmt: skip
    yield [
        store.read(space, tombstone_rows.reach_of, [id]) for id in store.read(space, tombstone_rows.matching, Which())
    ]
    yield [store.read(space, policy_rows.overdue, what, before=MIDDLE, limit=3) for what in KEEPING]
    yield [store.read(space, policy_rows.count_overdue, what, before=MIDDLE) for what in KEEPING]
    yield (
        store.read(space, canvas_rows.list_canvases),
        [store.read(space, canvas_rows.active_canvas, name) for name in (None, *SESSIONS)],
    )
    yield [
        (store.read(space, canvas_rows.versions, number), store.read(space, record_rows.canvas_steps, number))
        for number in (1, 2, 3)
    ]
    yield (
        store.read(space, record_rows.list_records),
        store.read(space, record_rows.list_records, session="s", start=1, limit=2),
        store.read(space, record_rows.list_records, node="002"),
    )
    yield store.read(space, canvas_rows.growth, since=MIDDLE)
    yield store.read(space, record_rows.thin_records, after=0, since=NOW, most_score=5, least_tokens=50, limit=9)
    yield (
        store.read(space, job_rows.backlog),
        store.read(space, job_rows.stage_states),
        store.read(space, stage_outputs.drafts),
    )
    for layer in LAYERS:
        for filters in FILTERS[:8]:
            found = store.postings(space, layer, index_terms("apple zoe émile 茶 ab"), filters=filters)
            yield sorted((posting.term, posting.rows.tolist()) for posting in found)
    for filters in FILTERS[:8]:
        them = store.turn_metadata(space, np.arange(99), filters=filters)
        yield them.rows.tolist(), them.said_at.tolist(), them.passes.tolist(), them.sizes.tolist(), them.asks.tolist()
        yield [them.who[speaker] for speaker in them.speakers.tolist()]
    yield store.unembedded(space, "m", limit=999)
    rows: list[object] = []
    store.export_rows([space], lambda _, row: rows.append(row))
    yield repr(rows).replace(store.read_home(exporting.home_id), "HOME")


@pytest.fixture
def engines(home: Path, postgres: PostgresServer) -> Iterator[tuple[Store, Store]]:
    url = postgres.create_memory()
    both = open_store(home), open_postgres(url)
    yield both
    for opened in both:
        opened.close()
    postgres.drop_database(url)


def _answer(call: Call, store: Store, space: str) -> str:
    try:
        return repr(call(store, space))
    except (McpMemoryError, Conflict) as error:
        return repr(error)


@pytest.mark.timeout(600)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(turns() | atoms() | results() | steps() | forgettings(), min_size=5, max_size=30))
def test_whatever_is_called_both_engines_answer_the_same(engines: tuple[Store, Store], calls: list[Call]) -> None:
    space = uuid4().hex  # each example has a space of its own
    for call in calls:
        ours, theirs = (_answer(call, store, space) for store in engines)
        assert ours == theirs
    for ours, theirs in zip(*(answers(store, space) for store in engines), strict=True):
        assert repr(ours) == repr(theirs)
