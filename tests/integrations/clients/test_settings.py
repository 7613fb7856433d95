"""Trees of settings in a configuration: added, found, and removed without a trace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.integrations.clients.settings import (
    WrongShape,
    add_settings,
    has_settings,
    remove_settings,
    tree_at,
    value_at,
    with_value,
)

names = st.sampled_from(["plugins", "entries", "allow", "a"])
words = st.sampled_from(["x", "y", "mcp-memory"])
documents = st.recursive(
    st.none() | st.booleans() | words | st.lists(words, unique=True, max_size=3),
    lambda inner: st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
).map(lambda value: value if isinstance(value, dict) else {})
OURS = {"plugins": {"entries": {"mcp-memory": {"enabled": True}}, "allow": ["mcp-memory"]}}


@given(documents)
def test_what_was_added_is_found_and_added_once_unless_another_type_is_there(document: dict[str, Any]) -> None:
    fits = all(
        value_at(document, path) is None or isinstance(value_at(document, path), type(value_at(OURS, path)))
        for path in ("plugins", "plugins.entries", "plugins.allow", "plugins.entries.mcp-memory")
    )
    if not fits:
        with pytest.raises(WrongShape, match=r"^plugins\S* is .* where an? (object|list) belongs$"):
            add_settings(document, OURS)
        return
    after = add_settings(document, OURS)
    assert has_settings(after, OURS)
    assert add_settings(after, OURS) == after


@given(st.dictionaries(st.sampled_from(["a", "model"]), words), st.lists(words, unique=True), st.booleans())
def test_removing_gives_the_document_before(others: dict[str, Any], allow: list[str], has_entries: bool) -> None:
    plugins: dict[str, Any] = {"allow": allow, **({"entries": {"x": {"enabled": True}}} if has_entries else {})}
    documents: list[dict[str, Any]] = [others, {**others, "plugins": plugins}, {**others, "plugins": {}}]
    for document in documents:
        assert remove_settings(add_settings(document, OURS), OURS, document) == document


def test_what_others_added_meanwhile_stays() -> None:
    now = add_settings({}, OURS)
    now["plugins"]["entries"]["x"] = {"enabled": True}
    assert remove_settings(now, OURS, {}) == {"plugins": {"entries": {"x": {"enabled": True}}}}


def test_a_value_is_put_at_a_path() -> None:
    assert with_value({"mcp": {"a": 1}, "b": 2}, "mcp.servers.memory", 3) == {
        "mcp": {"a": 1, "servers": {"memory": 3}},
        "b": 2,
    }
    assert value_at(tree_at("a.b.c", 1), "a.b.c") == 1
    assert value_at({"a": [1]}, "a.b") is None
