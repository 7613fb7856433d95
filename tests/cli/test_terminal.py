"""Text for terminals: nothing acts on the terminal, columns stand under each other, JSON says the same."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.cli.terminal import WIDTH, columns, escape_controls, json_text, one_line, scene_block, wrap
from mcp_memory.core.types import Scene

anything = st.text(st.characters())


def columns_of(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else not unicodedata.combining(c) for c in line)


@given(anything)
def test_what_is_visible_cannot_act_on_a_terminal(text: str) -> None:
    shown = escape_controls(text)
    assert {c for c in shown if unicodedata.category(c) in ("Cc", "Cs")} <= {"\n", "\t"}
    assert escape_controls(shown) == shown


@given(anything, st.integers(2, 60))
def test_a_line_never_exceeds_its_columns(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert columns_of(line) <= limit
    assert "\n" not in line


@pytest.mark.parametrize("first", ["ascii", "牙医", "e\u0301te\u0301", click.style("red", fg="red")])
def test_the_second_column_starts_under_itself(first: str) -> None:
    top, bottom = columns([(first, "x"), ("0123456789", "x")]).split("\n")
    shown = click.unstyle(top)
    wide = sum(1 for c in shown if unicodedata.east_asian_width(c) == "W")
    narrow = sum(1 for c in shown if unicodedata.combining(c))
    assert len(shown) + wide - narrow == len(bottom)


def test_rows_may_differ_in_length() -> None:
    assert columns([("a", "b", "c"), ("long",), ()]) == "a     b  c\nlong\n"


@given(st.text(st.characters() | st.sampled_from("a \n牙医\u0301"), max_size=400))
def test_wrapping_keeps_every_word_within_the_width(text: str) -> None:
    lines = wrap(text, " | ").split("\n")
    assert all(columns_of(line) <= WIDTH for line in lines)
    assert "".join("".join(line[3:] for line in lines).split()) == "".join(escape_controls(text).split())


def test_wrapping_keeps_what_fits_as_it_is() -> None:
    assert wrap("def f():\n    return 1\n", "  ") == "  def f():\n      return 1\n"


@dataclass(frozen=True, slots=True)
class Named:
    name: str
    at: datetime


@given(anything)
def test_json_keeps_every_text_and_is_ascii(text: str) -> None:
    at = datetime(2026, 10, 25, 2, 30, tzinfo=UTC)
    told = json_text({"found": [Named(text, at)]})
    assert told.isascii()
    assert json.loads(told) == {"found": [{"name": text, "at": "2026-10-25T02:30:00+00:00"}]}


def test_a_scene_is_its_name_and_day_and_what_it_is_about() -> None:
    moment = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    scene = Scene(
        slug="garden",
        title="The \x1b[2Jgarden",
        summary="Roses and a hedge.",
        body="",
        heat=3,
        atoms=(),
        entities=(),
        version=1,
        action="create",
        reason="",
        created=moment,
        updated=moment,
    )
    assert click.unstyle(scene_block(scene)) == "  garden  2026-11-20  The \\x1b[2Jgarden\n    Roses and a hedge."
