"""`mcp-memory space`: list, create, limit and delete spaces."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


def test_a_space_is_made_limited_shown_and_deleted(run: Run, home: Path) -> None:
    def out(*arguments: str) -> str:
        result = run(*arguments, home=home)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert out("space", "list") == "There are no spaces yet.\n"
    assert out("space", "create", "work") == "Created work.\n"
    assert out("space", "create", "work") == "work exists already.\n"
    assert out("space", "quota", "work") == "work has no quota.\n"
    limited = out("space", "quota", "work", "--turns", "10,000", "--bytes", "2GB", "--tokens", "5m", "--cost", "$12.50")
    assert limited.splitlines() == [
        "work: 0 of 10,000 turns",
        "work: 0 B of 2.0 GB",
        "work: 0 of 5,000,000 tokens this month",
        "work: $0.00 of $12.50 this month",
    ]
    assert (
        out("space", "quota", "work", "--bytes", "off", "--cost", "off", "--tokens", "off")
        == "work: 0 of 10,000 turns\n"
    )
    assert out("space", "retention", "work", "--turns", "1y") == "work: turns 365 days\n"
    out("remember", "The ferry leaves at nine.", "--space", "work")
    assert out("space", "list").split("\n")[1].split() == [
        "work",
        "1",
        "0",
        "of",
        "10,000",
        "turns",
        "turns",
        "365",
        "days",
    ]
    (row,) = json.loads(out("space", "list", "--json"))
    assert row["quotas"] == [{"what": "turns", "most": 10_000, "used": 0}]
    assert "0 of 10,000 turns" in out("status", "--space", "work")
    assert "0 due; next run" in out("status", "--space", "work")
    assert out("space", "quota", "work", "--off") == "work has no quota.\n"
    kept = run("space", "delete", "work", home=home)
    assert kept.exit_code == 1
    assert "work has stored 1 turn" in kept.stderr
    assert (home / "spaces" / "work").is_dir()
    assert out("space", "delete", "work", "--yes") == "Deleted work.\n"
    assert not (home / "spaces" / "work").exists()
    assert out("space", "list") == "There are no spaces yet.\n"
    assert not any(b"ferry" in path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert run("doctor", home=home).exit_code == 0
    assert "0 of" not in run("rebuild", "--check", home=home).stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["create", "../up"], 2),
        (["quota", "nowhere"], 1),
        (["quota", "x", "--turns", "many"], 2),
        (["quota", "x", "--cost", "2GB"], 2),
        (["quota", "x", "--off", "--turns", "1"], 2),
        (["retention", "x", "--turns", "soon"], 2),
        (["delete", "nowhere", "--yes"], 1),
    ],
)
def test_what_cannot_be_is_one_sentence(run: Run, home: Path, arguments: list[str], code: int) -> None:
    result = run("space", *arguments, home=home)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
