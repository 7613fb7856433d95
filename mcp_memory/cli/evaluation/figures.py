"""Figures and how far to trust them. Everything is seeded: the same answers give the same intervals.

Rates have Wilson's score interval, which means something at 0 and 100 too; a bootstrap of forty hits in forty
questions would claim to be certain. Means, medians and differences, taken question by question, have the
percentile bootstrap over questions. What the intervals do not know: that questions of one session share its
difficulties, so over few sessions they are too narrow.

numpy is loaded when a figure is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["LEAST_DIFFERING", "Figure", "Interval", "difference", "mean", "mean_interval", "median", "rate"]

Interval = tuple[float, float]

RESAMPLES = 4_000
LEAST_DIFFERING = 6  # of a handful of questions that differ, all on one side is chance still: 2 / 2 ** 5 > 5 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A value and its 95 % interval."""

    value: float
    ci95: Interval


def rate(hits: Sequence[bool]) -> Figure:
    """Return the share of hits, in per cent, with Wilson's interval."""
    count, share = len(hits), sum(hits) / len(hits)
    z = 1.96
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Figure(value=100 * share, ci95=(100 * min(low, share), 100 * max(high, share)))  # but for rounding


def mean(values: Sequence[float], *, least: float = 0.0, most: float = 100.0) -> Figure:
    """Return the mean of values that can be `least` to `most`.

    Where all are equal a bootstrap would claim to be certain: 3 of as many questions again may then differ, and
    by as much as can be (the rule of three).
    """
    import numpy as np

    data = np.asarray(values, dtype=np.float64)
    value = float(data.mean())
    if (data == data[0]).all():
        unseen = min(1.0, 3 / len(data))
        return Figure(value=value, ci95=(value - unseen * (value - least), value + unseen * (most - value)))
    return Figure(value=value, ci95=mean_interval(data))


def median(values: Sequence[float]) -> Figure:
    import numpy as np

    data = np.asarray(values, dtype=np.float64)
    return Figure(value=float(np.median(data)), ci95=_interval(np.median(_resampled(data, 0), axis=1)))


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Figure:
    """Return by how much ours, of 0 to 100 like theirs, is higher on average, question by question."""
    return mean([own - other for own, other in zip(ours, theirs, strict=True)], least=-100.0)


def mean_interval(values: NDArray[np.float64], *, seed: int = 0) -> Interval:
    """Return the 95 % percentile bootstrap interval of the mean of `values` (at least one, none NaN)."""
    return _interval(_resampled(values, seed).mean(axis=1))


def _resampled(values: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    import numpy as np

    return values[np.random.default_rng(seed).integers(len(values), size=(RESAMPLES, len(values)))]


def _interval(resampled: Any) -> Interval:
    import numpy as np

    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(low), float(high)
