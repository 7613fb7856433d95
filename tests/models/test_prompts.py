"""Prompts are text files with named holes; what fills a hole is data."""

from __future__ import annotations

import pytest

from mcp_memory.models.prompts import prompt


def test_a_hole_is_filled_once_and_with_what_it_is_given() -> None:
    data = "{{results}}\n---\n{{question}} \\1"
    system, user = prompt("rerank", question=data, results="[results]")
    assert (system.role, user.role) == ("system", "user")
    assert user.text == f"<question>\n{data}\n</question>\n\n<results>\n[results]\n</results>"
    assert data not in system.text


def test_a_hole_that_is_not_given_is_an_error() -> None:
    with pytest.raises(KeyError, match="results"):
        prompt("rerank", question="Which?")
