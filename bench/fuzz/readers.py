"""Targets for the package's own formats, for user text and for model replies."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

from bench.fuzz.material import as_bytes, json_bytes, lines, texts
from bench.fuzz.target import Target, is_short, mended, object_in, text_of
from mcp_memory.core.errors import Damaged, InvalidInput
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import Group
from mcp_memory.language.when.intervals import parse_time, spans_in
from mcp_memory.longterm.merge_resolution import MergeReply as Decisions
from mcp_memory.longterm.page_lines import PersonaReply as Page
from mcp_memory.longterm.page_lines import SceneReply as Scenes
from mcp_memory.longterm.search.rerank import Order
from mcp_memory.longterm.statements import Extracted
from mcp_memory.longterm.validity import validity_period, with_its_date
from mcp_memory.models.llm import parse as parse_reply
from mcp_memory.models.llm import without_fence
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, clean, decode, encode, goal_of, parse, render
from mcp_memory.shortterm.canvas.state import CanvasState, Patch, apply_patch
from mcp_memory.shortterm.canvas_stage import CanvasReply as CanvasReply
from mcp_memory.shortterm.canvas_stage import check_reply
from mcp_memory.shortterm.expand import content_of, expand_text, view_of_cursor
from mcp_memory.shortterm.summary_stage import SummaryReply as Summaries
from mcp_memory.shortterm.synopsis.synopsis import synopsise
from mcp_memory.store import citations, files

_NOW = datetime(2026, 3, 29, 2, 30, tzinfo=timezone(timedelta(hours=2)))
_SEPARATOR = b"\n\0\n"


# --- the canvas -------------------------------------------------------------------------------------


def _canvas(data: bytes) -> None:
    text = text_of(data)
    goal_of(text)
    try:
        found = parse(text)
    except InvalidInput:
        return
    assert parse(render(found)) == found, "reading undoes writing"
    render(found).encode()


def _label(data: bytes) -> None:
    text = clean(text_of(data), 200)
    assert len(text) <= 200
    assert clean(text, 200) == text
    assert decode(encode(text)) == text
    decode(text_of(data))


@cache
def _drawing() -> CanvasState:
    nodes = tuple(Node(f"001-N{n}", f"step {n}", "done", "it went well", _NOW) for n in range(1, 9))
    edges = tuple(Edge(one.id, other.id) for one, other in pairwise(nodes))
    canvas = Canvas(1, "Find the leak", "doing", _NOW, _NOW, nodes, edges)
    return CanvasState(canvas=canvas, groups={"001-F1": Group(("001-N1", "001-N2"), "begin", "")})


def _patch(data: bytes) -> None:
    try:
        patch = TypeAdapter(Patch).validate_json(text_of(data))
    except ValueError:
        return
    try:
        changed = apply_patch(_drawing(), patch)
    except InvalidInput:
        return
    assert parse(render(changed.canvas)) == changed.canvas
    assert [node.id for node in changed.canvas.nodes] == [node.id for node in _drawing().canvas.nodes]


_PATCH_KEYS = [field.name for field in fields(Patch)] + ["001-N1", "001-N8", "001-F1", "nodes", "title", "summary"]

# --- files ------------------------------------------------------------------------------------------


def _ref_file(data: bytes) -> None:
    try:
        found, held = files.read_ref_file(data)
    except Damaged:
        return
    assert hashlib.sha256(held).hexdigest() == found["sha256"]


def _front_matter(value: bytes, data: bytes) -> bytes:
    return b"---\nref: " + value + b"\n---\n" + data


# --- times ------------------------------------------------------------------------------------------


def _times(data: bytes) -> None:
    text = text_of(data)
    for now in (_NOW, datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)):
        for end in (False, True):
            try:
                assert parse_time(text, what="since", now=now, end=end).tzinfo is not None
            except InvalidInput as error:
                is_short(error, 500)
        last = 0
        for span in spans_in(text, now):
            assert last <= span.at[0] < span.at[1] <= len(text)
            assert span.start < span.end
            last = span.at[1]
    with_its_date(text[:2_000], _NOW)
    validity_period(text[:200], text[200:400], _NOW, lasting=False)


# --- replies of models ------------------------------------------------------------------------------

_SHAPES: Sequence[type[BaseModel]] = (Extracted, Decisions, Scenes, Page, Summaries, CanvasReply, Order)
_REPLY_KEYS = sorted(
    {name for shape in _SHAPES for name in shape.model_fields}
    | {"name", "atoms", "turn", "quote", "more", "text", "kind", "priority", "entities", "fact", "draft", "action"}
    | {"targets", "slug", "from", "title", "body", "atom", "reason", "id", "score", "nodes", "to", "label"}
)


def _reply(data: bytes) -> None:
    text = text_of(data)
    without_fence(text)
    for shape in _SHAPES:
        try:
            found = parse_reply(text, shape)
        except InvalidInput as error:
            is_short(error, 5_000)
            continue
        if isinstance(found, CanvasReply):
            check_reply(found, _drawing(), question=text, titled=["001-N3"], has_goal=True)


def _citations(data: bytes) -> None:
    text = text_of(data)
    ids = citations.cited_atoms(text)
    assert not set(ids[:1]) & set(citations.cited_atoms(citations.without_atoms(text, ids[:1])))
    assert not citations.cited_atoms(citations.without_atoms(text, ids))
    assert citations.without_uncited(citations.without_uncited(text)) == citations.without_uncited(text)
    for read in (
        citations.links,
        citations.uncited_lines,
        citations.uncited_tails,
        citations.without_citations,
        citations.unwrap,
    ):
        read(text)
    citations.without_links(text, citations.links(text)[:1])


# --- results ----------------------------------------------------------------------------------------

_ASKED = ("view", "lines", "grep", "json_path", "max_tokens", "cursor", "raw")


def _expand(data: bytes) -> None:
    """Expand a result: the query is an object on the first lines, or those lines as text; the rest is the result."""
    head, _, raw = data.partition(_SEPARATOR)
    given: dict[str, Any] = object_in(head)
    text = text_of(raw) or mended(given.get("raw", given.get("4", "")))
    counter = token_counter("cl100k_base")
    first, second = mended(given.get("grep", given.get("0", ""))), mended(given.get("lines", given.get("1", "")))
    budget = given.get("max_tokens")
    most = budget if isinstance(budget, int) and 0 < budget < 2_000 else 300
    asked: list[dict[str, Any]] = [{"view": "page"}, {"view": "grep", "argument": first}]
    asked += [
        {"view": "lines", "argument": second},
        {"view": "json", "argument": mended(given.get("json_path", first))},
    ]
    for question in asked:
        try:
            found = expand_text(text, ref="r-1", counter=counter, max_tokens=most, **question)
            if found.cursor is not None:
                assert view_of_cursor(found.cursor) == question["view"]
                expand_text(text, ref="r-1", counter=counter, max_tokens=most, cursor=found.cursor, **question)
        except InvalidInput as error:
            is_short(error, 1_500)
            continue
        assert counter.count(found.text) <= most, "no answer is over its budget"
        content_of(found)
    try:
        view_of_cursor(mended(given.get("cursor", "")))
    except InvalidInput:
        pass


_QUESTIONS = st.one_of(json_bytes(_ASKED), st.builds(as_bytes, texts), lines(st.builds(as_bytes, texts)))
_RAW = st.one_of(json_bytes(("items", "name", "id")), lines(json_bytes(("id", "ts"))), st.builds(as_bytes, texts))


def _question(head: bytes, raw: bytes) -> bytes:
    return head + _SEPARATOR + raw


def _synopsis(data: bytes) -> None:
    text = text_of(data)
    for tool, budget in (("bash", None), ("Read", 400)):
        found = synopsise(text, tool=tool, arguments={"path": text[:60]}, talk=text[-60:], budget_chars=budget)
        assert len(found.summary) <= 200
        assert "\n" not in found.summary
        assert budget is None or len(found.preview) <= budget
        assert 0 <= found.score <= 10


TARGETS = (
    Target(name="canvas", run=_canvas),
    Target(name="label", run=_label),
    Target(name="patch", run=_patch, made=(json_bytes(_PATCH_KEYS),)),
    Target(
        name="ref-file", run=_ref_file, made=(st.builds(_front_matter, json_bytes(("ref", "sha256")), st.binary()),)
    ),
    Target(name="times", run=_times),
    Target(name="reply", run=_reply, made=(json_bytes(_REPLY_KEYS, leaves=20),)),
    Target(name="citations", run=_citations),
    Target(name="expand", run=_expand, made=(st.builds(_question, _QUESTIONS, _RAW),), seconds=14.0),
    Target(name="synopsis", run=_synopsis, made=(json_bytes(),)),
)
"""`expand` has more time: `grep` stops after five seconds with a message."""
