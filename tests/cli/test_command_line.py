"""The command line as a whole: help, wrong usage, errors and how fast it is there."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import click
import pytest
from click.testing import CliRunner, Result

from mcp_memory import __version__
from mcp_memory.cli.main import GROUPS, program
from mcp_memory.cli.search import KINDS, ROLES
from mcp_memory.cli.serving import TRANSPORTS
from mcp_memory.core.types import Kind, Role
from mcp_memory.server import transports

Run = Callable[..., Result]


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)


def test_the_help_lists_every_command_in_its_group_with_an_uncut_summary(run: Run) -> None:
    page = run("--help").stdout
    assert max(map(len, page.splitlines())) <= 80
    for title, names in GROUPS.items():
        listed = page.split(f"\n{title}:\n")[1].split("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == list(names)
        assert not any("..." in line for line in listed)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["serch", "boat"], "'search'"),
        (["recal", "boat"], "'recall'"),
        (["show", "sesion"], "'session'"),
        (["status", "--spcae", "x"], "'--space'"),
        (["search", "boat", "--lmit", "3"], "'--limit'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistyped_command_or_option_gets_the_one_that_was_meant(arguments: list[str], meant: str, run: Run) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert "Did you mean" in result.stderr
    assert meant in result.stderr


def test_the_help_documents_completion_and_completion_works() -> None:
    page = CliRunner().invoke(program, ["--help"], prog_name="mcp-memory").stdout
    for shell in ("bash", "zsh", "fish"):
        assert f"_MCP_MEMORY_COMPLETE={shell}_source mcp-memory" in page
    words = {"_MCP_MEMORY_COMPLETE": "fish_complete", "COMP_WORDS": "mcp-memory sta", "COMP_CWORD": "sta"}
    found = CliRunner().invoke(program, [], prog_name="mcp-memory", env=words).stdout
    assert found.startswith("plain,status\t")


def test_the_help_documents_the_exit_codes(run: Run) -> None:
    codes = re.findall(r"^    (\d)   ", run("--help").stdout, flags=re.MULTILINE)
    assert codes == ["0", "1", "2"]
    assert [run(*words).exit_code for words in (["status"], ["show", "session", "nobody"], ["status", "--nope"])] == [
        0, 1, 2,
    ]  # fmt: skip


@pytest.mark.parametrize("name", dict(commands(program)))
def test_every_command_has_a_short_summary_and_help_with_an_example_in_80_columns(name: str, run: Run) -> None:
    assert len(dict(commands(program))[name].get_short_help_str(1_000)) <= 60
    result = run(*name.split(), "--help")
    assert result.exit_code == 0
    usage, *rest = result.stdout.splitlines()
    assert usage.startswith(f"Usage: mcp-memory {name} ")
    assert any(line.startswith("  mcp-memory ") and name.split()[0] in line for line in rest)
    assert [line for line in (usage, *rest) if len(line) > 80] == []


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
        ["search", "x", "--kind", "mood"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--role", "user", "--kind", "persona"],
        ["search", "x", "--session", "moving", "--in", "memories"],
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


@pytest.mark.parametrize(
    ("command", "code"), [("status", 0), ("show persona", 1), ("show sessions", 1), ("search it", 1), ("recall it", 1)]
)
def test_before_the_first_use_nothing_is_wrong_and_the_next_steps_are_named(
    command: str, code: int, run: Run, home: Path
) -> None:
    result = run(*command.split(), home=home)
    assert (result.exit_code, home.exists()) == (code, False)
    shown = result.stdout if code == 0 else result.stderr
    assert shown.startswith("Nothing is stored yet in")
    for step in (str(home), "mcp-memory install", "mcp-memory import", "mcp-memory demo"):
        assert step in shown
    assert "Error" not in result.output


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder in which nobody can make another")
@pytest.mark.parametrize("command", ["status", "show persona", "search it"])
def test_a_home_that_cannot_be_made_is_named(command: str, run: Run) -> None:
    result = run(*command.split(), home=Path("/proc/nowhere"))
    assert result.exit_code != 0
    assert "No memory can be made at /proc/nowhere" in result.stderr
    assert "name another place" in result.stderr


def test_the_status_before_the_first_use_has_all_keys_for_programs(run: Run, home: Path, small_home: Path) -> None:
    before, after = (json.loads(run("status", "--json", home=place).stdout) for place in (home, small_home))
    assert (set(before), home.exists()) == (set(after), False)
    assert (before["home"], before["counts"]["turns"], before["spaces"], before["connected"]) == (str(home), 0, [], [])


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


@pytest.mark.parametrize(
    "command",
    [
        "search van", "search quarterly tax form", "search ERROR --role tool", "why a1", "why t1", "why 001-N1", "why van",
        "show persona", "show canvas", "show canvases", "show sessions", "show session moving", "show scenes", "status",
        "doctor", "verify", "review", "retention", "purge", "token list", "forget --query van", "persona history",
        "flush moving", "backup --list", "rebuild --check",
    ],
)  # fmt: skip
def test_what_people_read_fits_80_columns(command: str, run: Run, small_home: Path) -> None:
    result = run(*command.split())
    assert result.exit_code == 0, result.output
    lines = [click.unstyle(line) for line in result.stdout.splitlines()]
    assert [line for line in lines if len(line) > 80 and str(small_home) not in line] == []
