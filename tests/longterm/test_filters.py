"""A filter never empties a result that exists: what matches and passes is found, however much does not pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.types import Kind, NewTurn, Role
from mcp_memory.language.words import index_terms, query_terms
from mcp_memory.longterm.search.search import Search
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, turn_rows
from mcp_memory.store.values import Filters
from tests.longterm.by_hand import NOON, search_memories, search_turns, statement

SESSIONS = ("plain", "Ünïcode 会话", "🫖 tea")
ROLES: tuple[Role, ...] = ("user", "assistant", "system", "tool")
KINDS: tuple[Kind, ...] = get_args(Kind)
WORDS = ("kettle", "the", "report", "牙医", "foo_bar.py", "leaking")

DAYS = st.integers(0, 6)
SAID = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
MAYBE_DAY = st.none() | DAYS


@dataclass(frozen=True, kw_only=True)
class Said:
    session: str
    role: Role
    content: str
    day: int


TURNS = st.lists(
    st.builds(Said, session=st.sampled_from(SESSIONS), role=st.sampled_from(ROLES), content=SAID, day=DAYS),
    min_size=1,
    max_size=30,
)


def moment(day: int | None) -> datetime | None:
    return None if day is None else NOON + timedelta(days=day)


def write(store: Store, space: str, turns: Sequence[Said]) -> list[str]:
    ids: list[str] = []
    for turn in turns:
        new = NewTurn(role=turn.role, content=turn.content, client_id=str(uuid4()), said_at=moment(turn.day))
        ids += [
            stored.id
            for stored in store.write(space, turn_rows.append, turn.session, turn_rows.prepare([new]), now=NOON).stored
        ]
    return ids


def matching(query: str, texts: Mapping[str, str]) -> set[str]:
    """Return those that share a word with the query; a search may find more of what passes, by meaning or context."""
    wanted = set(query_terms(query))
    return {id for id, text in texts.items() if not query or wanted & set(index_terms(text))}


def within(day: int, since: int | None, until: int | None) -> bool:
    return (since is None or day >= since) and (until is None or day < until)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TURNS, SAID, st.none() | st.sampled_from(SESSIONS), st.none() | st.sampled_from(ROLES), MAYBE_DAY, MAYBE_DAY)
def test_every_turn_that_matches_and_passes_is_found(
    store: Store,
    search: Search,
    turns: list[Said],
    query: str,
    session: str | None,
    role: Role | None,
    since: int | None,
    until: int | None,
) -> None:
    space = str(uuid4())
    ids = write(store, space, turns)
    session = session if session in {turn.session for turn in turns} else None
    filters = Filters(session=session, role=role, since=moment(since), until=moment(until))
    found = search_turns(store, search, space, query, filters=filters)
    passing = {
        id: turn.content
        for id, turn in zip(ids, turns, strict=True)
        if session in (None, turn.session) and role in (None, turn.role) and within(turn.day, since, until)
    }
    assert matching(query, passing) <= {hit.turn.id for hit in found.hits} <= set(passing)


@dataclass(frozen=True, kw_only=True)
class Told:
    kind: Kind
    text: str
    day: int
    entity: str | None


ENTITY = st.none() | st.sampled_from(["Ines", "Łódź", "user"])
TOLD = st.lists(
    st.builds(Told, kind=st.sampled_from(KINDS), text=SAID, day=DAYS, entity=ENTITY),
    max_size=12,
    unique_by=lambda told: " ".join(told.text.split()),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    TOLD,
    TURNS,
    SAID | st.just(""),
    st.none() | st.sampled_from(KINDS),
    st.none() | st.sampled_from(["INES", "łódź", "user"]),
    MAYBE_DAY,
    MAYBE_DAY,
    MAYBE_DAY,
)
def test_every_atom_that_matches_and_passes_is_found_and_then_the_turns(
    store: Store,
    search: Search,
    told: list[Told],
    turns: list[Said],
    query: str,
    kind: Kind | None,
    entity: str | None,
    since: int | None,
    until: int | None,
    as_of: int | None,
) -> None:
    space = str(uuid4())
    atoms: dict[str, Told] = {}
    for one in told:
        fact = {"entity": one.entity, "relation": "has", "value": one.text} if one.entity else {}
        new = statement(one.text, kind=one.kind, valid_from=NOON + timedelta(days=one.day), **fact)
        atoms[store.write(space, atom_rows.add, new, now=NOON).atom.id] = one
    said = dict(zip(write(store, space, turns), turns, strict=True))
    known = {"user", *((one.entity or "").casefold() for one in told)}
    if entity is not None and entity.casefold() not in known:
        entity = None  # the search of an unknown entity is an error
    times = {"since": moment(since), "until": moment(until), "as_of": moment(as_of)}
    filters = Filters(kind=kind, entity=entity, **times)
    found = search_memories(store, search, space, query, filters=filters)
    atoms_passing = {
        id: one.text
        for id, one in atoms.items()
        if kind in (None, one.kind)
        and (entity is None or (one.entity or "").casefold() == entity.casefold())
        and within(one.day, since, until)
        and (as_of is None or one.day <= as_of)
    }
    turns_passing = {
        id: turn.content
        for id, turn in said.items()
        if query and kind is None and entity is None
        if within(turn.day, since, until) and (as_of is None or turn.day < as_of)
    }
    assert matching(query, atoms_passing) <= {hit.atom.id for hit in found.atoms} <= set(atoms_passing)
    assert matching(query, turns_passing) <= {hit.turn.id for hit in found.turns} <= set(turns_passing)


def test_a_session_of_one_turn_is_found_among_thousands_that_say_the_same(store: Store, search: Search) -> None:
    space = str(uuid4())
    crowd = [NewTurn(role="user", content=f"the weekly report of crowd {i}") for i in range(2_500)]
    lone = NewTurn(role="tool", content="the weekly report of one")
    (id,) = (
        turn.id
        for turn in store.write(space, turn_rows.append, SESSIONS[1], turn_rows.prepare([lone]), now=NOON).stored
    )
    store.write(space, turn_rows.append, "crowd", turn_rows.prepare(crowd), now=NOON)
    for filters in (Filters(session=SESSIONS[1]), Filters(role="tool")):
        for query in ("weekly", "weekly report", "weekly report of zebra and elephant and crowds"):
            found = search_turns(store, search, space, query, filters=filters, limit=5)
            assert [hit.turn.id for hit in found.hits] == [id]
