"""A long text is searched part by part, and the parts together find what one search of the whole finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.core.secrets.detection import find_in_parts, find_secrets

LINES = st.sampled_from(
    [
        "12:00:01 INFO request 17 handled in 4 ms",
        "",
        "password = hunter2-and-more",
        'api_key: "sk-proj-' + "aB3" * 16 + '"',
        "Authorization: Bearer " + "ghp_" + "x9Y" * 12,
        "DATABASE_URL=postgres://app:s3cr3t-pass@db/app",
        "a long line without any secret " * 3,
    ]
)


@given(lines=st.lists(LINES, max_size=40), part=st.integers(60, 400))
@settings(max_examples=60, deadline=None)
def test_parts_find_what_the_whole_finds(lines: list[str], part: int) -> None:
    text = "\n".join(lines)
    assert find_in_parts(text, prose=False, part=part, margin=300) == find_secrets(text, prose=False)


def test_a_text_without_line_breaks_is_searched_in_parts_too() -> None:
    text = "x " * 300 + "password=hunter2-and-more " + "y " * 300
    for part in range(100, 700, 37):
        assert find_in_parts(text, prose=False, part=part, margin=100) == find_secrets(text, prose=False)
