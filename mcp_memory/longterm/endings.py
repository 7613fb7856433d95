"""What ended since a page was written: statements that held then and hold no longer, and what holds in their place."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from mcp_memory.core.types import Atom
from mcp_memory.store.protocol import Store

__all__ = ["ended", "is_joined"]


def ended(store: Store, space: str, ids: Iterable[str], *, after: datetime | int) -> list[tuple[Atom, Atom | None]]:
    """Return those of the atoms that ended after a moment, each with the one that holds in its place.

    `after` may be the number of the last atom that was there, which is exact where moments are equal.
    """
    found: list[tuple[Atom, Atom | None]] = []
    for atom in store.atoms(space, ids):
        newer = _next(store, space, atom)
        if atom.valid_to is not None and _is_since(atom, atom.valid_to, newer, after):
            while newer is not None and newer.valid_to is not None:
                newer = _next(store, space, newer)
            found.append((atom, newer))
    return found


def is_joined(old: Atom, newer: Atom | None) -> bool:
    """Tell whether an atom ended because the newer one says the same and more: that rests on all of its words too.

    Then nothing in life has ended, and nobody should read that it did.
    """
    return newer is not None and _grounds(old) <= _grounds(newer)


def _grounds(atom: Atom) -> set[tuple[str, tuple[int, int]]]:
    return {(atom.evidence, atom.span), *((one.turn, one.span) for one in atom.also)}


def _is_since(atom: Atom, end: datetime, newer: Atom | None, after: datetime | int) -> bool:
    if isinstance(after, int):  # where nothing superseded it, its end was known from the start
        return atom.superseded_by is not None and int(atom.superseded_by[1:]) > after
    if atom.learned_at > after:  # a page that names what was learned after it came from elsewhere, with all of it
        return end > after
    return (newer.learned_at if newer else end) > after


def _next(store: Store, space: str, atom: Atom) -> Atom | None:
    return next(iter(store.atoms(space, [atom.superseded_by])), None) if atom.superseded_by else None
