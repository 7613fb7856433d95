"""The four rights of an access token. Each includes the previous ones.

The first three are about the spaces of the token. An operator administers the whole store: its spaces and tokens.
"""

from __future__ import annotations

from typing import Literal

Right = Literal["read", "write", "admin", "operator"]
RIGHTS: tuple[Right, ...] = ("read", "write", "admin", "operator")
OF_SPACES: tuple[Right, ...] = RIGHTS[:3]


def includes(right: Right, needed: Right) -> bool:
    """Return whether `right` is at least `needed`."""
    return RIGHTS.index(needed) <= RIGHTS.index(right)
