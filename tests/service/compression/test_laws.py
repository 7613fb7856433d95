"""What holds for every list, window and form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.service.compression import message_lists as edges
from mcp_memory.service.compression.message_lists import units
from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.store import open_store
from tests.service.compression.conftest import Program
from tests.service.compression.lists import Messages, Talk, forms, talks

Form = Callable[[Talk], Messages]
NewProgram = Callable[[], Program]
windows = st.sampled_from([500, 900, 2_000, 6_000])
few = settings(max_examples=10)


def copy(messages: Messages) -> Messages:
    return json.loads(json.dumps(messages))


@pytest.mark.slow
@few
@given(talk=talks, form=forms, window=windows)
def test_the_same_list_gives_the_same_list_and_so_does_what_came_out(
    new_program: NewProgram, talk: Talk, form: Form, window: int
) -> None:
    messages, program = form(talk), new_program()
    first = program.compress(copy(messages), window)
    again = program.compress(copy(messages), window)
    assert (again.messages, again.edits) == (first.messages, 0)
    assert program.compress(copy(first.messages), window).messages == first.messages
    assert messages == form(talk)


@settings(max_examples=6)
@given(talk=talks, form=forms, window=windows)
def test_from_call_to_call_a_list_only_grows_unless_edited_and_may_come_whole_or_as_it_went_out(
    talk: Talk, form: Form, window: int
) -> None:
    messages = form(talk)
    with new_store() as one, new_store() as other:  # of their own: turns are numbered through all spaces of a store
        whole, grown = Program(one), Program(other)
        held: Messages = []
        taken = 0
        for end in ends(messages):
            done = whole.compress(copy(messages[:end]), window)
            if not done.edits:
                assert done.messages[: len(held)] == held
            held = grown.compress(copy(held + messages[taken:end]), window).messages
            taken = end
            assert held == done.messages


@contextmanager
def new_store() -> Iterator[Store]:
    with TemporaryDirectory() as folder, closing(open_store(Path(folder))) as store:
        yield store


@few
@given(talk=talks, form=forms, window=windows)
def test_pairs_stay_together_nothing_is_lost_and_what_is_said_to_fit_does(
    new_program: NewProgram, talk: Talk, form: Form, window: int
) -> None:
    messages, program = form(talk), new_program()
    done = program.compress(copy(messages), window)
    after = edges.read(done.messages)
    for unit in units(after):
        parts = [part for at in unit for part in after[at].parts]
        calls = [part.call_id for part in parts if part.kind == "call"]
        assert [part.call_id for part in parts if part.kind == "result"] == calls
        assert not calls or after[unit.start].role == "assistant"
    there = "\n".join(part.text for message in after for part in message.parts)
    stored = program.stored()
    assert all(part.text in there or part.text in stored for one in edges.read(messages) for part in one.parts)
    assert (done.fits, done.note is None) == (done.tokens <= window, done.tokens <= window)
    assert [m for m in done.messages if m["role"] == "system"] == [m for m in messages if m["role"] == "system"]
    assert sorted(place for places in done.places for place in places) == list(range(len(messages)))
    if done.tokens_before < 0.5 * window:
        assert (done.level, done.edits, done.messages) == ("none", 0, messages)


def ends(messages: Messages) -> list[int]:
    """Where a call of the model comes next: before each of its messages, and at the end."""
    return [*(at for at, message in enumerate(messages) if at and message["role"] == "assistant"), len(messages)]


@pytest.mark.parametrize("text", ["\ud800 alone", "\x00", "a" * 50_000])
def test_odd_texts_are_put_away_too(program: Program, text: str) -> None:
    said = [{"role": "assistant", "content": f"{n} {text} " + "word " * 300} for n in range(6)]
    messages = [{"role": "user", "content": "Go."}, *said]
    assert program.compress(messages, 1_000).fits
    assert all(one["content"] in program.stored() for one in said[:-1])
