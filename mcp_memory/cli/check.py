"""The result of a check of `doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check. If `state` is not `ok`, `next_step` or `found` contains the next step."""

    name: str
    state: State
    found: str
    next_step: str | None = None
