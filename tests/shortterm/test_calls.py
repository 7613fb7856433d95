"""A tool call in words: what its line, title and summary say, and what they never say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.shortterm.calls import call_line, summary_line, title_of

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["command", "path", "url", "query", "x", ""]), inner)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("tool", "arguments", "title"),
    [
        ("bash", {"command": "pytest tests/test_login.py"}, "pytest tests/test_login.py"),
        ("Bash", {"command": "cd /repo && CI=1 timeout 60 pytest -x\necho done"}, "pytest -x"),
        ("Bash", {"command": ["bash", "-lc", "ls -la src"]}, "ls -la src"),
        ("Bash", {"command": "cd /repo"}, "cd /repo"),
        ("Read", {"file_path": "src/app.py", "limit": 40}, "Read src/app.py"),
        ("Read", {"path": f"/home/me/{'deep/' * 20}app.py"}, f"Read …/{'deep/' * 7}app.py"),
        ("Grep", {"pattern": "def login", "path": "src"}, 'Grep "def login" in src'),
        ("WebFetch", {"url": "https://www.example.org/docs/?key=1#top"}, "GET example.org/docs"),
        ("http", {"method": "post", "url": "https://me:pw@example.org/login"}, "POST example.org/login"),
        ("mcp__github__search_issues", {"query": "login fails"}, 'search_issues "login fails"'),
        ("list_tasks", {}, "list_tasks"),
        ("list_tasks", None, "list_tasks"),
        ("run", "all of it", "run all of it"),
        ("wait", {"seconds": 5}, "wait 5"),
    ],
)
def test_a_title_is_short_and_telling(tool: str, arguments: Any, title: str) -> None:
    assert title_of(tool, arguments) == title


def test_a_line_has_the_tool_then_what_tells_first() -> None:
    arguments = {"limit": 40, "file_path": "src/app.py", "content": "x" * 500, "dry": True, "nothing": None, "deep": {}}
    line = f"Read file_path=src/app.py limit=40 content={'x' * 99}… dry=True"
    assert call_line("Read", arguments) == line[:149] + "…"


@given(st.text(max_size=200), json_values)
def test_lines_and_titles_keep_their_limits_for_any_call(tool: str, arguments: Any) -> None:
    line, title = call_line(tool, arguments), title_of(tool, arguments)
    assert len(line) <= 150
    assert len(title) <= 80
    assert line.partition(" ")[0]
    assert title
    assert not {"\n", "\x00"} & {*line, *title}
    (line + title).encode()


def test_a_summary_is_one_line_of_at_most_200_characters() -> None:
    assert summary_line(" two\n lines\x00 ") == "two lines"
    assert summary_line("x" * 300) == "x" * 199 + "…"
