"""Positions of strings in a text are those that a search for each of them finds, overlapping ones too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.substrings import place_finder


@given(st.sets(st.text("abé密", min_size=1, max_size=4), min_size=1), st.text("abcé密😀\ud800"))
def test_every_place_of_every_string_is_found(strings: set[str], text: str) -> None:
    places = {string: [at for at in range(len(text)) if text.startswith(string, at)] for string in strings}
    assert place_finder(strings)(text) == {string: found for string, found in places.items() if found}
