"""The command line as a whole: help, wrong usage, errors and how fast it is there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import click
import pytest
from click.testing import CliRunner, Result

from mcp_memory import __version__
from mcp_memory.cli import program
from mcp_memory.cli.search import KINDS, ROLES
from mcp_memory.cli.serving import TRANSPORTS
from mcp_memory.core.types import Kind, Role
from mcp_memory.server import transports

Run = Callable[..., Result]


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        yield (*path, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


def test_the_commands_are_these() -> None:
    assert [" ".join(path) for path in commands(program)] == [
        "install",
        "uninstall",
        "serve",
        "ui",
        "token",
        "token create",
        "token list",
        "token revoke",
        "wrap",
        "hook",
        "demo",
        "import",
        "export",
        "search",
        "why",
        "show",
        "show canvas",
        "show canvases",
        "show persona",
        "show ref",
        "show scene",
        "show scenes",
        "show session",
        "show sessions",
        "forget",
        "purge",
        "retention",
        "review",
        "distill",
        "flush",
        "pause",
        "resume",
        "scene",
        "scene history",
        "scene restore",
        "persona",
        "persona diff",
        "persona history",
        "persona rebuild",
        "verify",
        "status",
        "doctor",
        "backup",
        "restore",
        "rebuild",
        "compact",
        "migrate",
        "move",
        "compress",
        "bench",
    ]


@pytest.mark.parametrize("path", list(commands(program)), ids=" ".join)
def test_every_command_has_help_with_an_example(path: tuple[str, ...], run: Run) -> None:
    result = run(*path, "--help")
    assert result.exit_code == 0
    usage, *rest = result.stdout.splitlines()
    assert usage.startswith(f"Usage: mcp-memory {' '.join(path)} ")
    assert any(line.startswith("  mcp-memory ") and path[0] in line for line in rest)


def test_without_arguments_the_help_is_shown() -> None:
    assert CliRunner().invoke(program, []).stdout == CliRunner().invoke(program, ["--help"]).stdout


def test_the_version_is_the_packages() -> None:
    assert CliRunner().invoke(program, ["--version"], prog_name="mcp-memory").stdout.split()[-1] == __version__


def test_the_words_that_options_take_are_those_of_the_types() -> None:
    assert (get_args(Kind), get_args(Role), transports.TRANSPORTS) == (KINDS, ROLES, TRANSPORTS)


@pytest.mark.parametrize(
    "arguments",
    [
        ["nope"],
        ["search"],
        ["search", "x", "--kind", "mood"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--role", "user", "--kind", "persona"],
        ["search", "x", "--session", "moving", "--in", "memories"],
        ["search", "x", "--cursor", "abc"],
        ["serve", "--port", "9000"],
        ["serve", "--transport", "pigeon"],
        ["show"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_and_says_how(arguments: list[str], run: Run) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Usage: mcp-memory")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["search", "x", "--since", "yesterdayish"], 2),
        (["search", "x", "--in", "turns", "--cursor", "not-a-cursor"], 2),
        (["--space", "../up", "status"], 2),
        (["show", "session", "nobody"], 1),
        (["show", "canvas", "77"], 1),
        (["show", "canvas", "no-such-task"], 1),
        (["show", "ref", "r-000000000000"], 1),
        (["show", "ref", "001-N99"], 1),
        (["show", "persona", "Shoe size"], 1),
        (["--space", "empty", "show", "session"], 1),
        (["--space", "empty", "show", "canvas"], 1),
        (["serve", "--transport", "http", "--host", "0.0.0.0"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_is_one_line_on_stderr(arguments: list[str], code: int, run: Run) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["status", "show persona", "show sessions", "search anything"])
def test_a_home_without_a_memory_is_named_and_not_made(command: str, run: Run, home: Path) -> None:
    result = run(*command.split(), home=home)
    assert (result.exit_code, home.exists()) == (1, False)
    assert str(home) in result.stderr


def test_home_and_space_may_stand_behind_the_command(small_home: Path) -> None:
    before = CliRunner().invoke(program, ["--home", str(small_home), "--space", "work", "status"])
    behind = CliRunner().invoke(program, ["status", "--home", str(small_home), "--space", "work"])
    assert (before.exit_code, before.stdout) == (0, behind.stdout)


def test_loading_the_command_line_loads_nothing_heavy() -> None:
    script = "import sys, mcp_memory.cli.serving; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"anyio", "apsw", "litellm", "mcp", "model2vec", "numpy", "pydantic", "tiktoken", "mcp_memory.core.types"}
    assert heavy.isdisjoint(loaded)


@pytest.mark.parametrize("words", [["{}"], ["status", "--{}"], ["status", "{}"], ["turn", "t1", "--neighbours", "{}"]])
def test_a_key_that_is_no_argument_is_not_said_again(words: list[str]) -> None:
    key = "AKIA" + "Q7RZ5MDW3KXN8PLT"
    done = CliRunner().invoke(program, [word.format(key) for word in words])
    assert done.exit_code == 2
    assert key not in done.output + done.stderr
    assert "Error: " in done.stderr
