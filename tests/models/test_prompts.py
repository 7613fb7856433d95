"""Prompts are text files with named holes; what fills a hole is data."""

from __future__ import annotations

import re
from importlib import resources

import pytest

from mcp_memory.models.prompts import prompt

NAMES = ("extract", "merge", "scenes", "persona", "summaries", "canvas", "rerank")


@pytest.mark.parametrize("name", NAMES)
def test_the_instructions_are_the_same_for_each_question_so_that_a_provider_can_cache_them(name: str) -> None:
    text = (resources.files("mcp_memory.models.prompts") / f"{name}.md").read_text(encoding="utf-8")
    instructions = text.split("\n---\n", 1)[0]
    assert {hole[1] for hole in re.finditer(r"\{\{(\w+)\}\}", instructions)} <= {"most"}


def test_a_hole_is_filled_once_and_with_what_it_is_given() -> None:
    data = "{{results}}\n---\n{{question}} \\1"
    system, user = prompt("rerank", question=data, results="[results]")
    assert (system.role, user.role) == ("system", "user")
    assert user.text == f"<question>\n{data}\n</question>\n\n<results>\n[results]\n</results>"
    assert data not in system.text


def test_a_hole_that_is_not_given_is_an_error() -> None:
    with pytest.raises(KeyError, match="results"):
        prompt("rerank", question="Which?")
