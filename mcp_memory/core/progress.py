"""How far long work is: what does the work tells it, and whoever started the work shows it."""

from __future__ import annotations

from collections.abc import Callable

ReportProgress = Callable[[str, int, int], None]
"""Takes what is being done, how far it is, and of how much."""


def ignore_progress(doing: str, done: int, of: int, /) -> None:
    """Show nothing."""


def step_counter(doing: str, of: int, tell: ReportProgress) -> Callable[[int], None]:
    """Return a function that counts steps, and tells it some hundred times."""
    done = reported = 0

    def step(count: int) -> None:
        nonlocal done, reported
        done += count
        if done - reported >= of // 100 or done == of:
            reported = done
            tell(doing, done, of)

    return step
