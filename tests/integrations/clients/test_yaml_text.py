"""YAML as people write it, changed in place: what is not ours stays, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.clients.settings import add_settings, remove_settings
from mcp_memory.integrations.clients.yaml_text import BadYaml, read_yaml, rewrite_yaml

OURS: dict[str, Any] = {
    "mcp_servers": {"memory": {"command": "/opt/my memory/mcp-memory", "args": ["--space", "on", "serve"]}},
    "plugins": {"enabled": ["mcp-memory"]},
}
PEOPLE = """# my settings
model:
  default: anthropic/claude   # odd
  provider: "auto"

mcp_servers:
  other:
    command: npx
    args: ["-y", "@x/y"]
    # a note
plugins:
  enabled:
  - a
  - 'b # c'

terminal: {backend: local}
prompt: |
  text: here
  more
jobs:
  - name: x
    every: 1
"""


@pytest.mark.parametrize(
    "text",
    [
        PEOPLE,
        PEOPLE.replace("\n", "\r\n"),
        "",
        "# only a note\n\n",
        "---\nmodel: x\n",
        "mcp_servers:\n  other:\n    command: x\n",
    ],
)
def test_ours_is_added_and_leaves_no_trace(text: str) -> None:
    before = read_yaml(text)
    after = rewrite_yaml(text, add_settings(before, OURS))
    assert read_yaml(after) == add_settings(before, OURS)
    assert [line for line in text.splitlines(keepends=True) if line not in after.splitlines(keepends=True)] == []
    assert rewrite_yaml(after, remove_settings(read_yaml(after), OURS, before)) == text


def test_a_short_list_becomes_a_block() -> None:
    assert rewrite_yaml("plugins:\n  enabled: [x, 'y z']\n", {"plugins": {"enabled": ["x", "y z", "mcp-memory"]}}) == (
        'plugins:\n  enabled:\n    - x\n    - "y z"\n    - mcp-memory\n'
    )
    assert rewrite_yaml("plugins: {}\n", {"plugins": {"enabled": ["m"]}}) == "plugins:\n  enabled:\n    - m\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n- b\n", "line 1: a member with its name"),
        ("a: 1\n---\nb: 2\n", "more than one document"),
        ("a:\n\t- b\n", "a tab"),
        ("a: 1\nplain words\n", "line 2: a member with its name"),
    ],
)
def test_another_form_is_told(text: str, said: str) -> None:
    with pytest.raises(BadYaml, match=said):
        read_yaml(text)


@pytest.mark.parametrize("text", ["plugins: {enabled: [a]}\n", "plugins: &all\n  enabled: [a]\n", "plugins: !x y\n"])
def test_what_cannot_be_changed_in_place_is_refused(text: str) -> None:
    with pytest.raises(BadYaml, match="in place"):
        rewrite_yaml(text, {"plugins": {"enabled": ["a", "mcp-memory"]}})


keys = st.text(alphabet="abcXYZ_-", min_size=1, max_size=4).filter(lambda key: key[0] not in "-")
leaves = st.booleans() | st.integers(0, 99) | st.text(max_size=8).filter(lambda text: "\ud800" not in json.dumps(text))
values = st.recursive(
    leaves | st.lists(st.text(max_size=5), max_size=3), lambda inner: st.dictionaries(keys, inner, max_size=3)
)


@given(st.dictionaries(keys, values, max_size=4), st.dictionaries(keys, values, max_size=4))
def test_what_is_written_is_read(before: dict[str, Any], after: dict[str, Any]) -> None:
    text = rewrite_yaml("", before)
    assert read_yaml(text) == before
    assert read_yaml(rewrite_yaml(text, after)) == after
