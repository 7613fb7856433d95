"""When a list is compressed, how far, and when an edit of what was sent before pays.

A provider keeps what it has read of a prompt and reads the same beginning again at a fraction of the price. An edit
of an old message breaks that from there on: all behind it is read at the full price once. In return every call from
now on is shorter. So edits come in batches, and a batch has to be worth it:

    saves   removed x cached_price x (this call and those expected)
    costs   what stands behind the first edit and was sent before x (1 - cached_price)

How many calls are still to come nobody knows. Without `further_calls` as many are expected as there were: for a run
of unknown length the best single guess, and one that keeps the first batch from coming too early. A batch that only
just pays is better waited for, since the next calls bring more to remove behind the same break: hence `worth`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mcp_memory.core.errors import InvalidInput

__all__ = ["Rules", "make_rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Settings of a compression; shares are of `window`. Raises InvalidInput for what cannot be."""

    window: int
    """Tokens that the model can read, definitions and system prompt included."""
    mild: float = 0.5
    """Share from which old results and long arguments are put away, where that pays."""
    aggressive: float = 0.85
    """Share from which they are put away whether or not it pays, and then the oldest messages go."""
    emergency: float = 0.95
    """Share from which nothing but the newest messages is safe."""
    target: float = 0.6
    """Share that the two come down to."""
    canvas: float = 0.2
    """Share that what is told of messages that went may take at most."""
    cached_price: float = 0.1
    """What a token costs that the provider has read before; 1 where nothing is cached."""
    further_calls: int | None = None
    """How many calls are still to come; None: as many as there were."""
    worth: float = 4.0
    """How many times its cost a batch has to save."""
    keep_calls: int = 8
    """The newest calls of the model whose messages stay as they are."""
    result_tokens: int = 60
    """What stands for a result that was put away has at most so many."""
    call_tokens: int = 40
    """As `result_tokens`, for the arguments of a call."""

    def __post_init__(self) -> None:
        for name, least, most in _LIMITS:
            value = getattr(self, name)
            if name == "window" and not isinstance(value, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(f"window is {value!r}; it has to be a number of tokens.")
            if value is not None and not least <= value <= most:
                raise InvalidInput(f"{name} is {value}; it can be {least} to {most}.")
        if not self.mild <= self.aggressive <= self.emergency or self.target > self.aggressive:
            raise InvalidInput(
                f"mild ({self.mild}), aggressive ({self.aggressive}) and emergency ({self.emergency}) have to grow in "
                f"this order, and target ({self.target}) cannot be over aggressive."
            )

    def gain(self, *, removed: int, behind: int, calls: int) -> float:
        """Return what a batch saves beyond `worth` times its cost, in tokens at full price.

        `behind`: tokens that are read anew, `calls`: how many the model has made so far.
        """
        further = calls if self.further_calls is None else self.further_calls
        saves = removed * self.cached_price * (1 + further)
        return saves - self.worth * (1 - self.cached_price) * behind


_LIMITS: tuple[tuple[str, float, float], ...] = (
    ("window", 500, 100_000_000),
    ("mild", 0, 1),
    ("aggressive", 0, 1),
    ("emergency", 0, 1),
    ("target", 0.05, 1),
    ("canvas", 0, 0.5),
    ("cached_price", 0, 1),
    ("further_calls", 0, 1_000_000),
    ("worth", 1, 1_000),
    ("keep_calls", 1, 10_000),
    ("result_tokens", 40, 10_000),
    ("call_tokens", 40, 10_000),
)
assert {name for name, _, _ in _LIMITS} == {field.name for field in fields(Rules)}


def make_rules(window: int, given: Mapping[str, Any]) -> Rules:
    """Return rules with the given ones in place of the defaults. InvalidInput for a name that is none."""
    known = [field.name for field in fields(Rules) if field.name != "window"]
    for name, value in given.items():
        if name not in known:
            raise InvalidInput(f"There is no rule {name!r}. Known rules: {', '.join(known)}.")
        if not isinstance(value, int | float) and value is not None:
            raise InvalidInput(f"{name} is {value!r}; it has to be a number.")
    return Rules(window=window, **given)
