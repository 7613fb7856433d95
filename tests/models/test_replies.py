"""A model's reply is read however it was dressed, or refused in words that can go back to the model."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel

from mcp_memory.core.errors import InvalidInput
from mcp_memory.models.llm import parse


class Atom(BaseModel):
    text: str
    turn: int
    tags: list[str] = []


class Atoms(BaseModel):
    atoms: list[Atom]


class Bare(RootModel[list[Atom]]):
    pass


ATOMS = st.builds(Atom, text=st.text(), turn=st.integers(), tags=st.lists(st.text(), max_size=3))
PROSE = st.text(st.characters(exclude_characters="[]{}<>"), max_size=60)


def with_trailing_commas(text: str) -> str:
    return re.sub(r'("(?:[^"\\]|\\.)*")|([\]}])', lambda found: found[1] or "\n, " + found[2], text)


def with_raw_controls(text: str) -> str:
    return re.sub(r"(?<!\\)((?:\\\\)*)\\n", "\\1\n", text)


@given(value=st.builds(Atoms, atoms=st.lists(ATOMS, min_size=1, max_size=4)), before=PROSE, after=PROSE, data=st.data())
def test_what_was_meant_is_read_however_it_is_dressed(
    value: Atoms, before: str, after: str, data: st.DataObject
) -> None:
    text = json.dumps(
        value.model_dump(), ensure_ascii=data.draw(st.booleans()), indent=data.draw(st.sampled_from([None, 2]))
    )
    if data.draw(st.booleans(), label="raw control characters"):
        text = with_raw_controls(text)
    if data.draw(st.booleans(), label="trailing commas"):
        text = with_trailing_commas(text).replace("{\n, }", "{}").replace("[\n, ]", "[]")
    if data.draw(st.booleans(), label="fence"):
        text = f"```json\n{text}\n```"
    if data.draw(st.booleans(), label="thoughts"):
        before = f"<think>perhaps {{}} or [1] or {{unclosed</think>{before}"
    assert parse(f"{before}\n{text}\n{after}", Atoms) == value


@given(st.text() | st.text(alphabet='[]{}",:\\ \n1a'))
def test_any_text_gives_the_shape_or_a_reason(text: str) -> None:
    for shape in (Atoms, Bare, Atom):
        try:
            read = parse(text, shape)
        except InvalidInput:
            continue
        assert isinstance(read, shape)


ONE, TWO = {"text": "keeps bees", "turn": 1}, {"text": "lives in Porto", "turn": 2}
BOTH = Atoms.model_validate({"atoms": [ONE, TWO]})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ONE, TWO]),
        f"{json.dumps(ONE)}\n{json.dumps(TWO)}",
        json.dumps({"result": {"atoms": [ONE, TWO]}}),
        json.dumps([{"atoms": [ONE, TWO]}]),
        f"First I thought {json.dumps({'atoms': [ONE]})}, but it is {json.dumps({'atoms': [ONE, TWO]})} [1]",
        f"- [ ] check\n{json.dumps({'atoms': [ONE, TWO]})}\n- [x] done, isn't it: [ ]",
        f'An unclosed [ and a "quote, then {json.dumps({"atoms": [ONE, TWO]})}',
    ],
)
def test_lists_objects_and_lines_are_told_apart(text: str) -> None:
    assert parse(text, Atoms) == BOTH


@pytest.mark.parametrize(
    "text", [json.dumps(ONE), json.dumps([ONE]), json.dumps({"atoms": ONE}), json.dumps({"atoms": [ONE]})]
)
def test_a_single_object_is_a_list_of_one(text: str) -> None:
    assert parse(text, Atoms) == Atoms.model_validate({"atoms": [ONE]})
    assert parse(text if "atoms" not in text else json.dumps(ONE), Bare) == Bare.model_validate([ONE])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "The reply holds no complete JSON value. Answer with the JSON alone, all of it."),
        ("I cannot help with that.", "The reply holds no complete JSON value. Answer with the JSON alone, all of it."),
        ('{"atoms": [{"text": "torn', "The reply holds no complete JSON value. Answer with the JSON alone, all of it."),
        (
            '{"atoms": [{"text": "a", "turn": "soon"}, {"turn": 2}]}',
            "The reply does not have the shape that was asked for (atoms.0.turn: Input should be a valid integer, "
            "unable to parse string as an integer; atoms.1.text: Field required).",
        ),
        ("x" * 1_000_001, "The reply has 1,000,001 characters; at most 1,000,000 are read."),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(text, Atoms)
    assert str(refused.value) == reason


def test_a_reply_nested_beyond_all_reason_is_refused() -> None:
    for text in ("[" * 50_000, "[" * 50_000 + "]" * 50_000, '{"a":' * 50_000 + "1" + "}" * 50_000):
        with pytest.raises(InvalidInput):
            parse(text, Atoms)
