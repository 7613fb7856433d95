"""Positions of hints in a text. A hint is a string, in lower case, one of which each secret has near it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Places = Mapping[str, Sequence[int]]
"""Positions of the hints in a text, in order; missing hints have no entry."""


def places_of(hints: frozenset[str], places: Places) -> list[int]:
    """Return the positions of any of the hints, in order, each once."""
    return sorted({place for hint in hints.intersection(places) for place in places[hint]})
