"""Who may ask over HTTP: tokens as the store keeps them, and the three rights, each of which includes the ones before.

The secret of a token is nowhere in the store, only its SHA-256; it has 256 bits of chance, so nothing slower is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

__all__ = ["RIGHTS", "Right", "Token"]

Right = Literal["read", "write", "admin"]
RIGHTS: tuple[Right, ...] = ("read", "write", "admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token. `spaces` are those it opens, the first where its client names none; `used_at` is right to the hour."""

    id: str
    name: str
    spaces: tuple[str, ...]
    right: Right
    at: datetime
    until: datetime | None = None
    used_at: datetime | None = None
    revoked_at: datetime | None = None
    hash: bytes = field(repr=False)

    def is_good(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.until is None or now < self.until)
