"""The canvas and its text: the law that reading undoes writing, and that the real Mermaid shows our words."""

from __future__ import annotations

import html
import re
from datetime import datetime, timedelta, timezone
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mermaidx.engine import Engine

from mcp_memory.core.errors import Damaged, InvalidInput
from mcp_memory.core.types import CanvasRow, StepStatus
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, clean, decode, encode, parse, read, render

AT = datetime(2026, 4, 16, 22, 19, 53, 895000, tzinfo=timezone(timedelta(hours=8)))
STAMP = "2026-04-16T22:19:53.895+08:00"

# What has a meaning somewhere on the way: in Mermaid's grammar, its entities, HTML, JSON, or our own lines.
TRAPS = [
    '"', "'", "`", "```", "[", "]", "(", ")", "{", "}", "<", ">", "<br/>", "<br>", "</div>", "<script>", "|", ";",
    ":", "%", "%%", "%%{init:{}}%%", "#", "#quot;", "#35;", "##35;", "#5;", "#x;", "&amp;", "&lt;", "&copy=2",
    "&#60;", "&", "$$", "$$x$$", "fa:fa-car", "fab:fa-x", "ﬂ°", "ﬂ°°35¶ß", "¶ß", "-->", "-.->", "===", "---", "end",
    "graph", "subgraph", "click", "style", "classDef", "class", "linkStyle", "direction", "TB", "LR", "TD",
    "accTitle:", "title", "@", "@{", "e1@", ":::", "�", "שלום", "数据库", "summary:", "status:done", "Timestamp:",
    '003-N1["x"]', "~~~", "___", "**b**", "1.", "-", "+", "fix.", "\n", "\\", "\\n", '\\"', "\t", "\r", "\x00\n",
    "\x85", "\u2028", "\ufeff", "\u2060", "\u200d", "\u200b", "\u202e", "\uffff", "\U0001f468\u200d\U0001f469",
]  # fmt: skip
words = st.lists(st.one_of(st.sampled_from(TRAPS), st.text(max_size=6)), max_size=12)
text = st.one_of(words.map(" ".join), words.map("".join), st.text(max_size=400))
moments = st.datetimes(
    min_value=datetime(1970, 1, 2),
    max_value=datetime(2200, 1, 1),
    timezones=st.builds(timezone, st.integers(-14 * 60, 14 * 60).map(lambda minutes: timedelta(minutes=minutes))),
)
statuses: st.SearchStrategy[StepStatus] = st.sampled_from(get_args(StepStatus))


@st.composite
def canvases(draw: st.DrawFn) -> Canvas:
    number = draw(st.integers(1, 4000))
    ids = [f"{number:03d}-{kind}{at}" for at, kind in enumerate(draw(st.lists(st.sampled_from("NF"), max_size=5)), 1)]
    nodes = [Node(id_, draw(text), draw(statuses), draw(text), draw(moments)) for id_ in ids]
    ends = st.sampled_from(ids) if ids else st.nothing()
    edges = draw(st.lists(st.builds(Edge, ends, ends, text, st.booleans()), max_size=5 if ids else 0))
    return Canvas(number, draw(text), draw(statuses), draw(moments), draw(moments), tuple(nodes), tuple(edges))


def sample() -> Canvas:
    nodes = (
        Node("003-N1", "Explore: read auth module", "done", "token expiry in auth/token.py", AT),
        Node("003-N2", "Try: bump library", "blocked", 'conflicts with "pydantic 2"', AT),
        Node("003-N3", "Fix: clock skew", "doing", "leeway 30 s, 2 tests still red", AT),
    )
    edges = (Edge("003-N1", "003-N3"), Edge("003-N1", "003-N2", "dead end", True))
    return Canvas(3, "Fix failing login test", "doing", AT, AT, nodes, edges)


def test_the_text_of_a_canvas_has_the_form_of_the_file_byte_for_byte() -> None:
    assert render(sample()) == (
        f'%% {{"taskGoal":"Fix failing login test","status":"doing","createdTime":"{STAMP}","updatedTime":"{STAMP}"}}\n'
        "flowchart TD\n"
        '    003-N1["Explore: read auth module<br/>status: done<br/>'
        f'summary: token expiry in auth/token.py<br/>Timestamp: {STAMP}"]\n'
        '    003-N2["Try: bump library<br/>status: blocked<br/>'
        f'summary: conflicts with #quot;pydantic 2#quot;<br/>Timestamp: {STAMP}"]\n'
        '    003-N3["Fix: clock skew<br/>status: doing<br/>'
        f'summary: leeway 30 s, 2 tests still red<br/>Timestamp: {STAMP}"]\n'
        "    003-N1 --> 003-N3\n"
        "    003-N1 -.->|dead end| 003-N2\n"
    )


@given(canvases())
def test_reading_a_canvas_undoes_writing_it(canvas: Canvas) -> None:
    written = render(canvas)
    assert parse(written) == canvas
    assert parse(written.replace("\n", "\r\n")) == canvas
    assert written.encode().decode() == written


@given(text)
def test_a_label_decodes_to_the_cleaned_text_and_cleaning_twice_changes_nothing(raw: str) -> None:
    cleaned = clean(raw, 200)
    assert decode(encode(cleaned)) == cleaned
    assert clean(cleaned, 200) == cleaned
    assert len(cleaned) <= 200


def test_cleaning_keeps_what_scripts_need_and_replaces_what_no_file_can_hold() -> None:
    family, persian = "\U0001f468\u200d\U0001f469", "می\u200cخواهم"
    assert clean(f" a\x00b\n\tc {family} {persian} \ud800 ", 80) == f"a b c {family} {persian} \ufffd"
    assert clean("x" * 300, 80) == "x" * 79 + "…"


@given(text)
def test_reading_any_text_gives_a_canvas_or_says_which_line_is_wrong(raw: str) -> None:
    with pytest.raises(InvalidInput, match="line 1 "):
        parse(raw)


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("flowchart TD", "graph LR", 2),
        ("status: blocked", "status: stuck", 4),
        (f"Timestamp: {STAMP}", "Timestamp: today", 3),
        ('003-N2["Try', '003-N1["Try', 4),
        ('003-N2["Try', '004-N2["Try', 4),
        ("003-N1 --> 003-N3", "003-N1 --> 003-N9", 6),
        ("003-N1 --> 003-N3", "003-N1 --> 003-", 6),
        ("003-N1 --> 003-N3", "click 003-N1 call f()", 6),
        ('"taskGoal"', '"goal"', 1),
        ('"status":"doing"', '"status":1', 1),
    ],
)
def test_a_torn_or_foreign_line_is_named(old: str, new: str, line: int) -> None:
    with pytest.raises(InvalidInput, match=f"^line {line} "):
        parse(render(sample()).replace(old, new, 1))


def test_a_file_cut_at_any_byte_is_refused_or_lacks_only_whole_lines() -> None:
    written = render(sample())
    whole = {written[:at] for at in range(len(written)) if written[at] == "\n"}
    for at in range(len(written)):
        try:
            canvas = parse(written[:at])
        except InvalidInput:
            continue
        assert render(canvas).removesuffix("\n") in {*whole, written.removesuffix("\n")}


def test_a_stored_canvas_that_cannot_be_read_is_damaged_and_says_what_is_left() -> None:
    row = CanvasRow(number=3, label="fix", session="s", text="x", status="doing", updated=AT, version=1)
    with pytest.raises(Damaged, match=r"Canvas 003-fix cannot be read: line 1 .* expand_node 003"):
        read(row)


# --- the real Mermaid -------------------------------------------------------------------------------


def shown(svg: str, kind: str) -> list[list[str]]:
    """The lines of text of each label, as a reader sees them."""
    part = svg[svg.index(f'class="{kind}"') :].partition('<g class="nodes"' if kind != "nodes" else "</svg>")[0]
    labels = re.findall(r"<foreignObject[^>]*>(.*?)</foreignObject>", part, flags=re.DOTALL)
    return [
        [html.unescape(re.sub("<[^>]*>", "", line)).replace("\u2060", "") for line in re.split(r"<br ?/>", each)]
        for each in labels
    ]


def nasty() -> list[tuple[str, str]]:
    """Titles and summaries made of every trap: alone, doubled, inside a word, beside others, ended by `;`."""
    traps = [cleaned for trap in TRAPS if (cleaned := clean(trap, 40))]
    pieces = [f"{a}{b} {a} x{b}y;" for a in traps for b in traps[len(a) % 7 :: 61]]
    summaries = ["style a:b;c #quot; d:e#35;f;", "classDef x:y#z;", "the direction LR is x:direction\u2003TB"]
    while pieces:
        summaries.append("")
        while pieces and len(summaries[-1] + pieces[-1]) < 200:
            summaries[-1] += pieces.pop()
    titles = [trap + traps[at * 7 % len(traps)] for at, trap in enumerate(traps)]
    return [(titles[at % len(titles)], summary) for at, summary in enumerate(summaries)]


def drawn(mermaid: Engine, canvas: Canvas) -> str:
    return mermaid.render_svg(render(canvas), "default", {"maxTextSize": 10**7}, None)


def spaced(text: str) -> str:
    return " ".join(text.split())


def of_nodes(nodes: tuple[Node, ...]) -> list[str]:
    return [
        spaced(line)
        for node in nodes
        for line in (node.title, f"status: {node.status}", f"summary: {node.summary}", f"Timestamp: {STAMP}")
    ]


def node_texts(svg: str) -> list[str]:
    return [spaced(line) for label in shown(svg, "nodes") for line in label]


def assert_shown(mermaid: Engine, pairs: list[tuple[str, str]]) -> None:
    nodes = tuple(Node(f"003-N{at}", title, "done", each, AT) for at, (title, each) in enumerate(pairs, 1))
    svg = drawn(mermaid, Canvas(3, pairs[0][1], "doing", AT, AT, nodes))
    assert node_texts(svg) == of_nodes(nodes)


def test_the_real_mermaid_shows_exactly_the_text_of_every_node(mermaid: Engine) -> None:
    assert_shown(mermaid, nasty())


@settings(max_examples=2)
@given(st.lists(st.tuples(text, text), min_size=4, max_size=6))
def test_the_real_mermaid_shows_exactly_any_text(mermaid: Engine, pairs: list[tuple[str, str]]) -> None:
    assert_shown(mermaid, pairs)


def test_the_real_mermaid_shows_exactly_the_label_of_every_edge(mermaid: Engine) -> None:
    labels = [
        "dead end",
        *(clean(summary[at * 9 % 80 :], 40) for at, (_, summary) in enumerate(nasty()[:8])),
    ]
    nodes = (Node("003-N1", "x", "done", "", AT), Node("003-N2", "y", "done", "", AT))
    edges = tuple(Edge("003-N1", "003-N2", each, at % 2 == 0) for at, each in enumerate(labels))
    svg = drawn(mermaid, Canvas(3, "edges", "doing", AT, AT, nodes, edges))
    assert [spaced(" ".join(label)) for label in shown(svg, "edgeLabels")] == [spaced(each) for each in labels]


def test_the_real_mermaid_takes_a_canvas_without_nodes(mermaid: Engine) -> None:
    assert shown(drawn(mermaid, Canvas(3, "empty", "doing", AT, AT)), "nodes") == []
