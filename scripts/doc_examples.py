"""Writes the generated parts of README.md and docs/ (examples, commands, settings), or compares them.

Text between these marks is generated:

    ~~~text                     the first line is a call of a tool, `tool {arguments}`; the rest is its answer
    ```console                  lines that begin with `$ ` are commands, run in this folder; the rest is their output
    <!-- settings -->           a table of all settings; ends with <!-- end -->
    <!-- commands -->           all commands with their options; ends with <!-- end -->
    <!-- formats -->            a table of the formats that can be imported; ends with <!-- end -->

The examples of a page are one sequence, which starts with an empty memory. The clock advances a minute with each call,
so that every answer is the same each time. `<fixtures/…>` in an argument is
replaced by the text of that file. An answer that ends with a line `…` is shown as far as that line.

    python scripts/doc_examples.py            compare; exits with 1 and a diff if a page differs
    python scripts/doc_examples.py --write    write the pages
"""

from __future__ import annotations

import difflib
import inspect
import itertools
import json
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import click
from click.testing import CliRunner

from mcp_memory import open_memory
from mcp_memory.cli.main import GROUPS, program
from mcp_memory.core.config import Settings
from mcp_memory.integrations.importers.format_table import table
from mcp_memory.server.tools import TOOLS
from mcp_memory.testing import FixedClock

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

BLOCK = re.compile(r"(?<=^~~~text\n)([a-z_]+) (\{[^\n]*\})\n(.*?)(?=^~~~$)", re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"(?<=^```console\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"<(fixtures/[\w./-]+)>")
OF_EVERY_COMMAND = {"--home", "--store", "--space", "--personal-space", "--json", "--help"}


def rendered(page: str) -> str:
    """Return the text of a page with what the code gives today."""
    if BLOCK.search(page):
        page = anyio.run(_with_answers, page)
    with tempfile.TemporaryDirectory() as home:
        page = CONSOLE.sub(lambda block: _session(block[1], Path(home) / ".mcp-memory"), page)
    for mark, made in (("settings", settings), ("commands", commands), ("formats", import_formats)):
        page = re.sub(
            rf"(?<=^<!-- {mark} -->\n).*?(?=^<!-- end -->$)",
            lambda _, made=made: f"\n{made()}\n",
            page,
            flags=re.MULTILINE | re.DOTALL,
        )
    return page


async def _with_answers(page: str) -> str:
    """Return the page with the answers of the tools."""
    tools = {tool.name: tool for tool in TOOLS}
    clock = FixedClock(datetime(2026, 5, 7, 9, 0, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as home:
        async with open_memory(home=home, now=clock, read_sentences=True) as memory:
            in_session = memory.under("2026-05-07-porto")

            async def opened() -> Any:
                return in_session

            parts: list[str] = []
            end = 0
            for block in BLOCK.finditer(page):
                name, arguments = block[1], _filled(json.loads(block[2]))
                clock.advance(minutes=1)
                answer = await tools[name].call(opened, arguments, {})
                (content,) = answer.content
                text = str(getattr(content, "text", "")).replace(home, "~/.mcp-memory").strip()
                parts += [page[end : block.start(3)], _cut(block[3].splitlines(), text.splitlines())]
                end = block.end(3)
    return "".join([*parts, page[end:]])


def _session(block: str, home: Path) -> str:
    """Return a block of commands with their output in that home."""
    user = home.parent
    (user / ".claude.json").write_text("{}\n")  # the user of the examples has Claude Code
    parts: list[str] = []
    for shown in re.split(r"^(?=\$ )", block, flags=re.MULTILINE)[1:]:
        command, *lines = shown.splitlines()
        variables, arguments = _parsed(command)
        environ = {"HOME": str(user), "MCP_MEMORY_HOME": str(home), "COLUMNS": "80", "NO_COLOR": "1", **variables}
        before = Path.cwd()
        os.chdir(ROOT)
        try:
            result = CliRunner().invoke(program, arguments, env=environ, prog_name="mcp-memory")
        finally:
            os.chdir(before)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        text = result.output.replace(str(user), "~").strip("\n")
        parts += [f"{command}\n", _cut(lines, text.splitlines())]
    return "".join(parts)


def _parsed(command: str) -> tuple[dict[str, str], list[str]]:
    """Return the variables and the arguments of `$ NAME=VALUE mcp-memory ARGUMENT…`."""
    words = shlex.split(command)[1:]
    variables = dict(word.split("=", 1) for word in itertools.takewhile(lambda word: "=" in word, words))
    name, *arguments = words[len(variables) :]
    if name != "mcp-memory":
        raise SystemExit(f"{command!r} is shown, and only `$ mcp-memory …` can be played.")
    return variables, arguments


def _cut(shown: list[str], real: list[str]) -> str:
    """Return the real lines, as far as the page shows them."""
    if shown[-1:] == ["…"] and len(real) >= len(shown):
        real = [*real[: len(shown) - 1], "…"]
    return "".join(f"{line}\n" for line in real)


def import_formats() -> str:
    """Return a table of the formats that can be imported."""
    forms = sorted(table().items())
    lines = [
        f"| `{name}` | {form.title.removeprefix('a ').removeprefix('an ')} | {form.location} |" for name, form in forms
    ]
    return "\n".join(["| `--format` | what | where it is |", "|---|---|---|", *lines, ""])


def _filled(value: Any) -> Any:
    """Return the arguments with files in place of their names."""
    match value:
        case str():
            return FILE.sub(lambda found: (ROOT / found[1]).read_text(encoding="utf-8"), value)
        case dict():
            return {key: _filled(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_filled(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def settings() -> str:
    """Return the table of all settings with their defaults."""
    lines = ["| setting | default | |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        lines.append(f"| `{name}` | {default} | {field.description} |".replace("|  |", "| |"))
    return "".join(f"{line}\n" for line in lines)


def commands() -> str:
    """Return the reference of all commands by group: what each does, its usage, examples and options."""
    context = click.Context(program, info_name="mcp-memory")
    parts = ["\n".join(["```text", inspect.cleandoc(program.epilog or "").replace("\b\n", "\n").strip(), "```", ""])]
    for title, names in GROUPS.items():
        parts += [f"### {title}\n", *_reference(context, program, names)]
    return "\n".join(parts)


def _reference(context: click.Context, group: click.Group, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        command = group.get_command(context, name)
        assert command is not None, name
        inner = click.Context(command, info_name=name, parent=context)
        usage = " ".join([inner.command_path, *command.collect_usage_pieces(inner)])
        yield f"#### `{inner.command_path}`\n"
        for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
            if paragraph.startswith("\b\n"):
                yield "\n".join(["```sh", paragraph[2:], "```", ""])
            else:
                yield " ".join(paragraph.split()) + "\n"
        yield "\n".join(["```text", usage, "```", ""])
        if rows := list(_options(inner, command)):
            yield "\n".join(["| option | |", "|---|---|", *rows, ""])
        if isinstance(command, click.Group):
            yield from _reference(inner, command, command.list_commands(inner))


def _options(context: click.Context, command: click.Command) -> Iterator[str]:
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is None or not record[1] or OF_EVERY_COMMAND.intersection(option.opts):
            continue
        forms, words = record
        forms, words = (" ".join(text.split()).replace("|", "\\|") for text in (forms, words))
        yield f"| `{forms}` | {words.replace('  ', ' ')} |"


def main() -> int:
    os.environ["TZ"] = "UTC"
    if hasattr(time, "tzset"):
        time.tzset()
    write, differ = "--write" in sys.argv[1:], False
    for page in PAGES:
        shown = page.read_text(encoding="utf-8")
        real = rendered(shown)
        if write:
            page.write_text(real, encoding="utf-8")
        elif real != shown:
            differ = True
            name = page.relative_to(ROOT).as_posix()
            lines = shown.splitlines(keepends=True), real.splitlines(keepends=True)
            sys.stdout.writelines(difflib.unified_diff(*lines, name, "the code", n=1))
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
