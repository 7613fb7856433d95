"""Laws of pages: whatever happens between two of them, nothing is shown twice and nothing that was there is missed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.search.pages import MAX_SHOWN, PageState, after, asked_at, page_of
from mcp_memory.longterm.search.rerank import Reranked
from mcp_memory.longterm.search.search import Ranked, Search
from mcp_memory.service.memory import Memory
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, tombstone_rows, turn_rows
from mcp_memory.store.values import Vectors
from mcp_memory.testing import FixedClock, HashEmbedder
from tests.longterm.by_hand import NOON, search_memories, search_turns, statement

MODEL = HashEmbedder()


def embedded(*texts: str) -> Vectors:
    return Vectors(identity=MODEL.identity, data=MODEL.embed(texts))


def write_turns(store: Store, space: str, contents: Sequence[str], *, said: datetime = NOON) -> list[str]:
    new = [NewTurn(role="user", content=content, client_id=str(uuid4()), said_at=said) for content in contents]
    return [
        t.id
        for t in store.write(
            space, turn_rows.append, "s", turn_rows.prepare(new), now=NOON, vectors=embedded(*contents)
        ).stored
    ]


def write_atom(store: Store, space: str, text: str, priority: int) -> str:
    return store.write(
        space, atom_rows.add, statement(text, priority=priority), now=NOON, vectors=embedded(text)
    ).atom.id


def shuffled(random: Random) -> Callable[[str, str, Sequence[Ranked], int], Reranked]:
    """A model that never ranks the same way twice."""

    def rerank(space: str, query: str, hits: Sequence[Ranked], start: int) -> Reranked:
        head = list(hits[:20])
        random.shuffle(head)
        return Reranked(hits=[*head, *hits[20:]])

    return rerank


CONTENTS = st.lists(st.sampled_from(["ab", "cd", "ef", "gh"]), max_size=5).map(
    lambda words: " ".join(["kettle", *words])
)
LIMITS = st.integers(1, 9)
STEPS = st.lists(st.one_of(CONTENTS, st.integers(0, 40), st.none()), max_size=8)
"""Between two pages: a row is written, one of those that were there is forgotten, or nothing happens."""


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CONTENTS, min_size=1, max_size=40), STEPS, st.lists(LIMITS, min_size=1, max_size=5), st.randoms())
def test_pages_of_turns_hold_together_whatever_is_written_or_forgotten_between_them(
    store: Store, search: Search, contents: list[str], steps: list[str | int | None], limits: list[int], random: Random
) -> None:
    space = str(uuid4())
    there = write_turns(store, space, contents)
    forgotten: set[str] = set()
    shown: list[str] = []
    cursor = None
    for turn in range(200):
        given = {"embed": lambda _: [embedded("kettle ab")], "at": asked_at(cursor, NOON), "rerank": shuffled(random)}
        limit = limits[turn % len(limits)]
        page = search_turns(store, search, space, "kettle ab", limit=limit, cursor=cursor, **given)
        shown += [hit.turn.id for hit in page.hits]
        cursor = page.cursor
        if cursor is None:
            break
        match steps.pop(0) if steps else None:
            case str(content):
                write_turns(store, space, [content])
            case int(place) if there[place % len(there)] not in forgotten:
                id = there[place % len(there)]
                forgotten.add(id)
                store.write(space, tombstone_rows.forget, [id], reason="", now=NOON)
            case _:
                pass
    assert len(shown) == len(set(shown))
    assert set(there) - forgotten <= set(shown) <= set(there)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 12), st.integers(0, 12), LIMITS, st.sampled_from(["kettle", ""]), st.randoms())
def test_pages_of_memories_hold_together_whatever_is_told_between_them(
    store: Store, search: Search, atoms: int, turns: int, limit: int, query: str, random: Random
) -> None:
    space = str(uuid4())
    there = {write_atom(store, space, f"kettle {i}", random.randint(-1, 3)) for i in range(atoms)}
    said = write_turns(store, space, [f"kettle said {i}" for i in range(turns)]) if turns else []
    there |= set(said) if query else set()
    shown: list[str] = []
    cursor = None
    for number in range(100):
        given = {"embed": lambda _: [embedded("kettle")], "at": asked_at(cursor, NOON), "rerank": shuffled(random)}
        page = search_memories(store, search, space, query, limit=limit, cursor=cursor, **given)
        shown += [*(hit.atom.id for hit in page.atoms), *(hit.turn.id for hit in page.turns)]
        cursor = page.cursor
        if cursor is None:
            break
        write_atom(store, space, f"another kettle {number}", -1)
        write_turns(store, space, ["kettle kettle"])
    assert sorted(shown) == sorted(there)


@given(st.sets(st.integers(1, 10**7), max_size=50), st.sets(st.integers(1, 10**7), max_size=50))
def test_a_cursor_holds_every_id_it_was_given(turns: set[int], atoms: set[int]) -> None:
    page = PageState(question=b"asks", at=NOON, newest=(10**7, 10**7))
    ids = [*(f"t{n}" for n in turns), *(f"a{n}" for n in atoms)]
    cursor = after(page.cursor(), ids)
    assert cursor is not None
    assert asked_at(cursor, datetime.now(UTC)) == NOON
    assert PageState.cursor(PageState(question=b"asks", at=NOON, newest=(10**7, 10**7), shown=frozenset(ids))) == cursor


@given(st.data())
def test_a_cursor_copied_wrong_is_refused(data: st.DataObject) -> None:
    cursor = after(PageState(question=b"asks", at=NOON, newest=(900, 40)).cursor(), ["t5", "t812", "a3"])
    assert cursor is not None
    place = data.draw(st.integers(0, len(cursor) - 1))
    other = data.draw(st.sampled_from("AbZ9-_ …").filter(lambda c: c != cursor[place]))
    wrong = cursor[:place] + other + cursor[place + 1 :]
    with pytest.raises(InvalidInput, match="cursor is not one of ours"):
        asked_at(wrong, NOON)


@given(st.text())
def test_any_other_text_is_refused_as_a_cursor(text: str) -> None:
    with pytest.raises(InvalidInput, match="cursor is not one of ours"):
        asked_at(text, NOON)


@pytest.mark.parametrize("newest", [(2**63, 3), (3, 2**63)])
def test_a_cursor_that_names_rows_which_no_store_can_have_is_refused(newest: tuple[int, int]) -> None:
    with pytest.raises(InvalidInput, match="cursor is not one of ours"):
        asked_at(PageState(question=b"asks", at=NOON, newest=newest).cursor(), NOON)


def test_a_page_of_ten_makes_a_cursor_of_some_fifty_characters_and_the_depth_has_an_end() -> None:
    start = PageState(question=b"asks", at=NOON, newest=(10_000, 400)).cursor()
    cursor = after(start, [f"t{n * 997}" for n in range(1, 11)])
    assert cursor is not None
    assert len(cursor) <= 52
    assert after(start, [f"t{n}" for n in range(MAX_SHOWN)]) is None


def test_a_cursor_of_another_question_says_so(store: Store) -> None:
    cursor = page_of(None, "one", at=NOON, store=store, space="me").cursor()
    with pytest.raises(InvalidInput, match="belongs to another question"):
        page_of(cursor, "other", at=NOON, store=store, space="me")


async def test_yesterday_is_the_same_day_on_every_page(memory: Memory, clock: FixedClock) -> None:
    turns = [NewTurn(role="user", content=f"kettle {i}", said_at=clock.moment) for i in range(4)]
    await memory.record_turns(turns, session="s")
    clock.advance(hours=24)
    first = await memory.conversation_search("kettle", since="yesterday", limit=2)
    clock.advance(hours=30)
    second = await memory.conversation_search("kettle", since="yesterday", limit=2, cursor=first.cursor)
    assert {hit.turn.id for hit in (*first.hits, *second.hits)} == {"t1", "t2", "t3", "t4"}
    assert (await memory.conversation_search("kettle", since="yesterday")).hits == []
