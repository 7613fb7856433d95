"""Bootstrap intervals (those of the package) and percentiles of timings.

Everything is seeded: the same answers give the same intervals. The intervals ignore that questions of one haystack are
not independent, so over few haystacks (LoCoMo's split has three) they are too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcp_memory.cli.evaluation.report import rate

Floats = NDArray[np.float64]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the `share` percentile (0 to 100) by linear interpolation."""
    return float(np.percentile(values, share))


def timings_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile in milliseconds."""
    return {"p50": round(1_000 * percentile(seconds, 50), 2), "p95": round(1_000 * percentile(seconds, 95), 2)}


def share(hits: Sequence[bool]) -> dict[str, Any] | None:
    """Return `{"n", "percent", "ci95"}` with Wilson's interval; None for an empty sequence."""
    if not hits:
        return None
    figure = rate(hits)
    return {"n": len(hits), "percent": round(figure.value, 1), "ci95": [round(end, 1) for end in figure.ci95]}


def shown(one: dict[str, Any] | None) -> str:
    """Return a share as a table cell: `92.7 [88.8, 96.2]`."""
    return "–" if one is None else "{percent:.1f} [{ci95[0]:.1f}, {ci95[1]:.1f}]".format(**one)
