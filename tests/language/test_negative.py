"""Whether a sentence denies something."""

from __future__ import annotations

import pytest

from mcp_memory.language.sentences import is_negative


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        ("A few weren't able to handle it.", True),
        ("They couldn't come.", True),
        ("不过我对中国菜也很感兴趣。", False),
        ("我特别喜欢别人的画。", False),
        ("我不喜欢。", True),
        ("我不同意。", True),
        ("我不得不去。", False),
        ("别用表格。", True),
    ],
)
def test_what_denies_is_told_from_words_that_look_like_it(text: str, negative: bool) -> None:
    assert is_negative(text) is negative
