"""Progress callbacks of long operations."""

from __future__ import annotations

from collections.abc import Callable

ReportProgress = Callable[[str, int, int], None]
"""Takes the name of the operation, the steps done, and the total."""


def ignore_progress(doing: str, done: int, of: int, /) -> None: ...


def step_counter(doing: str, of: int, tell: ReportProgress) -> Callable[[int], None]:
    """Return a function that counts steps and reports the sum to `tell`, at most about a hundred times."""
    done = reported = 0

    def step(count: int) -> None:
        nonlocal done, reported
        done += count
        if done - reported >= of // 100 or done == of:
            reported = done
            tell(doing, done, of)

    return step
