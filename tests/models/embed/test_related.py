from __future__ import annotations

from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.models.embed.classifiers import RELATED_FILE, related_words


def test_related_words_come_nearest_first() -> None:
    found = related_words("camping")
    assert [word for word, _ in found[:2]] == ["campground", "tents"]
    assert [near for _, near in found] == sorted((near for _, near in found), reverse=True)
    assert all(0.39 < near <= 1 for _, near in found)


@given(st.text())
def test_a_word_that_the_vocabulary_lacks_has_none(text: str) -> None:
    assert "camping" not in [word for word, _ in related_words(text)] or text.isalpha()
    assert related_words(text + " ") == []


@pytest.mark.parametrize("text", ["", "camping\0", "campings" * 4, "zzzz", "~", "\ud800"])
def test_what_is_before_after_or_between_the_words_of_the_vocabulary_has_none(text: str) -> None:
    assert related_words(text) == []


def test_the_table_is_smaller_than_a_megabyte() -> None:
    folder = resources.files("mcp_memory.models.embed") / "model"
    assert sum(len((folder / name).read_bytes()) for name in (RELATED_FILE,)) < 1_000_000
