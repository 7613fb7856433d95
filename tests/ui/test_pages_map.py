"""The map: its picture, its table, the slider, the data that its script draws, and where its spots lie."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from statistics import mean, median

import anyio.to_thread
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.map import statements
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import MapLink, MapNode, MemoryMap
from mcp_memory.service.memory import Memory
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import NewAtom
from mcp_memory.ui.components import Page
from mcp_memory.ui.elements import html, text_of, tree
from mcp_memory.ui.pages.map import map_data
from mcp_memory.ui.pictures.map import MOST_DRAWN, Map, laid_out, legend, neighbourhood
from mcp_memory.ui.times import day_of
from tests.ui.browsing import Browser
from tests.ui.holding import at
from tests.ui.shown import elements, links, text

NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(days=300)


async def store(memory: Memory, *new: NewAtom) -> None:
    def add_all(tx: Transaction) -> None:
        for atom in new:
            atom_rows.add(tx, atom, now=NOW)

    parts = memory._parts  # pyright: ignore[reportPrivateUsage]
    await anyio.to_thread.run_sync(parts.store.write, memory.space, add_all)


def about(*names: str, begun: datetime = LONG_AGO, ended: datetime | None = None) -> NewAtom:
    text = f"{' and '.join(names)} since {begun}"
    return NewAtom(kind="episodic", text=text, priority=50, confidence=1.0, session="s", valid_from=begun,
                   valid_to=ended, entities=names)  # fmt: skip


def spots(page: Page) -> list[str]:
    """Return the addresses of the spots in the picture."""
    return [one.attributes["href"] for one in elements(page) if "spot" in one.attributes.get("class", "").split()
            and one.tag == "a"]  # fmt: skip


def rows(page: Page) -> list[list[str]]:
    return [[text_of(cell) for cell in one.children] for one in elements(page) if one.tag == "tr"][1:]


async def test_names_are_spots_and_rows_that_lead_to_their_pages(memory: Memory) -> None:
    await store(memory, about("Noa", "Uxía"), about("Noa"), about("Brais"))
    page = await at(memory, "/map")
    assert spots(page) == ["/entity/Noa", "/entity/Ux%C3%ADa", "/entity/Brais"]
    assert [row[:2] for row in rows(page)] == [["Noa", "2"], ["Uxía", "1"], ["Brais", "1"]]
    assert "On 20 Nov 2026: 3 names, 1 pair mentioned together." in text(page)


async def test_without_names_it_says_where_they_come_from(memory: Memory) -> None:
    page = await at(memory, "/map")
    assert "No statement names anybody yet." in text(page)
    assert not [one for one in elements(page) if one.tag == "svg"]


async def test_the_slider_shows_what_was_true_on_a_day(memory: Memory) -> None:
    middle = NOW - timedelta(days=150)
    await store(memory, about("Noa", "Brea", ended=middle), about("Noa"), about("Uxía", begun=middle))
    assert spots(await at(memory, "/map")) == ["/entity/Noa", "/entity/Ux%C3%ADa"]
    before = await at(memory, f"/map?day={(middle - timedelta(days=9)).toordinal()}")
    assert spots(before) == ["/entity/Noa", "/entity/Brea"]
    assert [row[:2] for row in rows(before)] == [["Noa", "2"], ["Brea", "1"]]
    assert "/map" in links(before)
    assert spots(await at(memory, "/map?day=1")) == spots(before)
    for wrong in ("x", "-5", "99999999999999999999"):
        with pytest.raises(InvalidInput):
            await at(memory, f"/map?day={wrong}")


async def test_on_a_day_counts_dates_and_sizes_are_those_of_the_day_and_the_places_are_those_of_today(
    memory: Memory,
) -> None:
    later = [NOW - timedelta(days=days) for days in (150, 140, 130)]
    await store(memory, about("Noa", "Brea"), about("Uxía"), about("Uxía", "Noa"))
    await store(memory, *(about("Noa", "Uxía", begun=begun) for begun in later))
    then = {"day": str((later[0] - timedelta(days=9)).toordinal())}
    assert [row[:2] for row in rows(await at(memory, "/map"))] == [["Noa", "5"], ["Uxía", "5"], ["Brea", "1"]]
    before = await at(memory, f"/map?day={then['day']}")
    assert [row[:2] for row in rows(before)] == [["Noa", "2"], ["Uxía", "2"], ["Brea", "1"]]
    assert {row[2] for row in rows(before)} == {row[3] for row in rows(before)}
    now, past = await map_data(memory, {}), await map_data(memory, then)
    assert [spot[4:6] for spot in now["spots"]] == [spot[4:6] for spot in past["spots"]]
    smaller = {spot[0] for spot, other in zip(past["spots"], now["spots"], strict=True) if spot[6] < other[6]}
    assert smaller == {"Noa", "Uxía"}


async def test_a_date_beside_the_slider_is_a_day_too(memory: Memory) -> None:
    middle = (NOW - timedelta(days=150)).date()
    await store(memory, about("Noa"), about("Uxía", begun=NOW - timedelta(days=100)))
    today = memory.now().date()
    shown = await at(memory, f"/map?day={today.toordinal()}&on={middle}&was={today}")
    assert spots(shown) == ["/entity/Noa"]
    assert spots(await at(memory, f"/map?day={today.toordinal()}&on={middle}&was={middle}")) == spots(
        await at(memory, "/map")
    )
    (field,) = [one for one in elements(shown) if one.attributes.get("type") == "date"]
    assert field.attributes["value"] == str(middle)
    with pytest.raises(InvalidInput):
        await at(memory, "/map?on=soon")


async def test_a_large_memory_has_a_small_page_and_all_names_in_its_data(memory: Memory) -> None:
    await store(memory, *statements(400))
    page = await at(memory, "/map")
    assert len(spots(page)) == MOST_DRAWN
    assert sum(len(html(node).encode()) for node in page.body) < 70_000
    assert len(json.dumps([tree(node) for node in page.body])) < 94_000
    data = await map_data(memory, {})
    assert len(data["spots"]) == 400
    named = {row[0] for row in rows(page)}
    while further := next((link for link in links(page) if f"from={len(named)}" in link), None):
        page = await at(memory, further)
        named |= {row[0] for row in rows(page)}
    last = day_of(memory.now()).toordinal()
    assert named == {spot[0] for spot in data["spots"] if spot[-2] <= last and not 0 < spot[-1] <= last}


async def test_the_data_are_json_for_readers_in_a_session(browser: Browser) -> None:
    await store(browser.memory, about("Noa", "</script><b>"))
    answer = await browser.open("/map.json")
    assert answer.headers["content-type"] == "application/json"
    assert [spot[0] for spot in answer.json()["spots"]] == ["Noa", "</script><b>"]
    browser.cookies.clear()
    assert (await browser.open("/map.json")).status_code == 401


async def test_the_neighbourhood_of_a_name_is_drawn_like_the_map(memory: Memory) -> None:
    await store(memory, about("Noa", "Uxía"), about("Uxía", "Ana"), about("Ana", "Brais"))
    drawn = neighbourhood(await memory.entity_map(about="Uxía"), "Uxía", NOW.date())
    page = Page(title="", body=(drawn,))
    assert spots(page) == ["/entity/Ux%C3%ADa", "/entity/Ana", "/entity/Noa"]
    assert [one.attributes["aria-label"] for one in elements(page) if one.attributes.get("role") == "region"] == [
        "What is mentioned together with Uxía"
    ]


# --- positions --------------------------------------------------------------------------------------


def map_of(count: int, pairs: list[tuple[int, int]]) -> MemoryMap:
    shared = [len([pair for pair in pairs if at in pair]) for at in range(count)]
    return MemoryMap(
        nodes=[
            MapNode(name=f"Name {at}", statements=1 + shared[at], past=0, first=LONG_AGO, last=NOW, until=None)
            for at in range(count)
        ],
        links=[MapLink(ends=pair, statements=1, first=LONG_AGO, until=None) for pair in sorted(set(pairs))],
        total=count,
    )


@st.composite
def maps(draw: st.DrawFn) -> MemoryMap:
    count = draw(st.integers(1, 60))
    ends = st.integers(0, count - 1)
    pairs = (
        draw(st.lists(st.tuples(ends, ends).filter(lambda pair: pair[0] < pair[1]), max_size=90)) if count > 1 else []
    )
    return map_of(count, pairs)


def places(drawn: Map) -> list[tuple[float, float]]:
    return [(spot.x, spot.y) for spot in drawn.spots]


@settings(max_examples=25, deadline=None)
@given(maps())
def test_spots_are_inside_the_picture_and_apart_and_always_at_the_same_place(given_map: MemoryMap) -> None:
    drawn = laid_out(given_map)
    left, top, width, height = drawn.box
    for spot in drawn.spots:
        assert left <= spot.x - spot.reach <= spot.x + spot.reach <= left + width
        assert top <= spot.y - spot.radius <= spot.y + spot.radius <= top + height
    for one, other in combinations(drawn.spots, 2):
        assert abs(one.x - other.x) + abs(one.y - other.y) > max(one.radius, other.radius)
    assert places(laid_out(given_map)) == places(drawn)


def groups(count: int, size: int) -> MemoryMap:
    """Return groups in which each name is mentioned with some others of the group."""
    pairs = [(first, first + step) for first in range(count) for step in (1, 2, 5) if first % size + step < size]
    return map_of(count, pairs)


def test_what_is_mentioned_together_lies_together() -> None:
    drawn = laid_out(groups(200, 20))
    inside = [distance(drawn, a, b) for a, b in combinations(range(200), 2) if a // 20 == b // 20]
    outside = [distance(drawn, a, b) for a, b in combinations(range(200), 2) if a // 20 != b // 20]
    assert mean(inside) < 0.4 * mean(outside)


def distance(drawn: Map, one: int, other: int) -> float:
    a, b = drawn.spots[one], drawn.spots[other]
    return ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5


@pytest.mark.parametrize("count", [40, 200, 600])
def test_one_more_statement_leaves_nearly_everything_in_its_place(count: int) -> None:
    before = groups(count, 20)
    new = MapNode(name="New", statements=1, past=0, first=NOW, last=NOW, until=None)
    link = MapLink(ends=(7, count), statements=1, first=NOW, until=None)
    after = replace(before, nodes=[*before.nodes, new], links=[*before.links, link])
    one, other = laid_out(before), laid_out(after)
    moved = [
        ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5 / one.box[2] for a, b in zip(one.spots, other.spots, strict=False)
    ]
    assert median(moved) < 0.02


def test_colours_are_those_of_the_largest_groups() -> None:
    drawn = laid_out(groups(200, 20))
    assert sorted({spot.colour for spot in drawn.spots}) == list(range(7))
    assert [drawn.spots[leader].colour for leader in drawn.leaders] == [1, 2, 3, 4, 5, 6]


def test_the_legend_names_the_groups_with_three_names_on_a_day() -> None:
    drawn = laid_out(groups(30, 6))
    day = max(spot.begun for spot in drawn.spots)
    shown = legend(drawn, day)
    assert shown is not None
    assert "A colour marks what is mentioned most with" in text_of(shown)
    assert legend(laid_out(groups(30, 2)), day) is None


async def test_what_is_new_is_marked_only_beside_what_is_older(memory: Memory) -> None:
    async def new() -> list[str]:
        page = await at(memory, "/map")
        return [each.attributes["href"] for each in elements(page) if "new" in each.attributes.get("class", "").split()]

    await store(memory, about("Noa", begun=memory.now()))
    assert await new() == []
    await store(memory, about("Uxía", begun=memory.now() - timedelta(days=30)))
    assert await new() == ["/entity/Noa"]
