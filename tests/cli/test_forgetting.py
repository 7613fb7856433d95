"""`forget` as people use it: look, take out, bring back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from mcp_memory.service.memory import Memory
from tests.in_memory import in_memory

Run = Callable[..., Result]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    async def fill(memory: Memory) -> None:
        await memory.remember("Ines keeps bees near Porto.", typed=True)
        await memory.remember("Ines takes the night boat.", typed=True)

    in_memory(tmp_path / "home", fill)
    return tmp_path / "home"


def test_what_is_forgotten_is_found_no_more_until_it_is_brought_back(run: Run, home: Path) -> None:
    done = run("forget", "a1", "--reason", "moved away", home=home)
    assert done.stdout == (
        "Forgot a1. To restore them: mcp-memory forget --undo x1\n  a1: Ines keeps bees near Porto.\n"
        "The lines that are based on it in the page about the user.\n"
    )
    assert "bees" not in run("search", "bees", home=home).stdout
    assert run("forget", "--undo", "x1", home=home).stdout.startswith("Restored a1.\n")
    assert "keeps bees" in run("search", "bees", home=home).stdout


def test_rows_with_the_same_content_are_listed_and_forgotten_with_also(run: Run, home: Path) -> None:
    run("remember", "Near Porto Ines keeps bees on a roof.", home=home)
    shown = run("forget", "a1", home=home)
    assert "Other rows with the same content stay." in shown.stdout
    assert "mcp-memory forget a" in shown.stdout
    run("forget", "--undo", "x1", home=home)
    both = run("forget", "a1", "--also", home=home)
    assert "Other rows" not in both.stdout
    assert len(both.stdout.splitlines()[0].split(",")) > 1


def test_words_only_show_what_holds_all_of_them(run: Run, home: Path) -> None:
    seen = run("forget", "--query", "night boat", home=home)
    assert seen.stdout.startswith("Nothing was changed. To forget these: mcp-memory forget a2\n")
    assert json.loads(run("forget", "--query", "night boat", "--json", home=home).stdout)["dry_run"] is True
    assert "takes the night boat" in run("search", "boat", home=home).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "Say what: ids"),
        (["a1", "--undo", "x1"], 2, "not both"),
        (["--query", "submarine"], 1, "Nothing contains all of these words."),
        (["a99"], 1, "a99"),
        (["--undo", "x99"], 1, "x99"),
    ],
)
def test_what_cannot_be_forgotten_is_told(run: Run, home: Path, arguments: list[str], code: int, said: str) -> None:
    result = run("forget", *arguments, home=home)
    assert (result.exit_code, result.stdout) == (code, "")
    assert said in result.stderr
