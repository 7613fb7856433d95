"""Whatever is in a file, its format yields records, counts it or names a problem; it never raises."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.integrations.importers.format import AnyRecord
from mcp_memory.integrations.importers.format_table import table
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue
from tests.json_values import json_values

KEYS = st.sampled_from(
    [
        "id",
        "uuid",
        "role",
        "type",
        "content",
        "text",
        "parts",
        "messages",
        "message",
        "parent",
        "children",
        "timestamp",
        "mapping",
        "chat",
        "history",
        "info",
        "docs",
        "fragments",
        "recipient",
        "author",
        "name",
        "files",
        "output",
    ]
)
JSON_FORMATS = [name for name, form in table().items() if form.unit != "text"]
LOADED_FORMATS = [name for name, form in table().items() if form.unit in ("lines", "document") and form.load]
TEXT_FORMATS = [name for name, form in table().items() if form.unit == "text"]


def holder(name: str, value: Any) -> Any:
    """Return a value in an object that the format may take for a conversation."""
    chat: Any = {"history": {"messages": value, "currentId": "a"}}
    inside = ("mapping", "chat_messages", "messages", "fragments", "docs", "memory_files", "results", "entities")
    fields = dict.fromkeys(inside, value) | {"chat": chat, "conversationId": "c", "info": value}
    return value if table()[name].unit == "lines" else fields


@pytest.mark.parametrize("name", JSON_FORMATS)
@given(value=json_values(KEYS))
@settings(max_examples=25, deadline=None)
def test_no_json_is_too_strange_for_a_format(name: str, value: Any) -> None:
    for source in (value, holder(name, value), holder(name, {"a": {"message": value}}), holder(name, [value])):
        table()[name].matches(source)
        yielded = table()[name].records(SourceValue(source, "line 1"), SkippedParts())
        assert all(isinstance(record, get_args(AnyRecord)) for record in yielded)


@pytest.mark.parametrize("name", LOADED_FORMATS)
@given(lines=st.lists(json_values(KEYS), min_size=1, max_size=6))
@settings(max_examples=25, deadline=None)
def test_no_file_of_json_is_too_strange_for_a_format(
    name: str, lines: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    form = table()[name]
    assert form.load is not None
    path = tmp_path_factory.getbasetemp() / f"{name}.jsonl"
    texts = map(json.dumps, lines if form.unit == "lines" else lines[:1])
    path.write_text("\n".join(texts), encoding="utf-8")
    for loaded in form.load(path):
        if isinstance(loaded, SourceValue):
            yielded = form.records(loaded, SkippedParts())
            assert all(isinstance(record, get_args(AnyRecord)) for record in yielded)


@pytest.mark.parametrize("name", TEXT_FORMATS)
@given(text=st.text(st.sampled_from("# >-*`[]/\n aider chat started at 2026-01-14 20:03:11"), max_size=300))
@settings(max_examples=25, deadline=None)
def test_no_text_is_too_strange_for_a_format(name: str, text: str) -> None:
    table()[name].matches(text)
    yielded = table()[name].records(SourceValue(text, "a.md"), SkippedParts())
    assert all(isinstance(record, get_args(AnyRecord)) for record in yielded)
