"""`mcp-memory token`: made once, listed without its secret, revoked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from mcp_memory.core.rights import RIGHTS
from tests.in_memory import in_memory

Run = Callable[..., Result]


def test_a_token_is_printed_once_and_its_home_made(run: Run, home: Path) -> None:
    made = run(
        "token", "create", "--name", "laptop", "--space", "work", "--space", "home", "--rights", "read", home=home
    )
    assert made.exit_code == 0, made.output
    text = made.stdout.strip()
    assert text.startswith("mcm_")
    assert made.stderr.startswith("laptop opens work, home with the right read, until it is revoked.")
    listed = run("token", "list", home=home)
    assert listed.stdout.splitlines()[1].split()[1:5] == ["laptop", "work,", "home", "read"]
    assert text.split("_", 2)[2] not in listed.stdout + run("token", "list", "--json", home=home).stdout
    assert not any(text.split("_", 2)[2].encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_token_for_a_space_without_contents_says_so(run: Run, home: Path) -> None:
    run("space", "create", "work", home=home)
    made = run("token", "create", "--name", "laptop", "--space", "work", "--space", "wrok", home=home)
    assert made.stderr.endswith("Nothing is stored in wrok yet.\n")
    again = run("token", "create", "--name", "phone", "--space", "work", home=home)
    assert again.stderr.endswith("It is not shown again.\n")


def test_a_token_in_use_was_used_within_an_hour(run: Run, home: Path) -> None:
    text = run("token", "create", "--name", "laptop", home=home).stdout.strip()
    assert " never      never" in run("token", "list", home=home).stdout
    assert in_memory(home, lambda memory: memory.token_shown(text)) is not None
    assert " within an hour  never" in run("token", "list", home=home).stdout


def test_a_list_that_is_too_wide_has_a_line_for_each_value(run: Run, home: Path) -> None:
    run("token", "create", "--name", "a laptop with a long name in Bergen", home=home)
    lines = run("token", "list", home=home).stdout.splitlines()
    assert lines[1].split() == ["NAME", "a", "laptop", "with", "a", "long", "name", "in", "Bergen"]
    assert max(map(len, lines)) <= 80


def test_a_revoked_token_says_so_and_its_name_is_free_again(run: Run, home: Path) -> None:
    for _ in range(2):
        assert run("token", "create", "--name", "ci", "--expires", "90d", home=home).exit_code == 0
        assert run("token", "revoke", "ci", home=home).stdout.startswith("Revoked ci (")
    administration = json.loads(run("token", "list", "--json", home=home).stdout)
    assert [(one["name"], one["spaces"], one["rights"], one["revoked"] is None) for one in administration] == [
        ("ci", ["default"], "write", False)
    ] * 2
    assert run("token", "list", home=home).stdout.count("revoked ") == 2


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["create", "--name", "x", "--expires", "soon"], 2),
        (["create", "--name", "x", "--expires", "0d"], 2),
        (["create", "--name", "x", "--expires", "99999y"], 2),
        (["create", "--name", " \n"], 2),
        (["create", "--name", "x", "--space", "../up"], 2),
        (["revoke", "nobody"], 1),
    ],
)
def test_what_cannot_be_is_one_sentence(run: Run, home: Path, arguments: list[str], code: int) -> None:
    result = run("token", *arguments, home=home)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_a_name_can_be_taken_once(run: Run, home: Path) -> None:
    assert run("token", "create", "--name", "x", home=home).exit_code == 0
    assert "named 'x'" in run("token", "create", "--name", "x", home=home).stderr


def test_the_rights_are_those_of_the_store(run: Run) -> None:
    from mcp_memory.cli import administration

    held: Any = administration.RIGHTS
    assert held == RIGHTS
