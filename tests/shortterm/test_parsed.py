"""Values of YAML in tool results are those of PyYAML; text whose values cannot be bounded is not parsed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.shortterm.synopsis.parsed import YAML_LOADER, parse
from tests.json_values import json_values

LINES = (
    *("a: 1", "b:", "- x", "- y: 2", "  - z", "  k: v", "---", "...", "? [1]", "!!str s", "# c", "null", "'q': \"w\""),
    *("e: |\n  text", "{a: b, c: [1]}", "a: 2", "c: &x {p: 1}", "- &x [1, 2]", "d: *x", "<<: *x", "- *x", "k: &x q"),
)


def of_pyyaml(text: str) -> Any:
    """Return the value by PyYAML's own constructor, None if it is no object or list, or a text that it refuses."""
    try:
        documents = list(yaml.load_all(text, Loader=YAML_LOADER))
    except yaml.YAMLError:
        return None
    if not documents or not all(isinstance(document, (dict, list)) for document in documents):
        return None
    return documents[0] if len(documents) == 1 else documents


@given(st.dictionaries(st.text("abc", min_size=1), json_values(st.text("xyz", min_size=1)), min_size=3))
def test_a_document_has_the_values_of_pyyaml(value: dict[str, Any]) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    parsed = parse(text)
    if parsed is not None and parsed.kind == "yaml":
        assert parsed.value == of_pyyaml(text)


@given(st.lists(st.sampled_from(LINES), min_size=3, max_size=8))
def test_anchors_aliases_and_several_documents_are_read_as_pyyaml_reads_them(lines: list[str]) -> None:
    text = "\n".join(lines)
    parsed, expected = parse(text), of_pyyaml(text)
    if parsed is not None and parsed.kind == "yaml":
        assert parsed.value == expected


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]\nb: 1\nc: 2\n",
        "a: &a 1\nb: &a 2\nc: 3\n",
        "a: *missing\nb: 1\nc: 2\n",
        "b: 1\n? [1, 2]\n: x\nc: 2\n",
        "a: &a [x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{key}: &{key} [{', '.join([f'*{before}'] * 9)}]\n" for before, key in zip("abcd", "bcde", strict=True)
        ),
        "a: 1\nb: 2\nc: " + "[" * 300 + "]" * 300,
    ],
)
def test_yaml_with_values_that_cannot_be_built_or_grow_without_bound_is_not_parsed(text: str) -> None:
    assert parse(text) is None
