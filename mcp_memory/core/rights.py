"""The three rights of an access token, each of which includes the ones before it."""

from __future__ import annotations

from typing import Literal

Right = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = ("read", "write", "admin")


def includes(right: Right, needed: Right) -> bool:
    """Return whether a right allows what needs another."""
    return RIGHTS.index(needed) <= RIGHTS.index(right)
