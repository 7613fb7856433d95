"""Intervals that mean something, at the edges too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.cli.evaluation.report import Figure, difference, mean, mean_interval, median, rate

PERCENT = st.lists(st.floats(0, 100), min_size=1, max_size=60)


def test_a_rate_has_wilsons_interval() -> None:
    found = rate([True] * 30 + [False] * 10)
    assert found == Figure(value=75.0, ci95=(pytest.approx(59.81, abs=0.01), pytest.approx(85.81, abs=0.01)))


def test_forty_hits_in_forty_questions_are_not_certainty() -> None:
    assert rate([True] * 40).ci95 == (pytest.approx(91.24, abs=0.01), 100.0)
    assert rate([False] * 40).ci95 == (0.0, pytest.approx(8.76, abs=0.01))
    assert mean([100.0] * 40) == Figure(value=100.0, ci95=(92.5, 100.0))
    assert difference([50.0] * 40, [50.0] * 40) == Figure(value=0.0, ci95=(-7.5, 7.5))


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_a_rate_lies_in_its_interval_and_that_in_0_to_100(hits: list[bool]) -> None:
    low, high = rate(hits).ci95
    assert 0 <= low <= rate(hits).value <= high <= 100 + 1e-9


@given(PERCENT)
def test_a_mean_lies_in_its_interval(values: list[float]) -> None:
    found = mean(values)
    low, high = found.ci95
    assert -1e-9 <= low <= found.value + 1e-9
    assert found.value - 1e-9 <= high <= 100 + 1e-9


@given(PERCENT)
def test_a_difference_turns_its_sign_with_its_sides(values: list[float]) -> None:
    others = values[::-1]
    assert difference(values, others).value == pytest.approx(-difference(others, values).value)


def test_a_median_has_an_interval_around_it() -> None:
    found = median([float(value) for value in range(101)])
    assert found.value == 50
    assert 30 < found.ci95[0] < 50 < found.ci95[1] < 70


def test_the_same_answers_give_the_same_interval() -> None:
    values = np.random.default_rng(7).uniform(0, 100, 40)
    assert mean_interval(values) == mean_interval(values.copy())
