"""How far long work is: what does the work tells it, and whoever started the work shows it."""

from __future__ import annotations

from collections.abc import Callable

Tell = Callable[[str, int, int], None]
"""Takes what is being done, how far it is, and of how much."""


def untold(doing: str, done: int, of: int, /) -> None:
    """Show nothing."""


def counting(doing: str, of: int, tell: Tell) -> Callable[[int], None]:
    """Return a function that counts steps, and tells it some hundred times."""
    done = told = 0

    def step(count: int) -> None:
        nonlocal done, told
        done += count
        if done - told >= of // 100 or done == of:
            told = done
            tell(doing, done, of)

    return step
