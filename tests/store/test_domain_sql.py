"""Domain SQL names the space: in every join, and in every statement on rows of a space."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcp_memory.store.sql

FOLDER = Path(str(mcp_memory.store.sql.__file__)).parent
JOIN = re.compile(
    r"\bJOIN\s+\w+\s+(\w+)\s+ON\b(.*?)(?=\bJOIN\b|\bWHERE\b|\bGROUP\b|\bORDER\b|\bLEFT\b|\)|$)", re.DOTALL
)


def statements() -> Iterator[tuple[str, str]]:
    """Yield every SQL text of the domain with its place; what an f-string puts in is `{}`."""
    for path in sorted(FOLDER.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
                text = node.value
            else:
                continue
            if re.search(r"\b(SELECT|FROM|JOIN|UPDATE|INSERT INTO|DELETE FROM)\s", text) and "\n" not in text:
                yield f"{path.name}:{node.lineno}", text


def test_every_join_names_the_space() -> None:
    without = [
        (place, found[0]) for place, text in statements() for found in JOIN.finditer(text) if "space" not in found[2]
    ]
    assert without == []


@pytest.mark.parametrize(
    "table", ["turn", "atom", "fact", "evidence", "mention", "entity_name", "record", "canvas", "ref"]
)
def test_every_statement_that_changes_rows_of_a_space_names_it(table: str) -> None:
    changing = [
        (place, text)
        for place, text in statements()
        if re.match(rf"(UPDATE {table} SET|DELETE FROM {table}\b|INSERT INTO {table} )", text)
    ]
    assert [(place, text) for place, text in changing if "space" not in text] == []
