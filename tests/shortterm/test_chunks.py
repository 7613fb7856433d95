"""Runs of lines: where a text parts, what of it is indexed, and that a kill costs one batch."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import Ref
from mcp_memory.shortterm import chunks
from mcp_memory.shortterm.offload import OffloadRequest, keep
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import ref_rows, tombstone_rows, word_index
from mcp_memory.store.values import Filters
from tests.shortterm.agent import Agent

LINES = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.sampled_from(["", "  ", "}", "def f():", "    return 1", "12:\tx = 2", "| a | b |", "x" * 4000]),
        st.integers(1, 3000).map(lambda n: '{"k": 1},' * (n // 9)),
    ),
    max_size=60,
)
TEXTS = st.builds("\n".join, LINES)


@given(TEXTS)
def test_runs_are_all_of_the_text_in_order_with_the_numbers_of_its_lines(text: str) -> None:
    found = list(chunks.runs(text))
    assert "".join(text[run.start : run.end] for run in found) == text
    for run in found:
        assert run.lines[0] == text.count("\n", 0, run.start) + 1
        assert run.lines[1] == text.count("\n", 0, run.end - 1) + 1
        assert 0 < run.end - run.start <= 2 * 1_200


def test_a_run_begins_where_a_block_begins() -> None:
    body = "\n".join(f"    value_{i} = compute({i})" for i in range(40))
    text = "\n\n".join(f"def step_{i}():\n{body}" for i in range(6))
    starts = [text[run.start : run.end].lstrip("\n").partition("\n")[0] for run in chunks.runs(text)]
    assert starts == [f"def step_{i}():" for i in range(6)]


def test_numbers_in_front_of_lines_are_no_indentation() -> None:
    block = [f"    value_{i} = compute({i})" for i in range(40)]
    lines = [line for i in range(5) for line in ("", f"def step_{i}():", *block)]
    text = "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, start=1))
    first = [text[run.start : run.end].partition("\n")[0].partition("\t")[2] for run in chunks.runs(text)]
    assert first == ["", *(f"def step_{i}():" for i in range(1, 5))]


def test_records_on_one_line_are_cut_between_each_other() -> None:
    text = "[" + ",".join(f'{{"id": {i}, "name": "row {i}"}}' for i in range(400)) + "]"
    found = [text[run.start : run.end] for run in chunks.runs(text)]
    assert len(found) > 5
    assert all(part.startswith('{"id"') for part in found[1:])


def test_a_large_text_has_no_more_runs_than_the_bound_and_a_larger_one_only_its_ends() -> None:
    line = "2026-04-16 22:19:53 INFO worker-1 took a request and answered it\n"
    some = list(chunks.runs(line * 60_000))
    assert 1_500 < len(some) < 2_500
    text = line * 140_000
    ends = list(chunks.runs(text))
    assert len(ends) < 2_500
    assert ends[0].start == 0
    assert ends[-1].end == len(text)
    assert ends[-1].lines[1] == 140_000
    assert sum(run.end - run.start for run in ends) < 9 * 2**20


def rows(store: Store, ref: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    last = store.totals("default", "chunk").newest
    return [
        (one.lines, one.span)
        for one, _ in store.read("default", word_index.chunks_by_id, [f"c{n}" for n in range(1, last + 1)])
        if one.ref == ref
    ]


TEXT = "".join(f"2026-04-16 22:19:{i % 60:02} INFO request of müller {i}\n" for i in range(4_000))


def test_what_was_stopped_in_the_middle_goes_on_where_it_was(agent: Agent) -> None:
    once, again = agent.offload(TEXT).ref, agent.offload(TEXT + "!").ref
    chunks.index(agent.store, "default", once, TEXT.encode())
    stops = 0

    def stop() -> bool:
        nonlocal stops
        stops += 1
        return False

    while chunks.index_next(agent.store, {}, "default", stop):
        pass
    assert stops == 2
    assert agent.store.index_progress().unindexed_refs == 0
    assert rows(agent.store, again)[:-1] == rows(agent.store, once)[:-1]


def waiting(agent: Agent, result: str | bytes) -> Ref:
    """Keep a result that waits for its index."""
    request = OffloadRequest(tool_name="Read", result=result, session=agent.session)
    return keep(agent.store, agent.space, request=request, now=agent.now)


def test_a_result_that_cannot_be_read_is_passed_over(agent: Agent) -> None:
    lost, other = waiting(agent, "one\n" * 500), waiting(agent, "two\n" * 500)
    (agent.store.folder("default") / lost.path).unlink()
    passing: dict[str, set[str]] = {}
    while chunks.index_next(agent.store, passing, "default", lambda: True):
        pass
    assert passing == {"default": {lost.id}}
    assert {one.ref for one, _ in agent.store.read("default", word_index.chunks_by_id, ["c1", "c2", "c3"])} == {
        other.id
    }


def test_a_result_forgotten_while_it_was_to_be_read_is_indexed_when_it_comes_back(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref, read = waiting(agent, "one\n" * 500).id, agent.store.read
    gone: list[str] = []

    def late(space: str, work: Any, *args: Any, **kwargs: Any) -> Any:
        if work is ref_rows.read_bytes and not gone:
            gone.append(agent.store.write(space, tombstone_rows.forget, [*args], reason="", now=agent.now).id)
        return read(space, work, *args, **kwargs)

    monkeypatch.setattr(agent.store, "read", late)
    passing: dict[str, set[str]] = {}
    assert chunks.index_next(agent.store, passing, "default", lambda: True)
    assert not chunks.index_next(agent.store, passing, "default", lambda: True)
    agent.store.write("default", tombstone_rows.undo, gone[0], now=agent.now)
    while chunks.index_next(agent.store, passing, "default", lambda: True):
        pass
    assert agent.store.index_progress().unindexed_refs == 0
    assert rows(agent.store, ref)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe" * 900, b"\x89PNG\r\n" + bytes(range(256))])
def test_what_is_no_text_has_no_lines_and_does_not_wait(agent: Agent, data: bytes) -> None:
    ref = waiting(agent, data or b"x").id
    chunks.index(agent.store, "default", ref, data)
    assert (agent.store.index_progress().unindexed_refs, rows(agent.store, ref)) == (0, [])


def test_secrets_are_masked_in_what_is_indexed_also_where_they_began_in_another_run(agent: Agent) -> None:
    body = "\n".join(["MIIEowIBAAKCAQEAq7BFUpkGp3LQmlQYx2eqzDV2xHxGnDlYUXa80DeX3mZsOYXH"] * 60)
    text = (
        f"token: ghp_abcdefghijklmnop12345678\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
    )
    ref = agent.offload(text, keep_secrets=True).ref
    chunks.index(agent.store, "default", ref, text.encode())
    assert len(rows(agent.store, ref)) > 2
    for term in ("ghpabcdefghijklmnop12345678", body[:64].lower(), "miieowibaakcaqeaq"):
        assert agent.store.postings("default", "chunk", [term], filters=Filters()) == []
    assert agent.store.postings("default", "chunk", ["token"], filters=Filters())
