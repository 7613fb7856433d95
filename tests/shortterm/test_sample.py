"""What a model is shown of a raw result."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.shortterm.summary_stage import sample

KEY = "ghp_" + "a1B2" * 9


def test_a_short_result_is_shown_whole() -> None:
    shown = sample(b"one\ntwo\n", tool="Read", chars=100)
    assert (shown.text, shown.whole) == ("one\ntwo", True)


def test_a_long_one_by_what_is_found_in_it_its_beginning_its_middle_and_its_end() -> None:
    lines = [f"2026-05-07 10:00:00 INFO line {number} is quiet" for number in range(1, 1001)]
    lines[699] = "2026-05-07 10:00:00 ERROR worker 9 lost its lease"
    shown = sample("\n".join(lines).encode(), tool="Read", chars=1_000)
    assert not shown.whole
    assert shown.text.startswith("[found in it]\n")
    assert "700" in shown.text
    assert "worker 9 lost its lease" in shown.text
    assert "[beginning]\n2026-05-07 10:00:00 INFO line 1 is quiet\n" in shown.text
    assert "[middle, line " in shown.text
    assert shown.text.endswith("line 1000 is quiet")


def test_what_is_found_has_to_do_with_the_task() -> None:
    lines = [f"def helper_{number}(value): return value + {number}" for number in range(300)]
    lines[155] = "def sailing_key(route): return route"
    shown = sample("\n".join(lines).encode(), tool="Read", chars=1_000, task="Why is the sailing key there twice?")
    assert "sailing_key" in shown.text


def test_long_lines_are_cut_where_all_of_them_can_be_shown_then() -> None:
    pages = "\n".join(f"hit {number}: {'word ' * 500}" for number in range(5))
    shown = sample(pages.encode(), tool="Read", chars=2_400)
    assert [line[:5] for line in shown.text.splitlines()] == ["[all ", "hit 0", "hit 1", "hit 2", "hit 3", "hit 4"]
    assert not shown.whole


@given(st.binary(max_size=3_000) | st.text(max_size=3_000).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_whatever_a_result_is_its_sample_is_text_of_bounded_size(data: bytes) -> None:
    shown = sample(data, tool="Read", chars=400)
    shown.text.encode()
    assert len(shown.text) <= 800


@given(st.integers(0, 4_000), st.integers(0, 4_000))
def test_no_part_of_a_secret_is_shown_wherever_it_stands(before: int, after: int) -> None:
    shown = sample(f"{'x ' * before}{KEY}{' y' * after}".encode(), tool="Read", chars=400)
    assert KEY[:12] not in shown.text
    assert KEY[-12:] not in shown.text


@pytest.mark.slow
def test_ten_megabytes_on_one_line_are_no_trouble() -> None:
    assert len(sample(b"error " * 1_700_000, tool="Read", chars=2_400).text) < 3_500
