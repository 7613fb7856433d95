"""Pictures hold their geometry: boxes apart, edges around them, all of it in sight, and every number as text."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.core.types import Fact, Group, StepStatus
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node
from mcp_memory.ui.elements import Element, html, text_of, tree
from mcp_memory.ui.pictures import charts
from mcp_memory.ui.pictures.canvas import drawing, picture
from mcp_memory.ui.pictures.charts import shorten, text_width, wrap
from mcp_memory.ui.pictures.layers import Box, Drawing, Wire

T0 = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
Point = tuple[float, float]


def canvas_of(count: int, edges: list[tuple[int, int]], *, title: str = "Step {n}", dead: int = 0) -> Canvas:
    nodes = tuple(
        Node(f"001-N{n}", title.format(n=n), "blocked" if n == dead else "done", "", T0 + timedelta(minutes=n))
        for n in range(1, count + 1)
    )
    drawn = tuple(Edge(f"001-N{a}", f"001-N{b}", "dead end" if b == dead else "", dashed=b == dead) for a, b in edges)
    return Canvas(1, "Find the fault", "doing", T0, T0, nodes, drawn)


BRANCHED = canvas_of(
    10,
    [(1, 2), (1, 3), (3, 4), (2, 5), (4, 5), (5, 6), (6, 7), (5, 8), (6, 9), (8, 9), (9, 10)],
    title="Compare feed {n} with what was published",
    dead=7,
)


@st.composite
def canvases(draw: st.DrawFn, most: int = 14) -> tuple[Canvas, dict[str, Group]]:
    count = draw(st.integers(1, most))
    node = st.integers(1, count)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * count))
    statuses = draw(st.lists(st.sampled_from(get_args(StepStatus)), min_size=count, max_size=count))
    titles = draw(st.lists(st.text(max_size=90), min_size=count, max_size=count))
    minutes = draw(st.lists(st.integers(0, 60), min_size=count, max_size=count))
    nodes = tuple(
        Node(f"001-N{at + 1}", titles[at], statuses[at], "", T0 + timedelta(minutes=sum(minutes[: at + 1])))
        for at in range(count)
    )
    label = st.text(max_size=12)
    drawn = tuple(Edge(f"001-N{a}", f"001-N{b}", draw(label), draw(st.booleans())) for a, b in edges)
    folded = draw(st.sets(node, max_size=count))
    groups = {"001-F1": Group(tuple(f"001-N{n}" for n in sorted(folded)))} if len(folded) > 1 else {}
    return Canvas(1, "A goal", "doing", T0, T0, nodes, drawn), groups


@settings(max_examples=25, deadline=None)
@given(canvases())
def test_any_short_canvas_holds_its_geometry(drawn: tuple[Canvas, dict[str, Group]]) -> None:
    holds_geometry(*drawn)


@settings(max_examples=6, deadline=None)
@given(st.integers(15, 90), st.randoms(use_true_random=False))
def test_any_long_canvas_holds_its_geometry(count: int, random: Random) -> None:
    edges = [(random.randint(max(1, n - 3), n), n + 1) for n in range(1, count)]
    edges += [(random.randint(1, count), random.randint(1, count)) for _ in range(count // 4)]
    holds_geometry(canvas_of(count, edges, dead=random.randint(1, count)), {})


def holds_geometry(canvas: Canvas, groups: dict[str, Group]) -> None:
    folded, drawn = drawing(canvas, groups)
    boxes = list(drawn.boxes.items())
    assert {id_ for id_, _ in boxes} == {node.id for node in folded.nodes}
    for at, (_, one) in enumerate(boxes):
        assert inside((one.x, one.y), drawn)
        assert inside((one.x + one.width, one.y + one.height), drawn)
        assert not [other for other, box in boxes[:at] if overlap(one, box)]
    joined = {(e.source, e.target) for e in folded.edges if e.source != e.target}
    assert {frozenset((wire.source, wire.target)) for wire in drawn.wires} == set(map(frozenset, joined))
    for wire in drawn.wires:
        keeps_clear(wire, drawn)
    labels = [wire.label for wire in drawn.wires if wire.label]
    for label in labels:
        assert inside((label.x, label.y), drawn)
        assert not [b for _, b in boxes if within((label.x, label.y), b, 0)]


def keeps_clear(wire: Wire, drawn: Drawing) -> None:
    points = list(flattened(wire.path))
    ends = (drawn.boxes[wire.source], drawn.boxes[wire.target])
    assert touches(points[0], ends[0]) or touches(points[0], ends[1])
    assert touches(wire.end, ends[1]), "the tip of an edge is at its target"
    assert wire.end in (points[0], points[-1])
    for point in points:
        assert inside(point, drawn)
        assert not [id_ for id_, box in drawn.boxes.items() if within(point, box, 0.5)], wire


def flattened(path: str) -> Iterator[Point]:
    """Points along a path of M, L, V, C and Q with absolute places."""
    x = y = 0.0
    for letter, numbers in re.findall(r"([MLVCQ])([^MLVCQ]*)", path):
        given = [float(number) for number in re.findall(r"-?[\d.]+", numbers)]
        if letter == "M":
            x, y = given
            yield x, y
            continue
        controls = [(x, y), *([(x, given[0])] if letter == "V" else zip(given[::2], given[1::2], strict=True))]
        for step in range(1, 13):
            yield along(controls, step / 12)
        x, y = controls[-1]


def along(controls: list[Point], part: float) -> Point:
    while len(controls) > 1:
        controls = [(a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part) for a, b in itertools.pairwise(controls)]
    return controls[0]


def inside(point: Point, drawn: Drawing) -> bool:
    return 0 <= point[0] <= drawn.width and 0 <= point[1] <= drawn.height


def within(point: Point, box: Box, depth: float) -> bool:
    return (
        box.x + depth < point[0] < box.x + box.width - depth and box.y + depth < point[1] < box.y + box.height - depth
    )


def touches(point: Point, box: Box) -> bool:
    near = Box(box.x - 1, box.y - 1, box.width + 2, box.height + 2)
    return within(point, near, 0) and not within(point, box, 0.5)


def overlap(one: Box, other: Box) -> bool:
    apart = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not apart and not (one.y + one.height <= other.y or other.y + other.height <= one.y)


# --- the elements of a canvas -----------------------------------------------------------------------


def found(element: Element, tag: str, class_: str = "") -> list[Element]:
    inner = [child for child in element.children if isinstance(child, Element)]
    own = [element] if element.tag == tag and class_ in [*element.attributes.get("class", "").split(" "), ""] else []
    return own + [each for child in inner for each in found(child, tag, class_)]


def test_each_step_is_a_link_with_its_title_status_and_short_id() -> None:
    links = found(picture(BRANCHED, {}, selected=None), "a", "node")
    assert [link.attributes["href"] for link in links] == [f"/001-N{n}" for n in range(1, 11)]
    assert "N7 · dead end" in text_of(links[6])
    assert links[6].attributes["class"] == "node blocked"
    assert "N10 · done · newest" in text_of(links[9])


def test_every_edge_has_an_arrow_and_a_dead_end_is_dashed_with_its_label() -> None:
    shown = picture(BRANCHED, {}, selected=None)
    edges = found(shown, "g", "edge")
    assert len(edges) == len(BRANCHED.edges) == len(found(shown, "path", "tip"))
    dead = found(shown, "g", "dead")
    assert len(dead) == 1
    assert text_of(dead[0]) == "dead end"


def test_every_status_has_a_sign_of_its_own() -> None:
    nodes = tuple(Node(f"001-N{at}", "x", status, "", T0) for at, status in enumerate(get_args(StepStatus), start=1))
    signs = found(picture(Canvas(1, "x", "doing", T0, T0, nodes), {}, selected=None), "path", "sign")
    shapes = {re.sub(r"^M[\d.]+ [\d.]+", "", sign.attributes["d"]) for sign in signs}
    assert len(shapes) == len(get_args(StepStatus))


def test_a_folded_group_is_a_stack_that_stands_out_where_a_step_in_it_is_selected() -> None:
    groups = {"001-F1": Group(("001-N3", "001-N4"), title="Ask and compare")}
    shown = picture(BRANCHED, groups, selected="001-N4")
    (selected,) = found(shown, "a", "selected")
    assert selected.attributes["href"] == "/001-F1"
    assert len(found(selected, "rect")) == 3
    assert [len(found(link, "rect")) for link in found(shown, "a", "node") if link != selected] == [1] * 8


def test_a_long_title_is_shortened_with_the_whole_in_its_title() -> None:
    long = "Compare every sailing of the winter timetable with what the operator sent us"
    shown = picture(canvas_of(1, [], title=long), {}, selected=None)
    assert long in text_of(found(shown, "a", "node")[0].children[0])
    assert all(text_width(text_of(line)) <= 170 for line in found(shown, "text"))


def test_phases_are_columns_of_a_canvas_of_many_steps() -> None:
    canvas = canvas_of(40, [(n, n + 1) for n in range(1, 40)] + [(2, 30), (33, 5)])
    _, drawn = drawing(canvas, {})
    lefts = {box.x for box in drawn.boxes.values()}
    assert len(lefts) == len(drawn.titles) > 2
    assert drawn.titles[0].text.startswith("1 · ")


def test_a_canvas_without_steps_is_an_empty_picture() -> None:
    assert found(picture(canvas_of(0, []), {}, selected=None), "a") == []


def test_a_picture_of_a_usual_canvas_is_small_and_quick() -> None:
    shown = picture(BRANCHED, {}, selected=None)
    assert len(html(shown).encode()) < 7_000
    began = time.perf_counter()
    for _ in range(5):
        picture(BRANCHED, {}, selected="001-N5")
    assert (time.perf_counter() - began) / 5 < 0.1  # some 5 ms on an idle machine


def test_hostile_words_are_text_in_every_picture() -> None:
    bad = "</title><script>alert(1)</script>\u202e"
    day = T0.date()
    shown = [
        picture(canvas_of(2, [(1, 2)], title=bad.replace("{", "")), {}, selected=None),
        charts.signals({bad: 0.5}),
        charts.days([(day, {bad: 1.0})], label=bad),
        charts.facts([fact(value=bad, relation=bad)], now=T0, as_of=None),
    ]
    for each in shown:
        assert "<script" not in html(each)
        assert tree(each)


# --- charts -----------------------------------------------------------------------------------------


def test_signals_stand_with_the_strongest_first_and_may_have_no_value() -> None:
    shown = charts.signals({"meaning": 0.064, "named": None, "words": 0.142}, most=1.0)
    assert [text_of(each) for each in found(shown, "li")] == ["words0.142", "meaning0.064", "named–"]
    assert [bar.attributes["width"] for bar in found(shown, "rect", "bar")] == ["14.2%", "6.4%", "0%"]


def test_days_tell_their_sums_and_hang_losses_below_the_line() -> None:
    series = [(date(2026, 11, day), {"saved": 100.0 * day, "net": -50.0}) for day in range(1, 4)]
    shown = charts.days(series, label="Tokens")
    chart = found(shown, "svg")[-1]
    assert chart.attributes["aria-label"] == "Tokens. saved: 600; net: -150"
    assert "2 Nov 2026: saved: 200; net: -50" in text_of(chart)
    zero = float(found(chart, "line")[0].attributes["y1"])
    nets = found(chart, "rect", "second")
    assert all(float(each.attributes["y"]) == pytest.approx(zero) for each in nets)


@given(st.lists(st.tuples(st.dates(), st.dictionaries(st.text(max_size=3), st.floats(-1e9, 1e9)))))
def test_bars_by_day_stay_in_the_picture(series: list[tuple[date, dict[str, float]]]) -> None:
    chart = found(charts.days(series, label="x"), "svg")[-1]
    for bar in found(chart, "rect"):
        top = float(bar.attributes["y"])
        assert top >= 0
        assert top + float(bar.attributes["height"]) <= float(chart.attributes["height"])
        left, wide = (float(bar.attributes[name].rstrip("%")) for name in ("x", "width"))
        assert left >= 0
        assert left + wide <= 100.1


# --- the timeline and the graph ---------------------------------------------------------------------


def fact(*, value: str = "Bergen", relation: str = "lives in", since: int = 0, until: int | None = None) -> Fact:
    ended = None if until is None else T0 + timedelta(days=until)
    return Fact(atom="a1", entity="Nora", relation=relation, value=value,
                valid_from=T0 + timedelta(days=since), valid_to=ended)  # fmt: skip


def test_a_fact_that_ended_is_another_bar_than_one_that_holds() -> None:
    facts = [fact(until=100), fact(value="Oslo", since=100)]
    shown = charts.facts(facts, now=T0 + timedelta(days=200), as_of=None)
    ended, holding = found(shown, "rect", "bar")
    assert ended.attributes["class"] == "bar ended"
    assert holding.attributes["class"] == "bar"
    assert (ended.attributes["x"], ended.attributes["width"]) == ("0%", "50%")
    assert (holding.attributes["x"], holding.attributes["width"]) == ("50%", "50%")


def test_a_moment_of_the_past_shows_what_held_then() -> None:
    facts = [fact(until=100), fact(value="Oslo", since=100)]
    shown = charts.facts(facts, now=T0 + timedelta(days=200), as_of=T0 + timedelta(days=50))
    assert [bar.attributes["class"] for bar in found(shown, "rect", "bar")] == ["bar", "bar ended"]
    assert len(found(shown, "line", "as-of")) == 3


@given(st.lists(st.tuples(st.integers(-9000, 9000), st.integers(-9000, 9000) | st.none()), max_size=6))
def test_bars_of_facts_stay_on_the_scale(spans: list[tuple[int, int | None]]) -> None:
    facts = [fact(since=since, until=until) for since, until in spans]
    for bar in found(charts.facts(facts, now=T0, as_of=T0), "rect"):
        left, wide = (float(bar.attributes[name].rstrip("%")) for name in ("x", "width"))
        assert left >= 0
        assert wide > 0
        assert left + wide <= 100.02


# --- lettering --------------------------------------------------------------------------------------


def test_wide_characters_take_two_places() -> None:
    assert text_width("漢字") > 1.8 * text_width("ab")


@given(st.text(max_size=120), st.floats(40, 300))
def test_a_shortened_text_fits(text: str, room: float) -> None:
    assert text_width(shorten(text, room)) <= room


@given(st.text(max_size=120), st.floats(40, 300), st.integers(1, 3))
def test_wrapped_lines_fit_and_are_no_more_than_asked_for(text: str, room: float, lines: int) -> None:
    done = wrap(text, room, lines=lines)
    assert len(done) <= lines
    assert all(text_width(line) <= room for line in done)
