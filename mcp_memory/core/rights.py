"""The three rights of an access token. Each includes the previous ones."""

from __future__ import annotations

from typing import Literal

Right = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = ("read", "write", "admin")


def includes(right: Right, needed: Right) -> bool:
    """Return whether `right` is at least `needed`."""
    return RIGHTS.index(needed) <= RIGHTS.index(right)
